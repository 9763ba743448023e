"""Writing in place: assignment by every kind of index, views in both directions, random programs.

Every program runs twice: on plain ndarrays, where NumPy says what it means, and tracked, where value, gradient and second
order are held against it.
"""
import operator

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import check, derivative

import cgrad

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
rng = np.random.default_rng(11)


def draw(*shape, dtype=float):
    x = rng.uniform(0.5, 2, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.uniform(0.5, 2, shape)
    return x.astype(dtype)


# ---------------------------------------------------------------------------------------------- every kind of index
SHAPE = (3, 4, 2)
HALF = rng.random(SHAPE) > 0.5
INDICES = {
    "int": 1, "negative int": -1, "ints": (1, -2, 0), "slice": slice(1, None),
    "steps": (slice(None, None, 2), slice(None, None, -1)),
    "backwards": slice(None, None, -2), "empty slice": slice(2, 2), "Ellipsis": ..., "Ellipsis, int": (..., 1), "none": None,
    "int, None, slice": (1, None, slice(1, 3)), "(): all": (), "0-d view": (0, 1, 1, ...),
    "mask": HALF, "mask of rows": np.array([True, False, True]), "mask of matrices": HALF[..., 0],
    "mask, int": (HALF[..., 0], 1),
    "int, mask": (0, HALF[0]), "no places": np.zeros(SHAPE, bool), "list mask": [True, False, True],
    "True": True, "False": False, "np.True_, slice": (np.True_, slice(0, 1)),
    "list": [0, 2], "empty list": [], "tuple of lists": ([0, 2], [1, -1]), "tuple of lists of all": ([0, 2], [1, -1], [0, 0]),
    "duplicates": [1, 1, 0, 1], "duplicate places": ([0, 2, 0], [1, 3, 1], [0, 1, 0]), "negative duplicates": [0, -3],
    "matrix of indices": np.array([[0, 1], [1, 2]]), "0-d array": np.array(1), "np.int64": np.int64(-1),
    "int8": np.array([2, 0], np.int8),
    "uint": np.array([2, 2], np.uint16),
    "array, slice": ([0, 2], slice(1, 3)), "slice, array": (slice(None), [3, 0, 3]),
    "array, slice, array": ([0, 2], slice(None), [1, 1]),
    "int, slice, array": (0, slice(None), [1, 0, 1]), "array, int": ([0, 0], 2), "array, None": ([0, 2], None),
    "..., array": (..., [1, 0]),
    "slice, array, array": (slice(0, 2), [1, 1, 3], [0, 0, 1]), "broadcast arrays": (np.array([[0], [2]]), [1, 3, 1]),
    "ix_": np.ix_([0, 2], [1, 3], [1]),
}


@pytest.mark.parametrize("name", INDICES)
def test_read(name):
    index = INDICES[name]
    check(lambda x: x[index] * x[index], draw(*SHAPE))


@pytest.mark.parametrize("name", INDICES)
def test_assign(name):
    """A number, an int array, a tracked array of the shape that is read, a broadcast one, one number; in one program."""
    index = INDICES[name]
    shape = np.empty(SHAPE)[index].shape
    whole = np.arange(np.prod(shape)).reshape(shape)

    def f(x, v, w):
        y = x * x
        z = y * w[0]                        # keeps the y of now
        y[index] = v
        z[index] = 3
        a = y * z
        a[index] = whole
        b = a * y
        b[index] = w if shape else w[0]
        return b * y * z + a
    check(f, draw(*SHAPE), draw(*shape), draw(1))


@pytest.mark.parametrize("name", INDICES)
def test_assign_then_read(name):
    index = INDICES[name]

    def f(x, v):
        y = np.zeros_like(x)
        y[index] = v
        first = y[index] * v
        y[index] *= v
        return first + y[index]
    check(f, draw(*SHAPE), draw())


@pytest.mark.parametrize("op", [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow],
                         ids=lambda op: op.__name__)
@pytest.mark.parametrize("name", ["int", "steps", "0-d view", "mask", "duplicates", "array, slice, array", "Ellipsis", "ints"])
def test_augmented(op, name):
    index = INDICES[name]

    def f(x, v):
        y = x * x
        seen = y[1:]                        # a view that is alive
        y[index] = op(y[index], v)
        whole = y
        y = op(y, v)
        assert whole is y
        return y[1:] * seen
    check(f, draw(*SHAPE), draw())


def test_axes_of_length_one_are_dropped():
    """NumPy lets a value have more axes than the place that it goes to, if they are of length 1 and in front."""
    def f(x, v):
        y = x * x
        y[1] = v[None, :1]
        y[0, ...] = v[None, None]
        y[[2, 2]] = v[None, None]
        y[(0, 0, ...)] = v[None, :1]
        return y
    check(f, draw(3, 4), draw(4))


def test_one_dimension_and_numbers():
    def f(x, v):
        y = x * 1.0
        for i in range(1, 5):
            y[i] = y[i - 1] * v + x[-i]
            y[-i] += 2.0
            y[i] *= y[0]
        y[np.int64(2)] = 7
        y[[0, 0]] = np.stack([v, x[1]])
        return y
    check(f, draw(5), draw())

    def zero_d(x):
        y = np.zeros_like(x)
        y[()] = x * x
        y[...] += 1
        w = y * y
        y[...] = w * x
        y *= 2
        return y * w
    check(zero_d, np.array(1.3))


def test_scalars_are_no_arrays():
    """As in NumPy: x[0] is a scalar, which += replaces and assignment refuses."""
    def f(x):
        s = x[0]
        old = s
        s += x[1]
        with pytest.raises(TypeError, match="scalar"):
            s[...] = 1
        return s * old
    np.testing.assert_array_equal(cgrad.grad(f)(np.array([2.0, 3.0])), [7, 2])


# ---------------------------------------------------------------------------------------------- dtypes
def test_dtypes():
    """float64 into float32, real into complex, tracked into a constant; never tracked into integers."""
    def f(x, c):
        y = np.zeros_like(x, dtype=np.float32)
        y[1:] = x[1:]
        y[0] = 1e-9
        z = np.zeros_like(c)
        z[:2] = x[:2]
        z[2] = c[0] * 1j
        return y, z
    x, c = draw(3), draw(3, dtype=complex)
    out, pullback = cgrad.vjp(f, x, c)
    right = f(x, c)
    assert out[0].dtype == np.float32 and np.array_equal(out[0], right[0]) and np.array_equal(out[1], right[1])
    gx, gc = pullback((np.array([1, 10, 100], np.float32), np.array([1 + 5j, 2, 3])))
    np.testing.assert_array_equal(gx, [1, 12, 100])
    np.testing.assert_array_equal(gc, [3j, 0, 0])

    def integers(x):
        y = np.zeros_like(x, dtype=int)
        with pytest.raises(TypeError, match="value"):
            y[0] = x[0]
        return x.sum()
    cgrad.grad(integers)(x)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.longdouble, np.complex64, complex])
def test_other_precisions(dtype):
    def f(x):
        y = x * 2
        y[1:] = y[:-1] * x[0]
        y[[0, 2]] += x[1]
        return y
    x = draw(4).astype(dtype)
    out, pullback = cgrad.vjp(f, x)
    np.testing.assert_array_equal(out, f(x))
    gradient, = pullback(np.ones(4, dtype))
    assert gradient.dtype == dtype
    wide = cgrad.vjp(f, x.astype(complex))[1](np.ones(4))[0]
    np.testing.assert_allclose(gradient, wide, rtol=3e-3 if dtype == np.float16 else 1e-6)


@pytest.mark.parametrize("change", [
    lambda y, x: operator.iadd(y, 1j * x), lambda y, x: operator.setitem(y, slice(0, 9), np.ones(2)),
    lambda y, x: operator.iadd(y, np.ones((2, 3))),
    lambda y, x: operator.setitem(y, 7, 1.0), lambda y, x: np.multiply(x, 1j, out=y), lambda y, x: np.put(y, [5], 1.0),
    lambda y, x: np.copyto(y, 1j * x), lambda y, x: np.put_along_axis(y, np.array([9]), x[:1], 0),
    lambda y, x: np.add.at(y, [4], 1.0),
    lambda y, x: np.copyto(y, x, where=np.array([1, 0, 1])), lambda y, x: np.fill_diagonal(y, x),
    lambda y, x: np.add(x, x, where=np.array([1, 0, 1]), out=y), lambda y, x: np.add(x, x, out=np.zeros_like(x)[:2]),
    lambda y, x: np.place(y, [1, 1, 1], []),
    lambda y, x: np.arctan2.at(y, [0], 1j), lambda y, x: y.fill(np.ones(2)),
    lambda y, x: np.putmask(y, [True], x)], ids=range(17))
def test_errors_are_numpys(change):
    """What NumPy refuses is refused with the same kind of error, and leaves the array as it is."""
    x = draw(3)
    with pytest.raises((TypeError, ValueError, IndexError)) as right:
        change(x * 1, x)

    def f(x):
        y = x * 1
        with pytest.raises((TypeError, ValueError, IndexError)) as got:
            change(y, x)
        assert got.type in right.type.__mro__
        return y
    check(f, x)


# ---------------------------------------------------------------------------------------------- aliasing
def program(f):
    PROGRAMS.append(pytest.param(f, id=f.__name__))
    return f


PROGRAMS = []


@program
def overlap(x, v):
    y = x * 1
    y[1:] = y[:-1]
    y[:, ::-1] = y
    y[:2] += y[1:]
    return y * v


@program
def swap(x, v):
    y = x * 1
    y[[0, 2]] = y[[2, 0]]
    y[0], y[1] = y[1] * v, y[0] * 2
    return y * x


@program
def write_through_view(x, v):
    y = x * x
    row, column = y[1], y[:, 1]
    row[...] = v
    row *= row
    column += row[0]
    return y * np.sum(row) + np.sum(column)


@program
def write_base_read_view(x, v):
    y = x * x
    row = y[1]
    before = row * 1
    y[...] = y * v
    y[1, 0] = 3.0
    return row * before


@program
def views_of_views(x, v):
    y = x * x
    a = y[::2]
    b = a[1]
    c = b[1:]
    c[...] = v[1:] * 2
    a[0] = b
    y[2, 1] += c[0]
    d = y[1:][1:]
    d *= c[1]
    return np.sum(a) * b * y


@program
def reshaped(x, v):
    y = x * x
    flat = y.reshape(-1)
    t = y.T
    flat[::3] = v[0] * v[1]
    t[1] = flat[:3]
    block = y.reshape(2, 3, 2)[1]
    block += t[0, 0]
    y[0] *= block[0, 0]
    return np.sum(flat * np.arange(12)) * t


@program
def transposed_and_back(x, v):
    y = x * x
    z = y.T.T[None]
    z[0, 1] = v
    np.ravel(y)[0] = v[2]
    y.swapaxes(0, 1)[2] += 1
    return y * z[0]


@program
def copies_are_apart(x, v):
    y = x * x
    a, b, c = y.copy(), y[[0, 1]], y.T.reshape(-1)
    d = np.array(y[0]) if isinstance(y, np.ndarray) else y[0].copy()
    y *= 2
    y[0] = v
    a[1] = v
    b[...] = 0
    c[0] = 1
    return y * a + np.sum(b) + np.sum(c) * d


@program
def kept_values_stay(x, v):
    y = x * x
    z = y * y
    y *= z
    w = np.sin(y) * y[0]
    y[1:] = w[1:]
    w += y
    return z * y * w


@program
def same_name_twice(x, v):
    a = b = x * x
    a += 1
    b[0] *= a[1]
    return a * v + b


@program
def constants_become_tracked(x, v):
    y = np.zeros_like(x)
    view = y[0]
    y[1] = 5
    y[2] = v
    view[1:] = v[1:] * x[0, 1:]
    return y * view


@program
def overwritten(x, v):
    y = x * x
    y[...] = 1
    y[0] = v
    y[0] = 2 * v
    return y + x


@program
def accumulated(x, v):
    total = np.zeros_like(v)
    for row in x * v:
        total += row * total + row
    return total


@program
def chained(x, v):
    y = x * x
    y[1:][:, 1] = v[0]
    y[0][2:] *= v[1]
    y.T[0][1] = v[2]
    y[[0, 1]][0] = 100                      # a copy: no effect
    return y


@pytest.mark.parametrize("f", PROGRAMS)
def test_aliasing(f):
    check(f, draw(3, 4), draw(4))


def test_arguments_are_never_changed():
    x, c = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])

    def f(x):
        x[0] = 10.0
        x += 1
        x[1:] *= c[1:]
        y = x * c
        y[0] = 0
        x.sort()
        np.add(x, x, out=x)
        return (x * y).sum()
    first = cgrad.grad(f)(x)
    np.testing.assert_array_equal(x, [1, 2, 3])
    np.testing.assert_array_equal(c, [4, 5, 6])
    np.testing.assert_array_equal(cgrad.grad(f)(x), first)
    big = np.ones(10000)
    cgrad.grad(lambda x: f(x[:3]) + x.sum())(big)
    np.testing.assert_array_equal(big, 1)


def test_captured_arrays_are_safe():
    """A constant that the user changes afterwards does not change the gradient; a large one is protected while it is needed."""
    c, index = np.array([2.0, 3.0]), np.array([0, 1])

    def f(x):
        y = x * c
        z = y[index] * y
        z[index] = y
        index[...] = 0
        c[...] = 100
        return z * x
    _, pullback = cgrad.vjp(f, np.ones(2))
    np.testing.assert_array_equal(pullback(np.ones(2))[0], [4, 6])


def test_one_write_costs_what_it_writes():
    """A loop of n reads and writes on an array of n elements: linear in n, where quadratic cost would be 1000 times as much."""
    import time

    def f(x):
        y = np.zeros_like(x)
        for i in range(1, len(x)):
            y[i] = y[i - 1] * 0.5 + x[i]
        return y[-1]

    def seconds(n):
        start = time.perf_counter()
        cgrad.grad(f)(np.ones(n))
        return time.perf_counter() - start
    seconds(100)
    assert min(seconds(20000) for _ in range(3)) < 150 * min(seconds(2000) for _ in range(3))


# ---------------------------------------------------------------------------------------------- random programs
BASIC = [(0,), (slice(1, None),), (slice(None, None, -1),), (..., slice(None, None, 2)), (None, ...), (..., -1),
         (slice(0, 2), None), ()]


def basic(a, k):
    """One of the basic indices that give an array with elements, or the whole."""
    index = BASIC[k % len(BASIC)]
    return index if a.ndim and a.size and isinstance(plain(a)[index], np.ndarray) and plain(a)[index].size else (...,)


def fancy(a, k):
    """Integer arrays, with duplicates; masks."""
    if a.ndim == 0:
        return (...,)
    n = a.shape[0]
    return [([k % n, 0, -1],), (np.arange(n) % 2 == k % 2,), ([[0], [k % n]],),
            (slice(None, None, -1), *[[0, -1, 0]] * (a.ndim > 1)),
            ([0, k % n], ..., [0, -1] if a.ndim > 1 else slice(None))[:1 if a.ndim == 1 else 3]][k % 5]


def plain(a):
    return a.value if hasattr(a, "tape_of") else a


def fit(b, shape, k):
    """Something that can be stored in `shape`: `b`, a part of it, or a number; tracked or not."""
    if k % 7 == 0:
        return 0.25 * (k % 3)
    try:
        if np.broadcast_shapes(b.shape, shape) == shape:
            # before NumPy 2.1 a[index] = a read what it had written already
            return b if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else b.copy()
    except ValueError:
        pass
    return b.reshape(-1)[-1] if b.size else 1.0


def part_shape(a, index):
    return np.shape(plain(a)[index])


def assign(a, index, b, k, op=lambda old, new: new):
    """a[index] = b, or a[index] += b by an `op` that works in place."""
    a[index] = op(a[index], fit(b, part_shape(a, index), k))


STEPS = {
    "new": lambda p, a, b, k: p.append(np.tanh(a) * 0.7 + 0.1),
    "product": lambda p, a, b, k: p.append(np.sin(a * fit(b, a.shape, k))),
    "view": lambda p, a, b, k: p.append(a[basic(a, k)]),
    "reshape": lambda p, a, b, k: p.append([a.reshape(-1), a.T, a.ravel(), a[None], a.reshape(a.shape[::-1])][k % 5]),
    "copy": lambda p, a, b, k: p.append(a.copy() if k % 2 else a[fancy(a, k)]),
    "assign": lambda p, a, b, k: assign(a, basic(a, k), b, k),
    "fancy": lambda p, a, b, k: assign(a, fancy(a, k), b, k),
    "augmented": lambda p, a, b, k: assign(a, basic(a, k), b, k, operator.iadd),
    "augmented fancy": lambda p, a, b, k: assign(a, fancy(a, k), b, k, operator.imul),
    "iadd": lambda p, a, b, k: operator.iadd(a, fit(b, a.shape, k)),
    "imul": lambda p, a, b, k: operator.imul(a, fit(b, a.shape, k)),
    "out": lambda p, a, b, k: np.sin(a * 0.5, out=a),
    "where": lambda p, a, b, k: np.multiply(a, fit(b, a.shape, k), out=a,
                                            where=np.arange(a.size).reshape(a.shape) % 3 != k % 3),
    "add.at": lambda p, a, b, k: np.add.at(a, fancy(a, k), fit(b, part_shape(a, fancy(a, k)), k)),
    "overlap": lambda p, a, b, k: operator.setitem(a, (slice(1, None),), a[:-1]) if a.ndim else None,
    "fill": lambda p, a, b, k: a.fill(fit(b, (), k)),
    "put": lambda p, a, b, k: np.put(a, [0, k], fit(b, (2,), k), mode="wrap") if a.size else None,
}


def run(steps, x, y):
    """A random program: arrays, views and copies of them in a pool, each step on some of them; all of them count in the end."""
    pool = [x * 1.5, y + 0.5, np.zeros_like(x)]
    for name, i, j, k in steps:
        a, b = pool[i % len(pool)], pool[j % len(pool)]
        STEPS[name](pool, a, b, k)
        pool[:] = [p for p in pool if p.ndim or not isinstance(plain(p), np.generic)][-9:]
    return pool


def summed(steps, x, y):
    return sum(np.sum(np.sin(p) * np.arange(1, p.size + 1).reshape(p.shape)) for p in run(steps, x, y))


STEP = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 8), st.integers(0, 8), st.integers(0, 13))


@settings(max_examples=120)
@given(st.lists(STEP, min_size=2, max_size=12))
def test_random_programs(steps):
    x, y = np.linspace(0.3, 1.2, 6).reshape(2, 3), np.array([0.7, -0.4, 0.9])
    right = run(steps, x, y)
    assume(all(np.all(np.abs(p) < 20) for p in right))          # or differences would lose their digits
    got, _ = cgrad.vjp(lambda x, y: run(steps, x, y), x, y)
    for a, b in zip(got, right, strict=True):
        np.testing.assert_array_equal(a, b)
    directions = np.cos(np.arange(6.0)).reshape(2, 3), np.array([0.4, 1.0, -0.8])

    def slope(x, y):
        gx, gy = cgrad.grad(lambda x, y: summed(steps, x, y), (0, 1))(x, y)
        return np.sum(gx * directions[0]) + np.sum(gy * directions[1])
    agree(slope(x, y), lambda x, y: summed(steps, x, y), (x, y), directions)
    second = cgrad.grad(slope, (0, 1))(x, y)
    agree(sum(np.sum(g * d) for g, d in zip(second, directions)), slope, (x, y), directions)


def agree(exact, f, args, directions):
    """Differences of one of several steps give the exact derivative: some programs bend much, some lose digits."""
    differences = [derivative(f, args, directions, h) for h in (1e-3, 1e-4, 1e-5)]
    assert min(abs(d - exact) for d in differences) < 1e-6 * (1 + abs(exact)), (exact, differences)
