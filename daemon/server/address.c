// SPDX-License-Identifier: BSD-2-Clause
/* Addresses: see address.h. */
#include "server/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

static int invalid(const char *text, struct diag *diag)
{
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"expected e.g. 127.0.0.1:9931, [::1]:9931 or localhost:9931",
			"invalid address '%.80s'", text);
}

static void set4(struct address *ret, const struct in_addr *host, uint16_t port)
{
	struct sockaddr_in *sa = (struct sockaddr_in *)&ret->sa;

	*ret = (struct address){.n = sizeof(*sa)};
	*sa = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = *host};
}

static void set6(struct address *ret, const struct in6_addr *host, uint16_t port)
{
	struct sockaddr_in6 *sa = (struct sockaddr_in6 *)&ret->sa;

	*ret = (struct address){.n = sizeof(*sa)};
	*sa = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = *host};
}

int address_parse(const char *text, struct address *ret, struct diag *diag)
{
	const char *colon = strrchr(text, ':');
	char host[ADDRESS_TEXT];
	struct in6_addr v6;
	struct in_addr v4;
	uint64_t port;
	size_t n;

	if (!colon || parse_u64(colon + 1, 0, UINT16_MAX, &port) < 0)
		return invalid(text, diag);
	n = (size_t)(colon - text);
	if (n >= sizeof(host))
		return invalid(text, diag);
	memcpy(host, text, n);
	host[n] = '\0';
	if (strcmp(host, "localhost") == 0)
		memcpy(host, "127.0.0.1", sizeof("127.0.0.1"));
	if (inet_pton(AF_INET, host, &v4) == 1) {
		set4(ret, &v4, (uint16_t)port);
		return 0;
	}
	if (n < 2 || host[0] != '[' || host[n - 1] != ']')
		return invalid(text, diag);
	host[n - 1] = '\0';
	if (inet_pton(AF_INET6, host + 1, &v6) != 1)
		return invalid(text, diag);
	set6(ret, &v6, (uint16_t)port);
	return 0;
}

const char *address_text(const struct address *a, char buf[ADDRESS_TEXT])
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->sa;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->sa;
	char host[INET6_ADDRSTRLEN] = "?";

	if (a->sa.ss_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		snprintf(buf, ADDRESS_TEXT, "[%s]:%u", host, ntohs(v6->sin6_port));
	} else {
		(void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		snprintf(buf, ADDRESS_TEXT, "%s:%u", host, ntohs(v4->sin_port));
	}
	return buf;
}

bool address_is_loopback4(const struct in_addr *a)
{
	return ntohl(a->s_addr) >> 24 == IN_LOOPBACKNET;
}

bool address_is_loopback6(const struct in6_addr *a)
{
	return IN6_IS_ADDR_LOOPBACK(a) ||
	       (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == IN_LOOPBACKNET);
}

bool address_is_loopback(const struct address *a)
{
	if (a->sa.ss_family == AF_INET6)
		return address_is_loopback6(&((const struct sockaddr_in6 *)&a->sa)->sin6_addr);
	return address_is_loopback4(&((const struct sockaddr_in *)&a->sa)->sin_addr);
}

uint32_t address_host(const struct address *a)
{
	const uint8_t *v6 = ((const struct sockaddr_in6 *)&a->sa)->sin6_addr.s6_addr;
	uint32_t word[4];

	if (a->sa.ss_family != AF_INET6)
		return ((const struct sockaddr_in *)&a->sa)->sin_addr.s_addr;
	memcpy(word, v6, sizeof(word));
	if (IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)&a->sa)->sin6_addr))
		return word[3];
	return word[0] * UINT32_C(2654435761) ^ word[1];
}
