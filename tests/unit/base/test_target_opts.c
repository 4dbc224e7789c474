// SPDX-License-Identifier: BSD-2-Clause
/*
 * base/target_opts: each row of the table works on the command lines of pyprofd and pyprofctl, in a
 * request and in completion, and is described in the man pages.
 */
#include "base/target_opts.h"

#include <errno.h>
#include <jansson.h>

#include "base/cleanup.h"
#include "cmd.h"
#include "fakes/sessions.c"
#include "harness/test.h"
#include "run/options.h"
#include "server/routes.h"
#include "target_args.h"

#define EACH_ROW(row)                                                                              \
	const struct opt *row = target_opt_table;                                                  \
	row->name;                                                                                 \
	row++

static struct diag diag;

/* The commands that attach */
static const struct {
	const struct cmd *cmd;
	const char *words[2];
} commands[] = {{&cmd_attach, {"1"}}, {&cmd_record, {"--pid=1"}}, {&cmd_run, {"--", "true"}}};

#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

/* ---- command lines and requests ---------------------------------------------------------- */

/* Writes "--name=text", or "--name" for a flag. */
static void make_word(const struct opt *row, const char *text, char word[64])
{
	snprintf(word, 64, "--%s%s%s", row->name, row->arg ? "=" : "", row->arg ? text : "");
}

static int by_pyprofd(const struct opt *row, const char *text, struct target_opts *ret)
{
	char word[64];
	/* Counters are of every call. */
	char *argv[] = {(char *)"pyprofd", word,
			row->type == OPT_COUNTERS ? (char *)"--exact" : NULL, NULL};
	int argc = argv[2] ? 3 : 2, r;
	struct options o = {0};

	make_word(row, text, word);
	diag_clear(&diag);
	r = options_parse(argc, argv, &o, &diag);
	*ret = o.target;
	return r;
}

static int by_command(size_t i, const struct opt *row, const char *text,
		      struct target_opts_given *ret)
{
	char word[64];
	const char *words[] = {commands[i].words[0], commands[i].words[1]};
	char *argv[] = {(char *)"pyprofctl",
			(char *)commands[i].cmd->name,
			word,
			(char *)words[0],
			(char *)words[1],
			NULL};
	struct cmdline cl;
	int r;

	make_word(row, text, word);
	diag_clear(&diag);
	r = cmdline_parse(words[1] ? 5 : 4, argv, &cl, &diag);
	if (r == 0)
		memcpy(ret, cl.opts + cl.cmd->target_at, sizeof(*ret));
	return r;
}

/* Returns the HTTP status of a request; hint: the error's. */
static unsigned int ask(const char *body, const struct target_opts *daemon, struct target_opts *ret,
			char hint[128])
{
	struct routes_input in = {
		.method = "POST", .uri = "/v1/targets", .body = body, .nbody = strlen(body)};
	_cleanup_(json_decrefp) json_t *answer = NULL;
	struct session_opts so = {.target = *daemon};
	struct routes_ctx ctx = {.owner = 500};
	struct response rs;
	unsigned int status;

	response_init(&rs);
	assert_ok(sessions_new(NULL, &so, &ctx.sessions, NULL));
	routes_dispatch(&ctx, &in, &rs, &(struct routes_wait){0});
	*ret = ctx.sessions->last;
	status = rs.status;
	answer = json_loadb(rs.body, rs.size, 0, NULL);
	snprintf(hint, 128, "%s", json_string_value(json_object_get(answer, "hint")) ?: "");
	response_deinit(&rs);
	sessions_free(ctx.sessions);
	return status;
}

static unsigned int by_request(const struct opt *row, const char *text, struct target_opts *ret,
			       char hint[128])
{
	struct target_opts daemon;
	char body[256];

	target_opts_init(&daemon);
	snprintf(body, sizeof(body), "{\"pid\": 1, \"%s\": \"%s\"}", row->key, text);
	return ask(body, &daemon, ret, hint);
}

static void assert_same(const struct opt *row, const struct target_opts *o, const char *want)
{
	char buf[OPT_TEXT_MAX];
	const char *have = opt_text(row, o, buf);

	cr_assert(strcmp(have, want) == 0, "%s: '%s', not '%s'", row->name, have, want);
}

static void assert_accepted(const struct opt *row, const char *text)
{
	struct target_opts o;
	char hint[128];

	assert_diag_ok(by_pyprofd(row, text, &o), &diag);
	assert_same(row, &o, text);
	for (size_t i = 0; i < NCOMMANDS; i++) {
		struct target_opts_given g;

		assert_diag_ok(by_command(i, row, text, &g), &diag);
		assert_same(row, &g.opts, text);
		cr_assert(g.given == UINT64_C(1) << (row - target_opt_table), "%s", row->name);
	}
	cr_assert(by_request(row, text, &o, hint) == 201, "%s %s: %s", row->key, text, hint);
	assert_same(row, &o, text);
}

/* Checks that all of them refuse the value with the same hint. */
static void assert_refused(const struct opt *row, const char *text)
{
	struct target_opts_given g;
	struct target_opts o;
	char hint[128];

	cr_assert(by_pyprofd(row, text, &o) < 0 && diag.exit == PYP_EXIT_USAGE, "%s", row->name);
	cr_assert(diag.hint[0]);
	cr_assert(by_request(row, text, &o, hint) == 400, "%s: %s", row->key, text);
	cr_assert_str_eq(hint, diag.hint);
	for (size_t i = 0; i < NCOMMANDS; i++) {
		cr_assert(by_command(i, row, text, &g) < 0 && diag.exit == PYP_EXIT_USAGE);
		cr_assert_str_eq(hint, diag.hint);
	}
}

/* ---- tests ------------------------------------------------------------------------------- */

Test(target_opts, is_parsed_alike)
{
	char text[32];

	for (EACH_ROW(row)) {
		cr_assert(row->key && row->help && row->offset < sizeof(struct target_opts));
		cr_assert(row - target_opt_table < 64);
		if (!row->arg)
			assert_accepted(row, row->type == OPT_FLAG ? "true" : "false");
		if (row->type == OPT_COUNTERS)
			assert_accepted(row, "vcsw,rbytes");
		for (const char *const *c = row->choices; c && *c; c++)
			assert_accepted(row, *c);
		if (!row->max)
			continue;
		snprintf(text, sizeof(text), "%llu", (unsigned long long)row->min);
		assert_accepted(row, text);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)row->max);
		assert_accepted(row, text);
	}
	check_no_leaks();
}

Test(target_opts, has_the_same_limits)
{
	char text[32];

	for (EACH_ROW(row)) {
		if (!row->arg)
			continue;
		assert_refused(row, "?");
		assert_refused(row, "-1");
		if (!row->max)
			continue;
		snprintf(text, sizeof(text), "%llu", (unsigned long long)row->max + 1);
		assert_refused(row, text);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)row->min - 1);
		if (!row->none || strcmp(row->none, text) != 0)
			assert_refused(row, text);
	}
	check_no_leaks();
}

/*
 * An option that the request omits is the daemon's; one that it contains overrides the daemon's,
 * also with "no" and "none".
 */
Test(target_opts, of_a_request_or_the_daemons)
{
	const struct target_opts daemon = {.mode = {MODE_TRACE, 7},
					   .max_overhead = 5,
					   .follow = true,
					   .verify = true,
					   .ring_bytes = 1 << 20};
	struct target_opts o;
	char a[OPT_TEXT_MAX], hint[128];

	cr_assert(ask("{\"pid\": 1}", &daemon, &o, hint) == 201);
	for (EACH_ROW(row))
		assert_same(row, &o, opt_text(row, &daemon, a));
	cr_assert(ask("{\"pid\": 1, \"follow_children\": false, \"verify\": false, "
		      "\"max_overhead\": 0, \"ring_size\": \"65K\"}",
		      &daemon, &o, hint) == 201);
	cr_assert(!o.follow && !o.verify && o.max_overhead == 0 && o.ring_bytes == 131072);
	cr_assert(o.mode.mode == MODE_TRACE && o.mode.rate == 7);
	cr_assert(ask("{\"pid\": 1, \"follow_children\": \"perhaps\"}", &daemon, &o, hint) == 400);
	cr_assert(ask("{\"pid\": 1, \"mode\": \"sample\", \"rate\": 0}", &daemon, &o, hint) == 400);
	cr_assert_str_eq(hint, "leave out \"rate\"");
	check_no_leaks();
}

/* In continuous mode, the daemon's own targets are light. */
static struct target_opts continuous(const char *body)
{
	struct target_opts daemon, got;
	char hint[128];

	target_opts_init(&daemon);
	daemon.light = true;
	daemon.mode.mode = MODE_SAMPLE;
	daemon.mode.rate = 19;
	daemon.ring_bytes = 128u << 10;
	cr_assert_eq(ask(body, &daemon, &got, hint), 201, "%s: %s", body, hint);
	return got;
}

Test(target_opts, of_a_request_are_not_those_of_light_targets)
{
	struct target_opts o = continuous("{\"pid\": 1}"), initial;

	target_opts_init(&initial);
	cr_assert(o.light && o.mode.mode == MODE_SAMPLE && o.mode.rate == 19);
	o = continuous("{\"pid\": 1, \"mode\": \"trace\"}");
	cr_assert(!o.light && o.mode.mode == MODE_TRACE && o.mode.rate == TARGET_OPTS_RATE_AUTO);
	cr_assert_eq(o.ring_bytes, initial.ring_bytes);
	o = continuous("{\"pid\": 1, \"mode\": \"sample\", \"rate\": 50, \"ring_size\": \"1M\"}");
	cr_assert(!o.light && o.mode.mode == MODE_SAMPLE && o.mode.rate == 50);
	cr_assert_eq(o.ring_bytes, 1u << 20);
	o = continuous("{\"pid\": 1, \"max_overhead\": 5}");
	cr_assert(!o.light && o.mode.mode == MODE_TRACE && o.max_overhead == 5);
	o = continuous("{\"pid\": 1, \"exact\": true, \"mode\": \"trace\"}");
	cr_assert(!o.light && o.mode.mode == MODE_TRACE && target_opts_limit(&o) == 0);
	o = continuous("{\"pid\": 1, \"exact\": true}");
	cr_assert(!o.light && o.mode.mode == MODE_TRACE && target_opts_limit(&o) == 0);
	o = continuous("{\"pid\": 1, \"rate\": 50}");
	cr_assert(o.light && o.mode.rate == 50);
}

Test(target_opts, rate)
{
	struct target_opts o = {.mode = {MODE_SAMPLE, 0}};

	cr_assert_eq(target_opts_rate(&o), 99);
	o.mode.rate = 7;
	cr_assert_eq(target_opts_rate(&o), 7);
	o.mode.mode = MODE_COUNT;
	cr_assert_eq(target_opts_rate(&o), 7);
	o.mode.rate = 0;
	cr_assert_eq(target_opts_rate(&o), 0, "counting alone is cheaper");
	o.mode = (struct mode_choice){MODE_TRACE, 0};
	cr_assert_eq(target_opts_rate(&o), 0);
	o.max_overhead = 5;
	cr_assert_eq(target_opts_rate(&o), 999, "a limited trace always has samples");
	o.exact = true;
	cr_assert_eq(target_opts_rate(&o), 0);
	target_opts_init(&o);
	cr_assert_eq(target_opts_rate(&o), 999, "beside a trace");
	o.mode.mode = MODE_COUNT;
	cr_assert_eq(target_opts_rate(&o), 0);
	o.mode.mode = MODE_SAMPLE;
	cr_assert_eq(target_opts_rate(&o), 99);
	o = (struct target_opts){.mode = {MODE_TRACE, TARGET_OPTS_RATE_AUTO}, .max_overhead = 5};
	cr_assert_eq(target_opts_rate(&o), 999);
	o.mode.rate = 7;
	cr_assert_eq(target_opts_rate(&o), 7);
}

/* By default, 10 % of the target's CPU time; only a trace has a limit. */
Test(target_opts, limit)
{
	struct target_opts o;

	target_opts_init(&o);
	cr_assert(!o.exact && target_opts_limit(&o) == 10);
	o.mode.mode = MODE_COUNT;
	cr_assert_eq(target_opts_limit(&o), 0);
	o.mode.mode = MODE_SAMPLE;
	cr_assert_eq(target_opts_limit(&o), 0);
	target_opts_init(&o);
	o.exact = true;
	cr_assert_eq(target_opts_limit(&o), 0);
	target_opts_init(&o);
	o.max_overhead = 0;
	cr_assert_eq(target_opts_limit(&o), 0);
	o.max_overhead = 50;
	cr_assert_eq(target_opts_limit(&o), 50);
}

/* Returns the exit code with which pyprofd refuses these options; 0: it does not. */
static enum pyp_exit refused(const char *a, const char *b)
{
	char *argv[] = {(char *)"pyprofd", (char *)a, (char *)b, NULL};
	struct options o;

	diag_clear(&diag);
	return options_parse(b ? 3 : 2, argv, &o, &diag) < 0 ? diag.exit : PYP_EXIT_OK;
}

Test(target_opts, exact_excludes_a_limit_and_other_modes)
{
	cr_assert_eq(refused("--exact", "--max-overhead=5"), PYP_EXIT_USAGE);
	cr_assert(strstr(diag.hint, "leave out one"), "%s", diag.hint);
	cr_assert_eq(refused("--mode=sample", "--exact"), PYP_EXIT_USAGE);
	cr_assert(strstr(diag.msg, "--exact requires mode trace"), "%s", diag.msg);
	cr_assert_eq(refused("--exact", "--mode=count"), PYP_EXIT_USAGE);
	cr_assert(strstr(diag.hint, "--mode trace"), "%s", diag.hint);
	cr_assert_eq(refused("--exact", "--mode=trace"), PYP_EXIT_OK);
	cr_assert_eq(refused("--mode=count", NULL), PYP_EXIT_OK);
	cr_assert_eq(refused("--mode=count", "--max-overhead=5"), PYP_EXIT_USAGE);
}

/* Resources are not estimated; what grows is also seen in mode sample. */
Test(target_opts, counters_need_exact)
{
	cr_assert_eq(refused("--counters=io", NULL), PYP_EXIT_USAGE);
	cr_assert_str_eq(diag.hint, "add --exact");
	cr_assert_eq(refused("--counters=memory", NULL), PYP_EXIT_USAGE);
	cr_assert_str_eq(diag.hint, "add --exact, or --mode sample");
	cr_assert_eq(refused("--counters=all", "--exact"), PYP_EXIT_OK);
	cr_assert_eq(refused("--counters=memory", "--mode=sample"), PYP_EXIT_OK);
	cr_assert_eq(refused("--counters=io", "--mode=count"), PYP_EXIT_USAGE);
}

/* A request overrides the daemon's way of observing, with and without a limit. */
Test(target_opts, limit_of_a_request)
{
	struct target_opts daemon, o;
	char hint[128];

	target_opts_init(&daemon);
	cr_assert_eq(ask("{\"pid\": 1, \"exact\": true}", &daemon, &o, hint), 201);
	cr_assert_eq(target_opts_limit(&o), 0);
	cr_assert_eq(ask("{\"pid\": 1, \"max_overhead\": 0}", &daemon, &o, hint), 201);
	cr_assert_eq(target_opts_limit(&o), 0);
	cr_assert_eq(ask("{\"pid\": 1, \"mode\": \"sample\"}", &daemon, &o, hint), 201);
	cr_assert_eq(ask("{\"pid\": 1, \"mode\": \"count\", \"exact\": true}", &daemon, &o, hint),
		     400);
	cr_assert_eq(ask("{\"pid\": 1, \"max_overhead\": 5, \"exact\": true}", &daemon, &o, hint),
		     400);
	daemon.exact = true;
	cr_assert_eq(ask("{\"pid\": 1}", &daemon, &o, hint), 201);
	cr_assert_eq(target_opts_limit(&o), 0);
	cr_assert_eq(ask("{\"pid\": 1, \"max_overhead\": 5}", &daemon, &o, hint), 201);
	cr_assert_eq(target_opts_limit(&o), 5);
	cr_assert_eq(ask("{\"pid\": 1, \"exact\": false}", &daemon, &o, hint), 201);
	cr_assert_eq(target_opts_limit(&o), 10);
	cr_assert_eq(ask("{\"pid\": 1, \"mode\": \"sample\"}", &daemon, &o, hint), 201);
	check_no_leaks();
}

/* pyprofctl sends exactly the given options, and the daemon reads them as the same values. */
Test(target_opts, are_sent_as_given)
{
	struct target_opts daemon, o;
	char hint[128];

	target_opts_init(&daemon);
	for (EACH_ROW(row)) {
		_cleanup_(json_decrefp) json_t *body = json_pack("{s:i}", "pid", 1);
		_cleanup_free_ char *text = NULL;
		const char *value = !row->arg			? "false"
				    : row->choices		? row->choices[0]
				    : row->type == OPT_COUNTERS ? "minflt"
								: "65536";
		struct target_opts_given g = {.given = UINT64_C(1) << (row - target_opt_table)};
		struct opt any = *row;

		any.min = any.max = 0;
		assert_ok(opt_set(&any, row->name, value, &g.opts, NULL));
		target_args_add(&g, body);
		cr_assert(json_object_size(body) == 2 && json_object_get(body, row->key));
		if (row->max && row->max < 65536)
			continue;
		text = json_dumps(body, 0);
		cr_assert(ask(text, &daemon, &o, hint) == 201, "%s: %s", text, hint);
		assert_same(row, &o, value);
	}
	check_no_leaks();
}

/* ---- documentation ----------------------------------------------------------------------- */

static char *read_source(const char *name)
{
	const char *top = getenv("PYPROF_TOP");
	char path[512], *text = calloc(1, 1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top ? top : ".", name);
	f = fopen(path, "r");
	cr_assert(f, "%s", path);
	cr_assert(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

/* Returns the text of the page between two lines; owned by the caller. */
static char *part(const char *page, const char *from, const char *to)
{
	const char *begin = strstr(page, from), *end = begin ? strstr(begin + 1, to) : NULL;

	cr_assert(begin && end, "there is no '%s' with a '%s' behind it", from, to);
	return strndup(begin, (size_t)(end - begin));
}

/* Returns the paragraph about an option; owned by the caller. */
static char *paragraph(const char *section, const struct opt *row)
{
	char from[64];

	snprintf(from, sizeof(from), "\n.It Fl -%s%s", row->name, row->arg ? " " : "\n");
	return part(section, from, "\n.It ");
}

/* Writes "64K" for 65536. */
static const char *limit(const struct opt *row, uint64_t v, char text[32])
{
	size_t unit = 0;

	for (; row->type == OPT_POW2 && unit < 3 && v % 1024 == 0; unit++)
		v /= 1024;
	snprintf(text, 32, "%llu%.1s", (unsigned long long)v, &"\0KMG"[unit]);
	return text;
}

Test(target_opts, is_in_pyprofds_manual)
{
	_cleanup_free_ char *page = read_source("packaging/pyprofd.8");
	_cleanup_free_ char *synopsis = part(page, ".Sh SYNOPSIS", ".Sh DESCRIPTION");
	_cleanup_free_ char *options = part(page, "\nThe options are:", ".Sh MODES");

	for (EACH_ROW(row)) {
		char from[64], low[32], high[32], range[80];
		_cleanup_free_ char *text = paragraph(options, row);

		snprintf(from, sizeof(from), "Fl -%s", row->name);
		cr_assert(strstr(synopsis, from), "%s", row->name);
		snprintf(range, sizeof(range), "%s to %s", limit(row, row->min, low),
			 limit(row, row->max, high));
		cr_assert(!row->max || strstr(text, range), "%s: no '%s'", row->name, range);
		cr_assert(!row->arg || !row->initial || strstr(text, row->initial),
			  "%s: no default %s", row->name, row->initial);
	}
}

Test(target_opts, is_in_pyprofctls_manual)
{
	_cleanup_free_ char *page = read_source("packaging/pyprofctl.1");
	_cleanup_free_ char *options = part(page, ".Ss Options of commands", ".Ss Timelines");

	for (EACH_ROW(row)) {
		_cleanup_free_ char *text = paragraph(options, row);

		cr_assert(strstr(text, "\n.Pq Ic attach , record , run\n"), "%s", row->name);
	}
}

Test(target_opts, is_in_the_description_of_requests)
{
	_cleanup_free_ char *page = read_source("packaging/doc/api.md");
	_cleanup_free_ char *keys = part(page, "\n## Target options\n", "\n## Errors\n");

	for (EACH_ROW(row)) {
		char key[64], option[64];

		snprintf(key, sizeof(key), "\n| `%s` | ", row->key);
		snprintf(option, sizeof(option), " | `--%s` ", row->name);
		_cleanup_free_ char *line = part(keys, key, "|\n");
		cr_assert(strstr(line, option), "%s has no%s", line, option);
	}
}

Test(target_opts, is_completed)
{
	char *text = NULL, *operands[] = {(char *)"bash", NULL}, name[64];
	struct cmd_call call = {.operands = operands, .noperands = 1};
	size_t n;

	call.out = open_memstream(&text, &n);
	assert_ok(cmd_completion.run(&call, &diag));
	fclose(call.out);
	for (size_t i = 0; i < NCOMMANDS; i++) {
		_cleanup_free_ char *words = NULL;

		snprintf(name, sizeof(name), "\t%s:*)\n", commands[i].cmd->name);
		words = part(text, name, ";;");
		for (EACH_ROW(row)) {
			snprintf(name, sizeof(name), " --%s", row->name);
			cr_assert(strstr(words, name), "%s %s", commands[i].cmd->name, name);
		}
	}
	free(text);
	check_no_leaks();
}
