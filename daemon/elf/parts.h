/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of an ELF file that image.c parses: the headers, and the contents of the program
 * headers that it uses. Symbols and debugging information, which no process maps, can be three
 * quarters of an interpreter's file. Pure.
 */
#ifndef PYPROF_ELF_PARTS_H
#define PYPROF_ELF_PARTS_H

#include <stddef.h>
#include <stdint.h>

#define PARTS_HEAD 4096u /* bytes of the file that parts_find() needs, or all of a shorter one */
#define PARTS_MAX  32u

struct part {
	size_t at, size;
};

struct parts {
	unsigned int n;
	struct part v[PARTS_MAX];
};

/*
 * Finds the parts of a file of `size` bytes from its first min(size, PARTS_HEAD) bytes. All parts
 * lie in the file, and together they are at most twice as large. If the headers are unusual or
 * damaged, the only part is the whole file.
 */
void parts_find(const uint8_t *head, size_t size, struct parts *ret);

/*
 * Then, from a file's data with these parts, finds the names of its sections. If their header is
 * unusual, *ret is the whole file.
 */
void parts_names(const uint8_t *data, size_t size, struct part *ret);

#endif
