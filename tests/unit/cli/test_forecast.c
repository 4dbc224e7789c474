// SPDX-License-Identifier: BSD-2-Clause
/* cli/forecast: which answers are printed at once, and which only after the attach. */
#include "forecast.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sockpath.h"
#include "harness/patience.h"
#include "harness/temp_dir.h"
#include "harness/test.h"

/* A server that sends this body to one request. */
static pid_t serve(const char *path, const char *body)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;
	char request[4096];
	pid_t pid;

	assert_ok(sockpath_addr(path, &addr, NULL));
	assert_ok(bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	assert_ok(listen(fd, 1));
	pid = fork();
	if (pid == 0) {
		int to = accept(fd, NULL, NULL);

		alarm((unsigned int)patience_left().tv_sec + 1);
		(void)!read(to, request, sizeof(request));
		dprintf(to,
			"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			"Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
			strlen(body), body);
		_exit(0);
	}
	close(fd);
	return pid;
}

/* Asks for a forecast, which the server answers with this body. Returns what goes to stderr. */
static const char *confirm(const char *body, char late[FORECAST_LINE])
{
	static char printed[FORECAST_LINE];
	int saved = dup(STDERR_FILENO), ends[2];
	ssize_t n;
	const struct forecast_of of = {.pid = 42};
	char *dir = temp_dir_new(), path[256];
	struct diag diag = {0};
	struct client *c;
	pid_t server;

	snprintf(path, sizeof(path), "%s/s", dir);
	server = serve(path, body);
	assert_diag_ok(client_open(path, &c, &diag), &diag);
	assert_ok(pipe(ends));
	cr_assert(dup2(ends[1], STDERR_FILENO) >= 0);
	close(ends[1]);
	assert_diag_ok(forecast_confirm(c, &of, late, &diag), &diag);
	cr_assert(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	n = read(ends[0], printed, sizeof(printed) - 1);
	cr_assert(n >= 0);
	printed[n] = '\0';
	close(ends[0]);
	client_free(c);
	cr_assert_eq(waitpid(server, NULL, 0), server);
	temp_dir_remove(dir);
	return printed;
}

Test(forecast, is_printed_before_the_attach)
{
	char late[FORECAST_LINE];

	cr_assert_str_eq(
		confirm("{\"name\": \"python3\", \"forecast\": {\"trace\": 1}, \"cost\": 1.0,"
			" \"text\": \"trace +1.0 %\"}",
			late),
		"pyprofd: 42 python3: trace +1.0 %\n");
	cr_assert_str_eq(late, "");
}

/* The reason for which there is none may be the reason for which the attach is refused. */
Test(forecast, none_is_reported_after_the_attach)
{
	char late[FORECAST_LINE];

	cr_assert_str_eq(
		confirm("{\"name\": \"python3\", \"forecast\": null, \"cost\": 0.0, \"text\": \"no "
			"forecast:"
			" the process used hardly any CPU time\"}",
			late),
		"");
	cr_assert_str_eq(late, "pyprofd: 42 python3: no forecast: the process used hardly any CPU "
			       "time\n");
}

/* In mode sample, the cost is known without counted calls. */
Test(forecast, of_samples_alone)
{
	char late[FORECAST_LINE];

	cr_assert_str_eq(confirm("{\"name\": \"python3\", \"forecast\": null, \"cost\": 0.2, "
				 "\"text\": \"+0.2 %\"}",
				 late),
			 "pyprofd: 42 python3: +0.2 %\n");
	cr_assert_str_eq(late, "");
}

Test(forecast, of_a_process_that_was_not_inspected)
{
	char late[FORECAST_LINE];

	cr_assert_str_eq(confirm("{\"name\": \"\", \"forecast\": null, \"cost\": 0.0, \"text\": "
				 "\"no forecast\"}",
				 late),
			 "");
	cr_assert_str_eq(late, "");
}
