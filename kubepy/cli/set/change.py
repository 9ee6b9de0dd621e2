"""Change objects one by one: find them, change a copy, patch the cluster, print the result.

The second part reads the words and containers that several commands of `set` take.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence

from kubepy.api.meta import Object, nested_list, spec_of
from kubepy.apiserver.request import Patch, PatchOptions
from kubepy.cli.errors import CliError, raise_all
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.objects import record, two_way_patch, type_name, typed
from kubepy.cli.runtime.options import (
    CLIENT,
    SERVER,
    DryRunOptions,
    FieldManagerOptions,
    FilenameOptions,
    KustomizeOptions,
    LocalOptions,
    PrintFlags,
    RecordOptions,
    SelectorOptions,
    field_manager_flag,
    filename_flag,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors as api_errors

LOCAL_RESOURCE = """error: you must specify resources by --filename when --local is set.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'"""
# Changes an object in place. Raises CliError for one that it cannot change.
Change = Callable[[Object], None]


class SetOptions(FilenameOptions, PrintFlags, DryRunOptions, FieldManagerOptions, LocalOptions):
    """The flags of all commands of `set`."""

    filename: list[str] = filename_flag("identifying the resource to get from the cluster.")
    field_manager: str = field_manager_flag("kubectl-set")
    all: bool = bool_flag(
        "all", help="Select all resources in the namespace of the specified resource types."
    )


class SetSelectedOptions(SetOptions, KustomizeOptions, SelectorOptions):
    """The flags of commands of `set` that take a selector."""


class Setter:
    """The changes of a command of `set`; made before anything is looked up, as flags are checked
    before objects.

    :param operation: what is printed of a changed object ("image updated").
    :raises CliError: for wrong values of --dry-run and -o.
    """

    def __init__(self, factory: Factory, options: SetOptions, operation: str) -> None:
        self.factory = factory
        self.options = options
        self.strategy = factory.dry_run_strategy(options)
        self.print = printer_for(factory, options, operation, self.strategy, typed=True)

    def refuse_local_server(self) -> None:
        """Raise CliError for a command that may not contact the cluster, and is to do so for a dry
        run."""
        if self.options.local and self.strategy == SERVER:
            raise CliError(
                "cannot specify --local and --dry-run=server - did you mean --dry-run=client?"
            )

    def find(self, args: Sequence[str], *, drops_words: bool = False) -> Result:
        """Find the objects to change, as the cluster has them, or as their files say with --local.

        :param drops_words: with --local drop words instead of refusing them; nothing can be looked
            up then.
        """
        local = self.options.local
        if local and args and not drops_words:
            raise CliError(LOCAL_RESOURCE)
        return Builder(
            self.factory,
            self.options,
            args=() if local else args,
            bare_types=self.options.all,
            latest=not local,
            local=local,
            typed=True,
        ).do()

    def infos(self, args: Sequence[str], *, drops_words: bool = False) -> list[Info]:
        """Return all objects to change, see :meth:`find`."""
        infos = self.find(args, drops_words=drops_words).all_infos()
        for info in infos:
            self.require_type(info)
        return infos

    def require_type(self, info: Info) -> None:
        """Raise CliError for an object whose Go type kubectl does not have."""
        type_name(info.content)
        if self.options.local:
            info.object = typed(info.content, info.source)

    def change_each(
        self,
        infos: Sequence[Info],
        change: Change,
        *,
        failed: str,
        errors: list[Exception] | None = None,
        always: bool = False,
    ) -> None:
        """Change every object and print it.

        :param failed: what comes before the message of a patch that the API refuses.
        :param errors: filled by ``change`` with errors that do not stop it; all errors are raised
            at the end.
        :param always: print also an object that the change leaves as it was.
        """
        errors = [] if errors is None else errors
        for info in infos:
            try:
                changed = self.changed_copy(info, change)
            except CliError as error:
                name = info.object_name
                if self.options.local:  # an object that was only read from a file has no resource
                    name = f"{info.printed_name}\n" if info.resource.group else info.printed_name
                errors.append(CliError(f"error: {name} {error}\n"))
                continue
            try:
                self.send(info, changed, always=always)
            except api_errors.Status as error:
                errors.append(CliError(f"{failed}{error}"))

        raise_all(errors)

    def changed_copy(self, info: Info, change: Change) -> Object:
        """Return the object as it should be. Raises CliError."""
        changed = copy.deepcopy(info.content)
        change(changed)
        if isinstance(self.options, RecordOptions) and self.options.record:
            record(changed, self.options)
        return changed

    def send(self, info: Info, changed: Object, *, always: bool) -> None:
        """Patch the object and print it; ``always``: also one that does not change. Raises
        Status."""
        patch, patch_type = two_way_patch(info.content, changed)
        if not patch and not always:
            return
        if not self.options.local and self.strategy != CLIENT:
            patch_options = PatchOptions(
                dry_run=self.strategy == SERVER, field_manager=self.options.field_manager
            )
            changed = self.factory.client.patch(
                info.resource.gvr,
                info.name,
                Patch(patch_type, patch),
                namespace=info.namespace,
                options=patch_options,
            )

        self.print(changed)


def refuse_all_of_selected(options: SetSelectedOptions) -> None:
    """Raise CliError for --all with a selector."""
    if options.all and options.selector:
        raise CliError("cannot set --all and --selector at the same time")


# --- words and containers -------------------------------------------------------------------------

TEMPLATED = {"DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}


def pod_spec_of(obj: Object) -> Object:
    """Return the pod spec inside an object. Raises CliError for kinds without one
    (``UpdatePodSpecForObject``)."""
    spec: Object = spec_of(obj)
    if obj["kind"] == "Pod":
        return spec
    if obj["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    elif obj["kind"] not in TEMPLATED:
        raise CliError(
            "the object is not a pod or does not have a pod template: "
            f"*{obj['apiVersion'].rpartition('/')[2]}.{obj['kind']}"
        )  # Go's type
    pod_spec: Object = spec["template"]["spec"]
    return pod_spec


def all_containers(spec: Object) -> Iterator[Object]:
    """Yield the containers, then the init containers."""
    yield from nested_list(spec, "containers")
    yield from nested_list(spec, "initContainers")


def select_containers(spec: Object, pattern: str) -> list[Object]:
    """Return the containers whose names match ``pattern``, in which ``*`` stands for any text."""
    expression = re.compile(".*".join(re.escape(part) for part in pattern.split("*")))
    return [
        container for container in all_containers(spec) if expression.fullmatch(container["name"])
    ]


def split_pairs(words: list[str], kind: str) -> tuple[list[str], dict[str, str]]:
    """Split words into resources and ``name=value`` pairs (``GetResourcesAndPairs``,
    ``ParsePairs``).

    Raises CliError.
    """
    resources: list[str] = []
    pairs: dict[str, str] = {}
    invalid: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if name and equals:
            pairs[name] = value
        elif word.endswith("-") and word != "-":
            invalid.append(word)
        elif pairs or invalid:
            raise CliError(f"all resources must be specified before {kind} changes: {word}")
        else:
            resources.append(word)

    if invalid:
        raise CliError(f"invalid {kind} format: {', '.join(invalid)}")
    return resources, pairs
