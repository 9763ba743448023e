"""numpy.einsum in all its forms. The adjoint of an operand is an einsum of the result's adjoint with the other operands.

Subscripts are turned into tuples of labels (small integers) once, and cached; ellipses become labels of their own. Uses the
registry and `products`.
"""
import functools
import math
import string

import numpy as np

from .products import as_array, as_operand, strong_contraction
from .registry import Inverse, Sample, deliver, implements, is_array, plain_function, plain_value, record, structural

__all__ = []

# From so many multiplications on an adjoint goes to BLAS; below, the set-up costs more than NumPy's own loop.
WORTH_BLAS = 1 << 13


# ---------------------------------------------------------------------------------------------- subscripts
@functools.lru_cache(1024)
def labels_of(subscripts, ndims):
    """The labels of each operand and of the result, as tuples of integers; NumPy has checked the subscripts already."""
    subscripts = subscripts.replace(" ", "")
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    letters = sorted(set(subscripts) - set(".,->"))
    number = {letter: i for i, letter in enumerate(letters)}
    hidden = [ndim - len(term.replace("...", "")) for term, ndim in zip(terms, ndims)]
    widest = max((h for term, h in zip(terms, hidden) if "..." in term), default=0)
    dots = tuple(range(len(letters), len(letters) + widest))

    def numbered(term, count):
        before, ellipsis, after = term.partition("...")
        middle = dots[widest - count:] if ellipsis else ()
        return tuple(number[c] for c in before) + middle + tuple(number[c] for c in after)

    if not arrow:
        output = "..." + "".join(c for c in letters if inputs.count(c) == 1)
    return tuple(numbered(term, h) for term, h in zip(terms, hidden)), numbered(output, widest)


def as_subscripts(labels):
    """A list of labels, as `numpy.einsum` takes it in place of a string, as the string."""
    return "".join("..." if i is Ellipsis else (string.ascii_uppercase + string.ascii_lowercase)[i] for i in labels)


def take_apart(arguments):
    """The subscripts string and the operands of a call in either form."""
    if isinstance(arguments[0], str):
        return arguments[0], arguments[1:]
    operands, terms = arguments[:-1:2], [as_subscripts(t) for t in arguments[1::2]]
    subscripts = ",".join(terms)
    return subscripts + "->" + as_subscripts(arguments[-1]) if len(arguments) % 2 else subscripts, operands


def once(labels):
    """The labels without repetitions, in their order."""
    return tuple(dict.fromkeys(labels))


# ---------------------------------------------------------------------------------------------- adjoints
def einsum_vjp(i, gz, z, *operands, inputs, output):
    own, shape = inputs[i], as_array(operands[i]).shape
    lead = gz.shape[:gz.ndim - z.ndim]
    others = [(as_array(x), labels) for j, (x, labels) in enumerate(zip(operands, inputs)) if j != i]
    known = set(output).union(*(labels for _, labels in others))
    size = dict(zip(own, shape))
    # an axis of size 1 was stretched, and is summed over; of a label that only this operand has all places get the same
    target = tuple(label for label in once(own) if label in known and size[label] != 1)

    def contract(gz, *arrays):
        return contraction(gz, output, list(zip(arrays, (labels for _, labels in others))), target)

    g = strong_contraction(contract, gz, *(x for x, _ in others)) if others else contract(gz)
    found = dict(zip(target, g.shape[len(lead):]))
    g = g.reshape(lead + tuple(found.get(label, 1) for label in once(own)))
    full = lead + tuple(size[label] for label in once(own))
    if g.shape != full:
        g = np.broadcast_to(g, full)
    return g if len(set(own)) == len(own) else spread_diagonal(g, own)


def contraction(gz, output, others, target):
    """The einsum of gz, which has leading axes before those of `output`, and the others, with the axes `target`."""
    # an axis that neither gz nor the result has is summed first, where it costs least
    needed = set(output).union(target)
    shared = {}
    for _, labels in others:
        for label in set(labels):
            shared[label] = shared.get(label, 0) + 1
    for k, (x, labels) in enumerate(others):
        keep = tuple(label for label in once(labels) if label in needed or shared[label] > 1)
        if keep != labels:
            others[k] = np.einsum(x, labels, keep), keep
    sizes = dict(zip(output, gz.shape[gz.ndim - len(output):]))
    for x, labels in others:
        for label, n in zip(labels, x.shape):
            sizes[label] = max(n, sizes.get(label, 1))
    work = math.prod(sizes.values()) * math.prod(gz.shape[:gz.ndim - len(output)])
    large = work >= WORTH_BLAS and bool(others)
    if large and len(others) == 1:
        product = by_matmul(gz, output, *others[0], target)
        if product is not None:
            return product
    arguments = [part for x, labels in others for part in (x, labels)]
    return np.einsum(gz, (Ellipsis, *output), *arguments, (Ellipsis, *target), optimize=large and len(others) > 1)


def by_matmul(gz, output, y, labels, target):
    """The same contraction of two as a product of matrices: axes of both and the result are a batch, axes of both are
    summed, and the rest are rows and columns. None if it has no such form.
    """
    n_lead = gz.ndim - len(output)
    place = {label: n_lead + i for i, label in enumerate(output)}
    both = [label for label in output if label in labels]
    batch = [label for label in both if label in target]
    summed = [label for label in both if label not in target]
    rows, columns = [t for t in target if t not in labels], [t for t in target if t not in output]
    if not summed or len(batch) + len(summed) + len(rows) < len(output) \
            or any(gz.shape[place[label]] != y.shape[labels.index(label)] for label in both):
        return None
    # leading axes are rows too
    row_axes = (*range(n_lead), *(place[t] for t in rows))
    row_shape = tuple(gz.shape[a] for a in row_axes)
    column_shape = tuple(y.shape[labels.index(t)] for t in columns)
    batch_shape = tuple(gz.shape[place[t]] for t in batch)
    inner = math.prod(gz.shape[place[t]] for t in summed)
    left = gz.transpose((*(place[t] for t in batch), *row_axes, *(place[t] for t in summed)))
    right = y.transpose([labels.index(t) for t in (*batch, *summed, *columns)])
    product = np.matmul(left.reshape(batch_shape + (math.prod(row_shape), inner)),
                        right.reshape(batch_shape + (inner, math.prod(column_shape))))
    product = product.reshape(batch_shape + row_shape + column_shape)
    order = {t: len(batch) + n_lead + i for i, t in enumerate((*rows, *columns))}
    order.update((t, i) for i, t in enumerate(batch))
    return product.transpose((*range(len(batch), len(batch) + n_lead), *(order[t] for t in target)))


def spread_diagonal(g, labels):
    """The array with the axes `labels`, some of them repeated, whose diagonals g holds; zero elsewhere."""
    kept = once(labels)
    sizes = dict(zip(kept, g.shape[g.ndim - len(kept):]))
    value = np.zeros(g.shape[:g.ndim - len(kept)] + tuple(sizes[label] for label in labels), g.dtype)
    np.einsum(value, (Ellipsis, *labels), (Ellipsis, *kept))[...] = plain_value(g)
    return record(SPREAD, value, (g,), dict(labels=labels)) if is_array(g) else value


SPREAD = structural("einsum_diagonal_adjoint", linear=True,
                    vjp=(lambda gz, z, g, *, labels: np.einsum(gz, (Ellipsis, *labels), (Ellipsis, *once(labels))),))

# ---------------------------------------------------------------------------------------------- the op
# one op for each number of operands, so that one or two operands keep no more than the adjoints read
EINSUM_1 = structural("einsum_1", vjp=einsum_vjp, linear=True,
                      # NumPy's diagonals can be written to; here that is refused
                      inverse=Inverse(lambda base, *, inputs, output: np.einsum(base, *inputs, output), None),
                      samples=[Sample(lambda x: np.einsum("ij->", x), ((2, 3),)),
                               Sample(lambda x: np.einsum("iij->ij", x), ((3, 3, 2),), complex=True)])
EINSUM_2 = structural("einsum_2", vjp=einsum_vjp, reads=("y", "x"), linear="multi",
                      samples=[Sample(lambda x, y: np.einsum("ij,jk->ik", x, y), ((2, 3), (3, 4)), complex=True),
                               Sample(lambda x, y: np.einsum("...ij,...jk", x, y), ((2, 1, 2, 3), (4, 3, 2))),
                               Sample(lambda x, y: np.einsum("ii,jk->ij", x, y), ((3, 3), (2, 4)))])
EINSUM = structural("einsum", vjp=einsum_vjp, reads=("*",), linear="multi",
                    samples=[Sample(lambda *xs: np.einsum("ij,jk,k->i", *xs), ((2, 3), (3, 4), (4,)), complex=True)])


@implements(np.einsum)
def einsum(*arguments, out=None, optimize=False, **keywords):
    value = np.einsum(*map(plain_value, arguments), optimize=optimize, **keywords)
    subscripts, operands = take_apart(arguments)
    operands = tuple(map(as_operand, operands))
    inputs, output = labels_of(subscripts, tuple(x.ndim for x in operands))
    view_of = None
    if len(operands) == 1 and isinstance(value, np.ndarray) and np.may_share_memory(value, plain_value(operands[0])):
        if len(output) == len(inputs[0]):
            return deliver(np.transpose(operands[0], [inputs[0].index(label) for label in output]), out)
        view_of = operands[0]
    op = EINSUM if len(operands) > 2 else EINSUM_2 if len(operands) == 2 else EINSUM_1
    return deliver(record(op, value, operands, dict(inputs=inputs, output=output), view_of), out)


plain_function(np.einsum_path)
