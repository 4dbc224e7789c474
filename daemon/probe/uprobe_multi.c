// SPDX-License-Identifier: BSD-2-Clause
/* The uprobe_multi link: see uprobe_multi.h. */
#include "probe/uprobe_multi.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

/* bpf_attr's link_create.uprobe_multi, from the kernel's uapi as of 6.6. */
struct link_create_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t cnt;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t pad;
};

_Static_assert(sizeof(struct link_create_attr) == 64, "link_create_attr changed size");

/* The kernel makes every BPF descriptor close-on-exec. */
int uprobe_multi_link(const struct uprobe_multi_opts *o)
{
	struct link_create_attr attr = {
		.prog_fd = (uint32_t)o->prog_fd,
		.attach_type = UPROBE_MULTI_ATTACH_TYPE,
		.path = (uintptr_t)o->path,
		.offsets = (uintptr_t)o->offsets,
		.cookies = (uintptr_t)o->cookies,
		.cnt = o->n,
		.pid = (uint32_t)o->pid,
	};
	int fd = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}
