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
	memcpy(sites->at + plan.nsites, plan.gc, plan.ngc * sizeof(plan.gc[0]));
}

int sites_changed(const struct sites *sites, pid_t pid)
{
	_cleanup_close_ int fd = -1;
	char path[64];
	int changed = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
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
