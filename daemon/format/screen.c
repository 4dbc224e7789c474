// SPDX-License-Identifier: BSD-2-Clause
/* Text for terminals: see screen.h. */
#include "format/screen.h"

#include <string.h>

#include "format/brief.h"
#include "format/names.h"

#define PROVENANCE_COLUMNS 400
#define LABEL_COLUMNS	   14
#define LAST_LEAST	   32
#define ELLIPSIS	   "..."
#define NELLIPSIS	   (sizeof(ELLIPSIS) - 1)

/* East Asian wide and fullwidth characters and emoji, which use two columns. */
static const struct name_range wide[] = {
	{0x1100, 0x115f},   {0x2e80, 0x303e},	{0x3041, 0xa4cf},   {0xa960, 0xa97f},
	{0xac00, 0xd7a3},   {0xf900, 0xfaff},	{0xfe30, 0xfe6f},   {0xff00, 0xff60},
	{0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
	{0x20000, 0x3fffd},
};

/* Combining characters, which use no column. */
static const struct name_range combining[] = {
	{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x1ab0, 0x1aff},
	{0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};

const char *screen_bold(const struct format_opts *o)
{
	return o->colour ? "\033[1m" : "";
}

const char *screen_dim(const struct format_opts *o)
{
	return o->colour ? "\033[2m" : "";
}

const char *screen_plain(const struct format_opts *o)
{
	return o->colour ? "\033[0m" : "";
}

static size_t width_of(uint32_t cp)
{
	size_t length = name_putc_length(cp);

	if (length > 1)
		return length;
	if (NAME_IN_RANGES(combining, cp))
		return 0;
	return NAME_IN_RANGES(wide, cp) ? 2 : 1;
}

size_t screen_width(const char *s)
{
	size_t n = 0;
	uint32_t cp;

	while ((cp = utf8_next(&s)))
		n += width_of(cp);
	return n;
}

size_t screen_fit(FILE *out, const char *s, size_t columns)
{
	size_t width = screen_width(s), used = 0, before = 0, head, tail;
	bool cut = false;
	uint32_t cp;

	head = tail = width;
	if (width > columns) {
		size_t room = columns > NELLIPSIS ? columns - NELLIPSIS : 0;

		head = room / 2;
		tail = width - (room - head);
	}
	/* prints characters that end within the leading or start within the trailing part */
	for (; (cp = utf8_next(&s)); before += width_of(cp)) {
		size_t w = width_of(cp);

		if (before + w <= head || (width > columns && before >= tail)) {
			name_putc(out, cp);
			used += w;
		} else if (!cut && columns >= NELLIPSIS) {
			cut = true;
			fputs(ELLIPSIS, out);
			used += NELLIPSIS;
		}
	}
	return used;
}

size_t screen_columns(const struct format_opts *o)
{
	if (!o->width)
		return 0;
	return o->width > SCREEN_COLUMNS ? o->width : SCREEN_COLUMNS;
}

void screen_last(FILE *out, const char *s, const struct format_opts *o, size_t used)
{
	size_t columns = screen_columns(o);

	if (!columns)
		name_print(out, s, NAME_COLUMNS);
	else
		screen_fit(out, s, columns > used + LAST_LEAST ? columns - used : LAST_LEAST);
}

struct footer {
	FILE *out;
	size_t columns; /* 0: no terminal */
};

/* A terminal wraps lines about the figures' exactness, as nothing of these may be missing. */
static bool is_about_truth(const char *label)
{
	return strcmp(label, "process") != 0 && strcmp(label, "recorded") != 0;
}

static void print_line(void *ctx, const char *label, const char *value)
{
	const struct footer *f = ctx;

	fprintf(f->out, "   %-11s", label);
	if (f->columns && !is_about_truth(label))
		screen_fit(f->out, value, f->columns - LABEL_COLUMNS);
	else
		name_print(f->out, value, PROVENANCE_COLUMNS);
	fputc('\n', f->out);
}

int screen_provenance(const struct snapshot *s, const struct format_opts *o, FILE *out)
{
	struct footer f = {.out = out};

	if (o->verbose)
		return provenance_lines(s, o, print_line, &f);
	f.columns = screen_columns(o);
	return brief_lines(s, o, print_line, &f);
}
