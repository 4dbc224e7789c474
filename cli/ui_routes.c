// SPDX-License-Identifier: BSD-2-Clause
/* The table of what the live page's server answers: see ui_routes.h. */
#include "ui_routes.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct ui_route routes[] = {
	{"GET", "/", UI_PAGE},
	{"GET", "/ui/processes", UI_PROCESSES},
	{"GET", "/ui/options", UI_OPTIONS},
	{"GET", "/v1/status", UI_FORWARD},
	{"GET", "/v1/snapshot", UI_FORWARD},
	{"POST", "/v1/targets", UI_FORWARD},
	{"DELETE", "/v1/targets/{}", UI_FORWARD},
	{"POST", "/v1/forecast", UI_FORWARD},
	{"POST", "/v1/start", UI_FORWARD},
	{"POST", "/v1/stop", UI_FORWARD},
	{"POST", "/v1/clear", UI_FORWARD},
	{"POST", "/v1/slow", UI_FORWARD},
	{"GET", "/v1/slow/{}", UI_FORWARD},
	{"DELETE", "/v1/slow/{}", UI_FORWARD},
	{NULL, NULL, UI_PAGE},
};

static bool matches(const char *pattern, const char *path, size_t n)
{
	size_t fixed = strcspn(pattern, "{");
	size_t digits = n > fixed ? strspn(path + fixed, "0123456789") : 0;

	if (n < fixed || strncmp(pattern, path, fixed) != 0)
		return false;
	return pattern[fixed] ? digits > 0 && digits == n - fixed : n == fixed;
}

const struct ui_route *ui_route_find(const char *method, const char *uri, unsigned int *ret_status,
				     struct diag *diag)
{
	const size_t n = strcspn(uri, "?");

	*ret_status = 404;
	for (const struct ui_route *r = routes; r->method; r++) {
		if (!matches(r->path, uri, n))
			continue;
		if (strcmp(r->method, method) == 0)
			return r;
		*ret_status = 405;
	}
	if (*ret_status == 405)
		diag_set(diag, -EOPNOTSUPP, PYP_EXIT_USAGE, "", "this path has no such method");
	else
		diag_set(diag, -ENOENT, PYP_EXIT_USAGE, "use the daemon's socket for other paths",
			 "this path is not served");
	return NULL;
}
