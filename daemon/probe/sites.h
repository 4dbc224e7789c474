/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts a plan's sites for the kernel and the BPF programs (private to probe/). Pure. */
#ifndef PYPROF_PROBE_SITES_H
#define PYPROF_PROBE_SITES_H

#include <stdint.h>

#include "plan/plan.h"
#include "pyprof/bpf_abi.h"
#include "pyprof/bpf_params.h"

struct probe_sites {
	uint32_t n;
	uint64_t offsets[PYP_ALL_SITES], cookies[PYP_ALL_SITES], addresses[PYP_ALL_SITES];
};

/*
 * bias: address in the process - address in the file. kinds: bit mask of the kinds of sites. Unless
 * all kinds of Python functions are selected, sites that duplicate others are left out.
 */
#define PROBE_SITES_ALL (~0u)
#define PROBE_SITES_NATIVE                                                                         \
	(1u << PYP_SITE_C_ENTER | 1u << PYP_SITE_C_LEAVE | 1u << PYP_SITE_C_INSTANT)
#define PROBE_SITES_GC	   (1u << PYP_SITE_GC_START | 1u << PYP_SITE_GC_STOP)
#define PROBE_SITES_PYTHON (PROBE_SITES_ALL & ~(PROBE_SITES_NATIVE | PROBE_SITES_GC))
struct probe_sites probe_sites_of(const struct plan *plan, uint64_t bias, unsigned int kinds);

/*
 * PYP_TRAP_* by address in the process, without duplicates, for a plan's sites of these kinds and n of its
 * marks, by number.
 */
struct probe_traps {
	uint32_t n;
	struct probe_trap {
		uint64_t address, flags;
	} v[PYP_TRAPS_MAX];
};
void probe_traps_of(const struct plan *plan, uint64_t bias, unsigned int kinds,
		    const uint8_t *marks, uint32_t n, struct probe_traps *ret);

/* Fills, by site number, the location of the called object. */
void probe_native_sites(const struct plan *plan, struct pyp_native_site ret[PYP_ALL_SITES]);

/*
 * Fills the table in which the programs look up a site by address. Returns 0, or -EEXIST if two
 * sites have the same address.
 */
int probe_sites_table(const struct probe_sites *sites, struct pyp_site_entry table[PYP_SITE_SLOTS],
		      __u64 *ret_factor);

#endif
