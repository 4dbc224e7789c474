// SPDX-License-Identifier: BSD-2-Clause
/* server/peer: root, the owner, members of the group that may read, and all others. */
#include "server/peer.h"

#include <errno.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fakes/sessions.c"
#include "format/format.h"
#include "harness/test.h"
#include "server/routes.h"

static struct routes_ctx ctx;
static struct response rs;
static const struct peer root = {.uid = 0};

static void setup(void)
{
	struct sessions *ss;

	assert_ok(sessions_new(NULL, NULL, &ss, NULL));
	assert_ok(sessions_attach(ss, 42, true, NULL, NULL));
	ctx = (struct routes_ctx){.sessions = ss, .owner = 500};
	response_init(&rs);
}

static void teardown(void)
{
	sessions_free(ctx.sessions);
	marks_deinit(&ctx.marks);
	marks_deinit(&ctx.reader_marks);
	response_deinit(&rs);
	check_no_leaks();
}

TestSuite(peer, .init = setup);

/* Dispatch. Returns the status. */
static unsigned int ask_of(struct peer peer, const char *method, const char *uri, const char *body)
{
	const struct routes_input in = {
		.peer = peer,
		.method = method,
		.uri = uri,
		.body = body,
		.nbody = strlen(body),
	};

	response_deinit(&rs);
	routes_dispatch(&ctx, &in, &rs, &(struct routes_wait){0});
	return rs.status;
}

/* Is the profile an interval, which began with an earlier request? */
static bool is_interval(void)
{
	_cleanup_free_ char *body = calloc(1, rs.size + 1);

	cr_assert(rs.fd >= 0);
	cr_assert(pread(rs.fd, body, rs.size, 0) == (ssize_t)rs.size);
	return strstr(body, ", the last snapshot");
}

Test(peer, policy)
{
	const enum privilege all[] = {PRIVILEGE_READ, PRIVILEGE_CONTROL};

	for (size_t i = 0; i < 2; i++) {
		cr_assert(peer_allowed(&(struct peer){.uid = 0}, 500, all[i]));
		cr_assert(peer_allowed(&(struct peer){.uid = 500}, 500, all[i]));
		cr_assert(!peer_allowed(&(struct peer){.uid = 501}, 500, all[i]));
		cr_assert(!peer_allowed(&(struct peer){.uid = (uid_t)-1}, 0, all[i]));
	}
	cr_assert(peer_allowed(&(struct peer){.uid = 501, .member = true}, 500, PRIVILEGE_READ));
	cr_assert(
		!peer_allowed(&(struct peer){.uid = 501, .member = true}, 500, PRIVILEGE_CONTROL));
	cr_assert(peer_only_reads(&(struct peer){.uid = 501, .member = true}, 500));
	cr_assert(!peer_only_reads(&(struct peer){.uid = 500, .member = true}, 500));
	cr_assert(!peer_only_reads(&(struct peer){.uid = 0}, 500));
	teardown();
}

/* Members of the group that may read: each route either changes nothing or refuses. */
Test(peer, members_only_read)
{
	static const struct {
		const char *method, *uri, *body;
		unsigned int status;
	} all[] = {
		{"GET", "/v1", "", 200},
		{"GET", "/v1/ping", "", 200},
		{"GET", "/v1/status", "", 200},
		{"GET", "/v1/targets", "", 200},
		{"POST", "/v1/targets", "{\"pid\": 7}", 403},
		{"POST", "/v1/forecast", "{\"pid\": 7}", 403},
		{"GET", "/v1/targets/42", "", 200},
		{"DELETE", "/v1/targets/42", "", 403},
		{"POST", "/v1/start", "", 403},
		{"POST", "/v1/stop", "", 403},
		{"POST", "/v1/clear", "", 403},
		{"GET", "/v1/snapshot", "", 200},
		{"POST", "/v1/timelines", "", 403},
		{"GET", "/v1/timelines", "", 200},
		{"GET", "/v1/timelines/7", "", 403},
		{"DELETE", "/v1/timelines/7", "", 403},
		{"POST", "/v1/slow", "", 403},
		{"GET", "/v1/slow/7", "", 403},
		{"DELETE", "/v1/slow/7", "", 403},
		{"GET", "/v1/history", "", 400}, /* not in continuous mode */
		{"GET", "/v1/history/intervals", "", 400},
		{"POST", "/v1/shutdown", "", 403},
		{"GET", "/metrics", "", 200},
		{"GET", "/debug/pprof/", "", 200},
		{"GET", "/debug/pprof", "", 200},
		{"GET", "/debug/pprof/profile?seconds=0", "", 400},
		{"GET", "/debug/pprof/cmdline", "", 200},
		{"GET", "/debug/pprof/symbol", "", 200},
	};
	size_t n = 0;

	for (const struct route *r = routes; r->method; r++)
		n++;
	cr_assert(n == sizeof(all) / sizeof(all[0]), "a new route: may members use it?");
	for (size_t i = 0; i < n; i++) {
		cr_assert(ask_of((struct peer){.uid = 501, .member = true}, all[i].method,
				 all[i].uri, all[i].body) == all[i].status,
			  "%s %s: %u", all[i].method, all[i].uri, rs.status);
		if (all[i].status == 403)
			cr_assert(strstr(rs.body, "may only read"), "%s", rs.body);
		cr_assert(ask_of((struct peer){.uid = 501}, all[i].method, all[i].uri,
				 all[i].body) == 403);
	}
	teardown();
}

/* The moment that a member's name stands for is not that of the owner's, nor in its way. */
Test(peer, members_have_names_of_their_own)
{
	const struct peer member = {.uid = 501, .member = true};
	char uri[80];

	cr_assert_eq(ask_of(root, "GET", "/v1/snapshot?since=me", ""), 200);
	for (int i = 0; i < 20; i++) {
		snprintf(uri, sizeof(uri), "/v1/snapshot?since=%s%d&verbose=1", i ? "n" : "me", i);
		cr_assert_eq(ask_of(member, "GET", i ? uri : "/v1/snapshot?since=me&verbose=1", ""),
			     200);
		cr_assert(!is_interval());
	}
	cr_assert_eq(ask_of(root, "GET", "/v1/snapshot?since=me&verbose=1", ""), 200);
	cr_assert(is_interval());
	teardown();
}

/* Profiles that members do not fetch leave half of the memory to the owner. */
Test(peer, members_leave_memory)
{
	const struct peer member = {.uid = 501, .member = true};

	ctx.bodies.max = 2 << 20;
	bodies_add(&ctx.bodies, (1 << 20) - 100, true);
	cr_assert_eq(ask_of(member, "GET", "/v1/snapshot", ""), 503);
	cr_assert_eq(ask_of(root, "GET", "/v1/snapshot", ""), 200);
	/* and the owner's profiles are in the members' way only where memory ends */
	bodies_remove(&ctx.bodies, (1 << 20) - 100, true);
	bodies_add(&ctx.bodies, 1 << 20, false);
	cr_assert_eq(ask_of(member, "GET", "/v1/snapshot", ""), 200);
	bodies_add(&ctx.bodies, (1 << 20) - 100, false);
	cr_assert_eq(ask_of(member, "GET", "/v1/snapshot", ""), 503);
	teardown();
}

/* As the kernel reports the groups of a client: its own group, and the others. */
static struct peer seen_as(gid_t gid, const gid_t *groups, size_t n, gid_t readers)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	socklen_t size = sizeof(addr);
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd, status;
	struct peer ret;
	pid_t pid;

	assert_ok(bind(listener, (struct sockaddr *)&addr, sizeof(addr.sun_family)));
	assert_ok(getsockname(listener, (struct sockaddr *)&addr, &size));
	assert_ok(listen(listener, 1));
	pid = fork();
	if (pid == 0) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		_exit(setgroups(n, groups) || setresgid(gid, gid, gid) || setuid(501) ||
		      connect(fd, (struct sockaddr *)&addr, size));
	}
	cr_assert(waitpid(pid, &status, 0) == pid && status == 0);
	fd = accept(listener, NULL, NULL);
	cr_assert(fd >= 0);
	assert_ok(peer_get(fd, readers, &ret));
	close(fd);
	close(listener);
	return ret;
}

Test(peer, groups)
{
	gid_t many[1000];

	if (geteuid() != 0)
		cr_skip_test("needs root");
	for (gid_t i = 0; i < 1000; i++)
		many[i] = 70000 + i;
	cr_assert(seen_as(60000, NULL, 0, 60000).member);
	cr_assert(seen_as(60000, many, 1000, 70999).member);
	cr_assert(!seen_as(60000, many, 1000, 71000).member);
	cr_assert(!seen_as(60000, many, 1000, PEER_NO_GROUP).member);
	cr_assert(!seen_as(60000, NULL, 0, 0).member);
	cr_assert(seen_as(60000, many, 1000, 70000).uid == 501);
	teardown();
}

Test(peer, not_connected)
{
	struct peer peer = {.uid = 0, .member = true};

	assert_err(peer_get(-1, 0, &peer), -EBADF);
	cr_assert(peer.uid == (uid_t)-1 && !peer.member);
	teardown();
}

Test(peer, names_of_groups)
{
	struct diag diag = {0};
	gid_t gid = 7;

	assert_err(peer_find_group("no-such-group", &gid, &diag), -EINVAL);
	cr_assert(diag.exit == PYP_EXIT_USAGE && diag.hint[0] && gid == 7);
	assert_diag_ok(peer_find_group("root", &gid, &diag), &diag);
	cr_assert(gid == 0);
	assert_diag_ok(peer_find_group(NULL, &gid, &diag), &diag);
	cr_assert(gid == PEER_NO_GROUP);
	teardown();
}
