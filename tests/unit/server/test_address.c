// SPDX-License-Identifier: BSD-2-Clause
/* server/address: texts to addresses and back, and which of them are this machine's own. */
#include "server/address.h"

#include <arpa/inet.h>
#include <errno.h>

#include "harness/test.h"

Test(address, valid)
{
	static const struct {
		const char *text, *back;
		bool loopback;
	} cases[] = {
		{"127.0.0.1:9931", "127.0.0.1:9931", true},
		{"localhost:80", "127.0.0.1:80", true},
		{"127.8.7.6:0", "127.8.7.6:0", true},
		{"[::1]:65535", "[::1]:65535", true},
		{"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", true},
		{"0.0.0.0:1", "0.0.0.0:1", false},
		{"[::]:1", "[::]:1", false},
		{"128.0.0.1:1", "128.0.0.1:1", false},
		{"10.127.0.1:1", "10.127.0.1:1", false},
		{"[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.1]:1", false},
		{"[2001:db8::1]:1", "[2001:db8::1]:1", false},
	};
	char text[ADDRESS_TEXT];
	struct address a;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_ok(address_parse(cases[i].text, &a, NULL));
		cr_assert_str_eq(address_text(&a, text), cases[i].back);
		cr_assert(address_is_loopback(&a) == cases[i].loopback, "%s", cases[i].text);
	}
}

Test(address, invalid)
{
	static const char *const bad[] = {
		"",
		":",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:65536",
		":9931",
		"127.0.0.1:-1",
		"127.0.0.1:x",
		"::1:80",
		"[::1]",
		"[::1:80",
		"[]:80",
		"[127.0.0.1]:80",
		"a.b:80",
		"127.1:80",
		"localhost",
		"127.0.0.1:80/x",
		"0x7f.0.0.1:80",
		"[::1]x:80",
		" 127.0.0.1:80",
		"[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]:"
		"80",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct diag diag = {0};
		struct address a;

		cr_assert(address_parse(bad[i], &a, &diag) == -EINVAL, "%s", bad[i]);
		cr_assert(diag.exit == PYP_EXIT_USAGE);
	}
}

static uint32_t host_of(const char *text)
{
	struct address a;

	assert_ok(address_parse(text, &a, NULL));
	return address_host(&a);
}

/* A host has many addresses of its /64 network at will. */
Test(address, hosts)
{
	cr_assert(host_of("10.0.0.1:1") == host_of("10.0.0.1:2"));
	cr_assert(host_of("10.0.0.1:1") != host_of("10.0.0.2:1"));
	cr_assert(host_of("[::ffff:10.0.0.1]:1") == host_of("10.0.0.1:2"));
	cr_assert(host_of("[2001:db8:1:2::1]:1") == host_of("[2001:db8:1:2:ffff::9]:2"));
	cr_assert(host_of("[2001:db8:1:2::1]:1") != host_of("[2001:db8:1:3::1]:1"));
}
