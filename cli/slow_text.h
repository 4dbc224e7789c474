/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slow calls as text: the JSON of GET /v1/slow/ID, for people. Pure: JSON in, stream out. The JSON may
 * be damaged or hostile: members that are missing count as 0, invalid references as none.
 */
#ifndef PYPROFCTL_SLOW_TEXT_H
#define PYPROFCTL_SLOW_TEXT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Print each call with its tree, slowest first, and notes below. Children with less than 1 % of the
 * call are folded into one line. width: columns of the terminal, to which all lines but the notes are
 * cut; 0: not a terminal, nothing is cut. -ENOMEM: out of memory.
 */
int slow_text(const json_t *slow, int width, FILE *out);

/* Print one line about a recording: "12.3s, 1234 calls, 3 over 200 ms". */
void slow_text_progress(const json_t *counters, FILE *out);

#endif
