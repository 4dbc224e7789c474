/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implementations of Python, guessed from names of files. A guess selects what is worth inspecting,
 * and names what cannot be traced; it does not replace python_discover().
 */
#ifndef PYPROF_PYTHON_IMPLEMENTATION_H
#define PYPROF_PYTHON_IMPLEMENTATION_H

enum implementation {
	IMPLEMENTATION_NONE, /* not a Python */
	IMPLEMENTATION_CPYTHON,
	IMPLEMENTATION_PYPY,
	IMPLEMENTATION_GRAALPY,
};

#define IMPLEMENTATION_VERSION 8

/*
 * The implementation whose executable, library or extension module has this path: "python3.11",
 * "libpython3.13t.so.1.0", "_ssl.cpython-312-x86_64-linux-gnu.so", "pypy3.10", "libpythonvm.so".
 * version (may be NULL): set to "3.11"; "" if the name has none. Pure.
 */
enum implementation implementation_of_file(const char *path, char version[IMPLEMENTATION_VERSION]);

/* "CPython", "PyPy", "GraalPy"; "" for none. */
const char *implementation_name(enum implementation which);

#endif
