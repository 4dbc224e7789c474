// SPDX-License-Identifier: BSD-2-Clause
/* cli/client: exit codes of errors */
#include "client.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/sockpath.h"
#include "harness/test.h"

Test(client, error_bodies)
{
	struct diag diag = {0};
	const char *body = "{\"code\": 3, \"error\": \"no_process\", \"message\": \"gone\","
			   " \"hint\": \"look\"}";

	cr_assert(client_error(404, body, strlen(body), &diag) < 0);
	cr_assert(diag.exit == PYP_EXIT_NO_PROCESS);
	cr_assert_str_eq(diag.msg, "gone");
	cr_assert_str_eq(diag.hint, "look");
}

/* The response is not the daemon's, or is damaged: the HTTP status determines the exit code. */
Test(client, foreign_error_bodies)
{
	const char *bodies[] = {"",
				"<html>",
				"[]",
				"{}",
				"{\"code\": 0, \"message\": \"x\"}",
				"{\"code\": 99, \"message\": \"x\"}",
				"{\"code\": 3}"};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct diag diag = {0};

		cr_assert(client_error(403, bodies[i], strlen(bodies[i]), &diag) < 0);
		cr_assert(diag.exit == PYP_EXIT_PERMISSION && diag.msg[0], "%s", bodies[i]);
	}
}

Test(client, no_daemon)
{
	struct client *c;
	struct diag diag = {0};

	assert_ok(client_open("/nonexistent/s", &c, NULL));
	cr_assert(client_request(c, "GET", "/v1/ping", NULL, NULL, &diag) < 0);
	cr_assert(diag.exit == PYP_EXIT_NO_DAEMON && diag.hint[0]);
	assert_ok(client_wait_closed(c, NULL));
	client_free(c);
	check_no_leaks();
}

Test(client, socket_path_too_long)
{
	char path[200];
	struct client *c;
	struct diag diag = {0};

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_err(client_open(path, &c, &diag), -ENAMETOOLONG);
	cr_assert(diag.exit == PYP_EXIT_USAGE);
}

/* The server accepts the connection but does not respond. */
Test(client, timeout)
{
	char dir[] = "/tmp/pyprof-client-XXXXXX", path[64];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un addr;
	struct client *c;
	struct diag diag = {0};

	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	assert_ok(sockpath_addr(path, &addr, NULL));
	assert_ok(bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	assert_ok(listen(fd, 5));
	assert_ok(client_open(path, &c, NULL));
	client_set_timeout(c, 1);
	assert_err(client_request(c, "GET", "/v1/ping", NULL, NULL, &diag), -ETIMEDOUT);
	cr_assert(diag.exit == PYP_EXIT_FAILURE);
	client_free(c);
	close(fd);
	unlink(path);
	rmdir(dir);
}

Test(client, parameters_are_escaped)
{
	struct client *c;
	char *path;

	assert_ok(client_open("s", &c, NULL));
	path = client_add_param(c, strdup("/p"), "a", "x&y=1 %");
	path = client_add_param(c, path, "b", "(z)+é");
	cr_assert_str_eq(path, "/p?a=x%26y%3D1%20%25&b=%28z%29%2B%C3%A9");
	cr_assert_null(client_add_param(c, NULL, "a", "b"));
	free(path);
	client_free(c);
	check_no_leaks();
}
