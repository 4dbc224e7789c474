// SPDX-License-Identifier: BSD-2-Clause
/* Name conversion and escaping: see names.h. */
#include "format/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"

#define REPLACEMENT 0xfffdu

/* Code points that repr() also escapes: spaces other than ' ', private use. */
static const struct name_range unprintable[] = {
	{0x00a0, 0x00a0}, {0x1680, 0x1680}, {0x2000, 0x200a}, {0x202f, 0x202f},
	{0x205f, 0x205f}, {0x3000, 0x3000}, {0xe000, 0xf8ff}, {0xf0000, 0x10ffff},
};

bool name_in_ranges(const struct name_range *r, size_t n, uint32_t cp)
{
	for (size_t i = 0; i < n; i++)
		if (cp >= r[i].first && cp <= r[i].last)
			return true;
	return false;
}

/*
 * Returns the length of the sequence that a byte starts, with its payload bits in *cp; 0 if it
 * starts none.
 */
static int utf8_lead(unsigned char c, uint32_t *cp, uint32_t *min)
{
	if (c < 0x80) {
		*cp = c;
		*min = 0;
		return 1;
	}
	if ((c & 0xe0) == 0xc0) {
		*cp = c & 0x1f;
		*min = 0x80;
		return 2;
	}
	if ((c & 0xf0) == 0xe0) {
		*cp = c & 0x0f;
		*min = 0x800;
		return 3;
	}
	if ((c & 0xf8) == 0xf0) {
		*cp = c & 0x07;
		*min = 0x10000;
		return 4;
	}
	return 0;
}

uint32_t utf8_next(const char **p)
{
	const unsigned char *s = (const unsigned char *)*p;
	uint32_t cp = 0, min = 0;
	int len = utf8_lead(s[0], &cp, &min);
	bool bad = !len;

	if (!s[0])
		return 0;
	/* The terminating NUL is not a continuation byte, so the loop stops there. */
	for (int i = 1; i < len && !bad; i++) {
		bad = (s[i] & 0xc0) != 0x80;
		cp = cp << 6 | (s[i] & 0x3f);
	}
	if (bad || cp < min || cp > 0x10ffff) {
		*p += 1;
		return REPLACEMENT;
	}
	*p += len;
	return cp;
}

size_t utf8_put(char out[4], uint32_t cp)
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		out[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

char *name_normal(const char *s, enum name_surrogates surrogates)
{
	const char *p = s ? s : "";
	/* An invalid byte becomes the three bytes of U+FFFD; nothing else grows. */
	char *ret = malloc(strlen(p) * 3 + 1), *q = ret;
	uint32_t cp;

	if (!ret)
		return NULL;
	while ((cp = utf8_next(&p))) {
		if (surrogates == NAME_REPLACE_SURROGATES && cp >= 0xd800 && cp <= 0xdfff)
			cp = REPLACEMENT;
		q += utf8_put(q, cp);
	}
	*q = '\0';
	return ret;
}

char *name_std(const char *file, int32_t line, const char *name)
{
	size_t n = strlen(name);
	char *ret = NULL;

	if (line != 0 || strcmp(file, "~") != 0) {
		if (asprintf(&ret, "%s:%" PRId32 "(%s)", file, line, name) < 0)
			return NULL;
		return ret;
	}
	ret = strdup(name);
	if (ret && n >= 2 && ret[0] == '<' && ret[n - 1] == '>') {
		ret[0] = '{';
		ret[n - 1] = '}';
	}
	return ret;
}

/* Returns the text after the prefix, or NULL if name does not start with it. */
static const char *behind(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

/* <method 'append' of 'list' objects>. Names of types and methods can contain anything. */
const char *name_builtin_type(const char *name, size_t *len)
{
	static const char of[] = "' of '", objects[] = "' objects>";
	const char *method = behind(name, "<method '"), *type = method ? strstr(method, of) : NULL;
	const char *end = type ? strstr(type + strlen(of), objects) : NULL;

	*len = end ? (size_t)(end - type) - strlen(of) : 0;
	return end ? type + strlen(of) : name;
}

/* <built-in method os.path.x>, but not <built-in method __new__ of type object at 0x4f2.> */
const char *name_builtin_module(const char *name, size_t *len)
{
	const char *module = behind(name, "<built-in method ");
	const char *dot = module && !strchr(module, ' ') ? strrchr(module, '.') : NULL;

	*len = dot ? (size_t)(dot - module) : 0;
	return dot ? module : name;
}

const char *name_of_func(const struct snapshot_func *f)
{
	if (f->qualname && f->qualname[0])
		return f->qualname;
	return f->name && f->name[0] ? f->name : "<unknown>";
}

size_t name_putc_length(uint32_t cp)
{
	char escaped[TERMINAL_ESCAPE_MAX];

	return terminal_harmful(cp) ? strlen(terminal_escape(cp, escaped)) : 1;
}

void name_putc(FILE *out, uint32_t cp)
{
	char buf[4], escaped[TERMINAL_ESCAPE_MAX];

	if (cp >= 0x20 && cp < 0x7f)
		fputc((int)cp, out);
	else if (!terminal_harmful(cp))
		fwrite(buf, 1, utf8_put(buf, cp), out);
	else
		fputs(terminal_escape(cp, escaped), out);
}

/* Characters in `also` are written as \xNN. */
static size_t width_of(uint32_t cp, const char *also)
{
	return cp < 0x80 && strchr(also, (int)cp) ? strlen("\\xNN") : name_putc_length(cp);
}

/* Returns the start of the character (or of the invalid byte) that ends at p. */
static const char *utf8_back(const char *s, const char *p)
{
	const char *q = p - 1;

	while (q > s && p - q < 4 && ((unsigned char)*q & 0xc0) == 0x80)
		q--;
	return q;
}

/*
 * Finds the end of the leading part and the start of the trailing part of s, if more than `columns`
 * characters would be written. Returns false if s fits.
 */
static bool find_middle(const char *s, const char *also, size_t columns, const char **ret_head,
			const char **ret_tail)
{
	const char *p = s, *next;
	size_t width = 0, w;
	uint32_t cp;

	*ret_head = NULL;
	/* decides after a short prefix of s */
	for (next = s; (cp = utf8_next(&next)); p = next) {
		w = width_of(cp, also);
		if (!*ret_head && width + w > columns / 2)
			*ret_head = p;
		width += w;
		if (width > columns)
			break;
	}
	if (!cp)
		return false;
	width = 0;
	for (p = s + strlen(s); p > *ret_head; p = next) {
		const char *at = next = utf8_back(s, p);

		width += width_of(utf8_next(&at), also);
		if (width > columns - columns / 2)
			break;
	}
	*ret_tail = p;
	return p > *ret_head;
}

char *name_cut(const char *s, const char *also, size_t columns)
{
	const char *head, *tail;
	char *ret;

	if (!s)
		s = "";
	if (!find_middle(s, also, columns - 1, &head, &tail))
		return strdup(s);
	if (asprintf(&ret, "%.*s\xe2\x80\xa6%s", (int)(head - s), s, tail) < 0)
		return NULL;
	return ret;
}

/*
 * Like find_middle, but counts characters of s rather than characters written. *ret_head starts at
 * s.
 */
static bool find_middle_chars(const char *s, size_t columns, const char **ret_head,
			      const char **ret_tail)
{
	const char *p = s;
	size_t n = 0;

	for (; n <= columns && utf8_next(&p); n++)
		if (n + 1 == columns / 2)
			*ret_head = p;
	if (n <= columns)
		return false;
	p = s + strlen(s);
	for (n = 0; n < columns - columns / 2; n++)
		p = utf8_back(s, p);
	*ret_tail = p;
	return true;
}

void name_print(FILE *out, const char *s, size_t columns)
{
	const char *head = s, *tail;
	uint32_t cp;

	if (columns && find_middle_chars(s, columns, &head, &tail)) {
		while (s < head)
			name_putc(out, utf8_next(&s));
		fputs("...", out);
		s = tail;
	}
	while ((cp = utf8_next(&s)))
		name_putc(out, cp);
}

void name_print_escape(FILE *out, const char *s, const char *also)
{
	uint32_t cp;

	while (s && (cp = utf8_next(&s))) {
		if (cp < 0x80 && strchr(also, (int)cp))
			fprintf(out, "\\x%02" PRIx32, cp);
		else
			name_putc(out, cp);
	}
}

char *name_escape(const char *s)
{
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);

	if (!out)
		return NULL;
	name_print_escape(out, s, "");
	if (fclose(out) == 0)
		return ret;
	free(ret);
	return NULL;
}

static void repr_putc(FILE *out, uint32_t cp, char quote)
{
	char buf[4];

	if (cp == (uint32_t)quote || cp == '\\')
		fprintf(out, "\\%c", (int)cp);
	else if (cp == '\n')
		fputs("\\n", out);
	else if (cp == '\r')
		fputs("\\r", out);
	else if (cp == '\t')
		fputs("\\t", out);
	else if (!terminal_harmful(cp) && !NAME_IN_RANGES(unprintable, cp))
		fwrite(buf, 1, utf8_put(buf, cp), out);
	else if (cp < 0x100)
		fprintf(out, "\\x%02" PRIx32, cp);
	else if (cp < 0x10000)
		fprintf(out, "\\u%04" PRIx32, cp);
	else
		fprintf(out, "\\U%08" PRIx32, cp);
}

void name_print_repr(FILE *out, const char *s)
{
	char quote = strchr(s, '\'') && !strchr(s, '"') ? '"' : '\'';
	uint32_t cp;

	fputc(quote, out);
	while ((cp = utf8_next(&s)))
		repr_putc(out, cp, quote);
	fputc(quote, out);
}

void name_print_csv(FILE *out, const char *s)
{
	uint32_t cp;

	fputc('"', out);
	if (s && *s && strchr("=+-@", *s))
		fputc('\'', out);
	for (const char *p = s ? s : ""; (cp = utf8_next(&p));) {
		if (cp == '"')
			fputc('"', out);
		name_putc(out, cp);
	}
	fputc('"', out);
}
