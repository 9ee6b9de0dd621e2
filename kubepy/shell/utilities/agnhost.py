"""The program of the image agnhost, as far as it prints something and ends: what Kubernetes' own
tests run to see the files of a container.

Its servers are in the table of well-known images (``kubepy/kubelet/data/images.json``). Upstream:
``test/images/agnhost``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from kubepy.quoting import quote
from kubepy.shell.files import FOLDER, FileError
from kubepy.shell.processfiles import system_of
from kubepy.shell.utilities.inputs import absolute, to_text
from kubepy.shell.utilities.program import Arguments, ArgumentStyle, program
from kubepy.shell.utility import Execution, Unknown

NEW_CONTENT = "mount-tester new file\n"
NEW_MODES = {
    "new_file_0644": 0o644,
    "new_file_0666": 0o666,
    "new_file_0660": 0o660,
    "new_file_0777": 0o777,
}
# Numbers of file systems, in the words of statfs(2); that of tmpfs is told by name.
SYSTEM_NUMBERS = {"ext4": "61267", "overlay": "2035054128", "tmpfs": "tmpfs"}
SPECIAL_MODES = ((0o4000, "u"), (0o2000, "g"), (0o1000, "t"))
RETRY_SECONDS, RETRY_EVERY = 180, 2


class _Problem(Exception):
    """An operation on a file that fails, with what Go says of it."""


@program(
    "--fs_type=PATH",
    "--file_mode=PATH",
    "--file_perm=PATH",
    "--file_owner=PATH",
    "--file_content=PATH",
    "--new_file_0644=PATH",
    "--new_file_0666=PATH",
    "--new_file_0660=PATH",
    "--new_file_0777=PATH",
)
def mounttest(call: Execution, options: Arguments) -> int:
    """Make files, and print the types, modes, owners and contents of files."""
    actions: list[tuple[str, Callable[[Execution, str], None]]] = [("fs_type", _print_system)]
    for name, mode in NEW_MODES.items():
        actions.append((name, _writer(mode)))
    actions.append(("file_mode", _print_mode))
    actions.append(("file_perm", _print_permissions))
    actions.append(("file_owner", _print_owner))
    actions.append(("file_content", _print_content))
    status = 0
    for name, action in actions:
        path = options.get(name)
        if not path:
            continue
        try:
            action(call, path)
        except _Problem as problem:
            call.out(f"{problem}\n")
            status = 1
    return status


@program(
    "dns-server-list",
    "dns-suffix",
    "entrypoint-tester",
    "etc-hosts",
    "mounttest",
    style=ArgumentStyle(is_raw=True),
)
def agnhost(call: Execution, options: Arguments) -> int:
    """Print files, options or arguments; the servers of the image are no part of this."""
    command, *rest = options.operands or [""]
    if command == "entrypoint-tester":
        call.out(f"[{' '.join([call.name, *call.args])}]\n")
        return 0
    if command == "mounttest":
        call.args = rest
        return mounttest(call)
    if command == "etc-hosts" and not rest:
        call.out(_text(call, "/etc/hosts") + "\n")
        return 0
    if command == "dns-suffix" and not rest:
        call.out(",".join(_resolver(call, "search")) + "\n")
        return 0
    if command == "dns-server-list" and not rest:
        call.out(",".join(_resolver(call, "nameserver")) + "\n")
        return 0
    raise Unknown(f"agnhost {command}")


def _text(call: Execution, path: str) -> str:
    try:
        return to_text(call.files.read(path))
    except FileError as error:
        raise Unknown(f"agnhost without {path}: {error.problem}") from None


def _resolver(call: Execution, word: str) -> list[str]:
    """Return the values of an option of the resolver."""
    values: list[str] = []
    for line in _text(call, "/etc/resolv.conf").splitlines():
        first, *rest = line.split() or [""]
        if first == word:
            values += rest
    return values


# --- files ----------------------------------------------------------------------------------------


def _print_system(call: Execution, path: str) -> None:
    name = absolute(call, path)
    if not call.files.exists(name):
        raise _Problem(f"error from statfs({quote(path)}): no such file or directory")
    number = SYSTEM_NUMBERS[system_of(call.files, name)]
    call.out(f"mount type of {quote(path)}: {number}\n")


def _writer(mode: int) -> Callable[[Execution, str], None]:
    def write(call: Execution, path: str) -> None:
        name = absolute(call, path)
        own_mode = None if call.files.exists(name) else mode
        try:
            call.files.write(
                name,
                NEW_CONTENT.encode(),
                now=call.now,
                mode=own_mode,
            )
        except FileError as error:
            reason = f"open {path}: {error.problem.lower()}"
            raise _Problem(f"error writing new file {quote(path)}: {reason}") from None
        _print_content(call, path)

    return write


def _print_mode(call: Execution, path: str) -> None:
    kind, mode, _, _ = _status(call, path, "Stat")
    letters = "d" if kind == FOLDER else ""
    for bit, letter in SPECIAL_MODES:
        if mode & bit:
            letters += letter
    call.out(f"mode of file {quote(path)}: {letters or '-'}{_permissions(mode)}\n")


def _print_permissions(call: Execution, path: str) -> None:
    _, mode, _, _ = _status(call, path, "Stat")
    call.out(f"perms of file {quote(path)}: -{_permissions(mode)}\n")


def _print_owner(call: Execution, path: str) -> None:
    _, _, user, group = _status(call, path, "stat")
    call.out(f"owner UID of {quote(path)}: {user}\nowner GID of {quote(path)}: {group}\n")


def _status(call: Execution, path: str, function: str) -> tuple[str, int, int, int]:
    try:
        status = call.files.stat(absolute(call, path))
    except FileError as error:
        reason = f"stat {path}: {error.problem.lower()}"
        raise _Problem(f"error from {function}({quote(path)}): {reason}") from None
    return status.kind, status.mode, status.user, status.group


def _permissions(mode: int) -> str:
    letters = ""
    for place, letter in enumerate("rwxrwxrwx"):
        letters += letter if mode & (0o400 >> place) else "-"
    return letters


def _print_content(call: Execution, path: str) -> None:
    try:
        data = call.files.read(absolute(call, path))
    except FileError as error:
        reason = f"open {path}: {error.problem.lower()}"
        raise _Problem(f"error reading file content for {quote(path)}: {reason}") from None
    call.out(f"content of file {quote(path)}: ")
    call.out(data)
    call.out("\n")


# --- a loop ---------------------------------------------------------------------------------------


def loop_script(args: list[str]) -> str:
    """Return the script that does what ``mounttest --file_content_in_loop`` does; "" for arguments
    of which the model knows no script."""
    values = dict(argument.removeprefix("--").split("=", 1) for argument in args if "=" in argument)
    path = values.pop("file_content_in_loop", "")
    seconds = values.pop("retry_time", str(RETRY_SECONDS))
    breaks = values.pop("break_on_expected_content", "true") == "true"
    if not path or not seconds.isdigit() or values:
        return ""
    rounds = -(-int(seconds) // RETRY_EVERY)
    file = shlex.quote(path)
    title = shlex.quote(f"content of file {quote(path)}: ")
    missing = f"Error reading file {path}: open {path}: no such file or directory, retrying"
    end = ""
    if breaks:
        expected = shlex.quote(NEW_CONTENT.rstrip("\n"))
        end = f'if [ "$(cat {file})" = {expected} ]; then exit 0; fi; '
        end += f"echo 'Unexpected content. Expected: {NEW_CONTENT}. Retrying'; "
    return (
        f"for round in $(seq {rounds}); do "
        f"if [ -f {file} ]; then printf %s {title}; cat {file}; echo; {end}"
        f"else echo {shlex.quote(missing)}; fi; sleep {RETRY_EVERY}; done"
    )
