/* SPDX-License-Identifier: BSD-2-Clause */
/* An answer being received, bounded: libcurl's callbacks. Pure. */
#ifndef PYPROF_PUSH_ANSWER_H
#define PYPROF_PUSH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ANSWER_KEPT	   4096u	     /* bytes of the body that are judged */
#define ANSWER_BODY_MAX	   ((size_t)1 << 20) /* then the connection is closed */
#define ANSWER_HEADERS_MAX 65536u

struct answer {
	size_t headers, body_bytes; /* received */
	bool complete;		    /* the header of the final response is */
	bool too_large;		    /* the header */
	bool interim;		    /* it is a 1xx response's */
	size_t kept;
	uint8_t body[ANSWER_KEPT];
};

void answer_reset(struct answer *a);
/* CURLOPT_HEADERFUNCTION and CURLOPT_WRITEFUNCTION; ctx: the answer. */
size_t answer_header(char *data, size_t size, size_t count, void *ctx);
size_t answer_body(char *data, size_t size, size_t count, void *ctx);

#endif
