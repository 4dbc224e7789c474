/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of how something is pushed, once for both command lines. */
#ifndef PYPROF_PUSH_OPTIONS_H
#define PYPROF_PUSH_OPTIONS_H

#include "base/opts.h"
#include "push/transport.h"

struct push_options {
	struct transport_opts transport;
	const char *service; /* label of all intervals; NULL: by the command line */
};

/* Rows for a table; prefix: of their names; type, member: where the struct push_options is. */
#define PUSH_OPT(prefix, name, kind, type, member) prefix name, 0, kind, offsetof(type, member)
#define PUSH_OPTION_ROWS(prefix, type, member)                                                     \
	{PUSH_OPT(prefix, "token-file", OPT_STRING, type, member.transport.token_file), "F",       \
	 "authenticate with the token, or user:password, in F"},                                   \
		{PUSH_OPT(prefix, "tenant", OPT_STRING, type, member.transport.tenant), "ID",      \
		 "send this tenant as X-Scope-OrgID"},                                             \
		{PUSH_OPT(prefix, "ca", OPT_STRING, type, member.transport.ca_file), "FILE",       \
		 "verify servers with the certificates in FILE (PEM)\ninstead of the system's"},   \
		{PUSH_OPT(prefix, "timeout", OPT_DURATION, type, member.transport.timeout_ns),     \
		 "S", "give up a request after S seconds (default: 30)"},                          \
	{                                                                                          \
		PUSH_OPT(prefix, "service", OPT_STRING, type, member.service), "NAME",             \
			"label service; default: the script or module"                             \
	}

#endif
