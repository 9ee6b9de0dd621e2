"""Kustomizations: folders that say how manifests are put together and changed.

``target`` reads a folder, its bases and components, and applies all steps in kustomize's order.
``plugins`` makes the generators and transformers from the fields of a kustomization, or from the
files in its ``generators``, ``transformers`` and ``validators``: ``generators`` make objects,
``patches`` (with ``merges``) and ``transformers`` change them, ``replacements`` and ``variables``
copy values between them. ``configurations`` has the fields that they change (``fieldspecs`` the
defaults), ``schemas`` the types that they know. ``references`` follows names that changed. A
``ResMap`` (``resources``) holds the objects with the ids that they had before. ``settings`` decodes
the kustomization file, ``files`` reads files, also over HTTP, ``repositories`` clones bases. What
is not supported is refused in one line. Upstream: ``sigs.k8s.io/kustomize/api``.
"""
