"""``kubepy create``: objects from files. Upstream: ``kubectl/pkg/cmd/create/create.go``."""

from __future__ import annotations

from kubepy.apiserver.request import CreateOptions
from kubepy.cli.errors import CliError, raise_all, with_source
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.editing import Editing, EditingOptions, Round, place
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import record, save_last_applied
from kubepy.cli.runtime.options import (
    CLIENT,
    NONE,
    SERVER,
    DryRunOptions,
    FieldManagerOptions,
    RawOptions,
    RecordOptions,
    SaveConfigOptions,
    SelectorOptions,
    field_manager_flag,
    filename_flag,
    raw_flag,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.cli import raw


class CreateFlags(
    SelectorOptions,
    EditingOptions,
    DryRunOptions,
    FieldManagerOptions,
    SaveConfigOptions,
    RecordOptions,
    RawOptions,
):
    """The flags of ``create``."""

    filename: list[str] = filename_flag("to use to create the resource.")
    field_manager: str = field_manager_flag("kubectl-create")
    edit: bool = bool_flag("edit", help="Edit the API resource before creating.")
    raw: str = raw_flag("POST")


@command(
    "create -f FILENAME",
    CreateFlags,
    creates=True,
    examples="""
# Create the objects in a file
kubepy create -f manifests/nginx-ds.yaml

# Create from standard input
cat pod.json | kubepy create -f -

# Show what the cluster would make of it, without creating it
kubepy create -f manifests/nginx-ds.yaml --dry-run=server -o yaml
""",
)
def create(factory: Factory, options: CreateFlags) -> None:
    """Create a resource from a file or from stdin.

    JSON and YAML formats are accepted."""
    options.require_no_args()
    options.require_files()
    if options.raw:
        if options.edit:
            raise CliError("--raw and --edit are mutually exclusive")
        raw.check_file(options)
        if options.selector:
            raise CliError("--raw and --selector (-l) are mutually exclusive")
        raw.post(factory, options, options.output)
        return

    if options.edit:
        _edit_and_create(factory, options)
        return
    strategy = factory.dry_run_strategy(options)
    printer = printer_for(factory, options, "created", strategy)
    validation = options.field_validation()
    count = 0

    def create_one(info: Info) -> None:
        nonlocal count
        count += 1
        printer(created(factory, options, info, strategy, validation))

    result = Builder(factory, options, validation=validation).do()
    errors = result.errors_of(create_one)
    if not count and not errors:
        raise CliError("no objects passed to create")
    raise_all(errors)


def _edit_and_create(factory: Factory, options: CreateFlags) -> None:
    """Let the user edit each object before it is created (``--edit``); one that is not changed is
    not created."""

    def change(originals: list[Info], updated: list[Info], current: Round) -> None:
        for info in updated:
            place(factory, info)
            info.source = ""  # kubectl does not name the file of the editor
            obj = created(factory, options, info, NONE, options.field_validation())
            printer_for(factory, options, "created")(obj)

    Builder(factory, options).do().visit(
        lambda info: Editing(factory, options, change).edit([info])
    )


def created(
    factory: Factory, options: CreateFlags, info: Info, strategy: str, validation: str
) -> dict[str, object]:
    """Create one object of a file; returns the object to print. Raises Status with the file in its
    message."""
    save_last_applied(info.content, create=options.save_config)
    if options.record:
        record(info.content, options)
    if strategy == CLIENT:
        return info.content
    try:
        obj = factory.client.create(
            info.resource.gvr,
            info.content,
            namespace=info.namespace,
            options=CreateOptions(
                dry_run=strategy == SERVER,
                field_manager=options.field_manager,
                field_validation=validation,
            ),
        )
    except Exception as error:
        raise with_source(error, "creating", info.source) from None

    info.refresh(obj)
    return obj
