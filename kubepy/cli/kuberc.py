"""``kubepy kuberc``, and what a file of preferences does to a command line: aliases, and other
defaults of flags.

An alias is replaced by the words that it stands for, and a default is added to the words as a flag
that is not there. Upstream: ``kubectl/pkg/kuberc``, ``kubectl/pkg/cmd/kuberc``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kubepy import klog
from kubepy.api.clock import Clock
from kubepy.api.meta import Object, nested_list
from kubepy.api.values.goformat import json_type_name
from kubepy.cli.errors import CliError, UnprefixedError, os_error_text
from kubepy.cli.files import read_string
from kubepy.cli.runtime.command import Command, command
from kubepy.cli.runtime.command import load as load_command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag, Parser, bool_flag, string_array_flag, string_flag
from kubepy.cli.runtime.options import GLOBAL_FLAGS, Options, PrintFlags, output_flag
from kubepy.cli.runtime.output import printer_for
from kubepy.quoting import printable, quote
from kubepy.storage import yaml

GROUP = "kubectl.config.k8s.io"
KIND = "Preference"
API_VERSION = f"{GROUP}/v1beta1"
POLICIES = ("AllowAll", "DenyAll", "Allowlist")

# The fields of the types, in Go's order, with those of their items.
_OPTION: dict[str, Any] = {"name": str, "default": str}
_ALIAS = {
    "name": str,
    "command": str,
    "prependArgs": [str],
    "appendArgs": [str],
    "options": [_OPTION],
}
TYPE: dict[str, Any] = {
    "kind": str,
    "apiVersion": str,
    "defaults": [{"command": str, "options": [_OPTION]}],
    "aliases": [_ALIAS],
    "credentialPluginPolicy": str,
    "credentialPluginAllowlist": [{"name": str, "command": str}],
}
_OLD_NAMES = {"overrides": "defaults", "flags": "options"}  # as v1alpha1 has them


class KubercFile(NamedTuple):
    """A file of preferences. ``is_explicit``: the command line or $KUBERC names it."""

    path: str
    is_explicit: bool


def location(explicit: str) -> KubercFile:
    """Return the file to use; its path is "" where $KUBERC is ``off``. Raises CliError."""
    variable = os.environ.get("KUBERC", "")
    if variable == "off":
        if explicit:
            raise CliError(
                "disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive"
            )
        return KubercFile("", False)
    path = explicit or variable
    return KubercFile(path or os.path.expanduser("~/.kube/kuberc"), bool(path))


# --- the file -------------------------------------------------------------------------------------


class NoPreferenceError(Exception):
    """A document that is no Preference."""


def decode(document: object, strict: list[str]) -> Object | None:
    """Return a document as a Preference of v1beta1, None for another kind; fields that it has not
    go to ``strict``.

    :raises NoPreferenceError: for values of other types.
    """
    if not isinstance(document, dict):
        raise NoPreferenceError(f"cannot unmarshal {json_type_name(document)} into a {KIND}")
    group, _, version = str(document.get("apiVersion")).partition("/")
    if (group, document.get("kind")) != (GROUP, KIND) or version not in ("v1beta1", "v1alpha1"):
        return None
    preference = decoded_as(document, TYPE, "", _OLD_NAMES if version == "v1alpha1" else {}, strict)
    assert isinstance(preference, dict)
    return preference


def decoded_as(
    value: object, form: object, path: str, names: Mapping[str, str], strict: list[str]
) -> object:
    if isinstance(form, dict):
        wanted: type = dict
    else:
        wanted = list if isinstance(form, list) else str

    if value is None:
        return None
    if not isinstance(value, wanted):
        raise NoPreferenceError(
            f"json: cannot unmarshal {json_type_name(value)} into Go struct field {KIND}.{path}"
        )

    if isinstance(value, list) and isinstance(form, list):
        return [
            decoded_as(item, form[0], f"{path}[{index}]", names, strict)
            for index, item in enumerate(value)
        ]

    if not isinstance(value, dict) or not isinstance(form, dict):
        return value
    fields = {names.get(key, key): item for key, item in value.items()}
    prefix = f"{path}." if path else ""
    strict += [f'unknown field "{prefix}{key}"' for key in fields if key not in form]
    return {
        key: decoded_as(fields[key], form[key], prefix + key, names, strict)
        for key in form
        if key in fields
    }


def load(place: KubercFile, factory: Factory, verbosity: int) -> Object | None:
    """Return the first Preference of a file, None if there is none. Raises CliError
    (``DefaultGetPreferences``)."""
    try:
        documents = yaml.load_all(read_string(place.path))
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not place.is_explicit:
            reason = ""
        else:
            reason = os_error_text(error)
    except (yaml.YamlError, CliError) as error:
        reason = str(error)
    else:
        strict: list[str] = []
        for number, document in enumerate(documents, 1):
            try:
                preference = decode(document.object, strict)
            except NoPreferenceError as error:
                log(
                    factory,
                    verbosity,
                    f"strict decoding error for entry {number} in {place.path}: {error}",
                )
                continue
            if preference is not None:
                if strict:
                    factory.say(
                        f"kuberc: ignoring strict decoding error in {place.path}: strict decoding "
                        f"error: "
                        f"{', '.join(strict)}"
                    )
                return preference
            log(
                factory,
                verbosity,
                f"unexpected GroupVersionKind for entry {number} in {place.path}",
            )
        if not documents:
            log(factory, verbosity, f"no preferences found in {place.path}")
            return None
        reason = f"no valid preferences found in {place.path}, use --v=5 to see details"

    if reason and place.is_explicit:
        raise CliError(f"kuberc error kuberc: {reason}")
    if reason:
        factory.say(f"kuberc: no preferences loaded from {place.path}: {reason}")
    return None


def log(factory: Factory, verbosity: int, text: str) -> None:
    """Write a line as klog's V(5) does."""
    if verbosity >= 5:
        factory.say(f"{klog.header('I', Clock(), klog.place_of(log.__code__))} kuberc: {text}")


def validate(preference: Object) -> None:
    """Raise CliError for preferences that cannot be used."""
    names = set()
    for alias in nested_list(preference, "aliases"):
        if not re.fullmatch("[a-zA-Z]+", alias.get("name") or ""):
            raise CliError("invalid alias name, can only include alphabetical characters")
        validate_options(alias)
        if alias["name"] in names:
            raise CliError(f"duplicate alias name {alias['name']}")
        names.add(alias["name"])
    for default in nested_list(preference, "defaults"):
        validate_options(default)
    validate_policy(
        preference.get("credentialPluginPolicy") or "", preference.get("credentialPluginAllowlist")
    )


def validate_options(entry: Object) -> None:
    for option in nested_list(entry, "options"):
        if (option.get("name") or "").startswith("-"):
            raise CliError(f"flag name {option['name']} should be in long form without dashes")


def validate_policy(policy: str, allowlist: list[Object] | None) -> None:
    """Raise CliError for a policy that is unknown or has a wrong list
    (``exec.ValidatePluginPolicy``)."""
    if policy in ("", "AllowAll", "DenyAll"):
        if allowlist is not None:
            raise CliError(
                f"misconfigured credential plugin allowlist: plugin policy is {quote(policy)} but "
                f"allowlist "
                "is non-nil"
            )
        return

    if policy != "Allowlist":
        raise CliError(f"unknown plugin policy: {quote(policy)}")
    if not allowlist:
        problem = 'empty; use "DenyAll" policy instead' if allowlist is not None else "unspecified"
        raise CliError(f'credential plugin policy set to "Allowlist", but allowlist is {problem}')
    for number, entry in enumerate(allowlist, 1):
        path = entry.get("command") or entry.get("name") or ""
        if not path:
            raise CliError(
                f"misconfigured credential plugin allowlist: empty allowlist entry #{number}"
            )
        if os.path.normpath(path) != path:
            raise CliError(
                f"non-normalized file path: {quote(path)} vs {quote(os.path.normpath(path))}"
            )


# --- the command line -----------------------------------------------------------------------------


class NamedCommand(NamedTuple):
    """The command that words name: its own words, the position behind them, and itself."""

    path: list[str]
    end: int
    command: Command


def find(root: Command, words: Sequence[str]) -> NamedCommand | None:
    """Return the command that words name, ``root`` for none; None for an unknown word (cobra's
    ``Find``)."""
    path: list[str] = []
    end = 0
    found = root
    rest = list(words)
    while found.entries:
        position = Parser([*found.flags, *GLOBAL_FLAGS]).first_word(rest)
        name = found.canonical(rest[position]) if position is not None else ""
        if position is None or not name:
            if position is not None and found is root:
                return None
            return NamedCommand(path, end, found)
        path.append(name)
        end += position + 1
        rest = rest[position + 1 :]
        found = load_command(name, found.entries[name])

    return NamedCommand(path, end, found)


def applied(root: Command, words: list[str], factory: Factory) -> list[str]:
    """Return a command line with the preferences in it. Raises UnprefixedError
    (``Preferences.Apply``)."""
    try:
        place = location(explicit_file(words))
        preference = load(place, factory, verbosity_of(words)) if place.path and words else None
        if preference is None:
            return words
        validate(preference)
        named = find(root, words)
        if named is None:
            return with_alias(root, preference, words, factory)
        return with_defaults(root, preference, words, factory, named)
    except CliError as error:
        raise UnprefixedError(f"error occurred while applying preferences {error}") from None


def explicit_file(words: Sequence[str]) -> str:
    """Return the file that ``--kuberc`` names. Raises CliError."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--":
            break
        if word == "--kuberc" or "--kuberc=" in word:
            path = following if word == "--kuberc" else word.split("=")[1]
            if not path:
                raise CliError("kuberc file is not found")
            return path
    return ""


def verbosity_of(words: Sequence[str]) -> int:
    """Return the value of ``-v`` before the words are read (``GetLogVerbosity``)."""
    text = " ".join(words).partition(" -- ")[0]
    match = re.search(r"(?:^| )--?v[= ]?(\d+)", text)
    if match:
        return int(match.group(1))
    return 0


def with_alias(root: Command, preference: Object, words: list[str], factory: Factory) -> list[str]:
    position = Parser(GLOBAL_FLAGS).first_word(words)
    alias = next(
        (
            alias
            for alias in nested_list(preference, "aliases")
            if position is not None and alias["name"] == words[position]
        ),
        None,
    )
    if alias is None or position is None:
        return words
    target = alias.get("command") or ""
    named = find(root, target.split())
    if named is None or not named.path:
        raise CliError(
            f"command {quote(target)} not found to set alias {quote(alias['name'])}: "
            f"[{' '.join(target.split())}]"
        )

    defaults = nested_list(preference, "defaults")
    if any((default.get("command") or "").split()[:1] == [alias["name"]] for default in defaults):
        raise CliError(f"alias {alias['name']} can not be overridden")
    flags = new_flags(named, alias, words, f"invalid alias flag {{}} in alias {factory.program}")
    return [
        *words[:position],
        *target.split(),
        *flags,
        *nested_list(alias, "prependArgs"),
        *words[position + 1 :],
        *nested_list(alias, "appendArgs"),
    ]


def with_defaults(
    root: Command, preference: Object, words: list[str], factory: Factory, named: NamedCommand
) -> list[str]:
    flags: list[str] = []
    for default in nested_list(preference, "defaults"):
        text = default.get("command") or ""
        other = find(root, text.split())
        if other is None:
            factory.say(f"Warning: command {quote(text)} not found to set kuberc override")
        elif other.path[-1:] == named.path[-1:]:
            flags += new_flags(named, default, words, f"invalid flag {{}} for command {text}")
    return [*words[: named.end], *flags, *words[named.end :]]


def new_flags(named: NamedCommand, entry: Object, words: Sequence[str], unknown: str) -> list[str]:
    """Return the options of an alias or a default as flags, but for those that are among the words.
    Raises CliError."""
    flags = {flag.long: flag for flag in (*GLOBAL_FLAGS, *named.command.flags)}
    words_of_options = []
    for option in nested_list(entry, "options"):
        name = option.get("name") or ""
        value = option.get("default") or ""
        if (flag := flags.get(name)) is None:
            raise CliError(unknown.format(name))
        if is_given(flag, words):
            continue
        try:
            flag.parse(value)
        except ValueError as error:
            raise CliError(
                f"could not apply override value {value} to flag {name} in command "
                f"{entry.get('command')} err: {error}"
            ) from None
        words_of_options.append(f"--{name}={value}")

    return words_of_options


def is_given(flag: Flag, words: Iterable[str]) -> bool:
    """Tell whether a flag is among the words (``searchInArgs``); of letters behind one dash each
    may be its short."""
    return any(
        word == f"--{flag.long}"
        or word.startswith(f"--{flag.long}=")
        or (
            flag.short
            and (
                word.startswith(f"-{flag.short}")
                or (re.fullmatch("-[a-zA-Z]+", word) and flag.short in word)
            )
        )
        for word in words
    )


# --- the commands ---------------------------------------------------------------------------------


class KubercViewOptions(PrintFlags):
    """The flags of ``kuberc view``."""

    output: str = output_flag(default="yaml")


class KubercSetOptions(Options):
    """The flags of ``kuberc set``."""

    section: str = string_flag(
        "section", help="Section to modify: 'defaults', 'aliases' or 'credentialplugin'."
    )
    command: str = string_flag(
        "command", help="Command to configure (e.g. 'get', 'create', 'set env')."
    )
    name: str = string_flag("name", help="Name of the alias, for --section=aliases.")
    policy: str = string_flag(
        "policy",
        help="Policy for plugins that get credentials: 'AllowAll', 'DenyAll' or "
        "'Allowlist'. Kept with the file; no plugin is ever run here.",
    )
    option: list[str] = string_array_flag(
        "option", help="Default of a flag: flag=value. May be given several times."
    )
    prependarg: list[str] = string_array_flag(
        "prependarg", help="A word to put before those of the command line, for aliases."
    )
    appendarg: list[str] = string_array_flag(
        "appendarg", help="A word to put behind those of the command line, for aliases."
    )
    allowlist_entry: list[str] = string_array_flag(
        "allowlist-entry", help="An entry of the list: field=value."
    )
    overwrite: bool = bool_flag("overwrite", help="Allow overwriting existing entries.")


def file_to_change(factory: Factory) -> KubercFile:
    place = location(factory.options.kuberc)
    if not place.path:
        raise CliError("KUBERC is disabled via KUBERC=off environment variable")
    return place


def read_preferences(path: str) -> Object:
    """Return the preferences of a file, in Go's order. Raises OSError, CliError."""
    try:
        documents = yaml.load_all(read_string(path))
        decoded = decoded_as(documents[0].object if documents else {}, TYPE, "", {}, [])
    except (yaml.YamlError, NoPreferenceError) as error:
        raise CliError(f"error parsing kuberc file: {error}") from None
    assert isinstance(decoded, dict)
    return {"kind": KIND, "apiVersion": API_VERSION, **decoded}


def save(factory: Factory, path: str, preference: Object) -> None:
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(yaml.dump({"defaults": None, "aliases": None, **preference}))
    except OSError as error:
        raise CliError(f"failed to write kuberc file: {os_error_text(error)}") from None
    factory.print(f"Updated {printable(path)}")


@command(
    "view",
    KubercViewOptions,
    examples="""
# Print the preferences
kubepy kuberc view

# Print those of a file, as JSON
kubepy kuberc view --kuberc=team.kuberc -o json
""",
)
def view(factory: Factory, options: KubercViewOptions) -> None:
    """Display the preferences: defaults of flags, and aliases of commands."""
    place = file_to_change(factory)
    try:
        preference = read_preferences(place.path)
    except FileNotFoundError:
        if place.is_explicit:
            raise CliError(f"kuberc file not found at {place.path}") from None
        factory.print(f"kuberc file not found at {place.path}")
        factory.print(
            "Would you like to generate a default kuberc file with recommended options? (y/N): ",
            end="",
        )
        if factory.stdin.readline().strip().lower() == "y":
            defaults = (("apply", "server-side"), ("delete", "interactive"))
            save(
                factory,
                place.path,
                {
                    "kind": KIND,
                    "apiVersion": API_VERSION,
                    "defaults": [
                        {"command": name, "options": [{"name": option, "default": "true"}]}
                        for name, option in defaults
                    ],
                },
            )
        return
    except OSError as error:
        raise CliError(f"error reading kuberc file: {os_error_text(error)}") from None

    preference |= {key: preference.get(key) or [] for key in ("defaults", "aliases")}
    printer_for(factory, options, typed=True)(
        {key: preference[key] for key in TYPE if key in preference}
    )


@command(
    "set --section (defaults|aliases) --command COMMAND",
    KubercSetOptions,
    examples="""
# Print wide tables, unless -o is given
kubepy kuberc set --section=defaults --command=get --option=output=wide

# "kubepy crashing -n web" for pods that do not run
kubepy kuberc set --section=aliases --name=crashing --command=get --prependarg=pods \\
    --option=field-selector=status.phase!=Running
""",
)
def set_(factory: Factory, options: KubercSetOptions) -> None:
    """Set a default of a flag, an alias of a command, or the policy for plugins.

    The file is $KUBERC, ~/.kube/kuberc, or the one that --kuberc names. Aliases and defaults of ~/.kube/kuberc count
    where the program is called kubectl."""  # noqa: E501
    options.require("section")
    place = file_to_change(factory)
    check_set(options)
    try:
        preference = read_preferences(place.path)
    except FileNotFoundError:
        preference = {"kind": KIND, "apiVersion": API_VERSION}
    except OSError as error:
        raise CliError(f"error reading kuberc file: {os_error_text(error)}") from None

    values = []
    for option in options.option:
        name, equals, value = option.partition("=")
        if not equals:
            raise CliError(f"invalid option format {quote(option)}, expected flag=value")
        values.append({"name": name.lstrip("-"), "default": value})

    if options.section == "credentialplugin":
        preference["credentialPluginPolicy"] = options.policy
        if options.policy == "Allowlist":
            preference["credentialPluginAllowlist"] = allowlist_of(options.allowlist_entry)
    elif options.section == "aliases":
        entry = {
            "name": options.name,
            "command": options.command,
            "prependArgs": options.prependarg,
            "appendArgs": options.appendarg,
            "options": values,
        }
        put(
            preference,
            "aliases",
            "name",
            entry,
            options.overwrite,
            f"alias {quote(options.name)} already exists",
        )
    else:
        put(
            preference,
            "defaults",
            "command",
            {"command": options.command, "options": values},
            options.overwrite,
            f"defaults for command {quote(options.command)} already exist",
        )

    save(factory, place.path, preference)


def put(
    preference: Object, section: str, key: str, entry: Object, overwrite: bool, exists: str
) -> None:
    """Add an entry, or replace the one of the same key; lists that are not given stay. Raises
    CliError."""
    entries = preference.get(section) or []
    position = next(
        (index for index, old in enumerate(entries) if old.get(key) == entry[key]), len(entries)
    )
    if position < len(entries) and not overwrite:
        raise CliError(f"{exists}, use --overwrite to replace")
    old = entries[position] if position < len(entries) else {}
    new = {field: value or old.get(field) for field, value in entry.items()}
    kept = {
        field: value
        for field, value in new.items()
        if value or (section == "defaults" and field == "options")
    }
    preference[section] = [*entries[:position], kept, *entries[position + 1 :]]


def check_set(options: KubercSetOptions) -> None:
    """Raise CliError for flags that do not go together."""
    section = options.section
    is_alias = options.section == "aliases"
    is_plugin = options.section == "credentialplugin"
    if section not in ("defaults", "aliases", "credentialplugin"):
        raise CliError(
            f'--section must be "defaults", "aliases", or "credentialplugin", got: {section}'
        )

    if is_alias and not options.name:
        raise CliError("--name is required when --section=aliases")
    if section == "defaults" and options.name:
        raise CliError("--name should not be specified when --section=defaults")
    if section == "defaults" and (options.prependarg or options.appendarg):
        raise CliError("--prependarg and --appendarg are only valid for --section=aliases")
    if not is_plugin and not options.command:
        raise CliError("--command is required when --section=aliases or --section=defaults")
    if not is_plugin:
        return
    if not options.policy:
        raise CliError("--policy is required when --section=credentialplugin")
    if options.policy not in POLICIES:
        raise CliError(
            ' --policy must be  "AllowAll", "DenyAll", or "Allowlist", got: ' + options.policy
        )

    if options.policy != "Allowlist" and options.allowlist_entry:
        raise CliError(
            "--allowlist-entry may only be used when --section=credentialplugin and "
            "--policy=Allowlist"
        )

    if options.policy == "Allowlist" and not options.allowlist_entry:
        raise CliError(
            "--allowlist-entry is required when --section=credentialplugin and --policy=Allowlist"
        )


def allowlist_of(entries: Iterable[str]) -> list[Object]:
    """Return the entries of the list. Raises CliError with all their mistakes."""
    allowlist: list[Object] = []
    errors = []
    for pair in (pair for entry in entries for pair in entry.split(",")):
        field, equals, value = pair.partition("=")
        if not equals:
            errors.append(f"improperly formatted allowlist entry: {quote(pair)}")
        elif field == "name":
            errors.append('allowlist entry field "name" is deprecated, use "command" instead')
        elif field != "command":
            errors.append(f"unrecognized allowlist entry field: {quote(field)}")
        elif not value.strip():
            errors.append(f"empty value in allowlist entry for field {quote(field)}")
        else:
            allowlist.append({"command": value})

    if errors:
        raise CliError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return allowlist
