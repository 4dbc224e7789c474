// SPDX-License-Identifier: BSD-2-Clause
/* target/maps: the text of /proc/PID/maps, as written by the kernel and malformed. */
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "harness/test.h"

static int parse(const char *text, struct target_maps *ret)
{
	return target_maps_parse(text, strlen(text), ret, NULL);
}

Test(maps, lines)
{
	struct target_maps m = {0};

	assert_ok(parse("00400000-0041f000 r--p 00000000 fe:01 1234    /usr/bin/python3.11\n"
			"0041f000-006d2000 r-xp 0001f000 fe:01 1234    /usr/bin/python3.11\n"
			"7ffd0000-7ffd1000 rw-s 00000000 00:00 0 \n"
			"7ffe0000-7ffe1000 rw-p 00000000 00:00 0    [stack]\n"
			"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]\n"
			"7f00-7f01 r-xp 0 00:1c 18446744073709551615 /a b (deleted)",
			&m));
	cr_assert(m.n == 6);
	cr_assert(m.v[1].start == 0x41f000 && m.v[1].end == 0x6d2000 && m.v[1].offset == 0x1f000);
	cr_assert(m.v[1].dev_major == 0xfe && m.v[1].dev_minor == 1 && m.v[1].inode == 1234);
	cr_assert(m.v[1].read && m.v[1].exec && !m.v[1].write && !m.v[1].shared);
	cr_assert_str_eq(m.v[1].path, "/usr/bin/python3.11");
	cr_assert(m.v[2].shared && m.v[2].write);
	cr_assert_str_eq(m.v[2].path, "");
	cr_assert_str_eq(m.v[3].path, "[stack]");
	cr_assert(m.v[4].start == 0xffffffffff600000 && m.v[4].exec && !m.v[4].read);
	cr_assert(m.v[5].inode == UINT64_MAX);
	cr_assert_str_eq(m.v[5].path, "/a b (deleted)");
	target_maps_deinit(&m);
	check_no_leaks();
}

Test(maps, code)
{
	struct target_maps m = {0};
	struct native_code code;

	assert_ok(parse("1000-2000 r--p 0 fe:01 1 /usr/lib/libz.so.1\n"
			"2000-4000 r-xp 1000 fe:01 1 /usr/lib/libz.so.1 (deleted)\n"
			"4000-5000 r-xp 0 00:00 0\n"
			"6000-7000 r-xp 0 00:00 0 [vdso]\n"
			"7000-8000 r-xp 0 fe:01 2 /"
			"0123456789012345678901234567890123456789012345678901234567890123456789\n",
			&m));
	cr_assert_eq(target_maps_code(&m, 0x1800, &code), -ENOENT);
	cr_assert_eq(target_maps_code(&m, 0x5000, &code), -ENOENT);
	assert_ok(target_maps_code(&m, 0x3fff, &code));
	cr_assert(code.start == 0x2000 && code.end == 0x4000);
	cr_assert_str_eq(code.file, "libz.so.1");
	assert_ok(target_maps_code(&m, 0x4000, &code));
	cr_assert_str_eq(code.file, "", "belongs to no file");
	assert_ok(target_maps_code(&m, 0x6000, &code));
	cr_assert_str_eq(code.file, "[vdso]");
	assert_ok(target_maps_code(&m, 0x7000, &code));
	cr_assert_eq(strlen(code.file), NATIVE_FILE_MAX - 1);
	target_maps_deinit(&m);
	check_no_leaks();
}

Test(maps, empty)
{
	struct target_maps m = {0};

	assert_ok(parse("", &m));
	cr_assert(m.n == 0);
	target_maps_deinit(&m);
	check_no_leaks();
}

Test(maps, malformed)
{
	static const char *const bad[] = {
		"\n",
		"x",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 r-x",
		"1000-2000 r-xq 0 0:0 0",
		"1000-2000 rqxp 0 0:0 0",
		"1000-2000 r-xp",
		"1000-2000 r-xp 0",
		"1000-2000 r-xp 0 0",
		"1000-2000 r-xp 0 0:0",
		"1000-2000 r-xp 0 0:0 ",
		"1000-2000 r-xp 0 0:0 12x",
		"2000-1000 r-xp 0 0:0 0",
		"1000-1000 r-xp 0 0:0 0",
		"10000000000000000-20000000000000000 r-xp 0 0:0 0",
		"1000-2000 r-xp 0 100000000:0 0",
		"1000-2000 r-xp 0 0:0 18446744073709551616",
		"1000-2000 r-xp 0 0:0 0 ok\n-1",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct target_maps m = {0};

		cr_assert(parse(bad[i], &m) == -EINVAL, "accepted: %s", bad[i]);
		cr_assert(m.n == 0 && !m.v);
	}
	check_no_leaks();
}

Test(maps, cut_at_every_byte)
{
	const char *line = "0041f000-006d2000 r-xp 0001f000 fe:01 1234    /usr/bin/python3.11\n";

	for (size_t n = 0; n <= strlen(line); n++) {
		struct target_maps m = {0};
		char *cut = strndup(line, n); /* exact size, so that ASan detects reads beyond it */

		cr_assert_not_null(cut);
		if (!target_maps_parse(cut, n, &m, NULL))
			target_maps_deinit(&m);
		free(cut);
	}
	check_no_leaks();
}

Test(maps, too_many)
{
	static const char line[] = "1000-2000 r-xp 0 0:0 0\n";
	size_t n = sizeof(line) - 1;
	char *text = malloc(n * (TARGET_MAX_MAPS + 1));
	struct target_maps m = {0};
	struct diag diag = {0};

	cr_assert_not_null(text);
	for (size_t i = 0; i <= TARGET_MAX_MAPS; i++)
		memcpy(text + i * n, line, n);
	assert_ok(target_maps_parse(text, n * TARGET_MAX_MAPS, &m, NULL));
	cr_assert(m.n == TARGET_MAX_MAPS);
	target_maps_deinit(&m);
	assert_err(target_maps_parse(text, n * (TARGET_MAX_MAPS + 1), &m, &diag), -E2BIG);
	free(text);
	check_no_leaks();
}

/* Returns this process's mapping of an address. */
static const struct target_map *map_of(const struct target_maps *m, uint64_t addr)
{
	for (size_t i = 0; i < m->n; i++)
		if (addr >= m->v[i].start && addr < m->v[i].end)
			return &m->v[i];
	return NULL;
}

static void assert_opens(const struct target *t, uint64_t addr, const char *via_part)
{
	struct target_maps m;
	const struct target_map *map;
	struct diag diag = {0};
	struct stat st;
	char via[64];
	int fd;

	assert_diag_ok(target_maps_read(t, &m, &diag), &diag);
	map = map_of(&m, addr);
	cr_assert(map && map->exec);
	fd = target_open_map(t, map, via, sizeof(via), &diag);
	cr_assert(fd >= 0, "%s", diag.msg);
	assert_ok(fstat(fd, &st));
	cr_assert(S_ISREG(st.st_mode));
	cr_assert_not_null(strstr(via, via_part), "%s", via);
	close(fd);
	target_maps_deinit(&m);
}

Test(maps, files_behind_our_own)
{
	struct target *t = NULL;
	struct diag diag = {0};

	assert_diag_ok(target_open(getpid(), &t, &diag), &diag);
	assert_opens(t, (uint64_t)(uintptr_t)assert_opens, "/exe");
	if (geteuid() == 0)
		assert_opens(t, (uint64_t)(uintptr_t)fstat, "/map_files/");
	target_free(t);
	check_no_leaks();
}

Test(maps, a_deleted_file)
{
	int fd = memfd_create("deleted", MFD_CLOEXEC);
	struct target *t = NULL;
	struct diag diag = {0};
	void *p;

	if (geteuid() != 0)
		cr_skip_test("needs root for map_files");
	cr_assert(fd >= 0 && ftruncate(fd, 4096) == 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	cr_assert(p != MAP_FAILED);
	close(fd);
	assert_diag_ok(target_open(getpid(), &t, &diag), &diag);
	assert_opens(t, (uint64_t)(uintptr_t)p, "/map_files/");
	target_free(t);
	munmap(p, 4096);
	check_no_leaks();
}

Test(maps, no_file_or_none_any_more)
{
	char anonymous[] = "", path[] = "/gone";
	struct target_map map = {.start = 0x1000, .end = 0x2000, .exec = true, .path = anonymous};
	struct target *t = NULL;
	struct diag diag = {0};
	char via[64];

	assert_diag_ok(target_open(getpid(), &t, &diag), &diag);
	assert_err(target_open_map(t, &map, via, sizeof(via), NULL), -EINVAL);
	map.path = path;
	map.inode = 1;
	cr_assert(target_open_map(t, &map, via, sizeof(via), &diag) < 0);
	target_free(t);
	check_no_leaks();
}
