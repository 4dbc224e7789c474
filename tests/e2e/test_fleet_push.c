// SPDX-License-Identifier: BSD-2-Clause
/* What daemons send to ClickHouse: the rows of their intervals, and each name once. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/fleet_rig.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "interval/interval.h"
#include "push/kinds.h"
#include "push/transport.h"

TestSuite(fleet_push, .init = fleet_setup, .fini = fleet_teardown);

/* As a daemon's sender, without its process */
static struct transport *start_sending(int port)
{
	static const struct transport_opts opts;
	struct transport_secrets secrets = {.token = ""};
	struct transport *t = NULL;
	struct push_url parsed;
	struct diag diag = {0};
	char url[128];

	assert_diag_ok(push_url_parse(fleet_url(port, url, sizeof(url)), &parsed, &diag), &diag);
	assert_diag_ok(transport_new(&parsed, push_kind_find("clickhouse", NULL), &opts, &secrets,
				     &t, &diag),
		       &diag);
	return t;
}

static struct push_request *request_of(unsigned int host)
{
	struct push_request *rq = NULL;
	struct interval *iv = NULL;
	struct diag diag = {0};
	size_t n = 0;
	char *text = file_text(fleet_files[host], &n);

	assert_diag_ok(interval_parse(text, n, fleet_files[host], &iv, &diag), &diag);
	assert_diag_ok(push_kind_find("clickhouse", NULL)->encode(iv, &rq, &diag), &diag);
	interval_free(iv);
	free(text);
	return rq;
}

/* Sends the intervals of hosts [first, first + n) in one request. */
static struct push_verdict push(struct transport *t, unsigned int first, unsigned int n)
{
	struct push_request *all = request_of(first);
	struct push_verdict v;

	for (unsigned int i = first + 1; i < first + n; i++) {
		struct push_request *rq = request_of(i);

		all->body = realloc(all->body, all->nbody + rq->nbody);
		cr_assert(all->body);
		memcpy(all->body + all->nbody, rq->body, rq->nbody);
		all->nbody += rq->nbody;
		push_request_free(rq);
	}
	transport_send(t, all, &v);
	push_request_free(all);
	return v;
}

static void pushed(struct transport *t, unsigned int first, unsigned int n)
{
	struct push_verdict v = push(t, first, n);

	cr_assert_eq(v.result, PUSH_DONE, "%s", v.message);
}

/* A number that the server answers with; takes the text. */
static uint64_t number(char *text)
{
	uint64_t ret = strtoull(text, NULL, 10);

	free(text);
	return ret;
}

/* The parts of the tables of names */
static uint64_t parts(const char *condition)
{
	return number(
		fleet_ask("SELECT count() FROM system.parts WHERE database = '%s' AND table IN "
			  "('functions', 'stacks')%s",
			  fleet_rig_database, condition));
}

/* Alone and in batches, and once more: equal to the files. Names are inserted once. */
static void pushed_requests_are_stored(void)
{
	struct transport *t;
	uint64_t names;

	fleet_begin(__func__);
	fleet_make_files("trace");
	t = start_sending(fleet_server.port);
	cr_assert_eq(push(t, 0, 1).result, PUSH_RETRY);
	cr_assert(strstr(push(t, 0, 1).message, "pyprofctl fleet init"));
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	pushed(t, 0, 1);
	pushed(t, 1, 7);
	pushed(t, 8, FLEET_HOSTS - 8);
	fleet_assert_all_there();
	names = parts("");
	pushed(t, 0, FLEET_HOSTS);
	pushed(t, 3, 1);
	cr_assert_leq(parts(" AND level = 0"), names);
	fleet_assert_all_there();
	transport_free(t);
}

/* A sender whose answers are cut off sends again. */
static void pushed_requests_whose_answers_are_cut_off(void)
{
	static const char *const tables[] = {"functions", "stacks", "profiles"};
	struct transport *t;
	pid_t cutter;

	fleet_begin(__func__);
	fleet_make_files("trace");
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	for (unsigned int table = 0; table < 3; table++) {
		t = start_sending(
			clickhouse_start_cutter(&fleet_server, 1, tables[table], &cutter));
		for (unsigned int i = 0; i < FLEET_HOSTS; i++) {
			enum push_result want = i ? PUSH_DONE : PUSH_RETRY;

			cr_assert_eq(push(t, i, 1).result, want, "%s, %u", tables[table], i);
		}
		pushed(t, 0, 1);
		transport_free(t);
		kill(cutter, SIGKILL);
		cr_assert(waitpid(cutter, NULL, 0) == cutter);
		fleet_assert_all_there();
	}
}

static json_t *push_status(struct pyprofd *d)
{
	json_t *status = ctl_status(d), *push;

	push = json_deep_copy(json_array_get(json_object_get(status, "pushes"), 0));
	json_decref(status);
	return push;
}

static int64_t push_number(struct pyprofd *d, const char *key)
{
	json_t *push = push_status(d);
	int64_t n = json_integer_value(json_object_get(push, key));

	json_decref(push);
	return n;
}

static void wait_for_push(struct pyprofd *d, const char *key, int64_t least)
{
	while (push_number(d, key) < least) {
		cr_assert(!patience_over(), "%s: %lld", key, (long long)push_number(d, key));
		ctl_step();
	}
}

/*
 * The receiver does not answer until several intervals wait; the first request has one, the second one
 * the others, and is refused.
 */
static void intervals_of_a_refused_batch_are_sent_one_by_one(void)
{
	struct pyprofd d;
	struct traced t;
	char pid[16], url[128];
	const char *reason;
	json_t *push, *n;
	pid_t proxy;
	int port;

	fleet_begin(__func__);
	traced_ready(&t, pid, traced_newest().exe, "run.py", "mixed", NULL);
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	port = clickhouse_start_refuser(&fleet_server, "profiles", &proxy);
	kill(proxy, SIGSTOP);
	pyprofd_init(&d);
	pyprofd_start(&d, "--pid", pid, "--push", fleet_url(port, url, sizeof(url)), "--push-every",
		      "200ms", NULL);
	traced_go(&t);
	traced_expect(&t, "done");
	wait_for_push(&d, "queued", 6);
	kill(proxy, SIGCONT);
	wait_for_push(&d, "sent", 6);
	push = push_status(&d);
	json_object_foreach(json_object_get(push, "dropped"), reason, n)
		cr_assert_eq(json_integer_value(n), 0, "%s", reason);
	json_decref(push);
	pyprofd_shutdown(&d);
	traced_finish(&t);
	cr_assert_geq(number(fleet_ask("SELECT count() FROM %s.profiles", fleet_rig_database)), 6);
	cr_assert_eq(number(fleet_ask("SELECT uniqExact(id) FROM %s.profiles", fleet_rig_database)),
		     number(fleet_ask("SELECT count() FROM %s.profiles", fleet_rig_database)));
	kill(proxy, SIGKILL);
	cr_assert(waitpid(proxy, NULL, 0) == proxy);
}

/* The sender notices that its names are not in these tables. */
static void names_come_again_if_the_tables_are_new(void)
{
	struct transport *t;

	fleet_begin(__func__);
	fleet_make_files("trace");
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	t = start_sending(fleet_server.port);
	pushed(t, 0, FLEET_HOSTS);
	clickhouse_kill(&fleet_server);
	cr_assert_eq(push(t, 0, 1).result, PUSH_RETRY);
	clickhouse_empty(&fleet_server);
	clickhouse_restart(&fleet_server);
	cr_assert(strstr(push(t, 0, 1).message, "pyprofctl fleet init"));
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	pushed(t, 0, FLEET_HOSTS);
	fleet_assert_all_there();
	clickhouse_kill(&fleet_server);
	clickhouse_empty(&fleet_server);
	clickhouse_restart(&fleet_server);
	/* Created before the sender notices anything */
	free(ctl_ok(&fleet_d, "fleet", "init", NULL));
	pushed(t, 0, FLEET_HOSTS);
	fleet_assert_all_there();
	transport_free(t);
}

/* Tables of the first version had no mark. */
static void tables_of_another_version_are_refused(void)
{
	struct transport *t;

	fleet_begin(__func__);
	fleet_make_files("trace");
	free(fleet_ask("CREATE DATABASE %s", fleet_rig_database));
	free(fleet_ask(
		"CREATE TABLE %s.profiles (id FixedString(16), day Date) ENGINE = MergeTree() "
		"PARTITION BY day ORDER BY id",
		fleet_rig_database));
	ctl_fails(&fleet_d, PYP_EXIT_FAILURE, "of another version", "fleet", "init", NULL);
	ctl_fails(&fleet_d, PYP_EXIT_FAILURE, "of another version", "fleet", "insert",
		  fleet_files[0], NULL);
	t = start_sending(fleet_server.port);
	cr_assert(strstr(push(t, 0, 1).message, "of another version"));
	transport_free(t);
}

Test(fleet_push, in_clickhouse)
{
	pushed_requests_are_stored();
	pushed_requests_whose_answers_are_cut_off();
	intervals_of_a_refused_batch_are_sent_one_by_one();
	tables_of_another_version_are_refused();
	names_come_again_if_the_tables_are_new();
}
