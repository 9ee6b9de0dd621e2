"""``kubepy apply``: make the cluster as files say, by a three-way merge on the client, or
with --server-side there.

The manifest is kept in an annotation: fields that it had before and no longer has are removed,
those that it has are set, and all others stay. Upstream:
``kubectl/pkg/cmd/apply/{apply,prune}.go``, ``client-go/util/csaupgrade``.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubepy.api.meta import Object, annotations_of, uid_of
from kubepy.api.scheme import Resource
from kubepy.apiserver.request import (
    APPLY_PATCH,
    JSON_PATCH,
    CreateOptions,
    DeleteOptions,
    Patch,
    PatchOptions,
)
from kubepy.cli.apply_patching import ApplyRequest, patch_to, warn_if_deleting
from kubepy.cli.delete import DeleteFlags, propagation_policy
from kubepy.cli.errors import CliError, is_expected, raise_all, with_source
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.infos import Info, info_of
from kubepy.cli.runtime.objects import LAST_APPLIED, modified_configuration, record
from kubepy.cli.runtime.options import (
    CLIENT,
    SERVER,
    SERVER_SIDE_APPLY,
    DryRunOptions,
    PrintFlags,
    PruneOptions,
    RecordOptions,
    SelectorOptions,
    ServerSideOptions,
    SubresourceOptions,
    ValidateOptions,
    filename_flag,
    subresource_flag,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.apiserver.managedfields import updater

NO_ANNOTATION = (
    "Warning: resource {} is missing the {} annotation which is required by kubepy apply. kubepy "
    "apply "
    "should only be used on resources created declaratively by either kubepy create --save-config "
    "or "
    "kubepy apply. The missing annotation will be patched automatically."
)


class ApplyFlags(
    DeleteFlags,
    PrintFlags,
    SelectorOptions,
    DryRunOptions,
    ValidateOptions,
    RecordOptions,
    PruneOptions,
    ServerSideOptions,
    SubresourceOptions,
):
    """The flags of ``apply``."""

    filename: list[str] = filename_flag("that contains the configuration to apply")
    wait: bool = bool_flag("wait", help="If true, wait for resources to be gone before returning.")
    overwrite: bool = bool_flag(
        "overwrite",
        default=True,
        help="Resolve conflicts between the modified and live "
        "configuration by using values from the modified configuration.",
    )
    openapi_patch: bool = bool_flag(
        "openapi-patch", default=True, help="Accepted as kubectl does; patches go by the schema."
    )
    subresource: str = subresource_flag("apply")


@command(
    "apply (-f FILENAME | -k DIRECTORY)",
    ApplyFlags,
    creates=True,
    examples="""
# One file
kubepy apply -f web.yaml

# All files of a folder, and below it
kubepy apply -R -f manifests/

# All files that a pattern matches
kubepy apply -f 'web*.yaml'

# A kustomization
kubepy apply -k overlays/production

# What another program prints
kubepy create deployment api --image=nginx:1.27 --dry-run=client -o yaml | kubepy apply -f -

# See what would be stored
kubepy apply -f web.yaml --dry-run=server -o yaml

# With fields that other programs write left to them
kubepy apply --server-side -f web.yaml

# Delete the objects with a label that are no longer in the files
kubepy apply -f manifests/ -l app=web --prune
""",
)
def apply(factory: Factory, options: ApplyFlags) -> None:
    """Apply a configuration to a resource by file name or stdin.

    The resource is created if it is not there yet. Use "create --save-config" or apply to create what you later want
    to apply again."""  # noqa: E501
    options.require_no_args()
    request = request_of(factory, options)
    allowed = allowed_kinds(factory, options.prune_allowlist) if options.prune else []
    validate(options, request)
    visited = Visited(factory)
    infos: list[Info] = []

    def read(info: Info) -> None:
        infos.append(info)
        factory.progress.show("reading", len(infos))

    errors = Builder(factory, options, validation=request.validation).do().errors_of(read)
    if not infos and not errors:
        raise CliError("no objects passed to apply")
    prints_each = options.output in ("", "name") and not options.template
    for number, info in enumerate(infos, 1):
        factory.progress.show("applying", number, len(infos))
        try:
            visited.add_namespace(info)
            if options.record:
                record(info.content, options)
            operation = apply_one(factory, info, request)
            visited.add(info.content)
        except Exception as error:
            if not is_expected(error):
                raise
            errors.append(error)
            continue
        if prints_each:
            printer_for(factory, options, operation, request.dry_run)(info.content)

    raise_all(errors)
    if not prints_each:
        objects = [info.content for info in infos]
        printer_for(factory, options)(
            objects[0]
            if len(objects) == 1
            else {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": objects}
        )

    if options.prune:
        printer = printer_for(factory, options, "pruned", request.dry_run)
        deletion = request.deletion._replace(dry_run=request.dry_run == SERVER)
        for info in prunable(factory, visited, allowed, options.selector):
            if request.dry_run != CLIENT:
                factory.client.delete(
                    info.resource.gvr, info.name, namespace=info.namespace, options=deletion
                )
            printer(info.content)


def request_of(factory: Factory, options: ApplyFlags) -> ApplyRequest:
    """Read the flags. Raises CliError for wrong values."""
    strategy = factory.dry_run_strategy(options)
    deletion = DeleteOptions(
        grace_period_seconds=options.grace_period if options.grace_period >= 0 else None,
        propagation_policy=propagation_policy(factory, options.cascade),
    )
    options.require_files()
    return ApplyRequest(
        strategy,
        options.field_validation(),
        options.apply_manager(),
        options.overwrite,
        options.force,
        deletion,
        options.timeout,
        options.openapi_patch,
        options.server_side,
        options.force_conflicts,
        options.subresource,
    )


def validate(options: ApplyFlags, request: ApplyRequest) -> None:
    """Raise CliError for flags that contradict each other."""
    server_side = options.server_side
    dry_run = request.dry_run
    contradictions = {
        "--force-conflicts only works with --server-side": options.force_conflicts
        and not server_side,
        "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server "
        "instead?)": dry_run == CLIENT and server_side,
        "--force cannot be used with --server-side": server_side and options.force,
        "--dry-run=server cannot be used with --force": dry_run == SERVER and options.force,
        "cannot set --all and --selector at the same time": options.all and options.selector,
        "--force cannot be used with --prune": options.prune and options.force,
        "all resources selected for prune without explicitly passing --all. To prune all "
        "resources, pass the --all "
        "flag. If you did not mean to prune all resources, specify a label selector": options.prune
        and not options.all
        and not options.selector,
        "--prune is in alpha and doesn't currently work on objects created by server-side "
        "apply": options.prune and server_side,
        "--subresource can only be specified for --server-side": options.subresource
        and not server_side,
    }
    for message, holds in contradictions.items():
        if holds:
            raise CliError(message)


# --- one object -----------------------------------------------------------------------------------


def apply_one(factory: Factory, info: Info, request: ApplyRequest) -> str:
    """Apply one object of a file; returns ``created``, ``configured``, ``unchanged`` or
    ``serverside-applied``."""
    generate_name = info.content["metadata"].get("generateName")
    if not info.name and generate_name:
        raise CliError(f"from {generate_name}: cannot use generate name with apply")
    if request.server_side:
        factory.catch_up()
        apply_on_server(factory, info, request)
        return "serverside-applied"

    manifest = info.content
    try:
        current = info.get(factory)
        if factory.catch_up():
            current = info.get(factory)
    except api_errors.NotFound:
        _create(factory, info, manifest, request)
        return "created"
    except Exception as error:
        action = f"retrieving current configuration of:\n{info}\nfrom server for:"
        raise with_source(error, action, info.source) from None

    if LAST_APPLIED not in annotations_of(current):
        factory.say(NO_ANNOTATION.format(info.object_name, LAST_APPLIED))
    patched = patch_to(factory, info, current, modified_configuration(manifest), request)
    info.refresh(patched.object)
    warn_if_deleting(factory, info)
    if patched.patch:
        return "configured"
    return "unchanged"


def _create(factory: Factory, info: Info, manifest: Object, request: ApplyRequest) -> None:
    obj = without_nulls(modified_configuration(manifest))
    if request.dry_run == CLIENT:
        info.object = obj
        return
    try:
        obj = factory.client.create(
            info.resource.gvr,
            obj,
            namespace=info.namespace,
            options=CreateOptions(
                dry_run=request.dry_run == SERVER,
                field_manager=request.manager,
                field_validation=request.validation,
            ),
        )
    except Exception as error:
        raise with_source(error, "creating", info.source) from None

    info.refresh(obj)


def without_nulls(obj: Object) -> Object:
    """Return the object without keys whose value is null, at any depth, as an update by apply would
    leave it."""
    return {key: _without_inner_nulls(value) for key, value in obj.items() if value is not None}


def _without_inner_nulls(value: object) -> object:
    if isinstance(value, dict):
        return without_nulls(value)
    if isinstance(value, list):
        return [_without_inner_nulls(item) for item in value]
    return value


# --- --server-side --------------------------------------------------------------------------------

LAST_APPLIED_MANAGER = "kubectl-last-applied"
ANNOTATION_PATH = ("metadata", "annotations", LAST_APPLIED)
ADVICE = """
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the `--force-conflicts` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts"""


def apply_on_server(factory: Factory, info: Info, request: ApplyRequest) -> None:
    """Apply an object of a file, and hold the outcome in the Info. Raises CliError for conflicts,
    and Status."""
    manifest = info.content
    try:
        info.refresh(_send(factory, info, manifest, request, request.manager))
    except api_errors.Conflict as error:
        raise CliError(f"{error}{ADVICE}") from None
    if request.dry_run != SERVER and request.manager == SERVER_SIDE_APPLY:
        _keep_annotation(factory, info, request)
    if request.dry_run != SERVER and _migrate_managers(factory, info, request):
        info.refresh(_send(factory, info, manifest, request, request.manager))
    warn_if_deleting(factory, info)


def _send(factory: Factory, info: Info, obj: Object, request: ApplyRequest, manager: str) -> Object:
    if not info.name:
        raise CliError("resource name may not be empty")
    return factory.client.patch(
        info.resource.gvr,
        info.name,
        Patch(APPLY_PATCH, obj),
        namespace=info.namespace,
        subresource=request.subresource,
        options=PatchOptions(
            dry_run=request.dry_run == SERVER,
            field_manager=manager,
            field_validation=request.validation,
            force=request.force_conflicts,
        ),
    )


def _keep_annotation(factory: Factory, info: Info, request: ApplyRequest) -> None:
    """Keep the last-applied annotation, under a manager of its own, for users who go back to apply
    on the client."""
    annotation = annotations_of(info.content).get(LAST_APPLIED)
    if annotation is None:
        return
    live = factory.client.with_managed_fields(info.content)
    if updater.managers_of_field(live, ANNOTATION_PATH, "Apply"):
        return
    meta = info.content["metadata"]
    identity = {key: meta[key] for key in ("name", "namespace") if key in meta}
    only = {
        "apiVersion": info.resource.api_version,
        "kind": info.resource.kind,
        "metadata": {**identity, "annotations": {LAST_APPLIED: annotation}},
    }
    info.refresh(
        _send(factory, info, only, request._replace(force_conflicts=False), LAST_APPLIED_MANAGER)
    )


def _migrate_managers(factory: Factory, info: Info, request: ApplyRequest) -> bool:
    """Give the fields that apply on the client managed to this manager; returns whether there were
    any."""
    live = factory.client.with_managed_fields(info.content)
    clients = dict.fromkeys(updater.managers_of_field(live, ANNOTATION_PATH, "Update"))
    patch = updater.upgrade_patch(live, clients, request.manager)
    if patch is None:
        return False
    info.refresh(
        factory.client.patch(
            info.resource.gvr,
            info.name,
            Patch(JSON_PATCH, patch),
            namespace=info.namespace,
            options=PatchOptions(field_manager=request.manager),
        )
    )
    return True


# --- --prune of apply and diff: objects that were applied once and are in the files no more -------

DEFAULT_KINDS = (
    "configmaps",
    "endpoints",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "secrets",
    "services",
    "jobs.batch",
    "cronjobs.batch",
    "ingresses.networking.k8s.io",
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "namespaces",
    "persistentvolumes",
)
CLUSTER_SCOPE = (
    "Deprecated: kubectl apply will no longer prune non-namespaced resources by default when used "
    "with "
    "the --namespace flag in a future release. To preserve the current behaviour, list the "
    "resources you "
    "want to target explicitly in the --prune-allowlist flag."
)


class Visited:
    """The objects and namespaces that a command has applied."""

    def __init__(self, factory: Factory) -> None:
        self.uids: set[str] = set()
        self.namespaces = {factory.namespace} if factory.namespace_given else set()

    def add_namespace(self, info: Info) -> None:
        if info.resource.namespaced:
            self.namespaces.add(info.namespace)

    def add(self, obj: Object | None) -> None:
        self.uids.add(uid_of(obj) if obj else "")


def allowed_kinds(factory: Factory, texts: list[str]) -> list[Resource]:
    """Return the resources of ``--prune-allowlist``: ``core/v1/ConfigMap``. Raises CliError."""
    resources = []
    for text in texts:
        parts = text.split("/")
        if len(parts) != 3:
            raise CliError(
                f"invalid GroupVersionKind format: {text}, please follow <group/version/kind>"
            )
        group = "" if parts[0] == "core" else parts[0]
        version = parts[1]
        kind = parts[2]
        api_version = f"{group}/{version}".lstrip("/")
        resource = factory.scheme.for_kind(api_version, kind)
        if resource is None:
            raise CliError(f"no matches for kind {quote(kind)} in version {quote(api_version)}")
        resources.append(resource)

    return resources


def prunable(
    factory: Factory, visited: Visited, allowed: list[Resource], selector: str
) -> Iterator[Info]:
    """Yield the applied and selected objects that were not visited, in the namespaces that were.
    Raises CliError."""
    if not allowed:
        allowed = [factory.scheme.by_key(key) for key in DEFAULT_KINDS]
        factory.log("prune.go:71", CLUSTER_SCOPE)
    places = [
        (namespace, resource)
        for namespace in sorted(visited.namespaces)
        for resource in allowed
        if resource.namespaced
    ]
    places += [("", resource) for resource in allowed if not resource.namespaced]
    for namespace, resource in places:
        try:
            objects = factory.client.list(
                resource.key, namespace=namespace or None, label_selector=selector
            ).items
        except api_errors.Status as error:
            scope = "namespaced" if resource.namespaced else "nonNamespaced"
            kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
            raise CliError(f"error pruning {scope} object {kind}: {error}") from None
        for obj in objects:
            if LAST_APPLIED in annotations_of(obj) and uid_of(obj) not in visited.uids:
                yield info_of(resource, obj)
