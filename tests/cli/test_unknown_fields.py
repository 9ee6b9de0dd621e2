"""Fields that a kind does not have, in an edited file: a typo must not change the object, nor
vanish from the file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Kubepy

WEB = "namespaces/default/deployments.apps/web.yaml"
COUNTS = "counts as it last was"
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
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, maximum: 5}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
            x-kubernetes-validations: [{rule: "!has(oldSelf.size) || self.size >= oldSelf.size", message: only more}]
          status: {type: object, properties: {done: {type: boolean}}}
"""  # noqa: E501
WIDGET = """apiVersion: example.com/v1
kind: Widget
metadata:
  name: NAME
spec:
  size: 3
  free: {any: {thing: 1}}
"""


@pytest.fixture
def web(kubepy: Kubepy, folder: Path) -> Path:
    """The file of a Deployment with three replicas, rolled out."""
    kubepy("create", "deployment", "web", "--image=web:1", "--replicas=3")
    kubepy("controller", "--once", "-q")
    return folder / "state" / WEB


def replace(path: Path, old: str, new: str) -> int:
    """Edit a file; return the line of the edit."""
    text = path.read_text()
    assert text.count(old) == 1, text
    path.write_text(text.replace(old, new))
    return text[: text.index(old)].count("\n") + 1


def replicas(kubepy: Kubepy) -> str:
    return kubepy("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}").out


def test_typo_in_edited_file_changes_neither_object_nor_file(kubepy: Kubepy, web: Path) -> None:
    line = replace(
        web, "replicas: 3\n  revisionHistoryLimit", "replicaz: 4\n  revisionHistoryLimit"
    )
    text = web.read_text()
    place = f'{WEB}:{line}: unknown field "spec.replicaz"'

    got = kubepy("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}")
    assert (got.out, got.err) == ("3", f"Warning: state/{place}: the object {COUNTS}\n")
    settled = kubepy("controller", "--once")
    assert settled.out == ""
    assert settled.err.count(COUNTS) == 1
    found = kubepy("fsck")
    assert (found.status, found.out, found.err) == (1, f"{place}\n", "")
    scaled = kubepy("scale", "deploy", "web", "--replicas=2")
    assert scaled.status == 1
    assert place in scaled.err
    assert web.read_text() == text
    assert len(kubepy("get", "pods", "-o", "name").out.split()) == 3

    web.write_text(text.replace("replicaz", "replicas"))
    assert replicas(kubepy) == "4"
    assert kubepy("fsck").status == 0


def test_several_typos_are_named_together(kubepy: Kubepy, web: Path) -> None:
    first = (
        replace(
            web,
            "  template:\n    metadata:\n",
            "  template:\n    metadata:\n      lables: {a: b}\n",
        )
        + 2
    )
    replace(web, "      - image: web:1\n", "      - image: web:1\n        imagePulPolicy: Always\n")
    assert kubepy("fsck").out == (
        f'{WEB}:{first}: unknown field "spec.template.metadata.lables", '
        'unknown field "spec.template.spec.containers[0].imagePulPolicy"\n'
    )


def test_typo_in_clone_leaves_object_out_and_its_pods_alone(
    kubepy: Kubepy, folder: Path, web: Path
) -> None:
    replace(web, "replicas: 3\n  revisionHistoryLimit", "replicaz: 4\n  revisionHistoryLimit")
    shutil.rmtree(folder / "state/.kubepy")
    got = kubepy("get", "deploy")
    assert "No resources found" in got.err
    assert 'unknown field "spec.replicaz": this file is left out' in got.err
    kubepy("controller", "--once", "-q")
    assert len(kubepy("get", "pods", "-o", "name").out.split()) == 3
    replace(web, "replicaz: 4", "replicas: 4")
    assert replicas(kubepy) == "4"


def test_typo_in_manifest_leaves_it_out(kubepy: Kubepy, folder: Path) -> None:
    path = folder / "state/namespaces/default/configmaps/a.yaml"
    kubepy("create", "configmap", "b")
    path.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndatas:\n  a: b\n")
    got = kubepy("get", "configmaps", "-o", "name")
    assert (got.out, got.err) == (
        "configmap/b\n",
        f"Warning: state/{path.relative_to(folder / 'state')}:5: "
        'unknown field "datas": this file is left out\n',
    )


def test_unknown_field_that_earlier_version_took_in_is_told_and_repaired_by_nobody(
    kubepy: Kubepy, folder: Path, web: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index of an earlier version has the object, and its file has not changed since."""
    with monkeypatch.context() as patch:
        patch.setattr("kubepy.apiserver.requests.unknown_fields.refuse", lambda fields: None)
        line = (
            replace(
                web,
                "replicas: 3\n  revisionHistoryLimit",
                "replicas: 3\n  foo: 4\n  revisionHistoryLimit",
            )
            + 1
        )
        assert replicas(kubepy) == "3"
    told = f'{WEB}:{line}: unknown field "spec.foo"\n'
    assert kubepy("fsck").out == told
    repaired = kubepy("fsck", "--repair")
    assert "rebuilt" not in repaired.out
    assert replicas(kubepy) == "3"
    assert "foo: 4" in web.read_text()


# --- what is no typo ---


FORMER = {
    "metadata.clusterName": (WEB, "metadata:\n", "metadata:\n  clusterName: x\n"),
    "resizeStatus of a claim template": (
        "namespaces/default/statefulsets.apps/db.yaml",
        "      status:\n",
        "      status:\n        resizeStatus: x\n",
    ),
    "topologyKeys of a Service": (
        "namespaces/default/services/front.yaml",
        "spec:\n",
        "spec:\n  topologyKeys: [x]\n",
    ),
}
OTHERS = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "app:1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {ports: [{port: 80}]}
"""


@pytest.mark.usefixtures("web")
@pytest.mark.parametrize(("path", "old", "new"), FORMER.values(), ids=FORMER)
def test_field_of_earlier_kubernetes_is_no_problem(
    kubepy: Kubepy, folder: Path, path: str, old: str, new: str
) -> None:
    kubepy("apply", "-f", "-", stdin=OTHERS)
    file = folder / "state" / path
    file.write_text(file.read_text().replace(old, new, 1))
    assert kubepy("fsck").out == "state: no problems\n"
    shutil.rmtree(folder / "state/.kubepy")
    assert kubepy("fsck").out == "state: no problems\n"


def test_unknown_field_of_status_is_warned_of_once_and_left_out(
    kubepy: Kubepy, folder: Path, web: Path
) -> None:
    replace(web, "status:\n", "status:\n  newField: 1\n")
    first, second = kubepy("get", "deploy", "web"), kubepy("get", "deploy", "web")
    assert first.err == f'Warning: state/{WEB}: unknown field "status.newField": left out\n'
    assert second.err == ""
    shutil.rmtree(folder / "state/.kubepy")
    assert kubepy("get", "deploy", "web").err == ""
    assert kubepy("fsck").status == 0


# --- custom resources ---


@pytest.fixture
def widgets(kubepy: Kubepy, folder: Path) -> Path:
    """The folder of custom resources, with one that was made from a file and written by kubepy
    since."""
    kubepy("apply", "-f", "-", stdin=DEFINITION)
    place = folder / "state/namespaces/default/widgets.example.com"
    place.mkdir(parents=True)
    (place / "a.yaml").write_text(WIDGET.replace("NAME", "a"))
    assert kubepy("annotate", "widget", "a", "x=y").err == ""
    return place


PLACE = "namespaces/default/widgets.example.com"
WIDGET_EDITS = {
    "a typo": ("  size: 3", "  sice: 3", 'unknown field "spec.sice"'),
    "a value beyond its bounds": (
        "size: 3",
        "size: 7",
        "spec.size: Invalid value: 7: spec.size in body should be less than or equal to 5",
    ),
    "another type": (
        "size: 3",
        "size: three",
        'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
    ),
    "what a rule refuses": ("size: 3", "size: 2", "only more"),
    "another kind": (
        "kind: Widget",
        "kind: Gadget",
        "a Gadget is not of the kind of its folder, Widget.example.com",
    ),
    "a version that there is not": (
        "example.com/v1\n",
        "example.com/v2\n",
        "example.com/v2 is not a version of widgets.example.com, which has example.com/v1",
    ),
}


@pytest.mark.parametrize(("old", "new", "words"), WIDGET_EDITS.values(), ids=WIDGET_EDITS)
def test_custom_resource_is_checked_by_its_schema(
    kubepy: Kubepy, widgets: Path, old: str, new: str, words: str
) -> None:
    line = replace(widgets / "a.yaml", old, new)
    found = kubepy("fsck")
    assert found.status == 1
    assert found.out.startswith(f"{PLACE}/a.yaml:{line}: ") or "kind" in words or "version" in words
    assert words in found.out
    if "Gadget" not in words and "v2" not in words:
        assert kubepy("get", "widget", "a", "-o", "jsonpath={.spec.size}").out == "3"


def test_new_custom_resource_is_checked_by_its_schema(kubepy: Kubepy, widgets: Path) -> None:
    (widgets / "b.yaml").write_text(WIDGET.replace("NAME", "b").replace("size", "sice"))
    (widgets / "c.yaml").write_text(WIDGET.replace("NAME", "c").replace("3", "7"))
    (widgets / "d.yaml").write_text(WIDGET.replace("NAME", "d"))
    assert kubepy("get", "widgets", "-o", "name").out.split() == [
        "widget.example.com/a",
        "widget.example.com/d",
    ]
    problems = [line.split(": ")[0] for line in kubepy("fsck").out.splitlines()]
    assert problems == [f"{PLACE}/b.yaml:6", f"{PLACE}/c.yaml:6"]


def test_custom_resource_with_fields_of_earlier_schema_stays_and_can_be_edited(
    kubepy: Kubepy, folder: Path, widgets: Path
) -> None:
    """A definition may lose a field that stored objects have; neither a clone nor an edit of others
    makes it a typo."""
    kubepy(
        "apply",
        "-f",
        "-",
        stdin=DEFINITION.replace("free:", "more: {type: string}\n              freer:"),
    )
    shutil.rmtree(folder / "state/.kubepy")
    assert kubepy("fsck").out == "state: no problems\n"
    replace(widgets / "a.yaml", "size: 3", "size: 4")
    got = kubepy("get", "widget", "a", "-o", "jsonpath={.spec.size}")
    assert (got.out, got.err) == ("4", "")


def test_custom_resource_in_clone_beside_its_definition_is_checked_as_manifest(
    kubepy: Kubepy, folder: Path, widgets: Path
) -> None:
    (widgets / "a.yaml").unlink()
    (widgets / "b.yaml").write_text(WIDGET.replace("NAME", "b").replace("size", "sice"))
    shutil.rmtree(folder / "state/.kubepy")
    assert kubepy("fsck").out == f'{PLACE}/b.yaml:6: unknown field "spec.sice"\n'


def test_custom_resource_beside_definition_with_typo_is_checked_by_last_definition(
    kubepy: Kubepy, folder: Path, widgets: Path
) -> None:
    definition = folder / "state/cluster/customresourcedefinitions.apiextensions.k8s.io"
    replace(definition / "widgets.example.com.yaml", "\nspec:\n", "\nspce: {}\nspec:\n")
    line = replace(widgets / "a.yaml", "size: 3", "sice: 3")
    assert kubepy("get", "widget", "a", "-o", "jsonpath={.spec.size}").out == "3"
    assert f'{PLACE}/a.yaml:{line}: unknown field "spec.sice"\n' in kubepy("fsck").out


# --- Services and definitions ---


def test_new_service_is_checked_like_its_creation(kubepy: Kubepy, folder: Path) -> None:
    place = folder / "state/namespaces/default/services"
    kubepy("create", "service", "nodeport", "taken", "--tcp=80", "--node-port=30080")
    manifest = (
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: NAME\n"
        "spec:\n  type: NodePort\n  ports:\n  - port: 80\n"
    )
    for name, more in {
        "good": "",
        "port": "    nodePort: 30080\n",
        "range": "    nodePort: 80\n",
        "typo": "    nodeport: 30081\n",
        "address": "  clusterIP: 1.2.3.4\n",
    }.items():
        (place / f"{name}.yaml").write_text(manifest.replace("NAME", name) + more)
    lines = dict(line.split(": ", 1) for line in kubepy("fsck").out.splitlines())
    here = "namespaces/default/services"
    assert lines == {
        f"{here}/address.yaml:5": 'spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to '
        "allocate IP 1.2.3.4: the "
        "provided network does not match the current range",
        f"{here}/port.yaml:9": "spec.ports[0].nodePort: Invalid value: 30080: provided port is "
        "already allocated",
        f"{here}/range.yaml:9": "spec.ports[0].nodePort: Invalid value: 80: provided port is not "
        "in the valid range. "
        "The range of valid ports is 30000-32767",
        f"{here}/typo.yaml:9": 'unknown field "spec.ports[0].nodeport"',
    }


def test_node_port_of_another_service_in_edited_service_is_refused(
    kubepy: Kubepy, folder: Path
) -> None:
    kubepy("create", "service", "nodeport", "taken", "--tcp=80", "--node-port=30080")
    kubepy("create", "service", "nodeport", "other", "--tcp=80", "--node-port=30081")
    path = folder / "state/namespaces/default/services/other.yaml"
    line = replace(path, "30081", "30080")
    assert kubepy("fsck").out == (
        f"namespaces/default/services/other.yaml:{line}: spec.ports[0].nodePort: Invalid "
        "value: 30080: provided port is already allocated\n"
    )


def test_new_definition_is_checked_like_its_creation(kubepy: Kubepy, folder: Path) -> None:
    kubepy("create", "configmap", "a")
    place = folder / "state/cluster/customresourcedefinitions.apiextensions.k8s.io"
    place.mkdir(parents=True)
    (place / "widgets.example.com.yaml").write_text(
        DEFINITION.lstrip().replace("type: integer", "type: number of")
    )
    found = kubepy("fsck")
    assert found.status == 1
    assert 'Unsupported value: "number of"' in found.out
