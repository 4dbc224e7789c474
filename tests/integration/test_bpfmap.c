// SPDX-License-Identifier: BSD-2-Clause
/* Clearing maps: those with many elements and wide values, too. */
#include "probe/bpfmap.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/test.h"

#define WIDE	 16u	/* bytes of a value, as of a C function or a waiting thread */
#define ELEMENTS 20000u /* more than are read at a time */

TestSuite(bpfmap, .init = caps_require_bpf);

static int map_with(uint32_t key_size, uint32_t value_size, uint32_t n)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "cleared", key_size, value_size, n, &opts);
	uint8_t value[WIDE] = {0};

	cr_assert_geq(fd, 0);
	for (uint64_t key = 0; key < n; key++)
		cr_assert_eq(bpf_map_update_elem(fd, &key, value, BPF_ANY), 0);
	return fd;
}

static void check(uint32_t key_size, uint32_t value_size)
{
	int fd = map_with(key_size, value_size, ELEMENTS);
	uint64_t key;

	bpfmap_clear(fd);
	cr_assert_lt(bpf_map_get_next_key(fd, NULL, &key), 0);
	close(fd);
	check_no_leaks(); /* and the heap is intact */
}

Test(bpfmap, is_cleared)
{
	check(4, 1);
	check(8, 8);
	check(8, WIDE);
	check(4, WIDE);
}

Test(bpfmap, absent_map_is_ignored)
{
	bpfmap_clear(-1);
}
