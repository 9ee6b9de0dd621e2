"""``wait``: conditions, JSONPath, creation, deletion, and the message at the timeout."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.cli.conftest import Done, Kubepy, run

TOYS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: toys.example.org}
spec:
  group: example.org
  names: {kind: Toy, plural: toys, singular: toy}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
TOY = "{{apiVersion: example.org/v1, kind: Toy, metadata: {{name: top}}, status: {}}}"


@pytest.fixture
def notes(kubepy: Kubepy) -> Kubepy:
    kubepy("create", "configmap", "note", "--from-literal=state=begun")
    kubepy("create", "configmap", "other")
    return kubepy


@contextmanager
def meanwhile(act: Callable[[], object], after: float = 0.2) -> Iterator[None]:
    """Do something in another thread while the block runs."""
    timer = threading.Timer(after, act)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_object_that_goes_while_condition_is_waited_for_may_come_back(notes: Kubepy) -> None:
    def replace() -> None:
        run("delete", "cm", "note")
        run("create", "configmap", "note", "--from-literal=state=done")

    with meanwhile(replace):
        done = notes("wait", "cm/note", "--for=jsonpath={.data.state}=done", "--timeout=20s")
    assert done == Done("configmap/note condition met\n", "", 0)


def test_wait_for_deletion_ends_at_its_timeout(notes: Kubepy) -> None:
    with meanwhile(lambda: run("delete", "cm", "note")):
        done = notes("wait", "cm/note", "--for=jsonpath={.data.state}=done", "--timeout=600ms")
    assert done == Done("", "error: timed out waiting for the condition on configmaps/note\n", 1)


def test_pod_that_is_made_again_at_once_was_deleted(bare: Kubepy) -> None:
    bare("init", "--nodes=1")
    bare(
        "create",
        "-f",
        "-",
        stdin="""
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: "db:1"}]}}
""",
    )
    bare("rollout", "status", "sts/db")
    with meanwhile(lambda: run("delete", "pod", "db-0")):
        done = bare("wait", "pod/db-0", "--for=delete", "--timeout=20s")
    assert done == Done("pod/db-0 condition met\n", "", 0)


def test_condition_met_after_the_timeout_does_not_count(notes: Kubepy) -> None:
    done = notes(
        "wait", "cm/other", "cm/note", "--for=jsonpath={.data.state}=begun", "--timeout=50ms"
    )
    assert done == Done(
        "",
        "timed out waiting for the condition on configmaps/other\n"
        "timed out waiting for the condition on configmaps/note\n",
        1,
    )


def test_deletions_looked_at_after_time_was_used_up_are_worded_as_client_go_does(
    notes: Kubepy,
) -> None:
    done = notes("wait", "cm/note", "cm/other", "--for=delete", "--timeout=1s")
    assert done == Done(
        "",
        "timed out waiting for the condition on configmaps/note\n"
        "client rate limiter Wait returned an error: context deadline exceeded\n",
        1,
    )


def test_time_of_zero_looks_at_each_once(notes: Kubepy) -> None:
    done = notes("wait", "cm/other", "cm/note", "--for=jsonpath={.data.state}=begun", "--timeout=0")
    assert done == Done(
        "configmap/note condition met\n", "error: condition not met for configmaps/other\n", 1
    )


def test_creation_is_waited_for_by_name(notes: Kubepy) -> None:
    with meanwhile(lambda: run("create", "configmap", "late")):
        done = notes("wait", "cm/late", "--for=create", "--timeout=20s")
    assert done == Done("configmap/late condition met\n", "", 0)


def test_creation_of_several_or_of_what_file_names_is_not(notes: Kubepy) -> None:
    missing = 'Error from server (NotFound): configmaps "{}" not found\n'
    assert notes("wait", "cm/x", "cm/y", "--for=create", "--timeout=1s") == Done(
        "", missing.format("x") + missing.format("y"), 1
    )
    manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"
    assert notes("wait", "-f", "-", "--for=create", "--timeout=1s", stdin=manifest) == Done(
        "", missing.format("x"), 1
    )


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("condition", 'unrecognized condition: "condition"'),
        ("jsonpath", 'unrecognized condition: "jsonpath"'),
        ("Condition=Ready", 'unrecognized condition: "Condition=Ready"'),
        ("jsonpath={.data[0]}=1", "map[string]interface {} is not array or slice"),
        (
            "jsonpath={.data.state}=",
            "jsonpath wait has to have a value after equal sign, like "
            "--for=jsonpath='{.status.readyReplicas}'=3",
        ),
        ("jsonpath={.data}=x", "jsonpath leads to a nested object or list which is not supported"),
    ],
)
def test_wait_for_invalid_condition_is_refused(notes: Kubepy, word: str, why: str) -> None:
    assert notes("wait", "cm/note", f"--for={word}", "--timeout=1s") == Done(
        "", f"error: {why}\n", 1
    )


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (
            "{conditions: {a: b}}",
            ".status.conditions accessor error: map[a:b] is of the type map[string]interface {}, "
            "expected []interface{}",
        ),
        (
            "text",
            ".status.conditions accessor error: text is of the type string, expected "
            "map[string]interface{}",
        ),
        (
            "{conditions: [1, {type: 5}, {type: Ready}]}",
            "timed out waiting for the condition on toys/top",
        ),
        (
            "{observedGeneration: 0, conditions: [{type: Ready, status: 'True'}]}",
            "timed out waiting for the condition on toys/top",
        ),
    ],
)
def test_status_of_any_shape_is_looked_at(kubepy: Kubepy, status: str, why: str) -> None:
    kubepy("create", "-f", "-", stdin=TOYS)
    assert kubepy("create", "-f", "-", stdin=TOY.format(status)).status == 0
    timeout = (
        "50ms" if why.startswith("timed out") else "30s"
    )  # what cannot be read is said at once
    assert kubepy("wait", "toy/top", "--for=condition=Ready", f"--timeout={timeout}") == Done(
        "", f"error: {why}\n", 1
    )


def test_condition_says_itself_which_generation_it_is_of(kubepy: Kubepy) -> None:
    kubepy("create", "-f", "-", stdin=TOYS)
    status = (
        "{observedGeneration: 0, conditions: [{type: Ready, status: 'True', "
        "observedGeneration: 1}]}"
    )
    assert kubepy("create", "-f", "-", stdin=TOY.format(status)).status == 0
    assert (
        kubepy("wait", "toy/top", "--for=condition=ready=true").out
        == "toy.example.org/top condition met\n"
    )
