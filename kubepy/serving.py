"""A server for an open cluster in this process: what ``Cluster.serve`` gives."""

from __future__ import annotations

import os
import tempfile
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kubepy.cli import installation
from kubepy.cli import serve as serve_command
from kubepy.cli.inner_commands import runner
from kubepy.cli.main import main
from kubepy.controlplane import groups
from kubepy.controlplane import open as opening
from kubepy.lazy import lazy_imports
from kubepy.server import application as applications

with lazy_imports():
    from kubepy.server import certificates, listener

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.results import AnsweredRequest

ADDRESS = "127.0.0.1"
START_SECONDS = 60.0


class ClusterServer:
    """A server of a cluster, in threads of this process, until it is closed.

    :ivar url: its URL.
    :ivar kubeconfig: the path of a kubeconfig for its administrator.
    :ivar token: the administrator's token.
    :ivar certificate_authority: the certificate of its CA, in PEM.
    :ivar requests: those that were answered so far, in the order of their answers.
    """

    def __init__(
        self, cluster: LocalCluster, place: str, *, controllers: str, authorization: str
    ) -> None:
        """Private: use ``Cluster.serve``.

        :param place: of a cluster that is not in memory; "": it is.
        """
        installation.require_serve()
        if authorization not in ("AlwaysAllow", "RBAC"):
            raise ValueError(f"authorization={authorization!r}: must be AlwaysAllow or RBAC")
        names = groups.reconcilers_of(controllers)
        self.requests: list[AnsweredRequest] = []
        self._folder = tempfile.TemporaryDirectory(prefix="kubepy-")
        keys = certificates.load_keys(self._folder.name)
        if not place:
            opening.read_in_full(cluster)
        options = applications.ServeOptions(authorization, names, run_command=runner(main))
        self.application = serve_command.new_application(place or cluster, options, keys)
        self.application.hear_request = self.requests.append
        sockets = listener.listen(ADDRESS, 0)
        self.url = serve_command.url_of(ADDRESS, sockets[0].getsockname()[1])
        self.token = keys.token
        self.certificate_authority = keys.ca.decode()
        self.kubeconfig = os.path.join(self._folder.name, "kubeconfig")
        serve_command.write_kubeconfig(self.kubeconfig, "cluster", self.url, keys.ca, keys.token)
        self._is_ready = threading.Event()
        self._error: BaseException | None = None
        self._server = listener.ThreadServer(
            self.application, serve_command.tls_files(keys), sockets, self._is_ready.set
        )
        self._thread = threading.Thread(target=self._run, name="kubepy server", daemon=True)
        self._thread.start()
        self._wait_until_ready()

    def __repr__(self) -> str:
        return f"<kubepy server at {self.url}>"

    def _run(self) -> None:
        try:
            listener.run(self._server)
        except BaseException as error:
            self._error = error
        finally:
            self._is_ready.set()

    def _wait_until_ready(self) -> None:
        """Wait until the server listens. Raises what has kept it from that."""
        if not self._is_ready.wait(START_SECONDS):
            self.close()
            raise TimeoutError(f"the server is not ready after {START_SECONDS:g} s")
        if self._error is not None:
            self.close()

    def environment(self) -> dict[str, str]:
        """Return the environment of this process with ``KUBECONFIG`` for a program that it
        starts."""
        return {**os.environ, "KUBECONFIG": self.kubeconfig}

    def kubernetes_client(self) -> Any:
        """Return an ``ApiClient`` of the package kubernetes. Raises ImportError without it."""
        client = import_module("kubernetes.client")
        configuration = client.Configuration()
        configuration.host = self.url
        configuration.ssl_ca_cert = self._file("ca.crt", self.certificate_authority)
        configuration.api_key = {"authorization": f"Bearer {self.token}"}
        return client.ApiClient(configuration)

    def _file(self, name: str, text: str) -> str:
        path = os.path.join(self._folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def close(self) -> None:
        """End the server: requests that have begun are answered, watches end. Closing it again
        does nothing. Raises what has ended the server before."""
        self._server.should_exit = True
        self._thread.join()
        self._folder.cleanup()
        error, self._error = self._error, None
        if error is not None:
            raise error
