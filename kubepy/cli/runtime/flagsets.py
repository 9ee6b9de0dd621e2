"""Flags that several verbs share, and what their values mean. Upstream: ``kubectl/pkg/cmd/util/helpers.go``."""

from __future__ import annotations

from typing import Any

from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import int_flag as integer
from kubepy.cli.runtime.flags import string_array_flag as string_array
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flags import string_slice_flag as strings
from kubepy.cli.runtime.options import CLIENT as CLIENT
from kubepy.cli.runtime.options import CLIENT_SIDE_APPLY as CLIENT_SIDE_APPLY
from kubepy.cli.runtime.options import NONE as NONE
from kubepy.cli.runtime.options import SERVER as SERVER
from kubepy.cli.runtime.options import SERVER_SIDE_APPLY as SERVER_SIDE_APPLY
from kubepy.cli.runtime.options import UNNAMED as UNNAMED
from kubepy.cli.runtime.options import pairs_from as pairs_from


def filename_flags(what: str) -> list[Flag]:
    """``-f``, ``-k`` and ``-R``; ``what`` ends the sentence "Filename, directory … …"."""
    return [
        strings("filename", "f", help=f"Filename or directory of files {what}"),
        string("kustomize", "k", help="Process the kustomization directory. This flag can't be used together with "
               "-f or -R."),
        boolean("recursive", "R", help="Process the directory used in -f, --filename recursively."),
    ]


def selector_flag() -> Any:
    return string("selector", "l", help="Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin' "
                  "(e.g. -l key1=value1,key2 in (a,b)). Matching objects must satisfy all of the constraints.")


def field_selector_flag() -> Any:
    return string("field-selector", help="Selector (field query) to filter on, supports '=', '==', and '!=' (e.g. "
                  "--field-selector key1=value1,key2=value2). Each kind supports only some fields.")


def all_namespaces_flag() -> Any:
    return boolean("all-namespaces", "A", help="If present, the objects across all namespaces. The namespace of "
                   "--namespace is ignored.")


def subresource_flag(what: str) -> Any:
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


def dry_run_flag() -> Any:
    return string("dry-run", default="none", no_value="unchanged", help='Must be "none", "server", or "client". If '
                  "client, only print the object that would be sent, without sending it. If server, submit the request "
                  "without persisting the resource.")


def validate_flag() -> Any:
    return string("validate", default="strict", no_value="strict", help="Must be one of: strict (or true), warn, "
                  "ignore (or false). What to do about unknown fields: fail, warn, or drop them silently.")


def field_manager_flag(default: str) -> Any:
    return string("field-manager", default=default, help="Name of the manager used to track field ownership.")


def server_side_flags() -> list[Flag]:
    return [
        boolean("server-side", help="If true, apply runs in the server instead of the client."),
        boolean("force-conflicts", help="If true, server-side apply will force the changes against conflicts."),
    ]


def save_config_flag() -> Any:
    return boolean("save-config", help="If true, the configuration of current object will be saved in its annotation, "
                   "for a later apply.")


def record_flag() -> Any:
    return boolean("record", deprecated="--record will be removed in the future")


def chunk_size_flag() -> Any:
    return integer("chunk-size", default=500, help="Accepted as kubectl does; lists are never split.")


def local_flag(verb: str) -> Any:
    return boolean("local", help=f"If true, {verb} will NOT contact the cluster but run locally.")


def raw_flag(method: str) -> Any:
    return string("raw", help=f"The path of a {method} request, which the file is sent with: print what a server would "
                  "answer.")


def windows_line_endings_flag() -> Any:
    return boolean("windows-line-endings", help="If true, the file that is edited has the line endings of Windows.")


def prune_flags() -> list[Flag]:
    return [
        boolean("prune", help="Automatically delete objects that do not appear in the configs and were created by "
                "apply or create --save-config. Use with -l or --all."),
        string_array("prune-allowlist", help="Overwrite the default allowlist with <group/version/kind> for --prune."),
        boolean("all", help="Select all resources in the namespace of the specified resource types."),
    ]


def dry_run(factory: Factory, options: Any) -> str:
    return factory.dry_run_strategy(options)


def field_validation(options: Any) -> str:
    return str(options.field_validation())


def no_arguments(options: Any) -> None:
    options.require_no_args()


def require_files(options: Any) -> None:
    options.require_files()


def server_side_manager(options: Any) -> str:
    return str(options.apply_manager())
