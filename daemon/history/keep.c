// SPDX-License-Identifier: BSD-2-Clause
/* The last intervals in memory: see keep.h. */
#include "history/keep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct keep {
	struct kept **v; /* a ring */
	size_t first, n, room;
	size_t bytes, max_bytes;
	uint64_t max_age_ns, expired, dropped;
};

/* ---- entries ---- */

static uint64_t samples_of(const struct snapshot *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->ntargets; i++)
		n += s->targets[i].estimate.samples;
	return n;
}

static uint64_t cpu_of(const struct snapshot *s)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < s->nnodes; i++)
		ns += s->nodes[i].self[SNAPSHOT_CPU];
	return ns;
}

static size_t labels_size(const struct interval *iv)
{
	size_t n = iv->nlabels * sizeof(struct interval_label);

	for (uint32_t i = 0; i < iv->nlabels; i++)
		n += strlen(iv->labels[i].name) + strlen(iv->labels[i].value) + 2;
	return n;
}

static const char *put_text(char **at, const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = memcpy(*at, text, n);

	*at += n;
	return copy;
}

struct kept *kept_new(const struct interval *iv, void *data, size_t size)
{
	size_t bytes = sizeof(struct kept) + labels_size(iv);
	struct kept *k = calloc(1, bytes);
	struct interval_label *labels;
	char *text;

	if (!k) {
		free(data);
		return NULL;
	}
	labels = (struct interval_label *)(k + 1);
	text = (char *)(labels + iv->nlabels);
	memcpy(k->id, iv->id, sizeof(k->id));
	for (uint32_t i = 0; i < iv->nlabels; i++) {
		labels[i].name = put_text(&text, iv->labels[i].name);
		labels[i].value = put_text(&text, iv->labels[i].value);
	}
	k->start_unix_ns = iv->start_unix_ns;
	k->end_unix_ns = iv->end_unix_ns;
	k->merged = iv->merged;
	k->samples = samples_of(iv->snapshot);
	k->cpu_ns = cpu_of(iv->snapshot);
	k->labels = labels;
	k->nlabels = iv->nlabels;
	k->data = data;
	k->size = size;
	k->bytes = bytes + size;
	return k;
}

void kept_free(struct kept *k)
{
	if (!k)
		return;
	free((void *)k->data);
	free(k);
}

json_t *kept_json(const struct kept *k)
{
	char id[INTERVAL_ID_TEXT];
	json_t *labels = json_object(), *o;

	for (uint32_t i = 0; i < k->nlabels; i++)
		json_object_set_new(labels, k->labels[i].name, json_string(k->labels[i].value));
	o = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "id", interval_id_text(k->id, id),
		      "start_unix_ns", (json_int_t)k->start_unix_ns, "end_unix_ns",
		      (json_int_t)k->end_unix_ns, "samples", (json_int_t)k->samples, "cpu_ns",
		      (json_int_t)k->cpu_ns, "bytes", (json_int_t)k->size, "labels", labels);
	if (k->merged)
		json_object_set_new(o, "merged", json_integer(k->merged));
	return o;
}

/* ---- the ring ---- */

int keep_new(size_t max_bytes, uint64_t max_age_ns, struct keep **ret)
{
	struct keep *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->max_bytes = max_bytes;
	k->max_age_ns = max_age_ns;
	*ret = k;
	return 0;
}

static struct kept **place(const struct keep *k, size_t i)
{
	const size_t at = k->first + i;

	return &k->v[at < k->room ? at : at - k->room];
}

static void remove_first(struct keep *k)
{
	struct kept *old = *place(k, 0);

	k->bytes -= old->bytes;
	k->first = k->first + 1 < k->room ? k->first + 1 : 0;
	k->n--;
	kept_free(old);
}

void keep_free(struct keep *k)
{
	if (!k)
		return;
	while (k->n)
		remove_first(k);
	free(k->v);
	free(k);
}

static int grow(struct keep *k)
{
	size_t room = k->room ? 2 * k->room : 64;
	struct kept **v = calloc(room, sizeof(struct kept *));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < k->n; i++)
		v[i] = *place(k, i);
	free(k->v);
	k->v = v;
	k->first = 0;
	k->room = room;
	return 0;
}

int keep_add(struct keep *k, struct kept *entry)
{
	/* The place in the ring counts, too: small intervals are numerous. */
	entry->bytes += sizeof(*k->v);
	if (entry->bytes > k->max_bytes) {
		k->dropped++;
		kept_free(entry);
		return 0;
	}
	while (k->n && k->bytes + entry->bytes > k->max_bytes) {
		remove_first(k);
		k->dropped++;
	}
	if (k->n == k->room && grow(k) < 0) {
		kept_free(entry);
		return -ENOMEM;
	}
	k->n++;
	*place(k, k->n - 1) = entry;
	k->bytes += entry->bytes;
	return 0;
}

void keep_expire(struct keep *k, uint64_t now_unix_ns)
{
	while (k->n && now_unix_ns > k->max_age_ns &&
	       (*place(k, 0))->end_unix_ns < now_unix_ns - k->max_age_ns) {
		remove_first(k);
		k->expired++;
	}
}

const struct kept *keep_get(const struct keep *k, size_t i)
{
	return i < k->n ? *place(k, i) : NULL;
}

struct keep_counts keep_counts(const struct keep *k)
{
	return (struct keep_counts){
		.n = k->n,
		.bytes = k->bytes,
		.max_bytes = k->max_bytes,
		.expired = k->expired,
		.dropped = k->dropped,
		.oldest_unix_ns = k->n ? (*place(k, 0))->start_unix_ns : 0,
	};
}
