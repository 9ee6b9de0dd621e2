"""``set subject``. Upstream: ``kubectl/pkg/cmd/set/set_subject.go``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_array_flag as string_array
from kubepy.cli.runtime.flagsets import selector_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.cli.set.change import change_each, common_flags, infos_for, refuse_contradictions, reply_of

GROUP = "rbac.authorization.k8s.io"
FLAGS = [
    *common_flags("subject", recorded=False),
    selector_flag(),
    string_array("user", help="User to bind to the role; repeat this flag for several."),
    string_array("group", help="Group to bind to the role; repeat this flag for several."),
    string_array("serviceaccount", help="Service account to bind to the role, as <namespace>:<name>; repeat this flag "
                 "for several."),
]


@verb("subject", "subject (-f FILENAME | TYPE NAME) [--user=username] [--group=groupname] "
      "[--serviceaccount=namespace:serviceaccountname]", flags=FLAGS, examples="""
    # One more user and service account for a cluster role
    kubepy set subject clusterrolebinding agent --user=ann --serviceaccount=edge:agent

    # One more group for every role binding of a namespace
    kubepy set subject rolebindings --all --group=ops -n edge
""")
def subject(factory: Factory, given: Invocation) -> None:
    """Update the user, group, or service account in a role binding or cluster role binding."""
    reply = reply_of(factory, given, "subjects updated")
    infos = infos_for(factory, given, given.args)
    refuse_contradictions(given, reply)
    wanted = subjects_of(factory, given, infos)

    def change(obj: Object) -> None:
        if obj["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            raise CliError("setting subjects is only supported for RoleBinding/ClusterRoleBinding")
        before = obj.get("subjects") or []
        if added := [one for one in wanted if one not in before]:
            obj["subjects"] = [*before, *added]

    change_each(factory, given, infos, change, reply, failed="failed to patch subjects to rolebinding: ")


def subjects_of(factory: Factory, given: Invocation, infos: list[Info]) -> list[Object]:
    """The subjects to be there, each kind sorted by name. Raises CliError."""
    if not given.user and not given.group and not given.serviceaccount:
        raise CliError("you must specify at least one value of user, group or serviceaccount")
    accounts = [_account(text, infos) for text in given.serviceaccount]
    return [
        *({"apiGroup": GROUP, "kind": "User", "name": name} for name in sorted(set(given.user))),
        *({"apiGroup": GROUP, "kind": "Group", "name": name} for name in sorted(set(given.group))),
        *({"kind": "ServiceAccount", "name": name, "namespace": namespace or factory.namespace}
          for namespace, name in sorted(set(accounts))),
    ]


def _account(text: str, infos: list[Info]) -> tuple[str, str]:
    namespace, _, name = text.partition(":")
    if not name or ":" in name:
        raise CliError("serviceaccount must be <namespace>:<name>")
    if not namespace and any(info.resource.kind == "ClusterRoleBinding" for info in infos):
        raise CliError("serviceaccount must be <namespace>:<name>, namespace must be specified")
    return namespace, name
