"""How often hypothesis tries a property."""

from hypothesis import HealthCheck, settings

# `pytest --hypothesis-profile many` tries every property at least so often.
MANY = "many"
settings.register_profile(MANY, max_examples=2000)


def examples(count):
    """Ask for so many; the same ones on every run, so that running again repeats a failure."""
    least = settings.default.max_examples if settings.get_current_profile_name() == MANY else 0
    return settings(
        max_examples=max(count, least),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
