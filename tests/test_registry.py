"""Every property, over every op in the registry: an op added later is tested without writing a test.

For each sample call of each op: value bit-identical to NumPy, gradient against central differences along random directions (float64),
second order, a batch of seeds against single seeds, dtypes, layouts, broadcasting, inputs left alone.
"""
import warnings

import numpy as np
import pytest

import cgrad
from cgrad._record import UFUNCS
from cgrad._tape import Op
from cgrad.rules import REGISTRY, SAMPLES

CALLS = [pytest.param(name, k, id=f"{name}-{k}") for name in REGISTRY for k in range(len(SAMPLES.get(name, ())))]
ELEMENTWISE = [op for op in REGISTRY.values() if op.partials is not None]
SAMPLED = [op for op in ELEMENTWISE if SAMPLES.get(op.name) and SAMPLES[op.name][0].function is op.ufunc]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")


def sample_of(name, k):
    return SAMPLES[name][k]


def arguments(sample, seed, dtype=np.float64, shapes=None):
    rng = np.random.default_rng(seed)
    domains = sample.domain if np.ndim(sample.domain[0]) else (sample.domain,) * len(sample.shapes)
    made = []
    for shape, (low, high) in zip(shapes or sample.shapes, domains):
        x = rng.uniform(low, high, shape)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * rng.uniform(-0.5, 0.5, shape)
        made.append(np.asarray(x, dtype))
    return made


def run(sample, args):
    """The function's outputs as a list; a sample's function may give several."""
    out = sample.function(*args, **dict(sample.kwargs))
    return list(out) if isinstance(out, (list, tuple)) else [out]


def fun_of(sample):
    """The sample as a function of its arrays that gives one array: weighted outputs, so that all of them count."""
    def fun(*args):
        outs = run(sample, args)
        return outs[0] if len(outs) == 1 else outs
    return fun


def flat(outs):
    return outs if isinstance(outs, list) else [outs]


def directional(fun, args, directions, weights, h=1e-6):
    """d/dt of sum(weights * fun(args + t directions)), by central differences of fourth order."""
    def value(t):
        outs = flat(fun(*[a + t * d for a, d in zip(args, directions)]))
        return sum(np.sum(w * np.asarray(o)) for w, o in zip(weights, outs))
    return (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)


def weights_for(outs, seed=5):
    rng = np.random.default_rng(seed)
    made = []
    for o in outs:
        w = rng.uniform(0.5, 1.5, np.shape(o))
        if np.asarray(o).dtype.kind == "c":
            w = w + 1j * rng.uniform(-1, 1, np.shape(o))
        made.append(w.astype(np.asarray(o).dtype) if np.asarray(o).dtype.kind in "fc" else w)
    return made


def pullback_of(fun, args, weights):
    _, pullback = cgrad.vjp(fun, *args)
    return pullback(weights if len(weights) > 1 else weights[0])


@pytest.mark.parametrize("name, k", CALLS)
def test_value_is_numpys(name, k):
    sample = sample_of(name, k)
    for dtype in (np.float64, np.float32) + ((np.complex128,) if sample.complex else ()):
        args = arguments(sample, 1, dtype)
        right = run(sample, args)
        got, _ = cgrad.vjp(fun_of(sample), *args)
        for a, b in zip(flat(got), right):
            a, b = np.asarray(a), np.asarray(b)
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name, k", CALLS)
def test_gradient(name, k):
    sample = sample_of(name, k)
    fun = fun_of(sample)
    for dtype in (np.float64,) + ((np.complex128,) if sample.complex else ()):
        args = arguments(sample, 2, dtype)
        before = [a.copy() for a in args]
        weights = weights_for(run(sample, args))
        grads = pullback_of(fun, args, weights)
        rng = np.random.default_rng(3)
        for a, b, g in zip(args, before, grads):
            np.testing.assert_array_equal(a, b)                     # inputs left alone
            assert g.shape == a.shape and g.dtype == a.dtype
        for i, g in enumerate(grads):
            directions = [rng.standard_normal(a.shape) * (j == i) for j, a in enumerate(args)]
            if np.dtype(dtype).kind == "c":
                # Re(sum(gz * df)) = Re(sum(g * dx)), for real and imaginary directions
                for unit in (1, 1j):
                    moved = [unit * d for d in directions]
                    right = directional(fun, args, moved, weights)
                    np.testing.assert_allclose(np.sum(g * moved[i]).real, np.real(right), rtol=1e-6, atol=1e-7)
            else:
                right = directional(fun, args, directions, weights)
                np.testing.assert_allclose(np.sum(g * directions[i]), right, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name, k", CALLS)
def test_second_order(name, k):
    sample = sample_of(name, k)
    fun = fun_of(sample)
    args = arguments(sample, 4)
    weights = weights_for(run(sample, args))
    rng = np.random.default_rng(6)
    inner = [rng.standard_normal(a.shape) for a in args]

    def first(*xs):
        grads = pullback_of(fun, xs, weights)
        return sum(np.sum(g * d) for g, d in zip(grads, inner))
    if sample.order == 1:
        with pytest.raises(NotImplementedError, match="no derivative rule"):
            cgrad.grad(first)(*args)
        return
    grads = cgrad.grad(first, tuple(range(len(args))))(*args)
    for i, g in enumerate(grads):
        directions = [rng.standard_normal(a.shape) * (j == i) for j, a in enumerate(args)]
        right = directional(lambda *xs: np.float64(first(*xs)), args, directions, [1.0], h=1e-4)
        np.testing.assert_allclose(np.sum(g * directions[i]), right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name, k", CALLS)
def test_batched_seeds(name, k):
    """One sweep with a matrix of seeds gives what the seeds give one by one."""
    sample = sample_of(name, k)
    fun = fun_of(sample)
    args = arguments(sample, 7)
    jacobians = cgrad.jacobian(fun, tuple(range(len(args))))(*args)
    outs = flat(fun(*args))
    single = len(outs) == 1
    for n, o in enumerate(outs):
        if np.asarray(o).dtype.kind not in "fc":
            continue
        rows = []
        for index in np.ndindex(np.shape(o)):
            seeds = [np.zeros(np.shape(p), np.asarray(p).dtype) for p in outs]
            seeds[n][index] = 1
            rows.append(pullback_of(fun, args, seeds))
        for i, a in enumerate(args):
            j = jacobians[i] if single else jacobians[n][i]
            right = np.array([r[i] for r in rows]).reshape(np.shape(o) + a.shape)
            assert j.shape == right.shape
            np.testing.assert_allclose(j, right, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name, k", CALLS)
def test_single_precision(name, k):
    sample = sample_of(name, k)
    fun = fun_of(sample)
    wide = arguments(sample, 8, np.float32)
    weights = weights_for(run(sample, wide))
    got = pullback_of(fun, wide, weights)
    right = pullback_of(fun, [a.astype(np.float64) for a in wide], [w.astype(np.float64) for w in weights])
    for g, r in zip(got, right):
        assert g.dtype == np.float32
        np.testing.assert_allclose(g, r, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name, k", CALLS)
def test_layouts(name, k):
    """Fortran order, reversed strides, read-only and strided inputs give what contiguous ones give."""
    sample = sample_of(name, k)
    fun = fun_of(sample)
    args = arguments(sample, 9)
    weights = weights_for(run(sample, args))
    right = pullback_of(fun, args, weights)
    for relaid in (lambda a: np.array(a, order="F"), lambda a: a[..., ::-1].copy()[..., ::-1] if a.ndim else a,
                   lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a):
        other = [relaid(a) for a in args]
        for a in other:
            a.flags.writeable = False
        for g, r in zip(pullback_of(fun, other, weights), right):
            np.testing.assert_allclose(g, r, rtol=1e-13, atol=1e-14)


# ------------------------------------------------------------------------------------------- elementwise ops alone
@pytest.mark.parametrize("op", SAMPLED, ids=lambda op: op.name)
@pytest.mark.parametrize("shapes", [((), ()), ((0,), (0,)), ((2, 3), (3,)), ((3, 1), (1, 4)), ((), (2, 2)), ((2, 1, 3), (4, 1))],
                         ids=str)
def test_elementwise_shapes(op, shapes):
    """0-d, empty and broadcast operands; each input alone and both."""
    sample = SAMPLES[op.name][0]
    args = arguments(sample, 10, shapes=shapes[:op.ufunc.nin])
    z = op.ufunc(*args)
    weights = weights_for([z])
    got, pullback = cgrad.vjp(op.ufunc, *args)
    np.testing.assert_array_equal(np.asarray(got), z)
    both = pullback(weights[0])
    rng = np.random.default_rng(11)
    for i, (a, g) in enumerate(zip(args, both)):
        assert g.shape == a.shape and g.dtype == a.dtype
        d = [rng.standard_normal(x.shape) * (j == i) for j, x in enumerate(args)]
        np.testing.assert_allclose(np.sum(g * d[i]), directional(op.ufunc, args, d, weights), rtol=1e-6, atol=1e-7)
        alone = cgrad.vjp(lambda x, i=i: op.ufunc(*[x if j == i else b for j, b in enumerate(args)]), a)[1](weights[0])[0]
        np.testing.assert_allclose(alone, g, rtol=1e-13, atol=1e-14)


def precisions():
    """Every op in the dtypes that NumPy computes in float16 or longdouble from end to end."""
    found = []
    for op in SAMPLED:
        for dtype in (np.float16, np.longdouble):
            if any(np.dtype(dtype).char == t[0] == t[-1] for t in op.ufunc.types):
                found.append(pytest.param(op, dtype, id=f"{op.name}-{np.dtype(dtype)}"))
    return found


@pytest.mark.parametrize("op, dtype", precisions())
def test_other_precisions(op, dtype):
    sample = SAMPLES[op.name][0]
    args = arguments(sample, 12, dtype)
    z = op.ufunc(*args)
    grads = cgrad.vjp(op.ufunc, *args)[1](np.ones(z.shape, dtype))
    right = cgrad.vjp(op.ufunc, *[a.astype(float) for a in args])[1](np.ones(z.shape))
    for g, r in zip(grads, right):
        assert g.dtype == dtype
        np.testing.assert_allclose(g.astype(float), r, rtol=2e-2 if dtype == np.float16 else 1e-13, atol=1e-2)


@pytest.mark.parametrize("op", [op for op in SAMPLED if op.ufunc.nin == 2], ids=lambda op: op.name)
def test_operands_of_two_dtypes(op):
    """NumPy promotes; each gradient comes back in the dtype of its argument. Python numbers promote nothing."""
    sample = SAMPLES[op.name][0]
    x, y = arguments(sample, 13)
    for a, b in ((x.astype(np.float32), y), (x, y.astype(np.float32)), (x.astype(np.float32), np.float64(y[0])),
                 (x.astype(np.float32), float(y[0])), (float(x[0]), y.astype(np.float32)), (x, 2), (np.array([1, 2, 3]), y)):
        differentiated = tuple(i for i, v in enumerate((a, b)) if np.asarray(v).dtype.kind == "f")
        f = lambda *args: op.ufunc(*args)                                      # noqa: E731
        z = f(a, b)
        value, grads = cgrad.value_and_grad(lambda *args: op.ufunc(*args).sum(), differentiated)(a, b)
        assert value == z.sum()
        right = cgrad.grad(lambda *args: op.ufunc(*args).sum(), differentiated)(*[
            np.float64(v) if i in differentiated else v for i, v in enumerate((a, b))])
        for i, g, r in zip(differentiated, grads, right):
            assert np.asarray(g).dtype == np.asarray((a, b)[i]).dtype and np.shape(g) == np.shape((a, b)[i])
            np.testing.assert_allclose(g, r, rtol=1e-5)


def test_every_ufunc_of_numpy_is_in_a_written_state():
    """Differentiable, zero derivative, plain, or on this list of those that cannot have a derivative."""
    without = {"bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
               "bitwise_right_shift", "bitwise_xor", "gcd", "invert", "isnat", "lcm", "left_shift", "right_shift"}
    missing = []
    for name in dir(np):
        ufunc = getattr(np, name)
        if isinstance(ufunc, np.ufunc) and ufunc not in UFUNCS and name not in without:
            missing.append(name)
    assert missing == []


def test_rows_name_numpys_functions():
    """A wrong binding would show here: the op called np.f computes np.f."""
    for op in ELEMENTWISE:
        assert isinstance(op, Op) and op.name == op.ufunc.__name__
        own = getattr(np, op.name, None)
        assert own is None or own is op.ufunc
