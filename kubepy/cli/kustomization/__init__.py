"""Kustomizations: folders that say how manifests are put together and changed.

``target`` reads a folder, its bases and components, and applies all steps in kustomize's order: ``generators`` make
objects, ``patches`` and ``transformers`` change them (``fieldspecs`` lists the fields), ``replacements`` and
``variables`` copy values between them, ``references`` follow names that changed. A ``ResMap`` (``resources``) holds the
objects with the ids that they had before. ``settings`` checks the kustomization file; what is not supported is refused
in one line. Upstream: ``sigs.k8s.io/kustomize/api``.
"""
