// SPDX-License-Identifier: BSD-2-Clause
/* What pyprofd would do to a process or an interpreter: see doctor.h. */
#include "session/doctor.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "plan/plan.h"
#include "probe/breaks.h"
#include "probe/probe.h"
#include "python/python.h"
#include "session/strangers.h"
#include "target/target.h"
#include "verify/verify.h"

/* Names come from the target: nothing of theirs reaches the terminal as a control sequence. */
static void print_safe(FILE *out, const char *label, const char *text)
{
	fprintf(out, "%-12s ", label);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		fputc(*p < 0x20 || *p == 0x7f ? '?' : *p, out);
	fputc('\n', out);
}

static void print_python(FILE *out, const struct python *py)
{
	char hex[PYTHON_BUILD_ID_HEX];

	python_build_id_hex(py, hex);
	print_safe(out, "interpreter", py->file);
	print_safe(out, "version", py->version);
	print_safe(out, "build-id", *hex ? hex : "none");
	fprintf(out, "%-12s CPython %s%s\n", "layout", py->layout.tag,
		py->debug_offsets ? ", confirmed by the build's own debug offsets" : "");
}

static void print_site(FILE *out, const struct plan_site *s)
{
	char where[32];
	static const char *const regs[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					   "r8",  "r9",	 "r10", "r11", "r12", "r13", "r14", "r15"};

	if (s->deref)
		snprintf(where, sizeof(where), "[%s%+d]", regs[s->reg & 15], s->disp);
	else
		snprintf(where, sizeof(where), "%s", regs[s->reg & 15]);
	fprintf(out, "  %-9s 0x%08llx  %-14s %-8s %-24s %s%s\n", plan_kind_name(s->kind),
		(unsigned long long)s->offset, plan_cost_name(s->cost), where, s->role, s->insn,
		!s->has_cc ? ""
		: s->taken ? " (when taken)"
			   : " (when not taken)");
}

static void print_plan(FILE *out, const struct plan *plan)
{
	unsigned int stepped = 0;

	if (plan->table_vaddr)
		fprintf(out, "%-12s 0x%llx, %u instructions decoded\n", "dispatch",
			(unsigned long long)plan->table_vaddr, plan->ninsns);
	fprintf(out, "%-12s %u sites%s\n", "plan", plan->nsites,
		plan->missing[0] ? ", incomplete" : "");
	fprintf(out, "  %-9s %-10s  %-14s %-8s %-24s %s\n", "event", "offset", "cost", "frame",
		"site", "instruction");
	for (unsigned int i = 0; i < plan->nsites; i++) {
		print_site(out, &plan->sites[i]);
		stepped += plan->sites[i].cost == PLAN_COST_STEPPED;
	}
	if (stepped)
		fprintf(out,
			"%-12s %u of the sites must be single-stepped: dearer by 2 to 20 "
			"times, most in virtual machines\n",
			"note", stepped);
	if (plan->missing[0])
		print_safe(out, "missing", plan->missing);
}

static bool is_pid(const char *arg, pid_t *ret)
{
	char *end;
	long v;

	if (!isdigit((unsigned char)arg[0]) || access(arg, F_OK) == 0)
		return false;
	errno = 0;
	v = strtol(arg, &end, 10);
	if (errno || *end || v <= 0 || v > INT_MAX)
		return false;
	*ret = (pid_t)v;
	return true;
}

static int doctor_open(const char *arg, FILE *out, struct target **ret_target, struct python **ret,
		       struct diag *diag)
{
	_cleanup_(target_freep) struct target *t = NULL;
	pid_t pid;
	int r;

	if (!is_pid(arg, &pid))
		return python_open_file(arg, ret, diag);
	r = target_open(pid, &t, diag);
	if (r < 0)
		return r;
	fprintf(out, "%-12s %d\n", "process", pid);
	print_safe(out, "command", t->cmdline);
	r = python_discover(t, ret, diag);
	if (r == 0)
		*ret_target = TAKE_PTR(t);
	return r;
}

static void doctor_hidden(FILE *out, const struct python *py, const struct target *t)
{
	const struct memory mem = memory_live(t->tid);
	char text[256];
	bool misses;

	if (python_hidden(py, &mem, t, &misses, text, sizeof(text)))
		print_safe(out, "WARNING", text);
}

#define BREAKS_SHOWN 8

/* Of all the interpreter's code. */
static size_t find_breaks(const struct python *py, const struct memory *mem,
			  uint64_t out[BREAKS_SHOWN])
{
	const struct image_segment *segments;
	unsigned int n = image_segments(py->image, &segments);
	size_t found = 0;

	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *file;
		size_t size;

		if (!segments[i].exec)
			continue;
		size = image_view_max(py->image, segments[i].vaddr, &file);
		found += breaks_in_text(mem, file, size, py->bias + segments[i].vaddr,
					out + (found < BREAKS_SHOWN ? found : BREAKS_SHOWN),
					found < BREAKS_SHOWN ? BREAKS_SHOWN - found : 0);
	}
	return found;
}

static void print_breaks(FILE *out, const struct python *py, const struct plan *plan, size_t n,
			 const uint64_t *at)
{
	unsigned int planned = 0;

	fprintf(out, "%-12s %zu in its code, at", "breakpoints", n);
	for (size_t i = 0; i < n && i < BREAKS_SHOWN; i++) {
		fprintf(out, " 0x%llx", (unsigned long long)at[i]);
		planned += breaks_is_site(plan, py->bias, at[i]);
	}
	fprintf(out,
		"%s\n%-12s left behind by a tracer that was killed, or set by perf or a debugger;\n"
		"%-12s each costs about 0.5 us whenever it is reached",
		n > BREAKS_SHOWN ? " ..." : "", "", "");
	if (planned)
		fprintf(out,
			"; tracing the process once\n%-12s removes those at planned sites (%u of "
			"these), if "
			"they were left behind",
			"", planned);
	fputc('\n', out);
}

/* What others have in its code. */
static void doctor_strangers(FILE *out, const struct python *py, const struct target *t,
			     const struct plan *plan)
{
	const struct memory mem = memory_live(t->tid);
	struct tracers tracers = {0};
	uint64_t at[BREAKS_SHOWN + 1];
	char text[STRANGERS_TEXT];
	size_t n;

	(void)probe_tracers_of(t->pid, py->via, plan, &tracers);
	strangers_text(&tracers, 0, 0, text);
	if (*text) {
		print_safe(out, "WARNING", text);
		return;
	}
	n = find_breaks(py, &mem, at);
	if (n)
		print_breaks(out, py, plan, n, at);
}

/* The proof, made anew. Wrong counts are a reason not to trace; no proof is not. */
static int doctor_verify(FILE *out, const struct verify_opts *vo, struct diag *diag)
{
	struct verify_result v;
	char text[256];

	verify_run(vo, &v);
	print_safe(out, "self-test", verify_text(&v, text, sizeof(text)));
	print_safe(out, "its bounds",
		   v.grouped ? "a control group for memory and threads, and resource limits"
			     : "resource limits (no control group can be made for it)");
	if (v.verdict != VERIFY_WRONG)
		return 0;
	return diag_set(diag, -EPROTO, PYP_EXIT_UNTRACEABLE, "please report this build",
			"this build of Python fails the self-test: %s", v.reason);
}

/* The machine: said in every case; only the pid form needs it to succeed. */
static int doctor_machine(FILE *out, struct diag *diag)
{
	enum probe_mechanism how;
	struct diag d = {0};
	int r = probe_check(&how, &d);

	if (r == 0) {
		fprintf(out, "%-12s can load and attach probes, by %s\n", "this machine",
			probe_mechanism_text(how));
		return 0;
	}
	print_safe(out, "this machine", d.msg);
	return diag_set(diag, r, d.exit, d.hint, "%s", d.msg);
}

int doctor_run(const char *arg, FILE *out, struct diag *diag)
{
	_cleanup_(python_freep) struct python *py = NULL;
	_cleanup_(target_freep) struct target *target = NULL;
	struct diag machine = {0};
	struct plan plan;
	int r, m;

	r = doctor_open(arg, out, &target, &py, diag);
	if (r < 0)
		return r;
	print_python(out, py);
	m = doctor_machine(out, &machine);
	r = plan_build(py->image, &py->layout, &plan, diag);
	print_plan(out, &plan);
	if (target)
		doctor_hidden(out, py, target);
	if (target && r == 0)
		doctor_strangers(out, py, target, &plan);
	if (r == 0 && m < 0)
		r = diag_set(diag, m, machine.exit, machine.hint, "%s", machine.msg);
	if (r == 0)
		r = doctor_verify(out,
				  &(struct verify_opts){
					  .python = py,
					  .plan = &plan,
					  .target = target,
					  .fresh = true,
				  },
				  diag);
	fprintf(out, "%-12s %s\n", "verdict", r == 0 ? "can be traced" : "cannot be traced");
	return r;
}
