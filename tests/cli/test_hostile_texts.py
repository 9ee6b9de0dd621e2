"""Strings with terminal control characters, in every message: none reaches stdout or stderr
unescaped."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

ESCAPE, LINE, BIDI, BELL = "a\x1b[31mb", "a\nINJECTED", "a\u202eb", "a\x07\x85b"
HOSTILE = (ESCAPE, LINE, BIDI, BELL)
NAMES = ("escape", "line", "bidi", "bell")
HARMLESS = "\n\t"

COMMANDS: tuple[str, ...] = (
    "get {}",
    "get pods {}",
    "get pods/{}",
    "get {}/x",
    "get pods.{}",
    "get pods -n {}",
    "get pods -l {}",
    "get pods -l a={}",
    "get pods --field-selector {}",
    "get pods --field-selector {}=x",
    "get pods -o {}",
    "get pods -o jsonpath={{{}}}",
    "get pods -o jsonpath={{.items[{}]}}",
    "get pods -o jsonpath={}}}",
    "get pods -o go-template={{{{{}}}}}",
    "get pods -o go-template={{{{.x.{}}}}}",
    "get pods -o go-template-file={}",
    "get pods -o jsonpath-file={}",
    "get pods -o custom-columns={}",
    "get pods -o custom-columns=A:{}",
    "get pods -o custom-columns-file={}",
    "get cm paint -o yaml --sort-by={}",
    "get cm --sort-by={}",
    "get --raw {}",
    "get --raw /api/v1/namespaces/{}/pods/x",
    "get pods --subresource={}",
    "get pods --{}",
    "get pods --watch={}",
    "{}",
    "create {}",
    "create configmap {}",
    "create configmap x --from-file={}",
    "create configmap x --from-file=a={}",
    "create configmap x --from-env-file={}",
    "create configmap x --from-literal={}",
    "create configmap x --from-literal={}=v",
    "create cm {} --dry-run=client",
    "create cm {} --dry-run=server",
    "create secret {}",
    "create secret tls x --cert={} --key=k",
    "create deployment {} --image=x",
    "create deployment x --image={}",
    "create service clusterip {} --tcp=80",
    "create service clusterip x --tcp={}",
    "create role {} --verb=get --resource=pods",
    "create role x --verb={} --resource=pods",
    "create role x --verb=get --resource={}",
    "create rolebinding x --role={}",
    "create quota x --hard={}",
    "create quota x --hard={}=1",
    "create ingress x --rule={}",
    "create job x --from={}",
    "create job x --from=cj/{}",
    "create cronjob x --image=x --schedule={}",
    "create pdb x --selector={} --min-available=1",
    "create pdb x --selector=a=b --min-available={}",
    "create token {}",
    "create priorityclass {} --value=1",
    "create priorityclass x --value={}",
    "create namespace {}",
    "create sa {}",
    "create -f {}",
    "apply -f {}",
    "apply -k {}",
    "apply -f {} --validate={}",
    "apply view-last-applied cm {}",
    "apply view-last-applied {}",
    "apply set-last-applied -f {}",
    "delete {}",
    "delete cm {}",
    "delete cm -l {}",
    "delete -f {}",
    "delete cm paint --cascade={}",
    "delete cm {} --ignore-not-found --dry-run={}",
    "describe {}",
    "describe cm {}",
    "describe cm/{}",
    "edit cm {}",
    "edit {}",
    "patch cm {} -p {{}}",
    "patch cm paint -p {}",
    "patch cm paint --type={} -p {{}}",
    "patch cm paint --patch-file={}",
    "label cm {} a=b",
    "label cm paint {}=b",
    "label cm paint a={}",
    "label cm paint {}-",
    "label cm paint {}",
    "annotate cm {} a=b",
    "annotate cm paint {}=b",
    "annotate cm paint {}-",
    "scale deploy {} --replicas=1",
    "scale deploy/x --replicas={}",
    "rollout status deploy/{}",
    "rollout status {}/x",
    "rollout {}",
    "rollout undo deploy/{}",
    "rollout history deploy/{}",
    "rollout history ds/x --revision={}",
    "rollout restart {}",
    "rollout pause deploy {}",
    "set image deploy/{} a=b",
    "set image deploy/x {}=b",
    "set image deploy/x {}",
    "set env deploy/{} A=b",
    "set env deploy/x {}=b",
    "set env deploy/x --from={}",
    "set env deploy/x --from=cm/{}",
    "set {}",
    "set selector svc {} a=b",
    "set selector svc x {}",
    "set resources deploy x --limits={}",
    "set resources deploy {} --limits=cpu=1",
    "set serviceaccount deploy x {}",
    "set sa deploy {} x",
    "set subject rolebinding {} --user=x",
    "taint nodes {} a=b:NoSchedule",
    "taint nodes node-1 {}=b:NoSchedule",
    "taint nodes node-1 a={}:NoSchedule",
    "taint nodes node-1 a=b:{}",
    "taint {} x a=b:NoSchedule",
    "taint nodes node-1 {}-",
    "cordon {}",
    "uncordon {}",
    "drain {}",
    "drain node-1 --pod-selector={}",
    "autoscale deploy {} --max=1",
    "autoscale deploy x --max={}",
    "autoscale deploy x --max=1 --cpu={}",
    "expose deploy {} --port=1",
    "expose deploy x --port={}",
    "expose {} x",
    "run {} --image=x",
    "run x --image={}",
    "run x --image=x --port={}",
    "run x --image=x --env={}",
    "run x --image=x --overrides={}",
    "run x --image=x --restart={}",
    "wait {} --for=delete",
    "wait cm/{} --for=delete",
    "wait cm/paint --for={}",
    "wait cm/paint --for=condition={} --timeout=1ms",
    "wait cm/paint --for=jsonpath={} --timeout=1ms",
    "wait cm/paint --for=delete --timeout={}",
    "explain {}",
    "explain pods.{}",
    "explain pods.spec.{}",
    "explain pods --api-version={}",
    "explain pods --output={}",
    "events --for {}",
    "events --for {}/x",
    "events --types={}",
    "api-resources -o {}",
    "api-resources --api-group={}",
    "api-resources --sort-by={}",
    "api-versions {}",
    "auth can-i get {}",
    "auth can-i {} pods",
    "auth can-i get pods/{}",
    "auth whoami -o {}",
    "auth reconcile -f {}",
    "auth {}",
    "certificate approve {}",
    "certificate {} x",
    "diff -f {}",
    "replace -f {}",
    "replace --raw {} -f x",
    "kustomize {}",
    "config {}",
    "config use-context {}",
    "config set-context {}",
    "config delete-context {}",
    "config get-contexts {}",
    "config get-contexts",
    "config rename-context {} b",
    "config rename-context kubepy {}",
    "config current-context",
    "config set-cluster {}",
    "config get-clusters",
    "config delete-cluster {}",
    "config set-credentials {}",
    "config get-users",
    "config delete-user {}",
    "config set {} x",
    "config set users.{}.x y",
    "config unset {}",
    "config view -o {}",
    "--context {} get pods",
    "--cluster {} get pods",
    "--user {} get pods",
    "--state {} get pods",
    "--state {} init",
    "--reconcile {} rollout status deploy/x",
    "--profile {} get pods",
    "--request-timeout {} get pods",
    "--as {} get pods",
    "-v {} get pods",
    "completion {}",
    "help {}",
    "options {}",
    "version -o {}",
    "fsck {}",
    "init {}",
    "init --nodes={}",
    "controller {}",
    "controller --{}",
    "plugin {}",
    "plugin list {}",
    "cluster-info {}",
    "cluster-info dump --output-directory={}/x",
    "cluster-info dump -n {}",
    "logs {}",
    "exec {} -- x",
    "port-forward {}",
    "top {}",
    "attach {}",
    "cp {} x",
    "debug {}",
    "proxy {}",
)
OBJECTS: tuple[str, ...] = (
    '{{"apiVersion":"v1","kind":{0},"metadata":{{"name":"x"}}}}',
    '{{"apiVersion":{0},"kind":"ConfigMap","metadata":{{"name":"x"}}}}',
    '{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":{0}}}}}',
    '{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x","namespace":{0}}}}}',
    '{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x"}},{0}:1}}',
    '{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x",{0}:1}}}}',
    '{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x"}},"data":{{{0}:"1"}}}}',
    '{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x"}},"data":{{{0}:1}}}}',
    '{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x"}},"data":{{{0}:[{{"a":1}}]}}}}',
    '{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x","labels":{{{0}:"1"}}}}}}',
    '{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x","labels":{{"a":{0}}}}}}}',
    '{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x","annotations":{{{0}:"1"}}}}}}',
    '{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x","finalizers":[{0}]}}}}',
    '{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x","creationTimestamp":{0}}}}}',
    '{{"apiVersion":"v1","kind":"List","items":[{{"apiVersion":"v1","kind":{0},'
    '"metadata":{{"name":"x"}}}}]}}',
    '{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"x"}},"type":{0},"data":{{"a":{0}}}}}',
    '{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"x"}},'
    '"spec":{{"containers":[{{"name":{0},"image":{0}}}]}}}}',
    '{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"x"}},"spec":{{"nodeName":{0},'
    '"priorityClassName":{0},'
    '"containers":[{{"name":"c","image":"i","resources":{{"limits":{{"cpu":{0}}}}}}}]}}}}',
    '{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"x"}},"spec":{{"restartPolicy":{0},'
    '"volume'
    's":[{{"name":{0}}}],'
    '"containers":[{{"name":"c","image":"i","env":[{{"name":{0}}},{{"name":{0}}}],'
    '"ports":[{{"containerPort":1,'
    '"name":{0}}},{{"containerPort":1,"name":{0}}}],"volumeMounts":[{{"name":{0},'
    '"mountPath":{0}}}]}}]}}}}',
    '{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"x"}},"spec":{{"type":{0},'
    '"clusterIP":{0},"ports":['
    '{{"port":1,"name":{0},"protocol":{0}}}]}}}}',
    '{{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{{"name":"x"}},'
    '"spec":{{"selector":{{"matchLabels":{{{0}:'
    '{0}}},"matchExpressions":[{{"key":{0},"operator":{0}}}]}},"updateStrategy":{{"type":{0}}},'
    '"template":{{}}}}}}',
    '{{"apiVersion":"batch/v1","kind":"CronJob","metadata":{{"name":"x"}},"spec":{{"schedule":{0},'
    '"timeZone":{0},'
    '"jobTemplate":{{"spec":{{"template":{{"spec":{{"containers":[],'
    '"restartPolicy":{0}}}}}}}}}}}}}',
    '{{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{{"name":"x"}},'
    '"spec":{{"rules":[{{"host":{0},'
    '"http":{{"paths":[{{"path":{0},"pathType":{0},'
    '"backend":{{"service":{{"name":{0},"port":{{"name":{0}}}}}}}}}]}}}}]}}}}',
    '{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",'
    '"metadata":{{"name":"x"}},"spec":{{'
    '"group":{0},"scope":{0},"names":{{"plural":{0},"kind":{0}}},"versions":[{{"name":{0},'
    '"served":true,"storage":true,'
    '"schema":{{"openAPIV3Schema":{{"type":{0},"pattern":{0},'
    '"x-kubernetes-validations":[{{"rule":{0}}}]}}}}}}]}}}}',
    "{{{0}:1}}",
    "[{0}]",
    "{0}",
)


def words_of(command: str, text: str) -> list[str]:
    """Return the words of the command, with the string in each place for one."""
    return [
        word.replace("{{", "\0")
        .replace("}}", "\1")
        .replace("{}", text)
        .replace("\0", "{")
        .replace("\1", "}")
        for word in command.split()
    ]


def assert_harmless(done: Done, what: object) -> None:
    for stream in (done.out, done.err):
        raw = sorted(
            {
                character
                for character in stream
                if not character.isprintable() and character not in HARMLESS
            }
        )
        assert not raw, (what, raw, stream)
        assert not any(line.startswith("INJECTED") for line in stream.splitlines()), (what, stream)
        assert "internal error" not in stream, (what, stream)


@pytest.mark.parametrize("text", HOSTILE, ids=NAMES)
def test_arguments_that_steer_terminal_are_shown_escaped(
    paint: Kubepy, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "true")
    for command in COMMANDS:
        assert_harmless(paint(*words_of(command, text)), command)


@pytest.mark.parametrize("text", HOSTILE, ids=NAMES)
def test_objects_that_steer_terminal_are_shown_escaped(
    paint: Kubepy, folder: Path, text: str
) -> None:
    for number, template in enumerate(OBJECTS):
        content = template.format(json.dumps(text))
        for words in (
            ("create", "-f", "-"),
            ("apply", "-f", "-"),
            ("apply", "-f", "-", "--server-side"),
            ("apply", "-f", "-", "--validate=ignore"),
            ("create", "-f", "-", "--dry-run=client"),
            ("delete", "-f", "-"),
            ("diff", "-f", "-"),
            ("replace", "-f", "-"),
            ("get", "-f", "-"),
        ):
            assert_harmless(paint(*words, stdin=content), (number, words))
        assert_harmless(paint("patch", "cm", "paint", "-p", content), number)
        assert_harmless(paint("patch", "cm", "paint", "--type=merge", "-p", content), number)


@pytest.mark.parametrize("text", HOSTILE, ids=NAMES)
def test_names_of_files_that_steer_terminal_are_shown_escaped(
    paint: Kubepy, folder: Path, text: str
) -> None:
    own = folder / "state" / "namespaces" / "default" / "configmaps"
    (own / f"{text}.yaml").write_text("a: 1")
    (own / "x.yaml").write_text(f"metadata: {{name: {json.dumps(text)}}}\n")
    (own / "y.yaml").write_text(f"kind: {json.dumps(text)}\nmetadata: {{name: y}}\n")
    (own / "z.yaml").write_text(
        f"metadata: {{name: z}}\n{json.dumps(text)}: 1\n{json.dumps(text)}: 1\n"
    )
    (folder / "state" / "namespaces" / text).mkdir()
    (folder / "state" / f"{text}.yaml").write_text("")
    given = folder / text
    given.mkdir()
    (given / f"{text}.yaml").write_text("{")
    (given / "kustomization.yaml").write_text(
        f"resources: [{json.dumps(text)}]\n{json.dumps(text)}: 1\n"
    )
    for words in (
        ("get", "cm"),
        ("get", "cm", "x"),
        ("get", "cm", "y"),
        ("fsck",),
        ("controller", "--once"),
        ("create", "cm", "x"),
        ("delete", "cm", "y"),
        ("apply", "-f", text),
        ("apply", "-k", text),
        ("create", "cm", "q", f"--from-file={text}"),
        ("diff", "-f", text),
        ("kustomize", text),
    ):
        assert_harmless(paint(*words), words)


def test_names_of_files_that_are_no_text_are_shown_as_bytes(paint: Kubepy, folder: Path) -> None:
    own = folder / "state" / "namespaces" / "default" / "configmaps"
    (own / os.fsdecode(b"\xff.yaml")).write_text("")
    given = folder / "given"
    given.mkdir()
    (given / os.fsdecode(b"\xfe.yaml")).write_text("{")
    for words in (
        ("get", "cm"),
        ("fsck",),
        ("apply", "-f", "given"),
        ("create", "cm", "q", "--from-file=given"),
    ):
        assert_harmless(paint(*words), words)
    assert "\\xff.yaml: is not the file name of any object" in paint("fsck").out
    assert "\\xfe.yaml" in paint("apply", "-f", "given").err


def test_not_found_error_quotes_the_name_as_go(paint: Kubepy) -> None:
    assert paint("get", "cm", "a\x1b[31mb\n\u202e") == Done(
        "", 'Error from server (NotFound): configmaps "a\\x1b[31mb\\n\\u202e" not found\n', 1
    )
