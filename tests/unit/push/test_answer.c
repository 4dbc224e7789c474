// SPDX-License-Identifier: BSD-2-Clause
/* Answers being received: bounds, interim responses, and when the header is complete. */
#include "push/answer.h"

#include "harness/test.h"

static struct answer a;

static size_t header(const char *line)
{
	return answer_header((char *)line, 1, strlen(line), &a);
}

Test(push_answer, complete_after_the_final_header)
{
	answer_reset(&a);
	cr_assert_eq(header("HTTP/1.1 100 Continue\r\n"), 23);
	header("\r\n");
	cr_assert_not(a.complete, "the response is still to come");
	header("HTTP/1.1 103 Early Hints\r\n");
	header("Link: x\r\n");
	header("\r\n");
	cr_assert_not(a.complete);
	header("HTTP/1.1 200 OK\r\n");
	header("X: \r\n");
	cr_assert_not(a.complete);
	header("\r\n");
	cr_assert(a.complete);
	answer_reset(&a);
	cr_assert_not(a.complete);
}

Test(push_answer, odd_lines)
{
	static const char *const odd[] = {"",	       "H", "HTTP/", "HTTP/1.1",
					  "HTTP/1.1 ", " ", "\r",    "\0"};

	answer_reset(&a);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		cr_assert_eq(header(odd[i]), strlen(odd[i]));
	cr_assert_not(a.complete);
}

Test(push_answer, headers_are_bounded)
{
	size_t lines = 0;

	answer_reset(&a);
	while (header("X: 0123456789012345678901234567890123456789\r\n"))
		lines++;
	cr_assert(a.too_large);
	cr_assert(lines < ANSWER_HEADERS_MAX / 40);
}

Test(push_answer, body_is_bounded)
{
	static char piece[10000];
	size_t all = 0, n;

	memset(piece, 'x', sizeof(piece));
	answer_reset(&a);
	while ((n = answer_body(piece, 1, sizeof(piece), &a)))
		all += n;
	cr_assert(all <= ANSWER_BODY_MAX);
	cr_assert(all > ANSWER_BODY_MAX - sizeof(piece));
	cr_assert_eq(a.kept, ANSWER_KEPT);
}
