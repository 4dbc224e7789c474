// SPDX-License-Identifier: BSD-2-Clause
/* A ClickHouse server: see clickhouse.h. */
#include "harness/clickhouse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "harness/patience.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/tool.h"

#define PROGRAM "/usr/sbin/clickhouse-server"

void clickhouse_need(void)
{
	if (access(PROGRAM, X_OK) != 0)
		tool_need("clickhouse-server");
}

static struct sockaddr_in address(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int free_port(void)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = address(0);
	socklen_t n = sizeof(a);

	cr_assert(fd >= 0 && bind(fd, (const struct sockaddr *)&a, sizeof(a)) == 0);
	cr_assert(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	return ntohs(a.sin_port);
}

static bool answers(const struct clickhouse *c)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char request[] = "GET /ping HTTP/1.0\r\n\r\n";
	struct sockaddr_in a = address(c->port);
	char reply[16];

	return fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0 &&
	       write(fd, request, sizeof(request) - 1) > 0 &&
	       read(fd, reply, sizeof(reply)) == sizeof(reply);
}

static void wait_ready(struct clickhouse *c)
{
	while (!answers(c)) {
		cr_assert(waitpid(c->pid, NULL, WNOHANG) == 0, "the server has ended: see %s/log",
			  c->dir);
		cr_assert(!patience_over(), "the server does not answer: see %s/log", c->dir);
		patience_step();
	}
}

/* The configuration names the port by the environment, and data relative to the working directory. */
static char *config_option(void)
{
	const char *top = getenv("PYPROF_TOP");
	char *dir = realpath(top ? top : ".", NULL), *option = NULL;

	cr_assert(dir);
	cr_assert(asprintf(&option, "--config-file=%s/tests/harness/clickhouse/config.xml", dir) >
		  0);
	free(dir);
	return option;
}

void clickhouse_restart(struct clickhouse *c)
{
	_cleanup_free_ char *option = config_option();
	char log[256], port[16];

	snprintf(log, sizeof(log), "%s/log", c->dir);
	snprintf(port, sizeof(port), "%d", c->port);
	c->pid = fork();
	cr_assert(c->pid >= 0);
	if (c->pid == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fd >= 0 && dup2(fd, 1) >= 0 && dup2(fd, 2) >= 0 && chdir(c->dir) == 0 &&
		    setenv("CLICKHOUSE_PORT", port, 1) == 0)
			execl(PROGRAM, PROGRAM, option, NULL);
		_exit(127);
	}
	wait_ready(c);
}

static void make_data(const struct clickhouse *c)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/data", c->dir);
	assert_ok(mkdir(path, 0700));
}

void clickhouse_start(struct clickhouse *c)
{
	c->dir = temp_dir_new();
	c->port = free_port();
	make_data(c);
	clickhouse_restart(c);
}

void clickhouse_kill(struct clickhouse *c)
{
	if (!c->pid)
		return;
	kill(c->pid, SIGKILL);
	cr_assert(waitpid(c->pid, NULL, 0) == c->pid);
	c->pid = 0;
}

void clickhouse_empty(struct clickhouse *c)
{
	char data[256];
	const char *const argv[] = {"rm", "-r", data, NULL};

	cr_assert_eq(c->pid, 0);
	snprintf(data, sizeof(data), "%s/data", c->dir);
	free(tool_run(argv));
	make_data(c);
}

void clickhouse_end(struct clickhouse *c)
{
	clickhouse_kill(c);
	if (c->dir)
		temp_dir_remove(c->dir);
	c->dir = NULL;
}

/* after: NULL: cut answers off; otherwise refuse inserts after so many. */
static int start_proxy(const struct clickhouse *c, int cut, const char *table, const char *after,
		       pid_t *ret_pid)
{
	char path[256], port[16], count[16], text[16] = "";
	int out[2];
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/targets/cut_answers.py", getenv("PYPROF_TOP"));
	snprintf(port, sizeof(port), "%d", c->port);
	snprintf(count, sizeof(count), "%d", cut);
	cr_assert(pipe2(out, O_CLOEXEC) == 0);
	*ret_pid = fork();
	cr_assert(*ret_pid >= 0);
	if (*ret_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		execlp("python3", "python3", path, port, count, table, after, NULL);
		_exit(127);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	cr_assert(f && fgets(text, sizeof(text), f)); /* the whole line, however it is written */
	fclose(f);
	return (int)strtol(text, NULL, 10);
}

int clickhouse_start_cutter(const struct clickhouse *c, int cut, const char *table, pid_t *ret_pid)
{
	return start_proxy(c, cut, table, NULL, ret_pid);
}

int clickhouse_start_refuser(const struct clickhouse *c, const char *table, pid_t *ret_pid)
{
	return start_proxy(c, 1, table, "1", ret_pid);
}

const char *clickhouse_address(int port, const char *database, char *out, size_t size)
{
	snprintf(out, size, "clickhouse+http://127.0.0.1:%d/%s", port, database);
	return out;
}
