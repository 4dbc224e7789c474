/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intervals as compressed bytes: each is one member of a gzip file, so bytes of several can be
 * appended to each other, and `zcat` shows them.
 */
#ifndef PYPROF_HISTORY_GZ_H
#define PYPROF_HISTORY_GZ_H

#include <stddef.h>

#include "base/diag.h"
#include "interval/interval.h"

/* The largest interval that is read or written, uncompressed. */
#define GZ_MAX_BYTES ((size_t)256 << 20)

/* GZ_FAST takes a third of the time, and its result is a fifth larger. */
enum gz_effort { GZ_FAST = 1, GZ_SMALL = 6 };

/* *ret is malloc'ed. Returns 0, -EFBIG, or another negative errno, with *diag set. */
int gz_pack_interval(const struct interval *iv, enum gz_effort effort, void **ret, size_t *ret_size,
		     struct diag *diag);

/* Compress text of this size. The same results. */
int gz_pack_text(const char *text, size_t size, enum gz_effort effort, void **ret, size_t *ret_size,
		 struct diag *diag);

/*
 * Read intervals from untrusted bytes, in order. fn owns iv, and stops by a negative result, which
 * is returned. name: used in error messages. Returns 0, or the errors of interval_parse(); -EBADMSG:
 * also if the compression is damaged or the end is missing; intervals before that were delivered.
 */
typedef int (*gz_unpack_fn)(void *ctx, struct interval *iv, struct diag *diag);
/* Reads the members as text, which is valid during the call. size: that of the member, compressed. */
typedef int (*gz_text_fn)(void *ctx, const char *text, size_t n, size_t size, struct diag *diag);
int gz_unpack_text(const void *data, size_t size, const char *name, gz_text_fn fn, void *ctx,
		   struct diag *diag);

int gz_unpack(const void *data, size_t size, const char *name, gz_unpack_fn fn, void *ctx,
	      struct diag *diag);

#endif
