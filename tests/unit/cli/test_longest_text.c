// SPDX-License-Identifier: BSD-2-Clause
/* cli/longest_text and cli/descriptor: the text, compared exactly; tables of sockets. */
#include "longest_text.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/wait.h"
#include "find/descriptor.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

static const char tcp[] = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
			  "retrnsmt   uid  timeout inode\n"
			  "   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 "
			  "00000000   999        0 4711 1 0 100 0 0 10 0\n"
			  "   1: 0100007F:A804 0200000A:1538 01 00000000:00000000 02:000000A7 "
			  "00000000     0        0 4712 2 0 20 4 0 10 -1\n";
static const char tcp6[] =
	"  sl  local_address                         remote_address                        st "
	"tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	"   0: 00000000000000000000000001000000:1F90 00000000000000000000000001000000:A804 01 "
	"00000000:00000000 00:00000000 00000000     0        0 99 1 0\n";
static const char unix_[] =
	"Num       RefCount Protocol Flags    Type St Inode Path\n"
	"0000000000000000: 00000002 00000000 00010000 0001 01 4713 /run/db.sock\n"
	"0000000000000000: 00000003 00000000 00000000 0001 03 4714\n";

Test(longest_text, addresses_of_sockets)
{
	char out[DESCRIPTOR_MAX];

	cr_assert(descriptor_find_inet(tcp, 4711, out, sizeof(out)));
	cr_assert_str_eq(out, "127.0.0.1:5432");
	cr_assert(descriptor_find_inet(tcp, 4712, out, sizeof(out)));
	cr_assert_str_eq(out, "127.0.0.1:43012 -> 10.0.0.2:5432");
	cr_assert(descriptor_find_inet(tcp6, 99, out, sizeof(out)));
	cr_assert_str_eq(out, "[::1]:8080 -> [::1]:43012");
	cr_assert_not(descriptor_find_inet(tcp, 471, out, sizeof(out)));
	cr_assert_not(descriptor_find_inet(tcp, 0, out, sizeof(out)));
	cr_assert(descriptor_find_unix(unix_, 4713, out, sizeof(out)));
	cr_assert_str_eq(out, "/run/db.sock");
	cr_assert(descriptor_find_unix(unix_, 4714, out, sizeof(out)));
	cr_assert_str_eq(out, "unnamed");
	cr_assert_not(descriptor_find_unix(unix_, 471, out, sizeof(out)));
}

/* Cut anywhere, a table gives the address, none, or one that is cut; nothing outside it is read. */
Test(longest_text, damaged_tables)
{
	for (size_t n = 0; n < sizeof(tcp); n++) {
		char *cut = strndup(tcp, n), out[DESCRIPTOR_MAX] = "";

		(void)descriptor_find_inet(cut, 4712, out, sizeof(out));
		(void)descriptor_find_unix(cut, 4712, out, sizeof(out));
		free(cut);
	}
	cr_assert_not(descriptor_find_inet("\n 0: :: : 0 0 0 0 0 0 5\n", 5, (char[8]){0}, 8));
}

Test(longest_text, descriptors_of_this_process)
{
	char out[DESCRIPTOR_MAX];
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	cr_assert(descriptor_describe(getpid(), (uint32_t)fd, out, sizeof(out)));
	cr_assert_str_eq(out, "/dev/null");
	close(fd);
	cr_assert_not(descriptor_describe(getpid(), (uint32_t)fd, out, sizeof(out)));
}

static bool describe(pid_t pid, uint32_t fd, char *out, size_t size)
{
	snprintf(out, size, "tcp of %d\x1b[31m", pid);
	return fd == 7;
}

static char *text(const struct snapshot *s, uint64_t limit, char *const *patterns, int n)
{
	const struct longest_opts o = {
		.limit = limit, .patterns = patterns, .npatterns = n, .describe = describe};
	struct diag diag = {0};
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);

	setenv("TZ", "UTC", 1);
	tzset();
	assert_diag_ok(longest_text(s, &o, out, &diag), &diag);
	fclose(out);
	return ret;
}

static struct snapshot *built(void)
{
	static struct snapshot_wait waits[] = {
		{.pid = 42, .tid = 43, .func = 0, .why = WAIT_lock, .ns = 90000000, .end_ns = 5},
		{.pid = 42,
		 .tid = 44,
		 .func = 1,
		 .why = WAIT_socket,
		 .ns = 1500000000,
		 .end_ns = 2000000000,
		 .syscall = "recvfrom",
		 .fd = 7},
		{.pid = 42,
		 .tid = 44,
		 .func = SNAPSHOT_NONE,
		 .why = WAIT_disk,
		 .ns = 5000,
		 .end_ns = 1000000000,
		 .syscall = "read",
		 .fd = 8},
	};
	struct snapshot *s = snapshot_build("target 42\nthread 42 43 worker\nmain a.py:1 2 100000\n"
					    " f b.py:7 1 50000\n");

	waits[0].fd = SNAPSHOT_NONE;
	s->waits = waits;
	s->nwaits = 3;
	s->measured |= COLUMN_WAITS;
	s->targets[0].start_ns = 1000000000;
	s->targets[0].start_unix_ns = UINT64_C(1795600000) * 1000000000;
	return s;
}

#define HEAD "   seconds    ended reason   process:thread  function, and what it waited for\n"
#define SOCKET                                                                                     \
	"  1.500000 09:46:41 socket        42:44      b.py:7(f)\n"                                 \
	"                                recvfrom of descriptor 7, now tcp of 42\\x1b[31m\n"

Test(longest_text, longest_first_with_what_it_waited_for)
{
	struct snapshot *s = built();
	char *all = text(s, 10, NULL, 0), *one = text(s, 1, NULL, 0);

	cr_assert_str_eq(all, "   The 3 longest waits (at most 16 for each reason)\n\n" HEAD SOCKET
			      "  0.090000          lock          42:43      a.py:1(main)\n"
			      "  0.000005 09:46:40 disk          42:44      (outside Python)\n"
			      "                                read of descriptor 8\n");
	cr_assert_str_eq(one,
			 "   The 1 longest waits (at most 16 for each reason)\n\n" HEAD SOCKET);
	free(all);
	free(one);
	snapshot_free(s);
	check_no_leaks();
}

Test(longest_text, of_functions_that_match)
{
	struct snapshot *s = built();
	static char b[] = "b.py", f[] = "f.$", at[] = "main", open[] = "(";
	char *names[] = {b, f}, *none[] = {b, at}, *wrong[] = {open};
	const struct longest_opts o = {.limit = 1, .patterns = wrong, .npatterns = 1};
	struct diag diag = {0};
	char *match = text(s, 10, names, 2), *no_match = text(s, 10, none, 2);

	cr_assert_str_eq(match,
			 "   The 1 longest waits (at most 16 for each reason)\n\n" HEAD SOCKET);
	cr_assert_str_eq(no_match, "   The 0 longest waits (at most 16 for each reason)\n\n");
	cr_assert(longest_text(s, &o, stderr, &diag) == -EINVAL && diag.exit == PYP_EXIT_USAGE);
	s->measured = 0;
	cr_assert_eq(longest_text(s, &o, stderr, &diag), -ENODATA);
	free(match);
	free(no_match);
	snapshot_free(s);
	check_no_leaks();
}
