// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process's mappings: parses /proc/PID/maps and opens the mapped files. The kernel writes the
 * text, but the target controls the names in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "target/memory.h"
#include "target/proc.h"
#include "target/target.h"

/* 65536 lines; few can have long names */
#define MAPS_MAX_TEXT (64u << 20)

/* bytes of a mapping that are compared with its file */
#define VERIFY_BYTES 4096

struct cursor {
	const char *p, *end;
};

/* A number in base 10 or 16. If `after` is not 0, it must follow and is consumed. */
static bool take_number(struct cursor *c, unsigned int base, char after, uint64_t *ret)
{
	const char *start = c->p;
	uint64_t v = 0;

	for (; c->p < c->end; c->p++) {
		char ch = *c->p;
		unsigned int digit;

		if (ch >= '0' && ch <= '9')
			digit = (unsigned int)(ch - '0');
		else if (base == 16 && ch >= 'a' && ch <= 'f')
			digit = (unsigned int)(ch - 'a' + 10);
		else
			break;
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit, &v))
			return false;
	}
	if (c->p == start)
		return false;
	if (after) {
		if (c->p == c->end || *c->p != after)
			return false;
		c->p++;
	}
	*ret = v;
	return true;
}

/* "r-xp " */
static bool take_perms(struct cursor *c, struct target_map *m)
{
	static const char letters[3] = {'r', 'w', 'x'};
	bool *bits[3] = {&m->read, &m->write, &m->exec};

	if (c->end - c->p < 5 || c->p[4] != ' ' || (c->p[3] != 'p' && c->p[3] != 's'))
		return false;
	for (int i = 0; i < 3; i++) {
		if (c->p[i] != letters[i] && c->p[i] != '-')
			return false;
		*bits[i] = c->p[i] == letters[i];
	}
	m->shared = c->p[3] == 's';
	c->p += 5;
	return true;
}

/* All fields but the name */
static bool take_numbers(struct cursor *c, struct target_map *m)
{
	uint64_t major, minor;

	if (!take_number(c, 16, '-', &m->start) || !take_number(c, 16, ' ', &m->end) ||
	    m->start >= m->end || !take_perms(c, m) || !take_number(c, 16, ' ', &m->offset) ||
	    !take_number(c, 16, ':', &major) || !take_number(c, 16, ' ', &minor) ||
	    !take_number(c, 10, 0, &m->inode))
		return false;
	m->dev_major = (uint32_t)major;
	m->dev_minor = (uint32_t)minor;
	return major <= UINT32_MAX && minor <= UINT32_MAX;
}

static int parse_line(const char *line, size_t n, struct target_map *ret)
{
	struct cursor c = {line, line + n};
	struct target_map m = {0};

	if (!take_numbers(&c, &m) || (c.p < c.end && *c.p != ' '))
		return -EINVAL;
	while (c.p < c.end && *c.p == ' ')
		c.p++;
	m.path = strndup(c.p, (size_t)(c.end - c.p));
	if (!m.path)
		return -ENOMEM;
	*ret = m;
	return 0;
}

static int add_line(struct target_maps *maps, size_t *room, const char *line, size_t n)
{
	int err;

	if (maps->n == TARGET_MAX_MAPS)
		return -E2BIG;
	if (maps->n == *room) {
		size_t want = *room ? 2 * *room : 64;
		struct target_map *v = reallocarray(maps->v, want, sizeof(*v));

		if (!v)
			return -ENOMEM;
		maps->v = v;
		*room = want;
	}
	err = parse_line(line, n, &maps->v[maps->n]);
	if (!err)
		maps->n++;
	return err;
}

int target_maps_parse(const char *text, size_t size, struct target_maps *ret, struct diag *diag)
{
	_cleanup_(target_maps_deinit) struct target_maps maps = {0};
	const char *p = text, *end = text + size;
	size_t room = 0;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = nl ? (size_t)(nl - p) : (size_t)(end - p);
		int err = add_line(&maps, &room, p, n);

		if (err == -EINVAL)
			return diag_set(diag, err, PYP_EXIT_FAILURE, "",
					"cannot parse line %zu of the process's maps", maps.n + 1);
		if (err)
			return diag_errno(diag, -err, "the process has too many mappings");
		p += n + 1;
	}
	*ret = maps;
	maps = (struct target_maps){0};
	return 0;
}

int target_maps_read(const struct target *t, struct target_maps *ret, struct diag *diag)
{
	_cleanup_free_ char *text = NULL;
	struct target_maps maps;
	size_t size;
	int fd = target_open_part(t, TARGET_MAPS, 0, 0);
	int err = fd < 0 ? fd : proc_read_fd(fd, MAPS_MAX_TEXT, &text, &size);

	if (err)
		return diag_errno(diag, err == -ENOENT ? ESRCH : -err,
				  "cannot read the mappings of process %d", t->pid);
	if (!target_alive(t))
		return diag_errno(diag, ESRCH, "process %d has ended", t->pid);
	err = target_maps_parse(text, size, &maps, diag);
	if (!err)
		*ret = maps;
	return err;
}

int target_maps_code(const struct target_maps *maps, uint64_t address, struct native_code *ret)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct target_map *m = &maps->v[i];
		const char *name = strrchr(m->path, '/'), *deleted;
		size_t n;

		if (!m->exec || address < m->start || address >= m->end)
			continue;
		name = name ? name + 1 : m->path;
		deleted = strstr(name, " (deleted)");
		n = deleted ? (size_t)(deleted - name) : strlen(name);
		*ret = (struct native_code){.start = m->start, .end = m->end};
		snprintf(ret->file, sizeof(ret->file), "%.*s",
			 (int)(n < NATIVE_FILE_MAX ? n : NATIVE_FILE_MAX - 1), name);
		return 0;
	}
	return -ENOENT;
}

void target_maps_deinit(struct target_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		free(maps->v[i].path);
	free(maps->v);
	*maps = (struct target_maps){0};
}

/*
 * Returns whether fd is the mapped file. Inode numbers are unique only within a file system, and on
 * overlayfs the device numbers in maps and from stat differ, so contents are compared. Probes may
 * have changed some bytes of the mapping. If the mapping cannot be read, it is assumed to be the
 * file.
 */
static bool same_contents(const struct target *t, const struct target_map *map, int fd)
{
	struct memory mem = target_memory(t);
	unsigned char file[VERIFY_BYTES], mapped[VERIFY_BYTES];
	ssize_t n = pread(fd, file, sizeof(file), (off_t)map->offset);
	size_t same = 0;

	if (n <= 0)
		return false;
	if (map->write || memory_read(&mem, map->start, mapped, (size_t)n))
		return true;
	for (ssize_t i = 0; i < n; i++)
		same += file[i] == mapped[i];
	return same >= (size_t)n / 4 * 3;
}

/* Returns file if it is a regular file with that inode, else a negative errno and closes it. */
static int check_file(int file, uint64_t inode)
{
	_cleanup_close_ int fd = file;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (inode && st.st_ino != inode)
		return -ESTALE;
	return TAKE_FD(fd);
}

/* Open through /proc/PID/exe, which needs fewer privileges than map_files. */
static int open_exe(const struct target *t, const struct target_map *map)
{
	_cleanup_close_ int fd = -1;

	if (strcmp(map->path, t->exe) != 0)
		return -ESTALE;
	fd = check_file(target_open_part(t, TARGET_EXE, 0, 0), map->inode);
	if (fd >= 0 && !same_contents(t, map, fd))
		return -ESTALE;
	return fd < 0 ? fd : TAKE_FD(fd);
}

int target_open_map(const struct target *t, const struct target_map *map, char *via, size_t size,
		    struct diag *diag)
{
	char path[64];
	int fd;

	if (!map->inode || map->path[0] != '/')
		return diag_set(diag, -EINVAL, PYP_EXIT_UNTRACEABLE, "",
				"the mapping at %#lx of process %d has no file",
				(unsigned long)map->start, t->pid);
	snprintf(path, sizeof(path), "/proc/%d/exe", t->tid);
	fd = open_exe(t, map);
	if (fd < 0) {
		snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", t->tid,
			 (unsigned long)map->start, (unsigned long)map->end);
		/* On overlayfs the inode number may differ from the one in maps. */
		fd = check_file(target_open_part(t, TARGET_MAP, map->start, map->end), 0);
	}
	if (fd == -EINVAL)
		return diag_set(diag, -EINVAL, PYP_EXIT_UNTRACEABLE, "",
				"'%s', mapped by process %d, is not a regular file", map->path,
				t->pid);
	if (fd < 0)
		return diag_errno(diag, -fd, "cannot open '%s', mapped by process %d", map->path,
				  t->pid);
	snprintf(via, size, "%s", path);
	return fd;
}
