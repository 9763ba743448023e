"""Defects that a search for wrong gradients has found, one test each."""
import numpy as np
import pytest

import cgrad


def jacobian_by_differences(f, x, h=1e-6):
    steps = h * np.eye(x.size).reshape((-1, *x.shape))
    columns = [(f(x + step) - f(x - step)) / (2 * h) for step in steps]
    return np.moveaxis(columns, 0, -1).reshape(columns[0].shape + x.shape)


def check_jacobian(f, x):
    """The batched Jacobian, row by row pullbacks and differences agree."""
    expected = jacobian_by_differences(f, x)
    np.testing.assert_allclose(cgrad.jacobian(f)(x), expected, rtol=1e-6, atol=1e-6)
    out, pullback = cgrad.vjp(f, x)
    rows = [pullback(row.reshape(out.shape))[0] for row in np.eye(out.size)]
    np.testing.assert_allclose(np.reshape(rows, expected.shape), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("index", [[0, 2, 0], ([0, 1], [2, 2])])
def test_fancy_index_of_a_transposed_adjoint(index):
    # a batched sweep added into a copy that reshape had made of a non-contiguous adjoint, and dropped it
    x = np.arange(1.0, 10.0).reshape(3, 3)
    check_jacobian(lambda x: np.concatenate([x[index].ravel(), np.ravel(x.T**2)]), x)
    check_jacobian(lambda x: np.concatenate([x[x > 4.5], np.cumsum(x, axis=1).ravel()]), x)


@pytest.mark.parametrize("function", [np.minimum, np.fmin, np.maximum, np.hypot, np.arctan2, np.logaddexp, np.power])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float16, bool])
def test_partials_do_not_compute_in_the_dtype_of_a_small_constant(function, dtype):
    # -y of an unsigned integer wraps around; its logarithm is a float16
    x, c = np.array([0.7, 1.6, 0.4]), np.array([1, 2, 1]).astype(dtype)
    pairs = [(lambda x: function(x, c), lambda x: function(x, c.astype(float))),
             (lambda x: function(c, x), lambda x: function(c.astype(float), x))]
    for f, g in pairs:
        np.testing.assert_allclose(cgrad.jacobian(f)(x), cgrad.jacobian(g)(x), rtol=1e-14)
        second, wanted = (cgrad.jacobian(cgrad.grad(lambda x, h=h: np.sum(h(x))))(x) for h in (f, g))
        np.testing.assert_allclose(second, wanted, rtol=1e-14)


@pytest.mark.parametrize("function", [np.arctan2, np.logaddexp, np.power])
def test_a_float16_constant_does_not_lower_the_precision_of_a_number(function):
    # numbers are kept as Python floats, which give way to a float16
    c = np.float16(0.5)
    for order in (lambda x, c: function(x, c)), (lambda x, c: function(c, x)):
        assert cgrad.grad(order)(np.float64(0.7), c) == pytest.approx(cgrad.grad(order)(0.7, 0.5), rel=1e-14)


@pytest.mark.parametrize("dtype", [np.uint8, bool, np.float16])
def test_interp_between_small_integers(dtype):
    # differences of unsigned integers wrap around, those of bools do not exist
    points = np.array([1, 0, 1, 0]).astype(dtype)
    np.testing.assert_allclose(cgrad.jacobian(lambda x: np.interp(x, np.arange(4), points))(np.array([0.5, 1.5])),
                               [[-1, 0], [0, 1]])


def test_average_with_weights_of_low_precision():
    # the shares were computed in the dtype of the weights
    weights = np.array([0.5, 1, 2, 3.3], np.float16)
    slopes = cgrad.grad(lambda x: np.average(x, weights=weights))(np.ones(4))
    np.testing.assert_allclose(slopes, weights.astype(float) / weights.astype(float).sum(), rtol=1e-14)


@pytest.mark.parametrize("n", [3, 300, 3000, 100000])
def test_auxiliary_data_of_vjp_are_the_users_own(n):
    # they shared memory with what the pullback reads
    def f(x):
        y = np.exp(x)
        return np.sum(y * y), [y]

    _, pullback, (aux,) = cgrad.vjp(f, np.zeros(n), has_aux=True)
    aux[:] = 5
    np.testing.assert_array_equal(pullback(1.0)[0], 2)


@pytest.mark.parametrize("function", [np.squeeze, lambda x: x.squeeze()])
def test_squeeze_of_nothing_is_the_array_itself(function):
    # it was taken for a copy, and a write did not reach it
    def f(x):
        y = function(x)
        x[0] *= 3
        return np.sum(y)

    np.testing.assert_array_equal(cgrad.grad(f)(np.ones((2, 3))), [[3, 3, 3], [1, 1, 1]])


@pytest.mark.parametrize("write", [
    lambda x: np.multiply(x, 0.5, out=x, where=np.array([[True, False], [True, True], [False, True]])),
    lambda x: x.__iadd__(np.ones((3, 2)))])
@pytest.mark.parametrize("read", [lambda x: x.ravel("K"), lambda x: x.reshape(-1), lambda x: x.T.reshape(-1)])
def test_writing_in_place_keeps_the_order_in_memory(write, read):
    # the array took over the order of the result, so that reshape gave a view for a copy, or another order
    def f(x):
        write(x)
        y = read(x)
        x[0] = 7
        return y * y

    x = np.asfortranarray(np.arange(1.0, 7.0).reshape(3, 2))
    out, pullback = cgrad.vjp(f, x)
    np.testing.assert_array_equal(out, f(x.copy("K")))
    expected = np.zeros((3, 2))
    for at in np.ndindex(3, 2):
        moved = x.astype(complex)
        moved[at] += 1e-30j
        expected[at] = np.sum(f(moved)).imag * 1e30
    np.testing.assert_allclose(pullback(np.ones(6))[0], expected, rtol=1e-12)


@pytest.mark.parametrize("make", [lambda x: np.broadcast_to(x, (2, 3, 2)), lambda x: np.broadcast_to(x, (2, 3, 2)).T,
                                  lambda x: np.broadcast_to(x.T, (4, 2, 3))[:, ::-1]])
def test_order_of_memory_of_a_broadcast_array(make):
    # an axis that does not move in memory keeps its place
    x = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(cgrad.vjp(lambda x: make(x).ravel("K"), x)[0], make(x).ravel("K"))


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e-100])
def test_elementwise_grad_refuses_small_jacobians_that_are_not_diagonal(scale):
    # what was small passed for equal
    for f in (lambda x: scale * np.cumsum(x)), (lambda x: scale * x[::-1]):
        with pytest.raises(ValueError, match="not diagonal"):
            cgrad.elementwise_grad(f)(np.ones(4))


@pytest.mark.parametrize("operand", [np.matrix([[1.0, 2.0], [3.0, 4.0]]),
                                     np.ma.array(np.ones((2, 2)), mask=[[1, 0], [0, 0]])])
def test_matrices_and_masked_arrays_are_refused_as_operands(operand):
    # products became elementwise, and masks were not looked at
    for f in (lambda x: np.sum(x * operand)), (lambda x: np.sum(operand * x)), (lambda x: np.sum(x @ operand)):
        with pytest.raises(TypeError):
            cgrad.grad(f)(np.ones((2, 2)))


def test_memory_maps_are_ordinary_operands(tmp_path):
    # NumPy's functions, other than ufuncs, refused them
    c = np.memmap(tmp_path / "c", float, "w+", shape=(2, 2))
    c[:] = [[1, 2], [3, 4]]
    x = np.ones((2, 2))
    np.testing.assert_array_equal(cgrad.grad(lambda x: np.sum(np.dot(x, c)))(x), [[3, 7], [3, 7]])
    np.testing.assert_array_equal(cgrad.grad(lambda x: np.sum(np.where(c > 1, x * c, 0)))(x), [[0, 2], [3, 4]])


def test_captured_array_in_memory_that_is_not_numpys():
    # writing to the bytearray changed the gradient
    memory = bytearray(np.full(5000, 2.0).tobytes())
    c = np.frombuffer(memory)
    _, pullback = cgrad.vjp(lambda x: x * c, np.ones(5000))
    memory[:] = bytes(len(memory))
    np.testing.assert_array_equal(pullback(np.ones(5000))[0], 2)
    assert c.flags.writeable


def test_a_write_that_fails_leaves_every_view_with_its_value():
    # a view stayed without one
    def f(x):
        y = x * 1
        views = [y]
        for _ in range(5000):
            views.append(views[-1][:])
        try:
            views[-1][0] = x[1] * 3
        except RecursionError:
            pass
        values = [v.value for v in views[:2] + views[-2:]]
        assert all((v == values[0]).all() for v in values)
        return np.sum(y)

    cgrad.grad(f)(np.array([1.0, 2.0]))


@pytest.mark.parametrize("function", [np.angle, np.real_if_close])
@pytest.mark.parametrize("x", [np.float64(0.7), np.array(0.7), np.float32(0.7)])
def test_scalars_of_numpy_are_scalars_here(function, x):
    # one was an array for a scalar, the other a scalar for an array
    assert type(cgrad.vjp(function, x)[0]) is type(function(x))


@pytest.mark.parametrize("index", [[], [[]], [[], []]])
def test_empty_lists_as_indices(index):
    # nested ones were taken for floating arrays
    x = np.ones((3, 2))
    np.testing.assert_array_equal(cgrad.vjp(lambda x: x[index], x)[0], x[index])


@pytest.mark.parametrize("function", [np.maximum, np.fmin, np.add])
def test_overflow_of_a_python_float_in_single_precision_warns(function):
    # the fast path cast it without a word
    with pytest.warns(RuntimeWarning, match="overflow"):
        cgrad.vjp(lambda x: function(x, 1e300), np.ones(3, np.float32))
