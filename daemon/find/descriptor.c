// SPDX-License-Identifier: BSD-2-Clause
/* Describing descriptors: see descriptor.h. Formats: proc(5), "/proc/net/tcp". */
#include "find/descriptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "find/listeners.h"
#include "target/proc.h"

#define TABLE_MAX (64u << 20)
#define ADDRESS	  80

enum { LOCAL = 1, REMOTE, INODE = 9, UNIX_INODE = 6, UNIX_PATH };

/* The line after the first one, which names the fields, whose n-th field is this inode. */
static const char *line_of(const char *text, unsigned int n, uint64_t inode)
{
	for (const char *line = strchr(text, '\n'); line && line[1];
	     line = strchr(line + 1, '\n')) {
		const char *at = listeners_field(line + 1, n);

		if (at && strtoull(at, NULL, 10) == inode)
			return line + 1;
	}
	return NULL;
}

/* "0100007F:1538": words of 32 bits in the machine's byte order, then the port. */
static bool put_address(const char *at, char *out, size_t size)
{
	const size_t digits = at ? strspn(at, "0123456789ABCDEFabcdef") : 0;
	uint32_t words[4] = {0};
	char text[INET6_ADDRSTRLEN], word[9] = "";
	unsigned long port;

	if ((digits != 8 && digits != 32) || at[digits] != ':')
		return false;
	for (size_t i = 0; i < digits / 8; i++) {
		memcpy(word, at + 8 * i, 8);
		words[i] = (uint32_t)strtoul(word, NULL, 16);
	}
	port = strtoul(at + digits + 1, NULL, 16);
	if (!inet_ntop(digits == 8 ? AF_INET : AF_INET6, words, text, sizeof(text)))
		return false;
	snprintf(out, size, digits == 8 ? "%s:%lu" : "[%s]:%lu", text, port);
	return true;
}

static bool has_peer(const char *at)
{
	const char *colon = at ? strchr(at, ':') : NULL;

	return colon && strtoul(colon + 1, NULL, 16) > 0;
}

bool descriptor_find_inet(const char *text, uint64_t inode, char *out, size_t size)
{
	const char *line = inode ? line_of(text, INODE, inode) : NULL;
	char local[ADDRESS], remote[ADDRESS];

	if (!line || !put_address(listeners_field(line, LOCAL), local, sizeof(local)) ||
	    !put_address(listeners_field(line, REMOTE), remote, sizeof(remote)))
		return false;
	if (has_peer(listeners_field(line, REMOTE)))
		snprintf(out, size, "%s -> %s", local, remote);
	else
		snprintf(out, size, "%s", local);
	return true;
}

bool descriptor_find_unix(const char *text, uint64_t inode, char *out, size_t size)
{
	const char *line = inode ? line_of(text, UNIX_INODE, inode) : NULL;
	const char *path = line ? listeners_field(line, UNIX_PATH) : NULL;

	if (!line)
		return false;
	snprintf(out, size, "%.*s", path ? (int)strcspn(path, "\n") : 7, path ? path : "unnamed");
	return true;
}

static bool find_socket(pid_t pid, uint64_t inode, char *out, size_t size)
{
	static const char *const tables[] = {"tcp", "tcp6", "udp", "udp6", "unix"};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		_cleanup_free_ char *text = NULL;
		const size_t n = (size_t)snprintf(out, size, "%s ", tables[i]);
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, tables[i]);
		if (proc_read(AT_FDCWD, path, TABLE_MAX, &text, NULL) || n >= size)
			continue;
		if (strcmp(tables[i], "unix") == 0
			    ? descriptor_find_unix(text, inode, out + n, size - n)
			    : descriptor_find_inet(text, inode, out + n, size - n))
			return true;
	}
	return false;
}

bool descriptor_describe(pid_t pid, uint32_t fd, char *out, size_t size)
{
	static const char socket[] = "socket:[";
	char path[64], link[192];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%" PRIu32, pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return false;
	link[n] = '\0';
	if (strncmp(link, socket, strlen(socket)) == 0 &&
	    find_socket(pid, strtoull(link + strlen(socket), NULL, 10), out, size))
		return true;
	snprintf(out, size, "%s", link);
	return true;
}
