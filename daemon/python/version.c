// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the Python version in a file. File names are unreliable, so it uses the interpreter's
 * contents: Py_Version (3.11+), else the text that Py_GetVersion() prints, whose address is in that
 * function's code, else the only text in the file that looks like a version and matches the names
 * of its library directories.
 */
#include <errno.h>
#include <string.h>

#include "python/implementation.h"
#include "python/inside.h"

/* Bytes of Py_GetVersion to search; it has a few dozen */
#define GET_VERSION_CODE 256

/* text: the version as the interpreter prints it, "3.13.0rc2+" */
struct version {
	unsigned int major, minor, micro;
	char text[32];
};

static bool take_digits(const char **p, unsigned int max, unsigned int *ret)
{
	unsigned int v = 0;
	const char *start = *p;

	for (; **p >= '0' && **p <= '9'; (*p)++) {
		v = v * 10 + (unsigned int)(**p - '0');
		if (v > max)
			return false;
	}
	*ret = v;
	return *p != start;
}

/* MAJOR.MINOR.MICRO, optionally aN, bN, rcN or cN, optionally "+", then the end of the string. */
static bool parse_version(const uint8_t *p, size_t size, struct version *ret)
{
	struct version v = {0};
	const char *s = v.text;
	unsigned int serial;
	size_t n = strnlen((const char *)p, size);

	if (n == size || n >= sizeof(v.text))
		return false;
	memcpy(v.text, p, n);
	if (!take_digits(&s, 3, &v.major) || v.major < 2 || *s++ != '.' ||
	    !take_digits(&s, 99, &v.minor) || *s++ != '.' || !take_digits(&s, 255, &v.micro))
		return false;
	if (*s == 'a' || *s == 'b' || *s == 'c' || *s == 'r') {
		if (*s++ == 'r' && *s++ != 'c')
			return false;
		if (!take_digits(&s, 255, &serial))
			return false;
	}
	if (*s == '+')
		s++;
	if (*s)
		return false;
	*ret = v;
	return true;
}

/* PY_VERSION_HEX: major, minor, micro; level (a, b, c, f) and serial */
static bool version_of_hex(uint32_t hex, struct version *ret)
{
	static const char *const levels[16] = {[10] = "a", [11] = "b", [12] = "rc", [15] = ""};
	const char *level = levels[hex >> 4 & 15];
	struct version v = {hex >> 24, hex >> 16 & 255, hex >> 8 & 255, ""};

	if (!level || (v.major != 2 && v.major != 3))
		return false;
	if (*level)
		snprintf(v.text, sizeof(v.text), "%u.%u.%u%s%u", v.major, v.minor, v.micro, level,
			 hex & 15);
	else
		snprintf(v.text, sizeof(v.text), "%u.%u.%u", v.major, v.minor, v.micro);
	*ret = v;
	return true;
}

static bool same_version(const struct version *a, const struct version *b)
{
	return a->major == b->major && a->minor == b->minor && a->micro == b->micro;
}

/* The address that the instruction at p loads: lea disp32(%rip) or, in ET_EXEC, mov $imm32. */
static bool loaded_address(const struct image *img, const uint8_t *p, size_t n, uint64_t vaddr,
			   uint64_t *ret)
{
	int32_t disp;
	uint32_t imm;

	if (n >= 7 && (p[0] & 0xfb) == 0x48 && p[1] == 0x8d && (p[2] & 0xc7) == 0x05) {
		memcpy(&disp, p + 3, 4);
		*ret = vaddr + 7 + (uint64_t)(int64_t)disp;
		return true;
	}
	if (n >= 5 && image_is_exec(img) && (p[0] & 0xf8) == 0xb8) {
		memcpy(&imm, p + 1, 4);
		*ret = imm;
		return true;
	}
	return false;
}

/*
 * Find the version text that Py_GetVersion refers to. Tries each byte as the start of an
 * instruction; wrong ones give addresses without a version text.
 */
static bool version_of_function(const struct image *img, struct version *ret)
{
	struct image_symbol sym;
	const uint8_t *code = NULL, *text;
	struct version v, found = {0};
	uint64_t addr;
	size_t n;

	if (image_symbol(img, "Py_GetVersion", &sym))
		return false;
	n = image_view_max(img, sym.vaddr, &code);
	if (sym.size && n > sym.size)
		n = sym.size;
	if (n > GET_VERSION_CODE)
		n = GET_VERSION_CODE;
	for (size_t i = 0; i < n; i++) {
		size_t room;

		if (!loaded_address(img, code + i, n - i, sym.vaddr + i, &addr))
			continue;
		room = image_view_max(img, addr, &text);
		if (!room || !parse_version(text, room, &v))
			continue;
		if (found.major && strcmp(found.text, v.text) != 0)
			return false;
		found = v;
	}
	*ret = found;
	return found.major;
}

/* Returns whether the file contains the name of this version's library directory, "python3.10". */
static bool names_library(const struct image *img, const struct version *v)
{
	char name[32];
	uint64_t at;

	snprintf(name, sizeof(name), "python%u.%u", v->major, v->minor);
	return !image_find(img, name, strlen(name) + 1, 0, &at);
}

/* The only version text in the file that matches its library's name. */
static bool version_of_strings(const struct image *img, struct version *ret)
{
	static const char *const starts[] = {"\0003.", "\0002."};
	struct version v, found = {0};
	const uint8_t *text;
	uint64_t at;

	for (size_t i = 0; i < 2; i++) {
		for (uint64_t from = 0; !image_find(img, starts[i], 3, from, &at); from = at + 1) {
			size_t room = image_view_max(img, at + 1, &text);

			if (!room || !parse_version(text, room, &v) ||
			    (found.major && strcmp(found.text, v.text) == 0) ||
			    !names_library(img, &v))
				continue;
			if (found.major)
				return false;
			found = v;
		}
	}
	*ret = found;
	return found.major;
}

static bool version_of_variable(const struct image *img, struct version *ret)
{
	struct image_symbol sym;
	const uint8_t *p;
	uint32_t hex;

	if (image_symbol(img, "Py_Version", &sym))
		return false;
	p = image_view(img, sym.vaddr, sizeof(hex));
	if (!p)
		return false;
	memcpy(&hex, p, sizeof(hex));
	return version_of_hex(hex, ret);
}

static bool find_version(const struct image *img, struct version *ret)
{
	struct version number, text;

	if (version_of_variable(img, &number)) {
		/* The text may have an additional "+", for a build after the release. */
		if (version_of_function(img, &text) && same_version(&number, &text))
			number = text;
		*ret = number;
		return true;
	}
	return version_of_function(img, ret) || version_of_strings(img, ret);
}

/* The name of a file is enough to name what cannot be traced. */
static int not_cpython(const char *file, const char *range, struct diag *diag)
{
	enum implementation which = implementation_of_file(file, NULL);
	char hint[64];

	if (which != IMPLEMENTATION_PYPY && which != IMPLEMENTATION_GRAALPY)
		return diag_set(diag, -ENOENT, PYP_EXIT_UNTRACEABLE, "",
				"'%s' contains no Python interpreter", file);
	snprintf(hint, sizeof(hint), "use CPython %s", range);
	return diag_set(diag, -ENOENT, PYP_EXIT_UNTRACEABLE, hint, "'%s' is %s, not CPython", file,
			implementation_name(which));
}

int python_version_of_image(const struct image *img, const char *file_hint, struct python *ret,
			    struct diag *diag)
{
	struct image_symbol sym;
	struct version v;
	char range[32];
	bool old;

	layout_proven_range(range, sizeof(range));
	old = image_symbol(img, PYTHON_EVALUATOR, &sym) != 0;
	if (old && image_symbol(img, PYTHON_EVALUATOR_OLD, &sym))
		return not_cpython(file_hint, range, diag);
	if (!find_version(img, &v))
		return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE, "",
				"'%s' is a Python of unknown version; supported: "
				"CPython %s",
				file_hint, range);
	if (old)
		return diag_set(diag, -EOPNOTSUPP, PYP_EXIT_UNTRACEABLE, "",
				"'%s' is Python %s; supported: CPython %s", file_hint, v.text,
				range);
	ret->major = (uint8_t)v.major;
	ret->minor = (uint8_t)v.minor;
	ret->micro = (uint8_t)v.micro;
	memcpy(ret->version, v.text, sizeof(ret->version));
	return 0;
}
