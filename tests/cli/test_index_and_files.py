"""Random work of commands, controllers and editors on a folder: files and index always agree."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kubepy.storage.yaml import dump, load_all
from tests.cli.conftest import Kubepy

POD = "{restartPolicy: Never, containers: [{name: c, image: busybox}]}"
MANIFESTS = {
    "job/plain": f"{{apiVersion: batch/v1, kind: Job, metadata: {{name: plain}}, spec: "
    f"{{template: {{spec: {POD}}}}}}}",
    "job/managed": "{apiVersion: batch/v1, kind: Job, metadata: {name: managed}, spec: "
    "{managedBy: example.org/queue, "
    f"completions: 3, completionMode: Indexed, template: {{spec: {POD}}}}}}}",
    "cronjob/often": "{apiVersion: batch/v1, kind: CronJob, metadata: {name: often}, spec: "
    "{schedule: '* * * * *', "
    f"jobTemplate: {{spec: {{template: {{spec: {POD}}}}}}}}}}}",
    "deploy/web": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: "
    "{replicas: 2, selector: "
    "{matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: "
    "[{name: c, image: nginx}]}}}}",
    "sts/db": "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 2, "
    "selector: "
    "{matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: "
    "[{name: c, image: pg}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: "
    "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}",
    "svc/front": "{apiVersion: v1, kind: Service, metadata: {name: front}, spec: {type: NodePort, "
    "ports: [{port: 80}]}}",
    "secret/key": "{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {a: 'b: c'}}",
}
Act = Callable[[Kubepy, Random, Path], object]


def apply(kubepy: Kubepy, chance: Random, _: Path) -> None:
    flags = chance.choice(
        [[], ["--server-side"], ["--server-side", "--field-manager=other", "--force-conflicts"]]
    )
    kubepy("apply", "-f", "-", *flags, stdin=MANIFESTS[chance.choice(list(MANIFESTS))])


def change(kubepy: Kubepy, chance: Random, _: Path) -> None:
    name = chance.choice(list(MANIFESTS))
    words = chance.choice(
        [
            ["annotate", name, f"example.org/n={chance.random()}", "--overwrite"],
            ["label", name, "tier=front", "--overwrite"],
            ["label", name, "tier-"],
            [
                "patch",
                name,
                "--type=merge",
                "-p",
                '{"metadata":{"finalizers":["example.org/keep"]}}',
            ],
            ["patch", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}'],
            ["patch", name, "--type=merge", "-p", '{"spec":{"suspend":true,"replicas":3}}'],
            [
                "patch",
                name,
                "--subresource=status",
                "--type=merge",
                "-p",
                '{"status":{"active":1,"ready":1}}',
            ],
            ["set", "image", name, "c=other:1"],
            ["scale", name, "--replicas=1"],
            ["rollout", "restart", name],
            ["delete", name, "--wait=false"],
            ["delete", name, "--wait=false", "--cascade=orphan"],
            ["replace", "--force", "--timeout=1s", "-f", "-"],
        ]
    )
    kubepy(*words, stdin=MANIFESTS[name])


def reconcile(kubepy: Kubepy, _: Random, __: Path) -> None:
    assert kubepy("controller", "--once", "-q").status == 0


def edit(_: Kubepy, chance: Random, folder: Path) -> None:
    """Remove the fields that the API fills in, add an annotation, write the same again, or remove
    the file."""
    paths = sorted(
        path for path in folder.glob("state/*/**/*.yaml") if path.parent.name != ".managed"
    )
    path = chance.choice(paths)
    obj = load_all(path.read_text())[0].object
    match chance.choice(["drop", "annotate", "touch", "remove"]):
        case "drop":
            obj["metadata"].pop(chance.choice(["uid", "creationTimestamp", "generation"]), None)
        case "annotate":
            obj["metadata"].setdefault("annotations", {})["by"] = f"hand {chance.random()}"
        case "remove":
            path.unlink()
            return
    path.write_text(dump(obj))


def lose_index(_: Kubepy, __: Random, folder: Path) -> None:
    shutil.rmtree(folder / "state/.kubepy")


ACTS: list[tuple[Act, int]] = [(apply, 6), (change, 10), (reconcile, 4), (edit, 4), (lose_index, 1)]


@pytest.mark.parametrize("seed", range(6))
def test_files_and_index_hold_same_whatever_is_done(bare: Kubepy, folder: Path, seed: int) -> None:
    bare("init", "--nodes=2")
    chance = Random(seed)
    acts, weights = zip(*ACTS, strict=True)
    for _ in range(25):
        act: Act = chance.choices(acts, weights)[0]
        act(bare, chance, folder)
        assert bare("fsck").out == "state: no problems\n", act.__name__
