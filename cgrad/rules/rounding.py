"""Rounding and taking floating point numbers apart: round, modf, frexp, ldexp, divmod, nextafter.

What jumps has derivative zero; fraction and mantissa have the slope that they have between the jumps.
"""
import numpy as np

from .registry import (Sample, deliver, elementwise, implements, method, plain_function, plain_value, record, structural,
                       zero_derivative)

plain_function(np.gcd, np.lcm, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift)

elementwise(np.nextafter, 1, 0, complex=False)

ROUND = zero_derivative("round")


@implements(np.round, np.around)
@method("round")
def round(a, decimals=0, out=None):
    """np.round."""
    return deliver(record(ROUND, np.round(plain_value(a), decimals), (a,)), out)


@implements(np.fix)
def fix(x, out=None):
    """np.fix."""
    return deliver(np.trunc(x), out)


# ---------------------------------------------------------------------------------------------- ufuncs of two results
MODF = structural("modf", vjp=(lambda gz, z, x: gz,), samples=[Sample(lambda x: np.modf(x)[0], ((3,),))])
INTEGRAL = zero_derivative("modf_integral")


@implements(np.modf)
def modf(x, /, *, out=(None, None), **kwargs):
    """np.modf: the fraction has slope 1."""
    fraction, integral = np.modf(plain_value(x), **kwargs)
    return deliver(record(MODF, fraction, (x,)), out[0]), deliver(record(INTEGRAL, integral, (x,)), out[1])


FREXP = structural("frexp", vjp=(lambda gz, z, x, *, exponent: np.ldexp(gz, -exponent),),
                   samples=[Sample(lambda x: np.frexp(x)[0], ((3,),), domain=(1.1, 1.9))])


@implements(np.frexp)
def frexp(x, /, *, out=(None, None), **kwargs):
    """np.frexp: the mantissa is x / 2**exponent, the exponent plain."""
    mantissa, exponent = np.frexp(plain_value(x), **kwargs)
    return deliver(record(FREXP, mantissa, (x,), dict(exponent=exponent)), out[0]), deliver(exponent, out[1])


LDEXP = structural("ldexp", vjp=(lambda gz, z, x, *, exponent: np.ldexp(gz, exponent),), linear=True,
                   samples=[Sample(lambda x: np.ldexp(x, [1, -1, 2]), ((2, 3),))])


@implements(np.ldexp)
def ldexp(x, i, /, *, out=None, **kwargs):
    """np.ldexp."""
    exponent = plain_value(i)
    value = np.ldexp(plain_value(x), exponent, **kwargs)
    return deliver(record(LDEXP, value, (x,), dict(exponent=np.array(exponent))), out)


@implements(np.divmod)
def divmod(x, y, /, *, out=(None, None), **kwargs):
    """np.divmod."""
    return deliver(np.floor_divide(x, y, **kwargs), out[0]), deliver(np.remainder(x, y, **kwargs), out[1])
