"""The folder that ``KUBEBUILDER_ASSETS`` names: three small programs that run this installation.

It is in the user's cache, is made once for each installation and choice of controllers, and is
never on the PATH, where its programs would stand before others of their names.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import tempfile

from kubepy.server.envtest import etcd, flags

MODULE = "kubepy.cli.envtest_apiserver"
APISERVER, ETCD, KUBECTL = "kube-apiserver", "etcd", "kubectl"


def make_assets(controllers: str) -> str:
    """Make the folder, unless it is there; return its path. Raises OSError.

    :param controllers: the controllers that run beside the API server where the environment names
        none.
    """
    contents = programs(controllers)
    digest = hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest()[:12]
    parent = os.path.join(cache_folder(), "envtest")
    folder = os.path.join(parent, digest)
    if all(_has(os.path.join(folder, name), text) for name, text in contents.items()):
        return folder
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for name, text in contents.items():
        _put(folder, name, text)
    return folder


def cache_folder() -> str:
    """Return the folder of kubepy in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(os.path.abspath(cache), "kubepy")


def programs(controllers: str) -> dict[str, str]:
    """Return the text of each program by its name."""
    python = shlex.quote(sys.executable)
    return {
        APISERVER: _script(
            flags.help_text(),
            f'exec {python} -P -m {MODULE} {shlex.quote(controllers)} "$@"',
        ),
        ETCD: _script(etcd.HELP, f'exec {python} -I -S {shlex.quote(etcd.__file__)} "$@"'),
        KUBECTL: _KUBECTL,
    }


def _script(help_text: str, command: str) -> str:
    """Return a program that answers ``--help`` itself, so that nothing has to start for it."""
    return (
        "#!/bin/sh\n"
        'for word in "$@"; do\n'
        '    case "$word" in --help | -h)\n'
        "        cat <<'END-OF-HELP'\n"
        f"{help_text}"
        "END-OF-HELP\n"
        "        exit 0 ;;\n"
        "    esac\n"
        "done\n"
        f"{command}\n"
    )


# A kubectl that speaks to a server: the first one on the PATH that is not in this folder.
_KUBECTL = """#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd -P)
IFS=:
for folder in $PATH; do
    case "$folder" in "") folder=. ;; esac
    if [ -x "$folder/kubectl" ] && [ "$(cd "$folder" && pwd -P)" != "$here" ]; then
        unset IFS
        exec "$folder/kubectl" "$@"
    fi
done
echo "kubectl: no other kubectl on the PATH: kubepy has none that speaks to a server" >&2
exit 1
"""


def _has(path: str, text: str) -> bool:
    """Return whether a program is there as it should be."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read() == text and os.access(path, os.X_OK)
    except (OSError, UnicodeDecodeError):
        return False


def _put(folder: str, name: str, text: str) -> None:
    """Put a program in place at once: another process may start it meanwhile. Raises OSError."""
    descriptor, path = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)
    os.replace(path, os.path.join(folder, name))
