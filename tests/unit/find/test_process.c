// SPDX-License-Identifier: BSD-2-Clause
/* find/process, find/processes: this process, and a process that only has a Python's name. */
#include "find/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "find/processes.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "target/proc.h"

Test(process, not_python)
{
	struct process p = {0};

	assert_err(process_read(getpid(), &p), -ENOENT);
	assert_err(process_read(4194304, &p), -ESRCH);
	cr_assert_null(p.command);
}

Test(process, replaced)
{
	struct proc_stat st;

	assert_ok(target_stat_read(getpid(), &st));
	cr_assert(!process_is_replaced(getpid(), st.starttime));
	cr_assert(process_is_replaced(getpid(), st.starttime - 1));
	cr_assert(!process_is_replaced(4194304, 1), "there is none");
}

/* Run a copy of sleep(1) under this name. It is killed with the test. */
static pid_t start_named(const char *dir, const char *name)
{
	char path[512];
	pid_t child;
	int go[2];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	free(tool_run((const char *[]){"cp", "/bin/sleep", path, NULL}));
	cr_assert(pipe2(go, O_CLOEXEC) == 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, "a\033[31mword", "1000", NULL);
		_exit(127);
	}
	cr_assert(child > 0);
	close(go[1]);
	cr_assert_eq(read(go[0], path, 1), 0, "it has executed the program");
	close(go[0]);
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static const struct process *find(const struct processes *l, pid_t pid)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].pid == pid)
			return &l->v[i];
	return NULL;
}

Test(process, names)
{
	char *dir = temp_dir_new();
	pid_t pypy = start_named(dir, "pypy3.10"), other = start_named(dir, "python3.99");
	struct processes l = {0};
	const struct process *p;
	struct diag diag = {0};

	assert_diag_ok(processes_list(&l, &diag), &diag);
	p = find(&l, pypy);
	cr_assert(p && p->implementation == IMPLEMENTATION_PYPY && p->cpu < 0);
	cr_assert_str_eq(p->version, "3.10");
	cr_assert(p->parent == getpid() && p->uid == geteuid() && p->threads == 1);
	cr_assert(strcmp(p->command, "a?[31mword 1000") == 0, "%s", p->command);
	p = find(&l, other);
	cr_assert(p && p->implementation == IMPLEMENTATION_CPYTHON);
	cr_assert_null(find(&l, getpid()));
	processes_measure(&l, 0);
	cr_assert(find(&l, pypy)->cpu >= 0);
	/* no interpreter is in it, whatever its name */
	processes_check(&l);
	cr_assert_null(find(&l, other));
	p = find(&l, pypy);
	cr_assert(p && p->traceable == PROCESS_UNTRACEABLE && strstr(p->why, "PyPy"));
	end(pypy);
	end(other);
	processes_deinit(&l);
	temp_dir_remove(dir);
	check_no_leaks();
}
