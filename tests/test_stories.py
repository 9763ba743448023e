"""The user stories against TensorFlow's numbers, in float32 and float64.

a  the gradient graph of sin(a) @ b          e  cross-correlation that assigns its elements
b  the Jacobian of [x**2 + 2*y, y**2]        f  vectors by vectors, unconnected inputs
g  the Jacobians of W @ a + b

Section d, cross-entropy, is in test_losses.py. A record holds inputs, value, gradients, Jacobians and the tolerance.
"""
import json
from pathlib import Path

import numpy as np
import pytest

import cgrad
import cgrad.numpy as cnp

DATA = Path(__file__).parent / "data"


def decoded(data):
    """Arrays from {"dtype", "shape", "data"}, in whatever containers; None stays None."""
    if isinstance(data, list):
        return [decoded(d) for d in data]
    if isinstance(data, dict):
        if "data" in data:
            return np.array(data["data"], data["dtype"]).reshape(data["shape"])
        return {name: decoded(d) for name, d in data.items()}
    return data


class Record:
    def __init__(self, raw):
        self.name, self.dtype, self.args = raw["name"], raw["dtype"], raw["args"]
        self.rtol, self.atol = raw["tol"]
        self.inputs, self.value = decoded(raw["inputs"]), decoded(raw["value"])
        self.grad, self.jacobian = decoded(raw["grad"]), decoded(raw.get("jacobian"))
        self.raw = raw

    def check(self, got, want):
        """`got` is what `want` is: a plain array with its shape, dtype and values, None, or a list of such."""
        if isinstance(want, list):
            assert isinstance(got, (list, tuple)) and len(got) == len(want)
            for g, w in zip(got, want):
                self.check(g, w)
        elif want is None:
            assert got is None
        else:
            assert isinstance(got, (np.ndarray, np.generic)), f"{type(got).__name__}, not plain"
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_allclose(got, want, self.rtol, self.atol)

    def variables(self):
        return [cgrad.Variable(value, name=name) for name, value in self.inputs.items()]


def matching(section, *words):
    """The records whose names begin with one of the words, after the letter of the section."""
    raw = json.loads((DATA / f"seeds_{section}.json").read_text(encoding="utf-8"))["records"]
    found = [Record(r) for r in raw if r["name"].startswith(tuple(f"{section}/{w}" for w in words))]
    assert found
    return found


def records(section, *words):
    found = matching(section, *words)
    return pytest.mark.parametrize("record", found, ids=[r.name for r in found])


# -- a: the gradient graph of sin(a) @ b

def sin_a_b(a, b):
    return np.sin(a) @ b


@records("a", "f_k")
def test_gradients_inside_a_tape(record):
    a, b = record.variables()
    with cgrad.GradientTape() as tape:
        f = sin_a_b(a, b)
        by_a, by_b = cgrad.gradients(f, [a, b])
    record.check(f.value, record.value)
    record.check([by_a.value, by_b.value], [record.grad["a"], record.grad["b"]])
    record.check(tape.gradient(f, [a, b]), [record.grad["a"], record.grad["b"]])


@records("a", "f_k")
def test_gradients_inside_a_function(record):
    def f_and_gradients(a, b):
        f = sin_a_b(a, b)
        return f, cgrad.gradients(f, [a, b])

    (f, (by_a, by_b)), _ = cgrad.vjp(f_and_gradients, record.inputs["a"], record.inputs["b"])
    record.check([f, by_a, by_b], [record.value, record.grad["a"], record.grad["b"]])


@records("a", "f_k/variables", "f_k/tensors", "f_k/v1_session")
def test_every_operation_has_name_shape_and_dtype(record):
    a, b = record.variables()
    with cgrad.GradientTape() as tape:
        cgrad.gradients(sin_a_b(a, b), [a, b])
    operations = {o.name: (list(o.shape), str(o.dtype)) for o in tape.operations()}
    assert len(operations) == len(tape.operations()), "names are unique"

    # TensorFlow's list, without what only its graphs have: reading variables, filling the seed, printing, returning
    renamed = {"Sin": "sin", "MatMul": "matmul", "Cos": "cos", "mul": "multiply"}
    expected = {}
    for name, shape, dtype in record.raw["tensors"]:
        *scope, op = name.removesuffix(":0").split("/")
        op, *number = op.split("_")
        if op in renamed:
            scope = [s.replace("Sin", "sin").replace("MatMul", "matmul") for s in scope]
            expected["/".join([*scope, "_".join([renamed[op], *number])])] = shape, dtype
    assert len(expected) == 6
    for name in expected:
        assert operations[name] == expected[name], name
    assert operations["a"] == ([2, 2], record.dtype) and operations["b"] == ([2, 1], record.dtype)

    gradient_of = {o.name: o.gradient_of for o in tape.operations()}
    assert gradient_of["sin"] is None and gradient_of["gradients/sin_grad/cos"] == "sin"


def test_gradients_needs_something_that_records():
    with pytest.raises(cgrad.TapeError, match="GradientTape.gradient"):
        cgrad.gradients(np.ones(2), [np.ones(2)])


# -- b: the Jacobian of [x**2 + 2*y, y**2] in one call

def two_outputs(x, y):
    return [x**2 + 2 * y, y**2]


@records("b", "jacobian/list")
def test_jacobian_by_each_scalar(record):
    x, y = record.variables()
    with cgrad.GradientTape() as tape:
        z = two_outputs(x, y)
    record.check(tape.jacobian(z, [x, y]), record.jacobian)


@records("b", "jacobian/stacked_2x2")
def test_jacobian_as_one_matrix(record):
    x, y = record.variables()
    transposed = decoded(record.raw["jacobian_transposed"])
    with cgrad.GradientTape(persistent=True) as tape:
        z = two_outputs(x, y)
    record.check(np.stack(tape.jacobian(z, [x, y])), record.jacobian)
    record.check(tape.jacobian(z, [x, y], as_matrix=True), transposed)
    record.check(cgrad.jacobian(two_outputs, (0, 1), as_matrix=True)(*record.inputs.values()), transposed)


@records("b", "jacobian/vector_input")
def test_jacobian_by_one_vector(record):
    def z(v):
        return np.stack(two_outputs(v[0], v[1]))

    rows_at_once = None if record.args["experimental_use_pfor"] else 1
    v, = record.variables()
    with cgrad.GradientTape() as tape:
        outputs = z(v)
    record.check(outputs.value, record.value)
    record.check(tape.jacobian(outputs, v, chunk=rows_at_once), record.jacobian)
    record.check(cgrad.jacobian(z, chunk=rows_at_once)(record.inputs["v"]), record.jacobian)


@records("b", "gradient/vector_input")
def test_gradient_of_two_outputs_is_that_of_their_sum(record):
    v, = record.variables()
    with cgrad.GradientTape() as tape:
        z = np.stack(two_outputs(v[0], v[1]))
    record.check(tape.gradient(z, v), record.grad["v"])


# -- e: cross-correlation, element by element

def windows(X, k):
    """(i, j, what is multiplied by k) for each element of the result."""
    h, w = k.shape
    for i in range(X.shape[0] - h + 1):
        for j in range(X.shape[1] - w + 1):
            yield i, j, X[i:i + h, j:j + w]


def result_shape(X, k):
    return X.shape[0] - k.shape[0] + 1, X.shape[1] - k.shape[1] + 1


def corr2d_assigned(X, k):
    Y = cnp.zeros(result_shape(X, k), X.dtype)
    for i, j, window in windows(X, k):
        Y[i, j] = np.sum(window * k)
    return Y


def corr2d_added_in_place(X, k):
    Y = cnp.zeros(result_shape(X, k), X.dtype)
    for i, j, window in windows(X, k):
        for row, weights in zip(window, k):
            Y[i, j] += row @ weights
    return Y


def corr2d_stacked(X, k):
    return np.reshape(np.stack([np.sum(window * k) for _, _, window in windows(X, k)]), result_shape(X, k))


CORR2D = pytest.mark.parametrize("corr2d", [corr2d_assigned, corr2d_added_in_place, corr2d_stacked])


@CORR2D
@records("e", "corr2d/functional")
def test_corr2d_gradient_and_jacobian(record, corr2d):
    inputs = record.inputs["X"], record.inputs["k"]
    record.check(corr2d(*inputs), record.value)
    gradients = cgrad.grad(lambda X, k: np.sum(corr2d(X, k)), (0, 1))(*inputs)
    record.check(gradients, [record.grad["X"], record.grad["k"]])
    record.check(cgrad.jacobian(corr2d, (0, 1))(*inputs), [record.jacobian["X"], record.jacobian["k"]])


@CORR2D
@records("e", "corr2d/conv2d")
def test_corr2d_with_an_adjoint(record, corr2d):
    value, pullback = cgrad.vjp(corr2d, record.inputs["X"], record.inputs["k"])
    record.check(value, record.value)
    record.check(pullback(record.inputs["adjoint"]), [record.grad["X"], record.grad["k"]])


@pytest.mark.parametrize("at_once", [False, True])
@records("e", "corr2d/assigned_variable", "corr2d/assign_only")
def test_corr2d_assigned_to_a_variable(record, at_once):
    """TensorFlow's gradient of Y by k is None here; cgrad's is that of the function above."""
    X, k = record.inputs["X"], cgrad.Variable(record.inputs["k"], name="k")
    Y = cgrad.Variable(np.zeros(result_shape(X, k), record.dtype), name="Y")
    with cgrad.GradientTape(persistent=True) as tape:
        if at_once:
            Y.assign(corr2d_stacked(X, k))
        else:
            for i, j, window in windows(X, k):
                Y[i, j] = np.sum(window * k)
        total = np.sum(Y)
    record.check(Y.value, record.value)
    assert [(v.name, list(v.shape), str(v.dtype)) for v in tape.watched_variables()] == [
        (w["which"], w["shape"], w["dtype"]) for w in record.raw["watched_variables"]]

    as_function, = matching("e", f"corr2d/functional/{record.dtype}")
    by_k = as_function.grad["k"]
    record.check(tape.gradient(Y, k), by_k)
    record.check(tape.gradient(total, k), by_k)


@records("e", "corr2d/cost")
def test_corr2d_summed_up_in_a_loop(record):
    X, k = record.inputs["X"], cgrad.Variable(record.inputs["k"])
    with cgrad.GradientTape() as tape:
        cost = 0
        for _, _, window in windows(X, k):
            cost += np.sum(window * k)
    record.check(cost.value, record.value)
    record.check(tape.gradient(cost, k), record.grad["k"])


# -- f: vectors by vectors, and inputs without influence

@records("f", "jacobian")
def test_sum_and_difference(record):
    def sum_and_difference(x):
        return np.stack([x[0] + x[1], x[0] - x[1]])

    x, = record.variables()
    with cgrad.GradientTape(persistent=True) as tape:
        y = sum_and_difference(x)
    record.check(tape.jacobian(y, x), record.jacobian)
    record.check(tape.gradient(y, x), record.grad["x"])
    record.check(cgrad.jacobian(sum_and_difference)(record.inputs["x"]), record.jacobian)


class TwoRows:
    """y = [x_0 + x_1, x_0 - 2*x_1] of the rows of a Variable, and a Variable that y does not use."""

    def __init__(self, record):
        self.x, = record.variables()
        self.unrelated = cgrad.Variable(np.zeros(3, record.dtype), name="unrelated")
        self.x_0, self.x_1 = self.x[0], self.x[1]
        self.y = np.stack([self.x_0 + self.x_1, self.x_0 - 2 * self.x_1])
        self.sources = {
            "wrt_slices_used": [self.x_0, self.x_1],
            "wrt_whole_variable": [self.x],
            "wrt_fresh_slices": [self.x[0], self.x[1]],
            "wrt_fresh_slice": [self.x[0]],
            "wrt_unrelated_variable": [self.unrelated],
            "mixed": [self.x, self.unrelated, self.x_0],
        }


@records("f", "tape")
def test_unconnected_inputs_of_a_tape(record):
    mode = record.args["unconnected_gradients"]
    with cgrad.GradientTape(persistent=True) as tape:
        rows = TwoRows(record)
    record.check(rows.y.value, record.value)
    for name, want in record.grad.items():
        record.check(tape.gradient(rows.y, rows.sources[name], unconnected_gradients=mode), want)
    for name, want in record.jacobian.items():
        record.check(tape.jacobian(rows.y, rows.sources[name], unconnected_gradients=mode), want)


@records("f", "tf.gradients")
def test_unconnected_inputs_of_gradients(record):
    mode = record.args["unconnected_gradients"]
    with cgrad.GradientTape():
        rows = TwoRows(record)
        found = {name: cgrad.gradients(rows.y, rows.sources[name], unconnected_gradients=mode)
                 for name in record.grad if name in rows.sources}
        found["of_x_0_wrt_x_0_x_1"] = cgrad.gradients(rows.x_0, [rows.x_0, rows.x_1], unconnected_gradients=mode)
    for name, want in record.grad.items():
        record.check([g.value if isinstance(g, cgrad.Array) else g for g in found[name]], want)


# -- g: the Jacobians of a layer

@records("g", "dense")
def test_dense_layer(record):
    def z(W, a, b):
        return W @ a + b

    names, inputs = record.inputs.keys(), record.inputs.values()
    record.check(z(*inputs), record.value)
    gradients = cgrad.grad(lambda *inputs: np.sum(z(*inputs)), (0, 1, 2))(*inputs)
    record.check(gradients, [record.grad[n] for n in names])
    jacobians = cgrad.jacobian(z, (0, 1, 2))(*inputs)
    record.check(jacobians, [record.jacobian[n] for n in names])

    variables = record.variables()
    with cgrad.GradientTape(persistent=True) as tape:
        outputs = z(*variables)
    record.check(tape.gradient(outputs, variables), [record.grad[n] for n in names])
    record.check(tape.jacobian(outputs, variables), [record.jacobian[n] for n in names])


@records("g", "batch_jacobian")
def test_batch_jacobian(record):
    W, A, b = record.variables()
    with cgrad.GradientTape(persistent=True) as tape:
        z = np.tanh(A @ (W / 64).T + b / 4096)
    record.check(z.value, record.value)
    record.check(tape.batch_jacobian(z, A), record.jacobian["batch"])
    record.check(tape.jacobian(z, A), record.jacobian["full"])
