// SPDX-License-Identifier: BSD-2-Clause
/*
 * A server that starts a thread per request, more of them than the daemon keeps apart: every call is
 * counted where it belongs, and neither the daemon's memory nor what it writes grows with them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "harness/counts.h"
#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "snapshot/load.h"
#include "stats/view.h"

#define CHUNK	       10000u
#define CHUNK_TEXT     "10000"
#define THREADS	       80000u /* more than 65,536 */
#define MAX_GROWTH_KIB (20u * 1024)
#define MAX_JSON       (1u << 20)
#define STEPS	       10u
#define ENDED_S	       20.0

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

	traced_start(&server, it.exe, "requests.py", CHUNK_TEXT, NULL);
	traced_expect(&server, "ready");
	pyprofd_start(&d, NULL);
	free(ctl_ok(&d, "attach", pid_text(pid, server.pid), NULL));
}

static void teardown(void)
{
	if (d.pid)
		pyprofd_shutdown(&d);
	traced_stop(&server);
}

TestSuite(threads, .init = setup, .fini = teardown, .timeout = 3600);

static uint64_t resident_kib(pid_t pid)
{
	char path[64], line[128];
	uint64_t kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	cr_assert(f);
	while (!kib && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = strtoull(line + 6, NULL, 10);
	fclose(f);
	cr_assert_neq(kib, 0);
	return kib;
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

/* A thread says that it is done before it ends. */
static struct snapshot *take_ended(off_t *ret_size)
{
	double until = traced_seconds() + ENDED_S;

	for (;;) {
		struct snapshot *s = take(ret_size);

		if (alive(s) == 1)
			return s;
		cr_assert(traced_seconds() < until, "%u threads are alive", alive(s));
		snapshot_free(s);
		usleep(20000);
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

/* One row for all that have ended but the last ones. */
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

	/* What any load takes once is there. */
	traced_go(&server);
	traced_expect(&server, "done");
	snapshot_free(take(&size));
	before = resident_kib(d.pid);
	for (uint32_t i = CHUNK; i < n; i += CHUNK) {
		traced_go(&server);
		traced_expect(&server, "done");
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
