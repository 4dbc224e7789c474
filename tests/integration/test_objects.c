// SPDX-License-Identifier: BSD-2-Clause
/*
 * The census of objects, on every interpreter: compared with the program's own counts, for a
 * program that leaks and for one that changes its lists all the time.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "dump/objects.h"
#include "harness/interpreters.h"
#include "harness/test.h"

TestSuite(objects);

/*
 * Allowed difference: objects that are created between the program's count and the census, or that
 * a program cannot see, such as lines being read and printed, and iterators
 */
#define MORE 16

static const char *const script =
	"import gc, signal, sys\n"
	"signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
	"class Leaky(object):\n"
	"    def __init__(self): self.me = [self] * 3\n"
	"class Small(object):\n"
	"    __slots__ = ('x', 'y')\n"
	"keep = [Leaky() for i in range(2000)] + [Small() for i in range(10)]\n"
	"keep += [set(range(1000)), dict.fromkeys(range(1000)), tuple([[]] * 1000)]\n"
	"frozen = getattr(gc, 'get_freeze_count', int)()\n"
	"def size(t): return sum(sys.getsizeof(o) for o in gc.get_objects() if type(o) is t)\n"
	"for line in range(2):\n"
	"    gc.collect(); gc.collect()\n"
	"    n = len(gc.get_objects()) + frozen\n"
	"    print(n, size(set), size(dict), size(Small), sum(type(o) is Leaky for o in keep))\n"
	"    signal.sigwait([signal.SIGUSR1])\n"
	"    keep += [Leaky() for i in range(500)]\n";

static const struct census_type *row(const struct census *c, const char *name)
{
	static const struct census_type none;

	for (uint32_t i = 0; i < c->n; i++)
		if (strcmp(c->types[i].name, name) == 0)
			return &c->types[i];
	return &none;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Some sets and dicts are created and freed between the two counts. */
static bool near(uint64_t a, uint64_t b)
{
	return difference(a, b) <= a / 50 + 1024;
}

static void check_counts(struct objects *o, const char *line, uint64_t leaky, const char *label)
{
	uint64_t n, set, dict, small, theirs;
	struct diag diag = {0};
	struct census c = {0};

	cr_assert_eq(sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &n,
			    &set, &dict, &small, &theirs),
		     5, "%s: %s", label, line);
	assert_diag_ok(objects_census(o, &c, &diag), &diag);
	fprintf(stderr, "%s: %" PRIu64 " objects, the program counts %" PRIu64 "\n", label,
		c.objects, n);
	cr_expect(difference(c.objects, n) <= MORE, "%s: %" PRIu64 ", not %" PRIu64, label,
		  c.objects, n);
	cr_expect_eq(row(&c, "__main__.Leaky")->count, leaky, "%s", label);
	cr_expect_eq(theirs, leaky);
	cr_expect_eq(row(&c, "__main__.Small")->count, 10, "%s", label);
	cr_expect_eq(row(&c, "__main__.Small")->bytes, small, "%s: %" PRIu64, label,
		     row(&c, "__main__.Small")->bytes);
	cr_expect(near(row(&c, "set")->bytes, set), "%s: set %" PRIu64 " %" PRIu64, label,
		  row(&c, "set")->bytes, set);
	cr_expect(near(row(&c, "dict")->bytes, dict), "%s: dict %" PRIu64 " %" PRIu64, label,
		  row(&c, "dict")->bytes, dict);
	cr_expect(!c.torn && !c.unconfirmed && !c.limited && c.passes == 1 && c.interpreters == 1,
		  "%s", label);
	census_deinit(&c);
}

/* A free-threaded build is refused with a specific message. */
static bool has_no_lists(struct objects *o)
{
	struct diag diag = {0};
	struct census c = {0};
	int r = objects_census(o, &c, &diag);

	census_deinit(&c);
	cr_assert(r == 0 || (r == -EOPNOTSUPP && strstr(diag.msg, "free-threaded")), "%s",
		  diag.msg);
	return r < 0;
}

Test(objects, as_the_program_counts)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++) {
		_cleanup_(objects_freep) struct objects *o = NULL;
		struct diag diag = {0};
		char line[200];
		int out;
		pid_t pid = interpreter_start(&v[i], script, &out);

		interpreter_line(out, line, sizeof(line));
		assert_diag_ok(objects_open(pid, &o, &diag), &diag);
		if (has_no_lists(o)) {
			interpreter_end(pid, out);
			continue;
		}
		check_counts(o, line, 2000, v[i].exe);
		assert_ok(kill(pid, SIGUSR1));
		interpreter_line(out, line, sizeof(line));
		check_counts(o, line, 2500, v[i].exe);
		interpreter_end(pid, out);
		assert_err(objects_census(o, &(struct census){0}, &diag), -ESRCH);
		cr_expect_eq(diag.exit, PYP_EXIT_NO_PROCESS);
	}
}

static const char *const churn = "class Node(object): pass\n"
				 "keep = [[i] for i in range(20000)]\n"
				 "print('ready')\n"
				 "while True:\n"
				 "    x = []\n"
				 "    for i in range(20000):\n"
				 "        n = Node(); n.me = n; x.append([n, (i, [i])])\n";

/*
 * Objects that stay are counted although the lists change all the time. The census terminates, and
 * reports its uncertain results.
 */
Test(objects, of_lists_that_change)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = interpreters_find(v);

	for (size_t i = 0; i < n; i++) {
		_cleanup_(objects_freep) struct objects *o = NULL;
		struct diag diag = {0};
		struct census c = {0};
		char line[20];
		int out;
		pid_t pid = interpreter_start(&v[i], churn, &out);

		interpreter_line(out, line, sizeof(line));
		assert_diag_ok(objects_open(pid, &o, &diag), &diag);
		if (has_no_lists(o)) {
			interpreter_end(pid, out);
			continue;
		}
		assert_diag_ok(objects_census(o, &c, &diag), &diag);
		fprintf(stderr, "%s: %" PRIu64 " lists, %" PRIu32 " passes, torn %" PRIu32 "\n",
			v[i].exe, row(&c, "list")->count, c.passes, c.torn);
		cr_expect(c.torn || row(&c, "list")->count >= 20000, "%s", v[i].exe);
		cr_expect(c.objects < 400000, "%s: %" PRIu64, v[i].exe, c.objects);
		census_deinit(&c);
		interpreter_end(pid, out);
	}
}
