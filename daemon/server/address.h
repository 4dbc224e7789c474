/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of the HTTP listener: ADDR:PORT, [ADDR]:PORT or localhost:PORT. Pure. */
#ifndef PYPROF_SERVER_ADDRESS_H
#define PYPROF_SERVER_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/diag.h"

struct address {
	struct sockaddr_storage sa;
	socklen_t n;
};

#define ADDRESS_TEXT 64

/* Exit code 2: not an address. Names other than localhost are not resolved. */
int address_parse(const char *text, struct address *ret, struct diag *diag);
/* "127.0.0.1:80" or "[::1]:80". Returns buf. */
const char *address_text(const struct address *a, char buf[ADDRESS_TEXT]);

bool address_is_loopback(const struct address *a);
bool address_is_loopback4(const struct in_addr *a);
bool address_is_loopback6(const struct in6_addr *a); /* also 127.0.0.1 as an IPv6 address */

/* A number for the host of this address, to count its connections: of IPv6, that of its /64 network. */
uint32_t address_host(const struct address *a);

#endif
