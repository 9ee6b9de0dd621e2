"""``kubepy config …-cluster…``, ``…-user``, ``set-credentials``: the entries that contexts refer to."""

from __future__ import annotations

import base64
import os

from kubepy.api.values.goformat import printable
from kubepy.cli.config.contexts import chosen, file_of, unexpected_args
from kubepy.cli.errors import CliError, os_error_text
from kubepy.cli.files import read_bytes
from kubepy.cli.runtime import kubeconfig
from kubepy.cli.runtime.command import show_help
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import string_array_flag as string_array
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flags import string_slice_flag as strings
from kubepy.cli.runtime.kubeconfig import Entry
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.quoting import quote

CLUSTER_FLAGS = [
    string("server", help="The state folder, or the URL of a server: then the cluster is this folder."),
    string("tls-server-name", help="Kept with the entry; it means nothing here."),
    boolean("insecure-skip-tls-verify", help="Kept with the entry; it means nothing here."),
    string("certificate-authority", help="Kept with the entry; it means nothing here."),
    boolean("embed-certs", help="Keep the content of the file that --certificate-authority names."),
    string("proxy-url", help="Kept with the entry; it means nothing here."),
]
USER_FLAGS = [
    string("client-certificate", help="Path to a certificate."),
    string("client-key", help="Path to the certificate's key."),
    boolean("embed-certs", help="Keep the contents of the files instead of their paths."),
    string("token", help="A bearer token."),
    string("username", help="The name for basic authentication."),
    string("password", help="The password for basic authentication."),
    string("auth-provider", help="Kept with the entry; it means nothing here."),
    strings("auth-provider-arg", help="Arguments of the provider: key=value, or key- to remove one."),
    string("exec-command", help="Kept with the entry; it is never run."),
    string("exec-api-version", help="Kept with the entry."),
    strings("exec-arg", help="Arguments of the command."),
    string_array("exec-env", help="Variables of the command: key=value, or key- to remove one."),
    string("exec-interactive-mode", help="Kept with the entry: IfAvailable, Never or Always."),
    boolean("exec-provide-cluster-info", help="Kept with the entry."),
]


@verb("get-clusters", "get-clusters", examples="""
# The names of all clusters
kubepy config get-clusters

# Where each of them is
kubepy config view -o jsonpath='{.clusters[*].cluster.server}'
""")
def get_clusters(factory: Factory, given: Invocation) -> None:
    """Display the clusters that contexts may name."""
    factory.print("\n".join(["NAME", *map(printable, sorted(factory.kubeconfig.clusters))]))


@verb("get-users", "get-users", examples="""
# The names of all users
kubepy config get-users

# In another folder's contexts
kubepy --state /srv/home/state config get-users
""")
def get_users(factory: Factory, given: Invocation) -> None:
    """Display the users that contexts may name. They mean nothing here."""
    factory.print("\n".join(["NAME", *map(printable, sorted(factory.kubeconfig.users))]))


@verb("set-cluster", "set-cluster NAME [--server=FOLDER]", flags=CLUSTER_FLAGS, examples="""
# A name for a state folder, for contexts to use
kubepy config set-cluster lab --server=/srv/lab/state

# A server elsewhere, as a script written for kubectl sets it: this folder
kubepy config set-cluster ci --server=https://10.0.0.1
""")
def set_cluster(factory: Factory, given: Invocation) -> None:
    """Set a cluster: a name for a state folder. What is not named stays as it is."""
    name = _only_name(factory, given, "you must specify a non-empty cluster name")
    if given.insecure_skip_tls_verify and given.certificate_authority:
        raise CliError("you cannot specify a certificate authority and insecure mode at the same time")
    if given.embed_certs and not given.certificate_authority:
        raise CliError("you must specify a --certificate-authority to embed")
    config = chosen(factory)
    cluster = _cluster(config.clusters.get(name, {}), given)
    kubeconfig.write(factory.home, config._replace(clusters={**config.clusters, name: cluster}))
    factory.print(f"Cluster {quote(name)} set.")


def _only_name(factory: Factory, given: Invocation, missing: str, unexpected: str = "Unexpected args") -> str:
    if len(given.args) != 1:
        raise unexpected_args(factory, given, unexpected)
    if not given.args[0]:
        raise CliError(missing)
    return str(given.args[0])


def _cluster(before: Entry, given: Invocation) -> Entry:
    """What the flags make of a cluster: a server forgets the name it had, insecure and authority exclude each other."""
    values: Entry = {key: given.flag(key) for key in ("tls-server-name", "insecure-skip-tls-verify", "proxy-url")
                     if given.changed(key)}
    if given.changed("server"):
        values = {"tls-server-name": "", **values, "server": kubeconfig.server_of(given.server)}
    if given.insecure_skip_tls_verify:
        values |= {"certificate-authority": "", "certificate-authority-data": ""}
    if given.changed("certificate-authority"):
        values |= _file("certificate-authority", given) | {"insecure-skip-tls-verify": False}
    return _filled({**before, **values})


def _file(flag: str, given: Invocation) -> Entry:
    """A flag's file as its path, or as its content, of which the other one goes. Raises CliError."""
    path = given.flag(flag)
    if not given.embed_certs:
        return {flag: os.path.abspath(path), f"{flag}-data": ""}
    try:
        return {flag: "", f"{flag}-data": base64.b64encode(read_bytes(path)).decode()}
    except OSError as error:
        raise CliError(f"could not read {flag} file {printable(path)}: {os_error_text(error)}") from None


def _filled(entry: Entry) -> Entry:
    return {key: value for key, value in entry.items() if value}


@verb("set-credentials", "set-credentials NAME [--token=bearer_token] [--username=user --password=password]",
      flags=USER_FLAGS, examples="""
# A user, as a script written for kubectl makes one
kubepy config set-credentials robot --token=secret

# With a certificate
kubepy config set-credentials admin --client-certificate=admin.crt --client-key=admin.key --embed-certs
""")
def set_credentials(factory: Factory, given: Invocation) -> None:
    """Set a user. It means nothing here: whoever may read and write the folder may do everything."""
    name = _only_name(factory, given, "you must specify a non-empty user name", "unexpected args")
    if given.token and (given.username or given.password):
        raise CliError("you cannot specify more than one authentication method at the same time: --token, "
                       "--username/--password")
    if given.embed_certs and not given.client_certificate and not given.client_key:
        raise CliError("you must specify a --client-certificate or --client-key to embed")
    if given.exec_interactive_mode not in ("", "IfAvailable", "Never", "Always"):
        raise CliError("invalid interactive mode type, can be only IfAvailable, Never, Always")
    config = chosen(factory)
    user = _user(config.users.get(name, {}), given)
    kubeconfig.write(factory.home, config._replace(users={**config.users, name: user}))
    factory.print(f"User {quote(name)} set.")


def _user(before: Entry, given: Invocation) -> Entry:
    """What the flags make of a user: of a token and a password only the one that was named last stays."""
    values: Entry = {key: given.flag(key) for key in ("token", "username", "password") if given.changed(key)}
    if values.get("token"):
        values |= {"username": "", "password": ""}
    elif values.get("username") or values.get("password"):
        values |= {"token": ""}
    for flag in ("client-certificate", "client-key"):
        if given.changed(flag):
            values |= _file(flag, given)
    values["auth-provider"] = _provider(before.get("auth-provider"), given)
    values["exec"] = _command(before.get("exec"), given)
    return _filled({**before, **values})


def _provider(before: Entry | None, given: Invocation) -> Entry | None:
    """What the flags make of an auth provider: another one begins without arguments."""
    name = given.auth_provider or (before or {}).get("name", "")
    if not name:
        return None
    config = (before or {}).get("config", {}) if (before or {}).get("name") == name else {}
    return {"name": name, "config": _changed(config, given.auth_provider_arg)}


def _command(before: Entry | None, given: Invocation) -> Entry | None:
    """What the flags make of a command that gives credentials: another one begins without arguments."""
    if before is None and not given.exec_command:
        return None
    values: Entry = {"args": []} if given.exec_command else {}
    for flag, key in (("exec-command", "command"), ("exec-api-version", "apiVersion"), ("exec-arg", "args"),
                      ("exec-interactive-mode", "interactiveMode"), ("exec-provide-cluster-info",
                                                                     "provideClusterInfo")):
        if given.changed(flag):
            values[key] = given.flag(flag)
    env = _changed({one["name"]: one["value"] for one in (before or {}).get("env", ())}, given.exec_env)
    return _filled({**(before or {}), **values, "env": [{"name": name, "value": env[name]} for name in env]})


def _changed(pairs: dict[str, str], changes: list[str]) -> dict[str, str]:
    """Pairs with ``key=value`` set and ``key-`` removed."""
    pairs = dict(pairs)
    for change in changes:
        key, equals, value = change.partition("=")
        if equals:
            pairs[key] = value
        else:
            pairs.pop(key.removesuffix("-"), None)
    return pairs


@verb("delete-cluster", "delete-cluster NAME", examples="""
# Forget the name of a cluster; the folder stays
kubepy config delete-cluster lab

# In another folder's contexts
kubepy --state /srv/home/state config delete-cluster lab
""")
def delete_cluster(factory: Factory, given: Invocation) -> None:
    """Delete a cluster. The state folder that it names stays as it is."""
    if len(given.args) != 1:
        show_help(factory)
        return
    name, config = given.args[0], chosen(factory)
    if name not in config.clusters:
        raise CliError(printable(f"cannot delete cluster {name}, not in {file_of(factory)}"))
    kubeconfig.write(factory.home, config._replace(clusters=_without(config.clusters, name)))
    factory.print(printable(f"deleted cluster {name} from {file_of(factory)}"))


@verb("delete-user", "delete-user NAME", examples="""
# Forget a user
kubepy config delete-user robot

# In another folder's contexts
kubepy --state /srv/home/state config delete-user robot
""")
def delete_user(factory: Factory, given: Invocation) -> None:
    """Delete a user."""
    if len(given.args) != 1:
        given.usage_error("user to delete is required")
    name, config = given.args[0], chosen(factory)
    if name not in config.users:
        raise CliError(printable(f"cannot delete user {name}, not in {file_of(factory)}"))
    kubeconfig.write(factory.home, config._replace(users=_without(config.users, name)))
    factory.print(printable(f"deleted user {name} from {file_of(factory)}"))


def _without(entries: dict[str, Entry], name: str) -> dict[str, Entry]:
    return {one: entry for one, entry in entries.items() if one != name}
