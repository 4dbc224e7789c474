/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strict readers of numbers: the whole string is the number, nothing before it (no blanks, no
 * sign) and nothing behind it. They return 0, -EINVAL or -ERANGE and leave *ret alone on failure.
 */
#ifndef PYPROF_BASE_PARSE_H
#define PYPROF_BASE_PARSE_H

#include <stdint.h>
#include <sys/types.h>

/* Decimal, min ≤ value ≤ max. */
int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);

/* 1 … 4194304, the kernel's own limit (PID_MAX_LIMIT). */
int parse_pid(const char *s, pid_t *ret);

/* "10" (seconds), "1.5", "250ms", "90s", "2m", "1h" → nanoseconds; more than 0, at most a year. */
int parse_duration(const char *s, uint64_t *ret_ns);

/* "4096", "64K", "16M", "1G" (powers of 1024) → bytes. */
int parse_size(const char *s, uint64_t *ret);

/* "0.5", "10", "100": 0 to 100, with at most six decimals. */
int parse_percent(const char *s, double *ret);

#endif
