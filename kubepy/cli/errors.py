"""Errors in kubectl's words: the one place where an exception becomes a message and an exit status.

    CliError                 ``error: message``
    ├── UsageError           … and where to find help (``See 'kubepy get -h' for help and examples``)
    ├── FlagError            … for flags (``See 'kubepy get --help' for usage.``)
    └── UnprefixedError      printed as it is
    SilentExit               an exit status without a message
    AggregateError           several errors, a line each

A Status of the API and a StorageError are printed as kubectl prints the server's answers. Upstream:
``kubectl/pkg/cmd/util/helpers.go`` (checkErr, StandardErrorMessage, MultilineError).
"""  # noqa: E501

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ParamSpec, TypeVar

from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api import errors as api_errors

# The reason why commands about containers are refused.
NO_CONTAINERS = "no containers run here: pods are simulated"

P = ParamSpec("P")
T = TypeVar("T")


class CliError(Exception):
    """An error of the command line itself."""


class EndlessWaitError(CliError):
    """A wait for what nothing brings about in the cluster's own time; kubectl would never come
    back from it."""


class UsageError(CliError):
    """``path`` is the command (``kubepy create configmap``) whose help the message points to."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{message}\nSee '{path} -h' for help and examples")


class FlagError(CliError):
    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{message}\nSee '{path} --help' for usage.")


class UnprefixedError(CliError):
    """A message that kubectl prints without ``error:``."""


class SilentExit(Exception):
    """An end of the command with a status, without a message: it has been printed already."""

    def __init__(self, status: int = 1) -> None:
        super().__init__(status)
        self.status = status


class AggregateError(Exception):
    """Several errors of one command, or of one part of it; some may be aggregates themselves."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        texts = list(dict.fromkeys(_texts(errors)))
        super().__init__(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
        self.errors = errors


def _texts(errors: Iterable[Exception]) -> Iterator[str]:
    for error in errors:
        if isinstance(error, AggregateError):
            yield from _texts(error.errors)
        else:
            yield str(error)


def raise_all(errors: Iterable[Exception]) -> None:
    """Raise nothing for no errors, the only one for one, an AggregateError for more."""
    all_errors = list(errors)
    if len(all_errors) == 1:
        raise all_errors[0]
    if all_errors:
        raise AggregateError(all_errors)


def raise_together(errors: Sequence[Exception]) -> None:
    """Raise an AggregateError, also of one error: the errors in that one are then printed a line
    each."""
    if errors:
        raise AggregateError(errors)


def unless_missing(read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Return what ``read`` returns, None if the API answers NotFound."""
    try:
        return read(*args, **kwargs)
    except api_errors.NotFound:
        return None


def is_expected(error: BaseException) -> bool:
    """Return whether an exception is meant for the user; any other is a defect, and reported as
    one."""
    if isinstance(error, (CliError, AggregateError, OSError, api_errors.Status)):
        return True
    storage_errors = sys.modules.get("kubepy.storage.errors")  # imported if there is such an error
    return storage_errors is not None and isinstance(error, storage_errors.StorageError)


def with_source(error: Exception, action: str, source: str) -> Exception:
    """Return the error with ``error when creating "file": `` before its message
    (``AddSourceToErr``)."""
    if not source or not is_expected(error):
        return error
    return prefixed(error, f"error when {action} {quote(source)}: ")


def prefixed(error: Exception, prefix: str) -> Exception:
    """Return the error with a prefix before its message; a Status stays a Status."""
    if isinstance(error, api_errors.Status):
        return error.with_message(prefix + error.message)
    return CliError(f"{prefix}{error}")


# --- messages -------------------------------------------------------------------------------------


def text_of(error: BaseException) -> str:
    """Return the text for stderr, with or without the final newline."""
    if isinstance(error, AggregateError) and len(error.errors) == 1:
        error = error.errors[0]
    if isinstance(error, AggregateError):
        return "".join(f"{message_for(inner)}\n" for inner in error.errors)
    if isinstance(error, api_errors.Invalid):
        return _invalid(error)
    text = message_for(error)
    if isinstance(error, (api_errors.Status, UnprefixedError)) or text.startswith("error: "):
        return text
    return f"error: {text}"


def message_for(error: BaseException) -> str:
    """Return one error as a line of several (``messageForError``): a Status with its reason, others
    as they are."""
    if not isinstance(error, api_errors.Status):
        return str(error)
    if isinstance(error, api_errors.Unauthorized):
        return f"error: You must be logged in to the server ({error})"
    if error.reason:
        return f"Error from server ({error.reason}): {error}"
    return f"Error from server: {error}"


def _invalid(status: api_errors.Status) -> str:
    """Return ``The DaemonSet "x" is invalid: …``; several causes go on lines of their own."""
    kind = status.kind.partition(".")[0]
    if kind or status.name:
        head = f"The {kind} {quote(status.name)} is invalid"
    else:
        head = "The request is invalid"
    if not (kind or status.name or status.causes) and status.message:
        head += f": {status.message}"
    causes = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in status.causes))
    if not causes:
        return head
    if len(causes) == 1:
        return f"{head}: {causes[0]}\n"  # a cause that ends a line of its own leaves an empty one
    return "".join([f"{head}: \n", *(f"* {cause}\n" for cause in causes)])


def guarded(run: Callable[[], None], say: Callable[[str], None], failed: int = 1) -> int:
    """Run a command; returns its exit status (``failed`` for errors). Errors are printed, none as a
    traceback."""
    try:
        run()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        raise
    except SilentExit as error:
        return error.status
    except Exception as error:
        if isinstance(error, OSError):
            error = CliError(os_error_text(error))
        elif isinstance(error, RecursionError):
            error = CliError("an object or expression is nested too deeply")
        elif not is_expected(error):
            error = CliError(_defect_text(error))
        say(text_of(error).removesuffix("\n"))
        return failed

    return 0


def os_error_text(error: OSError) -> str:
    """Return ``open x: no such file or directory``, in Go's words."""
    reason = (error.strerror or str(error)).lower()
    if error.filename:
        return f"open {error.filename}: {reason}"
    return reason


def _defect_text(error: Exception) -> str:
    """Return one line about a defect of kubepy; with KUBEPY_TRACEBACK the traceback goes to
    stderr."""
    import traceback

    if os.environ.get("KUBEPY_TRACEBACK"):
        traceback.print_exc()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return (
        f"internal error: {type(error).__name__}: {error} ({place}; KUBEPY_TRACEBACK=1 shows "
        f"all of it)"
    )
