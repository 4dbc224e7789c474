// SPDX-License-Identifier: BSD-2-Clause
/*
 * The program that a process executes, and its user: see target.h.
 *
 * The kernel has no call that returns both, and a process may execute a set-user-id program between
 * two calls. So the executable is read before and after the ids, and the result is compared with an
 * earlier reading before anything depends on it.
 */
#include "target/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/strtab.h"
#include "target/deadline.h"
#include "target/target_priv.h"
#include "target/proc.h"

#define AUXV_MAX   16384
#define STATUS_MAX 65536

/* AT_STATX_DONT_SYNC returns what the kernel has cached, as a FUSE server may not answer. */
int target_file_of_now(const char *path, struct target_file *ret)
{
	struct statx st = {0};

	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &st) < 0)
		return -errno;
	*ret = (struct target_file){.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
				    .ino = st.stx_ino};
	return 0;
}

bool target_file_equal(const struct target_file *a, const struct target_file *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

/* The four numbers of a status line: real, effective, saved, file system. True if all are equal. */
static bool read_ids(const char *status, const char *key, uint32_t *ret)
{
	const char *p = proc_field(status, key);
	uint32_t first = 0;

	for (int i = 0; i < 4; i++) {
		char *end;
		unsigned long v = p ? strtoul(p, &end, 10) : 0;

		if (!p || end == p || v > UINT32_MAX || (i && v != first))
			return false;
		first = (uint32_t)v;
		p = end;
	}
	*ret = first;
	return true;
}

/*
 * Hash the auxiliary vector. Each exec creates a new one, with the ids, the addresses and the
 * set-user-id state. It is the kernel's copy, so reading it does not touch the process's memory.
 */
static int read_auxv(pid_t tid, uint64_t *ret)
{
	_cleanup_free_ char *auxv = NULL;
	char path[64];
	size_t size = 0;
	unsigned long first;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/auxv", tid);
	err = proc_read(AT_FDCWD, path, AUXV_MAX, &auxv, &size);
	if (err)
		return err;
	if (!size)
		return -ESRCH;
	if (size < sizeof(first))
		return -EIO;
	memcpy(&first, auxv, sizeof(first));
	if (first == AT_NULL) /* an exec has replaced the memory but not written the vector yet */
		return -EAGAIN;
	*ret = strtab_hash(0, auxv, size);
	return 0;
}

static int read_creds(const struct target *t, struct target_identity *ret)
{
	_cleanup_free_ char *status = NULL;
	struct proc_stat st;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/status", t->tid);
	err = proc_read(AT_FDCWD, path, STATUS_MAX, &status, NULL);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/stat", t->pid);
	err = proc_stat_read(AT_FDCWD, path, &st);
	if (err)
		return err;
	ret->starttime = st.starttime;
	ret->mixed = !read_ids(status, "Uid", &ret->uid) || !read_ids(status, "Gid", &ret->gid);
	return 0;
}

int target_identify_now(const struct target *t, struct target_identity *ret)
{
	struct target_identity id = {0};
	struct target_file exe = {0};
	uint64_t auxv;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/exe", t->tid);
	err = target_file_of_now(path, &exe);
	if (!err)
		err = read_auxv(t->tid, &auxv);
	if (!err)
		err = read_creds(t, &id);
	if (!err)
		err = read_auxv(t->tid, &id.auxv);
	if (!err)
		err = target_file_of_now(path, &id.exe);
	if (!err && !target_alive(t))
		err = -ESRCH;
	if (!err && (auxv != id.auxv || !target_file_equal(&exe, &id.exe)))
		err = -EAGAIN;
	if (!err)
		*ret = id;
	return err;
}

bool target_identity_equal(const struct target_identity *a, const struct target_identity *b)
{
	return a->starttime == b->starttime && a->auxv == b->auxv &&
	       target_file_equal(&a->exe, &b->exe) && a->mixed == b->mixed && a->uid == b->uid &&
	       a->gid == b->gid;
}

int target_check(const struct target *t, struct diag *diag)
{
	struct target_identity now;
	int err = target_identify(t, &now);

	if (err == -ESRCH || err == -ENOENT)
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "", "process %d has ended",
				t->pid);
	if (deadline_missed(err))
		return deadline_diag(diag, err, t->pid);
	if (err && err != -EAGAIN)
		return diag_errno(diag, -err, "cannot read the program of process %d", t->pid);
	if (!err && target_identity_equal(&now, &t->identity))
		return 0;
	if (!err && target_file_equal(&now.exe, &t->identity.exe) && now.auxv == t->identity.auxv)
		return diag_set(diag, -ESTALE, PYP_EXIT_FAILURE, "attach again",
				"process %d has changed its user or group", t->pid);
	return diag_set(diag, -ESTALE, PYP_EXIT_FAILURE, "attach again",
			"process %d has executed another program", t->pid);
}
