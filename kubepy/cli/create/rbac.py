"""``kubepy create role``, ``clusterrole``, ``rolebinding`` and ``clusterrolebinding``.

Nothing here checks permissions: these objects are kept for programs that read them. Upstream:
``kubectl/pkg/cmd/create/create_{role,clusterrole,rolebinding,clusterrolebinding}.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.cli.create.objects import GeneratorOptions, generator, metadata
from kubepy.cli.errors import CliError, UnprefixedError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_array_flag, string_flag, string_slice_flag, typed_flag
from kubepy.quoting import printable, quote

GROUP = "rbac.authorization.k8s.io"
VERSION = f"{GROUP}/v1"
VERBS = (
    "*",
    "get",
    "delete",
    "list",
    "create",
    "update",
    "patch",
    "watch",
    "proxy",
    "deletecollection",
    "use",
    "bind",
    "escalate",
    "impersonate",
)
URL_VERBS = ("*", "get", "post", "put", "delete", "patch", "head", "options")
# Verbs that only fit some resources, each as its group and name.
SPECIAL_VERBS: Mapping[str, Sequence[tuple[str, str]]] = {
    "use": (("policy", "podsecuritypolicies"), ("extensions", "podsecuritypolicies")),
    "bind": ((GROUP, "roles"), (GROUP, "clusterroles")),
    "escalate": ((GROUP, "roles"), (GROUP, "clusterroles")),
    "impersonate": (
        ("", "users"),
        ("", "serviceaccounts"),
        ("", "groups"),
        ("authentication.k8s.io", "userextras"),
    ),
}


class RuleOptions(GeneratorOptions):
    """The flags of a rule."""

    verb: list[str] = string_slice_flag(
        "verb", help="Verb that applies to the resources contained in the rule."
    )
    resource: list[str] = string_slice_flag(
        "resource", help="Resource that the rule applies to: RESOURCE[.GROUP][/SUBRESOURCE]."
    )
    resource_name: list[str] = string_array_flag(
        "resource-name",
        help="Name of an object that the rule applies to; repeat this flag for several.",
    )


def aggregation_pairs(text: str) -> list[tuple[str, str]]:
    """Read ``a=b,c=d``. Raises ValueError."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError("malformed pair, expect string=string")
    return [(key.strip(), value.strip()) for key, _, value in pairs]


class RuleResource(NamedTuple):
    """The value of a ``--resource``: ``deployments.apps/scale``."""

    group: str
    name: str
    subresource: str

    @property
    def word(self) -> str:
        if self.group:
            return f"{self.name}.{self.group}"
        return self.name


class CreateRoleOptions(RuleOptions):
    """The flags of ``create role``."""


@generator(
    "role NAME --verb=verb --resource=resource.group/subresource [--resource-name=resourcename]",
    CreateRoleOptions,
    examples="""
# Read the pods of a namespace
kubepy create role pod-watcher --verb=get,list,watch --resource=pods

# Read and change two ConfigMaps by their names
kubepy create role tuner --verb=get --verb=update --resource=configmaps --resource-name=settings --resource-name=logging

# Change objects of an API group
kubepy create role deployer --verb=create,patch,update --resource=deployments.apps

# Change a subresource: the size of Deployments
kubepy create role scaler --verb=get,patch --resource=deployments.apps/scale
""",  # noqa: E501
)
def role(factory: Factory, options: CreateRoleOptions, name: str) -> Object:
    """Create a role with a single rule for each API group."""
    verbs = verbs_of(options)
    resources = resources_of(options)
    _require_verbs(verbs)
    _warn_of_unusual(factory, verbs)
    if not resources:
        raise CliError("at least one resource must be specified")
    _check_resources(factory, resources, verbs)
    return {
        "kind": "Role",
        "apiVersion": VERSION,
        "metadata": metadata(factory, name),
        "rules": rules(factory, options, verbs, resources),
    }


class CreateClusterroleOptions(RuleOptions):
    """The flags of ``create clusterrole``."""

    non_resource_url: list[str] = string_slice_flag(
        "non-resource-url", help="A partial URL that the rule applies to."
    )
    aggregation_rule: list[tuple[str, str]] = typed_flag(
        "aggregation-rule",
        "",
        aggregation_pairs,
        repeated=True,
        help="Labels of the cluster roles that are combined into this one (key=value,…).",
    )


@generator(
    "clusterrole NAME --verb=verb --resource=resource.group [--resource-name=name]",
    CreateClusterroleOptions,
    examples="""
# Read the nodes
kubepy create clusterrole node-watcher --verb=get,list,watch --resource=nodes

# Change two nodes by their names
kubepy create clusterrole node-keeper --verb=patch --resource=nodes --resource-name=node-1 --resource-name=node-2

# Read objects of an API group, in all namespaces
kubepy create clusterrole set-watcher --verb=get,list,watch --resource=statefulsets.apps

# Read a subresource beside its objects
kubepy create clusterrole claim-watcher --verb=get --resource=persistentvolumeclaims,persistentvolumeclaims/status

# Ask a server for what is no object
kubepy create clusterrole prober --verb=get --non-resource-url=/healthz,/metrics

# Have the rules of all cluster roles with a label
kubepy create clusterrole observer --aggregation-rule="example.com/observes=true"
""",  # noqa: E501
)
def clusterrole(factory: Factory, options: CreateClusterroleOptions, name: str) -> Object:
    """Create a cluster role, of rules or of other cluster roles."""
    verbs = verbs_of(options)
    resources = resources_of(options)
    urls = list(dict.fromkeys(options.non_resource_url))
    cluster_role = {"kind": "ClusterRole", "apiVersion": VERSION, "metadata": {"name": name}}
    if options.aggregation_rule:
        if urls or verbs or resources or options.resource_name:
            raise CliError(
                "aggregation rule must be specified without nonResourceURLs, verbs, resources or "
                "resourceNames"
            )
        selector = {"matchLabels": dict(sorted(options.aggregation_rule))}
        return {
            **cluster_role,
            "rules": None,
            "aggregationRule": {"clusterRoleSelectors": [selector]},
        }

    _require_verbs(verbs)
    if not resources and not urls:
        raise CliError("one of resource or nonResourceURL must be specified")
    if resources:
        _warn_of_unusual(factory, verbs)
        _check_resources(factory, resources, verbs)
    _check_urls(urls, verbs)
    url_rules = [{"verbs": verbs, "nonResourceURLs": urls}] if urls else []
    return {**cluster_role, "rules": [*rules(factory, options, verbs, resources), *url_rules]}


def verbs_of(options: RuleOptions) -> list[str]:
    """Return the verbs, each once; ``*`` stands alone."""
    if "*" in options.verb:
        return ["*"]
    return list(dict.fromkeys(options.verb))


def resources_of(options: RuleOptions) -> list[RuleResource]:
    """Return the resources; a ``*`` takes the place of those before it, and ends the list."""
    resources: list[RuleResource] = []
    for text in options.resource:
        if text == "*":
            return [RuleResource("", "*", "")]
        path, _, subresource = text.partition("/")
        name, _, group = path.partition(".")
        resources.append(RuleResource(group, name, subresource))
    return resources


def _require_verbs(verbs: list[str]) -> None:
    if not verbs:
        raise CliError("at least one verb must be specified")


def _warn_of_unusual(factory: Factory, verbs: list[str]) -> None:
    for verb in verbs:
        if verb not in VERBS:
            factory.say(printable(f"Warning: '{verb}' is not a standard resource verb"))


def _check_resources(factory: Factory, resources: list[RuleResource], verbs: list[str]) -> None:
    """Raise an error for an unknown resource, or one that a verb does not fit; resources after a
    ``*`` are not read."""
    for resource in resources:
        if not resource.name:
            raise CliError("resource must be specified if apiGroup/subresource specified")
        if resource.name == "*":
            return
        group, name = _resolved(factory, resource)
        special = [verb for verb in verbs if verb in SPECIAL_VERBS]
        for verb in special:
            if (group, name) not in SPECIAL_VERBS[verb]:
                raise CliError(f"can not perform '{verb}' on '{name}' in group '{group}'")
        if not special and factory.scheme.find(resource.word) is None:
            place = f" in group {quote(resource.group)}" if resource.group else ""
            raise UnprefixedError(
                f"the server doesn't have a resource type {quote(resource.name)}{place}"
            )


def _resolved(factory: Factory, resource: RuleResource) -> tuple[str, str]:
    """Return its group and its plural, if it is known; else the words of the flag."""
    known = factory.scheme.find(resource.word)
    if known:
        return (known.group, known.plural)
    return (resource.group, resource.name)


def rules(
    factory: Factory, options: RuleOptions, verbs: list[str], resources: list[RuleResource]
) -> list[Object]:
    """Return a rule for each API group, in order."""
    groups: dict[str, dict[str, None]] = {}
    for resource in resources:
        group, name = _resolved(factory, resource)
        groups.setdefault(group, {})[
            f"{name}/{resource.subresource}" if resource.subresource else name
        ] = None
    if options.resource_name:
        names = {"resourceNames": list(dict.fromkeys(options.resource_name))}
    else:
        names = {}
    return [
        {"verbs": verbs, "apiGroups": [group], "resources": list(groups[group]), **names}
        for group in sorted(groups)
    ]


def _check_urls(urls: list[str], verbs: list[str]) -> None:
    for verb in verbs if urls else ():
        if verb not in URL_VERBS:
            raise CliError(f"invalid verb: '{verb}' for nonResourceURL")
    for url in urls:
        if url != "*" and not url.startswith("/"):
            raise CliError("nonResourceURL should start with /")
        if "*" in url[:-1]:
            raise CliError("nonResourceURL only supports wildcard matches when '*' is at the end")


# --- bindings -------------------------------------------------------------------------------------


class SubjectOptions(GeneratorOptions):
    """The flags of the subjects of a binding."""

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


class CreateRolebindingOptions(SubjectOptions):
    """The flags of ``create rolebinding``."""

    clusterrole: str = string_flag(
        "clusterrole", help="ClusterRole this RoleBinding should reference."
    )
    role: str = string_flag("role", help="Role this RoleBinding should reference.")


@generator(
    "rolebinding NAME --clusterrole=NAME|--role=NAME [--user=user] [--group=group]",
    CreateRolebindingOptions,
    failure="failed to create rolebinding: ",
    examples="""
# A role for two users
kubepy create rolebinding readers --role=reader --user=ann --user=bob

# A cluster role, for a service account in this namespace only
kubepy create rolebinding agent --clusterrole=view --serviceaccount=edge:agent
""",
)
def rolebinding(factory: Factory, options: CreateRolebindingOptions, name: str) -> Object:
    """Create a role binding for a particular role or cluster role."""
    if bool(options.clusterrole) == bool(options.role):
        raise CliError("exactly one of clusterrole or role must be specified")
    reference = ("Role", options.role) if options.role else ("ClusterRole", options.clusterrole)
    return _binding("RoleBinding", metadata(factory, name), reference, options)


class CreateClusterrolebindingOptions(SubjectOptions):
    """The flags of ``create clusterrolebinding``."""

    clusterrole: str = string_flag(
        "clusterrole", help="ClusterRole this ClusterRoleBinding should reference."
    )
    checks_name = False
    required = ("clusterrole",)


@generator(
    "clusterrolebinding NAME --clusterrole=NAME [--user=username] [--group=groupname]",
    CreateClusterrolebindingOptions,
    failure="failed to create clusterrolebinding: ",
    examples="""
# A cluster role for a service account
kubepy create clusterrolebinding agent --clusterrole=node-reader --serviceaccount=edge:agent

# For a group
kubepy create clusterrolebinding admins --clusterrole=cluster-admin --group=ops
""",
)
def clusterrolebinding(
    factory: Factory, options: CreateClusterrolebindingOptions, name: str
) -> Object:
    """Create a cluster role binding for a particular cluster role."""
    return _binding(
        "ClusterRoleBinding", {"name": name}, ("ClusterRole", options.clusterrole), options
    )


def _binding(
    kind: str, meta: Object, reference: tuple[str, str], options: SubjectOptions
) -> Object:
    subjects = list(subjects_of(options))
    role_kind, role_name = reference
    return {
        "kind": kind,
        "apiVersion": VERSION,
        "metadata": meta,
        **({"subjects": subjects} if subjects else {}),
        "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role_name},
    }


def subjects_of(options: SubjectOptions) -> Iterator[Object]:
    """Yield the users, groups and service accounts. Raises CliError."""
    for name in options.user:
        yield {"kind": "User", "apiGroup": GROUP, "name": name}
    for name in options.group:
        yield {"kind": "Group", "apiGroup": GROUP, "name": name}
    for text in options.serviceaccount:
        namespace, _, name = text.partition(":")
        if not namespace or not name or ":" in name:
            raise CliError("serviceaccount must be <namespace>:<name>")
        yield {"kind": "ServiceAccount", "name": name, "namespace": namespace}
