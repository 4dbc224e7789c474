// SPDX-License-Identifier: BSD-2-Clause
/*
 * A server with a thread per request, more than the daemon keeps separately: all calls are counted
 * in the right place, and neither the daemon's memory nor its output grows with the number of
 * threads.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "harness/counts.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "snapshot/load.h"
#include "stats/view.h"

#define CHUNK	       10000u
#define CHUNK_TEXT     "10000"
#define THREADS	       80000u /* more than 65,536 */
#define MAX_GROWTH_KIB (20u * 1024)
#define MAX_JSON       (1u << 20)
#define STEPS	       2u

static struct pyprofd d;
static struct traced server;

static uint32_t threads_wanted(void)
{
	const char *env = getenv("PYPROF_TEST_THREADS");
	uint32_t n = env ? (uint32_t)strtoul(env, NULL, 10) : THREADS;

	return n / CHUNK * CHUNK;
}

static void setup(void)
{
	struct interpreter it = traced_newest();
	char pid[16];

	traced_ready(&server, NULL, it.exe, "requests.py", CHUNK_TEXT, NULL);
	pyprofd_start(&d, NULL);
	free(ctl_ok(&d, "attach", pid_text(pid, server.pid), NULL));
}

static void teardown(void)
{
	if (d.pid)
		pyprofd_shutdown(&d);
	traced_stop(&server);
}

TestSuite(threads, .init = setup, .fini = teardown);

static void setup_workers(void)
{
	struct interpreter it = traced_newest();
	char pid[16];

	traced_ready(&server, NULL, it.exe, "process_tree.py", NULL);
	pyprofd_start(&d, NULL);
	free(ctl_ok(&d, "attach", "--follow-children", pid_text(pid, server.pid), NULL));
}

/*
 * A worker that ends holds the lock of its mappings, on a busy machine for longer than is waited for: the
 * daemon may report that, and nothing else.
 */
static void shutdown_workers(void)
{
	char *rest, *line;
	struct ran r;

	free(ctl_ok(&d, "shutdown", NULL));
	r = pyprofd_wait(&d);
	cr_assert_eq(r.status, 0, "%s", r.err);
	rest = r.err;
	while ((line = strsep(&rest, "\n")))
		cr_assert(!*line || strstr(line, ": reading its data in /proc timed out"), "%s",
			  line);
	ran_free(&r);
	pyprofd_deinit(&d);
}

static void teardown_workers(void)
{
	if (d.pid)
		shutdown_workers();
	traced_stop(&server);
}

TestSuite(workers, .init = setup_workers, .fini = teardown_workers);

static uint64_t status_kib(pid_t pid, const char *field)
{
	char path[64], line[128];
	uint64_t kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	cr_assert(f);
	while (!kib && fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			kib = strtoull(line + strlen(field), NULL, 10);
	fclose(f);
	cr_assert_neq(kib, 0);
	return kib;
}

static uint64_t resident_kib(pid_t pid)
{
	return status_kib(pid, "VmRSS:");
}

static struct snapshot *take(off_t *ret_size)
{
	char path[128];
	struct snapshot *s = NULL;
	struct diag diag = {0};
	struct stat st;

	pyprofd_file(&d, "taken.json", path, sizeof(path));
	free(ctl_ok(&d, "snapshot", "-f", "json", "-o", path, NULL));
	cr_assert_eq(stat(path, &st), 0);
	*ret_size = st.st_size;
	assert_ok(snapshot_load(path, &s, &diag));
	unlink(path);
	return s;
}

static uint32_t alive(const struct snapshot *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nthreads; i++)
		n += s->threads[i].alive;
	return n;
}

/* A thread reports that it is done before it ends, so take snapshots until all have ended. */
static struct snapshot *take_ended(off_t *ret_size)
{
	for (;;) {
		struct snapshot *s = take(ret_size);

		if (alive(s) == 1)
			return s;
		cr_assert(!patience_over(), "%u threads are alive", alive(s));
		snapshot_free(s);
		patience_step();
	}
}

static void check_calls(const struct snapshot *s, uint64_t n)
{
	struct view *v = NULL;
	char name[16];

	assert_ok(view_build(s, NULL, &v));
	cr_expect_eq(counts_named(v, "handle_request").ncalls, n, "handle_request: %" PRIu64,
		     counts_named(v, "handle_request").ncalls);
	for (unsigned int i = 0; i < STEPS; i++) {
		snprintf(name, sizeof(name), "step_%u", i);
		cr_expect_eq(counts_named(v, name).ncalls, n, "%s: %" PRIu64, name,
			     counts_named(v, name).ncalls);
	}
	view_free(v);
}

/* One row for all ended threads except the last ones */
static void check_rows(const struct snapshot *s, uint64_t n)
{
	uint64_t ended = 0;
	uint32_t rows = 0;

	for (uint32_t i = 0; i < s->nthreads; i++) {
		const struct snapshot_thread *th = &s->threads[i];

		if (th->alive || !strcmp(th->name, "(truncated)"))
			continue;
		ended += th->folded ? th->folded : 1;
		rows += th->folded > 0;
		if (th->folded)
			cr_expect(strstr(th->name, " of handle_request"), "%s", th->name);
	}
	cr_expect_eq(ended, n, "%" PRIu64 " threads have ended", ended);
	cr_expect_eq(rows, 1, "%u rows", rows);
}

Test(threads, one_per_request)
{
	uint32_t n = threads_wanted();
	uint64_t before, after;
	struct snapshot *s;
	off_t size;

	/* Let the daemon allocate the memory that any load needs once. */
	traced_go(&server);
	traced_expect(&server, "done");
	snapshot_free(take(&size));
	before = resident_kib(d.pid);
	for (uint32_t i = CHUNK; i < n; i += CHUNK) {
		traced_go(&server);
		traced_expect(&server, "done");
		/* The ring is empty again: however slow the daemon is, it suffices. */
		snapshot_free(take(&size));
	}
	s = take_ended(&size);
	after = resident_kib(d.pid);
	fprintf(stderr,
		"  %" PRIu32 " threads: %" PRIu64 " KiB, then %" PRIu64
		" KiB; %lld bytes of JSON\n",
		n, before, after, (long long)size);
	cr_expect(traced_is_exact(s, "requests"));
	check_calls(s, n);
	check_rows(s, n);
	snapshot_free(s);
	cr_expect_lt(after, before + MAX_GROWTH_KIB, "%" PRIu64 " KiB grew to %" PRIu64, before,
		     after);
	cr_expect_lt(size, MAX_JSON, "%lld bytes of JSON", (long long)size);
	traced_close(&server);
	cr_expect_eq(traced_wait(&server), 0);
}

/* Workers that are forked and end ------------------------------------------------------------ */

#define WORKERS	   60u /* as many as process_tree.py numbers; 16 ended ones are kept separately */
#define WARM	   24u
#define WORK	   10u
#define BURST	   100u
#define BURST_TEXT "burst 100"
#define BURSTS	   12u	      /* at most */
#define CALM	   2u	      /* bursts that do not need more memory than all before */
#define RING_BYTES (1u << 20) /* a ring buffer has more than that */
#define RINGS	   5u	      /* the server's, and those in advance: SPARES of session/follow.c */

/* Without ring buffers: there are more or fewer in advance, for the next children (rings_settle()) */
static uint64_t heap_kib(pid_t pid)
{
	return status_kib(pid, "RssAnon:");
}

/* How many ring buffers are mapped */
static uint32_t rings_of(pid_t pid)
{
	char path[64], line[512];
	uint64_t start, end;
	uint32_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	cr_assert(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "anon_inode:bpf-map") &&
		     sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 &&
		     end - start >= RING_BYTES;
	fclose(f);
	return n;
}

/* Those of the ended workers are freed: what remains are the server's and those for the next children. */
static void rings_settle(void)
{
	uint32_t n = rings_of(d.pid);

	cr_assert_gt(n, 0, "no ring buffer is mapped");
	while (n > RINGS) {
		cr_assert(!patience_over(), "%u ring buffers", n);
		patience_step();
		n = rings_of(d.pid);
	}
}

/* The number of the server's children that became targets; *ret_known: all known children. */
static uint64_t followed_of(uint64_t *ret_known)
{
	json_t *target = ctl_target(&d, 0), *children = json_object_get(target, "children");
	uint64_t followed = (uint64_t)json_integer_value(json_object_get(children, "followed"));
	const char *key;
	json_t *v;

	cr_assert(children, "no children in the status");
	*ret_known = 0;
	json_object_foreach(children, key, v) *ret_known += (uint64_t)json_integer_value(v);
	json_decref(target);
	return followed;
}

static uint64_t wait_for_children(uint64_t n)
{
	uint64_t known, followed = followed_of(&known);

	while (known < n) {
		cr_assert(!patience_over(), "not all children are known");
		patience_step();
		followed = followed_of(&known);
	}
	return followed;
}

/* Fork a worker, wait until it is followed, let it work and end. */
static void recycle(uint32_t i)
{
	char order[32];

	traced_say(&server, "fork 0 1");
	traced_expect(&server, "forked");
	cr_assert_eq(wait_for_children(i), i, "worker %u is not followed", i);
	snprintf(order, sizeof(order), "work %u %u", i, WORK);
	traced_say(&server, order);
	traced_expect(&server, "worked");
	snprintf(order, sizeof(order), "end %u", i);
	traced_say(&server, order);
	traced_expect(&server, "ended");
}

/* Fork workers most of which end before they can be followed, the n-th time. Returns the memory. */
static uint64_t burst(uint32_t n)
{
	off_t size;

	traced_say(&server, BURST_TEXT);
	traced_expect(&server, "burst");
	wait_for_children(WORKERS + n * BURST);
	snapshot_free(take(&size));
	cr_expect_lt(size, MAX_JSON, "%lld bytes of JSON", (long long)size);
	rings_settle();
	return heap_kib(d.pid);
}

Test(workers, recycled)
{
	uint64_t before = 0, after, calls;
	struct snapshot *s;
	struct view *v = NULL;
	uint32_t n = 0, calm = 0;
	off_t size;

	for (uint32_t i = 1; i <= WORKERS; i++) {
		recycle(i);
		if (i == WARM) {
			snapshot_free(take(&size));
			before = heap_kib(d.pid);
		}
	}
	s = take(&size);
	assert_ok(view_build(s, NULL, &v));
	calls = counts_named(v, "work").ncalls;
	cr_expect_eq(calls, WORKERS * WORK, "%" PRIu64 " calls", calls);
	cr_expect_leq(s->ntargets, 1 + 16 + 2);
	view_free(v);
	snapshot_free(s);
	rings_settle();
	after = heap_kib(d.pid);
	cr_expect_lt(after, before + MAX_GROWTH_KIB, "%" PRIu64 " KiB grew to %" PRIu64, before,
		     after);
	/* How many are attached to at the same time depends on the load; each of them needs memory. */
	before = burst(++n);
	while (calm < CALM && n < BURSTS) {
		after = burst(++n);
		calm = after < before + MAX_GROWTH_KIB / CALM ? calm + 1 : 0;
		before = after > before ? after : before;
	}
	fprintf(stderr, "  %u workers: %" PRIu64 " KiB\n", WORKERS + n * BURST, before);
	cr_expect_eq(calm, CALM, "%u bursts, and memory still grows: %" PRIu64 " KiB", n, before);
	traced_close(&server);
	cr_expect_eq(traced_wait(&server), 0);
}
