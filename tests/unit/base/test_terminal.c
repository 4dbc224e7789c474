// SPDX-License-Identifier: BSD-2-Clause
/* base/terminal: removes everything that a terminal interprets. */
#include "base/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "harness/test.h"

/* Returns the output for text that is written in pieces of n bytes; to be freed. */
static char *through(const char *text, size_t size, size_t n)
{
	FILE *file = tmpfile(), *f;
	char *ret = calloc(1, 4096);

	cr_assert(file && ret);
	f = terminal_open(fileno(file));
	cr_assert(f && terminal_is(f));
	for (size_t i = 0; i < size; i += n) {
		size_t m = size - i < n ? size - i : n;

		cr_assert(fwrite(text + i, 1, m, f) == m);
		assert_ok(fflush(f));
	}
	assert_ok(fclose(f));
	rewind(file);
	(void)!fread(ret, 1, 4095, file);
	fclose(file);
	return ret;
}

static void assert_through(const char *text, size_t size, const char *expected)
{
	for (size_t n = 1; n <= size; n++) {
		char *got = through(text, size, n);

		cr_assert_str_eq(got, expected, "in pieces of %zu bytes", n);
		free(got);
	}
}

#define ASSERT_THROUGH(text, expected) assert_through(text, sizeof(text) - 1, expected)

Test(terminal, stream)
{
	ASSERT_THROUGH("plain\ttext \xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x8d\n",
		       "plain\ttext \xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x8d\n");
	ASSERT_THROUGH("\033[1mbold\033[0m\033[2mdim\033[0m",
		       "\033[1mbold\033[0m\033[2mdim\033[0m");
	ASSERT_THROUGH("\033]0;title\007", "\\x1b]0;title\\x07");
	ASSERT_THROUGH("\033[31mred", "\\x1b[31mred");
	ASSERT_THROUGH("\033\033[1mx", "\\x1b\033[1mx\033[0m");
	ASSERT_THROUGH("\r\b\x7f", "\\x0d\\x08\\x7f");
	ASSERT_THROUGH("\xc2\x9b"
		       "31m",
		       "\\u{9b}31m");
	ASSERT_THROUGH("\xe2\x80\xae", "\\u{202e}");
	ASSERT_THROUGH("\xf3\xa0\x80\x81", "\\u{e0001}");
	ASSERT_THROUGH("\0\x9b", "\\x00\xef\xbf\xbd");
	ASSERT_THROUGH("\xff\xe2\x82x\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx\xef\xbf\xbd"
						"\xef\xbf\xbd");
	check_no_leaks();
}

/* A truncated sequence at the end is shown as U+FFFD; the terminal's attributes are reset. */
Test(terminal, end_of_stream)
{
	ASSERT_THROUGH("x\xe2\x82", "x\xef\xbf\xbd\xef\xbf\xbd");
	ASSERT_THROUGH("x\033[", "x?\xef\xbf\xbd");
	ASSERT_THROUGH("\033[1mbold", "\033[1mbold\033[0m");
	check_no_leaks();
}

Test(terminal, errors_are_reported)
{
	int fd = open("/dev/full", O_WRONLY);
	FILE *f = terminal_open(fd);

	cr_assert(fputs("text", f) >= 0);
	cr_assert(fflush(f) != 0 && errno == ENOSPC);
	fclose(f);
	close(fd);
	check_no_leaks();
}

Test(terminal, lines)
{
	char line[] = "a\033[31m\n\xc2\x9b\xe2\x80\xae\xff\xc3\xa4";
	char small[5];

	cr_assert_str_eq(terminal_clean(line, line, sizeof(line)), "a?[31m????\xc3\xa4");
	cr_assert_str_eq(terminal_clean("abc\xc3\xa4", small, sizeof(small)), "abc");
	cr_assert(!terminal_is(stdout) || isatty(STDOUT_FILENO));
}
