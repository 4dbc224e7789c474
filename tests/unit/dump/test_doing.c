// SPDX-License-Identifier: BSD-2-Clause
/* dump/doing: the text of /proc/PID/task/TID/syscall. */
#include <errno.h>

#include "dump/doing.h"
#include "harness/test.h"

Test(doing, texts)
{
	struct doing_call c;

	assert_ok(doing_parse("running\n", &c));
	cr_assert(c.running);
	assert_ok(doing_parse("-1 0x7ffc0 0x7f00\n", &c));
	cr_assert(!c.running && c.nr == -1);
	assert_ok(doing_parse("202 0x7f0000001000 0x80 0x0 0x0 0x0 0x0 0x7ffc0 0x7f00\n", &c));
	cr_assert(c.nr == 202 && c.arg[0] == 0x7f0000001000 && c.arg[1] == 0x80);
	assert_err(doing_parse("", &c), -EINVAL);
	assert_err(doing_parse("202\n", &c), -EINVAL);
	assert_err(doing_parse("x", &c), -EINVAL);
}

Test(doing, kinds)
{
	const struct pyp_gil_range gils[PYP_GIL_RANGES] = {{.start = 0x1000, .size = 208}};
	const struct pyp_gil_range unknown[PYP_GIL_RANGES] = {0};
	struct doing_call c = {.running = true, .nr = -1};

	cr_assert_eq(doing_kind_of(&c, "", gils), DOING_RUNNING);
	c.running = false;
	cr_assert_eq(doing_kind_of(&c, "", gils), DOING_FAULT);
	c = (struct doing_call){.nr = 202, .arg = {0x1020}};
	cr_assert_eq(doing_kind_of(&c, "futex", gils), DOING_GIL);
	cr_assert_eq(doing_kind_of(&c, "futex", unknown), DOING_LOCK);
	cr_assert_eq(doing_kind_of(&c, "read", gils), DOING_CALL);
	cr_assert_eq(doing_kind_of(&c, "clock_nanosleep", gils), DOING_SLEEP);
	c.arg[0] = 0x10d0;
	cr_assert_eq(doing_kind_of(&c, "futex", gils), DOING_LOCK);
	cr_assert_str_eq(doing_kind_name(DOING_GIL), "gil");
	cr_assert_null(doing_kind_name(DOING_UNKNOWN));
}
