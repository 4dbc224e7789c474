// SPDX-License-Identifier: BSD-2-Clause
/* Capabilities and kernel features: see kcaps.h. */
#include "probe/kcaps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe/uprobe_multi.h"

/* Numbers of linux/capability.h; older headers lack the newer names. */
enum { KCAP_SYS_PTRACE = 19, KCAP_SYS_ADMIN = 21, KCAP_PERFMON = 38, KCAP_BPF = 39 };

static int effective_caps(uint64_t *ret)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	*ret = data[0].effective | (uint64_t)data[1].effective << 32;
	return 0;
}

static bool has_cap(uint64_t caps, int cap)
{
	return caps >> cap & 1;
}

static int missing_cap(struct diag *diag, const char *name, const char *why)
{
	return diag_set(diag, -EPERM, PYP_EXIT_PERMISSION,
			"run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE",
			"%s is missing: needed to %s", name, why);
}

int kcaps_permissions(struct diag *diag)
{
	uint64_t caps = 0;
	int r = effective_caps(&caps);

	if (r < 0)
		return diag_errno(diag, -r, "cannot read our own capabilities");
	/* CAP_SYS_ADMIN still stands for the two that were split off it. */
	if (!has_cap(caps, KCAP_BPF) && !has_cap(caps, KCAP_SYS_ADMIN))
		return missing_cap(diag, "CAP_BPF", "load BPF programs");
	if (!has_cap(caps, KCAP_PERFMON) && !has_cap(caps, KCAP_SYS_ADMIN))
		return missing_cap(diag, "CAP_PERFMON", "attach BPF programs to a process");
	if (!has_cap(caps, KCAP_SYS_PTRACE))
		return missing_cap(diag, "CAP_SYS_PTRACE", "open a process's executable");
	return 0;
}

static int missing_feature(struct diag *diag, int err, const char *what, const char *hint)
{
	return diag_set(diag, err, PYP_EXIT_UNTRACEABLE, hint, "this kernel has no %s", what);
}

static int refused(struct diag *diag, int err, const char *what)
{
	return diag_set(diag, err, PYP_EXIT_PERMISSION,
			"a container's seccomp profile or kernel lockdown may forbid it",
			"the kernel refuses us %s", what);
}

static int check_btf(struct diag *diag)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		return 0;
	return missing_feature(diag, -ENOTSUP, "BTF type information",
			       "it needs CONFIG_DEBUG_INFO_BTF=y and /sys mounted");
}

static int check_ring(struct diag *diag)
{
	_cleanup_close_ int fd =
		bpf_map_create(BPF_MAP_TYPE_RINGBUF, NULL, 0, 0, sysconf(_SC_PAGESIZE), NULL);

	if (fd >= 0)
		return 0;
	if (fd == -EPERM || fd == -EACCES)
		return refused(diag, fd, "a BPF map");
	if (fd == -EINVAL)
		return missing_feature(diag, fd, "BPF ring buffer", "it needs Linux 6.6 or newer");
	if (fd == -ENOSYS)
		return missing_feature(diag, fd, "bpf() system call",
				       "it needs CONFIG_BPF_SYSCALL=y");
	return diag_errno(diag, -fd, "cannot create a BPF ring buffer");
}

/* A program that does nothing, loaded for uprobe_multi. */
static int load_empty(void)
{
	struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = UPROBE_MULTI_ATTACH_TYPE);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns,
			     sizeof(insns) / sizeof(insns[0]), &opts);
}

/* Attach to what cannot be attached to: how it is refused tells what the kernel knows. */
static int try_link(int prog_fd, pid_t pid)
{
	const uint64_t offset = 0;
	int fd = uprobe_multi_link(&(struct uprobe_multi_opts){
		.prog_fd = prog_fd, .path = "/", .offsets = &offset, .n = 1, .pid = pid});

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* With "/" as the file a kernel that knows uprobe_multi says EBADF: not a regular file. */
static int check_uprobe_multi(struct diag *diag)
{
	_cleanup_close_ int prog = load_empty();
	int r;

	if (prog == -EPERM || prog == -EACCES)
		return refused(diag, prog, "a BPF program");
	if (prog < 0 && prog != -EINVAL)
		return diag_errno(diag, -prog, "cannot load a BPF program");
	r = prog < 0 ? prog : try_link(prog, 0);
	if (r == -EBADF)
		return 0;
	if (r == -EOPNOTSUPP)
		return missing_feature(diag, r, "uprobes", "it needs CONFIG_UPROBES=y");
	return missing_feature(diag, r < 0 ? r : -ENOTSUP, "uprobe_multi links",
			       "it needs Linux 6.6 or newer");
}

int kcaps_features(struct diag *diag)
{
	int r = check_btf(diag);

	if (!r)
		r = check_ring(diag);
	if (!r)
		r = check_uprobe_multi(diag);
	return r;
}

/* The fix came with a check of the pid before the file: EINVAL instead of EBADF. */
bool kcaps_pid_filter(void)
{
	_cleanup_close_ int prog = load_empty();

	return prog >= 0 && try_link(prog, -1) == -EINVAL;
}
