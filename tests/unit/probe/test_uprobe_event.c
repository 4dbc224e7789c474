// SPDX-License-Identifier: BSD-2-Clause
/* Recognising the daemon's own lines in tracefs's uprobe_events, whose contents may be hostile. */
#include "probe/uprobe_event.h"

#include "harness/test.h"

Test(uprobe_event, ours)
{
	struct uprobe_event_maker m;
	char name[64];

	assert_ok(uprobe_event_parse(
		"p:pyprofd_effffffc_1f_2111b/s4 /proc/31/exe:0x000000000008b98a", name, &m));
	cr_assert_str_eq(name, "pyprofd_effffffc_1f_2111b/s4");
	cr_assert_eq(m.pid_ns, 0xeffffffc);
	cr_assert_eq(m.pid, 31);
	cr_assert_eq(m.starttime, 0x2111b);
}

Test(uprobe_event, not_ours)
{
	static const char *const lines[] = {
		"",
		"p:pyprofd_",
		"p:uprobes/p_bin_0x1 /bin/true:0x1",
		"r:pyprofd_1_2_3/s0 /bin/true:0x1",
		"p:pyprofd/s0 /bin/true:0x1",
		"p:pyprofd_1_2/s0 /bin/true:0x1",
		"p:pyprofd_x_2_3/s0 /bin/true:0x1",
		"p:pyprofd_1_0_3/s0 /bin/true:0x1",
		"p:pyprofd_1_ffffffff_3/s0 /bin/true:0x1",
		"p:pyprofd_1_2_3/s0",
		"p:pyprofd_1_2_11111111111111111/s0 /bin/true:0x1",
		"p:pyprofd_1_2_3/"
		"sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss /bin/true:0x1",
	};
	struct uprobe_event_maker m;
	char name[64];

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		cr_assert(uprobe_event_parse(lines[i], name, &m) < 0, "%s", lines[i]);
}
