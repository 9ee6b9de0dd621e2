"""Edits that no update could make: the file is a problem with its line, and the object keeps its
last valid content."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubepy.controlplane.open import open_cluster
from kubepy.storage.folder.store import FolderStore
from tests.cli.conftest import Kubepy
from tests.stores import changes

MANIFESTS = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ds}
spec:
  selector: {matchLabels: {app: ds}}
  template:
    metadata: {labels: {app: ds}}
    spec: {containers: [{name: c, image: "app:1"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "app:1"}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "app:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "app:1"}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: pod}
spec: {containers: [{name: c, image: "app:1", command: [sleep]}]}
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed}
immutable: true
data: {a: b}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: who}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
"""

# The file, the old and new text of the edit, the line blamed (a text in it), and a part of the
# message.
EDITS = {
    "a string for a number": (
        "deployments.apps/web",
        "  replicas: 1\n  revision",
        '  replicas: "1"\n  revision',
        'replicas: "1"',
        "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    "a map for a list": (
        "daemonsets.apps/ds",
        "      - image:",
        "        image:",
        "containers:",
        "cannot unmarshal object",
    ),
    "selector of a DaemonSet": (
        "daemonsets.apps/ds",
        "      app: ds\n  template",
        "      app: other\n  template",
        "selector:",
        'spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: field is immutable',
    ),
    "selector of a Deployment": (
        "deployments.apps/web",
        "      app: web\n  strategy",
        "      app: other\n  strategy",
        "selector:",
        "field is immutable",
    ),
    "claim template": (
        "statefulsets.apps/db",
        "storage: 1Gi",
        "storage: 2Gi",
        "storage: 2Gi",
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', ",
    ),
    "template of a Job": (
        "jobs.batch/job",
        "- image: app:1",
        "- image: app:2",
        "template:",
        "field is immutable",
    ),
    "command of a Pod": (
        "pods/pod",
        "- sleep",
        "- wake",
        "- wake",
        "pod updates may not change fields other than",
    ),
    "address of a Service": (
        "services/front",
        "clusterIP: 10.",
        "clusterIP: 11.",
        "  - 10.",
        "may not change once set",
    ),
    "data of an immutable ConfigMap": (
        "configmaps/fixed",
        "a: b",
        "a: c",
        "data:",
        "data: Forbidden: field is immutable when `immutable` is set",
    ),
    "role of a binding": (
        "rolebindings.rbac.authorization.k8s.io/who",
        "name: reader",
        "name: writer",
        "roleRef:",
        "cannot change roleRef",
    ),
    "number that is out of range": (
        "deployments.apps/web",
        "replicas: 1\n  revision",
        "replicas: -1\n  revision",
        "replicas: -1",
        "spec.replicas: Invalid value: -1: must be greater than or equal",
    ),
    "label that is none": (
        "configmaps/fixed",
        "  name: fixed",
        "  labels:\n    a: a b\n  name: fixed",
        "labels:",
        "metadata.labels: Invalid value",
    ),
}


def names(kubepy: Kubepy, place: str) -> str:
    return kubepy("get", place.partition("/")[0], "-o", "name").out


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_refused_edit_is_named_with_its_line_and_changes_nothing(
    kubepy: Kubepy, folder: Path, edit: tuple[str, str, str, str, str]
) -> None:
    place, old, new, blamed, words = edit
    assert kubepy("apply", "-f", "-", stdin=MANIFESTS).status == 0
    kubepy("controller", "--once", "-q")
    path = f"namespaces/default/{place}.yaml"
    file = folder / "state" / path
    sound, before, listed = (
        file.read_text(),
        kubepy("get", place, "-o", "yaml").out,
        names(kubepy, place),
    )
    assert sound.count(old) == 1, sound
    file.write_text(sound.replace(old, new))
    broken = file.read_text()
    line = next(number for number, text in enumerate(broken.splitlines(), 1) if blamed in text)

    found = kubepy("fsck")
    assert found.status == 1
    assert found.out.startswith(f"{path}:{line}: ")
    assert words in found.out
    assert found.out.count("\n") == 1
    got = kubepy("get", place, "-o", "yaml")
    assert got.out == before
    warning = f"Warning: state/{found.out.rstrip()}: the object counts as it last was\n"
    assert got.err == warning
    assert kubepy("get", place.partition("/")[0]).err == warning
    assert names(kubepy, place) == listed
    written = kubepy(
        "annotate", place.replace("/", " ").split()[0], place.rpartition("/")[2], "a=b"
    )
    assert written.status == 1
    assert f"{path}:{line}: " in written.err
    kubepy("controller", "--once", "-q")
    assert file.read_text() == broken

    file.write_text(sound)
    assert kubepy("fsck").out == "state: no problems\n"
    again = kubepy("get", place, "-o", "yaml")
    assert (again.out, again.err) == (before, "")


def test_controllers_go_on_with_object_whose_file_is_refused(bare: Kubepy, folder: Path) -> None:
    kubepy = bare
    kubepy("init", "--nodes=1")
    kubepy("create", "deployment", "web", "--image=app:1", "--replicas=2")
    kubepy("controller", "--once", "-q")
    file = folder / "state/namespaces/default/deployments.apps/web.yaml"
    file.write_text(
        file.read_text()
        .replace("image: app:1", "image: app:2")
        .replace("replicas: 2", "replicas: -2", 1)
    )
    kubepy("delete", "pods", "--all")
    kubepy("controller", "--once", "-q")
    images = kubepy("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}").out
    assert images == "app:1 app:1"
    file.write_text(file.read_text().replace("replicas: -2", "replicas: 3"))
    kubepy("controller", "--once", "-q")
    images = kubepy("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}").out
    assert images == "app:2 app:2 app:2"
    assert kubepy("fsck").out == "state: no problems\n"


def test_refused_file_that_is_removed_is_deletion(kubepy: Kubepy, folder: Path) -> None:
    kubepy("create", "deployment", "web", "--image=app:1")
    file = folder / "state/namespaces/default/deployments.apps/web.yaml"
    file.write_text(file.read_text().replace("replicas: 1", "replicas: -1"))
    assert kubepy("fsck").status == 1
    file.unlink()
    assert kubepy("get", "deploy").err == "No resources found in default namespace.\n"
    assert kubepy("fsck").out == "state: no problems\n"


def test_refused_file_of_another_uid_is_another_object(kubepy: Kubepy, folder: Path) -> None:
    kubepy("create", "deployment", "web", "--image=app:1")
    file = folder / "state/namespaces/default/deployments.apps/web.yaml"
    text = file.read_text().replace("app: web", "app: other")
    lines = [
        "  uid: 11111111-1111-4111-8111-111111111111" if line.startswith("  uid: ") else line
        for line in text.splitlines()
    ]
    file.write_text("\n".join(lines) + "\n")
    assert kubepy("fsck").out == "state: no problems\n"
    assert (
        kubepy("get", "deploy", "web", "-o", "jsonpath={.spec.selector.matchLabels.app}").out
        == "other"
    )


NEW_FILES = {
    "selector that does not match": (
        "deployments.apps/bad",
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: bad},\n"
        "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}},\n"
        "spec: {containers: [{name: c, image: i}]}}}}",
        2,
        "`selector` does not match",
    ),
    "empty spec": (
        "deployments.apps/bad",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bad}\nspec: {}\n",
        4,
        "spec.selector: Required value",
    ),
    "key that is none": (
        "configmaps/bad",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata:\n  k y: v\n",
        5,
        "a valid config key must consist of",
    ),
}


@pytest.mark.parametrize("case", NEW_FILES.values(), ids=NEW_FILES)
def test_new_manifest_that_could_not_be_created_is_problem_with_its_line(
    kubepy: Kubepy, folder: Path, case: tuple[str, str, int, str]
) -> None:
    place, text, line, words = case
    path = folder / f"state/namespaces/default/{place}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    done = kubepy("fsck")
    assert done.status == 1
    assert f"namespaces/default/{place}.yaml:{line}: " in done.out
    assert words in done.out
    assert kubepy("controller", "--once", "-q").status == 0
    assert kubepy("get", place.partition("/")[0]).out == ""
    path.unlink()
    assert kubepy("fsck").status == 0


def test_service_in_new_manifest_is_taken_as_it_is(kubepy: Kubepy, folder: Path) -> None:
    path = folder / "state/namespaces/default/services/front.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "apiVersion: v1\nkind: Service\nmetadata: {name: front}\nspec: {ports: [{port: 80}]}\n"
    )
    assert kubepy("fsck").status == 0
    assert "front" in kubepy("get", "svc").out


DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
"""
WIDER_DEFINITION = DEFINITION.replace("{size: {", "{colour: {type: string}, size: {")
WIDGET = """
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 1}
"""


@pytest.mark.parametrize("way", ["command", "file"])
def test_refused_custom_resource_is_read_again_when_its_definition_changes(
    bare: Kubepy, folder: Path, way: str
) -> None:
    kubepy = bare
    kubepy("init", "--nodes=1")
    assert kubepy("apply", "-f", "-", stdin=DEFINITION).status == 0
    assert kubepy("apply", "-f", "-", stdin=WIDGET).status == 0
    file = folder / "state/namespaces/default/widgets.example.com/w.yaml"
    file.write_text(file.read_text().replace("size: 1", "size: 1\n  colour: red"))
    assert "unknown field" in kubepy("get", "nodes").err + kubepy("get", "widgets").err

    if way == "command":
        assert kubepy("apply", "-f", "-", stdin=WIDER_DEFINITION).status == 0
    else:
        name = "customresourcedefinitions.apiextensions.k8s.io/widgets.example.com.yaml"
        definition = folder / "state/cluster" / name
        narrow = "              size:\n"
        text = definition.read_text()
        assert narrow in text
        wide = f"              colour:\n                type: string\n{narrow}"
        definition.write_text(text.replace(narrow, wide))
        kubepy("get", "crds")
    done = kubepy("get", "widget", "w", "-o", "jsonpath={.spec.colour}")
    assert (done.out, done.err) == ("red", "")
    assert kubepy("fsck").out == "state: no problems\n"


@pytest.mark.parametrize("way", ["command", "file"])
def test_refused_service_is_read_again_when_the_other_one_changes(
    bare: Kubepy, folder: Path, way: str
) -> None:
    kubepy = bare
    kubepy("init", "--nodes=1")
    for name, port in (("a", 30001), ("b", 30002)):
        kubepy("create", "service", "nodeport", name, "--tcp=80", f"--node-port={port}")
    services = folder / "state/namespaces/default/services"
    second = services / "b.yaml"
    second.write_text(second.read_text().replace("30002", "30001"))
    assert "provided port is already allocated" in kubepy("get", "services").err

    if way == "command":
        first = kubepy("delete", "service", "a")
        assert first.status == 0
    else:
        (services / "a.yaml").unlink()
        kubepy("get", "services")
    done = kubepy("get", "service", "b", "-o", "jsonpath={.spec.ports[0].nodePort}")
    assert (done.out, done.err) == ("30001", "")
    assert kubepy("fsck").out == "state: no problems\n"


def test_refused_custom_resource_is_read_again_by_process_that_watches_files(
    bare: Kubepy, folder: Path
) -> None:
    kubepy = bare
    kubepy("init", "--nodes=1")
    kubepy("apply", "-f", "-", stdin=DEFINITION)
    kubepy("apply", "-f", "-", stdin=WIDGET)
    file = folder / "state/namespaces/default/widgets.example.com/w.yaml"
    file.write_text(file.read_text().replace("size: 1", "size: 1\n  colour: red"))
    cluster = open_cluster(folder / "state")
    store = cluster.store
    assert isinstance(store, FolderStore)
    store.watch_files()
    store.look()
    assert len(cluster.known_problems()) == 1

    before = store.revision
    kubepy("--reconcile=never", "apply", "-f", "-", stdin=WIDER_DEFINITION)
    changed = [change.key.resource for change in changes(store, before)]
    assert "widgets.example.com" in changed
    assert cluster.known_problems() == {}
    cluster.close()


@pytest.mark.parametrize("clock", [(), ("--clock=2026-01-01T00:00:00Z",)], ids=["system", "own"])
def test_rollout_status_ends_with_problem_of_the_file(
    bare: Kubepy, folder: Path, clock: tuple[str, ...]
) -> None:
    kubepy = bare
    kubepy("init", "--nodes=1", *clock)
    kubepy("create", "deployment", "web", "--image=app:1")
    file = folder / "state/namespaces/default/deployments.apps/web.yaml"
    file.write_text(file.read_text().replace("replicas: 1", "replicaz: 4"))
    done = kubepy("rollout", "status", "deploy/web", "--timeout=20s")
    assert done.status == 1
    assert "error: the rollout of deployment.apps/web cannot go on" in done.err
    assert 'unknown field "spec.replicaz"' in done.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("sound", "broken", "words"),
    [
        ("\nmetadata:\n", "\nmetadat:\n", ':3: unknown field "metadat"'),
        ("  name: web\n", "  nam: web\n", 'unknown field "metadata.nam"'),
        ("  name: web\n", "", "has no metadata.name"),
    ],
    ids=["metadata", "name", "no name"],
)
def test_known_object_whose_file_does_not_name_it_stays(
    kubepy: Kubepy, folder: Path, sound: str, broken: str, words: str
) -> None:
    kubepy("create", "deployment", "web", "--image=app:1")
    file = folder / "state/namespaces/default/deployments.apps/web.yaml"
    text = file.read_text()
    assert sound in text
    file.write_text(text.replace(sound, broken, 1))
    done = kubepy("get", "deployments", "-o", "name")
    assert done.out == "deployment.apps/web\n"
    assert words in done.err
    assert "the object counts as it last was" in done.err
    assert file.read_text() == text.replace(sound, broken, 1)
    file.write_text(text)
    assert kubepy("fsck").status == 0
