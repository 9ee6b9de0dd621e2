"""``set env``: set, remove, import and list environment variables.

Upstream: ``kubectl/pkg/cmd/set/set_env.go``, ``kubectl/pkg/cmd/set/env``.
"""

from __future__ import annotations

import copy
import re
from base64 import b64decode
from typing import NamedTuple

from kubepy.api.meta import Object, name_of, nested_list, nested_map
from kubepy.cli.create.configmap import check_variable
from kubepy.cli.errors import CliError, is_expected
from kubepy.cli.files import read_standard_input
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_array_flag, string_flag, string_slice_flag
from kubepy.cli.runtime.manifests import STDIN_MULTI_USE
from kubepy.cli.runtime.options import local_flag
from kubepy.cli.set.change import (
    SetSelectedOptions,
    Setter,
    pod_spec_of,
    refuse_all_of_selected,
    select_containers,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.api.values import goformat, quantity


class SetEnvOptions(SetSelectedOptions):
    """The flags of ``set env``."""

    local: bool = local_flag("set env")
    containers: str = string_flag(
        "containers",
        "c",
        "*",
        help="The names of containers in the selected pod templates to change - may use wildcards.",
    )
    from_: str = string_flag(
        "from", help="The name of a resource from which to inject environment variables."
    )
    prefix: str = string_flag("prefix", help="Prefix to append to variable names.")
    env: list[str] = string_array_flag(
        "env",
        "e",
        help="Specify a key-value pair for an environment variable to set into each container.",
    )
    keys: list[str] = string_slice_flag(
        "keys", help="Comma-separated list of keys to import from specified resource."
    )
    list: bool = bool_flag(
        "list", help="If true, display the environment and any changes in the standard format."
    )
    resolve: bool = bool_flag(
        "resolve", help="If true, show secret or configmap references when listing variables."
    )
    overwrite: bool = bool_flag(
        "overwrite",
        default=True,
        help="If true, allow environment to be overwritten, "
        "otherwise reject updates that overwrite existing environment.",
    )


class EnvChanges(NamedTuple):
    """Variables to set, in order, and names of variables to remove."""

    add: list[Object]
    remove: list[str]


@command(
    "env RESOURCE/NAME KEY_1=VAL_1 ... KEY_N=VAL_N",
    SetEnvOptions,
    examples="""
# Set a variable in every container of a Deployment
kubepy set env deploy/web LEVEL=debug

# In one container of a DaemonSet, and remove another variable there
kubepy set env ds/log-agent -c agent BUFFER=8M LEVEL-

# In all StatefulSets
kubepy set env sts --all REGION=north

# List the variables of a workload
kubepy set env deploy/web --list

# Those of all pods, with the values that they have from ConfigMaps and Secrets
kubepy set env pods --all --list --resolve

# A variable for each key of a ConfigMap, with a prefix
kubepy set env deploy/web --from=configmap/settings --prefix=APP_

# Only for some keys of a Secret
kubepy set env deploy/web --from=secret/login --keys=user

# Print the changed object without changing it in the cluster
kubepy set env deploy/web LEVEL=info --dry-run=server -o yaml

# Print a changed file, without a cluster
kubepy set env -f web.yaml LEVEL=info --local -o yaml

# Remove a variable from a container of all Deployments
kubepy set env deployments --all -c web LEVEL-

# Take variables of this shell
env | grep ^APP_ | kubepy set env deploy/web -

# Change the object that a file names
kubepy set env -f web.yaml LEVEL=warn
""",
)
def env(factory: Factory, options: SetEnvOptions) -> None:
    """Update environment variables on a pod template, list them, or take them from a config map or secret."""  # noqa: E501
    refuse_all_of_selected(options)
    resources, words = split_args(options.args)
    setter = Setter(factory, options, "env updated")
    setter.refuse_local_server()
    if not options.filename and not resources:
        raise CliError(
            "one or more resources must be specified as <resource> <name> or <resource>/<name>"
        )

    if options.list and options.output:
        raise CliError("--list and --output may not be specified together")
    if options.keys and not options.from_:
        raise CliError("when specifying --keys, a configmap or secret must be provided with --from")
    changes = parse_changes(factory, [*options.env, *words])
    if "-" in (*options.env, *words) and "-" in options.filename:
        raise CliError(STDIN_MULTI_USE)
    changes.add.extend(_imported_variables(factory, options))
    if options.prefix:
        changes = changes._replace(
            add=[
                {**variable, "name": options.prefix + variable["name"]} for variable in changes.add
            ]
        )

    def change(obj: Object) -> None:
        containers = select_containers(pod_spec_of(obj), options.containers)
        if not containers:
            factory.warn(
                f"{obj['kind']}/{name_of(obj)} does not have any containers matching "
                f"{quote(options.containers)}"
            )
        for container in containers:
            _change_container(options, container, changes)
            if options.list:
                _list_variables(factory, options, obj, container)

    infos = setter.infos(resources, drops_words=True)
    if options.list:
        for info in infos:
            change(copy.deepcopy(info.content))
        return

    setter.change_each(infos, change, failed="failed to patch env update to pod template: ")


def split_args(words: list[str]) -> tuple[list[str], list[str]]:
    """Split words into resources, and ``KEY=value`` and ``KEY-`` after them. Raises CliError."""
    positions = [
        index
        for index, word in enumerate(words)
        if re.search(r".=", word, re.S) or word.endswith("-")
    ]
    first = positions[0] if positions else len(words)
    if positions != list(range(first, len(words))):
        raise CliError(
            f"all resources must be specified before environment changes: {' '.join(words)}"
        )
    return words[:first], words[first:]


def parse_changes(factory: Factory, words: list[str]) -> EnvChanges:
    """Parse ``KEY=value`` and ``KEY-``; ``-`` reads lines of ``KEY=value`` from standard input.
    Raises CliError."""
    changes = EnvChanges([], [])
    names = set()
    for word in words:
        name, equals, value = word.partition("=")
        if word == "-":
            for line in read_standard_input(factory.stdin).decode(errors="replace").splitlines():
                name, equals, value = line.partition("#")[0].partition("=")
                if equals:
                    changes.add.append(_variable(name, value))
        elif equals:
            check_variable(name)
            names.add(name)
            changes.add.append(_variable(name, value))
        elif word.endswith("-"):
            changes.remove.append(word[:-1])
        else:
            raise CliError(f"unknown environment variable: {word}")

    if names & set(changes.remove):
        raise CliError(
            "can not both modify and remove the same environment variable in the same command"
        )

    return changes


def _variable(name: str, value: str) -> Object:
    if value:
        return {"name": name, "value": value}
    return {"name": name}


def _imported_variables(factory: Factory, options: SetEnvOptions) -> list[Object]:
    """Return variables that refer to the keys of the config maps and secrets of ``--from``."""
    if not options.from_:
        return []
    variables = []
    words = [] if options.local else [options.from_]
    builder = Builder(factory, options, args=words, bare_types=options.all, local=options.local)
    for source in (info.content for info in builder.do().all_infos()):
        field = {"ConfigMap": "configMapKeyRef", "Secret": "secretKeyRef"}.get(source["kind"])
        if field is None:
            raise CliError("unsupported resource specified in --from")
        for key in sorted(nested_map(source, "data")):
            if options.keys and key not in options.keys:
                continue
            name = re.sub(r"[^a-zA-Z0-9_]", "_", key).upper()
            if name != key:
                factory.warn(f"key {key} transferred to {name}")
            variables.append(
                {"name": name, "valueFrom": {field: {"key": key, "name": name_of(source)}}}
            )

    return variables


def _change_container(options: SetEnvOptions, container: Object, changes: EnvChanges) -> None:
    before = nested_list(container, "env")
    if not options.overwrite:
        for new in changes.add:
            for old in before:
                value = old.get("value", "")
                if old["name"] == new["name"] and value != new.get("value", ""):
                    raise CliError(
                        f"'{old['name']}' already has a value ({value}), and --overwrite is false"
                    )
    after = merged(before, changes)
    if after:
        container["env"] = after
    else:
        container.pop("env", None)


def merged(before: list[Object], changes: EnvChanges) -> list[Object]:
    """Replace variables by new ones of the same name, add the other new ones at the end, and remove
    names."""
    new = {variable["name"]: variable for variable in reversed(changes.add)}
    covered = set(changes.remove)
    result: list[Object] = []
    for variable in [*before, *changes.add]:
        name = variable["name"]
        if name not in covered:
            result.append(new.get(name, variable))
        if name in new:
            covered.add(name)
    return result


# --- listing: references and the values that they have now ----------------------------------------


def _list_variables(
    factory: Factory, options: SetEnvOptions, obj: Object, container: Object
) -> None:
    """Print the container's variables, and report on stderr the references that cannot be
    resolved."""
    factory.print(printable(f"# {obj['kind']} {name_of(obj)}, container {container['name']}"))
    names_by_error: dict[str, list[str]] = {}
    for variable in nested_list(container, "env"):
        name = variable["name"]
        source = variable.get("valueFrom")
        value: str | None = variable.get("value", "")
        if source is not None:
            value = None
            try:
                value = resolved(factory, obj, container, source) if options.resolve else None
            except Exception as error:
                if not is_expected(error):
                    raise
                names_by_error.setdefault(str(error), []).append(name)
        factory.print(
            f"{name}={value}" if value is not None else f"# {name} from {reference_text(source)}"
        )

    for message in sorted(
        f"error retrieving reference for {', '.join(sorted(names))}: {error}"
        for error, names in names_by_error.items()
    ):
        factory.say(message)


def reference_text(source: Object) -> str:
    """Format a reference: ``configmap conf, key mode``."""
    if reference := source.get("configMapKeyRef"):
        return f"configmap {reference['name']}, key {reference['key']}"
    if reference := source.get("secretKeyRef"):
        return f"secret {reference['name']}, key {reference['key']}"
    if reference := source.get("fieldRef"):
        return f"field path {reference['fieldPath']}"
    if reference := source.get("resourceFieldRef"):
        prefix = f"{reference['containerName']}/" if reference.get("containerName") else ""
        return f"resource field {prefix}{reference['resource']}"
    return "invalid valueFrom"


def resolved(factory: Factory, obj: Object, container: Object, source: Object) -> str:
    """Return the value that a reference has in the cluster. Raises CliError, NotFound."""
    if reference := source.get("secretKeyRef"):
        encoded = _key_value(factory, "secrets", "secret", reference)
        return b64decode(encoded).decode(errors="replace")
    if reference := source.get("configMapKeyRef"):
        return _key_value(factory, "configmaps", "config map", reference)
    if reference := source.get("fieldRef"):
        return _field_value(obj["metadata"], reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        return _resource_value(nested_map(container, "resources"), reference)
    raise CliError("invalid valueFrom")


def _key_value(factory: Factory, resource: str, noun: str, reference: Object) -> str:
    source = factory.client.get(resource, reference["name"], namespace=factory.namespace)
    data: dict[str, str] = nested_map(source, "data")
    if reference["key"] not in data:
        raise CliError(f"key {reference['key']} not found in {noun} {reference['name']}")
    return data[reference["key"]]


def _field_value(metadata: Object, path: str) -> str:
    if match := re.fullmatch(r"(.+?)\['(.*)'\]", path):
        field = match[1].removeprefix("metadata.")
        if match[1] not in ("metadata.annotations", "metadata.labels"):
            raise CliError(f"fieldPath {quote(match[1])} does not support subscript")
        return str((metadata.get(field) or {}).get(match[2], ""))
    field = path.removeprefix("metadata.")
    if path in ("metadata.annotations", "metadata.labels"):
        values = metadata.get(field) or {}
        return "\n".join(f"{key}={goformat.quote(values[key])}" for key in sorted(values))
    if path in ("metadata.name", "metadata.namespace", "metadata.uid"):
        return str(metadata.get(field, ""))
    raise CliError(f"unsupported fieldPath: {path}")


def _resource_value(resources: Object, reference: Object) -> str:
    """Return an amount in units of the divisor, rounded up."""
    section, _, name = reference["resource"].partition(".")
    if section not in ("limits", "requests") or not re.fullmatch(
        r"cpu|memory|ephemeral-storage|hugepages-.*", name
    ):
        raise CliError(f"Unsupported container resource : {reference['resource']}")
    amount = quantity.Quantity.parse((resources.get(section) or {}).get(name, "0"))
    divisor = quantity.Quantity.parse(reference.get("divisor") or "1")
    divisor = quantity.Quantity.of(1) if divisor.is_zero() else divisor
    if name == "cpu":
        return str(-(-amount.milli_value() // divisor.milli_value()))
    return str(-(-amount.value() // divisor.value()))
