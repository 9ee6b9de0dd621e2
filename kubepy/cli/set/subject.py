"""``set subject``. Upstream: ``kubectl/pkg/cmd/set/set_subject.go``."""

from __future__ import annotations

from kubepy.api.meta import Object, nested_list
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_array_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.options import local_flag
from kubepy.cli.set.change import SetSelectedOptions, Setter, refuse_all_of_selected

GROUP = "rbac.authorization.k8s.io"


class SetSubjectOptions(SetSelectedOptions):
    """The flags of ``set subject``."""

    local: bool = local_flag("set subject")
    user: list[str] = string_array_flag(
        "user", help="User to bind to the role; repeat this flag for several."
    )
    group: list[str] = string_array_flag(
        "group", help="Group to bind to the role; repeat this flag for several."
    )
    serviceaccount: list[str] = string_array_flag(
        "serviceaccount",
        help="Service account to bind to the role, as "
        "<namespace>:<name>; repeat this flag for several.",
    )


@command(
    "subject (-f FILENAME | TYPE NAME) [--user=username] [--group=groupname] "
    "[--serviceaccount=namespace:serviceaccountname]",
    SetSubjectOptions,
    examples="""
# Bind a service account to a cluster role
kubepy set subject clusterrolebinding observers --serviceaccount=default:robot

# Bind users and a group to a role
kubepy set subject rolebinding tuners --user=ada --user=grace --group=operators

# Print a changed binding, without a cluster
kubepy create rolebinding readers --role=pod-watcher --user=ada --dry-run=client -o yaml | \\
  kubepy set subject -f - --local --user=grace -o yaml
""",
)
def subject(factory: Factory, options: SetSubjectOptions) -> None:
    """Update the user, group, or service account in a role binding or cluster role binding."""
    setter = Setter(factory, options, "subjects updated")
    infos = setter.infos(options.args)
    setter.refuse_local_server()
    refuse_all_of_selected(options)
    subjects = subjects_of(factory, options, infos)

    def change(obj: Object) -> None:
        if obj["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            raise CliError("setting subjects is only supported for RoleBinding/ClusterRoleBinding")
        before = nested_list(obj, "subjects")
        if added := [subject for subject in subjects if subject not in before]:
            obj["subjects"] = [*before, *added]

    setter.change_each(infos, change, failed="failed to patch subjects to rolebinding: ")


def subjects_of(factory: Factory, options: SetSubjectOptions, infos: list[Info]) -> list[Object]:
    """Return the subjects to add, each kind sorted by name. Raises CliError."""
    if not options.user and not options.group and not options.serviceaccount:
        raise CliError("you must specify at least one value of user, group or serviceaccount")
    accounts = set()
    for text in options.serviceaccount:
        namespace, _, name = text.partition(":")
        if not name or ":" in name:
            raise CliError("serviceaccount must be <namespace>:<name>")
        if not namespace and any(info.resource.kind == "ClusterRoleBinding" for info in infos):
            raise CliError("serviceaccount must be <namespace>:<name>, namespace must be specified")
        accounts.add((namespace, name))

    return [
        *({"apiGroup": GROUP, "kind": "User", "name": name} for name in sorted(set(options.user))),
        *(
            {"apiGroup": GROUP, "kind": "Group", "name": name}
            for name in sorted(set(options.group))
        ),
        *(
            {"kind": "ServiceAccount", "name": name, "namespace": namespace or factory.namespace}
            for namespace, name in sorted(accounts)
        ),
    ]
