"""``set env``."""

from __future__ import annotations

import re
from typing import NamedTuple

from kubepy.api.meta import Object, name_of
from kubepy.cli.create.configmap import check_variable
from kubepy.cli.errors import CliError, is_expected
from kubepy.cli.files import read_standard_input
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import string_array_flag as string_array
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flags import string_slice_flag as strings
from kubepy.cli.runtime.flagsets import selector_flag
from kubepy.cli.runtime.verbs import Invocation, find, verb
from kubepy.cli.set.change import (
    change_each,
    common_flags,
    infos_for,
    refuse_all_of_selected,
    refuse_local_server,
    reply_of,
)
from kubepy.cli.set.pod_specs import pod_spec_of, select_containers
from kubepy.quoting import printable, quote

EXAMPLES = """
    # Set two variables in every container of a DaemonSet, and remove a third
    kubepy set env ds/log-agent LEVEL=debug FORMAT=json OLD-

    # Take variables from a config map
    kubepy set env ds/log-agent --from=configmap/log-settings --prefix=LOG_

    # Show what is set
    kubepy set env ds/log-agent --list
"""

FLAGS = [
    *common_flags("env", recorded=False),
    selector_flag(),
    string("containers", "c", "*", help="The names of containers in the selected pod templates to change - may use "
           "wildcards."),
    string("from", help="The name of a resource from which to inject environment variables."),
    string("prefix", help="Prefix to append to variable names."),
    string_array("env", "e", help="Specify a key-value pair for an environment variable to set into each container."),
    strings("keys", help="Comma-separated list of keys to import from specified resource."),
    boolean("list", help="If true, display the environment and any changes in the standard format."),
    boolean("resolve", help="If true, show secret or configmap references when listing variables."),
    boolean("overwrite", default=True, help="If true, allow environment to be overwritten, otherwise reject updates "
            "that overwrite existing environment."),
]


class Variables(NamedTuple):
    """What to set (in order, env entries) and which names to remove."""

    add: list[Object]
    remove: list[str]


@verb("env", "env RESOURCE/NAME KEY_1=VAL_1 ... KEY_N=VAL_N", flags=FLAGS, examples=EXAMPLES)
def env(factory: Factory, given: Invocation) -> None:
    """Update environment variables on a pod template, list them, or take them from a config map or secret."""
    refuse_all_of_selected(given)
    resources, words = split_words(given.args)
    reply = reply_of(factory, given, "env updated")
    refuse_local_server(given, reply)
    _validate(given, resources)
    variables = parse_variables([*given.env, *words], factory)
    variables = _with_source(factory, given, variables)

    def change(obj: Object) -> None:
        spec = pod_spec_of(obj)
        found = select_containers(spec, given.containers)
        if not found:
            factory.warn(f'{obj["kind"]}/{name_of(obj)} does not have any containers matching '
                         f"{quote(given.containers)}")
        for container in found:
            _change_container(given, container, variables)
            if given.list:
                _show(factory, given, obj, container)

    infos = infos_for(factory, given, resources, drops_words=True)
    if given.list:
        import copy

        for info in infos:
            change(copy.deepcopy(info.content))
        return
    change_each(factory, given, infos, change, reply, failed="failed to patch env update to pod template: ")


def split_words(words: list[str]) -> tuple[list[str], list[str]]:
    """Resources first, then ``KEY=value`` and ``KEY-``. Raises CliError."""
    changes = [index for index, word in enumerate(words) if re.search(r".=", word, re.S) or word.endswith("-")]
    first = changes[0] if changes else len(words)
    if changes != list(range(first, len(words))):
        raise CliError(f"all resources must be specified before environment changes: {' '.join(words)}")
    return words[:first], words[first:]


def _validate(given: Invocation, resources: list[str]) -> None:
    if not given.filename and not resources:
        raise CliError("one or more resources must be specified as <resource> <name> or <resource>/<name>")
    if given.list and given.output:
        raise CliError("--list and --output may not be specified together")
    if given.keys and not given.flag("from"):
        raise CliError("when specifying --keys, a configmap or secret must be provided with --from")


def parse_variables(words: list[str], factory: Factory) -> Variables:
    """``KEY=value``, ``KEY-``; ``-`` reads lines of ``KEY=value`` from standard input. Raises CliError."""
    variables = Variables([], [])
    named = set()
    for word in words:
        name, equals, value = word.partition("=")
        if word == "-":
            variables.add.extend(_from_stdin(factory))
        elif equals:
            check_variable(name)
            named.add(name)
            variables.add.append(_variable(name, value))
        elif word.endswith("-"):
            variables.remove.append(word[:-1])
        else:
            raise CliError(f"unknown environment variable: {word}")
    if named & set(variables.remove):
        raise CliError("can not both modify and remove the same environment variable in the same command")
    return variables


def _variable(name: str, value: str) -> Object:
    return {"name": name, "value": value} if value else {"name": name}


def _from_stdin(factory: Factory) -> list[Object]:
    text = read_standard_input(factory.stdin).decode(errors="replace")
    lines = (line.partition("#")[0] for line in text.splitlines())
    return [_variable(name, value) for name, equals, value in (line.partition("=") for line in lines) if equals]


def _with_source(factory: Factory, given: Invocation, variables: Variables) -> Variables:
    """The variables and those that ``--from`` adds, all with the prefix."""
    add = list(variables.add)
    if source := given.flag("from"):
        words = [] if given.local else [source]
        for info in find(factory, given, args=words, bare_types=given.all, local=given.local).all_infos():
            add += _references(factory, info.content, given.keys)
    if given.prefix:
        add = [{**one, "name": given.prefix + one["name"]} for one in add]
    return Variables(add, variables.remove)


def _references(factory: Factory, source: Object, keys: list[str]) -> list[Object]:
    field = {"ConfigMap": "configMapKeyRef", "Secret": "secretKeyRef"}.get(source["kind"])
    if field is None:
        raise CliError("unsupported resource specified in --from")
    return [
        {"name": _env_name(factory, key), "valueFrom": {field: {"key": key, "name": name_of(source)}}}
        for key in sorted(source.get("data") or {}) if not keys or key in keys
    ]


def _env_name(factory: Factory, key: str) -> str:
    name = re.sub(r"[^a-zA-Z0-9_]", "_", key).upper()
    if name != key:
        factory.warn(f"key {key} transferred to {name}")
    return name


def _change_container(given: Invocation, container: Object, variables: Variables) -> None:
    before = container.get("env") or []
    if not given.overwrite:
        _refuse_overwriting(before, variables.add)
    after = merged(before, variables)
    if after:
        container["env"] = after
    else:
        container.pop("env", None)


def _refuse_overwriting(before: list[Object], add: list[Object]) -> None:
    for new in add:
        for old in before:
            value = old.get("value", "")
            if old["name"] == new["name"] and value != new.get("value", ""):
                raise CliError(f"'{old['name']}' already has a value ({value}), and --overwrite is false")


def merged(before: list[Object], variables: Variables) -> list[Object]:
    """New values take the place of old ones, further ones go to the end, removed names are gone."""
    new = {one["name"]: one for one in reversed(variables.add)}
    covered = set(variables.remove)
    result: list[Object] = []
    for one in [*before, *variables.add]:
        name = one["name"]
        if name not in covered:
            result.append(new.get(name, one))
        if name in new:
            covered.add(name)
    return result


def _show(factory: Factory, given: Invocation, obj: Object, container: Object) -> None:
    """The container's variables; what cannot be resolved is told on stderr."""
    from kubepy.cli.set.env_references import reference_text

    factory.print(printable(f"# {obj['kind']} {name_of(obj)}, container {container['name']}"))
    failures: dict[str, list[str]] = {}
    for variable in container.get("env") or []:
        name, source = variable["name"], variable.get("valueFrom")
        value = variable.get("value", "")
        if source is not None:
            value = _resolved(factory, given, obj, container, name, source, failures)
        factory.print(f"{name}={value}" if value is not None else f"# {name} from {reference_text(source)}")
    for why in sorted(f"error retrieving reference for {', '.join(sorted(names))}: {error}"
                      for error, names in failures.items()):
        factory.say(why)


def _resolved(factory: Factory, given: Invocation, obj: Object, container: Object, name: str, source: Object,
              failures: dict[str, list[str]]) -> str | None:
    """The value of a reference if --resolve asks for it, None where there is none: why not goes to ``failures``."""
    from kubepy.cli.set.env_references import resolved

    if not given.resolve:
        return None
    try:
        return resolved(factory, obj, container, source)
    except Exception as error:
        if not is_expected(error):
            raise
        failures.setdefault(str(error), []).append(name)
        return None
