// SPDX-License-Identifier: BSD-2-Clause
/*
 * pyprofctl slow on a service in which the slow requests and their reasons are planted: it keeps
 * these requests and no others, and their trees show the reasons. It ends by Ctrl-C, after the given
 * time, or with its target, and leaves nothing attached.
 */
#include <jansson.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "harness/background.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;
static char pid[16];

static void setup(void)
{
	pyprofd_init(&d);
}

static void teardown(void)
{
	pyprofd_end(&d);
	traced_stop(&t);
}

TestSuite(slow, .init = setup, .fini = teardown);

static void start_target(const char *exe, const char *program, const char *a, const char *b)
{
	traced_ready(&t, pid, exe, "run.py", program, a, b, NULL);
}

static void start_daemon(void)
{
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
}

/* Nothing that slow attached is left. The target still waits for a line. */
static void end(void)
{
	json_t *status = ctl_status(&d);

	cr_assert_eq(json_array_size(json_object_get(status, "targets")), 0);
	json_decref(status);
	background_finish(&d, &t);
}

/* The number of calls that a daemon has seen for its first recording; -1: there is none. */
static json_int_t seen_by(const struct pyprofd *of)
{
	struct diag diag = {0};
	json_t *slow = NULL;
	json_int_t n = -1;
	struct client *c;

	assert_ok(client_open(of->sock, &c, &diag));
	if (client_request(c, "GET", "/v1/slow/1?trees=0", NULL, &slow, &diag) == 0)
		n = json_integer_value(json_object_get(slow, "seen"));
	json_decref(slow);
	client_free(c);
	return n;
}

static void until_seen(const struct pyprofd *of, json_int_t calls)
{
	while (seen_by(of) < calls) {
		cr_assert(!patience_over(), "%lld calls", (long long)seen_by(of));
		ctl_step();
	}
}

static bool records(void)
{
	return seen_by(&d) >= 0;
}

/* Start `pyprofctl slow -p PID ARG...` in the background, and wait until it records. */
static pid_t background(const char *const *args)
{
	const char *argv[24] = {"slow", "-p", pid};

	for (size_t i = 0; args[i]; i++)
		argv[i + 3] = args[i];
	return background_start(&d, "/dev/null", records, argv); /* without the forecast */
}

/*
 * Compares slow.json with the program's own result. Where the machine delays a request (`machine`: it had no CPU, or
 * not the GIL, or was on the CPU), it takes longer for other reasons as well: a request's slow function has most of
 * the rest, and the planted reason for waiting has more than half of the planted time but for the delay.
 */
#define JUDGE                                                                                      \
	"import collections, json, sys\n"                                                          \
	"slow = json.load(open(sys.argv[1] + '/slow.json'))\n"                                     \
	"result = json.load(open(sys.argv[1] + '/result.json'))\n"                                 \
	"reasons = {'take_shared': 'lock', 'compute': 'gil', 'list_items': 'sleep',\n"             \
	"           'slow_fsync': 'pipe'}\n"                                                       \
	"assert result['failed'] == 0, result\n"                                                   \
	"assert slow['seen'] == result['requests'], (slow['seen'], result)\n"                      \
	"assert not slow['refused'] and not slow['interrupted'] and not slow['unknown_start']\n"   \
	"assert slow['program'].startswith('pyprofctl ') and slow['targets'][0]['pid'], slow\n"    \
	"assert slow['over'] == len(slow['calls']), slow['over']\n"                                \
	"names = [f['name'] for f in slow['functions']]\n"                                         \
	"found, others, wrong = collections.Counter(), 0, []\n"                                    \
	"walls = [c['wall_ns'] for c in slow['calls']]\n"                                          \
	"assert walls == sorted(walls, reverse=True) and min(walls) >= slow['over_ns'], walls\n"   \
	"for call in slow['calls']:\n"                                                             \
	"    nodes = call['nodes']\n"                                                              \
	"    assert not call['gap'] and not call['running'] and not call['truncated'], call\n"     \
	"    assert names[nodes[0]['function']] == 'handle_request' and nodes[0]['calls'] == 1\n"  \
	"    total = sum(n['wall_ns'] for n in nodes)\n"                                           \
	"    assert total + call['suspended_ns'] == call['wall_ns'], (total, call)\n"              \
	"    cum = [n['wall_ns'] for n in nodes]\n"                                                \
	"    waits = collections.Counter()\n"                                                      \
	"    for i in range(len(nodes) - 1, -1, -1):\n"                                            \
	"        assert nodes[i]['parent'] < i, nodes[i]\n"                                        \
	"        if i:\n"                                                                          \
	"            cum[nodes[i]['parent']] += cum[i]\n"                                          \
	"        waits.update(nodes[i]['waits'])\n"                                                \
	"    children = [i for i in range(1, len(nodes)) if nodes[i]['parent'] == 0]\n"            \
	"    planted = [i for i in children if names[nodes[i]['function']] in reasons]\n"          \
	"    if not planted:\n"                                                                    \
	"        others += 1\n"                                                                    \
	"        continue\n"                                                                       \
	"    top, = planted\n"                                                                     \
	"    name = names[nodes[top]['function']]\n"                                               \
	"    found[name] += 1\n"                                                                   \
	"    machine = call['cpu_ns'] + sum(waits[k] for k in {'runnable', 'fault', 'gil'} -\n"    \
	"                                   {reasons[name]})\n"                                    \
	"    assert cum[top] > (call['wall_ns'] - machine) / 2, (name, call)\n"                    \
	"    if waits[reasons[name]] + machine <= min(call['wall_ns'], 250000000) / 2:\n"          \
	"        wrong.append((name, dict(waits), call['wall_ns'], call['cpu_ns']))\n"             \
	"    if name == 'list_items':\n"                                                           \
	"        query = max((n for n in nodes if n['parent'] == top),\n"                          \
	"                    key=lambda n: n['wall_ns'])\n"                                        \
	"        assert names[query['function']] == 'query', call\n"                               \
	"        assert query['calls'] == 1000, call\n"                                            \
	"        assert query['wall_ns'] > (call['wall_ns'] - machine) / 2, call\n"                \
	"assert found == result['planted'], (found, result)\n"                                     \
	"assert not wrong, wrong\n"                                                                \
	"assert others <= result['slow_others'], (others, result)\n"                               \
	"print('fine')\n"

static void save_result(void)
{
	char path[128];
	FILE *f;

	pyprofd_file(&d, "result.json", path, sizeof(path));
	f = fopen(path, "w");
	cr_assert(f && t.result[0]);
	fputs(t.result, f);
	fclose(f);
}

/* Of the service, with each planted reason at least once */
#define REQUESTS "700"

/* All requests, from the first to the last; then Ctrl-C. */
static void record_service(const char *exe, const char *file)
{
	char path[128];
	pid_t child;

	start_target(exe, "slow_service", REQUESTS, NULL);
	start_daemon();
	pyprofd_file(&d, file, path, sizeof(path));
	child = background((const char *const[]){"handle_request", "--over", "150ms", "-n", "50",
						 "-o", path, NULL});
	traced_go(&t);
	traced_expect(&t, "done");
	cr_assert_eq(background_end(child, SIGINT), 0);
	save_result();
	end();
}

Test(slow, planted_requests)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++) {
		fprintf(stderr, "%s\n", v[i].exe);
		record_service(v[i].exe, "slow.json");
		background_judge(&d, JUDGE);
	}
}

Test(slow, text)
{
	static const char *const named[] = {"take_shared", "list_items", "query",
					    "slow_fsync",  "lock ",	 "pipe ",
					    "sleep ",	   "gil ",	 "handle_request"};
	char path[128], *text;

	record_service(traced_newest().exe, "slow.txt");
	text = file_text(pyprofd_file(&d, "slow.txt", path, sizeof(path)), NULL);
	cr_assert(text);
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		cr_assert(strstr(text, named[i]), "%s: %s", named[i], text);
	cr_assert(strncmp(text, "#1  ", 4) == 0, "%s", text);
	cr_assert(strstr(text, "\ncalls of 'handle_request': 70"), "%s", text);
	cr_assert(strstr(text, "targets/slow_service.py:"), "%s", text);
	free(text);
}

/* The target ends while it is recorded: what it did until then is reported. */
Test(slow, the_target_ends)
{
	char path[128];
	pid_t child;
	int r;

	start_target(traced_newest().exe, "slow_service", "200", NULL);
	start_daemon();
	pyprofd_file(&d, "slow.json", path, sizeof(path));
	child = background((const char *const[]){"handle_request", "-o", path, NULL});
	traced_go(&t);
	traced_close(&t);
	r = background_end(child, 0);
	cr_assert_eq(r, 0, "%d", r);
	background_judge(&d, "import json, sys\n"
			     "slow = json.load(open(sys.argv[1] + '/slow.json'))\n"
			     "assert slow['seen'] == 200 and len(slow['calls']) == 10, slow\n"
			     "assert not slow['active'], slow\n"
			     "print('fine')\n");
}

/* With a limit, calls that have not returned are shown, too. */
Test(slow, calls_that_run)
{
	char path[128], *text;
	pid_t child;

	start_target(traced_newest().exe, "waits", "3600", "sleep");
	start_daemon();
	pyprofd_file(&d, "slow.txt", path, sizeof(path));
	child = background(
		(const char *const[]){"waits.py.*main", "--over", "100ms", "-o", path, NULL});
	traced_go(&t);
	ctl_until(&d, 0, "events", 1);
	patience_pass(150);
	cr_assert_eq(background_end(child, SIGINT), 0);
	text = file_text(path, NULL);
	cr_assert(strstr(text, " wall (still running), "), "%s", text);
	cr_assert(strstr(text, ", 1 still running\n"), "%s", text);
	free(text);
}

/* A page with the same calls, and every call and return inside */
Test(slow, as_a_page)
{
	record_service(traced_newest().exe, "slow.html");
	background_judge(
		&d, "import json, re, sys\n"
		    "page = open(sys.argv[1] + '/slow.html').read()\n"
		    "assert page.startswith('<!DOCTYPE html>') and page.count('<script') == 2, "
		    "page[:99]\n"
		    "data = re.search('id=\"data\">(.*?)</script>', page, re.S).group(1)\n"
		    "slow = json.loads(data)\n"
		    "assert slow['match'] == 'handle_request' and slow['calls'], slow.keys()\n"
		    "assert all(c['steps'] for c in slow['calls']), 'no steps'\n"
		    "print('fine')\n");
}

/* Each call as a track, with all that happened inside */
Test(slow, as_a_timeline)
{
	record_service(traced_newest().exe, "slow.trace.json");
	background_judge(
		&d, "import json, sys\n"
		    "trace = json.load(open(sys.argv[1] + '/slow.trace.json'))\n"
		    "tracks = {}\n"
		    "for e in trace['traceEvents']:\n"
		    "    names, open_, last = tracks.setdefault(e['tid'], ([], [], [0]))\n"
		    "    if e['ph'] == 'M':\n"
		    "        continue\n"
		    "    assert e['ts'] >= last[0], e\n"
		    "    last[0] = e['ts']\n"
		    "    if e['ph'] == 'B':\n"
		    "        open_.append(e['name'])\n"
		    "        names.append(e['name'])\n"
		    "    else:\n"
		    "        open_.pop()\n"
		    "assert tracks and not any(t[1] for t in tracks.values()), tracks\n"
		    "n_plus_1 = [t[0] for t in tracks.values() if t[0].count('query') == 1000]\n"
		    "assert n_plus_1, {k: t[0][:9] for k, t in tracks.items()}\n"
		    "assert trace['otherData']['match'] == 'handle_request'\n"
		    "print('fine')\n");
}

/* Runs `pyprofctl slow ARG...` without a daemon while the target works, and then Ctrl-C. Returns its output. */
static char *recorded_alone(const char *const *args)
{
	const char *argv[16] = {"slow", "-p", pid, "-o"};
	struct pyprofd own;
	char path[128];
	pid_t child;

	argv[4] = pyprofd_file(&d, "slow.txt", path, sizeof(path));
	for (size_t i = 0; args[i]; i++)
		argv[i + 5] = args[i];
	child = background_start(&d, "/dev/null", NULL, argv);
	background_until_traced(child, 1);
	own = background_private(child);
	until_seen(&own, 100);
	cr_assert_eq(background_end(child, SIGINT), 0);
	return file_text(path, NULL);
}

Test(slow, without_a_daemon)
{
	struct ran r;
	char *text;

	start_target(traced_newest().exe, "busy_empty", "3600", NULL);
	traced_go(&t);
	text = recorded_alone((const char *const[]){"busy_empty", "-n", "3", NULL});
	cr_assert(strstr(text, "; shown: 3\n"), "%s", text);
	free(text);
	/* without a pattern: own code */
	text = recorded_alone((const char *const[]){"-n", "2", NULL});
	cr_assert(strstr(text, "the program's own functions: "), "%s", text);
	cr_assert(strstr(text, "; shown: 2\n"), "%s", text);
	free(text);
	r = ctl(&d, "slow", "busy_empty", "-p", pid, "-d", "100ms", "--over", "1h", NULL);
	cr_assert(r.status == 0 && strcmp(r.err, "") == 0, "%s", r.err);
	cr_assert(strstr(r.out, ", none took 3600 s or more\n"), "%s", r.out);
	ran_free(&r);
	cr_assert(access(d.sock, F_OK) < 0);
}

#define EARLY 10000
#define LATE  30000

static long daemon_rss_kb(void)
{
	char name[64], line[128];
	long kb = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/status", d.pid);
	f = fopen(name, "r");
	cr_assert(f);
	while (!kb && fgets(line, sizeof(line), f))
		sscanf(line, "VmRSS: %ld", &kb);
	fclose(f);
	cr_assert(kb);
	return kb;
}

static long rss_after(json_int_t calls)
{
	until_seen(&d, calls);
	return daemon_rss_kb();
}

/*
 * At full rate, with more calls suspended than are followed, and all calls kept: after the first calls, memory grows
 * no more. What is kept is at most 200 trees, some 10 MB.
 */
Test(slow, bounded_memory)
{
	char path[128];
	long early, late;
	pid_t child;

	start_target(traced_newest().exe, "call_storm", "3600", NULL);
	start_daemon();
	pyprofd_file(&d, "slow.json", path, sizeof(path));
	child = background(
		(const char *const[]){"handle_request|waits", "-n", "200", "-o", path, NULL});
	traced_go(&t);
	early = rss_after(EARLY);
	late = rss_after(LATE);
	fprintf(stderr, "RSS after %d calls: %ld kB, after %d: %ld kB\n", EARLY, early, LATE, late);
	cr_assert_lt(late, early + 24 * 1024, "%ld kB, then %ld kB", early, late);
	cr_assert_eq(background_end(child, SIGINT), 0);
	background_judge(
		&d, "import json, sys\n"
		    "slow = json.load(open(sys.argv[1] + '/slow.json'))\n"
		    "assert slow['seen'] > 1000 and len(slow['calls']) == 200, slow['seen']\n"
		    "assert slow['refused'] > 0, {k: v for k, v in slow.items() if k != 'calls'}\n"
		    "print('fine')\n");
}

Test(slow, what_is_not_possible)
{
	json_t *status;
	pid_t child;

	start_target(traced_newest().exe, "busy_empty", "0", NULL);
	/* without a daemon */
	ctl_fails(&d, PYP_EXIT_NO_DAEMON, "no daemon", "slow", "x", NULL);
	ctl_fails(&d, PYP_EXIT_NO_PROCESS, "no process", "slow", "x", "-p", "4194303", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "argument", "slow", "x", "y", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "(", "slow", "(", "-p", pid, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "201", "slow", "x", "-n", "201", "-p", pid, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "svg", "slow", "x", "-o", "x.svg", "-p", pid, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "csv", "slow", "x", "-f", "csv", "-p", pid, NULL);
	ctl_fails(&d, PYP_EXIT_FAILURE, "No such file", "slow", "x", "-o", "/nosuch/x", NULL);
	/* with one */
	start_daemon();
	ctl_fails(&d, PYP_EXIT_USAGE, "(", "slow", "(", "-p", pid, NULL);
	ctl_fails(&d, PYP_EXIT_NO_PROCESS, "no traced process", "slow", "x", NULL);
	status = ctl_status(&d);
	cr_assert_eq(json_array_size(json_object_get(status, "targets")), 0);
	json_decref(status);
	/* one of each target at a time */
	child = background((const char *const[]){"empty", "-o", "/dev/null", NULL});
	ctl_fails(&d, PYP_EXIT_BUSY, "already", "slow", "empty", NULL);
	ctl_fails(&d, PYP_EXIT_BUSY, "already", "timeline", "-o", "/dev/null", NULL);
	cr_assert_eq(background_end(child, SIGTERM), 0);
	free(ctl_ok(&d, "attach", "--no-start", pid, NULL));
	ctl_fails(&d, PYP_EXIT_FAILURE, "nothing is being traced", "slow", "x", NULL);
	free(ctl_ok(&d, "detach", pid, NULL));
	/* A slow call does not fit into a window. */
	free(ctl_ok(&d, "attach", "--max-overhead", "5", pid, NULL));
	ctl_fails(&d, PYP_EXIT_USAGE, "windows of at most 75 ms: its calls are not seen one by one",
		  "slow", "x", "-p", pid, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "attach to it with --exact", "slow", "x", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "attach to it with --exact", "timeline", "-p", pid, NULL);
	free(ctl_ok(&d, "detach", pid, NULL));
}
