// SPDX-License-Identifier: BSD-2-Clause
/* Child processes of a target that is being attached: see workers.h. */
#include "session/workers.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "target/target.h"

/* With less CPU time than this in the span, nobody was busy: then the times since their starts count. */
#define BUSY_NS 5000000ull
/* A process that uses less than this part of its children's CPU time leaves the work to them. */
#define MASTER_PART 10

/* Returns the process's CPU time; 0 if it has ended. Needs no permission. */
static uint64_t cpu_of(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static int program_of(pid_t pid, struct target_file *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return target_file_of(path, ret);
}

/* Adds the children of one process that run this program. */
static void add_children(struct workers *w, pid_t pid, const struct target_file *program)
{
	pid_t children[WORKERS_MAX];
	size_t n = target_children(pid, children, WORKERS_MAX);

	w->more |= n == WORKERS_MAX;
	for (size_t i = 0; i < n; i++) {
		struct target_file file;

		if (program_of(children[i], &file) < 0 || !target_file_equal(&file, program))
			continue;
		if (w->n == WORKERS_MAX) {
			w->more = true;
			return;
		}
		w->v[w->n++] = (struct worker){children[i], cpu_of(children[i])};
	}
}

void workers_find(pid_t pid, struct workers *ret)
{
	struct target_file program;

	*ret = (struct workers){.since_ns = clock_monotonic_ns(), .own = {pid, cpu_of(pid)}};
	if (program_of(pid, &program) < 0)
		return;
	add_children(ret, pid, &program);
	/* the list grows meanwhile */
	for (size_t i = 0; i < ret->n; i++)
		add_children(ret, ret->v[i].pid, &program);
}

static uint64_t since(const struct worker *w, uint64_t *ever)
{
	uint64_t now = cpu_of(w->pid);

	*ever += now;
	return now > w->cpu_ns ? now - w->cpu_ns : 0;
}

struct workers_use workers_use(const struct workers *w)
{
	struct workers_use u = {.n = w->n, .more = w->more};

	u.span_ns = clock_monotonic_ns() - w->since_ns;
	u.own_ns = since(&w->own, &u.own_ever_ns);
	for (size_t i = 0; i < w->n; i++) {
		u.pid[i] = w->v[i].pid;
		u.theirs_ns += since(&w->v[i], &u.theirs_ever_ns);
	}
	return u;
}

static int put_children(const struct workers_use *u, char out[WORKERS_TEXT])
{
	return snprintf(out, WORKERS_TEXT, "its %zu%s Python child process%s", u->n,
			u->more ? " or more" : "", u->n == 1 ? "" : "es");
}

/* Writes the text that follows "its 4 Python child processes". */
static void put_use(const struct workers_use *u, char *out, size_t size)
{
	const char *verb = u->n == 1 ? "uses" : "use", *are = u->n == 1 ? "is" : "are";

	if (u->own_ns + u->theirs_ns >= BUSY_NS && u->own_ns * MASTER_PART < u->theirs_ns)
		snprintf(out, size, " %s %.1f CPUs, and it hardly any", verb,
			 (double)u->theirs_ns / (double)u->span_ns);
	else if (u->own_ns + u->theirs_ns < BUSY_NS &&
		 u->own_ever_ns * MASTER_PART < u->theirs_ever_ns)
		snprintf(out, size, " did its work so far (%.1f of %.1f seconds of CPU time)",
			 (double)u->theirs_ever_ns / 1e9,
			 (double)(u->own_ever_ns + u->theirs_ever_ns) / 1e9);
	else
		snprintf(out, size, " %s not included", are);
}

const char *workers_text(const struct workers_use *u, char out[WORKERS_TEXT])
{
	size_t n;

	if (!u->n)
		return NULL;
	n = (size_t)put_children(u, out);
	put_use(u, out + n, WORKERS_TEXT - n);
	n = strlen(out);
	snprintf(out + n, WORKERS_TEXT - n, ": --follow-children includes %s",
		 u->n == 1 ? "it" : "them");
	return out;
}
