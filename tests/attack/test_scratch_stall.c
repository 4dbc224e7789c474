// SPDX-License-Identifier: BSD-2-Clause
/* The self-test's scratch process, with a target whose root directory does not respond */
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "harness/attack.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

TestSuite(scratch_stall);

/* ---- a file system that does not respond ------------------------------------------------- */

/*
 * A FUSE file system with only a root directory. Its server responds until the directory is a
 * process's root, and then no longer until the test ends: processes that wait for it cannot be
 * killed.
 */
static int fuse, leash[2];

static void answer_fuse(uint64_t unique, const void *data, size_t size)
{
	struct fuse_out_header head = {.len = (uint32_t)(sizeof(head) + size), .unique = unique};
	char message[512];

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), data, size);
	attack_must(write(fuse, message, head.len) == (ssize_t)head.len, "answer");
}

static uint32_t serve_one(void)
{
	static char request[1 << 17];
	const struct fuse_in_header *in = (const void *)request;
	const struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
	const struct fuse_attr_out attr = {.attr = {.ino = 1, .mode = S_IFDIR | 0755, .nlink = 2}};

	attack_must(read(fuse, request, sizeof(request)) > 0, "a request");
	if (in->opcode == FUSE_INIT)
		answer_fuse(in->unique, &init, sizeof(init));
	else if (in->opcode == FUSE_GETATTR)
		answer_fuse(in->unique, &attr, sizeof(attr));
	else
		answer_fuse(in->unique, "", 0);
	return in->opcode;
}

/* chdir() and chroot() check access once each. */
static _Noreturn void serve(void)
{
	struct pollfd p[] = {{.fd = 4, .events = POLLIN}, {.fd = 3, .events = POLLIN}};
	unsigned int asked = 0;

	/* This process must not keep the test's output open. */
	attack_must(dup2(leash[0], 1) == 1 && dup2(fuse, 0) == 0, "descriptors");
	attack_must(dup2(1, 4) == 4 && dup2(0, 3) == 3, "descriptors");
	close_range(5, ~0u, 0);
	close_range(0, 2, 0);
	fuse = 3;
	while (poll(p, asked < 2 ? 2 : 1, -1) > 0 && !p[0].revents)
		asked += serve_one() == FUSE_ACCESS;
	_exit(0);
}

static void root_without_an_answer(struct attack *a)
{
	char options[128];

	attack_private_mounts(a);
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 fuse);
	attack_must(fuse >= 0 && mount("fuse", "/mnt", "fuse", 0, options) == 0, "FUSE");
	serve_one();
	if (fork() == 0)
		serve();
}

#define CHROOT                                                                                     \
	"import os, time\n"                                                                        \
	"os.chdir('/mnt'); os.chroot('.')\n"                                                       \
	"os.write(1, b'x')\n"                                                                      \
	"time.sleep(300)\n"

Test(scratch_stall, a_root_directory_that_does_not_answer)
{
	struct attack a = {.code = "", .prepare = root_without_an_answer, .program = CHROOT};

	if (access("/dev/fuse", W_OK))
		cr_skip_test("needs FUSE");
	assert_ok(pipe2(leash, O_CLOEXEC));
	attack_setup(&a);
	attack_start(&a);
	/* Its server stays silent until the leash is closed, so doctor has not waited for it. */
	attack_follow(&a, attack_doctor(&a));
	cr_assert(strstr(a.text, "does not respond"), "%s", a.text);
	close(leash[1]);
	attack_end(&a);
}
