// SPDX-License-Identifier: BSD-2-Clause
/* Opening probes, at once or on a thread: see probe.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "probe/holder.h"
#include "probe/kcaps.h"
#include "probe/load.h"
#include "probe/probe_priv.h"
#include "probe/ring.h"
#include "probe/sites.h"
#include "probe/ticker.h"
#include "pyprof.skel.h"

static int __attribute__((format(printf, 2, 0)))
debug_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	return secure_getenv("PYPROFD_DEBUG") ? vfprintf(stderr, fmt, ap) : 0;
}

int probe_check(enum probe_mechanism *ret, struct diag *diag)
{
	enum probe_mechanism found;
	int r;

	libbpf_set_print(debug_print);
	r = kcaps_check(&kcaps_kernel, secure_getenv(KCAPS_WISH), &found, diag);
	if (r == 0 && ret)
		*ret = found;
	return r;
}

/*
 * The kernel identifies a link's process by the memory of its main thread, which has none after its
 * exit.
 */
static int check_without_leader(pid_t pid, enum probe_mechanism *ret, struct diag *diag)
{
	struct diag why = {0};
	int r;

	r = kcaps_check(&kcaps_kernel, probe_mechanism_name(PROBE_TRACEFS), ret, &why);
	if (r == 0 || why.exit == PYP_EXIT_PERMISSION) {
		if (r < 0)
			*diag = why;
		return r;
	}
	return diag_set(
		diag, r, PYP_EXIT_UNTRACEABLE,
		"it needs uprobe events in tracefs, or a main thread that waits for the others",
		"the main thread of process %d has ended, and this kernel cannot trace it then",
		(int)pid);
}

void probe_prepare(void)
{
	(void)holder_start();
}

static int probe_new(const struct probe_opts *opts, struct probe **ret, struct diag *diag)
{
	_cleanup_(probe_freep) struct probe *p = NULL;
	enum probe_mechanism mechanism;
	int r;

	r = opts->tid && opts->tid != opts->pid && opts->mode != MODE_SAMPLE
		    ? check_without_leader(opts->pid, &mechanism, diag)
		    : probe_check(&mechanism, diag);
	if (r)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return diag_errno(diag, ENOMEM, "cannot set up probes");
	p->on = p->between = PROBE_NOT_ATTACHED;
	p->closing = p->marks = -1;
	p->mode = opts->mode;
	p->clocks = opts->sampling.rate != 0;
	p->momentary = opts->sampling.momentary;
	p->mechanism = mechanism;
	r = opts->mode == MODE_SAMPLE ? 0 : holder_start();
	if (r)
		return diag_errno(diag, -r, "cannot start the process that holds the probes");
	*ret = TAKE_PTR(p);
	return 0;
}

/* What needs loaded programs. */
static int set_up(struct probe *p, const struct probe_opts *opts, struct diag *diag)
{
	int r = programs_open_ring(p->skel, &p->ring, diag);

	if (r)
		return r;
	p->shares = p->clocks && !p->momentary;
	if (p->shares)
		ticker_prepare(probe_period(p));
	if (opts->pid && probe_set_target(p, opts) < 0)
		return diag_errno(diag, ENOMEM, "cannot set up probes");
	return 0;
}

int probe_open(const struct probe_opts *opts, struct probe **ret, struct diag *diag)
{
	_cleanup_(probe_freep) struct probe *p = NULL;
	int r = probe_new(opts, &p, diag);

	if (!r)
		r = programs_open(opts, p->mechanism, &p->skel, diag);
	if (!r)
		r = set_up(p, opts, diag);
	if (!r)
		*ret = TAKE_PTR(p);
	return r;
}

int probe_open_begin(const struct probe_opts *opts, struct probe **ret, struct diag *diag)
{
	_cleanup_(probe_freep) struct probe *p = NULL;
	int r = probe_new(opts, &p, diag);

	if (!r)
		r = programs_open_begin(opts, p->mechanism, &p->opening, diag);
	if (r)
		return r;
	p->opts = *opts;
	*ret = TAKE_PTR(p);
	return 0;
}

bool probe_is_ready(const struct probe *p)
{
	return !p->opening.load || load_done(p->opening.load);
}

bool probe_opens(const struct probe *p, const struct probe_opts *opts)
{
	const struct probe_opts *own = &p->opts;

	return own->pid == opts->pid && own->tid == opts->tid && own->mode == opts->mode &&
	       own->counters == opts->counters && own->builtins == opts->builtins &&
	       own->collections == opts->collections && own->ring_bytes == opts->ring_bytes &&
	       own->marks == opts->marks && own->mark_records == opts->mark_records &&
	       own->light == opts->light && own->layout == opts->layout &&
	       own->plain == opts->plain && own->walks == opts->walks &&
	       own->sampling.rate == opts->sampling.rate &&
	       own->sampling.when == opts->sampling.when && own->sampling.top == opts->sampling.top;
}

int probe_opened(struct probe *p, struct diag *diag)
{
	int r;

	if (!p->opening.skel)
		return p->skel ? 0 : diag_errno(diag, EINVAL, "cannot set up probes");
	r = programs_opened(&p->opening, &p->opts, &p->skel, diag);
	return r ? r : set_up(p, &p->opts, diag);
}

int probe_ready_fd(void)
{
	return loads_fd();
}

int probe_set_target(struct probe *p, const struct probe_opts *opts)
{
	char *copy = strdup(opts->via);

	if (!copy)
		return -ENOMEM;
	free(p->via);
	p->via = copy;
	p->pid = opts->pid;
	p->tid = opts->tid ? opts->tid : opts->pid;
	p->bias = opts->bias;
	p->plan = opts->plan;
	p->skel->bss->target_tgid = (uint32_t)opts->pid;
	if (opts->plan && p->skel->rodata->builtins)
		probe_native_sites(opts->plan, p->skel->bss->native_sites);
	p->skel->bss->native_types = opts->native;
	p->skel->bss->sampling_at = (struct pyp_sampling_at){
		.interp_head = opts->sampling.interp_head,
		.code_type = opts->sampling.code_type,
	};
	memcpy(p->skel->bss->sampling_at.own, opts->sampling.own, sizeof(opts->sampling.own));
	return 0;
}

void probe_free(struct probe *p)
{
	if (!p)
		return;
	if (p->opening.skel)
		programs_abandon(&p->opening);
	probe_detach(p);
	probe_marks_detach(p);
	if (p->shares)
		ticker_done();
	ring_free(p->ring);
	programs_close(p->skel);
	free(p->via);
	free(p);
}
