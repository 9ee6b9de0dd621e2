"""Names of images: ``registry:5000/group/name:tag@sha256:…``.

``kubectl run`` checks the form of a name; a kubelet adds the registry and the group that it may
leave out, and takes it apart. Upstream: ``github.com/distribution/reference``,
``github.com/opencontainers/go-digest``, ``pkg/util/parsers``. Pure functions.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kubepy.quoting import quote

DEFAULT_DOMAIN = "docker.io"
LEGACY_DOMAIN = "index.docker.io"
OFFICIAL = "library/"
MAX_PATH_LENGTH = 255
HEX_DIGITS = {"sha256": 64, "sha384": 96, "sha512": 128}

_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_PATH_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?"
    rf"(?P<path>{_PATH_PART}(?:/{_PATH_PART})*)(?::\w[\w.-]{{0,127}})?"
    r"(?:@(?P<algorithm>[A-Za-z][A-Za-z0-9]*(?:[-_+."
    r"][A-Za-z][A-Za-z0-9]*)*):(?P<hex>[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_ALGORITHM = re.compile("[a-z0-9]+(?:[.+_-][a-z0-9]+)*")


def is_image_reference(text: str) -> bool:
    """Return whether a text has the form of an image's name, as it stands
    (``reference.ReferenceRegexp``)."""
    return _REFERENCE.fullmatch(text) is not None


@lru_cache(maxsize=1024)
def image_name_problem(image: str) -> str:
    """Return why a kubelet cannot parse the name of an image, in its words; "" where it can.

    Upstream: ``parsers.ParseImageName``, which ``pkg/kubelet/images`` calls before it looks for the
    image.
    """
    problem = _normalized_name_problem(image)
    if problem:
        return f"couldn't parse image name {quote(image)}: {problem}"
    return ""


def _normalized_name_problem(image: str) -> str:
    """Return what is wrong with a name whose registry and group may be missing
    (``ParseNormalizedNamed``)."""
    if _IDENTIFIER.fullmatch(image):
        return f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    domain, remainder = _split_domain(image)
    remote = remainder.partition(":")[0]
    if remote.lower() != remote:
        return f"invalid reference format: repository name ({remote}) must be lowercase"
    name = f"{domain}/{remainder}"
    if (match := _REFERENCE.fullmatch(name)) is None:
        if is_image_reference(name.lower()):
            return "repository name must be lowercase"
        return "invalid reference format"

    if len(match["path"]) > MAX_PATH_LENGTH:
        return f"repository name must not be more than {MAX_PATH_LENGTH} characters"
    if match["algorithm"]:
        return _digest_problem(match["algorithm"], match["hex"])
    return ""


def _split_domain(name: str) -> tuple[str, str]:
    """Return the registry of an image, or the default one, and the rest of its name
    (``splitDockerDomain``)."""
    first, slash, rest = name.partition("/")
    if not slash:
        return DEFAULT_DOMAIN, OFFICIAL + name
    if first == LEGACY_DOMAIN:
        domain = DEFAULT_DOMAIN
        remainder = rest
    elif first == "localhost" or "." in first or ":" in first or first.lower() != first:
        domain = first
        remainder = rest
    else:
        domain = DEFAULT_DOMAIN
        remainder = name

    if domain == DEFAULT_DOMAIN and "/" not in remainder:
        remainder = OFFICIAL + remainder
    return domain, remainder


def _digest_problem(algorithm: str, digits: str) -> str:
    if algorithm not in HEX_DIGITS:
        if _ALGORITHM.fullmatch(algorithm):
            return "unsupported digest algorithm"
        return "invalid checksum digest format"
    if len(digits) != HEX_DIGITS[algorithm]:
        return "invalid checksum digest length"
    if digits == digits.lower():
        return ""
    return "invalid checksum digest format"


@lru_cache(maxsize=1024)
def normalized_image(image: str) -> str:
    """Return the name of an image with the registry, the group and the tag that it may leave out:
    ``nginx`` is ``docker.io/library/nginx:latest``."""
    domain, remainder = _split_domain(image)
    name = f"{domain}/{remainder}"
    if "@" in remainder or ":" in remainder:
        return name
    return f"{name}:latest"


def familiar_image(image: str) -> str:
    """Return the shortest name of an image with its tag: ``nginx:latest``."""
    name = normalized_image(image)
    return name.removeprefix(f"{DEFAULT_DOMAIN}/").removeprefix(OFFICIAL)


def image_repository(image: str) -> tuple[str, str]:
    """Return the repository of an image as its normalized name has it, and its tag, "" where a
    digest stands for it."""
    name = normalized_image(image).partition("@")[0]
    domain, slash, remainder = name.partition("/")
    repository, _, tag = remainder.partition(":")
    return f"{domain}{slash}{repository}", tag
