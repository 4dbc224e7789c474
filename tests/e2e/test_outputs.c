// SPDX-License-Identifier: BSD-2-Clause
/*
 * Snapshots in every format, to files and to stdout, restricted and sorted; -o selects the format
 * by the extension.
 */
#include <ctype.h>
#include <jansson.h>
#include <signal.h>

#include "format/format.h"
#include "harness/daemon.h"
#include "harness/python.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;
static struct interpreter python;
static char pid[16];

static void setup(void)
{
	python = traced_newest();
	traced_ready(&t, pid, python.exe, "run.py", "stdlib_json", NULL);
	pyprofd_start(&d, "--pid", pid, NULL);
	traced_go(&t);
	traced_expect(&t, "done");
}

static void teardown(void)
{
	pyprofd_shutdown(&d);
	traced_finish(&t);
}

TestSuite(outputs, .init = setup, .fini = teardown);

/* The first bytes of these formats; of others, only check that the output is not empty. */
static const struct {
	const char *name, *begins;
} looks[] = {
	{"text", "         "},	    {"pstats", "{"},
	{"json", "{\"format\":"},   {"callgrind", "# callgrind"},
	{"collapsed", "#"},	    {"speedscope", "{\"$schema\""},
	{"pprof", "\x1f\x8b"},	    {"chrome", "{\"tra"},
	{"csv", "ncalls,"},	    {"html", "<!DOCTYPE html>"},
	{"openmetrics", "# TYPE "},
};

#define NLOOKS (sizeof(looks) / sizeof(looks[0]))

static void check_look(const char *name, const char *data, size_t n)
{
	size_t i = 0;

	while (i < NLOOKS && strcmp(looks[i].name, name) != 0)
		i++;
	cr_assert(n > 0, "%s is empty", name);
	if (i == NLOOKS)
		return;
	cr_assert(n > strlen(looks[i].begins) &&
			  memcmp(data, looks[i].begins, strlen(looks[i].begins)) == 0,
		  "%s begins with \"%.20s\"", name, data);
}

static void every_format(void)
{
	for (const struct format *f = formats; f->name; f++) {
		char path[128], file[32], *data;
		struct ran r;
		size_t n;

		if (f->flags & (FORMAT_OF_COUNTERS | FORMAT_OF_LINES))
			continue; /* no counters were enabled */
		r = ctl(&d, "snapshot", "-f", f->name, NULL);
		cr_assert(r.status == 0, "%s: %s", f->name, r.err);
		check_look(f->name, r.out, r.nout);
		ran_free(&r);
		snprintf(file, sizeof(file), "p%s", f->extension);
		pyprofd_file(&d, file, path, sizeof(path));
		r = ctl(&d, "snapshot", "-o", path, NULL);
		cr_assert(r.status == 0 && r.nout == 0, "%s: %s", f->name, r.err);
		ran_free(&r);
		data = file_text(path, &n);
		check_look(f->name, data, n);
		free(data);
	}
}

/*
 * pyprofd's -o also selects the format by the extension. One target is traced, the others, sooner, sampled; each third
 * format, as they are written by the same functions as snapshots.
 */
static void every_format_at_the_end(void)
{
	for (const struct format *f = formats; f->name; f++) {
		const char *mode = f == formats ? "trace" : "sample";
		char path[128], file[32], *data;
		struct pyprofd own;
		struct ran r;
		size_t n;

		if (f->flags & (FORMAT_OF_COUNTERS | FORMAT_OF_LINES) || (f - formats) % 3 != 0)
			continue; /* no counters were enabled */
		pyprofd_init(&own);
		snprintf(file, sizeof(file), "p%s", f->extension);
		pyprofd_file(&own, file, path, sizeof(path));
		pyprofd_launch(&own, "--pid", pid, "--mode", mode, "-o", path, NULL);
		pyprofd_ready(&own);
		kill(own.pid, SIGTERM);
		r = pyprofd_wait(&own);
		cr_assert(r.status == 0, "%s: %s", f->name, r.err);
		ran_free(&r);
		data = file_text(path, &n);
		cr_assert(data, "no %s", path);
		check_look(f->name, data, n);
		free(data);
		pyprofd_deinit(&own);
	}
}

/* Python's pstats module loads the file. */
static void pstats_loads(void)
{
	char path[128], *out;

	pyprofd_file(&d, "p.pstats", path, sizeof(path));
	free(ctl_ok(&d, "snapshot", "-o", path, NULL));
	out = python_run(python.exe,
			 "import pstats, sys\n"
			 "s = pstats.Stats(sys.argv[1])\n"
			 "print(s.total_calls, len(s.stats))",
			 path);
	cr_assert(strtol(out, NULL, 10) > 10000, "%s", out);
	free(out);
}

static json_t *snapshot_json(void)
{
	char *text = ctl_ok(&d, "snapshot", "-f", "json", NULL);
	json_t *root = json_loads(text, 0, NULL);

	cr_assert(root, "not JSON");
	free(text);
	return root;
}

static void json_has_everything(void)
{
	static const char *const top[] = {"program", "host",	  "kernel", "taken",
					  "targets", "functions", "threads"};
	static const char *const of_target[] = {"pid", "cmdline", "exe", "python", "traced_ns"};
	json_t *root = snapshot_json();
	json_t *target = json_array_get(json_object_get(root, "targets"), 0);

	for (size_t i = 0; i < sizeof(top) / sizeof(top[0]); i++)
		cr_assert(json_object_get(root, top[i]), "no %s", top[i]);
	for (size_t i = 0; i < sizeof(of_target) / sizeof(of_target[0]); i++)
		cr_assert(json_object_get(target, of_target[i]), "no %s", of_target[i]);
	json_decref(root);
}

/*
 * Returns the number of rows of a text report, which are between its heading and the first empty
 * line.
 */
static int rows(const char *report, char first[256])
{
	const char *at = strstr(report, "filename:lineno(function)\n");
	int n = 0;

	first[0] = '\0';
	if (!at)
		return 0;
	for (at = strchr(at, '\n') + 1; *at && *at != '\n'; at = strchr(at, '\n') + 1)
		if (n++ == 0)
			snprintf(first, 256, "%.*s", (int)strcspn(at, "\n"), at);
	return n;
}

static int rows_of(char first[256], const char *a, const char *b, const char *c, const char *e)
{
	char *text = ctl_ok(&d, "snapshot", "-f", "text", a, b, c, e, NULL);
	int n = rows(text, first);

	free(text);
	return n;
}

static void sorted_and_restricted(void)
{
	char first[256];
	int all = rows_of(first, NULL, NULL, NULL, NULL);

	cr_assert(all > 10, "%d rows", all);
	cr_assert_eq(rows_of(first, "-l", "5", NULL, NULL), 5);
	cr_assert_eq(rows_of(first, "7", NULL, NULL, NULL), 7);
	cr_assert_eq(rows_of(first, "0.5", NULL, NULL, NULL), (int)(all * 0.5 + 0.5));
	cr_assert_eq(rows_of(first, "-l", "3", "0.5", NULL), 3, "the limit is applied last");
	cr_assert_eq(rows_of(first, "-s", "cumulative", "-l", "1"), 1);
	cr_assert(strstr(first, "run.py"), "%s", first);
	cr_assert(rows_of(first, "-s", "cumul,name", "decoder\\.py", NULL) > 0);
	cr_assert(strstr(first, "decoder.py"), "%s", first);
	cr_assert_eq(rows_of(first, "decoder\\.py", "1", NULL, NULL), 1);
	cr_assert_eq(rows_of(first, "no such function", NULL, NULL, NULL), 0);
}

/* A command that fails does not change the existing file. */
static void a_file_is_replaced(void)
{
	char path[128], *text;

	pyprofd_file(&d, "p.txt", path, sizeof(path));
	free(ctl_ok(&d, "snapshot", "-o", path, NULL));
	ctl_fails(&d, 2, "bogus", "snapshot", "-o", path, "-s", "bogus", NULL);
	text = file_text(path, NULL);
	cr_assert(text && strstr(text, "function calls"));
	free(text);
}

Test(outputs, of_a_program)
{
	every_format();
	every_format_at_the_end();
	pstats_loads();
	json_has_everything();
	sorted_and_restricted();
	a_file_is_replaced();
}
