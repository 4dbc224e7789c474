/* SPDX-License-Identifier: BSD-2-Clause */
/* Decompressing what was compressed for a request. */
#ifndef PYPROF_TESTS_HARNESS_GUNZIP_H
#define PYPROF_TESTS_HARNESS_GUNZIP_H

#include <stddef.h>
#include <stdint.h>

/* One gzip stream, which must end with the data. Returns memory that the caller frees. */
uint8_t *gunzip(const uint8_t *data, size_t n, size_t *ret_n);

#endif
