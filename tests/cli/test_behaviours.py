"""``kubepy why pod/NAME --behaviour``, and how commands take up rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubepy import Cluster
from tests.cli.conftest import Kubepy, set_kubelet

MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {kubepy.dev/ready-after: 5s}}
spec:
  initContainers:
  - {name: wait, image: busybox, command: [sh, -c, "sleep 3"]}
  containers:
  - name: main
    image: nginx:1.27
    env: [{name: COLOUR, value: red}]
    livenessProbe: {httpGet: {path: /healthz, port: 80}}
    lifecycle: {preStop: {exec: {command: [sleep, "5"]}}}
  - {name: side, image: "shop:1"}
"""
RULES = """
- match: {container: main}
  http: {/healthz: 200}
  exec: {"psql *": "1"}
"""


@pytest.fixture
def web(kubepy: Kubepy, folder: Path) -> Kubepy:
    """A function that runs a command in a cluster with rules and a pod."""
    (folder / "pod.yaml").write_text(MANIFEST)
    (folder / "state" / "rules.yaml").write_text(RULES)
    set_kubelet(folder, "{containers: modelled, rules: rules.yaml}")
    assert kubepy("apply", "-f", "pod.yaml").status == 0
    return kubepy


def test_behaviour_names_rule_annotation_image_and_part_of_the_manifest(web: Kubepy) -> None:
    assert web("why", "pod/web", "--behaviour").out == (
        "pod/web\n"
        "  container wait (busybox)\n"
        "    command: sh -c 'sleep 3'\n"
        "      spec.initContainers[0].command\n"
        "    readyAfter: 5s\n"
        "      annotation kubepy.dev/ready-after of the pod\n"
        "  container main (nginx:1.27)\n"
        "    args: nginx -g 'daemon off;'\n"
        "      well-known image docker.io/library/nginx (https://github.com/docker-library/docs/blob/master/nginx/README.md)\n"
        "    env: COLOUR\n"
        "      spec.containers[0].env\n"
        '    livenessProbe: httpGet {"path":"/healthz","port":80,"scheme":"HTTP"}\n'
        "      spec.containers[0].livenessProbe\n"
        '    lifecycle: preStop: exec {"command":["sleep","5"]}\n'
        "      spec.containers[0].lifecycle\n"
        "    readyAfter: 5s\n"
        "      annotation kubepy.dev/ready-after of the pod\n"
        "    http: /healthz\n"
        "      rule rules.yaml[0]\n"
        "    exec: psql *\n"
        "      rule rules.yaml[0]\n"
        "    listens: 80\n"
        "      well-known image docker.io/library/nginx (https://github.com/docker-library/docs/blob/master/nginx/README.md)\n"
        "    files: /etc/nginx/nginx.conf, /usr/share/nginx/html/index.html\n"
        "      well-known image docker.io/library/nginx (https://github.com/docker-library/docs/blob/master/nginx/README.md)\n"
        "  container side (shop:1)\n"
        "    readyAfter: 5s\n"
        "      annotation kubepy.dev/ready-after of the pod\n"
        '  container "side": the image "shop:1" is not known: it runs until it is stopped\n'
    )


def test_behaviour_is_a_document_for_programs(web: Kubepy) -> None:
    answer = json.loads(web("why", "pod/web", "--behaviour", "-o", "json").out)
    assert answer["kind"] == "Behaviour"
    assert answer["containers"] == "modelled"
    assert [item["isKnown"] for item in answer["items"]] == [True, True, False]
    sources = {entry["field"]: entry["source"] for entry in answer["items"][1]["fields"]}
    assert sources["http"] == "rule rules.yaml[0]"
    assert len(answer["notes"]) == 1
    many = json.loads(web("why", "pods", "--all-namespaces", "--behaviour", "-o", "json").out)
    assert [entry["object"]["name"] for entry in many["items"]] == ["web"]


def test_behaviour_of_simple_containers_says_that_they_run(kubepy: Kubepy, folder: Path) -> None:
    set_kubelet(folder, "{containers: simple}")
    kubepy("run", "web", "--image=nginx")
    lines = kubepy("why", "pod/web", "--behaviour").out.splitlines()
    assert lines[1].startswith("  containers are simple (kubepy.yaml: kubelet.containers)")


def test_behaviour_is_about_pods_only(kubepy: Kubepy) -> None:
    kubepy("create", "deployment", "web", "--image=nginx")
    result = kubepy("why", "deployment/web", "--behaviour")
    assert result.status == 1
    assert result.err == 'error: --behaviour is about pods, not "deployments.apps"\n'


def test_annotation_that_cannot_be_read_is_named(kubepy: Kubepy) -> None:
    kubepy("run", "web", "--image=nginx", "--annotations=kubepy.dev/ready-after=soon")
    result = kubepy("why", "pod/web", "--behaviour")
    assert result.status == 1
    assert result.err.startswith('error: pod/web: kubepy.dev/ready-after: "soon": it must be')


def test_open_cluster_takes_up_a_changed_file_of_rules(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    path = folder / "rules.yaml"
    path.write_text("- {match: {image: a}, exitCode: 1}\n")
    with Cluster.create(folder, settings={"kubelet": {"rules": "rules.yaml"}}) as cluster:
        path.write_text("- {match: {image: a}, exitCode: 222}\n")
        with cluster._open() as local:
            rules: Any = local.settings.kubelet.rules
            assert rules.rules[0].values["exit_code"] == 222
