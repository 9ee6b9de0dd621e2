"""The options of a command: a class whose fields are its flags, each declared once, with its type.

A command's options are a subclass of :class:`Options`, made of the flags of its own and of the sets
of flags that commands share::

    class CordonOptions(DryRunOptions, SelectorOptions):
        force: bool = bool_flag("force", help="Cordon a node that is cordoned already.")

``options.force`` is the value; type checkers know the fields as those of a dataclass. (The standard
library's dataclasses take longer to import than reading a command line does.) Upstream: the
``…Options`` and ``…Flags`` structs of ``k8s.io/cli-runtime/pkg/genericclioptions`` and
``kubectl/pkg/cmd``, ``kubectl/pkg/cmd/util/helpers.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn, dataclass_transform

from kubepy.api.meta import nested_map
from kubepy.cli.errors import CliError, UsageError
from kubepy.cli.runtime.flags import (
    Flag,
    bool_flag,
    int_flag,
    parse_bool,
    parse_flush_frequency,
    parse_modules,
    parse_timeout,
    string_array_flag,
    string_flag,
    string_slice_flag,
    typed_flag,
)
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote

with lazy_imports():
    from kubepy.apiserver import authorization  # for --as

NOTHING = "Accepted as kubectl does; it means nothing here."  # help of flags that are only accepted

# The field managers that kubectl names itself as, by command.
CLIENT_SIDE_APPLY = "kubectl-client-side-apply"
SERVER_SIDE_APPLY = "kubectl"
UNNAMED = "kubectl"  # of commands that name no manager: the program's name

NONE, CLIENT, SERVER = "none", "client", "server"  # dry run strategies
DEFAULT_NAMESPACE = "default"


class CommandLine(NamedTuple):
    """The words of a command line.

    :param path: the command by its names: ``kubepy rollout undo``.
    :param args: the words that are neither flags nor values of flags.
    :param dash: the number of ``args`` before ``--`` (-1 without one).
    :param flags_set: the flags on the line by their names, each with its text, in the order of the
        words.
    :param typed: the command as the line names it, maybe by aliases, without the program's name.
    """

    path: str
    args: list[str]
    dash: int = -1
    flags_set: Sequence[tuple[str, str]] = ()
    typed: Sequence[str] = ()


NO_LINE = CommandLine("", [])


@dataclass_transform(kw_only_default=True)
class Options:
    """The words and flags of one command line; the fields of a subclass are its flags.

    :param line: the words.
    :param values: the values of flags by field; the others have their defaults.
    """

    flags: ClassVar[tuple[Flag, ...]] = ()

    def __init_subclass__(cls) -> None:
        fields: dict[str, Flag] = {}
        for base in reversed(cls.__mro__):
            fields |= {name: value for name, value in vars(base).items() if isinstance(value, Flag)}
        cls.flags = tuple(fields.values())

    def __init__(self, line: CommandLine = NO_LINE, /, **values: Any) -> None:
        self.line = line
        self.args = line.args
        self.__dict__.update({flag.name: flag.default for flag in self.flags} | values)

    def changed(self, flag: str) -> bool:
        """Return whether the flag (``dry-run``) is on the line, whatever its value."""
        return any(name == flag for name, _ in self.line.flags_set)

    def require(self, *flags: str) -> None:
        """Raise CliError unless these flags are on the line (cobra's MarkFlagRequired)."""
        missing = [f'"{flag}"' for flag in flags if not self.changed(flag)]
        if missing:
            raise CliError(f"required flag(s) {', '.join(missing)} not set")

    @classmethod
    def explain(cls, message: str) -> str:
        """Return the message for words that cannot be read as flags, for a command that knows what
        was meant."""
        return message

    def require_no_args(self) -> None:
        """Raise UsageError for words where only flags are taken."""
        if self.args:
            self.usage_error(printable(f"Unexpected args: [{' '.join(self.args)}]"))

    def usage_error(self, message: str) -> NoReturn:
        """Raise ``error: message`` with a pointer to this command's help (``UsageErrorf``)."""
        raise UsageError(self.line.path, message)

    def value_of(self, flag: str) -> Any:
        """Return the value of a flag by its long name, for code that goes through flags by their
        names."""
        return next(getattr(self, field.name) for field in self.flags if field.long == flag)


# --- the flags of every command -------------------------------------------------------------------

PROFILES = ("none", "cpu", "heap", "goroutine", "threadcreate", "block", "mutex", "trace")


class GlobalOptions(Options):
    """kubectl's flags for every command, and kubepy's own ``--state``, ``--reconcile`` and
    ``--faults``.

    Flags that name a server or credentials are accepted, so that a script written for kubectl runs,
    and ``kubepy options`` only names them (hidden); a wrong value of one is reported as kubectl
    reports it.
    """

    state: str = string_flag(
        "state", help="The state folder, whose contexts count. Default: $KUBEPY_STATE, or ./state."
    )
    reconcile: str = string_flag(
        "reconcile",
        help='"auto" or "never": whether commands that read or wait run the '
        'controllers. Default: $KUBEPY_RECONCILE, kubepy.yaml, or "auto".',
    )
    faults: str = string_flag(
        "faults",
        help="A file of faults that happen to the cluster while this command runs its "
        "controllers, in place of those in kubepy.yaml.",
    )
    must_exist: bool = bool_flag(
        "must-exist",
        help="If true, never make a cluster where there is none. Default: $KUBEPY_MUST_EXIST.",
    )
    trust: bool = bool_flag(
        "trust",
        help="If true, this command trusts the state folder as if it had been made here: "
        "its .kubepy counts, and its webhooks are called. Default: $KUBEPY_TRUST.",
    )
    ascii: bool = bool_flag(
        "ascii",
        help="If true, bars and other pictures of text are drawn with ASCII characters. A "
        "terminal that has no others gets them anyway; a pipe or a file gets UTF-8.",
    )
    namespace: str = string_flag(
        "namespace", "n", help="If present, the namespace scope for this request."
    )
    context: str = string_flag(
        "context", help="The context to use: a state folder and a namespace (see kubepy config)."
    )
    cluster: str = string_flag(
        "cluster", help="The cluster to use in place of the context's: its name, or a state folder."
    )
    kubeconfig: str = string_flag(
        "kubeconfig",
        help="The file of contexts to use in place of the state folder's own. "
        "$KUBECONFIG is not read: it may name a real cluster.",
    )
    warnings_as_errors: bool = bool_flag(
        "warnings-as-errors",
        help="Treat warnings received from the cluster as "
        "errors and exit with a non-zero exit code.",
    )
    as_: str = string_flag(
        "as",
        help="The user whom to make requests as. Webhooks, policies and `auth whoami` see "
        "the user; nothing is refused.",
    )
    as_group: list[str] = string_array_flag(
        "as-group", help="A group of that user; may be repeated."
    )
    as_uid: str = string_flag("as-uid", help="The UID of that user.")
    as_user_extra: list[str] = string_array_flag(
        "as-user-extra", help="More about that user, as in key=value; may be repeated."
    )
    cache_dir: str = string_flag(
        "cache-dir", help="Folder of kubectl's cache; nothing is cached here.", hidden=True
    )
    certificate_authority: str = string_flag(
        "certificate-authority",
        help="File with the certificate of the server's authority; there is no server here.",
        hidden=True,
    )
    client_certificate: str = string_flag(
        "client-certificate",
        help="File with the client's certificate; nobody logs in here.",
        hidden=True,
    )
    client_key: str = string_flag(
        "client-key", help="File with the client's key; nobody logs in here.", hidden=True
    )
    disable_compression: bool = bool_flag(
        "disable-compression",
        help="Ask for answers without compression; none are compressed here.",
        hidden=True,
    )
    insecure_skip_tls_verify: bool = bool_flag(
        "insecure-skip-tls-verify",
        help="Do not check the server's certificate; there is no server here.",
        hidden=True,
    )
    kuberc: str = string_flag(
        "kuberc",
        help="The file of preferences (see kubepy kuberc). KUBERC=off or "
        "KUBECTL_KUBERC=false: none is used.",
    )
    log_flush_frequency: float = typed_flag(
        "log-flush-frequency",
        5.0,
        parse_flush_frequency,
        help="How often the log is written out; it always is at once.",
        hidden=True,
    )
    match_server_version: bool = bool_flag(
        "match-server-version",
        help="Require the server's version to be the client's; it always is here.",
        hidden=True,
    )
    password: str = string_flag(
        "password", help="Password to log in with; nobody logs in here.", hidden=True
    )
    profile: str = string_flag(
        "profile", default="none", help="Profile to make; none is.", hidden=True
    )
    profile_output: str = string_flag(
        "profile-output",
        default="profile.pprof",
        help="File of the profile; none is made.",
        hidden=True,
    )
    request_timeout: str = string_flag(
        "request-timeout",
        default="0",
        help="The length of time after which a watch ends. Zero means never.",
    )
    server: str = string_flag(
        "server", "s", help="Address of the server; there is none here.", hidden=True
    )
    tls_server_name: str = string_flag(
        "tls-server-name",
        help="Name in the server's certificate; there is no server here.",
        hidden=True,
    )
    token: str = string_flag(
        "token", help="Token to log in with; nobody logs in here.", hidden=True
    )
    user: str = string_flag("user", help="The user of the context to use.", hidden=True)
    username: str = string_flag(
        "username", help="User to log in as; nobody logs in here.", hidden=True
    )
    v: int = int_flag(
        "v",
        "v",
        bits=32,
        help="How much to log to stderr: from 4 on the handlers and syncs of the "
        "controllers, from 6 on the requests, from 8 on their bodies.",
    )
    vmodule: str = typed_flag(
        "vmodule",
        "",
        parse_modules,
        help="Levels of single modules, as in deployment=4,job=5.",
        hidden=True,
    )

    def validate(self) -> None:
        """Raise CliError for what kubectl refuses of the flags that mean nothing here."""
        if self.profile not in PROFILES:
            raise CliError(printable(f"unknown profile '{self.profile}'"))

    def module_levels(self) -> dict[str, int]:
        """Return the verbosity of single modules (``--vmodule``)."""
        parts = [part.partition("=") for part in self.vmodule.split(",") if part]
        return {pattern: int(level) for pattern, _, level in parts}

    def timeout_seconds(self) -> float:
        """Return --request-timeout in seconds, 0 for none. Raises CliError."""
        try:
            return parse_timeout(self.request_timeout)
        except ValueError as error:
            raise CliError(str(error)) from None

    def impersonated_user(self, name: str, user: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the UserInfo that --as and the flags beside it describe, or else a user of the
        kubeconfig; or None.

        :raises CliError: for a uid, groups or extra values without --as.
        """
        username = self.as_ or user.get("as")
        uid = self.as_uid or user.get("as-uid")
        groups = self.as_group or user.get("as-groups")
        extra = dict(nested_map(user, "as-user-extra"))
        if self.as_user_extra:
            extra = {}
        for entry in self.as_user_extra:
            key, _, value = entry.partition("=")
            extra.setdefault(key, []).append(value)
        if username:
            return authorization.with_implied_groups(
                authorization.new_user(username, groups or (), uid or "", extra)
            )

        if uid or groups or extra:
            raise CliError(
                f"requesting uid, groups or user-extra for {printable(name)} without "
                f"impersonating a user"
            )

        return None


GLOBAL_FLAGS = GlobalOptions.flags
OWN_FLAGS = (
    "state",
    "reconcile",
    "faults",
    "must-exist",
    "trust",
    "ascii",
)  # kubectl has the others


# --- flags that several commands share ------------------------------------------------------------


def filename_flag(usage: str, **more: Any) -> Any:
    """Declare ``-f``; ``usage`` ends the sentence "Filename or directory of files …"."""
    return string_slice_flag(
        "filename", "f", help=f"Filename or directory of files {usage}", **more
    )


def field_manager_flag(default: str) -> Any:
    return string_flag(
        "field-manager", default=default, help="Name of the manager used to track field ownership."
    )


def subresource_flag(command: str) -> Any:
    return string_flag(
        "subresource",
        help=f"If specified, {command} will operate on the subresource of the requested object.",
    )


def local_flag(command: str) -> Any:
    return bool_flag(
        "local", help=f"If true, {command} will NOT contact the cluster but run locally."
    )


def raw_flag(method: str) -> Any:
    return string_flag(
        "raw",
        help=f"The path of a {method} request, which the file is sent with: print what a server "
        "would answer.",
    )


def output_flag(
    formats: str = "json, yaml, kyaml, name, go-template, go-template-file, template, "
    "templatefile, "
    "jsonpath, jsonpath-as-json, jsonpath-file",
    default: str = "",
) -> Any:
    """Declare ``-o``; ``formats`` is for the help only."""
    return string_flag("output", "o", default, help=f"Output format. One of: ({formats}).")


class FilenameOptions(Options):
    """``-f``."""

    filename: list[str] = filename_flag("identifying the resource.")


class RecursiveOptions(FilenameOptions):
    """``-f`` and ``-R``."""

    recursive: bool = bool_flag(
        "recursive", "R", help="Process the directory used in -f, --filename recursively."
    )


class KustomizeOptions(RecursiveOptions):
    """``-f``, ``-R`` and ``-k``."""

    kustomize: str = string_flag(
        "kustomize",
        "k",
        help="Process the kustomization directory. This flag can't be used together with -f or -R.",
    )

    def require_files(self) -> None:
        """Raise CliError without -f and -k (``RequireFilenameOrKustomize``); the Builder refuses
        both together."""
        if not self.filename and not self.kustomize:
            raise CliError("must specify one of -f and -k")


class RawOptions(KustomizeOptions):
    """``--raw`` of commands that write: a request with the bytes of one file."""

    raw: str = raw_flag("POST")


class SelectorOptions(Options):
    """``-l``."""

    selector: str = string_flag(
        "selector",
        "l",
        help="Selector (label query) to filter on, supports '=', '==', '!=', "
        "'in', 'notin' (e.g. -l key1=value1,key2 in (a,b)). Matching objects must satisfy all "
        "of the constraints.",
    )


class FieldSelectorOptions(Options):
    """``--field-selector``."""

    field_selector: str = string_flag(
        "field-selector",
        help="Selector (field query) to filter on, supports '=', "
        "'==', and '!=' (e.g. --field-selector key1=value1,key2=value2). Each kind "
        "supports only some fields.",
    )


class AllNamespacesOptions(Options):
    """``-A``."""

    all_namespaces: bool = bool_flag(
        "all-namespaces",
        "A",
        help="If present, the objects across all namespaces. The "
        "namespace of --namespace is ignored.",
    )


class SubresourceOptions(Options):
    """``--subresource``."""

    subresource: str = subresource_flag("the command")


class PrintFlags(Options):
    """``-o`` and the flags that go with it."""

    output: str = output_flag()
    template: str = string_flag(
        "template",
        help="Template string or path to template file to use when "
        "-o=go-template, -o=go-template-file.",
    )
    allow_missing_template_keys: bool = bool_flag(
        "allow-missing-template-keys",
        default=True,
        help="If true, ignore "
        "any errors in templates when a field or map key is missing in the "
        "template.",
    )
    show_managed_fields: bool = bool_flag(
        "show-managed-fields",
        help="If true, keep the managedFields when printing objects in JSON or YAML format.",
    )


class DryRunOptions(Options):
    """``--dry-run``; ``Factory.dry_run_strategy`` reads it."""

    dry_run: str = string_flag(
        "dry-run",
        default="none",
        no_value="unchanged",
        help='Must be "none", "server", or '
        '"client". If client, only print the object that would be sent, without sending it. If '
        "server, submit the request without persisting the resource.",
    )

    def dry_run_value(self) -> tuple[str, str, str]:
        """Return the strategy, and a warning about the value with the place that kubectl logs it at
        ("" for none).

        Raises CliError.
        """
        value = self.dry_run
        if value in (NONE, CLIENT, SERVER):
            return value, "", ""
        if value == "unchanged":
            return (
                CLIENT,
                "--dry-run is deprecated and can be replaced with --dry-run=client.",
                "helpers.go:719",
            )

        try:
            strategy, place = (
                (CLIENT, "helpers.go:733") if parse_bool(value) else (NONE, "helpers.go:736")
            )
        except ValueError:
            raise CliError(
                printable(
                    f'Invalid dry-run value ({value}). Must be "none", "server", or "client".'
                )
            ) from None

        return (
            strategy,
            (
                f"--dry-run={value} is deprecated (boolean value) and can be replaced with "
                f"--dry-run={strategy}."
            ),
            place,
        )


class ValidateOptions(Options):
    """``--validate``."""

    validate: str = string_flag(
        "validate",
        default="strict",
        no_value="strict",
        help="Must be one of: strict (or "
        "true), warn, ignore (or false). What to do about unknown fields: fail, warn, or drop "
        "them silently.",
    )

    def field_validation(self) -> str:
        """Return ``Strict``, ``Warn`` or ``Ignore``. Raises CliError."""
        if self.validate in ("strict", "warn", "ignore"):
            return self.validate.capitalize()
        try:
            if parse_bool(self.validate):
                return "Strict"
            return "Ignore"
        except ValueError:
            raise CliError(
                f"invalid - validate option {quote(self.validate)}; must be one of: strict (or "
                f"true), "
                "warn, ignore (or false)"
            ) from None


class FieldManagerOptions(Options):
    """``--field-manager``."""

    field_manager: str = field_manager_flag(UNNAMED)


class ServerSideOptions(FieldManagerOptions):
    """``--server-side`` and its flags, and the field manager of either kind of apply."""

    field_manager: str = field_manager_flag(CLIENT_SIDE_APPLY)
    server_side: bool = bool_flag(
        "server-side", help="If true, apply runs in the server instead of the client."
    )
    force_conflicts: bool = bool_flag(
        "force-conflicts",
        help="If true, server-side apply will force the changes against conflicts.",
    )

    def apply_manager(self) -> str:
        """Return the flag's value if it is on the line, else the manager of the side that the apply
        runs on."""
        if self.server_side and not self.changed("field-manager"):
            return SERVER_SIDE_APPLY
        return self.field_manager


class SaveConfigOptions(Options):
    """``--save-config``."""

    save_config: bool = bool_flag(
        "save-config",
        help="If true, the configuration of current object will be saved in "
        "its annotation, for a later apply.",
    )


class RecordOptions(Options):
    """``--record``."""

    record: bool = bool_flag("record", deprecated="--record will be removed in the future")


class ChunkSizeOptions(Options):
    """``--chunk-size``."""

    chunk_size: int = int_flag(
        "chunk-size", default=500, help="Accepted as kubectl does; lists are never split."
    )


class LocalOptions(Options):
    """``--local``."""

    local: bool = local_flag("the command")


class EditorOptions(Options):
    """``--windows-line-endings``."""

    windows_line_endings: bool = bool_flag(
        "windows-line-endings",
        help="If true, the file that is edited has the line endings of Windows.",
    )


class PruneOptions(Options):
    """``--prune`` and the flags that say which objects it may delete."""

    prune: bool = bool_flag(
        "prune",
        help="Automatically delete objects that do not appear in the configs and were "
        "created by apply or create --save-config. Use with -l or --all.",
    )
    prune_allowlist: list[str] = string_array_flag(
        "prune-allowlist",
        help="Overwrite the default allowlist with <group/version/kind> for --prune.",
    )
    all: bool = bool_flag(
        "all", help="Select all resources in the namespace of the specified resource types."
    )


def is_pair(word: str) -> bool:
    """Return whether a word is ``key=value`` or ``key-``."""
    return ("=" in word and word[0] != "=") or (word.endswith("-") and word != "-")


def split_args(
    args: list[str], change: str, is_change: Callable[[str], bool] = is_pair
) -> tuple[list[str], list[str]]:
    """Split ``TYPE NAME key=value key-`` into resources and changes (``GetResourcesAndPairs``).
    Raises CliError."""
    resources: list[str] = []
    changes: list[str] = []
    for word in args:
        if is_change(word):
            changes.append(word)
        elif changes:
            raise CliError(f"all resources must be specified before {change} changes: {word}")
        else:
            resources.append(word)
    return resources, changes
