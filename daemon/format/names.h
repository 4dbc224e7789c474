/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Escapes and converts names for the formats. The traced program chose every string of a snapshot,
 * so a string can contain anything: invalid UTF-8, escape sequences, line breaks, bidirectional
 * control characters. These functions turn it into valid text that cannot harm a terminal.
 */
#ifndef PYPROF_FORMAT_NAMES_H
#define PYPROF_FORMAT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "snapshot/snapshot.h"

/*
 * The maximum number of characters of a name in a line of text; the middle of longer names is left
 * out.
 */
#define NAME_COLUMNS 1000

/*
 * The same limit for formats that repeat names in each calling context. Without it, a program with
 * names of 48 KB would have them written a million times.
 */
#define NAME_REPEATED 200

/*
 * Reads one code point and advances *p; returns 0 without advancing at the end of the string. An
 * invalid byte reads as U+FFFD. Lone surrogates, which a Python str may contain, are returned
 * unchanged.
 */
uint32_t utf8_next(const char **p);

/* Encodes a code point into out. Returns the number of bytes. */
size_t utf8_put(char out[4], uint32_t cp);

/* A range of code points in a table. */
struct name_range {
	uint32_t first, last;
};
bool name_in_ranges(const struct name_range *r, size_t n, uint32_t cp);
#define NAME_IN_RANGES(r, cp) name_in_ranges(r, sizeof(r) / sizeof((r)[0]), cp)

enum name_surrogates { NAME_KEEP_SURROGATES, NAME_REPLACE_SURROGATES };

/*
 * Returns a copy with invalid UTF-8 replaced by U+FFFD; NULL reads as "". The caller frees it.
 * NULL: out of memory.
 */
char *name_normal(const char *s, enum name_surrogates surrogates);

/*
 * Returns pstats' name of a function: `file:line(name)`, or `{name}` for cProfile's built-ins. The
 * caller frees it. NULL: out of memory.
 */
char *name_std(const char *file, int32_t line, const char *name);

/*
 * Extracts from cProfile's name of a C function the type it is a method of ("list") or its module
 * ("math"). The result points into name; *len is 0 if there is none.
 */
const char *name_builtin_type(const char *name, size_t *len);
const char *name_builtin_module(const char *name, size_t *len);

/*
 * Returns a copy of s (NULL reads as "") with its middle replaced by "…" if name_print_escape()
 * would write more than `columns` characters; a character in `also` counts as four. Takes O(columns
 * + strlen). The caller frees it. NULL: out of memory.
 */
char *name_cut(const char *s, const char *also, size_t columns);

/* Returns the qualified name of a function, or its plain name if it has none. Never NULL. */
const char *name_of_func(const struct snapshot_func *f);

/* Returns the number of characters that name_putc writes: 1 unless it escapes the code point. */
size_t name_putc_length(uint32_t cp);

/* Prints one code point; escapes those that are not plain text as \xNN or \u{…}. */
void name_putc(FILE *out, uint32_t cp);

/* Prints a string the same way, at most `columns` characters of it (0: all). */
void name_print(FILE *out, const char *s, size_t columns);

/*
 * Prints a whole string (NULL: nothing) the same way, and escapes the ASCII characters in `also` as
 * \xNN.
 */
void name_print_escape(FILE *out, const char *s, const char *also);
/* Returns what name_print_escape() writes, with nothing in `also`. The caller frees it. NULL: out of memory. */
char *name_escape(const char *s);

/*
 * Prints a string (NULL: "") as a quoted CSV field. A string that a spreadsheet would evaluate as a
 * formula is prefixed with an apostrophe.
 */
void name_print_csv(FILE *out, const char *s);

/* Prints a string like Python's repr(). */
void name_print_repr(FILE *out, const char *s);

#endif
