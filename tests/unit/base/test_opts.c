// SPDX-License-Identifier: BSD-2-Clause
/* base/opts: option tables, their errors and their help. */
#include "base/opts.h"

#include <errno.h>

#include "base/cleanup.h"
#include "harness/test.h"

struct dst {
	bool flag;
	const char *string;
	uint64_t number, size, duration;
	int choice;
	pid_t pid;
	struct opt_pids pids;
	struct opt_words words;
};

static const char *const choices[] = {"", "cpu", "wall", NULL};

#define FIELD(f) .offset = offsetof(struct dst, f)

static const struct opt table[] = {
	{"flag", 'f', OPT_FLAG, FIELD(flag), NULL, "a flag"},
	{"string", 's', OPT_STRING, FIELD(string), "TEXT", "a string"},
	{"number", 'n', OPT_U64, FIELD(number), "N", "a number", 1, 100},
	{"size", 0, OPT_SIZE, FIELD(size), "BYTES", "a size\non two lines"},
	{"duration", 'd', OPT_DURATION, FIELD(duration), "TIME", "a duration"},
	{"choice", 0, OPT_CHOICE, FIELD(choice), "cpu|wall", "a choice", .choices = choices},
	{"pid", 'p', OPT_PID, FIELD(pid), "PID", "a process"},
	{"pids", 0, OPT_PIDS, FIELD(pids), "PID", "processes"},
	{"word", 'w', OPT_WORDS, FIELD(words), "WORD", "words"},
	{NULL},
};

#define ARGV_MAX 80

/* Parses words (ends with NULL), options and operands in any order. */
static int parse(const char *const *words, struct dst *d, int *first, enum opts_mode mode,
		 struct diag *diag)
{
	const struct opt_group groups[] = {{table, d}, {NULL}};
	static char *argv[ARGV_MAX];
	int argc = 1;

	argv[0] = (char *)"prog";
	for (; *words; words++)
		argv[argc++] = (char *)*words;
	argv[argc] = NULL;
	*d = (struct dst){0};
	diag_clear(diag);
	return opts_parse(groups, argc, argv, mode, first, NULL, diag);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(opts, every_type)
{
	struct diag diag;
	struct dst d;
	int first;

	assert_diag_ok(parse(WORDS("-f", "--string=x", "-n", "7", "--size", "2K", "-d1.5",
				   "--choice", "wall", "-p", "12", "--pids", "3", "--pids=4"),
			     &d, &first, OPTS_PERMUTE, &diag),
		       &diag);
	cr_assert(d.flag && d.number == 7 && d.size == 2048 && d.duration == 1500000000);
	cr_assert_str_eq(d.string, "x");
	cr_assert(d.choice == 2 && d.pid == 12);
	cr_assert(d.pids.n == 2 && d.pids.pid[0] == 3 && d.pids.pid[1] == 4);
	cr_assert(first == 15);
}

Test(opts, modes)
{
	struct diag diag;
	struct dst d;
	int first;

	assert_ok(parse(WORDS("a", "-f"), &d, &first, OPTS_STOP, &diag));
	cr_assert(!d.flag && first == 1);
	assert_ok(parse(WORDS("a", "-f"), &d, &first, OPTS_PERMUTE, &diag));
	cr_assert(d.flag && first == 2);
	assert_ok(parse(WORDS("--", "-f"), &d, &first, OPTS_PERMUTE, &diag));
	cr_assert(!d.flag && first == 2);
}

Test(opts, errors_name_the_culprit)
{
	static const struct {
		const char *words[4];
		const char *msg;
	} cases[] = {
		{{"--nope"}, "unknown option '--nope'"},
		{{"--nope=3"}, "unknown option '--nope=3'"},
		{{"-z"}, "unknown option '-z'"},
		{{"--flag", "-fz"}, "unknown option '-z'"},
		{{"-n"}, "option '-n' needs a value"},
		{{"--number"}, "option '--number' needs a value"},
		{{"--flag=1"}, "option '--flag=1' takes no value"},
		{{"-n", "x"}, "--number: invalid value 'x'"},
		{{"-n", "1x"}, "--number: invalid value '1x'"},
		{{"-n", "0"}, "--number: '0' is out of range"},
		{{"-n", "101"}, "--number: '101' is out of range"},
		{{"-d", "1y"}, "--duration: invalid value '1y'"},
		{{"--choice", "cp"}, "--choice: invalid value 'cp'"},
		{{"--choice", ""}, "--choice: invalid value ''"},
		{{"-p", "-1"}, "--pid: invalid value '-1'"},
		{{"--pids", "5", "--pids=5"}, "--pids: 5 is given twice"},
		{{"--string", ""}, "--string: invalid value ''"},
	};
	struct diag diag;
	struct dst d;
	int first;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert(parse(cases[i].words, &d, &first, OPTS_PERMUTE, &diag) < 0);
		cr_assert_str_eq(diag.msg, cases[i].msg);
		cr_assert(diag.exit == PYP_EXIT_USAGE);
		cr_assert(diag.hint[0]);
	}
}

Test(opts, pids_are_capped)
{
	static char text[OPT_PIDS_MAX + 1][16];
	const char *words[OPT_PIDS_MAX + 2] = {NULL};
	struct diag diag;
	struct dst d;
	int first;

	for (int i = 0; i <= OPT_PIDS_MAX; i++) {
		snprintf(text[i], sizeof(text[i]), "--pids=%d", i + 1);
		words[i] = text[i];
	}
	assert_err(parse(words, &d, &first, OPTS_PERMUTE, &diag), -E2BIG);
}

Test(opts, words)
{
	const char *words[OPT_WORDS_MAX + 2] = {NULL};
	struct diag diag;
	struct dst d;
	int first;

	assert_diag_ok(parse(WORDS("-w", "42", "--word=a b", "-w42"), &d, &first, OPTS_PERMUTE,
			     &diag),
		       &diag);
	cr_assert_eq(d.words.n, 3);
	cr_assert_str_eq(d.words.v[1], "a b");
	cr_assert_str_eq(d.words.v[2], "42");
	assert_err(parse(WORDS("--word="), &d, &first, OPTS_PERMUTE, &diag), -EINVAL);
	for (int i = 0; i <= OPT_WORDS_MAX; i++)
		words[i] = "-wx";
	assert_err(parse(words, &d, &first, OPTS_PERMUTE, &diag), -E2BIG);
}

Test(opts, help)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	opts_print(table, false, f);
	fclose(f);
	cr_assert(strstr(text, "  -n, --number N            a number\n"));
	cr_assert(strstr(text, "      --size BYTES          a size\n"
			       "                            on two lines\n"));
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		cr_assert(strcspn(line, "\n") <= 80);
}

Test(opts, closest)
{
	const char *const words[] = {"attach", "detach", "status", "stop", "start", NULL};

	cr_assert_str_eq(opts_closest("atach", words), "attach");
	cr_assert_str_eq(opts_closest("statsu", words), "status");
	cr_assert_null(opts_closest("frobnicate", words));
	cr_assert_null(opts_closest("x", words));
	cr_assert_null(opts_closest("", words));
}
