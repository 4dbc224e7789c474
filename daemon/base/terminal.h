/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text on its way to a terminal. Names, messages and files come from traced programs and from
 * servers that may be anybody's; a terminal executes escape sequences, and draws text that contains
 * direction marks in another order. All text that the programs print to a terminal passes one of the
 * functions below: streams (terminal_open), lines (terminal_clean).
 */
#ifndef PYPROF_BASE_TERMINAL_H
#define PYPROF_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Is this code point something other than a character to draw? Controls (C0, DEL, C1), format
 * characters (direction marks and overrides, joiners, tags), line separators, noncharacters.
 */
bool terminal_harmful(uint32_t cp);

#define TERMINAL_ESCAPE_MAX 16

/* How a harmful code point is shown: "\xNN" or "\u{…}". Returns out. */
char *terminal_escape(uint32_t cp, char out[TERMINAL_ESCAPE_MAX]);

/*
 * Copy in to out (size bytes, always NUL-terminated); each harmful character and each byte that is
 * not UTF-8 becomes '?'. out may be in. Returns out.
 */
char *terminal_clean(const char *in, char *out, size_t size);

/*
 * A line-buffered stream to the terminal at fd (borrowed). Harmful characters are written as
 * terminal_escape() shows them, bytes that are not UTF-8 as U+FFFD. Line feeds, tabs and the escape
 * sequences for bold, dim and plain text pass. NULL: out of memory. fclose() as usual.
 */
FILE *terminal_open(int fd);

/* Does this stream write to a terminal: by terminal_open(), or directly? */
bool terminal_is(FILE *out);

#endif
