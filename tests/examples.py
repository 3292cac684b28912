"""How often hypothesis tries a property."""

from hypothesis import HealthCheck, settings


def examples(count):
    """Ask for so many; the same ones on every run, so that running again repeats a failure."""
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
