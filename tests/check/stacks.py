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
    return subprocess.run(["llvm-objdump", "-d", "-r", path], check=True,
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


class Reader:
    """Builds `functions`: (section, address) -> Function. Calls are names, or addresses in .text."""

    def __init__(self):
        self.functions, self.function, self.section = {}, None, ""
        self.immediate, self.near, self.aliases = None, None, set()

    def read(self, line):
        head = re.match(r"^([0-9a-f]{16}) <(.*)>:", line)
        instruction = re.match(r"\s+(\d+):\s+((?:[0-9a-f]{2}\s)+)\s*(.*)", line)
        if "R_BPF_64_" in line:
            self.relocation(*line.split()[1:3])
            return
        self.near_call()
        if line.startswith("Disassembly of section "):
            self.section = line.split()[-1].rstrip(":")
        elif head and not head.group(2).startswith("LBB"):
            self.function, self.aliases = Function(head.group(2)), set()
            self.functions[self.section, int(head.group(1), 16)] = self.function
        elif self.function and instruction:
            self.instruction(int(instruction.group(1)), instruction.group(2), instruction.group(3))

    def instruction(self, index, code, text):
        read_stack(self.function, text, self.aliases)
        found = re.match(r"call (\S+)$|r\d = (\S+) ll$", text)
        if found:
            self.immediate = int(found.group(1) or found.group(2), 0)
        if code.startswith("85 10 "):
            self.near = (index + 1 + self.immediate) * 8

    def near_call(self):
        """The last instruction was a call without a relocation: of a static function, in .text only."""
        if self.near is not None:
            self.function.calls.add(self.near)
        self.near = None

    def relocation(self, kind, name):
        self.near = None
        if kind == "R_BPF_64_32":
            # A call of a static function: relative to the start of .text, in instructions
            self.function.calls.add((self.immediate + 1) * 8 if name == ".text" else name)
        elif name == ".text":  # a callback
            self.function.calls.add(self.immediate)


def read(lines):
    reader = Reader()
    for line in lines:
        reader.read(line)
    return reader.functions


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
