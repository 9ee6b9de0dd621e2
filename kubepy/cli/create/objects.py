"""The parts that the ``create KIND NAME`` commands share: flags, the name, creating the generated
object.

A generator is a function from flags to an object, with its fields in Go's order, as ``-o json``
shows them. Upstream: ``kubectl/pkg/cmd/create``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from kubepy.api.meta import Object
from kubepy.apiserver.request import CreateOptions
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import Command, command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.objects import LAST_APPLIED
from kubepy.cli.runtime.options import (
    CLIENT,
    SERVER,
    DryRunOptions,
    FieldManagerOptions,
    PrintFlags,
    SaveConfigOptions,
    ValidateOptions,
    field_manager_flag,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.api.values import goformat


class CreatedOptions(PrintFlags, DryRunOptions, FieldManagerOptions):
    """The flags of commands that create a generated object."""


class GeneratorOptions(CreatedOptions, ValidateOptions, SaveConfigOptions):
    """The flags of every ``create KIND NAME``."""

    required: ClassVar[tuple[str, ...]] = ()  # the flags that must be on the line
    saves_config: ClassVar[bool] = True  # whether --save-config does anything
    checks_name: ClassVar[bool] = True  # whether an empty name is refused here, not only by the API

    field_manager: str = field_manager_flag("kubectl-create")

    def object_name(self) -> str:
        """Return the one word before ``--``. Raises UsageError."""
        words = self.args if self.line.dash == -1 else self.args[: self.line.dash]
        if len(words) != 1:
            self.usage_error(f"exactly one NAME is required, got {len(words)}")
        return words[0]

    def container_command(self) -> list[str]:
        """Return the words behind the name: the command of a container."""
        return self.args[1:]


GeneratorOptionsT = TypeVar("GeneratorOptionsT", bound=GeneratorOptions)
# Makes the object of a command line. Raises CliError.
Generate = Callable[[Factory, GeneratorOptionsT, str], Object]


def generator(
    usage: str, options_class: type[GeneratorOptionsT], *, failure: str = "", examples: str = ""
) -> Callable[[Generate[GeneratorOptionsT]], Command]:
    """Make a command of a generator. ``failure`` goes before errors of the API
    (``failed to create job: ``)."""

    def decorate(generate: Generate[GeneratorOptionsT]) -> Command:
        def run(factory: Factory, options: GeneratorOptionsT) -> None:
            options.require(*options.required)
            name = options.object_name()

            def generated() -> Object:
                if options.checks_name and not name:
                    raise CliError("name must be specified")
                return generate(factory, options, name)

            create_generated(factory, options, generated, failure=failure)

        run.__doc__ = generate.__doc__
        return command(usage, options_class, examples=examples, creates=True)(run)

    return decorate


def create_generated(
    factory: Factory,
    options: CreatedOptions,
    generate: Callable[[], Object],
    *,
    failure: str = "",
    operation: str = "created",
    strategy: str = "",
) -> None:
    """Create the object that ``generate`` makes, and print it. ``strategy``: the dry run, if that
    is known already."""
    strategy = strategy or factory.dry_run_strategy(options)
    printer = printer_for(factory, options, operation, strategy, typed=True)
    validation = options.field_validation() if isinstance(options, ValidateOptions) else "Ignore"
    obj = generate()
    saves_config = not isinstance(options, GeneratorOptions) or options.saves_config
    if saves_config and isinstance(options, SaveConfigOptions) and options.save_config:
        save_config(obj)
    if strategy == CLIENT:
        printer(obj)
        return
    resource = factory.scheme.for_kind(obj["apiVersion"], obj["kind"])
    assert resource is not None
    try:
        obj = factory.client.create(
            resource.key,
            obj,
            namespace=factory.namespace if resource.namespaced else "",
            options=CreateOptions(
                dry_run=strategy == SERVER,
                field_manager=options.field_manager,
                field_validation=validation,
            ),
        )
    except api_errors.Status as error:
        if not failure:
            raise
        raise CliError(f"{failure}{error}") from None

    printer(obj)


def save_config(obj: Object) -> None:
    """Annotate a generated object for a later apply (``--save-config``): with itself as Go writes
    the struct."""
    configuration = goformat.to_json(obj, sort_keys=False) + "\n"
    annotations = {**obj["metadata"].get("annotations", {}), LAST_APPLIED: configuration}
    obj["metadata"] = {**obj["metadata"], "annotations": dict(sorted(annotations.items()))}


def metadata(factory: Factory, name: str, **more: Any) -> Object:
    """Return the metadata of a namespaced object, with its namespace only if ``-n`` is on the
    line."""
    namespace = {"namespace": factory.namespace} if factory.namespace_given else {}
    return {"name": name, **namespace, **{key: value for key, value in more.items() if value}}
