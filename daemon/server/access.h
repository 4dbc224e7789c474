/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which requests the HTTP listener answers. Any program of the machine can connect to a loopback
 * address, and any web page in a browser there can make it send requests. Pure.
 *
 * With a token, a request must have it: as bearer token, or as password of the Basic scheme, for
 * clients that cannot send headers of their own. Without one, the listener is on a loopback address, and
 * a request must name that: a name that an attacker's DNS server resolves to 127.0.0.1 is refused.
 * What a browser sends for another site's page is refused in any case.
 */
#ifndef PYPROF_SERVER_ACCESS_H
#define PYPROF_SERVER_ACCESS_H

#include <stdint.h>

#include "base/diag.h"

struct access {
	const char *token; /* NULL: none is needed */
};

/* The parts of a request that decide; NULL: it does not have this header */
struct access_asked {
	const char *host, *origin, *site; /* site: Sec-Fetch-Site */
	const char *authorization;
	const char *password; /* of the Basic scheme, decoded */
};

/* Requests that were refused, by reason */
struct refused_requests {
	uint64_t token; /* missing or wrong */
	uint64_t site;	/* of another site, or for another host */
};

/* 0, or exit code 4 and the reason: -EACCES: no valid token; -EPERM: another site. Counts refusals. */
int access_check(const struct access *a, const struct access_asked *q,
		 struct refused_requests *count, struct diag *diag);

#endif
