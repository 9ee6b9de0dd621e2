"""Objects in the user's editor, again until what comes back can be taken or the user gives up.

:class:`Editing` knows the file and its rounds; what happens to the edited objects is the caller's. Upstream:
``kubectl/pkg/cmd/util/editor/editoptions.go``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kubepy.cli.errors import CliError, SilentExit, is_expected
from kubepy.cli.runtime.command import Invocation
from kubepy.cli.runtime.editor import has_lines, launch, without_comment_lines, without_comments
from kubepy.cli.runtime.flagsets import field_validation
from kubepy.cli.runtime.infos import Info, Result
from kubepy.cli.runtime.output import JSON_AND_YAML, document, no_printer, requested
from kubepy.cli.runtime.session import Session
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import errors as api_errors

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


class Reason(NamedTuple):
    """Why a file has to be edited again: shown in its comments."""

    head: str
    details: Sequence[str] = ()

    @property
    def comment(self) -> str:
        lines = [f"{self.head}{':' if self.details else ''}", *(f"* {one}" for one in self.details)]
        return "".join("# " + line.replace("\n", "\n# ") + "\n" for line in lines) + "#\n"


class Round:
    """One look into the editor: the text that came back, its file, and what became of it."""

    def __init__(self, text: str = "", path: str = "") -> None:
        self.text = text
        self.path = path
        self.reasons: list[Reason] = []
        self.retryable = 0
        self.not_found = 0

    def add_error(self, error: Exception, info: Info) -> str:
        """Take up what the cluster refused; returns what to say."""
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


# Takes the original and the edited objects, and the round; raises for what ends the command.
Change = Callable[[list[Info], list[Info], Round], None]


class Editing:
    """``header`` goes before YAML; ``change`` does what is to be done with the edited objects."""

    def __init__(self, session: Session, given: Invocation, change: Change, header: str = OBJECT_HEADER) -> None:
        self.session = session
        self.change = change
        self.style = requested(given)[0] or "yaml"
        self.header = "" if self.style == "json" else header
        self.output = given.output
        self.validation = field_validation(given)
        self.line_end = "\r\n" if given.flag("windows-line-endings") else "\n"

    def edit(self, infos: list[Info]) -> None:
        """Raises CliError and Status; files with changes that were not taken stay, and stderr names them."""
        original, last = self._printed(infos), Round()
        while True:
            current = self._launched(original, last)
            if problem := problem_of(self.session, current.text, self.validation):
                reason = f'<nil>: Invalid value: "The edited file failed validation": {problem}'
                subject = f"{infos[0].resource.key} {quote(infos[0].name)}"
                current.reasons.append(Reason(f"{subject} was not valid", [reason]))
                self.session.say(f"error: {subject} is invalid")
            elif self._taken(infos, original, current):
                return
            last = current

    def _launched(self, original: str, last: Round) -> Round:
        text = self.header + "".join(one.comment for one in last.reasons if self.header)
        text += without_comment_lines(last.text) if last.reasons else original
        try:
            current = Round(*launch(self.session, text.replace("\n", self.line_end),
                                    ".json" if self.style == "json" else ".yaml"))
        except CliError:
            self._keep(last)
            raise
        if last.reasons and without_comments(last.text) == without_comments(current.text):
            last.remove()
            self._keep(current)
            raise CliError("Edit cancelled, no valid changes were saved.")
        last.remove()
        return current

    def _taken(self, infos: list[Info], original: str, current: Round) -> bool:
        """Whether that is the end of it: nothing was changed, or all of it was accepted."""
        if without_comments(original) == without_comments(current.text):
            current.remove()
            self.session.say("Edit cancelled, no changes made.")
            return True
        if not has_lines(current.text):
            current.remove()
            self.session.say("Edit cancelled, saved file was empty.")
            return True
        updated = self._read(current)
        if updated is None:
            return False
        try:
            self.change(infos, updated, current)
        except Exception as error:
            if is_expected(error):
                self._keep(current)
            raise
        return self._finished(current)

    def _finished(self, current: Round) -> bool:
        if current.retryable:
            self.session.say(f"You can run `kubepy replace -f {current.path}` to try this update again.")
            raise SilentExit
        if current.not_found:
            self.session.say(f"The edits you made on deleted resources have been saved to {quote(current.path)}")
            raise SilentExit
        if current.reasons:
            return False
        current.remove()
        return True

    def _keep(self, one: Round) -> None:
        if one.path and os.path.exists(one.path):
            self.session.say(f"A copy of your changes has been stored to {quote(one.path)}")

    def _printed(self, infos: list[Info]) -> str:
        """The objects as they go into the file; several as a List."""
        objects = [info.content for info in infos]
        obj = objects[0] if len(objects) == 1 else {"apiVersion": "v1", "items": objects, "kind": "List",
                                                    "metadata": {}}
        if self.style not in JSON_AND_YAML:
            raise no_printer(self.output, JSON_AND_YAML)
        return document(self.style, obj)

    def _read(self, current: Round) -> list[Info] | None:
        """The edited objects, None if they cannot be read."""
        from kubepy.cli.runtime.manifests import read_stream

        result = Result(one for manifest in read_stream(self.session, current.text, "edited-file")
                        for one in manifest.found)
        infos, errors = result.infos()
        if errors:
            current.reasons.append(Reason(f"The edited file had a syntax error: {errors[0]}"))
            return None
        return infos


def problem_of(session: Session, text: str, validation: str) -> str:
    """What keeps a text from being objects, "" for nothing (``Schema.ValidateBytes``)."""
    from kubepy.cli.runtime.validation import one_text, problems_of
    from kubepy.storage.yaml import YamlError, load_each, read_json

    if validation == "Ignore":
        return ""
    try:
        content = read_json(text) if text.lstrip().startswith("{") else next(
            (document.object for document in load_each(text)), None)
    except YamlError as error:
        return str(error)
    problems = problems_of(session, content, validation)
    return one_text(problems) if problems else ""


def place(session: Session, info: Info) -> None:
    """Give an edited object its namespace. Raises CliError if it says another than the command works in."""
    if not info.resource.namespaced:
        return
    if not info.namespace:
        info.namespace = info.content["metadata"]["namespace"] = session.namespace
    if info.namespace != session.namespace:
        raise CliError(f"the namespace from the provided object {quote(info.namespace)} does not match the namespace "
                       f"{quote(session.namespace)}. You must pass '--namespace={info.namespace}' to perform this "
                       "operation.")
