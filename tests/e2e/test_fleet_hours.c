// SPDX-License-Identifier: BSD-2-Clause
/* Sums of hours: the same as those of the profiles, whatever interrupts the rollup. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/fleet_rig.h"
#include "harness/patience.h"
#include "harness/reports.h"
#include "harness/test.h"
#include "harness/tool.h"

#define S_PER_HOUR 3600

static uint64_t first_hour; /* since 1970 */

/* The hosts' intervals are spread over four complete hours, and one that is not complete. */
static void begin(const char *test, const char *mode)
{
	uint64_t now = (uint64_t)time(NULL);

	fleet_begin(test);
	first_hour = (now - 600) / S_PER_HOUR - 4;
	fleet_start_ns = first_hour * S_PER_HOUR * 1000000000;
	fleet_step_ns = (now - first_hour * S_PER_HOUR) * UINT64_C(1000000000) / FLEET_HOSTS;
	fleet_make_files(mode);
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	cr_assert(setenv("TZ", "UTC", 1) == 0);
}

TestSuite(fleet_hours, .init = fleet_setup, .fini = fleet_teardown);

static const char *time_text(uint64_t s, char buf[32])
{
	time_t t = (time_t)s;
	struct tm tm;

	strftime(buf, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
	return buf;
}

static void rollup(const char *hours)
{
	char *text, until[32];

	time_text((first_hour + 4) * S_PER_HOUR, until);
	text = ctl_ok(&fleet_d, "fleet", "rollup", "--to", until, NULL);

	cr_assert(strncmp(text, hours, strlen(hours)) == 0 && text[strlen(hours)] == ' ',
		  "%s, not %s", text, hours);
	free(text);
}

/* The sums of a span and condition, with hours and without, are the same. */
static void assert_span(uint64_t from_s, uint64_t until_s, const char *where)
{
	char from[32], until[32];
	json_t *with, *without;

	time_text(from_s, from);
	time_text(until_s, until);
	with = fleet_parse(ctl_ok(&fleet_d, "fleet", "top", "-f", "json", "--from", from, "--to",
				  until, "-w", where, NULL));
	without = fleet_parse(ctl_ok(&fleet_d, "fleet", "top", "-f", "json", "--from", from, "--to",
				     until, "-w", where, "--no-hours", NULL));
	fleet_assert_same(fleet_functions(with), fleet_functions(without), "functions");
	fleet_assert_same(fleet_edges(with), fleet_edges(without), "edges");
	fleet_assert_near(with, without);
	json_decref(with);
	json_decref(without);
}

static void assert_list(const char *label)
{
	char *with = ctl_ok(&fleet_d, "fleet", label, "-f", "json", "--from", "-9h", NULL);
	char *without =
		ctl_ok(&fleet_d, "fleet", label, "-f", "json", "--from", "-9h", "--no-hours", NULL);

	cr_assert(strstr(with, "\"profiles\""), "%s", with);
	cr_assert_str_eq(with, without);
	free(with);
	free(without);
}

static void drop_hour(uint64_t hour)
{
	free(fleet_ask("ALTER TABLE %s.profiles DROP PARTITION %" PRIu64, fleet_rig_database,
		       hour));
}

/* Afterwards the profiles of these hours are removed: the sums are really those of `hours`. */
static void check_sums(const char *test, const char *mode)
{
	char *text;

	begin(test, mode);
	rollup("0");
	fleet_put(0, FLEET_HOSTS);
	fleet_assert_all_there();
	rollup("4");
	rollup("0");
	fleet_assert_all_there();
	assert_span(first_hour * S_PER_HOUR, (first_hour + 4) * S_PER_HOUR, "service~web");
	assert_span(first_hour * S_PER_HOUR + 1700, (first_hour + 3) * S_PER_HOUR + 1900,
		    "version=1.0");
	assert_span(first_hour * S_PER_HOUR, (first_hour + 4) * S_PER_HOUR, "host~^host0");
	assert_list("services");
	assert_list("hosts");
	for (uint64_t i = 0; i < 4; i++)
		drop_hour(first_hour + i);
	fleet_assert_all_there();
	text = ctl_ok(&fleet_d, "fleet", "services", "-f", "json", "--from", "-9h", NULL);
	cr_assert(strstr(text, "\"hosts\": 20") && strstr(text, "\"profiles\": 20"), "%s", text);
	free(text);
	text = fleet_ask("SELECT count() FROM system.tables WHERE database = '%s' AND name LIKE "
			 "'hours_of%%'",
			 fleet_rig_database);
	cr_assert_str_eq(text, "0\n");
	free(text);
}

static void sums_are_those_of_the_profiles(void)
{
	check_sums(__func__, "trace");
}

static void estimates_keep_errors_and_lines(void)
{
	check_sums(__func__, "sample");
}

/* Sums that are out of date are not used, and replaced by the next rollup. */
static void late_intervals_are_added(void)
{
	begin(__func__, "trace");
	fleet_put(0, 6);
	fleet_put(8, FLEET_HOSTS - 8);
	rollup("4");
	fleet_put(6, 2); /* in the second hour */
	fleet_assert_all_there();
	rollup("1");
	fleet_assert_all_there();
	fleet_put(6, 2); /* again: equal rows, merged or not */
	fleet_assert_all_there();
	rollup("1");
	free(fleet_ask("OPTIMIZE TABLE %s.profiles PARTITION %" PRIu64 " FINAL", fleet_rig_database,
		       first_hour + 1));
	fleet_assert_all_there();
	free(ctl_ok(&fleet_d, "fleet", "rollup", NULL));
	rollup("0");
	fleet_assert_all_there();
}

static pid_t start_rollup(void)
{
	char path[256];
	pid_t pid = fork();

	cr_assert(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "%s/pyprofctl", getenv("PYPROF_BUILD"));
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 1);
	dup2(1, 2);
	execl(path, path, "fleet", "rollup", NULL);
	_exit(127);
}

/* Killed at different moments, the server and the client */
static void killing_a_rollup_changes_no_sums(void)
{
	begin(__func__, "trace");
	fleet_put(0, FLEET_HOSTS);
	for (unsigned int i = 0; i < 6; i++) {
		const unsigned int ms = 50 + 150 * i;
		pid_t pid = start_rollup();

		patience_pass(ms);
		if (i % 2)
			kill(pid, SIGKILL);
		else
			clickhouse_kill(&fleet_server);
		cr_assert(waitpid(pid, NULL, 0) == pid);
		if (i % 2 == 0)
			clickhouse_restart(&fleet_server);
		fleet_assert_all_there();
	}
	free(ctl_ok(&fleet_d, "fleet", "rollup", NULL));
	rollup("0");
	fleet_assert_all_there();
	for (uint64_t i = 0; i < 4; i++)
		drop_hour(first_hour + i);
	fleet_assert_all_there();
}

/* As another rollup would */
static void fill_again(uint64_t hour)
{
	_cleanup_free_ char *columns =
		fleet_ask("SELECT arrayStringConcat(groupArray(if(name = 'function', 'if(kind = 1, "
			  "function + 1, function)', name)), ', ') FROM system.columns WHERE "
			  "database = '%s' AND table = 'hours'",
			  fleet_rig_database);

	free(fleet_ask("INSERT INTO %s.hours SELECT %s FROM %s.hours WHERE hour = %" PRIu64,
		       fleet_rig_database, columns, fleet_rig_database, hour));
}

/*
 * If two rollups replace an hour at the same time, the database may keep the sums of both. They are not used,
 * whether merged or not, and replaced by the next rollup.
 */
static void an_hour_that_was_filled_twice(void)
{
	begin(__func__, "trace");
	fleet_put(0, FLEET_HOSTS);
	rollup("4");
	for (int merged = 0; merged <= 1; merged++) {
		fill_again(first_hour + 1);
		if (merged)
			free(fleet_ask("OPTIMIZE TABLE %s.hours PARTITION %" PRIu64 " FINAL",
				       fleet_rig_database, first_hour + 1));
		fleet_assert_all_there();
		rollup("1");
		rollup("0");
		fleet_assert_all_there();
	}
}

static void rollups_may_run_at_once(void)
{
	pid_t pids[3];

	begin(__func__, "trace");
	fleet_put(0, FLEET_HOSTS);
	for (int i = 0; i < 3; i++)
		pids[i] = start_rollup();
	for (int i = 0; i < 3; i++) {
		int status = -1;

		cr_assert(waitpid(pids[i], &status, 0) == pids[i]);
		cr_assert_eq(status, 0);
	}
	rollup("0");
	fleet_assert_all_there();
	for (uint64_t i = 0; i < 4; i++)
		drop_hour(first_hour + i);
	fleet_assert_all_there();
}

Test(fleet_hours, in_clickhouse)
{
	sums_are_those_of_the_profiles();
	estimates_keep_errors_and_lines();
	late_intervals_are_added();
	an_hour_that_was_filled_twice();
	rollups_may_run_at_once();
	killing_a_rollup_changes_no_sums();
}
