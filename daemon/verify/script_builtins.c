// SPDX-License-Identifier: BSD-2-Clause
/*
 * The test program for calls of C functions: see script.h. It calls each kind of callable with
 * positional, keyword and starred arguments, which return, raise, or call back into Python, often
 * enough for specialized opcodes, then with a profiler. It also has calls that are not traced:
 * types, slot wrappers, C functions called by C functions.
 *
 * Which calls count was determined with cProfile, and is compared in
 * tests/integration/test_builtins.c.
 */
#include "verify/script.h"

#include <stddef.h>

#define STR_(x) #x
#define STR(x)	STR_(x)
#define ROUNDS	60
#define FEW	5

#define NUMBERS "ROUNDS, FEW = " STR(ROUNDS) ", " STR(FEW) "\n"

const char script_builtins_text[] = NUMBERS
	"import posix, sys\n"
	"def say(s): posix.write(1, s.encode() + b'\\n')\n"
	"def wait(): return posix.read(0, 1)\n"
	"class Type: pass\n"
	"class Callable:\n"
	"    def __call__(self): return 1\n"
	"def c_key(x): return -x\n"
	"def c_bad(x): raise ValueError\n"
	"def c_gen():\n"
	"    while True: yield 1\n"
	"def c_functions(s, l, n):\n"
	"    len(s); isinstance(n, int); abs(n); divmod(n, 2); globals()\n"
	"    sorted(l, reverse=True); sum((1, 2))\n"
	"    len(*(s,)); divmod(*(n, 2)); sorted(*(l,), **{'reverse': True})\n"
	"def c_methods(s, l, n):\n"
	"    l.append(n); l.clear(); s.upper(); s.join('ab'); s.replace('a', 'b'); "
	"s.split(None, 1)\n"
	"    s.encode(encoding='ascii'); s.split(maxsplit=1)\n"
	"    s.upper(*()); s.replace(*('a', 'b')); s.encode(*(), **{'encoding': 'ascii'})\n"
	"    dict.fromkeys((1,)); int.from_bytes(b'a', byteorder='big'); "
	"object.__new__(Type)\n"
	"def c_others(s, k):\n"
	"    int('3'); str(1); Type(); (1).__add__(2); bytes(*(b'x',)); dict(**{'a': 1}); "
	"list(map(len, ('a', 'b')))\n"
	"def c_raising(s, l):\n"
	"    try: abs(s)\n"
	"    except TypeError: pass\n"
	"    try: s.index('z')\n"
	"    except ValueError: pass\n"
	"    try: len(1)\n"
	"    except TypeError: pass\n"
	"    try: divmod(*(1, 0))\n"
	"    except ZeroDivisionError: pass\n"
	"def c_calling_back(l, g):\n"
	"    sorted((3, 1), key=c_key)\n"
	"    try: sorted((3, 1), key=c_bad)\n"
	"    except ValueError: pass\n"
	"    next(g); g.send(None); list(map(c_key, (1, 2)))\n"
	"    class c_class: pass\n"
	"def c_descriptors(): str.upper('a'); str.replace('a', 'a', 'b')\n"
	"def c_starred(): str.upper(*('a',))\n"
	"def rounds(n):\n"
	"    for i in range(n):\n"
	"        l = [1]\n"
	"        c_functions('a b', l, 7); c_methods('a b', l, 7); c_others('a', k); "
	"c_raising('a', l); c_calling_back(l, g)\n"
	"def repeat(f):\n"
	"    for i in range(ROUNDS): f()\n"
	"k = Callable(); g = c_gen(); next(g)\n"
	"say('ready'); wait()\n"
	"rounds(ROUNDS)\n"
	"if sys.version_info >= (3, 7): repeat(c_descriptors)\n"
	"if sys.version_info >= (3, 8): repeat(c_starred)\n"
	"sys.setprofile(getattr); rounds(FEW); sys.setprofile(None)\n"
	"rounds(FEW)\n"
	"say('done'); wait()\n"
	"say('cost 0 0')\n"
	"while wait(): pass\n"
	"posix._exit(0)\n";

#define FUNCTIONS                                                                                  \
	" >c_functions (len )len (isinstance )isinstance (abs )abs (divmod )divmod"                \
	" (globals )globals (sorted )sorted (sum )sum (len )len (divmod )divmod (sorted )sorted"   \
	" <c_functions"

#define METHODS                                                                                    \
	" >c_methods +append (clear )clear (upper )upper (join )join (replace )replace"            \
	" (split )split (encode )encode (split )split (upper )upper (replace )replace"             \
	" (encode )encode (fromkeys )fromkeys (from_bytes )from_bytes (__new__ )__new__"           \
	" <c_methods >c_others <c_others"

#define RAISING " >c_raising (abs )abs (index )index (len )len (divmod )divmod <c_raising"

#define CALLING_BACK                                                                               \
	" >c_calling_back (sorted >c_key <c_key >c_key <c_key )sorted"                             \
	" (sorted >c_bad !c_bad )sorted (next >c_gen ~c_gen )next (send >c_gen ~c_gen )send"       \
	" >c_key <c_key >c_key <c_key"                                                             \
	" (__build_class__ >c_class <c_class )__build_class__ <c_calling_back"

#define ROUND FUNCTIONS METHODS RAISING CALLING_BACK

#define DESCRIPTORS " >c_descriptors (upper )upper (replace )replace <c_descriptors"
#define STARRED	    " >c_starred (upper )upper <c_starred"

const struct script_part script_builtins[] = {
	{" <wait >rounds", 1, 0}, {ROUND, ROUNDS, 0},	    {" <rounds", 1, 0},
	{" >repeat", 1, 7},	  {DESCRIPTORS, ROUNDS, 7}, {" <repeat", 1, 7},
	{" >repeat", 1, 8},	  {STARRED, ROUNDS, 8},	    {" <repeat", 1, 8},
	{" >rounds", 1, 0},	  {ROUND, FEW, 0},	    {" <rounds >rounds", 1, 0},
	{ROUND, FEW, 0},	  {" <rounds >say", 1, 0},  {NULL, 0, 0},
};
