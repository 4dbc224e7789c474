// SPDX-License-Identifier: BSD-2-Clause
/* The owner of the file system of a file, according to mountinfo. */
#include "harness/test.h"
#include "target/target.h"

static const char text[] =
	"21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
	"30 21 0:40 / /mnt/a\\040-\\040fuse rw - tmpfs none rw\n"
	"31 21 0:41 / /mnt/x rw,nosuid shared:3 - fuse.sshfs u@h rw,user_id=1000,group_id=1000\n"
	"32 21 0:42 / /mnt/root rw - fuse fuse rw,user_id=0,group_id=0\n"
	"33 21 0:43 / /mnt/odd rw - fuse user_id=0 rw,user_id=01\n"
	"34 21 7:1 / /mnt/ntfs rw - fuseblk /dev/loop1 rw,user_id=0,group_id=0,allow_other\n"
	"35 21 0:44 / /cut rw";

static enum mount_kind kind(uint64_t major, uint64_t minor, uint64_t id)
{
	return mount_kind_of(text, &(struct mount_key){major, minor, id});
}

Test(mount, kinds)
{
	cr_assert_eq(kind(254, 0, 0), MOUNT_KERNEL);
	cr_assert_eq(kind(0, 40, 0), MOUNT_KERNEL);
	cr_assert_eq(kind(0, 41, 0), MOUNT_FUSE_USER);
	cr_assert_eq(kind(0, 42, 0), MOUNT_FUSE_ROOT);
	cr_assert_eq(kind(0, 43, 0), MOUNT_FUSE_USER);
	cr_assert_eq(kind(7, 1, 0), MOUNT_FUSE_ROOT);
	cr_assert_eq(kind(0, 99, 31), MOUNT_FUSE_USER);
	cr_assert_eq(kind(0, 99, 0), MOUNT_UNKNOWN);
	cr_assert_eq(kind(0, 44, 0), MOUNT_UNKNOWN);
	cr_assert_eq(mount_kind_of("", &(struct mount_key){0, 0, 0}), MOUNT_UNKNOWN);
}
