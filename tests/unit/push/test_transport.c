// SPDX-License-Identifier: BSD-2-Clause
/* The files of a transport: tokens and certificates. */
#include "push/transport.h"

#include <errno.h>

#include "harness/temp_dir.h"
#include "harness/test.h"

static char *dir, path[256];

static void setup(void)
{
	dir = temp_dir_new();
	snprintf(path, sizeof(path), "%s/file", dir);
}

static void teardown(void)
{
	temp_dir_remove(dir);
}

TestSuite(push_transport, .init = setup, .fini = teardown);

static int read_token(const char *text, size_t n, struct transport_secrets *ret)
{
	const struct transport_opts to = {.token_file = path};
	struct diag diag = {0};
	FILE *f = fopen(path, "we");

	cr_assert(f);
	cr_assert_eq(fwrite(text, 1, n, f), n);
	fclose(f);
	return transport_read_secrets(&to, ret, &diag);
}

Test(push_transport, tokens)
{
	static const char *const good[] = {"abc", "abc\n", "abc \r\n\n", "user:pass:word", "~!#"};
	static const char *const bad[] = {"", "\n", "a b", "a\nb", "a\tb", "\xc3\xa9", "a\rX: y"};
	struct transport_secrets s;
	char large[TRANSPORT_SECRET_MAX + 10];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_ok(read_token(good[i], strlen(good[i]), &s));
		cr_assert_eq(strlen(s.token), strcspn(good[i], " \r\n"));
		transport_secrets_deinit(&s);
		cr_assert_eq(s.token[0], 0, "overwritten");
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_err(read_token(bad[i], strlen(bad[i]), &s), -EINVAL);
	assert_err(read_token("a\0b", 3, &s), -EINVAL);
	memset(large, 'x', sizeof(large));
	assert_err(read_token(large, sizeof(large), &s), -EINVAL);
	assert_ok(read_token(large, TRANSPORT_SECRET_MAX - 1, &s));
	transport_secrets_deinit(&s);
	check_no_leaks();
}

Test(push_transport, certificates)
{
	const struct transport_opts to = {.ca_file = path}, missing = {.ca_file = "/nonexistent"};
	struct transport_secrets s;
	struct diag diag = {0};
	FILE *f = fopen(path, "we");

	fputs("no certificate\n", f);
	fclose(f);
	assert_err(transport_read_secrets(&to, &s, &diag), -EINVAL);
	cr_assert(strstr(diag.msg, "no certificate"), "%s", diag.msg);
	assert_err(transport_read_secrets(&missing, &s, NULL), -ENOENT);
	f = fopen(path, "we");
	fputs("-----BEGIN CERTIFICATE-----\n", f);
	fclose(f);
	assert_ok(transport_read_secrets(&to, &s, NULL));
	cr_assert_eq(s.nca, 28);
	transport_secrets_deinit(&s);
	f = fopen(path, "we");
	fwrite("-----BEGIN \0 CERTIFICATE-----\n", 1, 30, f);
	fclose(f);
	assert_ok(transport_read_secrets(&to, &s, NULL));
	cr_assert_eq(s.nca, 30);
	cr_assert_eq(s.ca[29], '\n', "all of it is there");
	transport_secrets_deinit(&s);
	check_no_leaks();
}
