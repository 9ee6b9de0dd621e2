"""The programs of containers beside the shell's own words: each is a function of an Invocation.

``UTILITIES`` has them by name. A module is imported when one of its programs is first run.
docs/shell.md lists the options that each knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubepy.lazy import lazy_imports
from kubepy.shell.utility import Utility

with lazy_imports():
    from kubepy.shell.utilities import (
        awk,
        digests,
        dumps,
        fields,
        filetree,
        listing,
        reading,
        searching,
        sed,
        sorting,
        times,
        words,
    )

UTILITIES: Mapping[str, Callable[[], Utility]] = {
    "awk": lambda: awk.awk,
    "base64": lambda: digests.base64,
    "basename": lambda: words.basename,
    "cat": lambda: reading.cat,
    "chgrp": lambda: filetree.chown,
    "chmod": lambda: filetree.chmod,
    "chown": lambda: filetree.chown,
    "cmp": lambda: dumps.cmp,
    "cp": lambda: filetree.cp,
    "cut": lambda: fields.cut,
    "date": lambda: times.date,
    "diff": lambda: dumps.diff,
    "dirname": lambda: words.dirname,
    "du": lambda: listing.du,
    "egrep": lambda: searching.egrep,
    "expr": lambda: words.expr,
    "fgrep": lambda: searching.fgrep,
    "find": lambda: listing.find,
    "fold": lambda: fields.fold,
    "grep": lambda: searching.grep,
    "head": lambda: reading.head,
    "hexdump": lambda: dumps.hexdump,
    "ln": lambda: filetree.ln,
    "ls": lambda: listing.ls,
    "md5sum": lambda: digests.md5sum,
    "mkdir": lambda: filetree.mkdir,
    "mktemp": lambda: filetree.mktemp,
    "mv": lambda: filetree.mv,
    "nl": lambda: fields.nl,
    "od": lambda: dumps.od,
    "paste": lambda: fields.paste,
    "readlink": lambda: filetree.readlink,
    "realpath": lambda: filetree.realpath,
    "rev": lambda: reading.rev,
    "rm": lambda: filetree.rm,
    "rmdir": lambda: filetree.rmdir,
    "sed": lambda: sed.sed,
    "seq": lambda: words.seq,
    "sha1sum": lambda: digests.sha1sum,
    "sha256sum": lambda: digests.sha256sum,
    "sha512sum": lambda: digests.sha512sum,
    "sort": lambda: sorting.sort,
    "stat": lambda: listing.stat,
    "strings": lambda: dumps.strings,
    "tac": lambda: reading.tac,
    "tail": lambda: reading.tail,
    "tee": lambda: reading.tee,
    "touch": lambda: filetree.touch,
    "tr": lambda: fields.tr,
    "truncate": lambda: filetree.truncate,
    "uniq": lambda: sorting.uniq,
    "wc": lambda: reading.wc,
    "xxd": lambda: dumps.xxd,
}


def find_utility(name: str) -> Utility | None:
    """Return the program of a name, None if there is none."""
    load = UTILITIES.get(name)
    return load() if load else None
