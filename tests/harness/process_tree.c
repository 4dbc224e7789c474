// SPDX-License-Identifier: BSD-2-Clause
/* A process and its descendants: see process_tree.h. */
#include "harness/process_tree.h"

#include "harness/test.h"

void process_tree_start(struct process_tree *f, const char *exe)
{
	fprintf(stderr, "with %s\n", exe);
	*f = (struct process_tree){0};
	traced_start(&f->t, exe, "process_tree.py", NULL);
	traced_expect(&f->t, "ready");
	f->members[0] = f->t.pid;
	f->t.follow = true;
}

void process_tree_finish(struct process_tree *f)
{
	traced_say(&f->t, "stop");
	traced_finish(&f->t);
}

void process_tree_everywhere(void (*test)(const char *exe))
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++)
		test(v[i].exe);
	check_no_leaks();
}

void process_tree_ask(struct process_tree *f, const char *order, unsigned int a, unsigned int b,
		      const char *answer)
{
	char line[64];

	snprintf(line, sizeof(line), "%s %u %u", order, a, b);
	traced_say(&f->t, line);
	traced_expect(&f->t, answer);
}

void process_tree_fork(struct process_tree *f, unsigned int by, unsigned int n)
{
	char line[64];

	snprintf(line, sizeof(line), "fork %u %u", by, n);
	traced_say(&f->t, line);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int number;
		int pid;

		cr_assert(sscanf(traced_answer(&f->t, "child"), "%u %d", &number, &pid) == 2);
		cr_assert(number < PROCESS_TREE_MAX);
		f->members[number] = pid;
	}
	traced_expect(&f->t, "forked");
}

struct session_status process_tree_status(const struct process_tree *f, pid_t pid)
{
	struct session_status st;

	if (sessions_status_pid(f->t.sessions, pid, &st, NULL) < 0)
		return (struct session_status){.pid = 0};
	return st;
}

struct wanted {
	const struct process_tree *f;
	unsigned int first, last; /* numbers of processes */
	enum session_state state;
};

static bool are_so(struct traced *t, void *ctx)
{
	const struct wanted *w = ctx;

	(void)t;
	for (unsigned int i = w->first; i <= w->last; i++) {
		struct session_status st = process_tree_status(w->f, w->f->members[i]);

		if (!st.pid || st.state != w->state)
			return false;
	}
	return true;
}

void process_tree_traced(struct process_tree *f, unsigned int first, unsigned int last)
{
	struct wanted w = {f, first, last, SESSION_TRACING};

	traced_until(&f->t, are_so, &w, "children that are traced");
}

void process_tree_ended(struct process_tree *f, unsigned int first, unsigned int last)
{
	struct wanted w = {f, first, last, SESSION_ENDED};

	traced_until(&f->t, are_so, &w, "children that have ended");
}
