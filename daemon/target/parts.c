// SPDX-License-Identifier: BSD-2-Clause
/* Opening files in /proc/PID: see target.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "target/proc.h"
#include "target/target.h"

#define CMDLINE_MAX (4u << 20)

int target_open_part_at(int dirfd, enum target_part part, uint64_t start, uint64_t end)
{
	static const char *const names[TARGET_PARTS] = {
		[TARGET_EXE] = "exe",	      [TARGET_MAPS] = "maps", [TARGET_MEM] = "mem",
		[TARGET_CMDLINE] = "cmdline", [TARGET_AUXV] = "auxv", [TARGET_ENVIRON] = "environ",
	};
	char path[64];
	int fd;

	if (part < 0 || part >= TARGET_PARTS)
		return -EINVAL;
	if (part == TARGET_MAP)
		snprintf(path, sizeof(path), "map_files/%lx-%lx", (unsigned long)start,
			 (unsigned long)end);
	else
		snprintf(path, sizeof(path), "%s", names[part]);
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

int target_open_part(const struct target *t, enum target_part part, uint64_t start, uint64_t end)
{
	_cleanup_close_ int dirfd = -1;
	char path[64];

	if (t->access)
		return t->access->open(t->access->ctx, part, start, end);
	snprintf(path, sizeof(path), "/proc/%d", t->tid);
	dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dirfd < 0 ? -errno : target_open_part_at(dirfd, part, start, end);
}

struct memory target_memory(const struct target *t)
{
	return t->access ? t->access->memory : memory_live(t->tid);
}

int target_read_cmdline(struct target *t)
{
	_cleanup_free_ char *text = NULL;
	size_t size, n;
	int fd = target_open_part(t, TARGET_CMDLINE, 0, 0);
	int err = fd < 0 ? fd : proc_read_fd(fd, CMDLINE_MAX, &text, &size);

	if (err)
		return err == -ENOENT ? -ESRCH : err;
	n = size < sizeof(t->cmdline) ? size : sizeof(t->cmdline) - 1;
	while (n && !text[n - 1])
		n--;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		t->cmdline[i] = (char)(c == 0 ? ' ' : c < 0x20 || c == 0x7f ? '?' : c);
	}
	memset(t->cmdline + n, 0, sizeof(t->cmdline) - n);
	return 0;
}
