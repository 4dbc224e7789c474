// SPDX-License-Identifier: BSD-2-Clause
/* Processes that listen on a port: see listeners.h. */
#include "find/listeners.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "target/deadline.h"
#include "target/proc.h"

#define TABLE_MAX    (64u << 20)
#define FILES_MAX    65536
#define STATE_LISTEN 0x0a
#define FIELD_LOCAL  1
#define FIELD_STATE  3
#define FIELD_INODE  9

const char *listeners_field(const char *line, unsigned int n)
{
	for (line += strspn(line, " "); n; n--) {
		line += strcspn(line, " \n");
		line += strspn(line, " ");
	}
	return *line && *line != '\n' ? line : NULL;
}

/* "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 4711 1 …" */
static void parse_line(const char *line, unsigned int port, struct listeners *to)
{
	const char *local = listeners_field(line, FIELD_LOCAL),
		   *state = listeners_field(line, FIELD_STATE);
	const char *inode = listeners_field(line, FIELD_INODE);
	const char *colon = local ? memchr(local, ':', strcspn(local, " \n")) : NULL;
	unsigned long long v;

	if (!colon || !state || !inode || to->n == LISTENERS_MAX)
		return;
	if (strtoul(colon + 1, NULL, 16) != port || strtoul(state, NULL, 16) != STATE_LISTEN)
		return;
	v = strtoull(inode, NULL, 10);
	if (v)
		to->inode[to->n++] = v;
}

void listeners_parse(const char *text, unsigned int port, struct listeners *to)
{
	/* the first line has the names of the fields */
	for (const char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n'))
		parse_line(line + 1, port, to);
}

bool listeners_have(const struct listeners *l, const char *link)
{
	static const char prefix[] = "socket:[";
	unsigned long long inode;

	if (strncmp(link, prefix, strlen(prefix)) != 0)
		return false;
	inode = strtoull(link + strlen(prefix), NULL, 10);
	for (size_t i = 0; i < l->n; i++)
		if (l->inode[i] == inode)
			return true;
	return false;
}

/* ---- of a process ---- */

struct check {
	pid_t pid;
	unsigned int port;
	struct listeners found;
};

static int search_files(const struct check *c)
{
	_cleanup_(closedirp) DIR *d = NULL;
	struct dirent *e;
	char path[64], link[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", c->pid);
	d = opendir(path);
	if (!d)
		return -errno;
	for (size_t n = 0; n < FILES_MAX && (e = readdir(d)); n++) {
		ssize_t len = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		if (len <= 0)
			continue;
		link[len] = '\0';
		if (listeners_have(&c->found, link))
			return 1;
	}
	return 0;
}

/* 0: unknown */
static uint64_t netns_of(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* A process's own table is that of its network namespace. */
static int read_tables(struct check *c)
{
	static const char *const tables[] = {"tcp", "tcp6"};

	c->found = (struct listeners){.netns = netns_of(c->pid)};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		_cleanup_free_ char *text = NULL;
		char path[64];
		int r;

		snprintf(path, sizeof(path), "/proc/%d/net/%s", c->pid, tables[i]);
		r = proc_read(AT_FDCWD, path, TABLE_MAX, &text, NULL);
		if (r == 0)
			listeners_parse(text, c->port, &c->found);
		else if (i == 0)
			return r; /* without IPv6, there is no tcp6 */
	}
	return 0;
}

static int do_check(void *job)
{
	struct check *c = job;
	int r = 0;

	if (!c->found.netns || c->found.netns != netns_of(c->pid))
		r = read_tables(c);
	if (r < 0)
		return r;
	return c->found.n ? search_files(c) : 0;
}

int listeners_check(pid_t pid, unsigned int port, struct listeners *known)
{
	struct check *c = calloc(1, sizeof(*c));
	void *job = c;
	int r;

	if (!c)
		return -ENOMEM;
	c->pid = pid;
	c->port = port;
	c->found = *known;
	r = deadline_run(pid, do_check, &job, free);
	*known = job && r >= 0 ? c->found : (struct listeners){.n = 0};
	free(job);
	return r;
}
