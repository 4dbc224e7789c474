// SPDX-License-Identifier: BSD-2-Clause
/* find/listeners: the kernel's tables of sockets, and a socket of our own. */
#include "find/listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/test.h"

#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
#define ROW(local, state, inode)                                                                   \
	"   0: " local " 00000000:0000 " state " 00000000:00000000 00:00000000 00000000  1000"     \
	"        0 " inode " 1 0000000000000000 100 0 0 10 0\n"

static struct listeners parse(const char *text, unsigned int port)
{
	struct listeners l = {.n = 0};

	listeners_parse(text, port, &l);
	return l;
}

Test(listeners, parse)
{
	static const char text[] = HEAD ROW("0100007F:1F90", "0A", "4711")
		ROW("00000000:0050", "0A", "80") ROW("0100007F:1F90", "01", "4712")
			ROW("0100007F:1F90", "0A", "4713");
	static const char six[] = HEAD ROW("00000000000000000000000000000000:1F90", "0A", "4714");
	struct listeners l = parse(text, 8080);

	cr_assert(l.n == 2 && l.inode[0] == 4711 && l.inode[1] == 4713);
	listeners_parse(six, 8080, &l);
	cr_assert(l.n == 3 && l.inode[2] == 4714);
	cr_assert_eq(parse(text, 80).n, 1);
	cr_assert_eq(parse(text, 8081).n, 0);
}

Test(listeners, odd_tables)
{
	static char many[(LISTENERS_MAX + 2) * sizeof(ROW("0100007F:1F90", "0A", "4711"))];
	size_t n;

	cr_assert_eq(parse("", 80).n, 0);
	cr_assert_eq(parse(HEAD, 80).n, 0);
	cr_assert_eq(parse(HEAD "\n\n", 80).n, 0);
	cr_assert_eq(parse(HEAD "0: 00000000:0050 x 0A\n", 80).n, 0);
	cr_assert_eq(parse(HEAD "0: nothing 00000000:0050 0A a b c d e 5\n", 80).n, 0);
	cr_assert_eq(parse(HEAD ROW("00000000:0050", "0A", "0"), 80).n, 0);
	n = (size_t)snprintf(many, sizeof(many), "%s", HEAD);
	for (int i = 0; i <= LISTENERS_MAX; i++)
		n += (size_t)snprintf(many + n, sizeof(many) - n, "%s",
				      ROW("00000000:0050", "0A", "9"));
	cr_assert_eq(parse(many, 80).n, LISTENERS_MAX);
}

Test(listeners, have)
{
	const struct listeners l = {.inode = {4711, 12}, .n = 2};

	cr_assert(listeners_have(&l, "socket:[4711]") && listeners_have(&l, "socket:[12]"));
	cr_assert(!listeners_have(&l, "socket:[1]") && !listeners_have(&l, "socket:["));
	cr_assert(!listeners_have(&l, "pipe:[12]") && !listeners_have(&l, "/srv/socket:[12]"));
}

Test(listeners, check)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct listeners known = {.n = 0}, fresh = {.n = 0};
	unsigned int port;

	cr_assert(fd >= 0 && bind(fd, (struct sockaddr *)&addr, n) == 0);
	cr_assert(getsockname(fd, (struct sockaddr *)&addr, &n) == 0);
	port = ntohs(addr.sin_port);
	cr_assert_eq(listeners_check(getpid(), port, &known), 0, "it does not listen yet");
	cr_assert(listen(fd, 1) == 0);
	cr_assert_eq(listeners_check(getpid(), port, &fresh), 1);
	cr_assert(fresh.n > 0 && fresh.netns);
	cr_assert_eq(listeners_check(getpid(), port, &fresh), 1, "again, with what is known");
	close(fd);
	cr_assert_eq(listeners_check(getpid(), port, &fresh), 0);
	assert_err(listeners_check(4194304, port, &fresh), -ESRCH);
	cr_assert_eq(fresh.n, 0);
}
