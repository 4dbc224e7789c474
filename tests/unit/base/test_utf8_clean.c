// SPDX-License-Identifier: BSD-2-Clause
/* base/utf8_clean: the output is valid UTF-8 for any input. */
#include "base/utf8_clean.h"

#include <jansson.h>

#include "harness/test.h"

Test(utf8_clean, keeps_what_is_valid)
{
	char out[64];

	cr_assert_str_eq(utf8_clean("aé€😀", out, sizeof(out)), "aé€😀");
}

Test(utf8_clean, replaces_what_is_not)
{
	char out[64];

	cr_assert_str_eq(utf8_clean("a\xff"
				    "b",
				    out, sizeof(out)),
			 "a?b");
	cr_assert_str_eq(utf8_clean("\xc0\x80", out, sizeof(out)), "??");	    /* overlong */
	cr_assert_str_eq(utf8_clean("\xed\xa0\x80", out, sizeof(out)), "???");	    /* surrogate */
	cr_assert_str_eq(utf8_clean("\xf4\x90\x80\x80", out, sizeof(out)), "????"); /* too high */
	cr_assert_str_eq(utf8_clean("\xe2\x82", out, sizeof(out)), "??");	    /* cut off */
}

Test(utf8_clean, cuts_at_characters)
{
	char out[4];

	cr_assert_str_eq(utf8_clean("é€", out, sizeof(out)), "é");
	cr_assert_str_eq(utf8_clean("abcd", out, sizeof(out)), "abc");
	cr_assert_str_eq(utf8_clean("abcd", out, 1), "");
}

/* Compared with the library that defines the rule. */
Test(utf8_clean, all_pairs_of_bytes)
{
	char in[3] = {0}, out[8];

	for (int a = 1; a < 256; a++) {
		for (int b = 1; b < 256; b++) {
			json_t *s;

			in[0] = (char)a;
			in[1] = (char)b;
			s = json_string(utf8_clean(in, out, sizeof(out)));
			cr_assert(s, "%02x %02x", a, b);
			json_decref(s);
		}
	}
}
