# SPDX-License-Identifier: BSD-2-Clause
"""Start a target program: see proto.py for what is said on stdin and stdout.

usage: run.py PROGRAM [--cprofile OUT.json [--builtins] | --monitoring OUT.json | --spans]
              [--repeat N] [--warm N] [ARG...]

PROGRAM is a module beside this file with a main(*args). It is called `warm` times before `ready`
(default: the module's WARM, or 2), so that imports and caches are as they will stay, and `repeat`
times (default 1) between `ready` and `done`. With --cprofile what cProfile counted is written as
JSON: a list of [filename, firstlineno, name, ncalls, pcalls]; with --monitoring what sys.monitoring
(before 3.12: sys.setprofile) did, whose pcalls mean nothing. With --spans it says how long the
measured calls took by the kernel's clocks.
"""

import gc
import importlib
import os
import sys


def same_start():
    """Make two starts equal: no hash randomisation, no PYTHON* variables that add code."""
    drop = ("PYTHONASYNCIODEBUG", "PYTHONDEVMODE", "PYTHONTRACEMALLOC", "PYTHONWARNINGS")
    if os.environ.get("PYTHONHASHSEED") == "0" and not any(name in os.environ for name in drop):
        return
    os.environ["PYTHONHASHSEED"] = "0"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for name in drop:
        os.environ.pop(name, None)
    # An interpreter that needs a launcher (tests/fetch-interpreters.sh) sets this variable.
    python = os.environ.get("PYPROF_LAUNCHER", sys.executable)
    os.execv(python, [python] + sys.argv)


def parse(argv):
    opts = {"--cprofile": None, "--monitoring": None, "--repeat": "1", "--warm": None,
            "--spans": None, "--builtins": None}
    rest = []
    argv = argv[1:]
    while argv:
        word = argv.pop(0)
        if word in ("--spans", "--builtins"):
            opts[word] = True
        elif word in opts and argv:
            opts[word] = argv.pop(0)
        else:
            rest.append(word)
    if not rest or rest[0].startswith("-"):
        sys.exit(__doc__)
    return rest[0], rest[1:], opts


def main():
    name, args, opts = parse(sys.argv)
    same_start()
    sys.path[0] = os.path.dirname(os.path.abspath(__file__))
    import proto
    program = importlib.import_module(name)
    out = opts["--cprofile"] or opts["--monitoring"]
    profiled = out and ("monitoring" if opts["--monitoring"] else "cprofile")
    if profiled:
        import cProfile  # noqa: F401 (imported before it is measured)
        import json
    warm = opts["--warm"]
    for _ in range(getattr(program, "WARM", 2) if warm is None else int(warm)):
        program.main(*args)
    gc.collect()
    gc.disable()  # the collector's times depend on everything, and finalisers are calls

    if opts["--spans"]:
        proto.spans = []
    proto.builtins = bool(opts["--builtins"])
    proto.say("ready")
    proto.wait()
    result = None
    for _ in range(int(opts["--repeat"])):
        result = proto.region(program.main, args, profiled)
    if result is not None:
        proto.say("result " + result)
    if proto.spans is not None:
        proto.say("spans " + repr(proto.spans))
    proto.say("done")
    proto.wait()
    if profiled:
        with open(out, "w") as f:
            json.dump(proto.counts(), f, indent=0)
    os._exit(0)


main()
