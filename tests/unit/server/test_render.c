// SPDX-License-Identifier: BSD-2-Clause
/* server/render.c: a profile written by a thread is what format_write() makes of the snapshot. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/render.h"
#include "harness/test.h"

static struct snapshot *some_snapshot(void)
{
	struct snapshot *s = snapshot_new();

	cr_assert(s);
	s->host = s->kernel = s->program = snapshot_str(s, "test");
	s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	s->targets[0] = (struct snapshot_target){.pid = 42, .cmdline = snapshot_str(s, "app")};
	s->ntargets = 1;
	return s;
}

static struct snapshot_query query(const char *format)
{
	return (struct snapshot_query){.format = format_find(format)};
}

static void wait_until_done(struct render *r)
{
	while (!render_done(r))
		sched_yield();
}

TestSuite(render);

Test(render, writes_a_file_in_memory)
{
	struct snapshot_query q = query("json");
	struct render *r = NULL;
	struct diag diag = {0};
	struct response rs;
	char *text;

	response_init(&rs);
	assert_ok(render_start(some_snapshot(), NULL, &q, 0, 1 << 20, &r, &diag));
	wait_until_done(r);
	assert_diag_ok(render_take(r, &rs, &diag), &diag);
	cr_assert(rs.status == 200 && rs.fd >= 0 && rs.size > 10);
	cr_assert_str_eq(rs.mime, q.format->mime);
	text = calloc(1, rs.size + 1);
	cr_assert(pread(rs.fd, text, rs.size, 0) == (ssize_t)rs.size);
	cr_assert(strstr(text, "\"app\""));
	free(text);
	render_free(r);
	response_deinit(&rs);
	check_no_leaks();
}

/* The request's texts may go as soon as it has begun. */
Test(render, copies_the_query)
{
	char sort[] = "calls", pattern[] = "nothing";
	struct snapshot_query q = query("text");
	struct render *r = NULL;
	struct diag diag = {0};
	struct response rs;

	response_init(&rs);
	q.opts.sort = sort;
	q.restricts[0] = pattern;
	q.opts.restrict_ = q.restricts;
	q.opts.nrestrict = 1;
	assert_ok(render_start(some_snapshot(), NULL, &q, 0, 1 << 20, &r, &diag));
	memset(sort, 'x', sizeof(sort) - 1);
	memset(pattern, '(', sizeof(pattern) - 1);
	memset(&q, 0xff, sizeof(q));
	assert_diag_ok(render_take(r, &rs, &diag), &diag);
	render_free(r);
	response_deinit(&rs);
	check_no_leaks();
}

static int refused(size_t held, size_t max)
{
	struct snapshot_query q = query("json");
	struct render *r = NULL;
	struct diag diag = {0};
	struct response rs;
	int err;

	response_init(&rs);
	assert_ok(render_start(some_snapshot(), NULL, &q, held, max, &r, &diag));
	err = render_take(r, &rs, &diag);
	cr_assert(rs.fd < 0 && diag.msg[0] && diag.hint[0]);
	render_free(r);
	check_no_leaks();
	return err;
}

Test(render, refuses_what_is_too_large)
{
	cr_assert(refused(0, 10) == -EFBIG);
	cr_assert(refused(1 << 20, 1 << 20) == -ENOBUFS);
}

Test(render, may_be_freed_while_it_is_written)
{
	struct snapshot_query q = query("html");
	struct render *r = NULL;
	struct diag diag = {0};

	assert_ok(render_start(some_snapshot(), NULL, &q, 0, 1 << 20, &r, &diag));
	render_free(r);
	check_no_leaks();
}
