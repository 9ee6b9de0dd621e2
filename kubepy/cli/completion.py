"""Shell completion: shells ask ``kubepy __complete`` what the last word of a line could become.

It takes cobra's form, which kubectl's own scripts and other programs use (``__complete get po``),
and a whole line as one word (``__complete "kubepy get po"``), which the scripts of ``completion``
send: a line needs no quoting. Those scripts are printed first; :func:`complete_words` reads the
words, WORDS and the tables of flags say what the words and flags of each command can be, and the
last section looks into the state folder. Nothing here fails: a line that cannot be completed has no
candidates. Upstream: cobra's ``completions.go``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kubepy.api.meta import Object, nested_list
from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError, UnprefixedError, is_expected, unless_missing
from kubepy.cli.names import KUBECTL, KUBEPY, renamed
from kubepy.cli.runtime.command import Command, command
from kubepy.cli.runtime.dispatch import Line, line_of, root_command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag, FlagSyntaxError, HelpRequested, Parsed
from kubepy.cli.runtime.options import GLOBAL_FLAGS, CommandLine, Options
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.cli import auth, config, plan, plugins
    from kubepy.cli.rollout import revisions as rollout_revisions
    from kubepy.cli.set import change as set_change

# --- the code for shells --------------------------------------------------------------------------

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
    local word="${line##*[[:space:]]}"
    local prefix="${word%"$cur"}"
    case "$cur" in = | :) prefix="$word" cur="" ;; esac
    COMPREPLY=($(compgen -W "$candidates" -- "$prefix$cur"))
    COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
    case "${COMPREPLY[*]}" in */ | *= | *, | *:) compopt -o nospace 2>/dev/null ;; esac
}
__start_kubepy() { _kubepy "$@"; }  # for aliases: complete -F __start_kubepy k
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
    # What ends in "=" or "/" goes on.
    compadd -Q -S '' -- ${(M)candidates:#*[=/,:]}
    compadd -Q -- ${candidates:#*[=/,:]}
}
if [ "$funcstack[1]" = "_kubepy" ]; then
    _kubepy  # zsh has just loaded this file, to complete a word
else
    compdef _kubepy kubepy
fi
"""
FISH = """# fish completion for kubepy
function __kubepy_complete
    kubepy __complete (commandline -cp) 2>/dev/null
end
complete -c kubepy -e
complete -c kubepy -f -n 'test (count (__kubepy_complete)) -gt 0' -a '(__kubepy_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@command(
    "completion SHELL",
    Options,
    examples="""
# bash: the package that gives it
# the functions for completion
sudo apt install bash-completion

# In this shell
source <(kubepy completion bash)

# In every shell of this user, where the package
# bash-completion is installed
mkdir -p ~/.local/share/bash-completion/completions
kubepy completion bash > ~/.local/share/bash-completion/completions/kubepy

# In every shell of this user, where it is not
echo "source <(kubepy completion bash)" >> ~/.bashrc

# For all users of a machine
kubepy completion bash | sudo tee /etc/bash_completion.d/kubepy > /dev/null

# For an alias: bash
alias k=kubepy
complete -o default -F __start_kubepy k

# zsh: in this shell
# (compinit must have run before)
source <(kubepy completion zsh)

# In every shell, by a file
# of the first folder in which zsh looks for functions
kubepy completion zsh > "${fpath[1]}/_kubepy"

# In every shell, by a line of .zshrc
echo "source <(kubepy completion zsh)" >> ~/.zshrc

# fish: in this shell
kubepy completion fish | source

# In every shell,
# by a file of this user
kubepy completion fish > ~/.config/fish/completions/kubepy.fish

# As a plugin of kubectl: nothing is to be done,
# kubectl asks the program kubectl_complete-kubepy

# For an alias: zsh
alias k=kubepy
compdef _kubepy k

# For an alias: fish
alias k=kubepy
complete -c k -w kubepy
""",
)
def completion(factory: Factory, options: Options) -> None:
    """Output shell completion code for the specified shell (bash, zsh, fish)."""
    if not options.args:
        options.usage_error("Shell not specified.")
    if len(options.args) > 1:
        options.usage_error("Too many arguments. Expected only the shell type.")
    shell = options.args[0]
    if shell not in SCRIPTS:
        options.usage_error(f"Unsupported shell type {quote(shell)}.")
    factory.print(
        SCRIPTS[shell].replace(KUBEPY, KUBECTL if factory.program == KUBECTL else KUBEPY), end=""
    )


# --- candidates -----------------------------------------------------------------------------------


# What the shell is to do with the candidates: a sum of cobra's directives. Without any it offers
# names of files, too.
DIRECTIVES = {
    1: "Error",
    2: "NoSpace",
    4: "NoFileComp",
    8: "FilterFileExt",
    16: "FilterDirs",
    32: "KeepOrder",
}
DEFAULT = 0
NO_SPACE = 2
NO_FILES = 4
FILE_EXTENSIONS = 8
FOLDERS = 16


class Completion(NamedTuple):
    """The candidates for the last word, each maybe with a description behind a tab, and the
    directive."""

    candidates: Sequence[str] = ()
    directive: int = DEFAULT


class _Complete(Command):
    """``__complete WORD...`` and ``__complete LINE``: print the candidates for the last word."""

    has_descriptions = True

    def read(self, words: Sequence[str]) -> Parsed:
        return Parsed(list(words), -1, {}, [])

    def execute(
        self, factory: Factory, path: str, parsed: Parsed, typed: Sequence[str] = ()
    ) -> None:
        words = parsed.args
        is_line = len(words) == 1 and any(character.isspace() for character in words[0])
        if not words:
            raise UnprefixedError("Error: requires at least 1 arg(s), only received 0")
        try:
            completion = complete_words(
                factory, split(words[0]) if is_line else words, as_cobra=not is_line
            )
        except Exception as error:
            if not is_expected(error):
                raise
            completion = Completion()

        for candidate in completion.candidates:
            if not candidate.replace("\t", "").isprintable():
                continue  # nobody can type it, and a shell would show it as it is
            factory.print(
                candidate if self.has_descriptions and not is_line else candidate.partition("\t")[0]
            )

        if not is_line:
            factory.print(f":{completion.directive}")
            names = [name for bit, name in DIRECTIVES.items() if completion.directive & bit] or [
                "Default"
            ]
            names = [f"ShellCompDirective{name}" for name in names]
            factory.say(f"Completion ended with directive: {', '.join(names)}")


class _CompleteWithoutDescriptions(_Complete):
    """``__completeNoDesc``."""

    has_descriptions = False


complete = _Complete("__complete WORD...")
complete_without_descriptions = _CompleteWithoutDescriptions("__completeNoDesc WORD...")


def split(line: str) -> list[str]:
    """Return the words of an unfinished line without the program's name; the last is being typed,
    and may be ""."""
    import shlex

    try:
        words = shlex.split(line)
    except ValueError:
        return []
    if line.endswith((" ", "\t")):
        return [*words[1:], ""]
    return words[1:]


def complete_words(factory: Factory, words: list[str], *, as_cobra: bool) -> Completion:
    """Return what the last word could become, sorted.

    :param as_cobra: give flags and formats without the ``=`` that follows them, and no flag before
        its value.
    """
    if not words:
        return Completion()
    *before, word = words
    root = root_command(factory)
    line = line_of(root, before)
    if not line.path and line.rest and not line.rest[0].startswith("-"):
        return Completion(*plugins.completions(line.rest, word, factory.program))
    if line.path == ("fork",) and len(line.rest) < 2 and not word.startswith("-"):
        return Completion((), FOLDERS)
    if line.path == ("import",) and flag_with_value(line, word)[0] is None and word[:1] != "-":
        return Completion()
    if line.path == ("plan",) and (planned := plan.words_before(line, word)) is not None:
        completion = complete_words(factory, [*planned, word], as_cobra=as_cobra)
        return completion._replace(
            candidates=[
                candidate
                for candidate in completion.candidates
                if (line_of(root, planned).path or candidate.partition("\t")[0] not in plan.REFUSED)
            ]
        )

    found = next_words(factory, line, word)
    if found is None:
        return Completion()
    candidates = sorted({candidate for candidate in found if candidate.startswith(word)})
    if not as_cobra:
        return Completion(candidates)
    if word.startswith("-") and "=" not in word:
        return Completion(flag_completions(line, word), NO_FILES)
    flag, value = flag_with_value(line, word)
    if flag is not None:
        candidates = [
            candidate[len(word) - len(value) :].removesuffix("=") for candidate in candidates
        ]
        if not candidates:
            return file_completion(flag)

    goes_on = bool(candidates) and all(
        candidate.endswith(("=", "/", ":")) for candidate in candidates
    )
    if not line.path and flag is None:
        names = plugins.names_on_path(line.command.name)
        candidates = [
            f"{name}\t{plugins.ABOUT.format(name)}"
            if name in names and name not in line.command.listed
            else described(line, name)
            for name in candidates
        ]
    elif flag is None:
        candidates = [described(line, candidate) for candidate in candidates]

    return Completion(candidates, NO_FILES | (NO_SPACE if goes_on else 0))


def flags_of(line: Line) -> dict[str, Flag]:
    """Return the flags of a command and the global ones, by their long names."""
    return {flag.long: flag for flag in [*GLOBAL_FLAGS, *line.command.flags]}


def flag_with_value(line: Line, word: str) -> tuple[Flag | None, str]:
    """Return the flag whose value is being typed, and the value so far: ``-o js``,
    ``--output=js``."""
    flags = flags_of(line)
    name, equals, value = word.partition("=")
    if equals and word.startswith("--"):
        return flags.get(name[2:]), value
    return _unfinished_flag(flags, line.rest), word


def flag_completions(line: Line, word: str) -> list[str]:
    """Return the flags that begin with a word, by their long and short names, with their help."""
    listed = sorted(
        (flag for flag in flags_of(line).values() if not flag.deprecated),
        key=lambda flag: flag.long,
    )
    return [
        f"{name}\t{flag.help}".rstrip("\t")
        for flag in listed
        for name in (f"--{flag.long}", f"-{flag.short}" if flag.short else "")
        if name.startswith(word)
    ]


def file_completion(flag: Flag) -> Completion:
    """Return the completion of a flag whose values are not known: files, for flags that take
    them."""
    if flag.long == "filename":
        return Completion(("json", "yaml", "yml"), FILE_EXTENSIONS)
    return Completion(
        (), FOLDERS if flag.long in ("into", "kustomize", "output-directory", "state") else DEFAULT
    )


def described(line: Line, candidate: str) -> str:
    """Return a candidate with its description, if it is a command."""
    entry = line.command.listed.get(candidate)
    if entry:
        return f"{candidate}\t{renamed(entry.summary, line.command.name)}"
    return candidate


def next_words(factory: Factory, line: Line, word: str) -> Iterable[str] | None:
    """Return values of the flag that is being typed, or flags, or sub-commands and words of the
    command.

    None for words that the command cannot have.
    """
    flags = flags_of(line)
    flag = _unfinished_flag(flags, line.rest)
    try:
        parsed = line.command.parser().parse(line.rest if flag is None else line.rest[:-1])
    except (FlagSyntaxError, HelpRequested):
        return None

    path = " ".join((factory.program, *line.path))
    options = line.command.options_of(
        CommandLine(path, parsed.args, parsed.dash, parsed.flags_set), parsed.values
    )
    factory.use(line.command.global_options_of(parsed.values), may_create=False)
    if flag is not None:
        return _after_commas(flag_values(factory, line.path, flag, options), word)
    if word.startswith("--") and "=" in word:
        name, _, value = word.partition("=")
        flag = flags.get(name[2:])
        values = (
            _after_commas(flag_values(factory, line.path, flag, options), value) if flag else []
        )
        return [f"{name}={candidate}" for candidate in values]

    if word.startswith("-"):
        return [
            f"--{flag.long}" + ("" if flag.no_value is not None else "=")
            for flag in flags.values()
            if not flag.hidden and not flag.deprecated
        ]

    if options.line.dash != -1:
        return []
    if options.args:
        commands = []
    else:
        commands = [
            name
            for name, entry in line.command.listed.items()
            if not entry.summary.startswith("Not supported")
        ]

    if not line.path and not options.args:
        commands += plugins.names_on_path(factory.program)
    return [*commands, *positional(factory, line.path, options, word)]


def _unfinished_flag(flags: Mapping[str, Flag], words: list[str]) -> Flag | None:
    """Return the flag that the last word is when its value comes next."""
    last = words[-1] if words else ""
    if "--" in words or not last.startswith("-"):
        return None
    if last.startswith("--"):
        flag = flags.get(last[2:])
    else:
        flag = next(
            (flag for flag in flags.values() if flag.short and flag.short == last[-1:]), None
        )
    if flag is not None and flag.no_value is None:
        return flag
    return None


def _after_commas(values: Iterable[str], word: str) -> list[str]:
    """Return values for the last part of a list, each after the parts before it (``a,b,``)."""
    before, comma, _ = word.rpartition(",")
    return [before + comma + value for value in values]


# --- words ----------------------------------------------------------------------------------------

Path = tuple[str, ...]
# Returns the candidates for a word after others; the word itself may be begun: ``ds/ag``.
Words = Callable[[Factory, Options, str], Iterable[str]]

WORKLOADS = ("daemonsets", "deployments", "statefulsets")
SCALABLE = ("deployments", "replicasets", "replicationcontrollers", "statefulsets")
TEMPLATED = (*WORKLOADS, "cronjobs", "jobs", "pods", "replicasets", "replicationcontrollers")
BINDINGS = ("clusterrolebindings", "rolebindings")


def positional(factory: Factory, path: Path, options: Options, word: str) -> Iterable[str]:
    """Return candidates for the next word of a command."""
    default = typed(None) if path and path[0] in TAKES_OBJECTS else nothing
    return WORDS.get(path, default)(factory, options, word)


def nothing(factory: Factory, options: Options, word: str) -> Iterable[str]:
    return ()


def typed(kinds: Sequence[str] | None, then: Words = nothing) -> Words:
    """Complete types, and the names of a type's objects: ``TYPE NAME`` or ``TYPE/NAME``.

    :param kinds: complete these types only (None: all).
    :param then: completes the words after an object.
    """

    def complete(factory: Factory, options: Options, word: str) -> Iterable[str]:
        args = options.args
        following = list(then(factory, options, word)) if named(options) else []
        if args and "/" not in args[0]:
            object_names = (name for kind in args[0].split(",") for name in names(factory, kind))
            return [*following, *(name for name in object_names if name not in args[1:])]
        kind, slash, _ = word.partition("/")
        if slash:
            paths = (f"{kind}/{name}" for name in names(factory, kind))
            return [path for path in paths if path not in args]
        if args:
            return [*following, *(f"{plural}/" for plural in kinds or ())]
        return _after_commas(kinds or [*_types(factory), "all"], word)

    return complete


def names_of(kind: str) -> Words:
    """Complete the names of a type's objects, each once."""
    return lambda factory, options, word: [
        name for name in names(factory, kind) if name not in options.args
    ]


def once(values: Callable[[Factory], Iterable[str]]) -> Words:
    """Complete the first word."""
    return lambda factory, options, word: () if options.args else values(factory)


def suffixed(values: Callable[[Factory, Options], list[str]], *suffixes: str) -> Words:
    """Complete values that go on with one of the suffixes: ``NAME=``."""
    return lambda factory, options, word: [
        f"{value}{suffix}" for value in values(factory, options) for suffix in suffixes
    ]


def _types(factory: Factory) -> list[str]:
    """Return the types; as kubectl with their groups, as ``api-resources -o name`` prints them."""
    return list(
        dict.fromkeys(
            resource.key if factory.program == KUBECTL else resource.plural
            for resource in factory.scheme
        )
    )


def _verbs() -> list[str]:
    return [verb for verb in auth.VERBS if verb.isalpha()]


def _commands(factory: Factory, options: Options, word: str) -> Iterable[str]:
    return line_of(root_command(factory), options.args).command.listed


def _properties(factory: Factory) -> Iterable[str]:
    kubeconfig = factory.kubeconfig
    sections = {
        "clusters": kubeconfig.clusters,
        "contexts": kubeconfig.contexts,
        "users": kubeconfig.users,
    }
    return [
        config.CURRENT,
        *(
            f"{section}.{name}.{field}"
            for section, entries in sections.items()
            for name in entries
            for field in config.FIELDS[section]
        ),
    ]


TAKES_OBJECTS = ("get", "describe", "delete", "edit", "patch", "wait", "apply", "why", "timeline")
WORDS: Mapping[Path, Words] = {
    **{
        ("rollout", name): typed(WORKLOADS)
        for name in ("history", "diff", "pause", "resume", "undo", "status", "restart")
    },
    ("apply",): nothing,
    ("apply", "set-last-applied"): nothing,
    ("scale",): typed(SCALABLE),
    ("autoscale",): typed(SCALABLE),
    ("expose",): typed(
        ("deployments", "pods", "replicasets", "replicationcontrollers", "services")
    ),
    ("set", "image"): typed(
        TEMPLATED, suffixed(lambda factory, options: containers(factory, options), "=")
    ),
    ("set", "env"): typed(
        TEMPLATED, suffixed(lambda factory, options: variables(factory, options), "=", "-")
    ),
    ("set", "resources"): typed(TEMPLATED),
    ("set", "serviceaccount"): typed(
        TEMPLATED, lambda factory, options, word: names(factory, "serviceaccounts")
    ),
    ("set", "selector"): typed(("services",)),
    ("set", "subject"): typed(BINDINGS),
    ("label",): typed(
        None, suffixed(lambda factory, options: metadata_keys(factory, options, "labels"), "-")
    ),
    ("annotate",): typed(
        None, suffixed(lambda factory, options: metadata_keys(factory, options, "annotations"), "-")
    ),
    ("taint",): typed(("nodes",)),
    ("cordon",): names_of("nodes"),
    ("uncordon",): names_of("nodes"),
    ("drain",): names_of("nodes"),
    ("top", "node"): once(lambda factory: names(factory, "nodes")),
    ("top", "pod"): once(lambda factory: names(factory, "pods")),
    ("explain",): once(_types),
    ("events",): nothing,
    ("auth", "can-i"): lambda factory, options, word: _types(factory) if options.args else _verbs(),
    ("certificate", "approve"): names_of("certificatesigningrequests"),
    ("certificate", "deny"): names_of("certificatesigningrequests"),
    ("completion",): once(lambda factory: SCRIPTS),
    ("help",): _commands,
    ("config", "use-context"): once(lambda factory: factory.kubeconfig.contexts),
    ("config", "set-context"): once(lambda factory: factory.kubeconfig.contexts),
    ("config", "rename-context"): once(lambda factory: factory.kubeconfig.contexts),
    ("config", "delete-context"): once(lambda factory: factory.kubeconfig.contexts),
    ("config", "get-contexts"): lambda factory, options, word: [
        name for name in factory.kubeconfig.contexts if name not in options.args
    ],
    ("config", "set-cluster"): once(lambda factory: factory.kubeconfig.clusters),
    ("config", "delete-cluster"): once(lambda factory: factory.kubeconfig.clusters),
    ("config", "set-credentials"): once(lambda factory: factory.kubeconfig.users),
    ("config", "delete-user"): once(lambda factory: factory.kubeconfig.users),
    ("config", "set"): once(_properties),
    ("config", "unset"): once(_properties),
}

# --- values of flags ------------------------------------------------------------------------------

# Values of a flag in any command, and in single ones where the flag means something else.
VALUES: Mapping[str, Sequence[str]] = {
    "dry-run": ("none", "client", "server"),
    "cascade": ("background", "foreground", "orphan"),
    "validate": ("strict", "warn", "ignore"),
    "reconcile": ("auto", "never"),
    "subresource": ("status", "scale"),
    "override-type": ("json", "merge", "strategic"),
    "protocol": ("TCP", "UDP", "SCTP"),
    "session-affinity": ("None", "ClientIP"),
    "image-pull-policy": ("Always", "IfNotPresent", "Never"),
    "preemption-policy": ("Never", "PreemptLowerPriority"),
    "profile": ("none",),
    "load-restrictor": ("LoadRestrictionsNone", "LoadRestrictionsRootOnly"),
    "sort-by": (".metadata.creationTimestamp", ".metadata.name"),
}
OWN_VALUES: Mapping[tuple[Path, str], Sequence[str]] = {
    (("patch",), "type"): ("json", "merge", "strategic"),
    (("expose",), "type"): ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
    (("events",), "types"): ("Normal", "Warning"),
    (("run",), "restart"): ("Always", "Never", "OnFailure"),
    (("create", "cronjob"), "restart"): ("Never", "OnFailure"),
    (("wait",), "for"): ("condition=", "create", "delete", "jsonpath="),
}
LOOKED_UP: Mapping[str, Callable[[Factory, Options], Iterable[str]]] = {
    "namespace": lambda factory, options: names(factory, "namespaces"),
    "namespaces": lambda factory, options: names(factory, "namespaces"),
    "context": lambda factory, options: factory.kubeconfig.contexts,
    "cluster": lambda factory, options: factory.kubeconfig.clusters,
    "user": lambda factory, options: factory.kubeconfig.users,
    "containers": lambda factory, options: containers(factory, options),
    "from-revision": lambda factory, options: revisions(factory, options),
    "to-revision": lambda factory, options: revisions(factory, options),
    "revision": lambda factory, options: revisions(factory, options),
    "resource": lambda factory, options: _types(factory),
    "clusterrole": lambda factory, options: names(factory, "clusterroles"),
    "role": lambda factory, options: names(factory, "roles"),
    "serviceaccount": lambda factory, options: accounts(factory),
    "class": lambda factory, options: names(factory, "ingressclasses"),
    "verb": lambda factory, options: _verbs(),
}


def flag_values(factory: Factory, path: Path, flag: Flag, options: Options) -> Iterable[str]:
    """Return candidates for the value of a command's flag."""
    if flag.long == "output":
        listed = re.search(r"One of: \(([^)]*)\)", flag.help)
        formats = listed[1].split(", ") if listed else re.findall(r"'(\w+)'", flag.help)
        with_argument = re.compile("jsonpath|go-template|template|custom-columns")
        return [f"{name}=" if with_argument.match(name) else name for name in formats]

    if flag.long == "from":
        kinds = ("configmap", "secret") if path == ("set", "env") else ("cronjob",)
        return [f"{kind}/{name}" for kind in kinds for name in names(factory, kind)]
    if flag.no_value == "true":
        return ("true", "false")
    if values := OWN_VALUES.get((path, flag.long)) or VALUES.get(flag.long):
        return values
    if flag.long in LOOKED_UP:
        return LOOKED_UP[flag.long](factory, options)
    return ()


# --- the state folder -----------------------------------------------------------------------------


def names(factory: Factory, kind: str) -> list[str]:
    """Return the names of a type's objects in the current namespace."""
    resource = factory.scheme.find(kind)
    if resource is None or not factory.has_cluster:
        return []
    namespace = factory.namespace if resource.namespaced else None
    return [
        obj["metadata"]["name"]
        for obj in factory.client.list(resource.key, namespace=namespace).items
    ]


def accounts(factory: Factory) -> list[str]:
    """Return the service accounts of all namespaces, as ``<namespace>:<name>``."""
    if not factory.has_cluster:
        return []
    service_accounts = factory.client.list("serviceaccounts").items
    return [
        f"{account['metadata']['namespace']}:{account['metadata']['name']}"
        for account in service_accounts
    ]


def named(options: Options) -> tuple[str, str] | None:
    """Return the type and the name of the object that the words begin with."""
    args = options.args
    if args and "/" in args[0]:
        kind, _, name = args[0].partition("/")
        return kind, name
    if len(args) > 1:
        return (args[0], args[1])
    return None


def _named_object(factory: Factory, options: Options) -> tuple[Resource, Object] | None:
    kind_and_name = named(options)
    resource = factory.scheme.find(kind_and_name[0]) if kind_and_name else None
    if kind_and_name is None or resource is None or not factory.has_cluster:
        return None
    obj = unless_missing(
        factory.client.get, resource.key, kind_and_name[1], namespace=factory.namespace
    )
    if obj is None:
        return None
    return (resource, obj)


def _containers(factory: Factory, options: Options) -> list[Object]:
    resource_and_object = _named_object(factory, options)
    if resource_and_object is None:
        return []
    try:
        return list(set_change.all_containers(set_change.pod_spec_of(resource_and_object[1])))
    except CliError:
        return []  # a kind without containers


def containers(factory: Factory, options: Options) -> list[str]:
    """Return the names of the containers of the object that the words begin with."""
    return [container["name"] for container in _containers(factory, options)]


def variables(factory: Factory, options: Options) -> list[str]:
    """Return the names of the variables that its containers have."""
    return list(
        dict.fromkeys(
            variable["name"]
            for container in _containers(factory, options)
            for variable in nested_list(container, "env")
        )
    )


def metadata_keys(factory: Factory, options: Options, field: str) -> list[str]:
    """Return the keys of its labels or annotations."""
    resource_and_object = _named_object(factory, options)
    if resource_and_object:
        return sorted(resource_and_object[1]["metadata"].get(field) or {})
    return []


def revisions(factory: Factory, options: Options) -> list[str]:
    """Return the numbers of its revisions."""
    resource_and_object = _named_object(factory, options)
    if (
        resource_and_object is None
        or resource_and_object[0].key not in rollout_revisions.REVISION_RESOURCES
    ):
        return []
    return [
        str(revision.number)
        for revision in rollout_revisions.revisions_of(factory.client, *resource_and_object)
    ]
