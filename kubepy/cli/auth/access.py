"""``kubepy auth can-i`` and ``auth whoami``. Upstream: ``kubectl/pkg/cmd/auth/{cani,whoami}.go``."""

from __future__ import annotations

from kubepy.api.scheme import Resource
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flagsets import output_flags
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.tables import format_lines
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.quoting import printable

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind",
         "impersonate", "*", "approve", "sign", "escalate", "attest")
URL_VERBS = ("get", "put", "post", "head", "options", "delete", "patch", "*")
UNDISCOVERED = ("users", "groups")  # what can be named without being a resource
CAN_I_FLAGS = [
    boolean("all-namespaces", "A", help="If true, check the specified action in all namespaces."),
    boolean("quiet", "q", help="If true, suppress output and just return the exit code."),
    string("subresource", help="SubResource such as pod/log or deployment/scale."),
    boolean("list", help="If true, prints all allowed actions."),
    boolean("no-headers", help="If true, prints allowed actions without headers."),
]


@verb("can-i", "can-i VERB [TYPE | TYPE/NAME | NONRESOURCEURL]", flags=CAN_I_FLAGS, examples="""
# Whether deployments may be made
kubepy auth can-i create deployments

# Everything that is allowed
kubepy auth can-i --list
""")
def can_i(factory: Factory, given: Invocation) -> None:
    """Check whether an action is allowed.

    It always is: nothing here asks for permissions, whatever roles and bindings say."""
    if given.list:
        _list_allowed(factory, given)
        return
    if len(given.args) != 2:
        raise CliError("you must specify two arguments: verb resource or verb resource/resourceName.\n"
                       "See 'kubepy auth can-i -h' for help and examples.")
    action, subject = given.args
    if subject.startswith("/"):
        _check_url(factory, given, action)
    else:
        _check_resource(factory, given, action, subject.partition("/")[0])
    if given.no_headers:
        raise CliError("--no-headers cannot be set without --list specified")
    factory.require_cluster()
    if not given.quiet:
        factory.print("yes")


def _list_allowed(factory: Factory, given: Invocation) -> None:
    if given.args:
        raise CliError("list option must be specified with no arguments")
    if given.quiet or given.all_namespaces or given.subresource:
        raise CliError("list option can't be specified with neither quiet, all-namespaces nor subresource options")
    factory.require_cluster()
    headers = [] if given.no_headers else ["Resources\tNon-Resource URLs\tResource Names\tVerbs"]
    factory.print(format_lines([*headers, "*.*\t[]\t[]\t[*]", "\t[*]\t[]\t[*]"]), end="")


def _check_url(factory: Factory, given: Invocation, action: str) -> None:
    if given.subresource:
        raise CliError("--subresource can not be used with NonResourceURL")
    if action not in URL_VERBS:
        factory.warn(f"verb '{printable(action)}' is not a known verb\n")


def _check_resource(factory: Factory, given: Invocation, action: str, word: str) -> None:
    resource = None if word == "*" else _resource(factory, word)
    if resource is None and word == "*":
        return
    if given.all_namespaces:
        return
    if resource is not None and not resource.namespaced:
        where = f" in group '{resource.group}'" if resource.group else ""
        factory.warn(f"resource '{resource.plural}' is not namespace scoped{where}\n")
    if action not in VERBS:
        factory.warn(f"verb '{printable(action)}' is not a known verb\n")


def _resource(factory: Factory, word: str) -> Resource | None:
    """What a word names; a warning tells of one that names nothing."""
    found = factory.scheme.find(word)
    if found is None and word not in UNDISCOVERED:
        name, _, group = word.lower().partition(".")
        where = f" in group '{group}'" if group else ""
        factory.warn(f"the server doesn't have a resource type '{name}'{where}\n")
    return found


@verb("whoami", "whoami", flags=output_flags(), examples="""
# The user that requests are made by
kubepy auth whoami

# As another user
kubepy auth whoami --as=ann -o yaml
""")
def whoami(factory: Factory, given: Invocation) -> None:
    """Check self subject attributes.

    There is one user, the administrator; --as names another one."""
    printer = printer_for(factory, given, typed=True)
    factory.require_cluster()
    user = factory.client.requester
    if given.output or given.template:
        printer({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
                 "metadata": {"creationTimestamp": factory.cluster.clock.timestamp()}, "status": {"userInfo": user}})
        return
    rows = [("ATTRIBUTE", "VALUE"), ("Username", user["username"]), ("UID", user.get("uid", "")),
            ("Groups", f"[{' '.join(user['groups'])}]")]
    factory.print(format_lines(["\t".join(row) for row in rows if row[1]]), end="")
