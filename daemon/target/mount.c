// SPDX-License-Identifier: BSD-2-Clause
/*
 * The owner of a file's file system. To place a probe, the kernel reads the instruction's page
 * while it holds a lock that every fork on the machine needs (uprobe_register, dup_mmap_sem;
 * kernel/events/uprobes.c). For a FUSE file it waits there for a user's process, which may never
 * answer. Therefore only FUSE file systems mounted by root are accepted.
 *
 * These checks do not involve the file system's server: statx uses cached data, and mountinfo comes
 * from the kernel. In mountinfo, user_id is relative to the user namespace of the mount, so the
 * root user of a private namespace has 0 there. Such a mount cannot get into the daemon's
 * namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/target_priv.h"
#include "target/proc.h"
#include "target/target.h"

#define MOUNTINFO_MAX (16u << 20)

/* "name=value" in a comma-separated list that ends with the line. */
static bool has_option(const char *list, const char *option)
{
	size_t n = strlen(option);

	for (const char *p = list; p && *p && *p != '\n';) {
		if (strncmp(p, option, n) == 0 && (p[n] == ',' || p[n] == '\n' || !p[n]))
			return true;
		p += strcspn(p, ",\n");
		if (*p == ',')
			p++;
	}
	return false;
}

/* rest: the part after " - ": type, source and options, with blanks in names written as \040. */
static enum mount_kind kind_of(const char *rest)
{
	const char *source = strchr(rest, ' ');
	const char *options = source ? strchr(source + 1, ' ') : NULL;
	bool fuse = strncmp(rest, "fuse ", 5) == 0 || strncmp(rest, "fuse.", 5) == 0 ||
		    strncmp(rest, "fuseblk", 7) == 0;

	if (!fuse)
		return MOUNT_KERNEL;
	return options && has_option(options + 1, "user_id=0") ? MOUNT_FUSE_ROOT : MOUNT_FUSE_USER;
}

/*
 * Returns whether the line's device or id matches key. "36 35 98:0 / /mnt rw,noatime master:1 -
 * ext3 /dev/root rw"
 */
static bool line_is_of(const char *line, const struct mount_key *key)
{
	uint64_t id, major, minor;
	char *end;

	id = strtoull(line, &end, 10);
	(void)strtoull(end, &end, 10);
	major = strtoull(end, &end, 10);
	minor = *end == ':' ? strtoull(end + 1, &end, 10) : UINT64_MAX;
	return (major == key->major && minor == key->minor) || (key->id && id == key->id);
}

enum mount_kind mount_kind_of(const char *mountinfo, const struct mount_key *key)
{
	for (const char *line = mountinfo; line && *line;) {
		const char *next = strchr(line, '\n');
		const char *rest = strstr(line, " - ");

		if (rest && (!next || rest < next) && line_is_of(line, key))
			return kind_of(rest + 3);
		line = next ? next + 1 : NULL;
	}
	return MOUNT_UNKNOWN;
}

static enum mount_kind kind_in(const char *path, const struct mount_key *key)
{
	_cleanup_free_ char *text = NULL;

	if (proc_read(AT_FDCWD, path, MOUNTINFO_MAX, &text, NULL) < 0)
		return MOUNT_UNKNOWN;
	return mount_kind_of(text, key);
}

int target_check_mount_now(const struct target *t, const char *path, struct diag *diag)
{
	struct statx st;
	struct mount_key key;
	enum mount_kind ours, theirs = MOUNT_UNKNOWN;
	char theirs_path[64];

	/* Opening or probing the file will report this error. */
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &st) < 0)
		return 0;
	key = (struct mount_key){.major = st.stx_dev_major, .minor = st.stx_dev_minor};
	ours = kind_in("/proc/self/mountinfo", &key);
	if (ours == MOUNT_KERNEL || ours == MOUNT_FUSE_ROOT)
		return 0;
	if (t && ours == MOUNT_UNKNOWN) {
		key.id = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0;
		snprintf(theirs_path, sizeof(theirs_path), "/proc/%d/mountinfo", t->tid);
		theirs = kind_in(theirs_path, &key);
	}
	if (ours == MOUNT_UNKNOWN && theirs != MOUNT_FUSE_ROOT && theirs != MOUNT_FUSE_USER)
		return 0;
	return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE,
			"run a copy on another file system",
			"'%s' is on a FUSE file system of a user, whose server could block the "
			"whole machine while probes are placed",
			t ? t->exe : path);
}
