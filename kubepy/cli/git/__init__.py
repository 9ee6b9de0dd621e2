"""``kubepy git``: a state folder in a git repository.

``setup`` writes attributes and the repository's configuration, so that git merges and compares
files of objects with ``merge-file`` (``merging``) and ``diff-text`` (``text``). With
``--intent-only`` git stores objects without what the system writes: ``filter``, and ``refresh`` for
what git calls modified then (``intent``). ``resolve`` settles the conflicts that git shows to no
merge driver. ``files`` reads the file of an object; ``repository`` runs git.
"""
