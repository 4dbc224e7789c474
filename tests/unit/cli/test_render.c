// SPDX-License-Identifier: BSD-2-Clause
/* cli/render: the status table, compared exactly. */
#include "render.h"

#include "base/cleanup.h"
#include "harness/test.h"

static char *render_at(const char *text, int width)
{
	json_t *status = json_loads(text, 0, NULL);
	char *out = NULL;
	size_t n;
	FILE *f = open_memstream(&out, &n);

	cr_assert(status);
	render_status(status, width, f);
	fclose(f);
	json_decref(status);
	return out;
}

static char *render(const char *text)
{
	return render_at(text, 80);
}

/* COMMAND has the columns that are left; what is not a terminal has no columns. */
Test(render, width)
{
	static const char text[] =
		"{\"targets\": [{\"pid\": 1, \"cmdline\": \"/usr/bin/python3 /srv/shop/app.py "
		"--port 80\","
		" \"warning\": \"a warning of more than forty characters, which is long\"}]}";
	_cleanup_free_ char *narrow = render_at(text, 20), *wide = render_at(text, 90);
	_cleanup_free_ char *all = render_at(text, 0);

	cr_assert(strstr(narrow, " python3 \n"), "%s", narrow);
	cr_assert(strstr(narrow, " warning: a warning of more than forty characters,\n"), "%s",
		  narrow);
	cr_assert(strstr(wide, " python3 /srv/shop/app.p\n"), "%s", wide);
	cr_assert(strstr(all, " python3 /srv/shop/app.py --port 80\n"), "%s", all);
	cr_assert(strstr(all, "which is long\n"), "%s", all);
	check_no_leaks();
}

Test(render, status)
{
	_cleanup_free_ char *out = render(
		"{\"targets\": ["
		"{\"pid\": 42, \"state\": \"tracing\", \"cmdline\": \"/usr/bin/python3 app.py "
		"--port 80\","
		" \"python_version\": \"3.13.5\", \"traced_ns\": 12345678901, \"events\": "
		"123456789,"
		" \"events_per_s\": 250000, \"lost\": 0, \"threads\": 3, \"functions\": 120,"
		" \"end_reason\": \"\", \"warning\": \"\"},"
		"{\"pid\": 4194304, \"state\": \"ended\", \"cmdline\": \"python\","
		" \"python_version\": \"3.15.0a1+\", \"traced_ns\": 7260000000000,"
		" \"events\": 12345678901, \"events_per_s\": 1999999, \"lost\": 17, \"threads\": 1,"
		" \"functions\": 1, \"end_reason\": \"exited\", \"warning\": \"odd\"}]}");

	cr_assert_str_eq(
		out, "    PID STATE    PYTHON  TRACED    EVENTS   EV/S   LOST THR FUNCS COMMAND\n"
		     "     42 tracing  3.13.5   12.3s 123456789 250000      0   3   120 python3 "
		     "app.p\n"
		     "4194304 ended    3.15.0a  2h01m     12.3G   2.0M     17   1     1 python\n"
		     "     42 overhead 0.0%\n"
		     "4194304 ended: exited\n"
		     "4194304 warning: odd\n"
		     "4194304 events were lost: counts are lower bounds\n");
}

/* Lately while it is observed, and in all, as far as they are known. */
Test(render, overhead)
{
	_cleanup_free_ char *out = render(
		"{\"targets\": [{\"pid\": 1, \"state\": \"tracing\", \"overhead\": 0.031,"
		"  \"overhead_in_all\": 0.029,"
		"  \"windows\": {\"max_overhead_percent\": 5, \"count\": 9, \"cpu_share\": 0.5}},"
		"{\"pid\": 2, \"state\": \"attached\", \"overhead\": 0.0,"
		"  \"overhead_in_all\": 0.029},"
		"{\"pid\": 4, \"state\": \"tracing\", \"overhead\": 0.01,"
		"  \"windows\": {\"max_overhead_percent\": 10, \"sampled\": false, \"count\": 0,"
		"  \"cpu_share\": 0.0}},"
		"{\"pid\": 3, \"state\": \"ended\", \"overhead_in_all\": null}]}");

	cr_assert(strstr(out,
			 "\n      1 overhead 3.1%, 2.9% in all (limit 5%); 9 windows cover 50.0% "
			 "of its C"),
		  "%s", out);
	cr_assert(strstr(out, "\n      2 overhead 2.9% in all\n"), "%s", out);
	cr_assert(!strstr(out, "      3 overhead"), "%s", out);
	cr_assert(strstr(out, "\n      4 overhead 1.0% (limit 10%); every call is traced\n"), "%s",
		  out);
}

Test(render, mechanism)
{
	_cleanup_free_ char *out =
		render("{\"targets\": [{\"pid\": 1, \"mechanism\": \"multi\"},"
		       "{\"pid\": 2, \"mechanism\": \"tracefs\"},"
		       "{\"pid\": 3, \"mechanism\": \"multi-all\", \"self_test\": \"passed\"},"
		       "{\"pid\": 4, \"self_test\": \"not verified: why\"}]}");

	cr_assert(strstr(out, "\n      2 attached through tracefs: stopping takes longer\n"), "%s",
		  out);
	cr_assert(strstr(out, "\n      3 warning: probes slow all"), "%s", out);
	cr_assert(!strstr(out, "      1 attached"), "%s", out);
	cr_assert(strstr(out, "\n      4 not verified: why\n"), "%s", out);
	cr_assert(!strstr(out, "passed"), "%s", out);
}

Test(render, no_targets)
{
	_cleanup_free_ char *out = render("{\"targets\": []}");
	_cleanup_free_ char *odd = render("{}");

	cr_assert_str_eq(out, "no targets; `pyprofctl attach PID` attaches one\n");
	cr_assert_str_eq(odd, out);
}

/* A daemon's response may contain any text, since a target chooses its own name. */
Test(render, hostile_text)
{
	_cleanup_free_ char *out = render("{\"targets\": [{\"pid\": -1, \"state\": 7, \"cmdline\": "
					  "\"a\\n\\u001b[2J\\u009bé\","
					  " \"events\": \"x\", \"warning\": \"w\\rx\"}]}");

	cr_assert(strstr(out, " a??[2J?é\n"), "%s", out);
	cr_assert(strstr(out, "warning: w?x\n"));
}

Test(render, lines_stay_below_80_columns)
{
	_cleanup_free_ char *out = render(
		"{\"targets\": [{\"pid\": 4194304, \"state\": \"a state too long to be true\","
		" \"cmdline\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\","
		" \"python_version\": \"3.15.0a1+dirty\", \"traced_ns\": 8639999000000000,"
		" \"events\": 9223372036854775807, \"events_per_s\": 9223372036854775807,"
		" \"lost\": 9223372036854775807, \"threads\": 999, \"functions\": 99999}]}");

	for (const char *line = out; *line; line = strchr(line, '\n') + 1)
		cr_assert(strcspn(line, "\n") < 80, "%zu: %s", strcspn(line, "\n"), line);
}

Test(render, count)
{
	static const struct {
		uint64_t v;
		int width;
		const char *s;
	} cases[] = {
		{0, 6, "0"},
		{999999, 6, "999999"},
		{1000000, 6, "1.0M"},
		{1949999, 6, "1.9M"},
		{999950, 5, "1.0M"},
		{999949, 5, "999.9k"},
		{UINT64_MAX, 6, "18.4E"},
	};
	char s[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_str_eq(render_count(cases[i].v, cases[i].width, s, sizeof(s)),
				 cases[i].s);
}

Test(render, duration)
{
	static const struct {
		uint64_t ns;
		const char *s;
	} cases[] = {
		{0, "0.0s"},
		{99999999999, "99.9s"},
		{100000000000, "1m40s"},
		{5999000000000, "99m59s"},
		{6000000000000, "1h40m"},
		{360000000000000, "4d04h"},
	};
	char s[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_str_eq(render_duration(cases[i].ns, s, sizeof(s)), cases[i].s);
}

Test(render, attaching)
{
	_cleanup_free_ char *alone =
		render("{\"targets\": [], \"attaching\": [{\"pid\": 42, \"step\": \"planning\"}]}");
	_cleanup_free_ char *both = render("{\"targets\": [{\"pid\": 1}], \"attaching\": "
					   "[{\"pid\": 42, \"step\": \"planning\"}]}");

	cr_assert_str_eq(alone, "     42 attaching: planning\n");
	cr_assert(strstr(both, "     42 attaching: planning\n    PID STATE"), "%s", both);
}
