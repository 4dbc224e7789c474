// SPDX-License-Identifier: BSD-2-Clause
/* Makes one file of several: see compaction.h. */
#include "history/compaction.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "history/disk_index.h"
#include "history/gz.h"
#include "history/sum.h"

struct file {
	char *name;
	char *data;
};

/* An interval in a file */
struct part {
	char *labels; /* as text: whose it is */
	size_t file, order, at, size;
	bool done;
};

struct compaction {
	struct file *files;
	size_t nfiles;
	struct part *parts; /* by labels, then as added, once they are sorted */
	size_t nparts, room, next;
	bool sorted;
	char *out;
	size_t nout;
};

struct compaction *compaction_new(void)
{
	return calloc(1, sizeof(struct compaction));
}

void compaction_free(struct compaction *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nfiles; i++) {
		free(c->files[i].name);
		free(c->files[i].data);
	}
	for (size_t i = 0; i < c->nparts; i++)
		free(c->parts[i].labels);
	free(c->files);
	free(c->parts);
	free(c->out);
	free(c);
}

const char *compaction_file(const struct compaction *c, size_t i)
{
	return i < c->nfiles ? c->files[i].name : NULL;
}

static int no_memory(struct diag *diag)
{
	return diag_errno(diag, ENOMEM, "cannot merge intervals");
}

/* ---- files ---- */

struct listing {
	struct compaction *c;
	size_t at;
};

static int add_part(void *ctx, const char *text, size_t n, size_t size, struct diag *diag)
{
	struct listing *l = ctx;
	struct compaction *c = l->c;
	struct part p = {.file = c->nfiles, .order = c->nparts, .at = l->at, .size = size};

	if (c->nparts == c->room) {
		size_t room = c->room ? 2 * c->room : 64;
		struct part *v = reallocarray(c->parts, room, sizeof(*v));

		if (!v)
			return no_memory(diag);
		c->parts = v;
		c->room = room;
	}
	p.labels = interval_labels_text(text, n);
	if (!p.labels)
		return diag_set(diag, -EBADMSG, PYP_EXIT_FAILURE, "", "no interval");
	c->parts[c->nparts++] = p;
	l->at += size;
	return 0;
}

static void remove_parts(struct compaction *c, size_t from)
{
	while (c->nparts > from)
		free(c->parts[--c->nparts].labels);
}

int compaction_add(struct compaction *c, const char *name, void *data, size_t size,
		   struct diag *diag)
{
	struct file f = {.name = strdup(name), .data = data};
	struct file *v = reallocarray(c->files, c->nfiles + 1, sizeof(*v));
	const size_t before = c->nparts;
	int r = f.name && v ? 0 : no_memory(diag);

	if (v)
		c->files = v;
	if (r == 0)
		r = gz_unpack_text(data, size, name, add_part, &(struct listing){.c = c}, diag);
	if (r < 0) {
		remove_parts(c, before);
		free(f.name);
		free(data);
		return r;
	}
	c->files[c->nfiles++] = f;
	return 0;
}

/* ---- merging ---- */

static int by_labels(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	const int order = strcmp(x->labels, y->labels);

	return order ? order : (x->order > y->order) - (x->order < y->order);
}

static int append(struct compaction *c, const void *data, size_t size, struct diag *diag)
{
	char *v = realloc(c->out, c->nout + size + 1);

	if (!v)
		return no_memory(diag);
	c->out = v;
	memcpy(c->out + c->nout, data, size);
	c->nout += size;
	return 0;
}

/* The intervals that are being merged */
struct merging {
	struct sum *sum;
	uint8_t id[INTERVAL_ID_BYTES];
	uint64_t start_unix_ns, end_unix_ns;
	uint32_t n;
};

static int merge_one(void *ctx, struct interval *iv, struct diag *diag)
{
	struct merging *m = ctx;
	struct merging new = *m;
	int r;

	for (size_t i = 0; i < sizeof(new.id); i++)
		new.id[i] ^= iv->id[i];
	if (!m->n || iv->start_unix_ns < m->start_unix_ns)
		new.start_unix_ns = iv->start_unix_ns;
	if (iv->end_unix_ns > m->end_unix_ns)
		new.end_unix_ns = iv->end_unix_ns;
	new.n += iv->merged ? iv->merged : 1;
	r = sum_add(m->sum, iv, diag);
	if (r == 0)
		*m = new;
	return r;
}

static int write_merged(struct compaction *c, const struct merging *m, const char *labels,
			struct diag *diag)
{
	_cleanup_(interval_freep) struct interval *iv = NULL;
	_cleanup_free_ void *data = NULL;
	struct snapshot *s;
	size_t size = 0;
	int r = sum_take(m->sum, &s, diag);

	if (r < 0)
		return r;
	iv = interval_new(m->id, m->start_unix_ns, m->end_unix_ns, s);
	if (!iv || interval_set_labels_text(iv, labels) < 0)
		return no_memory(diag);
	iv->merged = m->n > 1 ? m->n : 0;
	r = gz_pack_interval(iv, GZ_SMALL, &data, &size, diag);
	return r < 0 ? r : append(c, data, size, diag);
}

/*
 * Merges what can be added of parts with equal labels. Returns whether something is left: what was
 * measured in another mode (sum_add() refuses it with -EINVAL).
 */
static int merge_round(struct compaction *c, size_t from, size_t to, struct diag *diag)
{
	_cleanup_(sum_freep) struct sum *sum = sum_new();
	struct merging m = {.sum = sum};
	int left = 0;

	if (!sum)
		return no_memory(diag);
	for (size_t i = from; i < to; i++) {
		struct part *p = &c->parts[i];
		const struct file *f = &c->files[p->file];
		int r;

		if (p->done)
			continue;
		r = gz_unpack(f->data + p->at, p->size, f->name, merge_one, &m, diag);
		if (r < 0 && (r != -EINVAL || !m.n))
			return r;
		p->done = r == 0;
		left |= r < 0;
	}
	if (m.n) {
		int r = write_merged(c, &m, c->parts[from].labels, diag);

		if (r < 0)
			return r;
	}
	return left;
}

/* The index comes first. */
static int begin(struct compaction *c, struct diag *diag)
{
	_cleanup_free_ const char **names = calloc(c->nfiles + 1, sizeof(*names));
	_cleanup_free_ void *index = NULL;
	size_t size = 0;
	int r = names ? 0 : no_memory(diag);

	for (size_t i = 0; r == 0 && i < c->nfiles; i++)
		names[i] = c->files[i].name;
	if (r == 0)
		r = disk_index_pack(names, c->nfiles, &index, &size, diag);
	if (r == 0)
		r = append(c, index, size, diag);
	if (r == 0 && c->nparts)
		qsort(c->parts, c->nparts, sizeof(*c->parts), by_labels);
	c->sorted = r == 0;
	return r;
}

int compaction_step(struct compaction *c, struct diag *diag)
{
	size_t to = c->next;
	int left = 1;

	if (!c->sorted) {
		int r = begin(c, diag);

		if (r < 0)
			return r;
	}
	if (c->next == c->nparts)
		return 0;
	while (to < c->nparts && strcmp(c->parts[to].labels, c->parts[c->next].labels) == 0)
		to++;
	while (left > 0)
		left = merge_round(c, c->next, to, diag);
	c->next = to;
	return left < 0 ? left : 1;
}

int compaction_take(struct compaction *c, void **ret, size_t *ret_size, struct diag *diag)
{
	if (!c->sorted || c->next < c->nparts)
		return diag_errno(diag, EBUSY, "cannot merge intervals");
	*ret = TAKE_PTR(c->out);
	*ret_size = c->nout;
	return 0;
}
