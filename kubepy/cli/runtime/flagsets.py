"""Flags that several verbs share, and what their values mean. Upstream: ``kubectl/pkg/cmd/util/helpers.go``."""

from __future__ import annotations

from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import Invocation
from kubepy.cli.runtime.flags import Flag, boolean, integer, parse_bool, string, string_array, strings
from kubepy.cli.runtime.session import Session
from kubepy.quoting import printable, quote

# The managers that kubectl names itself as, by verb.
CLIENT_SIDE_APPLY = "kubectl-client-side-apply"
SERVER_SIDE_APPLY = "kubectl"
UNNAMED = "kubectl"  # of verbs that name no manager, by the program's name


def filename_flags(what: str) -> list[Flag]:
    """``-f``, ``-k`` and ``-R``; ``what`` ends the sentence "Filename, directory … …"."""
    return [
        strings("filename", "f", help=f"Filename or directory of files {what}"),
        string("kustomize", "k", help="Process the kustomization directory. This flag can't be used together with "
               "-f or -R."),
        boolean("recursive", "R", help="Process the directory used in -f, --filename recursively."),
    ]


def selector_flag() -> Flag:
    return string("selector", "l", help="Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin' "
                  "(e.g. -l key1=value1,key2 in (a,b)). Matching objects must satisfy all of the constraints.")


def field_selector_flag() -> Flag:
    return string("field-selector", help="Selector (field query) to filter on, supports '=', '==', and '!=' (e.g. "
                  "--field-selector key1=value1,key2=value2). Each kind supports only some fields.")


def all_namespaces_flag() -> Flag:
    return boolean("all-namespaces", "A", help="If present, the objects across all namespaces. The namespace of "
                   "--namespace is ignored.")


def subresource_flag(what: str) -> Flag:
    return string("subresource", help=f"If specified, {what} will operate on the subresource of the requested object.")


def output_flags(formats: str = "json|yaml|kyaml|name|go-template|go-template-file|template|templatefile|jsonpath|"
                 "jsonpath-as-json|jsonpath-file") -> list[Flag]:
    """``-o`` and the flags that go with it; ``formats`` is for the help only."""
    return [
        string("output", "o", help=f"Output format. One of: ({formats.replace('|', ', ')})."),
        string("template", help="Template string or path to template file to use when -o=go-template, "
               "-o=go-template-file."),
        boolean("allow-missing-template-keys", default=True, help="If true, ignore any errors in templates when a "
                "field or map key is missing in the template."),
        boolean("show-managed-fields", help="If true, keep the managedFields when printing objects in JSON or YAML "
                "format."),
    ]


def dry_run_flag() -> Flag:
    return string("dry-run", default="none", no_value="unchanged", help='Must be "none", "server", or "client". If '
                  "client, only print the object that would be sent, without sending it. If server, submit the request "
                  "without persisting the resource.")


def validate_flag() -> Flag:
    return string("validate", default="strict", no_value="strict", help="Must be one of: strict (or true), warn, "
                  "ignore (or false). What to do about unknown fields: fail, warn, or drop them silently.")


def field_manager_flag(default: str) -> Flag:
    return string("field-manager", default=default, help="Name of the manager used to track field ownership.")


def server_side_flags() -> list[Flag]:
    return [
        boolean("server-side", help="If true, apply runs in the server instead of the client."),
        boolean("force-conflicts", help="If true, server-side apply will force the changes against conflicts."),
    ]


def server_side_manager(given: Invocation) -> str:
    """The manager of an apply: the flag's value if it was given, else one for each side that apply can run on."""
    if given.server_side and not given.changed("field-manager"):
        return SERVER_SIDE_APPLY
    return str(given.field_manager)


def save_config_flag() -> Flag:
    return boolean("save-config", help="If true, the configuration of current object will be saved in its annotation, "
                   "for a later apply.")


def record_flag() -> Flag:
    return boolean("record", deprecated="--record will be removed in the future")


def chunk_size_flag() -> Flag:
    return integer("chunk-size", default=500, help="Accepted as kubectl does; lists are never split.")


def local_flag(verb: str) -> Flag:
    return boolean("local", help=f"If true, {verb} will NOT contact the cluster but run locally.")


def raw_flag(method: str) -> Flag:
    return string("raw", help=f"The path of a {method} request, which the file is sent with: print what a server would "
                  "answer.")


def windows_line_endings_flag() -> Flag:
    return boolean("windows-line-endings", help="If true, the file that is edited has the line endings of Windows.")


def prune_flags() -> list[Flag]:
    return [
        boolean("prune", help="Automatically delete objects that do not appear in the configs and were created by "
                "apply or create --save-config. Use with -l or --all."),
        string_array("prune-allowlist", help="Overwrite the default allowlist with <group/version/kind> for --prune."),
        boolean("all", help="Select all resources in the namespace of the specified resource types."),
    ]


# --- what the values mean -----------------------------------------------------------------------------------------

NONE, CLIENT, SERVER = "none", "client", "server"


def dry_run(session: Session, given: Invocation) -> str:
    """``none``, ``client`` or ``server``; the old boolean values warn."""
    strategy, place, complaint = _dry_run(given.dry_run)
    if strategy != NONE:
        session.rehearse()
    if complaint:
        session.log(place, complaint)
    return strategy


def _dry_run(value: str) -> tuple[str, str, str]:
    """The strategy, and what is to be said of the value, and where kubectl says it."""
    if value in (NONE, CLIENT, SERVER):
        return value, "", ""
    if value == "unchanged":
        return CLIENT, "helpers.go:719", "--dry-run is deprecated and can be replaced with --dry-run=client."
    try:
        meant, place = (CLIENT, "helpers.go:733") if parse_bool(value) else (NONE, "helpers.go:736")
    except ValueError:
        raise CliError(printable(f'Invalid dry-run value ({value}). Must be "none", "server", or "client".')) from None
    return meant, place, f"--dry-run={value} is deprecated (boolean value) and can be replaced with --dry-run={meant}."


def field_validation(given: Invocation) -> str:
    """``Strict``, ``Warn`` or ``Ignore``."""
    value: str = given.validate
    if value in ("strict", "warn", "ignore"):
        return value.capitalize()
    try:
        return "Strict" if parse_bool(value) else "Ignore"
    except ValueError:
        raise CliError(f"invalid - validate option {quote(value)}; must be one of: strict (or true), warn, "
                       "ignore (or false)") from None


def no_arguments(given: Invocation) -> None:
    """Raise for words where only flags are taken."""
    if given.args:
        given.usage_error(printable(f"Unexpected args: [{' '.join(given.args)}]"))


def require_files(given: Invocation) -> None:
    """``RequireFilenameOrKustomize``: -f or -k; that they exclude each other ``resources.find`` says."""
    if not given.filename and not given.kustomize:
        raise CliError("must specify one of -f and -k")


def pairs_from(args: list[str], what: str) -> tuple[list[str], list[str]]:
    """Split ``TYPE NAME key=value key-`` into resources and changes (``GetResourcesAndPairs``)."""
    resources: list[str] = []
    changes: list[str] = []
    for word in args:
        is_change = ("=" in word and word[0] != "=") or (word.endswith("-") and word != "-")
        if is_change:
            changes.append(word)
        elif changes:
            raise CliError(f"all resources must be specified before {what} changes: {word}")
        else:
            resources.append(word)
    return resources, changes
