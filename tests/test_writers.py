"""Functions and methods that write into an array; keywords of ufuncs: out=, where=, dtype=, casting=; ufunc.at and outer.

Each writes to a tracked array and to a plain one, whose values are NumPy's; derivatives are held against differences.
"""
import operator
import warnings

import numpy as np
import pytest
from support import check

import cgrad

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
rng = np.random.default_rng(11)


def draw(*shape):
    return rng.uniform(0.5, 2, shape)


# ---------------------------------------------------------------------------------------------- functions that write
MASK = np.array([[True, False, True, True], [False, True, False, False], [False, False, True, False]])


def written(change):
    """The program that makes `change` on an array of which a view and a product are alive."""
    def f(x, v):
        y = x * x
        kept, view = y * v, y[1]
        change(y, v)
        return y * kept * view
    return f


WRITES = {
    "put": lambda y, v: np.put(y, [0, 5, -1], v), "put cycled": lambda y, v: np.put(y, [0, 5, 11, 2, 3], v[:2]),
    "put duplicates": lambda y, v: np.put(y, [3, 3, 1], v), "put number": lambda y, v: y.put([1, 2], v[0]),
    "put wrap": lambda y, v: np.put(y, [13, -14], v, mode="wrap"),
    "put clip": lambda y, v: np.put(y, [99, -99], v, mode="clip"),
    "put constant": lambda y, v: np.put(y, [3, 4], [1, 2]), "put nothing": lambda y, v: np.put(y, [], v),
    "put_along_axis": lambda y, v: np.put_along_axis(y, np.array([[0, 3], [1, 2], [2, 2]]), v[:2], 1),
    "put_along_axis flat": lambda y, v: np.put_along_axis(y, np.array([3, 7]), v[:2], None),
    "putmask": lambda y, v: np.putmask(y, MASK, y * v), "putmask cycled": lambda y, v: np.putmask(y, MASK, v[:3]),
    "putmask number": lambda y, v: np.putmask(y, MASK, v[0]), "place": lambda y, v: np.place(y, MASK, v[:2]),
    "place number": lambda y, v: np.place(y, MASK, 7.0), "place nothing": lambda y, v: np.place(y, MASK & False, v),
    "copyto": lambda y, v: np.copyto(y, v), "copyto number": lambda y, v: np.copyto(y, 3),
    "copyto where": lambda y, v: np.copyto(y, v, where=MASK),
    "copyto where list": lambda y, v: np.copyto(y, v, where=[1, 0, 1, 1]),
    "out where list": lambda y, v: np.multiply(y, v, out=y, where=[1, 0, 0, 1]),
    "copyto where row": lambda y, v: np.copyto(y, v[0], where=MASK[0]),
    "fill_diagonal": lambda y, v: np.fill_diagonal(y, v[1]), "fill_diagonal cycled": lambda y, v: np.fill_diagonal(y, v[:2]),
    "fill_diagonal tall": lambda y, v: np.fill_diagonal(y.reshape(6, 2), v, wrap=True),
    "fill_diagonal 3-D": lambda y, v: np.fill_diagonal(y.reshape(-1)[:8].reshape(2, 2, 2), v[2]),
    "fill": lambda y, v: y[1:].fill(v[0]), "sort": lambda y, v: y.sort(), "sort axis": lambda y, v: y.sort(axis=0),
    "sort a row": lambda y, v: y[1].sort(), "partition": lambda y, v: y.partition(1, axis=1),
    "flat": lambda y, v: operator.setitem(y.flat, slice(2, 9), v),
    "add.at": lambda y, v: np.add.at(y, [0, 0, 1], v),
    "subtract.at": lambda y, v: np.subtract.at(y, (slice(None), [1, 1]), v[:2]),
    "add.at places": lambda y, v: np.add.at(y, ([0, 0, 2], [1, 1, 3]), v[1:]),
    "add.at mask": lambda y, v: np.add.at(y, MASK, v[0]),
    "add.at slice": lambda y, v: np.add.at(y, slice(1, 3), v), "add.at one": lambda y, v: np.add.at(y, (1, 2), v[0]),
    "add.at nowhere": lambda y, v: np.add.at(y, [], 1.0), "multiply.at nowhere": lambda y, v: np.multiply.at(y, [], 2.0),
    "add.at view": lambda y, v: np.add.at(y[1], [0, 0], v[:2]), "add.at itself": lambda y, v: np.add.at(y, [0, 0], y[1:]),
    "add.at constant": lambda y, v: np.add.at(y, [0, 0], 1),
    "multiply.at": lambda y, v: np.multiply.at(y, [0, 2], v),
    "multiply.at repeated": lambda y, v: np.multiply.at(y, [0, 2, 0, 0], v),
    "divide.at": lambda y, v: np.divide.at(y, ([0, 0, 1, 0], [1, 2, 1, 1]), v),
    "power.at": lambda y, v: np.power.at(y, [1, 1], 2.0),
    "negative.at": lambda y, v: np.negative.at(y, [0, 0, 1]), "sin.at": lambda y, v: np.sin.at(y, ([0, 2], [1, 3])),
    "maximum.at": lambda y, v: np.maximum.at(y, [0, 0], 0.9 * v[:1]), "floor.at": lambda y, v: np.floor.at(y, [0]),
    "out": lambda y, v: np.multiply(y, v, out=y), "out of a view": lambda y, v: np.add(y[0], v, out=y[2]),
    "out in a tuple": lambda y, v: np.exp(v, out=(y[0],)),
    "positional out": lambda y, v: np.sin(y, y), "out wider": lambda y, v: np.add(v, 1, out=y),
    "out of plain": lambda y, v: np.add([1.0, 2, 3, 4], 1, out=y),
    "out where": lambda y, v: np.multiply(y, v, out=y, where=MASK),
    "out where row": lambda y, v: np.log(v, out=y, where=MASK[0]),
    "where a number": lambda y, v: np.add(y, v, out=y, where=True),
    "zero derivative out": lambda y, v: np.floor(y * v, out=y, where=MASK),
    "comparison out": lambda y, v: np.greater(v, 1, out=y[0]),
    "comparison out where": lambda y, v: np.isfinite(y, out=y, where=MASK),
    "modf out": lambda y, v: np.modf(y * v, out=(y, np.zeros_like(y))),
    "take out": lambda y, v: np.take(v, [0, 0, 1, 2], out=y[0]),
    "clip out": lambda y, v: np.clip(y, 0.6, 2.1, out=y), "round out": lambda y, v: y[1].round(1, out=y[2]),
}


@pytest.mark.parametrize("name", WRITES)
def test_functions_that_write(name):
    check(written(WRITES[name]), draw(3, 4), draw(4))


def test_functions_that_write_numbers():
    def f(x):
        y, z, w, u = (np.zeros_like(x) for _ in range(4))
        np.put(y, [0, 0], x * x)
        z.fill(x)
        np.copyto(w, x * 2, where=True)
        np.add.at(u, (), x)
        np.multiply.at(u, (), x)
        np.multiply(u, z, out=u)
        np.putmask(z, True, y)
        return y * z * w * u
    check(f, np.array(1.3))


@pytest.mark.parametrize("write", [
    lambda p, x: np.put(p, [0], x), lambda p, x: np.put_along_axis(p, np.array([0]), x, 0),
    lambda p, x: np.putmask(p, [True] * 3, x),
    lambda p, x: np.place(p, [True] * 3, x), lambda p, x: np.copyto(p, x), lambda p, x: np.add.at(p, [0, 0, 0], x),
    lambda p, x: np.multiply.at(p, [0, 0, 0], x), lambda p, x: np.add(x, x, out=p),
    lambda p, x: np.sin(x, out=p, where=[True, False, True]),
    lambda p, x: np.take(x, [0, 1, 2], out=p), lambda p, x: np.clip(x, 0, 1, out=p),
    lambda p, x: np.modf(x, out=(p, None))], ids=range(12))
def test_plain_target_is_refused(write):
    """A plain array cannot take tracked values; the error says which one can."""
    plain = np.zeros(3)

    def f(x):
        with pytest.raises(TypeError, match=r"np.zeros_like\(x\).*cgrad.numpy.zeros"):
            write(plain, x)
        return x.sum()
    cgrad.grad(f)(draw(3))
    np.testing.assert_array_equal(plain, 0)


def test_plain_target_takes_constants():
    plain, counts = np.zeros(3), np.zeros(3, bool)

    def f(x):
        np.copyto(plain, np.zeros_like(x) + 1)
        np.greater(x, 1, out=counts)
        np.add.at(plain, [0], np.ones_like(x)[:1])
        return x.sum()
    cgrad.grad(f)(np.array([0.0, 2.0, 3.0]))
    np.testing.assert_array_equal(plain, [2, 1, 1])
    np.testing.assert_array_equal(counts, [False, True, True])


def test_shuffle():
    """Of one dimension it is made of reads and writes of elements; NumPy warns about arrays that are not its own."""
    def f(x):
        y = x * x
        with pytest.warns(UserWarning, match="shuffling"):
            np.random.default_rng(3).shuffle(y)
        return y
    x = np.arange(1.0, 7)
    out, pullback = cgrad.vjp(f, x)
    assert sorted(out) == list(x * x)
    np.testing.assert_array_equal(pullback(out)[0], 2 * x**3)

    def permuted(x):
        with pytest.raises(TypeError, match="value"):
            np.random.default_rng(3).permutation(x)
        return x.sum()
    cgrad.grad(permuted)(x)


# ---------------------------------------------------------------------------------------------- keywords
def test_keywords():
    check(lambda x, y: np.multiply(x, y, order="F") + np.add(x, y, casting="same_kind", subok=False), draw(2, 3), draw(3))
    check(lambda x: np.sin(x, dtype=float) + np.exp(x, signature="d->d") + np.add(x, 1, sig=(None, None, "d")), draw(3))
    check(lambda x: np.multiply(x, x, where=MASK, out=x + 1), draw(3, 4))
    check(lambda x: np.multiply(2.0, x, where=True), draw(4))
    x = draw(3)
    for f in (lambda x: np.multiply(x, x, dtype=np.float32), lambda x: np.sin(x, dtype=np.float32, casting="unsafe"),
              lambda x: np.multiply(x, x, out=np.zeros_like(x, dtype=np.float32)),
              lambda x: np.multiply(x, 1j, out=np.zeros_like(x), casting="unsafe")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            out, pullback = cgrad.vjp(f, x)
            np.testing.assert_array_equal(out, f(x))
            assert out.dtype == f(x).dtype
            gradient, = pullback(np.ones(3, out.dtype))
        assert gradient.dtype == float
    np.testing.assert_allclose(cgrad.grad(lambda x: np.multiply(x, x, dtype=np.float32).sum())(x), 2 * x, rtol=1e-6)


def test_where_without_out():
    """Places that are masked out are constants; the others are NumPy's to the bit."""
    x = draw(3, 4)
    out, pullback = cgrad.vjp(lambda x: np.log(x, where=MASK), x)
    np.testing.assert_array_equal(out[MASK], np.log(x)[MASK])
    np.testing.assert_array_equal(pullback(np.ones((3, 4)))[0], np.where(MASK, 1 / x, 0))


@pytest.mark.parametrize("ufunc", [np.multiply, np.subtract, np.divide, np.arctan2, np.maximum, np.power],
                         ids=lambda u: u.__name__)
def test_outer(ufunc):
    check(ufunc.outer, draw(3), draw(2, 2) + 0.01)
    check(ufunc.outer, draw(), draw(2) + 0.01)
    check(lambda x: ufunc.outer(x, [1.1, 2.2]), draw(2, 1))
    check(lambda x: ufunc.outer([[1.1, 2.2]], x), draw(2))
    check(lambda x: ufunc.outer(2.5, x), draw())


@pytest.mark.parametrize("call", [lambda x: np.logaddexp.accumulate(x), lambda x: np.hypot.reduceat(x, [0]),
                                  lambda x: np.arctan2.reduce(x)], ids=range(3))
def test_methods_without_a_rule(call):
    def f(x):
        with pytest.raises(NotImplementedError, match=r"np\.\w+\.\w+"):
            call(x)
        return x.sum()
    cgrad.grad(f)(draw(3))
