"""The flags of ``get``. Upstream: ``kubectl/pkg/cmd/get/get_flags.go``."""

from __future__ import annotations

from kubepy.api.scheme import Resource
from kubepy.cli.runtime.flags import bool_flag, string_flag, string_slice_flag
from kubepy.cli.runtime.options import (
    AllNamespacesOptions,
    ChunkSizeOptions,
    FieldSelectorOptions,
    KustomizeOptions,
    PrintFlags,
    SelectorOptions,
    SubresourceOptions,
    filename_flag,
    output_flag,
    subresource_flag,
)
from kubepy.cli.runtime.tables import Style


class GetOptions(
    KustomizeOptions,
    SelectorOptions,
    FieldSelectorOptions,
    AllNamespacesOptions,
    SubresourceOptions,
    ChunkSizeOptions,
    PrintFlags,
):
    """The flags of ``get``."""

    watch: bool = bool_flag(
        "watch", "w", help="After listing/getting the requested object, watch for changes."
    )
    watch_only: bool = bool_flag(
        "watch-only",
        help="Watch for changes to the requested object(s), without listing/getting first.",
    )
    output_watch_events: bool = bool_flag(
        "output-watch-events",
        help="Output watch event objects when --watch or --watch-only is used.",
    )
    ignore_not_found: bool = bool_flag(
        "ignore-not-found", help="Suppress NotFound errors for objects that were named."
    )
    filename: list[str] = filename_flag("identifying the resource to get from the cluster.")
    subresource: str = subresource_flag("get")
    output: str = output_flag(
        "json, yaml, kyaml, name, go-template, go-template-file, template, templatefile, "
        "jsonpath, jsonpath-as-json, jsonpath-file, custom-columns, custom-columns-file, wide"
    )
    no_headers: bool = bool_flag(
        "no-headers",
        help="When using the default or custom-column output format, don't print headers.",
    )
    show_labels: bool = bool_flag(
        "show-labels", help="When printing, show all labels as the last column."
    )
    label_columns: list[str] = string_slice_flag(
        "label-columns", "L", help="Labels that are going to be presented as columns."
    )
    show_kind: bool = bool_flag(
        "show-kind", help="If present, list the resource type for the requested object(s)."
    )
    sort_by: str = string_flag(
        "sort-by",
        help="If non-empty, sort list types using this field specification, a "
        "JSONPath expression (e.g. '{.metadata.name}').",
    )
    server_print: bool = bool_flag(
        "server-print", default=True, help="If false, tables show names and ages only."
    )
    raw: str = string_flag(
        "raw",
        help="The path of a request, e.g. /api/v1/nodes or /readyz: print what a server "
        "would answer.",
    )

    @property
    def wants_table(self) -> bool:
        return self.output == "wide" or (not self.output and not self.template)

    @property
    def style(self) -> Style:
        """The appearance of tables."""
        return Style(
            wide=self.output == "wide",
            headers=not self.no_headers,
            with_kind=self.show_kind,
            labels=self.label_columns,
            show_labels=self.show_labels,
            own_columns=self.server_print,
            subresource=self.subresource,
        )


def style_for(resource: Resource, options: GetOptions, style: Style) -> Style:
    """Add the namespace for a namespaced type; like kubectl's, later tables of other types keep
    it."""
    return style._replace(
        with_namespace=style.with_namespace or (options.all_namespaces and resource.namespaced)
    )
