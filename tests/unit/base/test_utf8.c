// SPDX-License-Identifier: BSD-2-Clause
/* CPython's strings as UTF-8. */
#include "base/utf8.h"

#include "harness/test.h"

static void expect(const void *units, size_t bytes, unsigned int kind, const char *expected)
{
	size_t len = 0;
	char *str = utf8_from_units(units, bytes, kind, &len);

	cr_assert_str_eq(str, expected);
	cr_assert_eq(len, strlen(expected));
	free(str);
}

Test(utf8, kinds)
{
	static const uint16_t ucs2[] = {'a', 0x7f, 0x80, 0x7ff, 0x800, 0xffff};
	static const uint32_t ucs4[] = {'a', 0xffff, 0x10000, 0x10ffff};

	expect("", 0, 1, "");
	expect("plain", 5, 1, "plain");
	expect("\x80\xff", 2, 1, "\xc2\x80\xc3\xbf");
	expect(ucs2, sizeof(ucs2), 2, "a\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf");
	expect(ucs4, sizeof(ucs4), 4, "a\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
	check_no_leaks();
}

/* Code points that UTF-8 cannot represent, NUL, and incomplete characters */
Test(utf8, unfit)
{
	static const uint16_t surrogates[] = {0xd800, 0xdfff, 'x'};
	static const uint32_t beyond[] = {0x110000, 0xffffffff};

	expect(surrogates, sizeof(surrogates), 2, "\xef\xbf\xbd\xef\xbf\xbdx");
	expect(beyond, sizeof(beyond), 4, "\xef\xbf\xbd\xef\xbf\xbd");
	expect("a\0b", 3, 1,
	       "a\xef\xbf\xbd"
	       "b");
	expect("\0\0\0", 3, 1, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	expect("a\0b", 3, 2, "a");
	cr_assert_null(utf8_from_units((const uint8_t *)"abc", 3, 3, NULL));
	check_no_leaks();
}
