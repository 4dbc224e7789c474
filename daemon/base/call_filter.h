/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system calls that confined helper processes may use: one table for all of them, which is
 * compiled into a seccomp filter. Calls that are not in a helper's list fail with ENOSYS, which C
 * libraries handle; calls of another instruction set kill the process.
 */
#ifndef PYPROF_BASE_CALL_FILTER_H
#define PYPROF_BASE_CALL_FILTER_H

#include <linux/filter.h>
#include <stddef.h>

/* The helpers, a bit each */
enum call_filter {
	/* Parses a target's files and memory (inspect/inspector.c): cannot open anything. */
	CALL_FILTER_INSPECTOR = 1,
	/* Opens what the inspector needs (inspect/opener.c). */
	CALL_FILTER_OPENER = 2,
	/* Talks to a receiver (push/sender.c): libcurl, its TLS library and glibc's resolver. */
	CALL_FILTER_SENDER = 4,
	/* Runs a target's interpreter (verify/scratch.c): interpreters since 3.6, the start of
	 * glibc and musl, and the script of the self-test. */
	CALL_FILTER_SCRATCH = 8,
};

/*
 * Restricts this process and its future children to the calls of one helper, for ever. Needs
 * no_new_privs. Returns 0 or a negative errno. In builds with sanitizers (tests only), which need
 * other calls, it does nothing but for CALL_FILTER_SCRATCH, which executes another program.
 */
int call_filter_install(enum call_filter of);

/* Pure: writes the filter to out (max instructions) and returns its length; 0: too long. */
#define CALL_FILTER_MAX 512
size_t call_filter_compile(enum call_filter of, struct sock_filter *out, size_t max);

#endif
