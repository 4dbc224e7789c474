// SPDX-License-Identifier: BSD-2-Clause
/* server/http_listener: what it takes to listen, and how files have to be. */
#include "server/http_listener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/temp_dir.h"
#include "harness/test.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static char dir[64], token[96], cert[96], key[96];
static struct diag diag;

static const char *put(char path[96], const char *name, const char *text, mode_t mode)
{
	FILE *f;

	snprintf(path, 96, "%s/%s", dir, name);
	unlink(path);
	f = fopen(path, "w");
	cr_assert(f);
	fputs(text, f);
	fclose(f);
	assert_ok(chmod(path, mode));
	return path;
}

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/pyprof-http-XXXXXX");
	temp_dir_make(dir);
	put(token, "token", TOKEN "\n", 0400);
	put(cert, "cert", "cert", 0644);
	put(key, "key", "key", 0600);
}

static void teardown(void)
{
	temp_dir_delete(dir);
}

TestSuite(http_listener, .init = setup, .fini = teardown);

static int try(const struct http_listener_opts *o)
{
	struct http_listener *l = NULL;
	int r;

	diag_clear(&diag);
	r = http_listener_open(o, &l, &diag);
	if (r == 0 && o->addr) {
		cr_assert(l->fd >= 0 && !l->token == !o->token_file && !l->cert == !o->cert);
		cr_assert(!l->token || strcmp(l->access.token, TOKEN) == 0);
	}
	http_listener_free(l);
	return r;
}

#define TRY(...) try(&(struct http_listener_opts){__VA_ARGS__})

Test(http_listener, none)
{
	cr_assert(TRY(NULL) == 0);
	cr_assert(TRY(NULL, .token_file = token) == -EINVAL && diag.exit == PYP_EXIT_USAGE);
	check_no_leaks();
}

Test(http_listener, loopback)
{
	cr_assert(TRY("127.0.0.1:0") == 0);
	cr_assert(TRY("[::1]:0") == 0);
	cr_assert(TRY("localhost:0", .token_file = token) == 0);
	cr_assert(TRY("localhost:0", .cert = cert, .key = key) == 0);
	cr_assert(TRY("localhost:0", .cert = cert) == -EINVAL);
	cr_assert(TRY("localhost:0", .key = key) == -EINVAL);
	check_no_leaks();
}

/* Each address that others reach needs a token and a certificate. */
Test(http_listener, exposed)
{
	static const char *const addrs[] = {"0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:0:0]:0"};

	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
		cr_assert(TRY(addrs[i]) == -EPERM && diag.exit == PYP_EXIT_USAGE, "%s", addrs[i]);
		cr_assert(TRY(addrs[i], .token_file = token) == -EPERM);
		cr_assert(TRY(addrs[i], .cert = cert, .key = key) == -EPERM);
	}
	cr_assert(TRY("0.0.0.0:0", .token_file = token, .cert = cert, .key = key) == 0);
	check_no_leaks();
}

Test(http_listener, in_use)
{
	struct http_listener *l = NULL;

	assert_ok(http_listener_open(&(struct http_listener_opts){"127.0.0.1:0"}, &l, &diag));
	cr_assert(TRY(l->text) == -EADDRINUSE && diag.exit == PYP_EXIT_BUSY);
	http_listener_free(l);
	check_no_leaks();
}

Test(http_listener, files_that_others_can_use)
{
	static const mode_t bad[] = {0640, 0604, 0620, 0602, 0610, 0444, 0666};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(token, "token", TOKEN, bad[i]);
		cr_assert(TRY("localhost:0", .token_file = token) == -EPERM, "%o", bad[i]);
		put(key, "key", "key", bad[i]);
		cr_assert(TRY("localhost:0", .cert = cert, .key = key) == -EPERM, "%o", bad[i]);
	}
	put(key, "key", "key", 0400);
	put(cert, "cert", "cert", 0664);
	cr_assert(TRY("localhost:0", .cert = cert, .key = key) == -EPERM);
	put(cert, "cert", "cert", 0444);
	cr_assert(TRY("localhost:0", .cert = cert, .key = key) == 0);
	check_no_leaks();
}

Test(http_listener, files_of_others)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
	put(token, "token", TOKEN, 0400);
	assert_ok(chown(token, 65534, 0));
	cr_assert(TRY("localhost:0", .token_file = token) == -EPERM);
	check_no_leaks();
}

Test(http_listener, weak_tokens)
{
	static const char *const bad[] = {"",
					  "\n" TOKEN,
					  "0123456789abcdef0123456789abcde",
					  "0123456789abcdef 0123456789abcdef",
					  "0123456789abcdef\t0123456789abcdef",
					  "0123456789abcdef\xc3\xa4"
					  "0123456789abcdef",
					  "00000000000000000000000000000000000000000000"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(token, "token", bad[i], 0400);
		cr_assert(TRY("localhost:0", .token_file = token) == -EINVAL, "%zu", i);
	}
	put(token, "token", TOKEN "\r\n", 0400);
	cr_assert(TRY("localhost:0", .token_file = token) == 0);
	check_no_leaks();
}

Test(http_listener, not_files)
{
	char fifo[96];

	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_ok(mkfifo(fifo, 0600));
	cr_assert(TRY("localhost:0", .token_file = fifo) == -EINVAL, "does not wait for it either");
	cr_assert(TRY("localhost:0", .token_file = dir) < 0);
	cr_assert(TRY("localhost:0", .token_file = "/dev/zero") < 0);
	cr_assert(TRY("localhost:0", .token_file = "/nonexistent") == -ENOENT);
	check_no_leaks();
}

/* Secrets that Kubernetes mounts are links. */
Test(http_listener, links)
{
	char link[96];

	snprintf(link, sizeof(link), "%s/link", dir);
	assert_ok(symlink(token, link));
	cr_assert(TRY("localhost:0", .token_file = link) == 0);
	check_no_leaks();
}
