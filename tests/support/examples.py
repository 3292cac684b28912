"""How often hypothesis tries a property."""

from zlib import crc32

from hypothesis import HealthCheck, seed, settings

# The default run tries a part of the examples, `pytest --all` all, and `pytest --all
# --hypothesis-profile many` at least so many. No run depends on the clock, as with Hypothesis's own
# deadline of 0.2 s an example and its checks of health, and each tries the same ones, so that
# running again repeats a failure.
EACH, FEW, MANY = "each", "few", "many"
PART, LEAST = 8, 2000
settings.register_profile(
    EACH,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(EACH)
for profile in FEW, MANY:
    settings.register_profile(profile)


def part_of(count):
    """Return how many of so many examples a run tries."""
    return -(-count // PART) if settings.get_current_profile_name() == FEW else count


def examples(count, row=None):
    """Ask for so many.

    Args:
        count: how many, unless a run tries a part.
        row: what else the test is about; the examples of another row are others.
    """
    least = LEAST if settings.get_current_profile_name() == MANY else 0
    asked = settings(max_examples=max(part_of(count), least))
    if row is None:
        return asked
    return lambda test: seed(crc32(str(row).encode()))(asked(test))
