# SPDX-License-Identifier: BSD-2-Clause
"""What the kernel holds for processes, and the code of processes."""

import glob
import json
import os
import re
import subprocess
import time


def children(pid):
    found = []
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        try:
            with open(path) as f:
                found += [int(p) for p in f.read().split()]
        except OSError:
            pass  # it has ended
    return found


def process_tree(pid):
    found = [pid]
    for child in children(pid):
        found += process_tree(child)
    return found


def name(pid):
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read().strip()
    except OSError:
        return ""


def rss_kib(pid):
    try:
        with open("/proc/%d/statm" % pid) as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    except (OSError, IndexError):
        return 0


def machine_kib():
    """Slab and per-CPU memory."""
    with open("/proc/meminfo") as f:
        memory = dict(re.findall(r"^(\w+):\s+(\d+) kB", f.read(), re.M))
    return int(memory["Slab"]), int(memory["Percpu"])


# -- BPF objects --

FIELDS = re.compile(r"^(prog_id|map_id|link_id|uprobe_cnt):\s*(\d+)", re.M)


class Objects:
    """BPF objects that processes hold, as far as their descriptors show; and all that were ever seen."""

    def __init__(self):
        self.seen = {"prog": set(), "map": set(), "link": set()}

    def add(self, pid):
        """Returns the numbers of programs and maps, and of probed instructions, of a process and its children."""
        now, probes = {kind: set() for kind in self.seen}, {}
        for path in [p for i in process_tree(pid) for p in glob.glob("/proc/%d/fdinfo/*" % i)]:
            try:
                with open(path) as f:
                    fields = dict(FIELDS.findall(f.read()))
            except OSError:
                continue
            for kind in now:
                if kind + "_id" in fields:
                    now[kind].add(int(fields[kind + "_id"]))
            if "uprobe_cnt" in fields:
                probes[fields["link_id"]] = int(fields["uprobe_cnt"])
        for kind, ids in now.items():
            self.seen[kind] |= ids
        return len(now["prog"]), len(now["map"]), sum(probes.values())

    def left(self):
        """Those that the kernel still has."""
        left = {}
        for kind, ids in self.seen.items():
            out = subprocess.run(["bpftool", kind, "show", "-j"], check=True, stdout=subprocess.PIPE).stdout
            left[kind] = sorted(ids & {o["id"] for o in json.loads(out)})
        return {kind: ids for kind, ids in left.items() if ids}

    def wait_until_none(self, seconds):
        end = time.monotonic() + seconds
        while self.left() and time.monotonic() < end:
            time.sleep(0.2)
        return self.left()


# -- the memory of a group of processes --

class Cgroup:
    """A memory cgroup of version 1 below the present one; without one, its memory is not known."""

    def __init__(self, label):
        self.path = None
        with open("/proc/self/cgroup") as f:
            found = re.search(r"^\d+:memory:(/.*)$", f.read(), re.M)
        path = os.path.join("/sys/fs/cgroup/memory", found.group(1).strip("/"), label) if found else None
        try:
            os.mkdir(path)
            self.path = path
        except (OSError, TypeError):
            print("no memory cgroup: the daemon's kernel memory is not measured")

    def enter(self):
        """The calling process."""
        if self.path:
            with open(os.path.join(self.path, "cgroup.procs"), "w") as f:
                f.write("0")

    def kernel_kib(self):
        try:
            with open(os.path.join(self.path, "memory.kmem.usage_in_bytes")) as f:
                return int(f.read()) // 1024
        except (OSError, TypeError):
            return None

    def remove(self):
        """Once all processes in it have ended."""
        try:
            os.rmdir(self.path)
        except (OSError, TypeError):
            pass


# -- code --

MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-xp ([0-9a-f]+) \S+ [1-9]\d*\s+/")


def changed_mapping(pid, memory, begin, end, offset):
    with open("/proc/%d/map_files/%s-%s" % (pid, begin, end), "rb") as f:
        f.seek(int(offset, 16))
        wanted = f.read(int(end, 16) - int(begin, 16))
    memory.seek(int(begin, 16))
    found = memory.read(len(wanted))
    return 0 if found == wanted else sum(a != b for a, b in zip(found, wanted))


def changed_code(pid):
    """The number of bytes of a process's code that differ from its files; 0 if it has ended."""
    try:
        with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
            return sum(changed_mapping(pid, memory, *mapping) for mapping in MAPPING.findall(maps.read()))
    except OSError:
        return 0
