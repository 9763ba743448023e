"""The scripts in examples/ run, and print what they promise."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cgrad

EXAMPLES = Path(__file__).parents[1] / "examples"
if not EXAMPLES.is_dir():
    pytest.skip("the tests were copied without examples/", allow_module_level=True)

# script -> lines it prints, however many spaces there are between their words
STORIES = {
    "1_symbolic_gradient.py": ["sin sin(a) (2, 2) float64", "matmul matmul(sin, b) (2, 1) float64",
                               "gradients/sin_grad/cos cos(a) (2, 2) float64", "[-0.41614684 1.92034057]]"],
    "2_jacobian_as_array.py": ["ndarray", "[[2. 2.]", "[0. 8.]]", "[[2. 0.]", "[2. 8.]]"],
    "3_chained_matmul.py": ["[[66. -8.]", "[80. -8.]]", "as by hand: True",
                            "(5, 1, 3, 4) @ (2, 4, 6) -> (5, 2, 3, 6); gradients (5, 1, 3, 4) and (2, 4, 6)"],
    "4_categorical_crossentropy.py": ["losses: [0.10536052 0.80466845 0.0618754 ]",
                                      "its gradient: [[0. 0. 0.]]"],
    "5_assigned_elements.py": ["[[19. 25.]", "[37. 43.]]", "[[ 8. 12.]", "[20. 24.]]", "kernel (2, 2) float64"],
    "6_unconnected_inputs.py": ["[[ 1. 1.]", "[ 1. -1.]]", "none: None None",
                                "zero: [0. 0. 0. 0. 0.] [0. 0. 0.]"],
    "7_dense_layer_jacobians.py": ["dz/dW, shape (2, 1, 2, 3):", "dz/da, shape (2, 1, 3, 1):", "dz/db, shape (2, 1, 2, 1):",
                                   "z[1, 0]: [[0. 0. 0.]", "[1. 2. 3.]]"],
}


def output(script, folder):
    """What a script prints, run as a user runs it; with the cgrad that is tested here, be it installed or built in place."""
    environment = dict(os.environ, PYTHONPATH=str(Path(cgrad.__file__).parents[1]))
    ran = subprocess.run([sys.executable, str(script)], cwd=folder, env=environment, capture_output=True, text=True,
                         timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_every_story_is_listed():
    assert {path.name for path in (EXAMPLES / "stories").glob("*.py")} == set(STORIES)


@pytest.mark.parametrize("name", STORIES)
def test_story(name, tmp_path):
    printed = [" ".join(line.split()) for line in output(EXAMPLES / "stories" / name, tmp_path).splitlines()]
    for line in STORIES[name]:
        assert " ".join(line.split()) in printed


def test_digits(tmp_path):
    for extra in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(extra)
    printed = output(shutil.copy(EXAMPLES / "digits.py", tmp_path), tmp_path)
    accuracy = float(re.search(r"accuracy on 360 held-out images: ([\d.]+)%", printed)[1])
    assert accuracy >= 97
    assert str(tmp_path / "digits.png") in printed and (tmp_path / "digits.png").stat().st_size > 10_000
