"""Users made as in a cluster: a request for a certificate, its approval, a kubeconfig."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable
from datetime import timedelta
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from kubepy.server.signing import RefusedRequest, check_request, life_of
from tests.server.conftest import SECONDS, ServerProcess

NewServer = Callable[..., ServerProcess]
PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"


def request_for(
    name: str, *groups: str, key: Any = None, hosts: tuple[str, ...] = ()
) -> x509.CertificateSigningRequest:
    pairs = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*pairs, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if hosts:
        names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(key or ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())


def signing_request(
    name: str, wanted: x509.CertificateSigningRequest, *usages: str
) -> dict[str, Any]:
    pem = wanted.public_bytes(serialization.Encoding.PEM)
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "request": base64.b64encode(pem).decode(),
            "signerName": CLIENT,
            "usages": list(usages),
            "expirationSeconds": 3600,
        },
    }


def approve(server: ServerProcess, name: str) -> None:
    request = server.request("GET", f"{PATH}/{name}").json()
    condition = {"type": "Approved", "status": "True", "reason": "Test"}
    request["status"] = {"conditions": [condition]}
    assert server.request("PUT", f"{PATH}/{name}/approval", request).status == 200


def status_when(server: ServerProcess, name: str, holds: Callable[[Any], bool]) -> Any:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        status = server.request("GET", f"{PATH}/{name}").json().get("status", {})
        if holds(status):
            return status
        time.sleep(0.05)
    raise AssertionError(status)


def test_approved_request_gets_a_certificate_that_names_its_user(
    new_server: NewServer, tmp_path: Path
) -> None:
    server = new_server("--controllers=certificates", "--authorization=RBAC")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    wanted = request_for("jane", "dev", key=key)
    body = signing_request("jane", wanted, "client auth")
    assert server.request("POST", PATH, body).status == 201
    approve(server, "jane")
    status = status_when(server, "jane", lambda status: "certificate" in status)
    pem = base64.b64decode(status["certificate"])
    certificate = x509.load_pem_x509_certificate(pem)
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert life == timedelta(hours=1, minutes=5)
    key_pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = tmp_path / "jane.pem"
    path.write_bytes(pem + key_pem)
    context: ssl.SSLContext = server.tls()
    context.load_cert_chain(path)
    connection = HTTPSConnection(*server.address, timeout=SECONDS, context=context)
    connection.request("GET", "/api/v1/namespaces/default/pods")
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert answer["message"].startswith('pods is forbidden: User "jane" cannot list')


def test_request_that_its_signer_refuses_fails(new_server: NewServer) -> None:
    server = new_server("--controllers=certificates")
    body = signing_request("web", request_for("web"), "client auth", "server auth")
    assert server.request("POST", PATH, body).status == 201
    approve(server, "web")
    status = status_when(server, "web", lambda status: len(status.get("conditions", ())) > 1)
    failure = status["conditions"][1]
    assert (failure["type"], failure["reason"]) == ("Failed", "SignerValidationFailure")
    assert failure["message"] == "invalid usage for client certificate: server auth"
    assert "certificate" not in status


@pytest.mark.parametrize(
    ("signer", "wanted", "usages", "problem"),
    [
        (CLIENT, request_for("a"), ["digital signature"], "missing required usage"),
        (KUBELET, request_for("a"), ["client auth"], "subject organization is not system:nodes"),
        (
            KUBELET,
            request_for("system:node:a", "system:nodes", hosts=("a",)),
            ["client auth", "digital signature"],
            "DNS subjectAltNames are not allowed",
        ),
        (
            KUBELET,
            request_for("system:node:a", "system:nodes"),
            ["client auth"],
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (
            SERVING,
            request_for("system:node:a", "system:nodes"),
            ["server auth", "digital signature"],
            "DNS or IP subjectAltName is required",
        ),
        (
            SERVING,
            request_for("a", "system:nodes", hosts=("a",)),
            ["server auth", "digital signature"],
            "subject common name does not begin with system:node: ",
        ),
    ],
)
def test_signer_checks_what_it_signs(
    signer: str, wanted: x509.CertificateSigningRequest, usages: list[str], problem: str
) -> None:
    with pytest.raises(RefusedRequest) as refusal:
        check_request(signer, wanted, usages)
    assert str(refusal.value).startswith(problem)


def test_kubelets_requests_are_signed() -> None:
    node = request_for("system:node:a", "system:nodes")
    check_request(KUBELET, node, ["client auth", "digital signature", "key encipherment"])
    serving = request_for("system:node:a", "system:nodes", hosts=("a",))
    check_request(SERVING, serving, ["server auth", "digital signature"])


def test_life_of_a_certificate_has_bounds() -> None:
    lives = [life_of(seconds) for seconds in (None, 60, 3600, 10**9)]
    day = timedelta(days=1)
    assert lives == [365 * day, timedelta(minutes=10), timedelta(hours=1), 365 * day]
