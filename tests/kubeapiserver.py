"""A real kube-apiserver of the tests' own, on an etcd that a test has.

``KUBE_APISERVER=path`` names the program; without it the one on the PATH is taken.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.etcd import EtcdServer, free_ports, require_etcd
from tests.processes import ServerProgram

VERSION = "v1.36"
START_TIMEOUT = 60.0
TOKEN = "tests"
_JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


def program() -> str | None:
    """Return the path of kube-apiserver; None where there is none."""
    return shutil.which(os.environ.get("KUBE_APISERVER", "kube-apiserver"))


def require_kube_apiserver() -> str:
    """Return the path of kube-apiserver; skip the test where there is none of the right version, or
    no etcd."""
    require_etcd()
    path = program()
    if path is None:
        pytest.skip(f"there is no kube-apiserver here: KUBE_APISERVER names one of {VERSION}")
    run = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    version = run.stdout.split()[-1]
    if not version.startswith(f"{VERSION}."):
        pytest.skip(f"kube-apiserver here is {version}: these tests are for {VERSION}")
    return path


class Answer(NamedTuple):
    """What a server has answered."""

    status: int
    body: bytes

    @property
    def object(self) -> Any:
        return json.loads(self.body)


class KubeApiServer(ServerProgram):
    """A server, with a client that may do everything.

    :ivar port: of HTTPS.
    """

    ended_by = signal.SIGTERM

    def __init__(
        self, folder: Path, etcd: EtcdServer, prefix: str = "", flags: Sequence[str] = ()
    ) -> None:
        super().__init__(folder)
        [self.port] = free_ports(1)
        self._etcd = etcd
        self._prefix = prefix
        self._flags = flags

    # --- the process ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        path = require_kube_apiserver()
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "tokens").write_text(f'{TOKEN},admin,1,"system:masters"\n')
        key = self._make_key()
        command = [
            path,
            f"--etcd-servers=http://{self._etcd.endpoint}",
            f"--etcd-prefix={self._prefix}/registry",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--cert-dir={self.folder / 'certs'}",
            f"--token-auth-file={self.folder / 'tokens'}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC",
            *self._flags,
        ]
        self._run(command)
        self._wait()

    def _make_key(self) -> Path:
        """Make the key that signs tokens of ServiceAccounts."""
        key = rsa.generate_private_key(65537, 2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        path = self.folder / "serviceaccounts.key"
        path.write_bytes(pem)
        return path

    def _wait(self) -> None:
        end = time.monotonic() + START_TIMEOUT
        while not self._is_ready():
            self._check_start(is_late=time.monotonic() > end)
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        try:
            return self.request("GET", "/readyz").status == 200
        except OSError:
            return False

    # --- requests ---------------------------------------------------------------------------------

    def _connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # it has made its certificate itself
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=60)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> Answer:
        """Send a request; return whatever is answered."""
        headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": content_type,
            "Accept": accept,
        }
        connection = self._connect()
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, headers)
            response = connection.getresponse()
            return Answer(response.status, response.read())
        finally:
            connection.close()

    def send(self, method: str, path: str, body: Any = None, *, content_type: str = _JSON) -> Any:
        """Send a request that has to succeed; return the object of the answer."""
        answer = self.request(method, path, body, content_type=content_type)
        assert answer.status < 300, answer.body.decode(errors="replace")
        return answer.object

    def get(self, path: str) -> Any:
        return self.send("GET", path)

    @contextmanager
    def watch(self, path: str) -> Iterator[Iterator[Any]]:
        """Begin a watch; give its events as they come."""
        connection = self._connect()
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            yield (json.loads(line) for line in response)
        finally:
            connection.close()
