// SPDX-License-Identifier: BSD-2-Clause
/* A process and its descendants: see family.h. */
#include "harness/family.h"

#include "harness/test.h"

void family_start(struct family *f, const char *exe)
{
	fprintf(stderr, "with %s\n", exe);
	*f = (struct family){0};
	traced_start(&f->t, exe, "family.py", NULL);
	traced_expect(&f->t, "ready");
	f->members[0] = f->t.pid;
	f->t.follow = true;
}

void family_finish(struct family *f)
{
	traced_say(&f->t, "stop");
	traced_finish(&f->t);
}

void family_everywhere(void (*test)(const char *exe))
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v);

	for (size_t i = 0; i < n; i++)
		test(v[i].exe);
	check_no_leaks();
}

void family_ask(struct family *f, const char *order, unsigned int a, unsigned int b,
		const char *answer)
{
	char line[64];

	snprintf(line, sizeof(line), "%s %u %u", order, a, b);
	traced_say(&f->t, line);
	traced_expect(&f->t, answer);
}

void family_fork(struct family *f, unsigned int by, unsigned int n)
{
	char line[64];

	snprintf(line, sizeof(line), "fork %u %u", by, n);
	traced_say(&f->t, line);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int number;
		int pid;

		cr_assert(sscanf(traced_answer(&f->t, "child"), "%u %d", &number, &pid) == 2);
		cr_assert(number < FAMILY_MAX);
		f->members[number] = pid;
	}
	traced_expect(&f->t, "forked");
}

struct session_status family_status(const struct family *f, pid_t pid)
{
	struct session_status st;

	if (sessions_status_pid(f->t.sessions, pid, &st, NULL) < 0)
		return (struct session_status){.pid = 0};
	return st;
}

struct wanted {
	const struct family *f;
	unsigned int first, last; /* numbers of processes */
	enum session_state state;
};

static bool are_so(struct traced *t, void *ctx)
{
	const struct wanted *w = ctx;

	(void)t;
	for (unsigned int i = w->first; i <= w->last; i++) {
		struct session_status st = family_status(w->f, w->f->members[i]);

		if (!st.pid || st.state != w->state)
			return false;
	}
	return true;
}

void family_traced(struct family *f, unsigned int first, unsigned int last)
{
	struct wanted w = {f, first, last, SESSION_TRACING};

	traced_until(&f->t, are_so, &w, "children that are traced");
}

void family_ended(struct family *f, unsigned int first, unsigned int last)
{
	struct wanted w = {f, first, last, SESSION_ENDED};

	traced_until(&f->t, are_so, &w, "children that have ended");
}
