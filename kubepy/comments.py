"""One comment on a pull request of GitHub, or on a merge request of GitLab, that is written anew
each time: ``python -m kubepy.comments [--key KEY] FILE``.

The text is that of FILE; ``plan -o markdown`` writes none that is too long for a comment. A hidden
line at its beginning finds the comment again. The environment is that of a job:
``GITHUB_API_URL``, ``GITHUB_REPOSITORY`` and ``KUBEPY_PULL_REQUEST`` (its number), or
``CI_API_V4_URL``, ``CI_PROJECT_ID`` and ``CI_MERGE_REQUEST_IID``; ``KUBEPY_TOKEN`` is the token
that comments. Exit status 1, and one line on stderr, where there can be no comment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib import request
from urllib.error import HTTPError
from urllib.parse import quote

KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/]{0,59}")
SECONDS = 30.0  # that a request may take
PAGE, MAX_PAGES = 100, 50  # comments on a page, and pages that are looked at
MAX_ANSWER = 16 * 1024 * 1024  # bytes


class CommentError(Exception):
    """There can be no comment; the message says why, in one line."""


class _NoRedirects(request.HTTPRedirectHandler):
    """Follows no redirect: the token is for one machine."""

    def redirect_request(self, *arguments: Any) -> None:
        return None


class Api(NamedTuple):
    """The comments of one pull request.

    :ivar base: the URL before all paths.
    :ivar headers: those of each request, with the token.
    :ivar listing: the path of all comments.
    :ivar single: the path before the id of one.
    :ivar update: the method that changes one.
    :ivar author: the field of a comment that says who wrote it.
    """

    base: str
    headers: Mapping[str, str]
    listing: str
    single: str
    update: str
    author: str

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a request, and return the document of the answer. Raises CommentError."""
        data = None if body is None else json.dumps(body).encode()
        asked = request.Request(self.base + path, data, dict(self.headers), method=method)
        opener = request.build_opener(_NoRedirects())
        try:
            with opener.open(asked, timeout=SECONDS) as answer:
                return json.loads(answer.read(MAX_ANSWER))
        except HTTPError as error:
            with error:
                raise CommentError(f"{method} {path}: HTTP {error.code}{_reason(error)}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise CommentError(f"{method} {path}: {error}") from None

    def comments(self) -> Iterator[dict[str, Any]]:
        """Yield the comments that there are. Raises CommentError."""
        for page in range(1, MAX_PAGES + 1):
            found = self.ask("GET", f"{self.listing}?per_page={PAGE}&page={page}")
            yield from found
            if len(found) < PAGE:
                return

    def is_own(self, comment: Mapping[str, Any], login: str) -> bool:
        """Return whether a comment was written by the holder of the token. A comment of somebody
        else that begins like ours is never changed."""
        author = comment.get(self.author) or {}
        if login:
            return author.get("login", author.get("username")) == login
        return author.get("type") == "Bot"

    def own_login(self) -> str:
        """Return the name of the holder of the token; "" for the token of a job of GitHub, which
        may not ask for its name. Raises CommentError."""
        try:
            user = self.ask("GET", "/user")
        except CommentError as error:
            if "HTTP 403" in str(error):
                return ""
            raise
        return str(user.get("login", user.get("username", "")))


def _reason(error: HTTPError) -> str:
    """Return what a server says about a failure, as the end of a message."""
    try:
        message = json.loads(error.read(100_000))["message"]
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return ""
    return f": {' '.join(str(message).split())[:200]}"


def api_of(environment: Mapping[str, str]) -> Api:
    """Return where the comments of a job's pull request are. Raises CommentError."""
    token = _required(environment, "KUBEPY_TOKEN")
    headers = {"Content-Type": "application/json", "User-Agent": "kubepy"}
    if environment.get("GITHUB_REPOSITORY"):
        repository = f"/repos/{quote(environment['GITHUB_REPOSITORY'])}"
        number = _number(environment, "KUBEPY_PULL_REQUEST")
        return Api(
            _required(environment, "GITHUB_API_URL").rstrip("/"),
            {
                **headers,
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {token}",
            },
            f"{repository}/issues/{number}/comments",
            f"{repository}/issues/comments",
            "PATCH",
            "user",
        )
    project = quote(_required(environment, "CI_PROJECT_ID"), safe="")
    number = _number(environment, "CI_MERGE_REQUEST_IID")
    notes = f"/projects/{project}/merge_requests/{number}/notes"
    return Api(
        _required(environment, "CI_API_V4_URL").rstrip("/"),
        {**headers, "PRIVATE-TOKEN": token},
        notes,
        notes,
        "PUT",
        "author",
    )


def _required(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value or "\n" in value:
        raise CommentError(f"${name} is not set")
    return value


def _number(environment: Mapping[str, str], name: str) -> str:
    value = _required(environment, name)
    if not value.isascii() or not value.isdigit():
        raise CommentError(f"${name} is no number")
    return value


def comment(api: Api, text: str, key: str = "") -> str:
    """Write the comment, or write it anew; returns ``created`` or ``updated``.

    :param key: tells it from other comments of the kind on the same pull request.

    Raises CommentError.
    """
    marker = f"<!-- kubepy-plan: {key} -->" if key else "<!-- kubepy-plan -->"
    body = {"body": f"{marker}\n{text}"}
    login = api.own_login()
    for existing in api.comments():
        is_marked = str(existing.get("body", "")).startswith(marker)
        if is_marked and api.is_own(existing, login):
            api.ask(api.update, f"{api.single}/{existing['id']}", body)
            return "updated"
    api.ask("POST", api.listing, body)
    return "created"


def main(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the program; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m kubepy.comments")
    parser.add_argument("--key", default="", help="tells several comments apart")
    parser.add_argument("file", help="the text, in Markdown")
    options = parser.parse_args(words)
    try:
        if options.key and not KEY.fullmatch(options.key):
            raise CommentError("--key may have letters, digits, spaces, dots, slashes: at most 60")
        with open(options.file, encoding="utf-8", errors="replace") as file:
            text = file.read()
        print(f"comment {comment(api_of(environment), text, options.key)}")
    except (CommentError, OSError) as error:
        print(f"error: cannot comment: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
