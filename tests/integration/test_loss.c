// SPDX-License-Identifier: BSD-2-Clause
/*
 * Forced loss: pyprofd with the smallest ring is stopped (SIGSTOP) repeatedly while its target
 * calls functions as fast as it can. Lost events must be counted, counts must be lower bounds, no
 * function may have an impossible caller, the time of the gaps must be in "(lost)", and all rows
 * must add up to each thread's time.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "harness/patience.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

#define PAUSES 2
/* CPU time, ns: more than threads that wait have used */
#define BUSY (PATIENCE_MOMENT_MS * UINT64_C(1000000) / 2)

struct lossy {
	char *dir;
	char socket[256], file[256], pyprofd[512], pyprofctl[512];
	pid_t daemon;
};

/* The first target in the daemon's status; NULL: the daemon does not answer yet. */
static json_t *status_of(const struct lossy *l)
{
	const char *const argv[] = {l->pyprofctl, "--socket", l->socket, "status", "--json", NULL};
	_cleanup_free_ char *out = NULL;
	json_t *status, *target = NULL;
	int exit;

	cr_assert_eq(waitpid(l->daemon, NULL, WNOHANG), 0, "pyprofd has ended");
	out = tool_try(argv, &exit);
	status = exit == 0 ? json_loads(out, 0, NULL) : NULL;
	target = json_incref(json_array_get(json_object_get(status, "targets"), 0));
	json_decref(status);
	return target;
}

static bool traces(void *ctx)
{
	json_t *target = status_of(ctx);
	const char *state = json_string_value(json_object_get(target, "state"));
	bool ret = state && strcmp(state, "tracing") == 0;

	json_decref(target);
	return ret;
}

static uint64_t integer(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	cr_assert(json_is_integer(v), "no %s", key);
	return (uint64_t)json_integer_value(v);
}

static uint64_t clock_of(const json_t *o, const char *key, const char *clock)
{
	return integer(json_object_get(o, key), clock);
}

/*
 * The two threads that work are known: a thread's time begins when it is seen. What the others have done, which
 * wait, may have been lost.
 */
static bool sees_both(void *ctx)
{
	const struct lossy *l = ctx;
	const char *const argv[] = {l->pyprofctl, "--socket", l->socket, "snapshot",
				    "-f",	  "json",     NULL};
	_cleanup_free_ char *out = tool_run(argv);
	json_t *profile = json_loads(out, 0, NULL), *thread;
	unsigned int busy = 0;
	size_t i;

	json_array_foreach(json_object_get(profile, "threads"), i, thread)
		busy += clock_of(thread, "total", "cpu") > BUSY;
	json_decref(profile);
	return busy >= 2;
}

static void start_daemon(struct lossy *l, pid_t target)
{
	const char *build = getenv("PYPROF_BUILD");
	char pid[16];
	const char *const argv[] = {l->pyprofd, "--exact",  "--yes",   "--pid",
				    pid,	"--socket", l->socket, "--ring-size",
				    "64K",	"-o",	    l->file,   NULL};

	snprintf(pid, sizeof(pid), "%d", (int)target);
	snprintf(l->pyprofd, sizeof(l->pyprofd), "%s/pyprofd", build ? build : "build");
	snprintf(l->pyprofctl, sizeof(l->pyprofctl), "%s/pyprofctl", build ? build : "build");
	snprintf(l->socket, sizeof(l->socket), "%s/sock", l->dir);
	snprintf(l->file, sizeof(l->file), "%s/out.json", l->dir);
	assert_ok(posix_spawn(&l->daemon, l->pyprofd, NULL, NULL, (char *const *)argv, environ));
	patience_until(traces, l, "pyprofd to trace it");
}

static json_t *end_daemon(struct lossy *l)
{
	json_error_t error;
	json_t *ret;
	int status;

	assert_ok(kill(l->daemon, SIGINT));
	cr_assert(waitpid(l->daemon, &status, 0) == l->daemon);
	cr_assert(status == 0, "pyprofd ended with wait status %#x", (unsigned int)status);
	ret = json_load_file(l->file, 0, &error);
	cr_assert(ret, "%s", error.text);
	return ret;
}

static const char *func_name(const json_t *profile, const json_t *index)
{
	const json_t *functions = json_object_get(profile, "functions");

	if (!json_is_integer(index))
		return "";
	return json_string_value(json_object_get(
		json_array_get(functions, (size_t)json_integer_value(index)), "name"));
}

/* Returns whether caller can call callee. Functions outside this table are not checked. */
static bool edge_possible(const char *caller, const char *callee)
{
	static const char *const edges[][2] = {
		{"middle", "numbers"}, {"middle", "leaf"},  {"middle", "fails"},
		{"middle", "recurse"}, {"fails", "leaf"},   {"recurse", "recurse"},
		{"recurse", "leaf"},   {"outer", "middle"}, {"<lambda>", "outer"},
	};
	bool ours = false;

	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		ours |= strcmp(edges[i][1], callee) == 0;
		if (strcmp(edges[i][0], caller) == 0 && strcmp(edges[i][1], callee) == 0)
			return true;
	}
	return !ours;
}

static void check_edges(const json_t *profile)
{
	const json_t *edge;
	size_t i;

	json_array_foreach(json_object_get(profile, "edges"), i, edge)
	{
		const char *caller = func_name(profile, json_object_get(edge, "caller"));
		const char *callee = func_name(profile, json_object_get(edge, "callee"));

		cr_assert(edge_possible(caller, callee), "'%s' never calls '%s'", caller, callee);
	}
}

/* Checks that the self times of all contexts add up to the threads' time, on both clocks. */
static void check_sums(const json_t *profile)
{
	static const char *const clocks[] = {"cpu", "wall"};
	const json_t *node, *thread;
	size_t i;

	for (size_t c = 0; c < 2; c++) {
		uint64_t self = 0, total = 0;

		json_array_foreach(json_object_get(profile, "nodes"), i, node)
			self += clock_of(node, "self", clocks[c]);
		json_array_foreach(json_object_get(profile, "threads"), i, thread)
			total += clock_of(thread, "total", clocks[c]);
		cr_assert_eq(self, total, "%s: %" PRIu64 " in contexts, %" PRIu64 " in threads",
			     clocks[c], self, total);
	}
}

static const json_t *function(const json_t *profile, const char *name)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(profile, "functions"), i,
			   f) if (strcmp(json_string_value(json_object_get(f, "name")), name) ==
				  0) return f;
	cr_assert_fail("there is no %s", name);
	return NULL;
}

/* Checks that counts are lower bounds but not small, and that no call is still running. */
static void check_counts(const json_t *profile, const json_t *truth)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)truth, name, value)
	{
		uint64_t calls = (uint64_t)json_integer_value(value);
		uint64_t ncalls = integer(function(profile, name), "ncalls");

		fprintf(stderr, "  %-8s %8" PRIu64 " of %8" PRIu64 " calls\n", name, ncalls, calls);
		cr_assert(ncalls < calls && ncalls > 0, "%s: %" PRIu64 " calls seen of %" PRIu64,
			  name, ncalls, calls);
		cr_assert_eq(integer(function(profile, name), "inflight"), 0, "%s", name);
	}
}

static void check_loss(const json_t *profile, double paused)
{
	const json_t *target = json_array_get(json_object_get(profile, "targets"), 0);
	const json_t *counters = json_object_get(target, "losses");
	const json_t *lost = function(profile, "(lost)");
	double wall = (double)clock_of(lost, "tottime", "wall") / 1e9;

	cr_assert(json_is_false(json_object_get(profile, "exact")));
	cr_assert(json_is_false(json_object_get(target, "exact")));
	cr_assert(integer(target, "lost") > 0 && integer(counters, "lost_events") > 0);
	cr_assert(integer(target, "resyncs") > 0);
	cr_assert_eq(integer(target, "decode_errors"), 0);
	cr_assert_eq(integer(target, "truncated"), 0);
	cr_assert_eq(integer(counters, "fault_frame"), 0);
	fprintf(stderr,
		"  %" PRIu64 " events lost, %" PRIu64 " resyncs, %" PRIu64 " unmatched, %" PRIu64
		" unstarted, (lost) %.3f s of 2 x %.3f s paused\n",
		integer(target, "lost"), integer(target, "resyncs"), integer(target, "unmatched"),
		integer(target, "unstarted"), wall, paused);
	/* Two threads */
	cr_assert(wall > paused * 1.9, "only %.3f s in (lost)", wall);
	cr_assert(json_is_true(json_object_get(function(profile, "(lost)"), "pseudo")));
}

/*
 * Returns for how long both threads lost their events: the ring has room for 1000, of the first few
 * milliseconds, and each thread gets the GIL many times in a moment. Then the daemon reads what is
 * in the ring, and the target works on until it is no longer behind.
 */
static double pause_daemon(struct traced *t, struct lossy *l)
{
	double start;

	assert_ok(kill(l->daemon, SIGSTOP));
	traced_work(t, PATIENCE_MOMENT_MS);
	start = traced_seconds();
	traced_work(t, PATIENCE_WHILE_MS);
	start = traced_seconds() - start;
	assert_ok(kill(l->daemon, SIGCONT));
	patience_until(traces, l, "pyprofd to go on");
	traced_work(t, PATIENCE_MOMENT_MS);
	return start;
}

static void run(const char *exe)
{
	struct lossy l = {.dir = temp_dir_new()};
	json_t *profile, *truth;
	double paused = 0;
	struct traced t;

	fprintf(stderr, "%s\n", exe);
	traced_start(&t, exe, "run.py", "loss", "told", "--warm", "0", NULL);
	traced_expect(&t, "ready");
	start_daemon(&l, t.pid);
	traced_go(&t);
	patience_until(sees_both, &l, "pyprofd to see both threads");
	for (int i = 0; i < PAUSES; i++)
		paused += pause_daemon(&t, &l);
	traced_go(&t);
	traced_expect(&t, "done");
	profile = end_daemon(&l);
	truth = json_loads(t.result, 0, NULL);
	cr_assert(truth);
	check_loss(profile, paused);
	check_counts(profile, truth);
	check_edges(profile);
	check_sums(profile);
	json_decref(profile);
	json_decref(truth);
	traced_finish(&t);
	temp_dir_remove(l.dir);
}

Test(loss, a_stopped_daemon_and_a_tiny_ring)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++)
		run(v[i].exe);
	check_no_leaks();
}
