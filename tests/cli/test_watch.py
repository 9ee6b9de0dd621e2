"""``kubepy get --watch``: the objects, and then their changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kubepy.api.clock import Clock
from tests.cli.conftest import Done, Kubepy, run

Watch = Callable[..., list[str]]


@pytest.fixture
def watch(kubepy: Kubepy, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """A function that runs ``kubepy get --watch`` and, each time it sleeps, one of the commands of
    ``then``; afterwards Ctrl-C."""
    for name in ("a", "b"):
        kubepy("create", "cm", name, f"--from-literal=x={name}")

    def watch(*words: str, then: tuple[str, ...] = ()) -> list[str]:
        left = list(then)

        def sleep(clock: Clock, seconds: float) -> None:
            if not left:
                raise KeyboardInterrupt
            assert run(*left.pop(0).split()).status == 0

        monkeypatch.setattr(Clock, "sleep", sleep)
        done = run("get", *words)
        assert done == Done(done.out, "", 130)
        return done.out.splitlines()

    return watch


def without_age(lines: list[str]) -> list[str]:
    return [re.sub(r" *\b\d+s( *)", r"\1", line).rstrip() for line in lines]


THEN = ("create cm c", "label cm a k=v", "create cm a-long-name", "delete cm c")


def test_columns_stay_as_wide_as_they_have_been(watch: Watch) -> None:
    assert without_age(watch("cm", "-w", then=THEN)) == [
        "NAME   DATA   AGE",
        "a      1",
        "b      1",
        "c      0",
        "a      1",
        "a-long-name   0",
        "c             0",
    ]


def test_watch_without_list(watch: Watch) -> None:
    assert without_age(watch("cm", "--watch-only", "-L", "k", then=THEN[:2])) == [
        "NAME   DATA   AGE   K",
        "c      0",
        "a      1    v",
    ]


def test_events_of_watch(watch: Watch) -> None:
    assert without_age(watch("cm", "-w", "--output-watch-events", then=THEN)) == [
        "EVENT      NAME   DATA   AGE",
        "ADDED      a      1",
        "ADDED      b      1",
        "ADDED      c      0",
        "MODIFIED   a      1",
        "ADDED      a-long-name   0",
        "DELETED    c             0",
    ]


def test_deleted_object_is_shown_as_it_last_was(watch: Watch) -> None:
    assert watch(
        "cm",
        "--watch-only",
        "-o",
        'jsonpath={.metadata.name} {.metadata.labels.k}{"\\n"}',
        then=("create cm c", "label cm c k=v", "delete cm c"),
    ) == ["c ", "c v", "c v"]


def test_object_leaving_the_selector_is_deleted_to_the_watch(watch: Watch) -> None:
    events = watch(
        "cm",
        "-l",
        "k",
        "--watch-only",
        "--output-watch-events",
        "--no-headers",
        then=("label cm a k=v", "label cm a k=w --overwrite", "label cm a k-"),
    )
    assert [line.split()[:2] for line in events] == [
        ["ADDED", "a"],
        ["MODIFIED", "a"],
        ["DELETED", "a"],
    ]


def test_watch_shows_no_other_kinds(watch: Watch) -> None:
    assert watch(
        "cm", "--watch-only", "-o", "name", then=("create ns other", "label cm b k=v")
    ) == ["configmap/b"]


def test_watch_of_one_object_by_name(watch: Watch) -> None:
    assert (
        watch("cm", "a", "-w", "-o", "name", then=("label cm b k=v", "label cm a k=v"))
        == ["configmap/a"] * 2
    )


def test_watch_of_all_namespaces(watch: Watch) -> None:
    assert without_age(
        watch("cm", "-A", "--watch-only", "--show-kind", then=("create cm c -n kube-system",))
    )[1:] == ["kube-system   configmap/c   0"]


def test_events_as_json_stand_on_line_each_with_managed_fields(watch: Watch) -> None:
    (line,) = watch(
        "cm", "--watch-only", "--output-watch-events", "-o", "json", then=("label cm a k=v",)
    )
    assert line.startswith(
        '{"type":"MODIFIED","object":{"apiVersion":"v1","data":{"x":"a"},"kind":"ConfigMap",'
    )
    assert [one["manager"] for one in json.loads(line)["object"]["metadata"]["managedFields"]] == [
        "kubectl-create",
        "kubectl-label",
    ]


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ("name", ["configmap/a"]),
        ("jsonpath={.type} {.object.metadata.name}", ["MODIFIED a"]),
        ("go-template={{.type}} {{.object.kind}}", ["MODIFIED ConfigMap"]),
        ("custom-columns=T:.type,N:.object.metadata.name", ["T          N", "MODIFIED   a"]),
    ],
)
def test_events_in_other_formats(watch: Watch, output: str, lines: list[str]) -> None:
    assert (
        watch("cm", "--watch-only", "--output-watch-events", "-o", output, then=("label cm a k=v",))
        == lines
    )


def test_documents_of_watch_are_set_off(watch: Watch) -> None:
    lines = watch("cm", "a", "-w", "-o", "yaml", then=("label cm a k=v",))
    assert [line for line in lines if line == "---" or line.startswith("kind")] == [
        "kind: ConfigMap",
        "---",
        "kind: ConfigMap",
    ]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("cm,pods", "-w"), "error: you may only specify a single resource type\n"),
        (("cm/a", "pod/b", "-w"), "error: you may only specify a single resource type\n"),
        (("cm", "no", "-w"), 'Error from server (NotFound): configmaps "no" not found\n'),
        (
            ("cm", "--output-watch-events"),
            "error: --output-watch-events option can only be used with --watch or --watch-only\n",
        ),
    ],
)
def test_watch_of_unsupported_request_is_refused(
    kubepy: Kubepy, words: tuple[str, ...], error: str
) -> None:
    assert kubepy("get", *words) == Done("", error, 1)


def test_watch_of_several_named_objects_is_not_supported(kubepy: Kubepy) -> None:
    kubepy("create", "ns", "other")
    failed = kubepy("get", "ns", "default", "other", "-w", "-o", "name")
    assert failed == Done(
        "namespace/default\nnamespace/other\n",
        "error: you may only watch a single resource or type of resource at a time\n",
        1,
    )


def test_watch_of_one_file_with_several_kinds_has_their_headers(
    kubepy: Kubepy, folder: Path
) -> None:
    kubepy("create", "cm", "paint")
    (folder / "two.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: paint}\n---\n"
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n"
    )
    failed = kubepy("get", "-f", "two.yaml", "-w")
    assert (failed.err, failed.status) == (
        "error: watch is only supported on individual resources and resource "
        "collections - 2 resources were found\n",
        1,
    )
    assert [line.split()[:2] for line in failed.out.splitlines()] == [
        ["NAME", "DATA"],
        ["paint", "0"],
        ["NAME", "STATUS"],
        ["default", "Active"],
    ]


def test_watch_sorts_only_what_is_there(
    kubepy: Kubepy, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubepy("label", "cm", "b", "k=1")
    kubepy("label", "cm", "a", "k=2")

    def interrupted(clock: Clock, seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Clock, "sleep", interrupted)
    done = kubepy("get", "cm", "-w", "--sort-by=.metadata.labels.k", "--no-headers")
    assert [line.split()[0] for line in done.out.splitlines()] == ["b", "a"]
    assert (
        done.err
        == "warning: --watch requested, --sort-by will be ignored for watch events received\n"
    )


BOATS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example.org}
spec:
  group: sea.example.org
  scope: Namespaced
  names: {plural: boats, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
BOAT = "{apiVersion: sea.example.org/v1, kind: Boat, metadata: {name: ada}}"
CLOSED = "error: watch closed before UntilWithoutRetry timeout\n"


@pytest.fixture
def boat(kubepy: Kubepy, folder: Path) -> Kubepy:
    for text in (BOATS, BOAT):
        (folder / "boat.yaml").write_text(text)
        assert kubepy("create", "-f", "boat.yaml").status == 0
    return kubepy


def watch_until(happens: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> Done:
    """Watch the boats; after the first list call a function."""
    monkeypatch.setattr(Clock, "sleep", lambda clock, seconds: happens())
    done = run("get", "boats", "-w", "--output-watch-events", "--no-headers")
    return done._replace(
        out="\n".join(line.rpartition(" ")[0].strip() for line in done.out.splitlines())
    )


def test_watch_of_custom_resource_ends_with_its_definition(
    boat: Kubepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = watch_until(lambda: run("delete", "crd", "boats.sea.example.org"), monkeypatch)
    assert done == Done("ADDED      ada\nDELETED    ada", CLOSED, 1)


def test_watch_of_custom_resource_ends_with_file_of_its_definition(
    boat: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = (
        folder
        / "state/cluster/customresourcedefinitions.apiextensions.k8s.io/boats.sea.example.org.yaml"
    )
    done = watch_until(file.unlink, monkeypatch)
    unread = (
        "Warning: state/namespaces/default/boats.sea.example.org: is not read: there is no "
        'CustomResourceDefinition "boats.sea.example.org" (ada.yaml)\n'
    )
    assert done == Done("ADDED      ada", unread + CLOSED, 1)
