"""``kubepy git``: a state folder in a git repository.

``setup`` writes attributes and the repository's configuration, so that git merges and compares files of objects with
``merge-file``, ``diff-text`` and ``filter``; ``resolve`` settles the conflicts that git shows to no merge driver.
"""
