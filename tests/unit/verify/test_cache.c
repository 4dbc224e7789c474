// SPDX-License-Identifier: BSD-2-Clause
/* verify/cache: what was stored comes back, all of it; what others could have put there does not. */
#include "verify/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness/temp_dir.h"
#include "harness/test.h"

static struct python py = {.build_id = {0xab, 0xcd, 0xef}, .build_id_len = 3};
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
		 .before = {10, 11, 12},
		 .after = {20, 21, UINT32_MAX},
		 .latency_ps = 130000},
};

static const struct verify_opts opts = {.python = &py, .plan = &plan};

static char *home; /* $XDG_CACHE_HOME; the interpreter is in it as well */

static const char *path_of(const char *name)
{
	static char path[4][600];
	static unsigned int turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof(*path), "%s/%s", home, name);
	return p;
}

static void write_file(const char *path, const char *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert(fd >= 0 && write(fd, text, n) == (ssize_t)n);
	close(fd);
}

#define DIR_NAME  "pyprofd"
#define FILE_NAME entry_of(DIR_NAME, 0)

/* The entry's path below home, for the interpreter and a user. */
static const char *entry_of(const char *dir, unsigned int user)
{
	static char name[2][100];
	static unsigned int turn;
	char *p = name[turn++ % 2];
	struct stat st;

	assert_ok(stat(py.file, &st));
	snprintf(p, sizeof(*name), "%s/%u-%llx-%llx", dir, user, (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return p;
}

static void setup(void)
{
	home = temp_dir_new();
	snprintf(py.file, sizeof(py.file), "%s", path_of("python"));
	write_file(py.file, "an interpreter", 14);
	cr_assert(setenv("XDG_CACHE_HOME", home, 1) == 0 && unsetenv("CACHE_DIRECTORY") == 0);
}

static void teardown(void)
{
	(void)unlink(path_of(FILE_NAME));
	(void)unlink(path_of("pyprofd/other"));
	(void)unlink(path_of(DIR_NAME));
	(void)rmdir(path_of(DIR_NAME));
	(void)unlink(path_of(entry_of("elsewhere", 0)));
	(void)rmdir(path_of("elsewhere"));
	(void)unlink(path_of("other"));
	(void)unlink(path_of("python"));
	temp_dir_remove(home);
	home = NULL;
}

TestSuite(cache, .init = setup, .fini = teardown);

static bool known(void)
{
	struct verify_result v;

	return cache_load(&opts, &v) == 0;
}

/* Stored, and there. */
static void store(void)
{
	cache_store(&opts, &right);
	cr_assert(known(), "it was not stored");
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
	assert_ok(cache_load(&opts, &v));
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

	cache_store_cost(&opts, &cost);
	cr_assert(!known(), "a cost without a verdict");
	v.cost.known = false;
	cache_store(&opts, &v);
	cache_store_cost(&opts, &none);
	assert_ok(cache_load(&opts, &v));
	cr_assert(!v.cost.known);
	cache_store_cost(&opts, &cost);
	assert_ok(cache_load(&opts, &v));
	cr_assert(v.cost.known && v.cost.before[0] == 7 && v.events == right.events);
}

/* An entry of another file, with another cost, that was stored so many seconds ago */
static void store_other(const char *file, const struct target *t, uint32_t before, time_t age)
{
	static struct python other;
	const struct verify_opts o = {.python = &other, .plan = &plan, .target = t};
	const time_t then = time(NULL) - age;
	const struct timespec times[2] = {{.tv_sec = then}, {.tv_sec = then}};
	struct verify_result v = right;
	struct stat st;
	char name[100];

	other = py;
	snprintf(other.file, sizeof(other.file), "%s", path_of(file));
	write_file(other.file, file, 1);
	assert_ok(stat(other.file, &st));
	v.cost.before[0] = before;
	v.cost.known = before;
	cache_store(&o, &v);
	snprintf(name, sizeof(name), DIR_NAME "/%u-%llx-%llx", t ? t->identity.uid : 0,
		 (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	assert_ok(utimensat(AT_FDCWD, path_of(name), times, 0));
}

static uint32_t other_cost(const struct target *t)
{
	const struct verify_opts o = {.python = &py, .plan = &plan, .target = t};
	struct cost c = cache_load_other_cost(&o);

	return c.known ? c.before[0] : 0;
}

static void forget_all(void)
{
	DIR *d = opendir(path_of(DIR_NAME));
	struct dirent *e;
	char name[300];

	cr_assert(d);
	while ((e = readdir(d))) {
		snprintf(name, sizeof(name), DIR_NAME "/%.200s", e->d_name);
		if (e->d_name[0] != '.')
			assert_ok(unlink(path_of(name)));
	}
	closedir(d);
}

/* What was measured last, by anybody that is trusted. */
Test(cache, costs_of_others)
{
	struct target first = {.identity.uid = 1000}, second = {.identity.uid = 1001};

	cr_assert_eq(other_cost(NULL), 0, "no directory");
	store_other("a", NULL, 100, 30);
	cr_assert(!known() && other_cost(NULL) == 100);
	store_other("b", NULL, 200, 20);
	store_other("c", NULL, 0, 10);
	store_other("d", NULL, 300, 40);
	cr_assert_eq(other_cost(NULL), 200, "the newest that is known");
	cr_assert_eq(other_cost(&first), 200, "root's");
	store_other("e", &first, 400, 5);
	cr_assert_eq(other_cost(&first), 400, "its own");
	cr_assert(other_cost(&second) == 200 && other_cost(NULL) == 200,
		  "another user's is not used");
	first.identity.mixed = true;
	cr_assert_eq(other_cost(&first), 200, "a set-user-id program");
	forget_all();
	write_file(path_of("f"), "", 0);
	assert_ok(chown(path_of("f"), 1000, 1000));
	store_other("f", NULL, 500, 5);
	cr_assert(other_cost(NULL) == 500 && other_cost(&second) == 0,
		  "root ran what is of another user");
	forget_all();
	for (const char *file = "abcdef"; *file; file++)
		assert_ok(unlink(path_of((char[]){*file, '\0'})));
}

/* An entry from before the kernel was changed says nothing about hits of now. */
Test(cache, costs_of_another_kernel)
{
	char text[1100], *at;
	size_t n;

	store();
	cr_assert_eq(other_cost(NULL), 10);
	n = read_file(path_of(FILE_NAME), text, sizeof(text) - 1);
	text[n] = '\0';
	at = strstr(text, "\nkernel ");
	cr_assert(at);
	at[8] = at[8] == '1' ? '2' : '1';
	write_file(path_of(FILE_NAME), text, n);
	cr_assert(!known() && other_cost(NULL) == 0);
}

Test(cache, only_right_verdicts)
{
	struct verify_result v = right;

	v.verdict = VERIFY_WRONG;
	cache_store(&opts, &v);
	v.verdict = VERIFY_NOT_RUN;
	cache_store(&opts, &v);
	cr_assert(!known());
}

/* Another plan, another layout, another build: another subject. */
Test(cache, other_subjects)
{
	struct python other = py;
	struct plan p = plan;
	const struct verify_opts new_plan = {.python = &py, .plan = &p},
				 new_python = {.python = &other, .plan = &plan};
	struct verify_result v;

	store();
	p.sites[0].offset++;
	cr_expect_lt(cache_load(&new_plan, &v), 0);
	p = plan;
	p.sites[0].kind = PYP_SITE_LEAVE;
	cr_expect_lt(cache_load(&new_plan, &v), 0);
	other.layout.bpf.code_flags += 4;
	cr_expect_lt(cache_load(&new_python, &v), 0);
	other = py;
	other.build_id[2]++;
	cr_expect_lt(cache_load(&new_python, &v), 0);
	other = py;
	other.build_id_len = 0;
	cr_expect_lt(cache_load(&new_python, &v), 0);
	cache_store(&new_python, &right);
	cr_expect(known());
}

/* A target chooses its build-id and its plan: neither its user nor the inode follow from them. */
Test(cache, another_user)
{
	struct target first = {.identity.uid = 1000}, second = {.identity.uid = 1001};
	struct verify_opts a = opts, b = opts;
	struct verify_result v = right;

	a.target = &first;
	b.target = &second;
	cache_store(&a, &right);
	cr_expect(cache_load(&a, &v) == 0);
	cr_expect_lt(cache_load(&b, &v), 0);
	cr_expect_lt(cache_load(&opts, &v), 0);
	/* Nor does one replace the other's. */
	v = right;
	v.events = 99;
	cache_store(&b, &v);
	cr_assert(cache_load(&a, &v) == 0 && v.events == right.events);
	cr_assert(cache_load(&b, &v) == 0 && v.events == 99);
	first.identity.mixed = true;
	cr_expect_lt(cache_load(&a, &v), 0, "a set-user-id program");
	cr_assert(unlink(path_of(entry_of(DIR_NAME, 1000))) == 0);
	cr_assert(unlink(path_of(entry_of(DIR_NAME, 1001))) == 0);
}

Test(cache, another_file)
{
	char first[600];
	const char *const second = path_of("other");
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct verify_result v;

	snprintf(first, sizeof(first), "%s", path_of(FILE_NAME));
	store();
	/* The same bytes in another inode. */
	write_file(second, "an interpreter", 14);
	cr_assert(rename(second, py.file) == 0);
	cr_expect(!known(), "another inode");
	cr_assert(unlink(first) == 0);
	store();
	cr_assert(utimensat(AT_FDCWD, py.file, times, 0) == 0);
	cr_expect(!known(), "changed");
	store();
	cr_assert(chown(py.file, 12345, 12345) == 0);
	cr_expect(!known(), "another owner");
	store();
	write_file(py.file, "something else", 14);
	cr_assert(utimensat(AT_FDCWD, py.file, times, 0) == 0);
	cr_expect(!known(), "other bytes, the modification time set back");
	store();
	cr_assert(unlink(path_of(FILE_NAME)) == 0 && unlink(py.file) == 0);
	cr_expect_lt(cache_load(&opts, &v), 0, "no file");
	write_file(py.file, "", 0);
}

/* One user's many interpreters leave another user's verdict where it is. */
Test(cache, room_is_made_by_its_user)
{
	struct target first = {.identity.uid = 1000}, second = {.identity.uid = 1001};
	struct verify_opts a = opts, b = opts;
	struct verify_result v;
	char name[64];
	unsigned int n = 0;
	struct dirent *e;
	DIR *d;

	a.target = &first;
	b.target = &second;
	cache_store(&a, &right);
	for (unsigned int i = 0; i < CACHE_ENTRIES; i++) {
		snprintf(name, sizeof(name), DIR_NAME "/1001-0-%u", i);
		write_file(path_of(name), "x", 1);
	}
	cache_store(&b, &right);
	cr_expect(cache_load(&a, &v) == 0, "the other user's was removed");
	cr_expect(cache_load(&b, &v) == 0);
	d = opendir(path_of(DIR_NAME));
	cr_assert(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.') {
			snprintf(name, sizeof(name), DIR_NAME "/%.40s", e->d_name);
			cr_assert(unlink(path_of(name)) == 0);
			n++;
		}
	closedir(d);
	cr_assert_eq(n, CACHE_ENTRIES + 1, "%u entries", n);
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
	cr_assert(unlink(path_of(entry_of("elsewhere", 0))) == 0);
	cache_store(&opts, &right);
	cr_expect(access(path_of(entry_of("elsewhere", 0)), F_OK) != 0, "it was written there");
}

/* A pipe with nobody at its other end would keep us waiting for ever. */
Test(cache, no_file_at_all)
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
	cache_store(&opts, &right);
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
	cache_store(&opts, &other);
	m = (size_t)read(fd, after, sizeof(after));
	close(fd);
	cr_assert(n == m && memcmp(before, after, n) == 0, "what was open has changed");
	assert_ok(cache_load(&opts, &other));
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
	cr_assert(access(path_of(entry_of("elsewhere", 0)), F_OK) == 0);
	cr_assert(unsetenv("CACHE_DIRECTORY") == 0);
	cr_assert(!known());
}
