"""cgrad._blas: the adjoints of matmul, against einsum on the broadcast operands and against numpy.matmul itself."""
import itertools
import sys
import threading
import tracemalloc

import numpy as np
import pytest

from cgrad._blas import matmul_adjoint_x, matmul_adjoint_y

BLAS_DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
OTHER_DTYPES = [np.float16, np.longdouble, np.clongdouble, np.int32]


def z_shape(x_shape, y_shape):
    return np.matmul(np.zeros(x_shape), np.zeros(y_shape)).shape


def random(rng, shape, dtype=np.float64):
    values = rng.integers(-8, 9, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.integers(-8, 9, shape)
    return np.asarray(values / (1 if np.dtype(dtype).kind in "iu" else 4), dtype)


def unbroadcast(array, shape):
    """Sum the batch axes of a (batch, row, column) array down to those of `shape`."""
    array = array.sum(axis=tuple(range(array.ndim - len(shape))))
    return array.sum(axis=tuple(i for i, n in enumerate(shape[:-2]) if n == 1), keepdims=True)


def reference(x, gz, y):
    """Both adjoints of one gz in the widest precision: operands as matrices, einsum, sum over broadcast axes."""
    wide = np.result_type(x, gz, y, np.longdouble)
    x2 = x.reshape(1, -1) if x.ndim == 1 else x
    y2 = y.reshape(-1, 1) if y.ndim == 1 else y
    gz2 = gz.reshape(z_shape(x2.shape, y2.shape)).astype(wide)
    gx = unbroadcast(np.einsum("...mn,...kn->...mk", gz2, y2.astype(wide)), x2.shape).reshape(x.shape)
    gy = unbroadcast(np.einsum("...mk,...mn->...kn", x2.astype(wide), gz2), y2.shape).reshape(y.shape)
    return gx, gy


def batched_reference(x, gz, y, extra):
    flat = gz.reshape((-1, *gz.shape[len(extra):]))
    pairs = [reference(x, one, y) for one in flat]
    return (np.array([gx for gx, _ in pairs]).reshape(*extra, *x.shape),
            np.array([gy for _, gy in pairs]).reshape(*extra, *y.shape))


def check(result, expected, dtype):
    assert type(result) is np.ndarray
    assert result.shape == expected.shape
    assert result.dtype == dtype
    tolerance = 0 if result.dtype.kind in "iu" else 60 * np.finfo(result.dtype).eps
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance * 50)


def check_both(x, gz, y, extra=(), **kwargs):
    expected_x, expected_y = batched_reference(x, gz, y, extra)
    check(matmul_adjoint_x(gz, y, x.shape, **kwargs), expected_x, np.result_type(gz, y))
    check(matmul_adjoint_y(x, gz, y.shape, **kwargs), expected_y, np.result_type(x, gz))


# The core sizes are below and above the size up to which small matrices have their own kernel.
CORES = [(2, 3, 4), (1, 1, 1), (9, 10, 11), (1, 5, 3), (3, 1, 2), (12, 7, 1)]
BATCHES = [((), ()), ((2,), ()), ((), (2,)), ((2,), (2,)), ((1,), (3,)), ((3,), (1,)), ((1,), (1,)),
           ((2, 3), ()), ((), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 3), (2, 3)), ((2, 1), (3,)),
           ((2, 1), (1, 3)), ((1, 3), (2, 1)), ((1, 3), (2, 3)), ((2, 3), (2, 1)), ((2, 3), (1, 1))]
PAIRS = ([((*bx, m, k), (*by, k, n)) for (m, k, n), (bx, by) in itertools.product(CORES, BATCHES)]
         + [((k,), (*b, k, n)) for _, k, n in CORES for b in [(), (2,), (2, 3), (1, 3)]]
         + [((*b, m, k), (k,)) for m, k, _ in CORES for b in [(), (2,), (2, 3), (1, 3)]]
         + [((k,), (k,)) for k in (1, 3, 20)])


def strided(array):
    every_other = np.zeros([2 * n for n in array.shape], array.dtype)[(slice(None, None, 2),) * array.ndim]
    every_other[...] = array
    return every_other


def unaligned(array):
    values = np.frombuffer(bytearray(1 + array.nbytes), array.dtype, array.size, 1).reshape(array.shape)
    values[...] = array
    return values


LAYOUTS = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "transposed": lambda a: np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2) if a.ndim > 1 else a,
    "reversed": lambda a: a[(slice(None, None, -1),) * a.ndim].copy()[(slice(None, None, -1),) * a.ndim],
    "strided": strided,
    "padded": lambda a: np.pad(a, [(0, 0)] * (a.ndim - 1) + [(1, 2)])[..., 1:-2],
    "batch last": lambda a: np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0),
    "unaligned": unaligned,
    "field": lambda a: np.rec.fromarrays([a, np.zeros(a.shape)], names="value,flag")["value"],
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
}


@pytest.mark.parametrize("x_shape, y_shape", PAIRS)
def test_shapes_and_extra_axes(x_shape, y_shape):
    rng = np.random.default_rng(0)
    x, y = random(rng, x_shape), random(rng, y_shape)
    for extra in [(), (1,), (3,), (2, 3)]:
        check_both(x, random(rng, extra + z_shape(x_shape, y_shape)), y, extra)


@pytest.mark.parametrize("dtype", BLAS_DTYPES + OTHER_DTYPES)
@pytest.mark.parametrize("x_shape, y_shape", [
    ((3,), (3,)), ((3,), (3, 4)), ((4, 3), (3,)), ((4, 3), (3, 2)), ((2, 4, 3), (3, 2)), ((2, 1, 4, 9), (3, 9, 10)),
    ((20, 30), (30, 10)), ((5, 20, 30), (5, 30, 10)), ((5, 9), (9,)), ((1, 9), (9, 12)), ((12, 1), (1, 9))])
def test_dtypes(x_shape, y_shape, dtype):
    rng = np.random.default_rng(1)
    x, y = random(rng, x_shape, dtype), random(rng, y_shape, dtype)
    for extra in [(), (3,)]:
        check_both(x, random(rng, extra + z_shape(x_shape, y_shape), dtype), y, extra)


@pytest.mark.parametrize("types", list(itertools.permutations([np.float32, np.float64, np.complex64])))
def test_mixed_dtypes(types):
    rng = np.random.default_rng(2)
    arrays = [random(rng, shape, dtype) for shape, dtype in zip([(2, 4, 3), (2, 4, 5), (3, 5)], types)]
    check_both(*arrays)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("x_shape, y_shape", [
    ((3, 4), (4, 2)), ((10, 12), (12, 9)), ((3, 10, 12), (12, 9)), ((2, 3, 10, 12), (3, 12, 9)), ((12,), (12, 9)),
    ((10, 12), (12,)), ((3, 1, 12), (12, 9)), ((3, 10, 12), (3, 12, 1)), ((20,), (20,)), ((2, 2, 3), (2, 3, 2)),
    ((10, 1), (1, 9))])
def test_layouts(x_shape, y_shape, layout):
    rng = np.random.default_rng(3)
    for extra, dtype in [((), np.float64), ((2,), np.float32), ((), np.complex128)]:
        arrays = (random(rng, x_shape, dtype), random(rng, extra + z_shape(x_shape, y_shape), dtype),
                  random(rng, y_shape, dtype))
        for changed in itertools.product([False, True], repeat=3):
            laid = [LAYOUTS[layout](array) if change and array.ndim else array
                    for array, change in zip(arrays, changed)]
            for array, same in zip(laid, arrays):
                assert np.array_equal(array, same)
                array.flags.writeable = False
            x, gz, y = laid
            expected = batched_reference(*arrays, extra)
            check(matmul_adjoint_x(gz, y, x_shape), expected[0], dtype)
            check(matmul_adjoint_y(x, gz, y_shape), expected[1], dtype)
            assert all(np.array_equal(array, same) for array, same in zip(laid, arrays))


@pytest.mark.parametrize("x_shape, y_shape", [
    ((10, 12), (12, 9)), ((3, 10, 12), (12, 9)), ((10, 12), (3, 12, 9)), ((2, 1, 3, 4), (3, 4, 2)), ((12,), (12, 9)),
    ((3, 10, 12), (12,)), ((5,), (5,))])
def test_adjoints_that_repeat_along_an_axis(x_shape, y_shape):
    """A gz with zero strides, as sum() makes it, along every choice of axes."""
    rng = np.random.default_rng(4)
    x, y = random(rng, x_shape), random(rng, y_shape)
    for extra in [(), (2,)]:
        shape = extra + z_shape(x_shape, y_shape)
        for ones in itertools.product([False, True], repeat=len(shape)):
            gz = np.broadcast_to(random(rng, tuple(1 if one else n for one, n in zip(ones, shape))), shape)
            check_both(x, gz, y, extra)
            into = np.ones(extra + x_shape)
            matmul_adjoint_x(gz, y, x_shape, into=into)
            check(into - 1, batched_reference(x, gz, y, extra)[0], np.float64)


def test_windows():
    """Overlapping rows, and complex numbers half of one apart, which no leading dimension describes."""
    rng = np.random.default_rng(12)
    windows = np.lib.stride_tricks.sliding_window_view
    for size in 4, 12:
        x, y = windows(random(rng, 2 * size), size), random(rng, (size, 9))
        check_both(x, random(rng, (size + 1, 9)), y)
        check_both(y.T, windows(random(rng, 2 * size + 8), 2 * size), windows(random(rng, 3 * size - 1), 2 * size))
        flat = random(rng, 4 * size).view(np.complex128)
        halves = np.lib.stride_tricks.as_strided(flat, (size, size), (8, 16))
        check_both(halves, halves, halves)


def test_operands_that_repeat_along_an_axis():
    rng = np.random.default_rng(5)
    for core in [(3, 4, 2), (10, 12, 9)]:
        m, k, n = core
        x = np.broadcast_to(random(rng, (m, k)), (3, m, k))
        y = np.broadcast_to(random(rng, (2, 1, k, 1)), (2, 3, k, n))
        for one in x, x[0]:
            check_both(one, random(rng, (2, 3, m, n)), y)
            check_both(one, np.broadcast_to(random(rng, (1, 1, m, n)), (2, 3, m, n)), y)


@pytest.mark.parametrize("x_shape, y_shape", [
    ((0, 3), (3, 2)), ((4, 0), (0, 2)), ((4, 3), (3, 0)), ((0,), (0,)), ((0,), (0, 2)), ((4, 0), (0,)),
    ((0, 4, 3), (3, 2)), ((4, 3), (0, 3, 2)), ((0, 4, 3), (1, 3, 2)), ((2, 4, 0), (0, 2)), ((0, 1, 4, 3), (5, 3, 2)),
    ((3,), (3, 0)), ((0, 3), (3,))])
@pytest.mark.parametrize("extra", [(), (3,), (0,)])
def test_zero_sizes(x_shape, y_shape, extra):
    x, y, gz = np.ones(x_shape), np.ones(y_shape), np.ones(extra + z_shape(x_shape, y_shape))
    for result, shape in ((matmul_adjoint_x(gz, y, x_shape), x_shape), (matmul_adjoint_y(x, gz, y_shape), y_shape)):
        assert result.shape == extra + shape
        assert not result.any()
    into = np.full(extra + x_shape, 7.0)
    assert matmul_adjoint_x(gz, y, x_shape, into=into) is into
    assert (into == 7).all()


@pytest.mark.parametrize("dtype", BLAS_DTYPES + [np.float16])
@pytest.mark.parametrize("x_shape, y_shape", [
    ((3,), (3,)), ((20,), (20,)), ((3,), (3, 4)), ((12, 9), (9,)), ((4, 3), (3, 2)), ((12, 10), (10, 9)),
    ((2, 12, 10), (10, 9)), ((2, 1, 4, 3), (3, 3, 5)), ((4, 3), (5, 3, 2)), ((12, 10), (5, 10, 9))])
def test_into_is_added_to(x_shape, y_shape, dtype):
    rng = np.random.default_rng(6)
    x, y, gz = random(rng, x_shape, dtype), random(rng, y_shape, dtype), random(rng, z_shape(x_shape, y_shape), dtype)
    expected_x, expected_y = reference(x, gz, y)
    for layout in "C", "F", "strided", "unaligned":
        into_x, into_y = (LAYOUTS[layout](np.ones(shape, dtype)) for shape in (x_shape, y_shape))
        assert matmul_adjoint_x(gz, y, x_shape, into=into_x) is into_x
        assert matmul_adjoint_y(x, gz, y_shape, into=into_y) is into_y
        check(into_x, expected_x + 1, dtype)
        check(into_y, expected_y + 1, dtype)


def test_into_of_a_wider_dtype():
    into = np.ones((2, 3), np.complex128)
    matmul_adjoint_x(np.ones((2, 4), np.float32), np.ones((3, 4), np.float32), (2, 3), into=into)
    assert (into == 5).all()


def test_extra_axes_of_the_other_operand():
    """Tangents of y: y may have extra axes of its own, which broadcast with those of gz."""
    rng = np.random.default_rng(7)
    for x_shape, y_shape in [((4, 3), (3, 2)), ((2, 12, 10), (10, 9)), ((10,), (10,)), ((3,), (2, 3, 4)),
                             ((4, 3), (3,))]:
        z = z_shape(x_shape, y_shape)
        for gz_extra, extra in [((), (5,)), ((5,), (5,)), ((5,), (1,)), ((2, 1), (5,)), ((5,), (2, 1))]:
            x, y, gz = random(rng, extra + x_shape), random(rng, extra + y_shape), random(rng, gz_extra + z)
            both = np.broadcast_shapes(gz_extra, extra)
            wide = [np.broadcast_to(a, both + shape) for a, shape in [(x, x_shape), (gz, z), (y, y_shape)]]
            got_x = matmul_adjoint_x(gz, y, x_shape, y_ndim=len(y_shape))
            got_y = matmul_adjoint_y(x, gz, y_shape, x_ndim=len(x_shape))
            for i in np.ndindex(both):
                expected = reference(*(a[i] for a in wide))
                check(got_x[i], expected[0], np.float64)
                check(got_y[i], expected[1], np.float64)
            half = matmul_adjoint_x(gz.astype(np.float16), y.astype(np.float16), x_shape, y_ndim=len(y_shape))
            check(half, got_x, np.float16)


def test_identity_that_defines_an_adjoint():
    """<gz, x @ y> = <gx, x> = <gy, y> with NumPy's own product, for sizes that BLAS splits into blocks."""
    rng = np.random.default_rng(8)
    for x_shape, y_shape in [((70, 200), (200, 90)), ((6, 70, 50), (50, 64)), ((300,), (300, 7)),
                             ((4, 1, 33), (33, 65)), ((40, 100, 20), (20, 30))]:
        x, y = rng.standard_normal(x_shape), rng.standard_normal(y_shape)
        z = x @ y
        gz = rng.standard_normal(z.shape)
        scale = np.abs(gz).sum()
        assert abs((gz * z).sum() - (matmul_adjoint_x(gz, y, x_shape) * x).sum()) < 1e-12 * scale
        assert abs((gz * z).sum() - (matmul_adjoint_y(x, gz, y_shape) * y).sum()) < 1e-12 * scale


def test_outer_products_larger_than_a_block():
    rng = np.random.default_rng(9)
    for dtype in BLAS_DTYPES:
        x, y, gz = random(rng, (150, 60), dtype), random(rng, (60,), dtype), random(rng, (150,), dtype)
        check_both(x, gz, y)
        check_both(x, gz[::-1], y[::-1])


def test_scalars_and_subclasses():
    assert matmul_adjoint_x(2.0, [1.0, 3.0], [2]).tolist() == [2.0, 6.0]
    assert matmul_adjoint_y(np.array([1.0, 3.0]), np.float64(2), (2,)).tolist() == [2.0, 6.0]
    matrix = np.array([[1.0, 2.0]]).view(np.recarray)
    assert type(matmul_adjoint_x(matrix, matrix, (1, 1))) is np.ndarray


def test_nothing_is_conjugated():
    y = np.array([[1j]])
    assert matmul_adjoint_x(np.array([[1j]]), y, (1, 1)) == -1
    assert matmul_adjoint_y(y, np.array([[1j]]), (1, 1)) == -1


@pytest.mark.parametrize("x_shape, y_shape, gz_shape, message", [
    ((2, 3), (4, 5), (2, 5), r"x of shape \(2, 3\) and y of shape \(4, 5\) have no product: the last axis of x must be "
     r"as long as the second-last axis of y"),
    ((2, 3), (4,), (2,), "only axis of y"),
    ((2, 3), (3, 5), (2, 4), r"product of shape \(2, 5\), but gz has shape \(2, 4\)"),
    ((2, 3), (3, 5), (3, 5), r"product of shape \(2, 5\), but gz has shape \(3, 5\)"),
    ((2, 3), (3, 5), (5,), r"product of shape \(2, 5\), but gz has shape \(5,\)"),
    ((2, 3), (3,), (3,), r"product of shape \(2,\), but gz has shape \(3,\)"),
    ((4, 2, 3), (5, 3, 2), (4, 2, 2), r"batch axes \(4,\) and \(5,\) do not broadcast"),
    ((4, 2, 3), (1, 3, 2), (1, 2, 2), r"product of shape \(4, 2, 2\), but gz has shape \(1, 2, 2\)"),
    ((1, 2, 3), (1, 3, 2), (4, 2, 2), r"product of shape \(1, 2, 2\), but gz has shape \(4, 2, 2\)"),
    ((), (3,), (3,), "no 0-d operands"),
    ((3,), (), (3,), "no 0-d operands"),
])
def test_bad_shapes(x_shape, y_shape, gz_shape, message):
    x, y, gz = np.ones(x_shape), np.ones(y_shape), np.ones(gz_shape)
    with pytest.raises(ValueError, match="^matmul_adjoint_x: .*" + message):
        matmul_adjoint_x(gz, y, x_shape)
    with pytest.raises(ValueError, match="^matmul_adjoint_y: .*" + message):
        matmul_adjoint_y(x, gz, y_shape)


def test_bad_arguments():
    gz, y = np.ones((2, 4)), np.ones((3, 4))
    with pytest.raises(ValueError, match=r"into has shape \(3, 2\), but the adjoint has shape \(2, 3\)"):
        matmul_adjoint_x(gz, y, (2, 3), into=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="into is read-only"):
        matmul_adjoint_x(gz, y, (2, 3), into=np.broadcast_to(0.0, (2, 3)))
    with pytest.raises(TypeError, match="into has dtype float64, which cannot take an adjoint of dtype complex128"):
        matmul_adjoint_x(gz * 1j, y * 1j, (2, 3), into=np.zeros((2, 3)))
    with pytest.raises(TypeError, match="y has dtype object"):
        matmul_adjoint_x(gz, y.astype(object), (2, 3))
    with pytest.raises(TypeError):
        matmul_adjoint_x(gz, y, (2, 3), into=[[0.0] * 3] * 2)
    with pytest.raises(ValueError, match="y_ndim is 3, but y has 2 axes"):
        matmul_adjoint_x(gz, y, (2, 3), y_ndim=3)
    with pytest.raises(ValueError, match=r"x of shape \(2, -3\)"):
        matmul_adjoint_x(gz, y, (2, -3))


def peak(function, *args, **kwargs):
    """The most memory, in bytes, that a call had allocated at once, its result included."""
    function(*args, **kwargs)
    tracemalloc.start()
    try:
        result = function(*args, **kwargs)
        return tracemalloc.get_traced_memory()[1], result.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("transposed", [False, True])
def test_no_temporaries(transposed):
    """Shared and broadcast operands, and transposed views, are used where they lie: only the result is allocated."""
    def matrices(*shape):
        return np.ones(shape[:-2] + shape[:-3:-1]).swapaxes(-1, -2) if transposed else np.ones(shape)

    small = 4096
    x, y, gz = matrices(64, 32, 40), matrices(40, 24), np.ones((64, 32, 24))
    for memory, result in [
            peak(matmul_adjoint_x, gz, y, x.shape), peak(matmul_adjoint_y, x, gz, y.shape),
            peak(matmul_adjoint_y, x, matrices(64, 32, 24), y.shape),
            peak(matmul_adjoint_x, matrices(5, 7, 32, 24), matrices(5, 1, 40, 24), (7, 32, 40)),
            peak(matmul_adjoint_y, matrices(7, 32, 40), matrices(5, 7, 32, 24), (5, 1, 40, 24)),
            peak(matmul_adjoint_x, np.broadcast_to(1.0, gz.shape), y, x.shape)]:
        assert memory <= result + small
    into = np.zeros(y.shape)
    memory, _ = peak(matmul_adjoint_y, x, gz, y.shape, into=into)
    assert memory <= small


def test_threads():
    """The GIL is released for large work, and concurrent calls do not disturb one another."""
    rng = np.random.default_rng(10)
    gz, y = random(rng, (50, 40, 30)), random(rng, (50, 20, 30))
    expected = matmul_adjoint_x(gz, y, (50, 40, 20))
    failures = []

    def work():
        for _ in range(20):
            if not np.array_equal(matmul_adjoint_x(gz, y, (50, 40, 20)), expected):
                failures.append("differs")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs memory that is reserved but not there")
def test_leading_dimension_beyond_int32():
    """Rows further apart than BLAS can count are copied; the memory between them is never touched."""
    import mmap
    step = 2**31 + 64
    try:
        memory = mmap.mmap(-1, 4 * (step + 16), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)     # MAP_NORESERVE
    except OSError:
        pytest.skip("not enough address space")
    flat = np.frombuffer(memory, np.float32)
    x = np.lib.stride_tricks.as_strided(flat, (2, 10), (4 * step, 4))
    rng = np.random.default_rng(11)
    x[...] = random(rng, (2, 10), np.float32)
    check_both(x, random(rng, (2, 9), np.float32), random(rng, (10, 9), np.float32))
