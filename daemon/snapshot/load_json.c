// SPDX-License-Identifier: BSD-2-Clause
/*
 * JSON values of a snapshot's file: see load_json.h.
 *
 * jansson parses one value at a time rather than the whole file, because the tree of a whole
 * snapshot would take many times its size in memory.
 */
#include "snapshot/load_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

int loader_damaged(struct loader *l, const char *fmt, ...)
{
	char what[160], where[64] = "";
	va_list ap;

	if (l->err)
		return l->err;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (l->section)
		snprintf(where, sizeof(where), ", element %zu of %s", l->element, l->section);
	l->err = diag_set(l->diag, -EBADMSG, PYP_EXIT_FAILURE, "it is damaged or was cut off",
			  "cannot read '%s' (at byte %zu%s): %s", l->name, (size_t)(l->p - l->data),
			  where, what);
	return l->err;
}

int loader_no_memory(struct loader *l)
{
	if (!l->err)
		l->err = diag_errno(l->diag, ENOMEM, "cannot read '%s'", l->name);
	return l->err;
}

/* ---- values ---- */

void loader_skip_blanks(struct loader *l)
{
	while (l->p < l->end && strchr(" \t\r\n", *l->p) && *l->p)
		l->p++;
}

/* Returns the next character that is not white space; 0 at the end. */
char loader_peek(struct loader *l)
{
	loader_skip_blanks(l);
	return l->p < l->end ? *l->p : '\0';
}

bool loader_accept(struct loader *l, char c)
{
	if (loader_peek(l) != c)
		return false;
	l->p++;
	return true;
}

/* Returns a new reference, or NULL after an error. */
json_t *loader_value(struct loader *l)
{
	json_error_t error;
	json_t *ret;

	if (l->err)
		return NULL;
	loader_skip_blanks(l);
	ret = json_loadb(l->p, (size_t)(l->end - l->p),
			 JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
	if (!ret) {
		loader_damaged(l, "%s", error.text);
		return NULL;
	}
	l->p += error.position;
	return ret;
}

json_t *loader_member(struct loader *l, const json_t *object, const char *key)
{
	json_t *ret = json_object_get(object, key);

	if (!ret)
		loader_damaged(l, "missing \"%s\"", key);
	return ret;
}

uint64_t loader_unsigned(struct loader *l, const json_t *v, const char *key, uint64_t max)
{
	json_int_t n = json_integer_value(v);

	if (!v)
		return 0;
	if (json_is_integer(v) && n >= 0 && (uint64_t)n <= max)
		return (uint64_t)n;
	loader_damaged(l, "\"%s\" is not a number from 0 to %" PRIu64, key, max);
	return 0;
}

uint64_t loader_get_u64(struct loader *l, const json_t *object, const char *key)
{
	return loader_unsigned(l, loader_member(l, object, key), key, INT64_MAX);
}

uint32_t loader_get_u32(struct loader *l, const json_t *object, const char *key)
{
	return (uint32_t)loader_unsigned(l, loader_member(l, object, key), key, UINT32_MAX - 1);
}

/* Reads a number about the measurement itself, which files of other versions may lack. */
uint64_t loader_get_count(struct loader *l, const json_t *object, const char *key)
{
	return loader_unsigned(l, json_object_get(object, key), key, INT64_MAX);
}

uint32_t loader_get_index(struct loader *l, const json_t *object, const char *key)
{
	const json_t *v = loader_member(l, object, key);

	if (json_is_null(v))
		return SNAPSHOT_NONE;
	return (uint32_t)loader_unsigned(l, v, key, UINT32_MAX - 1);
}

bool loader_bool(struct loader *l, const json_t *v, const char *key)
{
	if (v && !json_is_boolean(v))
		loader_damaged(l, "\"%s\" is neither true nor false", key);
	return json_is_true(v);
}

bool loader_get_bool(struct loader *l, const json_t *object, const char *key)
{
	return loader_bool(l, loader_member(l, object, key), key);
}

const char *loader_string(struct loader *l, const json_t *v, const char *key)
{
	const char *ret;

	if (!v || json_is_null(v))
		return NULL;
	if (!json_is_string(v)) {
		loader_damaged(l, "\"%s\" is not a string", key);
		return NULL;
	}
	ret = snapshot_strn(l->s, json_string_value(v), json_string_length(v));
	if (!ret)
		loader_no_memory(l);
	return ret;
}

const char *loader_get_string(struct loader *l, const json_t *object, const char *key)
{
	return loader_string(l, loader_member(l, object, key), key);
}

/* Reads a text for reports, which files of other versions may lack. */
const char *loader_get_remark(struct loader *l, const json_t *object, const char *key)
{
	return loader_string(l, json_object_get(object, key), key);
}

/* {"cpu": …, "wall": …}; null leaves the values unchanged. */
void loader_get_clocks(struct loader *l, const json_t *object, const char *key,
		       uint64_t ns[SNAPSHOT_CLOCKS])
{
	const json_t *v = loader_member(l, object, key);

	if (!v || json_is_null(v))
		return;
	ns[SNAPSHOT_CPU] = loader_get_u64(l, v, "cpu");
	ns[SNAPSHOT_WALL] = loader_get_u64(l, v, "wall");
}

/* null: unknown. */
uint64_t loader_get_known(struct loader *l, const json_t *object, const char *key)
{
	return json_is_null(json_object_get(object, key)) ? SNAPSHOT_MIN_UNKNOWN
							  : loader_get_u64(l, object, key);
}

/* null: no activation has completed. */
void loader_get_extreme(struct loader *l, const json_t *object, const char *key,
			uint64_t ns[SNAPSHOT_CLOCKS])
{
	const json_t *v = loader_member(l, object, key);

	if (!v || json_is_null(v))
		return;
	ns[SNAPSHOT_CPU] = loader_get_known(l, v, "cpu");
	ns[SNAPSHOT_WALL] = loader_get_known(l, v, "wall");
}

/* ---- lists ---- */

void *loader_append(struct loader *l, struct list *list)
{
	if (list->n == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 64;
		void *data = reallocarray(list->data, cap, list->size);

		if (!data) {
			loader_no_memory(l);
			return NULL;
		}
		list->data = data;
		list->cap = cap;
	}
	return memset((char *)list->data + list->n++ * list->size, 0, list->size);
}
