// SPDX-License-Identifier: BSD-2-Clause
/* Quantiles of durations on both clocks, compared with the program's own, on every interpreter */
#include <stdio.h>

#include "harness/daemon.h"
#include "harness/python.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;

static void setup(void)
{
	pyprofd_init(&d);
}

static void teardown(void)
{
	pyprofd_end(&d);
	traced_stop(&t);
}

TestSuite(durations, .init = setup, .fini = teardown);

/*
 * Buckets have a width of one eighth of an octave; the program's own figures, between which those of the daemon are,
 * are not rounded to them. How much of a call its hits took is uncertain: the report states that as the error of the
 * function's own time.
 */
static const char judge[] =
	"import json, math, sys\n"
	"said = json.load(open(sys.argv[1] + '/said.json'))\n"
	"ours = json.load(open(sys.argv[1] + '/ours.json'))\n"
	"calls = {f['name']: f for f in ours['functions'] if f['file'].endswith('durations.py')}\n"
	"bucket = lambda ns: math.ceil(8 * math.log2(ns))\n"
	"for name, own in said.items():\n"
	"    for clock, said_on in own.items():\n"
	"        d = calls[name]['durations'][clock]\n"
	"        n = sum(n for _, n in d['buckets'])\n"
	"        assert n == said_on['n'] == calls[name]['ncalls'], (name, clock)\n"
	"        each = calls[name].get('error', {}).get('tottime', {}).get(clock, 0) / n\n"
	"        assert each < 25000, (name, clock, each)\n"
	"        for q in 'p50', 'p90', 'p99':\n"
	"            low, high = said_on[q]\n"
	"            low, high = bucket(max(1, low - each)), bucket(high + each)\n"
	"            assert low - 1 <= bucket(d[q]) <= high + 1, (name, clock, q, d[q], "
	"said_on[q], each)\n"
	"        assert bucket(d['max']) >= bucket(said_on['max']) - 1, (name, clock, d['max'])\n"
	"print('fine')\n";

static void durations(const struct interpreter *it)
{
	char path[128], pid[16], *out;
	struct ran r;
	FILE *f;

	traced_ready(&t, NULL, it->exe, "run.py", "durations", NULL);
	pyprofd_launch(&d, "--pid", pid_text(pid, t.pid), NULL);
	pyprofd_ready(&d);
	traced_go(&t);
	traced_expect(&t, "done");
	f = fopen(pyprofd_file(&d, "said.json", path, sizeof(path)), "w");
	cr_assert(f && fputs(t.result, f) >= 0 && fclose(f) == 0);
	pyprofd_file(&d, "ours.json", path, sizeof(path));
	free(ctl_ok(&d, "snapshot", "-o", path, NULL));
	out = python_run(it->exe, judge, d.dir);
	cr_assert_str_eq(out, "fine\n", "%s: %s", it->exe, out);
	free(out);
	out = ctl_ok(&d, "snapshot", "--columns", "p50,p99", "--clock", "wall", "plain", NULL);
	cr_assert(strstr(out, "        p50        p99 filename:"), "%s", out);
	free(out);
	free(ctl_ok(&d, "shutdown", NULL));
	r = pyprofd_wait(&d);
	ran_free(&r);
	traced_finish(&t);
}

Test(durations, are_the_programs)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++)
		durations(&v[i]);
}
