"""``kubepy auth``, ``certificate`` and ``cluster-info``."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Kubepy

ROLE = """apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: edge, labels: {a: %s}}
rules:
- {apiGroups: [""], resources: %s, verbs: %s}
"""
BINDING = """apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: edge}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %s}
subjects: [{kind: User, name: %s, apiGroup: rbac.authorization.k8s.io}]
"""
NAMED = "rolebinding.rbac.authorization.k8s.io/b reconciled\n"


# --- can-i, whoami --------------------------------------------------------------------------------


def test_can_i_of_administrator_says_yes(kubepy: Kubepy) -> None:
    assert kubepy("auth", "can-i", "delete", "pods/x") == Done("yes\n", "", 0)
    assert kubepy(
        "auth", "can-i", "*", "*", "--as=me", "--as-group=kubeadm:cluster-admins"
    ) == Done("yes\n", "", 0)
    assert kubepy("auth", "can-i", "get", "pods", "-q") == Done("", "", 0)
    assert kubepy("auth", "can-i", "--list") == Done(
        "Resources   Non-Resource URLs   Resource Names   Verbs\n"
        "*.*         []                  []               [*]\n"
        "            [*]                 []               [*]\n",
        "",
        0,
    )


ROBOT = "--as=system:serviceaccount:shop:robot"


@pytest.fixture
def shop(kubepy: Kubepy) -> Kubepy:
    """A cluster whose robot may read pods and restart Deployments in one namespace."""
    kubepy("create", "namespace", "shop")
    kubepy("create", "role", "reader", "--verb=get,list", "--resource=pods", "-n", "shop")
    kubepy(
        "create", "rolebinding", "reader", "--role=reader", "--serviceaccount=shop:robot",
        "-n", "shop",
    )  # fmt: skip
    return kubepy


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("get pods -n shop", "yes"),
        ("list po -n shop", "yes"),
        ("get pod/web -n shop", "yes"),
        ("delete pods -n shop", "no"),
        ("get pods --subresource=log -n shop", "no"),
        ("get pods", "no"),
        ("list pods -A", "no"),
        ("get deployments -n shop", "no"),
        ("get /healthz", "yes"),
        ("get /metrics", "no"),
    ],
)
def test_can_i_as_another_user_goes_by_roles_and_bindings(
    shop: Kubepy, words: str, answer: str
) -> None:
    status = 0 if answer == "yes" else 1
    assert shop("auth", "can-i", *words.split(), ROBOT) == Done(f"{answer}\n", "", status)
    assert shop("auth", "can-i", *words.split(), ROBOT, "-q") == Done("", "", status)


def test_can_i_with_binding_to_missing_role_says_so(shop: Kubepy) -> None:
    shop("delete", "role", "reader", "-n", "shop")
    assert shop("auth", "can-i", "get", "pods", "-n", "shop", ROBOT) == Done(
        'no - RBAC: role.rbac.authorization.k8s.io "reader" not found\n', "", 1
    )


def test_can_i_list_as_another_user_shows_its_rules(shop: Kubepy) -> None:
    words = ["auth", "can-i", "--list", ROBOT, "--no-headers"]
    own = shop(*words, "-n", "shop").out.splitlines()
    elsewhere = shop(*words).out.splitlines()
    rules = {tuple(line.split()) for line in own} - {tuple(line.split()) for line in elsewhere}
    assert rules == {("pods", "[]", "[]", "[get", "list]")}


@pytest.mark.parametrize("words", ["can-i get pods", "can-i --list", "whoami"])
def test_can_i_without_cluster_fails(bare: Kubepy, words: str) -> None:
    assert bare("auth", *words.split()).err.startswith('error: no cluster in "state": ')


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        ("fly pods", "verb 'fly' is not a known verb"),
        ("get foo.bar", "the server doesn't have a resource type 'foo' in group 'bar'"),
        ("get nodes", "resource 'nodes' is not namespace scoped"),
        ("list /logs", "verb 'list' is not a known verb"),
    ],
)
def test_can_i_unknown_resource_or_verb_warns(kubepy: Kubepy, words: str, warning: str) -> None:
    assert kubepy("auth", "can-i", *words.split()) == Done("yes\n", f"Warning: {warning}\n\n", 0)


def test_whoami_prints_administrator_or_impersonated_user(kubepy: Kubepy) -> None:
    assert kubepy("auth", "whoami").out == (
        "ATTRIBUTE   VALUE\nUsername    kubernetes-admin\nGroups      [kubeadm:cluster-admins "
        "system:authenticated]\n"
    )
    assert kubepy(
        "auth", "whoami", "--as=me", "--as-group=ops", "-o", "jsonpath={.status.userInfo}"
    ).out == ('{"groups":["ops","system:authenticated"],"username":"me"}')


@pytest.mark.parametrize(
    ("words", "groups"),
    [
        (
            "--as=system:serviceaccount:shop:bot",
            ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
        ),
        ("--as=system:anonymous", ["system:unauthenticated"]),
        ("--as=ann --as-group=system:authenticated", ["system:authenticated"]),
    ],
)
def test_whoami_impersonated_user_has_groups_of_the_name(
    kubepy: Kubepy, words: str, groups: list[str]
) -> None:
    shown = kubepy("auth", "whoami", *words.split(), "-o", "jsonpath={.status.userInfo.groups}").out
    assert json.loads(shown) == groups


# --- reconcile ------------------------------------------------------------------------------------


def test_reconcile_missing_role_creates_role_and_namespace(kubepy: Kubepy, folder: Path) -> None:
    (folder / "r.yaml").write_text(ROLE % ("b", "[pods]", "[get]"))
    said = (
        "\treconciliation required create\n\tmissing rules added:\n"
        "\t\t{Verbs:[get] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}\n"
    )
    assert kubepy("auth", "reconcile", "-f", "r.yaml", "--dry-run=client") == Done(
        "role.rbac.authorization.k8s.io/r reconciled (dry run)\n", said, 0
    )
    assert kubepy("get", "role").err == "No resources found in default namespace.\n"
    assert kubepy("auth", "reconcile", "-f", "r.yaml") == Done(
        "role.rbac.authorization.k8s.io/r reconciled\n", said, 0
    )
    assert kubepy("auth", "reconcile", "-f", "r.yaml") == Done(
        "role.rbac.authorization.k8s.io/r reconciled\n", "", 0
    )
    assert kubepy("get", "ns", "edge", "-o", "name").out == "namespace/edge\n"


def test_reconcile_role_adds_missing_rules_and_removes_extra_ones_on_request(
    kubepy: Kubepy, folder: Path
) -> None:
    (folder / "r.yaml").write_text(ROLE % ("b", "[pods]", "[get]"))
    (folder / "more.yaml").write_text(ROLE % ("c", "[pods, services]", "[get]"))
    kubepy("auth", "reconcile", "-f", "r.yaml")
    assert kubepy("auth", "reconcile", "-f", "more.yaml").err.endswith(
        "\t\t{Verbs:[get] APIGroups:[] Resources:[services] ResourceNames:[] NonResourceURLs:[]}\n"
    )
    found = json.loads(kubepy("get", "role", "r", "-n", "edge", "-o", "json").out)
    assert found["metadata"]["labels"] == {"a": "b"}
    assert [rule["resources"] for rule in found["rules"]] == [["pods"], ["services"]]
    assert kubepy("auth", "reconcile", "-f", "r.yaml", "--remove-extra-permissions").err == (
        "\treconciliation required update\n\textra rules removed:\n"
        "\t\t{Verbs:[get] APIGroups:[] Resources:[services] ResourceNames:[] NonResourceURLs:[]}\n"
    )
    assert (
        kubepy("get", "role", "r", "-n", "edge", "-o", "jsonpath={.rules[*].resources}").out
        == '["pods"]'
    )


def test_reconcile_binding_adds_subjects_and_recreates_for_another_role(
    kubepy: Kubepy, folder: Path
) -> None:
    for name, role, user in (("one", "r", "ann"), ("two", "r", "bob"), ("three", "s", "eve")):
        (folder / f"{name}.yaml").write_text(BINDING % (role, user))
    kubepy("auth", "reconcile", "-f", "one.yaml")
    assert kubepy("auth", "reconcile", "-f", "two.yaml") == Done(
        NAMED,
        "\treconciliation required update\n\tmissing subjects added:\n"
        "\t\t{Kind:User APIGroup:rbac.authorization.k8s.io Name:bob Namespace:}\n",
        0,
    )
    shown = (
        "get",
        "rolebinding",
        "b",
        "-n",
        "edge",
        "-o",
        "jsonpath={.roleRef.name} {.subjects[*].name}",
    )
    assert kubepy(*shown).out == "r ann bob"
    kubepy("auth", "reconcile", "-f", "two.yaml", "--remove-extra-subjects")
    assert kubepy(*shown).out == "r bob"
    assert kubepy("auth", "reconcile", "-f", "three.yaml") == Done(
        NAMED, "\treconciliation required recreate\n", 0
    )
    assert kubepy(*shown).out == "s eve"


def test_reconcile_protected_role_changes_nothing(kubepy: Kubepy, folder: Path) -> None:
    (folder / "r.yaml").write_text(ROLE % ("b", "[pods]", "[get]"))
    (folder / "more.yaml").write_text(ROLE % ("b", "[pods]", "[get, list]"))
    kubepy("auth", "reconcile", "-f", "r.yaml")
    kubepy(
        "annotate", "role", "r", "-n", "edge", "rbac.authorization.kubernetes.io/autoupdate=false"
    )
    assert kubepy("auth", "reconcile", "-f", "more.yaml").err.splitlines()[0] == (
        "\treconciliation required update, but object opted out "
        "(rbac.authorization.kubernetes.io/autoupdate: false)"
    )
    assert (
        kubepy("get", "role", "r", "-n", "edge", "-o", "jsonpath={.rules[*].verbs}").out
        == '["get"]'
    )


def test_reconcile_wildcard_rules_cover_single_rules(kubepy: Kubepy, folder: Path) -> None:
    (folder / "all.yaml").write_text(ROLE % ("b", "['*/log', pods]", "['*']"))
    (folder / "some.yaml").write_text(ROLE % ("b", "[pods/log, pods, pods/exec]", "[get]"))
    kubepy("auth", "reconcile", "-f", "all.yaml")
    assert kubepy("auth", "reconcile", "-f", "some.yaml").err.splitlines()[2:] == [
        "\t\t{Verbs:[get] APIGroups:[] Resources:[pods/exec] ResourceNames:[] NonResourceURLs:[]}"
    ]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("", "must specify one of -f and -k"),
        ("-f r.yaml x", "no arguments are allowed"),
        (
            "-f r.yaml --dry-run=server",
            "--dry-run=server for command reconcile is not supported yet",
        ),
        ("-f nope.yaml", 'the path "nope.yaml" does not exist'),
    ],
)
def test_reconcile_refuses_wrong_input(
    kubepy: Kubepy, folder: Path, words: str, error: str
) -> None:
    (folder / "r.yaml").write_text(ROLE % ("b", "[pods]", "[get]"))
    assert kubepy("auth", "reconcile", *words.split()) == Done("", f"error: {error}\n", 1)


# --- certificates ---------------------------------------------------------------------------------

REQUEST = """apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: web}
spec: {signerName: example.com/web, usages: [client auth], request: %s}
"""
PEM = (  # a request with the subject "web"; its private key was thrown away
    "-----BEGIN CERTIFICATE REQUEST-----\n"
    "MIHIMHACAQAwDjEMMAoGA1UEAwwDd2ViMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD\n"
    "QgAE82T2/N+5Z0NdyN40vwIj+9vCeOArTvutoivxEmaCfPb+9yO0ZNaBP2I9UpMZ\n"
    "slyMp8fNUdT8C9CABTnvqMXHkKAAMAoGCCqGSM49BAMCA0gAMEUCIQCY+3RQm83N\n"
    "6XbVjnqWTCk/H0q4BYq9d9Pb6VZ0ECHU7AIgW6m1LH6gBbQxuxIiVIqtzrJHtsqt\n"
    "6liOBqCope/Qxlw=\n"
    "-----END CERTIFICATE REQUEST-----\n"
)


def test_certificate_request_is_approved_or_denied_once(kubepy: Kubepy, folder: Path) -> None:
    (folder / "csr.yaml").write_text(REQUEST % base64.b64encode(PEM.encode()).decode())
    assert kubepy("create", "-f", "csr.yaml").status == 0
    approved = "certificatesigningrequest.certificates.k8s.io/web approved\n"
    assert kubepy("certificate", "approve", "web") == Done(approved, "", 0)
    version = kubepy("get", "csr", "web", "-o", "jsonpath={.metadata.resourceVersion}").out
    assert kubepy("certificate", "approve", "web") == Done(approved, "", 0)
    assert kubepy("get", "csr", "web", "-o", "jsonpath={.metadata.resourceVersion}").out == version
    shown = "jsonpath={.status.conditions[*]['type','status','reason','message']}"
    assert kubepy("get", "csr", "web", "-o", shown).out == (
        "Approved True KubectlApprove This CSR was approved by kubectl certificate approve."
    )
    assert kubepy("certificate", "deny", "web").err == (
        'error: certificate signing request "web" is already Approved\n'
    )


def test_certificate_refuses_wrong_input(kubepy: Kubepy) -> None:
    assert kubepy("certificate", "approve").err == (
        "error: one or more CSRs must be specified as <name> or -f <filename>\n"
    )
    assert kubepy("certificate", "approve", "x").err == (
        'Error from server (NotFound): certificatesigningrequests.certificates.k8s.io "x" not '
        "found\n"
    )
    assert kubepy("certificate").out == kubepy("certificate", "--help").out


# --- cluster-info ---------------------------------------------------------------------------------


def test_cluster_info_names_folder(kubepy: Kubepy, folder: Path) -> None:
    assert kubepy("cluster-info") == Done(
        f"Kubernetes control plane is running at file://{folder}/state\n\n"
        "To further debug and diagnose cluster problems, use 'kubepy cluster-info dump'.\n",
        "",
        0,
    )


def test_cluster_info_without_cluster_fails(bare: Kubepy) -> None:
    assert bare("cluster-info").err.startswith('error: no cluster in "state": ')


def test_cluster_info_dump_prints_list_of_each_kind(kubepy: Kubepy) -> None:
    kubepy("run", "web", "--image=nginx")
    out = kubepy("cluster-info", "dump", "--namespaces=default").out
    documents, logs, _ = out.partition("==== START")
    assert [
        line.split('"')[3] for line in documents.splitlines() if line.startswith('    "kind"')
    ] == [
        "NodeList",
        "EventList",
        "ReplicationControllerList",
        "ServiceList",
        "DaemonSetList",
        "DeploymentList",
        "ReplicaSetList",
        "PodList",
    ]
    assert logs + _ == (
        "==== START logs for container web of pod default/web ====\n"
        "Request log error: no containers run here: pods are simulated\n"
        "==== END logs for container web of pod default/web ====\n"
    )


def test_cluster_info_dump_writes_files(kubepy: Kubepy, folder: Path) -> None:
    kubepy("run", "web", "--image=nginx")
    assert (
        kubepy("cluster-info", "dump", "--output-directory=out", "-o", "yaml").out
        == "Cluster info dumped to out\n"
    )
    found = sorted(
        str(path.relative_to(folder / "out"))
        for path in (folder / "out").rglob("*")
        if path.is_file()
    )
    assert found[:8] == [
        f"default/{name}"
        for name in (
            "daemonsets.yaml",
            "deployments.yaml",
            "events.yaml",
            "pods.yaml",
            "replicasets.yaml",
            "replication-controllers.yaml",
            "services.yaml",
            "web/logs.txt",
        )
    ]
    assert found[-1] == "nodes.yaml"


def test_impersonated_user_creates_certificate_request_and_self_subject_review(
    kubepy: Kubepy,
) -> None:
    ann = (
        "--as=ann",
        "--as-uid=7",
        "--as-group=painters",
        "--as-user-extra=team=red",
        "--as-user-extra=team=blue",
    )
    user = {
        "username": "ann",
        "uid": "7",
        "groups": ["painters", "system:authenticated"],
        "extra": {"team": ["red", "blue"]},
    }
    review = kubepy(
        "create",
        "-f",
        "-",
        "-o",
        "json",
        *ann,
        stdin="apiVersion: authentication.k8s.io/v1\nkind: SelfSubjectReview\n",
    ).out
    assert json.loads(review)["status"] == {"userInfo": user}
    request = REQUEST % base64.b64encode(PEM.encode()).decode()
    assert kubepy("create", "-f", "-", *ann, stdin=request).status == 0
    spec = json.loads(kubepy("get", "csr", "web", "-o", "json").out)["spec"]
    assert {key: spec[key] for key in user} == user


# --- create token ---------------------------------------------------------------------------------


def test_create_token_prints_token_that_the_key_in_the_folder_signed(
    kubepy: Kubepy, folder: Path
) -> None:
    from kubepy.apiserver.tokens import SigningKey, WebToken

    done = kubepy("create", "token", "default", "--duration=20m", "--audience=vault")
    token = WebToken.parse(done.out.strip())
    assert token is not None
    key = folder / "state" / ".kubepy" / "sa.key"
    assert token.is_signed_by(SigningKey(key.read_bytes()).public)
    assert key.stat().st_mode & 0o777 == 0o600
    assert (token.claims["aud"], token.claims["exp"] - token.claims["iat"]) == (["vault"], 1200)
    assert (
        kubepy("create", "token", "default", "-o", "jsonpath={.spec.expirationSeconds}").out
        == "3600"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("gone", 'failed to create token: serviceaccounts "gone" not found'),
        (
            "default --duration=5m",
            'failed to create token: TokenRequest.authentication.k8s.io "" is invalid: '
            "spec.expirationSeconds: Invalid value: 300: may not specify a duration less than 10 "
            "minutes",
        ),
        ("default --duration=-5m", "--duration must be greater than or equal to 0"),
        ("default --duration=1500ms", "--duration cannot be expressed in units less than seconds"),
        ("default --audience=", "--audience must not be an empty string"),
        (
            "default --bound-object-name=x",
            "--bound-object-name can only be set if --bound-object-kind is provided",
        ),
        (
            "default --bound-object-uid=x",
            "--bound-object-uid can only be set if --bound-object-kind is provided",
        ),
        (
            "default --bound-object-kind=Job",
            "supported --bound-object-kind values are Node, Pod, Secret",
        ),
        (
            "default --bound-object-kind=Pod",
            "--bound-object-name is required if --bound-object-kind is provided",
        ),
        (
            "default --bound-object-kind=Pod --bound-object-name=x",
            'failed to create token: pods "x" not found',
        ),
        (
            "a b",
            "exactly one NAME is required, got 2\nSee 'kubepy create token -h' for help and "
            "examples",
        ),
    ],
)
def test_create_token_that_cannot_be_fails_with_kubectls_words(
    kubepy: Kubepy, words: str, message: str
) -> None:
    assert kubepy("create", "token", *words.split()) == Done("", f"error: {message}\n", 1)
