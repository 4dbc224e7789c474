// SPDX-License-Identifier: BSD-2-Clause
/* What the kinds of receivers have in common: see sink.h. */
#include "push/sink.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8_clean.h"

#define BODY_SHOWN 100 /* bytes of an answer that messages show */

void push_request_free(struct push_request *rq)
{
	if (!rq)
		return;
	free(rq->path);
	free(rq->headers);
	free(rq->body);
	free(rq);
}

size_t push_request_bytes(const struct push_request *rq)
{
	return sizeof(*rq) + strlen(rq->path) + (rq->headers ? strlen(rq->headers) : 0) + rq->nbody;
}

/* The answer's text on one line; "" if it is not text. */
static void body_text(const struct push_answer *a, char out[BODY_SHOWN + 1])
{
	size_t n = a->nbody < BODY_SHOWN ? a->nbody : BODY_SHOWN;

	memcpy(out, a->body ? a->body : (const uint8_t *)"", a->body ? n : 0);
	out[a->body ? n : 0] = '\0';
	for (char *p = out; *p; p++) {
		if (*p == '\n' || *p == '\r' || *p == '\t')
			*p = ' ';
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*out = '\0';
		if (!*out)
			return;
	}
}

void push_verdict_set(struct push_verdict *v, enum push_result result,
		      const struct push_answer *answer, const char *text)
{
	char body[BODY_SHOWN + 1], all[2 * PUSH_MESSAGE_MAX];

	memset(v, 0, sizeof(*v));
	v->result = result;
	v->status = answer->error ? 0 : answer->status;
	v->retry_after_s = answer->retry_after_s;
	body_text(answer, body);
	if (answer->error)
		snprintf(all, sizeof(all), "%s", answer->error);
	else if (text)
		snprintf(all, sizeof(all), "HTTP %u: %s", answer->status, text);
	else
		snprintf(all, sizeof(all), "HTTP %u%s%s", answer->status, body[0] ? ": " : "",
			 body);
	utf8_clean(all, v->message, sizeof(v->message));
}

void push_judge_status(const struct push_answer *a, struct push_verdict *ret)
{
	if (a->error)
		push_verdict_set(ret, PUSH_RETRY, a, NULL);
	else if (a->status >= 200 && a->status < 300)
		*ret = (struct push_verdict){.result = PUSH_DONE, .status = a->status};
	else if (a->status >= 300 && a->status < 400)
		push_verdict_set(ret, PUSH_RETRY, a, "redirects are not followed");
	else if (a->status == 400 || a->status == 413 || a->status == 415 || a->status == 422)
		push_verdict_set(ret, PUSH_REFUSE, a, NULL);
	else
		push_verdict_set(ret, PUSH_RETRY, a, NULL);
}
