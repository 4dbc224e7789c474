// SPDX-License-Identifier: BSD-2-Clause
/* A hostile target for the scratch process: see attack.h. */
#include "harness/attack.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "harness/caps.h"
#include "harness/patience.h"
#include "harness/python.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

/* The words that the attacker may report; "ran": its code was executed */
static const char *const words[] = {"ran", "root", "user", "read", "wrote", "more", "held"};
#define WORDS (sizeof(words) / sizeof(*words))

const char *attack_path(const struct attack *a, const char *name)
{
	static char path[8][256];
	static unsigned int i;

	i = (i + 1) % 8;
	snprintf(path[i], sizeof(path[i]), "%s/%s", a->dir, name);
	return path[i];
}

void attack_must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(125);
}

/* ---- the attacker ------------------------------------------------------------------------ */

static char *encodings; /* the path of the first module that every interpreter imports */

static void write_attacker(const struct attack *a)
{
	_cleanup_fclose_ FILE *in = fopen(encodings, "re"), *out = NULL;
	char line[4096];

	out = fopen(attack_path(a, "attack.py"), "we");
	cr_assert(in && out);
	fprintf(out,
		"import sys\n"
		"if sys.flags.isolated and sys.flags.no_site:\n"
		"    import posix, time\n"
		"    DIR = '%s'\n"
		"    def say(word): posix.close(posix.open(DIR + '/' + word, posix.O_RDONLY))\n"
		"    say('ran')\n"
		"%s"
		"    posix._exit(0)\n",
		a->dir, a->code);
	while (fgets(line, sizeof(line), in))
		fputs(line, out);
}

void attack_setup(struct attack *a)
{
	char *end;

	a->dir = temp_dir_new();
	assert_ok(chmod(a->dir, 0755));
	encodings = python_run(ATTACK_PYTHON, "import encodings; print(encodings.__file__)", "");
	end = strchr(encodings, '\n');
	if (end)
		*end = '\0';
	write_attacker(a);
	for (size_t i = 0; i < WORDS; i++) {
		assert_ok(mkfifo(attack_path(a, words[i]), 0644));
		assert_ok(chmod(attack_path(a, words[i]), 0644));
	}
}

void attack_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	attack_must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

void attack_become(uid_t uid)
{
	if (uid)
		attack_must(setgroups(0, NULL) == 0 && setgid(uid) == 0 && setuid(uid) == 0,
			    "user");
	attack_must(prctl(PR_SET_DUMPABLE, 1) == 0, "dumpable");
}

/* The default prepare(): enter a new user and mount namespace as the unprivileged user. */
static void own_namespaces(struct attack *a)
{
	char map[64];

	attack_become(a->uid);
	attack_must(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "namespaces");
	snprintf(map, sizeof(map), "0 %u 1", a->uid);
	attack_put("/proc/self/setgroups", "deny");
	attack_put("/proc/self/uid_map", map);
	attack_put("/proc/self/gid_map", map);
}

void attack_mount(struct attack *a)
{
	attack_must(mount(attack_path(a, "attack.py"), encodings, NULL, MS_BIND, NULL) == 0,
		    "attack.py");
}

static _Noreturn void become_target(struct attack *a, int out)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, 1);
	a->prepare(a);
	if (!a->in_place)
		attack_mount(a);
	if (a->disk && a->uid)
		attack_must(mount(a->disk, "/dev/null", NULL, MS_BIND, NULL) == 0, "/dev/null");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl(a->exe, a->exe, "-B", "-c", a->program, (char *)NULL);
	_exit(127);
}

void attack_start(struct attack *a)
{
	int out[2];
	char c;

	if (!a->exe)
		a->exe = ATTACK_PYTHON;
	if (!a->prepare)
		a->prepare = own_namespaces;
	if (!a->program)
		a->program = ATTACK_WAITS;
	assert_ok(pipe2(out, O_CLOEXEC));
	a->target = fork();
	if (a->target == 0)
		become_target(a, out[1]);
	close(out[1]);
	cr_assert(read(out[0], &c, 1) == 1, "the target does not start");
	close(out[0]);
}

/* ---- pyprofctl doctor -------------------------------------------------------------------- */

pid_t attack_doctor(struct attack *a)
{
	char program[512], pid[16];
	pid_t doctor = fork();
	int fd;

	if (doctor)
		return doctor;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open(attack_path(a, "doctor"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	dup2(fd, 1);
	dup2(fd, 2);
	snprintf(program, sizeof(program), "%s/pyprofctl", getenv("PYPROF_BUILD"));
	snprintf(pid, sizeof(pid), "%d", (int)a->target);
	if (a->traced)
		ptrace(PTRACE_TRACEME, 0, 0, 0);
	execl(program, "pyprofctl", "doctor", pid, (char *)NULL);
	_exit(127);
}

static void hear(struct attack *a, pid_t doctor)
{
	for (size_t i = 0; i < WORDS; i++) {
		bool held = strcmp(words[i], "held") == 0;
		int fd = held && a->done ? -1
					 : open(attack_path(a, words[i]),
						O_WRONLY | O_NONBLOCK | O_CLOEXEC);

		if (fd < 0)
			continue;
		a->printed |= 1u << i;
		if (held) {
			/*
			 * doctor continues to the attacker's next word, which is not received until
			 * then.
			 */
			a->done = true;
			a->meanwhile(a, doctor);
		}
		close(fd);
	}
}

void attack_follow(struct attack *a, pid_t doctor)
{
	FILE *f;

	while (waitpid(doctor, NULL, WNOHANG) == 0) {
		hear(a, doctor);
		cr_assert(!patience_over(), "doctor does not end");
		patience_step();
	}
	f = fopen(attack_path(a, "doctor"), "re");
	cr_assert(f);
	a->text[fread(a->text, 1, sizeof(a->text) - 1, f)] = '\0';
	fclose(f);
}

static void run_doctor(struct attack *a)
{
	attack_follow(a, attack_doctor(a));
}

bool attack_printed(const struct attack *a, const char *word)
{
	for (size_t i = 0; i < WORDS; i++)
		if (strcmp(words[i], word) == 0)
			return a->printed >> i & 1;
	return false;
}

void attack_run(struct attack *a)
{
	caps_require_bpf();
	if (!a->dir)
		attack_setup(a);
	attack_start(a);
	run_doctor(a);
}

void attack_end(struct attack *a)
{
	kill(a->target, SIGKILL);
	waitpid(a->target, NULL, 0);
	free(tool_run((const char *const[]){"rm", "-rf", a->dir, NULL}));
	free(a->dir);
	free(encodings);
}

void attack_private_mounts(struct attack *a)
{
	(void)a;
	attack_must(unshare(CLONE_NEWNS) == 0, "mount namespace");
	attack_must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
}

static bool is_named(long pid, const char *name)
{
	char path[64], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	f = fopen(path, "re");
	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	text[strcspn(text, "\n")] = '\0';
	return !name || strcmp(text, name) == 0;
}

pid_t attack_child_of(pid_t pid, const char *name)
{
	char path[64], text[512] = "", *at = text, *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "re");
	if (!f || !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	for (long child; (child = strtol(at, &end, 10)) > 0; at = end)
		if (is_named(child, name))
			return (pid_t)child;
	return 0;
}
