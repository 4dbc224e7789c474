/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strict number parsers: the number must be the whole string, without blanks or sign. They return
 * 0, -EINVAL or -ERANGE, and leave *ret unchanged on failure.
 */
#ifndef PYPROF_BASE_PARSE_H
#define PYPROF_BASE_PARSE_H

#include <stdint.h>
#include <sys/types.h>

/* Decimal, min ≤ value ≤ max */
int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);

/* 1 to 4194304, the kernel's limit (PID_MAX_LIMIT) */
int parse_pid(const char *s, pid_t *ret);

/* "10" (seconds), "1.5", "250ms", "90s", "2m", "1h" → nanoseconds; above 0, at most one year */
int parse_duration(const char *s, uint64_t *ret_ns);

/* "4096", "64K", "16M", "1G" (powers of 1024) → bytes. */
int parse_size(const char *s, uint64_t *ret);

/* "0.5", "10", "100": 0 to 100, at most six decimals */
int parse_percent(const char *s, double *ret);

#endif
