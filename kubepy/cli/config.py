"""``kubepy config``: contexts, and the commands that choose one.

A context is a state folder and a namespace. The folder that ``--state``, ``$KUBEPY_STATE`` or
``./state`` names is home: its contexts count, kept in ``.kubepy/config`` in the form of a
kubeconfig (:mod:`kubepy.cli.runtime.kubeconfig`), unless ``--kubeconfig`` names another file; the
current one says on which folder commands work, home or another. Upstream:
``client-go/tools/clientcmd``, ``kubectl/pkg/cmd/config``.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kubepy.api.meta import nested_map
from kubepy.cli.errors import CliError, os_error_text, raise_all
from kubepy.cli.files import read_bytes
from kubepy.cli.runtime import kubeconfig
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.dispatch import show_help
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import (
    bool_flag,
    parse_bool,
    string_array_flag,
    string_flag,
    string_slice_flag,
)
from kubepy.cli.runtime.kubeconfig import Entries, Entry, Kubeconfig
from kubepy.cli.runtime.options import Options, PrintFlags, output_flag
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.cli.runtime import output, tables


def home_config(factory: Factory) -> Kubeconfig:
    """Return the contexts; those of the home folder only where there is a cluster. Raises
    CliError."""
    if not factory.options.kubeconfig:
        factory.require_home()
    return factory.kubeconfig


def unexpected_args(factory: Factory, options: Options, text: str = "Unexpected args") -> CliError:
    """Show the help, and return the error for a wrong number of words."""
    show_help(factory, options)
    return CliError(printable(f"{text}: [{' '.join(options.args)}]"))


def _without(entries: Entries, name: str) -> Entries:
    return {key: value for key, value in entries.items() if key != name}


# --- contexts -------------------------------------------------------------------------------------

HEADERS = ("CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE")


class GetContextsOptions(Options):
    """The flags of ``config get-contexts``."""

    no_headers: bool = bool_flag(
        "no-headers",
        help="When using the default or custom-column output format, don't print headers.",
    )
    output: str = output_flag("name")


class SetContextOptions(Options):
    """The flags of ``config set-context``."""

    current: bool = bool_flag("current", help="Modify the current context.")
    cluster: str = string_flag(
        "cluster",
        help="The context's state folder, by its path or by the name of a cluster "
        "(see set-cluster). Default: this one.",
    )
    user: str = string_flag("user", help="Kept with the context; it means nothing here.")
    namespace: str = string_flag(
        "namespace", "n", help="The namespace that commands use in this context."
    )


@command(
    "current-context",
    Options,
    examples="""
# Print the name of the context that commands use
kubepy config current-context

# Show the folder where commands work
kubepy cluster-info --context="$(kubepy config current-context)"
""",
)
def current_context(factory: Factory, options: Options) -> None:
    """Display the current-context."""
    current = factory.kubeconfig.current
    if not current:
        raise CliError("current-context is not set")
    factory.print(printable(current))


@command(
    "get-contexts [NAME...]",
    GetContextsOptions,
    examples="""
# List all contexts, with their clusters and namespaces
kubepy config get-contexts

# List only their names
kubepy config get-contexts -o name
""",
)
def get_contexts(factory: Factory, options: GetContextsOptions) -> None:
    """Display one or many contexts."""
    if options.output not in ("", "name"):
        raise CliError(
            f"--output {options.output} is not available in kubectl config get-contexts; "
            f"resetting to "
            "default output format"
        )

    config = factory.kubeconfig
    rows = [] if options.no_headers or options.output else [HEADERS]
    for name in sorted(name for name in options.args or config.contexts if name in config.contexts):
        context = config.contexts[name]
        mark = "*" if name == config.current else ""
        columns = (context.get(key, "") for key in ("cluster", "user", "namespace"))
        rows.append((name,) if options.output else (mark, name, *columns))

    lines = ("\t".join(row) for row in rows)
    factory.print(
        tables.format_lines(["\t".join(map(printable, line.split("\t"))) for line in lines]), end=""
    )
    raise_all(
        CliError(f"context {printable(name)} not found")
        for name in options.args
        if name not in config.contexts
    )


@command(
    "use-context CONTEXT_NAME",
    Options,
    examples="""
# Use the folder and the namespace of this context
kubepy config use-context staging

# Return to this folder
kubepy --state /srv/home/state config use-context lab
""",
)
def use_context(factory: Factory, options: Options) -> None:
    """Set the current-context.

    Until a context has been set, any name stands for the folder's own."""
    if len(options.args) != 1:
        raise unexpected_args(factory, options)
    name = options.args[0]
    config = home_config(factory)
    if not name:
        raise CliError("empty context names are not allowed")
    if name not in config.contexts:
        if config.is_chosen:
            raise CliError(f"no context exists with the name: {quote(name)}")
        config = config._replace(
            contexts={**config.contexts, name: config.contexts[kubeconfig.FIRST]}
        )
    factory.config_access.write(config._replace(current=name))
    factory.print(f"Switched to context {quote(name)}.")


@command(
    "set-context [NAME | --current] [--cluster=FOLDER] [--user=user] [--namespace=namespace]",
    SetContextOptions,
    examples="""
# Set the namespace that commands without -n use
kubepy config set-context --current --namespace=web

# A context for another state folder; --context=lab uses it once, use-context from now on
kubepy config set-context lab --cluster=/srv/lab/state --namespace=web
""",
)
def set_context(factory: Factory, options: SetContextOptions) -> None:
    """Set the state folder and the namespace of a context.

    What is not named stays as it is. Contexts are kept in the folder that --state names, in its ".kubepy", not in
    git."""  # noqa: E501
    if len(options.args) > 1:
        raise unexpected_args(factory, options)
    name = options.args[0] if options.args else ""
    if not name and not options.current:
        raise CliError("you must specify a non-empty context name or --current")
    if name and options.current:
        raise CliError("you cannot specify both a context name and --current")
    config = home_config(factory)
    name = name or config.current
    if not name:
        raise CliError("no current context is set")
    is_known = name in config.contexts
    factory.config_access.write(with_context(config, name, options))
    factory.print(f"Context {quote(name)} {'modified' if is_known else 'created'}.")


def with_context(config: Kubeconfig, name: str, options: SetContextOptions) -> Kubeconfig:
    """Change a context as the flags say; a folder that they name becomes a cluster of that name."""
    values = {
        key: options.value_of(key)
        for key in ("cluster", "user", "namespace")
        if options.changed(key)
    }
    clusters = config.clusters
    if values.get("cluster", "") not in clusters and kubeconfig.is_folder(
        values.get("cluster", "")
    ):
        values["cluster"] = os.path.abspath(values["cluster"])
        clusters = {
            **clusters,
            values["cluster"]: {"server": kubeconfig.server_of(values["cluster"])},
        }

    context: Entry = {**config.contexts.get(name, {}), **values}
    context = {key: value for key, value in context.items() if value or key != "namespace"}
    return config._replace(clusters=clusters, contexts={**config.contexts, name: context})


@command(
    "rename-context CONTEXT_NAME NEW_NAME",
    Options,
    examples="""
# Another name for a context
kubepy config rename-context lab old-lab

# The current context stays current under its new name
kubepy config rename-context kubepy home
""",
)
def rename_context(factory: Factory, options: Options) -> None:
    """Rename a context; if it is the current one, it stays so."""
    if len(options.args) != 2:
        raise unexpected_args(factory, options)
    old, new = options.args
    if not new:
        raise CliError("You must specify a new non-empty context name")
    config = home_config(factory)
    if old not in config.contexts:
        raise CliError(
            f"cannot rename the context {quote(old)}, it's not in "
            f"{printable(factory.config_access.path)}"
        )

    if new in config.contexts:
        raise CliError(
            f"cannot rename the context {quote(old)}, the context {quote(new)} already exists in "
            f"{printable(factory.config_access.path)}"
        )

    contexts = {new if name == old else name: context for name, context in config.contexts.items()}
    current = new if config.current == old else config.current
    factory.config_access.write(config._replace(contexts=contexts, current=current))
    factory.print(f"Context {quote(old)} renamed to {quote(new)}.")


@command(
    "delete-context NAME",
    Options,
    examples="""
# Forget a context; its folder stays
kubepy config delete-context lab

# In another folder's contexts
kubepy --state /srv/home/state config delete-context lab
""",
)
def delete_context(factory: Factory, options: Options) -> None:
    """Delete a context. The state folder that it names stays as it is."""
    if len(options.args) != 1:
        show_help(factory, options)
        return
    name = options.args[0]
    config = home_config(factory)
    if name not in config.contexts:
        raise CliError(f"cannot delete context {name}, not in {factory.config_access.path}")
    if name == config.current:
        factory.say(
            'warning: this removed your active context, use "kubepy config use-context" to select '
            "a different "
            "one"
        )

    factory.config_access.write(config._replace(contexts=_without(config.contexts, name)))
    factory.print(printable(f"deleted context {name} from {factory.config_access.path}"))


# --- clusters and users ---------------------------------------------------------------------------


class SetClusterOptions(Options):
    """The flags of ``config set-cluster``."""

    server: str = string_flag(
        "server", help="The state folder, or the URL of a server: then the cluster is this folder."
    )
    tls_server_name: str = string_flag(
        "tls-server-name", help="Kept with the entry; it means nothing here."
    )
    insecure_skip_tls_verify: bool = bool_flag(
        "insecure-skip-tls-verify", help="Kept with the entry; it means nothing here."
    )
    certificate_authority: str = string_flag(
        "certificate-authority", help="Kept with the entry; it means nothing here."
    )
    embed_certs: bool = bool_flag(
        "embed-certs", help="Keep the content of the file that --certificate-authority names."
    )
    proxy_url: str = string_flag("proxy-url", help="Kept with the entry; it means nothing here.")


class SetCredentialsOptions(Options):
    """The flags of ``config set-credentials``."""

    client_certificate: str = string_flag("client-certificate", help="Path to a certificate.")
    client_key: str = string_flag("client-key", help="Path to the certificate's key.")
    embed_certs: bool = bool_flag(
        "embed-certs", help="Keep the contents of the files instead of their paths."
    )
    token: str = string_flag("token", help="A bearer token.")
    username: str = string_flag("username", help="The name for basic authentication.")
    password: str = string_flag("password", help="The password for basic authentication.")
    auth_provider: str = string_flag(
        "auth-provider", help="Kept with the entry; it means nothing here."
    )
    auth_provider_arg: list[str] = string_slice_flag(
        "auth-provider-arg", help="Arguments of the provider: key=value, or key- to remove one."
    )
    exec_command: str = string_flag("exec-command", help="Kept with the entry; it is never run.")
    exec_api_version: str = string_flag("exec-api-version", help="Kept with the entry.")
    exec_arg: list[str] = string_slice_flag("exec-arg", help="Arguments of the command.")
    exec_env: list[str] = string_array_flag(
        "exec-env", help="Variables of the command: key=value, or key- to remove one."
    )
    exec_interactive_mode: str = string_flag(
        "exec-interactive-mode", help="Kept with the entry: IfAvailable, Never or Always."
    )
    exec_provide_cluster_info: bool = bool_flag(
        "exec-provide-cluster-info", help="Kept with the entry."
    )


@command(
    "get-clusters",
    Options,
    examples="""
# The names of all clusters
kubepy config get-clusters

# Where each of them is
kubepy config view -o jsonpath='{.clusters[*].cluster.server}'
""",
)
def get_clusters(factory: Factory, options: Options) -> None:
    """Display the clusters that contexts may name."""
    factory.print("\n".join(["NAME", *map(printable, sorted(factory.kubeconfig.clusters))]))


@command(
    "get-users",
    Options,
    examples="""
# The names of all users
kubepy config get-users

# In another folder's contexts
kubepy --state /srv/home/state config get-users
""",
)
def get_users(factory: Factory, options: Options) -> None:
    """Display the users that contexts may name. They mean nothing here."""
    factory.print("\n".join(["NAME", *map(printable, sorted(factory.kubeconfig.users))]))


@command(
    "set-cluster NAME [--server=FOLDER]",
    SetClusterOptions,
    examples="""
# Name a state folder
kubepy config set-cluster lab --server=/srv/lab/state

# Name a server, for programs that read the file
kubepy config set-cluster ci --server=https://10.0.0.1

# With its certificate in the file
kubepy config set-cluster ci --certificate-authority=keys/ca.crt --embed-certs

# With another name in its certificate
kubepy config set-cluster ci --tls-server-name=kubernetes.default

# Without a check of its certificate, through a proxy
kubepy config set-cluster unsafe --insecure-skip-tls-verify --proxy-url=http://proxy.example.com:3128
""",
)
def set_cluster(factory: Factory, options: SetClusterOptions) -> None:
    """Set a cluster: a name for a state folder. What is not named stays as it is."""
    if len(options.args) != 1:
        raise unexpected_args(factory, options)
    name = options.args[0]
    if not name:
        raise CliError("you must specify a non-empty cluster name")
    if options.insecure_skip_tls_verify and options.certificate_authority:
        raise CliError(
            "you cannot specify a certificate authority and insecure mode at the same time"
        )

    if options.embed_certs and not options.certificate_authority:
        raise CliError("you must specify a --certificate-authority to embed")
    config = home_config(factory)
    values: Entry = {
        key: options.value_of(key)
        for key in ("tls-server-name", "insecure-skip-tls-verify", "proxy-url")
        if options.changed(key)
    }
    if options.changed("server"):  # another server has no TLS name until one is set
        values = {"tls-server-name": "", **values, "server": kubeconfig.server_of(options.server)}
    if options.insecure_skip_tls_verify:
        values |= {"certificate-authority": "", "certificate-authority-data": ""}
    if options.changed("certificate-authority"):
        values |= _file_entry("certificate-authority", options) | {
            "insecure-skip-tls-verify": False
        }

    cluster = _without_empty({**config.clusters.get(name, {}), **values})
    factory.config_access.write(config._replace(clusters={**config.clusters, name: cluster}))
    factory.print(f"Cluster {quote(name)} set.")


def _file_entry(flag: str, options: SetClusterOptions | SetCredentialsOptions) -> Entry:
    """Return the path of a flag's file, or its content, and clear the other one. Raises
    CliError."""
    path: str = options.value_of(flag)
    if not options.embed_certs:
        return {flag: os.path.abspath(path), f"{flag}-data": ""}
    try:
        return {flag: "", f"{flag}-data": base64.b64encode(read_bytes(path)).decode()}
    except OSError as error:
        raise CliError(
            f"could not read {flag} file {printable(path)}: {os_error_text(error)}"
        ) from None


def _without_empty(entry: Entry) -> Entry:
    return {key: value for key, value in entry.items() if value}


@command(
    "set-credentials NAME [--token=bearer_token] [--username=user --password=password]",
    SetCredentialsOptions,
    examples="""
# A user with a token
kubepy config set-credentials robot --token=secret

# With a name and a password
kubepy config set-credentials ada --username=ada --password=secret

# With the path of a certificate and of its key
kubepy config set-credentials admin --client-certificate=keys/admin.crt --client-key=keys/admin.key

# With both in the file
kubepy config set-credentials admin --client-certificate=keys/admin.crt --client-key=keys/admin.key --embed-certs

# Change only the key
kubepy config set-credentials admin --client-key=keys/new.key

# By an authentication provider with its settings
kubepy config set-credentials grace --auth-provider=oidc --auth-provider-arg=client-id=shop

# Another setting of it, and one less
kubepy config set-credentials grace --auth-provider=oidc --auth-provider-arg=idp-issuer-url=https://id.example.com \\
  --auth-provider-arg=client-id-

# By a program that prints credentials
kubepy config set-credentials ci --exec-command=/usr/bin/get-token --exec-api-version=client.authentication.k8s.io/v1

# With arguments for it
kubepy config set-credentials ci --exec-arg=--audience --exec-arg=shop

# With variables for it
kubepy config set-credentials ci --exec-env=REGION=north --exec-env=LEVEL=debug

# Without one of them
kubepy config set-credentials ci --exec-env=LEVEL-

# By a program that must not ask
kubepy config set-credentials ci2 --exec-command=get-token --exec-api-version=client.authentication.k8s.io/v1 \\
  --exec-interactive-mode=Never
""",  # noqa: E501
)
def set_credentials(factory: Factory, options: SetCredentialsOptions) -> None:
    """Set a user. It means nothing here: whoever may read and write the folder may do everything."""  # noqa: E501
    if len(options.args) != 1:
        raise unexpected_args(factory, options, "unexpected args")
    name = options.args[0]
    if not name:
        raise CliError("you must specify a non-empty user name")
    if options.token and (options.username or options.password):
        raise CliError(
            "you cannot specify more than one authentication method at the same time: --token, "
            "--username/--password"
        )

    if options.embed_certs and not options.client_certificate and not options.client_key:
        raise CliError("you must specify a --client-certificate or --client-key to embed")
    if options.exec_interactive_mode not in ("", "IfAvailable", "Never", "Always"):
        raise CliError("invalid interactive mode type, can be only IfAvailable, Never, Always")
    config = home_config(factory)
    user = _changed_user(config.users.get(name, {}), options)
    factory.config_access.write(config._replace(users={**config.users, name: user}))
    factory.print(f"User {quote(name)} set.")


def _changed_user(user: Entry, options: SetCredentialsOptions) -> Entry:
    """Change a user as the flags say; a token and a password exclude each other."""
    values: Entry = {
        key: options.value_of(key)
        for key in ("token", "username", "password")
        if options.changed(key)
    }
    if values.get("token"):
        values |= {"username": "", "password": ""}
    elif values.get("username") or values.get("password"):
        values |= {"token": ""}

    for flag in ("client-certificate", "client-key"):
        if options.changed(flag):
            values |= _file_entry(flag, options)
    old_provider: Entry = nested_map(user, "auth-provider")
    provider = options.auth_provider or old_provider.get("name", "")
    values["auth-provider"] = None
    if provider:  # another provider starts without arguments
        arguments = old_provider.get("config", {}) if old_provider.get("name") == provider else {}
        values["auth-provider"] = {
            "name": provider,
            "config": _changed_pairs(arguments, options.auth_provider_arg),
        }

    values["exec"] = _changed_exec(user.get("exec"), options)
    return _without_empty({**user, **values})


def _changed_exec(old: Entry | None, options: SetCredentialsOptions) -> Entry | None:
    """Change the command that provides credentials; another command starts without arguments."""
    if old is None and not options.exec_command:
        return None
    values: Entry = {"args": []} if options.exec_command else {}
    for flag, key in (
        ("exec-command", "command"),
        ("exec-api-version", "apiVersion"),
        ("exec-arg", "args"),
        ("exec-interactive-mode", "interactiveMode"),
        ("exec-provide-cluster-info", "provideClusterInfo"),
    ):
        if options.changed(flag):
            values[key] = options.value_of(flag)

    env = _changed_pairs(
        {variable["name"]: variable["value"] for variable in (old or {}).get("env", ())},
        options.exec_env,
    )
    return _without_empty(
        {**(old or {}), **values, "env": [{"name": name, "value": env[name]} for name in env]}
    )


def _changed_pairs(pairs: dict[str, str], changes: list[str]) -> dict[str, str]:
    """Return pairs with ``key=value`` set and ``key-`` removed."""
    pairs = dict(pairs)
    for change in changes:
        key, equals, value = change.partition("=")
        if equals:
            pairs[key] = value
        else:
            pairs.pop(key.removesuffix("-"), None)
    return pairs


@command(
    "delete-cluster NAME",
    Options,
    examples="""
# Forget the name of a cluster; the folder stays
kubepy config delete-cluster lab

# In another folder's contexts
kubepy --state /srv/home/state config delete-cluster lab
""",
)
def delete_cluster(factory: Factory, options: Options) -> None:
    """Delete a cluster. The state folder that it names stays as it is."""
    if len(options.args) != 1:
        show_help(factory, options)
        return
    name = options.args[0]
    config = home_config(factory)
    if name not in config.clusters:
        raise CliError(
            printable(f"cannot delete cluster {name}, not in {factory.config_access.path}")
        )
    factory.config_access.write(config._replace(clusters=_without(config.clusters, name)))
    factory.print(printable(f"deleted cluster {name} from {factory.config_access.path}"))


@command(
    "delete-user NAME",
    Options,
    examples="""
# Forget a user
kubepy config delete-user robot

# In another folder's contexts
kubepy --state /srv/home/state config delete-user robot
""",
)
def delete_user(factory: Factory, options: Options) -> None:
    """Delete a user."""
    if len(options.args) != 1:
        options.usage_error("user to delete is required")
    name = options.args[0]
    config = home_config(factory)
    if name not in config.users:
        raise CliError(printable(f"cannot delete user {name}, not in {factory.config_access.path}"))
    factory.config_access.write(config._replace(users=_without(config.users, name)))
    factory.print(printable(f"deleted user {name} from {factory.config_access.path}"))


# --- single values by their paths: set, unset -----------------------------------------------------


def _base64(text: str) -> str:
    """Check a value in base64. Raises ValueError."""
    text = text.translate({ord("\r"): None, ord("\n"): None})  # tools break base64 into lines
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("error decoding input value: illegal base64 data") from None
    return text


# The parsers of values, by section and field.
FIELDS: Mapping[str, Mapping[str, Callable[[str], object]]] = {
    "clusters": {
        "server": kubeconfig.server_of,
        "tls-server-name": str,
        "insecure-skip-tls-verify": parse_bool,
        "certificate-authority": str,
        "certificate-authority-data": _base64,
        "proxy-url": str,
        "disable-compression": parse_bool,
    },
    "contexts": {"cluster": str, "user": str, "namespace": str},
    "users": {
        "client-certificate": str,
        "client-certificate-data": _base64,
        "client-key": str,
        "client-key-data": _base64,
        "token": str,
        "tokenFile": str,
        "as": str,
        "as-uid": str,
        "username": str,
        "password": str,
    },
}
CURRENT = "current-context"


class PropertyPath(NamedTuple):
    """``contexts.lab.namespace``; ``name`` and ``field`` may be "" (``contexts.lab``,
    ``contexts``)."""

    section: str
    name: str
    field: str


class ConfigSetOptions(Options):
    """The flags of ``config set``."""

    set_raw_bytes: bool = bool_flag(
        "set-raw-bytes",
        help="Take the value of a ...-data property as it is, instead of as base64.",
    )


@command(
    "set PROPERTY_NAME PROPERTY_VALUE",
    ConfigSetOptions,
    examples="""
# The namespace of a context
kubepy config set contexts.lab.namespace web

# The folder of a cluster
kubepy config set clusters.lab.server /srv/lab/state

# The cluster of a context
kubepy config set contexts.lab.cluster home

# A value of base64, as it is
kubepy config set users.robot.client-key-data c2VjcmV0 --set-raw-bytes=false
""",
)
def set_(factory: Factory, options: ConfigSetOptions) -> None:
    """Set an individual value of the contexts, clusters and users."""
    if len(options.args) != 2:
        raise unexpected_args(factory, options)
    property_name, value = options.args
    if not value:
        raise CliError("you cannot use set to unset a property")
    if options.set_raw_bytes and property_name.endswith("-data"):
        value = base64.b64encode(value.encode()).decode()
    config = home_config(factory)
    factory.config_access.write(with_property(config, parse_path(property_name), value))
    factory.print(f"Property {quote(property_name)} set.")


@command(
    "unset PROPERTY_NAME",
    Options,
    examples="""
# A context without a namespace of its own
kubepy config unset contexts.lab.namespace

# No current context
kubepy config unset current-context
""",
)
def unset(factory: Factory, options: Options) -> None:
    """Unset an individual value of the contexts, clusters and users."""
    if len(options.args) != 1:
        raise unexpected_args(factory, options)
    config = home_config(factory)
    factory.config_access.write(without_property(config, parse_path(options.args[0])))
    factory.print(f"Property {quote(options.args[0])} unset.")


def parse_path(text: str) -> PropertyPath:
    """Parse a path. A name may hold dots: it ends where a field's name begins. Raises CliError."""
    if not text:
        raise CliError("you must specify a property")
    section, *rest = text.split(".")
    if section == CURRENT and not rest:
        return PropertyPath(section, "", "")
    if section not in FIELDS:
        raise CliError(printable(f"unable to parse {text} after [] at api.Config"))
    positions = [
        position for position, part in enumerate(rest) if position and part in FIELDS[section]
    ]
    if not positions:
        return PropertyPath(section, ".".join(rest), "")
    if positions[0] != len(rest) - 1:
        raise CliError(f"unable to parse one or more field values of {text}")
    return PropertyPath(section, ".".join(rest[:-1]), rest[-1])


def with_property(config: Kubeconfig, path: PropertyPath, value: str) -> Kubeconfig:
    """Return the contexts with a value set. Raises CliError."""
    if path.section == CURRENT:
        return config._replace(current=value)
    entries: Entries = getattr(config, path.section)
    if not path.field:
        raise CliError(f"can't set a map to a value: map[{' '.join(sorted(entries))}]")
    try:
        parsed = FIELDS[path.section][path.field](value)
    except ValueError as error:
        raise CliError(str(error)) from None
    entry = {**entries.get(path.name, {}), path.field: parsed}
    return _with_section(config, path.section, {**entries, path.name: entry})


def without_property(config: Kubeconfig, path: PropertyPath) -> Kubeconfig:
    """Return the contexts without a value, an entry or a section. Raises CliError."""
    if path.section == CURRENT:
        return config._replace(current="")
    entries: Entries = getattr(config, path.section)
    if not path.name:
        return _with_section(config, path.section, {})
    if not path.field:
        return _with_section(config, path.section, _without(entries, path.name))
    if path.name not in entries:
        raise CliError(f"current map key `{path.name}` is invalid")
    entry = {key: value for key, value in entries[path.name].items() if key != path.field}
    return _with_section(config, path.section, {**entries, path.name: entry})


def _with_section(config: Kubeconfig, section: str, entries: Entries) -> Kubeconfig:
    clusters, contexts, users = (
        entries if name == section else getattr(config, name) for name in FIELDS
    )
    return config._replace(clusters=clusters, contexts=contexts, users=users)


# --- view -----------------------------------------------------------------------------------------


class ViewOptions(PrintFlags):
    """The flags of ``config view``."""

    output: str = output_flag(default="yaml")
    minify: bool = bool_flag(
        "minify", help="Remove all information not used by current-context from the output."
    )
    flatten: bool = bool_flag(
        "flatten", help="Accepted as kubectl does; there are no files to take in."
    )
    merge: bool = bool_flag(
        "merge", default=True, help="Accepted as kubectl does; there is one file."
    )
    raw: bool = bool_flag("raw", help="Display credentials, too.")


SECRETS = {
    "token": "REDACTED",
    "password": "REDACTED",
    "client-key-data": "DATA+OMITTED",
    "client-certificate-data": "DATA+OMITTED",
    "certificate-authority-data": "DATA+OMITTED",
}


@command(
    "view",
    ViewOptions,
    examples="""
# All contexts, clusters and users
kubepy config view

# Only what the current context uses
kubepy config view --minify -o jsonpath='{..namespace}'

# With certificates and tokens
kubepy config view --raw
""",
)
def view(factory: Factory, options: ViewOptions) -> None:
    """Display contexts, clusters and users in the form of a kubeconfig."""
    if options.args:
        options.usage_error(printable(f"unexpected arguments: [{' '.join(options.args)}]"))
    printer = output.printer_for(factory, options, typed=True)
    config = factory.kubeconfig
    if options.minify:
        config = minified(config._replace(current=factory.options.context or config.current))
    home_server = factory.home_server
    config = config._replace(
        clusters={
            name: {**entry, "server": entry.get("server") or home_server}
            for name, entry in config.clusters.items()
        }
    )
    if not options.raw and not options.flatten:
        config = config._replace(clusters=_redacted(config.clusters), users=_redacted(config.users))
    printer(
        {key: value if value != [] else None for key, value in kubeconfig.as_object(config).items()}
    )


def minified(config: Kubeconfig) -> Kubeconfig:
    """Return the current context and what it refers to. Raises CliError."""
    if not config.current:
        raise CliError("current-context must exist in order to minify")
    if config.current not in config.contexts:
        raise CliError(f"cannot locate context {config.current}")
    context = config.contexts[config.current]
    clusters, users = (
        {name: entries[name] for name in (context.get(key, ""),) if name in entries}
        for key, entries in (("cluster", config.clusters), ("user", config.users))
    )
    return config._replace(contexts={config.current: context}, clusters=clusters, users=users)


def _redacted(entries: Entries) -> Entries:
    return {
        name: {key: SECRETS.get(key, value) for key, value in entry.items()}
        for name, entry in entries.items()
    }
