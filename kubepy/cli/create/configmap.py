"""``kubepy create configmap`` and ``create secret …``. Upstream: ``create_configmap.go``,
``create_secret*.go``."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from kubepy.api.meta import Object
from kubepy.cli.create.objects import GeneratorOptions, generator, metadata
from kubepy.cli.errors import CliError
from kubepy.cli.files import read_bytes
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_array_flag, string_flag, string_slice_flag
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api.values import goformat, names
    from kubepy.apiserver.validation import formats
    from kubepy.cli.create import key_pairs
    from kubepy.cli.kustomization import generators as kustomize_generators

DOCKER_KEY = ".dockerconfigjson"


class HashOptions(GeneratorOptions):
    """``--append-hash``."""

    append_hash: bool = bool_flag("append-hash", help="Append a hash of the content to the name.")


def literal_flag(kind: str) -> Any:
    return string_array_flag(
        "from-literal", help=f"A key and a literal value to insert in the {kind} (mykey=somevalue)."
    )


class SourceOptions(HashOptions):
    """The flags that name sources of data."""

    from_file: list[str] = string_slice_flag(
        "from-file",
        help="A file whose content is a value: PATH or KEY=PATH. A folder means all its files.",
    )
    from_literal: list[str] = literal_flag("secret")
    from_env_file: list[str] = string_slice_flag(
        "from-env-file", help="A file of lines of key=val pairs."
    )

    def refuse_mixed_sources(self) -> None:
        """Raise CliError for --from-env-file beside the other flags."""
        if self.from_env_file and (self.from_file or self.from_literal):
            raise CliError("from-env-file cannot be combined with from-file or from-literal")


# Adds a key with its value. Raises CliError.
Add = Callable[[str, bytes], None]


class CreateConfigmapOptions(SourceOptions):
    """The flags of ``create configmap``."""

    from_literal: list[str] = literal_flag("configmap")


@generator(
    "configmap NAME [--from-file=[key=]source] [--from-literal=key1=value1]",
    CreateConfigmapOptions,
    failure="failed to create configmap: ",
    examples="""
# Of literals
kubepy create configmap settings --from-literal=level=info --from-literal=colour=red

# Of a file, whose name is the key
kubepy create configmap logging --from-file=logging.conf

# Of all files of a folder, a key each
kubepy create configmap site --from-file=site/

# Of files, under keys that differ from their names
kubepy create configmap pages --from-file=start=site/index.html --from-file=missing=site/404.html

# Of files with lines of the form NAME=VALUE
kubepy create configmap variables --from-env-file=common.env --from-env-file=local.env
""",
)
def configmap(factory: Factory, options: CreateConfigmapOptions, name: str) -> Object:
    """Create a config map based on a file, directory, or specified literal value."""
    data: dict[str, str] = {}
    binary: dict[str, str] = {}

    def add(key: str, value: bytes) -> None:
        _check_key(key, "is not a valid key name for a ConfigMap: ")
        for values, field in ((data, "Data"), (binary, "BinaryData")):
            if key in values:
                raise CliError(
                    f"cannot add key {quote(key)}, another key by that name already exists in "
                    f"{field} for "
                    f"ConfigMap {quote(name)}"
                )
        try:
            data[key] = value.decode()
        except UnicodeDecodeError:
            binary[key] = base64.b64encode(value).decode()

    options.refuse_mixed_sources()
    _add_files(options.from_file, add)
    _add_literals(options, add)
    _add_env_files(options, add, "env config file cannot be a directory")
    if options.append_hash:
        name += "-" + kustomize_generators.content_hash(
            {
                "kind": "ConfigMap",
                "name": name,
                "data": data,
                **({"binaryData": binary} if binary else {}),
            }
        )

    obj: Object = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata(factory, name)}
    return {
        **obj,
        **({"data": _sorted(data)} if data else {}),
        **({"binaryData": _sorted(binary)} if binary else {}),
    }


class CreateGenericSecretOptions(SourceOptions):
    """The flags of ``create secret generic``."""

    type: str = string_flag("type", help="The type of secret to create.")


@generator(
    "generic NAME [--type=string] [--from-file=[key=]source]",
    CreateGenericSecretOptions,
    failure="failed to create secret ",
    examples="""
# Of literals
kubepy create secret generic login --from-literal=user=admin --from-literal=password=secret

# Of all files of a folder, a key each
kubepy create secret generic certificates --from-file=certificates/

# Of files, under keys that differ from their names
kubepy create secret generic deploy-key --from-file=private=keys/id_ed25519 --from-file=public=keys/id_ed25519.pub

# Of a file and a literal
kubepy create secret generic signing --from-file=key=keys/signing.pem --from-literal=passphrase=secret

# Of files with lines of the form NAME=VALUE
kubepy create secret generic variables --from-env-file=common.env --from-env-file=local.env
""",  # noqa: E501
)
def generic_secret(factory: Factory, options: CreateGenericSecretOptions, name: str) -> Object:
    """Create a secret based on a file, directory, or specified literal value."""
    data: dict[str, str] = {}
    options.refuse_mixed_sources()
    add = _secret_adder(data)
    _add_literals(options, add)
    _add_files(options.from_file, add)
    _add_env_files(options, add, "env secret file cannot be a directory")
    return _secret(factory, options, name, options.type, data)


class CreateTlsSecretOptions(HashOptions):
    """The flags of ``create secret tls``."""

    cert: str = string_flag("cert", help="Path to PEM encoded public key certificate.")
    key: str = string_flag("key", help="Path to private key associated with given certificate.")
    checks_name = False


@generator(
    "tls NAME --cert=path/to/cert/file --key=path/to/key/file",
    CreateTlsSecretOptions,
    failure="failed to create secret ",
    examples="""
# Of a certificate and its key
kubepy create secret tls web --cert=tls.crt --key=tls.key

# Only show it
kubepy create secret tls web --cert=tls.crt --key=tls.key --dry-run=client -o yaml
""",
)
def tls_secret(factory: Factory, options: CreateTlsSecretOptions, name: str) -> Object:
    """Create a TLS secret from the given public/private key pair, which must belong together."""
    if not options.key or not options.cert:
        raise CliError("key and cert must be specified")
    certificate = _read_pem(options.cert)
    key = _read_pem(options.key)
    key_pairs.check_pair(certificate, key)
    data: dict[str, str] = {}
    add = _secret_adder(data)
    add("tls.crt", certificate)
    add("tls.key", key)
    return _secret(factory, options, name, "kubernetes.io/tls", data)


def _read_pem(path: str) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        action = "read" if isinstance(error, IsADirectoryError) else "open"
        reason = (error.strerror or str(error)).lower()
        raise CliError(printable(f"Cannot read file {path}, {action} {path}: {reason}")) from None


class CreateDockerRegistrySecretOptions(HashOptions):
    """The flags of ``create docker-registry``."""

    docker_username: str = string_flag("docker-username", help="Username for the registry.")
    docker_password: str = string_flag("docker-password", help="Password for the registry.")
    docker_email: str = string_flag("docker-email", help="Email for the registry.")
    docker_server: str = string_flag(
        "docker-server", default="https://index.docker.io/v1/", help="Server of the registry."
    )
    from_file: list[str] = string_slice_flag(
        "from-file", help="A file with the whole configuration: PATH or .dockerconfigjson=PATH."
    )


@generator(
    "docker-registry NAME --docker-username=user --docker-password=password",
    CreateDockerRegistrySecretOptions,
    failure="failed to create secret ",
    examples="""
# For a registry
kubepy create secret docker-registry hub --docker-username=me --docker-password=secret

# Of what docker login has written
kubepy create secret docker-registry hub --from-file=$HOME/.docker/config.json
""",
)
def docker_registry_secret(
    factory: Factory, options: CreateDockerRegistrySecretOptions, name: str
) -> Object:
    """Create a new secret for use with Docker registries."""
    data: dict[str, str] = {}
    add = _secret_adder(data)
    if options.from_file:
        _add_files(
            [source if "=" in source else f"{DOCKER_KEY}={source}" for source in options.from_file],
            add,
        )
    elif not (options.docker_username and options.docker_password and options.docker_server):
        raise CliError(
            "either --from-file or the combination of --docker-username, --docker-password and "
            "--docker-server is required"
        )
    else:
        user = options.docker_username
        password = options.docker_password
        entry = {
            "username": user,
            "password": password,
            "email": options.docker_email,
            "auth": base64.b64encode(f"{user}:{password}".encode()).decode(),
        }
        entry = {key: value for key, value in entry.items() if value}
        add(
            DOCKER_KEY,
            goformat.to_json({"auths": {options.docker_server: entry}}, sort_keys=False).encode(),
        )

    return _secret(factory, options, name, "kubernetes.io/dockerconfigjson", data)


def _secret_adder(data: dict[str, str]) -> Add:
    def add(key: str, value: bytes) -> None:
        _check_key(key, "is not valid key name for a Secret ")
        if key in data:
            raise CliError(f"cannot add key {key}, another key by that name already exists")
        data[key] = base64.b64encode(value).decode()

    return add


def _secret(
    factory: Factory, options: HashOptions, name: str, kind: str, data: dict[str, str]
) -> Object:
    if options.append_hash:
        name += "-" + kustomize_generators.content_hash(
            {"kind": "Secret", "type": kind, "name": name, "data": data}
        )
    obj: Object = {"kind": "Secret", "apiVersion": "v1", "metadata": metadata(factory, name)}
    return {**obj, **({"data": _sorted(data)} if data else {}), **({"type": kind} if kind else {})}


def _sorted(data: dict[str, str]) -> dict[str, str]:
    return {key: data[key] for key in sorted(data)}


# --- where the data comes from --------------------------------------------------------------------


def _add_literals(options: SourceOptions, add: Add) -> None:
    for source in options.from_literal:
        key, equals, value = source.partition("=")
        if not equals or not key:
            raise CliError(printable(f"invalid literal source {source}, expected key=value"))
        add(key, value.encode())


def _add_files(sources: list[str], add: Add) -> None:
    for source in sources:
        key, path = _key_and_path(source)
        if not os.path.exists(path):
            raise CliError(printable(f"error reading {path}: no such file or directory"))
        if not os.path.isdir(path):
            add(key, read_bytes(path))
        elif "=" in source:
            raise CliError("cannot give a key name for a directory path")
        else:
            for name in sorted(os.listdir(path)):
                if os.path.isfile(inner := os.path.join(path, name)) and not os.path.islink(inner):
                    add(name, read_bytes(inner))


def _key_and_path(source: str) -> tuple[str, str]:
    if "=" not in source:
        return os.path.basename(source.rstrip("/")), source
    if source.count("=") > 1:
        raise CliError("key names or file paths cannot contain '='")
    key, _, path = source.partition("=")
    if not key:
        raise CliError(f"key name for file path {path} missing")
    if not path:
        raise CliError(f"file path for key name {key} missing")
    return key, path


def _add_env_files(options: SourceOptions, add: Add, folder_error: str) -> None:
    for path in options.from_env_file:
        if not os.path.exists(path):
            raise CliError(printable(f"error reading {path}: no such file or directory"))
        if os.path.isdir(path):
            raise CliError(folder_error)
        for key, value in _env_lines(path):
            add(key, value.encode())


def _env_lines(path: str) -> Iterator[tuple[str, str]]:
    """Yield ``KEY=value`` of each line; a key alone has its value from the environment. Raises
    CliError."""
    for number, line in enumerate(read_bytes(path).split(b"\n"), 1):
        line = line.removesuffix(b"\r")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").lstrip()
        except UnicodeDecodeError:
            raise CliError(
                f"env file {path} contains invalid utf8 bytes at line {number}: "
                f"[{' '.join(map(str, line))}]"
            ) from None
        if not text or text.startswith("#"):
            continue
        key, equals, value = text.partition("=")
        check_variable(key)
        yield key, value if equals else os.environ.get(key, "")


def check_variable(key: str) -> None:
    """Raise CliError for a name that no variable may have to a client (``IsEnvVarName``); the API
    takes more."""
    pattern = "[-._a-zA-Z][-._a-zA-Z0-9]*"
    if re.fullmatch(pattern, key):
        problems = []
    else:
        problems = [
            names.regex_error(
                "a valid environment variable name must consist of alphabetic characters, digits, "
                "'_', '-', or '.', and must "
                "not start with a digit",
                pattern,
                "my.env-name",
                "MY_ENV.NAME",
                "MyEnvName1",
            )
        ]

    if problems:
        raise CliError(f"{quote(key)} is not a valid key name: {';'.join(problems)}")


def _check_key(key: str, words: str) -> None:
    if problems := formats.config_map_key(key):
        raise CliError(f"{quote(key)} {words}{','.join(problems)}")
