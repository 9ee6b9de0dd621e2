"""Read kustomizations one inside the other, and apply their steps in kustomize's order.

Upstream: ``kustomize/api/internal/target/kusttarget.go``,
``api/internal/builtins/SortOrderTransformer.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kubepy import KUSTOMIZE_VERSION
from kubepy.api.meta import Object, annotations_of, clone, labels_of, nested_list, nested_map
from kubepy.api.values.goformat import quote, to_json
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization import plugins, schemas
from kubepy.cli.kustomization.configurations import EMPTY, load_configurations, load_crds
from kubepy.cli.kustomization.fieldspecs import METADATA_LABELS
from kubepy.cli.kustomization.files import FileLoader, HttpStatusError, contents_of, open_folder
from kubepy.cli.kustomization.origins import (
    ORIGIN,
    Origin,
    annotate,
    origin_of_plugin,
    record_generator,
    record_transformer,
    remove_records,
)
from kubepy.cli.kustomization.references import fix_references
from kubepy.cli.kustomization.resources import (
    ORDER_FIRST,
    ORDER_LAST,
    KustomizedResource,
    ResMap,
    kind_ranks,
    load_resources,
    read_resources,
)
from kubepy.cli.kustomization.settings import read_settings
from kubepy.cli.kustomization.transformers import Transformer, hash_transformer, pairs_transformer
from kubepy.cli.kustomization.variables import declare, resolve, variables_of, written

Warn = Callable[[str], None]

LOCAL = "config.kubernetes.io/local-config"
MANAGED_BY = "app.kubernetes.io/managed-by"
# Notes that upstream keeps in annotations, and removes at the end.
BUILD_ANNOTATIONS = {
    *(
        f"internal.config.kubernetes.io/{name}"
        for name in (
            "previousKinds",
            "previousNames",
            "prefixes",
            "suffixes",
            "previousNamespaces",
            "allowNameChange",
            "allowKindChange",
            "refBy",
            "generatorBehavior",
            "needsHashSuffix",
            "path",
            "index",
            "seqindent",
            "id",
            "annotations-migration-resource-id",
            "helm-generated",
        )
    ),
    "config.kubernetes.io/index",
    "config.kubernetes.io/path",
    "config.k8s.io/id",
}
VALIDATED_BY = "validated-by"


def build(path: str, warn: Warn, *, restricted: bool = True) -> list[Object]:
    """Return the objects of a kustomization, in a folder or a repository, in the order in which
    they are printed.

    :param warn: takes warnings about deprecated fields and unused variables.
    :param restricted: files must lie in the folder of their kustomization.
    :raises CliError: for a kustomization that kustomize refuses, or that uses what is not supported
        here.
    """
    with schemas.renewed():
        loader = open_folder(path, restricted=restricted)
        try:
            return _build(loader, warn)
        finally:
            loader.leave()


def _build(loader: FileLoader, warn: Warn) -> list[Object]:
    target = KustTarget(loader, warn)
    metadata = nested_list(target.settings, "buildMetadata")
    target.origin = Origin() if metadata else None
    target.load_schema(top=True)
    resources = ResAccumulator()
    target.accumulate(resources)
    hash_transformer(loader, {})(resources)
    fix_references(resources, resources.config.references)
    resolve(resources, resources.config.specs.get("varReference", []), warn)
    kept = [
        resource
        for resource in resources
        if annotations_of(resource.object).get(LOCAL, "false") == "false"
    ]
    remove_records(resources, metadata)
    for resource in kept:
        # Upstream rewrites all annotations when it removes its own; values that are not strings
        # become strings.
        annotations = annotations_of(resource.object)
        for key, value in list(annotations.items()):
            if key in BUILD_ANNOTATIONS:
                del annotations[key]
            else:
                annotations[key] = resource.text_at(("metadata", "annotations", key), value)
        if not annotations:
            resource.object["metadata"].pop("annotations", None)

    if "managedByLabel" in metadata:
        pairs_transformer({MANAGED_BY: f"kustomize-{KUSTOMIZE_VERSION}"}, METADATA_LABELS)(
            resources
        )

    return [resource.object for resource in in_order(kept, target.settings.get("sortOptions"))]


@contextmanager
def _prefixed(prefix: str) -> Iterator[None]:
    """Put ``prefix`` before the text of a CliError, except where it says that something is not
    supported."""
    try:
        yield
    except CliError as error:
        if "not supported" in str(error):
            raise
        raise CliError(f"{prefix}: {error}") from None


class ResAccumulator(ResMap):
    """The objects of a kustomization, and the configuration of its transformers, which overlays
    take over."""

    def __init__(self) -> None:
        super().__init__()
        self.config = EMPTY


class KustTarget:
    """A kustomization: its loader and its settings.

    :param origin: where it is, if the origins of objects are kept.
    :param metadata: the options in ``buildMetadata`` of the kustomization where the build began.
    """

    def __init__(
        self,
        loader: FileLoader,
        warn: Warn,
        origin: Origin | None = None,
        metadata: Sequence[str] = (),
    ) -> None:
        self.loader = loader
        self.warn = warn
        self.file, text = loader.settings()
        self.settings = read_settings(text, loader.root, warn)
        self.origin = origin
        if origin is not None:
            self.settings["buildMetadata"] = metadata

    def load_schema(self, *, top: bool) -> None:
        """Apply ``openapi``. Raises CliError."""
        openapi = nested_map(self.settings, "openapi")
        if "path" in openapi:
            contents = contents_of(self.loader.text(openapi["path"]), old_booleans=True)
        else:
            contents = []
        document = contents[0] if contents else {}
        schemas.active.configure(openapi, document if "path" in openapi else None, top=top)

    def accumulate(self, resources: ResAccumulator) -> None:
        """Add the resources of the kustomization, then transform everything in there. Raises
        CliError."""
        settings = self.settings
        loader = self.loader
        with _prefixed("accumulating resources"):
            for path in settings["resources"]:
                self._accumulate_path(path, resources)
        config = load_configurations(loader, nested_list(settings, "configurations"))
        resources.config = resources.config.merged(config)
        paths = nested_list(settings, "crds")
        with _prefixed(f"loading CRDs [{' '.join(paths)}]"):
            config = load_crds(loader, paths)
        resources.config = resources.config.merged(config)
        self._generate(resources)
        for path in nested_list(settings, "components"):
            with _prefixed("accumulating components"):
                self._accumulate_component(path, resources)
        self._transform(resources)
        self._validate(resources)
        variables = variables_of(settings)
        with _prefixed(
            f"merging vars [{' '.join(written(entry) for entry in settings.get('vars') or ())}]"
        ):
            declare(resources, variables)

    # --- other files and kustomizations

    def _accumulate_path(self, path: str, resources: ResAccumulator) -> None:
        """Add the objects of a file; when it cannot be read as one, those of the kustomization in
        that folder."""
        step = "accumulating"
        try:
            documents = ResMap(load_resources(self.loader, path))
            if self.origin is not None:
                for resource in documents:
                    annotate(resource, ORIGIN, self.origin.append(path).text)
            step = "merging"
            resources.take_in(documents)
            return
        except CliError as error:
            problem = error

        file_problem = f"{step} resources from '{path}': {problem}"
        if isinstance(problem, HttpStatusError):
            raise CliError(file_problem)
        try:
            base = self.loader.enter(path)
        except CliError as error:
            if str(problem).startswith("MalformedYAMLError") and "timeout running" not in str(
                error
            ):
                raise CliError(file_problem) from None
            raise CliError(f"accumulation err='{file_problem}': {error}") from None

        with _prefixed(f"accumulation err='{file_problem}'"):
            self._accumulate_folder(base, path, resources)

    def _accumulate_component(self, path: str, resources: ResAccumulator) -> None:
        try:
            base = self.loader.enter(path)
        except CliError as error:
            raise CliError(f"loader.New {quote(str(error))}") from None
        try:  # a component transforms what is there already
            self._accumulate_folder(base, path, resources, component=True)
        except CliError as error:
            raise CliError(f"accumulateDirectory: {quote(str(error))}") from None

    def _accumulate_folder(
        self, loader: FileLoader, path: str, resources: ResAccumulator, *, component: bool = False
    ) -> None:
        """Accumulate another kustomization, which must be a Component or must not be one. Raises
        CliError."""
        try:
            with _prefixed(f"couldn't make target for path '{loader.root}'"):
                origin = self.origin.append(path) if self.origin is not None else None
                inner = KustTarget(
                    loader, self.warn, origin, nested_list(self.settings, "buildMetadata")
                )
            inner.load_schema(top=False)
            kind = inner.settings["kind"]
            if component and kind != "Component":
                raise CliError(
                    f"expected kind 'Component' for path '{loader.root}' but got '{kind}'"
                )
            if not component and kind == "Component":
                raise CliError(f"expected kind != 'Component' for path '{loader.root}'")
            added = resources if component else ResAccumulator()
            with _prefixed(f"recursed accumulation of path '{loader.root}'"):
                inner.accumulate(added)
        finally:
            loader.leave()

        with _prefixed(f"recursed merging from path '{loader.root}'"):
            if component:
                resources.config = EMPTY.merged(resources.config)
            else:
                resources.take_in(added)
                resources.config = resources.config.merged(added.config)

    # --- generators, transformers, validators

    def _configurations(self, entries: list[str]) -> ResMap:
        """Return the configurations of plugins, which are given inline, in files or in
        kustomizations."""
        configurations = ResAccumulator()
        paths = []
        for entry in entries:
            try:
                inline = ResMap(read_resources(entry))
                for resource in inline if self.origin is not None else ():
                    annotate(resource, ORIGIN, (self.origin or Origin()).append(self.file).text)
                configurations.take_in(inline)
            except CliError:
                paths.append(entry)
        for path in paths:
            self._accumulate_path(path, configurations)
        return configurations

    def _generate(self, resources: ResMap) -> None:
        generators = [
            (self._origin_of(kind), generator)
            for kind, generator in plugins.built_in_generators(self.loader, self.settings)
        ]
        with _prefixed("loading generator plugins"):
            generators += [
                (origin_of_plugin(resource), plugins.external_generator(self.loader, resource))
                for resource in self._configurations(nested_list(self.settings, "generators"))
            ]

        for origin, generate in generators:
            generated = generate()
            record_generator(generated, origin)
            with _prefixed("merging from generator"):
                for resource in generated:
                    resources.absorb(resource)

    def _origin_of(self, kind: str) -> Origin | None:
        if self.origin is not None:
            return self.origin.plugin(kind, self.file)
        return None

    def _external_transformers(self, field: str) -> list[tuple[Origin | None, Transformer]]:
        return [
            (origin_of_plugin(resource), plugins.external_transformer(self.loader, resource))
            for resource in self._configurations(self.settings.get(field) or [])
        ]

    def _transform(self, resources: ResAccumulator) -> None:
        built_in = [
            (self._origin_of(kind), transformer)
            for kind, transformer in plugins.built_in_transformers(
                self.loader, self.settings, resources.config
            )
        ]
        for origin, transform in [*built_in, *self._external_transformers("transformers")]:
            transform(resources)
            record_transformer(resources, origin)
            resources.drop_deleted()
            for resource in resources:
                resource.check()
                resource.synchronize()

    def _validate(self, resources: ResMap) -> None:
        """Run the validators, which may add a label but change nothing else. Raises CliError."""
        for _, validate in self._external_transformers("validators"):
            before = [(clone(resource.object), resource.ids) for resource in resources]
            validate(resources)
            after = [(_without_mark(resource.object), resource.ids) for resource in resources]
            if len(before) != len(after):
                raise CliError(
                    "validator shouldn't modify the resource map: lists have different number of "
                    "entries: "
                    f"{len(before)} and {len(after)}"
                )
            for (old, old_ids), (new, new_ids) in zip(before, after, strict=True):
                if (old, old_ids) != (new, new_ids):
                    raise CliError(
                        "validator shouldn't modify the resource map: nodes unequal: \n -- "
                        f"{to_json(old)},\n -- {to_json(new)}"
                    )


def _without_mark(obj: Object) -> Object:
    """Return an object without the label by which a validator may mark it."""
    copy: Object = clone(obj)
    if VALIDATED_BY in labels_of(copy):
        del copy["metadata"]["labels"][VALIDATED_BY]
        if not copy["metadata"]["labels"]:
            del copy["metadata"]["labels"]
    return copy


def in_order(
    resources: list[KustomizedResource], options: Object | None
) -> list[KustomizedResource]:
    """Sort by kind, what others depend on first, or as ``sortOptions`` says. Raises CliError."""
    order, legacy = (
        ("legacy", None)
        if options is None
        else (options.get("order"), options.get("legacySortOptions"))
    )
    if order not in ("fifo", "legacy"):
        raise CliError("the field 'sortOptions.order' must be one of [fifo, legacy]")
    if order == "fifo" and legacy is not None:
        raise CliError(
            "the field 'sortOptions.legacySortOptions' is set but the selected sort order is "
            "'fifo', "
            "not 'legacy'"
        )

    if order == "fifo":
        return resources
    if legacy is None:
        ranks = kind_ranks(ORDER_FIRST, ORDER_LAST)
    else:
        ranks = kind_ranks(nested_list(legacy, "orderFirst"), nested_list(legacy, "orderLast"))

    return sorted(
        resources,
        key=lambda resource: (ranks.get(resource.id.kind, 0), resource.id.legacy_sort_key),
    )
