// SPDX-License-Identifier: BSD-2-Clause
/* Selecting intervals by label: see where.h. */
#include "history/where.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Patterns come from clients: limits on what one comparison may take. */
#define MATCH_LIMIT 100000
#define HEAP_KIB    1024

struct condition {
	char label[INTERVAL_LABEL_NAME_MAX + 1];
	pcre2_code *pattern;
};

struct where {
	struct condition v[WHERE_MAX];
	size_t n;
	pcre2_match_data *data;
	pcre2_match_context *limits;
};

void where_free(struct where *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++)
		pcre2_code_free(w->v[i].pattern);
	pcre2_match_data_free(w->data);
	pcre2_match_context_free(w->limits);
	free(w);
}

static int bad_condition(const char *text, const char *hint, struct diag *diag)
{
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint, "invalid condition '%.100s'", text);
}

static int add(struct where *w, const char *text, struct diag *diag)
{
	const char *equals = strchr(text, '=');
	size_t n = equals ? (size_t)(equals - text) : 0;
	struct condition *c = &w->v[w->n];
	char why[96] = "";
	PCRE2_SIZE at;
	int err;

	if (!n || n >= sizeof(c->label))
		return bad_condition(text, "expected LABEL=REGEX, e.g. service=^web", diag);
	memcpy(c->label, text, n);
	c->pattern = pcre2_compile((PCRE2_SPTR)equals + 1, PCRE2_ZERO_TERMINATED,
				   PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &err, &at, NULL);
	if (!c->pattern) {
		pcre2_get_error_message(err, (PCRE2_UCHAR *)why, sizeof(why));
		return bad_condition(text, why, diag);
	}
	w->n++;
	return 0;
}

static int set_limits(struct where *w)
{
	w->data = pcre2_match_data_create(1, NULL);
	w->limits = pcre2_match_context_create(NULL);
	if (!w->data || !w->limits)
		return -ENOMEM;
	pcre2_set_match_limit(w->limits, MATCH_LIMIT);
	pcre2_set_heap_limit(w->limits, HEAP_KIB);
	return 0;
}

int where_new(const char *const *text, size_t n, struct where **ret, struct diag *diag)
{
	_cleanup_(where_freep) struct where *w = calloc(1, sizeof(*w));
	int r = 0;

	if (!w || set_limits(w) < 0)
		return diag_errno(diag, ENOMEM, "cannot compile the conditions");
	if (n > WHERE_MAX)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "more than %d conditions",
				WHERE_MAX);
	for (size_t i = 0; i < n && r == 0; i++)
		r = add(w, text[i], diag);
	if (r == 0)
		*ret = TAKE_PTR(w);
	return r;
}

static const char *value_of(const struct interval_label *labels, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(labels[i].name, name) == 0)
			return labels[i].value;
	return "";
}

bool where_matches(const struct where *w, const struct interval_label *labels, uint32_t n)
{
	for (size_t i = 0; w && i < w->n; i++) {
		const char *value = value_of(labels, n, w->v[i].label);

		if (pcre2_match(w->v[i].pattern, (PCRE2_SPTR)value, PCRE2_ZERO_TERMINATED, 0, 0,
				w->data, w->limits) < 0)
			return false;
	}
	return true;
}
