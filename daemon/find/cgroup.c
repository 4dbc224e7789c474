// SPDX-License-Identifier: BSD-2-Clause
/*
 * Units and containers in the paths of control groups: see cgroup.h.
 *
 * What the programs that create containers write there (a component each, ID: 64 hex digits):
 *
 *   docker       /docker/ID, docker-ID.scope
 *   podman       /libpod_parent/libpod-ID, libpod-ID.scope[/container]
 *   containerd   /kubepods/…/podUID/ID, cri-containerd-ID.scope, kubepods…slice:cri-containerd:ID
 *   cri-o        crio-ID.scope
 *   lxc          /lxc/NAME, lxc.payload.NAME
 *   nspawn       systemd-nspawn@NAME.service, machine-NAME.scope
 */
#include "find/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ID_SIZE 64

/* A component of a path, and the one before it ("": none) */
struct part {
	char name[CGROUP_NAME_MAX], before[CGROUP_NAME_MAX];
};

static bool is_id(const char *s)
{
	return strspn(s, "0123456789abcdef") >= ID_SIZE &&
	       (!s[ID_SIZE] || strcmp(s + ID_SIZE, ".scope") == 0);
}

static bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n > m && strcmp(s + n - m, suffix) == 0;
}

static void set_container(struct cgroup_place *place, const char *runtime, const char *name,
			  size_t n)
{
	snprintf(place->runtime, sizeof(place->runtime), "%s", runtime);
	snprintf(place->container, sizeof(place->container), "%.*s", (int)n, name);
	place->unit[0] = '\0'; /* that of the program that created the container */
}

/* Containers named by id: "PREFIX-ID.scope", "…:PREFIX:ID", or "ID" below a known directory */
static bool take_id(struct cgroup_place *place, const struct part *p, bool kubernetes)
{
	static const struct {
		const char *prefix, *runtime;
	} known[] = {{"docker", "docker"},	  {"libpod", "podman"},
		     {"libpod_parent", "podman"}, {"cri-containerd", "containerd"},
		     {"crio", "cri-o"},		  {"nerdctl", "containerd"}};
	const char *dash = strrchr(p->name, '-'), *colon = strrchr(p->name, ':');
	const char *id = colon ? colon + 1 : dash ? dash + 1 : p->name;
	const char *prefix = id == p->name ? p->before : p->name;
	const char *runtime = "container";

	if (!is_id(id))
		return false;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t n = strlen(known[i].prefix);
		const char *at = colon ? strstr(prefix, known[i].prefix) : prefix;

		if (at && strncmp(at, known[i].prefix, n) == 0 &&
		    (!at[n] || at[n] == '-' || at[n] == ':'))
			runtime = known[i].runtime;
	}
	set_container(place, kubernetes ? "kubernetes" : runtime, id, ID_SIZE);
	return true;
}

/* Containers that have a name */
static bool take_name(struct cgroup_place *place, const struct part *p)
{
	static const char payload[] = "lxc.payload.", nspawn[] = "systemd-nspawn@",
			  machine[] = "machine-", service[] = ".service", scope[] = ".scope";
	const char *name = p->name;
	size_t n = strlen(name);

	if (strncmp(name, payload, strlen(payload)) == 0 && name[strlen(payload)]) {
		set_container(place, "lxc", name + strlen(payload), n - strlen(payload));
	} else if (strcmp(p->before, "lxc") == 0 || strcmp(p->before, "lxc.payload") == 0) {
		set_container(place, "lxc", name, n);
	} else if (strncmp(name, nspawn, strlen(nspawn)) == 0 && has_suffix(name, service)) {
		set_container(place, "nspawn", name + strlen(nspawn),
			      n - strlen(nspawn) - strlen(service));
	} else if (strncmp(name, machine, strlen(machine)) == 0 && has_suffix(name, scope)) {
		set_container(place, "machine", name + strlen(machine),
			      n - strlen(machine) - strlen(scope));
	} else {
		return false;
	}
	return true;
}

static void take_part(struct cgroup_place *place, const struct part *p, bool kubernetes)
{
	/* systemd puts '_' before names that the kernel would take for its own files. */
	const char *name = p->name[0] == '_' ? p->name + 1 : p->name;

	if (take_id(place, p, kubernetes) || take_name(place, p))
		return;
	if (has_suffix(name, ".service") || has_suffix(name, ".scope"))
		snprintf(place->unit, sizeof(place->unit), "%.*s", CGROUP_NAME_MAX - 1, name);
}

/* path ends at '\n' or NUL. Components that are too long for a file name are left out. */
static void parse_path(const char *path, struct cgroup_place *ret)
{
	struct cgroup_place place = {0};
	struct part part = {0};
	bool kubernetes = false;

	while (*path && *path != '\n') {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/\n");
		memcpy(part.before, part.name, sizeof(part.before));
		snprintf(part.name, sizeof(part.name), "%.*s", n < sizeof(part.name) ? (int)n : 0,
			 path);
		kubernetes = kubernetes || strncmp(part.name, "kubepods", 8) == 0;
		if (part.name[0])
			take_part(&place, &part, kubernetes);
		path += n;
	}
	*ret = place;
}

/* systemd keeps its units in the hierarchy of version 2, or in one of its own. */
static bool is_systemd(const char *line, const char *path)
{
	static const char named[] = ":name=systemd:";
	size_t n = strlen(named);

	return strncmp(line, "0::", 3) == 0 ||
	       ((size_t)(path - line) > n && strncmp(path - n, named, n) == 0);
}

void cgroup_parse(const char *text, struct cgroup_place *ret)
{
	*ret = (struct cgroup_place){0};
	for (const char *line = text; line && *line;) {
		const char *next = strchr(line, '\n');
		const char *first = strchr(line, ':');
		const char *path = first && (!next || first < next) ? strchr(first + 1, ':') : NULL;
		struct cgroup_place place;

		if (path && (!next || path < next)) {
			parse_path(path + 1, &place);
			if (place.container[0] && !ret->container[0]) {
				memcpy(ret->runtime, place.runtime, sizeof(ret->runtime));
				memcpy(ret->container, place.container, sizeof(ret->container));
			}
			if (is_systemd(line, path + 1) && !ret->unit[0])
				memcpy(ret->unit, place.unit, sizeof(ret->unit));
		}
		line = next ? next + 1 : NULL;
	}
}
