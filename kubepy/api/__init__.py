"""Kubernetes objects: kinds and resources, field types, selectors, patches, expression languages,
errors.

Objects are plain dicts, shaped as the JSON of the Kubernetes API. Nothing here opens a cluster.
Upstream: ``k8s.io/apimachinery``.
"""
