"""``kubepy completion``: shell code that asks ``kubepy __complete WORD…`` what could come next.

``__complete`` prints one candidate a line: commands, flags, types, names out of the state folder, namespaces. It never
fails: what can't be completed gives nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from kubepy.cli.runtime.command import Entry, Invocation, Verb, load, verb
from kubepy.cli.runtime.errors import is_expected
from kubepy.cli.runtime.flags import Flag, Parser
from kubepy.cli.runtime.session import GLOBAL_FLAGS, Session

BASH = """# bash completion for kubepy
_kubepy() {
    local IFS=$'\\n'
    COMPREPLY=()
    local cur="${COMP_WORDS[COMP_CWORD]}" line="${COMP_LINE:0:COMP_POINT}"
    local candidates
    candidates="$(kubepy __complete "$line" 2>/dev/null)"
    if [ -z "$candidates" ]; then
        compopt -o default 2>/dev/null
        return
    fi
    # A word with "=" or ":" in it is several words to bash: complete the last of them.
    local prefix="${line##* }"
    prefix="${prefix%"$cur"}"
    COMPREPLY=($(compgen -W "$candidates" -- "$prefix$cur"))
    COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
    case "${COMPREPLY[*]}" in */ | *= | *,) compopt -o nospace 2>/dev/null ;; esac
}
complete -F _kubepy kubepy
"""
ZSH = """#compdef kubepy
_kubepy() {
    local -a candidates
    candidates=("${(@f)$(kubepy __complete "${LBUFFER}" 2>/dev/null)}")
    if [[ -z "$candidates" ]]; then
        _files
        return
    fi
    compadd -Q -- "${candidates[@]}"
}
compdef _kubepy kubepy
"""
FISH = """# fish completion for kubepy
function __kubepy_complete
    kubepy __complete (commandline -cp) 2>/dev/null
end
complete -c kubepy -e
complete -c kubepy -f -n 'test (count (__kubepy_complete)) -gt 0' -a '(__kubepy_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}

# What values a flag takes.
VALUES: dict[str, Sequence[str]] = {
    "output": ("json", "yaml", "name", "wide", "jsonpath=", "custom-columns=", "go-template="),
    "dry-run": ("none", "client", "server"),
    "cascade": ("background", "foreground", "orphan"),
    "type": ("json", "merge", "strategic"),
    "validate": ("strict", "warn", "ignore"),
    "reconcile": ("auto", "never"),
    "subresource": ("status", "scale"),
}
# Verbs whose words are names of one type; those of NAME_FREE take no words out of the folder.
NODE_VERBS = ("cordon", "uncordon", "drain")
NAME_FREE = ("create", "run", "init", "fsck", "controller", "version", "options", "api-resources", "api-versions",
             "apply", "replace", "diff", "completion", "config", "kustomize")


@verb("completion", "completion SHELL", examples="""
# In this shell
source <(kubepy completion bash)

# For fish
kubepy completion fish > ~/.config/fish/completions/kubepy.fish
""")
def completion(session: Session, given: Invocation) -> None:
    """Output shell completion code for the specified shell (bash, zsh, fish)."""
    if not given.args:
        given.usage_error("Shell not specified.")
    if len(given.args) > 1:
        given.usage_error("Too many arguments. Expected only the shell type.")
    shell = given.args[0]
    if shell not in SCRIPTS:
        given.usage_error(f'Unsupported shell type "{shell}".')
    session.print(SCRIPTS[shell], end="")


class _Complete(Verb):
    """Takes one argument, the command line so far, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params = {"line": args[0] if args else ""}
        return []

    def invoke(self, ctx: click.Context) -> None:
        try:
            found = candidates(ctx.obj, split(ctx.params["line"]))
        except Exception as error:
            if not is_expected(error):
                raise
            return
        for word in found:
            ctx.obj.print(word)


complete = _Complete("__complete", "__complete LINE", None)


def split(line: str) -> list[str]:
    """The words of an unfinished line without the program's name; the last one is what is being typed, maybe ""."""
    import shlex

    try:
        words = shlex.split(line)
    except ValueError:
        return []
    return [*words[1:], ""] if line.endswith((" ", "\t")) else words[1:]


def candidates(session: Session, words: list[str]) -> list[str]:
    """What the last word could become, sorted."""
    if not words:
        return []
    from kubepy.cli.commands import COMMANDS

    *before, word = words
    command, name, rest = _command_of(before, COMMANDS)
    if command is None:
        shown = {one: entry for one, entry in COMMANDS.items() if entry.summary}
        command = Verb("kubepy", "kubepy", None, entries=shown)
    return _beginning(word, _after(session, command, name, rest, word))


def _command_of(words: list[str], entries: dict[str, Entry]) -> tuple[Verb | None, str, list[str]]:
    """The command that the words name, the verb it begins with, and the words behind it."""
    parser = Parser(GLOBAL_FLAGS)
    position = parser.first_word(words)
    if position is None or words[position] not in entries:
        return None, "", words
    name = words[position]
    command, rest = load(name, entries[name]), words[:position] + words[position + 1:]
    while command.entries and (at := Parser([*command.flags, *GLOBAL_FLAGS]).first_word(rest)) is not None:
        child = command.get_command(click.Context(command), rest[at])
        if child is None:
            break
        command, rest = child, rest[:at] + rest[at + 1:]
    return command, name, rest


def _after(session: Session, command: Verb, name: str, rest: list[str], word: str) -> Iterable[str]:
    flags = {flag.name: flag for flag in [*GLOBAL_FLAGS, *command.flags]}
    shorts = {flag.short: flag for flag in flags.values() if flag.short}
    last = rest[-1] if rest else ""
    flag = flags.get(last[2:]) if last.startswith("--") else shorts.get(last[1:]) if last.startswith("-") else None
    _take_globals(session, command, rest if flag is None else rest[:-1])
    if flag is not None and flag.no_value is None:
        return _values(session, flag)
    if word.startswith("--") and "=" in word:
        wanted = flags.get(word[2:].partition("=")[0])
        return [f"--{wanted.name}={value}" for value in _values(session, wanted)] if wanted else []
    if word.startswith("-"):
        return [f"--{one.name}" + ("" if one.no_value is not None else "=") for one in flags.values() if not one.hidden]
    args = [one for one in rest if not one.startswith("-")]
    if command.entries and not args:
        return command.entries
    return _words(session, name, _positional(command, rest), word)


def _take_globals(session: Session, command: Verb, words: list[str]) -> None:
    from kubepy.cli.runtime.flags import FlagSyntaxError, HelpRequested

    try:
        parsed = Parser([*command.flags, *GLOBAL_FLAGS]).parse(words)
    except (FlagSyntaxError, HelpRequested):
        return
    session.take(Invocation(command, "kubepy", *parsed), may_create=False)


def _positional(command: Verb, words: list[str]) -> list[str]:
    from kubepy.cli.runtime.flags import FlagSyntaxError, HelpRequested

    try:
        return Parser([*command.flags, *GLOBAL_FLAGS]).parse(words).args
    except (FlagSyntaxError, HelpRequested):
        return []


def _values(session: Session, flag: Flag) -> Iterable[str]:
    if flag.name == "namespace":
        return _names(session, "namespaces")
    return VALUES.get(flag.name, ())


def _words(session: Session, name: str, args: list[str], word: str) -> Iterable[str]:
    """Types, and the names of a type's objects, as ``TYPE NAME`` or ``TYPE/NAME``."""
    if name == "completion":
        return SCRIPTS
    if name in NAME_FREE:
        return ()
    if name in NODE_VERBS:
        return _names(session, "nodes")
    if args and "/" not in args[0]:
        return _names(session, args[0])
    kind, slash, _ = word.partition("/")
    if slash:
        return [f"{kind}/{one}" for one in _names(session, kind)]
    return [] if args else [*(one.plural for one in session.scheme), "all"]


def _names(session: Session, kind: str) -> list[str]:
    resource = session.scheme.find(kind)
    if resource is None or not session.has_cluster:
        return []
    namespace = session.namespace if resource.namespaced else None
    return [obj["metadata"]["name"] for obj in session.client.list(resource.key, namespace=namespace).items]


def _beginning(word: str, found: Iterable[str]) -> list[str]:
    return sorted({one for one in found if one.startswith(word)})
