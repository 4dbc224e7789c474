// SPDX-License-Identifier: BSD-2-Clause
/* An answer being received: see answer.h. */
#include "push/answer.h"

#include <string.h>

void answer_reset(struct answer *a)
{
	a->headers = a->body_bytes = a->kept = 0;
	a->complete = a->too_large = a->interim = false;
}

static bool is_empty_line(const char *data, size_t n)
{
	return (n == 2 && data[0] == '\r' && data[1] == '\n') || (n == 1 && data[0] == '\n');
}

/* "HTTP/1.1 103 …" */
static bool is_interim(const char *data, size_t n)
{
	const char *space = memchr(data, ' ', n);

	return space && (size_t)(space - data) + 1 < n && space[1] == '1';
}

/* One line each, also of responses before the final one. */
size_t answer_header(char *data, size_t size, size_t count, void *ctx)
{
	struct answer *a = ctx;
	size_t n = size * count;

	a->headers += n;
	if (a->headers > ANSWER_HEADERS_MAX) {
		a->too_large = true;
		return 0;
	}
	if (n > 5 && memcmp(data, "HTTP/", 5) == 0)
		a->interim = is_interim(data, n);
	if (is_empty_line(data, n) && !a->interim)
		a->complete = true;
	return n;
}

size_t answer_body(char *data, size_t size, size_t count, void *ctx)
{
	struct answer *a = ctx;
	size_t n = size * count, room = sizeof(a->body) - a->kept, keep = n < room ? n : room;

	memcpy(a->body + a->kept, data, keep);
	a->kept += keep;
	a->body_bytes += n;
	return a->body_bytes > ANSWER_BODY_MAX ? 0 : n;
}
