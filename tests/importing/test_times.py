"""The newest time of a source."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.importing.making import ImportOptions
from tests.importing.conftest import CLOCK, fields, import_objects, pod

LATER = "2026-03-02T00:00:00Z"
AHEAD = "2030-01-01T00:00:00Z"


def clock_of(obj: dict[str, Any]) -> str:
    return str(import_objects([fields("ConfigMap", "a"), obj]).settings["clock"])


@pytest.mark.parametrize(
    "obj",
    [
        fields("ConfigMap", "b", metadata={"creationTimestamp": LATER}),
        fields(
            "ConfigMap",
            "b",
            metadata={
                "managedFields": [
                    {
                        "manager": "m",
                        "operation": "Update",
                        "apiVersion": "v1",
                        "time": LATER,
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {},
                    }
                ]
            },
        ),
        pod("b", status={"startTime": LATER}),
        fields("Event", "b", "shop", involvedObject={}, lastTimestamp=LATER),
        fields(
            "Event",
            "b",
            "shop",
            involvedObject={},
            eventTime="2026-03-02T00:00:00.000000Z",
            reportingComponent="c",
            reportingInstance="i",
            action="a",
            reason="r",
            type="Normal",
        ),
        fields(
            "Lease",
            "b",
            "shop",
            apiVersion="coordination.k8s.io/v1",
            spec={"renewTime": "2026-03-02T01:00:00.000000+01:00", "holderIdentity": "x"},
        ),
    ],
)
def test_clock_stands_at_the_newest_time(obj: dict[str, Any]) -> None:
    assert clock_of(obj) == LATER


@pytest.mark.parametrize(
    "obj",
    [
        pod("b", metadata={"deletionTimestamp": AHEAD, "deletionGracePeriodSeconds": 30}),
        fields("ConfigMap", "b", metadata={"annotations": {"expires": AHEAD}}),
        fields("ConfigMap", "b", data={"time": AHEAD}),
    ],
)
def test_times_that_may_lie_ahead_do_not_count(obj: dict[str, Any]) -> None:
    assert clock_of(obj) == CLOCK


def test_time_of_a_recording_counts_before_that_of_the_objects() -> None:
    from kubepy.api.clock import parse_time

    options = ImportOptions(now=parse_time(LATER))
    assert import_objects([pod("a")], options).settings["clock"] == LATER
