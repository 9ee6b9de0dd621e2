"""Objects in the user's editor, again and again until the edited objects are accepted or the user
gives up.

:class:`Editing` knows the file and its rounds; the caller says what becomes of the edited objects.
Upstream: ``kubectl/pkg/cmd/util/editor/{editoptions,editor}.go``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kubepy.cli.errors import CliError, SilentExit, is_expected
from kubepy.cli.files import create_file, read_string
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.manifests import read_stream
from kubepy.cli.runtime.options import EditorOptions, PrintFlags, ValidateOptions
from kubepy.cli.runtime.output import JSON_AND_YAML, document, no_printer, requested
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.cli.runtime import validation as manifest_validation
    from kubepy.storage import yaml

OBJECT_HEADER = """\
# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
"""
LAST_APPLIED_HEADER = """\
# Please edit the 'last-applied-configuration' annotations below.
# Lines beginning with a '#' will be ignored, and an empty file will abort the edit.
#
"""


class EditingOptions(PrintFlags, ValidateOptions, EditorOptions):
    """The flags of commands that open an editor."""


class Reason(NamedTuple):
    """A reason why a file has to be edited again: shown in its comments."""

    head: str
    details: Sequence[str] = ()

    @property
    def comment(self) -> str:
        lines = [
            f"{self.head}{':' if self.details else ''}",
            *(f"* {detail}" for detail in self.details),
        ]
        return "".join("# " + line.replace("\n", "\n# ") + "\n" for line in lines) + "#\n"


class Round:
    """One run of the editor: the text that came back, its file, and the errors of its objects."""

    def __init__(self, text: str = "", path: str = "") -> None:
        self.text = text
        self.path = path
        self.reasons: list[Reason] = []
        self.retryable = 0
        self.not_found = 0

    def add_error(self, error: Exception, info: Info) -> str:
        """Add an error that the cluster answered with; returns the message for it."""
        subject = f"{info.resource.key} {quote(info.name)}"
        if isinstance(error, api_errors.Invalid):
            causes = [f"{cause.field}: {cause.message}" for cause in error.causes]
            self.reasons.append(Reason(f"{subject} was not valid", causes))
            return f"error: {subject} is invalid"
        if isinstance(error, api_errors.NotFound):
            self.not_found += 1
            return f"error: {subject} could not be found on the server"
        self.retryable += 1
        return f"error: {subject} could not be patched: {error}"

    def remove(self) -> None:
        if self.path:
            os.unlink(self.path)
            self.path = ""


# Takes the original and the edited objects, and the round; raises an error that ends the command.
Change = Callable[[list[Info], list[Info], Round], None]


class Editing:
    """The editing of objects in a file.

    :param change: called with the edited objects.
    :param header: goes before YAML.
    """

    def __init__(
        self, factory: Factory, options: EditingOptions, change: Change, header: str = OBJECT_HEADER
    ) -> None:
        self.factory = factory
        self.change = change
        self.style = requested(options)[0] or "yaml"
        self.header = "" if self.style == "json" else header
        self.output = options.output
        self.validation = options.field_validation()
        self.line_end = "\r\n" if options.windows_line_endings else "\n"

    def edit(self, infos: list[Info]) -> None:
        """Edit objects. Raises CliError and Status; stderr names the files with changes that were
        refused."""
        objects = [info.content for info in infos]
        if self.style not in JSON_AND_YAML:
            raise no_printer(self.output, JSON_AND_YAML)
        original = document(
            self.style,
            objects[0]
            if len(objects) == 1
            else {"apiVersion": "v1", "items": objects, "kind": "List", "metadata": {}},
        )
        last = Round()
        while True:
            current = self._launched(original, last)
            if problem := problem_of(self.factory, current.text, self.validation):
                reason = f'<nil>: Invalid value: "The edited file failed validation": {problem}'
                subject = f"{infos[0].resource.key} {quote(infos[0].name)}"
                current.reasons.append(Reason(f"{subject} was not valid", [reason]))
                self.factory.say(f"error: {subject} is invalid")
            elif self._is_done(infos, original, current):
                return
            last = current

    def _launched(self, original: str, last: Round) -> Round:
        text = self.header + "".join(reason.comment for reason in last.reasons if self.header)
        text += without_comment_lines(last.text) if last.reasons else original
        try:
            current = Round(
                *launch(
                    self.factory,
                    text.replace("\n", self.line_end),
                    ".json" if self.style == "json" else ".yaml",
                )
            )
        except CliError:
            self._keep(last)
            raise

        if last.reasons and without_comments(last.text) == without_comments(current.text):
            last.remove()
            self._keep(current)
            raise CliError("Edit cancelled, no valid changes were saved.")

        last.remove()
        return current

    def _is_done(self, infos: list[Info], original: str, current: Round) -> bool:
        """Apply the changes of a round; return False if the file has to be edited again."""
        if without_comments(original) == without_comments(current.text):
            current.remove()
            self.factory.say("Edit cancelled, no changes made.")
            return True

        if not has_lines(current.text):
            current.remove()
            self.factory.say("Edit cancelled, saved file was empty.")
            return True

        updated, errors = Result(
            entry
            for manifest in read_stream(self.factory, current.text, "edited-file")
            for entry in manifest.entries
        ).infos()
        if errors:
            current.reasons.append(Reason(f"The edited file had a syntax error: {errors[0]}"))
            return False
        try:
            self.change(infos, updated, current)
        except Exception as error:
            if is_expected(error):
                self._keep(current)
            raise

        if current.retryable:
            self.factory.say(
                f"You can run `kubepy replace -f {current.path}` to try this update again."
            )
            raise SilentExit

        if current.not_found:
            self.factory.say(
                f"The edits you made on deleted resources have been saved to {quote(current.path)}"
            )
            raise SilentExit

        if current.reasons:
            return False
        current.remove()
        return True

    def _keep(self, current: Round) -> None:
        if current.path and os.path.exists(current.path):
            self.factory.say(f"A copy of your changes has been stored to {quote(current.path)}")


def problem_of(factory: Factory, text: str, validation: str) -> str:
    """Return what keeps a text from being objects, "" for nothing (``Schema.ValidateBytes``)."""
    if validation == "Ignore":
        return ""
    try:
        if text.lstrip().startswith("{"):
            content = yaml.read_json(text)
        else:
            content = next((document.object for document in yaml.load_each(text)), None)
    except yaml.YamlError as error:
        return str(error)
    problems = manifest_validation.problems_of(factory, content, validation)
    if problems:
        return manifest_validation.one_text(problems)
    return ""


def place(factory: Factory, info: Info) -> None:
    """Give an edited object its namespace. Raises CliError if it names another than the command
    works in."""
    if not info.resource.namespaced:
        return
    if not info.namespace:
        info.namespace = info.content["metadata"]["namespace"] = factory.namespace
    if info.namespace != factory.namespace:
        raise CliError(
            f"the namespace from the provided object {quote(info.namespace)} does not match the "
            f"namespace "
            f"{quote(factory.namespace)}. You must pass '--namespace={info.namespace}' to perform "
            f"this "
            "operation."
        )


# --- the editor, on a temporary file --------------------------------------------------------------


# Scripts that look for the files of kubectl find these.
PREFIX = "kubectl-edit-"


def launch(factory: Factory, text: str, suffix: str) -> tuple[str, str]:
    """Let the user change a text; returns the new text, and the file that holds it. Raises
    CliError."""
    import subprocess

    path = create_file(PREFIX, suffix, text)
    factory.stdout.flush()
    words, name = editor_command(path)
    try:
        status = subprocess.run(words, check=False).returncode
    except OSError:
        os.unlink(path)
        raise CliError(f"unable to launch the editor {quote(name)}") from None
    if status:
        os.unlink(path)
        raise CliError(f"there was a problem with the editor {quote(name)}")
    return read_string(path).replace("\r\n", "\n"), path


def editor_command(path: str) -> tuple[list[str], str]:
    """Return the words of the editor's command line, and its name in messages; one with quotes goes
    to the shell."""
    editor = os.environ.get("KUBE_EDITOR") or os.environ.get("EDITOR") or "vi"
    if " " not in editor:
        return [editor, path], editor
    if not any(quote in editor for quote in "\"'\\"):
        return [*editor.split(" "), path], editor
    shell = os.environ.get("SHELL") or "/bin/bash"
    return [shell, "-c", f'{editor} "{path}"'], f"{shell} -c {editor}"


# --- comments -------------------------------------------------------------------------------------


def without_comments(text: str) -> object:
    """Return what two texts are compared by: the first document if that is YAML, else the lines
    without comments."""
    try:
        return next((document.object for document in yaml.load_each(text)), None)
    except yaml.YamlError:
        return without_comment_lines(text)


def without_comment_lines(text: str) -> str:
    """Return a text without its comments; ``#!`` begins none."""
    return "\n".join(
        line
        for line in text.split("\n")
        if not line.strip().startswith("#") or line.strip().startswith("#!")
    )


def has_lines(text: str) -> bool:
    """Return whether there is anything but comments."""
    return any(line.strip() and not line.strip().startswith("#") for line in text.splitlines())
