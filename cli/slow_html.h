/* SPDX-License-Identifier: BSD-2-Clause */
/* Slow calls as a page: one self-contained file, see format/pages.h. Pure. */
#ifndef PYPROFCTL_SLOW_HTML_H
#define PYPROFCTL_SLOW_HTML_H

#include <jansson.h>
#include <stdio.h>

#include "base/diag.h"

/* result: the daemon's JSON, with steps. */
int slow_html(const json_t *result, FILE *out, struct diag *diag);

#endif
