# SPDX-License-Identifier: BSD-2-Clause
"""Every way in which a Python frame starts, resumes and ends; counts depend on the code only.

Each function named after a section checks its own result, so that a disturbance by a profiler is
reported. Without calls that cProfile itself changes: see recursion_error.py and gen_close.py.
Generators and coroutines are in mixed_suspended.py.
"""

import contextlib
import functools
import re

import proto
from mixed_suspended import cleanup, coroutines, event_loop, generators

ROUNDS = 12


# Functions ----------------------------------------------------------------------------------

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)


def defaults(a, b=2, *args, c=3, **kwargs):
    return a + b + c + sum(args) + sum(kwargs.values())


def make_adder(n):
    def add(m):
        return n + m
    return add


def doubled(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return 2 * fn(*args, **kwargs)
    return wrapper


@doubled
@doubled
def decorated(x):
    return x + 1


def functions():
    assert fib(9) == 34
    assert is_even(20) and is_odd(21)
    assert deep(200) == 200
    assert defaults(1) == 6 and defaults(1, 1, 1, 1, c=1, d=1) == 6
    assert defaults(*[1, 2, 3], **{"c": 4}) == 10
    assert sum(make_adder(i)(i) for i in range(5)) == 20
    assert decorated(1) == 8
    assert (lambda x: x * 2)(4) == 8
    assert (lambda *a, **k: len(a) + len(k))(1, 2, x=3) == 3


# Callbacks from C ---------------------------------------------------------------------------

def negate(x):
    return -x


def odd(x):
    return x % 2


def plus(a, b):
    return a + b


def upper(match):
    return match.group(0).upper()


def nested_sort(n):
    if n == 0:
        return [0]
    return sorted(range(n), key=lambda x: nested_sort(n - 1)[0] - x)


@functools.lru_cache(maxsize=None)
def cached(n):
    return n * n


@functools.singledispatch
def dispatched(x):
    return "object"


@dispatched.register(int)
def dispatched_int(x):
    return "int"


class Backwards:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return other.value < self.value


def callbacks():
    assert sorted([3, 1, 2], key=negate) == [3, 2, 1]
    values = [5, 4, 6]
    values.sort(key=lambda x: -x)
    assert values == [6, 5, 4]
    assert [b.value for b in sorted(map(Backwards, (1, 3, 2)))] == [3, 2, 1]
    assert list(map(negate, (1, 2, 3))) == [-1, -2, -3]
    assert list(filter(odd, range(6))) == [1, 3, 5]
    assert functools.reduce(plus, range(6)) == 15
    assert min((1, 2, 3), key=negate) == 3 and max((1, 2, 3), key=negate) == 1
    assert functools.partial(plus, 3)(4) == 7
    assert list(map(functools.partial(plus, 1), (1, 2))) == [2, 3]
    assert re.sub("[a-c]", upper, "abcdef") == "ABCdef"
    assert nested_sort(3) == [2, 1, 0]
    cached.cache_clear()
    assert [cached(2), cached(2), cached(3)] == [4, 4, 9]
    assert dispatched(1) == "int" and dispatched("") == "object"
    assert any(odd(x) for x in [2, 3]) and all([odd(x) for x in (1, 3)])


# Exceptions ---------------------------------------------------------------------------------

class Trouble(Exception):
    def __init__(self, depth):
        super().__init__("at %d" % depth)
        self.depth = depth


def dig(n):
    if n == 0:
        raise Trouble(n)
    try:
        dig(n - 1)
    finally:
        cleanup([])


def translate(n):
    try:
        dig(n)
    except Trouble as e:
        raise KeyError(e.depth) from e


def raise_in_key(x):
    raise ValueError(x)


def exceptions():
    for n in (0, 5):
        try:
            translate(n)
        except KeyError as e:
            assert e.args == (0,)
    with contextlib.suppress(ValueError):
        sorted([1, 2], key=raise_in_key)
    with contextlib.suppress(ZeroDivisionError):
        list(map(lambda x: 1 // x, (1, 0)))
    with contextlib.suppress(Trouble):
        deep_through_c(3)
    with Context(swallow=True):
        dig(2)


def deep_through_c(n):
    if n == 0:
        raise Trouble(0)
    return list(map(deep_through_c, [n - 1]))


# Classes ------------------------------------------------------------------------------------

class Context:
    def __init__(self, swallow=False):
        self.swallow = swallow

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        return self.swallow


@contextlib.contextmanager
def managed(log):
    log.append("in")
    try:
        yield log
    finally:
        log.append("out")


class Descriptor:
    def __get__(self, instance, owner):
        return 7

    def __set__(self, instance, value):
        instance.__dict__["kept"] = value


class Meta(type):
    @classmethod
    def __prepare__(mcs, name, bases):
        return {"prepared": True}

    def __new__(mcs, name, bases, namespace):
        return super().__new__(mcs, name, bases, namespace)

    def __init__(cls, name, bases, namespace):
        super().__init__(name, bases, namespace)

    def __call__(cls, *args):
        return super().__call__(*args)


class Everything:
    described = Descriptor()

    def __init__(self, value):
        self.value = value

    def __del__(self):
        cleanup([])

    def __call__(self, x):
        return self.value + x

    def __getitem__(self, i):
        if i > 2:
            raise IndexError(i)
        return i

    def __getattr__(self, name):
        if name == "missing":
            raise AttributeError(name)
        return name

    def __len__(self):
        return 3

    def __bool__(self):
        return True

    def __contains__(self, x):
        return x == 1

    def __eq__(self, other):
        return self.value == other.value

    def __hash__(self):
        return 11

    def __add__(self, other):
        return Everything(self.value + other.value)

    def __radd__(self, other):
        return other + self.value

    def __iadd__(self, other):
        self.value += other
        return self

    def __repr__(self):
        return "<everything>"

    def __format__(self, spec):
        return spec

    def __iter__(self):
        return iter((1, 2))

    def __reversed__(self):
        yield 2
        yield 1

    @property
    def prop(self):
        return self.value

    @prop.setter
    def prop(self, value):
        self.value = value

    @staticmethod
    def static(x):
        return x

    @classmethod
    def clsm(cls, x):
        return cls(x)

    def method(self, x):
        return x


class Derived(Everything):
    def __init__(self, value):
        super().__init__(value)

    def method(self, x):
        return super().method(x) + 1


class Hooked:
    def __getattribute__(self, name):
        return object.__getattribute__(self, name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)


class Sequence:
    def __init__(self, n):
        self.n = n

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n

    def __iter__(self):
        return self


class Missing(dict):
    def __missing__(self, key):
        return key


def classes():
    e = Everything(3)
    assert e(4) == 7 and e[1] == 1 and e.anything == "anything" and not hasattr(e, "missing")
    assert len(e) == 3 and bool(e) and 1 in e and e == Everything(3) and {e: 1}[Everything(3)] == 1
    assert (e + e).value == 6 and sum([e]) == 3
    e += 2
    assert repr(e) == "<everything>" and "{:x}".format(e) == "x" and "%r" % e == "<everything>"
    assert list(e) == [1, 2] and list(reversed(e)) == [2, 1]
    e.prop = 9
    e.described = 5
    assert e.prop == 9 and e.described == 7 and e.kept == 5
    assert Everything.static(1) == 1 and Everything.clsm(2).value == 2
    bound = e.method
    assert bound(3) == 3 and Everything.method(e, 4) == 4 and list(map(bound, (1, 2))) == [1, 2]
    d = Derived(1)
    assert d.method(1) == 2
    del e, d

    class Made(metaclass=Meta):
        inside = len("class body")

        def __init__(self, x):
            self.x = x

    assert Made(3).x == 3 and Made.inside == 10 and Made.prepared
    hooked = type("Sub", (Hooked,), {})()
    hooked.a = 1
    assert hooked.a == 1
    assert list(Sequence(3)) == [2, 1, 0] and Missing()["k"] == "k"
    with Context() as c:
        assert c.swallow is False
    log = []
    with managed(log):
        pass
    with contextlib.suppress(Trouble):
        with managed(log):
            raise Trouble(1)
    assert log == ["in", "out", "in", "out"]


# exec, eval, comprehensions -----------------------------------------------------------------

SOURCE = """
def made(x):
    return x + %d
total = sum(made(i) for i in range(4))
class Local:
    def method(self):
        return lambda: 5
total += Local().method()()
"""


def dynamic():
    for i in range(8):  # code objects are made and freed: their addresses are used again
        space = {}
        exec(compile(SOURCE % i, "<made %d>" % i, "exec"), space)
        assert space["total"] == 11 + 4 * i
        del space
    assert eval("fib(3) + (lambda: 1)()") == 3
    assert eval(compile("negate(4)", "<text>", "eval")) == -4


def comprehensions():
    assert [fib(i) for i in range(4)] == [0, 1, 1, 2]
    assert {odd(i) for i in range(4)} == {0, 1}
    assert {i: negate(i) for i in range(2)} == {0: 0, 1: -1}
    # On lines of their own: up to 3.11 both are functions called <listcomp>, distinguished by line; up
    # to 3.7 that is the line of the element.
    assert [
        [
            plus(i, j) for j in range(2)]
        for i in range(2)] == [[0, 1], [1, 2]]
    assert [f() for f in [lambda i=i: i for i in range(3)]] == [0, 1, 2]


SECTIONS = (functions, callbacks, generators, coroutines, event_loop, exceptions, classes, dynamic,
            comprehensions)


# Threads ------------------------------------------------------------------------------------

def thread_of(section):
    def body():
        for _ in range(ROUNDS):
            section()
    return body


THREADS = (functions, generators, coroutines, exceptions, dynamic, comprehensions)


def main():
    for _ in range(ROUNDS):
        for section in SECTIONS:
            section()
    proto.run_threads([thread_of(section) for section in THREADS])
