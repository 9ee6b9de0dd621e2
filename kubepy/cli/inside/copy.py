"""``kubepy cp``: files between this machine and the files of containers, through ``tar`` there.

Upstream: ``kubectl/pkg/cmd/cp`` (``cp.go``, ``filespec.go``).
"""

from __future__ import annotations

import glob
import io
import os
import posixpath
import tarfile
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.errors import InternalError
from kubepy.cli.errors import CliError
from kubepy.cli.inside.execute import check_is_running, chosen_container
from kubepy.cli.inside.pods import PODS, require_containers
from kubepy.cli.inside.streams import StreamedSession, end_with
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, int_flag, string_flag
from kubepy.cli.runtime.options import Options
from kubepy.kubelet.sessions import exec_in
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

FORMAT = "filespec must match the canonical format: [[namespace/]pod:]file/path"


class CopyOptions(Options):
    """The flags of ``cp``."""

    container: str = string_flag(
        "container",
        "c",
        help="Container name. Without it, the annotation kubectl.kubernetes.io/default-container "
        "of the pod, or its first container.",
    )
    no_preserve: bool = bool_flag(
        "no-preserve",
        help="The copied file/directory's ownership and permissions will not be preserved in the "
        "container.",
    )
    retries: int = int_flag(
        "retries",
        help="The number of retries to complete a copy from a container; nothing is ever cut off "
        "here.",
    )


class FileSpec(NamedTuple):
    """A file here, or in a pod."""

    path: str
    pod: str = ""
    namespace: str = ""


@command(
    "cp <file-spec-src> <file-spec-dest>",
    CopyOptions,
    examples="""
# A folder into a pod
kubepy cp ./site web:/usr/share/nginx/html

# A file into one of its containers
kubepy cp app.conf web:/etc/app.conf -c app

# Into a pod of another namespace
kubepy cp app.conf shop/web:/etc/app.conf

# A file out of a pod
kubepy cp web:/var/log/app.log ./app.log
""",
)
def cp(factory: Factory, options: CopyOptions) -> None:
    """Copy files and directories to and from containers."""
    if len(options.args) != 2:
        raise CliError("source and destination are required")
    source, target = (file_spec(word) for word in options.args)
    if source.pod and target.pod:
        raise CliError("one of src or dest must be a local file specification")
    if not source.path or not target.path:
        raise CliError("filepath can not be empty")
    if not source.pod and not target.pod:
        raise CliError("one of src or dest must be a remote file specification")
    require_containers(factory, "cp")
    factory.catch_up()
    if source.pod:
        _copy_from_pod(
            factory,
            options,
            source,
            target,
        )
    else:
        _copy_to_pod(
            factory,
            options,
            source,
            target,
        )


def file_spec(word: str) -> FileSpec:
    """Read ``[[NAMESPACE/]POD:]PATH``. Raises CliError."""
    place, colon, path = word.partition(":")
    if not colon:
        return FileSpec(word)
    parts = place.split("/")
    if not place or len(parts) > 2:
        raise CliError(FORMAT)
    namespace = parts[0] if len(parts) == 2 else ""
    return FileSpec(path, parts[-1], namespace)


class _Copier:
    """Runs commands in the container that files go to or come from."""

    def __init__(self, factory: Factory, options: CopyOptions, spec: FileSpec) -> None:
        self._factory = factory
        namespace = spec.namespace or factory.namespace
        self._pod = factory.client.get(PODS, spec.pod, namespace=namespace)
        check_is_running(self._pod, "exec into")
        container = chosen_container(
            factory,
            self._pod,
            options.container,
            quiet=False,
        )
        self._container: str = container["name"]

    def run(self, words: list[str], stdin: bytes | None = None) -> tuple[int, bytes, bytes]:
        """Run a command; return its exit status and output. Raises CliError."""
        factory = self._factory
        reads = stdin is not None
        try:
            session = exec_in(
                factory.client, cast("Pod", self._pod), self._container, words, stdin=reads
            )
        except InternalError as error:
            raise CliError(error.message) from None
        source = None if stdin is None else io.BytesIO(stdin)
        connection = StreamedSession(factory, session, source=source)
        return connection.collect()


# --- to a pod -------------------------------------------------------------------------------------


def _copy_to_pod(
    factory: Factory, options: CopyOptions, source: FileSpec, target: FileSpec
) -> None:
    if not os.path.exists(source.path):
        raise CliError(f"{source.path} doesn't exist in local filesystem")
    copier = _Copier(factory, options, target)
    path = posixpath.normpath(target.path)
    status, _, _ = copier.run(["test", "-d", target.path])
    if status == 0:
        path = posixpath.join(path, os.path.basename(os.path.normpath(source.path)))
    words = ["tar", "-xmf", "-"]
    if options.no_preserve:
        words = ["tar", "--no-same-permissions", "--no-same-owner", "-xmf", "-"]
    folder = posixpath.dirname(path)
    if folder:
        words += ["-C", folder]
    status, out, err = copier.run(words, _packed(source.path, posixpath.basename(path)))
    _show(factory, out, err)
    end_with(factory, status)


def _packed(path: str, name: str) -> bytes:
    """Return an archive of a file or folder, under another name. Raises OSError."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        pattern = os.path.normpath(path)
        matches = sorted(glob.glob(pattern))
        for match in matches:
            archive.add(match, name)
    return buffer.getvalue()


def _show(factory: Factory, out: bytes, err: bytes) -> None:
    if out:
        factory.print(out.decode(errors="replace"), end="")
    if err:
        factory.say(err.decode(errors="replace").rstrip("\n"))


# --- from a pod -----------------------------------------------------------------------------------


def _copy_from_pod(
    factory: Factory, options: CopyOptions, source: FileSpec, target: FileSpec
) -> None:
    copier = _Copier(factory, options, source)
    status, data, err = copier.run(["tar", "cf", "-", source.path])
    _show(factory, b"", err)
    _unpack(
        factory,
        source,
        target.path,
        data,
    )
    end_with(factory, status)


def _unpack(factory: Factory, source: FileSpec, target: str, data: bytes) -> None:
    """Write the members of an archive below a path (``untarAll``). Raises CliError, OSError."""
    if not data:
        return
    prefix = source.path.strip("/")
    if prefix:
        prefix = posixpath.normpath(prefix)
    while prefix.startswith("../"):
        prefix = prefix[3:]
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            if not member.name.startswith(prefix):
                raise CliError("tar contents corrupted")
            rest = member.name[len(prefix) :].lstrip("/")
            place = os.path.normpath(os.path.join(target, rest))
            if not _is_below(place, target):
                factory.say(f"warning: file {quote(place)} is outside target destination, skipping")
                continue
            _write(
                factory,
                source,
                archive,
                member,
                place,
            )


def _is_below(place: str, target: str) -> bool:
    relative = os.path.relpath(place, target)
    if relative == "..":
        return False
    return not relative.startswith("../")


def _write(
    factory: Factory,
    source: FileSpec,
    archive: tarfile.TarFile,
    member: tarfile.TarInfo,
    place: str,
) -> None:
    """Write one member of an archive; a symbolic link is left out, as by kubectl."""
    os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
    if member.isdir():
        os.makedirs(place, exist_ok=True)
        return
    if member.issym():
        factory.say(
            f"warning: skipping symlink: {quote(place)} -> {quote(member.linkname)} (consider "
            f'using "kubepy exec -n {quote(source.namespace)} {quote(source.pod)} -- tar cf - '
            f'{quote(source.path)} | tar xf -")'
        )
        return
    content = archive.extractfile(member)
    if content is not None:
        with open(place, "wb") as file:
            file.write(content.read())
