/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressing a buffer, at once or in pieces. Pure. */
#ifndef PYPROF_PUSH_GZIP_H
#define PYPROF_PUSH_GZIP_H

#include <stddef.h>
#include <stdint.h>

/* *ret is owned by the caller. Returns 0, -EFBIG (2 GiB or more) or -ENOMEM. */
int push_gzip(const uint8_t *data, size_t n, uint8_t **ret, size_t *ret_n);

/* Zeroed: empty. The first error is kept in err; later calls do nothing. */
struct push_zip {
	uint8_t *data; /* owned; complete after push_zip_finish() */
	size_t n, cap;
	struct z_stream_s *stream; /* owned; NULL: not begun, or finished */
	int err;		   /* 0 or -ENOMEM */
};

void push_zip_add(struct push_zip *z, const void *data, size_t n);
/* Returns z->err. */
int push_zip_finish(struct push_zip *z);
void push_zip_deinit(struct push_zip *z);

#endif
