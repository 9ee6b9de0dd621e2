"""A cluster with an incident, as a source: what kubectl prints of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from kubepy.importing.documents import SourceContent, read_files
from kubepy.importing.files import SourceFile
from kubepy.importing.making import ImportedCluster, ImportOptions, make_cluster
from tests.cli.conftest import Done, run

CLOCK = "2026-03-01T10:00:00Z"
WORLD = Path(__file__).parent / "world.yaml"
Import = Callable[..., ImportedCluster]


def file_of(text: str, path: str = "source.yaml", *, is_named: bool = True) -> SourceFile:
    """Return a file of a source with a text."""
    return SourceFile(path, path, lambda: text.encode(), is_named)


def read(*files: SourceFile) -> SourceContent:
    """Read files."""
    content = SourceContent.empty()
    read_files(files, content, lambda number: None)
    return content


def import_objects(
    objects: Iterable[dict[str, Any]], options: ImportOptions | None = None
) -> ImportedCluster:
    """Make a cluster of objects, as a file holds them."""
    items = [{"apiVersion": "v1", **obj} for obj in objects]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    content = read(file_of(text))
    return make_cluster(content, options or ImportOptions(), lambda activity, number: None)


def fields(kind: str, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    """Return an object that a server has made."""
    metadata: dict[str, Any] = {
        "name": name,
        "uid": f"uid-of-{kind}-{name}",
        "creationTimestamp": CLOCK,
    }
    if namespace:
        metadata["namespace"] = namespace
    metadata |= more.pop("metadata", {})
    return {"kind": kind, "metadata": metadata, **more}


def pod(name: str, **more: Any) -> dict[str, Any]:
    """Return a running pod on the node n in the namespace shop."""
    spec = {"containers": [{"name": "c", "image": "nginx"}], "nodeName": "n"}
    status = {
        "phase": "Running",
        "startTime": CLOCK,
        "containerStatuses": [
            {
                "name": "c",
                "image": "nginx",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": CLOCK}},
            }
        ],
    }
    obj = fields("Pod", name, "shop", metadata=more.pop("metadata", {}))
    return {**obj, "spec": spec | more.pop("spec", {}), "status": status | more.pop("status", {})}


def owned_by(kind: str, name: str, api_version: str = "apps/v1") -> dict[str, Any]:
    """Return the metadata of an object with a controller."""
    reference = {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": f"uid-of-{kind}-{name}",
        "controller": True,
    }
    return {"ownerReferences": [reference]}


def kubepy(folder: Path, *words: str, stdin: str = "") -> Done:
    """Run a command on a state folder; it must succeed."""
    done = run("--state", str(folder), *words, stdin=stdin)
    assert done.status == 0, done.err
    return done


def kinds_of(folder: Path) -> str:
    """Return the kinds of a cluster that have objects of their own, for ``get``."""
    names = kubepy(folder, "api-resources", "--verbs=list", "-o", "name").out.split()
    left_out = ("componentstatuses", "events.events.k8s.io")
    return ",".join(name for name in names if name not in left_out and "metrics" not in name)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster with its own time in which a rollout has finished, a Job has run and a pod
    crashes."""
    folder = tmp_path_factory.mktemp("world") / "state"
    kubepy(folder, "init", "--nodes=3", f"--clock={CLOCK}", "--seed=7")
    kubepy(folder, "apply", "-f", str(WORLD))
    kubepy(folder, "clock", "advance", "12m")
    thing = {
        "apiVersion": "example.org/v1",
        "kind": "Thing",
        "metadata": {"name": "t", "namespace": "shop"},
        "spec": {"size": 3},
    }
    kubepy(folder, "create", "-f", "-", stdin=json.dumps(thing))
    kubepy(folder, "-n", "shop", "set", "image", "deploy/web", "web=nginx:1.28")
    kubepy(folder, "clock", "advance", "2m")
    return folder


@pytest.fixture(scope="session")
def printed(world: Path) -> str:
    """All objects of that cluster, as ``kubectl get -o yaml`` prints them."""
    return kubepy(world, "get", kinds_of(world), "-A", "-o", "yaml").out
