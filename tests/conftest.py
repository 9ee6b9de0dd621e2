"""Hypothesis tries the same examples each time, so that no test fails by chance.

``pytest --hypothesis-profile=default`` tries others; a failing example that it finds becomes an ``@example``.
"""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
