"""Claims about numbers in place of files."""

import numpy as np
import pytest
from support.tables import every

from rnncli.errors import InvalidRequest
from rnncli.numerics import dtype_named
from rnncli.running.execution import given_tensor


@every(
    ("text", "dtype", "wanted"),
    [
        ("8000", "int64", np.int64(8000)),
        ("-1e-5", "float32", np.float32(-1e-5)),
        ("8000", "float16", np.float16(8000)),
        ("true", "bool", np.True_),
        ("[1, 2, 3]", "int32", np.array([1, 2, 3], np.int32)),
        ("[[1, 2.5], [3, -4]]", "float64", np.array([[1, 2.5], [3, -4]])),
        ("[]", "float32", np.zeros(0, np.float32)),
        ("[[], []]", "int8", np.zeros((2, 0), np.int8)),
        ("[Infinity, NaN]", "float32", np.array([np.inf, np.nan], np.float32)),
        ("[255, 0]", "uint8", np.array([255, 0], np.uint8)),
        ("18446744073709551615", "uint64", np.uint64(2**64 - 1)),
    ],
)
def test_numbers_have_the_inputs_type_and_the_shape_that_is_written(text, dtype, wanted):
    """A number is a scalar; lists nest."""
    made = given_tensor("x", text, dtype_named(dtype))

    assert (made.dtype, made.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(made, wanted)


def test_a_number_is_rounded_once():
    """1 + 2^-8 + 2^-40 is above a tie of bfloat16, and would be the tie in float32."""
    made = given_tensor("x", "1.0039062500009095", dtype_named("bfloat16"))

    assert float(made) == 1 + 2**-7


@every(
    ("text", "dtype", "sentence"),
    [
        ("2.5", "int64", "-i x=2.5: 2.5 is not of type int64"),
        ("[1, 256]", "uint8", "256 is not of type uint8"),
        ("-1", "uint64", "-1 is not of type uint64"),
        ("8", "int4", "8 is not of type int4"),
        ("1e39", "float32", "1e+39 is not of type float32"),
        ("true", "float32", "true is not of type float32"),
        ("1", "bool", "1 is not of type bool"),
        ('["a"]', "float32", '"a" is not of type float32'),
        ("[null]", "float32", "null is not of type float32"),
        ("[1, [2]]", "float32", "rows of different lengths"),
        ("[1, 2", "float32", "not a list: "),
        ("[" * 100_000, "float32", "not a list: "),
        ("1", "string", "is not of real numbers; give a file"),
        ("x.npy", "float32", "x.npy: no such file"),
        ("null", "float32", "null: no such file"),
        ("16k", "int64", "-i x=16k: neither a number nor a file"),
    ],
)
def test_what_is_no_such_number_is_refused(text, dtype, sentence):
    """Nothing is cut off, wrapped or guessed."""
    with pytest.raises(InvalidRequest) as told:
        given_tensor("x", text, dtype_named(dtype))

    assert sentence in str(told.value)
