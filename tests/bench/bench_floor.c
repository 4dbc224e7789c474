// SPDX-License-Identifier: BSD-2-Clause
/*
 * The minimum cost of any tracer with this mechanism: pyprofd's own plan for a process, with an
 * empty program at each site. `bench_floor PID` prints "ok" when it is ready, then reads lines, on
 * or off, and answers each with "ok". When it ends, the probes are detached.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "plan/plan.h"
#include "probe/uprobe_multi.h"
#include "python/python.h"
#include "target/target.h"

struct floor {
	pid_t pid;
	struct python *py;
	struct plan plan;
	int prog, link;
};

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

static int open_target(struct floor *f, struct diag *diag)
{
	_cleanup_(target_freep) struct target *t = NULL;
	int r;

	r = target_open(f->pid, &t, diag);
	if (r == 0)
		r = python_discover(t, &f->py, diag);
	if (r == 0)
		r = plan_build(f->py->image, &f->py->layout, &f->plan, diag);
	if (r < 0)
		return r;
	f->prog = load_empty();
	return f->prog < 0 ? diag_errno(diag, -f->prog, "cannot load an empty program") : 0;
}

static int probes_on(struct floor *f)
{
	uint64_t offsets[PYP_MAX_SITES];

	for (unsigned int i = 0; i < f->plan.nsites; i++)
		offsets[i] = f->plan.sites[i].offset;
	f->link = uprobe_multi_link(&(struct uprobe_multi_opts){.prog_fd = f->prog,
								.path = f->py->via,
								.offsets = offsets,
								.n = f->plan.nsites,
								.pid = f->pid});
	return f->link < 0 ? f->link : 0;
}

static void probes_off(struct floor *f)
{
	closep(&f->link);
	f->link = -1;
}

static int serve(struct floor *f)
{
	char line[64];
	int r = 0;

	puts("ok");
	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "on\n") == 0)
			r = probes_on(f);
		else
			probes_off(f);
		puts(r == 0 ? "ok" : strerror(-r));
	}
	probes_off(f);
	return r;
}

int main(int argc, char **argv)
{
	struct floor f = {.prog = -1, .link = -1};
	struct diag diag = {0};
	int r;

	setlinebuf(stdout);
	if (argc != 2 || parse_pid(argv[1], &f.pid) < 0) {
		fputs("usage: bench_floor PID\n", stderr);
		return PYP_EXIT_USAGE;
	}
	r = open_target(&f, &diag);
	if (r < 0)
		fprintf(stderr, "bench_floor: %s\n", diag.msg);
	else
		r = serve(&f);
	python_free(f.py);
	return r < 0 ? PYP_EXIT_FAILURE : 0;
}
