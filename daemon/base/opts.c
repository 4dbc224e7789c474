// SPDX-License-Identifier: BSD-2-Clause
/* Typed command line options: see opts.h. */
#include "base/opts.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/counters.h"
#include "base/parse.h"

#define HELP_HINT   "see --help"
#define HELP_COLUMN 26
#define WORD_MAX    32

/* getopt's values of long options start here, above the characters of short options. */
#define LONG_BASE 0x1000

struct tables {
	struct option longs[OPTS_MAX + 1];
	char shorts[2 + 2 * OPTS_MAX + 1];
	const struct opt *opt[OPTS_MAX];
	const struct opt_group *group[OPTS_MAX];
	size_t n, nshort;
};

static bool is_flag(const struct opt *opt)
{
	return opt->type == OPT_FLAG || opt->type == OPT_OFF;
}

static bool is_size(const struct opt *opt)
{
	return opt->type == OPT_SIZE || opt->type == OPT_POW2;
}

static void tables_add(struct tables *t, const struct opt *opt, const struct opt_group *group)
{
	bool has_arg = !is_flag(opt);

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
	t->group[t->n] = group;
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
			tables_add(t, o, groups);
}

/* Index of the option that belongs to getopt's return value, or -1 */
static int tables_find(const struct tables *t, int c)
{
	for (size_t i = 0; i < t->n; i++)
		if (c == LONG_BASE + (int)i ||
		    (t->opt[i]->short_name && c == t->opt[i]->short_name))
			return (int)i;
	return -1;
}

/* A value to set, and the option's name in error messages */
struct value {
	const struct opt *opt;
	const char *name, *text;
	struct diag *diag;
};

static int bad_value(const struct value *v, const char *hint)
{
	return diag_set(v->diag, -EINVAL, PYP_EXIT_USAGE, hint, "%s: invalid value '%s'", v->name,
			v->text);
}

/* "64K to 1G" */
#define RANGE_MAX 64
static const char *range_text(const struct opt *opt, char buf[RANGE_MAX])
{
	uint64_t limit[2] = {opt->min, opt->max ? opt->max : UINT64_MAX};
	size_t unit[2] = {0};

	for (size_t i = 0; i < 2; i++)
		for (; is_size(opt) && unit[i] < 3 && limit[i] && limit[i] % 1024 == 0; unit[i]++)
			limit[i] /= 1024;
	snprintf(buf, RANGE_MAX, "%llu%.1s to %llu%.1s", (unsigned long long)limit[0],
		 &"\0KMG"[unit[0]], (unsigned long long)limit[1], &"\0KMG"[unit[1]]);
	return buf;
}

static int out_of_range(const struct value *v)
{
	char range[RANGE_MAX], hint[RANGE_MAX + 16];

	snprintf(hint, sizeof(hint), "expected %s", range_text(v->opt, range));
	return diag_set(v->diag, -ERANGE, PYP_EXIT_USAGE, hint, "%s: '%s' is out of range", v->name,
			v->text);
}

static int set_number(const struct value *v, uint64_t *dst)
{
	const struct opt *opt = v->opt;
	uint64_t n, max = opt->max ? opt->max : UINT64_MAX;
	int r;

	r = is_size(opt) ? parse_size(v->text, &n) : parse_u64(v->text, 0, UINT64_MAX, &n);
	if (r == -ERANGE || (r == 0 && (n < opt->min || n > max)))
		return out_of_range(v);
	if (r < 0)
		return bad_value(v, is_size(opt) ? "expected bytes, or a number with K, M or G"
						 : "expected a whole number");
	while (opt->type == OPT_POW2 && n & (n - 1))
		n += n & -n;
	*dst = n;
	return 0;
}

static int set_u32(const struct value *v, uint32_t *dst)
{
	uint64_t n = 0;
	int r = set_number(v, &n);

	if (r < 0)
		return r;
	if (n > UINT32_MAX)
		return out_of_range(v);
	*dst = (uint32_t)n;
	return 0;
}

static int set_choice(const struct value *v, int *dst)
{
	char hint[128] = "expected one of:";
	size_t n = strlen(hint);

	for (int i = 0; v->opt->choices[i]; i++) {
		const char *choice = v->opt->choices[i];

		if (!*choice)
			continue;
		if (strcmp(v->text, choice) == 0) {
			*dst = i;
			return 0;
		}
		n += (size_t)snprintf(hint + n, sizeof(hint) - n, " %s", choice);
		if (n >= sizeof(hint))
			break;
	}
	return bad_value(v, hint);
}

static int set_pids(const struct value *v, struct opt_pids *dst)
{
	pid_t pid;

	if (parse_pid(v->text, &pid) < 0)
		return bad_value(v, "expected a process id");
	for (size_t i = 0; i < dst->n; i++)
		if (dst->pid[i] == pid)
			return diag_set(v->diag, -EINVAL, PYP_EXIT_USAGE, "list each process once",
					"%s: %d is given twice", v->name, pid);
	if (dst->n == OPT_PIDS_MAX)
		return diag_set(v->diag, -E2BIG, PYP_EXIT_USAGE, "attach the others with pyprofctl",
				"%s: more than %d processes", v->name, OPT_PIDS_MAX);
	dst->pid[dst->n++] = pid;
	return 0;
}

static int set_words(const struct value *v, struct opt_words *dst)
{
	if (!*v->text)
		return bad_value(v, "expected a non-empty value");
	if (dst->n == OPT_WORDS_MAX)
		return diag_set(v->diag, -E2BIG, PYP_EXIT_USAGE, "use several commands",
				"%s: given more than %d times", v->name, OPT_WORDS_MAX);
	dst->v[dst->n++] = (char *)v->text;
	return 0;
}

static int set_pid(const struct value *v, pid_t *dst)
{
	return parse_pid(v->text, dst) < 0 ? bad_value(v, "expected a process id") : 0;
}

static int set_string(const struct value *v, const char **dst)
{
	if (!*v->text)
		return bad_value(v, "expected a non-empty value");
	*dst = v->text;
	return 0;
}

static int set_duration(const struct value *v, uint64_t *dst)
{
	return parse_duration(v->text, dst) < 0
		       ? bad_value(v, "expected seconds, or e.g. 1.5, 250ms, 2m, 1h")
		       : 0;
}

static int set_flag(const struct value *v, bool *dst)
{
	if (!v->text)
		*dst = v->opt->type == OPT_FLAG;
	else if (strcmp(v->text, "true") == 0 || strcmp(v->text, "1") == 0)
		*dst = true;
	else if (strcmp(v->text, "false") == 0 || strcmp(v->text, "0") == 0)
		*dst = false;
	else
		return bad_value(v, "expected true or false");
	return 0;
}

int opt_set(const struct opt *opt, const char *name, const char *text, void *dst, struct diag *diag)
{
	const struct value v = {opt, name, text, diag};
	void *p = (char *)dst + opt->offset;

	switch (opt->type) {
	case OPT_FLAG:
	case OPT_OFF:
		return set_flag(&v, p);
	case OPT_STRING:
		return set_string(&v, p);
	case OPT_U64:
	case OPT_SIZE:
	case OPT_POW2:
		return set_number(&v, p);
	case OPT_U32:
		return set_u32(&v, p);
	case OPT_PID:
		return set_pid(&v, p);
	case OPT_DURATION:
		return set_duration(&v, p);
	case OPT_CHOICE:
		return set_choice(&v, p);
	case OPT_COUNTERS:
		return counters_parse(text, p, diag);
	case OPT_PIDS:
		return set_pids(&v, p);
	case OPT_WORDS:
		return set_words(&v, p);
	}
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "%s: unknown option type", name);
}

static int set_given(const struct opt *opt, const struct opt_group *group, const char *text,
		     struct diag *diag)
{
	char name[WORD_MAX + 3];
	int r;

	snprintf(name, sizeof(name), "--%s", opt->name);
	r = opt_set(opt, name, text, group->dst, diag);
	if (r == 0 && group->given)
		*group->given |= UINT64_C(1) << (opt - group->opts);
	return r;
}

const char *opt_text(const struct opt *opt, const void *src, char buf[OPT_TEXT_MAX])
{
	const void *p = (const char *)src + opt->offset;

	switch (opt->type) {
	case OPT_FLAG:
	case OPT_OFF:
		return *(const bool *)p ? "true" : "false";
	case OPT_STRING:
		return *(const char *const *)p;
	case OPT_CHOICE:
		return opt->choices[*(const int *)p];
	case OPT_COUNTERS:
		return counters_list(*(const uint32_t *)p, buf, OPT_TEXT_MAX);
	case OPT_U32:
		snprintf(buf, OPT_TEXT_MAX, "%u", *(const uint32_t *)p);
		return buf;
	case OPT_U64:
	case OPT_SIZE:
	case OPT_POW2:
		snprintf(buf, OPT_TEXT_MAX, "%llu", (unsigned long long)*(const uint64_t *)p);
		return buf;
	default:
		return NULL;
	}
}

static int bad_option(int c, char *const *argv, int index, struct diag *diag)
{
	const char *word = argv[index];
	char name[3] = {'-', (char)optopt, '\0'};

	/* getopt sets optopt for a short option (optind may not have moved); a long one is the
	 * whole word */
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
	optind = 0; /* glibc: restart, even after an incomplete scan */
	while ((c = getopt_long(argc, argv, t.shorts, t.longs, NULL)) != -1) {
		i = tables_find(&t, c);
		if (i < 0)
			return bad_option(c, argv, optind > 1 ? optind - 1 : 1, diag);
		r = set_given(t.opt[i], t.group[i], is_flag(t.opt[i]) ? NULL : optarg, diag);
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

/* A line of its own: "64K to 1G; default: 16M" */
static void print_range(const struct opt *o, bool initial, FILE *out)
{
	char range[RANGE_MAX];

	initial = initial && o->initial && !is_flag(o);
	if (!o->key || (!o->max && !initial))
		return;
	fprintf(out, "%*s%s", HELP_COLUMN + 2, "", o->max ? range_text(o, range) : "");
	if (initial)
		fprintf(out, "%sdefault: %s", o->max ? "; " : "", o->initial);
	putc('\n', out);
}

/* Help texts contain their line breaks: '\n' starts a new line in the right column. */
void opts_print(const struct opt *opts, bool initial, FILE *out)
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
		print_range(o, initial, out);
	}
}

/* Edit distance (insert, delete, replace). Words are shorter than WORD_MAX. */
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
