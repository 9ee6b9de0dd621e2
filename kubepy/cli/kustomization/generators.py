"""Generate ConfigMaps and Secrets. Upstream: ``kustomize/api/internal/generators``, ``api/kv``."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from kubepy.api.meta import Object, nested_list, nested_map
from kubepy.api.values.goformat import to_json
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.files import FileLoader
from kubepy.cli.kustomization.resources import KustomizedResource
from kubepy.cli.kustomization.settings import CONFIG_MAP, META, SECRET, Struct, decode
from kubepy.quoting import quote

Generator = Callable[[], list[KustomizedResource]]
_CONFIG_MAP = Struct("ConfigMapGeneratorPlugin", metadata=META, **CONFIG_MAP)
_SECRET = Struct("SecretGeneratorPlugin", metadata=META, **SECRET)
LINE_LENGTH = 70  # of base64 in a Secret


def content_hash(content: Object) -> str:
    """Return the suffix of a generated name: a hash of ten characters
    (``kubectl/pkg/util/hash``)."""
    digest = hashlib.sha256(to_json(content).encode()).hexdigest()
    return digest[:10].translate(str.maketrans("013ae", "ghkmt"))


def config_map_generator(loader: FileLoader, config: Object) -> Generator:
    """Generate a ConfigMap."""
    return _generator(loader, decode(config, _CONFIG_MAP, as_text=False), config_map)


def secret_generator(loader: FileLoader, config: Object) -> Generator:
    """Generate a Secret."""
    return _generator(loader, decode(config, _SECRET, as_text=False), secret)


def _generator(
    loader: FileLoader, args: Object, make: Callable[[FileLoader, Object], Object]
) -> Generator:
    meta = nested_map(args, "metadata")
    args = {
        **{key: meta[key] for key in ("name", "namespace") if meta.get(key)},
        **{key: value for key, value in args.items() if value != ""},
    }

    def generate() -> list[KustomizedResource]:
        obj = make(loader, args)
        options = nested_map(args, "options")
        for name in ("labels", "annotations"):
            if pairs := options.get(name):
                obj["metadata"][name] = dict(pairs)
        if options.get("immutable"):
            obj["immutable"] = True
        return [
            KustomizedResource(
                obj,
                behavior=args.get("behavior", ""),
                needs_hash=not options.get("disableNameSuffixHash"),
            )
        ]

    return generate


_IAM_POLICY = Struct(
    "IAMPolicyGeneratorPlugin",
    cloud="string",
    kubernetesService=Struct("KubernetesService", name="string", namespace="string"),
    serviceAccount=Struct("ServiceAccount", name="string", projectId="string"),
)


def iam_policy_generator(_: FileLoader, config: Object) -> Generator:
    """Generate a ServiceAccount that stands for an account of Google's cloud."""
    config = decode(config, _IAM_POLICY)
    service = nested_map(config, "kubernetesService")
    account = nested_map(config, "serviceAccount")

    def generate() -> list[KustomizedResource]:
        if config.get("cloud") != "gke":
            raise CliError(f"cloud provider {config.get('cloud', '')} not supported yet")
        email = f"{account.get('name', '')}@{account.get('projectId', '')}.iam.gserviceaccount.com"
        meta = {
            "annotations": {"iam.gke.io/gcp-service-account": email},
            "name": service.get("name", ""),
        }
        if service.get("namespace"):
            meta["namespace"] = service["namespace"]
        return [
            KustomizedResource({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
        ]

    return generate


def merged_options(general: Object, own: Object | None) -> Object:
    """Return the options of a generator over those of all."""
    own = own or {}
    merged: Object = {
        name: {**(general.get(name) or {}), **(own.get(name) or {})}
        for name in ("labels", "annotations")
    }
    for name in ("disableNameSuffixHash", "immutable"):
        merged[name] = bool(general.get(name) or own.get(name))
    return {name: value for name, value in merged.items() if value}


def config_map(loader: FileLoader, args: Object) -> Object:
    data: dict[str, str] = {}
    binary: dict[str, str] = {}
    for key, value in sorted(_values(loader, args).items()):
        try:
            data[key] = value.decode()
        except UnicodeDecodeError:
            binary[key] = _encoded(value)
    content = {**({"data": data} if data else {}), **({"binaryData": binary} if binary else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(args), **content}


def secret(loader: FileLoader, args: Object) -> Object:
    data = {key: _encoded(value) for key, value in sorted(_values(loader, args).items())}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(args),
        "type": args.get("type") or "Opaque",
        "data": data,
    }


def _metadata(args: Object) -> Object:
    if not args.get("name"):
        raise CliError("a configmap must have a name")
    return {key: args[key] for key in ("name", "namespace") if args.get(key)}


def _encoded(value: bytes) -> str:
    """Encode as base64, in lines when it is long."""
    text = base64.b64encode(value).decode()
    if len(text) < LINE_LENGTH:
        return text
    return "".join(
        f"{text[start : start + LINE_LENGTH]}\n" for start in range(0, len(text), LINE_LENGTH)
    )


# --- sources --------------------------------------------------------------------------------------


def _values(loader: FileLoader, args: Object) -> dict[str, bytes]:
    values: dict[str, bytes] = {}
    for key, value in _pairs(loader, args):
        if not re.fullmatch(r"[-._a-zA-Z0-9]+", key):
            raise CliError(f"{quote(key)} is not a valid key name")
        if key in values:
            raise CliError(f"configmap {args.get('name')} illegally repeats the key `{key}`")
        values[key] = value
    return values


def _pairs(loader: FileLoader, args: Object) -> Iterator[tuple[str, bytes]]:
    """Yield the keys and values from a generator's env files, literals and files."""
    envs = [*nested_list(args, "envs"), *([args["env"]] if args.get("env") else [])]
    for path in envs:
        content = _read(loader, path, "env source files", envs)
        for line in content.decode(errors="replace").removeprefix("\ufeff").split("\n"):
            text = line.lstrip()
            if text and not text.startswith("#"):
                key, _, value = text.partition("=")
                yield key, value.encode()

    for literal in nested_list(args, "literals"):
        key, equals, value = literal.partition("=")
        if not key or not equals:
            raise CliError(
                f"loading KV pairs: literal sources {_go_list(args['literals'])}: invalid literal "
                f"source "
                f"{literal}, expected key=value"
            )
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        yield key, (value[1:-1] if is_quoted else value).encode()

    for source in nested_list(args, "files"):
        key, path = file_source(source)
        yield key, _read(loader, path, "file sources", args["files"])


def _read(loader: FileLoader, path: str, source_type: str, sources: list[str]) -> bytes:
    try:
        return loader.read(path)
    except CliError as error:
        raise CliError(f"loading KV pairs: {source_type}: {_go_list(sources)}: {error}") from None


def _go_list(values: list[Any]) -> str:
    return f"[{' '.join(map(str, values))}]"


def file_source(source: str) -> tuple[str, str]:
    """Split ``name=path``, or ``path``, whose last part is the name. Raises CliError."""
    first, equals, rest = source.partition("=")
    if not equals:
        return source.rpartition("/")[2], source
    if "=" in rest:
        raise CliError(f"source {quote(source)} key name or file path contains '='")
    if not first:
        raise CliError(f"missing key name for file path {quote(rest)} in source {quote(source)}")
    if not rest:
        raise CliError(f"missing file path for key name {quote(first)} in source {quote(source)}")
    return first, rest
