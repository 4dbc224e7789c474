// SPDX-License-Identifier: BSD-2-Clause
/* Typed command line options: see opts.h. */
#include "base/opts.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/parse.h"

#define HELP_HINT   "see --help"
#define HELP_COLUMN 26
#define WORD_MAX    32

/* getopt's value of a long option: clear of every short option's character. */
#define LONG_BASE 0x1000

struct tables {
	struct option longs[OPTS_MAX + 1];
	char shorts[2 + 2 * OPTS_MAX + 1];
	const struct opt *opt[OPTS_MAX];
	void *dst[OPTS_MAX];
	size_t n, nshort;
};

static void tables_add(struct tables *t, const struct opt *opt, void *dst)
{
	bool has_arg = opt->type != OPT_FLAG;

	t->longs[t->n] = (struct option){
		.name = opt->name,
		.has_arg = has_arg ? required_argument : no_argument,
		.val = LONG_BASE + (int)t->n,
	};
	if (opt->short_name) {
		t->shorts[t->nshort++] = opt->short_name;
		if (has_arg)
			t->shorts[t->nshort++] = ':';
	}
	t->opt[t->n] = opt;
	t->dst[t->n] = dst;
	t->n++;
}

static void tables_init(struct tables *t, const struct opt_group *groups, enum opts_mode mode)
{
	memset(t, 0, sizeof(*t));
	if (mode == OPTS_STOP)
		t->shorts[t->nshort++] = '+';
	t->shorts[t->nshort++] = ':';
	for (; groups->opts; groups++)
		for (const struct opt *o = groups->opts; o->name && t->n < OPTS_MAX; o++)
			tables_add(t, o, groups->dst);
}

/* Index of the option that getopt's return value stands for, or -1. */
static int tables_find(const struct tables *t, int c)
{
	for (size_t i = 0; i < t->n; i++)
		if (c == LONG_BASE + (int)i ||
		    (t->opt[i]->short_name && c == t->opt[i]->short_name))
			return (int)i;
	return -1;
}

static int bad_value(const struct opt *opt, const char *arg, const char *hint, struct diag *diag)
{
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint, "--%s: '%s' is not a valid %s",
			opt->name, arg, opt->arg ? opt->arg : "value");
}

static int out_of_range(const struct opt *opt, const char *arg, struct diag *diag)
{
	char hint[96];

	snprintf(hint, sizeof(hint), "it must be %llu to %llu", (unsigned long long)opt->min,
		 (unsigned long long)(opt->max ? opt->max : UINT64_MAX));
	return diag_set(diag, -ERANGE, PYP_EXIT_USAGE, hint, "--%s: '%s' is out of range",
			opt->name, arg);
}

static int set_number(const struct opt *opt, const char *arg, uint64_t *dst, struct diag *diag)
{
	uint64_t v, max = opt->max ? opt->max : UINT64_MAX;
	int r;

	r = opt->type == OPT_SIZE ? parse_size(arg, &v) : parse_u64(arg, 0, UINT64_MAX, &v);
	if (r == -ERANGE || (r == 0 && (v < opt->min || v > max)))
		return out_of_range(opt, arg, diag);
	if (r < 0)
		return bad_value(opt, arg,
				 opt->type == OPT_SIZE ? "bytes, or a number with K, M or G"
						       : "a whole number is needed",
				 diag);
	*dst = v;
	return 0;
}

static int set_choice(const struct opt *opt, const char *arg, int *dst, struct diag *diag)
{
	char hint[128] = "choose one of:";
	size_t n = strlen(hint);

	for (int i = 0; opt->choices[i]; i++) {
		if (!*opt->choices[i])
			continue;
		if (strcmp(arg, opt->choices[i]) == 0) {
			*dst = i;
			return 0;
		}
		n += (size_t)snprintf(hint + n, sizeof(hint) - n, " %s", opt->choices[i]);
		if (n >= sizeof(hint))
			break;
	}
	return bad_value(opt, arg, hint, diag);
}

static int set_pids(const struct opt *opt, const char *arg, struct opt_pids *dst, struct diag *diag)
{
	pid_t pid;

	if (parse_pid(arg, &pid) < 0)
		return bad_value(opt, arg, "a process id is a positive number", diag);
	for (size_t i = 0; i < dst->n; i++)
		if (dst->pid[i] == pid)
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "name each process once",
					"--%s: %d is given twice", opt->name, pid);
	if (dst->n == OPT_PIDS_MAX)
		return diag_set(diag, -E2BIG, PYP_EXIT_USAGE, "attach the others with pyprofctl",
				"--%s: more than %d processes", opt->name, OPT_PIDS_MAX);
	dst->pid[dst->n++] = pid;
	return 0;
}

static int set_pid(const struct opt *opt, const char *arg, pid_t *dst, struct diag *diag)
{
	if (parse_pid(arg, dst) < 0)
		return bad_value(opt, arg, "a process id is a positive number", diag);
	return 0;
}

static int set_string(const struct opt *opt, const char *arg, const char **dst, struct diag *diag)
{
	if (!*arg)
		return bad_value(opt, arg, "it must not be empty", diag);
	*dst = arg;
	return 0;
}

static int set_duration(const struct opt *opt, const char *arg, uint64_t *dst, struct diag *diag)
{
	if (parse_duration(arg, dst) < 0)
		return bad_value(opt, arg, "give seconds or e.g. 1.5, 250ms, 2m, 1h", diag);
	return 0;
}

static int set_value(const struct opt *opt, void *dst, const char *arg, struct diag *diag)
{
	void *p = (char *)dst + opt->offset;

	switch (opt->type) {
	case OPT_FLAG:
		*(bool *)p = true;
		return 0;
	case OPT_STRING:
		return set_string(opt, arg, p, diag);
	case OPT_U64:
	case OPT_SIZE:
		return set_number(opt, arg, p, diag);
	case OPT_PID:
		return set_pid(opt, arg, p, diag);
	case OPT_DURATION:
		return set_duration(opt, arg, p, diag);
	case OPT_CHOICE:
		return set_choice(opt, arg, p, diag);
	case OPT_PIDS:
		return set_pids(opt, arg, p, diag);
	}
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "--%s: no such type", opt->name);
}

static int bad_option(int c, char *const *argv, int index, struct diag *diag)
{
	const char *word = argv[index];
	char name[3] = {'-', (char)optopt, '\0'};

	/* a short option is in optopt (optind may not have moved); a long one is the word */
	if (optopt > 0 && optopt < LONG_BASE)
		word = name;
	if (c == ':')
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, HELP_HINT,
				"option '%s' needs a value", word);
	if (optopt >= LONG_BASE)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, HELP_HINT,
				"option '%s' takes no value", word);
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, HELP_HINT, "unknown option '%s'", word);
}

int opts_parse(const struct opt_group *groups, int argc, char **argv, enum opts_mode mode, int *ret,
	       bool *ret_dashes, struct diag *diag)
{
	struct tables t;
	int c, i, r;

	tables_init(&t, groups, mode);
	opterr = 0;
	optind = 0; /* glibc: start anew, also after a scan that ended half-way */
	while ((c = getopt_long(argc, argv, t.shorts, t.longs, NULL)) != -1) {
		i = tables_find(&t, c);
		if (i < 0)
			return bad_option(c, argv, optind > 1 ? optind - 1 : 1, diag);
		r = set_value(t.opt[i], t.dst[i], optarg, diag);
		if (r < 0)
			return r;
	}
	if (ret_dashes)
		*ret_dashes = optind > 1 && strcmp(argv[optind - 1], "--") == 0;
	*ret = optind;
	return 0;
}

static int print_names(const struct opt *o, FILE *out)
{
	char left[80], shorts[5] = "    ";

	if (o->short_name)
		snprintf(shorts, sizeof(shorts), "-%c, ", o->short_name);
	snprintf(left, sizeof(left), "%s--%s%s%s", shorts, o->name, o->arg ? " " : "",
		 o->arg ? o->arg : "");
	return fprintf(out, "  %-*s", HELP_COLUMN, left);
}

/* Help texts are wrapped by hand: '\n' starts a new line in the right column. */
void opts_print(const struct opt *opts, FILE *out)
{
	for (const struct opt *o = opts; o->name; o++) {
		if (print_names(o, out) > HELP_COLUMN + 2)
			fprintf(out, "\n%*s", HELP_COLUMN + 2, "");
		for (const char *p = o->help; *p; p++) {
			putc(*p, out);
			if (*p == '\n')
				fprintf(out, "%*s", HELP_COLUMN + 2, "");
		}
		putc('\n', out);
	}
}

/* Edit distance (insert, delete, replace); words are shorter than WORD_MAX. */
static size_t distance(const char *a, const char *b)
{
	size_t row[WORD_MAX + 1], na = strlen(a), nb = strlen(b);

	for (size_t j = 0; j <= nb; j++)
		row[j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t replace = diagonal + (a[i - 1] != b[j - 1]);
			size_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = replace < other ? replace : other;
		}
	}
	return row[nb];
}

const char *opts_closest(const char *word, const char *const *candidates)
{
	const char *best = NULL;
	size_t best_d = 3;

	if (strlen(word) > WORD_MAX)
		return NULL;
	for (; *candidates; candidates++) {
		size_t d = strlen(*candidates) <= WORD_MAX ? distance(word, *candidates) : best_d;

		if (d < best_d && d < strlen(word)) {
			best = *candidates;
			best_d = d;
		}
	}
	return best;
}
