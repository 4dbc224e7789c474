/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pages that html/ is bundled into and html/page.S links in. Not NUL-terminated. All are empty
 * if they could not be built, because npm was missing.
 */
#ifndef PYPROF_FORMAT_PAGES_H
#define PYPROF_FORMAT_PAGES_H

#include <stdint.h>

/* The report: the text before and after its data, see html.c */
extern const char html_head[], html_tail[];
extern const uint64_t html_head_size, html_tail_size;
/* The report of slow calls, likewise; its data is the JSON of /v1/slow/ID */
extern const char slow_page_head[], slow_page_tail[];
extern const uint64_t slow_page_head_size, slow_page_tail_size;
/* The live page, complete, and its Content-Security-Policy */
extern const char live_page[], live_policy[];
extern const uint64_t live_page_size, live_policy_size;

#endif
