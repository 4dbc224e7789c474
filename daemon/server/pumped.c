// SPDX-License-Identifier: BSD-2-Clause
/* A stream that keeps the daemon's other work going: see pumped.h. */
#include "server/pumped.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"

#define PUMP_NS 5000000ull
#define BUFFER	65536

struct pumped {
	int fd;
	struct pumped_room *room;
	void (*pump)(void *ctx);
	void *ctx;
	uint64_t last_ns;
};

static ssize_t pumped_write(void *cookie, const char *data, size_t n)
{
	struct pumped *p = cookie;
	size_t done = 0;

	if (clock_monotonic_ns() - p->last_ns >= PUMP_NS) {
		p->pump(p->ctx);
		p->last_ns = clock_monotonic_ns();
	}
	/* nor may less follow: there must be no gap */
	if (p->room->exceeded || n > p->room->left) {
		p->room->exceeded = true;
		errno = EFBIG;
		return 0;
	}
	while (done < n) {
		ssize_t w = write(p->fd, data + done, n - done);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return 0;
		done += (size_t)w;
	}
	p->room->left -= n;
	return (ssize_t)n;
}

static int pumped_close(void *cookie)
{
	free(cookie);
	return 0;
}

FILE *pumped_open(int fd, struct pumped_room *room, void (*pump)(void *ctx), void *ctx)
{
	struct pumped *p = malloc(sizeof(*p));
	FILE *f;

	if (!p)
		return NULL;
	*p = (struct pumped){
		.fd = fd, .room = room, .pump = pump, .ctx = ctx, .last_ns = clock_monotonic_ns()};
	f = fopencookie(p, "w",
			(cookie_io_functions_t){.write = pumped_write, .close = pumped_close});
	if (!f) {
		free(p);
		return NULL;
	}
	setvbuf(f, NULL, _IOFBF, BUFFER);
	return f;
}
