/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the live page's server answers: itself, or by forwarding the request to the daemon. All else is
 * refused; neither `shutdown` nor the options of other commands can be reached. Pure.
 */
#ifndef PYPROFCTL_UI_ROUTES_H
#define PYPROFCTL_UI_ROUTES_H

#include "base/diag.h"

enum ui_answer {
	UI_PAGE,
	UI_PROCESSES, /* as `pyprofctl ps --json` */
	UI_OPTIONS,   /* the table of target options */
	UI_FORWARD,   /* to the daemon */
};

struct ui_route {
	const char *method;
	const char *path; /* {} matches digits */
	enum ui_answer answer;
};

#define UI_URI_MAX 2048

/*
 * The route of a method and a URI, whose query does not matter. NULL: *ret_status is 404 for an
 * unknown path, or 405 for one that has no such method, and the diagnosis is set.
 */
const struct ui_route *ui_route_find(const char *method, const char *uri, unsigned int *ret_status,
				     struct diag *diag);

#endif
