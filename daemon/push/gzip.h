/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressing a buffer. Pure. */
#ifndef PYPROF_PUSH_GZIP_H
#define PYPROF_PUSH_GZIP_H

#include <stddef.h>
#include <stdint.h>

/* *ret is owned by the caller. Returns 0, -EFBIG (2 GiB or more) or -ENOMEM. */
int push_gzip(const uint8_t *data, size_t n, uint8_t **ret, size_t *ret_n);

#endif
