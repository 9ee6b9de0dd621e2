"""The user's editor on a temporary file. Upstream: ``kubectl/pkg/cmd/util/editor/editor.go``."""

from __future__ import annotations

import os
import subprocess

from kubepy.api.values.goformat import quote
from kubepy.cli.errors import CliError
from kubepy.cli.reading import read_string
from kubepy.cli.runtime.session import Session
from kubepy.cli.runtime.temporary import create_file

# Scripts that look for the files of kubectl find these.
PREFIX = "kubectl-edit-"


def launch(session: Session, text: str, suffix: str) -> tuple[str, str]:
    """Let the user change a text: what became of it, and the file that holds it. Raises CliError."""
    path = create_file(PREFIX, suffix, text)
    session.stdout.flush()
    words, name = command(path)
    try:
        status = subprocess.run(words, check=False).returncode
    except OSError:
        os.unlink(path)
        raise CliError(f"unable to launch the editor {quote(name)}") from None
    if status:
        os.unlink(path)
        raise CliError(f"there was a problem with the editor {quote(name)}")
    return read_string(path).replace("\r\n", "\n"), path


def command(path: str) -> tuple[list[str], str]:
    """The words of the editor's command line, and how messages name it: an editor with quotes goes to the shell."""
    editor = os.environ.get("KUBE_EDITOR") or os.environ.get("EDITOR") or "vi"
    if " " not in editor:
        return [editor, path], editor
    if not any(quote in editor for quote in "\"'\\"):
        return [*editor.split(" "), path], editor
    shell = os.environ.get("SHELL") or "/bin/bash"
    return [shell, "-c", f'{editor} "{path}"'], f"{shell} -c {editor}"


# --- comments -----------------------------------------------------------------------------------------------------


def without_comments(text: str) -> object:
    """What counts of a text: the content of its first document if that is YAML, else its lines that are no comments."""
    from kubepy.storage.yaml import YamlError, load_each

    try:
        return next((document.object for document in load_each(text)), None)
    except YamlError:
        return without_comment_lines(text)


def without_comment_lines(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line for line in lines if not _is_comment(line.strip()))


def _is_comment(line: str) -> bool:
    return line.startswith("#") and not line.startswith("#!")


def has_lines(text: str) -> bool:
    """Whether there is anything but comments."""
    return any(line.strip() and not line.strip().startswith("#") for line in text.splitlines())
