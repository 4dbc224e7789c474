// SPDX-License-Identifier: BSD-2-Clause
/* A FUSE file system whose server stops answering: see fuse.h. */
#include "harness/fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/patience.h"

#define FILE_NODE 2
#define BUFFER	  (1u << 20)
#define EMPTY	  (1u << 20) /* bytes of a file without content */

static int dev, content_fd = -1;
static uint64_t content_size;
static _Alignas(8) char request[BUFFER], data[BUFFER];

static void reply(const struct fuse_in_header *in, int err, const void *body, size_t n)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + n), .error = err, .unique = in->unique};
	const struct iovec iov[2] = {{&out, sizeof(out)}, {(void *)(uintptr_t)body, n}};

	if (writev(dev, iov, n ? 2 : 1) < 0 && errno == ENODEV)
		_exit(0);
}

static struct fuse_attr attr_of(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.size = node == FILE_NODE ? content_size : 0,
		.mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755,
		.nlink = 1,
		.blksize = 4096,
	};
}

static void serve_read(const struct fuse_in_header *in, const struct fuse_read_in *rd)
{
	size_t want = rd->size < sizeof(data) ? rd->size : sizeof(data);
	ssize_t n = pread(content_fd, data, want, (off_t)rd->offset);

	reply(in, n < 0 ? -EIO : 0, data, n < 0 ? 0 : (size_t)n);
}

static void serve(const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
					   .minor = FUSE_KERNEL_MINOR_VERSION,
					   .max_readahead = 65536,
					   .max_write = 65536};
	struct fuse_attr_out attr = {.attr_valid = 3600, .attr = attr_of(in->nodeid)};
	struct fuse_entry_out entry = {.nodeid = FILE_NODE,
				       .entry_valid = 3600,
				       .attr_valid = 3600,
				       .attr = attr_of(FILE_NODE)};
	struct fuse_open_out opened = {.fh = 1};

	switch (in->opcode) {
	case FUSE_INIT:
		reply(in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		if (strcmp(arg, "file") != 0)
			reply(in, -ENOENT, NULL, 0);
		else
			reply(in, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		reply(in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		reply(in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		if (content_fd >= 0)
			serve_read(in, arg);
		break; /* otherwise the request is not answered */
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		break;
	case FUSE_RELEASE:
	case FUSE_FLUSH:
		reply(in, 0, NULL, 0);
		break;
	default:
		reply(in, -ENOSYS, NULL, 0);
	}
}

static const char *mounted;

static void leave(int sig)
{
	(void)sig;
	umount2(mounted, MNT_DETACH);
	rmdir(mounted);
	_exit(0);
}

/*
 * Serve requests. Unmounts when the program's time is over, or when the test has died, because no
 * other process would.
 */
static _Noreturn void run(const struct fuse_fs *fs)
{
	mounted = fs->dir;
	signal(SIGALRM, leave);
	signal(SIGTERM, leave);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	alarm((unsigned int)patience_left().tv_sec + 1);
	for (;;) {
		const struct fuse_in_header *in = (const void *)request;
		ssize_t n = read(dev, request, sizeof(request));

		if (n < 0 && errno == ENODEV)
			_exit(0);
		if (n < (ssize_t)sizeof(*in))
			continue;
		if (!*fs->stalled)
			serve(in, in + 1);
		else if (in->opcode == FUSE_FLUSH)
			++*fs->flushes;
	}
}

static bool set_up(struct fuse_fs *fs, const char *content)
{
	char options[128];
	struct stat st;

	if (content) {
		content_fd = open(content, O_RDONLY | O_CLOEXEC);
		if (content_fd < 0 || fstat(content_fd, &st) < 0)
			return false;
	}
	content_size = content ? (uint64_t)st.st_size : EMPTY;
	snprintf(fs->dir, sizeof(fs->dir), "/tmp/pyprof-fuse-XXXXXX");
	if (!mkdtemp(fs->dir))
		return false;
	snprintf(fs->file, sizeof(fs->file), "%s/file", fs->dir);
	dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=1000,group_id=1000,allow_other", dev);
	return dev >= 0 && mount("test", fs->dir, "fuse", MS_NODEV | MS_NOSUID, options) == 0;
}

_Bool fuse_start(struct fuse_fs *fs, const char *content)
{
	*fs = (struct fuse_fs){0};
	fs->stalled = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fs->stalled == MAP_FAILED || !set_up(fs, content)) {
		if (fs->dir[0])
			rmdir(fs->dir);
		return false;
	}
	fs->flushes = fs->stalled + 1;
	fs->server = fork();
	if (fs->server == 0)
		run(fs);
	close(dev); /* with the server's copy, the last one is closed, and the kernel aborts the
		     * requests */
	if (content_fd >= 0)
		close(content_fd);
	content_fd = -1;
	return fs->server > 0;
}

void fuse_silence(struct fuse_fs *fs)
{
	*fs->stalled = 1;
}

_Bool fuse_holds_a_close(const struct fuse_fs *fs)
{
	return *fs->flushes > 0;
}

void fuse_end(struct fuse_fs *fs)
{
	if (fs->server > 0) {
		kill(fs->server, SIGKILL);
		waitpid(fs->server, NULL, 0);
		umount2(fs->dir, MNT_DETACH);
		rmdir(fs->dir);
	}
	fs->server = 0;
}
