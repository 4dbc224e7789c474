// SPDX-License-Identifier: BSD-2-Clause
/* The daemon's side of a sender's socket: verdicts are checked, requests are written in pieces. */
#include "push/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "harness/test.h"

static int pair[2];
static struct sender_in in;

static void setup(void)
{
	assert_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	assert_ok(fcntl(pair[0], F_SETFL, O_NONBLOCK));
}

static void teardown(void)
{
	close(pair[0]);
	close(pair[1]);
}

TestSuite(push_sender, .init = setup, .fini = teardown);

static int read_back(const struct push_verdict *v)
{
	cr_assert_eq(write(pair[1], v, sizeof(*v)), sizeof(*v));
	return sender_read(&in, pair[0]);
}

Test(push_sender, valid_verdicts)
{
	struct push_verdict v = {.result = PUSH_REFUSE, .status = 999, .message = "no\xff"};

	assert_ok(read_back(&v));
	cr_assert_eq(in.verdict.status, 999);
	cr_assert_str_eq(in.verdict.message, "no?");
	memset(v.message, 'x', sizeof(v.message) - 1);
	assert_ok(read_back(&v));
	cr_assert_eq(strlen(in.verdict.message), sizeof(v.message) - 1);
}

Test(push_sender, invalid_verdicts)
{
	struct push_verdict v = {.result = PUSH_REFUSE + 1};

	assert_err(read_back(&v), -EPROTO);
	v = (struct push_verdict){.status = 1000};
	assert_err(read_back(&v), -EPROTO);
	v = (struct push_verdict){.status = 200};
	memset(v.message, 'x', sizeof(v.message));
	assert_err(read_back(&v), -EPROTO);
	memset(&v, 0xff, sizeof(v));
	assert_err(read_back(&v), -EPROTO);
}

Test(push_sender, verdict_in_pieces_and_the_end)
{
	struct push_verdict v = {.status = 204};

	assert_err(sender_read(&in, pair[0]), -EAGAIN);
	for (size_t i = 0; i < sizeof(v); i++) {
		assert_err(sender_read(&in, pair[0]), -EAGAIN);
		cr_assert_eq(write(pair[1], (char *)&v + i, 1), 1);
	}
	assert_ok(sender_read(&in, pair[0]));
	cr_assert_eq(in.verdict.status, 204);
	assert_ok(shutdown(pair[1], SHUT_WR));
	assert_err(sender_read(&in, pair[0]), -EPIPE);
}

/* Two requests: the head is that of the first, the bodies follow one after the other. */
Test(push_sender, requests_in_pieces)
{
	static uint8_t body[1 << 20], got[sizeof(body) + 4096];
	struct push_request first = {.id = {7},
				     .path = (char *)"/path",
				     .headers = (char *)"A: b\n",
				     .body = body,
				     .nbody = 1000},
			    second = {.path = (char *)"/path",
				      .body = body + 1000,
				      .nbody = sizeof(body) - 1000};
	struct push_request *const rqs[] = {&first, &second};
	const size_t all = sizeof(struct sender_head) + 5 + 5 + sizeof(body);
	struct sender_out out;
	size_t have = 0;
	int r;

	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (uint8_t)(i * 31 >> 3);
	sender_begin(&out, rqs, 2);
	cr_assert(out.head.nbody == sizeof(body) && out.head.id[0] == 7);
	while ((r = sender_write(&out, pair[0])) == -EAGAIN) {
		ssize_t n = read(pair[1], got + have, 777);

		cr_assert(n > 0);
		have += (size_t)n;
	}
	assert_ok(r);
	while (have < all)
		have += (size_t)read(pair[1], got + have, sizeof(got) - have);
	cr_assert_eq(have, all);
	assert_bytes_eq(got + sizeof(struct sender_head), "/pathA: b\n", 10);
	assert_bytes_eq(got + sizeof(struct sender_head) + 10, body, sizeof(body));
}

Test(push_sender, request_to_nobody)
{
	struct push_request rq = {.path = (char *)"/"}, *const rqs[] = {&rq};
	struct sender_out out;

	sender_begin(&out, rqs, 1);
	close(pair[1]);
	assert_err(sender_write(&out, pair[0]), -EPIPE);
	pair[1] = dup(pair[0]);
}
