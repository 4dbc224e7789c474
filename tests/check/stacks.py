#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The stacks of the BPF programs fit in what kernels before 6.13 allow: stacks.py BPF-OBJECT

Those kernels allow 512 bytes for a program and the functions that it calls together, round the stack of
each up to 32 bytes (16 since 6.9), and allow 8 functions. They include calls in code that never runs.
Newer kernels allow each function 512 bytes, so a program that is too large for the older ones loads
where it is developed. Reads the disassembly; prints the largest chains of calls that are too large.
"""

import re
import subprocess
import sys

MOST_BYTES, MOST_CALLS, ROUND = 512, 8, 32


class Function:
    def __init__(self, name):
        self.name, self.bytes, self.calls = name, 0, set()

    def rounded(self):
        return max(ROUND, -(-self.bytes // ROUND) * ROUND)


def disassembly(path):
    return subprocess.run(["llvm-objdump", "-d", "-r", "--no-show-raw-insn", path], check=True,
                          stdout=subprocess.PIPE).stdout.decode().splitlines()


def read_stack(function, instruction, aliases):
    """Accesses relative to r10, and addresses computed from it."""
    found = re.search(r"\(r10 - (\w+)\)", instruction)
    if found:
        function.bytes = max(function.bytes, int(found.group(1), 0))
    found = re.match(r"(r\d) = r10$", instruction)
    if found:
        aliases.add(found.group(1))
    found = re.match(r"(r\d) \+= -(\w+)$", instruction)
    if found and found.group(1) in aliases:
        aliases.discard(found.group(1))
        function.bytes = max(function.bytes, int(found.group(2), 0))


def read(lines):
    """(section, address) -> Function. Calls are names, or addresses in .text."""
    functions, function, section, immediate, aliases = {}, None, "", None, set()
    for line in lines:
        head = re.match(r"^([0-9a-f]{16}) <(.*)>:", line)
        if line.startswith("Disassembly of section "):
            section = line.split()[-1].rstrip(":")
        elif head and not head.group(2).startswith("LBB"):
            function, aliases = Function(head.group(2)), set()
            functions[section, int(head.group(1), 16)] = function
        elif "R_BPF_64_" in line:
            kind, name = line.split()[1:3]
            if kind == "R_BPF_64_32":
                # A call of a static function: relative to the start of .text, in instructions
                function.calls.add((immediate + 1) * 8 if name == ".text" else name)
            elif name == ".text":  # a callback
                function.calls.add(immediate)
        elif function and re.match(r"\s+\d+:", line):
            instruction = line.split(":", 1)[1].strip()
            read_stack(function, instruction, aliases)
            found = re.match(r"call (\S+)$|r\d = (\S+) ll$", instruction)
            if found:
                immediate = int(found.group(1) or found.group(2), 0)
    return functions


def worst(function, resolve, measure):
    below = max((worst(resolve(call), resolve, measure) for call in function.calls),
                key=lambda chain: sum(map(measure, chain)), default=[])
    return [function] + below


def main(path):
    functions = read(disassembly(path))
    named = {f.name: f for f in functions.values()}

    def resolve(call):
        return named[call] if isinstance(call, str) else functions[".text", call]

    programs = [f for (section, _), f in functions.items() if section != ".text"]
    failed = not programs
    for program in programs:
        large = worst(program, resolve, Function.rounded)
        deep = worst(program, resolve, lambda f: 1)
        if sum(f.rounded() for f in large) > MOST_BYTES:
            print("%d bytes: %s" % (sum(f.rounded() for f in large),
                                    " ".join("%s(%d)" % (f.name, f.bytes) for f in large)))
            failed = True
        if len(deep) > MOST_CALLS:
            print("%d functions: %s" % (len(deep), " ".join(f.name for f in deep)))
            failed = True
    return failed


sys.exit(main(sys.argv[1]))
