// SPDX-License-Identifier: BSD-2-Clause
/*
 * Requests for Pyroscope and OTLP, decoded by the field numbers of the published formats: values add
 * up to the snapshot's, ids and labels are there, hostile labels stay where they belong.
 */
#include <errno.h>
#include <zlib.h>

#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "push/kinds.h"

/* ---- a reader of protobuf ---- */

struct field {
	uint32_t number;
	uint64_t value; /* a number, or the length of data */
	const uint8_t *data;
};

static uint64_t varint(const uint8_t **p, const uint8_t *end)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 64; shift += 7) {
		cr_assert(*p < end, "truncated");
		v |= (uint64_t)(**p & 0x7f) << shift;
		if (!(*(*p)++ & 0x80))
			return v;
	}
	cr_assert_fail("too long a number");
	return 0;
}

/* The next field; false: the message has ended. */
static bool next(const uint8_t **p, const uint8_t *end, struct field *ret)
{
	uint64_t tag;

	if (*p == end)
		return false;
	tag = varint(p, end);
	ret->number = (uint32_t)(tag >> 3);
	ret->data = NULL;
	switch (tag & 7) {
	case 0:
		ret->value = varint(p, end);
		return true;
	case 1:
		cr_assert(end - *p >= 8);
		memcpy(&ret->value, *p, 8);
		*p += 8;
		return true;
	default:
		cr_assert_eq(tag & 7, 2);
		ret->value = varint(p, end);
		cr_assert(ret->value <= (uint64_t)(end - *p));
		ret->data = *p;
		*p += ret->value;
		return true;
	}
}

/* The i-th field with this number; fails if there is none. */
static struct field field_at(struct field message, uint32_t number, size_t i)
{
	const uint8_t *p = message.data, *end = p + message.value;
	struct field f;

	while (next(&p, end, &f))
		if (f.number == number && i-- == 0)
			return f;
	cr_assert_fail("no field %u", number);
	return f;
}

static size_t field_count(struct field message, uint32_t number)
{
	const uint8_t *p = message.data, *end = p + message.value;
	struct field f;
	size_t n = 0;

	while (next(&p, end, &f))
		n += f.number == number;
	return n;
}

static uint64_t sum_packed(struct field f)
{
	const uint8_t *p = f.data, *end = p + f.value;
	uint64_t sum = 0;

	while (p < end)
		sum += varint(&p, end);
	return sum;
}

static struct field gunzip(const uint8_t *data, size_t n)
{
	static uint8_t out[1 << 20];
	z_stream z = {.next_in = (uint8_t *)data,
		      .avail_in = (uInt)n,
		      .next_out = out,
		      .avail_out = sizeof(out)};

	cr_assert_eq(inflateInit2(&z, 31), Z_OK);
	cr_assert_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	inflateEnd(&z);
	return (struct field){.data = out, .value = z.total_out};
}

static bool is_text(struct field f, const char *text)
{
	return f.value == strlen(text) && memcmp(f.data, text, f.value) == 0;
}

/* ---- the interval ---- */

static const uint8_t id[INTERVAL_ID_BYTES] = {0xab, [15] = 0x10};

#define CALLS 9u
#define CPU   104500u
#define WALL  105000u

static struct interval *build(void)
{
	struct interval *iv = interval_new(
		id, 1700000000500000000, 1700000010500000000,
		snapshot_build("target 42\nthread 42 43 worker\nmain a.py:1 1 100000\n"
			       "  f b.py:10 3 2000 2500\n    f b.py:10 2 500\n"
			       "  g b.py:30 1 2000\nthread 42 44 other\nmain a.py:1 2 0\n"));

	cr_assert(iv);
	assert_ok(interval_set_label(iv, INTERVAL_SERVICE, "web{x}"));
	assert_ok(interval_set_label(iv, INTERVAL_HOST, "h1"));
	assert_ok(interval_set_label(iv, INTERVAL_PID, "42"));
	assert_ok(interval_set_label(iv, "evil", "a,b=c}&from=1 \"#%"));
	return iv;
}

static struct push_request *encode(const char *kind, const struct interval *iv)
{
	struct push_request *rq = NULL;
	struct diag diag = {0};

	assert_diag_ok(push_kind_find(kind, &diag)->encode(iv, &rq, &diag), &diag);
	assert_bytes_eq(rq->id, id, sizeof(id));
	return rq;
}

/* ---- Pyroscope ---- */

static struct field part(const struct push_request *rq, const char *name)
{
	char head[128], boundary[128];
	const uint8_t *from, *to, *end = rq->body + rq->nbody;

	cr_assert_eq(sscanf(rq->headers, "Content-Type: multipart/form-data; boundary=%100s",
			    boundary + 4),
		     1);
	memcpy(boundary, "\r\n--", 4);
	snprintf(head, sizeof(head), "name=\"%s\"", name);
	from = memmem(rq->body, rq->nbody, head, strlen(head));
	cr_assert(from);
	from = memmem(from, (size_t)(end - from), "\r\n\r\n", 4);
	cr_assert(from);
	from += 4;
	to = memmem(from, (size_t)(end - from), boundary, strlen(boundary));
	cr_assert(to);
	return (struct field){.data = from, .value = (uint64_t)(to - from)};
}

Test(push_pyroscope, profile_adds_up)
{
	struct interval *iv = build();
	struct push_request *rq = encode("pyroscope", iv);
	struct field compressed = part(rq, "profile");
	struct field profile = gunzip(compressed.data, compressed.value);
	uint64_t sum[3] = {0};

	for (size_t i = 0; i < field_count(profile, 2); i++) {
		struct field values = field_at(field_at(profile, 2, i), 2, 0);
		const uint8_t *p = values.data, *end = p + values.value;

		for (int v = 0; v < 3; v++)
			sum[v] += varint(&p, end);
	}
	cr_assert_eq(sum[0], CALLS);
	cr_assert_eq(sum[1], CPU);
	cr_assert_eq(sum[2], WALL);
	cr_assert(part(rq, "sample_type_config").value > 100);
	push_request_free(rq);
	interval_free(iv);
	check_no_leaks();
}

Test(push_pyroscope, path_has_name_labels_and_times)
{
	struct interval *iv = build();
	struct push_request *rq = encode("pyroscope", iv);

	cr_assert_str_eq(rq->path,
			 "/ingest?name=web_x_%7Bevil%3Da_b_c_%26from_1%20_%23%25%2Chost%3Dh1%2C"
			 "pid%3D42%7D&from=1700000000&until=1700000011&spyName=pyprofd&"
			 "sampleRate=100");
	push_request_free(rq);
	interval_free(iv);
	check_no_leaks();
}

/* ---- OTLP ---- */

static const char *string_at(struct field dictionary, uint64_t index, char out[64])
{
	struct field f = field_at(dictionary, 5, index);

	snprintf(out, 64, "%.*s", (int)f.value, (const char *)f.data);
	return out;
}

static uint64_t number_of(struct field message, uint32_t number)
{
	return field_count(message, number) ? field_at(message, number, 0).value : 0;
}

static void check_profile(struct field profile, struct field dictionary, int v, const char *type,
			  uint64_t expected)
{
	struct field profile_id = field_at(profile, 7, 0);
	uint8_t own[INTERVAL_ID_BYTES];
	uint64_t sum = 0;
	char text[64];

	memcpy(own, id, sizeof(own));
	own[15] ^= (uint8_t)v;
	cr_assert_eq(profile_id.value, sizeof(own));
	assert_bytes_eq(profile_id.data, own, sizeof(own));
	cr_assert_eq(field_at(profile, 3, 0).value, 1700000000500000000);
	cr_assert_eq(field_at(profile, 4, 0).value, 10000000000);
	cr_assert_str_eq(string_at(dictionary, field_at(field_at(profile, 1, 0), 1, 0).value, text),
			 type);
	for (size_t i = 0; i < field_count(profile, 2); i++) {
		struct field sample = field_at(profile, 2, i);

		sum += sum_packed(field_at(sample, 4, 0));
		cr_assert(number_of(sample, 1) > 0);
		cr_assert(number_of(sample, 1) < field_count(dictionary, 7));
	}
	cr_assert_eq(sum, expected);
}

Test(push_otlp, profiles_add_up)
{
	struct interval *iv = build();
	struct push_request *rq = encode("otlp", iv);
	struct field request = gunzip(rq->body, rq->nbody), dictionary = field_at(request, 2, 0);
	struct field scope = field_at(field_at(request, 1, 0), 2, 0);

	cr_assert_str_eq(rq->path, "/v1development/profiles");
	cr_assert_eq(field_count(scope, 2), 3);
	check_profile(field_at(scope, 2, 0), dictionary, 0, "calls", CALLS);
	check_profile(field_at(scope, 2, 1), dictionary, 1, "cpu", CPU);
	check_profile(field_at(scope, 2, 2), dictionary, 2, "wall", WALL);
	push_request_free(rq);
	interval_free(iv);
	check_no_leaks();
}

Test(push_otlp, stacks_refer_to_functions)
{
	struct interval *iv = build();
	struct push_request *rq = encode("otlp", iv);
	struct field dictionary = field_at(gunzip(rq->body, rq->nbody), 2, 0);
	bool recursive = false;
	char text[64];

	/* main → f → f, innermost first */
	for (size_t i = 1; i < field_count(dictionary, 7); i++) {
		struct field indices = field_at(field_at(dictionary, 7, i), 1, 0);
		const uint8_t *p = indices.data, *end = p + indices.value;
		uint64_t at[8];
		size_t n = 0;

		while (p < end)
			at[n++] = varint(&p, end);
		if (n != 3)
			continue;
		for (size_t k = 0; k < 3; k++) {
			struct field line = field_at(field_at(dictionary, 2, at[k]), 3, 0);
			struct field function = field_at(dictionary, 3, field_at(line, 1, 0).value);

			cr_assert_str_eq(string_at(dictionary, field_at(function, 1, 0).value,
						   text),
					 k == 2 ? "main" : "f");
			cr_assert_eq(field_at(line, 2, 0).value, k == 2 ? 1 : 10);
		}
		recursive = true;
	}
	cr_assert(recursive);
	push_request_free(rq);
	interval_free(iv);
	check_no_leaks();
}

Test(push_otlp, resource_has_the_labels)
{
	struct interval *iv = build();
	struct push_request *rq = encode("otlp", iv);
	struct field resource = field_at(field_at(gunzip(rq->body, rq->nbody), 1, 0), 1, 0);
	int found = 0;

	for (size_t i = 0; i < field_count(resource, 1); i++) {
		struct field pair = field_at(resource, 1, i), key = field_at(pair, 1, 0);
		struct field value = field_at(pair, 2, 0);

		if (is_text(key, "process.pid"))
			found += field_at(value, 3, 0).value == 42;
		if (is_text(key, "host.name"))
			found += is_text(field_at(value, 1, 0), "h1");
		if (is_text(key, "service.name"))
			found += is_text(field_at(value, 1, 0), "web{x}");
	}
	cr_assert_eq(found, 3);
	push_request_free(rq);
	interval_free(iv);
	check_no_leaks();
}

Test(push_otlp, verdicts)
{
	/* partial_success {rejected_profiles: 2, error_message: "no"}; {error_message: "no"} */
	static const uint8_t rejected[] = {0x0a, 6, 0x08, 2, 0x12, 2, 'n', 'o'};
	static const uint8_t warning[] = {0x0a, 4, 0x12, 2, 'n', 'o'};
	static const uint8_t garbage[] = {0xff, 0xff, 0xff};
	const struct push_kind *otlp = push_kind_find("otlp", NULL);
	const unsigned int refuse[] = {400, 401, 404, 500, 501}, retry[] = {429, 502, 503, 504};
	struct push_verdict v;

	otlp->judge(&(struct push_answer){.status = 200, .body = rejected, .nbody = 8}, &v);
	cr_assert_eq(v.result, PUSH_REFUSE);
	cr_assert(strstr(v.message, "2 of 3"), "%s", v.message);
	otlp->judge(&(struct push_answer){.status = 200, .body = warning, .nbody = 6}, &v);
	cr_assert_eq(v.result, PUSH_DONE);
	cr_assert(strstr(v.message, "no"));
	otlp->judge(&(struct push_answer){.status = 200, .body = garbage, .nbody = 3}, &v);
	cr_assert_eq(v.result, PUSH_DONE);
	otlp->judge(&(struct push_answer){.status = 200}, &v);
	cr_assert_eq(v.result, PUSH_DONE);
	cr_assert_str_empty(v.message);
	for (size_t i = 0; i < 5; i++) {
		otlp->judge(&(struct push_answer){.status = refuse[i]}, &v);
		cr_assert_eq(v.result, PUSH_REFUSE, "%u", refuse[i]);
	}
	for (size_t i = 0; i < 4; i++) {
		otlp->judge(&(struct push_answer){.status = retry[i]}, &v);
		cr_assert_eq(v.result, PUSH_RETRY, "%u", retry[i]);
	}
	check_no_leaks();
}

Test(push_kinds, unknown)
{
	struct diag diag = {0};

	cr_assert_null(push_kind_find("ftp", &diag));
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	cr_assert(strstr(diag.hint, "pyroscope+https://"));
}
