"""Who set which field: ``metadata.managedFields``, and server-side apply, which goes by it.

A set of fields is a set of paths (``fieldpath``); ``typed`` and ``merging`` walk two objects along their schema; an
``updater`` moves fields between managers; ``entries`` is how the API writes it down. Controllers' writes are never
tracked: what no entry names is told to be theirs when somebody asks (``tracking``), so that they pay nothing.
Upstream: ``sigs.k8s.io/structured-merge-diff``, ``apimachinery/pkg/util/managedfields``.
"""
