"""Nested containers of arrays: taken apart into leaves and put together again.

Lists, tuples, dicts, named tuples and dataclasses are containers; everything else is a leaf. Dicts keep their order. Uses
nothing of cgrad; used by the transforms.
"""
import dataclasses

__all__ = ["flatten", "leaves_with_paths", "map_leaves"]


def _children(node):
    """(keys, children, rebuild), or None for a leaf. Keys are as they would be written behind the container."""
    kind = type(node)
    if kind is list or kind is tuple:
        return [f"[{i}]" for i in range(len(node))], node, kind
    if isinstance(node, dict):
        keys = list(node)
        return [f"[{k!r}]" for k in keys], [node[k] for k in keys], lambda c: _like(node, dict(zip(keys, c)))
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return [f".{f}" for f in node._fields], node, lambda c: kind(*c)
    if isinstance(node, (list, tuple)):
        return [f"[{i}]" for i in range(len(node))], node, kind
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        names = [f.name for f in dataclasses.fields(node) if f.init]
        return ([f".{n}" for n in names], [getattr(node, n) for n in names],
                lambda c: dataclasses.replace(node, **dict(zip(names, c))))
    return None


def _like(node, items):
    if type(node) is dict:
        return items
    copy = node.copy()          # keeps what a subclass adds, a defaultdict's factory for instance
    copy.update(items)
    return copy


def flatten(tree):
    """(leaves, rebuild): the leaves in order, and the function that puts a list of as many into the same containers.

    >>> leaves, rebuild = flatten({"w": [1.0, 2.0], "b": 3.0})
    >>> leaves, rebuild([10, 20, 30])
    ([1.0, 2.0, 3.0], {'w': [10, 20], 'b': 30})
    """
    parts = _children(tree)
    if parts is None:
        return [tree], lambda leaves: leaves[0]
    _, children, rebuild = parts
    flat, pieces = [], []
    for child in children:
        leaves, build = flatten(child)
        pieces.append((len(flat), len(flat) + len(leaves), build))
        flat += leaves
    return flat, lambda leaves: rebuild([build(leaves[a:b]) for a, b, build in pieces])


def map_leaves(function, tree):
    """The same containers with `function` of each leaf."""
    leaves, rebuild = flatten(tree)
    return rebuild([function(leaf) for leaf in leaves])


def leaves_with_paths(tree, path=""):
    """Pairs (path, leaf), e.g. ``("['w'][0]", 1.0)``: for error messages."""
    parts = _children(tree)
    if parts is None:
        yield path, tree
        return
    for key, child in zip(parts[0], parts[1]):
        yield from leaves_with_paths(child, path + key)
