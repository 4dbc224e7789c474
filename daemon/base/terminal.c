// SPDX-License-Identifier: BSD-2-Clause
/* Making text safe for terminals: see terminal.h. */
#include "base/terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/utf8_clean.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define HELD_MAX    4		   /* longest character or allowed escape sequence, bytes */
#define BUFFER	    4096

#define COLUMNS_DEFAULT 80

/* Unicode 15.1: Cc, Cf, Cs, Zl, Zp, noncharacters. */
static const struct {
	uint32_t first, last;
} harmful[] = {
	{0x0000, 0x001f},   {0x007f, 0x009f},	{0x00ad, 0x00ad},   {0x0600, 0x0605},
	{0x061c, 0x061c},   {0x06dd, 0x06dd},	{0x070f, 0x070f},   {0x0890, 0x0891},
	{0x08e2, 0x08e2},   {0x180e, 0x180e},	{0x200b, 0x200f},   {0x2028, 0x202e},
	{0x2060, 0x206f},   {0xd800, 0xdfff},	{0xfeff, 0xfeff},   {0xfff0, 0xfffb},
	{0xfffe, 0xffff},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},
	{0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe007f}, {0x10fffe, 0x10ffff},
};

/* The only sequences allowed, used by the reports (format/screen.c): plain, bold, dim. */
static const char *const passing[] = {"\033[0m", "\033[1m", "\033[2m"};

#define NPASSING (sizeof(passing) / sizeof(passing[0]))

bool terminal_harmful(uint32_t cp)
{
	for (size_t i = 0; i < sizeof(harmful) / sizeof(harmful[0]); i++)
		if (cp >= harmful[i].first && cp <= harmful[i].last)
			return true;
	return false;
}

char *terminal_escape(uint32_t cp, char out[TERMINAL_ESCAPE_MAX])
{
	snprintf(out, TERMINAL_ESCAPE_MAX, cp < 0x80 ? "\\x%02" PRIx32 : "\\u{%" PRIx32 "}", cp);
	return out;
}

char *terminal_clean(const char *in, char *out, size_t size)
{
	size_t o = 0;

	while (*in) {
		size_t n = utf8_len(in), step = n ? n : 1;
		bool good = n && !terminal_harmful(utf8_decode(in, n));

		if (o + (good ? n : 1) >= size)
			break;
		if (good)
			memmove(out + o, in, n);
		else
			out[o] = '?';
		o += good ? n : 1;
		in += step;
	}
	out[o] = '\0';
	return out;
}

/* ---- the stream ---- */

struct terminal {
	int fd;
	char held[HELD_MAX + 1]; /* an incomplete character or escape sequence */
	size_t nheld;
	bool styled; /* the last escape sequence was bold or dim */
	char out[BUFFER];
	size_t nout;
	bool failed;
};

/* The open terminal stream; a program has at most one. */
static FILE *opened;
static int opened_fd = -1;

static void write_out(struct terminal *t)
{
	size_t done = 0;

	while (!t->failed && done < t->nout) {
		ssize_t n = write(t->fd, t->out + done, t->nout - done);

		if (n < 0 && errno == EINTR)
			continue;
		t->failed = n <= 0;
		done += n > 0 ? (size_t)n : 0;
	}
	t->nout = 0;
}

static void put(struct terminal *t, const char *s, size_t n)
{
	if (t->nout + n > sizeof(t->out))
		write_out(t);
	memcpy(t->out + t->nout, s, n);
	t->nout += n;
}

static void drop(struct terminal *t, size_t n)
{
	t->nheld -= n;
	memmove(t->held, t->held + n, t->nheld + 1);
}

/* held begins with ESC. Returns the number of bytes handled; 0: incomplete. */
static size_t put_sequence(struct terminal *t)
{
	char escaped[TERMINAL_ESCAPE_MAX];

	for (size_t i = 0; i < NPASSING; i++) {
		if (strcmp(t->held, passing[i]) == 0) {
			t->styled = i != 0;
			put(t, t->held, t->nheld);
			return t->nheld;
		}
		if (strncmp(t->held, passing[i], t->nheld) == 0)
			return 0;
	}
	terminal_escape('\033', escaped);
	put(t, escaped, strlen(escaped));
	return 1;
}

/* Returns whether held is an incomplete character. */
static bool is_beginning(const struct terminal *t)
{
	unsigned char c = (unsigned char)t->held[0];
	size_t expected = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

	for (size_t i = 1; i < t->nheld; i++)
		if (((unsigned char)t->held[i] & 0xc0) != 0x80)
			return false;
	return t->nheld < expected;
}

/* Write the first character of held. Returns the number of bytes handled; 0: incomplete. */
static size_t put_held(struct terminal *t)
{
	size_t n = utf8_len(t->held);
	char escaped[TERMINAL_ESCAPE_MAX];
	uint32_t cp;

	if (t->held[0] == '\033')
		return put_sequence(t);
	if (t->held[0] && !n) {
		if (is_beginning(t))
			return 0;
		put(t, REPLACEMENT, strlen(REPLACEMENT));
		return 1;
	}
	cp = n ? utf8_decode(t->held, n) : 0;
	if (cp == '\n' || cp == '\t' || !terminal_harmful(cp)) {
		put(t, t->held, n);
		return n;
	}
	terminal_escape(cp, escaped);
	put(t, escaped, strlen(escaped));
	return n ? n : 1;
}

static ssize_t terminal_write(void *cookie, const char *data, size_t n)
{
	struct terminal *t = cookie;

	for (size_t i = 0; i < n; i++) {
		size_t used = 1;

		t->held[t->nheld++] = data[i];
		t->held[t->nheld] = '\0';
		while (t->nheld && (used = put_held(t)) > 0)
			drop(t, used);
	}
	write_out(t);
	return t->failed ? 0 : (ssize_t)n;
}

static int terminal_close(void *cookie)
{
	struct terminal *t = cookie;
	bool failed;

	for (; t->nheld; drop(t, 1))
		put(t, t->held[0] == '\033' ? "?" : REPLACEMENT,
		    t->held[0] == '\033' ? 1 : strlen(REPLACEMENT));
	if (t->styled)
		put(t, passing[0], strlen(passing[0]));
	write_out(t);
	failed = t->failed;
	free(t);
	opened = NULL;
	return failed ? EOF : 0;
}

FILE *terminal_open(int fd)
{
	struct terminal *t = calloc(1, sizeof(*t));
	FILE *f;

	if (!t)
		return NULL;
	t->fd = fd;
	f = fopencookie(t, "w",
			(cookie_io_functions_t){.write = terminal_write, .close = terminal_close});
	if (!f) {
		free(t);
		return NULL;
	}
	setvbuf(f, NULL, _IOLBF, BUFFER);
	opened = f;
	opened_fd = fd;
	return f;
}

bool terminal_is(FILE *out)
{
	int fd = out == opened ? -1 : fileno(out);

	return out == opened || (fd >= 0 && isatty(fd));
}

int terminal_columns(FILE *out)
{
	int fd = out == opened ? opened_fd : fileno(out);
	struct winsize size = {0};

	if (!terminal_is(out))
		return 0;
	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return COLUMNS_DEFAULT;
	return size.ws_col;
}
