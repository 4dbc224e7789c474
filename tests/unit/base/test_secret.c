// SPDX-License-Identifier: BSD-2-Clause
/* base/secret: equality and the bits of a text. */
#include "base/secret.h"

#include <string.h>

#include "harness/test.h"

Test(secret, equal)
{
	cr_assert(secret_equal("abc", "abc", 3));
	cr_assert(secret_equal("abc", "abcd", 3), "only n bytes count");
	cr_assert(!secret_equal("abc", "abd", 3));
	cr_assert(!secret_equal("abc", "xbc", 3));
	cr_assert(!secret_equal("abc", "ab", 2));
	cr_assert(!secret_equal("abc", "abcd", 4));
	cr_assert(!secret_equal("abc", "", 0));
	cr_assert(secret_equal("", "", 0));
}

Test(secret, bits)
{
	cr_assert(secret_bits("0123456789abcdef0123456789abcdef") == 128);
	cr_assert(secret_bits("0123456789abcdef0123456789abcde") < 128);
	cr_assert(secret_bits("01234567890123456789012345678901234567") < 128, "digits");
	cr_assert(secret_bits("012345678901234567890123456789012345678") > 128);
	cr_assert(secret_bits("kT7-qL2mXw9_Zc4vBn8sYu") > 128, "22 of base64");
	cr_assert(secret_bits("kT7-qL2mXw9_Zc4vBn8sY") < 128);
	cr_assert(secret_bits("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") == 0);
	cr_assert(secret_bits("") == 0);
}
