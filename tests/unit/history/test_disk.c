// SPDX-License-Identifier: BSD-2-Clause
/* history/disk: complete files only, within a limit of bytes, and nothing but its own. */
#include "history/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/snapshot_builder.h"
#include "harness/temp_dir.h"
#include "harness/test.h"

#define NS   UINT64_C(1000000000)
#define BASE (UINT64_C(1795668500) * NS) /* 2026-11-26T04:48:20Z */

static char *dir;

static void begin(void)
{
	dir = temp_dir_new();
}

static void end(void)
{
	temp_dir_remove(dir);
}

static struct disk *open_disk(uint64_t max)
{
	struct diag diag = {0};
	struct disk *d = NULL;

	assert_diag_ok(disk_open(dir, max, &d, &diag), &diag);
	return d;
}

static struct interval *interval_at(uint8_t id, uint64_t start)
{
	const uint8_t bytes[INTERVAL_ID_BYTES] = {id};

	return interval_new(bytes, start, start + 10 * NS,
			    snapshot_build("target 42\nthread 42 43 w\nmain a.py:1 2 100000\n"));
}

static void write_at(struct disk *d, uint8_t id, uint64_t start)
{
	struct interval *iv = interval_at(id, start);
	struct diag diag = {0};
	void *data = NULL;
	size_t n = 0;

	assert_diag_ok(gz_pack_interval(iv, GZ_FAST, &data, &n, &diag), &diag);
	assert_diag_ok(disk_write(d, start + 10 * NS, data, n, &diag), &diag);
	free(data);
	interval_free(iv);
}

static int count_one(void *ctx, struct interval *iv, struct diag *diag)
{
	(void)diag;
	++*(int *)ctx;
	interval_free(iv);
	return 0;
}

static int count(uint64_t from, uint64_t to, size_t *ret_bad)
{
	const struct when_span span = {from, to};
	struct diag diag = {0};
	int n = 0;

	assert_diag_ok(disk_read(dir, &span, count_one, &n, ret_bad, &diag), &diag);
	return n;
}

static void path_of(char out[256], const char *name)
{
	snprintf(out, 256, "%s/%s", dir, name);
}

Test(disk, files_survive_the_daemon, .init = begin, .fini = end)
{
	struct disk *d = open_disk(1 << 20);
	struct stat st;
	char path[256];
	size_t bad;

	for (uint8_t i = 0; i < 10; i++)
		write_at(d, i, BASE + 10 * NS * i);
	disk_free(d);
	cr_assert_eq(count(0, UINT64_MAX, &bad), 10);
	cr_assert_eq(count(BASE, BASE + 30 * NS, &bad), 3);
	path_of(path, "2026-11-26T04");
	assert_ok(stat(path, &st));
	cr_assert_eq(st.st_mode & 0777, 0700);
	d = open_disk(1 << 20);
	cr_assert_eq(disk_counts(d).files, 10);
	cr_assert_gt(disk_counts(d).bytes, 40000);
	disk_free(d);
	check_no_leaks();
}

Test(disk, the_limit_holds, .init = begin, .fini = end)
{
	struct disk *d = open_disk(64 << 10);
	char path[256];
	size_t bad;

	for (uint8_t i = 0; i < 100; i++) {
		write_at(d, i, BASE + 600 * NS * i);
		cr_assert_leq(disk_counts(d).bytes, 64 << 10);
	}
	cr_assert_eq(disk_counts(d).files + disk_counts(d).removed, 100);
	cr_assert_eq(count(0, UINT64_MAX, &bad), disk_counts(d).files);
	path_of(path, "2026-11-26T04");
	cr_assert_eq(access(path, F_OK), -1, "an hour's directory goes with its last file");
	disk_free(d);
	d = open_disk(32 << 10);
	write_at(d, 200, BASE + 600 * NS * 200);
	cr_assert_leq(disk_counts(d).bytes, 32 << 10, "a smaller limit removes older files");
	disk_free(d);
	check_no_leaks();
}

static void make(const char *name, const char *text)
{
	char path[256];
	int fd;

	path_of(path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

Test(disk, leftovers_are_removed_and_others_files_are_not, .init = begin, .fini = end)
{
	struct disk *d = open_disk(1 << 20);
	char path[256];
	size_t bad = 0;

	write_at(d, 1, BASE);
	disk_free(d);
	make("2026-11-26T04/.044830-00000001.gz", "half");
	make("2026-11-26T04/044840-00000002.gz", "no gzip");
	make("2026-11-26T04/notes.txt", "mine");
	path_of(path, "2026-11-26T04/044841-00000003.gz");
	assert_ok(symlink("/etc/passwd", path));
	d = open_disk(1 << 20);
	path_of(path, "2026-11-26T04/.044830-00000001.gz");
	cr_assert_eq(access(path, F_OK), -1);
	path_of(path, "2026-11-26T04/notes.txt");
	assert_ok(access(path, F_OK));
	cr_assert_eq(disk_counts(d).files, 2, "a link is none of its files");
	disk_free(d);
	cr_assert_eq(count(0, UINT64_MAX, &bad), 1);
	cr_assert_eq(bad, 1);
	check_no_leaks();
}

Test(disk, directories_that_are_refused, .init = begin, .fini = end)
{
	struct disk *d = NULL, *second = NULL;
	struct diag diag = {0};
	char path[256];

	assert_ok(chmod(dir, 0770));
	assert_err(disk_open(dir, 1 << 20, &d, &diag), -EPERM);
	assert_ok(chmod(dir, 0700));
	make("file", "");
	path_of(path, "file");
	diag_clear(&diag);
	cr_assert_lt(disk_open(path, 1 << 20, &d, &diag), 0);
	d = open_disk(1 << 20);
	diag_clear(&diag);
	assert_err(disk_open(dir, 1 << 20, &second, &diag), -EBUSY);
	cr_assert_eq(diag.exit, PYP_EXIT_BUSY);
	disk_free(d);
	check_no_leaks();
}

/* A file that does not fit is an error, and the next one is written. */
Test(disk, a_full_file_system_is_reported, .init = begin, .fini = end)
{
	struct diag diag = {0};
	struct disk *d;
	char *large;
	size_t bad;

	if (mount("tmpfs", dir, "tmpfs", 0, "size=256k,mode=0700") < 0)
		cr_skip_test("needs root");
	d = open_disk(1 << 30);
	large = malloc(1 << 20);
	memset(large, 'x', 1 << 20);
	assert_err(disk_write(d, BASE, large, 1 << 20, &diag), -ENOSPC);
	cr_assert_eq(disk_counts(d).failed, 1);
	write_at(d, 1, BASE);
	cr_assert_eq(count(0, UINT64_MAX, &bad), 1);
	cr_assert_eq(bad, 0);
	disk_free(d);
	free(large);
	assert_ok(umount(dir));
	check_no_leaks();
}
