// SPDX-License-Identifier: BSD-2-Clause
/* A receiver of pushed profiles: see push_server.h. */
#include "harness/push_server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

#define ARGS_MAX 24

static _Noreturn void run(const char *const *argv, int in, int out)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static int read_port(int fd)
{
	char text[16] = "";
	size_t n = 0;

	while (n < sizeof(text) - 1 && read(fd, text + n, 1) == 1 && text[n] != '\n')
		n++;
	cr_assert(n > 0, "the receiver did not start");
	return (int)strtol(text, NULL, 10);
}

void push_server_start(struct push_server *s, const char *dir, ...)
{
	const char *argv[ARGS_MAX + 1] = {"python3"};
	char script[256];
	int in[2], out[2];
	size_t n = 3;
	va_list ap;

	snprintf(s->log, sizeof(s->log), "%s/received", dir);
	argv[1] = traced_path("tests/harness", "receiver.py", script, sizeof(script));
	argv[2] = s->log;
	va_start(ap, dir);
	while (n < ARGS_MAX && (argv[n] = va_arg(ap, const char *)))
		n++;
	va_end(ap);
	assert_ok(pipe2(in, O_CLOEXEC));
	assert_ok(pipe2(out, O_CLOEXEC));
	s->pid = fork();
	cr_assert(s->pid >= 0);
	if (s->pid == 0)
		run(argv, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	s->in = in[1];
	s->port = read_port(out[0]);
	close(out[0]);
}

void push_server_stop(struct push_server *s)
{
	close(s->in);
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
}

const char *push_server_url(const struct push_server *s, const char *kind, char out[64])
{
	snprintf(out, 64, "%s://127.0.0.1:%d", kind, s->port);
	return out;
}

json_t *push_server_log(const struct push_server *s)
{
	json_t *list = json_array();
	char *text = file_text(s->log, NULL);

	for (char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		json_t *o = json_loadb(line, (size_t)(end - line), 0, NULL);

		cr_assert(o, "%.*s", (int)(end - line), line);
		json_array_append_new(list, o);
	}
	free(text);
	return list;
}

size_t push_server_count(const struct push_server *s, const char *answer, size_t *ret_ids)
{
	json_t *log = push_server_log(s), *ids = json_object(), *o;
	size_t i, n = 0;

	json_array_foreach(log, i, o)
	{
		const char *text = json_string_value(json_object_get(o, "answer"));
		const char *id = json_string_value(json_object_get(o, "id"));

		if (answer && (!text || strcmp(text, answer) != 0))
			continue;
		n++;
		if (id)
			json_object_set_new(ids, id, json_true());
	}
	if (ret_ids)
		*ret_ids = json_object_size(ids);
	json_decref(ids);
	json_decref(log);
	return n;
}

void push_server_check(const struct push_server *s)
{
	json_t *log = push_server_log(s), *o;
	size_t i;

	json_array_foreach(log, i, o)
	{
		const char *error = json_string_value(json_object_get(o, "error"));

		cr_assert_null(error, "request %zu: %s", i, error);
	}
	json_decref(log);
}

void push_server_certificate(const char *dir, const char *name)
{
	char key[160], cert[160];
	const char *const argv[] = {"openssl",
				    "req",
				    "-x509",
				    "-newkey",
				    "ec",
				    "-pkeyopt",
				    "ec_paramgen_curve:prime256v1",
				    "-nodes",
				    "-days",
				    "2",
				    "-subj",
				    "/CN=test",
				    "-addext",
				    "subjectAltName=IP:127.0.0.1",
				    "-keyout",
				    key,
				    "-out",
				    cert,
				    NULL};

	tool_need("openssl");
	snprintf(key, sizeof(key), "%s/%s.key", dir, name);
	snprintf(cert, sizeof(cert), "%s/%s.pem", dir, name);
	free(tool_run(argv));
}
