/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decoded events: produced by event/decode.c, consumed by stack/ and later stages. Plain data that
 * owns no memory. Units as in pyprof/bpf_abi.h.
 */
#ifndef PYPROF_EVENT_EVENT_H
#define PYPROF_EVENT_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "pyprof/bpf_abi.h"

/*
 * Returns whether addr can be an address in a process's memory, as a frame's is. ACTIVATION_NATIVE
 * and ACTIVATION_GC are bits above such addresses.
 */
static inline bool event_is_user_address(uint64_t addr)
{
	return !(addr >> 62);
}

struct event_string {
	uint64_t code;
	uint64_t object;
	uint32_t which;	     /* enum pyp_string_which */
	uint32_t units;	     /* length of the whole string in characters */
	uint32_t bytes;	     /* size of data */
	uint8_t kind;	     /* bytes per character: 1 (ASCII or Latin-1), 2, 4 */
	uint8_t flags;	     /* PYP_STRING_* */
	const uint8_t *data; /* points into the record; valid only as long as that */
};

struct event_chain {
	uint32_t first;
	uint32_t count;
	uint16_t flags;			      /* PYP_CHAIN_* */
	const struct pyp_chain_frame *frames; /* points into the caller's aligned copy */
};

struct event_sample {
	uint64_t period;
	uint32_t first;
	uint32_t count;
	uint16_t flags; /* PYP_SAMPLE_* */
	int32_t offset; /* see struct pyp_rec_sample */
	/* Points into the caller's aligned copy. With METHOD or NATIVE, the first entry of the
	 * first part is a C function. */
	const uint64_t *codes;
};

/* Number of entries that are not code objects */
static inline uint32_t event_sample_natives(const struct event_sample *s)
{
	return s->flags & (PYP_SAMPLE_METHOD | PYP_SAMPLE_NATIVE) ? 1 : 0;
}

/* Fields other than runtime: SWITCH_OUT only, see struct pyp_rec_switch_out. */
struct event_switch {
	uint64_t runtime;
	uint64_t delay;
	uint64_t arg[2];
	int32_t syscall; /* -1: none */
	uint8_t wait;	 /* enum pyp_wait */
	uint8_t fd;	 /* enum pyp_fd_kind */
	uint8_t gil;
};

struct event_method {
	uint64_t method;
	uint64_t self_type;
	uint32_t kind;	 /* enum pyp_method_kind */
	bool unreadable; /* the name could not be read */
	/* NUL-terminated; point into the record */
	const char *name, *type, *module;
};

/* One event. type (enum pyp_rec_type) selects the union's member. */
struct event {
	uint64_t ts;
	uint32_t tid;
	uint8_t type;
	uint8_t site;
	uint16_t arg;
	union {
		struct {
			uint64_t frame;
			uint64_t code;	 /* ENTER, THROW */
			uint64_t caller; /* ENTER, THROW */
		} call;			 /* ENTER, THROW, LEAVE, YIELD */
		struct {
			uint64_t frame;
			uint64_t method; /* C_ENTER, C_INSTANT */
		} c_call;		 /* C_ENTER, C_LEAVE, C_INSTANT */
		struct event_method method;
		struct {
			uint64_t frame; /* GC_START: the innermost frame; 0: none, or unknown */
		} gc;			/* GC_START, GC_STOP; arg is the generation */
		struct event_switch sw; /* SWITCH_IN, SWITCH_OUT */
		struct {
			uint64_t code;
			uint32_t flags;
			int32_t firstlineno;
			uint32_t id; /* CODE_ID */
		} code;		     /* CODE, CODE_FREE (code only), CODE_ID (code and id) */
		struct event_string string;
		struct event_chain chain;
		struct event_sample sample;
		struct {
			uint64_t runtime;
			char comm[16]; /* NUL-terminated */
		} thread;	       /* THREAD_EXIT */
		struct {
			uint32_t child;	 /* EXEC: 0: the target itself */
			uint32_t parent; /* FORK */
		} process;		 /* FORK, EXEC */
		struct {
			const uint64_t *value; /* PYP_COUNTERS values; points into the record */
		} counters;		       /* COUNTERS */
		struct {
			int64_t resident, mapped; /* change in bytes */
			uint32_t pools;		  /* not all three are 0 */
			uint64_t total;		  /* resident bytes; 0: unknown */
		} memory;			  /* MEMORY */
		struct {
			uint64_t address, size; /* bytes; end does not overflow */
		} block;			/* BLOCK */
	} u;
};

#endif
