// SPDX-License-Identifier: BSD-2-Clause
/* Arbitrary timeline data from a daemon: the writer must refuse it or write a complete file, in
 * both formats. */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "timeline/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_one(const char *format, const uint8_t *data, size_t size)
{
	const struct timeline_writer_opts o = {.format = format};
	_cleanup_(timeline_writer_freep) struct timeline_writer *w = NULL;
	_cleanup_free_ char *text = NULL;
	size_t half = size / 2, n;
	struct diag diag = {0};
	FILE *out = open_memstream(&text, &n);
	int r;

	if (!out || timeline_writer_new(&o, out, &w, NULL) < 0)
		abort();
	r = timeline_writer_feed(w, data, half, &diag);
	if (r == 0)
		r = timeline_writer_feed(w, data + half, size - half, &diag);
	if ((r < 0) != (diag.err != 0) || timeline_writer_finish(w, NULL, NULL) < 0)
		abort();
	fclose(out);
	if (n > TIMELINE_SIZE_MIN)
		abort();
	if (*format != 'c' || format[1] != 'h')
		return;
	/* jansson's input cannot contain NUL, and the writer must not write any */
	json_t *root = json_loadb(text, n, 0, NULL);

	if (!root)
		abort();
	json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	write_one("chrome", data, size);
	write_one("csv", data, size);
	return 0;
}
