/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ClickHouse server of a test, with its own configuration and data in a temporary directory, on a
 * port of the loopback interface. It is killed with the test, however it ends.
 */
#ifndef PYPROF_TESTS_HARNESS_CLICKHOUSE_H
#define PYPROF_TESTS_HARNESS_CLICKHOUSE_H

#include <stddef.h>
#include <sys/types.h>

struct clickhouse {
	char *dir;
	int port;
	pid_t pid; /* 0: not running */
};

/* Skip the test if there is no server's program; fail it if PYPROF_TEST_REQUIRE has "tools". */
void clickhouse_need(void);
/* Make the directory, start the server, wait until it answers. */
void clickhouse_start(struct clickhouse *c);
/* SIGKILL, without a chance to write anything. Its data stays. */
void clickhouse_kill(struct clickhouse *c);
/* Remove its data, while it does not run. */
void clickhouse_empty(struct clickhouse *c);
/* Start it again, on the same port and data. */
void clickhouse_restart(struct clickhouse *c);
/* Kill it and remove its data. */
void clickhouse_end(struct clickhouse *c);

/*
 * Starts a program that forwards requests and cuts off the first answers of inserts into a table;
 * returns its port.
 */
int clickhouse_start_cutter(const struct clickhouse *c, int cut, const char *table, pid_t *ret_pid);

/* The same, but it refuses the second insert into the table, and forwards all others. */
int clickhouse_start_refuser(const struct clickhouse *c, const char *table, pid_t *ret_pid);

/* "clickhouse+http://127.0.0.1:PORT/DATABASE"; returns out. */
const char *clickhouse_address(int port, const char *database, char *out, size_t size);

#endif
