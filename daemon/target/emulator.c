// SPDX-License-Identifier: BSD-2-Clause
/* Programs that translate or record another program's code: see target_check_native. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "target/target.h"

const char *target_emulator_of(const char *exe, const char *tracer)
{
	const char *name = strrchr(exe, '/');

	name = name ? name + 1 : exe;
	if (strstr(exe, "/valgrind/"))
		return "valgrind";
	if (strncmp(name, "qemu-", 5) == 0)
		return "qemu";
	return strcmp(tracer, "rr") == 0 ? "rr" : NULL;
}

static void first_line(const char *path, char *out, int size)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");

	if (!f || !fgets(out, size, f))
		*out = '\0';
	out[strcspn(out, "\n")] = '\0';
}

/* Writes the name of the process that traces t with ptrace(2), or "". */
static void tracer_of(const struct target *t, char comm[32])
{
	char path[64], line[128];
	_cleanup_fclose_ FILE *f = NULL;
	pid_t pid = 0;

	*comm = '\0';
	snprintf(path, sizeof(path), "/proc/%d/status", t->tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "TracerPid:\t", 11) != 0)
			continue;
		if (parse_pid(line + 11, &pid) < 0)
			return;
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		first_line(path, comm, 32);
		return;
	}
}

int target_check_native(const struct target *t, struct diag *diag)
{
	const char *emulator;
	char tracer[32];

	tracer_of(t, tracer);
	emulator = target_emulator_of(t->exe, tracer);
	if (!emulator)
		return 0;
	return diag_set(diag, -ENOEXEC, PYP_EXIT_UNTRACEABLE,
			"start the program without it: it does not execute the code in the file",
			"process %d runs under %s", (int)t->pid, emulator);
}
