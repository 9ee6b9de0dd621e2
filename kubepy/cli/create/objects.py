"""What the ``create KIND NAME`` commands share: flags, the name, creating the object that they made up.

A generator is a function from flags to an object, with its fields in Go's order, as ``-o json`` shows them. Upstream:
``kubectl/pkg/cmd/create``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kubepy.api.meta import Object
from kubepy.apiserver.request import CreateOptions
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import Command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    SERVER,
    dry_run,
    dry_run_flag,
    field_manager_flag,
    field_validation,
    output_flags,
    save_config_flag,
    validate_flag,
)
from kubepy.cli.runtime.objects import LAST_APPLIED
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.verbs import Invocation, options_class_of
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors

COMMON = [*output_flags(), dry_run_flag(), validate_flag(), field_manager_flag("kubectl-create"), save_config_flag()]

# The object of a command line. Raises CliError.
Generate = Callable[[Factory, Invocation, str], Object]


def generator(name: str, usage: str, *, flags: Sequence[Flag] = (), required: Sequence[str] = (), failure: str = "",
              examples: str = "", saves_config: bool = True, checks_name: bool = True) -> Callable[[Generate], Command]:
    """Make a command of a generator. ``failure`` goes before what the API refuses (``failed to create job: ``);
    ``saves_config``: whether --save-config does anything; ``checks_name``: whether an empty name is refused here, not
    only by the API."""

    def decorate(generate: Generate) -> Command:
        def run(factory: Factory, given: Invocation) -> None:
            given.require(*required)
            name = name_from(given)

            def made() -> Object:
                if checks_name and not name:
                    raise CliError("name must be specified")
                return generate(factory, given, name)

            create_generated(factory, given, made, failure, saves_config=saves_config)

        made = Command(usage, run, options_class_of([*COMMON, *flags]), help=(generate.__doc__ or "").strip(),
                       examples=examples)
        made.creates = True
        return made

    return decorate


def name_from(given: Invocation) -> str:
    """The one word before ``--``. Raises UsageError."""
    words = given.args if given.dash == -1 else given.args[:given.dash]
    if len(words) != 1:
        given.usage_error(f"exactly one NAME is required, got {len(words)}")
    return str(words[0])


def command_from(given: Invocation) -> list[str]:
    """The words behind the name: what a container is to run."""
    return list(given.args[1:])


def create_generated(factory: Factory, given: Invocation, generate: Callable[[], Object], failure: str,
                     operation: str = "created", saves_config: bool = True, strategy: str = "") -> None:
    """Create what ``generate`` makes, and print it. ``strategy``: the dry run, if that is known already."""
    strategy = strategy or dry_run(factory, given)
    printer = printer_for(factory, given, operation, strategy, typed=True)
    validation = field_validation(given) if given.flag("validate") is not None else "Ignore"
    obj = generate()
    if saves_config and given.flag("save-config"):
        save_config(obj)
    if strategy != CLIENT:
        obj = _create(factory, given, obj, failure, validation, dry_run=strategy == SERVER)
    printer(obj)


def _create(factory: Factory, given: Invocation, obj: Object, failure: str, validation: str, *,
            dry_run: bool) -> Object:
    resource = factory.scheme.for_kind(obj["apiVersion"], obj["kind"])
    assert resource is not None
    try:
        return factory.client.create(resource.key, obj, namespace=factory.namespace if resource.namespaced else "",
                                     options=CreateOptions(dry_run=dry_run, field_manager=given.field_manager,
                                                           field_validation=validation))
    except Exception as error:
        if not failure or not isinstance(error, api_errors.Status):
            raise
        raise CliError(f"{failure}{error}") from None


def save_config(obj: Object) -> None:
    """``--save-config`` of an object that is no manifest: as Go writes the struct."""
    from kubepy.api.values.goformat import to_json

    configuration = to_json(obj, sort_keys=False) + "\n"
    annotations = {**obj["metadata"].get("annotations", {}), LAST_APPLIED: configuration}
    obj["metadata"] = {**obj["metadata"], "annotations": dict(sorted(annotations.items()))}


def metadata(factory: Factory, name: str, **more: Any) -> Object:
    """The metadata of a namespaced object; its namespace is only named when ``-n`` names it."""
    namespace = {"namespace": factory.namespace} if factory.namespace_given else {}
    return {"name": name, **namespace, **{key: value for key, value in more.items() if value}}
