// SPDX-License-Identifier: BSD-2-Clause
/* Probe sites in memory: see sites.h. */
#include "harness/sites.h"

#include <fcntl.h>

#include "harness/test.h"
#include "python/python.h"

void sites_find(struct sites *sites, pid_t pid)
{
	_cleanup_(target_freep) struct target *target = NULL;
	_cleanup_(python_freep) struct python *py = NULL;
	struct diag diag = {0};
	struct plan plan;

	assert_diag_ok(target_open(pid, &target, &diag), &diag);
	assert_diag_ok(python_discover(target, &py, &diag), &diag);
	assert_diag_ok(plan_build(py->image, &py->layout, &plan, &diag), &diag);
	cr_assert(plan.nsites > 0);
	sites->bias = py->bias;
	sites->n = plan.nsites + plan.ngc;
	memcpy(sites->at, plan.sites, plan.nsites * sizeof(plan.sites[0]));
	sites->nmarks = plan.nmarks;
	for (unsigned int i = 0; i < plan.nmarks; i++) {
		const uint8_t *code = image_view(py->image, plan.marks[i].vaddr, 1);

		cr_assert_not_null(code);
		sites->marks[i].vaddr = plan.marks[i].vaddr;
		sites->marks[i].byte = *code;
	}
	memcpy(sites->at + plan.nsites, plan.gc, plan.ngc * sizeof(plan.gc[0]));
}

static int open_memory(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int sites_changed(const struct sites *sites, pid_t pid)
{
	_cleanup_close_ int fd = open_memory(pid);
	int changed = 0;

	if (fd < 0)
		return -1;
	for (unsigned int i = 0; i < sites->n; i++) {
		const struct plan_site *site = &sites->at[i];
		uint8_t bytes[sizeof(site->bytes)];

		if (pread(fd, bytes, site->len, (off_t)(sites->bias + site->vaddr)) != site->len)
			return -1;
		changed += memcmp(bytes, site->bytes, site->len) != 0;
	}
	return changed;
}

int sites_marked(const struct sites *sites, pid_t pid)
{
	_cleanup_close_ int fd = open_memory(pid);
	int changed = 0;

	if (fd < 0)
		return -1;
	for (unsigned int i = 0; i < sites->nmarks; i++) {
		uint8_t byte;

		if (pread(fd, &byte, 1, (off_t)(sites->bias + sites->marks[i].vaddr)) != 1)
			return -1;
		changed += byte != sites->marks[i].byte;
	}
	return changed;
}
