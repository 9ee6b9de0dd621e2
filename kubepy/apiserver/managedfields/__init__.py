"""The managers of fields: ``metadata.managedFields``, and server-side apply, which goes by it.

A set of fields is a set of paths (``fieldpath``). ``typed`` and ``merging`` walk two objects along
their schema, ``updater`` moves fields between managers, and ``entries`` reads and writes
managedFields. Writes of controllers are not tracked, so that they cost nothing: ``tracking`` infers
their fields when somebody asks. Upstream: ``sigs.k8s.io/structured-merge-diff``,
``apimachinery/pkg/util/managedfields``.
"""
