"""``kubepy create``: objects from files. Upstream: ``kubectl/pkg/cmd/create/create.go``."""

from __future__ import annotations

from kubepy.apiserver.request import CreateOptions
from kubepy.cli.errors import CliError, raise_all, with_source
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag as boolean
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    NONE,
    SERVER,
    dry_run,
    dry_run_flag,
    field_manager_flag,
    field_validation,
    filename_flags,
    no_arguments,
    output_flags,
    raw_flag,
    record_flag,
    require_files,
    save_config_flag,
    selector_flag,
    validate_flag,
    windows_line_endings_flag,
)
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import Invocation, find, verb

FLAGS = [
    *filename_flags("to use to create the resource."),
    selector_flag(),
    *output_flags(),
    dry_run_flag(),
    validate_flag(),
    field_manager_flag("kubectl-create"),
    save_config_flag(),
    record_flag(),
    boolean("edit", help="Edit the API resource before creating."),
    windows_line_endings_flag(),
    raw_flag("POST"),
]


@verb("create", "create -f FILENAME", flags=FLAGS, creates=True, examples="""
# Create what a file describes
kubepy create -f manifests/nginx-ds.yaml

# Create from standard input
cat pod.json | kubepy create -f -

# Show what the cluster would make of it, without creating it
kubepy create -f manifests/nginx-ds.yaml --dry-run=server -o yaml
""")
def create(factory: Factory, given: Invocation) -> None:
    """Create a resource from a file or from stdin.

    JSON and YAML formats are accepted."""
    no_arguments(given)
    require_files(given)
    if given.raw:
        from kubepy.cli import raw_writes

        if given.edit:
            raise CliError("--raw and --edit are mutually exclusive")
        raw_writes.check_file(given)
        if given.selector:
            raise CliError("--raw and --selector (-l) are mutually exclusive")
        raw_writes.post(factory, given, given.output)
        return
    if given.edit:
        _edit_and_create(factory, given)
        return
    strategy = dry_run(factory, given)
    printer = printer_for(factory, given, "created", strategy)
    validation = field_validation(given)
    found = 0

    def create_one(info: Info) -> None:
        nonlocal found
        found += 1
        printer(created(factory, given, info, strategy, validation))

    result = find(factory, given, validation=validation)
    errors = result.errors_of(create_one)
    if not found and not errors:
        raise CliError("no objects passed to create")
    raise_all(errors)


def _edit_and_create(factory: Factory, given: Invocation) -> None:
    """``--edit``: each object goes through the editor first; one that is not changed is not created."""
    from kubepy.cli.runtime.editing import Editing, Round, place

    def change(originals: list[Info], updated: list[Info], current: Round) -> None:
        for info in updated:
            place(factory, info)
            info.source = ""  # kubectl does not name the file of the editor
            obj = created(factory, given, info, NONE, field_validation(given))
            printer_for(factory, given, "created")(obj)

    find(factory, given).visit(lambda info: Editing(factory, given, change).edit([info]))


def created(factory: Factory, given: Invocation, info: Info, strategy: str, validation: str) -> dict[str, object]:
    """Create one object of a file; returns what to print. Raises Status with the file in its message."""
    from kubepy.cli.runtime.objects import record, save_last_applied

    save_last_applied(info.content, create=given.save_config)
    if given.record:
        record(info.content, given)
    if strategy == CLIENT:
        return info.content
    try:
        obj = factory.client.create(info.resource.gvr, info.content, namespace=info.namespace,
                                    options=CreateOptions(dry_run=strategy == SERVER,
                                                          field_manager=given.field_manager,
                                                          field_validation=validation))
    except Exception as error:
        raise with_source(error, "creating", info.source) from None
    info.refresh(obj)
    return obj
