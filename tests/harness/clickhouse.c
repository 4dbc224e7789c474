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
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/tool.h"

#define PROGRAM	    "/usr/sbin/clickhouse-server"
#define READY_TRIES 3000 /* of 20 ms */

static const char config[] =
	"<?xml version=\"1.0\"?>\n<yandex>\n"
	"<logger><level>warning</level><console>1</console></logger>\n"
	"<http_port>%d</http_port><listen_host>127.0.0.1</listen_host>\n"
	"<path>%s/data/</path><tmp_path>%s/tmp/</tmp_path>\n"
	"<users_config>users.xml</users_config><default_profile>default</default_profile>\n"
	"<default_database>default</default_database><mark_cache_size>67108864</mark_cache_size>\n"
	"</yandex>\n";

static const char users[] =
	"<?xml version=\"1.0\"?>\n<yandex>\n<profiles><default/></profiles>\n"
	"<users><default><password></password><networks><ip>127.0.0.1</ip></networks>"
	"<profile>default</profile><quota>default</quota></default></users>\n"
	"<quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors>"
	"<result_rows>0</result_rows><read_rows>0</read_rows><execution_time>0</execution_time>"
	"</interval></default></quotas>\n</yandex>\n";

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

static FILE *new_file(const struct clickhouse *c, const char *name)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", c->dir, name);
	f = fopen(path, "we");
	cr_assert(f);
	return f;
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
	for (int i = 0; i < READY_TRIES; i++) {
		const struct timespec step = {.tv_nsec = 20 * 1000 * 1000};

		if (answers(c))
			return;
		cr_assert(waitpid(c->pid, NULL, WNOHANG) == 0, "the server has ended: see %s/log",
			  c->dir);
		nanosleep(&step, NULL);
	}
	cr_assert_fail("the server does not answer: see %s/log", c->dir);
}

void clickhouse_restart(struct clickhouse *c)
{
	char option[256], log[256];

	snprintf(option, sizeof(option), "--config-file=%s/config.xml", c->dir);
	snprintf(log, sizeof(log), "%s/log", c->dir);
	c->pid = fork();
	cr_assert(c->pid >= 0);
	if (c->pid == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fd >= 0 && dup2(fd, 1) >= 0 && dup2(fd, 2) >= 0 && chdir(c->dir) == 0)
			execl(PROGRAM, PROGRAM, option, NULL);
		_exit(127);
	}
	wait_ready(c);
}

void clickhouse_start(struct clickhouse *c)
{
	char path[256];
	FILE *f;

	c->dir = temp_dir_new();
	c->port = free_port();
	f = new_file(c, "config.xml");
	fprintf(f, config, c->port, c->dir, c->dir);
	cr_assert(fclose(f) == 0);
	f = new_file(c, "users.xml");
	fputs(users, f);
	cr_assert(fclose(f) == 0);
	snprintf(path, sizeof(path), "%s/data", c->dir);
	assert_ok(mkdir(path, 0700));
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

void clickhouse_end(struct clickhouse *c)
{
	clickhouse_kill(c);
	if (c->dir)
		temp_dir_remove(c->dir);
	c->dir = NULL;
}

const char *clickhouse_address(int port, const char *database, char *out, size_t size)
{
	snprintf(out, size, "clickhouse+http://127.0.0.1:%d/%s", port, database);
	return out;
}
