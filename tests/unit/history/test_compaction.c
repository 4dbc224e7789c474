// SPDX-License-Identifier: BSD-2-Clause
/*
 * history/compaction and merged files on disk: the sums stay the same to the nanosecond, and whatever
 * is killed, nothing counts twice.
 */
#include "history/compaction.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/format.h"
#include "harness/snapshot_builder.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "history/disk.h"
#include "history/disk_index.h"
#include "history/gz.h"
#include "history/sum.h"

#define NS    UINT64_C(1000000000)
#define BASE  (UINT64_C(1795668600) * NS) /* 2026-11-26T04:50:00Z, a multiple of five minutes */
#define PROCS 3u

static char *dir;

static void begin(void)
{
	dir = temp_dir_new();
}

static void end(void)
{
	temp_dir_remove(dir);
}

/* ---- intervals ---- */

static uint32_t number(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % below;
}

/* Ten seconds of a process, with functions, times and calls that vary. */
static struct interval *interval_at(uint32_t pid, uint64_t start, uint32_t *state)
{
	uint8_t id[INTERVAL_ID_BYTES];
	char text[512], label[16];
	struct snapshot *s;
	struct interval *iv;
	int n = snprintf(text, sizeof(text), "target %u\nthread %u %u worker\nmain a.py:1 %u %u\n",
			 pid, pid, pid + 1, number(state, 100), number(state, 1000000000));

	for (int i = number(state, 4) ? 0 : 1; i < 3; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "  f%u a.py:%u %u %u\n",
			      number(state, 9), 5 + number(state, 9), number(state, 100),
			      number(state, 1000000000));
	s = snapshot_build(text);
	s->targets[0].start_ns = s->threads[0].start_ns = start;
	s->targets[0].start_unix_ns = start;
	s->targets[0].end_unix_ns = start + 10 * NS;
	for (size_t i = 0; i < sizeof(id); i++)
		id[i] = (uint8_t)number(state, 256);
	iv = interval_new(id, start, start + 10 * NS, s);
	cr_assert(iv);
	snprintf(label, sizeof(label), "%u", pid);
	assert_ok(interval_set_label(iv, "pid", label));
	assert_ok(interval_set_label(iv, "service", pid % 2 ? "odd \"web\"" : "even"));
	return iv;
}

struct bytes {
	char *v;
	size_t n;
};

static void append(struct bytes *to, struct interval *iv)
{
	struct diag diag = {0};
	void *data = NULL;
	size_t n = 0;

	assert_diag_ok(gz_pack_interval(iv, GZ_FAST, &data, &n, &diag), &diag);
	to->v = realloc(to->v, to->n + n);
	memcpy(to->v + to->n, data, n);
	to->n += n;
	free(data);
	interval_free(iv);
}

/* The cut at this time: an interval of each process, except for some that did nothing. */
static struct bytes cut_at(uint64_t at, uint32_t *state)
{
	struct bytes b = {0};

	for (uint32_t p = 0; p < PROCS; p++)
		if (!p || number(state, 3))
			append(&b, interval_at(40 + p, at - 10 * NS, state));
	return b;
}

/* ---- sums ---- */

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_pids(const void *a, const void *b)
{
	return (int)((const struct snapshot_target *)a)->pid -
	       (int)((const struct snapshot_target *)b)->pid;
}

/* A report with every figure of every calling context, in an order that depends on nothing else. */
static char *report_of(struct sum *sum, const char *format)
{
	const struct format_opts o = {.clock = SNAPSHOT_CPU};
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_free_ char *text = NULL;
	struct diag diag = {0};
	char *lines[512], *ret, *rest;
	size_t size, n = 0;
	FILE *out = open_memstream(&text, &size);

	assert_diag_ok(sum_take(sum, &s, &diag), &diag);
	cr_assert(snapshot_valid(s));
	qsort(s->targets, s->ntargets, sizeof(*s->targets), compare_pids);
	assert_diag_ok(format_write(format_find(format), s, &o, out, &diag), &diag);
	fclose(out);
	for (char *at = strtok_r(text, "\n", &rest); at && n < 512;
	     at = strtok_r(NULL, "\n", &rest))
		lines[n++] = at;
	qsort(lines, n, sizeof(*lines), compare_lines);
	out = open_memstream(&ret, &size);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s\n", lines[i]);
	fclose(out);
	return ret;
}

static int add_one(void *ctx, struct interval *iv, struct diag *diag)
{
	return sum_add(ctx, iv, diag);
}

/* What `pyprofctl history merge --dir` would show. *ret_n: the intervals. */
static char *report_of_dir(const char *format, size_t *ret_n, size_t *ret_bad)
{
	const struct when_span all = {0, UINT64_MAX};
	struct sum *sum = sum_new();
	struct diag diag = {0};
	char *text;

	assert_diag_ok(disk_read(dir, &all, add_one, sum, ret_bad, &diag), &diag);
	*ret_n = sum_count(sum);
	text = report_of(sum, format);
	sum_free(sum);
	return text;
}

/* ---- compaction ---- */

static struct bytes compact(struct compaction *c)
{
	struct diag diag = {0};
	struct bytes b;
	void *data = NULL;
	int r;

	do
		r = compaction_step(c, &diag);
	while (r > 0);
	assert_diag_ok(r, &diag);
	assert_diag_ok(compaction_take(c, &data, &b.n, &diag), &diag);
	b.v = data;
	return b;
}

struct seen {
	uint32_t merged;
	uint8_t id[INTERVAL_ID_BYTES];
	size_t n;
};

static int look_at(void *ctx, struct interval *iv, struct diag *diag)
{
	struct seen *s = ctx;

	(void)diag;
	s->merged += iv->merged ? iv->merged : 1;
	for (size_t i = 0; i < sizeof(s->id); i++)
		s->id[i] ^= iv->id[i];
	s->n++;
	cr_assert(interval_label(iv, "pid") && interval_label(iv, "service"));
	cr_assert(iv->start_unix_ns >= BASE && iv->end_unix_ns <= BASE + 300 * NS);
	interval_free(iv);
	return 0;
}

Test(compaction, sums_stay_the_same)
{
	static const char *const reports[] = {"csv", "collapsed"};

	for (uint32_t seed = 1; seed <= 5; seed++) {
		struct bytes all = {0}, merged;
		struct compaction *c = compaction_new();
		struct seen before = {0}, after = {0};
		uint32_t state = seed;
		struct diag diag = {0};
		size_t at;

		for (unsigned int i = 1; i <= 30; i++) {
			struct bytes b = cut_at(BASE + i * 10 * NS, &state);

			all.v = realloc(all.v, all.n + b.n);
			memcpy(all.v + all.n, b.v, b.n);
			all.n += b.n;
			assert_diag_ok(compaction_add(c, "name", b.v, b.n, &diag), &diag);
		}
		merged = compact(c);
		cr_assert_lt(merged.n, all.n / 3, "%zu bytes of %zu", merged.n, all.n);
		assert_ok(disk_index_read(merged.v, merged.n, NULL, NULL, &at));
		assert_diag_ok(gz_unpack(all.v, all.n, "all", look_at, &before, &diag), &diag);
		assert_diag_ok(gz_unpack(merged.v + at, merged.n - at, "merged", look_at, &after,
					 &diag),
			       &diag);
		cr_assert_eq(after.n, PROCS);
		cr_assert_eq(after.merged, before.n);
		cr_assert_eq(memcmp(after.id, before.id, sizeof(after.id)), 0);
		for (int f = 0; f < 2; f++) {
			struct sum *x = sum_new(), *y = sum_new();
			char *want, *got;

			assert_ok(gz_unpack(all.v, all.n, "all", add_one, x, &diag));
			assert_ok(gz_unpack(merged.v + at, merged.n - at, "merged", add_one, y,
					    &diag));
			want = report_of(x, reports[f]);
			got = report_of(y, reports[f]);
			cr_assert_str_eq(got, want);
			free(want);
			free(got);
			sum_free(x);
			sum_free(y);
		}
		free(all.v);
		free(merged.v);
		compaction_free(c);
	}
	check_no_leaks();
}

/* A process that was counted and then sampled has one interval of each. */
Test(compaction, modes_stay_apart)
{
	struct compaction *c = compaction_new();
	struct seen seen = {0};
	struct diag diag = {0};
	struct bytes b = {0};
	uint32_t state = 1;
	size_t at;

	for (unsigned int i = 0; i < 10; i++) {
		struct interval *iv = interval_at(7, BASE + i * 10 * NS, &state);

		if (i % 2)
			iv->snapshot->targets[0].mode = MODE_COUNT;
		append(&b, iv);
	}
	assert_diag_ok(compaction_add(c, "name", b.v, b.n, &diag), &diag);
	b = compact(c);
	assert_ok(disk_index_read(b.v, b.n, NULL, NULL, &at));
	assert_diag_ok(gz_unpack(b.v + at, b.n - at, "merged", look_at, &seen, &diag), &diag);
	cr_assert(seen.n == 2 && seen.merged == 10);
	free(b.v);
	compaction_free(c);
	check_no_leaks();
}

Test(compaction, damaged_files_are_left_out)
{
	uint32_t state = 1;
	struct bytes b = cut_at(BASE + 10 * NS, &state);

	for (size_t cut = 0; cut <= b.n; cut += 1 + cut / 50) {
		struct compaction *c = compaction_new();
		struct bytes good = cut_at(BASE + 20 * NS, &state);
		struct diag diag = {0};
		char *part = malloc(cut + 1);
		int r;

		memcpy(part, b.v, cut);
		r = compaction_add(c, "damaged", part, cut, &diag);
		assert_diag_ok(compaction_add(c, "good", good.v, good.n, &diag), &diag);
		cr_assert_str_eq(compaction_file(c, r == 0), "good");
		cr_assert_null(compaction_file(c, 1 + (r == 0)));
		good = compact(c);
		free(good.v);
		compaction_free(c);
	}
	free(b.v);
	check_no_leaks();
}

/* ---- on disk ---- */

static struct disk *open_disk(uint64_t max)
{
	struct diag diag = {0};
	struct disk *d = NULL;

	assert_diag_ok(disk_open(dir, max, &d, &diag), &diag);
	return d;
}

static void write_cuts(struct disk *d, uint64_t from, unsigned int n)
{
	uint32_t state = (uint32_t)(from / NS);
	struct diag diag = {0};

	for (unsigned int i = 1; i <= n; i++) {
		const uint64_t at = from + i * 10 * NS;
		struct bytes b = cut_at(at, &state);

		assert_diag_ok(disk_write(d, at, b.v, b.n, &diag), &diag);
		free(b.v);
	}
}

static struct disk_due due; /* large */

/* As the merger does it. Returns disk_merge()'s result. */
static int merge_due(struct disk *d)
{
	struct compaction *c = compaction_new();
	const char *names[DISK_DUE_MAX];
	struct diag diag = {0};
	struct bytes merged;
	size_t n = 0;
	int r;

	for (size_t i = 0; i < due.n; i++) {
		char *data;
		size_t size;

		assert_ok(disk_file_read(disk_descriptor(d), due.names[i], &data, &size));
		(void)compaction_add(c, due.names[i], data, size, &diag);
	}
	merged = compact(c);
	for (; compaction_file(c, n); n++)
		names[n] = compaction_file(c, n);
	r = disk_merge(d, &due, names, n, merged.v, merged.n, &diag);
	compaction_free(c);
	free(merged.v);
	return r;
}

static int64_t after(unsigned int seconds)
{
	return (int64_t)(BASE / NS + seconds);
}

static void expect_dir(const char *want, size_t most)
{
	size_t got_n, bad;
	char *got = report_of_dir("csv", &got_n, &bad);

	cr_assert_str_eq(got, want);
	cr_assert(got_n <= most && bad == 0, "%zu intervals, %zu bad files", got_n, bad);
	free(got);
}

Test(merged_files, sums_stay_the_same, .init = begin, .fini = end)
{
	struct disk *d = open_disk(1 << 24);
	size_t n, bad, files;
	char *want, *got;

	write_cuts(d, BASE, 100);
	want = report_of_dir("csv", &n, &bad);
	cr_assert(!disk_due(d, after(299), 300, &due), "it has not ended");
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert(disk_due(d, after(1000), 300, &due));
		cr_assert(due.n == 30 && due.end_s == after(300 * (i + 1)));
		assert_ok(merge_due(d));
	}
	cr_assert(!disk_due(d, after(1000), 300, &due), "the last one has not ended");
	files = disk_counts(d).files;
	cr_assert(files == 3 + 10 && disk_counts(d).merged == 3);
	disk_free(d);
	d = open_disk(1 << 24);
	cr_assert_eq(disk_counts(d).files, files);
	cr_assert(!disk_due(d, after(1000), 300, &due), "nothing is merged twice");
	disk_free(d);
	got = report_of_dir("csv", &n, &bad);
	cr_assert_str_eq(got, want);
	cr_assert_leq(n, 13 * PROCS);
	free(got);
	free(want);
}

/* Hard links keep what the merging removes. */
static void keep_copies(const char *to)
{
	char command[512];

	snprintf(command, sizeof(command), "mkdir -p '%s' && cp -al '%s'/2* '%s'", to, dir, to);
	assert_ok(system(command));
}

static void put_back(const char *from)
{
	char command[512];

	snprintf(command, sizeof(command), "cp -al '%s'/2* '%s' && rm -rf '%s'", from, dir, from);
	assert_ok(system(command));
}

/* The daemon was killed between writing the new file and removing the old ones, across an hour. */
Test(merged_files, killed_in_between, .init = begin, .fini = end)
{
	struct disk *d = open_disk(1 << 24);
	char copies[300];
	size_t n, bad;
	char *want;

	snprintf(copies, sizeof(copies), "%s/copies", dir);
	write_cuts(d, BASE + 300 * NS, 30); /* up to 05:00:00, which is in the next hour */
	want = report_of_dir("csv", &n, &bad);
	keep_copies(copies);
	cr_assert(disk_due(d, after(3600), 300, &due));
	cr_assert_eq(due.n, 30);
	assert_ok(merge_due(d));
	expect_dir(want, PROCS);
	disk_free(d);
	put_back(copies);
	expect_dir(want, PROCS);
	d = open_disk(1 << 24);
	cr_assert_eq(disk_counts(d).files, 1, "they are removed at the next start");
	disk_free(d);
	expect_dir(want, PROCS);
	free(want);
}

/* Each prefix of the old files may be gone. */
Test(merged_files, killed_while_removing, .init = begin, .fini = end)
{
	struct disk *d = open_disk(1 << 24);
	char copies[300], path[400];
	size_t n, bad;
	char *want;

	snprintf(copies, sizeof(copies), "%s/copies", dir);
	write_cuts(d, BASE, 30);
	want = report_of_dir("csv", &n, &bad);
	keep_copies(copies);
	cr_assert(disk_due(d, after(3600), 300, &due));
	assert_ok(merge_due(d));
	disk_free(d);
	put_back(copies);
	for (size_t i = 0; i < due.n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, due.names[(i * 7) % due.n]);
		assert_ok(unlink(path));
		expect_dir(want, PROCS);
	}
	free(want);
}

/* A file of the same time that was written later, as after the clock was set back, counts. */
Test(merged_files, only_what_the_index_names_is_replaced, .init = begin, .fini = end)
{
	struct disk *d = open_disk(1 << 24);
	size_t before, bad;
	char *want;

	write_cuts(d, BASE, 30);
	cr_assert(disk_due(d, after(3600), 300, &due));
	assert_ok(merge_due(d));
	write_cuts(d, BASE + 100 * NS, 2);
	want = report_of_dir("csv", &before, &bad);
	cr_assert_gt(before, PROCS);
	disk_free(d);
	d = open_disk(1 << 24);
	cr_assert_eq(disk_counts(d).files, 3);
	cr_assert(disk_due(d, after(3600), 300, &due));
	assert_ok(merge_due(d));
	cr_assert_eq(disk_counts(d).files, 2);
	expect_dir(want, 2 * PROCS);
	disk_free(d);
	free(want);
}

Test(merged_files, readers_are_not_disturbed, .init = begin, .fini = end)
{
	struct disk *d = open_disk(1 << 24);
	char path[300];
	size_t n, bad;
	char *want, *got;
	int reader;

	write_cuts(d, BASE, 60);
	want = report_of_dir("csv", &n, &bad);
	cr_assert(disk_due(d, after(3600), 300, &due));
	assert_ok(merge_due(d)); /* makes the lock */
	snprintf(path, sizeof(path), "%s/.lock", dir);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert(reader >= 0 && flock(reader, LOCK_SH) == 0);
	cr_assert(disk_due(d, after(3600), 300, &due));
	assert_err(merge_due(d), -EAGAIN);
	cr_assert_eq(disk_counts(d).files, 31);
	got = report_of_dir("csv", &n, &bad);
	cr_assert_str_eq(got, want);
	free(got);
	close(reader);
	assert_ok(merge_due(d));
	cr_assert_eq(disk_counts(d).files, 2);
	expect_dir(want, 2 * PROCS);
	disk_free(d);
	free(want);
}

/* A merged file whose index cannot be read replaces nothing, and is not counted. */
Test(merged_files, a_damaged_index_replaces_nothing, .init = begin, .fini = end)
{
	struct disk *d = open_disk(1 << 24);
	char path[300];
	size_t n, got_n, bad;
	char *want, *got;
	int fd;

	write_cuts(d, BASE, 5);
	want = report_of_dir("csv", &n, &bad);
	disk_free(d);
	snprintf(path, sizeof(path), "%s/2026-11-26T04/045500-00000001-0300.gz", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && write(fd, "\x1f\x8b\x08 no", 6) == 6);
	close(fd);
	got = report_of_dir("csv", &got_n, &bad);
	cr_assert_str_eq(got, want);
	cr_assert(got_n == n && bad == 1);
	free(got);
	free(want);
}

/* The limit holds; older files go first, and what cannot be kept as a merged file stays as it is. */
Test(merged_files, the_limit_holds, .init = begin, .fini = end)
{
	struct disk *d = open_disk(600 << 10);
	const uint64_t limit = 600 << 10;

	for (unsigned int i = 0; i < 12; i++) {
		write_cuts(d, BASE + i * 300 * NS, 30);
		cr_assert_leq(disk_counts(d).bytes, limit);
		if (disk_due(d, after(300 * (i + 1)), 300, &due))
			(void)merge_due(d);
		cr_assert_leq(disk_counts(d).bytes, limit);
	}
	cr_assert_geq(disk_counts(d).merged, 8);
	disk_free(d);
}
