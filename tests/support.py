"""What the tests of rules share: one call that holds a function against NumPy and against differences.

>>> check(lambda x, y: np.sum(x * y, axis=1), np.ones((2, 3)), np.ones(3))
"""
import numpy as np

import cgrad

__all__ = ["bit_identical", "check", "derivative", "weights_like"]


def is_complex(x):
    return np.asarray(x).dtype.kind == "c"


def weights_like(z, seed=7):
    """Weights for the elements of a result, all of them different."""
    z = np.asarray(z)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 1.5, z.shape)
    if z.dtype.kind == "c":
        weights = weights + 1j * rng.uniform(0.5, 1.5, z.shape)
    return np.asarray(weights, z.dtype)


def directions_like(args, seed=8):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(np.shape(a)) + (1j * rng.standard_normal(np.shape(a)) if is_complex(a) else 0) for a in args]


def derivative(function, args, directions, h):
    """d/dt of function(*(args + t directions)) at 0, by central differences of fourth order."""
    def at(t):
        return function(*[a + t * d for a, d in zip(args, directions)])
    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)


def bit_identical(a, b):
    """Whether two results are the same: kind (array or scalar), dtype, shape and every bit but the payload of NaN."""
    return (isinstance(a, np.ndarray) == isinstance(b, np.ndarray) and np.asarray(a).dtype == np.asarray(b).dtype
            and np.shape(a) == np.shape(b) and np.array_equal(a, b, equal_nan=True)
            and np.array_equal(np.signbit(np.real(a)), np.signbit(np.real(b))))


def product_sum(gradients, directions):
    """The change of a real function along the directions, df/dx - i df/dy being the gradient by x + iy."""
    return sum(np.sum(np.real(g * d)) for g, d in zip(gradients, directions))


def check(fun, *args, order=2, batched=True, rtol=1e-6, atol=1e-7, h=1e-4):
    """Hold `fun` and its derivatives by all arguments against NumPy and against differences.

    The value is NumPy's to the bit; gradients have shape and dtype of their arguments, which are left alone; they agree with
    differences along random directions; so does the second order with differences of the gradient; a batch of seeds gives the
    same as one after the other.

    Parameters
    ----------
    fun : callable
        Takes `args`, gives one array or scalar.
    *args : ndarray or float
        Double precision, real or complex, away from kinks by more than 2 h.
    order : {1, 2}
    batched : bool
        Compare jacobian with single seeds; for small results.
    rtol, atol : float
        Of the comparisons with differences.
    h : float
        Step of the differences.
    """
    before = [np.array(a) for a in args]
    right = fun(*args)
    out, pullback = cgrad.vjp(fun, *args)
    assert bit_identical(out, right), f"value {out!r} is not NumPy's {right!r}"

    weights = weights_like(right)
    seed = weights if isinstance(out, np.ndarray) else weights[()]
    gradients = pullback(seed)
    for a, b, g in zip(args, before, gradients):
        assert np.array_equal(a, b, equal_nan=True), "the input was changed"
        assert np.shape(g) == np.shape(a) and np.asarray(g).dtype == b.dtype, f"gradient {g!r} of {a!r}"

    def value(*args):
        return np.sum(np.real(weights * fun(*args)))

    directions = directions_like(args)
    np.testing.assert_allclose(product_sum(gradients, directions), derivative(value, args, directions, h), rtol, atol,
                               err_msg="gradient against differences")
    if batched and np.size(right) and not any(is_complex(x) for x in (*args, right)):
        check_batch(fun, args, pullback, right)
    if order > 1:
        check_second_order(fun, args, seed, directions, rtol, atol, h)


def check_batch(fun, args, pullback, right):
    """A batched sweep gives what single seeds give."""
    blocks = cgrad.jacobian(fun, tuple(range(len(args))))(*args)
    rows = []
    for i in range(np.size(right)):
        seed = np.zeros(np.size(right), np.asarray(right).dtype)
        seed[i] = 1
        rows.append(pullback(seed.reshape(np.shape(right)) if np.ndim(right) or isinstance(right, np.ndarray) else seed[0]))
    for k, block in enumerate(blocks):
        single = np.stack([np.asarray(r[k]) for r in rows]).reshape(np.shape(right) + np.shape(args[k]))
        np.testing.assert_allclose(block, single, 1e-12, 1e-14, err_msg="batched seeds against single ones")


def check_second_order(fun, args, seed, directions, rtol, atol, h):
    """The gradient of the change of `fun` along the directions, against differences of the gradient along others."""
    def change(*args):
        return product_sum(cgrad.vjp(fun, *args)[1](seed), directions)

    others = directions_like(args, 9)
    second = cgrad.grad(change, tuple(range(len(args))))(*args)
    np.testing.assert_allclose(product_sum(second, others), derivative(change, args, others, h), rtol, atol,
                               err_msg="second order against differences of the gradient")
