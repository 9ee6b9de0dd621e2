"""YAML and JSON as kubectl writes and reads them.

:func:`dump` writes one object byte for byte as ``kubectl get -o yaml`` does (sigs.k8s.io/yaml on
go-yaml v2); :func:`load_all` reads the documents of a manifest (apimachinery ``util/yaml``), JSON
included, and gives plain JSON values. ``scalars`` has the meaning of plain scalars, for both;
``lines`` finds the line of a field; ``roundtrip`` changes the object in a text and keeps its
comments. Nothing here knows of Kubernetes objects.
"""

from kubepy.storage.errors import NumberRangeError, YamlError
from kubepy.storage.yaml.emitter import Written, dump, dump_item
from kubepy.storage.yaml.loader import (
    Document,
    indented_json,
    key_paths,
    load_all,
    load_each,
    read_json,
    repeats_keys,
)

__all__ = [
    "Document",
    "NumberRangeError",
    "Written",
    "YamlError",
    "dump",
    "dump_item",
    "indented_json",
    "key_paths",
    "load_all",
    "load_each",
    "read_json",
    "repeats_keys",
]
