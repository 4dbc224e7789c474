// SPDX-License-Identifier: BSD-2-Clause
/* Code announcements: see codes.h. */
#include "stack/codes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/utf8_clean.h"
#include "snapshot/snapshot.h"

#define UNREADABLE "<unreadable>"
#define UNKNOWN	   "<unknown>"

int codes_init(struct codes *c, uint32_t max_funcs, uint64_t max_string_bytes,
	       codes_resolve_fn resolve, void *ctx)
{
	*c = (struct codes){.resolve = resolve, .ctx = ctx};
	return funcs_init(&c->funcs, max_funcs, max_string_bytes);
}

static void pending_drop(struct codes *c, struct codes_pending *pe)
{
	uint32_t after = (uint32_t)(c->pending + c->npending - pe) - 1;

	for (int i = 0; i < CODES_STRINGS; i++)
		free(pe->str[i]);
	memmove(pe, pe + 1, after * sizeof(*pe));
	c->npending--;
}

void codes_deinit(struct codes *c)
{
	while (c->npending)
		pending_drop(c, &c->pending[0]);
	natives_deinit(&c->natives);
	funcs_deinit(&c->funcs);
}

static struct codes_pending *pending_find(struct codes *c, uint32_t tid, uint64_t code)
{
	for (uint32_t i = 0; i < c->npending; i++)
		if (c->pending[i].tid == tid && c->pending[i].code == code)
			return &c->pending[i];
	return NULL;
}

/* The first entry of a thread that has as many as can be nested: its CODE record was lost. */
static struct codes_pending *pending_stale(struct codes *c, uint32_t tid)
{
	struct codes_pending *first = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->npending; i++)
		if (c->pending[i].tid == tid && n++ == 0)
			first = &c->pending[i];
	return n >= CODES_NESTED ? first : NULL;
}

static struct codes_pending *pending_get(struct codes *c, uint32_t tid, uint64_t code)
{
	struct codes_pending *pe = pending_find(c, tid, code);

	if (pe)
		return pe;
	pe = pending_stale(c, tid);
	if (!pe && c->npending == CODES_PENDING)
		pe = &c->pending[0];
	if (pe)
		pending_drop(c, pe);
	pe = &c->pending[c->npending++];
	*pe = (struct codes_pending){.tid = tid, .code = code};
	return pe;
}

void codes_string(struct codes *c, uint32_t tid, const struct event_string *s)
{
	struct codes_pending *pe;

	if (s->which >= CODES_STRINGS)
		return;
	pe = pending_get(c, tid, s->code);
	free(pe->str[s->which]);
	pe->str[s->which] = NULL;
	pe->sent[s->which] = true;
	pe->cut[s->which] = s->flags & PYP_STRING_TRUNCATED;
	if (!(s->flags & PYP_STRING_UNREADABLE))
		pe->str[s->which] = utf8_from_units(s->data, s->bytes, s->kind, NULL);
}

static void bind_names(struct codes *c, uint64_t code, const struct code_names *n)
{
	struct func_identity id = {
		.filename = n->filename ? n->filename : UNREADABLE,
		.name = n->name ? n->name : UNREADABLE,
		.qualname = n->qualname,
		.firstlineno = n->firstlineno,
	};
	uint32_t func;

	if (!n->filename || !n->name)
		c->unreadable++;
	/* Without room for the address, each frame asks the resolver: slow, but correct. */
	func = funcs_bind(&c->funcs, code, &id, NULL);
	c->funcs.list[func].flags = n->flags;
}

static bool has_unreadable(const struct codes *c, uint32_t func)
{
	const struct func_identity id = funcs_identity(&c->funcs, func);

	return strcmp(id.filename, UNREADABLE) == 0 || strcmp(id.name, UNREADABLE) == 0;
}

/* Adds names from the target's memory; names from records take precedence. */
static void resolve_missing(struct codes *c, uint64_t code, uint64_t ts, struct code_names *n)
{
	_cleanup_(code_names_deinit) struct code_names found = {0};

	if (!c->resolve || c->resolve(c->ctx, code, ts, &found))
		return;
	if (!n->filename)
		n->filename = TAKE_PTR(found.filename);
	if (!n->name)
		n->name = TAKE_PTR(found.name);
	if (!n->qualname)
		n->qualname = TAKE_PTR(found.qualname);
}

static void complete(char **cut, char **whole)
{
	if (!*cut || !*whole || strncmp(*cut, *whole, strlen(*cut)) != 0)
		return;
	free(*cut);
	*cut = TAKE_PTR(*whole);
}

/*
 * Reads strings that were cut. If the string does not start with the known part, the code object
 * has been freed meanwhile and the known part stays.
 */
static void complete_cut(struct codes *c, uint64_t code, uint64_t ts,
			 const struct codes_pending *pe, struct code_names *n)
{
	_cleanup_(code_names_deinit) struct code_names found = {0};

	if (!c->resolve || c->resolve(c->ctx, code, ts, &found))
		return;
	if (pe->cut[PYP_STR_FILENAME])
		complete(&n->filename, &found.filename);
	if (pe->cut[PYP_STR_NAME])
		complete(&n->name, &found.name);
	if (pe->cut[PYP_STR_QUALNAME])
		complete(&n->qualname, &found.qualname);
}

static bool str_agrees(const struct codes_pending *pe, enum pyp_string_which which,
		       const char *known)
{
	return !pe || !pe->sent[which] ||
	       (pe->str[which] && known && strcmp(pe->str[which], known) == 0);
}

/*
 * Returns whether the record ends an announcement that another one of the same code object has
 * interrupted: some of its strings were taken for the other one's, which has all of them.
 */
static bool is_repeated(const struct codes *c, const struct codes_pending *pe, uint64_t code,
			int32_t firstlineno)
{
	struct func_identity known;
	uint32_t func;

	if (pe && pe->sent[PYP_STR_FILENAME] && pe->sent[PYP_STR_NAME])
		return false;
	if (!funcs_find(&c->funcs, code, &func) || func_is_pseudo(func))
		return false;
	known = funcs_identity(&c->funcs, func);
	return known.firstlineno == firstlineno &&
	       str_agrees(pe, PYP_STR_FILENAME, known.filename) &&
	       str_agrees(pe, PYP_STR_NAME, known.name) &&
	       str_agrees(pe, PYP_STR_QUALNAME, known.qualname);
}

void codes_code(struct codes *c, uint64_t ts, uint32_t tid, uint64_t code, int32_t firstlineno,
		uint32_t flags)
{
	_cleanup_(code_names_deinit) struct code_names names = {.firstlineno = firstlineno,
								.flags = flags};
	struct codes_pending *pe = pending_find(c, tid, code);
	bool repeated = is_repeated(c, pe, code, firstlineno);

	if (pe && !repeated) {
		names.filename = TAKE_PTR(pe->str[PYP_STR_FILENAME]);
		names.name = TAKE_PTR(pe->str[PYP_STR_NAME]);
		names.qualname = TAKE_PTR(pe->str[PYP_STR_QUALNAME]);
		if (pe->cut[PYP_STR_FILENAME] || pe->cut[PYP_STR_NAME] || pe->cut[PYP_STR_QUALNAME])
			complete_cut(c, code, ts, pe, &names);
	}
	if (pe)
		pending_drop(c, pe);
	if (repeated)
		return;
	if (!names.filename || !names.name)
		resolve_missing(c, code, ts, &names);
	bind_names(c, code, &names);
}

void codes_late(struct codes *c, uint32_t tid, uint64_t code, int32_t firstlineno, uint32_t flags)
{
	struct codes_pending *pe = pending_find(c, tid, code);
	struct func_identity id = {.firstlineno = firstlineno};
	uint32_t func;

	if (!pe)
		return;
	id.filename = pe->str[PYP_STR_FILENAME];
	id.name = pe->str[PYP_STR_NAME];
	id.qualname = pe->str[PYP_STR_QUALNAME];
	if (id.filename && id.name && funcs_find(&c->funcs, code, &func) &&
	    has_unreadable(c, func) && !funcs_rename(&c->funcs, code, &id)) {
		c->funcs.list[func].flags = flags;
		c->unreadable--;
	}
	pending_drop(c, pe);
}

/*
 * Forms cProfile's names like normalizeUserObj in Modules/_lsprof.c: a method of a type by the
 * type's attribute, any other function by its module, if known.
 */
#define METHOD_NAME_MAX 256
#define INSTANT		1u /* flag in the address of this variant; method addresses are aligned */

static void method_name(const struct event_method *m, char *out, size_t size)
{
	const char *name = m->unreadable ? UNREADABLE : m->name;

	if (m->type[0])
		snprintf(out, size, "<method '%s' of '%s' objects>", name, m->type);
	else if (strcmp(name, "__new__") == 0)
		/* All types share one method; the metaclass prints it as type.__new__. */
		snprintf(out, size, "<built-in method __new__ of type object at 0x%" PRIx64 ">",
			 m->self_type);
	else if (m->module[0])
		snprintf(out, size, "<built-in method %s.%s>", m->module, name);
	else
		snprintf(out, size, "<built-in method %s>", name);
}

void codes_method(struct codes *c, const struct event_method *m)
{
	char raw[METHOD_NAME_MAX], name[METHOD_NAME_MAX];

	method_name(m, raw, sizeof(raw));
	utf8_clean(raw, name, sizeof(name));
	c->unreadable += m->unreadable;
	funcs_forget(&c->funcs, m->method | INSTANT);
	(void)funcs_bind(&c->funcs, m->method,
			 &(struct func_identity){
				 .filename = SNAPSHOT_NATIVE_FILE,
				 .name = name,
			 },
			 NULL);
}

uint32_t codes_instant(struct codes *c, uint64_t method)
{
	struct func_identity id;
	uint32_t func;

	if (funcs_find(&c->funcs, method | INSTANT, &func))
		return func;
	id = funcs_identity(&c->funcs, codes_func(c, method));
	func = funcs_bind(&c->funcs, method | INSTANT, &id, NULL);
	c->funcs.list[func].instant = !func_is_pseudo(func);
	return func;
}

void codes_free(struct codes *c, uint64_t code)
{
	funcs_forget(&c->funcs, code);
}

void codes_thread_exit(struct codes *c, uint32_t tid)
{
	for (uint32_t i = c->npending; i-- > 0;)
		if (c->pending[i].tid == tid)
			pending_drop(c, &c->pending[i]);
}

void codes_forget(struct codes *c)
{
	while (c->npending)
		pending_drop(c, &c->pending[0]);
	funcs_forget_all(&c->funcs);
	natives_forget(&c->natives);
}

uint32_t codes_native(struct codes *c, uint64_t address)
{
	return natives_func(&c->natives, &c->funcs, address);
}

uint32_t codes_unknown(struct codes *c, uint64_t code)
{
	_cleanup_(code_names_deinit) struct code_names names = {0};
	struct func_identity id = {.filename = UNKNOWN};
	char name[48];
	uint32_t func;

	if (c->resolve && c->resolve(c->ctx, code, 0, &names) == 0) {
		bind_names(c, code, &names);
		if (funcs_find(&c->funcs, code, &func))
			return func;
	}
	snprintf(name, sizeof(name), "<unknown 0x%" PRIx64 ">", code);
	id.name = name;
	func = funcs_bind(&c->funcs, code, &id, NULL);
	c->unreadable++;
	return func;
}
