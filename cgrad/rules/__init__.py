"""The derivative rules, one file per family of ops. Importing this package registers them all."""
from . import elementwise  # noqa: F401
from .registry import REGISTRY, SAMPLES, Sample  # noqa: F401
