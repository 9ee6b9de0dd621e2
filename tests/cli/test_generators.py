"""``kubepy create KIND NAME``: objects made from flags, and refused flags."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Done, Kubepy

RBAC = "rbac.authorization.k8s.io"


def made(kubepy: Kubepy, *words: str) -> dict[str, Any]:
    """Return the object that a command line would create, without creating it."""
    done = kubepy("create", *words, "--dry-run=client", "-o", "json")
    assert (done.err, done.status) == ("", 0)
    found: dict[str, Any] = json.loads(done.out)
    return found


def refusal(kubepy: Kubepy, *words: str) -> str:
    done = kubepy("create", *words, "--dry-run=client", "-o", "name")
    assert (done.out, done.status) == ("", 1)
    return done.err


# --- roles and bindings ---------------------------------------------------------------------------


def test_role_has_rule_for_each_group(kubepy: Kubepy) -> None:
    rules = made(
        kubepy,
        "role",
        "r",
        "--verb=get,list",
        "--verb=get",
        "--resource=pods,pods/status,deploy,svc",
        "--resource-name=a",
        "--resource-name=a",
    )["rules"]
    assert rules == [
        {
            "verbs": ["get", "list"],
            "apiGroups": [""],
            "resources": ["pods", "pods/status", "services"],
            "resourceNames": ["a"],
        },
        {
            "verbs": ["get", "list"],
            "apiGroups": ["apps"],
            "resources": ["deployments"],
            "resourceNames": ["a"],
        },
    ]


def test_stars_stand_for_everything(kubepy: Kubepy) -> None:
    assert made(kubepy, "role", "r", "--verb=get,*", "--resource=pods,*,deploy")["rules"] == [
        {"verbs": ["*"], "apiGroups": [""], "resources": ["*"]}
    ]


def test_cluster_role_may_name_urls_or_other_cluster_roles(kubepy: Kubepy) -> None:
    assert made(
        kubepy,
        "clusterrole",
        "c",
        "--verb=get",
        "--non-resource-url=/logs/*,/logs/*",
        "--resource=nodes",
    )["rules"] == [
        {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]},
        {"verbs": ["get"], "nonResourceURLs": ["/logs/*"]},
    ]
    assert made(kubepy, "clusterrole", "c", "--aggregation-rule=b=2,a=1") == {
        "kind": "ClusterRole",
        "apiVersion": f"{RBAC}/v1",
        "metadata": {"name": "c"},
        "rules": None,
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "1", "b": "2"}}]},
    }


def test_binding_names_users_groups_and_accounts(kubepy: Kubepy) -> None:
    binding = made(
        kubepy,
        "rolebinding",
        "b",
        "--clusterrole=c",
        "--user=u",
        "--group=g",
        "--serviceaccount=n:s",
    )
    assert binding["subjects"] == [
        {"kind": "User", "apiGroup": RBAC, "name": "u"},
        {"kind": "Group", "apiGroup": RBAC, "name": "g"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
    ]
    assert binding["roleRef"] == {"apiGroup": RBAC, "kind": "ClusterRole", "name": "c"}
    assert "subjects" not in made(kubepy, "clusterrolebinding", "b", "--clusterrole=c")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("role r", "error: at least one verb must be specified"),
        ("role r --verb=get", "error: at least one resource must be specified"),
        ("role r --verb=get --resource=foo", 'the server doesn\'t have a resource type "foo"'),
        (
            "role r --verb=get --resource=foo.bar",
            'the server doesn\'t have a resource type "foo" in group "bar"',
        ),
        (
            "role r --verb=get --resource=/status",
            "error: resource must be specified if apiGroup/subresource specified",
        ),
        (
            "role r --verb=bind --resource=pods",
            "error: can not perform 'bind' on 'pods' in group ''",
        ),
        ("clusterrole c --verb=get", "error: one of resource or nonResourceURL must be specified"),
        (
            "clusterrole c --verb=list --non-resource-url=/x",
            "error: invalid verb: 'list' for nonResourceURL",
        ),
        (
            "clusterrole c --verb=get --non-resource-url=x",
            "error: nonResourceURL should start with /",
        ),
        (
            "clusterrole c --verb=get --non-resource-url=/a*b",
            "error: nonResourceURL only supports wildcard matches when '*' is at the end",
        ),
        (
            "clusterrole c --aggregation-rule=a=b --verb=get",
            "error: aggregation rule must be specified without "
            "nonResourceURLs, verbs, resources or resourceNames",
        ),
        (
            "rolebinding b --role=r --clusterrole=c",
            "error: exactly one of clusterrole or role must be specified",
        ),
        (
            "rolebinding b --role=r --serviceaccount=s",
            "error: serviceaccount must be <namespace>:<name>",
        ),
        ("clusterrolebinding b", 'error: required flag(s) "clusterrole" not set'),
    ],
)
def test_create_role_and_binding_refuse_invalid_input(
    kubepy: Kubepy, words: str, error: str
) -> None:
    assert refusal(kubepy, *words.split()) == f"{error}\n"


def test_unusual_verb_is_warned_of(kubepy: Kubepy) -> None:
    assert kubepy("create", "role", "r", "--verb=fly", "--resource=pods") == Done(
        "role.rbac.authorization.k8s.io/r created\n",
        "Warning: 'fly' is not a standard resource verb\n",
        0,
    )


def test_subjects_are_added_to_binding(kubepy: Kubepy) -> None:
    kubepy("create", "rolebinding", "b", "--role=r", "--user=ann")
    assert kubepy(
        "set", "subject", "rolebinding", "b", "--user=bob", "--user=ann", "--serviceaccount=:s"
    ).out == ("rolebinding.rbac.authorization.k8s.io/b subjects updated\n")
    shown = "{range .subjects[*]}{.kind} {.namespace} {.name},{end}"
    assert kubepy("get", "rolebinding", "b", "-o", f"jsonpath={shown}").out == (
        "User  ann,User  bob,ServiceAccount default s,"
    )
    assert kubepy("set", "subject", "rolebinding/b", "--user=ann") == Done("", "", 0)
    assert kubepy("set", "subject", "rolebinding/b").err == (
        "error: you must specify at least one value of user, group or serviceaccount\n"
    )
    assert kubepy("set", "subject", "ns/default", "--user=ann").err == (
        "error: namespaces/default setting subjects is only supported for "
        "RoleBinding/ClusterRoleBinding\n"
    )


# --- ingresses ------------------------------------------------------------------------------------


def test_rules_of_ingress_are_gathered_by_host_and_by_secret(kubepy: Kubepy) -> None:
    spec = made(
        kubepy,
        "ingress",
        "i",
        "--rule=a.b/x*=s:80,tls=c",
        "--rule=a.b/y=s:http",
        "--rule=c.d/=t:1,tls=c",
        "--rule=/any=t:1",
        "--class=fast",
        "--default-backend=d:80",
        "--annotation=k=v",
    )["spec"]

    def backend(name: str, port: int | str) -> dict[str, Any]:
        return {
            "service": {
                "name": name,
                "port": {"number": port} if isinstance(port, int) else {"name": port},
            }
        }

    assert spec == {
        "ingressClassName": "fast",
        "defaultBackend": backend("d", 80),
        "tls": [{"hosts": ["a.b", "c.d"], "secretName": "c"}],
        "rules": [
            {
                "host": "a.b",
                "http": {
                    "paths": [
                        {"path": "/x", "pathType": "Prefix", "backend": backend("s", 80)},
                        {"path": "/y", "pathType": "Exact", "backend": backend("s", "http")},
                    ]
                },
            },
            {
                "host": "c.d",
                "http": {"paths": [{"path": "/", "pathType": "Exact", "backend": backend("t", 1)}]},
            },
            {
                "http": {
                    "paths": [{"path": "/any", "pathType": "Exact", "backend": backend("t", 1)}]
                }
            },
        ],
    }


@pytest.mark.parametrize(
    ("flag", "error"),
    [
        (
            "--class=x",
            "not enough information provided: every ingress has to either specify a "
            "default-backend (which "
            "catches all traffic) or a list of rules (which catch specific paths)",
        ),
        (
            "--rule=a/=b",
            "rule a/=b is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]",
        ),
        ("--default-backend=a", "default-backend should be in format servicename:serviceport"),
    ],
)
def test_create_ingress_refuses_invalid_rules(kubepy: Kubepy, flag: str, error: str) -> None:
    assert refusal(kubepy, "ingress", "i", flag) == f"error: {error}\n"


# --- config maps and secrets ----------------------------------------------------------------------


def test_lines_of_env_file(kubepy: Kubepy, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "from outside")
    (folder / "env").write_bytes("\ufeffA=1\r\n# no\n\n  B=two\x0bwords=\u2028x \nOUTER\n".encode())
    assert made(kubepy, "cm", "c", "--from-env-file=env")["data"] == {
        "A": "1",
        "B": "two\x0bwords=\u2028x ",
        "OUTER": "from outside",
    }
    (folder / "latin").write_bytes(b"A=1\nB=\xe9\n")
    assert refusal(kubepy, "cm", "c", "--from-env-file=latin") == (
        "error: env file latin contains invalid utf8 bytes at line 2: [66 61 233]\n"
    )


def test_file_of_registry_secret_needs_no_key(kubepy: Kubepy, folder: Path) -> None:
    (folder / "auth.json").write_text("{}")
    assert made(kubepy, "secret", "docker-registry", "r", "--from-file=auth.json")["data"] == {
        ".dockerconfigjson": "e30="
    }


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")
def test_certificate_must_belong_to_its_key(kubepy: Kubepy, folder: Path) -> None:
    for name in ("one", "two"):
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-keyout",
                f"{name}.key",
                "-out",
                f"{name}.crt",
                "-subj",
                "/CN=x",
            ],
            check=True,
            capture_output=True,
        )
    assert set(made(kubepy, "secret", "tls", "t", "--cert=one.crt", "--key=one.key")["data"]) == {
        "tls.crt",
        "tls.key",
    }
    assert refusal(kubepy, "secret", "tls", "t", "--cert=one.crt", "--key=two.key") == (
        "error: tls: private key does not match public key\n"
    )
    assert refusal(kubepy, "secret", "tls", "t", "--cert=one.key", "--key=one.key") == (
        "error: tls: failed to find certificate PEM data in certificate input, but did find a "
        "private key; PEM inputs "
        "may have been switched\n"
    )
    assert refusal(kubepy, "secret", "tls", "t", "--cert=one.crt", "--key=one.crt") == (
        "error: tls: found a certificate rather than a key in the PEM for the private key\n"
    )


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")
def test_certificate_and_its_key_are_read_once_as_pipes_must_be(
    kubepy: Kubepy, folder: Path
) -> None:
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "t.key",
            "-out",
            "t.crt",
            "-subj",
            "/CN=x",
        ],
        check=True,
        capture_output=True,
    )
    writers = []
    for name in ("t.crt", "t.key"):
        os.mkfifo(folder / f"{name}.pipe")
        writers.append(subprocess.Popen(["cp", name, f"{name}.pipe"]))
    assert set(
        made(kubepy, "secret", "tls", "t", "--cert=t.crt.pipe", "--key=t.key.pipe")["data"]
    ) == {"tls.crt", "tls.key"}
    assert [writer.wait() for writer in writers] == [0, 0]


def test_certificate_is_pem(kubepy: Kubepy, folder: Path) -> None:
    (folder / "x").write_text("x")
    assert refusal(kubepy, "secret", "tls", "t", "--cert=x", "--key=x") == (
        "error: tls: failed to find any PEM data in certificate input\n"
    )
    assert refusal(kubepy, "secret", "tls", "t", "--cert=absent", "--key=x") == (
        "error: Cannot read file absent, open absent: no such file or directory\n"
    )


# --- the others -----------------------------------------------------------------------------------


def test_budget_takes_any_selector(kubepy: Kubepy) -> None:
    words = ("pdb", "p", "--min-available=1", "--selector")
    assert made(kubepy, *words, "b=2,a=1,c in (y,x),d")["spec"]["selector"] == {
        "matchLabels": {"a": "1", "b": "2"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["x", "y"]},
            {"key": "d", "operator": "Exists"},
        ],
    }
    assert refusal(kubepy, *words, "a!=b") == 'error: "!=" is not a valid label selector operator\n'


@pytest.mark.parametrize(
    ("tcp", "error"),
    [
        ("abc", 'strconv.ParseUint: parsing "abc": invalid syntax'),
        ("65536", 'strconv.ParseUint: parsing "65536": value out of range'),
        ("80:0", "must be between 1 and 65535, inclusive"),
        ("80:a--b", "must not contain consecutive hyphens"),
        (
            "80:",
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-),must contain "
            "at least one letter "
            "(a-z)",
        ),
    ],
)
def test_ports_of_service(kubepy: Kubepy, tcp: str, error: str) -> None:
    assert refusal(kubepy, "service", "clusterip", "s", f"--tcp={tcp}") == f"error: {error}\n"
    assert made(kubepy, "svc", "clusterip", "s", "--tcp=80:http")["spec"]["ports"] == [
        {"name": "80-http", "protocol": "TCP", "port": 80, "targetPort": "http"}
    ]


def test_name_is_told_before_value_of_dry_run(kubepy: Kubepy) -> None:
    assert kubepy("create", "namespace", "--dry-run") == Done(
        "",
        "error: exactly one NAME is required, got 0\nSee 'kubepy create namespace -h' for help "
        "and examples\n",
        1,
    )


def test_saved_configuration_keeps_other_annotations(kubepy: Kubepy) -> None:
    kubepy("create", "ingress", "i", "--default-backend=s:80", "--annotation=a=b", "--save-config")
    found = json.loads(kubepy("get", "ingress", "i", "-o", "json").out)["metadata"]["annotations"]
    assert sorted(found) == ["a", "kubectl.kubernetes.io/last-applied-configuration"]


def test_kubectl_saves_no_configuration_of_services(kubepy: Kubepy) -> None:
    kubepy("create", "service", "clusterip", "s", "--tcp=80", "--save-config")
    assert "annotations" not in json.loads(kubepy("get", "svc", "s", "-o", "json").out)["metadata"]
