"""The programs of containers beside the shell's own words: each is a function of an Execution.

``UTILITIES`` has them by name. A module is imported when one of its programs is first run.
docs/shell.md lists the options that each knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubepy.lazy import lazy_imports
from kubepy.shell.utility import Utility

with lazy_imports():
    from kubepy.shell.utilities import (
        agnhost,
        archives,
        awk,
        curl,
        devices,
        digests,
        dumps,
        fields,
        filetree,
        listing,
        lookups,
        perl,
        python,
        reading,
        running,
        searching,
        sed,
        sorting,
        system,
        times,
        wget,
        words,
    )

UTILITIES: Mapping[str, Callable[[], Utility]] = {
    "/agnhost": lambda: agnhost.agnhost,
    "/agnhost-2": lambda: agnhost.agnhost,
    "arch": lambda: system.arch,
    "awk": lambda: awk.awk,
    "base64": lambda: digests.base64,
    "basename": lambda: words.basename,
    "cat": lambda: reading.cat,
    "chgrp": lambda: filetree.chown,
    "chmod": lambda: filetree.chmod,
    "chown": lambda: filetree.chown,
    "cmp": lambda: dumps.cmp,
    "cp": lambda: filetree.cp,
    "curl": lambda: curl.curl,
    "cut": lambda: fields.cut,
    "date": lambda: times.date,
    "dd": lambda: devices.dd,
    "df": lambda: system.df,
    "diff": lambda: dumps.diff,
    "dig": lambda: lookups.dig,
    "dirname": lambda: words.dirname,
    "du": lambda: listing.du,
    "egrep": lambda: searching.egrep,
    "env": lambda: running.env,
    "expr": lambda: words.expr,
    "fgrep": lambda: searching.fgrep,
    "find": lambda: listing.find,
    "fold": lambda: fields.fold,
    "free": lambda: system.free,
    "getent": lambda: lookups.getent,
    "grep": lambda: searching.grep,
    "gunzip": lambda: archives.gunzip,
    "gzip": lambda: archives.gzip,
    "head": lambda: reading.head,
    "hexdump": lambda: dumps.hexdump,
    "host": lambda: lookups.host,
    "hostname": lambda: system.hostname,
    "id": lambda: system.id_,
    "ln": lambda: filetree.ln,
    "ls": lambda: listing.ls,
    "md5sum": lambda: digests.md5sum,
    "mkdir": lambda: filetree.mkdir,
    "mktemp": lambda: filetree.mktemp,
    "mount": lambda: system.mount,
    "mv": lambda: filetree.mv,
    "nc": lambda: lookups.nc,
    "nice": lambda: running.nice,
    "nl": lambda: fields.nl,
    "nohup": lambda: running.nohup,
    "nproc": lambda: system.nproc,
    "nslookup": lambda: lookups.nslookup,
    "od": lambda: dumps.od,
    "paste": lambda: fields.paste,
    "perl": lambda: perl.perl,
    "ping": lambda: lookups.ping,
    "printenv": lambda: running.printenv,
    "ps": lambda: system.ps,
    "python": lambda: python.python,
    "python3": lambda: python.python,
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
    "sync": lambda: system.sync,
    "tac": lambda: reading.tac,
    "tail": lambda: reading.tail,
    "tar": lambda: archives.tar,
    "tee": lambda: reading.tee,
    "timeout": lambda: running.timeout,
    "touch": lambda: filetree.touch,
    "tr": lambda: fields.tr,
    "truncate": lambda: filetree.truncate,
    "uname": lambda: system.uname,
    "uniq": lambda: sorting.uniq,
    "uptime": lambda: system.uptime,
    "wc": lambda: reading.wc,
    "wget": lambda: wget.wget,
    "which": lambda: running.which,
    "whoami": lambda: system.whoami,
    "xargs": lambda: running.xargs,
    "xxd": lambda: dumps.xxd,
    "zcat": lambda: archives.zcat,
}


def find_utility(name: str) -> Utility | None:
    """Return the program of a name, None if there is none."""
    load = UTILITIES.get(name)
    if load:
        return load()
    return None
