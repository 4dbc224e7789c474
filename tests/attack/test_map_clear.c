// SPDX-License-Identifier: BSD-2-Clause
/*
 * At each attach, probes forget known code objects and threads. With many of them, the maps must be
 * emptied in batches, not with two system calls per element.
 */
#include <bpf/bpf.h>
#include <dlfcn.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/probe_rig.h"
#include "harness/test.h"

#define ELEMENTS 60000u
#define CALLS	 200u /* limit of system calls, far below the number of elements */
#define FDS	 1024

TestSuite(map_clear, .init = caps_require_bpf);

/* Interposes libbpf's functions to count calls. */
static unsigned int calls;

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

int bpf_map_delete_elem(int fd, const void *key)
{
	calls++;
	return REAL(bpf_map_delete_elem)(fd, key);
}

int bpf_map_get_next_key(int fd, const void *key, void *next)
{
	calls++;
	return REAL(bpf_map_get_next_key)(fd, key, next);
}

int bpf_map_lookup_and_delete_batch(int fd, void *in, void *out, void *keys, void *values,
				    __u32 *count, const struct bpf_map_batch_opts *opts)
{
	calls++;
	return REAL(bpf_map_lookup_and_delete_batch)(fd, in, out, keys, values, count, opts);
}

/* This process's descriptor of the BPF map with this name */
static int map_named(const char *name)
{
	for (int fd = 0; fd < FDS; fd++) {
		struct bpf_map_info info = {0};
		__u32 len = sizeof(info);

		if (bpf_obj_get_info_by_fd(fd, &info, &len) == 0 && strcmp(info.name, name) == 0 &&
		    info.max_entries >= ELEMENTS)
			return fd;
	}
	cr_assert_fail("no map %s", name);
	return -1;
}

static void fill(int fd)
{
	uint64_t value = 1;

	for (uint64_t key = 1; key <= ELEMENTS; key++)
		assert_ok(bpf_map_update_elem(fd, &key, &value, BPF_ANY));
}

static unsigned int elements(int fd)
{
	uint64_t key, next;
	unsigned int n = 0;
	const void *last = NULL;

	for (; !REAL(bpf_map_get_next_key)(fd, last, &next); n++) {
		key = next;
		last = &key;
	}
	return n;
}

Test(map_clear, takes_few_system_calls)
{
	struct probe_rig rig;
	int codes, threads;

	probe_rig_start(&rig, 0);
	codes = map_named("codes");
	threads = map_named("threads");
	probe_detach(rig.probe);
	fill(codes);
	fill(threads);
	cr_assert_eq(elements(codes), ELEMENTS);
	calls = 0;
	probe_rig_attach(&rig);
	cr_assert(calls <= CALLS, "%u system calls for %u elements", calls, 2 * ELEMENTS);
	cr_assert_eq(elements(codes), 0);
	cr_assert_eq(elements(threads), 0);
	probe_rig_stop(&rig);
	check_no_leaks();
}
