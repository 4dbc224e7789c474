// SPDX-License-Identifier: BSD-2-Clause
/* The HTTP listener: see http_listener.h. */
#include "server/http_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/secret.h"

#define BACKLOG	   64
#define FILE_MAX   65536
#define TOKEN_HINT "e.g. openssl rand -hex 32 > FILE"

/* ---- files ---- */

/* forbidden: bits of the mode that the file may not have. */
static int check_file(int fd, const char *path, mode_t forbidden, struct diag *diag)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return diag_errno(diag, errno, "cannot inspect '%s'", path);
	if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "name a file of at most 64 KiB",
				"'%s' is not a regular file, or too large", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return diag_set(diag, -EPERM, PYP_EXIT_USAGE, "chown it to root",
				"'%s' belongs to user %u, neither root nor the daemon's", path,
				st.st_uid);
	if (st.st_mode & forbidden)
		return diag_set(diag, -EPERM, PYP_EXIT_USAGE,
				forbidden & S_IROTH ? "chmod 0400 it" : "chmod 0644 it",
				"other users can %s '%s' (mode %04o)",
				forbidden & S_IROTH ? "use" : "change", path,
				(unsigned int)(st.st_mode & 07777));
	return 0;
}

/* The text of a file, owned by the caller. Links are followed: mounted secrets are links. */
static int read_file(const char *path, mode_t forbidden, char **ret, struct diag *diag)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	_cleanup_free_ char *text = NULL;
	ssize_t got;
	size_t n = 0;
	int r;

	if (fd < 0)
		return diag_errno(diag, errno, "cannot open '%s'", path);
	r = check_file(fd, path, forbidden, diag);
	if (r < 0)
		return r;
	text = calloc(FILE_MAX + 1, 1);
	if (!text)
		return -ENOMEM;
	while (n < FILE_MAX && (got = read(fd, text + n, FILE_MAX - n)) > 0)
		n += (size_t)got;
	if (strlen(text) != n)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, NULL, "'%s' is not text", path);
	*ret = TAKE_PTR(text);
	return 0;
}

static int read_token(const char *path, char **ret, struct diag *diag)
{
	_cleanup_free_ char *text = NULL;
	int r = read_file(path, S_IRWXG | S_IRWXO, &text, diag);

	if (r < 0)
		return r;
	text[strcspn(text, "\r\n")] = '\0';
	for (const char *p = text; *p; p++)
		if (*p <= ' ' || *p > '~')
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, TOKEN_HINT,
					"the token in '%s' has a blank or another character that a "
					"header cannot have",
					path);
	if (secret_bits(text) < HTTP_TOKEN_BITS)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, TOKEN_HINT,
				"the token in '%s' has less than %d bits", path, HTTP_TOKEN_BITS);
	*ret = TAKE_PTR(text);
	return 0;
}

static int read_files(struct http_listener *l, const struct http_listener_opts *o,
		      struct diag *diag)
{
	int r = 0;

	if (!o->cert != !o->key)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "give both, as PEM files",
				"--http-cert and --http-key belong together");
	if (o->token_file)
		r = read_token(o->token_file, &l->token, diag);
	if (r == 0 && o->cert)
		r = read_file(o->cert, S_IWGRP | S_IWOTH, &l->cert, diag);
	if (r == 0 && o->key)
		r = read_file(o->key, S_IRWXG | S_IRWXO, &l->key, diag);
	l->access.token = l->token;
	return r;
}

/* ---- the socket ---- */

static int cannot_listen(const char *addr, int err, struct diag *diag)
{
	const enum pyp_exit exit = err == EADDRINUSE		   ? PYP_EXIT_BUSY
				   : err == EACCES || err == EPERM ? PYP_EXIT_PERMISSION
								   : PYP_EXIT_FAILURE;

	return diag_set(diag, -err, exit, "choose another address with --http",
			"cannot listen on %s: %s", addr, strerror(err));
}

static int open_socket(struct http_listener *l, const struct address *a, const char *addr,
		       struct diag *diag)
{
	struct address bound = {.n = sizeof(bound.sa)};
	const int on = 1;

	l->fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0 || setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(l->fd, (const struct sockaddr *)&a->sa, a->n) < 0 || listen(l->fd, BACKLOG) < 0 ||
	    getsockname(l->fd, (struct sockaddr *)&bound.sa, &bound.n) < 0)
		return cannot_listen(addr, errno, diag);
	address_text(&bound, l->text);
	return 0;
}

static int check_exposed(const struct http_listener *l, const struct address *a, const char *addr,
			 struct diag *diag)
{
	if (address_is_loopback(a) || (l->token && l->cert))
		return 0;
	return diag_set(diag, -EPERM, PYP_EXIT_USAGE,
			"give --http-token-file, --http-cert and --http-key, or a loopback address",
			"other hosts can reach %s: it needs a token and a certificate", addr);
}

static int check_unused(const struct http_listener_opts *o, struct diag *diag)
{
	if (!o->token_file && !o->cert && !o->key)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "give --http ADDR:PORT",
			"--http-token-file, --http-cert and --http-key are for --http");
}

int http_listener_open(const struct http_listener_opts *o, struct http_listener **ret,
		       struct diag *diag)
{
	_cleanup_(http_listener_freep) struct http_listener *l = NULL;
	struct address a;
	int r;

	*ret = NULL;
	if (!o->addr)
		return check_unused(o, diag);
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->fd = -1;
	r = address_parse(o->addr, &a, diag);
	if (r == 0)
		r = read_files(l, o, diag);
	if (r == 0)
		r = check_exposed(l, &a, o->addr, diag);
	if (r == 0)
		r = open_socket(l, &a, o->addr, diag);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(l);
	return 0;
}

static void wipe(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void http_listener_free(struct http_listener *l)
{
	if (!l)
		return;
	closep(&l->fd);
	wipe(l->token);
	wipe(l->key);
	free(l->cert);
	free(l);
}
