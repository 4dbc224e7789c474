// SPDX-License-Identifier: BSD-2-Clause
/*
 * Encodes the result of an inspection (interpreter and plan) as an answer of the inspector, and
 * checks it in the daemon: see answer.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/answer.h"
#include "inspect/field.h"
#include "inspect/inspect.h"

#define PAGE	  4096u
#define REGISTERS 16u
#define INSN_MAX  15u

struct wire_diag {
	int32_t err;
	uint32_t exit;
	char msg[512], hint[256];
};

struct wire_site {
	uint64_t offset, vaddr, target;
	int32_t disp, callable_disp;
	uint8_t kind, cost, reg, cc, flag_reg, len;
	uint8_t deref, has_cc, taken, has_flag, early, restarts, if_unequal;
	uint8_t has_callable, callable_reg, callable_deref, same_callable;
	uint8_t bytes[INSN_MAX];
	char role[32], insn[64];
};

struct wire_find {
	struct wire_diag diag, plan_diag;
	uint64_t via_start, via_end, bias, runtime, evaluator, code_type, exec_id, table_vaddr;
	struct pyp_native_types native_types;
	uint64_t gil_at, gil_behind, gil_parts[PYTHON_GIL_PARTS];
	struct pyp_code_range own_code[PYP_OWN_CODE];
	uint64_t breaks[INSPECT_BREAKS];
	uint32_t nsites, nnative, ngc, nmarks, ninsns, site_breaks, nbreaks;
	uint16_t refined[PYTHON_REFINED], gil_interp;
	uint8_t gil_pointer, same, via_exe, misses, debug_offsets, major, minor, micro, abi,
		build_id_len;
	uint8_t build_id[IMAGE_BUILD_ID_MAX];
	char version[32], file[4096], cmdline[TARGET_CMDLINE_MAX], warning[256];
	char missing[128], twice[32], native_missing[128], gc_missing[128];
	struct wire_site sites[PYP_MAX_SITES], native[PYP_MAX_NATIVE_SITES];
	struct wire_site gc[PYP_MAX_GC_SITES];
	struct plan_mark marks[PYP_MARKS];
};

const size_t answer_find_max = sizeof(struct wire_find);

/* ---- diagnoses ------------------------------------------------------------------------------ */

static void put_diag(struct wire_diag *w, int err, const struct diag *diag)
{
	w->err = err;
	w->exit = (uint32_t)(diag ? diag->exit : PYP_EXIT_FAILURE);
	FIELD_PUT(w->msg, diag ? diag->msg : "");
	FIELD_PUT(w->hint, diag ? diag->hint : "");
}

/* Returns false if no such error can exist. */
static bool take_diag(const struct wire_diag *w, int *ret_err, struct diag *diag)
{
	struct diag d = {.err = w->err, .exit = (enum pyp_exit)w->exit};

	if (w->err > 0 || w->err < -4095 || w->err == -EINPROGRESS || w->exit > PYP_EXIT_BUSY ||
	    !FIELD_TAKE(d.msg, w->msg) || !FIELD_TAKE(d.hint, w->hint))
		return false;
	if (w->err && (!d.msg[0] || d.exit == PYP_EXIT_OK))
		return false;
	*ret_err = w->err;
	*diag = d;
	return true;
}

/* ---- the plan ---------------------------------------------------------------------------- */

static void put_site(struct wire_site *w, const struct plan_site *s)
{
	*w = (struct wire_site){
		.offset = s->offset,
		.vaddr = s->vaddr,
		.target = s->target,
		.disp = s->disp,
		.kind = (uint8_t)s->kind,
		.cost = (uint8_t)s->cost,
		.reg = s->reg,
		.cc = s->cc,
		.flag_reg = s->flag_reg,
		.len = s->len,
		.deref = s->deref,
		.has_cc = s->has_cc,
		.taken = s->taken,
		.has_flag = s->has_flag,
		.early = s->early,
		.restarts = s->restarts,
		.if_unequal = s->if_unequal,
		.has_callable = s->has_callable,
		.callable_reg = s->callable_reg,
		.callable_deref = s->callable_deref,
		.callable_disp = s->callable_disp,
		.same_callable = s->same_callable,
	};
	memcpy(w->bytes, s->bytes, sizeof(w->bytes));
	FIELD_PUT(w->role, s->role);
	FIELD_PUT(w->insn, s->insn);
}

static bool site_is_possible(const struct wire_site *w)
{
	return w->cost <= PLAN_COST_STEPPED && w->reg < REGISTERS && w->flag_reg < REGISTERS &&
	       w->cc < 16 && w->len >= 1 && w->len <= INSN_MAX && w->offset < IMAGE_MAX_SIZE &&
	       w->vaddr < FIELD_ADDRESS_END && w->target < FIELD_ADDRESS_END &&
	       field_is_bit(w->deref) && field_is_bit(w->has_cc) && field_is_bit(w->taken) &&
	       field_is_bit(w->has_flag) && field_is_bit(w->early) && field_is_bit(w->restarts) &&
	       field_is_bit(w->if_unequal) && field_is_bit(w->has_callable) &&
	       field_is_bit(w->callable_deref) && w->callable_reg < REGISTERS &&
	       field_is_bit(w->same_callable) && w->same_callable <= w->has_callable;
}

/* Returns whether this is a valid site for Python functions. */
static bool is_python_site(const struct wire_site *w)
{
	return w->kind >= PYP_SITE_ENTER && w->kind <= PYP_SITE_CODE_FREE && !w->has_callable;
}

/*
 * Returns whether this is a valid site for C functions: their callables are known at the call, and
 * none is single-stepped.
 */
static bool is_native_site(const struct wire_site *w)
{
	return w->kind >= PYP_SITE_C_ENTER && w->kind <= PYP_SITE_C_INSTANT &&
	       w->cost == PLAN_COST_EMULATED && !w->has_flag && !w->early && !w->restarts &&
	       !w->if_unequal && w->has_callable == (w->kind != PYP_SITE_C_LEAVE);
}

/*
 * Returns whether this is a valid site for garbage collections: an unconditional call of the
 * function that runs gc.callbacks.
 */
static bool is_gc_site(const struct wire_site *w)
{
	return (w->kind == PYP_SITE_GC_START || w->kind == PYP_SITE_GC_STOP) &&
	       w->cost == PLAN_COST_EMULATED && !w->has_flag && !w->early && !w->restarts &&
	       !w->if_unequal && !w->has_callable && !w->has_cc && !w->deref &&
	       (!w->disp || w->disp == PYP_GC_NO_GENERATION);
}

static bool take_site(const struct wire_site *w, struct plan_site *ret)
{
	struct plan_site s = {
		.offset = w->offset,
		.vaddr = w->vaddr,
		.target = w->target,
		.kind = (enum pyp_site_kind)w->kind,
		.cost = (enum plan_cost)w->cost,
		.reg = w->reg,
		.deref = w->deref,
		.disp = w->disp,
		.has_cc = w->has_cc,
		.cc = w->cc,
		.taken = w->taken,
		.has_flag = w->has_flag,
		.flag_reg = w->flag_reg,
		.early = w->early,
		.restarts = w->restarts,
		.if_unequal = w->if_unequal,
		.has_callable = w->has_callable,
		.callable_reg = w->callable_reg,
		.callable_deref = w->callable_deref,
		.callable_disp = w->callable_disp,
		.same_callable = w->same_callable,
		.len = w->len,
	};

	if (!site_is_possible(w) || !FIELD_TAKE(s.role, w->role) || !FIELD_TAKE(s.insn, w->insn))
		return false;
	memcpy(s.bytes, w->bytes, sizeof(s.bytes));
	*ret = s;
	return true;
}

/* Returns whether the instruction of s is one of the n sites. */
static bool contains_site(const struct plan_site *v, uint32_t n, const struct plan_site *s)
{
	for (uint32_t i = 0; i < n; i++)
		if (v[i].offset == s->offset || v[i].vaddr == s->vaddr)
			return true;
	return false;
}

/* Checks the sites for C functions: either all exist or none; they require a complete plan. */
static bool take_native(const struct wire_find *w, int plan_err, struct plan *p)
{
	if (w->nnative > PYP_MAX_NATIVE_SITES ||
	    !FIELD_TAKE(p->native_missing, w->native_missing) ||
	    (w->nnative && (plan_err || p->native_missing[0])))
		return false;
	for (uint32_t i = 0; i < w->nnative; i++)
		if (!is_native_site(&w->native[i]) || !take_site(&w->native[i], &p->native[i]) ||
		    contains_site(p->native, i, &p->native[i]) ||
		    contains_site(p->sites, p->nsites, &p->native[i]))
			return false;
	p->nnative = w->nnative;
	return true;
}

/* Checks the sites for garbage collections. */
static bool take_gc(const struct wire_find *w, int plan_err, struct plan *p)
{
	if (w->ngc > PYP_MAX_GC_SITES || !FIELD_TAKE(p->gc_missing, w->gc_missing) ||
	    (w->ngc && (plan_err || p->gc_missing[0])))
		return false;
	for (uint32_t i = 0; i < w->ngc; i++)
		if (!is_gc_site(&w->gc[i]) || !take_site(&w->gc[i], &p->gc[i]) ||
		    contains_site(p->gc, i, &p->gc[i]) ||
		    contains_site(p->sites, p->nsites, &p->gc[i]) ||
		    contains_site(p->native, p->nnative, &p->gc[i]))
			return false;
	p->ngc = w->ngc;
	return true;
}

static bool is_mark(const struct plan_mark *m)
{
	return m->offset < IMAGE_MAX_SIZE && m->vaddr < FIELD_ADDRESS_END &&
	       m->target < FIELD_ADDRESS_END && m->len && m->len <= INSN_MAX;
}

/* Checks the marks: no instruction is probed twice. */
static bool take_marks(const struct wire_find *w, int plan_err, struct plan *p)
{
	if (w->nmarks > PYP_MARKS || (w->nmarks && plan_err))
		return false;
	for (uint32_t i = 0; i < w->nmarks; i++) {
		const struct plan_site same = {.offset = w->marks[i].offset,
					       .vaddr = w->marks[i].vaddr};

		if (!is_mark(&w->marks[i]) || contains_site(p->sites, p->nsites, &same) ||
		    contains_site(p->native, p->nnative, &same) ||
		    contains_site(p->gc, p->ngc, &same))
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (w->marks[k].offset == same.offset || w->marks[k].vaddr == same.vaddr)
				return false;
		p->marks[i] = w->marks[i];
	}
	p->nmarks = w->nmarks;
	return true;
}

/* Checks the plan: a complete plan lacks no site, and probes no instruction twice. */
static bool take_plan(const struct wire_find *w, int plan_err, struct plan *ret)
{
	struct plan p = {.nsites = w->nsites, .table_vaddr = w->table_vaddr, .ninsns = w->ninsns};

	if (w->nsites > PYP_MAX_SITES || !FIELD_TAKE(p.missing, w->missing) ||
	    !FIELD_TAKE(p.twice, w->twice))
		return false;
	if (!plan_err && p.missing[0])
		return false;
	for (uint32_t i = 0; i < w->nsites; i++) {
		if (!is_python_site(&w->sites[i]) || !take_site(&w->sites[i], &p.sites[i]))
			return false;
		for (uint32_t k = 0; k < i && !plan_err; k++)
			if (p.sites[k].offset == p.sites[i].offset ||
			    p.sites[k].vaddr == p.sites[i].vaddr)
				return false;
	}
	if (!take_native(w, plan_err, &p) || !take_gc(w, plan_err, &p) ||
	    !take_marks(w, plan_err, &p))
		return false;
	*ret = p;
	return true;
}

/* ---- results ----------------------------------------------------------------------------- */

static void put_python(struct wire_find *w, const struct python *py, const struct answer_via *via)
{
	w->via_exe = via->exe;
	w->via_start = via->start;
	w->via_end = via->end;
	w->bias = py->bias;
	w->runtime = py->runtime;
	w->evaluator = python_evaluator(py);
	w->code_type = py->code_type;
	w->native_types = py->native_types;
	w->gil_at = py->gil.at;
	w->gil_behind = py->gil.behind;
	w->gil_interp = py->gil.interp;
	w->gil_pointer = py->gil.pointer;
	memcpy(w->gil_parts, py->gil.parts, sizeof(w->gil_parts));
	memcpy(w->own_code, py->own_code, sizeof(w->own_code));
	w->debug_offsets = py->debug_offsets;
	w->major = py->major;
	w->minor = py->minor;
	w->micro = py->micro;
	w->abi = py->layout.abi;
	w->build_id_len = (uint8_t)py->build_id_len;
	memcpy(w->build_id, py->build_id, py->build_id_len);
	python_refined_get(&py->layout, w->refined);
	FIELD_PUT(w->version, py->version);
	FIELD_PUT(w->file, py->file);
}

static void put_plan(struct wire_find *w, const struct plan *p)
{
	w->table_vaddr = p->table_vaddr;
	w->nsites = p->nsites;
	w->ninsns = p->ninsns;
	FIELD_PUT(w->missing, p->missing);
	FIELD_PUT(w->twice, p->twice);
	for (unsigned int i = 0; i < p->nsites; i++)
		put_site(&w->sites[i], &p->sites[i]);
	w->nnative = p->nnative;
	FIELD_PUT(w->native_missing, p->native_missing);
	for (unsigned int i = 0; i < p->nnative; i++)
		put_site(&w->native[i], &p->native[i]);
	w->ngc = p->ngc;
	FIELD_PUT(w->gc_missing, p->gc_missing);
	for (unsigned int i = 0; i < p->ngc; i++)
		put_site(&w->gc[i], &p->gc[i]);
	w->nmarks = p->nmarks;
	memcpy(w->marks, p->marks, sizeof(w->marks));
}

char *answer_encode_find(const struct inspect_result *r, const struct answer_via *via, int err,
			 const struct diag *diag, size_t *ret_size)
{
	struct wire_find *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	put_diag(&w->diag, err, diag);
	put_diag(&w->plan_diag, r->plan_err, r->plan_err ? &r->plan_diag : NULL);
	w->exec_id = r->exec_id;
	w->same = r->same;
	w->misses = r->misses;
	w->site_breaks = r->site_breaks;
	w->nbreaks = r->nbreaks;
	memcpy(w->breaks, r->breaks, sizeof(w->breaks));
	FIELD_PUT(w->cmdline, r->cmdline);
	FIELD_PUT(w->warning, r->warning);
	if (r->python)
		put_python(w, r->python, via);
	put_plan(w, &r->plan);
	*ret_size = sizeof(*w);
	return (char *)w;
}

/* Builds the path from numbers, instead of using a string from the other process. */
static bool take_via(const struct wire_find *w, pid_t tid, char *out, size_t size)
{
	if (!tid || w->via_exe) {
		out[0] = '\0';
		if (tid)
			snprintf(out, size, "/proc/%d/exe", tid);
		return field_is_bit(w->via_exe);
	}
	snprintf(out, size, "/proc/%d/map_files/%lx-%lx", tid, (unsigned long)w->via_start,
		 (unsigned long)w->via_end);
	return w->via_start < w->via_end && w->via_end <= FIELD_ADDRESS_END &&
	       w->via_start % PAGE == 0 && w->via_end % PAGE == 0;
}

/* A bias is "negative" if a file's addresses are higher than its mapping. */
static bool bias_is_possible(uint64_t bias)
{
	return bias % PAGE == 0 && (bias < FIELD_ADDRESS_END || -bias < FIELD_ADDRESS_END);
}

static bool own_code_is_possible(const struct wire_find *w)
{
	for (int i = 0; i < PYP_OWN_CODE; i++)
		if (!field_is_address(w->own_code[i].start) ||
		    !field_is_address(w->own_code[i].size))
			return false;
	return true;
}

static bool take_gil(const struct wire_find *w, struct python_gil *ret)
{
	struct python_gil g = {.at = w->gil_at,
			       .behind = w->gil_behind,
			       .interp = w->gil_interp,
			       .pointer = w->gil_pointer};

	if (!field_is_address(w->gil_at) || !field_is_address(w->gil_behind) ||
	    !field_is_bit(w->gil_pointer))
		return false;
	for (int i = 0; i < PYTHON_GIL_PARTS; i++)
		if (!field_is_address(w->gil_parts[i]))
			return false;
	memcpy(g.parts, w->gil_parts, sizeof(g.parts));
	*ret = g;
	return true;
}

static bool take_python(const struct wire_find *w, pid_t tid, const char *path, struct python *py)
{
	const struct layout *layout = layout_find_abi(w->major, w->minor, w->abi);

	if (!layout || !layout->proven || w->build_id_len > IMAGE_BUILD_ID_MAX ||
	    !field_is_bit(w->debug_offsets) || !bias_is_possible(w->bias) ||
	    !field_is_address(w->runtime) || !field_is_address(w->evaluator) ||
	    !field_is_address(w->code_type) || !field_is_address(w->native_types.function) ||
	    !field_is_address(w->native_types.cmethod) ||
	    !field_is_address(w->native_types.descriptor) ||
	    !field_is_address(w->native_types.image) ||
	    !field_is_address(w->native_types.image_size) || !own_code_is_possible(w) ||
	    !take_gil(w, &py->gil))
		return false;
	py->layout = *layout;
	py->major = w->major;
	py->minor = w->minor;
	py->micro = w->micro;
	py->bias = w->bias;
	py->runtime = w->runtime;
	py->evaluator = w->evaluator;
	py->code_type = w->code_type;
	py->native_types = w->native_types;
	memcpy(py->own_code, w->own_code, sizeof(py->own_code));
	py->debug_offsets = w->debug_offsets;
	py->build_id_len = w->build_id_len;
	memcpy(py->build_id, w->build_id, sizeof(py->build_id));
	if (path)
		snprintf(py->file, sizeof(py->file), "%s", path);
	else if (!FIELD_TAKE(py->file, w->file))
		return false;
	return FIELD_TAKE(py->version, w->version) && py->version[0] &&
	       python_refined_set(&py->layout, w->refined) == 0 &&
	       take_via(w, tid, py->via, sizeof(py->via));
}

static int invalid_answer(struct diag *diag)
{
	return diag_set(diag, -EPROTO, PYP_EXIT_UNTRACEABLE,
			"the target's files may be damaged or malicious",
			"the process that inspects the target sent an invalid answer");
}

static bool take_found(const struct wire_find *w, pid_t tid, const char *path,
		       struct inspect_result *r)
{
	int err = 0;

	if (!field_is_bit(w->same) || !field_is_bit(w->misses) ||
	    !FIELD_TAKE(r->cmdline, w->cmdline) || !FIELD_TAKE(r->warning, w->warning) ||
	    !take_diag(&w->plan_diag, &err, &r->plan_diag))
		return false;
	if (w->site_breaks > PYP_ALL_SITES)
		return false;
	r->site_breaks = w->site_breaks;
	r->nbreaks = w->nbreaks;
	memcpy(r->breaks, w->breaks, sizeof(r->breaks));
	r->plan_err = err;
	r->exec_id = w->exec_id;
	r->same = w->same;
	r->misses = w->misses;
	if (r->same)
		return true;
	r->python = calloc(1, sizeof(*r->python));
	return r->python && take_python(w, tid, path, r->python) && take_plan(w, err, &r->plan);
}

int answer_decode_find(const void *data, size_t size, pid_t tid, const char *path,
		       struct inspect_result *ret, struct diag *diag)
{
	_cleanup_(inspect_result_deinit) struct inspect_result r = {0};
	_cleanup_free_ struct wire_find *w = malloc(sizeof(*w));
	struct diag sent;
	int err = 0;

	if (!w)
		return diag_errno(diag, ENOMEM, "cannot inspect the target");
	if (size != sizeof(*w))
		return invalid_answer(diag);
	memcpy(w, data, sizeof(*w));
	if (!take_diag(&w->diag, &err, &sent))
		return invalid_answer(diag);
	if (err)
		return diag_set(diag, err, sent.exit, sent.hint, "%s", sent.msg);
	if (!take_found(w, tid, path, &r))
		return invalid_answer(diag);
	*ret = r;
	r = (struct inspect_result){0};
	return 0;
}

void inspect_result_deinit(struct inspect_result *r)
{
	python_free(r->python);
	r->python = NULL;
}
