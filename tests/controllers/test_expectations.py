from datetime import UTC, datetime, timedelta

import pytest

from kubepy.controllers.expectations import Expectations

START = datetime(2026, 11, 20, tzinfo=UTC)


class Time:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def expectations(time: Time) -> Expectations[str]:
    return Expectations(time)


def test_owner_that_never_expected_anything_is_satisfied(expectations):
    assert expectations.are_satisfied("a")


def test_expectations_require_every_creation_and_deletion(expectations):
    expectations.expect("a", creations=2, deletions=1)
    expectations.creation_observed("a")
    expectations.deletion_observed("a")
    assert not expectations.are_satisfied("a")
    expectations.creation_observed("a")
    assert expectations.are_satisfied("a")


def test_expectations_drop_skipped_creations(expectations):
    expectations.expect("a", creations=10)
    expectations.lower("a", creations=10)
    assert expectations.are_satisfied("a")


def test_new_expectation_replaces_old_one(expectations):
    expectations.expect("a", creations=10)
    expectations.expect("a")
    assert expectations.are_satisfied("a")


def test_expectations_expire_after_five_minutes(expectations, time):
    expectations.expect("a", creations=1)
    time.now += timedelta(minutes=5)
    assert not expectations.are_satisfied("a")
    time.now += timedelta(seconds=1)
    assert expectations.are_satisfied("a")


def test_owner_made_again_under_its_name_starts_clean(expectations):
    expectations.expect("a", creations=1)
    expectations.forget("a")
    assert expectations.are_satisfied("a")


def test_tracked_pod_counts_once_however_often_its_deletion_is_observed(expectations):
    expectations.expect_deletions("a", ["uid-1", "uid-2"])
    expectations.deletion_observed("a", "uid-1")
    expectations.deletion_observed("a", "uid-1")
    expectations.deletion_observed("a", "another")
    assert not expectations.are_satisfied("a")
    expectations.deletion_observed("a", "uid-2")
    assert expectations.are_satisfied("a")
