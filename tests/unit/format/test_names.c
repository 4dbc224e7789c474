// SPDX-License-Identifier: BSD-2-Clause
/* Names: decoding, pstats' form, and safe output on terminals. */
#include "format/names.h"

#include "base/cleanup.h"
#include "harness/interpreters.h"
#include "harness/python.h"
#include "harness/reports.h"
#include "harness/temp_dir.h"
#include "harness/test.h"

static void assert_decodes(const char *s, const uint32_t *expected)
{
	const char *p = s;

	for (; *expected; expected++)
		cr_assert_eq(utf8_next(&p), *expected, "%s", s);
	cr_assert_eq(utf8_next(&p), 0);
	cr_assert_eq(utf8_next(&p), 0);
	cr_assert_eq(*p, '\0');
}

#define DECODES(s, ...) assert_decodes(s, (const uint32_t[]){__VA_ARGS__, 0})

Test(names, utf8)
{
	DECODES("az\x7f", 'a', 'z', 0x7f);
	DECODES("\xc2\x80\xdf\xbf", 0x80, 0x7ff);
	DECODES("\xe0\xa0\x80\xef\xbf\xbf", 0x800, 0xffff);
	DECODES("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 0x10000, 0x10ffff);
	DECODES("\xed\xa0\x80\xed\xbf\xbf", 0xd800, 0xdfff);
	DECODES("\x80\xbf", 0xfffd, 0xfffd);
	DECODES("\xc0\x80", 0xfffd, 0xfffd);
	DECODES("\xc1\xbf", 0xfffd, 0xfffd);
	DECODES("\xe0\x9f\xbf", 0xfffd, 0xfffd, 0xfffd);
	DECODES("\xf0\x8f\xbf\xbf", 0xfffd, 0xfffd, 0xfffd, 0xfffd);
	DECODES("\xf4\x90\x80\x80", 0xfffd, 0xfffd, 0xfffd, 0xfffd);
	DECODES("\xfe\xff", 0xfffd, 0xfffd);
	DECODES("\xe6\x97", 0xfffd, 0xfffd);
	DECODES("\xe6\x97z", 0xfffd, 0xfffd, 'z');
	DECODES("\xf0", 0xfffd);
}

Test(names, every_code_point_survives)
{
	for (uint32_t cp = 1; cp <= 0x10ffff; cp++) {
		char buf[5] = "";
		const char *p = buf;
		size_t n = utf8_put(buf, cp);

		cr_assert(utf8_next(&p) == cp && p == buf + n, "U+%04X", cp);
	}
}

static void assert_owner(const char *name, const char *module, const char *type)
{
	size_t len;
	const char *at = name_builtin_module(name, &len);

	cr_assert(len == strlen(module) && memcmp(at, module, len) == 0, "%s: %.*s", name, (int)len,
		  at);
	at = name_builtin_type(name, &len);
	cr_assert(len == strlen(type) && memcmp(at, type, len) == 0, "%s: %.*s", name, (int)len,
		  at);
}

Test(names, owners_of_c_functions)
{
	assert_owner("<built-in method builtins.len>", "builtins", "");
	assert_owner("<built-in method a.b.c>", "a.b", "");
	assert_owner("<built-in method posix_spawn>", "", "");
	assert_owner("<built-in method __new__ of type object at 0x4f2.0>", "", "");
	assert_owner("<method 'append' of 'list' objects>", "", "list");
	assert_owner("<method 'a' of 'b.c' objects>", "", "b.c");
	assert_owner("<method 'a' of 'b", "", "");
	assert_owner("<method 'a", "", "");
	assert_owner("", "", "");
	assert_owner("math.sqrt", "", "");
}

Test(names, normal)
{
	_cleanup_free_ char *kept = name_normal("a\xff\xed\xb3\xbf", NAME_KEEP_SURROGATES);
	_cleanup_free_ char *replaced = name_normal("a\xff\xed\xb3\xbf", NAME_REPLACE_SURROGATES);
	_cleanup_free_ char *empty = name_normal(NULL, NAME_KEEP_SURROGATES);

	cr_assert_str_eq(kept, "a\xef\xbf\xbd\xed\xb3\xbf");
	cr_assert_str_eq(replaced, "a\xef\xbf\xbd\xef\xbf\xbd");
	cr_assert_str_eq(empty, "");
	free(TAKE_PTR(kept));
	free(TAKE_PTR(replaced));
	free(TAKE_PTR(empty));
	check_no_leaks();
}

static void assert_std(const char *file, int32_t line, const char *name, const char *expected)
{
	_cleanup_free_ char *std = name_std(file, line, name);

	cr_assert_str_eq(std, expected);
}

Test(names, std)
{
	assert_std("app.py", 12, "f", "app.py:12(f)");
	assert_std("", -1, "", ":-1()");
	assert_std("~", 0, "<built-in method builtins.len>", "{built-in method builtins.len}");
	assert_std("~", 0, "(truncated)", "(truncated)");
	assert_std("~", 0, "<>", "{}");
	assert_std("~", 0, "<", "<");
	assert_std("~", 1, "<f>", "~:1(<f>)");
}

static void assert_prints(const char *s, size_t columns, const char *expected)
{
	_cleanup_free_ char *got = NULL;
	size_t size;
	FILE *out = open_memstream(&got, &size);

	name_print(out, s, columns);
	fclose(out);
	cr_assert_str_eq(got, expected);
}

Test(names, print)
{
	assert_prints("plain \xc3\xa9 \xe6\x97\xa5", 0, "plain \xc3\xa9 \xe6\x97\xa5");
	assert_prints("a\nb\tc\x1b[0m\x7f", 0, "a\\x0ab\\x09c\\x1b[0m\\x7f");
	assert_prints("\xc2\x85\xe2\x80\xae\xf3\xa0\x80\x81", 0, "\\u{85}\\u{202e}\\u{e0001}");
	assert_prints("\xff\xed\xa0\x80", 0, "\xef\xbf\xbd\\u{d800}");
	assert_prints("0123456789", 10, "0123456789");
	assert_prints("0123456789x", 10, "01234...6789x");
	assert_prints("0123456789xyz", 5, "01...xyz");
	assert_prints("\n\n\n\n", 2, "\\x0a...\\x0a");
	assert_prints("", 5, "");
}

/* Checks a name cut to this number of columns; `also` has additional characters to escape. */
static void assert_cut(const char *s, const char *also, size_t columns, const char *expected)
{
	char *cut = name_cut(s, also, columns);

	cr_assert_str_eq(cut, expected, "%s", s ? s : "NULL");
	free(cut);
}

Test(names, cut)
{
	char longest[50001], *cut;

	assert_cut(NULL, "", 10, "");
	assert_cut("ninechars", "", 10, "ninechars");
	assert_cut("abc\nde", "", 10, "abc\nde");
	assert_cut("more than ten", "", 10, "more\xe2\x80\xa6n ten");
	/* by the written characters: \x0a takes four, and so do additional escapes */
	assert_cut("ab\ncdefgh", "", 10, "ab\xe2\x80\xa6\x64\x65\x66gh");
	assert_cut("ab;cdefgh", ";", 10, "ab\xe2\x80\xa6\x64\x65\x66gh");
	assert_cut("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", "", 5,
		   "\xc3\xa4\xc3\xa4\xe2\x80\xa6\xc3\xa4\xc3\xa4");
	memset(longest, '\n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	cut = name_cut(longest, "", NAME_REPEATED);
	cr_assert(strlen(cut) <= NAME_REPEATED / 4 + 3, "%zu", strlen(cut));
	free(cut);
	check_no_leaks();
}

static void assert_csv(const char *s, const char *expected)
{
	_cleanup_free_ char *got = NULL;
	size_t size;
	FILE *out = open_memstream(&got, &size);

	name_print_csv(out, s);
	fclose(out);
	cr_assert_str_eq(got, expected);
}

/* No spreadsheet takes a name for a formula. */
Test(names, csv)
{
	assert_csv("plain, \xc3\xa9", "\"plain, \xc3\xa9\"");
	assert_csv("a\"b\n", "\"a\"\"b\\x0a\"");
	assert_csv("=1", "\"'=1\"");
	assert_csv("+1", "\"'+1\"");
	assert_csv("-1", "\"'-1\"");
	assert_csv("@a", "\"'@a\"");
	assert_csv("", "\"\"");
	assert_csv(NULL, "\"\"");
}

static void assert_escapes(const char *s, const char *also, const char *expected)
{
	_cleanup_free_ char *got = NULL;
	size_t size;
	FILE *out = open_memstream(&got, &size);

	name_print_escape(out, s, also);
	fclose(out);
	cr_assert_str_eq(got, expected);
}

Test(names, escape)
{
	_cleanup_free_ char *text = name_escape("a;\n\xc3\xa9"), *none = name_escape(NULL);

	cr_assert_str_eq(text, "a;\\x0a\xc3\xa9");
	cr_assert_str_eq(none, "");
	assert_escapes("a; \xc3\xa9;", ";\x7f", "a\\x3b \xc3\xa9\\x3b");
	/* U+013B is no semicolon */
	assert_escapes("\xc4\xbb", ";", "\xc4\xbb");
	assert_escapes(NULL, ";", "");
}

Test(names, of_functions)
{
	cr_assert_str_eq(name_of_func(&(struct snapshot_func){.name = "f", .qualname = "C.f"}),
			 "C.f");
	cr_assert_str_eq(name_of_func(&(struct snapshot_func){.name = "f", .qualname = ""}), "f");
	cr_assert_str_eq(name_of_func(&(struct snapshot_func){.name = "f"}), "f");
	cr_assert_str_eq(name_of_func(&(struct snapshot_func){.name = ""}), "<unknown>");
	cr_assert_str_eq(name_of_func(&(struct snapshot_func){0}), "<unknown>");
}

Test(names, repr)
{
	static const char *const samples[] = {
		"",
		"plain",
		"it's",
		"\"",
		"it's \"",
		"\\d+\\.",
		"\n\r\t\x01\x7f",
		"\xc2\x80\xc2\x9f",
		"\xc2\xa0",
		"\xc2\xad",
		"\xc3\xa9",
		"\xe2\x80\x8b\xe2\x80\xae",
		"\xe2\x80\xa8",
		"\xe3\x80\x80",
		"\xee\x80\x80",
		"\xf0\x9d\x94\x98",
		"\xf0\x9f\x98\x80",
		"\xf3\xa0\x80\x81",
		"\xf4\x8f\xbf\xbf",
		"\xef\xbb\xbf",
	};
	static const char script[] = "import io, json, sys\n"
				     "out = io.open(1, 'w', encoding='utf-8')\n"
				     "for s in json.load(io.open(sys.argv[1], 'rb')):\n"
				     "    out.write(repr(s) + '\\n')\n";
	struct interpreter found[INTERPRETERS_MAX];
	size_t n = interpreters_find(found), size;
	_cleanup_free_ char *ours = NULL, *theirs = NULL;
	char *dir = temp_dir_new(), path[64];
	FILE *out = open_memstream(&ours, &size), *list;

	snprintf(path, sizeof(path), "%s/samples", dir);
	list = fopen(path, "w");
	cr_assert(list);
	for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
		fputs(i ? ",\"" : "[\"", list);
		for (const char *p = samples[i]; *p; p++)
			fprintf(list,
				*p == '"' || *p == '\\' || (unsigned char)*p < 0x20 ? "\\u%04x"
										    : "%c",
				*p);
		fputs("\"", list);
		name_print_repr(out, samples[i]);
		fputc('\n', out);
	}
	fputs("]", list);
	fclose(list);
	fclose(out);
	theirs = python_run(found[n - 1].exe, script, path);
	cr_assert_str_eq(ours, theirs);
	temp_dir_remove(dir);
}
