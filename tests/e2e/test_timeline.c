// SPDX-License-Identifier: BSD-2-Clause
/*
 * pyprofctl timeline on real programs: its calls equal the profile's, function by function; files
 * are complete however the recording ends; a slow reader loses entries of the timeline, which are
 * counted and reported, but nothing of the profile.
 */
#include <jansson.h>
#include <signal.h>
#include <unistd.h>

#include "client.h"
#include "harness/background.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "timeline/writer.h"

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

TestSuite(timeline, .init = setup, .fini = teardown);

/* Start a target, wait for "ready", and attach. */
static void start(const char *exe, const char *program, const char *seconds, const char *calls)
{
	traced_ready(&t, pid, exe, "run.py", program, seconds, calls, NULL);
	pyprofd_launch(&d, "--pid", pid, NULL);
	pyprofd_ready(&d);
}

static bool records(void)
{
	json_t *list = background_api(&d, "GET", "/v1/timelines", NULL);
	bool some = json_array_size(json_object_get(list, "timelines")) > 0;

	json_decref(list);
	return some;
}

/* Start `pyprofctl timeline ARG...` in the background, and wait until it records. */
static pid_t background(const char *a, const char *b, const char *c, const char *e)
{
	return background_start(&d, NULL, records,
				(const char *const[]){"timeline", a, b, c, e, NULL});
}

/* Checks t.json: calls are balanced and in order; reads the metadata. */
#define CHROME                                                                                     \
	"import collections, json, sys\n"                                                          \
	"trace = json.load(open(sys.argv[1] + '/t.json'))\n"                                       \
	"other = trace['otherData']\n"                                                             \
	"open_ = collections.defaultdict(list)\n"                                                  \
	"last = {}\n"                                                                              \
	"names = set()\n"                                                                          \
	"calls = collections.Counter()\n"                                                          \
	"for e in trace['traceEvents']:\n"                                                         \
	"    key = e['pid'], e['tid']\n"                                                           \
	"    if e['ph'] == 'M':\n"                                                                 \
	"        names.add(e['args']['name'])\n"                                                   \
	"        continue\n"                                                                       \
	"    assert e['ts'] >= last.get(key, (0, 0))[0], e\n"                                      \
	"    assert e['tts'] >= last.get(key, (0, 0))[1], e\n"                                     \
	"    last[key] = e['ts'], e['tts']\n"                                                      \
	"    if e['ph'] == 'B':\n"                                                                 \
	"        open_[key].append(e)\n"                                                           \
	"        if e['cat'] in ('call', 'resume', 'throw'):\n"                                    \
	"            calls[e['args']['file'], e['args']['line'], e['name']] += 1\n"                \
	"    elif e['ph'] == 'E':\n"                                                               \
	"        open_[key].pop()\n"                                                               \
	"assert not any(open_.values()), open_\n"                                                  \
	"assert sum(calls.values()) == other['calls'], other\n"

/* Checks that the profile's calls equal the timeline's. */
/* (At the attach, the target may not have reached proto.wait() yet.) */
#define SAME                                                                                       \
	"calls = {k: n for k, n in calls.items() if not k[0].endswith('proto.py') or k[2] != "     \
	"'wait'}\n"                                                                                \
	"profile = collections.Counter()\n"                                                        \
	"snapshot = json.load(open(sys.argv[1] + '/snapshot.json'))\n"                             \
	"for f in snapshot['functions']:\n"                                                        \
	"    if f['ncalls'] and not (f['file'].endswith('proto.py') and f['name'] == 'wait'):\n"   \
	"        profile[f['file'], f['line'], f.get('qualname') or f['name']] += f['ncalls']\n"   \
	"assert len(profile) > 10\n"                                                               \
	"differ = [(k, profile[k], calls.get(k)) for k in profile.keys() | calls.keys()\n"         \
	"          if profile[k] != calls.get(k)]\n"                                               \
	"assert not differ, differ\n"                                                              \
	"print('fine')\n"

#define CSV                                                                                        \
	"import collections, csv, json, sys\n"                                                     \
	"calls = collections.Counter()\n"                                                          \
	"open_ = collections.defaultdict(list)\n"                                                  \
	"last = {}\n"                                                                              \
	"rows = list(csv.DictReader(open(sys.argv[1] + '/t.csv', newline='')))\n"                  \
	"for r in rows[:-1]:\n"                                                                    \
	"    key, stack = r['thread'], open_[r['thread']]\n"                                       \
	"    assert int(r['time']) >= last.get(key, 0)\n"                                          \
	"    last[key] = int(r['time'])\n"                                                         \
	"    if r['event'] in ('call', 'resume', 'throw', 'open', 'switch-in'):\n"                 \
	"        assert r['caller'] == (stack[-1] if stack else ''), r\n"                          \
	"        stack.append(r['name'])\n"                                                        \
	"    else:\n"                                                                              \
	"        assert r['event'] in ('return', 'yield', 'unwind', 'close', 'switch-out'), r\n"   \
	"        assert stack.pop() == r['name'], r\n"                                             \
	"    if r['event'] in ('call', 'resume', 'throw'):\n"                                      \
	"        calls[r['file'], int(r['line']), r['name']] += 1\n"                               \
	"assert not any(open_.values()), open_\n"                                                  \
	"end = json.loads(rows[-1]['name'])\n"                                                     \
	"assert rows[-1]['event'] == 'end' and end['complete'], end\n"

static void whole_run(const struct interpreter *it, const char *file, const char *script)
{
	char path[128], snapshot[128];
	pid_t child;

	start(it->exe, "mixed", NULL, NULL);
	pyprofd_file(&d, file, path, sizeof(path));
	pyprofd_file(&d, "snapshot.json", snapshot, sizeof(snapshot));
	child = background("-o", path, NULL, NULL);
	traced_go(&t);
	traced_expect(&t, "done");
	/* Ctrl-C keeps the recorded data */
	cr_assert_eq(background_end(child, SIGINT), 0);
	free(ctl_ok(&d, "snapshot", "-o", snapshot, NULL));
	background_judge(&d, script);
	background_finish(&d, &t);
}

Test(timeline, its_calls_are_the_profiles)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++)
		whole_run(&v[i], "t.json", CHROME SAME);
}

/* Large blocks are marked in the function that maps them, and tracks show what they add up to. */
#define MEMORY                                                                                     \
	"MIB = 1 << 20\n"                                                                          \
	"stack, maps = [], []\n"                                                                   \
	"for e in trace['traceEvents']:\n"                                                         \
	"    if e['ph'] == 'B':\n"                                                                 \
	"        stack.append(e['name'])\n"                                                        \
	"    elif e['ph'] == 'E':\n"                                                               \
	"        stack.pop()\n"                                                                    \
	"    elif e.get('cat') in ('map', 'unmap'):\n"                                             \
	"        assert e['ph'] == 'i', e\n"                                                       \
	"        maps.append((e['cat'], stack[-1], e['args']['bytes'] // MIB))\n"                  \
	"assert maps.count(('map', 'keep_large', 5)) == 3, maps\n"                                 \
	"assert maps.count(('map', 'take_large', 10)) == 1, maps\n"                                \
	"assert maps.count(('unmap', 'drop_large', 10)) == 1, maps\n"                              \
	"track = lambda kind: [e['args']['bytes'] for e in trace['traceEvents']\n"                 \
	"                      if e['ph'] == 'C' and e['name'] == 'memory: ' + kind]\n"            \
	"assert max(track('large')) - min(track('large')) >= 25 * MIB\n"                           \
	"assert track('large')[-1] >= 15 * MIB\n"                                                  \
	"assert max(track('resident')) - min(track('resident')) >= 25 * MIB\n"                     \
	"print('fine')\n"

Test(timeline, memory)
{
	char path[128];
	pid_t child;

	traced_ready(&t, pid, traced_newest().exe, "run.py", "memory", NULL);
	pyprofd_launch(&d, "--pid", pid, "--counters", "memory", NULL);
	pyprofd_ready(&d);
	child = background("-o", pyprofd_file(&d, "t.json", path, sizeof(path)), NULL, NULL);
	traced_go(&t);
	traced_expect(&t, "done");
	cr_assert_eq(background_end(child, SIGINT), 0);
	background_judge(&d, CHROME MEMORY);
	background_finish(&d, &t);
}

Test(timeline, rows)
{
	struct interpreter it = traced_newest();

	whole_run(&it, "t.csv", CSV SAME);
}

/* However little the target does in this time, the file has it all, and no more. */
static void the_time_given(const char *path)
{
	char *said = ctl_ok(&d, "timeline", "-d", "100ms", "-o", path, NULL);

	cr_assert_str_eq(said, "");
	free(said);
	background_judge(&d, CHROME "assert other['duration_ns'] == 100000000, other\n"
				    "assert max([v[0] for v in last.values()] or [0]) <= 100000\n"
				    "assert other['complete']\n"
				    "print('fine')\n");
}

/* Recorded while functions are running: calls are open at the beginning. */
static void until_a_signal(const char *path)
{
	pid_t child = background("-o", path, NULL, NULL);

	traced_work(&t, PATIENCE_MOMENT_MS);
	cr_assert_eq(background_end(child, SIGTERM), 0);
	background_judge(&d,
			 CHROME "assert other['complete'] and calls\n"
				"assert any(e.get('cat') == 'open' for e in trace['traceEvents'])\n"
				"print('fine')\n");
}

static void the_size_given(const char *path)
{
	struct ran r = ctl(&d, "timeline", "--max-size", "512K", "-o", path, NULL);
	char *text;
	size_t n;

	cr_assert(r.status == 0 && strstr(r.err, "timeline reached --max-size"), "%s", r.err);
	ran_free(&r);
	text = file_text(path, &n);
	cr_assert(n <= 512 << 10 && n > 256 << 10, "%zu", n);
	free(text);
	background_judge(&d, CHROME "assert other['size_limit_reached'] and not other['complete']\n"
				    "print('fine')\n");
	ctl_fails(&d, PYP_EXIT_USAGE, "max-size", "timeline", "--max-size", "10", NULL);
}

static void the_daemon_ends(const char *path)
{
	pid_t child = background("-o", path, NULL, NULL);
	struct ran r;

	kill(d.pid, SIGKILL);
	r = pyprofd_wait(&d);
	ran_free(&r);
	cr_assert_eq(background_end(child, 0), 0);
	background_judge(&d, CHROME "assert not other['complete'], other\nprint('fine')\n");
	unlink(d.sock);
}

Test(timeline, of_a_target_that_calls_all_the_time)
{
	char path[128];

	start(traced_newest().exe, "busy_empty", "3600", NULL);
	pyprofd_file(&d, "t.json", path, sizeof(path));
	traced_go(&t);
	the_time_given(path);
	until_a_signal(path);
	the_size_given(path);
	the_daemon_ends(path);
}

Test(timeline, the_target_ends)
{
	char path[128];
	pid_t child;

	start(traced_newest().exe, "busy_empty", "0", "2000");
	pyprofd_file(&d, "t.json", path, sizeof(path));
	child = background("--pid", pid, "-o", path);
	traced_go(&t);
	traced_close(&t);
	cr_assert_eq(background_end(child, 0), 0);
	background_judge(&d,
			 CHROME "assert other['complete'] and sum(calls.values()) > 2000, other\n"
				"print('fine')\n");
}

Test(timeline, without_a_daemon)
{
	char path[128];
	struct ran r;

	traced_ready(&t, pid, traced_newest().exe, "run.py", "busy_empty", "3600", NULL);
	traced_go(&t);
	pyprofd_file(&d, "t.json", path, sizeof(path));
	ctl_fails(&d, PYP_EXIT_NO_DAEMON, "no daemon", "timeline", NULL);
	ctl_fails(&d, PYP_EXIT_NO_PROCESS, "no process", "timeline", "-p", "4194303", NULL);
	r = ctl(&d, "timeline", "--pid", pid, "--max-size", "256K", "-o", path, NULL);
	cr_assert_eq(r.status, 0, "%s", r.err);
	ran_free(&r);
	background_judge(&d, CHROME "assert other['size_limit_reached'] and calls, other\n"
				    "print('fine')\n");
	cr_assert(access(d.sock, F_OK) < 0);
}

Test(timeline, what_is_not_possible)
{
	pid_t child;

	start(traced_newest().exe, "busy_empty", "0", NULL);
	child = background("-o", "/dev/null", NULL, NULL);
	ctl_fails(&d, PYP_EXIT_BUSY, "already", "timeline", "-o", "/dev/null", NULL);
	cr_assert_eq(background_end(child, SIGTERM), 0);
	free(ctl_ok(&d, "stop", NULL));
	ctl_fails(&d, PYP_EXIT_FAILURE, "nothing is being traced", "timeline", NULL);
	free(ctl_ok(&d, "detach", pid, NULL));
	ctl_fails(&d, PYP_EXIT_NO_PROCESS, "no traced process", "timeline", NULL);
	ctl_fails(&d, PYP_EXIT_FAILURE, "No such file", "timeline", "-o", "/nosuch/x", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "chrome", "timeline", "-f", "text", NULL);
	background_finish(&d, &t);
}

/* Fetch until the END record. */
static struct timeline_writer_counts fetch_all(int id, FILE *out)
{
	const struct timeline_writer_opts o = {.format = "chrome", .max_bytes = UINT64_C(1) << 30};
	struct timeline_writer_counts counts;
	struct timeline_writer *w;
	struct client *c;
	struct diag diag = {0};
	char path[64];

	snprintf(path, sizeof(path), "/v1/timelines/%d", id);
	assert_ok(client_open(d.sock, &c, &diag));
	assert_ok(timeline_writer_new(&o, out, &w, &diag));
	while (!timeline_writer_ended(w)) {
		char *data = NULL;
		size_t n;

		assert_diag_ok(client_fetch(c, path, &data, &n, &diag), &diag);
		assert_diag_ok(timeline_writer_feed(w, data ? data : "", n, &diag), &diag);
		free(data);
	}
	assert_ok(timeline_writer_finish(w, json_pack("{s:[]}", "targets"), &diag));
	counts = timeline_writer_counts(w);
	timeline_writer_free(w);
	client_free(c);
	return counts;
}

/*
 * No client fetches while the program runs: entries that do not fit are dropped, and the profile
 * stays exact.
 */
Test(timeline, a_slow_reader)
{
	char path[128], location[64], *text;
	struct timeline_writer_counts c;
	uint64_t events, unstarted, reported;
	json_t *begun, *target;
	FILE *out;
	int id;

	start(traced_newest().exe, "busy_empty", "0", "20000");
	begun = background_api(&d, "POST", "/v1/timelines", json_pack("{s:s}", "buffer", "256K"));
	id = (int)json_integer_value(json_object_get(begun, "id"));
	json_decref(begun);
	traced_go(&t);
	traced_expect(&t, "done");
	/* This waits until the daemon has read all events. */
	free(ctl_ok(&d, "snapshot", NULL));
	cr_assert_eq(ctl_number(&d, 0, "lost"), 0);
	snprintf(location, sizeof(location), "/v1/timelines/%d", id);
	json_decref(background_api(&d, "DELETE", location, NULL));
	pyprofd_file(&d, "t.json", path, sizeof(path));
	out = fopen(path, "w");
	c = fetch_all(id, out);
	fclose(out);
	target = ctl_target(&d, 0);
	cr_assert(c.dropped > 10000 && c.calls > 100);
	events = (uint64_t)json_integer_value(json_object_get(target, "events"));
	unstarted = (uint64_t)json_integer_value(json_object_get(target, "unstarted"));
	reported = c.calls + c.returns + c.dropped;
	/* returns without a recorded call are neither in the timeline nor in the profile */
	cr_assert(reported <= events && reported >= events - unstarted,
		  "%lu reported, %lu events, %lu unstarted", reported, events, unstarted);
	json_decref(target);
	background_judge(&d,
			 CHROME "assert other['dropped'] > 10000 and not other['complete'], other\n"
				"print('fine')\n");
	text = ctl_ok(&d, "snapshot", NULL);
	cr_assert(strstr(text, "exact"), "%s", text);
	free(text);
	background_finish(&d, &t);
}
