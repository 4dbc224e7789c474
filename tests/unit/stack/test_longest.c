// SPDX-License-Identifier: BSD-2-Clause
/*
 * The longest waits: some for each reason, with what was waited for; saved, loaded and merged with
 * the pairs of holder and waiter.
 */
#include "stack/longest.h"

#include <sys/syscall.h>

#include "format/format.h"
#include "harness/event_script.h"
#include "harness/test.h"
#include "snapshot/load.h"
#include "snapshot/merge.h"

Test(longest, those_of_each_reason)
{
	struct longest l = {0};
	uint64_t least = UINT64_MAX, sum = 0;

	for (uint32_t i = 1; i <= 1000; i++)
		longest_add(&l, WAIT_lock, &(struct long_wait){.ns = i * 7919u % 1009u});
	longest_add(&l, WAIT_disk, &(struct long_wait){.ns = 3, .fd = 4});
	cr_assert(l.of[WAIT_lock].n == WAIT_LONGEST && l.of[WAIT_disk].n == 1 &&
		  l.of[WAIT_disk].v[0].fd == 4);
	least = l.of[WAIT_lock].v[l.of[WAIT_lock].least].ns;
	longest_add(&l, WAIT_lock, &(struct long_wait){.ns = least, .fd = 99});
	for (uint32_t i = 0; i < WAIT_LONGEST; i++) {
		cr_assert_neq(l.of[WAIT_lock].v[i].fd, 99, "not longer than any");
		least = l.of[WAIT_lock].v[i].ns < least ? l.of[WAIT_lock].v[i].ns : least;
		sum += l.of[WAIT_lock].v[i].ns;
	}
	/* of the 1000 different lengths of 1 to 1008, all but nine */
	cr_assert(least >= 1008 - WAIT_LONGEST - 9 && sum > 15 * least, "least %lu", least);
}

static struct snapshot *recorded(const char *script)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;

	assert_ok(profile_keep_waits(event_script_profile(es)));
	event_script_run(es, script);
	s = event_script_snapshot(es);
	event_script_free(es);
	return s;
}

static void assert_wait(const struct snapshot *s, uint32_t i, const char *func,
			enum wait_reason why, uint64_t ns, const char *syscall, uint32_t fd)
{
	const struct snapshot_wait *w = &s->waits[i];

	cr_assert_lt(i, s->nwaits);
	cr_assert_str_eq(s->funcs[w->func].name, func);
	cr_assert(w->why == why && w->ns == ns && w->fd == fd, "%s: %lu ns of %s, descriptor %u",
		  func, w->ns, wait_name((enum wait_reason)w->why), w->fd);
	cr_assert(syscall ? w->syscall && strcmp(w->syscall, syscall) == 0 : !w->syscall);
}

#define SCRIPT                                                                                     \
	"T1 enter 1 f; T1 +5 out lock; T1 +90 in; T1 +5 enter 2 g 1; T1 +1 out socket fd 7; "      \
	"T1 +400 in; T1 +1 out cpu; T1 +30 in; T1 +1 leave 2; T1 +1 leave 1"

static void assert_script(const struct snapshot *s)
{
	cr_assert_eq(s->nwaits, 3);
	assert_wait(s, 0, "g", WAIT_socket, 400, "read", 7);
	assert_wait(s, 1, "f", WAIT_lock, 90, "futex", SNAPSHOT_NONE);
	assert_wait(s, 2, "g", WAIT_runnable, 30, NULL, SNAPSHOT_NONE);
	cr_assert_eq(s->waits[0].end_ns - s->waits[1].end_ns, 406);
}

Test(longest, of_a_profile)
{
	struct snapshot *s = recorded(SCRIPT);

	assert_script(s);
	snapshot_free(s);
	check_no_leaks();
}

static struct snapshot *saved_and_loaded(const struct snapshot *s)
{
	const struct format *json = format_find("json");
	struct snapshot *ret = NULL;
	struct diag diag = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_diag_ok(format_write(json, s, &(struct format_opts){0}, out, &diag), &diag);
	fclose(out);
	assert_diag_ok(snapshot_parse(text, size, "test", &ret, &diag), &diag);
	free(text);
	return ret;
}

#define PAIR                                                                                       \
	"T1 enter 1 f; T2 enter 9 g; T1 +1 out gil; T2 +50 enter 10 h 9; T2 +1 leave 10; "         \
	"T1 +5 in; T1 +1 leave 1; T2 +1 leave 9"

Test(longest, saved_and_merged)
{
	struct snapshot *a = recorded(SCRIPT), *b = recorded(PAIR), *back = saved_and_loaded(a);
	const struct snapshot *const list[] = {back, b, b};
	struct snapshot *merged = NULL;
	uint64_t pairs = 0, once = 0;

	assert_script(back);
	assert_ok(snapshot_merge(list, 3, &merged));
	cr_assert_eq(merged->nwaits, back->nwaits + 2 * b->nwaits);
	for (uint32_t i = 0; i < b->ngil_pairs; i++)
		once += b->gil_pairs[i].ns;
	for (uint32_t i = 0; i < merged->ngil_pairs; i++)
		pairs += merged->gil_pairs[i].ns;
	cr_assert(once > 0 && pairs == 2 * once && merged->ngil_pairs == b->ngil_pairs,
		  "%lu, not twice %lu", pairs, once);
	snapshot_free(merged);
	snapshot_free(back);
	snapshot_free(b);
	snapshot_free(a);
	check_no_leaks();
}
