/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile target for the self-test's scratch process. A target's owner decides what the
 * interpreter reads when it starts; here that is a standard library whose first module attacks
 * whenever it runs in a scratch process. `pyprofctl doctor`, as root, makes that happen.
 *
 * The attacker reports without writing anything: for each word there is a FIFO, and opening it for
 * reading waits until the test opens it, too.
 *
 *	struct attack a = {.uid = ATTACK_USER, .code = "    say('root')\n"};
 *
 *	attack_run(&a);
 *	cr_assert(attack_said(&a, "ran") && !attack_said(&a, "root"));
 *	attack_end(&a);
 */
#ifndef PYPROF_TESTS_HARNESS_ATTACK_H
#define PYPROF_TESTS_HARNESS_ATTACK_H

#include <stdbool.h>
#include <sys/types.h>

#define ATTACK_USER   4711u
#define ATTACK_PYTHON "/usr/bin/python3"
/* A target that prints one byte when it is ready, which attack_start() waits for. */
#define ATTACK_WAITS "import time, os\nos.write(1, b'x')\ntime.sleep(300)\n"

/* The words: ran (said before the code), root, user, read, wrote, more, held. */
struct attack {
	char *dir;			   /* everybody may read it */
	const char *code;		   /* of the attacker, indented Python; say(WORD), DIR */
	const char *program;		   /* of the target, in Python */
	const char *exe;		   /* the target's */
	uid_t uid;			   /* whose it is */
	void (*prepare)(struct attack *a); /* in the target, before it becomes Python */
	const char *disk;		   /* a block device that only root may open */
	void (*meanwhile)(struct attack *a, pid_t doctor); /* when "held" is said */
	bool in_place; /* nothing is to be mounted: the attacker is where it belongs */
	bool traced;   /* by the test, from its start */
	bool done;
	pid_t target;
	char text[8192]; /* what doctor printed */
	unsigned int said;
};

/* Make the directory and all files in it; attack_run() does so unless it was done. */
void attack_setup(struct attack *a);
/* Start the target and wait until it is ready. */
void attack_start(struct attack *a);
/* Start `pyprofctl doctor` on it; its pid. */
pid_t attack_doctor(struct attack *a);
/* Listen until doctor has ended, and take what it printed. */
void attack_follow(struct attack *a, pid_t doctor);
/* All of these, one after the other. */
void attack_run(struct attack *a);
/* End the target, remove the directory. */
void attack_end(struct attack *a);

bool attack_said(const struct attack *a, const char *word);
/* A file of the directory; valid until eight others have been asked for. */
const char *attack_path(const struct attack *a, const char *name);
/* The first child of a process; 0: it has none. */
pid_t attack_child_of(pid_t pid);

/* For preparations, which run in the target: end it unless ok. */
void attack_must(bool ok, const char *what);
void attack_put(const char *path, const char *text);
/* Become a user (0: stay), dumpable. */
void attack_become(uid_t uid);
/* Put the attacker where the standard library is; done for every target that is not in_place. */
void attack_mount(struct attack *a);
/* A mount namespace whose mounts are private. */
void attack_private_mounts(struct attack *a);

#endif
