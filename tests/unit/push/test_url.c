// SPDX-License-Identifier: BSD-2-Clause
/* Addresses of receivers: what is taken, what is refused, and that refusals show no secret. */
#include "push/url.h"

#include <errno.h>

#include "harness/test.h"

static int parse(const char *text, struct push_url *ret)
{
	struct diag diag = {0};
	int r = push_url_parse(text, ret, &diag);

	cr_assert(r == 0 || diag.exit == PYP_EXIT_USAGE);
	cr_assert_null(strstr(diag.msg, "secret"), "%s", diag.msg);
	return r;
}

Test(push_url, parts)
{
	struct push_url url;
	char text[PUSH_URL_TEXT];

	assert_ok(parse("pyroscope+https://p.example:4040/prefix/", &url));
	cr_assert_str_eq(url.kind, "pyroscope");
	cr_assert_str_eq(url.origin, "https://p.example:4040");
	cr_assert_str_eq(url.path, "/prefix");
	cr_assert(url.tls && !url.loopback);
	cr_assert_str_eq(push_url_text(&url, text), "pyroscope+https://p.example:4040/prefix");
	assert_ok(parse("otlp+http://[::1]", &url));
	cr_assert_str_eq(url.origin, "http://[::1]");
	cr_assert_str_eq(url.path, "");
	cr_assert(!url.tls && url.loopback);
}

Test(push_url, loopback)
{
	static const char *const local[] = {"127.0.0.1", "127.8.9.1:80", "localhost", "[::1]:1"};
	static const char *const remote[] = {"127.example", "localhost.example", "10.0.0.1",
					     "[::2]", "1127.0.0.1"};
	struct push_url url;
	char text[64];

	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
		snprintf(text, sizeof(text), "otlp+http://%s/x", local[i]);
		assert_ok(parse(text, &url));
		cr_assert(url.loopback, "%s", local[i]);
	}
	for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++) {
		snprintf(text, sizeof(text), "otlp+http://%s/x", remote[i]);
		assert_ok(parse(text, &url));
		cr_assert(!url.loopback, "%s", remote[i]);
	}
}

Test(push_url, refused)
{
	static const char *const bad[] = {
		"",
		"https://h",
		"otlp+ftp://h",
		"otlp+https:/h",
		"+https://h",
		"OTLP+https://h",
		"otlp+https://",
		"otlp+https:///x",
		"otlp+https://h:",
		"otlp+https://h:0",
		"otlp+https://h:65536",
		"otlp+https://h:8x",
		"otlp+https://user:secret@h",
		"otlp+https://h/x?token=secret",
		"otlp+https://h#secret",
		"otlp+https://h/a b",
		"otlp+https://h\n",
		"otlp+https://[::1",
		"otlp+https://[]",
		"otlp+https://[g]",
		"otlp+https://h,secret",
		"file+file:///etc/passwd",
		"otlp+https://h/\x01",
		"averyveryverylongkind+https://h",
	};
	struct push_url url;
	char text[600];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_err(parse(bad[i], &url), -EINVAL);
	snprintf(text, sizeof(text), "otlp+https://%0300d", 1);
	assert_err(parse(text, &url), -EINVAL);
	snprintf(text, sizeof(text), "otlp+https://h/%0300d", 1);
	assert_err(parse(text, &url), -EINVAL);
}
