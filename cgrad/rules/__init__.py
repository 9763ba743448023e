"""The derivative rules, one file per family of ops. Importing this package registers them all."""
from . import creation, joining, padding, shape  # noqa: F401
from . import elementwise  # noqa: F401
from . import choosing, elements, inplace, ordering, rounding, selection  # noqa: F401
from . import accumulations, norms, reductions, statistics  # noqa: F401
from . import compound_products, correlation, differences, einsum, products, special_functions  # noqa: F401
from . import decompositions, fft, linalg  # noqa: F401
from .registry import REGISTRY, SAMPLES, Sample  # noqa: F401
