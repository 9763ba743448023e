"""Imports point one way, as docs/architecture says: a lower layer never learns a name from a higher one."""
import pathlib
import re

import pytest

import cgrad

ORDER = ["tree", "_kernels", "_loops", "_blas", "_program", "_tape", "_record", "_parts", "_array", "_direct", "_indices", "_sweep",
         "rules", "_trace", "_context", "transforms", "gradient_tape", "losses", "numpy", "__init__"]
PACKAGE = pathlib.Path(cgrad.__file__).parent
SOURCES = pathlib.Path(__file__).parent.parent / "src"


def names_imported(text, inside):
    """Modules of cgrad that a source imports, at its top level."""
    found = set()
    for line in re.findall(r"^(?:from|cimport|import) .*", text, re.M):
        found.update(re.findall(r"\bcgrad\.(\w+)", line))
        found.update(n for n in re.findall(r"^from cgrad c?import (.*)", line) for n in re.split(r",\s*| as \w+", n) if n)
        if not inside:
            found.update(re.findall(r"^from \.(\w+) import", line))
            found.update(n for n in re.findall(r"^from \. import ([\w, ]+)", line) for n in n.split(", "))
    return {n.strip() for n in found} & set(ORDER)


def layer_files():
    for name in ORDER:
        if name == "rules":
            for path in sorted((PACKAGE / "rules").glob("*.py")):
                yield name, path, True
        elif (PACKAGE / name).is_dir():
            for path in sorted((PACKAGE / name).glob("*.py")):
                yield name, path, True
        elif (PACKAGE / f"{name}.py").exists():
            yield name, PACKAGE / f"{name}.py", False
        if (SOURCES / f"{name[1:]}.pyx").exists():
            yield name, SOURCES / f"{name[1:]}.pyx", True


@pytest.mark.parametrize("name, path, inside", [pytest.param(*f, id=f"{f[0]}-{f[1].name}") for f in layer_files()])
def test_imports_point_down(name, path, inside):
    above = [n for n in names_imported(path.read_text(encoding="utf-8"), inside)
             if ORDER.index(n) > ORDER.index(name)]
    assert above == []


def test_public_names():
    assert sorted(cgrad.__all__) == cgrad.__all__ or set(cgrad.__all__) <= set(dir(cgrad))
    for name in cgrad.__all__:
        assert getattr(cgrad, name).__doc__
