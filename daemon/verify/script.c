// SPDX-License-Identifier: BSD-2-Clause
/* The scratch program: see script.h. What is left out is what CPython's versions do differently. */
#include "verify/script.h"

#include <stddef.h>

#define STR_(x) #x
#define STR(x)	STR_(x)

const char script_text[] =
	"import posix, time\n"
	"def empty(): pass\n"
	"def leaf(a, b=1): return a\n"
	"def star(*a, **k): return leaf(*a)\n"
	"def rec(n): return rec(n - 1) if n else 0\n"
	"def gen(n):\n"
	"    for i in range(n): yield i\n"
	"def deleg():\n"
	"    yield from gen(2)\n"
	"def raising(): raise ValueError\n"
	"def middle(): raising()\n"
	"def catching():\n"
	"    try: middle()\n"
	"    except ValueError: pass\n"
	"def thrown():\n"
	"    try: yield 1\n"
	"    except ValueError: yield 2\n"
	"def fresh(): yield 1\n"
	"def escaping(): yield 1\n"
	"def echo():\n"
	"    got = None\n"
	"    try:\n"
	"        while True: got = yield got\n"
	"    finally: leaf(0)\n"
	"class Awaitable:\n"
	"    def __await__(self): yield 1\n"
	"async def inner(): return 1\n"
	"async def outer():\n"
	"    await Awaitable()\n"
	"    return await inner()\n"
	"class K:\n"
	"    def __init__(self): self.a = 1\n"
	"    @property\n"
	"    def prop(self): return self.a\n"
	"    def __getitem__(self, i): return i\n"
	"    def __getattr__(self, name): return name\n"
	"    def __call__(self): return 1\n"
	"    def method(self): return leaf(self.a)\n"
	"    def __enter__(self): return self\n"
	"    def __exit__(self, *e): return True\n"
	"def key(x): return -x\n"
	"def one(x): return x\n"
	"def generators():\n"
	"    for i in gen(3): pass\n"
	"    for i in deleg(): pass\n"
	"    g = thrown(); next(g); g.throw(ValueError)\n"
	"    try: next(g)\n"
	"    except StopIteration: pass\n"
	"    g = fresh()\n"
	"    try: g.throw(ValueError)\n"
	"    except ValueError: pass\n"
	"    g = escaping(); next(g)\n"
	"    try: g.throw(ValueError)\n"
	"    except ValueError: pass\n"
	"    g = echo(); next(g); g.send(1); g.send(2); g.close()\n"
	"    sum(x for x in (1, 2))\n"
	"def coroutines():\n"
	"    c = outer(); c.send(None)\n"
	"    try: c.send(None)\n"
	"    except StopIteration: pass\n"
	"def objects():\n"
	"    k = K(); k.prop; k[0]; k.other; k(); k.method()\n"
	"    with k: raising()\n"
	"def callbacks():\n"
	"    list(map(one, (1, 2, 3))); sorted((3, 1, 2), key=key); (lambda: 1)()\n"
	"def body():\n"
	"    leaf(1); leaf(1, 2); leaf(1, b=3); star(*(1,), **{'b': 2})\n"
	"    rec(4); catching(); generators(); coroutines(); objects(); callbacks()\n"
	"def cost(n):\n"
	"    t = time.process_time()\n"
	"    for i in range(n): empty()\n"
	"    return int((time.process_time() - t) * 1e9)\n"
	"def rounds(n):\n"
	"    for i in range(n): body()\n"
	"def say(s): posix.write(1, s.encode() + b'\\n')\n"
	"def wait(): return posix.read(0, 1)\n"
	"rounds(3); cost(" STR(
		SCRIPT_COST_CALLS) ")\n"
				   "without = min([cost(" STR(
					   SCRIPT_COST_CALLS) ") for i in (1, 2, 3)])\n"
							      "say('ready')\n"
							      "wait()\n"
							      "rounds(" STR(
								      SCRIPT_ROUNDS) ")\n"
										     "say('done')\n"
										     "wait()\n"
										     "say('cost %d "
										     "%d' % "
										     "(without, "
										     "cost(" STR(
											     SCRIPT_COST_CALLS) ")))\n"
														"while wait(): pass\n"
														"posix._exit(0)\n";

const struct script_call script_calls[] = {
	{"body", 1, 1},
	/* 3 in body, by star, by echo's end, by method */
	{"leaf", 6, 6},
	{"star", 1, 1},
	{"rec", 5, 1},
	{"catching", 1, 1},
	{"middle", 1, 1},
	{"raising", 2, 2},
	{"generators", 1, 1},
	/* one more than it yields, twice */
	{"gen", 7, 7},
	{"deleg", 3, 3},
	{"thrown", 3, 3},
	{"fresh", 1, 1},
	{"escaping", 2, 2},
	{"echo", 4, 4},
	{"<genexpr>", 3, 3},
	{"coroutines", 1, 1},
	{"outer", 2, 2},
	{"__await__", 2, 2},
	{"inner", 1, 1},
	{"objects", 1, 1},
	{"__init__", 1, 1},
	{"prop", 1, 1},
	{"__getitem__", 1, 1},
	{"__getattr__", 1, 1},
	{"__call__", 1, 1},
	{"method", 1, 1},
	{"__enter__", 1, 1},
	{"__exit__", 1, 1},
	{"callbacks", 1, 1},
	{"one", 3, 3},
	{"key", 3, 3},
	{"<lambda>", 1, 1},
	{NULL, 0, 0},
};
