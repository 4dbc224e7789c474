// SPDX-License-Identifier: BSD-2-Clause
/* The doctor: see doctor.h. */
#include "doctor/doctor.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "inspect/breaks.h"
#include "inspect/inspect.h"
#include "plan/plan.h"
#include "probe/probe.h"
#include "python/python.h"
#include "session/strangers.h"
#include "session/survey.h"
#include "target/target.h"
#include "verify/verify.h"

/* Names come from the target, so control characters in them must not reach the terminal. */
static void print_safe(FILE *out, const char *label, const char *text)
{
	fprintf(out, "%-12s ", label);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		fputc(*p < 0x20 || *p == 0x7f ? '?' : *p, out);
	fputc('\n', out);
}

static void print_python(FILE *out, const struct python *py)
{
	char hex[PYTHON_BUILD_ID_HEX], version[sizeof(py->version) + 32];

	python_build_id_hex(py, hex);
	print_safe(out, "interpreter", py->file);
	snprintf(version, sizeof(version), "%s%s", py->version,
		 python_free_threaded(py) ? ", a free-threaded build" : "");
	print_safe(out, "version", version);
	print_safe(out, "build-id", *hex ? hex : "none");
	fprintf(out, "%-12s CPython %s%s\n", "layout", py->layout.tag,
		py->debug_offsets ? ", confirmed by the build's own debug offsets" : "");
}

static const char *place_text(uint8_t reg, bool deref, int32_t disp, char out[32])
{
	static const char *const regs[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					   "r8",  "r9",	 "r10", "r11", "r12", "r13", "r14", "r15"};

	if (deref)
		snprintf(out, 32, "[%s%+d]", regs[reg & 15], disp);
	else
		snprintf(out, 32, "%s", regs[reg & 15]);
	return out;
}

static void print_site(FILE *out, const struct plan_site *s)
{
	char where[32], callable[32];

	place_text(s->reg, s->deref, s->disp, where);
	fprintf(out, "  %-9s 0x%08llx  %-14s %-8s %-24s %s%s", plan_kind_name(s->kind),
		(unsigned long long)s->offset, plan_cost_name(s->cost), where, s->role, s->insn,
		!s->has_cc ? ""
		: s->taken ? " (when taken)"
			   : " (when not taken)");
	if (s->has_callable)
		fprintf(out, ", callable: %s",
			place_text(s->callable_reg, s->callable_deref, s->callable_disp, callable));
	fputc('\n', out);
}

static void print_native(FILE *out, const struct plan *plan)
{
	if (!plan->nnative) {
		char why[192];

		snprintf(why, sizeof(why), "cannot be traced on this build: %s",
			 plan->native_missing);
		print_safe(out, "C functions:", why);
		return;
	}
	fprintf(out, "%-12s %u sites\n", "C functions:", plan->nnative);
	for (unsigned int i = 0; i < plan->nnative; i++)
		print_site(out, &plan->native[i]);
}

static void print_gc(FILE *out, const struct plan *plan)
{
	if (!plan->ngc) {
		char why[192];

		snprintf(why, sizeof(why), "collections have no rows on this build: %s",
			 plan->gc_missing);
		print_safe(out, "collector:", why);
		return;
	}
	fprintf(out, "%-12s %u sites\n", "collector:", plan->ngc);
	for (unsigned int i = 0; i < plan->ngc; i++)
		print_site(out, &plan->gc[i]);
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
			"%-12s %u of the sites must be single-stepped: 2 to 20 times as expensive, "
			"most in virtual machines\n",
			"note", stepped);
	if (plan->missing[0])
		print_safe(out, "missing", plan->missing);
	if (!plan->missing[0]) {
		print_native(out, plan);
		print_gc(out, plan);
	}
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

static int doctor_look(const char *arg, FILE *out, struct target **ret_target,
		       struct inspect_result *ret, struct diag *diag)
{
	_cleanup_(inspect_freep) struct inspect *in = NULL;
	_cleanup_(target_freep) struct target *t = NULL;
	struct inspect_opts io = {.plan = true, .breaks = true};
	pid_t pid;
	int r;

	if (!is_pid(arg, &pid)) {
		io.path = arg;
		r = target_check_mount(NULL, arg, diag);
		return r < 0 ? r : inspect_once(&io, ret, diag);
	}
	r = target_open(pid, &t, diag);
	if (r < 0)
		return r;
	fprintf(out, "%-12s %d\n", "process", pid);
	io.target = t;
	r = inspect_open(&io, &in, ret, diag);
	if (r < 0)
		return r;
	print_safe(out, "command", ret->cmdline);
	*ret_target = TAKE_PTR(t);
	return 0;
}

static void print_breaks(FILE *out, const struct inspect_result *found)
{
	const size_t n = found->nbreaks;
	unsigned int planned = 0;

	fprintf(out, "%-12s %zu in its code, at", "breakpoints", n);
	for (size_t i = 0; i < n && i < INSPECT_BREAKS; i++) {
		fprintf(out, " 0x%llx", (unsigned long long)found->breaks[i]);
		planned += breaks_is_site(&found->plan, found->python->bias, found->breaks[i]);
	}
	fprintf(out,
		"%s\n%-12s left by a killed tracer, or set by perf or a debugger;\n"
		"%-12s each hit costs about 0.5 us",
		n > INSPECT_BREAKS ? " ..." : "", "", "");
	if (planned)
		fprintf(out,
			"; tracing the process once\n%-12s removes those at planned sites (%u of "
			"these) that a killed tracer left",
			"", planned);
	fputc('\n', out);
}

/*
 * Prints what other programs have inserted into the target's code. Returns true if there is
 * anything that a forecast would disturb or remove.
 */
static bool doctor_strangers(FILE *out, const struct target *t, const struct inspect_result *found)
{
	struct tracers tracers = {0};
	char text[STRANGERS_TEXT];

	(void)probe_tracers_of(t->pid, found->python->via, &found->plan, &tracers);
	strangers_text(&tracers, 0, 0, text);
	if (*text) {
		print_safe(out, "WARNING", text);
		return true;
	}
	if (found->nbreaks)
		print_breaks(out, found);
	return found->nbreaks;
}

/*
 * The result does not decide whether the process can be traced, because C functions are optional.
 */
static void doctor_verify_builtins(FILE *out, const struct verify_opts *vo)
{
	struct verify_opts of_builtins = *vo;
	struct verify_result v;
	char text[256];

	of_builtins.builtins = true;
	verify_run(&of_builtins, &v);
	print_safe(out, "C functions:", verify_builtins_text(&v, text, sizeof(text)));
}

/* Runs the self-test again. Wrong counts are an error; a self-test that could not run is not. */
static int doctor_verify(FILE *out, const struct verify_opts *vo, struct cost *ret_cost,
			 struct diag *diag)
{
	struct verify_result v;
	char text[256];

	verify_run(vo, &v);
	*ret_cost = v.cost;
	print_safe(out, "self-test", verify_text(&v, text, sizeof(text)));
	if (v.gc_wrong[0])
		print_safe(out, "collector:", v.gc_wrong);
	if (v.verdict == VERIFY_RIGHT && vo->plan->nnative)
		doctor_verify_builtins(out, vo);
	print_safe(out, "limits",
		   v.grouped ? "a control group for memory and threads, and resource limits"
			     : "resource limits (no control group could be created)");
	if (v.verdict != VERIFY_WRONG)
		return 0;
	return diag_set(diag, -EPROTO, PYP_EXIT_UNTRACEABLE, "please report this build",
			"this build of Python fails the self-test: %s", v.reason);
}

/*
 * Prints whether this machine can load and attach probes. Returns 0 or an error, which makes the
 * verdict "cannot be traced" for processes and files alike.
 */
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

static int doctor_plan(FILE *out, const struct inspect_result *found, struct diag *diag)
{
	const struct diag *why = &found->plan_diag;

	print_plan(out, &found->plan);
	if (found->warning[0])
		print_safe(out, "WARNING", found->warning);
	if (!found->plan_err)
		return 0;
	return diag_set(diag, found->plan_err, why->exit, why->hint, "%s", why->msg);
}

#define SURVEY_TIMES 10

/*
 * Prints a forecast of the modes' overhead. A forecast that fails does not prevent tracing. Returns
 * the forecast.
 */
static struct forecast print_forecast(FILE *out, const char *key, const struct survey_of *of,
				      const struct cost *cost)
{
	struct forecast_reading reading;
	struct forecast f = {0};
	struct diag why = {0};
	char text[FORECAST_TEXT], line[FORECAST_TEXT + 64];

	if (survey_run(of, &reading, &why) < 0) {
		print_safe(out, key, why.msg);
		return f;
	}
	reading.cost = *cost;
	f = forecast_of(&reading);
	snprintf(line, sizeof(line), "%.3g million calls per second of CPU time, %s",
		 f.calls_per_s / 1e6, forecast_text(&f, 0, 0, text));
	print_safe(out, key, f.known ? line : text);
	return f;
}

static void doctor_forecast(FILE *out, const struct target *t, const struct inspect_result *found,
			    const struct cost *cost)
{
	struct survey_of of = {.target = t,
			       .python = found->python,
			       .plan = &found->plan,
			       .plain = !found->warning[0],
			       .times = SURVEY_TIMES};
	struct forecast f = print_forecast(out, "forecast", &of, cost);

	of.builtins = f.known && found->plan.nnative;
	if (of.builtins)
		(void)print_forecast(out, "  with --builtins", &of, cost);
	if (forecast_advice(&f, f.trace))
		print_safe(out, "WARNING", forecast_advice(&f, f.trace));
}

int doctor_run(const char *arg, FILE *out, struct diag *diag)
{
	_cleanup_(inspect_result_deinit) struct inspect_result found = {0};
	_cleanup_(target_freep) struct target *target = NULL;
	struct diag machine = {0};
	struct cost cost = {0};
	bool disturbed = false;
	int r, m;

	r = doctor_look(arg, out, &target, &found, diag);
	if (r < 0)
		return r;
	print_python(out, found.python);
	m = doctor_machine(out, &machine);
	r = doctor_plan(out, &found, diag);
	if (target && r == 0)
		disturbed = doctor_strangers(out, target, &found);
	if (r == 0 && m < 0)
		r = diag_set(diag, m, machine.exit, machine.hint, "%s", machine.msg);
	if (r == 0)
		r = doctor_verify(out,
				  &(struct verify_opts){
					  .python = found.python,
					  .plan = &found.plan,
					  .target = target,
					  .fresh = true,
				  },
				  &cost, diag);
	if (target && r == 0 && !disturbed)
		doctor_forecast(out, target, &found, &cost);
	probe_end();
	fprintf(out, "%-12s %s\n", "verdict", r == 0 ? "can be traced" : "cannot be traced");
	return r;
}
