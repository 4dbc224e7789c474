// SPDX-License-Identifier: BSD-2-Clause
/*
 * Simulated daemons that push to one ClickHouse:
 *
 * 	bench_fleet URL SERVICES HOSTS FROM SECONDS INTERVAL PER_INSERT THREADS PACE
 *
 * Each of SERVICES services has a program of its own, with FUNCTIONS functions and CONTEXTS calling
 * contexts of realistic depth, which HOSTS / SERVICES hosts run in one process each. Each host has
 * an interval of INTERVAL seconds, sampled at 19 Hz with half a CPU, for each of the SECONDS from
 * the UNIX time FROM on, and sends as a daemon's sender does: THREADS hosts at a time. PACE 0: as
 * fast as the database takes them, PER_INSERT intervals at a time. N: N times as fast as real
 * daemons, at times that are spread over the interval; PER_INSERT at least, and all that wait if the
 * database is slower. Prints what was sent, how long it took, the longest delay, and the time of one
 * push.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/parse.h"
#include "push/kinds.h"
#include "push/transport.h"

#define FUNCTIONS   800u
#define CONTEXTS    3000u
#define DEPTH_MAX   40u
#define PERIOD_NS   UINT64_C(52631578)
#define NS_PER_S    UINT64_C(1000000000)
#define NAME_LENGTH 80
#define ARGS	    9
#define THREADS_MAX 64
#define BATCH_MAX   UINT64_C(256)

struct program {
	char names[FUNCTIONS][NAME_LENGTH], files[FUNCTIONS][NAME_LENGTH];
	uint32_t parent[CONTEXTS], func[CONTEXTS]; /* context 0: the root */
};

/* A daemon's sender */
struct host {
	struct transport *transport;
	pthread_mutex_t lock;
	uint64_t sent; /* intervals */
};

struct bench {
	struct push_url url;
	uint64_t services, hosts, from, seconds, interval, per_insert, threads, pace;
	struct program *programs;
	struct host *senders;
	double start;
	atomic_uint_fast64_t next; /* push to do next */
	atomic_uint_fast64_t pushes, intervals, samples, zipped, failed, late_us, slowest_us,
		sum_us;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static uint32_t below(unsigned int *seed, uint32_t n)
{
	return (uint32_t)rand_r(seed) % n;
}

/* Contexts hang below one of the last ones, so that stacks are deep. */
static void make_program(struct program *p, unsigned int service)
{
	unsigned int seed = service + 1;
	uint32_t depth[CONTEXTS] = {0};

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		snprintf(p->names[i], NAME_LENGTH, "handle_request_%u", i);
		snprintf(p->files[i], NAME_LENGTH,
			 "/srv/service%u/lib/python3.11/site-packages/package%u/module%u.py",
			 service, i % 20, i % 100);
	}
	for (uint32_t i = 1; i < CONTEXTS; i++) {
		uint32_t back = 1 + below(&seed, i < 12 ? 1 : 12);

		p->parent[i] = back >= i ? 0 : i - back;
		if (depth[p->parent[i]] >= DEPTH_MAX)
			p->parent[i] = below(&seed, i);
		depth[i] = depth[p->parent[i]] + 1;
		p->func[i] = below(&seed, FUNCTIONS);
	}
}

/* ---- a snapshot ---- */

static uint32_t node_of(const struct program *p, struct snapshot *s, uint32_t context,
			uint32_t *node_at)
{
	uint32_t path[CONTEXTS], n = 0, node;

	for (; node_at[context] == SNAPSHOT_NONE; context = p->parent[context])
		path[n++] = context;
	node = node_at[context];
	while (n--) {
		s->nodes[s->nnodes] = (struct snapshot_node){
			.parent = node, .func = p->func[path[n]], .min = {UINT64_MAX, UINT64_MAX}};
		node = node_at[path[n]] = s->nnodes++;
	}
	return node;
}

static void add_functions(const struct program *p, struct snapshot *s)
{
	s->nfuncs = FUNCTIONS;
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		s->funcs[i] = (struct snapshot_func){.filename = p->files[i],
						     .name = p->names[i],
						     .qualname = p->names[i],
						     .firstlineno = (int32_t)i + 1};
}

static void add_target(const struct bench *b, struct snapshot *s, uint64_t host)
{
	s->ntargets = s->nthreads = 1;
	s->targets[0] = (struct snapshot_target){
		.pid = 1000 + (uint32_t)host,
		.cmdline = "python3 -m service",
		.python_version = "3.11.2",
		.mode = MODE_SAMPLE,
		.estimate = {.rate = 19, .period_ns = PERIOD_NS, .samples = 95},
		.traced_ns = b->interval * NS_PER_S,
		.corrected = true,
		.waits.measured = true,
	};
	s->threads[0] = (struct snapshot_thread){.pid = 1000, .tid = 1000, .name = "main"};
}

/* Few contexts have most of the samples: the product of two random numbers. */
static struct snapshot *make_snapshot(const struct bench *b, uint64_t host, unsigned int *seed)
{
	const struct program *p = &b->programs[host % b->services];
	struct snapshot *s = snapshot_new();
	uint32_t node_at[CONTEXTS];
	uint64_t samples = b->interval * 19 / 2;

	s->host = "host";
	s->kernel = "Linux 6.1.0";
	s->program = "pyprofd";
	s->funcs = snapshot_alloc(s, FUNCTIONS, sizeof(*s->funcs));
	s->nodes = snapshot_alloc(s, CONTEXTS + 1, sizeof(*s->nodes));
	s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	s->threads = snapshot_alloc(s, 1, sizeof(*s->threads));
	add_functions(p, s);
	add_target(b, s, host);
	memset(node_at, 0xff, sizeof(node_at));
	s->nodes[s->nnodes++] = (struct snapshot_node){
		.parent = SNAPSHOT_NONE, .func = SNAPSHOT_NONE, .min = {UINT64_MAX, UINT64_MAX}};
	node_at[0] = 0;
	s->measured = COLUMN_WAITS;
	for (uint64_t i = 0; i < samples; i++) {
		uint32_t context = (uint32_t)((uint64_t)below(seed, CONTEXTS) *
					      below(seed, CONTEXTS) / CONTEXTS);
		struct snapshot_node *n = &s->nodes[node_of(p, s, context, node_at)];

		n->self[SNAPSHOT_CPU] += PERIOD_NS;
		n->self[SNAPSHOT_WALL] += PERIOD_NS + below(seed, 5000000);
	}
	if (snapshot_reserve_columns(s, COLUMN_BIT(COLUMN_runnable), s->nnodes) < 0)
		return NULL;
	for (uint32_t i = 0; i < s->nnodes; i++)
		s->columns[COLUMN_runnable][i] =
			s->nodes[i].self[SNAPSHOT_WALL] - s->nodes[i].self[SNAPSHOT_CPU];
	return s;
}

static struct interval *make_interval(const struct bench *b, uint64_t host, uint64_t number)
{
	unsigned int seed = (unsigned int)(host * 1000003 + number);
	uint64_t start = (b->from + number * b->interval) * NS_PER_S + host * 997;
	uint8_t id[INTERVAL_ID_BYTES];
	struct interval *iv;
	char text[32];

	for (int i = 0; i < INTERVAL_ID_BYTES; i++)
		id[i] = (uint8_t)below(&seed, 256);
	iv = interval_new(id, start, start + b->interval * NS_PER_S, make_snapshot(b, host, &seed));
	snprintf(text, sizeof(text), "host%05" PRIu64, host);
	interval_set_label(iv, INTERVAL_HOST, text);
	snprintf(text, sizeof(text), "service%" PRIu64, host % b->services);
	interval_set_label(iv, INTERVAL_SERVICE, text);
	interval_set_label(iv, "version", "1.0");
	return iv;
}

/* ---- sending ---- */

static void add_interval(struct bench *b, struct push_request **all, uint64_t host, uint64_t number)
{
	struct interval *iv = make_interval(b, host, number);
	struct push_request *rq = NULL;

	for (uint32_t node = 0; node < iv->snapshot->nnodes; node++)
		b->samples += iv->snapshot->nodes[node].self[SNAPSHOT_CPU] != 0;
	if (push_kind_find("clickhouse", NULL)->encode(iv, &rq, NULL) < 0)
		abort();
	interval_free(iv);
	if (!*all) {
		*all = rq;
		return;
	}
	(*all)->body = realloc((*all)->body, (*all)->nbody + rq->nbody);
	memcpy((*all)->body + (*all)->nbody, rq->body, rq->nbody);
	(*all)->nbody += rq->nbody;
	push_request_free(rq);
}

static void at_most(atomic_uint_fast64_t *most, uint64_t value)
{
	uint_fast64_t seen = *most;

	while (value > seen && !atomic_compare_exchange_weak(most, &seen, value))
		;
}

/* Tried until it succeeds. */
static void push(struct bench *b, struct host *h, const struct push_request *rq)
{
	double begin = now();
	struct push_verdict v;
	uint64_t us;

	for (;;) {
		const struct timespec second = {.tv_sec = 1};

		transport_send(h->transport, rq, &v);
		if (v.result == PUSH_DONE)
			break;
		if (b->failed++ == 0)
			fprintf(stderr, "%s\n", v.message);
		nanosleep(&second, NULL);
	}
	us = (uint64_t)((now() - begin) * 1e6);
	at_most(&b->slowest_us, us);
	b->sum_us += us;
}

/* Seconds from the start until the host's interval can be sent */
static double due_at(const struct bench *b, uint64_t host, uint64_t number)
{
	double offset = (double)(host * b->per_insert) / (double)b->hosts;

	return ((double)number + offset) * (double)b->interval / (double)b->pace;
}

static void wait_until(const struct bench *b, double when)
{
	double left = b->start + when - now();
	struct timespec ts = {.tv_sec = (time_t)left};

	if (left <= 0)
		return;
	ts.tv_nsec = (long)((left - (double)ts.tv_sec) * 1e9);
	nanosleep(&ts, NULL);
}

/* How many intervals the host has to send now; waits until there are some. */
static uint64_t wait_for(struct bench *b, const struct host *h, uint64_t host)
{
	uint64_t left = b->seconds / b->interval - h->sent, n = b->per_insert;

	if (b->pace) {
		wait_until(b, due_at(b, host, h->sent + n - 1));
		while (n < left && due_at(b, host, h->sent + n) <= now() - b->start)
			n++;
		at_most(&b->late_us,
			(uint64_t)((now() - b->start - due_at(b, host, h->sent)) * 1e6));
	}
	n = n < left ? n : left;
	return n < BATCH_MAX ? n : BATCH_MAX;
}

static void push_host(struct bench *b, uint64_t host)
{
	struct host *h = &b->senders[host];
	struct push_request *rq = NULL;
	uint64_t n = wait_for(b, h, host);

	if (!n)
		return;
	for (uint64_t k = 0; k < n; k++)
		add_interval(b, &rq, host, h->sent + k);
	push(b, h, rq);
	h->sent += n;
	b->pushes++;
	b->intervals += n;
	b->zipped += rq->nbody;
	push_request_free(rq);
}

/* All hosts in turn, until they have sent everything. */
static void *run_thread(void *arg)
{
	struct bench *b = arg;
	uint64_t n = b->hosts * (b->seconds / b->interval), i;

	while ((i = b->next++) < n) {
		struct host *h = &b->senders[i % b->hosts];

		pthread_mutex_lock(&h->lock);
		push_host(b, i % b->hosts);
		pthread_mutex_unlock(&h->lock);
	}
	return NULL;
}

static void print_result(const struct bench *b)
{
	double took = now() - b->start;
	uint64_t pushes = b->pushes;
	struct rusage own;

	getrusage(RUSAGE_SELF, &own);
	printf("%" PRIu64 " intervals, %" PRIu64 " samples, %" PRIu64
	       " bytes queued (compressed), %" PRIu64 " pushes, %" PRIu64
	       " failed, %.1f s: %.0f intervals/s, %.0f samples/s; a push: %.1f ms, at most "
	       "%.1f ms; at most %.1f s late; own CPU %.1f s\n",
	       b->intervals, b->samples, b->zipped, pushes, b->failed, took,
	       (double)b->intervals / took, (double)b->samples / took,
	       (double)b->sum_us / 1e3 / (double)(pushes ? pushes : 1), (double)b->slowest_us / 1e3,
	       (double)b->late_us / 1e6, (double)own.ru_utime.tv_sec + (double)own.ru_stime.tv_sec);
}

static void run(struct bench *b)
{
	pthread_t threads[THREADS_MAX];

	b->start = now();
	for (uint64_t i = 0; i < b->threads; i++)
		pthread_create(&threads[i], NULL, run_thread, b);
	for (uint64_t i = 0; i < b->threads; i++)
		pthread_join(threads[i], NULL);
	print_result(b);
}

static int start_senders(struct bench *b)
{
	static const struct transport_opts opts;
	static const struct transport_secrets secrets;

	b->senders = calloc(b->hosts, sizeof(*b->senders));
	for (uint64_t i = 0; b->senders && i < b->hosts; i++) {
		pthread_mutex_init(&b->senders[i].lock, NULL);
		if (transport_new(&b->url, push_kind_find("clickhouse", NULL), &opts, &secrets,
				  &b->senders[i].transport, NULL) < 0)
			return -1;
	}
	return b->senders ? 0 : -1;
}

int main(int argc, char **argv)
{
	static struct bench b;
	uint64_t *const numbers[] = {&b.services, &b.hosts,	 &b.from,    &b.seconds,
				     &b.interval, &b.per_insert, &b.threads, &b.pace};
	struct diag diag = {0};

	if (argc != ARGS + 1)
		return 2;
	if (push_url_parse(argv[1], &b.url, &diag) < 0) {
		fprintf(stderr, "%s\n", diag.msg);
		return 2;
	}
	for (int i = 0; i < 8; i++)
		if (parse_u64(argv[2 + i], i != 7, i == 6 ? THREADS_MAX : UINT32_MAX, numbers[i]) <
		    0)
			return 2;
	b.programs = calloc(b.services, sizeof(*b.programs));
	if (!b.programs || start_senders(&b) < 0)
		return 1;
	for (uint64_t i = 0; i < b.services; i++)
		make_program(&b.programs[i], (unsigned int)i);
	run(&b);
	for (uint64_t i = 0; i < b.hosts; i++)
		transport_free(b.senders[i].transport);
	free(b.senders);
	free(b.programs);
	return 0;
}
