// SPDX-License-Identifier: BSD-2-Clause
/* Sums of hours: the same as those of the profiles, whatever interrupts the rollup. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/fleet_rig.h"
#include "harness/reports.h"
#include "harness/test.h"
#include "harness/tool.h"

#define S_PER_HOUR 3600

static uint64_t first_hour; /* since 1970 */

/* The hosts' intervals are spread over four complete hours, and one that is not complete. */
static void begin(const char *mode)
{
	uint64_t now = (uint64_t)time(NULL);

	clickhouse_need();
	first_hour = (now - 600) / S_PER_HOUR - 4;
	fleet_start_ns = first_hour * S_PER_HOUR * 1000000000;
	fleet_step_ns = (now - first_hour * S_PER_HOUR) * UINT64_C(1000000000) / FLEET_HOSTS;
	fleet_make_files(mode);
	clickhouse_start(&fleet_server);
	fleet_use(fleet_server.port);
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	cr_assert(setenv("TZ", "UTC", 1) == 0);
}

TestSuite(fleet_hours, .init = fleet_setup, .fini = fleet_teardown);

static char *ask(const char *sql)
{
	char url[64];
	const char *const curl[] = {"curl", "-sf", "--data-binary", sql, url, NULL};

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/?database=fleet", fleet_server.port);
	return tool_run(curl);
}

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
	char sql[128];

	snprintf(sql, sizeof(sql), "ALTER TABLE profiles DROP PARTITION %llu",
		 (unsigned long long)hour);
	free(ask(sql));
}

/* Afterwards the profiles of these hours are removed: the sums are really those of `hours`. */
static void check_sums(const char *mode)
{
	char *text;

	begin(mode);
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
	text = ask("SELECT count() FROM system.tables WHERE name LIKE 'hours_of%'");
	cr_assert_str_eq(text, "0\n");
	free(text);
}

Test(fleet_hours, sums_are_those_of_the_profiles)
{
	check_sums("trace");
}

Test(fleet_hours, estimates_keep_errors_and_lines)
{
	check_sums("sample");
}

/* Sums that are out of date are not used, and replaced by the next rollup. */
Test(fleet_hours, late_intervals_are_added)
{
	char sql[128];

	begin("trace");
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
	snprintf(sql, sizeof(sql), "OPTIMIZE TABLE profiles PARTITION %llu FINAL",
		 (unsigned long long)first_hour + 1);
	free(ask(sql));
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

static void sleep_ms(unsigned int ms)
{
	const struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

/* Killed at different moments, the server and the client */
Test(fleet_hours, killing_a_rollup_changes_no_sums)
{
	begin("trace");
	fleet_put(0, FLEET_HOSTS);
	for (unsigned int i = 0; i < 8; i++) {
		pid_t pid = start_rollup();

		sleep_ms(50 + 150 * i);
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
	char *columns =
		ask("SELECT arrayStringConcat(groupArray(if(name = 'function', 'if(kind = 1, "
		    "function + 1, function)', name)), ', ') FROM system.columns WHERE "
		    "database = 'fleet' AND table = 'hours'");
	char *sql = NULL;

	cr_assert(asprintf(&sql, "INSERT INTO hours SELECT %s FROM hours WHERE hour = %llu",
			   columns, (unsigned long long)hour) > 0);
	free(ask(sql));
	free(sql);
	free(columns);
}

/*
 * If two rollups replace an hour at the same time, the database may keep the sums of both. They are not used,
 * whether merged or not, and replaced by the next rollup.
 */
Test(fleet_hours, an_hour_that_was_filled_twice)
{
	begin("trace");
	fleet_put(0, FLEET_HOSTS);
	rollup("4");
	for (int merged = 0; merged <= 1; merged++) {
		char sql[128];

		fill_again(first_hour + 1);
		snprintf(sql, sizeof(sql), "OPTIMIZE TABLE hours PARTITION %llu FINAL",
			 (unsigned long long)first_hour + 1);
		if (merged)
			free(ask(sql));
		fleet_assert_all_there();
		rollup("1");
		rollup("0");
		fleet_assert_all_there();
	}
}

Test(fleet_hours, rollups_may_run_at_once)
{
	pid_t pids[3];

	begin("trace");
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
