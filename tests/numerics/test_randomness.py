"""Claims about random numbers: same bits everywhere, in range, independent of their neighbours."""

import hashlib

import numpy as np
import pytest

from rnncli.numerics.randomness import bell, integers, seed_key, uniform, uniform_integers


def test_bits_are_pinned():
    """The first words of a key never change: vectors are regenerated from them."""
    key = seed_key(7, "lstm_14", "X")

    assert key == 0x1C76582B15750124A4408D919E75928B
    assert uniform_integers([key], 2, 64).tolist() == [[0x3919EA5D95BF7B56, 0x39CFE51326737E32]]
    assert bell([key], (1,)).tolist() == [[float.fromhex("-0x1.0b0a5d9cp+0")]]


def test_names_are_kept_apart():
    """Moving a letter from the case to the tensor gives another key."""
    assert seed_key(0, "ab", "c") != seed_key(0, "a", "bc") != seed_key(1, "a", "bc")


def test_growing_a_tensor_keeps_its_beginning():
    """The first values of a longer tensor are those of a shorter one."""
    assert np.array_equal(bell([5], (3, 4)).ravel(), bell([5], (20,))[0, :12])


def test_a_long_tensor_is_one_stream():
    """Made in blocks, it is what twelve words of NumPy's own Philox after another give."""
    count = (1 << 16) + 3
    words = np.random.Philox(key=5).random_raw(12 * count).reshape(count, 12)
    sums = (words >> np.uint64(32)).sum(axis=1).astype(np.float64)

    assert np.array_equal(bell([5], (count,))[0], sums * 2.0**-32 - 6)


@pytest.mark.parametrize(
    "make",
    [bell, uniform, lambda keys, shape: integers(keys, shape, -5, 9)],
    ids=["bell", "uniform", "integers"],
)
def test_tensors_made_together_are_what_they_are_alone(make):
    """One for each key, in order; a key may come twice."""
    keys = [7, 1 << 127, 0, 7]

    together = make(keys, (3, 5))

    assert together.shape == (4, 3, 5)
    assert [t.tobytes() for t in together] == [make([key], (3, 5)).tobytes() for key in keys]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.5, 0.5), (2.0, 2.25)])
def test_uniform_stays_in_bounds(low, high):
    """Values fill [low, high) and their mean is its middle."""
    values = uniform([1], (100_000,), low, high)

    assert low <= values.min()
    assert values.max() < high
    assert abs(values.mean() - (low + high) / 2) < 0.01 * (high - low)


def test_bell_has_mean_zero_and_variance_one():
    """Twelve uniforms less six: mean 0, variance 1, tails within 6."""
    values = bell([2], (200_000,))

    assert abs(values.mean()) < 0.01
    assert abs(values.var() - 1) < 0.02
    assert np.abs(values).max() < 6


def test_integers_reach_both_ends():
    """Both ends belong to the range, negative ones too."""
    assert set(integers([3], (500,), -2, 2)[0].tolist()) == {-2, -1, 0, 1, 2}


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_every_shape_is_possible(shape):
    """Scalars and empty tensors too, of any number of keys, none included."""
    for keys in ([4], [4, 5], []):
        for made in (uniform(keys, shape), bell(keys, shape), integers(keys, shape, 0, 1)):
            assert made.shape == (len(keys), *shape)


def test_keys_are_sha256():
    """The first 128 bits, little end first."""
    key = seed_key(3, "a", "X")
    text = "3:1:a:1:X"

    assert key == int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")
