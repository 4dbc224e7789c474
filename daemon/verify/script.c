// SPDX-License-Identifier: BSD-2-Clause
/*
 * The test program: see script.h. It starts, resumes and ends frames in every possible way, first
 * plainly, then while tools are active (a profiler, a debugger, sys.monitoring), as their opcodes
 * have other handlers and sites. It omits what CPython itself does differently then: closing a
 * generator that is suspended outside of any try. Code run by a tool is not monitored but may be
 * instrumented, so the tool resumes a generator whose code ran before.
 *
 * The tools are callables written in C that take any arguments, so they make no events themselves;
 * one is a Python function, which is what debuggers have. tests/integration/test_script.c compares
 * the events below with what each interpreter reports of itself. Before its second thread it
 * collects garbage: in free-threaded builds code objects wait for that, and from then on for ever.
 */
#include "verify/script.h"

#include <stddef.h>

#define STR_(x) #x
#define STR(x)	STR_(x)
#define ROUNDS	100
#define FEW	5

#define FUNCTIONS                                                                                  \
	"import posix, sys, time, itertools, gc, _thread\n"                                        \
	"def empty(): pass\n"                                                                      \
	"def leaf(a, b=1): return a\n"                                                             \
	"def star(*a, **k): return leaf(*a)\n"                                                     \
	"def rec(n): return rec(n - 1) if n else 0\n"                                              \
	"def comp(): return [i for i in (1, 2)]\n"                                                 \
	"def gen(n):\n"                                                                            \
	"    for i in range(n): yield i\n"                                                         \
	"def deleg():\n"                                                                           \
	"    yield from gen(2)\n"                                                                  \
	"def raising(*a): raise ValueError\n"                                                      \
	"def middle(): raising()\n"                                                                \
	"def catching():\n"                                                                        \
	"    try: middle()\n"                                                                      \
	"    except ValueError: pass\n"                                                            \
	"def thrown():\n"                                                                          \
	"    try: yield 1\n"                                                                       \
	"    except ValueError: yield 2\n"                                                         \
	"def fresh(): yield 1\n"                                                                   \
	"def escaping(): yield 1\n"                                                                \
	"def passing(g):\n"                                                                        \
	"    yield from g\n"                                                                       \
	"def echo():\n"                                                                            \
	"    got = None\n"                                                                         \
	"    try:\n"                                                                               \
	"        while True: got = yield got\n"                                                    \
	"    finally: leaf(0)\n"                                                                   \
	"class Awaitable:\n"                                                                       \
	"    def __await__(self): yield 1\n"                                                       \
	"async def inner(): return 1\n"                                                            \
	"async def outer():\n"                                                                     \
	"    await Awaitable()\n"                                                                  \
	"    return await inner()\n"                                                               \
	"async def agen(): yield 1\n"                                                              \
	"async def aloop():\n"                                                                     \
	"    async for i in agen(): pass\n"                                                        \
	"class K:\n"                                                                               \
	"    def __init__(self): self.a = 1\n"                                                     \
	"    @property\n"                                                                          \
	"    def prop(self): return self.a\n"                                                      \
	"    def __getitem__(self, i): return i\n"                                                 \
	"    def __getattr__(self, name): return name\n"                                           \
	"    def __call__(self): return 1\n"                                                       \
	"    def method(self): return leaf(self.a)\n"                                              \
	"    def __enter__(self): return self\n"                                                   \
	"    def __exit__(self, *e): return True\n"                                                \
	"class Dying:\n"                                                                           \
	"    def __del__(self): pass\n"                                                            \
	"class Once:\n"                                                                            \
	"    def __iter__(self):\n"                                                                \
	"        self.n = 0\n"                                                                     \
	"        return self\n"                                                                    \
	"    def __next__(self):\n"                                                                \
	"        self.n += 1\n"                                                                    \
	"        if self.n > 1: raise StopIteration\n"                                             \
	"def key(x): return -x\n"                                                                  \
	"def one(x): return x\n"                                                                   \
	"def ends(f, *a):\n"                                                                       \
	"    try: f(*a)\n"                                                                         \
	"    except (ValueError, StopIteration): pass\n"                                           \
	"def generators():\n"                                                                      \
	"    for i in gen(3): pass\n"                                                              \
	"    for i in deleg(): pass\n"                                                             \
	"    g = thrown(); next(g); g.throw(ValueError); ends(next, g)\n"                          \
	"    g = fresh(); ends(g.throw, ValueError)\n"                                             \
	"    g = fresh(); g.close()\n"                                                             \
	"    g = escaping(); next(g); ends(g.throw, ValueError)\n"                                 \
	"    g = passing(thrown()); next(g); g.throw(ValueError); ends(next, g)\n"                 \
	"    g = passing(escaping()); next(g); ends(g.throw, ValueError)\n"                        \
	"    g = echo(); next(g); g.send(1); g.send(2); g.close()\n"                               \
	"    sum(x for x in (1, 2))\n"                                                             \
	"def coroutines():\n"                                                                      \
	"    c = outer(); c.send(None); ends(c.send, None)\n"                                      \
	"    c = outer(); c.send(None); ends(c.throw, ValueError)\n"                               \
	"    ends(aloop().send, None)\n"                                                           \
	"def objects():\n"                                                                         \
	"    k = K(); k.prop; k[0]; k.other; k(); k.method()\n"                                    \
	"    with k: raising()\n"                                                                  \
	"    Dying()\n"                                                                            \
	"    for i in Once(): pass\n"                                                              \
	"    class Local: pass\n"                                                                  \
	"def callbacks():\n"                                                                       \
	"    list(map(one, (1, 2, 3))); sorted((3, 1, 2), key=key); (lambda: 1)()\n"               \
	"    ends(list, map(raising, (1, 2)))\n"                                                   \
	"    eval('7')\n"                                                                          \
	"def body():\n"                                                                            \
	"    leaf(1); leaf(1, 2); leaf(1, b=3); star(*(1,), **{'b': 2})\n"                         \
	"    rec(2); comp(); catching()\n"                                                         \
	"    generators(); coroutines(); objects(); callbacks()\n"

#define NUMBERS "ROUNDS, FEW, CALLS = " STR(ROUNDS) ", " STR(FEW) ", " STR(SCRIPT_COST_CALLS) "\n"

#define PROGRAM                                                                                                                \
	"def rounds(n):\n"                                                                                                     \
	"    for i in range(n): body()\n"                                                                                      \
	"def worker(): rounds(FEW); ran.append(1)\n"                                                                           \
	"def tracer_gen():\n"                                                                                                  \
	"    while True: yield 1\n"                                                                                            \
	"tracer_held, tracer_own = tracer_gen(), tracer_gen()\n"                                                               \
	"def tracer(*a): next(tracer_held); return tracer\n"                                                                   \
	"class Tracer: pass\n"                                                                                                 \
	"def tracer_del(self): pass\n"                                                                                         \
	"Tracer.__del__ = tracer_del\n"                                                                                        \
	"def tracer_stats():\n"                                                                                                \
	"    s = gc.get_stats()\n"                                                                                             \
	"    return s[0]['collections'], s[1]['collections'], s[2]['collections']\n"                                           \
	"def tracer_cycle(): o = Tracer(); o.o = o\n"                                                                          \
	"def tracer_collect(generation): tracer_cycle(); gc.collect(generation)\n"                                             \
	"def tracer_litter():\n"                                                                                               \
	"    kept = []; gc.set_threshold(100, 5, 5)\n"                                                                         \
	"    for i in range(2000): kept.append([])\n"                                                                          \
	"    gc.set_threshold(700, 10, 10)\n"                                                                                  \
	"def watch(tool, on, off):\n"                                                                                          \
	"    leaf(0); tool(*on); leaf(0); next(held); next(tracer_own); rounds(FEW)\n"                                         \
	"    next(held); tool(*off); leaf(0); next(held)\n"                                                                    \
	"def cost():\n"                                                                                                        \
	"    t = time.process_time()\n"                                                                                        \
	"    for i in range(CALLS): empty()\n"                                                                                 \
	"    return int((time.process_time() - t) * 1e9)\n"                                                                    \
	"def say(s): posix.write(1, s.encode() + b'\\n')\n"                                                                    \
	"def wait(): return posix.read(0, 1)\n"                                                                                \
	"m = getattr(sys, 'monitoring', None)\n"                                                                               \
	"if m:\n"                                                                                                              \
	"    every = 0; m.use_tool_id(5, 'pyprof')\n"                                                                          \
	"    for name in dir(m.events):\n"                                                                                     \
	"        e = getattr(m.events, name)\n"                                                                                \
	"        if type(e) is int and e and not e & (e - 1):\n"                                                               \
	"            every |= e; m.register_callback(5, e, itertools.chain)\n"                                                 \
	"ran = []; held = gen(99); next(held); rounds(3); cost()\n"                                                            \
	"without = min([cost() for i in (1, 2, 3)])\n"                                                                         \
	"gc.disable(); before = tracer_stats()\n"                                                                              \
	"say('ready'); wait(); gc.enable()\n"                                                                                  \
	"rounds(ROUNDS); gc.collect()\n" /* A thread is counted from its own beginning on, until its function has returned. */ \
	"_thread.start_new_thread(worker, ())\n"                                                                               \
	"while not ran or _thread._count(): time.sleep(0.001)\n"                                                               \
	"watch(sys.setprofile, (getattr,), (None,))\n"                                                                         \
	"watch(sys.settrace, (getattr,), (None,))\n"                                                                           \
	"watch(sys.settrace, (tracer,), (None,))\n"                                                                            \
	"if m: watch(m.set_events, (5, every), (5, 0))\n"                                                                      \
	"rounds(FEW)\n"                                                                                                        \
	"tracer_collect(0); tracer_collect(1); tracer_collect(2); tracer_litter(); gc.disable()\n"                             \
	"after = tracer_stats()\n"                                                                                             \
	"say('done %d %d %d' % (after[0] - before[0], after[1] - before[1], after[2] - "                                       \
	"before[2]))\n"                                                                                                        \
	"wait()\n"                                                                                                             \
	"say('cost %d %d' % (without, cost()))\n"                                                                              \
	"while wait(): pass\n"                                                                                                 \
	"posix._exit(0)\n"

const char script_functions[] = FUNCTIONS;
const char script_text[] = FUNCTIONS NUMBERS PROGRAM;

/* One line per line of body(), or per function that it calls */
#define BODY                                                                                       \
	" >body >leaf <leaf >leaf <leaf >leaf <leaf >star >leaf <leaf <star"                       \
	" >rec >rec >rec <rec <rec <rec"                                                           \
	" >comp ><listcomp>:11 <<listcomp>:11 <comp"                                               \
	" >catching >middle >raising !raising !middle <catching"                                   \
	" >generators"                                                                             \
	" >gen ~gen >gen ~gen >gen ~gen >gen <gen"                                                 \
	" >deleg >gen ~gen ~deleg >deleg >gen ~gen ~deleg >deleg >gen <gen <deleg"                 \
	" >thrown ~thrown ^thrown ~thrown >ends >thrown <thrown <ends"                             \
	" >ends ^fresh !fresh <ends"                                                               \
	" ^fresh:11 !fresh:11"                                                                     \
	" >escaping ~escaping >ends ^escaping !escaping <ends"                                     \
	" >passing >thrown ~thrown ~passing ^thrown ~thrown"                                       \
	" >ends >passing >thrown <thrown <passing <ends"                                           \
	" >passing >escaping ~escaping ~passing"                                                   \
	" >ends ^escaping !escaping ^passing !passing <ends"                                       \
	" >echo ~echo >echo ~echo >echo ~echo ^echo >leaf <leaf !echo"                             \
	" ><genexpr> ~<genexpr> ><genexpr> ~<genexpr> ><genexpr> <<genexpr>"                       \
	" <generators"                                                                             \
	" >coroutines"                                                                             \
	" >outer >__await__ ~__await__ ~outer"                                                     \
	" >ends >outer >__await__ <__await__ >inner <inner <outer <ends"                           \
	" >outer >__await__ ~__await__ ~outer"                                                     \
	" >ends ^__await__ !__await__ ^outer !outer <ends"                                         \
	" >ends >aloop >agen ~agen >agen <agen <aloop <ends"                                       \
	" <coroutines"                                                                             \
	" >objects >__init__ <__init__ >prop <prop >__getitem__ <__getitem__"                      \
	" >__getattr__ <__getattr__ >__call__ <__call__ >method >leaf <leaf <method"               \
	" >__enter__ <__enter__ >raising !raising >__exit__ <__exit__ >__del__ <__del__"           \
	" >__iter__ <__iter__ >__next__ <__next__ >__next__ !__next__ >Local <Local <objects"      \
	" >callbacks >one <one >one <one >one <one >key <key >key <key >key <key"                  \
	" ><lambda> <<lambda> >ends >raising !raising <ends"                                       \
	" ><module> <<module> -<module> <callbacks <body"

const char script_body[] = BODY;

/* The events of one call of watch() */
#define WATCH(since)                                                                               \
	{" >watch >leaf <leaf >leaf <leaf >gen ~gen >rounds", 1, since}, {BODY, FEW, since},       \
	{                                                                                          \
		" <rounds >gen ~gen >leaf <leaf >gen ~gen <watch", 1, since                        \
	}

const struct script_part script_main[] = {
	{" <wait >rounds", 1, 0},
	{BODY, ROUNDS, 0},
	{" <rounds", 1, 0},
	WATCH(0),
	WATCH(0),
	WATCH(0),
	WATCH(12),
	{" >rounds", 1, 0},
	{BODY, FEW, 0},
	{" <rounds >say", 1, 0},
	{NULL, 0, 0},
};

const struct script_part script_worker[] = {
	{" >worker >rounds", 1, 0},
	{BODY, FEW, 0},
	{" <rounds <worker", 1, 0},
	{NULL, 0, 0},
};
