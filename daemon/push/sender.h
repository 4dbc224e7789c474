/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender: the process without privileges that talks to one receiver. The daemon writes a request
 * to the socket (sender_out), waits for the verdict, and writes the next one.
 */
#ifndef PYPROF_PUSH_SENDER_H
#define PYPROF_PUSH_SENDER_H

#include <sys/types.h>

#include "push/transport.h"

struct sender_opts {
	const struct push_url *url; /* all borrowed */
	const struct push_kind *kind;
	const struct transport_opts *transport;
	const struct transport_secrets *secrets;
	size_t max_bytes; /* of a request */
};

/*
 * Starts the process, executed anew: of the daemon's secrets it has only what it sends. Returns 0
 * or a negative errno.
 */
struct helper;
int sender_start(const struct sender_opts *opts, struct helper *ret);

/* What precedes a request; path, headers and body follow. */
struct sender_head {
	uint64_t npath, nheaders, nbody;
	uint8_t id[INTERVAL_ID_BYTES];
};

/* A request being written: that of an interval, or of several, with their bodies one after the other */
struct sender_out {
	struct push_request *const *rqs; /* borrowed; path, headers and id are those of the first */
	size_t n;
	struct sender_head head;
	size_t done; /* bytes */
};

void sender_begin(struct sender_out *out, struct push_request *const *rqs, size_t n);
/* Returns 0 when all is written, -EAGAIN, or the error of writing. */
int sender_write(struct sender_out *out, int fd);

/* A verdict being read */
struct sender_in {
	struct push_verdict verdict;
	size_t have;
};

/*
 * Returns 0 if the verdict is complete, and its values are valid: the process that sent it may be
 * controlled by a receiver. -EAGAIN: not yet; -EPIPE: the sender has ended; -EPROTO: invalid.
 */
int sender_read(struct sender_in *in, int fd);

/* For tests: called instead of the sender's work, with the same restrictions. */
extern void (*sender_test_work)(int fd);

#endif
