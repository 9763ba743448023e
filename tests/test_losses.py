"""cgrad.losses against Keras 3.15.1, the user story of section d, and bad input.

The golden records hold values for every reduction and the gradient of the sum, in
float32 and float64.  The only entries not compared are some gradients of nan and
inf; `compare_gradient` says which and why.
"""

import doctest
import functools
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

import cgrad
from cgrad import losses
from cgrad.losses import crossentropy, regression

DATA = Path(__file__).parent / "data"
GOLDEN = json.loads((DATA / "losses_golden.json").read_text(encoding="utf-8"))
SEEDS = json.loads((DATA / "seeds_d.json").read_text(encoding="utf-8"))["records"]
REDUCTIONS = ("none", "sum", "sum_over_batch_size", "mean", "mean_with_sample_weight")

# 0/0, 0 * inf and overflow are part of the records; NumPy warns about them, as it should
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


class Record:
    """One loss, its arguments, and Keras's results in one dtype."""

    def __init__(self, raw, dtype):
        self.name = raw["name"] + "/" + dtype
        self.dtype, self.shapes, self.results = dtype, raw["shapes"], raw[dtype]
        self.loss = getattr(losses, raw["name"].split("/")[0])
        inputs = raw["inputs"]
        self.y_true = self.array(inputs["y_true"], "y_true", raw.get("y_true_dtype", dtype))
        self.y_pred = self.array(inputs["y_pred"], "y_pred", dtype)
        self.kwargs = dict(raw["args"])
        if "sample_weight" in inputs:
            self.kwargs["sample_weight"] = np.array(inputs["sample_weight"], dtype)
        if "mask" in inputs:
            self.kwargs["mask"] = np.array(inputs["mask"], bool)
        self.grad = self.array(self.results["grad"], "y_pred", dtype)
        self.rtol, self.atol = GOLDEN["tolerance"][dtype]

    def array(self, data, name, dtype):
        return np.array(data, dtype).reshape(self.shapes[name])

    def __call__(self, y_pred, reduction):
        return self.loss(self.y_true, y_pred, **self.kwargs, reduction=reduction)

    def value(self, reduction):
        values = self.results["value"]
        if reduction == "none":
            return self.array(values["none"], "none", self.dtype)
        return np.array(values.get(reduction, values["mean"]), self.dtype)

    def check(self, got, want):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, self.rtol, self.atol, equal_nan=True)


DTYPES = {"float32", "float64"}
RECORDS = [Record(raw, dtype) for raw in GOLDEN["records"] for dtype in raw.keys() & DTYPES]
RECORDS.sort(key=lambda r: r.name)  # the same order in every process
by_name = pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.name)


def compare_gradient(record, got):
    """Compare the entries that have one right answer which Keras gives too."""
    want = record.grad
    keep = np.ones(want.shape, bool)
    if "grad_nonfinite_pattern" in record.results:
        # which entries become nan depends on the order of differentiation (0 * inf)
        keep &= np.isfinite(want) & np.isfinite(got)
    if "nonfinite_pred_" in record.name:
        # Losses of nan or inf with a weight of 0, or masked: Keras's gradient is 0 * nan =
        # nan, cgrad's is 0, because a zero adjoint stays zero whatever it is multiplied by.
        out = (record.kwargs.get("sample_weight", 1) * record.kwargs.get("mask", True)) == 0
        assert out.shape == got.shape[:1] and out.any()
        assert not np.any(got[out])
        keep &= ~out[:, None]
    record.check(got[keep], want[keep])


def test_all_records_are_here():
    assert len(RECORDS) == 666
    assert len({r.name for r in RECORDS}) == 666


@by_name
def test_value(record):
    for reduction in REDUCTIONS:
        got = np.asarray(record(record.y_pred, reduction))
        record.check(got, record.value(reduction))


@by_name
def test_gradient(record):
    if record.y_pred.size == 0:
        pytest.skip("an empty batch has no gradient entries")
    got = cgrad.grad(lambda p: record(p, "sum"))(record.y_pred)
    compare_gradient(record, got)


@by_name
def test_default_is_the_function_of_keras(record):
    got = record.loss(record.y_true, record.y_pred, **record.kwargs)
    record.check(np.asarray(got), record.value("none"))


def test_positional_arguments_are_those_of_keras():
    t, p = np.eye(3), np.full((3, 3), 0.2)
    for loss in (losses.categorical_crossentropy, losses.binary_crossentropy):
        want = loss(t, p, from_logits=True, label_smoothing=0.1, axis=0)
        np.testing.assert_array_equal(loss(t, p, True, 0.1, 0), want)
    loss, t = losses.sparse_categorical_crossentropy, np.arange(3)
    want = loss(t, p, from_logits=True, ignore_class=1, axis=0)
    np.testing.assert_array_equal(loss(t, p, True, 1, 0), want)


# -------------------------------------------------------------- the user story, section d
def unpack(d):
    return np.array(d["data"], d["dtype"]).reshape(d["shape"])


def seeds(prefix):
    chosen = [s for s in SEEDS if s["name"].startswith(prefix)]
    return pytest.mark.parametrize("seed", chosen, ids=lambda s: s["name"])


def check_seed(seed, got, want, what=""):
    want = unpack(want)
    got = np.asarray(got)
    assert got.dtype == want.dtype and got.shape == want.shape, what
    np.testing.assert_allclose(got, want, *seed["tol"], err_msg=what)


@seeds("d/cce/")
def test_seed_crossentropy(seed):
    t, p = unpack(seed["inputs"]["y_true"]), unpack(seed["inputs"]["y_pred"])
    for reduction, want in seed["value"].items():
        got = losses.categorical_crossentropy(t, p, reduction=reduction)
        check_seed(seed, got, want, reduction)
    for reduction, want in seed["grad"].items():
        by = {"none": "sum"}.get(reduction, reduction)  # a gradient sums over the outputs
        got = cgrad.grad(lambda p: losses.categorical_crossentropy(t, p, reduction=by))(p)
        check_seed(seed, got, want, reduction)
    per_sample = losses.categorical_crossentropy(t, p)
    check_seed(seed, per_sample, seed["function_api"])
    if "printed_in_seed" in seed:
        np.testing.assert_allclose(per_sample, seed["printed_in_seed"]["per_sample"], rtol=1e-6)


@seeds("d/cce_as_in_seed/")
def test_seed_class_and_function(seed):
    t, p = unpack(seed["inputs"]["y_true"]), unpack(seed["inputs"]["y_pred"])
    by_class = losses.categorical_crossentropy(t, p.astype("f4"), reduction="sum_over_batch_size")
    check_seed(seed, by_class, seed["value"]["class_api"])
    check_seed(seed, losses.categorical_crossentropy(t, p), seed["value"]["function_api"])


@seeds("d/raw_formula/")
def test_seed_raw_formula(seed):
    t, p = unpack(seed["inputs"]["y_true"]), unpack(seed["inputs"]["y_pred"])
    got = -np.sum(t * np.log(p), axis=1)
    check_seed(seed, got, seed["value"]["per_sample"])
    check_seed(seed, np.mean(got), seed["value"]["mean_of_samples"])
    grad = cgrad.grad(lambda p: -np.sum(t * np.log(p)))(p)
    check_seed(seed, grad, seed["grad"]["sum"])


@seeds("d/scale_row/")
def test_seed_scaled_row(seed):
    row = unpack(seed["inputs"]["output"])
    scale = lambda x: x / np.sum(x, axis=-1, keepdims=True)  # noqa: E731
    check_seed(seed, scale(row), seed["value"])
    check_seed(seed, cgrad.jacobian(scale)(row), seed["jacobian"])


@seeds("d/clip_by_value/")
def test_seed_clip(seed):
    x = unpack(seed["inputs"]["x"])
    low, high = x.dtype.type(1e-7), x.dtype.type(1 - 1e-7)
    check_seed(seed, np.clip(x, low, high), seed["value"])
    check_seed(seed, cgrad.grad(lambda x: np.sum(np.clip(x, low, high)))(x), seed["grad"]["x"])


# --------------------------------------------------------------------- single properties
def test_wrong_and_certain_binary():
    assert losses.binary_crossentropy(np.array([1.0]), np.array([0.0])) == 16.11809565095832
    grad = cgrad.grad(lambda z: losses.binary_crossentropy(np.array([0.0]), z, from_logits=True))
    np.testing.assert_array_equal(grad(np.array([100.0])), [1.0])


@pytest.mark.parametrize("z", [-800.0, -40.0, -1e-300, 0.0, 3.0, 40.0, 800.0])
@pytest.mark.parametrize("t", [0.0, 1.0, 0.3])
def test_binary_gradient_from_logits_is_sigmoid_minus_label(z, t):
    got = cgrad.grad(lambda z: losses.binary_crossentropy(np.array([t]), z, from_logits=True))
    want = -expit(-z) if t == 1 else expit(z) - t  # expit(z) - 1 would cancel
    np.testing.assert_allclose(got(np.array([z])), [want], rtol=1e-14)


def test_softmax_output_is_clipped_wherever_it_comes_from():
    z = np.array([[-20.0, 0.0, 20.0]])
    e = np.exp(z - z.max())
    got = losses.categorical_crossentropy([[1, 0, 0]], e / e.sum())
    np.testing.assert_allclose(got, [-np.log(1e-7)], rtol=1e-15)


@pytest.mark.parametrize("axis", [0, 1, -1, -2, -3])
@pytest.mark.parametrize("from_logits", [False, True])
def test_any_class_axis(axis, from_logits):
    rng = np.random.default_rng(0)
    pred = rng.uniform(0.1, 1, (3, 3, 3))
    true = rng.dirichlet(np.ones(3), (3, 3))
    ids = rng.integers(0, 3, (3, 3))
    turned = np.moveaxis(pred, axis, -1)
    for loss, labels, moved in (
        (losses.categorical_crossentropy, true, np.moveaxis(true, -1, axis)),
        (losses.sparse_categorical_crossentropy, ids, ids),
    ):
        last = functools.partial(loss, labels, from_logits=from_logits)
        other = functools.partial(loss, moved, from_logits=from_logits, axis=axis)
        np.testing.assert_allclose(other(pred), last(turned), rtol=1e-14)
        by_last = cgrad.grad(functools.partial(last, reduction="sum"))(turned)
        by_axis = cgrad.grad(functools.partial(other, reduction="sum"))(pred)
        np.testing.assert_allclose(np.moveaxis(by_axis, axis, -1), by_last, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("from_logits", [False, True])
def test_sparse_agrees_with_one_hot_on_distributions(from_logits):
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(4), 6)
    ids = rng.integers(0, 4, 6)
    dense = losses.categorical_crossentropy(np.eye(4)[ids], p, from_logits)
    sparse = losses.sparse_categorical_crossentropy(ids, p, from_logits)
    np.testing.assert_allclose(sparse, dense, rtol=1e-12)


def test_labels_and_weights_have_gradients_too():
    """Where Keras, too, lets the gradient through: soft labels and sample weights."""
    rng = np.random.default_rng(2)
    t, z, w = rng.dirichlet(np.ones(4), 3), rng.normal(size=(3, 4)), rng.uniform(1, 2, 3)

    def f(t, w):
        return losses.categorical_crossentropy(t, z, True, reduction="sum", sample_weight=w)

    gt, gw = cgrad.grad(f, (0, 1))(t, w)
    log_p = z - np.log(np.sum(np.exp(z), axis=-1, keepdims=True))
    np.testing.assert_allclose(gt, -log_p * w[:, None], rtol=1e-12)
    np.testing.assert_allclose(gw, losses.categorical_crossentropy(t, z, True), rtol=1e-12)


@pytest.mark.parametrize("name", losses.__all__)
@pytest.mark.parametrize("from_logits", [False, True])
def test_second_order(name, from_logits):
    """First and second derivatives agree with central differences."""
    rng = np.random.default_rng(3)
    if name.startswith("mean"):
        options, labels = {}, rng.normal(size=(2, 3))
    else:
        options, labels = {"from_logits": from_logits}, rng.dirichlet(np.ones(3), 2)
        if name.startswith("sparse"):
            labels = np.array([2, 0])
    pred = rng.dirichlet(np.ones(3), 2)
    f = lambda p: getattr(losses, name)(labels, p, **options, reduction="sum")  # noqa: E731
    direction = rng.normal(size=pred.shape)
    grad = cgrad.grad(f)
    h = 1e-5
    slope = (f(pred + h * direction) - f(pred - h * direction)) / (2 * h)
    np.testing.assert_allclose(np.sum(grad(pred) * direction), slope, rtol=1e-6)
    curve = (grad(pred + h * direction) - grad(pred - h * direction)) / (2 * h)
    second = cgrad.grad(lambda p: np.sum(grad(p) * direction))(pred)
    np.testing.assert_allclose(second, curve, rtol=1e-5, atol=1e-7)


def test_results_are_numpy_values_of_the_dtype_of_y_pred():
    for dtype in (np.float16, np.float32, np.float64, np.longdouble):
        p = np.array([[0.25, 0.75]], dtype)
        for loss, t in (
            (losses.categorical_crossentropy, [[0, 1]]),
            (losses.sparse_categorical_crossentropy, [1]),
            (losses.mean_squared_error, [[0, 1]]),
            (losses.mean_absolute_error, [[0.0, 1.0]]),
        ):
            assert loss(t, p).dtype == dtype
            assert isinstance(loss(t[0], p[0]), dtype)
            scalar = loss(t[0], p[0], reduction="mean", sample_weight=np.float64(2))
            assert isinstance(scalar, dtype)
        for from_logits in (False, True):
            one = losses.sparse_categorical_crossentropy(0, p[0], from_logits, ignore_class=0)
            assert isinstance(one, dtype) and one == 0
        if dtype != np.float16:
            got = losses.binary_crossentropy([[0, 1]], p, label_smoothing=np.float64(0.1))
            assert got.dtype == dtype


def test_inputs_are_not_written_to():
    t, p, w, m = np.eye(3), np.full((3, 3), 0.2), np.ones(3), np.array([True, False, True])
    for x in (t, p, w, m):
        x.flags.writeable = False
    for reduction in REDUCTIONS:
        losses.categorical_crossentropy(t, p, reduction=reduction, sample_weight=w, mask=m)
        losses.sparse_categorical_crossentropy(
            np.arange(3), p, ignore_class=1, reduction=reduction, sample_weight=w, mask=m
        )


def test_ignored_labels_and_masks_of_lower_rank():
    p = np.full((2, 2, 3), 0.2)
    t = np.array([[0, 255], [1, 2]], np.uint8)
    got = losses.sparse_categorical_crossentropy(
        t, p, ignore_class=255, mask=[True, False], reduction="mean"
    )
    np.testing.assert_allclose(got, np.log(3), rtol=1e-15)


def test_epsilon_can_be_chosen():
    got = losses.binary_crossentropy([1.0], [0.0], epsilon=0.25)
    np.testing.assert_allclose(got, -np.log(0.25), rtol=1e-15)
    half = np.array([0.0], np.float16)
    assert losses.binary_crossentropy([1.0], half, epsilon=1e-3) > 6


def test_targets_of_one_rank_less():
    """(n,) beside (n, 1) is n pairs, and never an (n, n) table."""
    column, flat = np.array([[0.5], [0.25]]), np.array([1.0, 0.0])
    for loss in (losses.mean_squared_error, losses.mean_absolute_error, losses.binary_crossentropy):
        np.testing.assert_array_equal(loss(flat, column), loss(flat[:, None], column))
        np.testing.assert_array_equal(loss(column, flat), loss(column, flat[:, None]))


# ----------------------------------------------------------------------------- bad input
P34, T34 = np.full((3, 4), 0.25), np.eye(4)[:3]
IDS = np.arange(3)
BAD = {
    "last axes differ": ("cce", (T34, P34[:, :3]), {}, ValueError, "y_true has shape"),
    "batches differ": ("bce", (T34, P34[:2]), {}, ValueError, "must be equal"),
    "no broadcasting": ("cce", (T34[:1], P34), {}, ValueError, "must be equal"),
    "ids for one-hot": ("cce", (IDS, P34), {}, ValueError, "use sparse_categorical"),
    "one-hot for ids": ("scce", (T34, P34), {}, ValueError, "use categorical_crossentropy"),
    "ids of rank 2": ("scce", (np.zeros((3, 2), int), P34), {}, ValueError, r"expected \(3,\)"),
    "mse shapes": ("mse", (T34, P34[:, :3]), {}, ValueError, "do not broadcast"),
    "scalar": ("mae", (0.5, 0.5), {}, ValueError, "at least one axis"),
    "no classes": ("cce", (T34[:, :0], P34[:, :0]), {}, ValueError, "no classes"),
    "integer y_pred": ("cce", (T34, T34.astype(int)), {}, TypeError, "swapped"),
    "complex y_pred": ("bce", (T34, P34 + 0j), {}, TypeError, "complex128"),
    "complex error": ("mse", (T34, P34 + 0j), {}, TypeError, "complex128"),
    "string labels": ("bce", (np.array(["a"]), P34[0, :1]), {}, TypeError, "y_true must hold"),
    "no labels": ("mse", (None, P34), {}, TypeError, "y_true must hold real numbers"),
    "string ids": ("scce", (np.array(["a"]), P34[:1]), {}, TypeError, "class ids"),
    "negative id": ("scce", ([0, -1, 2], P34), {}, ValueError, r"holds -1 at index \(1,\)"),
    "id 4 of 4": ("scce", ([0, 1, 4], P34), {}, ValueError, "from 0 to 3"),
    "id above the ignored one": ("scce", ([0, 255, 2], P34), {"ignore_class": -1}, ValueError, "255"),
    "fractional id": ("scce", ([0, 1.75, 2], P34), {}, ValueError, "holds 1.75"),
    "nan id": ("scce", ([0, np.nan, 2], P34), {}, ValueError, "holds nan"),
    "one id out of range": ("scce", (4, P34[0]), {}, ValueError, "holds 4, expected"),
    "ignore_class 1.5": ("scce", (IDS, P34), {"ignore_class": 1.5}, TypeError, "ignore_class"),
    "ignore_class x": ("scce", (IDS, P34), {"ignore_class": "x"}, TypeError, "ignore_class"),
    "smoothing 2": ("cce", (T34, P34), {"label_smoothing": 2.0}, ValueError, r"in \[0, 1\]"),
    "smoothing -0.5": ("bce", (T34, P34), {"label_smoothing": -0.5}, ValueError, "got -0.5"),
    "smoothing nan": ("bce", (T34, P34), {"label_smoothing": np.nan}, ValueError, "got nan"),
    "smoothing x": ("cce", (T34, P34), {"label_smoothing": "x"}, TypeError, "real number"),
    "from_logits x": ("cce", (T34, P34), {"from_logits": "x"}, TypeError, "True or False"),
    "from_logits None": ("bce", (T34, P34), {"from_logits": None}, TypeError, "got None"),
    "from_logits 1": ("scce", (IDS, P34), {"from_logits": 1}, TypeError, "got 1"),
    "axis 5": ("cce", (T34, P34), {"axis": 5}, ValueError, r"in \[-2, 1\]"),
    "axis None": ("bce", (T34, P34), {"axis": None}, TypeError, "one integer"),
    "axis -3": ("scce", (IDS, P34), {"axis": -3}, ValueError, "out of range"),
    "epsilon 0": ("cce", (T34, P34), {"epsilon": 0}, ValueError, r"in \(0, 0.5\)"),
    "epsilon 0.5": ("bce", (T34, P34), {"epsilon": 0.5}, ValueError, r"in \(0, 0.5\)"),
    "epsilon x": ("scce", (IDS, P34), {"epsilon": "x"}, TypeError, "real number"),
    "epsilon lost in float32": ("bce", (T34, P34.astype("f4")), {"epsilon": 1e-9}, ValueError, "rounds to 1"),
    "epsilon lost in float16": ("bce", (T34, P34.astype("f2")), {}, ValueError, "too small for float16"),
    "reduction auto": ("mse", (T34, P34), {"reduction": "auto"}, ValueError, "'sum_over_batch_size'"),
    "two weights of three": ("mae", (T34, P34), {"sample_weight": [1, 2]}, ValueError, "sample_weight of"),
    "weight per entry": ("cce", (T34, P34), {"sample_weight": P34}, ValueError, r"of shape \(3,\)"),
    "weights for one loss": ("mse", (IDS, IDS), {"sample_weight": IDS}, ValueError, r"\(n, 1\)"),
    "mask too short": ("mse", (T34, P34), {"mask": [True, False]}, ValueError, "mask of shape"),
    "weight against mask": (
        "mse", (T34, P34), {"mask": [True] * 3, "sample_weight": [1, 2]}, ValueError, "sample_weight of",
    ),
    "string weight": ("mse", (T34, P34), {"sample_weight": "x"}, TypeError, "sample_weight must hold"),
}  # fmt: skip
SHORT = {
    "cce": "categorical_crossentropy",
    "scce": "sparse_categorical_crossentropy",
    "bce": "binary_crossentropy",
    "mse": "mean_squared_error",
    "mae": "mean_absolute_error",
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    short, args, kwargs, error, message = BAD[case]
    with pytest.raises(error, match=message) as caught:
        getattr(losses, SHORT[short])(*args, **kwargs)
    assert str(caught.value).startswith(SHORT[short] + ": ")


def test_options_are_keyword_only():
    with pytest.raises(TypeError):
        losses.mean_squared_error(T34, P34, "sum")
    with pytest.raises(TypeError):
        losses.binary_crossentropy(T34, P34, False, 0.0, -1, 1e-7)


# -------------------------------------------------------------------------------- examples
@pytest.mark.parametrize("module", [losses, crossentropy, regression], ids=lambda m: m.__name__)
def test_examples(module):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert doctest.testmod(module).failed == 0
