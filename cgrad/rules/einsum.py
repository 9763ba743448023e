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
class Adjoint:
    """How the adjoint of one operand is computed: what follows from labels and shapes alone, worked out once.

    Parameters
    ----------
    i : int
        The operand.
    inputs, output : tuples of labels
    shapes : tuple of shapes
        Of all operands.
    """

    def __init__(self, i, inputs, output, shapes):
        own, shape = inputs[i], shapes[i]
        size = dict(zip(own, shape))
        others = [(labels, n) for j, (labels, n) in enumerate(zip(inputs, shapes)) if j != i]
        known = set(output).union(*(labels for labels, _ in others))
        # an axis of size 1 was stretched, and is summed over; along a label of this operand alone all places get the same
        target = tuple(label for label in once(own) if label in known and size[label] != 1)
        # an axis that only one of the others has is summed first, where it costs least
        count = {}
        for labels, _ in others:
            for label in set(labels):
                count[label] = count.get(label, 0) + 1
        self.sums, terms, sizes = [], [], {}
        for k, (labels, n) in enumerate(others):
            keep = tuple(label for label in once(labels) if label in output or label in target or count[label] > 1)
            if keep != labels:
                self.sums.append((k, as_subscripts(labels) + "->" + as_subscripts(keep)))
            terms.append(keep)
        for labels, n in ((own, shape), *others):
            for label, m in zip(labels, n):
                sizes[label] = m if m != 1 else sizes.get(label, 1)
        self.output, self.target, self.own = output, target, own
        self.subscripts = ",".join("..." * (k == 0) + as_subscripts(t) for k, t in enumerate((output, *terms))) \
            + "->..." + as_subscripts(target)
        self.work = math.prod(sizes[label] for label in set(output).union(*terms))
        other_sizes = dict(zip(*others[0])) if len(others) == 1 else {}
        self.product = matrix_product(output, terms[0], target) if len(terms) == 1 and all(
            other_sizes[label] == sizes[label] for label in terms[0]) else None
        # from the axes of the target to those of the operand
        found = {label: max(n[labels.index(label)] for labels, n in ((output, [sizes[o] for o in output]), *others)
                            if label in labels) for label in target}
        kept = once(own)
        self.shape = tuple(found.get(label, 1) for label in kept) if target != kept else None
        self.full = tuple(size[label] for label in kept)
        self.stretched = tuple(found.get(label, 1) for label in kept) != self.full
        self.diagonal = kept != own

    def contract(self, gz, *others):
        """The einsum of gz, which may have leading axes, and the other operands; has the axes `target`."""
        if self.sums:
            others = list(others)
            for k, subscripts in self.sums:
                others[k] = np.einsum(subscripts, others[k])
        large = others and self.work * math.prod(gz.shape[:gz.ndim - len(self.output)]) >= WORTH_BLAS
        if large and self.product is not None:
            return by_matmul(gz, others[0], *self.product)
        return np.einsum(self.subscripts, gz, *others, optimize=bool(large) and len(others) > 1)

    def finish(self, g, lead):
        """The adjoint from its part along `target`."""
        if self.shape is not None:
            g = g.reshape(lead + self.shape)
        if self.stretched:
            g = np.broadcast_to(g, lead + self.full)
        return spread_diagonal(g, self.own) if self.diagonal else g


adjoint_of = functools.lru_cache(4096)(Adjoint)


def einsum_vjp(i, gz, z, *operands, inputs, output):
    operands = [as_array(x) for x in operands]
    adjoint = adjoint_of(i, inputs, output, tuple([x.shape for x in operands]))
    others = operands[:i] + operands[i + 1:]
    g = strong_contraction(adjoint.contract, gz, *others) if others else adjoint.contract(gz)
    return adjoint.finish(g, gz.shape[:gz.ndim - z.ndim])


def matrix_product(left, right, target):
    """The contraction of two as a product of matrices: axes of both and the target are a batch, axes of both alone are
    summed, and the rest are rows and columns. None if it has no such form.
    """
    both = [label for label in left if label in right]
    batch, summed = [t for t in both if t in target], [t for t in both if t not in target]
    rows, columns = [t for t in target if t not in right], [t for t in target if t not in left]
    if not summed or len(both) + len(rows) < len(left) or len(both) + len(columns) < len(right):
        return None
    order = (*batch, *rows, *columns)
    return (tuple(left.index(t) - len(left) for t in batch), tuple(left.index(t) - len(left) for t in rows),
            tuple(left.index(t) - len(left) for t in summed), tuple(right.index(t) for t in (*batch, *summed, *columns)),
            len(columns), tuple(order.index(t) - len(order) for t in target))


def by_matmul(gz, y, batch, rows, summed, y_axes, n_columns, order):
    """The product that `matrix_product` found; leading axes of gz are rows too."""
    n_lead, n_batch = gz.ndim - len(batch) - len(rows) - len(summed), len(batch)
    left = gz.transpose((*(a + gz.ndim for a in batch), *range(n_lead), *(a + gz.ndim for a in (*rows, *summed))))
    right = y.transpose(y_axes)
    n_rows = left.ndim - n_batch - len(summed)
    head, row_shape = left.shape[:n_batch], left.shape[n_batch:n_batch + n_rows]
    inner, column_shape = math.prod(left.shape[n_batch + n_rows:]), right.shape[right.ndim - n_columns:]
    product = np.matmul(left.reshape(head + (math.prod(row_shape), inner)),
                        right.reshape(head + (inner, math.prod(column_shape))))
    product = product.reshape(head + row_shape + column_shape)
    # the batch lies before the leading axes
    places = (*range(n_batch), *range(n_batch + n_lead, product.ndim))
    return product.transpose((*range(n_batch, n_batch + n_lead), *(places[a] for a in order)))


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
