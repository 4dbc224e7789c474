// SPDX-License-Identifier: BSD-2-Clause
/* A list of processes as text and JSON: see ps_table.h. */
#include "ps_table.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8_clean.h"
#include "render.h"

#define ID_SHOWN    12 /* as docker ps shows */
#define PLACE_MIN   14
#define PLACE_MAX   32
#define USER_MIN    8
#define USER_WIDTH  16
#define COMMAND_MIN 20

/* Widths of the columns, from their contents */
struct table {
	const struct ps_style *style;
	FILE *out;
	int user, place;
};

/* "docker:3f2a9c1b7d10", "lxc:web", "web.service", "-" */
static const char *place_of(const struct process *p, char out[CGROUP_NAME_MAX + 32])
{
	const struct cgroup_place *place = &p->place;
	size_t n = strlen(place->container);

	if (n == 64) /* an id */
		n = ID_SHOWN;
	if (place->container[0])
		snprintf(out, CGROUP_NAME_MAX + 32, "%s:%.*s", place->runtime, (int)n,
			 place->container);
	else
		snprintf(out, CGROUP_NAME_MAX + 32, "%s", place->unit[0] ? place->unit : "-");
	return out;
}

static const char *version_of(const struct process *p, char out[64])
{
	bool c = p->implementation == IMPLEMENTATION_CPYTHON;

	snprintf(out, 64, "%s%s", c ? "" : implementation_name(p->implementation),
		 p->version[0] ? p->version
		 : c	       ? "?"
			       : "");
	return out;
}

/* Characters, as render_clipped() prints them; at most `most` */
static int length_of(const char *s, int most)
{
	int n = 0;

	for (; *s && n < most; n++) {
		size_t bytes = utf8_len(s);

		s += bytes ? bytes : 1;
	}
	return n;
}

static void measure(struct table *t, const struct processes *l)
{
	char place[CGROUP_NAME_MAX + 32], user[PS_USER_MAX];
	int place_max = t->style->width ? PLACE_MAX : CGROUP_NAME_MAX;

	t->user = USER_MIN;
	t->place = PLACE_MIN;
	for (size_t i = 0; i < l->n; i++) {
		int n = length_of(t->style->user(l->v[i].uid, user), USER_WIDTH);
		int m = length_of(place_of(&l->v[i], place), place_max);

		t->user = n > t->user ? n : t->user;
		t->place = m > t->place ? m : t->place;
	}
}

static void print_padded(const char *s, int width, FILE *out)
{
	fprintf(out, "%*s ", width - render_clipped(s, width, out), "");
}

static const char *answer_of(const struct process *p)
{
	static const char *const answers[] = {
		[PROCESS_UNKNOWN] = "?", [PROCESS_TRACEABLE] = "yes", [PROCESS_UNTRACEABLE] = "no"};

	return answers[p->traceable];
}

static void print_process(const struct table *t, const struct process *p)
{
	char text[CGROUP_NAME_MAX + 32];
	int used = 7 + 1 + 8 + 1 + t->user + 1 + 5 + 1 + 4 + 1 + 5 + 1 + t->place + 1;
	int rest = t->style->width ? t->style->width - used : 0;

	if (t->style->width && rest < COMMAND_MIN)
		rest = COMMAND_MIN;
	fprintf(t->out, "%7d ", (int)p->pid);
	print_padded(version_of(p, text), 8, t->out);
	print_padded(t->style->user(p->uid, text), t->user, t->out);
	if (p->cpu < 0)
		fprintf(t->out, "%5s ", "?");
	else
		fprintf(t->out, "%5.1f ", p->cpu);
	fprintf(t->out, "%4" PRIu32 " ", p->threads);
	print_padded(answer_of(p), 5, t->out);
	print_padded(place_of(p, text), t->place, t->out);
	render_clipped(render_command(p->command), rest, t->out);
	putc('\n', t->out);
}

/* Is there an earlier process with the same reason? */
static bool is_repeated(const struct processes *l, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(l->v[k].why, l->v[i].why) == 0)
			return true;
	return false;
}

/* "    812 and 4 others cannot be traced: …" */
static void print_reason(const struct table *t, const struct processes *l, size_t i)
{
	const struct process *p = &l->v[i];
	size_t others = 0;
	char more[32] = "";
	int used;

	for (size_t k = i + 1; k < l->n; k++)
		others += strcmp(l->v[k].why, p->why) == 0;
	if (others)
		snprintf(more, sizeof(more), " and %zu more", others);
	used = fprintf(t->out, "%7d%s: %s", (int)p->pid, more,
		       p->traceable == PROCESS_UNKNOWN ? "unknown: " : "");
	render_clipped(p->why,
		       !t->style->width			      ? 0
		       : t->style->width - used > COMMAND_MIN ? t->style->width - used
							      : COMMAND_MIN,
		       t->out);
	putc('\n', t->out);
}

static void print_unread(const struct table *t, const struct processes *l)
{
	if (l->unreadable)
		fprintf(t->out, "not listed: %u that could not be read%s\n", l->unreadable,
			t->style->root ? "" : "; root can see which of them run Python");
	if (l->late)
		fprintf(t->out, "not listed: %u that could not be read in time\n", l->late);
}

void ps_table_print(const struct processes *l, const struct ps_style *style, FILE *out)
{
	struct table t = {.style = style, .out = out};

	measure(&t, l);
	if (l->n)
		fprintf(out, "%7s %-8s %-*s %5s %4s %-5s %-*s %s\n", "PID", "PYTHON", t.user,
			"USER", "CPU%", "THR", "TRACE", t.place, "UNIT/CONTAINER", "COMMAND");
	else
		fputs("no Python processes\n", out);
	for (size_t i = 0; i < l->n; i++)
		print_process(&t, &l->v[i]);
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].why[0] && !is_repeated(l, i))
			print_reason(&t, l, i);
	print_unread(&t, l);
}

/* ---- JSON ---- */

static json_t *text_json(const char *s)
{
	char clean[TARGET_CMDLINE_MAX];

	return *s ? json_string(utf8_clean(s, clean, sizeof(clean))) : json_null();
}

static json_t *container_json(const struct cgroup_place *place)
{
	return place->container[0] ? json_pack("{s:o, s:o}", "runtime", text_json(place->runtime),
					       "id", text_json(place->container))
				   : json_null();
}

static json_t *answer_json(const struct process *p)
{
	return p->traceable == PROCESS_UNKNOWN ? json_null()
					       : json_boolean(p->traceable == PROCESS_TRACEABLE);
}

static json_t *process_json(const struct process *p, const struct ps_style *style)
{
	char user[PS_USER_MAX];

	return json_pack("{s:i, s:i, s:s, s:o, s:o, s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "pid",
			 (int)p->pid, "ppid", (int)p->parent, "implementation",
			 implementation_name(p->implementation), "version", text_json(p->version),
			 "user", text_json(style->user(p->uid, user)), "uid", (json_int_t)p->uid,
			 "cpu_percent", p->cpu < 0 ? json_null() : json_real(p->cpu), "threads",
			 (json_int_t)p->threads, "unit", text_json(p->place.unit), "container",
			 container_json(&p->place), "traceable", answer_json(p), "reason",
			 text_json(p->why), "command", text_json(p->command));
}

json_t *ps_table_json(const struct processes *l, const struct ps_style *style)
{
	json_t *v = json_array();

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(v, process_json(&l->v[i], style));
	return json_pack("{s:o, s:I, s:I}", "processes", v, "unreadable", (json_int_t)l->unreadable,
			 "late", (json_int_t)l->late);
}
