// SPDX-License-Identifier: BSD-2-Clause
/* Implementations of Python: see implementation.h. */
#include "python/implementation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define DELETED	   " (deleted)"
#define DIGITS	   "0123456789"
#define MAJOR_SIZE 1
#define MINOR_MAX  2

/* Copy "3.11" from the text "3.11…". Returns the text behind it, and behind further numbers. */
static const char *take_version(const char *p, char version[IMPLEMENTATION_VERSION])
{
	size_t major = strspn(p, DIGITS), minor;

	if (major != MAJOR_SIZE)
		return p;
	if (p[major] != '.')
		return p + major;
	minor = strspn(p + major + 1, DIGITS);
	if (minor && minor <= MINOR_MAX)
		snprintf(version, IMPLEMENTATION_VERSION, "%.*s", (int)(major + 1 + minor), p);
	return p + strspn(p, DIGITS ".");
}

/* "python", "python3", "python3.13t", "python3.11-dbg" */
static bool is_program(const char *name, const char *stem, char version[IMPLEMENTATION_VERSION])
{
	const char *p = name + strlen(stem);

	if (strncmp(name, stem, strlen(stem)) != 0)
		return false;
	p = take_version(p, version);
	p += strspn(p, "dmtu");
	return !*p || strcmp(p, "-dbg") == 0 || strcmp(p, "-c") == 0;
}

/* "libpython3.11.so.1.0", "libpypy3.10-c.so" */
static bool is_library(const char *name, const char *stem, char version[IMPLEMENTATION_VERSION])
{
	const char *p = name + strlen(stem);

	if (strncmp(name, stem, strlen(stem)) != 0)
		return false;
	p = take_version(p, version);
	p += strspn(p, "dmtu");
	p += strncmp(p, "-c", 2) == 0 ? 2 : 0;
	return strncmp(p, ".so", 3) == 0;
}

/* "_json.cpython-311-x86_64-linux-gnu.so": programs that contain an interpreter load these, too. */
static bool is_extension(const char *name, char version[IMPLEMENTATION_VERSION])
{
	static const char tag[] = ".cpython-";
	const char *p = strstr(name, tag), *digits;
	size_t n;

	if (!p || !strstr(p, ".so"))
		return false;
	digits = p + strlen(tag);
	n = strspn(digits, DIGITS);
	if (n > MAJOR_SIZE && n <= MAJOR_SIZE + MINOR_MAX)
		snprintf(version, IMPLEMENTATION_VERSION, "%c.%.*s", digits[0],
			 (int)(n - MAJOR_SIZE), digits + MAJOR_SIZE);
	return true;
}

/* Copy the last component of path, without the kernel's mark of a deleted file. */
static bool base_of(const char *path, char *out, size_t size)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t n = strlen(base), mark = strlen(DELETED);

	if (n > mark && strcmp(base + n - mark, DELETED) == 0)
		n -= mark;
	if (!n || n >= size)
		return false;
	memcpy(out, base, n);
	out[n] = '\0';
	return true;
}

enum implementation implementation_of_file(const char *path, char version[IMPLEMENTATION_VERSION])
{
	char name[256], unused[IMPLEMENTATION_VERSION];

	if (!version)
		version = unused;
	*version = '\0';
	if (!base_of(path, name, sizeof(name)))
		return IMPLEMENTATION_NONE;
	if (is_program(name, "pypy", version) || is_library(name, "libpypy", version))
		return IMPLEMENTATION_PYPY;
	if (is_program(name, "graalpy", version) || strcmp(name, "libpythonvm.so") == 0)
		return IMPLEMENTATION_GRAALPY;
	if (is_program(name, "python", version) || is_library(name, "libpython", version) ||
	    is_extension(name, version))
		return IMPLEMENTATION_CPYTHON;
	*version = '\0';
	return IMPLEMENTATION_NONE;
}

const char *implementation_name(enum implementation which)
{
	static const char *const names[] = {"", "CPython", "PyPy", "GraalPy"};

	return names[which];
}
