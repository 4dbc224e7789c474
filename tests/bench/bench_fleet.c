// SPDX-License-Identifier: BSD-2-Clause
/*
 * Simulated daemons that push to one ClickHouse:
 *
 * 	bench_fleet ORIGIN DATABASE SERVICES HOSTS FROM SECONDS INTERVAL PER_INSERT THREADS
 *
 * Each of SERVICES services has a program of its own, with FUNCTIONS functions and CONTEXTS calling
 * contexts of realistic depth, which HOSTS / SERVICES hosts run in one process each. Each host has
 * an interval of INTERVAL seconds, sampled at 19 Hz with half a CPU, for each of the SECONDS from
 * the UNIX time FROM on, and inserts PER_INSERT intervals at a time, as fast as the database takes
 * them: THREADS inserts at a time. Prints what was sent and how long it took.
 */
#include <curl/curl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "clickhouse/interval_rows.h"
#include "clickhouse/tables.h"
#include "push/gzip.h"

#define FUNCTIONS   800u
#define CONTEXTS    3000u
#define DEPTH_MAX   40u
#define PERIOD_NS   UINT64_C(52631578)
#define NS_PER_S    UINT64_C(1000000000)
#define NAME_LENGTH 80
#define ARGS	    9

struct program {
	char names[FUNCTIONS][NAME_LENGTH], files[FUNCTIONS][NAME_LENGTH];
	uint32_t parent[CONTEXTS], func[CONTEXTS]; /* context 0: the root */
};

struct bench {
	const char *origin, *database;
	uint64_t services, hosts, from, seconds, interval, per_insert, threads;
	struct program *programs;
	char *url;
	atomic_uint_fast64_t next; /* insert to do next */
	atomic_uint_fast64_t intervals, samples, bytes, zipped, failed;
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

/* ---- inserting ---- */

static size_t ignore(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return size * n;
}

static bool post(const struct bench *b, CURL *curl, const uint8_t *body, size_t n)
{
	long status = 0;

	curl_easy_setopt(curl, CURLOPT_URL, b->url);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore);
	if (curl_easy_perform(curl) != CURLE_OK)
		return false;
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	return status == 200;
}

/* One host's insert number `i`, all hosts before the next number. Tried until it succeeds. */
static void insert(struct bench *b, CURL *curl, uint64_t i)
{
	struct rows rows = {0};
	uint8_t *zipped = NULL;
	size_t n = 0;

	for (uint64_t k = 0; k < b->per_insert; k++) {
		struct interval *iv =
			make_interval(b, i % b->hosts, i / b->hosts * b->per_insert + k);

		interval_rows_put(&rows, iv, NULL);
		for (uint32_t node = 0; node < iv->snapshot->nnodes; node++)
			b->samples += iv->snapshot->nodes[node].self[SNAPSHOT_CPU] != 0;
		interval_free(iv);
	}
	if (push_gzip(rows.data, rows.n, &zipped, &n) == 0) {
		while (!post(b, curl, zipped, n)) {
			const struct timespec second = {.tv_sec = 1};

			b->failed++;
			nanosleep(&second, NULL);
		}
	}
	b->intervals += b->per_insert;
	b->bytes += rows.n;
	b->zipped += n;
	free(zipped);
	rows_deinit(&rows);
}

static void *run_thread(void *arg)
{
	struct bench *b = arg;
	uint64_t n = b->hosts * (b->seconds / b->interval / b->per_insert), i;
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Encoding: gzip");
	CURL *curl = curl_easy_init();

	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	while ((i = b->next++) < n)
		insert(b, curl, i);
	curl_easy_cleanup(curl);
	curl_slist_free_all(headers);
	return NULL;
}

static char *make_url(const struct bench *b)
{
	char *sql = NULL, *query, *url = NULL;
	size_t n;
	FILE *out = open_memstream(&sql, &n);

	tables_write_insert(NULL, out);
	fclose(out);
	query = curl_easy_escape(NULL, sql, 0);
	if (asprintf(&url, "%s/?database=%s&query=%s", b->origin, b->database, query) < 0)
		url = NULL;
	curl_free(query);
	free(sql);
	return url;
}

static void run(struct bench *b)
{
	pthread_t threads[64];
	double start = now(), took;

	for (uint64_t i = 0; i < b->threads; i++)
		pthread_create(&threads[i], NULL, run_thread, b);
	for (uint64_t i = 0; i < b->threads; i++)
		pthread_join(threads[i], NULL);
	took = now() - start;
	printf("%" PRIu64 " intervals, %" PRIu64 " samples, %" PRIu64 " bytes, %" PRIu64
	       " compressed, %" PRIu64
	       " failed inserts, %.1f s: %.0f intervals/s, %.0f samples/s\n",
	       b->intervals, b->samples, b->bytes, b->zipped, b->failed, took,
	       (double)b->intervals / took, (double)b->samples / took);
}

int main(int argc, char **argv)
{
	static struct bench b;
	uint64_t *const numbers[] = {&b.services, &b.hosts,	 &b.from,   &b.seconds,
				     &b.interval, &b.per_insert, &b.threads};

	if (argc != ARGS + 1)
		return 2;
	b.origin = argv[1];
	b.database = argv[2];
	for (int i = 0; i < 7; i++)
		if (parse_u64(argv[3 + i], 1, i == 6 ? 64 : UINT32_MAX, numbers[i]) < 0)
			return 2;
	b.programs = calloc(b.services, sizeof(*b.programs));
	b.url = make_url(&b);
	if (!b.programs || !b.url)
		return 1;
	for (uint64_t i = 0; i < b.services; i++)
		make_program(&b.programs[i], (unsigned int)i);
	run(&b);
	free(b.programs);
	free(b.url);
	return 0;
}
