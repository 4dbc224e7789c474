// SPDX-License-Identifier: BSD-2-Clause
/* continuous/: the age of processes, names of services, the budget, filters. Pure parts. */
#include "continuous/continuous.h"

#include <errno.h>

#include "continuous/budget.h"
#include "continuous/candidates.h"
#include "continuous/filter.h"
#include "continuous/service.h"
#include "harness/test.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

/* ---- candidates ---- */

static void add(struct candidates *c, pid_t pid, uint64_t since)
{
	candidates_add(c, &(struct candidate){.pid = pid, .since_ns = since});
}

Test(candidates, only_those_of_an_age)
{
	struct candidates c = {0};
	struct candidate got;

	cr_assert_eq(candidates_due(&c, S), CANDIDATES_LAST);
	add(&c, 1, 1 * S);
	add(&c, 3, 3 * S);
	add(&c, 2, 2 * S); /* out of order */
	cr_assert_eq(candidates_due(&c, S), 2 * S);
	cr_assert_not(candidates_take(&c, 2 * S - 1, S, &got));
	cr_assert(candidates_take(&c, 3 * S, S, &got) && got.pid == 1);
	cr_assert(candidates_take(&c, 3 * S, S, &got) && got.pid == 2);
	cr_assert_not(candidates_take(&c, 3 * S, S, &got));
	candidates_deinit(&c);
	check_no_leaks();
}

Test(candidates, an_exec_begins_again_and_an_end_removes)
{
	struct candidates c = {0};
	struct candidate got;

	add(&c, 1, 1 * S);
	add(&c, 1, 5 * S);
	cr_assert_eq(c.n, 1);
	cr_assert_not(candidates_take(&c, 3 * S, S, &got));
	add(&c, 2, 5 * S);
	cr_assert(candidates_remove(&c, 1, true));
	cr_assert_not(candidates_remove(&c, 1, true));
	cr_assert_eq(c.short_lived, 1);
	cr_assert(candidates_take(&c, 6 * S, S, &got) && got.pid == 2);
	candidates_deinit(&c);
	check_no_leaks();
}

/* Taken, and then it turns out to have ended: its start was counted, so its end is. */
Test(candidates, that_end_before_they_are_looked_at_are_counted)
{
	struct candidates c = {0};
	struct candidate got;

	add(&c, 1, 1 * S);
	add(&c, 2, 0); /* found by a scan */
	cr_assert(candidates_take(&c, 9 * S, S, &got) && got.pid == 2);
	candidates_gone(&c, &got);
	cr_assert_eq(c.short_lived, 0);
	cr_assert(candidates_take(&c, 9 * S, S, &got) && got.pid == 1);
	candidates_gone(&c, &got);
	cr_assert_not(candidates_remove(&c, 1, true),
		      "its end, reported later, is not counted again");
	cr_assert_eq(c.short_lived, 1);
	candidates_deinit(&c);
	check_no_leaks();
}

Test(candidates, are_limited)
{
	struct candidates c = {0};

	for (uint32_t i = 0; i < CANDIDATES_MAX + 10; i++)
		add(&c, (pid_t)(i + 1), i);
	cr_assert_eq(c.n, CANDIDATES_MAX);
	cr_assert_eq(c.overflow, 10);
	candidates_deinit(&c);
	check_no_leaks();
}

Test(candidates, a_foreign_file_is_known_after_some_times)
{
	struct foreign *f = calloc(1, sizeof(*f));
	const struct pyp_arrival_file sh = {1, 2}, none = {0};

	cr_assert_not(foreign_seen(f, &sh));
	cr_assert_not(foreign_seen(f, &sh));
	cr_assert(foreign_seen(f, &sh));
	cr_assert_not(foreign_seen(f, &sh), "once");
	for (int i = 0; i < 5; i++)
		cr_assert_not(foreign_seen(f, &none));
	for (uint64_t i = 0; i < 2 * FOREIGN_MAX; i++)
		cr_assert_not(foreign_seen(f, &(struct pyp_arrival_file){2, i + 1}));
	free(f);
	check_no_leaks();
}

/* ---- service ---- */

static const char *service(const char *unit, const char *container, const char *command)
{
	static char name[SERVICE_MAX];
	struct cgroup_place place = {0};

	snprintf(place.unit, sizeof(place.unit), "%s", unit);
	snprintf(place.container, sizeof(place.container), "%s", container);
	service_name(&place, command, name);
	return name;
}

Test(service, unit_then_container_then_command_line)
{
	cr_assert_str_eq(service("web.service", "", "python3 /srv/app.py"), "web");
	cr_assert_str_eq(service("web.service", "0123456789abcdef", "python3"), "web");
	cr_assert_str_eq(service("", "0123456789abcdef", "python3"), "0123456789ab");
	cr_assert_str_eq(service("user@1000.service", "", "python3 a.py"), "a");
	cr_assert_str_eq(service("session-1.scope", "", "python3 a.py"), "a");
}

Test(service, of_a_command_line)
{
	static const char *const cases[][2] = {
		{"python3 /srv/shop/app.py --password hunter2", "app"},
		{"/usr/bin/python3.11 -u -X dev app.py", "app"},
		{"python3 -m http.server 8000", "http.server"},
		{"python3 -um celery worker", "celery"},
		{"python3 -W error -m pytest", "pytest"},
		{"python3 -c import secret", "python3"},
		{"python3 -Ic import secret", "python3"},
		{"python3", "python3"},
		{"python3 -", "python"},
		{"/usr/bin/gunicorn web:app", "gunicorn"},
		{"gunicorn: worker [web]", "gunicorn"},
		{"uwsgi --ini /etc/secret.ini", "uwsgi"},
		{"", "python"},
		{"   ", "python"},
		{"/", "/"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(cases[i][0], "python3 -") != 0)
			cr_assert_str_eq(service("", "", cases[i][0]), cases[i][1], "'%s': '%s'",
					 cases[i][0], service("", "", cases[i][0]));
	cr_assert(!strstr(service("", "", "python3 -c hunter2"), "hunter2"));
}

Test(service, long_names_are_cut)
{
	char command[5000];

	memset(command, 'x', sizeof(command) - 1);
	command[sizeof(command) - 1] = '\0';
	cr_assert_eq(strlen(service("", "", command)), SERVICE_MAX - 1);
}

/* ---- budget ---- */

Test(budget, savings_pay_for_new_processes)
{
	struct budget b;

	budget_init(&b, 0.005, 0, 0);
	cr_assert(budget_allows(&b));
	budget_update(&b, 1 * S, BUDGET_FIRST_NS + 100 * MS, 0);
	cr_assert_not(budget_allows(&b), "it has a debt of 100 ms");
	budget_update(&b, 15 * S, BUDGET_FIRST_NS + 100 * MS, 0);
	cr_assert_not(budget_allows(&b));
	budget_update(&b, 22 * S, BUDGET_FIRST_NS + 100 * MS, 0);
	cr_assert(budget_allows(&b), "5 ms per second are saved");
}

/* What a client's trace costs, meanwhile and until the next look, is not charged. */
Test(budget, others_pay_for_themselves)
{
	struct budget b;

	budget_init(&b, 0.005, 0, 0);
	cr_assert_eq(budget_own(&b, 10 * MS, 5 * MS, false), 10 * MS, "alone, everything counts");
	cr_assert_eq(budget_own(&b, 20 * MS, 6 * MS, true), 11 * MS, "they have come meanwhile");
	cr_assert_eq(budget_own(&b, 9 * S, 8 * MS, true), 13 * MS);
	cr_assert_eq(budget_own(&b, 10 * S, 9 * MS, false), 14 * MS, "they have gone meanwhile");
	cr_assert_eq(budget_own(&b, 10 * S + 3 * MS, 9 * MS, false), 17 * MS);
	cr_assert_eq(budget_own(&b, 10 * S + 4 * MS, 12 * MS, true), 18 * MS,
		     "never more than all");
}

Test(budget, what_is_saved_is_limited)
{
	struct budget b;

	budget_init(&b, 0.005, 0, 0);
	budget_update(&b, S, BUDGET_FIRST_NS, 0);
	for (uint64_t i = 2; i < 100000; i++)
		budget_update(&b, i * S, BUDGET_FIRST_NS, 0);
	cr_assert_leq(b.saved_ns, (double)BUDGET_SAVE_NS + 0.005 * (double)S);
}

Test(budget, fewer_samples_if_they_cost_too_much)
{
	struct budget b;
	uint64_t now = 0, cpu = 0;

	budget_init(&b, 0.005, 0, 0);
	for (int i = 0; i < 20; i++) {
		now += BUDGET_TURN_NS;
		cpu += BUDGET_TURN_NS / 50; /* 2 % */
		cr_assert_eq(budget_update(&b, now, cpu, cpu), i < 6);
	}
	cr_assert_eq(b.skip, BUDGET_SKIP_MAX);
	cr_assert_eq(b.lowered, 6);
	cr_assert_float_eq(b.used, 0.02, 1e-6);
	for (int i = 0; i < 5; i++) {
		now += BUDGET_TURN_NS;
		cpu += BUDGET_TURN_NS / 250; /* 0.4 %: as many as fit */
		cr_assert_not(budget_update(&b, now, cpu, cpu));
	}
	for (int i = 0; i < 6; i++) {
		now += BUDGET_TURN_NS;
		cpu += BUDGET_TURN_NS / 1000;
		cr_assert(budget_update(&b, now, cpu, cpu));
	}
	cr_assert_eq(b.skip, 1);
}

Test(budget, attaching_does_not_lower_the_rate)
{
	struct budget b;

	budget_init(&b, 0.005, 0, 0);
	cr_assert_not(budget_update(&b, BUDGET_TURN_NS, BUDGET_TURN_NS / 10, 0));
	cr_assert_eq(b.skip, 1);
	cr_assert_not(budget_update(&b, BUDGET_TURN_NS - 1, 0, 0), "clocks that go back");
}

/* ---- filter, options ---- */

static bool admits(const char *match, const char *unit, const char *command, const char *in)
{
	struct filter *f = NULL;
	struct diag diag = {0};
	bool yes;

	assert_diag_ok(filter_new(match, unit, &f, &diag), &diag);
	yes = filter_admits(f, command, in);
	filter_free(f);
	return yes;
}

Test(filter, by_command_line_and_unit)
{
	cr_assert(admits(NULL, NULL, "python3 a.py", ""));
	cr_assert(admits("a\\.py", NULL, "python3 a.py", ""));
	cr_assert_not(admits("b\\.py", NULL, "python3 a.py", ""));
	cr_assert(admits(NULL, "web", "python3", "web.service"));
	cr_assert(admits(NULL, "web.service", "python3", "web.service"));
	cr_assert_not(admits(NULL, "web", "python3", "webs.service"));
	cr_assert_not(admits(NULL, "web", "python3", ""));
	cr_assert_not(admits("a", "web", "b", "web.service"));
	check_no_leaks();
}

Test(filter, invalid_options_are_refused)
{
	char *good = (char *)"zone=eu", *bad = (char *)"Zone=eu", *none = (char *)"zone";
	struct opt_words labels = {.v = {good}, .n = 1};
	struct continuous_opts o = {.labels = &labels};
	struct diag diag = {0};

	assert_diag_ok(continuous_check(&o, &diag), &diag);
	labels.v[0] = bad;
	assert_err(continuous_check(&o, &diag), -EINVAL);
	labels.v[0] = none;
	assert_err(continuous_check(&o, &diag), -EINVAL);
	labels.n = 0;
	o.match = "(";
	diag_clear(&diag);
	assert_err(continuous_check(&o, &diag), -EINVAL);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	check_no_leaks();
}
