// SPDX-License-Identifier: BSD-2-Clause
/* pyprofd's command line: see options.h. */
#include "run/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/sockpath.h"
#include "continuous/continuous.h"

#define MAX_CHILDREN	  4096
#define METRICS_FUNCTIONS 20
#define NS		  UINT64_C(1000000000)
#define PUSH_EVERY_MIN	  100000000u /* ns */

static const char *const clocks[] = {[SNAPSHOT_CPU] = "cpu", [SNAPSHOT_WALL] = "wall", NULL};

#define FIELD(f) .offset = offsetof(struct options, f)

static const struct opt table[] = {
	{"pid", 'p', OPT_PIDS, FIELD(pids), "PID", "trace this process; may be repeated"},
	{"socket", 0, OPT_STRING, FIELD(socket), "PATH",
	 "control socket; default: $" SOCKPATH_ENV ", otherwise\n" SOCKPATH_DEFAULT},
	{"group", 0, OPT_STRING, FIELD(group), "NAME",
	 "members of this group may read: status, profiles"},
	{"http", 0, OPT_STRING, FIELD(http), "ADDR:PORT",
	 "serve /metrics and /debug/pprof/ to scrapers; needs\nthe next three if other hosts "
	 "can reach the address"},
	{"http-token-file", 0, OPT_STRING, FIELD(http_token_file), "FILE",
	 "a token that requests must have (bearer or password)"},
	{"http-cert", 0, OPT_STRING, FIELD(http_cert), "FILE", "TLS certificate, PEM"},
	{"http-key", 0, OPT_STRING, FIELD(http_key), "FILE", "its key, PEM"},
	{"metrics-functions", 0, OPT_U64, FIELD(metrics_functions), "N",
	 "functions of each target in /metrics: 0 to 200\n(default: 20)", .max = 200},
	{"yes", 'y', OPT_FLAG, FIELD(yes), NULL, "consent to a high overhead: do not ask"},
	{"no-start", 0, OPT_FLAG, FIELD(no_start), NULL,
	 "attach only; `pyprofctl start` begins recording"},
	{"max-children", 0, OPT_U64, FIELD(max_children), "N",
	 "follow at most N children at a time (default: 64)", .min = 1, .max = MAX_CHILDREN},
	{"clock", 0, OPT_CHOICE, FIELD(clock), "cpu|wall",
	 "default clock of reports (default: cpu); both are\nalways measured", .choices = clocks},
	{"duration", 'd', OPT_DURATION, FIELD(duration_ns), "SECONDS",
	 "exit after this time; also 250ms, 1.5, 2m, 1h"},
	{"output", 'o', OPT_STRING, FIELD(output), "FILE", "write the profile to FILE at exit"},
	{"format", 'f', OPT_STRING, FIELD(format_name), "FORMAT",
	 "profile format; default: from the extension of FILE,\notherwise text"},
	{"sort", 's', OPT_STRING, FIELD(sort), "KEY[,KEY]",
	 "sort keys of the profile, as in pstats"},
	{"limit", 'l', OPT_U64, FIELD(limit), "N",
	 "at most N rows in the profile (default: 30 on a\nterminal, all in files and pipes)",
	 .min = 1, .max = INT32_MAX},
	{"push", 0, OPT_WORDS, FIELD(push), "URL",
	 "send profiles to pyroscope+https://HOST or\notlp+https://HOST; may be repeated"},
	{"push-every", 0, OPT_DURATION, FIELD(push_every_ns), "SECONDS",
	 "length of the pushed intervals (default: 10)"},
	{"push-queue", 0, OPT_SIZE, FIELD(push_queue), "SIZE",
	 "memory for intervals that wait, for each URL\n(default: 64M)", .min = 65536,
	 .max = UINT64_C(1) << 32},
	PUSH_OPTION_ROWS("push-", struct options, push_opts),
	{"command-status", 0, OPT_FLAG, FIELD(command_status), NULL,
	 "exit with CMD's status (128 + N: ended by signal N)"},
	{"raw-times", 0, OPT_FLAG, FIELD(raw_times), NULL,
	 "do not subtract the probes' own time in the profile"},
	{"continuous", 0, OPT_FLAG, FIELD(continuous), NULL,
	 "sample the Python processes of this machine all the\ntime, and keep a history"},
	{"all-python", 0, OPT_FLAG, FIELD(all_python), NULL,
	 "continuous: all processes (the default)"},
	{"match", 0, OPT_STRING, FIELD(match), "REGEX",
	 "continuous: those whose command line matches"},
	{"unit", 0, OPT_STRING, FIELD(unit), "UNIT", "continuous: those of a systemd unit"},
	{"interval", 0, OPT_DURATION, FIELD(interval_ns), "SECONDS",
	 "continuous: length of an interval (default: 10)"},
	{"label", 0, OPT_WORDS, FIELD(labels), "NAME=VALUE",
	 "continuous: add this label to intervals; may be\nrepeated"},
	{"keep-memory", 0, OPT_SIZE, FIELD(keep_memory), "BYTES",
	 "continuous: keep the last hour's intervals in so much\nmemory (default: 64M)",
	 .min = 1u << 20, .max = 64ull << 30},
	{"keep", 0, OPT_STRING, FIELD(keep), "DIR", "continuous: also keep intervals in DIR"},
	{"keep-size", 0, OPT_SIZE, FIELD(keep_size), "BYTES",
	 "continuous: remove the oldest ones of DIR beyond this\nsize (default: 1G)",
	 .min = 1u << 20, .max = 16ull << 40},
	{"merge-after", 0, OPT_DURATION, FIELD(merge_after_ns), "SECONDS",
	 "continuous: merge intervals of DIR when they are so old\n(default: 1h)"},
	{"merge-to", 0, OPT_DURATION, FIELD(merge_to_ns), "SECONDS",
	 "continuous: to intervals of this length (default: 5m);\nnot above --interval: never"},
	{"verbose", 'v', OPT_FLAG, FIELD(verbose), NULL,
	 "log what the daemon does; all facts below a text\nprofile"},
	{"help", 'h', OPT_FLAG, FIELD(help), NULL, "show this help"},
	{"version", 0, OPT_FLAG, FIELD(version), NULL, "show the version"},
	{NULL},
};

static int choose_cmd(struct options *o, char **operands, bool dashes, struct diag *diag)
{
	if (*operands && !dashes)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"put -- before the command: pyprofd -- python3 app.py",
				"unexpected argument '%s'", *operands);
	if (!*operands && dashes)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "e.g. pyprofd -- python3 app.py",
				"the command after -- is missing");
	o->cmd = *operands ? operands : NULL;
	return 0;
}

static int check_sort(const struct options *o, struct diag *diag)
{
	const struct format_opts fo = {.sort = o->sort};

	return format_opts_check(&fo, diag);
}

/* ---- continuous mode ---- */

static int only_continuous(const struct options *o, struct diag *diag)
{
	if (!o->all_python && !o->match && !o->unit && !o->interval_ns && !o->labels.n &&
	    !o->keep_memory && !o->keep && !o->keep_size && !o->merge_after_ns && !o->merge_to_ns)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "add --continuous",
			"an option of continuous mode requires --continuous");
}

static int check_continuous(const struct options *o, struct diag *diag)
{
	if (o->pids.n || o->cmd || o->output || o->no_start)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"select processes by --match or --unit; `pyprofctl history` "
				"writes profiles",
				"--continuous excludes --pid, a command, -o and --no-start");
	if (o->all_python && (o->match || o->unit))
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "leave out --all-python",
				"--all-python excludes --match and --unit");
	if (o->push_every_ns || o->push_opts.service)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"--interval and --label are the same for continuous mode",
				"--continuous excludes --push-every and --push-service");
	if ((o->keep_size || o->merge_after_ns || o->merge_to_ns) && !o->keep)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "add --keep DIR",
				"--keep-size, --merge-after and --merge-to require --keep");
	if (o->merge_to_ns % NS || o->merge_to_ns > CONTINUOUS_MERGE_TO_MAX_NS)
		return diag_set(diag, -ERANGE, PYP_EXIT_USAGE, "expected 1 to 3600 seconds",
				"--merge-to is out of range");
	if (o->interval_ns < CONTINUOUS_INTERVAL_MIN_NS ||
	    o->interval_ns > CONTINUOUS_INTERVAL_MAX_NS)
		return diag_set(diag, -ERANGE, PYP_EXIT_USAGE, "expected 1 to 3600 seconds",
				"--interval is out of range");
	return continuous_check(
		&(struct continuous_opts){.match = o->match, .unit = o->unit, .labels = &o->labels},
		diag);
}

/* Sampling at a low rate is the default. Light targets are sampled, with nothing that costs more. */
static void set_continuous(struct options *o, const struct target_opts_given *g)
{
	struct target_opts *t = &o->target;

	if (!target_opts_asked(g))
		t->mode.mode = MODE_SAMPLE;
	if (t->mode.mode == MODE_SAMPLE && !TARGET_OPTS_HAS(g, mode.rate))
		t->mode.rate = CONTINUOUS_RATE;
	t->light = t->mode.mode == MODE_SAMPLE && !t->builtins && !t->counters;
	if (t->light && !TARGET_OPTS_HAS(g, ring_bytes))
		t->ring_bytes = CONTINUOUS_RING_BYTES;
	o->interval_ns = o->interval_ns ? o->interval_ns : CONTINUOUS_INTERVAL_NS;
	o->keep_memory = o->keep_memory ? o->keep_memory : CONTINUOUS_MEMORY_BYTES;
}

static int choose_continuous(struct options *o, const struct target_opts_given *g,
			     struct diag *diag)
{
	int r;

	if (!o->continuous)
		return only_continuous(o, diag);
	set_continuous(o, g);
	r = check_continuous(o, diag);
	o->keep_size = o->keep_size ? o->keep_size : CONTINUOUS_DISK_BYTES;
	o->merge_after_ns = o->merge_after_ns ? o->merge_after_ns : CONTINUOUS_MERGE_AFTER_NS;
	o->merge_to_ns = o->merge_to_ns ? o->merge_to_ns : CONTINUOUS_MERGE_TO_NS;
	return r;
}

static int check_push(const struct options *o, struct diag *diag)
{
	const struct push_options *p = &o->push_opts;

	if (o->push_every_ns && o->push_every_ns < PUSH_EVERY_MIN)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "--push-every: at least 100ms");
	if (o->push.n ||
	    !(o->push_every_ns || o->push_queue || p->transport.token_file || p->transport.tenant ||
	      p->transport.ca_file || p->transport.timeout_ns || p->service))
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "add --push URL",
			"options of pushing without --push");
}

int options_parse(int argc, char **argv, struct options *ret, struct diag *diag)
{
	struct options o = {.metrics_functions = METRICS_FUNCTIONS};
	struct target_opts_given target = {0};
	const struct opt_group groups[] = {{table, &o}, TARGET_OPTS_GROUP(&target), {NULL}};
	bool dashes;
	int first, r;

	target_opts_init(&target.opts);
	r = opts_parse(groups, argc, argv, OPTS_STOP, &first, &dashes, diag);
	if (r < 0)
		return r;
	o.target = target.opts;
	o.target.asked = target_opts_asked(&target);
	if (!o.help && !o.version) {
		r = choose_cmd(&o, argv + first, dashes, diag);
		if (r == 0)
			r = target_opts_check_given(&target, diag);
		if (r == 0)
			r = choose_continuous(&o, &target, diag);
		if (r == 0)
			r = target_opts_check(&o.target, diag);
		if (r == 0)
			r = format_choose(o.format_name, o.output, &o.format, diag);
		if (r == 0)
			r = check_sort(&o, diag);
		if (r == 0)
			r = check_push(&o, diag);
		if (r < 0)
			return r;
	}
	o.socket = sockpath_choose(o.socket);
	*ret = o;
	return 0;
}

void options_help(FILE *out)
{
	fputs("Usage: pyprofd [OPTION]... [-- CMD ARG...]\n"
	      "\n"
	      "Profile running Python programs from outside: calls and times, within a limit of\n"
	      "their overhead, no code injected. Traces the processes given by --pid and the\n"
	      "command until they end, the duration is over or a signal arrives; without both,\n"
	      "waits for pyprofctl.\n"
	      "\n"
	      "Options:\n",
	      out);
	opts_print(table, false, out);
	fputs("\nHow targets are observed:\n", out);
	opts_print(target_opt_table, true, out);
	fputs("\nFormats:", out);
	for (const struct format *f = formats; f->name; f++)
		fprintf(out, " %s", f->name);
	fputs("\nThe first moments of a command's start-up may be missed.\n", out);
}
