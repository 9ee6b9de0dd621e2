"""The tag of an image name, as ``distribution/reference`` reads it (upstream: ``pkg/util/parsers``)."""

from __future__ import annotations

import re
from functools import cache, lru_cache

_LABEL = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_IMAGE = (rf"(?:(?P<domain>{_DOMAIN})/)?(?P<path>{_PART}(?:/{_PART})*)"
          rf"(?::(?P<tag>[\w][\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?")
_IDENTIFIER = "[a-f0-9]{64}"  # an image id is no name


@cache
def _image() -> re.Pattern[str]:
    return re.compile(_IMAGE, re.ASCII)


@lru_cache(maxsize=1024)
def image_tag(image: str) -> str:
    """The tag; ``latest`` where neither tag nor digest is given; "" for a digest alone or a name that cannot be."""
    match = _image().fullmatch(image)
    if match is None or re.fullmatch(_IDENTIFIER, image):
        return ""
    return match["tag"] or ("" if match["digest"] else "latest")


def pull_policy(image: str) -> str:
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"
