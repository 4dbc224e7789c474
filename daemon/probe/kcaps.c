// SPDX-License-Identifier: BSD-2-Clause
/* Capabilities and kernel features: see kcaps.h. */
#include "probe/kcaps.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe/uprobe_event.h"
#include "probe/uprobe_multi.h"

/* Numbers from linux/capability.h; older headers lack the newer names. */
enum { KCAP_SYS_PTRACE = 19, KCAP_SYS_ADMIN = 21, KCAP_PERFMON = 38, KCAP_BPF = 39 };

/* ---- permissions -------------------------------------------------------------------------- */

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

static int check_permissions(const struct kcaps_system *sys, struct diag *diag)
{
	uint64_t caps = 0;
	int r = sys->capabilities(&caps);

	if (r < 0)
		return diag_errno(diag, -r, "cannot read our own capabilities");
	/* CAP_SYS_ADMIN includes the two capabilities that were split off from it. */
	if (!has_cap(caps, KCAP_BPF) && !has_cap(caps, KCAP_SYS_ADMIN))
		return missing_cap(diag, "CAP_BPF", "load BPF programs");
	if (!has_cap(caps, KCAP_PERFMON) && !has_cap(caps, KCAP_SYS_ADMIN))
		return missing_cap(diag, "CAP_PERFMON", "attach BPF programs to a process");
	if (!has_cap(caps, KCAP_SYS_PTRACE))
		return missing_cap(diag, "CAP_SYS_PTRACE", "open a process's executable");
	return 0;
}

/* ---- features ----------------------------------------------------------------------------- */

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

static int check_btf(const struct kcaps_system *sys, struct diag *diag)
{
	if (sys->btf() == 0)
		return 0;
	return missing_feature(diag, -ENOTSUP, "BTF type information",
			       "it needs CONFIG_DEBUG_INFO_BTF=y and /sys mounted, or its BTF in "
			       "/boot/vmlinux-RELEASE");
}

static int check_ring(const struct kcaps_system *sys, struct diag *diag)
{
	int r = sys->ring();

	if (r == -EPERM || r == -EACCES)
		return refused(diag, r, "a BPF map");
	if (r == -EINVAL)
		return missing_feature(diag, r, "BPF ring buffer", "it needs Linux 5.8 or newer");
	if (r == -ENOSYS)
		return missing_feature(diag, r, "bpf() system call",
				       "it needs CONFIG_BPF_SYSCALL=y");
	return r < 0 ? diag_errno(diag, -r, "cannot create a BPF ring buffer") : 0;
}

/*
 * Checks features that the programs use, because the verifier's error message would not name the
 * kernel as the cause. -ENOTSUP means that the kernel lacks a feature; after other errors the
 * result is unknown, and loading the programs decides.
 */
static int check_programs(const struct kcaps_system *sys, struct diag *diag)
{
	if (sys->loop() == -ENOTSUP)
		return missing_feature(diag, -ENOTSUP, "BPF helper bpf_loop",
				       "it needs Linux 5.17 or newer");
	if (sys->switch_state() == -ENOTSUP)
		return missing_feature(diag, -ENOTSUP, "task state in its sched_switch tracepoint",
				       "it needs Linux 5.18 or newer");
	return 0;
}

/* ---- mechanisms --------------------------------------------------------------------------- */

struct found {
	int multi;   /* 0: multi-uprobe links are supported */
	bool filter; /* and they can fire for all threads of one process */
	int tracefs; /* 0: uprobe events can be defined */
};

/*
 * A kernel with uprobe_multi reports that the file is not a regular one. From 6.6 to 6.9, a link
 * with a pid fired for one thread only. The fix (46ba0e49b642 in 6.10, and backports) also checks
 * the pid before the file, which shows in the error.
 */
static int find_multi(const struct kcaps_system *sys, struct found *f, struct diag *diag)
{
	_cleanup_close_ int prog = sys->empty_program();

	f->multi = prog;
	if (prog == -EPERM || prog == -EACCES)
		return refused(diag, prog, "a BPF program");
	if (prog < 0)
		return prog == -EINVAL ? 0 : diag_errno(diag, -prog, "cannot load a BPF program");
	f->multi = sys->multi_link(prog, 0);
	if (f->multi == -EOPNOTSUPP)
		return missing_feature(diag, f->multi, "uprobes", "it needs CONFIG_UPROBES=y");
	if (f->multi >= 0 || f->multi == -EBADF)
		f->multi = f->multi == -EBADF ? 0 : -ENOTSUP;
	f->filter = f->multi == 0 && sys->multi_link(prog, -1) == -EINVAL;
	return 0;
}

static bool has_mechanism(const struct found *f, enum probe_mechanism m)
{
	switch (m) {
	case PROBE_MULTI:
		return f->filter;
	case PROBE_TRACEFS:
		return f->tracefs == 0;
	case PROBE_MULTI_ALL:
		return f->multi == 0;
	}
	return false;
}

/* tracefs belongs to root, so another user also needs to override its files' modes. */
static int no_tracefs(const struct kcaps_system *sys, int err, struct diag *diag)
{
	uint64_t caps = 0;
	const char *name = "CAP_SYS_ADMIN";

	if (sys->capabilities(&caps) == 0 && has_cap(caps, KCAP_SYS_ADMIN))
		name = "CAP_DAC_OVERRIDE";
	return diag_set(diag, err, PYP_EXIT_PERMISSION, "run as root",
			"%s is missing: needed to define uprobe events in tracefs, on a kernel "
			"without multi-uprobe links",
			name);
}

static int no_mechanism(const struct kcaps_system *sys, const struct found *f, struct diag *diag)
{
	if (f->tracefs == -EPERM || f->tracefs == -EACCES)
		return no_tracefs(sys, f->tracefs, diag);
	return missing_feature(diag, -ENOTSUP, "multi-uprobe links, nor uprobe events in tracefs",
			       "it needs Linux 6.6 or newer, or CONFIG_UPROBE_EVENTS=y");
}

static int check_wish(const char *wish, const struct found *f, enum probe_mechanism *ret,
		      struct diag *diag)
{
	for (enum probe_mechanism m = PROBE_MULTI; m <= PROBE_MULTI_ALL; m++) {
		if (strcmp(wish, probe_mechanism_name(m)) != 0)
			continue;
		if (!has_mechanism(f, m))
			return diag_set(diag, -ENOTSUP, PYP_EXIT_UNTRACEABLE,
					"without " KCAPS_WISH " the best one is chosen",
					"this kernel cannot attach by '%s', as " KCAPS_WISH
					" wants it",
					wish);
		*ret = m;
		return 0;
	}
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "multi, tracefs and multi-all are known",
			KCAPS_WISH " names no mechanism: '%s'", wish);
}

/* In order of preference. A link that slows down every process with the file comes last. */
static int choose(const struct kcaps_system *sys, const struct found *f, enum probe_mechanism *ret,
		  struct diag *diag)
{
	for (enum probe_mechanism m = PROBE_MULTI; m <= PROBE_MULTI_ALL; m++) {
		if (!has_mechanism(f, m))
			continue;
		*ret = m;
		return 0;
	}
	return no_mechanism(sys, f, diag);
}

int kcaps_check(const struct kcaps_system *sys, const char *wish, enum probe_mechanism *ret,
		struct diag *diag)
{
	struct found f = {.multi = -ENOTSUP, .tracefs = -ENODEV};
	int r = check_permissions(sys, diag);

	if (r == 0)
		r = check_btf(sys, diag);
	if (r == 0)
		r = check_ring(sys, diag);
	if (r == 0)
		r = check_programs(sys, diag);
	if (r == 0)
		r = find_multi(sys, &f, diag);
	if (r < 0)
		return r;
	/* Only test this if it matters. */
	if (wish || !f.filter)
		f.tracefs = sys->tracefs();
	return wish ? check_wish(wish, &f, ret, diag) : choose(sys, &f, ret, diag);
}

int kcaps_no_event(const struct kcaps_system *sys, int err, const char *what, struct diag *diag)
{
	uint64_t caps = 0;

	if ((err == -EPERM || err == -EACCES) && sys->capabilities(&caps) == 0 &&
	    !has_cap(caps, KCAP_SYS_ADMIN))
		return diag_set(diag, err, PYP_EXIT_PERMISSION, "run as root, or with it",
				"cannot %s: CAP_SYS_ADMIN is missing: this kernel requires it for "
				"perf events",
				what);
	return diag_errno(diag, -err, "cannot %s", what);
}

/* ---- the kernel itself -------------------------------------------------------------------- */

static int kernel_capabilities(uint64_t *ret)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	*ret = data[0].effective | (uint64_t)data[1].effective << 32;
	return 0;
}

/*
 * Where /sys/kernel/btf is not there to be read, libbpf looks for files such as
 * /boot/vmlinux-RELEASE, which can have BTF alone. They are trusted like the kernel: only root can
 * write them.
 */
static int kernel_btf(void)
{
	struct btf *btf;
	int r;

	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		return 0;
	btf = btf__load_vmlinux_btf();
	r = btf ? 0 : errno ? -errno : -ENOENT;
	btf__free(btf);
	return r;
}

static int kernel_ring(void)
{
	_cleanup_close_ int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, NULL, 0, 0,
						(uint32_t)sysconf(_SC_PAGESIZE), NULL);

	return fd < 0 ? fd : 0;
}

static int kernel_loop(void)
{
	int r = libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, NULL);

	return r < 0 ? r : r ? 0 : -ENOTSUP;
}

/*
 * The arguments in the tracepoint's BTF prototype: a context, then preempt, prev, next and, since
 * 5.18, prev_state.
 */
#define SWITCH_ARGS 5

static int count_switch_args(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *t;
	int r;

	if (!btf)
		return -errno;
	r = btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
	t = r < 0 ? NULL : btf__type_by_id(btf, (uint32_t)r);
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	r = t && btf_is_func_proto(t) ? btf_vlen(t) : -ENOENT;
	btf__free(btf);
	return r;
}

bool kcaps_has_tracepoint(const char *name)
{
	struct btf *btf = btf__load_vmlinux_btf();
	char type[64];
	bool has;

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	has = btf && btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
	btf__free(btf);
	return has;
}

static bool has_member(const struct btf *btf, const char *type, const char *name)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_type *t = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);

	for (uint32_t i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), name))
			return true;
	return false;
}

bool kcaps_has_resume(void)
{
	static int known; /* 1: it has; -1: it has not */

	if (!known)
		known = kcaps_has_tracepoint("sched_exit_tp") ? 1 : -1;
	return known > 0;
}

/* Parsing BTF takes milliseconds and the result never changes, so it is done once per process. */
bool kcaps_delays_dequeues(void)
{
	static int delays = -1;

	if (delays < 0) {
		struct btf *btf = btf__load_vmlinux_btf();

		delays = btf && has_member(btf, "sched_entity", "sched_delayed");
		btf__free(btf);
	}
	return delays;
}

static int kernel_switch_state(void)
{
	static int args;

	if (!args)
		args = count_switch_args();
	return args < 0 ? args : args < SWITCH_ARGS ? -ENOTSUP : 0;
}

/* Loads a program that does nothing. */
static int kernel_empty_program(void)
{
	struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = UPROBE_MULTI_ATTACH_TYPE);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns,
			     sizeof(insns) / sizeof(insns[0]), &opts);
}

static int kernel_multi_link(int prog_fd, pid_t pid)
{
	const uint64_t offset = 0;
	int fd = uprobe_multi_link(&(struct uprobe_multi_opts){
		.prog_fd = prog_fd, .path = "/", .offsets = &offset, .n = 1, .pid = pid});

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

const struct kcaps_system kcaps_kernel = {
	.capabilities = kernel_capabilities,
	.btf = kernel_btf,
	.ring = kernel_ring,
	.loop = kernel_loop,
	.switch_state = kernel_switch_state,
	.empty_program = kernel_empty_program,
	.multi_link = kernel_multi_link,
	.tracefs = uprobe_event_possible,
};
