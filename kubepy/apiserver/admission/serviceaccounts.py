"""Admission by service account: a pod gets one that exists, its token and its image pull secrets.

Only clusters with ``bootstrap: full`` have it. Upstream: ``plugin/pkg/admission/serviceaccount``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kubepy.api.meta import Object, annotations_of
from kubepy.apiserver.bootstrap import (
    DEFAULT,
    ROOT_CA_CONFIG_MAP,
    SERVICE_ACCOUNTS,
    default_account,
)
from kubepy.apiserver.implied import is_active
from kubepy.apiserver.server import Attributes
from kubepy.apiserver.settings import FULL
from kubepy.storage import Key

MIRROR_POD = "kubernetes.io/config.mirror"
ENFORCE_MOUNTABLE_SECRETS = "kubernetes.io/enforce-mountable-secrets"
VOLUME_PREFIX = "kube-api-access-"
TOKEN_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS = 3607  # WarnOnlyBoundTokenExpirationSeconds
TRUE = ("1", "t", "T", "TRUE", "true", "True")  # of strconv.ParseBool


def set_service_account(attributes: Attributes) -> None:
    """Complete a new pod: its account, the volume with its token, its image pull secrets. Raises
    Forbidden."""
    pod = attributes.obj
    if attributes.server.settings.bootstrap != FULL or _is_mirror(pod):
        return
    spec = pod["spec"]
    spec["serviceAccountName"] = spec["serviceAccount"] = spec.get("serviceAccountName") or DEFAULT
    account = _account_of(attributes)
    automounts = (holder.get("automountServiceAccountToken") for holder in (spec, account))
    if next((value for value in automounts if value is not None), True):
        mount_token(attributes, spec)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [
            {"name": secret["name"]} for secret in account["imagePullSecrets"]
        ]


def check_service_account(attributes: Attributes) -> None:
    """Refuse a pod whose account is missing or must not use one of its secrets. Raises
    Forbidden."""
    pod = attributes.obj
    if attributes.server.settings.bootstrap != FULL:
        return
    if attributes.old is None and _is_mirror(pod):
        if problem := mirror_problem(pod["spec"]):
            raise attributes.forbidden(problem)
        return

    if not pod["spec"].get("serviceAccountName"):
        namespace = attributes.namespace
        name = pod["metadata"].get("name", "")
        raise attributes.forbidden(f"no service account specified for pod {namespace}/{name}")

    account = _account_of(attributes)
    if annotations_of(account).get(ENFORCE_MOUNTABLE_SECRETS) not in TRUE:
        return
    if problem := secret_problem(pod["spec"], account, is_ephemeral=attributes.old is not None):
        raise attributes.forbidden(problem)


def _is_mirror(pod: Object) -> bool:
    return MIRROR_POD in annotations_of(pod)


def _account_of(attributes: Attributes) -> Object:
    """Return the account of a pod; one named ``default`` is made if its controller has not come to
    it yet.

    Upstream's plugin waits for that controller. Raises Forbidden.
    """
    namespace = attributes.namespace
    name = attributes.obj["spec"]["serviceAccountName"]
    key = Key(SERVICE_ACCOUNTS, namespace, name)
    account = attributes.transaction.get(key)
    if account is None and name == DEFAULT:
        home = attributes.transaction.get(Key("namespaces", "", namespace))
        if home is not None and is_active(home):
            account = default_account(namespace)
            account["metadata"] |= {
                "creationTimestamp": attributes.context.clock.timestamp(),
                "uid": attributes.transaction.new_uid(attributes.context.ids, key),
            }
            attributes.transaction.count_object(key)
            account = attributes.transaction.create(key, account)

    if account is None:
        raise attributes.forbidden(
            f"error looking up service account {namespace}/{name}: "
            f'serviceaccount "{name}" not found'
        )

    return account


def mount_token(attributes: Attributes, spec: Object) -> None:
    """Mount the token in all containers that have nothing at its path."""
    volumes = spec.get("volumes") or []
    present = next(
        (volume["name"] for volume in volumes if str(volume.get("name")).startswith(VOLUME_PREFIX)),
        None,
    )
    metadata = attributes.obj["metadata"]
    transaction = attributes.transaction
    pod = attributes.scope.key_of(metadata.get("name") or metadata.get("generateName") or "")
    name = present or VOLUME_PREFIX + attributes.context.ids.suffix(
        *pod, VOLUME_PREFIX, number=transaction.names_given(pod)
    )
    is_mounted = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.get("volumeMounts") or []
        if not any(mount.get("mountPath") == TOKEN_MOUNT_PATH for mount in mounts):
            container["volumeMounts"] = [
                *mounts,
                {"mountPath": TOKEN_MOUNT_PATH, "name": name, "readOnly": True},
            ]
            is_mounted = True

    if is_mounted and present is None:
        spec["volumes"] = [*volumes, {"name": name, "projected": token_volume_source()}]


def token_volume_source() -> Object:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {
                "configMap": {
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                    "name": ROOT_CA_CONFIG_MAP,
                }
            },
            {"downwardAPI": {"items": [{"fieldRef": namespace, "path": "namespace"}]}},
        ],
    }


# --- secrets --------------------------------------------------------------------------------------


def mirror_problem(spec: Object) -> str:
    """Return the objection to a mirror pod, which a kubelet makes of a file: it has no account and
    no secrets."""
    if spec.get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    containers = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    volumes = spec.get("volumes") or ()
    sources = [
        source
        for volume in volumes
        for source in (volume.get("projected") or {}).get("sources") or ()
    ]
    if (
        spec.get("imagePullSecrets")
        or any("secret" in holder for holder in (*volumes, *sources))
        or any(_secrets_of_environment(container) for container in containers)
    ):
        return "a mirror pod may not reference secrets"

    if any("serviceAccountToken" in source for source in sources):
        return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def _secrets_of_environment(container: Object) -> list[tuple[str, str]]:
    """Return the secrets that a container's environment refers to, each with the words for
    where."""
    found = []
    for variable in container.get("env") or ():
        if (reference := (variable.get("valueFrom") or {}).get("secretKeyRef")) is not None:
            found.append((f"with envVar {variable['name']}", reference.get("name", "")))
    for source in container.get("envFrom") or ():
        if (reference := source.get("secretRef")) is not None:
            found.append(("with envFrom", reference.get("name", "")))
    return found


def secret_problem(spec: Object, account: Object, *, is_ephemeral: bool) -> str:
    """Return what is wrong with the secrets of a pod whose account must list them
    (``limitSecretReferences``)."""
    name = account["metadata"]["name"]
    mountable = _names(account.get("secrets"))
    for kind, secret in secret_references(spec, is_ephemeral=is_ephemeral):
        if secret not in mountable:
            return (
                f'{kind} secret.secretName="{secret}" is not allowed because service account '
                f"{name} does not "
                "reference that secret"
            )

    pull_secrets = _names(account.get("imagePullSecrets"))
    for index, reference in enumerate([] if is_ephemeral else spec.get("imagePullSecrets") or ()):
        if reference.get("name", "") not in pull_secrets:
            return (
                f'imagePullSecrets[{index}].name="{reference.get("name", "")}" is not allowed '
                f"because service "
                f"account {name} does not reference that imagePullSecret"
            )

    return ""


def secret_references(spec: Object, *, is_ephemeral: bool) -> Iterator[tuple[str, str]]:
    """Yield the secrets that a pod, or only its ephemeral containers, refers to, each after the
    words for where."""
    groups = [("init container", "initContainers"), ("container", "containers")]
    if is_ephemeral:
        groups = [("ephemeral container", "ephemeralContainers")]
    else:
        yield from (
            ("volume with", volume["secret"].get("secretName", ""))
            for volume in spec.get("volumes") or ()
            if "secret" in volume
        )
    for kind, field in groups:
        for container in spec.get(field) or ():
            for where, secret in _secrets_of_environment(container):
                yield f"{kind} {container['name']} {where} referencing", secret


def _names(references: Iterable[dict[str, Any]] | None) -> set[str]:
    return {reference.get("name", "") for reference in references or ()}
