// SPDX-License-Identifier: BSD-2-Clause
/* Output formats: see format.h. */
#include "format/format.h"

#include <errno.h>
#include <string.h>

#include "format/extras.h"
#include "format/names.h"
#include "format/provenance.h"
#include "format/restrict.h"
#include "format/sort.h"
#include "format/writers.h"
#include "stats/reduce.h"

const struct format formats[] = {
	{"text", ".txt", "text/plain; charset=utf-8", "the table that cProfile prints", text_write,
	 FORMAT_ONE_CLOCK | FORMAT_TABLE},
	{"pstats", ".pstats", "application/octet-stream", "loads with pstats.Stats(FILE)",
	 pstats_write, FORMAT_ONE_CLOCK},
	{"json", ".json", "application/json", "everything: both clocks, threads, edges, contexts",
	 json_write, FORMAT_OF_ALL},
	{"callgrind", ".callgrind", "text/plain; charset=utf-8",
	 "for callgrind_annotate and KCachegrind", callgrind_write},
	{"collapsed", ".collapsed", "text/plain; charset=utf-8",
	 "folded stacks, self time in ns, for flame graphs", collapsed_write,
	 FORMAT_OF_TIMES | FORMAT_ONE_CLOCK},
	{"speedscope", ".speedscope.json", "application/json", "for speedscope.app",
	 speedscope_write, FORMAT_OF_TIMES},
	{"pprof", ".pb.gz", "application/octet-stream", "for pprof; both clocks and calls",
	 pprof_write},
	{"chrome", ".trace.json", "application/json",
	 "for Perfetto: contexts, aggregated; not a timeline", chrome_write, FORMAT_OF_TIMES},
	{"html", ".html", "text/html; charset=utf-8",
	 "a page to explore: tables, flame graph, threads; needs no network", html_write,
	 FORMAT_ONE_CLOCK},
	{"page", ".page", "application/json", "the data of the html format alone, for live views",
	 page_write},
	{"callers", ".callers.txt", "text/plain; charset=utf-8",
	 "callers of each function, as pstats prints them", callers_write,
	 FORMAT_ONE_CLOCK | FORMAT_TABLE},
	{"callees", ".callees.txt", "text/plain; charset=utf-8",
	 "callees of each function, as pstats prints them", callees_write,
	 FORMAT_ONE_CLOCK | FORMAT_TABLE},
	{"threads", ".threads.txt", "text/plain; charset=utf-8", "a line per thread", threads_write,
	 FORMAT_TABLE},
	{"coroutines", ".coroutines.txt", "text/plain; charset=utf-8",
	 "running and suspended time of coroutines, generators, greenlets", coroutines_write,
	 FORMAT_OF_TIMES | FORMAT_TABLE},
	{"coroutines-csv", ".coroutines.csv", "text/csv; charset=utf-8", "the same, in nanoseconds",
	 coroutines_csv_write, FORMAT_OF_TIMES},
	{"tree", ".tree.txt", "text/plain; charset=utf-8", "calling contexts, largest first",
	 tree_write, FORMAT_OF_TIMES | FORMAT_ONE_CLOCK},
	{"counters", ".counters.txt", "text/plain; charset=utf-8",
	 "resources by function, those that were counted", counters_write,
	 FORMAT_OF_COUNTERS | FORMAT_TABLE},
	{"waits", ".waits.txt", "text/plain; charset=utf-8",
	 "why functions waited: the GIL, locks, I/O, no CPU", waits_write,
	 FORMAT_OF_WAITS | FORMAT_TABLE},
	{"gil", ".gil.txt", "text/plain; charset=utf-8",
	 "functions that held the GIL while others waited", gil_write,
	 FORMAT_OF_WAITS | FORMAT_TABLE},
	{"lines", ".lines.txt", "text/plain; charset=utf-8",
	 "self time by source line, if it was sampled", lines_write, FORMAT_OF_LINES},
	{"memory", ".memory.txt", "text/plain; charset=utf-8",
	 "memory by function, if it was measured", memory_write, FORMAT_OF_COUNTERS | FORMAT_TABLE},
	{"openmetrics", ".openmetrics",
	 "application/openmetrics-text; version=1.0.0; charset=utf-8",
	 "for Prometheus: calls, times, histograms of durations", openmetrics_write},
	{"rows", ".rows.json", "application/json", "functions and threads only, for live views",
	 rows_write, FORMAT_OF_ALL},
	{"csv", ".csv", "text/csv; charset=utf-8", "a row per function, both clocks", csv_write},
	{NULL, NULL, NULL, NULL, NULL, 0},
};

/* Other common extensions. */
static const struct {
	const char *extension, *name;
} other_extensions[] = {{".prof", "pstats"},	  {".cprof", "pstats"},
			{".folded", "collapsed"}, {".callgrind.out", "callgrind"},
			{".pprof", "pprof"},	  {".htm", "html"}};

const struct format *format_find(const char *name)
{
	for (const struct format *f = formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

static bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n > m && strcmp(s + n - m, suffix) == 0;
}

/* callgrind's default file name: callgrind.out.PID */
static bool is_callgrind_out(const char *filename)
{
	const char *slash = strrchr(filename, '/');
	const char *base = slash ? slash + 1 : filename;

	return strncmp(base, "callgrind.out", strlen("callgrind.out")) == 0;
}

/* The longest matching extension decides, because one may end in another. */
const struct format *format_of_file(const char *filename)
{
	const struct format *ret = NULL;

	for (const struct format *f = formats; f->name; f++)
		if (has_suffix(filename, f->extension) &&
		    (!ret || strlen(f->extension) > strlen(ret->extension)))
			ret = f;
	for (size_t i = 0; !ret && i < sizeof(other_extensions) / sizeof(*other_extensions); i++)
		if (has_suffix(filename, other_extensions[i].extension))
			ret = format_find(other_extensions[i].name);
	return ret || !is_callgrind_out(filename) ? ret : format_find("callgrind");
}

const char *format_extension(const char *filename)
{
	const char *slash = strrchr(filename, '/');
	const char *base = slash ? slash + 1 : filename;
	const char *dot = strrchr(base, '.');

	if (strncmp(filename, "/dev/", strlen("/dev/")) == 0)
		return NULL;
	return dot && dot > base && dot[1] ? dot : NULL;
}

/* Append words until one does not fit. */
static void list_word(char *hint, size_t size, const char *word)
{
	size_t n = strlen(hint);

	if (n + 1 + strlen(word) < size)
		snprintf(hint + n, size - n, " %s", word);
}

static int refuse_name(const char *name, struct diag *diag)
{
	char hint[320] = "known formats:";

	for (const struct format *f = formats; f->name; f++)
		list_word(hint, sizeof(hint), f->name);
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint, "unknown format '%s'", name);
}

static int refuse_extension(const char *filename, struct diag *diag)
{
	char hint[320] = "use -f, or one of";

	for (const struct format *f = formats; f->name; f++)
		list_word(hint, sizeof(hint), f->extension);
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint,
			"no format has the extension '%s' of '%s'", format_extension(filename),
			filename);
}

int format_choose(const char *name, const char *filename, const struct format **ret,
		  struct diag *diag)
{
	const struct format *f = name	    ? format_find(name)
				 : filename ? format_of_file(filename)
					    : NULL;

	if (!f && name)
		return refuse_name(name, diag);
	if (!f && filename && format_extension(filename))
		return refuse_extension(filename, diag);
	*ret = f ? f : format_find("text");
	return 0;
}

uint64_t format_terminal_rows(const char *name)
{
	const struct format *f = format_find(name);

	return f && f->flags & FORMAT_TABLE ? FORMAT_TERMINAL_ROWS : 0;
}

bool format_is_report(const char *name)
{
	return format_terminal_rows(name) || strcmp(name, "tree") == 0;
}

int format_opts_check(const struct format_opts *o, struct diag *diag)
{
	_cleanup_(restrictions_freep) struct restrictions *restrictions = NULL;
	struct sort sort;
	int err = sort_parse(o->sort, &sort, diag);

	if (!err)
		err = restrictions_parse(o->restrict_, o->nrestrict, &restrictions, diag);
	if (!err)
		err = extras_check(o->columns, diag);
	if (!err && o->builtins_of)
		err = restrict_names(o->builtins_of, NULL, 0, NULL, diag);
	return err;
}

/* A filter that selects nothing is reported as an error, not as an empty report. */
static int check_filter(const struct snapshot *s, const struct view_filter *filter,
			struct diag *diag)
{
	bool process = !filter->pid, thread = !filter->tid;

	for (uint32_t i = 0; i < s->ntargets; i++)
		process = process || s->targets[i].pid == filter->pid;
	if (!process)
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "see `pyprofctl status`",
				"process %u is not being traced", filter->pid);
	for (uint32_t i = 0; i < s->nthreads; i++)
		thread = thread || (s->threads[i].tid == filter->tid &&
				    (!filter->pid || s->threads[i].pid == filter->pid));
	if (!thread)
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS,
				"a thread is known once it has run Python code while traced",
				"thread %u has not been seen", filter->tid);
	return 0;
}

static unsigned int selected_modes(const struct snapshot *s, const struct view_filter *filter)
{
	unsigned int modes = 0;

	for (uint32_t i = 0; i < s->ntargets; i++)
		if (provenance_selects(s, filter, &s->targets[i]))
			modes |= snapshot_target_modes(&s->targets[i]);
	return modes;
}

int format_check_modes(const struct format *f, unsigned int modes, enum snapshot_clock clock,
		       bool waits, struct diag *diag)
{
	if (modes == 1u << MODE_COUNT && f->flags & FORMAT_OF_TIMES &&
	    !(waits && clock == SNAPSHOT_WALL))
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"try text, pstats, json, csv, html, callgrind, callers or callees",
				"the %s format is about times, and mode count has none", f->name);
	if (modes & 1u << MODE_SAMPLE && !waits && clock == SNAPSHOT_WALL &&
	    f->flags & FORMAT_ONE_CLOCK)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "choose --clock cpu, or mode trace",
				"these samples have CPU times only, no wall times");
	return 0;
}

/* A file of everything must not look complete without them. */
static int check_busy(const struct format *f, const struct format_opts *o, struct diag *diag)
{
	if (!o->busy || !(f->flags & FORMAT_OF_ALL))
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"leave out --busy; `pyprofctl report --busy` applies it to saved snapshots",
			"the %s format has all data, also waits for work", f->name);
}

/* Sets *ret[i] for each C function that --builtins-of leaves out. */
static int unwanted_builtins(const struct snapshot *s, const char *pattern, bool *ret,
			     struct diag *diag)
{
	char **names = calloc((size_t)s->nfuncs + 1, sizeof(*names));
	int err = names ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->nfuncs && !err; i++) {
		const struct snapshot_func *f = &s->funcs[i];

		if (!snapshot_func_is_native(f))
			continue;
		names[i] = name_std(f->filename, f->firstlineno, f->name);
		err = names[i] ? 0 : -ENOMEM;
	}
	if (!err)
		err = restrict_names(pattern, names, s->nfuncs, ret, diag);
	for (uint32_t i = 0; i < s->nfuncs && names; i++) {
		ret[i] = names[i] && !ret[i];
		free(names[i]);
	}
	free(names);
	return err;
}

/*
 * If the options leave out data: sets *ret_reduced (owned by the caller) and *s to a snapshot
 * without it.
 */
static int reduce(const struct snapshot **s, const struct format_opts *o,
		  struct snapshot **ret_reduced, struct diag *diag)
{
	_cleanup_free_ bool *unwanted = NULL;
	struct reduce_opts opts = {
		.strip_dirs = o->strip_dirs, .only_my_code = o->only_my_code, .busy = o->busy};
	int err = 0;

	if (o->builtins_of) {
		unwanted = calloc((size_t)(*s)->nfuncs + 1, sizeof(*unwanted));
		if (!unwanted)
			return -ENOMEM;
		err = unwanted_builtins(*s, o->builtins_of, unwanted, diag);
		opts.fold = unwanted;
		opts.builtins_of = o->builtins_of;
	}
	if (!err && (o->strip_dirs || o->only_my_code || o->busy || o->builtins_of))
		err = reduce_snapshot(*s, &opts, ret_reduced);
	if (*ret_reduced)
		*s = *ret_reduced;
	return err;
}

/* Flushes the stream. Returns 0 or an errno value. */
static int flush(FILE *out)
{
	bool failed = ferror(out);

	errno = 0;
	if (!failed && fflush(out) == 0)
		return 0;
	/* An earlier write failed and its errno is lost; another write reports it again. */
	if (failed) {
		clearerr(out);
		errno = 0;
		if (fputc('\n', out) != EOF)
			fflush(out);
	}
	return errno ? errno : EIO;
}

int format_write(const struct format *f, const struct snapshot *s, const struct format_opts *o,
		 FILE *out, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *reduced = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	int err = format_opts_check(o, diag);

	if (!err)
		err = check_filter(s, &o->filter, diag);
	if (!err)
		err = format_check_modes(f, selected_modes(s, &o->filter), o->clock,
					 s->measured & COLUMN_WAITS, diag);
	if (!err)
		err = check_busy(f, o, diag);
	if (!err)
		err = reduce(&s, o, &reduced, diag);
	if (!err)
		err = view_build(s, &o->filter, &v);
	if (!err)
		err = f->write(s, v, o, out, diag);
	if (err < 0)
		return diag_errno(diag, -err, "cannot write the %s output", f->name);
	err = flush(out);
	return err ? diag_errno(diag, err, "cannot write the %s output", f->name) : 0;
}
