"""The programs of ``kubepy envtest-assets``, started as envtest starts them."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubepy import KUBERNETES_VERSION
from kubepy.apiserver.tokens import WebToken, verifying_keys
from kubepy.controlplane import NAMES
from kubepy.controlplane.groups import (
    EVERY,
    GROUPS,
    OF_SERVER,
    SIGNING,
    UnknownGroupError,
    reconcilers_of,
)
from kubepy.server.envtest import assets, featuregates
from kubepy.server.envtest.flags import ServerFlagError, parse_arguments
from tests.cli.conftest import run
from tests.etcd import free_ports
from tests.server.conftest import Answer
from tests.server.credentials import Pair, needed_flags, new_pair
from tests.waiting import eventually

SECONDS = 20.0
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def poll(url_port: int, path: str, context: ssl.SSLContext | None) -> None:
    """Ask until the answer is 200, as envtest does for each program."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        connection = (
            HTTPSConnection("127.0.0.1", url_port, timeout=SECONDS, context=context)
            if context
            else HTTPConnection("127.0.0.1", url_port, timeout=SECONDS)
        )
        try:
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.02)
    raise AssertionError(f"port {url_port} is not ready")


class Envtest:
    """A control plane as ``envtest.Environment.Start`` makes it.

    :ivar ready_seconds: how long both programs took until they were ready.
    """

    def __init__(self, assets_folder: str, folder: Path, *, environment: dict[str, str]) -> None:
        self.folder = folder
        self.serving_ca, self.client_ca = new_pair("serving-ca"), new_pair("client-ca")
        serving = new_pair("kube-apiserver", self.serving_ca, usage=ExtendedKeyUsageOID.SERVER_AUTH)
        account_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        account_pem = account_key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        public_pem = account_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        for name, content in (
            ("apiserver.crt", serving.pem()),
            ("apiserver.key", serving.key_pem()),
            ("client-cert-auth-ca.crt", self.client_ca.pem()),
            ("sa-signer.crt", public_pem),
            ("sa-signer.key", account_pem),
        ):
            (folder / name).write_bytes(content)
        etcd_port, peer_port, self.port = free_ports(3)
        self.issuer = f"https://127.0.0.1:{self.port}/"
        begin = time.monotonic()
        helps = [
            subprocess.run([f"{assets_folder}/{name}", "--help"], capture_output=True, check=True)
            for name in ("etcd", "kube-apiserver")
        ]
        assert b"--insecure-port" not in helps[1].stdout
        self.log = open(folder / "log", "wb")  # noqa: SIM115
        self.etcd = self._start(
            [
                f"{assets_folder}/etcd",
                f"--advertise-client-urls=http://127.0.0.1:{etcd_port}",
                f"--data-dir={folder}",
                f"--listen-client-urls=http://127.0.0.1:{etcd_port}",
                f"--listen-peer-urls=http://127.0.0.1:{peer_port}",
                "--unsafe-no-fsync=true",
            ],
            environment,
        )
        poll(etcd_port, "/health", None)
        self.apiserver = self._start(
            [
                f"{assets_folder}/kube-apiserver",
                "--allow-privileged=true",
                "--authorization-mode=RBAC",
                "--bind-address=127.0.0.1",
                f"--cert-dir={folder}",
                f"--client-ca-file={folder}/client-cert-auth-ca.crt",
                "--disable-admission-plugins=ServiceAccount",
                f"--etcd-servers=http://127.0.0.1:{etcd_port}",
                f"--secure-port={self.port}",
                f"--service-account-issuer={self.issuer}",
                f"--service-account-key-file={folder}/sa-signer.crt",
                f"--service-account-signing-key-file={folder}/sa-signer.key",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--watch-cache=true",
            ],
            environment,
        )
        unverified = ssl.create_default_context()
        unverified.check_hostname = False
        unverified.verify_mode = ssl.CERT_NONE
        poll(self.port, "/healthz", unverified)
        self.ready_seconds = time.monotonic() - begin
        self.admin = self.user("admin", "system:masters")

    def _start(self, words: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **environment},
        )

    def user(self, name: str, *groups: str, ca: Pair | None = None) -> ssl.SSLContext:
        """Return a context with a client certificate, as ``AddUser`` provides it."""
        pair = new_pair(
            name, ca or self.client_ca, groups=groups, usage=ExtendedKeyUsageOID.CLIENT_AUTH
        )
        path = self.folder / f"{name}.pem"
        path.write_bytes(pair.pem() + pair.key_pem())
        context = ssl.create_default_context(cadata=self.serving_ca.pem().decode())
        context.load_cert_chain(path)
        return context

    def anonymous(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.serving_ca.pem().decode())

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        context: ssl.SSLContext | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        connection = HTTPSConnection(
            "127.0.0.1", self.port, timeout=SECONDS, context=context or self.admin
        )
        try:
            text = None if body is None else json.dumps(body)
            all_headers = {"Content-Type": "application/json", **(headers or {})}
            connection.request(method, path, text, all_headers)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def logged(self) -> str:
        return (self.folder / "log").read_text()

    def stop(self) -> list[int]:
        """End both programs as envtest does; return their statuses."""
        statuses = []
        for process in (self.apiserver, self.etcd):
            process.send_signal(signal.SIGTERM)
            statuses.append(process.wait(SECONDS))
        self.log.close()
        return statuses


@pytest.fixture(scope="module")
def assets_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        done = run("envtest-assets")
    assert done.status == 0, done.err
    return done.out.strip()


@pytest.fixture(scope="module")
def new_envtest(
    assets_folder: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Envtest]]:
    started: list[Envtest] = []

    def start(**environment: str) -> Envtest:
        folder = tmp_path_factory.mktemp("envtest")
        started.append(Envtest(assets_folder, folder, environment=environment))
        return started[-1]

    yield start
    for envtest in started:
        if envtest.apiserver.poll() is None:
            envtest.stop()


@pytest.fixture(scope="module")
def envtest(new_envtest: Callable[..., Envtest]) -> Envtest:
    return new_envtest()


@pytest.fixture(scope="module")
def widgets(envtest: Envtest) -> Envtest:
    """A control plane with a custom kind."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert envtest.request("POST", path, definition).status == 201
    return envtest


def widget(name: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}


# --- the folder -----------------------------------------------------------------------------------


def test_assets_folder_is_made_once_and_is_not_on_the_path(assets_folder: str) -> None:
    assert sorted(os.listdir(assets_folder)) == ["etcd", "kube-apiserver", "kubectl"]
    assert assets_folder not in os.environ["PATH"].split(":")
    made = os.stat(f"{assets_folder}/etcd").st_mtime_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(Path(assets_folder).parents[2]))
        assert assets.make_assets("api") == assets_folder
        assert assets.make_assets("api,gc") != assets_folder
        assert os.stat(f"{assets_folder}/etcd").st_mtime_ns == made
        os.unlink(f"{assets_folder}/etcd")
        assert assets.make_assets("api") == assets_folder
    assert os.access(f"{assets_folder}/etcd", os.X_OK)


def test_help_names_flags_that_envtest_looks_for(assets_folder: str) -> None:
    for name, flag in (("kube-apiserver", "--etcd-servers"), ("etcd", "--listen-client-urls")):
        done = subprocess.run(
            [f"{assets_folder}/{name}", "--help"], capture_output=True, text=True, check=True
        )
        assert flag in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 80


def test_version_is_that_of_kubernetes(assets_folder: str) -> None:
    done = subprocess.run(
        [f"{assets_folder}/kube-apiserver", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    assert done.stdout == f"Kubernetes {KUBERNETES_VERSION}\n"


def test_flags_that_an_api_server_needs_are_asked_for(assets_folder: str) -> None:
    done = subprocess.run(
        [
            f"{assets_folder}/kube-apiserver",
            "--service-account-issuer=https://127.0.0.1/",
            "--service-account-key-file=a.pub",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 1
    assert done.stderr.endswith(
        '"command failed" err="[--etcd-servers must be specified, '
        '--service-account-signing-key-file and --service-account-issuer are required flags]"\n'
    )


def test_kubectl_of_the_folder_runs_the_next_one_on_the_path(
    assets_folder: str, tmp_path: Path
) -> None:
    other = tmp_path / "kubectl"
    other.write_text('#!/bin/sh\necho "other: $*"\n')
    other.chmod(0o755)
    path = f"{assets_folder}:{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(
        [f"{assets_folder}/kubectl", "get", "a b"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": path},
    )
    assert done.stdout == "other: get a b\n"


def test_unknown_group_of_controllers_is_an_error() -> None:
    done = run("envtest-assets", "--controllers=gc,nothing")
    assert done.status == 1
    assert done.err.startswith("error: --controllers: nothing is no group of controllers: must be")


# --- a control plane ------------------------------------------------------------------------------


def test_programs_end_on_sigterm(new_envtest: Callable[..., Envtest]) -> None:
    assert new_envtest().stop() == [0, 0]


def test_unknown_flag_is_accepted_with_a_line_in_the_log(envtest: Envtest) -> None:
    assert "--watch-cache=true: this flag does nothing here\n" in envtest.logged()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
def test_health_needs_no_certificate(envtest: Envtest, path: str) -> None:
    assert envtest.request("GET", path, context=envtest.anonymous()).body == b"ok"
    assert envtest.request("GET", path).body == b"ok"


def test_cluster_is_that_of_a_bare_api_server(envtest: Envtest) -> None:
    names = {
        path: [item["metadata"]["name"] for item in envtest.request("GET", path).json()["items"]]
        for path in (
            "/api/v1/namespaces",
            "/api/v1/nodes",
            "/apis/storage.k8s.io/v1/storageclasses",
            "/api/v1/services",
        )
    }
    assert list(names.values()) == [
        ["default", "kube-node-lease", "kube-public", "kube-system"],
        [],
        [],
        ["kubernetes"],
    ]
    service = envtest.request("GET", "/api/v1/namespaces/default/services/kubernetes").json()
    assert service["spec"]["clusterIP"] == "10.0.0.1"


def test_certificate_names_user_and_groups(envtest: Envtest) -> None:
    context = envtest.user("jane", "dev", "ops")
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    user = envtest.request("POST", path, body, context).json()["status"]["userInfo"]
    (credential,) = user["extra"].pop("authentication.kubernetes.io/credential-id")
    assert user == {
        "username": "jane",
        "groups": ["dev", "ops", "system:authenticated"],
        "extra": {},
    }
    assert credential.startswith("X509SHA256=")
    refused = envtest.request("GET", "/api/v1/namespaces/default/pods", context=context)
    assert refused.status == 403
    assert 'User "jane" cannot list resource "pods"' in refused.json()["message"]


def test_request_without_certificate_and_token_is_unauthorized(envtest: Envtest) -> None:
    assert envtest.request("GET", "/api/v1/pods", context=envtest.anonymous()).status == 401


def test_certificate_of_another_ca_is_refused(envtest: Envtest) -> None:
    context = envtest.user("mallory", "system:masters", ca=new_pair("client-ca"))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        envtest.request("GET", "/api/v1/pods", context=context)


def test_tokens_are_signed_with_the_given_key(envtest: Envtest) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    assert envtest.request("POST", accounts, account).status == 201
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    answer = envtest.request("POST", f"{accounts}/robot/token", body).json()
    token = WebToken.parse(answer["status"]["token"])
    assert token is not None
    header = json.loads(base64.urlsafe_b64decode(f"{token.text.split('.')[0]}=="))
    assert header["alg"] == "RS256"
    assert (token.claims["iss"], token.claims["aud"]) == (envtest.issuer, [envtest.issuer])
    (key,) = verifying_keys((envtest.folder / "sa-signer.crt").read_bytes())
    assert token.is_signed_by(key)
    bearer = {"Authorization": f"Bearer {token.text}"}
    refused = envtest.request(
        "GET", "/api/v1/pods", context=envtest.anonymous(), headers=bearer
    ).json()
    assert 'User "system:serviceaccount:default:robot" cannot list' in refused["message"]
    keys = envtest.request("GET", "/openid/v1/jwks").json()["keys"]
    assert [(web_key["kty"], web_key["alg"], web_key["kid"]) for web_key in keys] == [
        ("RSA", "RS256", key.id)
    ]
    configuration = envtest.request("GET", "/.well-known/openid-configuration").json()
    assert configuration["issuer"] == envtest.issuer
    assert configuration["id_token_signing_alg_values_supported"] == ["RS256"]


def test_custom_resource_is_created_patched_and_finalized(widgets: Envtest) -> None:
    body = widget("first")
    body["metadata"]["finalizers"] = ["example.com/mine"]
    assert widgets.request("POST", WIDGETS, body).status == 201
    assert widgets.request("DELETE", f"{WIDGETS}/first").status == 200
    assert "deletionTimestamp" in widgets.request("GET", f"{WIDGETS}/first").json()["metadata"]
    patch = [{"op": "remove", "path": "/metadata/finalizers"}]
    headers = {"Content-Type": "application/json-patch+json"}
    assert widgets.request("PATCH", f"{WIDGETS}/first", patch, headers=headers).status == 200
    assert widgets.request("GET", f"{WIDGETS}/first").status == 404


class Hook(BaseHTTPRequestHandler):
    """A webhook that refuses widgets called ``bad``."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        allowed = request["object"]["metadata"]["name"] != "bad"
        response = {"uid": request["uid"], "allowed": allowed}
        content = json.dumps({**review, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def test_webhook_whose_bundle_is_its_own_leaf_certificate_is_called(
    widgets: Envtest, tmp_path: Path
) -> None:
    leaf = new_pair("webhook", new_pair("hook-ca"), usage=ExtendedKeyUsageOID.SERVER_AUTH)
    path = tmp_path / "hook.pem"
    path.write_bytes(leaf.pem() + leaf.key_pem())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    hook = HTTPServer(("127.0.0.1", 0), Hook)
    hook.socket = context.wrap_socket(hook.socket, server_side=True)
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [
            {
                "name": "hook.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {
                    "url": f"https://127.0.0.1:{hook.server_port}/",
                    "caBundle": base64.b64encode(leaf.pem()).decode(),
                },
                "rules": [
                    {
                        "apiGroups": ["example.com"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["widgets"],
                    }
                ],
            }
        ],
    }
    try:
        assert widgets.request("POST", configurations, configuration).status == 201
        assert widgets.request("POST", WIDGETS, widget("good")).status == 201
        refused = widgets.request("POST", WIDGETS, widget("bad")).json()
        assert (
            refused["message"]
            == 'admission webhook "hook.example.com" denied the request without explanation'
        )
        widgets.request("DELETE", f"{configurations}/hook")
    finally:
        hook.shutdown()
        hook.server_close()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl")
def test_kubectl_uses_a_kubeconfig_with_a_client_certificate(
    widgets: Envtest, assets_folder: str
) -> None:
    pair = new_pair(
        "helper",
        widgets.client_ca,
        groups=("system:masters",),
        usage=ExtendedKeyUsageOID.CLIENT_AUTH,
    )
    encoded = {
        name: base64.b64encode(content).decode()
        for name, content in (
            ("ca", widgets.serving_ca.pem()),
            ("certificate", pair.pem()),
            ("key", pair.key_pem()),
        )
    }
    user = {
        "client-certificate-data": encoded["certificate"],
        "client-key-data": encoded["key"],
    }
    cluster = {
        "server": f"https://127.0.0.1:{widgets.port}",
        "certificate-authority-data": encoded["ca"],
    }
    kubeconfig = widgets.folder / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "envtest",
                "clusters": [{"name": "envtest", "cluster": cluster}],
                "users": [{"name": "envtest", "user": user}],
                "contexts": [
                    {"name": "envtest", "context": {"cluster": "envtest", "user": "envtest"}}
                ],
            }
        )
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(widgets.folder)}

    def kubectl(*words: str, text: str = "") -> str:
        done = subprocess.run(
            [f"{assets_folder}/kubectl", f"--kubeconfig={kubeconfig}", *words],
            input=text,
            capture_output=True,
            text=True,
            env=env,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "widget.example.com/second created" in kubectl(
        "apply", "-f", "-", text=json.dumps(widget("second"))
    )
    assert kubectl("get", "widgets", "second", "-o", "name") == "widget.example.com/second\n"
    assert "helper" in kubectl("auth", "whoami")
    kubectl("delete", "widget", "second")


def test_namespace_stays_without_its_controller_and_goes_with_it(
    envtest: Envtest, new_envtest: Callable[..., Envtest]
) -> None:
    other = new_envtest(KUBEPY_ENVTEST_CONTROLLERS="namespace,gc")
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short"}}
    for plane in (envtest, other):
        assert plane.request("POST", "/api/v1/namespaces", body).status == 201
        assert plane.request("DELETE", "/api/v1/namespaces/short").status == 200
    assert eventually(lambda: other.request("GET", "/api/v1/namespaces/short").status == 404)
    namespace = envtest.request("GET", "/api/v1/namespaces/short").json()
    assert namespace["status"]["phase"] == "Terminating"


def test_time_goes_on_while_the_suite_waits(new_envtest: Callable[..., Envtest]) -> None:
    plane = new_envtest(KUBEPY_ENVTEST_TIME="when-idle", KUBEPY_ENVTEST_CONTROLLERS="workloads")
    path = "/apis/batch/v1/namespaces/default/jobs"
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}
    spec = {"activeDeadlineSeconds": 1800, "template": {"spec": pod}}
    body = {"metadata": {"name": "late"}, "spec": spec}
    made = plane.request("POST", path, body).json()
    begin = datetime.fromisoformat(made["metadata"]["creationTimestamp"])
    assert abs(begin - datetime.now(UTC)) < timedelta(days=1)

    def failed() -> list[Any]:
        time.sleep(0.3)  # a client that asks without a pause lets no time pass
        status = plane.request("GET", f"{path}/late").json()["status"]
        return [entry for entry in status.get("conditions", ()) if entry["type"] == "Failed"]

    assert eventually(lambda: bool(failed()))
    [condition] = failed()
    assert condition["reason"] == "DeadlineExceeded"
    end = datetime.fromisoformat(condition["lastTransitionTime"])
    assert timedelta(seconds=1800) <= end - begin < timedelta(seconds=1815)


def test_node_and_pod_of_a_test_are_left_alone(envtest: Envtest) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p1"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "nginx"}]},
    }
    assert envtest.request("POST", "/api/v1/nodes", node).status == 201
    path = "/api/v1/namespaces/default/pods"
    assert envtest.request("POST", path, pod).status == 201
    made = envtest.request("GET", "/api/v1/nodes/n1").json()
    time.sleep(1.0)
    assert envtest.request("GET", "/api/v1/nodes/n1").json() == made
    assert envtest.request("GET", f"{path}/p1").json()["status"]["phase"] == "Pending"
    leases = envtest.request("GET", "/apis/coordination.k8s.io/v1/leases").json()
    assert leases["items"] == []


# --- what kube-apiserver refuses ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--feature-gates=Nothing=true"], "unrecognized feature gate: Nothing"),
        (
            ["--feature-gates=SidecarContainers=false"],
            "cannot set feature gate SidecarContainers to false, feature is locked to true",
        ),
        (["--feature-gates=WatchList"], "missing bool value for WatchList"),
        (
            ["--disable-admission-plugins=Nothing"],
            'disable-admission-plugins plugin \\"Nothing\\" is unknown',
        ),
        (["--authorization-mode=Nothing"], 'authorization-mode \\"Nothing\\" is not a valid mode'),
        (["--secure-port=none"], "--secure-port=none: must be a number from 0 to 65535"),
        (["--client-ca-file=/nowhere"], "--client-ca-file: open /nowhere: no such file"),
        (["--service-cluster-ip-range=10.0.0.0/31"], "--service-cluster-ip-range: 10.0.0.0/31"),
    ],
)
def test_wrong_flag_ends_with_an_error(
    assets_folder: str, tmp_path: Path, flags: list[str], error: str
) -> None:
    done = subprocess.run(
        [f"{assets_folder}/kube-apiserver", *needed_flags(tmp_path), *flags],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("E")
    assert f'"command failed" err="{error}' in last


def test_taken_port_ends_with_an_error(assets_folder: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        words = ["--bind-address=127.0.0.1", f"--secure-port={port}", *needed_flags(tmp_path)]
        done = subprocess.run(
            [f"{assets_folder}/kube-apiserver", *words],
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1
    assert "address already in use" in done.stderr
    assert sorted(os.listdir(tmp_path / "certs")) == ["apiserver.crt", "apiserver.key"]


def test_feature_gates_of_both_kinds_are_known() -> None:
    gates = featuregates.parse_feature_gates("kube:WatchList=true, AllAlpha=f,SidecarContainers=1")
    assert gates == {"WatchList": True, "AllAlpha": False, "SidecarContainers": True}
    featuregates.check_feature_gates(gates)


def test_arguments_are_read_as_pflag_does() -> None:
    arguments = parse_arguments(
        ["--secure_port", "1", "--allow-privileged", "--x", "y", "--z", "-v=2", "--v=3"]
    )
    assert arguments.values == {"secure-port": ["1"], "allow-privileged": ["true"], "v": ["2", "3"]}
    assert arguments.unknown == ["--x", "--z"]
    for words in (["--secure-port"], ["serve"]):
        with pytest.raises(ServerFlagError):
            parse_arguments(words)


# --- groups of controllers ------------------------------------------------------------------------


def test_every_reconciler_is_in_one_group() -> None:
    names = [name for group in GROUPS.values() for name in group]
    assert sorted(names) == sorted((*NAMES, SIGNING))


def test_groups_are_added_to_those_of_an_api_server() -> None:
    assert reconcilers_of("") == {"crd-finalizer", "kubernetes-service-controller"}
    assert reconcilers_of("gc, job-controller") == {
        *reconcilers_of("api"),
        "garbage-collector-controller",
        "job-controller",
    }
    assert reconcilers_of("off") == OF_SERVER == reconcilers_of("api,kubelet")
    assert reconcilers_of("all") == reconcilers_of("on") == EVERY
    with pytest.raises(UnknownGroupError):
        reconcilers_of("all,gc,nothing")


# --- harnesses


def test_harness_forks_and_resets_a_control_plane(new_envtest: Callable[..., Envtest]) -> None:
    envtest = new_envtest(KUBEPY_ENVTEST_CLOCK="2026-01-01T00:00:00Z")
    maps = "/api/v1/namespaces/default/configmaps"
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    fork = envtest.request("POST", "/kubepy/forks", {}).json()
    assert envtest.request("POST", maps, config_map).status == 201
    assert envtest.request("GET", f"{fork['server'].rstrip('/')}{maps}/a").status == 404
    moved = envtest.request("POST", "/kubepy/clock/advance", {"by": "30m"})
    assert moved.json() == {"now": "2026-01-01T00:30:00Z"}
    plan = envtest.request("POST", "/kubepy/plan", {"command": ["delete", "configmap", "a"]})
    assert plan.json()["kind"] == "Plan"
    assert envtest.request("POST", "/kubepy/reset", {"to": fork["id"]}).status == 200
    assert envtest.request("GET", f"{maps}/a").status == 404
    developer = envtest.user("jane", "developers")
    assert envtest.request("POST", "/kubepy/forks", {}, developer).status == 403
    assert envtest.stop() == [0, 0]


def test_clock_that_is_no_time_ends_the_apiserver(assets_folder: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [f"{assets_folder}/kube-apiserver", *needed_flags(tmp_path), "--secure-port=0"],
        env={**os.environ, "KUBEPY_ENVTEST_CLOCK": "noon"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 1
    assert "KUBEPY_ENVTEST_CLOCK=noon: " in done.stderr
