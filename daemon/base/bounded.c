// SPDX-License-Identifier: BSD-2-Clause
/* A stream that limits the number of bytes written: see bounded.h. */
#include "base/bounded.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define BUFFER 65536

struct bounded {
	int fd;
	struct bounded_room *room;
};

static ssize_t bounded_write(void *cookie, const char *data, size_t n)
{
	struct bounded *b = cookie;
	size_t done = 0;

	/* A later, shorter write could still fit, but the file would then have a gap. */
	if (b->room->exceeded || n > b->room->left) {
		b->room->exceeded = true;
		errno = EFBIG;
		return 0;
	}
	while (done < n) {
		ssize_t w = write(b->fd, data + done, n - done);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return 0;
		done += (size_t)w;
	}
	b->room->left -= n;
	return (ssize_t)n;
}

static int bounded_close(void *cookie)
{
	free(cookie);
	return 0;
}

FILE *bounded_open(int fd, struct bounded_room *room)
{
	struct bounded *b = malloc(sizeof(*b));
	FILE *f;

	if (!b)
		return NULL;
	*b = (struct bounded){.fd = fd, .room = room};
	f = fopencookie(b, "w",
			(cookie_io_functions_t){.write = bounded_write, .close = bounded_close});
	if (!f) {
		free(b);
		return NULL;
	}
	setvbuf(f, NULL, _IOFBF, BUFFER);
	return f;
}
