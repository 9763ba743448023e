"""Settings of all tests."""
from hypothesis import settings

# no deadline: a shared machine is slow at times, and a slow example is not a wrong one
settings.register_profile("cgrad", deadline=None)
settings.load_profile("cgrad")
