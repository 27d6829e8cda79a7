"""Property tests must not depend on how fast the machine is."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "files", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
settings.load_profile("files")
