// SPDX-License-Identifier: BSD-2-Clause
/* How a timeline of the recent past ended: see outcome.h. */
#include "timeline/outcome.h"

#include <errno.h>
#include <string.h>

#include "base/utf8_clean.h"

int outcome_recent(struct outcome *o, const struct timeline_rec *r, const char *text, size_t n)
{
	if (o->recent || !memchr(text, '\0', n))
		return -EBADMSG;
	o->recent = true;
	o->keep_ns = r->ts;
	o->older = r->cpu;
	o->beyond_size = r->count;
	o->refused = r->caller;
	utf8_clean(text, o->condition, sizeof(o->condition));
	return 0;
}

int outcome_trigger(struct outcome *o, const struct timeline_rec *r, uint32_t pid, const char *text,
		    size_t n)
{
	if (!o->recent || o->met || !memchr(text, '\0', n))
		return -EBADMSG;
	o->met = true;
	o->ts = r->ts;
	o->pid = pid;
	o->tid = r->tid;
	utf8_clean(text, o->what, sizeof(o->what));
	return 0;
}

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)(n & INT64_MAX));
}

static json_t *trigger_json(const struct outcome *o, uint64_t from_ns, uint64_t from_unix_ns)
{
	const uint64_t at = o->ts > from_ns ? o->ts - from_ns : 0;
	json_t *t;

	if (!o->condition[0])
		return json_null();
	t = json_pack("{s:s, s:b, s:o}", "condition", o->condition, "met", (int)o->met,
		      "not_followed", number(o->refused));
	if (!t || !o->met)
		return t;
	if (json_object_set_new(t, "what", json_string(o->what)) < 0 ||
	    json_object_set_new(t, "at_ns", number(at)) < 0 ||
	    json_object_set_new(t, "at_unix_ns", number(from_unix_ns + at)) < 0 ||
	    json_object_set_new(t, "pid", number(o->pid)) < 0 ||
	    json_object_set_new(t, "tid", number(o->tid)) < 0) {
		json_decref(t);
		return NULL;
	}
	return t;
}

json_t *outcome_json(const struct outcome *o, uint64_t from_ns, uint64_t from_unix_ns)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "keep_ns", number(o->keep_ns), "older",
			 number(o->older), "beyond_size", number(o->beyond_size), "trigger",
			 trigger_json(o, from_ns, from_unix_ns));
}
