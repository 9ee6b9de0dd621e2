"""The examples of ``--help``: as many as kubectl's, and every one of them works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kubepy.cli.commands import COMMANDS
from kubepy.cli.runtime.command import Entry, load, walk
from tests.copies import copy_with_index
from tests.forkserver import ForkServer

REAL = shutil.which("kubectl")
# The number of examples that kubectl v1.36 shows for each command, if there is more than one.
OF_KUBECTL = {
    "create": 3,
    "create clusterrole": 6,
    "create configmap": 5,
    "create cronjob": 2,
    "create deployment": 5,
    "create ingress": 8,
    "create job": 3,
    "create poddisruptionbudget": 4,
    "create priorityclass": 3,
    "create quota": 2,
    "create role": 4,
    "create rolebinding": 2,
    "create secret docker-registry": 2,
    "create secret generic": 5,
    "create service clusterip": 2,
    "create token": 6,
    "expose": 7,
    "run": 9,
    "set env": 12,
    "set image": 4,
    "set resources": 4,
    "set serviceaccount": 2,
    "set subject": 3,
    "explain": 5,
    "get": 14,
    "edit": 5,
    "delete": 10,
    "rollout": 4,
    "rollout history": 2,
    "rollout pause": 3,
    "rollout restart": 4,
    "rollout undo": 3,
    "scale": 5,
    "autoscale": 2,
    "cluster-info dump": 4,
    "top node": 2,
    "top pod": 4,
    "drain": 2,
    "taint": 6,
    "describe": 7,
    "auth can-i": 10,
    "auth whoami": 2,
    "events": 5,
    "diff": 2,
    "apply": 7,
    "apply edit-last-applied": 2,
    "apply set-last-applied": 3,
    "apply view-last-applied": 2,
    "patch": 6,
    "replace": 4,
    "wait": 7,
    "kustomize": 3,
    "label": 7,
    "annotate": 8,
    "completion": 20,
    "api-resources": 6,
    "config get-contexts": 2,
    "config set": 4,
    "config set-cluster": 5,
    "config set-credentials": 12,
    "config unset": 2,
    "config view": 3,
    "plugin": 2,
    "plugin list": 2,
}
WORKING = [
    (name, entry)
    for name, entry in walk(COMMANDS)
    if entry.summary and not entry.summary.startswith("Not supported")
]
# Examples for a terminal, for git to call, or of the whole machine; and commands with tests of
# their examples' kind.
ELSEWHERE = (
    "fuzz",  # tests/fuzz/test_fuzz.py
    "demo",  # tests/demo
    "demo challenge",
    "demo grade",
    "demo hint",
    "demo verify",
    "completion",
    "git",
    "controller",
    "init",
    "fsck",
    "plugin",
    "serve",
    "envtest-assets",  # tests/server/test_envtest.py
    "logs",
    "attach",  # needs a model of containers, as the next ones: tests/cli/test_exec.py …
    "exec",
    "port-forward",
    "import",  # tests/cli/test_import.py
    "mcp",  # tests/cli/test_mcp.py
    "proxy",  # tests/cli/test_proxy.py
    "cp",
    "debug",  # tests/cli/test_debug.py
    "kuberc",
    "top",
    "alpha",
)
SCENE = """
kubepy init --nodes=2
kubepy label node node-1 pool=blue zone=a
kubepy label node node-2 disk=slow
kubepy create ns shop; kubepy create ns edge; kubepy create ns staging; kubepy create ns web
kubepy apply -f web.yaml -f scene.yaml -f old.yaml -f old-things.yaml -f requests.yaml
kubepy apply -k overlays/production
kubepy set image ds/log-agent agent=fluent-bit:3.0
kubepy create cm settings --from-literal=level=info; kubepy create cm settings -n shop --from-literal=a=b
kubepy create cm logging --from-literal=a=b
kubepy create secret generic login --from-literal=user=admin
kubepy create secret generic robot-token --from-literal=a=b
kubepy create sa robot; kubepy create sa robot -n shop
kubepy create clusterrole observer --verb=get --resource=nodes
kubepy create clusterrolebinding observers --clusterrole=observer --user=ada
kubepy create role tuner --verb=get --resource=configmaps
kubepy create rolebinding tuners --role=tuner --user=ada
kubepy expose deploy/web --port=80
kubepy config set-context lab --cluster=lab; kubepy config set-context staging --cluster=lab
kubepy config set-credentials robot --token=secret
kubepy config set-cluster lab --server="$PWD/lab"
kubepy controller --once -q
"""  # noqa: E501
REQUEST = (  # of CN=web
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQlRUQ0J0d0lCQURBT01Rd3dDZ1lEVlFRRERBTjNaV"
    "0l3Z1o4"
    "d0RRWUpLb1pJaHZjTkFRRUJCUUFEZ1kwQQpNSUdKQW9HQkFOcmQ0OVJ1bjdIZE1iaXMzejRaSWJybVBOOGcrWGNydm5DT"
    "U81bGk4"
    "N3YyLzkwWVFFeGptWnVTCjhZUkVKbTI3dGpFdEs0SS9mRXMvZ3hiNlpRbkdrck1ZMVFEaWxoU2wvOTlSNm1ROE1hRXltW"
    "mNnZXlk"
    "UzhaOHAKY2NpYjFWNm8wNXA2VW5xZHhqWVZyOTFld1ZXS0pPSEwvampHZFhlRDB4YnZ3ZUhORTAxekFnTUJBQUdnQURBT"
    "gpCZ2tx"
    "aGtpRzl3MEJBUXNGQUFPQmdRREc5cnRUUzlOLzNOSHg5cXZaYThvbmdzVlNIVDhTVHloMXltQUo5bXVqCmYrQm1PVUF0S"
    "UxiVnYv"
    "cUc5ZHk0Wkp3T3kwbEdER21sNlFldXFjYi9BeEJDTFJLQVJ1cG5SdlZxUnBpV0pJVXMKeXE5MnRHMEpydXpJbjBlVmRwU"
    "k5ZTXdu"
    "c3RCSzVOaWdZNjVzM1ZDZUZzL2pYS3FPSHlkbDgycjJ0cW9LZ2h6SgpZZz09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFU"
    "VVFU1Qt"
    "LS0tLQo="
)


def workload(kind: str, name: str, container: str, extra: str = "") -> str:
    return f"""apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}, labels: {{app: {name}, tier: front}}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  {extra}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: {container}, image: "nginx:1.27", ports: [{{containerPort: 8080}}]}}]}}
---
"""  # noqa: E501


def pod(name: str, labels: str = "{}") -> str:
    return f"""apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {labels}}}
spec: {{containers: [{{name: task, image: nginx}}]}}
---
"""


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Path:
    """A folder with the cluster and the files that the examples speak of."""
    folder = tmp_path_factory.mktemp("scene")
    job = "{template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}"
    files = {
        "web.yaml": workload("Deployment", "web", "web", "replicas: 2"),
        "scene.yaml": workload("DaemonSet", "log-agent", "agent")
        + workload("StatefulSet", "store", "store", "serviceName: store\n  replicas: 2")
        + workload("ReplicaSet", "batch", "batch", "replicas: 1")
        + workload("Deployment", "pair", "nginx")
        .replace("]}\n---", "}, {name: redis, image: redis:7}]}\n---")
        .replace("]}}, {name: redis", "]}, {name: redis")
        + pod("task", "{app: task}")
        + pod("stuck", "{app: canary}")
        + f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: report}}\nspec: {job}\n---\n"
        + "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\n"
        + f"spec: {{schedule: '0 3 * * *', jobTemplate: {{spec: {job}}}}}\n---\n"
        + workload("Deployment", "video", "web")
        + "apiVersion: v1\nkind: Service\nmetadata: {name: video}\n"
        "spec: {ports: [{port: 80}]}\n",
        "old.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old}\n",
        "old-things.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old-things}\n",
        "patch.yaml": "spec: {minReadySeconds: 1}\n",
        "common.env": "LEVEL=info\n",
        "local.env": "COLOUR=red\n",
        "logging.conf": "a\n",
        "site/index.html": "<p>",
        "site/404.html": "<p>",
        "certificates/ca.pem": "x",
        "certificates/web.pem": "x",
        "keys/id_ed25519": "x",
        "keys/id_ed25519.pub": "x",
        "keys/signing.pem": "x",
        "keys/ca.crt": "x",
        "keys/admin.crt": "x",
        "keys/admin.key": "x",
        "keys/new.key": "x",
        "overlays/production/kustomization.yaml": "resources: [shop.yaml]\nnamePrefix: prod-\n",
        "overlays/production/shop.yaml": workload("Deployment", "shop", "shop"),
        "manifests/web.yaml": workload("Deployment", "web", "web", "replicas: 2"),
        "manifests/more/api.yaml": workload("Deployment", "api", "api"),
        "kustomization.yaml": "resources: [old.yaml]\n",
        "svc.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: "
        "80}]}\n",
        "rbac.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
        "metadata: {name: reader, namespace: default}\n"
        "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n",
        "requests.yaml": "\n---\n".join(
            "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\n"
            f"metadata: {{name: {name}}}\nspec: {{signerName: example.com/web, usages: [client "
            f"auth], "
            f"request: {REQUEST}}}"
            for name in ("web", "intruder")
        ),
        "pod.json": '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": '
        '{"containers": [{"name": '
        '"c", "image": "i"}]}}',
        ".docker/config.json": '{"auths": {}}',
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    done = run(SCENE, folder, fork_server)
    assert done.returncode == 0, done.stderr
    return folder


def run(script: str, folder: Path, server: ForkServer) -> subprocess.CompletedProcess[str]:
    """Run lines of shell with kubepy on the PATH; a line that fails ends them."""
    path = f"{server.folder}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "EDITOR": "true", "APP_LEVEL": "info", "HOME": str(folder)}
    env.pop("KUBEPY_STATE", None)
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        input="y\n",
    )


@pytest.mark.parametrize(("name", "entry"), [pytest.param(*pair, id=pair[0]) for pair in WORKING])
def test_help_has_as_many_examples_as_kubectl(name: str, entry: Entry) -> None:
    examples = load(name.split()[-1], entry).examples
    assert len(re.findall(r"^\s*#", examples, re.M)) >= OF_KUBECTL.get(name, 1 if examples else 0)


@pytest.mark.skipif(REAL is None, reason="no kubectl on the PATH")
@pytest.mark.parametrize("name", sorted(OF_KUBECTL))
def test_floor_of_examples_is_that_of_the_kubectl_on_the_path(name: str) -> None:
    text = subprocess.run(
        [str(REAL), *name.split(), "--help"], capture_output=True, text=True, check=True
    ).stdout
    examples = re.search(r"^Examples:\n(.*?)^\S", text, re.S | re.M)
    assert examples is not None
    assert (
        len(re.findall(r"^\s*#", examples[1], re.M)) <= OF_KUBECTL[name] + 1
    )  # an older kubectl may have one more


RUNNABLE = [(name, entry) for name, entry in WORKING if name.split()[0] not in ELSEWHERE]


@pytest.mark.parametrize(("name", "entry"), [pytest.param(*pair, id=pair[0]) for pair in RUNNABLE])
def test_every_example_works(
    scene: Path, fork_server: ForkServer, tmp_path: Path, name: str, entry: Entry
) -> None:
    """Run the examples of a command one after the other, each block with the scene as it is at the
    beginning."""
    examples = load(name.split()[-1], entry).examples.strip()
    blocks = [
        block
        for block in re.split(r"\n\s*\n", examples)
        if block.strip() and "https://" not in block
    ]
    failures = []
    for number, block in enumerate(blocks):
        folder = tmp_path / str(number)
        copy_with_index(scene, folder)
        lines = "\n".join(line.strip() for line in block.splitlines())
        done = run(prepared(lines), folder, fork_server)
        expected = {0, 1} if "kubepy diff" in lines or "Unschedulable" in lines else {0}
        if "kubepy plan" in lines:
            expected |= {3}  # it hurts
        is_conflict = re.search(
            "already exists|try again", done.stderr
        )  # the scene has one, or is at another version
        if done.returncode not in expected and not is_conflict:
            failures.append(f"{lines}\n-> {done.returncode}: {done.stdout}{done.stderr}")
    assert failures == []


BEFORE = {
    "plan --from main": "git init -q -b main; git add overlays; "
    "git -c user.name=a -c user.email=a@example.com commit -qm manifests",
    "kubepy clock": "echo 'clock: \"2026-01-15T00:00:00Z\"' | tee -a state/kubepy.yaml",
    "/srv/home/state": "for words in init 'config set-context lab' 'config set-cluster lab "
    "--server=x' "
    "'config set-credentials robot --token=x'; do kubepy --state home $words; done",
    "gpu:NoSchedule-": "kubepy taint node node-1 gpu=a:NoSchedule",
    "maintenance-": "kubepy taint node node-1 maintenance:NoExecute",
    "rollout resume": "kubepy rollout pause deploy -l tier=front",
    "drain": "kubepy delete pod task stuck",
    "tls.crt": "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=web -keyout tls.key -out "
    "tls.crt",
}


def prepared(lines: str) -> str:
    """Return the lines of an example with what must be there before it, and an end for those that
    go on."""
    script = "".join(f"{text} >&2\n" for word, text in BEFORE.items() if word in lines) + lines
    script = re.sub(r"--watch$", "--watch --request-timeout=1", script).replace(
        "/srv/home/state", "home"
    )
    return (
        script.replace("nginx-ds.yaml", "web.yaml")
        if "manifests/nginx-ds.yaml" in lines
        else script
    )
