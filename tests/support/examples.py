"""How often hypothesis tries a property."""

from hypothesis import HealthCheck, settings

# The default run tries a part of the examples, `pytest --all` all, and `pytest --all
# --hypothesis-profile many` at least so many.
FEW, MANY = "few", "many"
PART, LEAST = 8, 2000
settings.register_profile(FEW)
settings.register_profile(MANY)


def part_of(count):
    """Return how many of so many examples a run tries."""
    return -(-count // PART) if settings.get_current_profile_name() == FEW else count


def examples(count):
    """Ask for so many; the same ones on every run, so that running again repeats a failure."""
    least = LEAST if settings.get_current_profile_name() == MANY else 0
    return settings(
        max_examples=max(part_of(count), least),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
