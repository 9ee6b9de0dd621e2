"""The files of a pod's ServiceAccount, which every container finds at the same path.

With ``bootstrap: full`` the admission plugin ServiceAccount adds the volume; elsewhere pods have
none in their spec, and the kubelet of the model mounts it all the same: scripts read their
namespace there.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from kubepy.apiserver.podtokens import PodToken
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver import tokens

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Pod
    from kubepy.apiserver.client import Client

ReadToken = Callable[[bytes, datetime], bytes]  # what the file of a token keeps, at a time

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME = "kube-api-access"
SOURCES = (
    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
    {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
        }
    },
)


def with_account_volume(pod: Pod) -> Pod:
    """Return a pod with the volume of its ServiceAccount."""
    if not _needs_volume(pod):
        return pod
    spec = pod["spec"]
    volume: Any = {"name": VOLUME, "projected": {"sources": list(SOURCES), "defaultMode": 0o644}}
    volumes = [*(spec.get("volumes") or ()), volume]
    return {**pod, "spec": {**spec, "volumes": volumes}}


def with_account_mount(container: Container, pod: Pod) -> Container:
    """Return a container of a pod that :func:`with_account_volume` has returned, with the mount of
    the volume."""
    mounts = container.get("volumeMounts") or []
    volumes = pod["spec"].get("volumes") or ()
    has_volume = any(volume["name"] == VOLUME for volume in volumes)
    if not has_volume or any(mount["mountPath"] == MOUNT_PATH for mount in mounts):
        return container
    mount: Any = {"name": VOLUME, "mountPath": MOUNT_PATH, "readOnly": True}
    return {**container, "volumeMounts": [*mounts, mount]}


def _needs_volume(pod: Pod) -> bool:
    """Tell whether a pod may have a token and has no volume for it."""
    spec = cast("dict[str, Any]", pod["spec"])
    if spec.get("automountServiceAccountToken") is False:
        return False
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    return not any(
        mount.get("mountPath") == MOUNT_PATH
        for container in containers
        for mount in container.get("volumeMounts") or ()
    )


# --- their content --------------------------------------------------------------------------------


def token_reader(client: Client) -> ReadToken:
    """Return what makes the tokens of a cluster's pods when somebody reads their files. It raises
    FolderError, LockTimeoutError."""

    def read(content: bytes, now: datetime) -> bytes:
        token = PodToken.from_bytes(content)
        return client.tokens.of_pod(token, now, client.warn).encode()

    return read


def unsigned_token(content: bytes, now: datetime) -> bytes:
    """Return the token of a pod where there is no server that could sign it."""
    token = PodToken.from_bytes(content)
    account = {"name": token.account, "uid": ""}
    claims = tokens.Issuer().claims_of_pod(token, token.last_issued(now), account)
    return tokens.unsigned(claims).encode()
