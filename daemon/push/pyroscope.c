// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pyroscope's ingest API (POST /ingest): metadata in the query, in the body a multipart form with
 * the pprof profile and the meaning of its sample types. The query has no `format`, which would mean
 * that the body is the profile itself.
 *
 * The name has the form service{label=value,…}, without quoting: characters that end a value there
 * are replaced.
 */
#include "push/pyroscope.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/format.h"

#define BOUNDARY_BASE "pyprofd-"
#define PART	      "--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n"
#define NS_PER_S      UINT64_C(1000000000)

/* Values of pprof's samples: how Pyroscope adds and shows them. */
static const char sample_types[] =
	"{\"calls\":{\"units\":\"samples\",\"aggregation\":\"sum\",\"display-name\":\"calls\","
	"\"sampled\":false},"
	"\"cpu\":{\"units\":\"nanoseconds\",\"aggregation\":\"sum\",\"display-name\":\"cpu\","
	"\"sampled\":false},"
	"\"wall\":{\"units\":\"nanoseconds\",\"aggregation\":\"sum\",\"display-name\":\"wall\","
	"\"sampled\":false}}\n";

/* Bytes that a query may contain unescaped */
static bool is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("-._~", c);
}

static void put_escaped(FILE *out, const char *s)
{
	for (; *s; s++)
		fprintf(out, is_plain((unsigned char)*s) ? "%c" : "%%%02X", (unsigned char)*s);
}

/* The service: letters, digits and "-._/", as its parser demands. */
static void put_service(FILE *out, const char *s)
{
	for (; *s; s++)
		fputc(is_plain((unsigned char)*s) && *s != '~' ? *s : '_', out);
}

static void put_value(FILE *out, const char *s)
{
	for (char text[2] = ""; *s; s++) {
		text[0] = strchr(",{}=\"", *s) || (unsigned char)*s < ' ' ? '_' : *s;
		put_escaped(out, text);
	}
}

static void put_name(FILE *out, const struct interval *iv)
{
	const char *service = interval_label(iv, INTERVAL_SERVICE), *between = "";

	put_service(out, service ? service : "python");
	put_escaped(out, "{");
	for (uint32_t i = 0; i < iv->nlabels; i++) {
		if (strcmp(iv->labels[i].name, INTERVAL_SERVICE) == 0)
			continue;
		put_escaped(out, between);
		put_escaped(out, iv->labels[i].name);
		put_escaped(out, "=");
		put_value(out, iv->labels[i].value);
		between = ",";
	}
	put_escaped(out, "}");
}

/* The requested rate of samples; a trace has none, and 100 is the API's default. */
static uint32_t rate_of(const struct interval *iv)
{
	uint32_t rate = iv->snapshot->ntargets ? iv->snapshot->targets[0].estimate.rate : 0;

	return rate ? rate : 100;
}

static int write_path(const struct interval *iv, char **ret)
{
	size_t size;
	FILE *out = open_memstream(ret, &size);

	if (!out)
		return -errno;
	fputs("/ingest?name=", out);
	put_name(out, iv);
	/* Whole seconds: an interval ends where the next one begins, and none is empty. */
	fprintf(out, "&from=%" PRIu64 "&until=%" PRIu64 "&spyName=pyprofd&sampleRate=%u",
		iv->start_unix_ns / NS_PER_S, (iv->end_unix_ns + NS_PER_S - 1) / NS_PER_S,
		rate_of(iv));
	return fclose(out) == 0 ? 0 : -errno;
}

static int write_body(const struct interval *iv, const char *boundary, struct push_request *rq,
		      struct diag *diag)
{
	const struct format_opts o = {.clock = iv->snapshot->clock};
	char *body = NULL;
	FILE *out = open_memstream(&body, &rq->nbody);
	int r;

	if (!out)
		return diag_errno(diag, errno, "cannot encode an interval");
	fprintf(out, PART "Content-Type: application/octet-stream\r\n\r\n", boundary, "profile",
		"profile.pprof");
	r = format_write(format_find("pprof"), iv->snapshot, &o, out, diag);
	fputs("\r\n", out);
	fprintf(out, PART "Content-Type: application/json\r\n\r\n", boundary, "sample_type_config",
		"sample_type_config.json");
	fputs(sample_types, out);
	fprintf(out, "\r\n--%s--\r\n", boundary);
	if (fclose(out) != 0 && r == 0)
		r = diag_errno(diag, errno, "cannot encode an interval");
	rq->body = (uint8_t *)body;
	return r;
}

/* The boundary has the interval's random id, so that no profile contains it by chance. */
static int encode(const struct interval *iv, struct push_request **ret, struct diag *diag)
{
	_cleanup_(push_request_freep) struct push_request *rq = calloc(1, sizeof(*rq));
	char boundary[sizeof(BOUNDARY_BASE) + INTERVAL_ID_TEXT], id[INTERVAL_ID_TEXT];
	int r;

	if (!rq)
		return diag_errno(diag, ENOMEM, "cannot encode an interval");
	memcpy(rq->id, iv->id, sizeof(rq->id));
	snprintf(boundary, sizeof(boundary), BOUNDARY_BASE "%s", interval_id_text(iv->id, id));
	r = write_path(iv, &rq->path);
	if (r == 0 && asprintf(&rq->headers, "Content-Type: multipart/form-data; boundary=%s\n",
			       boundary) < 0) {
		rq->headers = NULL;
		r = -ENOMEM;
	}
	if (r < 0)
		return diag_errno(diag, -r, "cannot encode an interval");
	r = write_body(iv, boundary, rq, diag);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(rq);
	return 0;
}

const struct push_kind push_pyroscope = {
	.name = "pyroscope",
	.encode = encode,
	.judge = push_judge_status,
};
