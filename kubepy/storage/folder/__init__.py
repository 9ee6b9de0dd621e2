"""The store in a folder of YAML files, one object a file, and a SQLite database beside them.

The files are the truth. ``.kubepy/index.db`` is this machine's own (parsed objects, resource
versions, the journal, the change log, events) and is made again from the files when it is gone.

    store          the public face: snapshots, transactions, the change log
    transaction    changes gathered in memory, until they are committed together
    commit_files   a commit: stage, sync, record, rename files into place, mark written
    recovery       the rest of a commit whose process died, or that a power cut undid
    files          the files of the folder: read, write beside, rename into place, remove, sync
    paths          the path of an object's file, from its key and back
    manifest       an object as the bytes of its file, and as the JSON of its row
    scan           the object files that there are, and what stands where their folders should be
    compare        a file against its row: unchanged, edited, removed, or no object
    outside_edits  the edits of other programs, recorded as revisions
    reader         rows at one revision, corrected by the files that differ from them
    database       the tables of the index and their queries
    indexsql       the functions of indexes that SQLite can compute
    index          the index opened, rebuilt, or copied into memory
    access         folder and index of one process: opened, locked, brought up to date, rebuilt when damaged
    settings       ``kubepy.yaml``, and its changes as parts of commits
    snapshot       the index at one revision, for states
    copying        a new state folder: a copy of another, or what another store holds
    locks          locks that die with their process
    fsck           everything in which files and index disagree, and its repair
    misplaced      the files that are read by nobody
"""  # noqa: E501
