"""The process of a server's controllers."""

from __future__ import annotations

from kubepy.server.controllers import Failures


def test_trouble_of_controllers_is_said_once_until_it_is_another_or_over() -> None:
    said: list[str] = []
    failures = Failures(said.append)
    for text in ("No space left", "No space left", "Read-only", "No space left"):
        failures.tell(text)
    failures.end()
    failures.tell("No space left")
    assert said == ["No space left", "Read-only", "No space left", "No space left"]
