// SPDX-License-Identifier: BSD-2-Clause
/* verify/cache: what was stored comes back, all of it; what others could have put there does not. */
#include "verify/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/python.h"
#include "harness/test.h"

static const struct python py = {.build_id = {0xab, 0xcd, 0xef}, .build_id_len = 3};
static const struct plan plan = {
	.nsites = 1,
	.sites[0] = {.kind = PYP_SITE_ENTER, .offset = 4096},
};
static const struct verify_result right = {
	.verdict = VERIFY_RIGHT,
	.events = 1,
	.functions = 2,
	.calls = 3,
	.sites = 4,
	.event_ns = 5,
	.cost = {.known = true,
		 .drag = 5,
		 .before = {10, 11, 12},
		 .after = {20, 21, UINT32_MAX},
		 .gauge_ps = 130000},
};

static char *home; /* $XDG_CACHE_HOME */

static const char *path_of(const char *name)
{
	static char path[4][600];
	static unsigned int turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof(*path), "%s/%s", home, name);
	return p;
}

#define DIR_NAME  "pyprofd"
#define FILE_NAME "pyprofd/abcdef"

static void setup(void)
{
	home = temp_dir_new();
	cr_assert(setenv("XDG_CACHE_HOME", home, 1) == 0 && unsetenv("CACHE_DIRECTORY") == 0);
}

static void teardown(void)
{
	(void)unlink(path_of(FILE_NAME));
	(void)unlink(path_of("pyprofd/other"));
	(void)unlink(path_of(DIR_NAME));
	(void)rmdir(path_of(DIR_NAME));
	(void)unlink(path_of("elsewhere/abcdef"));
	(void)rmdir(path_of("elsewhere"));
	(void)unlink(path_of("other"));
	temp_dir_remove(home);
	home = NULL;
}

TestSuite(cache, .init = setup, .fini = teardown);

static bool known(void)
{
	struct verify_result v;

	return cache_load(&py, &plan, &v) == 0;
}

/* Stored, and there. */
static void store(void)
{
	cache_store(&py, &plan, &right);
	cr_assert(known(), "it was not stored");
}

static void write_file(const char *path, const char *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert(fd >= 0 && write(fd, text, n) == (ssize_t)n);
	close(fd);
}

static size_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	cr_assert(fd >= 0);
	n = read(fd, text, size);
	cr_assert(n > 0);
	close(fd);
	return (size_t)n;
}

Test(cache, all_comes_back)
{
	struct verify_result v;
	struct stat st;

	cr_assert(!known());
	store();
	assert_ok(cache_load(&py, &plan, &v));
	cr_assert(v.cached && v.verdict == VERIFY_RIGHT);
	cr_assert(v.events == 1 && v.functions == 2 && v.calls == 3 && v.sites == 4);
	cr_assert_eq(v.event_ns, 5);
	cr_assert(v.cost.known);
	assert_bytes_eq(&v.cost, &right.cost, sizeof(v.cost));
	cr_assert(stat(path_of(DIR_NAME), &st) == 0 && (st.st_mode & 07777) == 0700);
	cr_assert(stat(path_of(FILE_NAME), &st) == 0 && (st.st_mode & 07777) == 0600);
}

/* What the probes cost comes later than the verdict, and changes nothing but that. */
Test(cache, costs_come_later)
{
	const struct cost none = {.known = false}, cost = {.known = true, .before = {7}};
	struct verify_result v = right;

	cache_store_cost(&py, &plan, &cost);
	cr_assert(!known(), "a cost without a verdict");
	v.cost.known = false;
	cache_store(&py, &plan, &v);
	cache_store_cost(&py, &plan, &none);
	assert_ok(cache_load(&py, &plan, &v));
	cr_assert(!v.cost.known);
	cache_store_cost(&py, &plan, &cost);
	assert_ok(cache_load(&py, &plan, &v));
	cr_assert(v.cost.known && v.cost.before[0] == 7 && v.events == right.events);
}

Test(cache, only_right_verdicts)
{
	struct verify_result v = right;

	v.verdict = VERIFY_WRONG;
	cache_store(&py, &plan, &v);
	v.verdict = VERIFY_NOT_RUN;
	cache_store(&py, &plan, &v);
	cr_assert(!known());
}

/* Another plan, another layout, another build: another subject. */
Test(cache, other_subjects)
{
	struct python other = py;
	struct plan p = plan;
	struct verify_result v;

	store();
	p.sites[0].offset++;
	cr_expect_lt(cache_load(&py, &p, &v), 0);
	p = plan;
	p.sites[0].kind = PYP_SITE_LEAVE;
	cr_expect_lt(cache_load(&py, &p, &v), 0);
	other.layout.bpf.code_flags += 4;
	cr_expect_lt(cache_load(&other, &plan, &v), 0);
	other = py;
	other.build_id[2]++;
	cr_expect_lt(cache_load(&other, &plan, &v), 0);
	other = py;
	other.build_id_len = 0;
	cr_expect_lt(cache_load(&other, &plan, &v), 0);
	cache_store(&other, &plan, &right);
	cr_expect(known());
}

Test(cache, others_could_write_it)
{
	store();
	cr_assert(chmod(path_of(FILE_NAME), 0620) == 0);
	cr_expect(!known(), "the group");
	cr_assert(chmod(path_of(FILE_NAME), 0602) == 0);
	cr_expect(!known(), "anyone");
	cr_assert(chmod(path_of(FILE_NAME), 0600) == 0);
	cr_expect(known());
	cr_assert(chmod(path_of(DIR_NAME), 0770) == 0);
	cr_expect(!known(), "the directory's group");
	cr_assert(chmod(path_of(DIR_NAME), 01777) == 0);
	cr_expect(!known(), "a directory for everyone");
	cr_assert(chmod(path_of(DIR_NAME), 0700) == 0);
	cr_expect(known());
	cr_assert(link(path_of(FILE_NAME), path_of("pyprofd/other")) == 0);
	cr_expect(!known(), "it has another name, elsewhere perhaps");
}

Test(cache, others_own_it)
{
	if (geteuid() != 0)
		cr_skip_test("needs root, to give files away");
	store();
	cr_assert(chown(path_of(FILE_NAME), 65534, 65534) == 0);
	cr_expect(!known(), "the file is somebody else's");
	cr_assert(chown(path_of(FILE_NAME), 0, 0) == 0);
	cr_expect(known());
	cr_assert(chown(path_of(DIR_NAME), 65534, 65534) == 0);
	cr_expect(!known(), "the directory is somebody else's");
}

Test(cache, links_are_not_followed)
{
	store();
	cr_assert(rename(path_of(FILE_NAME), path_of("other")) == 0);
	cr_assert(symlink(path_of("other"), path_of(FILE_NAME)) == 0);
	cr_expect(!known(), "a file");
	/* And not written through: what it leads to stays as it was, the link gives way. */
	write_file(path_of("other"), "precious", 8);
	store();
	{
		char text[16] = "";

		cr_expect_eq(read_file(path_of("other"), text, sizeof(text)), 8u);
		cr_expect_str_eq(text, "precious");
	}
	cr_assert(rename(path_of(DIR_NAME), path_of("elsewhere")) == 0);
	cr_assert(symlink(path_of("elsewhere"), path_of(DIR_NAME)) == 0);
	cr_expect(!known(), "a directory");
	cr_assert(unlink(path_of("elsewhere/abcdef")) == 0);
	cache_store(&py, &plan, &right);
	cr_expect(access(path_of("elsewhere/abcdef"), F_OK) != 0, "it was written there");
}

/* A pipe with nobody at its other end would keep us waiting for ever. */
Test(cache, no_file_at_all, .timeout = 30)
{
	store();
	cr_assert(unlink(path_of(FILE_NAME)) == 0);
	cr_assert(mkfifo(path_of(FILE_NAME), 0600) == 0);
	cr_expect(!known());
	store();
	write_file(path_of("other"), "", 0);
	cr_assert(unlink(path_of(FILE_NAME)) == 0 && rmdir(path_of(DIR_NAME)) == 0);
	cr_assert(rename(path_of("other"), path_of(DIR_NAME)) == 0);
	cr_expect(!known(), "the directory is a file");
	cache_store(&py, &plan, &right);
	cr_expect(!known());
}

/* Any byte changed, added or missing: not ours, or still a number in its place. */
Test(cache, damaged)
{
	char text[1100], damaged[1200];
	size_t n;

	store();
	n = read_file(path_of(FILE_NAME), text, sizeof(text));
	for (size_t i = 0; i < n; i++) {
		write_file(path_of(FILE_NAME), text, i);
		cr_expect(!known(), "cut off at %zu", i);
		memcpy(damaged, text, n);
		damaged[i] = text[i] == 'x' ? 'y' : 'x';
		write_file(path_of(FILE_NAME), damaged, n);
		cr_expect(!known(), "changed at %zu", i);
		damaged[i] = '\0';
		write_file(path_of(FILE_NAME), damaged, n);
		cr_expect(!known(), "a zero at %zu", i);
	}
	memcpy(damaged, text, n);
	memcpy(damaged + n, "more\n", 5);
	write_file(path_of(FILE_NAME), damaged, n + 5);
	cr_expect(!known(), "more than was written");
	memset(damaged + n, ' ', sizeof(damaged) - n);
	write_file(path_of(FILE_NAME), damaged, sizeof(damaged));
	cr_expect(!known(), "too long");
	write_file(path_of(FILE_NAME), text, n);
	cr_expect(known());
}

Test(cache, another_format)
{
	char text[1100];
	size_t n;
	char *digit;

	store();
	n = read_file(path_of(FILE_NAME), text, sizeof(text) - 1);
	text[n] = '\0';
	digit = strchr(text, ' ') + 1;
	cr_assert(*digit >= '1' && *digit <= '8');
	(*digit)++;
	write_file(path_of(FILE_NAME), text, n);
	cr_expect(!known(), "a newer one");
	*digit = (char)(*digit - 2);
	write_file(path_of(FILE_NAME), text, n);
	cr_expect(!known(), "an older one");
}

/* A reader has the old file or the new one: it is replaced, not written to. */
Test(cache, replaced_at_once)
{
	struct verify_result other = right;
	char before[1100], after[1100];
	size_t n, m;
	int fd;
	DIR *d;
	struct dirent *e;

	store();
	n = read_file(path_of(FILE_NAME), before, sizeof(before));
	fd = open(path_of(FILE_NAME), O_RDONLY | O_CLOEXEC);
	cr_assert(fd >= 0);
	other.events = 77;
	cache_store(&py, &plan, &other);
	m = (size_t)read(fd, after, sizeof(after));
	close(fd);
	cr_assert(n == m && memcmp(before, after, n) == 0, "what was open has changed");
	assert_ok(cache_load(&py, &plan, &other));
	cr_assert_eq(other.events, 77);
	d = opendir(path_of(DIR_NAME));
	cr_assert(d);
	while ((e = readdir(d)))
		cr_expect(e->d_name[0] != '.' || strlen(e->d_name) < 3, "%s is left", e->d_name);
	closedir(d);
}

/* systemd's directory goes before the user's. */
Test(cache, the_services_directory)
{
	cr_assert(mkdir(path_of("elsewhere"), 0700) == 0);
	cr_assert(setenv("CACHE_DIRECTORY", path_of("elsewhere"), 1) == 0);
	store();
	cr_assert(access(path_of("elsewhere/abcdef"), F_OK) == 0);
	cr_assert(unsetenv("CACHE_DIRECTORY") == 0);
	cr_assert(!known());
}
