// SPDX-License-Identifier: BSD-2-Clause
/*
 * OTLP profiles over HTTP (POST /v1development/profiles): protobuf with gzip, see otlp.proto.
 *
 * A profile of OTLP has one type of value, so an interval is three profiles: calls, cpu and wall.
 * They share stacks and all tables (the dictionary). The first has the interval's id, the ids of the
 * others differ from it in the last byte; all have the id as an attribute.
 *
 * The answer's status means what the specification says: 429, 502, 503 and 504 may be repeated, all
 * other failures must not. A success may be partial: what was rejected is not sent again.
 */
#include "push/otlp.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/strtab.h"
#include "format/names.h"
#include "format/stacks.h"
#include "push/gzip.h"
#include "push/otlp.pb-c.h"
#include "pyprof/version.h"

#define VALUES	     3
#define LOCATION_MAX (1u << 30) /* indices are signed 32-bit numbers */

static const struct {
	const char *type, *unit;
} value_types[VALUES] = {{"calls", "count"}, {"cpu", "nanoseconds"}, {"wall", "nanoseconds"}};

/* A message that is encoded piece by piece */
struct pieces {
	ProtobufCBuffer base; /* must be first: callbacks receive a pointer to it */
	uint8_t *data;
	size_t n, room;
	bool failed; /* out of memory */
};

struct writer {
	const struct interval *iv;
	struct strtab strings;
	struct map functions, locations; /* function, (target, function) → index */
	struct pieces dictionary, profiles[VALUES];
	uint32_t nfunctions, nlocations, nstacks, nattributes;
	int32_t frame_type; /* attribute of each location */
	int32_t interval_id;
	int32_t thread_attributes[3];
	uint32_t thread;     /* that these belong to; SNAPSHOT_NONE: none */
	uint32_t *target_of; /* per thread: index, or ntargets */
	int32_t ids[STACKS_MAX_FRAMES];
};

/* ---- pieces ---- */

static void pieces_append(ProtobufCBuffer *base, size_t n, const uint8_t *data)
{
	struct pieces *p = (struct pieces *)base;
	size_t room = p->room ? p->room : 4096;
	uint8_t *grown;

	while (room - p->n < n)
		room *= 2;
	grown = room == p->room ? p->data : realloc(p->data, room);
	if (!grown) {
		p->failed = true;
		return;
	}
	p->data = grown;
	p->room = room;
	memcpy(p->data + p->n, data, n);
	p->n += n;
}

static void pieces_init(struct pieces *p)
{
	*p = (struct pieces){.base = {.append = pieces_append}};
}

static void put(struct writer *w, const Otlp__Dictionary *piece)
{
	otlp__dictionary__pack_to_buffer(piece, &w->dictionary.base);
}

/* Sets *ret to the index of a string, which is written if it is new. */
static int put_string(struct writer *w, const char *s, int32_t *ret)
{
	_cleanup_free_ char *utf8 = name_escape(s ? s : "");
	Otlp__Dictionary piece = OTLP__DICTIONARY__INIT;
	uint32_t before = w->strings.n, id;

	if (!utf8 || strtab_add(&w->strings, utf8, &id) < 0)
		return -ENOMEM;
	if (id == before) {
		piece.n_string_table = 1;
		piece.string_table = &utf8;
		put(w, &piece);
	}
	*ret = (int32_t)id;
	return 0;
}

/* An attribute of this value (text NULL: the number) */
static int put_attribute(struct writer *w, const char *key, const char *text, int64_t number,
			 int32_t *ret)
{
	_cleanup_free_ char *utf8 = text ? name_escape(text) : NULL;
	Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;
	Otlp__Attribute message = OTLP__ATTRIBUTE__INIT, *list = &message;
	Otlp__Dictionary piece = OTLP__DICTIONARY__INIT;

	if ((text && !utf8) || put_string(w, key, &message.key_strindex) < 0)
		return -ENOMEM;
	value.value_case = text ? OTLP__ANY_VALUE__VALUE_STRING_VALUE
				: OTLP__ANY_VALUE__VALUE_INT_VALUE;
	if (text)
		value.string_value = utf8;
	else
		value.int_value = number;
	message.value = &value;
	piece.n_attribute_table = 1;
	piece.attribute_table = &list;
	put(w, &piece);
	*ret = (int32_t)w->nattributes++;
	return 0;
}

/* Entry 0 of each table */
static int put_nothings(struct writer *w)
{
	Otlp__Mapping mapping = OTLP__MAPPING__INIT, *mappings = &mapping;
	Otlp__Location location = OTLP__LOCATION__INIT, *locations = &location;
	Otlp__Function function = OTLP__FUNCTION__INIT, *functions = &function;
	Otlp__Link link = OTLP__LINK__INIT, *links = &link;
	Otlp__Attribute attribute = OTLP__ATTRIBUTE__INIT, *attributes = &attribute;
	Otlp__Stack stack = OTLP__STACK__INIT, *stacks = &stack;
	Otlp__Dictionary piece = OTLP__DICTIONARY__INIT;
	int32_t empty;

	piece.n_mapping_table = piece.n_location_table = piece.n_function_table = 1;
	piece.n_link_table = piece.n_attribute_table = piece.n_stack_table = 1;
	piece.mapping_table = &mappings;
	piece.location_table = &locations;
	piece.function_table = &functions;
	piece.link_table = &links;
	piece.attribute_table = &attributes;
	piece.stack_table = &stacks;
	put(w, &piece);
	w->nfunctions = w->nlocations = w->nstacks = w->nattributes = 1;
	return put_string(w, "", &empty);
}

static int put_mappings(struct writer *w)
{
	const struct snapshot *s = w->iv->snapshot;

	for (uint32_t i = 0; i < s->ntargets; i++) {
		const struct snapshot_target *t = &s->targets[i];
		const char *file = t->python_file && t->python_file[0] ? t->python_file : t->exe;
		Otlp__Mapping message = OTLP__MAPPING__INIT, *list = &message;
		Otlp__Dictionary piece = OTLP__DICTIONARY__INIT;

		if (put_string(w, file, &message.filename_strindex) < 0)
			return -ENOMEM;
		piece.n_mapping_table = 1;
		piece.mapping_table = &list;
		put(w, &piece);
	}
	return 0;
}

/* func SNAPSHOT_NONE stands for the frames left out of a stack. */
static int put_function(struct writer *w, uint32_t func, int32_t *ret)
{
	static const struct snapshot_func left_out = {
		.filename = "", .name = STACKS_LEFT_OUT, .pseudo = true};
	const struct snapshot_func *f = func == SNAPSHOT_NONE ? &left_out
							      : &w->iv->snapshot->funcs[func];
	Otlp__Function message = OTLP__FUNCTION__INIT, *list = &message;
	Otlp__Dictionary piece = OTLP__DICTIONARY__INIT;
	uint32_t known;

	if (map_get(&w->functions, func, &known)) {
		*ret = (int32_t)known;
		return 0;
	}
	message.start_line = f->firstlineno;
	if (put_string(w, name_of_func(f), &message.name_strindex) < 0 ||
	    put_string(w, f->name, &message.system_name_strindex) < 0 ||
	    put_string(w, f->pseudo ? "" : f->filename, &message.filename_strindex) < 0)
		return -ENOMEM;
	piece.n_function_table = 1;
	piece.function_table = &list;
	put(w, &piece);
	*ret = (int32_t)w->nfunctions++;
	return map_put(&w->functions, func, (uint32_t)*ret);
}

/* Sets *ret to the location of a function in a target, which is written if it is new. */
static int put_location(struct writer *w, uint32_t target, uint32_t func, int32_t *ret)
{
	uint64_t key = (uint64_t)target << 32 | func;
	Otlp__Line line = OTLP__LINE__INIT, *lines = &line;
	Otlp__Location message = OTLP__LOCATION__INIT, *list = &message;
	Otlp__Dictionary piece = OTLP__DICTIONARY__INIT;
	uint32_t known;

	if (map_get(&w->locations, key, &known)) {
		*ret = (int32_t)known;
		return 0;
	}
	if (w->nlocations >= LOCATION_MAX || put_function(w, func, &line.function_index) < 0)
		return -ENOMEM;
	line.line = func == SNAPSHOT_NONE ? 0 : w->iv->snapshot->funcs[func].firstlineno;
	message.mapping_index = target < w->iv->snapshot->ntargets ? (int32_t)target + 1 : 0;
	message.n_lines = 1;
	message.lines = &lines;
	message.n_attribute_indices = 1;
	message.attribute_indices = &w->frame_type;
	piece.n_location_table = 1;
	piece.location_table = &list;
	put(w, &piece);
	*ret = (int32_t)w->nlocations++;
	return map_put(&w->locations, key, (uint32_t)*ret);
}

/* ---- samples ---- */

/* Consecutive samples mostly belong to the same thread. */
static int set_thread(struct writer *w, uint32_t thread)
{
	const struct snapshot_thread *t = &w->iv->snapshot->threads[thread];
	int32_t *to = w->thread_attributes;

	if (w->thread == thread)
		return 0;
	w->thread = thread;
	if (put_attribute(w, "thread.name", t->name && t->name[0] ? t->name : "thread", 0, &to[0]) <
		    0 ||
	    put_attribute(w, "thread.id", NULL, t->tid, &to[1]) < 0 ||
	    put_attribute(w, "process.pid", NULL, t->pid, &to[2]) < 0)
		return -ENOMEM;
	return 0;
}

static int put_stack(struct writer *w, const struct stack *stack)
{
	Otlp__Stack message = OTLP__STACK__INIT, *list = &message;
	Otlp__Dictionary piece = OTLP__DICTIONARY__INIT;
	uint32_t target = w->target_of[stack->thread];

	for (size_t i = 0; i < stack->n; i++)
		if (put_location(w, target, stack->funcs[stack->n - 1 - i], &w->ids[i]) < 0)
			return -ENOMEM;
	message.n_location_indices = stack->n;
	message.location_indices = w->ids;
	piece.n_stack_table = 1;
	piece.stack_table = &list;
	put(w, &piece);
	w->nstacks++;
	return 0;
}

static int64_t clamp(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static int put_samples(void *ctx, const struct stack *stack)
{
	struct writer *w = ctx;
	const struct snapshot_node *n = &w->iv->snapshot->nodes[stack->node];
	int64_t values[VALUES] = {clamp(n->calls), clamp(n->self[SNAPSHOT_CPU]),
				  clamp(n->self[SNAPSHOT_WALL])};

	if (!values[0] && !values[1] && !values[2])
		return 0;
	if (set_thread(w, stack->thread) < 0 || put_stack(w, stack) < 0)
		return -ENOMEM;
	for (int v = 0; v < VALUES; v++) {
		Otlp__Sample message = OTLP__SAMPLE__INIT, *list = &message;
		Otlp__Profile piece = OTLP__PROFILE__INIT;

		if (!values[v])
			continue;
		message.stack_index = (int32_t)w->nstacks - 1;
		message.n_attribute_indices = 3;
		message.attribute_indices = w->thread_attributes;
		message.n_values = 1;
		message.values = &values[v];
		piece.n_samples = 1;
		piece.samples = &list;
		otlp__profile__pack_to_buffer(&piece, &w->profiles[v].base);
	}
	return 0;
}

/* What a profile has besides its samples */
static int put_profile(struct writer *w, int v)
{
	const struct interval *iv = w->iv;
	Otlp__ValueType type = OTLP__VALUE_TYPE__INIT;
	Otlp__Profile piece = OTLP__PROFILE__INIT;
	uint8_t id[INTERVAL_ID_BYTES];

	memcpy(id, iv->id, sizeof(id));
	id[sizeof(id) - 1] ^= (uint8_t)v;
	if (put_string(w, value_types[v].type, &type.type_strindex) < 0 ||
	    put_string(w, value_types[v].unit, &type.unit_strindex) < 0)
		return -ENOMEM;
	piece.sample_type = &type;
	piece.time_unix_nano = iv->start_unix_ns;
	piece.duration_nano = iv->end_unix_ns - iv->start_unix_ns;
	piece.profile_id = (ProtobufCBinaryData){sizeof(id), id};
	piece.n_attribute_indices = 1;
	piece.attribute_indices = &w->interval_id;
	otlp__profile__pack_to_buffer(&piece, &w->profiles[v].base);
	return 0;
}

static void find_targets(struct writer *w)
{
	const struct snapshot *s = w->iv->snapshot;

	for (uint32_t i = 0; i < s->nthreads; i++) {
		uint32_t t = 0;

		while (t < s->ntargets && s->targets[t].pid != s->threads[i].pid)
			t++;
		w->target_of[i] = t;
	}
}

static int write_all(struct writer *w)
{
	const struct view_filter all = {0};
	char id[INTERVAL_ID_TEXT];

	find_targets(w);
	if (put_nothings(w) < 0 || put_mappings(w) < 0 ||
	    put_attribute(w, "profile.frame.type", "cpython", 0, &w->frame_type) < 0 ||
	    put_attribute(w, "pyprofd.interval.id", interval_id_text(w->iv->id, id), 0,
			  &w->interval_id) < 0)
		return -ENOMEM;
	for (int v = 0; v < VALUES; v++)
		if (put_profile(w, v) < 0)
			return -ENOMEM;
	return stacks_each(w->iv->snapshot, &all, put_samples, w);
}

/* ---- the request ---- */

#define RESOURCES (INTERVAL_LABELS_MAX + 2)

struct resource {
	Otlp__KeyValue pair[RESOURCES], *pairs[RESOURCES];
	Otlp__AnyValue value[RESOURCES];
	char *texts[RESOURCES];
	size_t n;
};

/* Names of labels as OpenTelemetry's conventions call them */
static const char *attribute_name(const char *label)
{
	static const char *const names[][2] = {{INTERVAL_HOST, "host.name"},
					       {INTERVAL_SERVICE, "service.name"},
					       {INTERVAL_PYTHON, "process.runtime.version"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i][0], label) == 0)
			return names[i][1];
	return label;
}

/* The value belongs to the caller. */
static void resource_add(struct resource *r, const char *key, char *text)
{
	size_t i = r->n++;

	otlp__key_value__init(&r->pair[i]);
	otlp__any_value__init(&r->value[i]);
	r->pair[i].key = (char *)key;
	r->pair[i].value = &r->value[i];
	r->value[i].value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	r->value[i].string_value = text;
	r->pairs[i] = &r->pair[i];
}

static void resource_set(struct resource *r, const struct interval *iv)
{
	r->n = 0;
	for (uint32_t i = 0; i < iv->nlabels; i++) {
		const char *name = iv->labels[i].name, *value = iv->labels[i].value;
		bool is_pid = strcmp(name, INTERVAL_PID) == 0;

		resource_add(r, is_pid ? "process.pid" : attribute_name(name), (char *)value);
		if (!is_pid)
			continue;
		r->value[r->n - 1].value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		r->value[r->n - 1].int_value = (int64_t)strtoull(value, NULL, 10);
	}
	resource_add(r, "process.runtime.name", (char *)"cpython");
}

static int pack(const struct writer *w, struct push_request *rq)
{
	struct resource r;
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	Otlp__Scope scope = OTLP__SCOPE__INIT;
	Otlp__ScopeProfiles profiles = OTLP__SCOPE_PROFILES__INIT, *profiles_list = &profiles;
	Otlp__ResourceProfiles of = OTLP__RESOURCE_PROFILES__INIT, *of_list = &of;
	Otlp__ExportRequest request = OTLP__EXPORT_REQUEST__INIT;
	ProtobufCBinaryData encoded[VALUES];
	_cleanup_free_ uint8_t *plain = NULL;
	size_t n;

	resource_set(&r, w->iv);
	resource.n_attributes = r.n;
	resource.attributes = r.pairs;
	scope.name = (char *)"pyprofd";
	scope.version = (char *)PYPROF_VERSION;
	for (int v = 0; v < VALUES; v++)
		encoded[v] = (ProtobufCBinaryData){w->profiles[v].n, w->profiles[v].data};
	profiles.scope = &scope;
	profiles.n_profiles = VALUES;
	profiles.profiles = encoded;
	of.resource = &resource;
	of.n_scope_profiles = 1;
	of.scope_profiles = &profiles_list;
	request.n_resource_profiles = 1;
	request.resource_profiles = &of_list;
	request.dictionary = (ProtobufCBinaryData){w->dictionary.n, w->dictionary.data};
	n = otlp__export_request__get_packed_size(&request);
	plain = malloc(n + 1);
	if (!plain)
		return -ENOMEM;
	otlp__export_request__pack(&request, plain);
	return push_gzip(plain, n, &rq->body, &rq->nbody);
}

static void writer_deinit(struct writer *w)
{
	strtab_deinit(&w->strings);
	map_deinit(&w->functions);
	map_deinit(&w->locations);
	free(w->dictionary.data);
	for (int v = 0; v < VALUES; v++)
		free(w->profiles[v].data);
	free(w->target_of);
}

static int write_request(const struct interval *iv, struct push_request *rq)
{
	_cleanup_(writer_deinit) struct writer w = {
		.iv = iv, .strings = {.limit = INT32_MAX}, .thread = SNAPSHOT_NONE};
	bool failed;
	int r;

	pieces_init(&w.dictionary);
	for (int v = 0; v < VALUES; v++)
		pieces_init(&w.profiles[v]);
	w.target_of = calloc((size_t)iv->snapshot->nthreads + 1, sizeof(*w.target_of));
	if (!w.target_of)
		return -ENOMEM;
	r = write_all(&w);
	failed = w.dictionary.failed;
	for (int v = 0; v < VALUES; v++)
		failed |= w.profiles[v].failed;
	if (r < 0 || failed)
		return r < 0 ? r : -ENOMEM;
	return pack(&w, rq);
}

static int encode(const struct interval *iv, struct push_request **ret, struct diag *diag)
{
	_cleanup_(push_request_freep) struct push_request *rq = calloc(1, sizeof(*rq));
	int r = rq ? 0 : -ENOMEM;

	if (r == 0) {
		memcpy(rq->id, iv->id, sizeof(rq->id));
		rq->path = strdup("/v1development/profiles");
		rq->headers = strdup("Content-Type: application/x-protobuf\n"
				     "Content-Encoding: gzip\n");
		r = rq->path && rq->headers ? write_request(iv, rq) : -ENOMEM;
	}
	if (r < 0)
		return diag_errno(diag, -r, "cannot encode an interval");
	*ret = TAKE_PTR(rq);
	return 0;
}

/* ---- the answer ---- */

static void judge_success(const struct push_answer *a, struct push_verdict *ret)
{
	Otlp__ExportResponse *response =
		otlp__export_response__unpack(NULL, a->nbody, a->body ? a->body : (uint8_t *)"");
	const Otlp__PartialSuccess *partial = response ? response->partial_success : NULL;
	char text[PUSH_MESSAGE_MAX];

	*ret = (struct push_verdict){.result = PUSH_DONE, .status = a->status};
	if (partial && (partial->rejected_profiles || partial->error_message[0])) {
		snprintf(text, sizeof(text), "%" PRId64 " of %d profiles rejected: %.120s",
			 partial->rejected_profiles, VALUES, partial->error_message);
		push_verdict_set(ret, partial->rejected_profiles > 0 ? PUSH_REFUSE : PUSH_DONE, a,
				 text);
	}
	if (response)
		otlp__export_response__free_unpacked(response, NULL);
}

static void judge(const struct push_answer *a, struct push_verdict *ret)
{
	if (a->error || a->status == 429 || (a->status >= 502 && a->status <= 504))
		push_verdict_set(ret, PUSH_RETRY, a, NULL);
	else if (a->status >= 200 && a->status < 300)
		judge_success(a, ret);
	else
		push_verdict_set(ret, PUSH_REFUSE, a, NULL);
}

const struct push_kind push_otlp = {
	.name = "otlp",
	.encode = encode,
	.judge = judge,
};
