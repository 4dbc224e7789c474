// SPDX-License-Identifier: BSD-2-Clause
/* Intervals: see interval.h. */
#include "interval/interval.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/utf8_clean.h"
#include "format/format.h"
#include "format/jsonout.h"
#include "snapshot/load.h"
#include "snapshot/since.h"

/* A snapshot's file ends with END, an interval's with MEMBER, its value and END. */
#define END    "\n}\n"
#define MEMBER "\n\"interval\":"

struct interval *interval_new(const uint8_t id[INTERVAL_ID_BYTES], uint64_t start_unix_ns,
			      uint64_t end_unix_ns, struct snapshot *snapshot)
{
	struct interval *iv = calloc(1, sizeof(*iv));

	if (!iv) {
		snapshot_free(snapshot);
		return NULL;
	}
	memcpy(iv->id, id, INTERVAL_ID_BYTES);
	iv->start_unix_ns = start_unix_ns;
	iv->end_unix_ns = end_unix_ns;
	iv->snapshot = snapshot;
	return iv;
}

struct interval *interval_copy(const struct interval *iv)
{
	struct snapshot *s = snapshot_copy(iv->snapshot);
	_cleanup_(interval_freep) struct interval *copy = NULL;

	if (s)
		copy = interval_new(iv->id, iv->start_unix_ns, iv->end_unix_ns, s);
	if (copy)
		copy->merged = iv->merged;
	for (uint32_t i = 0; copy && i < iv->nlabels; i++)
		if (interval_set_label(copy, iv->labels[i].name, iv->labels[i].value) < 0)
			return NULL;
	return TAKE_PTR(copy);
}

void interval_free(struct interval *iv)
{
	if (!iv)
		return;
	snapshot_free(iv->snapshot);
	free(iv);
}

/* ---- labels ---- */

static bool name_valid(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789");

	return n > 0 && n <= INTERVAL_LABEL_NAME_MAX && !name[n] &&
	       !(name[0] >= '0' && name[0] <= '9');
}

/* Returns the index of the label, or of the one that it would precede. */
static uint32_t label_position(const struct interval *iv, const char *name, bool *ret_found)
{
	uint32_t i = 0;

	while (i < iv->nlabels && strcmp(iv->labels[i].name, name) < 0)
		i++;
	*ret_found = i < iv->nlabels && strcmp(iv->labels[i].name, name) == 0;
	return i;
}

static void label_remove(struct interval *iv, uint32_t at)
{
	iv->nlabels--;
	memmove(&iv->labels[at], &iv->labels[at + 1],
		(iv->nlabels - at) * sizeof(struct interval_label));
}

/* The name is owned by the snapshot. */
static int label_insert(struct interval *iv, uint32_t at, const char *name)
{
	if (iv->nlabels == INTERVAL_LABELS_MAX)
		return -E2BIG;
	if (!name)
		return -ENOMEM;
	memmove(&iv->labels[at + 1], &iv->labels[at],
		(iv->nlabels - at) * sizeof(struct interval_label));
	iv->labels[at] = (struct interval_label){.name = name, .value = ""};
	iv->nlabels++;
	return 0;
}

int interval_set_label(struct interval *iv, const char *name, const char *value)
{
	char clean[INTERVAL_LABEL_VALUE_MAX + 1];
	const char *copy;
	bool found;
	uint32_t at;
	int r;

	if (!name_valid(name))
		return -EINVAL;
	at = label_position(iv, name, &found);
	if (!value || !value[0]) {
		if (found)
			label_remove(iv, at);
		return 0;
	}
	copy = snapshot_str(iv->snapshot, utf8_clean(value, clean, sizeof(clean)));
	if (!copy)
		return -ENOMEM;
	if (!found) {
		r = label_insert(iv, at, snapshot_str(iv->snapshot, name));
		if (r < 0)
			return r;
	}
	iv->labels[at].value = copy;
	return 0;
}

const char *interval_label(const struct interval *iv, const char *name)
{
	bool found;
	uint32_t at = label_position(iv, name, &found);

	return found ? iv->labels[at].value : NULL;
}

/* ---- id ---- */

const char *interval_id_text(const uint8_t id[INTERVAL_ID_BYTES], char buf[INTERVAL_ID_TEXT])
{
	for (int i = 0; i < INTERVAL_ID_BYTES; i++)
		snprintf(buf + 2 * i, 3, "%02x", id[i]);
	return buf;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int interval_id_parse(const char *text, uint8_t id[INTERVAL_ID_BYTES])
{
	if (strlen(text) != INTERVAL_ID_TEXT - 1)
		return -EINVAL;
	for (int i = 0; i < INTERVAL_ID_BYTES; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		id[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

/* ---- file ---- */

static json_t *header_of(const struct interval *iv)
{
	char id[INTERVAL_ID_TEXT];
	json_t *labels = json_object(), *header;

	for (uint32_t i = 0; i < iv->nlabels; i++)
		json_object_set_new(labels, iv->labels[i].name, json_string(iv->labels[i].value));
	header = json_pack("{s:s, s:I, s:I, s:o}", "id", interval_id_text(iv->id, id),
			   "start_unix_ns", (json_int_t)iv->start_unix_ns, "end_unix_ns",
			   (json_int_t)iv->end_unix_ns, "labels", labels);
	if (iv->merged)
		json_object_set_new(header, "merged", json_integer(iv->merged));
	return header;
}

/* The snapshot as a file; *ret is malloc'ed. */
static int snapshot_text(const struct snapshot *s, char **ret, size_t *ret_size, struct diag *diag)
{
	struct format_opts o = {.clock = s->clock};
	FILE *out = open_memstream(ret, ret_size);
	int r;

	if (!out)
		return diag_errno(diag, errno, "cannot write an interval");
	r = format_write(format_find("json"), s, &o, out, diag);
	if (fclose(out) != 0 && r == 0)
		r = diag_errno(diag, errno, "cannot write an interval");
	return r;
}

int interval_write(const struct interval *iv, FILE *out, struct diag *diag)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int r = snapshot_text(iv->snapshot, &text, &size, diag);

	if (r < 0)
		return r;
	fwrite(text, 1, size - strlen(END), out);
	fputs("," MEMBER, out);
	if (jsonout_value(out, header_of(iv)) < 0)
		return diag_errno(diag, ENOMEM, "cannot write an interval");
	fputs(END, out);
	return ferror(out) ? diag_errno(diag, EIO, "cannot write an interval") : 0;
}

static int bad_header(const char *name, struct diag *diag)
{
	return diag_set(diag, -EBADMSG, PYP_EXIT_FAILURE, "the file is damaged",
			"'%s': invalid \"interval\"", name);
}

/* Returns 0, or -EBADMSG if a value is missing or impossible. */
static int read_header(const json_t *v, struct interval *iv)
{
	const char *id = json_string_value(json_object_get(v, "id"));
	json_int_t start = json_integer_value(json_object_get(v, "start_unix_ns"));
	json_int_t end = json_integer_value(json_object_get(v, "end_unix_ns"));
	json_int_t merged = json_integer_value(json_object_get(v, "merged"));

	if (!id || interval_id_parse(id, iv->id) < 0 || start < 0 || end < start || merged < 0 ||
	    merged > UINT32_MAX)
		return -EBADMSG;
	iv->merged = (uint32_t)merged;
	iv->start_unix_ns = (uint64_t)start;
	iv->end_unix_ns = (uint64_t)end;
	return 0;
}

static int read_labels(const json_t *v, struct interval *iv)
{
	const char *name;
	const json_t *value;

	json_object_foreach((json_t *)v, name, value)
	{
		const char *text = json_string_value(value);
		int r = text ? interval_set_label(iv, name, text) : -EINVAL;

		if (r < 0)
			return r == -ENOMEM ? r : -EBADMSG;
	}
	return 0;
}

static int parse_interval(json_t *header, const char *data, size_t size, const char *name,
			  struct interval **ret, struct diag *diag)
{
	_cleanup_(interval_freep) struct interval *iv = NULL;
	struct snapshot *s;
	int r = snapshot_parse(data, size, name, &s, diag);

	if (r < 0)
		return r;
	iv = interval_new((const uint8_t[INTERVAL_ID_BYTES]){0}, 0, 0, s);
	if (!iv)
		return diag_errno(diag, ENOMEM, "cannot read an interval");
	r = read_header(header, iv);
	if (r == 0)
		r = read_labels(json_object_get(header, "labels"), iv);
	if (r == -ENOMEM)
		return diag_errno(diag, ENOMEM, "cannot read an interval");
	if (r < 0)
		return bad_header(name, diag);
	*ret = TAKE_PTR(iv);
	return 0;
}

/*
 * Returns the position after the member's name; NULL: there is none. Strings in JSON cannot contain
 * a newline, so no string of a target is taken for it.
 */
static const char *find_member(const char *data, size_t size)
{
	const char *at = memmem(data, size, MEMBER, strlen(MEMBER));

	return at ? at + strlen(MEMBER) : NULL;
}

/* NULL: there is none, or it is invalid. */
static json_t *load_header(const char *data, size_t size)
{
	const char *at = find_member(data, size);

	return at ? json_loadb(at, size - (size_t)(at - data), JSON_DISABLE_EOF_CHECK, NULL) : NULL;
}

char *interval_labels_text(const char *data, size_t size)
{
	json_t *header = load_header(data, size);
	char *text = json_dumps(json_object_get(header, "labels"), JSON_COMPACT | JSON_SORT_KEYS);

	json_decref(header);
	return text;
}

int interval_set_labels_text(struct interval *iv, const char *text)
{
	json_t *labels = json_loads(text, 0, NULL);
	int r = labels ? read_labels(labels, iv) : -EBADMSG;

	json_decref(labels);
	return r;
}

int interval_parse(const char *data, size_t size, const char *name, struct interval **ret,
		   struct diag *diag)
{
	json_t *header;
	int r;

	if (!find_member(data, size))
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"intervals are made by continuous profiling",
				"'%s' is not an interval", name);
	header = load_header(data, size);
	if (!header)
		return bad_header(name, diag);
	r = parse_interval(header, data, size, name, ret, diag);
	json_decref(header);
	return r;
}
