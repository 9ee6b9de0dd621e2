"""Endless input, and input larger than an API server takes: refused in one line that names it."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest

from kubepy.cli.files import MAX_MANIFESTS, MAX_REQUEST
from kubepy.cli.main import main
from tests.cli.conftest import Done, Kubepy

REQUEST = "read {}: is larger than 3 MiB: more than an API server takes in one request"
MANIFESTS = "read {}: is larger than 64 MiB: give its objects in several files"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("apply -f /dev/zero", MANIFESTS),
        ("create -f /dev/zero --dry-run=client", MANIFESTS),
        ("delete -f /dev/zero", MANIFESTS),
        ("replace --raw /api/v1/namespaces/default/configmaps/paint -f /dev/zero", MANIFESTS),
        ("create configmap x --from-file=/dev/zero", REQUEST),
        ("create configmap x --from-file=a=/dev/zero", REQUEST),
        ("create configmap x --from-env-file=/dev/zero", REQUEST),
        ("create secret generic x --from-file=/dev/zero", REQUEST),
        ("create secret tls x --cert=/dev/zero --key=/dev/zero", REQUEST),
        ("patch cm paint --patch-file=/dev/zero", REQUEST),
        ("get cm -o go-template-file=/dev/zero", REQUEST),
        ("get cm -o jsonpath-file=/dev/zero", REQUEST),
        ("get cm -o custom-columns-file=/dev/zero", REQUEST),
        ("config set-cluster x --certificate-authority=/dev/zero --embed-certs", REQUEST),
    ],
)
def test_endless_file_is_refused_in_one_line(paint: Kubepy, command: str, why: str) -> None:
    done = paint(*command.split())
    assert (done.out, done.status) == ("", 1)
    assert done.err == f"error: {why.format('/dev/zero')}\n"


def test_endless_file_ends_diff_and_get_as_their_errors_do(paint: Kubepy) -> None:
    line = MANIFESTS.format("/dev/zero") + "\n"
    assert paint("diff", "-f", "/dev/zero") == Done("", f"error: {line}", 2)
    assert paint("get", "-f", "/dev/zero") == Done("", line, 1)


def test_endless_file_of_kustomization_is_refused_in_one_line(paint: Kubepy, folder: Path) -> None:
    (folder / "base").mkdir()
    (folder / "base" / "kustomization.yaml").write_text("resources: [/dev/zero]\n")
    done = paint("apply", "-k", "base")
    assert (done.out, done.err.count("\n"), done.status) == ("", 1, 1)


@pytest.mark.parametrize(
    ("command", "limit", "why"),
    [("apply -f -", MAX_MANIFESTS, MANIFESTS), ("set env deploy/x -", MAX_REQUEST, REQUEST)],
)
def test_endless_standard_input_is_refused_in_one_line(
    paint: Kubepy, command: str, limit: int, why: str
) -> None:
    out, err = io.StringIO(), io.StringIO()
    paint("create", "deployment", "x", "--image=x")
    with open("/dev/zero", encoding="utf-8") as endless:
        status = main(command.split(), stdin=endless, stdout=out, stderr=err)
    assert (out.getvalue(), err.getvalue(), status) == (
        "",
        f"error: {why.format('standard input')}\n",
        1,
    )


def test_endless_pipe_is_refused_and_its_writer_let_go(paint: Kubepy, folder: Path) -> None:
    os.mkfifo(folder / "pipe")

    def write() -> None:
        with open(folder / "pipe", "wb") as pipe:
            try:
                while True:
                    pipe.write(b"#" * 65536)
            except BrokenPipeError:
                return

    writer = threading.Thread(target=write)
    writer.start()
    assert paint("create", "configmap", "x", "--from-file=a=pipe") == Done(
        "", f"error: {REQUEST.format('pipe')}\n", 1
    )
    writer.join()


def test_file_at_limit_is_read(paint: Kubepy, folder: Path) -> None:
    (folder / "patch").write_text('{"data":{"a":"1"}}'.ljust(MAX_REQUEST))
    assert paint("patch", "cm", "paint", "--patch-file=patch").out == "configmap/paint patched\n"
    (folder / "patch").write_text('{"data":{"a":"1"}}'.ljust(MAX_REQUEST + 1))
    assert (
        paint("patch", "cm", "paint", "--patch-file=patch").err
        == f"error: {REQUEST.format('patch')}\n"
    )


def test_manifests_of_more_than_one_request_are_read(paint: Kubepy, folder: Path) -> None:
    text = "".join(
        f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}}}\n# "
        f"{'x' * 1024 * 1024}\n"
        for number in range(4)
    )
    (folder / "many.yaml").write_text(text)
    assert paint("create", "-f", "many.yaml").out == "".join(
        f"configmap/c{number} created\n" for number in range(4)
    )
