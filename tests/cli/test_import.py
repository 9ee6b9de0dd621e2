"""`import`: a cluster made of what kubectl prints, of dumps and archives; a later state of it."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubepy.cli.errors import SilentExit
from tests.cli.conftest import Kubepy, run
from tests.importing.conftest import (
    kinds_of,
    kubepy,
    printed,
    world,
)

__all__ = ["printed", "world"]  # fixtures
UNCHANGED = ("pods", "deployments", "daemonsets", "statefulsets", "jobs", "nodes", "pv", "things")
SHOWN = (
    "get pods -A -o wide",
    "get all -A",
    "describe pods -n shop",
    "describe deploy -n shop",
    "describe node node-1",
    "rollout history -n shop deploy/web",
    "rollout history -n shop ds/agent --revision=1",
    "rollout history -n shop sts/db",
)
NO_LOG = "Request log error: no containers run here: pods are simulated\n"


def files(folder: Path) -> dict[str, bytes]:
    """Return the files of a cluster's objects, and its settings."""
    paths = [folder / "kubepy.yaml", *folder.glob("cluster/**/*"), *folder.glob("namespaces/**/*")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file()}


@pytest.fixture(scope="module")
def imported(printed: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster that is made of what kubectl prints."""
    folder = tmp_path_factory.mktemp("imported") / "new"
    done = kubepy(folder, "import", "-", stdin=printed)
    assert "the clock stands at 2026-03-01T10:14:00Z\n" in done.out
    assert "named, and not in the source" not in done.out
    return folder


@pytest.mark.parametrize("kind", UNCHANGED)
def test_imported_objects_are_printed_as_in_the_source(
    imported: Path, world: Path, kind: str
) -> None:
    words = ("get", kind, "-A", "-o", "yaml")
    assert kubepy(imported, *words).out == kubepy(world, *words).out


@pytest.mark.parametrize("line", SHOWN)
def test_imported_cluster_is_shown_as_the_source(imported: Path, world: Path, line: str) -> None:
    assert kubepy(imported, *line.split()).out == kubepy(world, *line.split()).out


def test_imported_cluster_is_at_rest(printed: str, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    kubepy(folder, "import", "-", stdin=printed)
    before = files(folder)
    events = kubepy(folder, "--reconcile=never", "get", "events", "-n", "shop", "-o", "yaml").out
    assert kubepy(folder, "controller", "--once").out == ""
    assert files(folder) == before
    assert kubepy(folder, "get", "events", "-n", "shop", "-o", "yaml").out == events


def test_imported_cluster_goes_on(printed: str, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    kubepy(folder, "import", "-", stdin=printed)
    kubepy(folder, "-n", "shop", "scale", "deploy/web", "--replicas=4")
    kubepy(folder, "-n", "shop", "rollout", "status", "deploy/web")
    pods = kubepy(folder, "-n", "shop", "get", "pods", "-l", "app=web", "-o", "name").out
    assert len(pods.split()) == 4


# --- dumps


def dump_of(world: Path, folder: Path, style: str = "json") -> Path:
    """Write what ``kubectl cluster-info dump`` writes."""
    kubepy(
        world,
        "cluster-info",
        "dump",
        "--namespaces=shop",
        f"--output-directory={folder}",
        "-o",
        style,
    )
    for path in folder.glob("shop/crash/logs.txt"):  # as a server gives it to kubectl
        path.write_text(path.read_text().replace(NO_LOG, "about to fail\n"))
    return folder


@pytest.mark.parametrize("style", ["json", "yaml"])
def test_cluster_info_dump_is_imported_with_its_logs(
    world: Path, tmp_path: Path, style: str
) -> None:
    dump = dump_of(world, tmp_path / "dump", style)
    folder = tmp_path / "new"
    done = kubepy(folder, "import", str(dump))
    assert "  StatefulSet.apps 1: shop/db\n" in done.out
    assert "made: 1 namespace (shop)\n" in done.out
    log = ("--reconcile=never", "logs", "-n", "shop", "crash")
    assert kubepy(folder, *log).out == kubepy(world, *log).out == "about to fail\n"
    before = files(folder)
    assert kubepy(folder, "controller", "--once").out == ""
    assert files(folder) == before


def test_dump_on_standard_output_is_imported(world: Path, tmp_path: Path) -> None:
    text = kubepy(world, "cluster-info", "dump", "--namespaces=shop").out
    text = text.replace(NO_LOG, "about to fail\n")
    folder = tmp_path / "new"
    kubepy(folder, "import", "-", stdin=text)
    assert kubepy(folder, "logs", "-n", "shop", "crash").out == "about to fail\n"
    assert "web" in kubepy(folder, "get", "deploy", "-n", "shop").out


def must_gather_of(objects: list[dict[str, Any]], root: Path) -> None:
    """Write objects where must-gather has them, and a log with its times."""
    for obj in objects:
        metadata, kind = obj["metadata"], obj["kind"].lower()
        group = obj["apiVersion"].rpartition("/")[0] or "core"
        if "namespace" not in metadata:
            path = root / "cluster-scoped-resources" / group / f"{kind}s" / metadata["name"]
        elif kind == "pod":
            place = root / "namespaces" / metadata["namespace"] / "pods" / metadata["name"]
            path = place / metadata["name"]
        else:
            path = (
                root / "namespaces" / metadata["namespace"] / group / f"{kind}-{metadata['name']}"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(f"{path.name}.yaml").write_text(json.dumps(obj))
    logs = root / "namespaces/shop/pods/crash/c/c/logs"
    logs.mkdir(parents=True)
    (logs / "current.log").write_text("2026-03-01T10:12:00.123456789Z about to fail\n")
    (root / "timestamp").write_text("no object")


def bundle_of(objects: list[dict[str, Any]], root: Path) -> None:
    """Write objects where a support bundle has them: arrays without kinds."""
    places: dict[str, list[dict[str, Any]]] = {}
    for obj in objects:
        plural = f"{obj['kind'].lower()}s"
        namespace = obj["metadata"].get("namespace")
        place = f"{plural}/{namespace}.json" if namespace else f"{plural}.json"
        bare = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}
        places.setdefault(place, []).append(bare)
    for place, items in places.items():
        path = root / "cluster-resources" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(items))
    log = root / "cluster-resources/pods/logs/shop/crash/c.log"
    log.parent.mkdir(parents=True)
    log.write_text("about to fail\n")


BUNDLED = ("pods", "deployments", "replicasets", "daemonsets", "nodes", "namespaces", "services")


@pytest.mark.parametrize("write", [must_gather_of, bundle_of])
@pytest.mark.parametrize("is_archive", [False, True])
def test_gathered_files_are_imported(
    world: Path, tmp_path: Path, write: Callable[..., None], is_archive: bool
) -> None:
    text = kubepy(world, "get", ",".join(BUNDLED), "-A", "-o", "json").out
    source = tmp_path / "gathered"
    write(json.loads(text)["items"], source)
    if is_archive:
        archive = tmp_path / "gathered.tar.gz"
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(source, "gathered")
        source = archive
    folder = tmp_path / "new"
    kubepy(folder, "import", str(source))
    for kind in BUNDLED[:4]:
        words = ("--reconcile=never", "get", kind, "-A", "-o", "yaml")
        assert kubepy(folder, *words).out == kubepy(world, *words).out
    assert kubepy(folder, "logs", "-n", "shop", "crash").out == "about to fail\n"


def test_several_sources_make_one_cluster(world: Path, tmp_path: Path) -> None:
    sources = []
    for kind in ("pods", "nodes"):
        path = tmp_path / f"{kind}.yaml"
        path.write_text(kubepy(world, "get", kind, "-A", "-o", "yaml").out)
        sources.append(str(path))
    folder = tmp_path / "new"
    kubepy(folder, "import", *sources)
    assert len(kubepy(folder, "get", "nodes", "-o", "name").out.split()) == 3


# --- a later state


def test_later_state_is_one_change(world: Path, printed: str, tmp_path: Path) -> None:
    folder, later = tmp_path / "new", tmp_path / "later"
    kubepy(folder, "import", "-", stdin=printed)
    kubepy(world, "fork", str(later))
    kubepy(later, "clock", "advance", "30s")
    kubepy(later, "-n", "shop", "scale", "deploy/web", "--replicas=2")
    kubepy(later, "-n", "shop", "delete", "cm/settings", "ds/agent")
    kubepy(later, "-n", "shop", "create", "cm", "fresh")
    text = kubepy(later, "get", kinds_of(later), "-A", "-o", "yaml").out
    before = files(folder)
    done = kubepy(folder, "import", "--into", str(folder), "-", stdin=text)
    after = files(folder)
    assert done.out.splitlines()[-1].startswith(f"{folder}: ")
    gone = {path.rpartition("/")[2] for path in before.keys() - after.keys()}
    assert {"settings.yaml", "agent.yaml"} <= gone
    assert "namespaces/shop/configmaps/fresh.yaml" in after.keys() - before.keys()
    for kind in ("pods", "deployments", "configmaps", "daemonsets"):
        words = ("--reconcile=never", "get", kind, "-n", "shop", "-o")
        path = "jsonpath={range .items[*]}{.metadata.name}{.metadata.uid}{.status}{end}"
        assert kubepy(folder, *words, path).out == kubepy(later, *words, path).out
    assert kubepy(folder, "controller", "--once").out == ""
    assert files(folder) == after


def test_same_state_again_changes_no_file(printed: str, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    kubepy(folder, "import", "-", stdin=printed)
    before = files(folder)
    done = kubepy(folder, "import", "--into", str(folder), "-", stdin=printed)
    assert "0 created, 0 changed, 0 removed" in done.out
    assert files(folder) == before


def test_manifest_that_a_later_state_leaves_out_is_removed(bare: Kubepy, folder: Path) -> None:
    def source(*names: str) -> str:
        """Return manifests, one kind of which the last source does not hold at all."""
        manifests = [f"{{apiVersion: v1, kind: {name}, metadata: {{name: a}}}}" for name in names]
        return "\n---\n".join(manifests)

    both = source("ConfigMap", "ServiceAccount")
    assert bare("import", "-", stdin=both).status == 0
    assert bare("import", "--into", "state", "-", stdin=both).status == 0
    done = bare("import", "--into", "state", "-", stdin=source("ServiceAccount"))
    assert (done.status, done.err) == (0, "")
    path = folder / "state" / "namespaces" / "default"
    assert not (path / "configmaps" / "a.yaml").exists()
    assert (path / "serviceaccounts" / "a.yaml").exists()


def test_later_state_that_is_cut_changes_nothing(printed: str, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    kubepy(folder, "import", "-", stdin=printed)
    before = files(folder)
    cut = printed[: printed.rindex("kind: List") - 10]
    done = run("--state", str(folder), "import", "--into", str(folder), "-", stdin=cut)
    assert done.status == 1
    assert done.err.startswith("error: standard input: ")
    assert files(folder) == before


def test_later_state_with_a_file_that_is_cut_removes_nothing(printed: str, tmp_path: Path) -> None:
    folder, dump = tmp_path / "new", tmp_path / "dump"
    kubepy(folder, "import", "-", stdin=printed)
    before = files(folder)
    dump.mkdir()
    (dump / "cut.yaml").write_text(printed[: len(printed) // 2])
    fresh = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "fresh",
            "namespace": "shop",
            "uid": "new",
            "creationTimestamp": "2026-03-01T10:15:00Z",
        },
    }
    (dump / "fresh.json").write_text(json.dumps(fresh))
    lines = kubepy(folder, "import", "--into", str(folder), str(dump)).out.splitlines()
    assert lines[-2].endswith(": 1 created, 0 changed, 0 removed")
    assert lines[-1] == "nothing is removed: not all of the source could be read"
    assert before.keys() <= files(folder).keys()


def test_earlier_state_is_refused(bare: Kubepy, printed: str) -> None:
    assert bare("import", "-", stdin=printed).status == 0
    assert bare("clock", "advance", "1h").status == 0
    done = bare("import", "--into", "state", "-", stdin=printed)
    assert (done.status, done.err) == (
        1,
        "error: the source is of 2026-03-01T10:14:00Z, and the cluster's time is "
        "2026-03-01T11:14:00Z already\n",
    )


def test_state_of_another_cluster_is_refused(bare: Kubepy, printed: str) -> None:
    assert bare("import", "-", stdin=printed).status == 0
    other = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "kube-system",
            "uid": "other",
            "creationTimestamp": "2026-03-02T00:00:00Z",
        },
    }
    done = bare("import", "--into", "state", "-", stdin=json.dumps(other))
    assert done.status == 1
    assert "is another cluster" in done.err


# --- errors


@pytest.mark.parametrize(
    ("words", "stdin", "message"),
    [
        ("import gone.yaml", "", "error: gone.yaml: there is no such file or folder\n"),
        ("import -", "a: [1", "error: standard input: "),
        ("import -", "", "error: the source holds no objects: standard input: is empty\n"),
        (
            "import -",
            "just text",
            "error: standard input: holds words, and no objects: just text\n",
        ),
        ("import", "", "error: at least one source is required"),
        (
            "import - --secrets=hide",
            "",
            "error: --secrets=hide is invalid: must be replace or keep",
        ),
        ("import - --kinds=pods", "", "error: --kinds goes with --context"),
        ("import - --into=gone", "", 'error: there is no cluster in "gone"\n'),
        ("import etcd://127.0.0.1:1", "", "error: etcd at 127.0.0.1:1 cannot be reached"),
        ("import - --context=a", "", "error: --context is a source by itself"),
        ("import --context=a --kubectl=./gone", "", "error: ./gone: there is no such program\n"),
        ("import --context=a --record=1ms", "", "error: --record is too short"),
    ],
)
def test_source_that_is_none_is_one_line(
    bare: Kubepy, folder: Path, words: str, stdin: str, message: str
) -> None:
    done = bare(*words.split(), stdin=stdin)
    assert done.status == 1
    assert done.err.startswith(message)
    assert done.out == ""
    assert os.listdir(folder) == []


def test_place_with_a_cluster_is_refused(kubepy: Kubepy, printed: str) -> None:
    done = kubepy("import", "-", stdin=printed)
    assert (done.status, done.err) == (1, 'error: there is a cluster in "state" already\n')


def test_place_with_other_files_is_refused(bare: Kubepy, folder: Path, printed: str) -> None:
    (folder / "state").mkdir()
    (folder / "state" / "notes").write_text("mine")
    done = bare("import", "-", stdin=printed)
    assert (done.status, done.err) == (1, 'error: "state" is not empty\n')


def test_import_that_is_ended_leaves_nothing(tmp_path: Path, printed: str) -> None:
    source = tmp_path / "source.yaml"
    source.write_text(printed)
    place = tmp_path / "place"
    place.mkdir()
    command = [sys.executable, "-m", "kubepy", "--state", "new", "import", str(source)]
    for delay in (0.3, 0.6, 0.9):
        process = subprocess.Popen(
            command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(delay)
        process.send_signal(signal.SIGTERM)
        status = process.wait(30)
        names = os.listdir(place)
        assert names == ([] if status else ["new"])
        if not status:
            break


@pytest.mark.parametrize("end", [KeyboardInterrupt, SilentExit])
def test_import_that_is_interrupted_says_that_nothing_is_made(
    bare: Kubepy,
    folder: Path,
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    end: type[BaseException],
) -> None:
    def interrupt(*_: object) -> None:
        raise end

    monkeypatch.setattr("kubepy.cli.importing.make_cluster", interrupt)
    done = bare("import", "-", stdin=printed)
    assert done.status == (130 if end is KeyboardInterrupt else 1)
    assert (done.out, done.err) == ("", "interrupted: nothing was made or changed\n")
    assert os.listdir(folder) == []


def test_leftover_of_a_killed_import_is_removed(bare: Kubepy, folder: Path, printed: str) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    (folder / f".state.import-{ended.pid}").mkdir()
    for kept in (f".state.import-{os.getppid()}", ".state.import-²", ".state.import-mine"):
        (folder / kept).mkdir()
    assert bare("import", "-", stdin=printed).status == 0
    names = os.listdir(folder)
    assert f".state.import-{ended.pid}" not in names
    assert {f".state.import-{os.getppid()}", ".state.import-²", ".state.import-mine"} <= {*names}


def test_unreadable_and_refused_parts_are_listed(bare: Kubepy, folder: Path) -> None:
    source = folder / "source"
    source.mkdir()
    (source / "bad.yaml").write_text("a: [1")
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "u"}}
    (source / "good.json").write_text(json.dumps([config_map | {"colour": 1}]))
    (source / "thing.yaml").write_text(
        "{apiVersion: example.org/v1, kind: Thing, metadata: {name: t}}"
    )
    done = bare("import", "source")
    lines = done.out.splitlines()
    assert lines[0] == "1 object of 1 kind imported"
    assert "  Thing.example.org 1: the source holds no definition of this kind (t)" in lines
    assert "  ConfigMap colour: 1 object" in lines
    assert any(line.startswith("  source/bad.yaml: ") for line in lines)


def test_archive_is_read_from_standard_input(world: Path, tmp_path: Path) -> None:
    dump = dump_of(world, tmp_path / "dump")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(dump, "dump")
    command = [sys.executable, "-m", "kubepy", "--state", str(tmp_path / "new"), "import", "-"]
    done = subprocess.run(command, input=packed.getvalue(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (
        "deployment.apps/web" in kubepy(tmp_path / "new", "get", "deploy", "-A", "-o", "name").out
    )
