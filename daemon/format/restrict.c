// SPDX-License-Identifier: BSD-2-Clause
/* pstats' restrictions: see restrict.h. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "format/restrict.h"

#include <errno.h>
#include <inttypes.h>
#include <pcre2.h>
#include <string.h>
#include <time.h>

#include "format/names.h"

/* Limits: backtracking steps per name, memory in KiB per name, time per table. */
#define MATCH_STEPS    200000u
#define MATCH_HEAP_KIB 8192u
#define MATCH_SECONDS  2.0

enum restriction_kind { RESTRICT_ROWS, RESTRICT_SHARE, RESTRICT_PATTERN };

struct restriction {
	enum restriction_kind kind;
	int64_t rows;
	double share;
	const char *text; /* points into restrictions.text */
	pcre2_code *code;
};

struct restrictions {
	struct restriction list[RESTRICT_MAX];
	size_t n;
	char *text[RESTRICT_MAX];
	pcre2_match_context *limits;
	pcre2_match_data *match;
};

/* Skips digits with single underscores between them, as in Python. Returns the rest. */
static const char *skip_digits(const char *p)
{
	while (*p >= '0' && *p <= '9') {
		p++;
		if (p[0] == '_' && p[1] >= '0' && p[1] <= '9')
			p++;
	}
	return p;
}

static const char *skip_sign(const char *p)
{
	return *p == '+' || *p == '-' ? p + 1 : p;
}

/* The same rule as int(), without surrounding spaces and non-ASCII digits. */
static bool is_integer(const char *s)
{
	const char *digits = skip_sign(s), *end = skip_digits(digits);

	return end > digits && !*end;
}

/*
 * The same rule as float(), except that "inf" and "nan" are patterns, since functions may have
 * these names.
 */
static bool is_float(const char *s)
{
	const char *p = skip_sign(s), *end = skip_digits(p);
	bool digits = end > p;

	if (*end == '.') {
		p = end + 1;
		end = skip_digits(p);
		digits = digits || end > p;
	}
	if (digits && (*end == 'e' || *end == 'E')) {
		p = skip_sign(end + 1);
		end = skip_digits(p);
		digits = end > p;
	}
	return digits && !*end;
}

bool restriction_is_pattern(const char *s)
{
	return !is_integer(s) && !is_float(s);
}

/*
 * Copies a number without underscores. If it does not fit, it is cut, and the caller detects that.
 */
static const char *plain_number(const char *s, char *out, size_t size)
{
	size_t n = 0;

	for (; *s && n + 1 < size; s++)
		if (*s != '_')
			out[n++] = *s;
	out[n] = '\0';
	return out;
}

static int parse_rows(struct restriction *r, const char *s, struct diag *diag)
{
	char buf[64], *end;

	errno = 0;
	r->kind = RESTRICT_ROWS;
	r->rows = strtoll(plain_number(s, buf, sizeof(buf)), &end, 10);
	if (errno || strlen(s) >= sizeof(buf))
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "give a smaller number",
				"restriction '%.40s' is out of range", s);
	return 0;
}

static int parse_share(struct restriction *r, const char *s, struct diag *diag)
{
	char buf[64];

	r->kind = RESTRICT_SHARE;
	r->share = strtod(plain_number(s, buf, sizeof(buf)), NULL);
	if (strlen(s) >= sizeof(buf) || r->share < 0 || r->share > 1)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"a number of rows has no decimal point",
				"restriction '%.40s' is not a share between 0 and 1", s);
	return 0;
}

static int parse_pattern(struct restriction *r, const char *s, struct diag *diag)
{
	/*
	 * The options of Python's re for str. \C (one code unit) is disabled, because it could
	 * split a character.
	 */
	const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C |
				 PCRE2_MATCH_INVALID_UTF;
	PCRE2_UCHAR why[128];
	PCRE2_SIZE at;
	int err;

	r->kind = RESTRICT_PATTERN;
	if (strlen(s) > RESTRICT_MAX_PATTERN)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "give a shorter one",
				"a pattern is longer than %d bytes", RESTRICT_MAX_PATTERN);
	r->code = pcre2_compile((PCRE2_SPTR)s, PCRE2_ZERO_TERMINATED, options, &err, &at, NULL);
	if (r->code)
		return 0;
	pcre2_get_error_message(err, why, sizeof(why));
	return diag_set(
		diag, -EINVAL, PYP_EXIT_USAGE,
		"patterns are regular expressions; put \\ before . ( [ * + ? to mean the character",
		"invalid pattern '%.200s' at character %zu: %s", s, (size_t)at + 1, (char *)why);
}

static int parse_one(struct restriction *r, const char *s, struct diag *diag)
{
	r->text = s;
	if (is_integer(s))
		return parse_rows(r, s, diag);
	if (is_float(s))
		return parse_share(r, s, diag);
	return parse_pattern(r, s, diag);
}

static struct restrictions *restrictions_new(void)
{
	struct restrictions *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->limits = pcre2_match_context_create(NULL);
	r->match = pcre2_match_data_create(1, NULL);
	if (!r->limits || !r->match) {
		restrictions_free(r);
		return NULL;
	}
	pcre2_set_match_limit(r->limits, MATCH_STEPS);
	pcre2_set_heap_limit(r->limits, MATCH_HEAP_KIB);
	return r;
}

int restrictions_parse(const char *const *list, size_t n, struct restrictions **ret,
		       struct diag *diag)
{
	_cleanup_(restrictions_freep) struct restrictions *r = restrictions_new();

	if (!r)
		return -ENOMEM;
	if (n > RESTRICT_MAX)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "give fewer of them",
				"more than %d restrictions", RESTRICT_MAX);
	for (; r->n < n; r->n++) {
		int err;

		r->text[r->n] = strdup(list[r->n]);
		if (!r->text[r->n])
			return -ENOMEM;
		err = parse_one(&r->list[r->n], r->text[r->n], diag);
		if (err < 0) {
			free(r->text[r->n]);
			r->text[r->n] = NULL;
			return err;
		}
	}
	*ret = TAKE_PTR(r);
	return 0;
}

void restrictions_free(struct restrictions *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++) {
		pcre2_code_free(r->list[i].code);
		free(r->text[i]);
	}
	pcre2_match_context_free(r->limits);
	pcre2_match_data_free(r->match);
	free(r);
}

static double cpu_seconds(void)
{
	struct timespec ts = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int too_slow(const struct restriction *r, struct diag *diag)
{
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "nest fewer * and + in it",
			"pattern '%.200s' takes too long", r->text);
}

/* Returns 1 if the pattern matches, 0 if not, or a negative errno. */
static int match(const struct restrictions *all, const struct restriction *r, const char *name,
		 struct diag *diag)
{
	int rc = pcre2_match(r->code, (PCRE2_SPTR)name, PCRE2_ZERO_TERMINATED, 0, 0, all->match,
			     all->limits);

	if (rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_HEAPLIMIT ||
	    rc == PCRE2_ERROR_DEPTHLIMIT)
		return too_slow(r, diag);
	if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "try a simpler pattern",
				"pattern '%.200s' failed (%d)", r->text, rc);
	return rc >= 0;
}

static int keep_matching(const struct restrictions *all, const struct restriction *r,
			 const struct table *t, uint32_t *order, size_t *n, struct diag *diag)
{
	double deadline = cpu_seconds() + MATCH_SECONDS;
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++) {
		int matches = match(all, r, t->rows[order[i]].std, diag);

		if (matches < 0)
			return matches;
		if (matches)
			order[kept++] = order[i];
		if (i % 256 == 255 && cpu_seconds() > deadline)
			return too_slow(r, diag);
	}
	*n = kept;
	return 0;
}

int restrict_names(const char *pattern, char *const *names, size_t n, bool *matches,
		   struct diag *diag)
{
	_cleanup_(restrictions_freep) struct restrictions *all = restrictions_new();
	double deadline = cpu_seconds() + MATCH_SECONDS;
	struct restriction *r;
	int err;

	if (!all)
		return -ENOMEM;
	r = &all->list[0];
	r->text = pattern;
	err = parse_pattern(r, pattern, diag);
	all->n = 1;
	for (size_t i = 0; i < n && err >= 0; i++) {
		err = names[i] ? match(all, r, names[i], diag) : 0;
		matches[i] = err > 0;
		if (i % 256 == 255 && cpu_seconds() > deadline)
			err = too_slow(r, diag);
	}
	return err < 0 ? err : 0;
}

/* Prints a number like Python: the fewest digits that read back as the same value. */
static void print_share(FILE *out, double share)
{
	char buf[40];

	for (int digits = 1; digits <= 17; digits++) {
		snprintf(buf, sizeof(buf), "%.*g", digits, share);
		if (strtod(buf, NULL) == share)
			break;
	}
	fprintf(out, "%s%s", buf, strpbrk(buf, ".e") ? "" : ".0");
}

static void print_note(const struct restriction *r, size_t before, size_t after, FILE *notes)
{
	fprintf(notes, "   List reduced from %zu to %zu due to restriction <", before, after);
	if (r->kind == RESTRICT_ROWS)
		fprintf(notes, "%" PRId64, r->rows);
	else if (r->kind == RESTRICT_SHARE)
		print_share(notes, r->share);
	else
		name_print_repr(notes, r->text);
	fputs(">\n", notes);
}

int restrictions_apply(const struct restrictions *all, const struct table *t, uint32_t *order,
		       size_t *n, FILE *notes, struct diag *diag)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct restriction *r = &all->list[i];
		size_t before = *n;
		int err = 0;

		/*
		 * As in pstats, a share of exactly 1 and a negative number of rows keep everything.
		 */
		if (r->kind == RESTRICT_PATTERN)
			err = keep_matching(all, r, t, order, n, diag);
		else if (r->kind == RESTRICT_ROWS && r->rows >= 0 && (uint64_t)r->rows < before)
			*n = (size_t)r->rows;
		else if (r->kind == RESTRICT_SHARE && r->share < 1)
			*n = (size_t)((double)before * r->share + .5);
		if (err < 0)
			return err;
		if (*n != before)
			print_note(r, before, *n, notes);
	}
	return 0;
}
