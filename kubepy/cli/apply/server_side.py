"""``apply --server-side``: the cluster merges, and keeps for each field who manages it.

Upstream: ``kubectl/pkg/cmd/apply/apply.go`` (applyOneObject), ``client-go/util/csaupgrade``.
"""

from __future__ import annotations

from kubepy.api.meta import Object, annotations_of
from kubepy.apiserver.request import APPLY_PATCH, Patch, PatchOptions
from kubepy.cli.apply.patching import Options, warn_if_deleting
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flagsets import SERVER, SERVER_SIDE_APPLY
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import LAST_APPLIED
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors

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


def apply_on_server(factory: Factory, info: Info, options: Options) -> None:
    """Apply an object of a file; the Info takes what came of it. Raises CliError for conflicts, and Status."""
    manifest = info.content
    try:
        info.refresh(_send(factory, info, manifest, options, options.manager))
    except Exception as error:
        if isinstance(error, api_errors.Conflict):
            raise CliError(f"{error}{ADVICE}") from None
        raise
    if options.dry_run != SERVER and options.manager == SERVER_SIDE_APPLY:
        _keep_annotation(factory, info, options)
    if options.dry_run != SERVER and _take_over(factory, info, options):
        info.refresh(_send(factory, info, manifest, options, options.manager))
    warn_if_deleting(factory, info)


def _send(factory: Factory, info: Info, obj: Object, options: Options, manager: str) -> Object:
    if not info.name:
        raise CliError("resource name may not be empty")
    return factory.client.patch(info.resource.gvr, info.name, Patch(APPLY_PATCH, obj), namespace=info.namespace,
                                subresource=options.subresource,
                                options=PatchOptions(dry_run=options.dry_run == SERVER, field_manager=manager,
                                                     field_validation=options.validation,
                                                     force=options.force_conflicts))


def _keep_annotation(factory: Factory, info: Info, options: Options) -> None:
    """What apply on the client has left stays for those who go back to it: a manager of its own holds it."""
    from kubepy.apiserver.managedfields.updater import managers_of_field

    annotation = annotations_of(info.content).get(LAST_APPLIED)
    if annotation is None or managers_of_field(_with_managers(factory, info), ANNOTATION_PATH, "Apply"):
        return
    meta = info.content["metadata"]
    identity = {key: meta[key] for key in ("name", "namespace") if key in meta}
    only = {"apiVersion": info.resource.api_version, "kind": info.resource.kind,
            "metadata": {**identity, "annotations": {LAST_APPLIED: annotation}}}
    info.refresh(_send(factory, info, only, options._replace(force_conflicts=False), LAST_APPLIED_MANAGER))


def _take_over(factory: Factory, info: Info, options: Options) -> bool:
    """The fields that apply on the client managed become those of this manager; whether there were any."""
    from kubepy.apiserver.managedfields.updater import managers_of_field, upgrade_patch
    from kubepy.apiserver.request import JSON_PATCH

    live = _with_managers(factory, info)
    clients = dict.fromkeys(managers_of_field(live, ANNOTATION_PATH, "Update"))
    patch = upgrade_patch(live, clients, options.manager)
    if patch is None:
        return False
    info.refresh(factory.client.patch(info.resource.gvr, info.name, Patch(JSON_PATCH, patch), namespace=info.namespace,
                                      options=PatchOptions(field_manager=options.manager)))
    return True


def _with_managers(factory: Factory, info: Info) -> Object:
    return factory.client.with_managed_fields(info.content)
