// SPDX-License-Identifier: BSD-2-Clause
/* Numbers of calls as text: see calls_text.h. */
#include "format/calls_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST 0.001 /* smaller figures and errors are not distinguished */

/* Rounded to so many digits, or to whole numbers, which are never written as powers of ten. */
static void add_figure(char text[CALLS_TEXT_MAX], const char *sign, double n, int digits)
{
	size_t len = strlen(text);

	if (n < pow(10, digits) - 0.5)
		snprintf(text + len, CALLS_TEXT_MAX - len, "%s%.*g", sign, digits, n);
	else
		snprintf(text + len, CALLS_TEXT_MAX - len, "%s%.0f", sign, n);
}

const char *calls_text(const struct per_call *p, char text[CALLS_TEXT_MAX])
{
	text[0] = '\0';
	if (p->calls < 0)
		return text;
	add_figure(text, p->calls < LEAST ? "<" : "", fmax(p->calls, LEAST), 3);
	if (p->error > 0)
		add_figure(text, " +-", fmax(p->error, LEAST), 2);
	return text;
}

enum calls_certainty calls_certainty(uint64_t n, double variance)
{
	if (variance < 0 || sqrt(variance) > (double)n)
		return CALLS_UNKNOWN;
	return sqrt(variance) > ROUGH_ABOVE * (double)n ? CALLS_ROUGH : CALLS_CERTAIN;
}

void calls_print_legend(bool rough, bool unknown, FILE *out)
{
	if (rough)
		fputs("\n   ~ marks figures with a standard error of more than 25%", out);
	if (unknown)
		fputs("\n   ? stands for numbers of calls of which windows have shown too little",
		      out);
}
