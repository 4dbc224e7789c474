// SPDX-License-Identifier: BSD-2-Clause
/* The threads of a scratch process: see scratch_priv.h. */
#include "verify/scratch_priv.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* the self-test starts one */
#define THREADS_MAX 8u

#define RETURN(action)	BPF_STMT(BPF_RET | BPF_K, (action))
#define LOAD(field)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(op, k, n, m) BPF_JUMP(BPF_JMP | (op) | BPF_K, (k), (n), (m))

int scratch_watch_threads(int *ret_listener)
{
	static struct sock_filter code[] = {
		LOAD(nr),
		IF(BPF_JEQ, SYS_clone, 0, 3),
		LOAD(args[0]),
		IF(BPF_JSET, CLONE_THREAD, 0, 1),
		RETURN(SECCOMP_RET_USER_NOTIF),
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = {.len = sizeof(code) / sizeof(*code), .filter = code};
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			  &prog);

	if (fd < 0)
		return -errno;
	*ret_listener = (int)fd;
	return 0;
}

void scratch_answer_thread(int listener, unsigned int *started)
{
	/* The kernel's structure may be larger than ours. */
	union {
		struct seccomp_notif known;
		char room[1024];
	} question;
	union {
		struct seccomp_notif_resp known;
		char room[1024];
	} answer;

	memset(&question, 0, sizeof(question));
	memset(&answer, 0, sizeof(answer));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question) < 0)
		return;
	answer.known.id = question.known.id;
	if (*started < THREADS_MAX) {
		answer.known.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		(*started)++;
	} else {
		answer.known.error = -EAGAIN;
	}
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}
