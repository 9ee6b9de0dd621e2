"""The keys of a server: made once, kept, made anew where they are damaged."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from kubepy.server import certificates
from kubepy.server.certificates import Keys, hosts_of, load_keys
from kubepy.storage import FolderError


@pytest.fixture
def folder(new_folder: Callable[[], Path]) -> Path:
    return new_folder()


def certificate_of(keys: Keys) -> x509.Certificate:
    return x509.load_pem_x509_certificate(Path(keys.certificate).read_bytes())


def names_of(keys: Keys) -> list[str]:
    extension = certificate_of(keys).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return [str(name.value) for name in extension.value]


def test_keys_survive_and_are_private(folder: Path) -> None:
    first, told = load_keys(str(folder)), list[str]()
    serial = certificate_of(first).serial_number
    second = load_keys(str(folder), say=told.append)
    assert (second.ca, second.token, second.signing_key) == (
        first.ca,
        first.token,
        first.signing_key,
    )
    assert certificate_of(second).serial_number == serial
    assert not told
    for name in first.files.contents:
        assert stat.S_IMODE(os.stat(first.files.path(name)).st_mode) == 0o600


def test_certificate_covers_loopback_and_what_is_asked(folder: Path) -> None:
    assert {"127.0.0.1", "::1", "localhost"} <= set(names_of(load_keys(str(folder))))
    keys = load_keys(str(folder), ["10.1.2.3", "box.example"])
    assert {"127.0.0.1", "10.1.2.3", "box.example"} <= set(names_of(keys))
    serial = certificate_of(keys).serial_number
    assert (
        certificate_of(load_keys(str(folder))).serial_number == serial
    )  # one for more hosts is good for fewer


@pytest.mark.parametrize(
    "name", ["ca.key", "ca.crt", "apiserver.crt", "apiserver.key", "token", "sa.key"]
)
@pytest.mark.parametrize(
    "content", [b"garbage", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\nAAAA\n"]
)
def test_damaged_file_is_made_anew_with_a_word(folder: Path, name: str, content: bytes) -> None:
    keys, told = load_keys(str(folder)), list[str]()
    Path(keys.files.path(name)).write_bytes(content)
    load_keys(str(folder), say=told.append)
    assert told[0] == f"{keys.files.path(name)} is damaged: made anew"
    again = list[str]()
    load_keys(str(folder), say=again.append)
    assert not again


def test_expired_certificate_is_made_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "CERTIFICATE_LIFE", timedelta(days=1))
    keys, told = load_keys(str(folder)), list[str]()
    monkeypatch.undo()
    keys = load_keys(str(folder), say=told.append)
    assert told == [f"{keys.certificate} has expired or soon will: made anew"]
    assert certificate_of(keys).not_valid_after_utc > datetime.now(UTC) + timedelta(days=300)


def test_certificate_of_another_authority_is_made_anew(folder: Path) -> None:
    keys = load_keys(str(folder))
    for name in ("ca.crt", "ca.key"):
        os.unlink(keys.files.path(name))
    serial = certificate_of(keys).serial_number
    keys = load_keys(str(folder))
    assert certificate_of(keys).serial_number != serial
    certificate_of(keys).verify_directly_issued_by(x509.load_pem_x509_certificate(keys.ca))


def test_lost_key_of_the_authority_makes_another_one_with_a_word(folder: Path) -> None:
    told: list[str] = []
    first = load_keys(str(folder), [], told.append)
    os.unlink(first.files.path("ca.key"))
    assert load_keys(str(folder), [], told.append).ca != first.ca
    assert told == [
        f"{first.files.path('ca.crt')}: made anew; kubeconfigs with the old one no longer work"
    ]


def test_removed_files_are_put_back_where_there_still_is_a_cluster(folder: Path) -> None:
    keys = load_keys(str(folder))
    shutil.rmtree(folder / ".kubepy")
    keys.files.restore()
    assert load_keys(str(folder)).token == keys.token
    shutil.rmtree(folder)
    keys.files.restore()
    assert not folder.exists()


def test_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("secret")
    keys = load_keys(str(folder))
    os.unlink(keys.files.path("token"))
    os.symlink(target, keys.files.path("token"))
    with pytest.raises(FolderError):
        load_keys(str(folder))
    assert target.read_text() == "secret"


def test_file_that_others_may_read_becomes_private(folder: Path) -> None:
    keys = load_keys(str(folder))
    os.chmod(keys.files.path("token"), 0o644)
    load_keys(str(folder))
    assert stat.S_IMODE(os.stat(keys.files.path("token")).st_mode) == 0o600


def test_hosts_of_every_address_are_those_of_the_machine() -> None:
    assert hosts_of("10.1.2.3") == ["10.1.2.3"]
    assert hosts_of("box.example") == ["box.example"]
    assert os.uname().nodename in hosts_of("0.0.0.0")
