/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Probe hits: which ones produce records, and the code that both collectors with sites, trace.bpf.c
 * and count.bpf.c, share.
 */
#ifndef PYPROF_HIT_BPF_H
#define PYPROF_HIT_BPF_H

#include "frame.bpf.h"
#include "ids.bpf.h"
#include "ring.bpf.h"
#include "thread.bpf.h"

/* A hit whose predicate holds. */
struct hit {
	__u64 cookie;
	__u64 ptr; /* address of the frame or of the code object */
	__u32 tid;
};

static __always_inline int frame_fault(__u32 tid)
{
	count(PYP_LOSS_fault_frame);
	return thread_lost(tid);
}

/*
 * The cookie of the site that was hit. A uprobe event has one cookie for many sites; the cookies
 * are then in a table indexed by address. Other links have cookies; if the table has the address as
 * well, it saves a helper call.
 */
static __always_inline __u64 cookie_of(struct pt_regs *ctx)
{
	struct pyp_site_entry *e;

	if (by_address == PYP_BY_COOKIE)
		return bpf_get_attach_cookie(ctx);
	e = &site_table[PYP_SITE_SLOT(ARCH_IP(ctx), site_factor)];
	if (e->address == ARCH_IP(ctx))
		return e->cookie;
	if (by_address == PYP_BY_BOTH)
		return bpf_get_attach_cookie(ctx);
	count(PYP_LOSS_unknown_site);
	return 0;
}

static __always_inline int hit_take(struct pt_regs *ctx, struct hit *h)
{
	__u64 id;

	hit_slower();
	if (!active)
		return -1;
	h->cookie = cookie_of(ctx);
	/* Between windows only the ends of code objects matter. */
	if (active == PYP_ACTIVE_BETWEEN && PYP_COOKIE_KIND(h->cookie) != PYP_SITE_CODE_FREE)
		return -1;
	if (!h->cookie || !core_counts(h->cookie, ARCH_FLAGS(ctx)))
		return -1;
	id = current_ids();
	if (check_tgid && id >> 32 != target_tgid)
		return -1;
	h->tid = id;
	h->ptr = arch_reg(ctx, PYP_COOKIE_REG(h->cookie));
	if (PYP_COOKIE_DEREF(h->cookie) &&
	    user_read_wait(&h->ptr, sizeof(h->ptr), h->ptr + (__s64)PYP_COOKIE_DISP(h->cookie))) {
		frame_fault(h->tid);
		return -1;
	}
	return 0;
}

/*
 * The type of record for an entry site. At a site for both types, the throwflag argument decides.
 */
static __always_inline __u32 enter_type(struct pt_regs *ctx, __u64 cookie)
{
	if (PYP_COOKIE_HAS_FLAG(cookie) && (__u32)arch_reg(ctx, PYP_COOKIE_FLAG_REG(cookie)))
		return PYP_REC_THROW;
	return PYP_COOKIE_KIND(cookie);
}

/*
 * From 3.15 on, a generator expression executes RESUME as its own function before the
 * RETURN_GENERATOR that creates the generator. That entry is the creation, not a call. (3.15.2
 * Python/codegen.c, codegen_comprehension; confirmed in the binary.)
 */
static __always_inline int is_creation(__u64 frame, __u64 flags)
{
	__u8 owner = 0xff;

	if (!layout.code_creation_flags || !(flags & CORE_CODE_CREATES))
		return 0;
	user_read_wait(&owner, sizeof(owner), frame + layout.frame_owner);
	return owner == PYP_OWNER_THREAD;
}

/* Send a CODE_FREE record, unless the code object was never announced. Returns 0. */
static __always_inline int on_code_free(__u64 cookie, __u64 code, __u32 tid)
{
	__u64 *known = bpf_map_lookup_elem(&codes, &code);
	struct pyp_rec_code_free *r;

	if (known && *known & CORE_CODE_UNNAMED)
		code_send_late(code, tid);
	if (!code_forget(code))
		return 0;
	r = ring_reserve(sizeof(*r));
	if (!r) {
		/* Harmless: the next code object at this address is announced again. */
		count(PYP_LOSS_lost_codes);
		return 0;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), tid, PYP_REC_CODE_FREE, PYP_COOKIE_SITE(cookie), 0);
	r->code = code;
	ring_submit(r);
	return 0;
}

#endif
