/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile target for the self-test's scratch process. The owner of a target controls the files
 * that its interpreter reads at startup; here, the first module of the standard library attacks
 * when it runs in a scratch process. `pyprofctl doctor`, as root, starts the scratch process.
 *
 * The attacker reports words without write access: each word has a FIFO, and opening it for reading
 * blocks until the test opens it for writing.
 *
 *   struct attack a = {.uid = ATTACK_USER, .code = "    say('root')\n"};
 *
 *   attack_run(&a);
 *   cr_assert(attack_printed(&a, "ran") && !attack_printed(&a, "root"));
 *   attack_end(&a);
 */
#ifndef PYPROF_TESTS_HARNESS_ATTACK_H
#define PYPROF_TESTS_HARNESS_ATTACK_H

#include <stdbool.h>
#include <sys/types.h>

#define ATTACK_USER   4711u
#define ATTACK_PYTHON "/usr/bin/python3"
/* A target that prints one byte when ready; attack_start() waits for it. */
#define ATTACK_WAITS "import time, os\nos.write(1, b'x')\ntime.sleep(300)\n"

/* The words: ran (reported before the code runs), root, user, read, wrote, more, held. */
struct attack {
	char *dir;			   /* readable by all users */
	const char *code;		   /* the attacker's code, indented Python; may use
					    * say(WORD) and DIR */
	const char *program;		   /* the target's program, in Python */
	const char *exe;		   /* the target's executable */
	uid_t uid;			   /* user of the target */
	void (*prepare)(struct attack *a); /* runs in the target before it executes Python */
	const char *disk;		   /* a block device that only root may open */
	void (*meanwhile)(struct attack *a, pid_t doctor); /* called when "held" is reported */
	bool in_place; /* do not mount anything: the attacker is already in the standard library */
	bool traced;   /* the test traces doctor (ptrace) from its start */
	bool done;
	pid_t target;
	char text[8192]; /* output of doctor */
	unsigned int printed;
};

/* Make the directory and its files; attack_run() calls it if necessary. */
void attack_setup(struct attack *a);
/* Start the target and wait until it is ready. */
void attack_start(struct attack *a);
/* Start `pyprofctl doctor` on the target. Returns its pid. */
pid_t attack_doctor(struct attack *a);
/* Receive words until doctor has ended, and read its output. */
void attack_follow(struct attack *a, pid_t doctor);
/* Call attack_setup() if necessary, attack_start(), attack_doctor() and attack_follow(). */
void attack_run(struct attack *a);
/* End the target, remove the directory. */
void attack_end(struct attack *a);

bool attack_printed(const struct attack *a, const char *word);
/* Path of a file in the directory; valid for the next seven calls. */
const char *attack_path(const struct attack *a, const char *name);
/* The first child of a process, or the first with this name; 0 if there is none. */
#define ATTACK_KEEPER "pyprofd-keeper"
pid_t attack_child_of(pid_t pid, const char *name);

/* For prepare(), which runs in the target: exit the process unless ok. */
void attack_must(bool ok, const char *what);
void attack_put(const char *path, const char *text);
/* Change to a user (0: no change), and stay dumpable. */
void attack_become(uid_t uid);
/* Mount the attacker over the standard library; done for all targets without in_place. */
void attack_mount(struct attack *a);
/* Enter a mount namespace with private mounts. */
void attack_private_mounts(struct attack *a);

#endif
