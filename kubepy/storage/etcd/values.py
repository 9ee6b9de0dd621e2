"""Values of etcd as a kube-apiserver writes them: an object as JSON or as Kubernetes' protobuf.

Nothing in a value tells its revision: that is etcd's. A value that this store has written as JSON
is its text as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from kubepy.storage.etcd.errors import ValueFormatError
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.model import Key, Object, to_json

PROTOBUF_MAGIC = b"k8s\0"
_ENCRYPTED_MAGIC = b"k8s:enc:"
# The texts of this store begin with apiVersion, or an event's action: their keys are sorted. Those
# of a server begin with kind, or end with a newline.
_OWN_START, _OWN_END = b'{"a', b"}"


class StoredForms(Protocol):
    """The forms in which a control plane stores the kinds: ``kubepy.api.storedforms``."""

    @property
    def CONVERTED(self) -> Collection[str]:
        """The resources whose objects are stored in another version."""

    def to_stored(self, obj: Mapping[str, Any], /) -> Object:
        """Return an object in the version in which a control plane stores it."""

    def from_stored(self, obj: Mapping[str, Any], /) -> Object:
        """Return a stored object in the version that kubepy has. Raises ValueError."""

    def to_protobuf(self, obj: Mapping[str, Any], /) -> bytes | None:
        """Return the bytes of an object to store; None for a kind without protobuf."""

    def from_protobuf(self, data: bytes, /) -> Object:
        """Return the stored object of such bytes. Raises ValueError."""


class PlainForms:
    """The forms of objects that are stored as they are, as JSON."""

    CONVERTED: Collection[str] = ()

    def to_stored(self, obj: Mapping[str, Any], /) -> Object:
        return dict(obj)

    def from_stored(self, obj: Mapping[str, Any], /) -> Object:
        return dict(obj)

    def to_protobuf(self, obj: Mapping[str, Any], /) -> bytes | None:
        return None

    def from_protobuf(self, data: bytes, /) -> Object:
        raise ValueError("protobuf is not read here")


AS_THEY_ARE = PlainForms()


class Values:
    """The values of one cluster.

    :param keys: name a value in an error.
    :param is_protobuf: write protobuf; what is read says itself what it is.
    :ivar unread: the values that :meth:`find` could not read: by the key of etcd, what is wrong.
    :ivar complete: makes the JSON of an object whole that kubepy keeps in a shorter form.
    """

    def __init__(self, keys: EtcdKeys, forms: StoredForms, *, is_protobuf: bool = False) -> None:
        self._keys = keys
        self._forms = forms
        self._is_protobuf = is_protobuf
        self.unread: dict[str, str] = {}
        self.complete: Callable[[str], str] | None = None

    def encode(self, key: Key, text: str) -> bytes:
        """Return the value for an object.

        :param text: its JSON without resourceVersion, as :func:`kubepy.storage.model.to_json`
            makes it.
        """
        is_converted = key.resource in self._forms.CONVERTED
        if self.complete is not None:
            text = self.complete(text)
        if not is_converted and not self._is_protobuf:
            return text.encode()
        obj: Object = json.loads(text)
        if is_converted:
            obj = self._forms.to_stored(obj)
        encoded = self._forms.to_protobuf(obj) if self._is_protobuf else None
        return to_json(obj).encode() if encoded is None else encoded

    def decode(self, key: Key, value: bytes) -> str:
        """Return the JSON of the object of a value, without resourceVersion, its keys sorted.

        Raises ValueFormatError, which names the key of etcd.
        """
        is_own = value.startswith(_OWN_START) and value.endswith(_OWN_END)
        try:
            if is_own and key.resource not in self._forms.CONVERTED:
                return value.decode()
            obj = self._forms.from_stored(self._parse(value))
            obj["metadata"].pop("selfLink", None)  # of old servers
            return to_json(obj)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            name = self._keys.of(key).decode()
            reason = str(error) if isinstance(error, ValueError) else "it holds no object"
            raise ValueFormatError(f"the value of {name} cannot be read: {reason}") from error

    def find(self, key: Key, value: bytes) -> str | None:
        """Return the same; None for a value that cannot be read, which is noted: what others have
        put there must not keep all the rest from being read."""
        try:
            text = self.decode(key, value)
        except ValueFormatError as error:
            self.unread[self._keys.of(key).decode()] = str(error)
            return None
        if self.unread:
            self.forget(key)
        return text

    def forget(self, key: Key) -> None:
        """Note that there is no value any more that cannot be read."""
        self.unread.pop(self._keys.of(key).decode(), None)

    def _parse(self, value: bytes) -> Object:
        if value.startswith(PROTOBUF_MAGIC):
            return self._forms.from_protobuf(value)
        if value.startswith(_ENCRYPTED_MAGIC):
            provider = value[: value.find(b":", len(_ENCRYPTED_MAGIC)) + 1].decode(errors="replace")
            raise ValueError(f"it is encrypted ({provider}…), and kubepy has no key")
        if not value.lstrip().startswith(b"{"):
            raise ValueError("it is neither JSON nor Kubernetes' protobuf")
        obj: Object = json.loads(value)
        return obj
