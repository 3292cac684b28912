"""Rounding by fractions: an oracle for the correct rounding of long numbers."""

import math
from fractions import Fraction

import mpmath

# precision, least exponent, largest exponent: IEEE 754's, and bfloat16's.
FORMATS = {
    "float64": (53, -1074, 1023),
    "float32": (24, -149, 127),
    "float16": (11, -24, 15),
    "bfloat16": (8, -133, 127),
}


def correctly_rounded(number, dtype):
    """Round an mpmath number to nearest even by fractions; zero is +0."""
    precision, least, largest = FORMATS[dtype]
    # mpf(number) would round a long number to the current precision; a float is exact in it.
    long = number if isinstance(number, mpmath.mpf) else mpmath.mpf(number)
    sign, significand, exponent, width = long._mpf_
    value = (-1) ** sign * Fraction(int(significand)) * Fraction(2) ** exponent
    top = width + exponent
    quantum = Fraction(2) ** max(top - precision, least)
    rounded = round(value / quantum) * quantum
    if abs(rounded) >= Fraction(2) ** (largest + 1):
        return math.copysign(math.inf, value)
    return float(rounded)
