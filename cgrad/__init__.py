"""cgrad: derivatives of ordinary NumPy code at C speed.

>>> import numpy as np, cgrad
>>> cgrad.grad(lambda x: np.sum(np.sin(x)))(np.zeros(3))
array([1., 1., 1.])
"""
from . import rules  # noqa: F401  fills the tables of the recording
from . import losses, numpy
from ._array import Array
from ._tape import TapeError
from .gradient_tape import GradientTape, Variable
from .transforms import elementwise_grad, grad, gradients, jacobian, stop_gradient, value_and_grad, vjp

__version__ = "0.1.0"

__all__ = ["Array", "GradientTape", "TapeError", "Variable", "elementwise_grad", "grad", "gradients", "jacobian", "losses",
           "numpy", "stop_gradient", "value_and_grad", "vjp"]
