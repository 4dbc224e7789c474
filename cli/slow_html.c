// SPDX-License-Identifier: BSD-2-Clause
/* Slow calls as a page: see slow_html.h. */
#include "slow_html.h"

#include <errno.h>
#include <string.h>

#include "format/pages.h"

/*
 * Receives jansson's output, which is ASCII, and in which < > & only occur in strings: no name in the
 * traced program can end the element that holds the data.
 */
static int put_escaped(const char *buffer, size_t size, void *data)
{
	FILE *out = data;

	for (size_t i = 0; i < size; i++)
		if (buffer[i] && strchr("<>&", buffer[i]))
			fprintf(out, "\\u%04x", (unsigned char)buffer[i]);
		else
			fputc(buffer[i], out);
	return 0;
}

int slow_html(const json_t *result, FILE *out, struct diag *diag)
{
	if (!slow_page_head_size)
		return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_FAILURE, "use -f text, json or chrome",
				"no HTML reports: npm was missing when this was built");
	fwrite(slow_page_head, 1, slow_page_head_size, out);
	if (json_dump_callback(result, put_escaped, out, JSON_COMPACT | JSON_ENSURE_ASCII) < 0)
		return -EIO;
	fwrite(slow_page_tail, 1, slow_page_tail_size, out);
	return 0;
}
