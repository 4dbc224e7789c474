// SPDX-License-Identifier: BSD-2-Clause
/* find/cgroup: units and containers in paths as programs write them. */
#include "find/cgroup.h"

#include "harness/test.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void check(const char *text, const char *unit, const char *runtime, const char *container)
{
	struct cgroup_place place;

	memset(&place, 'x', sizeof(place));
	cgroup_parse(text, &place);
	cr_assert_str_eq(place.unit, unit, "%s: unit %s", text, place.unit);
	cr_assert_str_eq(place.runtime, runtime, "%s: runtime %s", text, place.runtime);
	cr_assert_str_eq(place.container, container, "%s: container %s", text, place.container);
}

Test(cgroup, units)
{
	check("0::/system.slice/web.service\n", "web.service", "", "");
	check("0::/system.slice/system-worker.slice/worker@3.service\n", "worker@3.service", "",
	      "");
	check("0::/user.slice/user-1000.slice/user@1000.service/app.slice/bot.service\n",
	      "bot.service", "", "");
	check("0::/user.slice/user-1000.slice/session-2.scope\n", "session-2.scope", "", "");
	check("0::/system.slice/web.service/workers\n", "web.service", "", "");
	check("12:pids:/system.slice/no.service\n1:name=systemd:/system.slice/web.service\n",
	      "web.service", "", "");
	check("0::/\n", "", "", "");
}

Test(cgroup, containers)
{
	check("0::/system.slice/docker-" ID ".scope\n", "", "docker", ID);
	check("12:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "\n", "", "docker", ID);
	check("0::/machine.slice/libpod-" ID ".scope/container\n", "", "podman", ID);
	check("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
	      ".scope/container\n",
	      "", "podman", ID);
	check("0::/libpod_parent/libpod-" ID "\n", "", "podman", ID);
	check("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/"
	      "cri-containerd-" ID ".scope\n",
	      "", "kubernetes", ID);
	check("5:cpu:/kubepods/besteffort/pod1-2-3/" ID "\n", "", "kubernetes", ID);
	check("0::/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" ID "\n", "",
	      "kubernetes", ID);
	check("0::/system.slice/crio-" ID ".scope\n", "", "cri-o", ID);
	check("0::/ecs/task/" ID "\n", "", "container", ID);
	check("0::/lxc.payload.shop/system.slice/web.service\n", "web.service", "lxc", "shop");
	check("4:devices:/lxc/shop\n", "", "lxc", "shop");
	check("0::/machine.slice/systemd-nspawn@shop.service/payload\n", "", "nspawn", "shop");
	check("0::/machine.slice/machine-shop.scope\n", "", "machine", "shop");
}

/* The innermost container, and the unit in it */
Test(cgroup, nested)
{
	check("0::/system.slice/docker.service/docker/" ID "/docker/" ID2 "\n", "", "docker", ID2);
	check("0::/system.slice/docker-" ID ".scope/system.slice/web.service\n", "web.service",
	      "docker", ID);
}

Test(cgroup, hostile)
{
	static char text[4096];

	check("", "", "", "");
	check("\n\n:\n::\n", "", "", "");
	check("0:", "", "", "");
	check("0::", "", "", "");
	check("0::/docker-" ID "0.scope\n", "docker-" ID "0.scope", "", "");
	check("0::/docker-\n0::/.service\n", "", "", "");
	check("0::/lxc.payload.\n", "", "", "");
	/* a component that no file system allows is no name */
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "0::/", 4);
	memcpy(text + sizeof(text) - 10, ".service\n", 9);
	check(text, "", "", "");
}
