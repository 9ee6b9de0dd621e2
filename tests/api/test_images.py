"""Names of images, as a kubelet parses them. What is expected was printed by
``github.com/distribution/reference``."""

from __future__ import annotations

import pytest

from kubepy.api.objects.images import image_name_problem, is_image_reference

DIGEST = "sha256:" + "a" * 64
FORMAT = "invalid reference format"


@pytest.mark.parametrize(
    "image",
    [
        "nginx",
        "nginx:1.27",
        "library/nginx",
        "a/b/c:latest",
        "example.com:5000/team/app:v1.2_3-x",
        "localhost/app",
        "[::1]:80/app",
        "Registry/app:1",
        "index.docker.io/nginx",
        f"nginx@{DIGEST}",
        f"nginx:1@{DIGEST}",
        "a__b/c--d.e:X",
        "nginx@sha512:" + "b" * 128,
        "a:" + "t" * 128,
    ],
)
def test_name_that_can_be_parsed(image: str) -> None:
    assert image_name_problem(image) == ""


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        ("Nginx:1", f"{FORMAT}: repository name (library/Nginx) must be lowercase"),
        ("team/App", f"{FORMAT}: repository name (team/App) must be lowercase"),
        ("docker.io/App", f"{FORMAT}: repository name (library/App) must be lowercase"),
        ("nginx:bad tag", FORMAT),
        ("nginx:", FORMAT),
        (":1", FORMAT),
        ("a___b", FORMAT),
        ("a//b", FORMAT),
        ("-a", FORMAT),
        ("nginx:" + "t" * 129, FORMAT),
        ("nginx@sha256:xyz", FORMAT),
        ("", FORMAT),
        ("na\nme", FORMAT),
        ("a" * 256, "repository name must not be more than 255 characters"),
        (
            "f" * 64,
            f"invalid repository name ({'f' * 64}), cannot specify 64-byte hexadecimal strings",
        ),
        ("nginx@sha256:" + "a" * 40, "invalid checksum digest length"),
        ("nginx@sha256:" + "A" * 64, "invalid checksum digest format"),
        ("nginx@md5:" + "c" * 32, "unsupported digest algorithm"),
        ("nginx:1@MD5:" + "c" * 32, "invalid checksum digest format"),
    ],
)
def test_name_that_cannot_be_parsed(image: str, problem: str) -> None:
    quoted = image.replace("\n", "\\n")
    assert image_name_problem(image) == f'couldn\'t parse image name "{quoted}": {problem}'


def test_name_that_needs_a_registry_is_no_reference_as_it_stands() -> None:
    assert is_image_reference("example.com/app:1")
    assert not is_image_reference("Nginx")
