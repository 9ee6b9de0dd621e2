"""Kustomizations: folders that say how manifests are put together and changed.

``target`` reads a folder, its bases and components, and has every step done in kustomize's order: ``generators`` make
objects, ``patches`` and ``transformers`` change them, ``references`` follow names that changed. A ``Resource``
(``resources``) is an object with the names it had before. What is not supported says so in one line. Upstream:
``sigs.k8s.io/kustomize/api``.
"""
