// SPDX-License-Identifier: BSD-2-Clause
/* Reads what a thread is doing: see doing.h. */
#include "dump/doing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/syscalls.h"
#include "base/wait.h"
#include "find/descriptor.h"
#include "target/proc.h"

#define TEXT_MAX 4096

int doing_parse(const char *text, struct doing_call *ret)
{
	struct doing_call c = {.nr = -1};
	char *end;

	if (strncmp(text, "running", 7) == 0) {
		c.running = true;
		*ret = c;
		return 0;
	}
	errno = 0;
	c.nr = strtol(text, &end, 10);
	if (end == text || errno)
		return -EINVAL;
	for (unsigned int i = 0; c.nr >= 0 && i < 2; i++) {
		const char *from = end;

		c.arg[i] = strtoull(from, &end, 16);
		if (end == from || errno)
			return -EINVAL;
	}
	*ret = c;
	return 0;
}

enum doing_kind doing_kind_of(const struct doing_call *c, const char *name,
			      const struct pyp_gil_range gils[PYP_GIL_RANGES])
{
	if (c->running || c->nr < 0)
		return c->running ? DOING_RUNNING : DOING_FAULT;
	if (strcmp(name, "nanosleep") == 0 || strcmp(name, "clock_nanosleep") == 0)
		return DOING_SLEEP;
	if (strcmp(name, "futex") != 0)
		return DOING_CALL;
	for (unsigned int i = 0; i < PYP_GIL_RANGES; i++)
		if (c->arg[0] - gils[i].start < gils[i].size)
			return DOING_GIL;
	return DOING_LOCK;
}

const char *doing_kind_name(enum doing_kind kind)
{
	static const char *const names[DOING_KINDS] = {
		[DOING_RUNNING] = "running", [DOING_FAULT] = "page-fault", [DOING_GIL] = "gil",
		[DOING_LOCK] = "lock",	     [DOING_SLEEP] = "sleep",	   [DOING_CALL] = "syscall",
	};

	return names[kind];
}

static void put_descriptor(const struct target *t, uint32_t fd, char *out, size_t size)
{
	char is[DESCRIPTOR_MAX];

	if (descriptor_describe(t->pid, fd, is, sizeof(is)))
		snprintf(out, size, " of descriptor %" PRIu32 " (%s)", fd, is);
	else
		snprintf(out, size, " of descriptor %" PRIu32, fd);
}

/* The first descriptor that poll() waits for. */
static void put_polled(const struct target *t, const struct doing_call *c, char *out, size_t size)
{
	struct memory mem = target_memory(t);
	uint32_t fd;
	size_t n;

	if (!c->arg[1] || memory_read_u32(&mem, c->arg[0], &fd) || fd > INT32_MAX)
		return;
	put_descriptor(t, fd, out, size);
	n = strlen(out);
	if (c->arg[1] > 1)
		snprintf(out + n, size - n, " and %" PRIu64 " more", c->arg[1] - 1);
}

static void describe_call(const struct target *t, const struct doing_call *c, const char *name,
			  bool gil_known, struct doing *d)
{
	size_t n;

	if (d->kind == DOING_GIL || d->kind == DOING_LOCK) {
		snprintf(d->text, sizeof(d->text), "%s (futex)",
			 d->kind == DOING_GIL ? "wait for the GIL"
			 : gil_known	      ? "wait for a lock"
					      : "wait for a lock or the GIL");
		return;
	}
	n = (size_t)snprintf(d->text, sizeof(d->text), "%s", name);
	if (wait_takes_fd(c->nr))
		put_descriptor(t, (uint32_t)c->arg[0], d->text + n, sizeof(d->text) - n);
	else if (strcmp(name, "poll") == 0 || strcmp(name, "ppoll") == 0)
		put_polled(t, c, d->text + n, sizeof(d->text) - n);
}

void doing_read(const struct target *t, pid_t tid, const struct pyp_gil_range gils[PYP_GIL_RANGES],
		struct doing *ret)
{
	_cleanup_free_ char *text = NULL;
	char path[64], number[SYSCALL_NAME_MAX];
	struct doing_call c;
	const char *name;

	*ret = (struct doing){0};
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", t->pid, tid);
	if (proc_read(AT_FDCWD, path, TEXT_MAX, &text, NULL) || doing_parse(text, &c))
		return;
	name = c.nr < 0 ? "" : syscall_name(c.nr, number, sizeof(number));
	ret->kind = doing_kind_of(&c, name, gils);
	if (ret->kind == DOING_RUNNING || ret->kind == DOING_FAULT)
		snprintf(ret->text, sizeof(ret->text), "%s", c.running ? "running" : "page fault");
	else
		describe_call(t, &c, name, gils[0].size, ret);
}
