/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names as formats need them. Every string of a snapshot was chosen by the traced program, so it
 * may hold anything: bytes that are not UTF-8, escape sequences, line breaks, marks that reverse
 * the direction of writing. Here they become valid text, and text that cannot harm a terminal.
 */
#ifndef PYPROF_FORMAT_NAMES_H
#define PYPROF_FORMAT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "snapshot/snapshot.h"

/* How many characters of a name a line of text shows; the middle of longer ones is left out. */
#define NAME_COLUMNS 1000

/*
 * How much of a name is in formats that repeat it for each calling context: a traced program could
 * otherwise have names of 48 KB written a million times.
 */
#define NAME_REPEATED 200

/*
 * Read one code point and step over it; 0 (without a step) at the end of the string. A byte that
 * is not UTF-8 reads as U+FFFD. Lone surrogates, which a Python str may hold, are passed through.
 */
uint32_t utf8_next(const char **p);

/* Write a code point; returns the number of bytes. */
size_t utf8_put(char out[4], uint32_t cp);

/* Which code points some table means. */
struct name_range {
	uint32_t first, last;
};
bool name_in_ranges(const struct name_range *r, size_t n, uint32_t cp);
#define NAME_IN_RANGES(r, cp) name_in_ranges(r, sizeof(r) / sizeof((r)[0]), cp)

enum name_surrogates { NAME_KEEP_SURROGATES, NAME_REPLACE_SURROGATES };

/* A copy in which everything that is not UTF-8 is U+FFFD; NULL reads as "". OOM: NULL. */
char *name_normal(const char *s, enum name_surrogates surrogates);

/* pstats' name for a function: `file:line(name)`, or `{name}` for cProfile's built-ins. OOM: NULL. */
char *name_std(const char *file, int32_t line, const char *name);

/*
 * What a C function belongs to, by its name, which is cProfile's: the type of which it is a method
 * ("list"), or its module ("math"). Points into name; *len 0: it has none.
 */
const char *name_builtin_type(const char *name, size_t *len);
const char *name_builtin_module(const char *name, size_t *len);

/*
 * A copy of s (NULL reads as ""), its middle replaced by "…" if name_print_escape() would write more
 * than `columns` characters of it (each character of `also` is written as four). O(columns + strlen).
 * OOM: NULL.
 */
char *name_cut(const char *s, const char *also, size_t columns);

/* What people call a function: its qualified name where it has one. Never NULL. */
const char *name_of_func(const struct snapshot_func *f);

/* How many characters name_putc writes: 1 unless a terminal would not just draw this one. */
size_t name_putc_length(uint32_t cp);

/* Print one code point; what is not plain text becomes \xNN or \u{…}. */
void name_putc(FILE *out, uint32_t cp);

/* Print a string like that, at most `columns` characters of it (0: all). */
void name_print(FILE *out, const char *s, size_t columns);

/* Print all of a string (NULL: nothing) like that, and the ASCII characters in `also` as \xNN as
 * well. */
void name_print_escape(FILE *out, const char *s, const char *also);

/* Print a string (NULL: "") as a quoted field of CSV; one that a spreadsheet would take for a formula
 * gets an apostrophe in front. */
void name_print_csv(FILE *out, const char *s);

/* Print a string as Python's repr() does. */
void name_print_repr(FILE *out, const char *s);

#endif
