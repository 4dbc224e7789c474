// SPDX-License-Identifier: BSD-2-Clause
/* pstats' sort keys: accepted words and abbreviations, and their orders. */
#include "format/sort.h"

#include <errno.h>

#include "harness/interpreters.h"
#include "harness/python.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

static const char *const words[] = {"calls",	"ncalls",  "cumtime", "cumulative", "file",
				    "filename", "line",	   "module",  "name",	    "nfl",
				    "pcalls",	"stdname", "time",    "tottime"};

/* Returns the title of the order; NULL: the key is refused. To be freed. */
static char *title_of(const char *keys)
{
	struct sort sort;
	char *ret = NULL;
	size_t size;
	FILE *out;

	if (sort_parse(keys, &sort, NULL) < 0)
		return NULL;
	out = open_memstream(&ret, &size);
	cr_assert(out);
	sort_print_title(&sort, out);
	fclose(out);
	return ret;
}

/* Every prefix of every word, as accepted or refused by pstats from 3.8 on. */
Test(sort, accepts_what_pstats_accepts)
{
	static const char script[] =
		"import pstats\n"
		"defs = pstats.Stats().get_sort_arg_defs()\n"
		"words = 'calls ncalls cumtime cumulative file filename line module name nfl ' \\\n"
		"        'pcalls stdname time tottime'\n"
		"for w in words.split():\n"
		"    for n in range(1, len(w) + 1):\n"
		"        print(w[:n] + ': ' + (defs[w[:n]][1] if w[:n] in defs else '-'))\n";
	struct interpreter found[INTERPRETERS_MAX];
	size_t n = interpreters_find(found), size;
	_cleanup_free_ char *theirs = python_run(found[n - 1].exe, script, "");
	_cleanup_free_ char *ours = NULL;
	FILE *out = open_memstream(&ours, &size);

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		for (int len = 1; len <= (int)strlen(words[i]); len++) {
			char prefix[16];
			_cleanup_free_ char *title = NULL;

			snprintf(prefix, sizeof(prefix), "%.*s", len, words[i]);
			title = title_of(prefix);
			fprintf(out, "%s: %s\n", prefix, title ? title : "-");
		}
	fclose(out);
	cr_assert_str_eq(ours, theirs);
}

Test(sort, titles)
{
	_cleanup_free_ char *none = title_of(NULL), *many = title_of("time,cumu,nfl,p");

	cr_assert_str_eq(none, "standard name");
	cr_assert_str_eq(many, "internal time, cumulative time, name/file/line, "
			       "primitive call count");
}

Test(sort, errors_name_the_key_and_list_the_valid_ones)
{
	static const char *const bad[] = {"",	",", "time,",  ",time", "cum",	   "c",
					  "n",	"t", "times",  "Time",	" time",   "time;name",
					  "-1", "2", "callsx", "\xff",	"nam,cum", "time,,name"};
	char many[SORT_MAX_KEYS * 5 + 8] = "";
	struct sort sort;
	struct diag diag;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		diag = (struct diag){0};
		assert_err(sort_parse(bad[i], &sort, &diag), -EINVAL);
		cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
		cr_assert(strstr(diag.hint, "cumulative") && strstr(diag.hint, "tottime"));
	}
	diag = (struct diag){0};
	assert_err(sort_parse("time,bogus,name", &sort, &diag), -EINVAL);
	cr_assert_str_eq(diag.msg, "unknown or ambiguous sort key 'bogus'");
	for (int i = 0; i <= SORT_MAX_KEYS; i++)
		memcpy(many + (i ? i * 5 - 1 : 0), i ? ",name" : "name", i ? 6 : 5);
	assert_err(sort_parse(many, &sort, NULL), -EINVAL);
	many[strlen(many) - 5] = '\0';
	assert_ok(sort_parse(many, &sort, NULL));
}

static const char *const example = "f b.py:9 3 30\n"
				   "g a.py:9 3 20\n"
				   "f a.py:10 5 10\n"
				   "h c.py:2 1 20\n";

/*
 * Checks the order of the example's rows, written as the first letters of their files and their
 * lines.
 */
static void assert_order(const char *keys, bool reverse, const char *expected)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	_cleanup_(view_freep) struct view *v = NULL;
	_cleanup_(table_freep) struct table *t = NULL;
	struct view_filter filter = {0};
	_cleanup_free_ uint32_t *order = NULL;
	char got[64] = "";
	struct sort sort;
	size_t n;

	assert_ok(view_build(s, &filter, &v));
	assert_ok(table_build(v, SNAPSHOT_CPU, &t));
	assert_ok(sort_parse(keys, &sort, NULL));
	assert_ok(sort_rows(&sort, reverse, t, &order, &n));
	for (size_t i = 0; i < n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%c%d", i ? " " : "",
			 t->rows[order[i]].file[0], t->rows[order[i]].line);
	cr_assert_str_eq(got, expected, "%s gives %s, not %s", keys, got, expected);
}

Test(sort, orders)
{
	assert_order("stdname", false, "a10 a9 b9 c2");
	assert_order("calls", false, "a10 b9 a9 c2");
	assert_order("time,name", false, "b9 a9 c2 a10");
	assert_order("line,file", false, "c2 a9 b9 a10");
	assert_order("name", false, "b9 a10 a9 c2");
	assert_order("nfl", false, "a10 b9 a9 c2");
	assert_order("module,time", false, "a9 a10 b9 c2");
	check_no_leaks();
}

/* Equal rows keep their order; reversing also reverses them. */
Test(sort, is_stable_and_reversible)
{
	assert_order("time", false, "b9 a9 c2 a10");
	assert_order("time", true, "a10 c2 a9 b9");
	assert_order("calls", true, "c2 a9 b9 a10");
	check_no_leaks();
}
