"""GradientTape and Variable."""
import pickle

import numpy as np
import pytest

import cgrad

X = np.array([0.5, 1.5, -2.0])


def test_watch_and_gradient():
    with cgrad.GradientTape() as tape:
        x = tape.watch(X)
        y = np.sin(x) * x
    np.testing.assert_allclose(tape.gradient(y, x), np.cos(X) * X + np.sin(X))


def test_containers_of_sources_and_targets():
    with cgrad.GradientTape(persistent=True) as tape:
        p = tape.watch({"a": X, "b": 2.0})
        y = p["a"] * p["b"]
        z = p["b"] * 3.0
    g = tape.gradient([y, z], p)
    np.testing.assert_array_equal(g["a"], np.full(3, 2.0))
    assert g["b"] == X.sum() + 3
    np.testing.assert_array_equal(tape.gradient(y, [y])[0], np.ones(3))     # an intermediate value is a source too
    g = tape.gradient(y, p["a"], output_gradients=X)
    np.testing.assert_array_equal(g, 2 * X)


def test_values_after_the_tape():
    with cgrad.GradientTape() as tape:
        x = tape.watch(X)
        y = x[0] * x[1]
    assert float(y) == 0.75 and np.asarray(x).tolist() == X.tolist()
    assert isinstance(y * 2, np.float64)


def test_unconnected():
    with cgrad.GradientTape(persistent=True) as tape:
        x, y = tape.watch(X), tape.watch(np.ones((2, 2)))
        z = x * 2
    assert tape.gradient(z, y) is None
    assert tape.gradient(z, [x, y], unconnected_gradients="none")[1] is None
    np.testing.assert_array_equal(tape.gradient(z, y, unconnected_gradients="zero"), np.zeros((2, 2)))
    assert tape.jacobian(z, y) is None
    assert tape.jacobian(z, y, unconnected_gradients="zero").shape == (3, 2, 2)
    assert tape.jacobian(z, [x, y], as_matrix=True).shape == (3, 7)


def test_variables_are_watched():
    a, b, c = cgrad.Variable(X, name="a"), cgrad.Variable(2.0, name="b"), cgrad.Variable(1.0, trainable=False, name="c")
    with cgrad.GradientTape(persistent=True) as tape:
        y = a * b + c
    assert [v.name for v in tape.watched_variables()] == ["a", "b"]
    np.testing.assert_array_equal(tape.gradient(y, a), np.full(3, 2.0))
    assert tape.gradient(y, b) == X.sum()
    with cgrad.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(c)
        y = a * c
    assert tape.watched_variables() == (c,)
    assert tape.gradient(y, c) == X.sum()


def test_unread_variable_is_unconnected():
    a, b = cgrad.Variable(1.0), cgrad.Variable(np.ones(2))
    with cgrad.GradientTape(persistent=True) as tape:
        y = a * 2
    assert tape.gradient(y, b) is None
    np.testing.assert_array_equal(tape.gradient(y, b, unconnected_gradients="zero"), [0, 0])


def test_variable_as_an_array():
    v = cgrad.Variable(X)
    np.testing.assert_array_equal(v + 1, X + 1)
    np.testing.assert_array_equal(1 - v, 1 - X)
    np.testing.assert_array_equal(np.sin(v), np.sin(X))
    np.testing.assert_array_equal(np.asarray(v), X)
    np.testing.assert_array_equal(np.concatenate([v, v]), np.r_[X, X])
    assert v[1] == 1.5 and len(v) == 3 and v.shape == (3,) and v.dtype == float and float(cgrad.Variable(2.0)) == 2.0
    assert list(v) == X.tolist() and v.sum() == 0.0
    np.testing.assert_array_equal(v > 0, X > 0)
    value = v.value
    value[:] = 0
    assert v[0] == 0.5
    w = pickle.loads(pickle.dumps(v))
    assert w.name == v.name and np.array_equal(w.value, v.value)


def test_assignment_outside_of_tapes():
    v = cgrad.Variable(X)
    v.assign(X * 2).assign_add(1.0)
    v.assign_sub(np.ones(3))
    np.testing.assert_array_equal(v.value, 2 * X)
    v[0] = 7
    v[1:] += 1
    np.testing.assert_array_equal(v.value, [7, 4, -3])
    assert X[0] == 0.5
    with pytest.raises(ValueError):
        v.assign(np.ones(4))


def test_gradient_of_an_assigned_variable():
    k, Y = cgrad.Variable(np.array([2.0, 3.0]), name="k"), cgrad.Variable(np.zeros((2, 2)), name="Y")
    with cgrad.GradientTape() as tape:
        for i in range(2):
            for j in range(2):
                Y[i, j] = k[i] * k[j]
    assert [v.name for v in tape.watched_variables()] == ["Y", "k"] or [v.name for v in tape.watched_variables()] == ["k", "Y"]
    np.testing.assert_array_equal(Y.value, [[4, 6], [6, 9]])
    np.testing.assert_array_equal(tape.gradient(Y, k), [10, 10])


def test_assignments_of_training_steps():
    w = cgrad.Variable(3.0)
    for _ in range(3):
        with cgrad.GradientTape() as tape:
            loss = w * w
        w.assign_sub(0.1 * tape.gradient(loss, w))
    assert np.isclose(w.value, 3 * 0.8**3)


def test_variable_reassigned_inside_is_its_old_value_as_a_source():
    v = cgrad.Variable(3.0)
    with cgrad.GradientTape() as tape:
        y = v * 2
        v.assign(v * v)
        z = y * v
    assert tape.gradient(z, v) == 6 * 9.0                   # 2 v * v**2
    assert v.value == 9.0


def test_variable_in_a_plain_transform():
    v = cgrad.Variable(3.0)
    assert cgrad.grad(lambda x: x * v)(2.0) == 3.0
    with pytest.raises(cgrad.TapeError, match="lose its gradient"):
        cgrad.grad(lambda x: v.assign(x) * 1.0)(2.0)


def test_nested_tapes():
    x = cgrad.Variable(2.0)
    with cgrad.GradientTape() as outer:
        with cgrad.GradientTape() as inner:
            y = x**3
        dy = inner.gradient(y, x)
        assert isinstance(dy, cgrad.Array)
    assert outer.gradient(dy, x) == 12.0


def test_inner_tape_sees_only_its_own_window():
    """As in TensorFlow: what was computed before the inner tape opened is a constant for it."""
    x = cgrad.Variable(2.0)
    with cgrad.GradientTape() as outer:
        y = x * x
        with cgrad.GradientTape() as inner:
            z = y * x
        dz = inner.gradient(z, x)
    assert float(dz) == 4.0
    assert outer.gradient(z, x) == 12.0


def test_stop_recording_and_reset():
    with cgrad.GradientTape() as tape:
        x = tape.watch(X)
        y = x * x
        with tape.stop_recording():
            c = y * 5
            assert isinstance(c, np.ndarray)
        z = y * c
    np.testing.assert_allclose(tape.gradient(z, x), 2 * X * 5 * X * X)
    with cgrad.GradientTape() as tape:
        x = tape.watch(X)
        y = x * x
        tape.reset()
        x = tape.watch(X)
        z = x * 3
    np.testing.assert_array_equal(tape.gradient(z, x), np.full(3, 3.0))
    with pytest.raises(cgrad.TapeError, match="twice"), tape:
        pass


def test_stop_recording_inside_another_tape():
    with cgrad.GradientTape() as outer:
        x = outer.watch(X)
        with cgrad.GradientTape() as inner:
            inner.watch(x)
            with inner.stop_recording():
                y = x * x
            z = y * x
        g = inner.gradient(z, x)
    np.testing.assert_allclose(np.asarray(g), X * X)
    np.testing.assert_allclose(outer.gradient(z, x), 3 * X * X)


def test_gradient_inside_the_tape():
    x = cgrad.Variable(np.array([1.0, 5.0]))
    with cgrad.GradientTape(persistent=True) as tape:
        y = x * x
        j = tape.jacobian(y, x)
    np.testing.assert_array_equal(np.asarray(j), [[2, 0], [0, 10]])


def test_jacobian_of_a_list():
    x, y = cgrad.Variable(1.0), cgrad.Variable(4.0)
    with cgrad.GradientTape(persistent=True) as tape:
        z = [x**2 + 2 * y, y**2]
    np.testing.assert_array_equal(np.stack(tape.jacobian(z, [x, y])), [[2, 0], [2, 8]])
    np.testing.assert_array_equal(tape.jacobian(z, [x, y], as_matrix=True), [[2, 2], [0, 8]])
    np.testing.assert_array_equal(tape.jacobian(z, [x, y], as_matrix=True, chunk=1), [[2, 2], [0, 8]])


def test_batch_jacobian():
    w = np.arange(6.0).reshape(3, 2)
    x = cgrad.Variable(np.arange(12.0).reshape(4, 3))
    with cgrad.GradientTape(persistent=True) as tape:
        z = np.sin(x)[:, :2] * w[0]
    j = tape.batch_jacobian(z, x)
    full = tape.jacobian(z, x)
    assert j.shape == (4, 2, 3)
    np.testing.assert_array_equal(j, np.stack([full[b, :, b] for b in range(4)]))
    with pytest.raises(ValueError, match="first axis"):
        tape.batch_jacobian(z, cgrad.Variable(np.ones((5, 1))))


def test_operations_are_named():
    with cgrad.GradientTape(persistent=True) as tape:
        a = tape.watch(np.ones((2, 2)))
        y = np.sin(np.sin(a))
        g = cgrad.gradients(y, a)
    names = [o.name for o in tape.operations()]
    assert names[:3] == ["leaf", "sin", "sin_1"] and len(set(names)) == len(names)
    gradient_nodes = [o for o in tape.operations() if o.gradient_of]
    assert gradient_nodes and all(o.name.startswith(f"gradients/{o.gradient_of}_grad/") for o in gradient_nodes)
    assert all(o.shape == (2, 2) and o.dtype == float for o in tape.operations())
    assert "sin = sin(leaf)  float64[2, 2]" in map(str, tape.operations())
    assert g.shape == (2, 2)


def test_exception_inside_a_tape():
    with pytest.raises(KeyError), cgrad.GradientTape():
        raise KeyError("stop")
    assert cgrad._tape.current_tape() is None


def test_two_tapes_side_by_side():
    """One gradient from each, as generator and discriminator are trained."""
    a, b = cgrad.Variable(2.0), cgrad.Variable(3.0)
    with cgrad.GradientTape() as one, cgrad.GradientTape() as two:
        shared = a * b
        y, z = shared * a, shared * b
    assert one.gradient(y, a) == 12.0
    assert two.gradient(z, b) == 12.0
    for tape in (one, two):
        with pytest.raises(cgrad.TapeError, match="persistent"):
            tape.gradient(y, a)
