// SPDX-License-Identifier: BSD-2-Clause
/*
 * Resource counters of functions with known usage, compared with the kernel's counters around each
 * call, on every interpreter.
 */
#include <stdio.h>

#include "harness/daemon.h"
#include "harness/python.h"
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

TestSuite(counters, .init = setup, .fini = teardown);

/*
 * The allowed difference: the kernel's figures include the end of the reading before the call and
 * the beginning of the reading after it; those of the profiler do not.
 */
static const char judge[] =
	"import json, sys\n"
	"said = json.load(open(sys.argv[1] + '/said.json'))\n"
	"ours = json.load(open(sys.argv[1] + '/ours.json'))\n"
	"slack = dict(vcsw=2, ivcsw=20, minflt=20, majflt=2, rbytes=400, wbytes=0)\n"
	"assert ours['columns']['counters'] == list(slack), ours['columns']\n"
	"calls = {f['name']: f for f in ours['functions'] if f['file'].endswith('resources.py')}\n"
	"twice = said.pop('nested')\n"
	"for name, kernel in said.items():\n"
	"    counters = calls[name]['counters_cum']\n"
	"    for key, n in kernel.items():\n"
	"        cum = counters[key]\n"
	"        if name == 'read_bytes':\n"
	"            n += twice[key]\n"
	"        assert n - slack[key] <= cum <= n + slack[key], (name, key, n, counters)\n"
	"def own(name, key): return calls[name]['counters'][key]\n"
	"def cum(name, key): return calls[name]['counters_cum'][key]\n"
	"assert own('read_bytes', 'rbytes') == 2 * 37 * 10000\n"
	"assert own('write_bytes', 'wbytes') == 23 * 3000\n"
	"assert own('sleep_often', 'vcsw') >= said['sleep_often']['vcsw'] - slack['vcsw']\n"
	"assert own('sleep_often', 'vcsw') >= 10\n"
	"assert own('touch_pages', 'minflt') >= 1\n"
	"assert calls['nested']['ncalls'] == 6\n"
	"assert own('nested', 'rbytes') == 0 and cum('nested', 'rbytes') == 37 * 10000\n"
	"assert cum('main', 'rbytes') >= 3 * 37 * 10000 - 37 * 10000\n"
	"print('fine')\n";

static void resources(const struct interpreter *it)
{
	char path[128], *out;
	struct ran r;
	FILE *f;

	traced_ready(&t, NULL, it->exe, "run.py", "resources", NULL);
	pyprofd_launch(&d, "--pid", pid_text(pid, t.pid), "--counters", "all", NULL);
	pyprofd_ready(&d);
	traced_go(&t);
	traced_expect(&t, "done");
	f = fopen(pyprofd_file(&d, "said.json", path, sizeof(path)), "w");
	cr_assert(f && fputs(t.result, f) >= 0 && fclose(f) == 0);
	pyprofd_file(&d, "ours.json", path, sizeof(path));
	free(ctl_ok(&d, "snapshot", "-o", path, NULL));
	out = python_run(it->exe, judge, d.dir);
	cr_assert_str_eq(out, "fine\n", "%s", out);
	free(out);
	free(ctl_ok(&d, "shutdown", NULL));
	r = pyprofd_wait(&d);
	ran_free(&r);
	traced_finish(&t);
}

Test(counters, are_the_kernels)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++)
		resources(&v[i]);
}

Test(counters, on_the_command_line)
{
	char path[128], *text;

	traced_ready(&t, pid, traced_newest().exe, "run.py", "resources", NULL);
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	ctl_fails(&d, PYP_EXIT_USAGE, "unknown resource", "attach", "--counters", "bogus", pid,
		  NULL);
	free(ctl_ok(&d, "attach", "--counters", "vcsw,io", pid, NULL));
	traced_go(&t);
	traced_expect(&t, "done");
	text = ctl_ok(&d, "counters", "-l", "2", NULL);
	cr_assert(strstr(text, "bytes read (rbytes)") && strstr(text, "read_bytes)") &&
			  !strstr(text, "faults"),
		  "%s", text);
	free(text);
	pyprofd_file(&d, "m.csv", path, sizeof(path));
	free(ctl_ok(&d, "snapshot", "-o", path, NULL));
	text = file_text(path, NULL);
	cr_assert(strstr(text, ",counters_vcsw_self,counters_vcsw_cum,counters_rbytes_self,"
			       "counters_rbytes_cum,counters_wbytes_self,counters_wbytes_cum"));
	free(text);
	pyprofd_file(&d, "m.json", path, sizeof(path));
	free(ctl_ok(&d, "snapshot", "-o", path, NULL));
	text = ctl_ok(&d, "report", path, "-f", "counters", "sleep_often", NULL);
	cr_assert(strstr(text, "(sleep_often)"), "%s", text);
	free(text);
	free(ctl_ok(&d, "detach", pid, NULL));
	free(ctl_ok(&d, "attach", pid, NULL));
	ctl_fails(&d, PYP_EXIT_FAILURE, "no resources were counted", "counters", NULL);
	ctl_fails(&d, PYP_EXIT_FAILURE, "memory was not measured", "memory", NULL);
}

/* `record` and `run` also accept the option. */
Test(counters, recorded)
{
	char path[128], *text;

	traced_ready(&t, NULL, traced_newest().exe, "run.py", "resources", NULL);
	pyprofd_file(&d, "m.csv", path, sizeof(path));
	free(ctl_ok(&d, "run", "--counters", "faults", "-o", path, "--", traced_newest().exe, "-c",
		    "def f(): return 1\nf()", NULL));
	text = file_text(path, NULL);
	cr_assert(strstr(text, ",counters_minflt_self,counters_minflt_cum,counters_majflt_self,"
			       "counters_majflt_cum"),
		  "%s", text);
	free(text);
	ctl_fails(&d, PYP_EXIT_USAGE, "unknown resource", "run", "--counters", "bogus", "--",
		  traced_newest().exe, NULL);
	free(ctl_ok(&d, "record", "--counters", "io", "-d", "100ms", "-o", path, "--pid",
		    pid_text(pid, t.pid), NULL));
	text = file_text(path, NULL);
	cr_assert(strstr(text, ",counters_rbytes_self,counters_rbytes_cum,counters_wbytes_self,"
			       "counters_wbytes_cum"),
		  "%s", text);
	free(text);
	ctl_fails(&d, PYP_EXIT_USAGE, "without --counters", "record", "--counters", "io",
		  "--max-overhead", "5", "--pid", pid, NULL);
}

/*
 * Compares with the program's own measurement of each function's growth: within 2 %, plus the slack
 * of 40 pages, which the kernel counts per CPU before it adds them up, and of allocations between
 * the program's readings.
 */
static const char judge_memory[] =
	"import json, os, sys\n"
	"said, known = json.load(open(sys.argv[1] + '/said.json'))\n"
	"ours = json.load(open(sys.argv[1] + '/ours.json'))\n"
	"slack = max(40, 32 * os.cpu_count()) * 4096\n"
	"assert 'memory' in ours['columns'] and 'counters' not in ours['columns'], "
	"ours['columns']\n"
	"rows = {f['name']: f['memory'] for f in ours['functions'] if "
	"f['file'].endswith('memory.py')}\n"
	"for name, change in said:\n"
	"    m = rows[name]\n"
	"    net = m['grown'] - m['shrunk']\n"
	"    assert abs(net - change) <= abs(change) / 50 + slack, (name, change, m)\n"
	"    assert abs(change) > 5 << 20, (name, change)\n"
	"    assert min(m['grown'], m['shrunk']) <= slack, (name, m)\n"
	"assert rows['grow_large']['large'] == 4, rows\n"
	"live = {n: m['live'] for n, m in rows.items()}\n"
	"assert 0 <= live['keep_large'] - known['live'] <= known['live'] / 50, (live, known)\n"
	"assert rows['keep_large']['large'] == 3, rows\n"
	"assert not any(live[n] for n in ('shrink', 'drop_huge', 'take_large', 'grow_large')), "
	"live\n"
	"assert rows['take_large']['mapped'] > known['live'] / 2, rows\n"
	"assert rows['drop_large']['unmapped'] == rows['take_large']['mapped'], rows\n"
	"pools = rows['grow_pools']['pools']\n"
	"assert known['pools'] > 1000\n"
	"assert abs(pools - known['pools']) <= known['pools'] / 50, (pools, known)\n"
	"assert rows['drop_huge']['unmapped'] >= 16 << 20, rows\n"
	"print('fine')\n";

static void growth(const struct interpreter *it, const char *mode)
{
	char path[128], *out;
	struct ran r;
	FILE *f;

	traced_ready(&t, NULL, it->exe, "run.py", "memory", NULL);
	pyprofd_launch(&d, "--pid", pid_text(pid, t.pid), "--counters", "memory", "--no-verify",
		       "--mode", mode, NULL);
	pyprofd_ready(&d);
	traced_go(&t);
	traced_expect(&t, "done");
	f = fopen(pyprofd_file(&d, "said.json", path, sizeof(path)), "w");
	cr_assert(f && fputs(t.result, f) >= 0 && fclose(f) == 0);
	pyprofd_file(&d, "ours.json", path, sizeof(path));
	free(ctl_ok(&d, "snapshot", "-o", path, NULL));
	out = ctl_ok(&d, "memory", NULL);
	cr_assert(strstr(out, "(leak)"), "%s", out);
	free(out);
	out = python_run(it->exe, judge_memory, d.dir);
	cr_assert_str_eq(out, "fine\n", "%s, mode %s: %s", it->exe, mode, out);
	free(out);
	free(ctl_ok(&d, "shutdown", NULL));
	r = pyprofd_wait(&d);
	ran_free(&r);
	traced_finish(&t);
}

Test(counters, of_memory)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++)
		growth(&v[i], "trace");
}

/* The same figures without probes, and, of some of them, with half of these: each change has its stack. */
Test(counters, of_memory_in_other_modes)
{
	static const char *const modes[] = {"sample", "count"};
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < 2; k++)
			if (i % 2 == k || i + 1 == n)
				growth(&v[i], modes[k]);
}
