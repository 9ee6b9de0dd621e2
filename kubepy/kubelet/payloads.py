"""The files of volumes that show objects of the cluster: ConfigMaps, Secrets, fields of the pod,
tokens of its ServiceAccount.

Upstream: ``MakePayload`` in ``pkg/volume/{configmap,secret}``, ``CollectData`` in
``pkg/volume/downwardapi``, ``collectData`` in ``pkg/volume/projected``. Pure functions.
"""

from __future__ import annotations

import posixpath
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import (
    AnyObject,
    Object,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    uid_of,
)
from kubepy.api.objects.references import CONFIG_MAPS, KINDS, ROOT_CA_CONFIG_MAP, SECRETS, Find
from kubepy.apiserver.podtokens import PodToken
from kubepy.kubelet.downward import DownwardError, field_of_pod, resource_for_file

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod

DEFAULT_MODE = 0o644
CHANGING_FIELDS = ("metadata.labels", "metadata.annotations")
TOKEN_SECONDS = 3600  # of a token whose source does not say
NO_TRUST_BUNDLES = "ClusterTrustBundle projection is not supported in static kubelet mode"
NO_POD_CERTIFICATES = "PodCertificate projection is not supported in static kubelet mode"


class FileProjection(NamedTuple):
    """A file of a volume.

    :ivar is_owned: it belongs to the user of the pod's containers, not to root.
    :ivar is_token: the data say which token it is, a PodToken.
    """

    data: bytes
    mode: int
    is_owned: bool = False
    is_token: bool = False


Payload = dict[str, FileProjection]  # by path, relative to the volume


class MountError(Exception):
    """What keeps a volume from being mounted, in the kubelet's words: the end of the message of
    ``FailedMount``."""


class VolumeSources(NamedTuple):
    """Where the files of volumes come from.

    :ivar find: looks up ConfigMaps and Secrets.
    """

    find: Find
    node: Node


def is_projection(volume: AnyObject) -> bool:
    """Tell whether a volume shows objects of the cluster, so that nobody can write into it."""
    sources = [volume.get(field) for field in _PROJECTIONS]
    return any(source is not None for source in sources)


def shows_changing_fields(pod: Pod) -> bool:
    """Tell whether a volume shows what may change in its own pod: labels, annotations, resources
    of containers."""
    for volume in pod["spec"].get("volumes") or ():
        sources = [volume, *nested_list(volume, "projected", "sources")]
        for source in sources:
            for item in nested_list(source, "downwardAPI", "items"):
                path = nested_map(item, "fieldRef").get("fieldPath") or ""
                if item.get("resourceFieldRef") or path.startswith(CHANGING_FIELDS):
                    return True
    return False


def payload_of(
    pod: Pod,
    volume: AnyObject,
    sources: VolumeSources,
    now: datetime,
    before: Payload | None = None,
) -> Payload:
    """Return the files of a volume that shows objects. Raises MountError.

    :param before: the files that the volume has, of which tokens are taken over: they are renewed
        as time goes on.
    """
    collector = _Collector(
        pod,
        sources,
        now,
        before or {},
    )
    for field, collect in _PROJECTIONS.items():
        source = volume.get(field)
        if source is not None:
            payload = collect(collector, source, source.get("defaultMode", DEFAULT_MODE))
            return {posixpath.normpath(path): file for path, file in payload.items()}
    raise ValueError(f"volume {volume['name']} shows no objects")


class _Collector:
    """Collects the files of one volume."""

    def __init__(
        self, pod: Pod, sources: VolumeSources, now: datetime, before: Mapping[str, FileProjection]
    ) -> None:
        self._pod = pod
        self._sources = sources
        self._now = now
        self._before = before

    def config_map(self, source: AnyObject, default_mode: int) -> Payload:
        obj = self._object(CONFIG_MAPS, source.get("name") or "", source)
        texts = nested_map(obj, "data")
        contents = {key: text.encode() for key, text in texts.items()}
        for key, encoded in nested_map(obj, "binaryData").items():
            contents[key] = b64decode(encoded)
        return _chosen(
            contents, source, default_mode, "configmap references non-existent config key"
        )

    def secret(self, source: AnyObject, default_mode: int) -> Payload:
        name = source.get("secretName") or source.get("name")
        obj = self._object(SECRETS, name or "", source)
        encoded = nested_map(obj, "data")
        contents = {}
        for key, value in encoded.items():
            contents[key] = b64decode(value)
        return _chosen(
            contents,
            source,
            default_mode,
            "references non-existent secret key",
        )

    def _object(self, resource: str, name: str, source: AnyObject) -> AnyObject:
        """Return an object; an empty one where it may be missing and is."""
        namespace = namespace_of(self._pod)
        obj = self._sources.find(resource, namespace, name)
        if obj is not None:
            return obj
        if source.get("optional"):
            return {}
        if (resource, name) == (CONFIG_MAPS, ROOT_CA_CONFIG_MAP):
            from kubepy.apiserver.bootstrap import root_ca_config_map  # few clusters lack it

            return root_ca_config_map(namespace)
        raise MountError(f'{KINDS[resource].lower()} "{name}" not found')

    def downward_api(self, source: AnyObject, default_mode: int) -> Payload:
        payload: Payload = {}
        problems = []
        for item in source.get("items") or ():
            try:
                text = self._downward_text(item)
            except DownwardError as error:
                problems.append(str(error))
                continue
            mode = item.get("mode")
            if mode is None:
                mode = default_mode
            payload[item["path"]] = FileProjection(text.encode(), mode)
        _raise_all(problems)
        return payload

    def _downward_text(self, item: AnyObject) -> str:
        """Return the text of a file. Raises DownwardError."""
        field = item.get("fieldRef")
        if field is not None:
            return field_of_pod(self._pod, field.get("fieldPath") or "")
        selector = item.get("resourceFieldRef")
        if selector is None:
            return ""
        allocatable = nested_map(self._sources.node, "status", "allocatable")
        return resource_for_file(selector, self._pod, allocatable)

    def projected(self, source: AnyObject, default_mode: int) -> Payload:
        payload: Payload = {}
        problems = []
        for projection in source.get("sources") or ():
            try:
                payload |= self._projection(projection, default_mode)
            except MountError as error:
                problems.append(str(error))
        _raise_all(problems)
        return payload

    def _projection(self, projection: AnyObject, default_mode: int) -> Payload:
        """Return the files of one source of a projected volume. Raises MountError."""
        for field, source in projection.items():
            if source is None:
                continue
            match field:
                case "secret":
                    return self.secret(source, default_mode)
                case "configMap":
                    return self.config_map(source, default_mode)
                case "downwardAPI":
                    return self.downward_api(source, default_mode)
                case "serviceAccountToken":
                    return self._token(source, default_mode)
                case "clusterTrustBundle":
                    raise MountError(NO_TRUST_BUNDLES)  # off by default in v1.36
                case "podCertificate":
                    raise MountError(NO_POD_CERTIFICATES)  # likewise
        return {}

    def _token(self, source: AnyObject, default_mode: int) -> Payload:
        path = source.get("path") or ""
        mode = default_mode
        if fs_group_of(self._pod) is not None or fs_user_of(self._pod) is not None:
            mode = 0o600  # the owner reads it, or the group, which is let in with all its files
        before = self._before.get(posixpath.normpath(path))
        if before is not None and before.is_token:
            data = before.data
        else:
            data = self._token_to_ask_for(source).to_bytes()
        file = FileProjection(
            data,
            mode,
            is_owned=True,
            is_token=True,
        )
        return {path: file}

    def _token_to_ask_for(self, source: AnyObject) -> PodToken:
        return PodToken(
            namespace_of(self._pod),
            self._pod["spec"].get("serviceAccountName") or "default",
            source.get("audience") or "",
            source.get("expirationSeconds") or TOKEN_SECONDS,
            _reference(self._pod),
            _reference(self._sources.node),
            int(self._now.timestamp()),
        )


def _reference(obj: AnyObject) -> Object:
    return {"name": name_of(obj), "uid": uid_of(obj)}


_Collect = Callable[[_Collector, AnyObject, int], Payload]
_PROJECTIONS: Mapping[str, _Collect] = {
    "configMap": _Collector.config_map,
    "secret": _Collector.secret,
    "downwardAPI": _Collector.downward_api,
    "projected": _Collector.projected,
}


def _chosen(
    contents: Mapping[str, bytes], source: AnyObject, default_mode: int, problem: str
) -> Payload:
    """Return the items that a source names, or all. Raises MountError."""
    items = source.get("items")
    if not items:
        return {key: FileProjection(data, default_mode) for key, data in contents.items()}
    payload: Payload = {}
    for item in items:
        data = contents.get(item["key"])
        if data is None and not source.get("optional"):
            raise MountError(f"{problem}: {item['key']}")
        if data is None:
            continue
        mode = item.get("mode")
        if mode is None:
            mode = default_mode
        payload[item["path"]] = FileProjection(data, mode)
    return payload


def _raise_all(problems: Iterable[str]) -> None:
    """Raise a MountError with several problems, each once (``NewAggregate``)."""
    messages = list(dict.fromkeys(problems))
    if len(messages) == 1:
        raise MountError(messages[0])
    if messages:
        raise MountError(f"[{', '.join(messages)}]")


# --- whose the files are --------------------------------------------------------------------------


def fs_group_of(pod: Pod) -> int | None:
    """Return the group that owns the pod's volumes."""
    group: int | None = nested_map(pod["spec"], "securityContext").get("fsGroup")
    return group


def fs_user_of(pod: Pod) -> int | None:
    """Return the user as whom all containers of a pod run, where the pod says so of all
    (``FsUserFrom``)."""
    spec = pod["spec"]
    of_pod = nested_map(spec, "securityContext").get("runAsUser")
    users = set()
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        users.add(nested_map(container, "securityContext").get("runAsUser", of_pod))
    return users.pop() if len(users) == 1 else None
