// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads str and code objects from a target's memory. Strings (PEP 393) are converted to UTF-8. The
 * memory may contain anything; objects that cannot be a str are refused.
 */
#include <errno.h>
#include <string.h>

#include "python/python.h"

/* Limit of a string's characters in bytes; names and paths are far shorter */
#define STR_MAX_BYTES 65536

#define REPLACEMENT 0xfffdu

/* Append one character, at most 4 bytes. */
static size_t put_utf8(char *out, uint32_t c)
{
	/* NUL would truncate the name; the others are not characters. */
	if (!c || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		c = REPLACEMENT;
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

char *python_units_to_utf8(const uint8_t *data, size_t bytes, unsigned int kind, size_t *ret_len)
{
	size_t units = kind == 1 || kind == 2 || kind == 4 ? bytes / kind : 0, n = 0;
	/* A unit of 1 byte becomes up to 3 bytes (U+FFFD), one of 2 or 4 bytes up to 4. */
	char *out = calloc(units + 1, 4);

	if (!out)
		return NULL;
	for (size_t i = 0; i < units; i++) {
		uint32_t c = 0;

		memcpy(&c, data + i * kind, kind); /* little-endian */
		n += put_utf8(out + n, c);
	}
	if (ret_len)
		*ret_len = n;
	return out;
}

struct str_head {
	uint64_t length;
	unsigned int kind;
	bool ascii;
};

static int read_head(const struct layout *l, const struct memory *mem, uint64_t addr,
		     struct str_head *ret)
{
	struct str_head h = {0};
	uint32_t state;
	int err = memory_read_u64(mem, addr + l->bpf.str_length, &h.length);

	if (!err)
		err = memory_read_u32(mem, addr + l->bpf.str_state, &state);
	if (err)
		return err;
	/* kind (3 bits), compact, ascii. Names are always compact. */
	state >>= l->bpf.str_kind_shift;
	h.kind = state & 7;
	h.ascii = state >> 4 & 1;
	if ((h.kind != 1 && h.kind != 2 && h.kind != 4) || !(state >> 3 & 1) ||
	    (h.ascii && h.kind != 1))
		return -EINVAL;
	*ret = h;
	return 0;
}

/* Reads the first n characters. */
static int read_units(const struct layout *l, const struct memory *mem, uint64_t addr,
		      const struct str_head *h, size_t n, char **ret, size_t *ret_len)
{
	size_t bytes = n * h->kind;
	_cleanup_free_ uint8_t *data = malloc(bytes + 1);
	char *text;
	int err;

	if (!data)
		return -ENOMEM;
	addr += h->ascii ? l->bpf.str_ascii_data : l->bpf.str_compact_data;
	err = bytes ? memory_read(mem, addr, data, bytes) : 0;
	if (err)
		return err;
	for (size_t i = 0; h->ascii && i < bytes; i++)
		if (data[i] & 0x80)
			return -EINVAL;
	text = python_units_to_utf8(data, bytes, h->kind, ret_len);
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}

int python_str_read(const struct layout *l, const struct memory *mem, uint64_t addr, char **ret,
		    size_t *ret_len)
{
	struct str_head h;
	int err = read_head(l, mem, addr, &h);

	if (!err && h.length > STR_MAX_BYTES / h.kind)
		err = -E2BIG;
	return err ? err : read_units(l, mem, addr, &h, (size_t)h.length, ret, ret_len);
}

int python_str_start(const struct layout *l, const struct memory *mem, uint64_t addr, size_t max,
		     char **ret, uint64_t *ret_length)
{
	struct str_head h;
	int err = read_head(l, mem, addr, &h);

	if (!err && h.length > INT64_MAX)
		err = -EINVAL;
	if (!err)
		err = read_units(l, mem, addr, &h, h.length < max ? (size_t)h.length : max, ret,
				 NULL);
	if (!err)
		*ret_length = h.length;
	return err;
}

/* Read the str that the pointer at addr refers to. */
static int read_str_at(const struct layout *l, const struct memory *mem, uint64_t addr, char **ret)
{
	uint64_t str;
	int err = memory_read_u64(mem, addr, &str);

	return err ? err : python_str_read(l, mem, str, ret, NULL);
}

int python_code_read(const struct layout *l, const struct memory *mem, uint64_t code,
		     struct code_names *ret)
{
	struct code_names c = {0};
	const struct pyp_layout *b = &l->bpf;
	uint32_t line;
	int err;

	err = memory_read_u32(mem, code + b->code_flags, &c.flags);
	if (!err)
		err = memory_read_u32(mem, code + b->code_firstlineno, &line);
	if (!err)
		err = read_str_at(l, mem, code + b->code_filename, &c.filename);
	if (!err)
		err = read_str_at(l, mem, code + b->code_name, &c.name);
	if (!err && b->code_qualname != LAYOUT_NONE)
		err = read_str_at(l, mem, code + b->code_qualname, &c.qualname);
	if (err) {
		code_names_deinit(&c);
		return err;
	}
	c.firstlineno = (int32_t)line;
	*ret = c;
	return 0;
}
