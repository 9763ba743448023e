"""The compiled ufuncs of cgrad._kernels: accuracy in ulp, special values, every loop and stride, and no stray warnings.

The reference is mpmath where it is installed, else NumPy's long double for the loops of fewer digits.
"""
import ctypes
import doctest
import itertools
import pickle

import numpy as np
import pytest

from cgrad import _kernels as k

try:
    import mpmath
except ImportError:
    mpmath = None

INF, NAN = np.inf, np.nan
REAL = [np.float32, np.float64, np.longdouble]
COMPLEX = [np.complex64, np.complex128, np.clongdouble]
UFUNCS = {name: value for name, value in vars(k).items() if isinstance(value, np.ufunc)}
LOOPS = [(name, types) for name, ufunc in UFUNCS.items() for types in ufunc.types]


# --- references -----------------------------------------------------------------------------------------------------

class LongDouble:
    """The part of mpmath's interface that the references below use, in NumPy's long double."""
    pi = np.longdouble("3.14159265358979323846264338327950288")
    mpf, mpc = staticmethod(np.longdouble), staticmethod(lambda re, im: re + np.clongdouble(1j) * im)
    ldexp, nint, sin, cos = (staticmethod(f) for f in (np.ldexp, np.rint, np.sin, np.cos))
    exp, log, cosh = (staticmethod(f) for f in (np.exp, np.log, np.cosh))


if mpmath:
    m = mpmath.mp.clone()
    m.prec = 200
else:
    m = LongDouble


def needs(dtype):
    """Skip a test of accuracy whose reference would have no more digits than the loop."""
    if not mpmath and np.finfo(dtype).nmant >= np.finfo(np.longdouble).nmant:
        pytest.skip("needs mpmath")


def exact(x):
    """A NumPy number as a number of the reference, without rounding."""
    if np.iscomplexobj(x):
        return m.mpc(exact(x.real), exact(x.imag))
    fraction, exponent = np.frexp(x)
    high = float(fraction)
    return m.ldexp(m.mpf(high) + m.mpf(float(fraction - high)), int(exponent))


def ulp(value, dtype):
    """The distance of numbers of `dtype` at the size of `value`."""
    info = np.finfo(dtype)
    exponent = (m.frexp(abs(value)) if mpmath else np.frexp(abs(value)))[1] - 1
    return m.ldexp(m.mpf(1), int(max(exponent, info.minexp)) - info.nmant)


def worst_error(ufunc, reference, *args):
    """The largest error in ulp of the result (of its modulus, if complex) over arrays of arguments."""
    results = ufunc(*args)
    errors = []
    for result, *values in zip(results, *args):
        wanted = reference(*map(exact, values))
        error = abs(exact(result) - wanted)
        errors.append(float(error / ulp(wanted, results.dtype)) if error else 0.0)
    return max(errors)


def sinc_derivatives(x):
    """First and second derivative of sin(pi x) / (pi x), near 0 by power series."""
    t = m.pi * (x - 2 * m.nint(x / 2))
    if abs(x) > 0.6:
        first = (m.cos(t) - m.sin(t) / (m.pi * x)) / x
        return first, -m.pi * m.sin(t) / x - 2 * first / x
    first, second, term = m.mpf(0), m.mpf(0), -m.pi * m.pi / 3
    for n in range(1, 40):
        first, second = first + term * x, second + (2 * n - 1) * term
        term = -term * t * t / (2 * n * (2 * n + 3))
    return first, second


REFERENCES = {
    "fast_sin": lambda x: m.sin(x),
    "fast_cos": lambda x: m.cos(x),
    "logistic": lambda x: 1 / (1 + m.exp(-x)),
    "tanh_slope": lambda x, z: 1 / m.cosh(x) ** 2,
    "sinc_slope": lambda x: sinc_derivatives(x)[0],
    "sinc_curvature": lambda x: sinc_derivatives(x)[1],
    "strong_multiply": lambda g, p: g * p,
    "over_or_zero": lambda a, b: a / b,
    "over_hypot2": lambda a, x, y: a / (x * x + y * y),
    "power_slope_x": lambda x, y: y * x ** (y - 1),
    "power_slope_y": lambda x, z: m.log(x) * z,
}


def uniform(low, high, dtype, n=400, seed=0):
    x = np.random.default_rng(seed).uniform(low, high, n)
    return (x + x / 3e9).astype(dtype)  # long doubles with digits beyond those of a double


def spread(exponent, dtype, n=400, seed=0):
    """Numbers of both signs and of all sizes from 10**-exponent to 10**exponent."""
    rng = np.random.default_rng(seed)
    return (dtype(10) ** uniform(-exponent, exponent, dtype, n, seed) * rng.choice([-1, 1], n)).astype(dtype)


def complex_numbers(exponent, dtype, seed=0):
    real = np.finfo(dtype).dtype.type
    return spread(exponent, real, seed=seed) + 1j * spread(exponent, real, seed=seed + 1)


# --- accuracy -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["fast_sin", "fast_cos"])
@pytest.mark.parametrize("size", [0.8, 10, 1000, 9.9e4])
def test_sin_and_cos_are_well_within_1_ulp(name, dtype, size):
    needs(dtype)
    x = uniform(-size, size, dtype, 2000)
    if not mpmath:
        x = x[np.abs(x) < 1000]  # long double's own reduction ends
    assert worst_error(UFUNCS[name], REFERENCES[name], x) < 0.85


@pytest.mark.parametrize("name", ["fast_sin", "fast_cos"])
def test_sin_and_cos_next_to_multiples_of_half_pi(name):
    """There all but the last bits cancel in the reduction."""
    needs(np.longdouble)
    multiples = np.arange(1, 63661) * (LongDouble.pi / 2)
    x = multiples.astype(np.float64)
    gap = np.abs(x - multiples)
    hardest = x[np.argsort(gap / x)[:200]]
    assert worst_error(UFUNCS[name], REFERENCES[name], np.concatenate([hardest, x[::300]])) < 0.85


@pytest.mark.parametrize("name", ["fast_sin", "fast_cos"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sin_and_cos_of_large_arguments_are_the_c_library_s(name, dtype):
    needs(np.longdouble)
    x = np.concatenate([spread(30, dtype, 50), dtype([1e5, 1e6, 1e22, -3e7, 99999.9, 100000.1])])
    assert worst_error(UFUNCS[name], REFERENCES[name], x) < 1


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("size", [1, 10, 85, 740, 11000])
def test_logistic_and_tanh_slope_in_their_tails(dtype, size):
    needs(dtype)
    size = min(size, int(np.log(np.finfo(dtype).max) * 0.99))
    x = uniform(-size, size, dtype)
    assert worst_error(k.logistic, REFERENCES["logistic"], x) < 2.5
    assert worst_error(k.tanh_slope, REFERENCES["tanh_slope"], x / 2, np.tanh(x / 2)) < 5


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("low, high, bound", [(1e-30, 1e-3, 2), (1e-3, 0.5, 5), (0.5, 0.6, 25), (0.75, 1.3, 25),
                                              (40.01, 40.4, 8), (12345.01, 12345.4, 8)])
def test_derivatives_of_sinc(dtype, low, high, bound):
    """The larger bounds are next to zeros of the derivatives, where it is the error over the terms that counts."""
    needs(dtype)
    x = uniform(low, high, dtype)
    assert worst_error(k.sinc_slope, REFERENCES["sinc_slope"], x) < bound
    assert worst_error(k.sinc_curvature, REFERENCES["sinc_curvature"], -x) < bound


@pytest.mark.parametrize("dtype", REAL)
def test_derivatives_of_sinc_at_large_integers(dtype):
    x = dtype([2, 3, 1024, 1e6, 1e6 + 1, 2.0 ** 23, 2.0 ** 30, 1e16, 1e18])
    sign = np.where(x % 2 == 0, 1, -1)
    with np.errstate(all="raise", under="ignore"):
        first, second = k.sinc_slope(x), k.sinc_curvature(x)
    np.testing.assert_allclose(first, sign / x, rtol=4 * float(np.finfo(dtype).eps))
    np.testing.assert_allclose(second, -2 * sign / x / x, rtol=4 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("low, high, size", [(-3, 0, 3), (0, 0.5, 3), (0.5, 3, 3), (3, 9, 3), (0.001, 0.499, 200)])
def test_power_slope_x_is_as_accurate_as_the_power(dtype, low, high, size):
    """Below 1/2 y - 1 is rounded, and a large log(x) would multiply that error."""
    needs(dtype)
    x, y = np.abs(spread(min(size, 25) if dtype is np.float32 else size, dtype)), uniform(low, high, dtype)
    assert worst_error(k.power_slope_x, REFERENCES["power_slope_x"], x, y) < 4


@pytest.mark.parametrize("dtype", REAL)
def test_power_slope_y(dtype):
    needs(dtype)
    x, z = np.abs(spread(20, dtype)), uniform(-9, 9, dtype)
    assert worst_error(k.power_slope_y, REFERENCES["power_slope_y"], x, z) < 4


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_power_slopes(dtype):
    needs(np.longdouble)
    x, y = complex_numbers(1, dtype), complex_numbers(0.3, dtype, seed=5)
    assert worst_error(k.power_slope_x, REFERENCES["power_slope_x"], x, y) < 30  # |y log x| digits go in exp
    assert worst_error(k.power_slope_y, REFERENCES["power_slope_y"], x, y) < 6
    for exponent in (-3, -1, 2, 3, 4, 7):
        assert worst_error(k.power_slope_x, REFERENCES["power_slope_x"], x, np.full_like(x, exponent)) < 12
    near_one = (1 + complex_numbers(3, dtype) * np.finfo(dtype).eps).astype(dtype)
    assert worst_error(k.power_slope_y, REFERENCES["power_slope_y"], near_one, np.ones_like(x)) < 4


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
@pytest.mark.parametrize("name", ["strong_multiply", "over_or_zero"])
def test_products_and_quotients(name, dtype):
    needs(dtype)
    numbers = complex_numbers if dtype in COMPLEX else spread
    assert worst_error(UFUNCS[name], REFERENCES[name], numbers(5, dtype), numbers(5, dtype, seed=7)) < 6


@pytest.mark.parametrize("dtype", REAL)
def test_over_hypot2_of_all_sizes(dtype):
    needs(dtype)
    exponent = 17 if dtype is np.float32 else 145
    a, x, y = (spread(exponent, dtype, seed=i) for i in range(3))
    assert worst_error(k.over_hypot2, REFERENCES["over_hypot2"], x, x, y) < 4
    assert worst_error(k.over_hypot2, REFERENCES["over_hypot2"], a[:50], a[:50], a[::-1][:50]) < 4


# --- special values -------------------------------------------------------------------------------------------------

SPECIAL = {
    "strong_multiply": [
        ((0, INF), 0), ((-0.0, NAN), 0), ((0, -INF), 0), ((NAN, 0), NAN), ((NAN, 2), NAN), ((2, NAN), NAN),
        ((3, 4), 12), ((-2, INF), -INF), ((0, 5), 0)],
    "over_or_zero": [((0, 0), 0), ((-0.0, 0), 0), ((3, 4), 0.75), ((NAN, 0), NAN), ((0, NAN), NAN), ((0, 2), 0),
                     ((1, INF), 0)],
    "over_hypot2": [
        ((0, 0, 0), 0), ((6.25, 3, 4), 0.25), ((INF, INF, 1), 0), ((1, 1, -INF), 0), ((-INF, 2, -INF), 0),
        ((1, NAN, 1), NAN), ((NAN, 1, 1), NAN), ((0, 1, 0), 0), ((2, 0, -1), 2), ((INF, 1, 1), INF)],
    "tie_share": [
        ((1, 2), 0), ((2, 2), 0.5), ((3, 2), 1), ((NAN, 2), 1), ((2, NAN), 0), ((NAN, NAN), 0.5), ((0.0, -0.0), 0.5),
        ((INF, INF), 0.5), ((-INF, INF), 0)],
    "tie_share_ignore_nan": [
        ((1, 2), 0), ((2, 2), 0.5), ((3, 2), 1), ((NAN, 2), 0), ((2, NAN), 1), ((NAN, NAN), 0.5), ((INF, -INF), 1)],
    "logistic": [((0,), 0.5), ((INF,), 1), ((-INF,), 0), ((NAN,), NAN), ((1e30,), 1), ((-1e30,), 0), ((-0.0,), 0.5)],
    "tanh_slope": [((0, 0), 1), ((INF, 1), 0), ((-INF, -1), 0), ((NAN, NAN), NAN), ((1e30, 1), 0), ((-0.0, -0.0), 1)],
    "power_slope_x": [
        ((5, 0), 0), ((0, 0), 0), ((INF, 0), 0), ((NAN, 0), 0), ((0, 1), 1), ((NAN, 1), 1), ((INF, 1), 1),
        ((-3, 2), -6), ((INF, 2), INF), ((0, 2), 0), ((0, 3), 0), ((0, 2.5), 0), ((0, 1.5), 0), ((-2, 3), 12),
        ((-2, -1), -0.25), ((-2, 5), 80), ((INF, 0.25), 0), ((INF, -1), 0), ((4, 0.5), 0.25),
        ((-1, 2.0 ** 80), -2.0 ** 80), ((NAN, 3), NAN), ((2, NAN), NAN)],
    "power_slope_y": [((0, 0), 0), ((1, 1), 0), ((INF, 0), 0), ((NAN, 2), NAN), ((1, NAN), NAN), ((-0.0, 0), 0)],
    "fast_sin": [((0,), 0), ((NAN,), NAN)],
    "fast_cos": [((0,), 1), ((NAN,), NAN)],
    "sinc_slope": [((0,), 0), ((NAN,), NAN), ((1,), -1), ((2,), 0.5), ((-2,), -0.5)],
    "sinc_curvature": [((NAN,), NAN), ((1,), 2), ((2,), -0.5), ((-2,), -0.5)],
}
# Results whose warnings NumPy's users expect: the value is infinite, or no value is right.
WARNING = {
    "strong_multiply": [(("max", "max"), INF), ((INF, 0), NAN)],
    "over_or_zero": [((1, 0), INF), ((-1, 0), -INF)],
    "power_slope_x": [((0, 0.5), INF), ((0, 0.25), INF), ((-0.0, 0.5), INF), ((0, -2), -INF), ((-8, 0.75), NAN)],
    "power_slope_y": [((0, 1), -INF), ((-1, 1), NAN), ((-1, 0), NAN)],
    "fast_sin": [((INF,), NAN), ((-INF,), NAN)],
    "fast_cos": [((INF,), NAN), ((-INF,), NAN)],
    "sinc_slope": [((INF,), NAN)],
    "sinc_curvature": [((-INF,), NAN)],
}


def real_types(ufunc):
    return [np.dtype(types[-1]) for types in ufunc.types if types[-1] in "fdg"]


def batch(points, repeat):
    """Arguments and results of a table, each point in vector bodies, tails and beside all others."""
    args = [np.array(column * repeat, float) for column in zip(*(a for a, _ in points))]
    return args, np.array([r for _, r in points] * repeat, float)


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("repeat", [1, 3, 100])
def test_special_values_raise_no_flag(name, repeat):
    args, wanted = batch(SPECIAL[name], repeat)
    for dtype in real_types(UFUNCS[name]):
        with np.errstate(all="raise"):
            got = UFUNCS[name](*[a.astype(dtype) for a in args])
        np.testing.assert_array_equal(got, wanted, err_msg=str(dtype))
        assert got.dtype == dtype


@pytest.mark.parametrize("name", WARNING)
def test_genuine_warnings_remain(name):
    for args, wanted in WARNING[name]:
        for dtype in real_types(UFUNCS[name]):
            values = [np.array([np.finfo(dtype).max if a == "max" else a], dtype) for a in args]
            with pytest.warns(RuntimeWarning), np.errstate(all="warn"):
                got = UFUNCS[name](*values)
            np.testing.assert_array_equal(got, [wanted], err_msg=f"{dtype} {args}")


def test_a_zero_seed_is_plus_zero():
    for dtype in REAL:
        g, p = (dtype(v).ravel() for v in np.meshgrid([0.0, -0.0], [INF, -INF, NAN, -1.0, 1.0, 0.0, -0.0]))
        for seeds, partials in [(g, p), (dtype(-0.0), p)]:
            got = k.strong_multiply(seeds, partials)
            assert not got.any() and not np.signbit(got).any()


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_special_values(dtype):
    one, zero = dtype(1), dtype(0)
    with np.errstate(all="raise"):
        got = k.strong_multiply(np.full(9, zero), np.array([complex(INF, NAN), complex(1, -INF), 1j] * 3, dtype))
        np.testing.assert_array_equal(got, np.zeros(9))
        for n in (1, 9):
            a, b = (np.array(v, dtype).repeat(n) for v in ([0, 3 + 4j, 5, 1], [0, 1j, 2, NAN]))
            got = k.over_or_zero(a, b)
            np.testing.assert_array_equal(got[:3 * n], np.array([0, 4 - 3j, 2.5]).repeat(n))
            assert np.isnan(got[3 * n:]).all()
        assert k.power_slope_x(zero, zero) == 0 and k.power_slope_x(dtype(2 + 1j), zero) == 0
        assert k.power_slope_x(zero, one) == 1
        assert k.power_slope_x(zero, dtype(2.5 + 1j)) == 0
        assert k.power_slope_x(dtype(1 - 2j), dtype(2)) == 2 - 4j
        assert k.power_slope_y(zero, zero) == 0
        assert k.power_slope_y(one, one) == 0
    with np.errstate(all="ignore"):
        assert k.power_slope_y(zero, one).real == -INF
        assert np.isnan(k.power_slope_x(zero, dtype(0.5)))
        assert np.isnan(k.strong_multiply(dtype(complex(NAN, 0)), one))


def test_product_with_the_conjugate_is_real():
    """No fused multiply-add in complex products."""
    for dtype in COMPLEX:
        z = complex_numbers(2, dtype)
        for n in (400, 3, 1):
            assert not k.strong_multiply(z[:n], z[:n].conj()).imag.any()


@pytest.mark.parametrize("dtype", REAL)
def test_over_hypot2_neither_overflows_nor_underflows(dtype):
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(k.over_hypot2(dtype(huge), huge, dtype(0)) * huge, 1)
        np.testing.assert_allclose(k.over_hypot2(huge, huge, huge) * huge, 0.5)
        small = np.sqrt(np.finfo(dtype).smallest_normal) / 1000
        np.testing.assert_allclose(k.over_hypot2(small, small, dtype(0)) * small, 1)
        assert k.over_hypot2(dtype(1), dtype(1), small / 1000) == 1
    with np.errstate(over="ignore"):
        assert k.over_hypot2(tiny, tiny, tiny) == INF  # 1 / (2 tiny)


def test_integer_powers_keep_the_sign():
    x = np.array([-3.0, -2.0, -0.5, 0.5, 2.0])
    for y in [*range(-5, 8), 60]:
        np.testing.assert_allclose(k.power_slope_x(x, float(y)), y * x ** float(y - 1), rtol=1e-15 * 8)
        np.testing.assert_allclose(k.power_slope_x(x, np.full(5, float(y))), y * x ** float(y - 1), rtol=1e-15 * 8)


# --- loops, strides, shapes -----------------------------------------------------------------------------------------

def arguments(name, types, shape, seed=0):
    """Arrays for a loop, with some special points, and positive where a power or logarithm needs it."""
    rng = np.random.default_rng(seed)
    arrays = []
    for char in types.split("->")[0]:
        x = rng.standard_normal(shape) * 3
        if char.isupper():
            x = x + 1j * rng.standard_normal(shape)
        elif name.startswith("power"):
            x = np.abs(x)
        x[rng.random(shape) < 0.1] = 0
        arrays.append(x.astype(char))
    if name == "tanh_slope":
        arrays[1] = np.tanh(arrays[0])
    return arrays


def same_as_numpys_loops(name):
    """Bit for bit; but the powers run on NumPy's own loops, whose rounding depended on strides before NumPy 2.2."""
    if name.startswith("power") and np.lib.NumpyVersion(np.__version__) < "2.2.0":
        return lambda a, b: np.testing.assert_allclose(a, b, rtol=4 * float(np.finfo(np.asarray(a).dtype).eps))
    return np.testing.assert_array_equal


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name, types", LOOPS)
def test_results_do_not_depend_on_strides(name, types):
    ufunc = UFUNCS[name]
    args = arguments(name, types, (37, 21))
    wanted = ufunc(*args)
    assert wanted.dtype == types[-1] and wanted.shape == (37, 21)

    same = same_as_numpys_loops(name)
    same(ufunc(*[a[::-1, ::-1] for a in args]), wanted[::-1, ::-1])
    same(ufunc(*[a[::2, ::3] for a in args]), wanted[::2, ::3])
    same(ufunc(*[a.T for a in args]), wanted.T)
    same(ufunc(*[np.asfortranarray(a) if i else a for i, a in enumerate(args)]), wanted)
    same(ufunc(*[np.repeat(a, 2, axis=1)[:, ::2] if i else a for i, a in enumerate(args)]), wanted)
    out = np.full((37, 42), 7, types[-1])
    ufunc(*args, out=out[:, ::2])
    same(out[:, ::2], wanted)
    assert (out[:, 1::2] == 7).all()
    for i in range(ufunc.nin):  # in place, for each input
        copies = [a.copy() for a in args]
        ufunc(*copies, out=copies[i])
        same(copies[i], wanted)
        copies = [a.copy() for a in args]
        ufunc(*[c[:, ::-1] for c in copies], out=copies[i][:, ::-1])
        same(copies[i], wanted)
    for i in range(ufunc.nin):  # one operand a scalar: stride 0
        for scalar in (args[i].dtype.type(0), args[i].dtype.type(1.25)):
            scalars = [scalar if j == i else a for j, a in enumerate(args)]
            full = [np.full_like(a, scalar) if j == i else a for j, a in enumerate(args)]
            same(ufunc(*scalars), ufunc(*full))
            same(ufunc(*[s if np.ndim(s) == 0 else s[:, ::-2] for s in scalars]), ufunc(*full)[:, ::-2])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name, types", LOOPS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 15, 17, 255, 256, 257, 513])
def test_lengths(name, types, n):
    """Vector bodies, their tails and blocks give what one element alone gives."""
    ufunc = UFUNCS[name]
    args = arguments(name, types, n)
    got = ufunc(*args)
    assert got.shape == (n,)
    same_as_numpys_loops(name)(got, np.array([ufunc(*[a[i:i + 1] for a in args])[0] for i in range(n)], got.dtype))


@pytest.mark.parametrize("name, types", LOOPS)
def test_ordinary_numbers_raise_no_flag(name, types):
    """Not even in the unused lanes of a vector."""
    ufunc = UFUNCS[name]
    for n, step in itertools.product([*range(40), 300], (1, 2)):
        args = [np.random.default_rng(n).uniform(0.1, 0.9, n).astype(c)[::step] for c in types.split("->")[0]]
        with np.errstate(all="raise"):
            for scalar in range(ufunc.nin + 1):
                ufunc(*[a[:1] if n and i == scalar else a for i, a in enumerate(args)])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name, types", LOOPS)
def test_scalars_and_other_types(name, types):
    ufunc = UFUNCS[name]
    args = [a[0] for a in arguments(name, types, 3, seed=3)]
    zero_d = ufunc(*[np.asarray(a) for a in args])
    assert zero_d.dtype == types[-1] and np.ndim(zero_d) == 0
    np.testing.assert_array_equal(zero_d, ufunc(*[a[None] for a in map(np.asarray, args)])[0])
    assert ufunc(*[np.ones(3, np.int64)] * ufunc.nin).dtype == np.float64
    assert ufunc(*[np.ones(3, np.float16)] * ufunc.nin).dtype == np.float32
    assert ufunc(*[np.ones(3, ">f8")] * ufunc.nin).dtype == np.float64


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name, types", [case for case in LOOPS if UFUNCS[case[0]].nin == 2])
def test_reduce_and_accumulate_run_in_order(name, types):
    ufunc = UFUNCS[name]
    x = arguments(name, types, (4, 6))[0]
    for axis in (0, 1):
        rows = np.moveaxis(x, axis, 0)
        steps = list(itertools.accumulate(rows, ufunc))
        np.testing.assert_array_equal(np.moveaxis(ufunc.accumulate(x, axis=axis), axis, 0), steps)
        np.testing.assert_array_equal(ufunc.reduce(x, axis=axis), steps[-1])


def test_a_block_with_large_angles_leaves_the_others_alone():
    x = uniform(-10, 10, np.float64, 600)
    wanted = k.fast_sin(x)
    x[[3, 300]] = 1e9, NAN
    got = k.fast_sin(x)
    keep = np.isfinite(x) & (np.abs(x) < 1e5)
    np.testing.assert_array_equal(got[keep], wanted[keep])
    assert got[3] == pytest.approx(np.sin(1e9), abs=1e-15) and np.isnan(got[300])


def test_examples_in_the_docstrings_and_pickling():
    for name, ufunc in UFUNCS.items():
        examples = doctest.DocTestParser().get_doctest(ufunc.__doc__, {}, name, None, None)
        assert examples.examples
        assert doctest.DocTestRunner().run(examples).failed == 0
        assert ufunc.__name__ == name and pickle.loads(pickle.dumps(ufunc)) is ufunc


@pytest.mark.parametrize("suffix, dtype", [("f32", np.float32), ("f64", np.float64)])
def test_contiguous_c_functions(suffix, dtype):
    library = ctypes.CDLL(k.__file__)
    if not hasattr(library, f"cgrad_sincos_{suffix}"):
        pytest.skip("this platform does not export the functions of an extension module")

    def call(name, *arrays):
        getattr(library, f"cgrad_{name}_{suffix}")(
            *[a.ctypes.data_as(ctypes.c_void_p) for a in arrays], ctypes.c_size_t(arrays[0].size))
        return arrays[-1]

    for scale in (10, 1e7):
        x = uniform(-scale, scale, dtype, 777)
        s, c = np.empty_like(x), np.empty_like(x)
        call("sincos", x, s, c)
        np.testing.assert_array_equal(s, k.fast_sin(x))
        np.testing.assert_array_equal(c, k.fast_cos(x))
        np.testing.assert_array_equal(call("sin", x, np.empty_like(x)), s)
        np.testing.assert_array_equal(call("cos", x, np.empty_like(x)), c)
        np.testing.assert_array_equal(call("logistic", x, np.empty_like(x)), k.logistic(x))
        z = np.tanh(x)
        np.testing.assert_array_equal(call("tanh_slope", x, z, np.empty_like(x)), k.tanh_slope(x, z))
