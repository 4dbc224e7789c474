// SPDX-License-Identifier: BSD-2-Clause
/* Profiles of simulated hosts in a real ClickHouse, compared with the merge of the same files. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/fleet_rig.h"
#include "harness/patience.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "harness/tool.h"

TestSuite(fleet, .init = fleet_setup, .fini = fleet_teardown);

static void sums_are_those_of_the_merged_files(void)
{
	char *text;

	fleet_begin(__func__);
	fleet_make_files("trace");
	ctl_fails(&fleet_d, PYP_EXIT_FAILURE, "fleet init", "fleet", "top", NULL);
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	ctl_fails(&fleet_d, PYP_EXIT_FAILURE, "no profiles match", "fleet", "top", NULL);
	fleet_put(0, FLEET_HOSTS);
	fleet_assert_all_there();
	fleet_put(4, 8); /* once more */
	fleet_assert_all_there();
	text = ctl_ok(&fleet_d, "fleet", "hosts", "-w", "service=it's \"web\" \\ 100%", "-w",
		      "zone=south\t'", "-w", "version!=1.0", "-w", "host~^host0", NULL);
	cr_assert(strstr(text, "host00") && strstr(text, "host04") && strstr(text, "host08"));
	cr_assert(!strstr(text, "host01") && !strstr(text, "host02") && !strstr(text, "host12"));
	free(text);
	ctl_fails(&fleet_d, PYP_EXIT_FAILURE, "no profiles match", "fleet", "top", "--to", "-1h",
		  "--from", "-2h", NULL);
	ctl_fails(&fleet_d, PYP_EXIT_FAILURE, "no profiles match", "fleet", "top", "-w",
		  "service=' OR 1 = 1 OR '\\' = '", NULL);
}

/* Of the same database */
static void reports_are_those_of_snapshots(void)
{
	char page[128], *text;

	text = ctl_ok(&fleet_d, "fleet", "top", "-s", "calls", "-l", "3", "handle", NULL);
	cr_assert(strstr(text, "20 processes of service it's") && strstr(text, "20 hosts") &&
			  strstr(text, "(handle)"),
		  "%s", text);
	free(text);
	text = ctl_ok(&fleet_d, "fleet", "tree", NULL);
	cr_assert(strstr(text, "below") && strstr(text, "20 profiles"), "%s", text);
	free(text);
	text = ctl_ok(&fleet_d, "fleet", "diff", "-w", "version=2.0", "--before-where",
		      "version=1.0", "--force", NULL);
	cr_assert(strstr(text, "tokens"), "%s", text);
	free(text);
	pyprofd_file(&fleet_d, "fleet.html", page, sizeof(page));
	free(ctl_ok(&fleet_d, "fleet", "html", "-o", page, NULL));
	text = file_text(page, NULL);
	cr_assert(text && strstr(text, "tokens"));
	free(text);
	text = ctl_ok(&fleet_d, "fleet", "services", "-f", "json", NULL);
	cr_assert(strstr(text, "\"hosts\": 20") && strstr(text, "\"profiles\": 20"), "%s", text);
	free(text);
}

/* Estimates have errors and lines. */
static void samples_keep_errors_and_lines(void)
{
	fleet_begin(__func__);
	fleet_make_files("sample");
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	fleet_put(0, FLEET_HOSTS);
	fleet_put(0, FLEET_HOSTS);
	fleet_assert_all_there();
}

static void modes_are_not_added(void)
{
	char *text;

	fleet_begin(__func__);
	fleet_make_files("sample");
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	free(ctl_ok(&fleet_d, "fleet", "insert", fleet_files[0], NULL));
	fleet_save(snapshot_random(1), 1);
	free(ctl_ok(&fleet_d, "fleet", "insert", fleet_files[1], NULL));
	ctl_fails(&fleet_d, PYP_EXIT_USAGE, "different mode", "fleet", "top", NULL);
	text = ctl_ok(&fleet_d, "fleet", "top", "-w", "mode=sample", NULL);
	cr_assert(strstr(text, "mode sample"), "%s", text);
	free(text);
}

/* Starts `fleet insert` of all files and returns its pid. */
static pid_t start_insert(void)
{
	char program_path[256];
	const char *argv[FLEET_HOSTS + 4] = {program_path, "fleet", "insert"};
	pid_t pid = fork();

	cr_assert(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(program_path, sizeof(program_path), "%s/pyprofctl", getenv("PYPROF_BUILD"));
	for (int i = 0; i < FLEET_HOSTS; i++)
		argv[3 + i] = fleet_files[i];
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 1);
	dup2(1, 2);
	execv(program_path, (char *const *)argv);
	_exit(127);
}

/* The server is killed at different moments of an insert, which is then repeated. */
static void killing_the_server_loses_and_doubles_nothing(void)
{
	fleet_begin(__func__);
	fleet_make_files("trace");
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	fleet_put(0, 10); /* acknowledged, so these must still be there */
	clickhouse_kill(&fleet_server);
	ctl_fails(&fleet_d, PYP_EXIT_FAILURE, "cannot reach", "fleet", "top", NULL);
	for (unsigned int ms = 20; ms < 320; ms += 90) {
		char *text;
		pid_t pid;

		clickhouse_restart(&fleet_server);
		text = ctl_ok(&fleet_d, "fleet", "services", "-f", "json", NULL);
		cr_assert(strstr(text, "\"hosts\": 10") || strstr(text, "\"hosts\": 20"), "%s",
			  text);
		free(text);
		pid = start_insert();
		patience_pass(ms);
		clickhouse_kill(&fleet_server);
		cr_assert(waitpid(pid, NULL, 0) == pid);
	}
	clickhouse_restart(&fleet_server);
	fleet_put(10, 10);
	fleet_assert_all_there();
}

/* The server has the rows, the client does not know it and inserts them again. */
static void answers_that_are_cut_off_double_nothing(void)
{
	static const char *const tables[] = {"functions", "stacks", "profiles"};
	pid_t cutter;

	fleet_begin(__func__);
	fleet_make_files("trace");
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	for (int table = 0; table < 3; table++) {
		fleet_use(clickhouse_start_cutter(&fleet_server, FLEET_HOSTS, tables[table],
						  &cutter));
		for (unsigned int i = 0; i < FLEET_HOSTS; i++)
			ctl_fails(&fleet_d, PYP_EXIT_FAILURE, "cannot reach", "fleet", "insert",
				  fleet_files[i], NULL);
		kill(cutter, SIGKILL);
		cr_assert(waitpid(cutter, NULL, 0) == cutter);
	}
	fleet_use(fleet_server.port);
	fleet_assert_all_there();
	fleet_put(0, FLEET_HOSTS);
	fleet_assert_all_there();
}

Test(fleet, in_clickhouse)
{
	sums_are_those_of_the_merged_files();
	reports_are_those_of_snapshots();
	samples_keep_errors_and_lines();
	modes_are_not_added();
	answers_that_are_cut_off_double_nothing();
	killing_the_server_loses_and_doubles_nothing();
}
