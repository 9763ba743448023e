# The names and signatures are NumPy's.
from numpy import *

from . import fft as fft
from . import linalg as linalg
