"""``get``, ``create``, ``replace`` and ``delete --raw``: a request to a path, and the body of the
answer as it comes.

There is no server behind it: its handlers answer in this process. Upstream:
``kubectl/pkg/rawhttp``.
"""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from kubepy import KUBERNETES_VERSION
from kubepy.api.values.goformat import quote
from kubepy.cli.errors import CliError
from kubepy.cli.get_flags import GetOptions
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.manifests import read_text
from kubepy.cli.runtime.options import RawOptions
from kubepy.server import requestinfo, routes
from kubepy.server.messages import JSON, HandlerContext, HttpRequest, Response

HEADERS = {
    "accept": f"{JSON}, */*",
    "content-type": JSON,
    "user-agent": f"kubectl/{KUBERNETES_VERSION}",
}


# --- commands -------------------------------------------------------------------------------------


def get(factory: Factory, options: GetOptions) -> None:
    """Print the answer to a GET. Raises CliError for flags that exclude --raw, and what the request
    raises."""
    if options.args:
        raise CliError("arguments may not be passed when --raw is specified")
    if options.watch or options.watch_only or options.selector:
        raise CliError(
            "--raw may not be specified with other flags that filter the server request or alter "
            "the output"
        )
    check_path(options.raw, options.output)
    factory.print(send(factory, "GET", options.raw), end="")


def post(factory: Factory, options: RawOptions, output: str) -> None:
    """Create: print the answer to a POST. Raises CliError, and what the request raises."""
    check_path(options.raw, output)
    _send_file(factory, options, "POST")


def put(factory: Factory, options: RawOptions, output: str) -> None:
    """Replace: print the answer to a PUT. Raises as ``post``."""
    check_file(options)
    check_path(options.raw, output)
    _send_file(factory, options, "PUT")


def delete(factory: Factory, options: RawOptions, output: str) -> None:
    """Delete: print the answer to a DELETE, without a body if there is no file. Raises as
    ``post``."""
    if options.filename or options.recursive:
        check_file(options)
    check_path(options.raw, output)
    _send_file(factory, options, "DELETE")


def check_path(path: str, output: str) -> None:
    """Raise CliError for a --raw that no command takes."""
    if output:
        raise CliError("--raw and --output are mutually exclusive")
    if not path.startswith("/"):
        raise CliError(
            f"--raw must be a valid URL path: parse {quote(path)}: invalid URI for request"
        )


def check_file(options: RawOptions) -> None:
    """Raise CliError unless the flags name one file."""
    if len(options.filename) > 1 or not (options.filename or options.recursive):
        raise CliError("--raw can only use a single local file or stdin")
    if any(path.startswith(("http://", "https://")) for path in options.filename):
        raise CliError("--raw cannot read from a url")
    if options.recursive:
        raise CliError("--raw and --recursive are mutually exclusive")


# --- requests -------------------------------------------------------------------------------------


def _send_file(factory: Factory, options: RawOptions, method: str) -> None:
    text = read_text(factory, options.filename[0]) if options.filename else ""
    factory.print(send(factory, method, options.raw, text.encode()), end="")


def send(factory: Factory, method: str, path: str, body: bytes = b"") -> str:
    """Return the body of the answer to a request. Raises Status."""
    url = urlsplit(path)
    query = parse_qs(url.query, keep_blank_values=True)
    request = HttpRequest(method, url.path, query, HEADERS, body)
    info = requestinfo.parse_request_info(request)
    if method == "GET" and info.is_resource_request:
        factory.catch_up()
    context = HandlerContext(request, info, factory.cluster, None)
    response = routes.find_handler(info)(context)
    assert isinstance(response, Response)  # without an application nothing is streamed
    return response.body.decode()
