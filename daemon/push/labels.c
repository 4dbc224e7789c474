// SPDX-License-Identifier: BSD-2-Clause
/* The labels of an interval that is made of a snapshot: see labels.h. */
#include "push/labels.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define BLANKS " \t\n"

/* The next word; false: there is none. */
static bool next_word(const char **p, const char **ret, size_t *ret_n)
{
	*p += strspn(*p, BLANKS);
	*ret = *p;
	*ret_n = strcspn(*p, BLANKS);
	*p += *ret_n;
	return *ret_n > 0;
}

static const char *base_name(const char *word, size_t *n)
{
	const char *slash = memrchr(word, '/', *n);

	if (!slash || slash + 1 == word + *n)
		return word;
	*n -= (size_t)(slash + 1 - word);
	return slash + 1;
}

static const char *copy(const char *word, size_t n, char out[PUSH_SERVICE_MAX])
{
	word = base_name(word, &n);
	if (n > 3 && memcmp(word + n - 3, ".py", 3) == 0)
		n -= 3;
	snprintf(out, PUSH_SERVICE_MAX, "%.*s", (int)(n < PUSH_SERVICE_MAX ? n : PUSH_SERVICE_MAX),
		 word);
	return out;
}

static bool is_python(const char *word, size_t n)
{
	word = base_name(word, &n);
	return n >= 6 && memcmp(word, "python", 6) == 0;
}

/* An option of python whose value is the next word */
static bool has_value(const char *word, size_t n)
{
	return n == 2 && strchr("WX", word[1]);
}

const char *push_service_of(const char *cmdline, char out[PUSH_SERVICE_MAX])
{
	const char *p = cmdline ? cmdline : "", *word, *first;
	size_t n, nfirst;

	if (!next_word(&p, &first, &nfirst))
		return copy("python", 6, out);
	if (!is_python(first, nfirst))
		return copy(first, nfirst, out);
	while (next_word(&p, &word, &n)) {
		if (word[0] != '-')
			return copy(word, n, out);
		if (n == 2 && word[1] == 'm' && next_word(&p, &word, &n))
			return copy(word, n, out);
		if (n == 2 && word[1] == 'c')
			break;
		if (has_value(word, n))
			(void)next_word(&p, &word, &n);
	}
	return copy(first, nfirst, out);
}

int push_set_labels(struct interval *iv, const char *service)
{
	const struct snapshot *s = iv->snapshot;
	const struct snapshot_target *t = s->ntargets ? &s->targets[0] : NULL;
	char name[PUSH_SERVICE_MAX], pid[16];

	if (!t)
		return 0;
	snprintf(pid, sizeof(pid), "%" PRIu32, t->pid);
	if (interval_set_label(iv, INTERVAL_HOST, s->host) < 0 ||
	    interval_set_label(iv, INTERVAL_SERVICE,
			       service ? service : push_service_of(t->cmdline, name)) < 0 ||
	    interval_set_label(iv, INTERVAL_PID, t->pid ? pid : NULL) < 0 ||
	    interval_set_label(iv, INTERVAL_PYTHON, t->python_version) < 0)
		return -ENOMEM;
	return 0;
}
