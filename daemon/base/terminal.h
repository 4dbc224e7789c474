/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making text safe for terminals. Names, messages and files come from traced programs and from
 * servers of other users. A terminal would execute their escape sequences, and direction marks
 * would reorder the text. All output to a terminal passes through a stream (terminal_open) or a
 * line filter (terminal_clean).
 */
#ifndef PYPROF_BASE_TERMINAL_H
#define PYPROF_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Returns whether this code point is not a drawable character, but a control (C0, DEL, C1), a
 * format character (direction marks and overrides, joiners, tags), a line separator or a
 * noncharacter.
 */
bool terminal_harmful(uint32_t cp);

#define TERMINAL_ESCAPE_MAX 16

/* The text shown for a harmful code point: "\xNN" or "\u{…}". Returns out. */
char *terminal_escape(uint32_t cp, char out[TERMINAL_ESCAPE_MAX]);

/*
 * Copy in to out (size bytes, always NUL-terminated), replacing harmful characters and bytes that
 * are not UTF-8 by '?'. out may be in. Returns out.
 */
char *terminal_clean(const char *in, char *out, size_t size);

/*
 * Open a line-buffered stream to the terminal fd (borrowed). Harmful characters are written as
 * terminal_escape() shows them, bytes that are not UTF-8 as U+FFFD. Line feeds, tabs and the escape
 * sequences for bold, dim and plain text are kept. Returns NULL if out of memory. Close with
 * fclose().
 */
FILE *terminal_open(int fd);

/* Returns whether this stream writes to a terminal, through terminal_open() or directly. */
bool terminal_is(FILE *out);

/* The width of the terminal that this stream writes to, 80 if unknown; 0: it is not a terminal. */
int terminal_columns(FILE *out);

#endif
