// SPDX-License-Identifier: BSD-2-Clause
/* server/metrics: what GET /metrics has, in the formats of text. */
#include "server/routes.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "fakes/sessions.c"
#include "harness/test.h"

static struct routes_ctx ctx;
static struct response rs;

static void setup(void)
{
	struct sessions *ss;

	assert_ok(sessions_new(NULL, NULL, &ss, NULL));
	assert_ok(sessions_attach(ss, 42, true, NULL, NULL));
	ctx = (struct routes_ctx){.sessions = ss};
	response_init(&rs);
}

static void teardown(void)
{
	sessions_free(ctx.sessions);
	totals_deinit(&ctx.totals);
	response_deinit(&rs);
	check_no_leaks();
}

TestSuite(metrics, .init = setup);

static char *body(void)
{
	char *ret = calloc(1, rs.size + 1);

	cr_assert(rs.fd >= 0);
	cr_assert(pread(rs.fd, ret, rs.size, 0) == (ssize_t)rs.size);
	return ret;
}

/* Metrics are written to a file: put them into rs.body. */
static unsigned int ask_metrics(const char *accept)
{
	const struct routes_input in = {
		.method = "GET", .uri = "/metrics", .body = "", .accept = accept};

	response_deinit(&rs);
	routes_dispatch(&ctx, &in, &rs, &(struct routes_wait){0});
	rs.body = body();
	return rs.status;
}

Test(metrics, of_targets)
{
	cr_assert(ask_metrics(NULL) == 200);
	cr_assert(strncmp(rs.mime, "application/openmetrics-text; version=1.0.0", 43) == 0);
	cr_assert(strlen(rs.body) == rs.size);
	cr_assert(strstr(rs.body, "pyprofd_targets{state=\"tracing\"} 1\n"));
	cr_assert(strstr(rs.body, "cmdline=\"python3 \\\"app\\\".py\\n\\\\ ?\"} 1\n"));
	cr_assert(strstr(rs.body, "pyprofd_events_total{pid=\"42\"} 100\n"));
	cr_assert(strstr(rs.body, "pyprofd_traced_seconds_total{pid=\"42\"} 1.500000000\n"));
	cr_assert(strstr(rs.body, "pyprofd_overhead_ratio{pid=\"42\"} 0.500000\n"));
	cr_assert(strstr(rs.body, "pyprofd_overhead_seconds_total{pid=\"42\"} 0.300000000\n"));
	cr_assert(strstr(rs.body, "pyprofd_own_cpu_seconds_total{pid=\"42\"} 1.200000000\n"));
	cr_assert_str_eq(rs.body + rs.size - 6, "# EOF\n");
	teardown();
}

/* The older format, if it is asked for: no OpenMetrics types, units and end; suffixes in the names. */
Test(metrics, in_the_older_format)
{
	ask_metrics("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5");
	cr_assert(strstr(rs.mime, "openmetrics") && strstr(rs.body, "# EOF\n"));
	ask_metrics("text/plain;version=0.0.4");
	cr_assert_str_eq(rs.mime, "text/plain; version=0.0.4; charset=utf-8");
	cr_assert(strstr(rs.body, "# TYPE pyprofd_target_info gauge\n"));
	cr_assert(strstr(rs.body, "# TYPE pyprofd_events_total counter\n"));
	cr_assert(strstr(rs.body, "# HELP pyprofd_events_total Traced"));
	cr_assert(strstr(rs.body, "# TYPE pyprofd_threads gauge\n"));
	cr_assert(strstr(rs.body, "pyprofd_events_total{pid=\"42\"} "));
	cr_assert(!strstr(rs.body, "# UNIT") && !strstr(rs.body, "# EOF"));
	cr_assert(!strstr(rs.body, " info\n"));
	teardown();
}

/* OpenMetrics: the lines of a family are together, and every line but a comment has a value. */
Test(metrics, are_well_formed)
{
	char family[64] = "", *save = NULL;

	assert_ok(sessions_attach(ctx.sessions, 43, true, NULL, NULL));
	ctx.metrics_functions = 20;
	cr_assert(ask_metrics(NULL) == 200);
	for (char *line = strtok_r(rs.body, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "# TYPE ", 7) == 0)
			snprintf(family, sizeof(family), "%.*s", (int)strcspn(line + 7, " "),
				 line + 7);
		else if (line[0] != '#')
			cr_assert(strncmp(line, family, strlen(family)) == 0 &&
					  strrchr(line, ' ') &&
					  strchr("0123456789", strrchr(line, ' ')[1]),
				  "%s", line);
	}
	teardown();
}

/* Functions of each target that has not ended; snapshots are taken once a second at most. */
Test(metrics, of_functions)
{
	static const char line[] =
		"pyprofd_function_calls_total{pid=\"42\",function=\"app.py:1(main)\"} 1\n";

	ctx.sessions->funcs = 100;
	cr_assert(ask_metrics(NULL) == 200);
	cr_assert(!strstr(rs.body, "app.py"), "0 is none");
	ctx.metrics_functions = 5;
	ask_metrics(NULL);
	cr_assert(strstr(rs.body, line), "%s", rs.body);
	cr_assert(strstr(rs.body,
			 "pyprofd_function_self_seconds_total{pid=\"42\",function=\"app.py:"
			 "1(main)\",clock=\"wall\"} 0.000002000\n"),
		  "%s", rs.body);
	cr_assert(ctx.totals.n == 1 && ctx.totals.v[0].n == 101);
	cr_assert(ctx.sessions->snapshots == 1);
	ask_metrics(NULL);
	cr_assert(ctx.sessions->snapshots == 1 && strstr(rs.body, line));
	ctx.totals.at_ns -= CLOCK_NS_PER_S;
	ask_metrics(NULL);
	cr_assert(ctx.sessions->snapshots == 2 && strstr(rs.body, line), "no calls since");
	ctx.sessions->st[0].state = SESSION_ENDED;
	ctx.totals.at_ns -= CLOCK_NS_PER_S;
	ask_metrics(NULL);
	cr_assert(!strstr(rs.body, "app.py:") && ctx.totals.n == 0);
	cr_assert(strstr(rs.body, "pyprofd_events_total{pid=\"42\"}"));
	teardown();
}
