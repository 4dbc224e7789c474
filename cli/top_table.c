// SPDX-License-Identifier: BSD-2-Clause
/* Tables of a response: see top_table.h. */
#include "top_table.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "format/names.h"
#include "render.h"

static void entry_deinit(struct top_entry *e)
{
	free(e->key);
	free(e->name);
	free(e->full);
	free(e->file);
	free(e->func);
	free(e->service);
}

void top_table_deinit(struct top_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		entry_deinit(&t->entries[i]);
	free(t->entries);
	*t = (struct top_table){0};
}

static const char *text_at(const json_t *row, size_t i)
{
	const char *s = json_string_value(json_array_get(row, i));

	return s ? s : "<unknown>";
}

static uint64_t count_of(const json_t *value)
{
	json_int_t v = json_integer_value(value);

	return v < 0 ? 0 : (uint64_t)v;
}

static uint64_t count_at(const json_t *row, size_t i)
{
	return count_of(json_array_get(row, i));
}

static const char *base_name(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash ? slash + 1 : file;
}

/* null: not measured */
static void read_waits(const json_t *row, size_t at, struct top_entry *e)
{
	for (size_t i = 0; i < TOP_WAITS; i++)
		e->waits[i] = count_at(json_array_get(row, at), i);
}

/* Row: file, line, name, qualname, ncalls, pcalls, tottime and cumtime for each clock, waits */
static int read_function(const json_t *row, struct top_entry *e)
{
	const char *file = text_at(row, 0), *name = text_at(row, 2);

	e->line = (int32_t)count_at(row, 1);
	e->file = strdup(file);
	e->func = strdup(name);
	e->key = name_std(file, e->line, name);
	e->full = name_std(file, e->line, name);
	e->name = name_std(base_name(file), e->line, name);
	e->calls = count_at(row, 4);
	e->primitive = count_at(row, 5);
	for (size_t c = 0; c < SNAPSHOT_CLOCKS; c++) {
		e->tot[c] = count_at(row, 6 + 2 * c);
		e->cum[c] = count_at(row, 7 + 2 * c);
	}
	read_waits(row, 6 + 2 * (size_t)SNAPSHOT_CLOCKS, e);
	return e->key && e->name && e->full && e->file && e->func ? 0 : -ENOMEM;
}

/* Both times of threads and processes are shown, whatever the clock. */
static void read_usage(const json_t *row, struct top_entry *e)
{
	e->pid = (pid_t)count_at(row, 0);
	e->calls = e->primitive = count_at(row, 4);
	for (size_t c = 0; c < SNAPSHOT_CLOCKS; c++) {
		e->tot[c] = count_at(row, 5);
		e->cum[c] = count_at(row, 6);
	}
	read_waits(row, 7, e);
}

/* Row: pid, tid, name, alive, calls, cpu, wall, waits */
static int read_thread(const json_t *row, struct top_entry *e)
{
	bool alive = json_is_true(json_array_get(row, 3));

	read_usage(row, e);
	e->tid = (pid_t)count_at(row, 1);
	if (asprintf(&e->key, "%d:%d", e->pid, e->tid) < 0)
		e->key = NULL;
	if (asprintf(&e->name, "%d/%d %s%s", e->pid, e->tid, text_at(row, 2),
		     alive ? "" : " (ended)") < 0)
		e->name = NULL;
	return e->key && e->name ? 0 : -ENOMEM;
}

/* A thread as a part of its process */
static int read_process(const json_t *row, struct top_entry *e)
{
	read_usage(row, e);
	return asprintf(&e->key, "%d", e->pid) < 0 ? -ENOMEM : 0;
}

static int compare_keys(const void *l, const void *r)
{
	return strcmp(((const struct top_entry *)l)->key, ((const struct top_entry *)r)->key);
}

static void merge(struct top_entry *into, const struct top_entry *e)
{
	into->calls += e->calls;
	into->primitive += e->primitive;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		into->tot[c] += e->tot[c];
		into->cum[c] += e->cum[c];
	}
	for (int i = 0; i < TOP_WAITS; i++)
		into->waits[i] += e->waits[i];
}

/* Merge threads of a process, and functions that differ only in the qualified name (as pstats). */
static void merge_equals(struct top_table *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct top_entry *e = &t->entries[i], *last = n ? &t->entries[n - 1] : NULL;

		if (!last || strcmp(last->key, e->key) != 0) {
			t->entries[n++] = *e;
			continue;
		}
		merge(last, e);
		entry_deinit(e);
	}
	t->n = n;
}

static const char *command_of(const json_t *targets, pid_t pid)
{
	size_t i;
	json_t *t;

	json_array_foreach(targets, i, t)
	{
		const char *command = json_string_value(json_object_get(t, "cmdline"));

		if (command && json_integer_value(json_object_get(t, "pid")) == pid)
			return command;
	}
	return "";
}

static int name_by_command(struct top_entry *e, const char *command)
{
	if (asprintf(&e->name, "%d %s", e->pid, render_command(command)) < 0)
		e->name = NULL;
	if (asprintf(&e->full, "%d %s", e->pid, command) < 0)
		e->full = NULL;
	return e->name && e->full ? 0 : -ENOMEM;
}

/*
 * Row: pid, service, samples, CPU time, file, line, name. A process can have several, as after an exec:
 * the one with the most CPU time names it.
 */
static const json_t *find_process(const json_t *processes, struct top_entry *e)
{
	const json_t *row, *most = NULL;
	size_t i;

	json_array_foreach(processes, i, row)
	{
		if (json_integer_value(json_array_get(row, 0)) != e->pid)
			continue;
		e->samples += count_at(row, 2);
		if (!most || count_at(row, 3) > count_at(most, 3))
			most = row;
	}
	return most;
}

static int name_by_function(struct top_entry *e, const json_t *row)
{
	const char *file = text_at(row, 4), *name = text_at(row, 6);
	const int32_t line = (int32_t)count_at(row, 5);

	e->service = strdup(text_at(row, 1));
	e->name = *file ? name_std(base_name(file), line, name) : strdup(name);
	e->full = *file ? name_std(file, line, name) : strdup(name);
	return e->service && e->name && e->full ? 0 : -ENOMEM;
}

static int name_processes(struct top_table *t, const json_t *response)
{
	const json_t *targets = json_object_get(response, "targets");
	const json_t *processes = json_object_get(response, "processes");
	int err = 0;

	for (size_t i = 0; i < t->n && err == 0; i++) {
		struct top_entry *e = &t->entries[i];
		const json_t *row = find_process(processes, e);

		err = row ? name_by_function(e, row)
			  : name_by_command(e, command_of(targets, e->pid));
	}
	return err;
}

int top_table_read(const json_t *response, enum top_view view, struct top_table *ret)
{
	static const struct {
		const char *list;
		int (*read)(const json_t *row, struct top_entry *e);
	} views[TOP_VIEWS] = {
		[TOP_FUNCTIONS] = {"functions", read_function},
		[TOP_THREADS] = {"threads", read_thread},
		[TOP_PROCESSES] = {"threads", read_process},
		[TOP_CALLERS] = {"callers", read_function},
	};
	const json_t *list = json_object_get(response, views[view].list);
	_cleanup_(top_table_deinit) struct top_table t = {0};
	int err = 0;
	size_t i;
	json_t *row;

	t.entries = calloc(json_array_size(list) + 1, sizeof(*t.entries));
	if (!t.entries)
		return -ENOMEM;
	json_array_foreach(list, i, row)
	{
		err = views[view].read(row, &t.entries[t.n++]);
		if (err < 0)
			return err;
	}
	qsort(t.entries, t.n, sizeof(*t.entries), compare_keys);
	merge_equals(&t);
	if (view == TOP_PROCESSES)
		err = name_processes(&t, response);
	if (err < 0)
		return err;
	*ret = t;
	t = (struct top_table){0};
	return 0;
}

const struct top_entry *top_table_find(const struct top_table *t, const char *key)
{
	const struct top_entry wanted = {.key = (char *)key};

	return t->n ? bsearch(&wanted, t->entries, t->n, sizeof(wanted), compare_keys) : NULL;
}
