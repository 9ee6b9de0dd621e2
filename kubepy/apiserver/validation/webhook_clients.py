"""How a webhook is called: by a URL, or as a service of the cluster (``apiserver/pkg/util/webhook/validation.go``)."""

from __future__ import annotations

from urllib.parse import urlsplit

from kubepy.api.errors import invalid_value, required
from kubepy.api.meta import Object
from kubepy.api.values.names import dns1123_subdomain
from kubepy.apiserver.validation.fields import Errors
from kubepy.apiserver.validation.formats import port_number


def validate_webhook_client(client: Object, path: str, errors: Errors) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        errors.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        _validate_url(url, f"{path}.url", errors)
    elif service is not None:
        _validate_service(service, f"{path}.service", errors)


def _validate_url(url: str, path: str, errors: Errors) -> None:
    form = "; desired format: https://host[/path]"
    parts = urlsplit(url)
    if parts.scheme != "https":
        errors.append(invalid_value(path, parts.scheme, f"'https' is the only allowed URL scheme{form}"))
    user, _, host = parts.netloc.rpartition("@")
    if not host:
        errors.append(invalid_value(path, "", f"host must be specified{form}"))
    for value, what in ((user, "user information is"), (parts.fragment, "fragments are"),
                        (parts.query, "query parameters are")):
        if value:
            errors.append(invalid_value(path, value, f"{what} not permitted in the URL"))


def _validate_service(service: Object, path: str, errors: Errors) -> None:
    """Upstream takes name for namespace and the other way round; so the errors come in that order."""
    errors.extend(required(f"{path}.{field}") for field, value in
                  (("name", service.get("namespace")), ("namespace", service.get("name"))) if not value)
    port = service.get("port", 443)
    if wrong := port_number(port):
        errors.append(invalid_value(f"{path}.port", port, "port is not valid: " + ", ".join(wrong)))
    _validate_url_path(service.get("path") or "/", f"{path}.path", errors)


def _validate_url_path(url_path: str, path: str, errors: Errors) -> None:
    if url_path == "/":
        return
    if url_path == "//":
        errors.append(invalid_value(path, url_path, "segment[0] may not be empty"))
        return
    if not url_path.startswith("/"):
        errors.append(invalid_value(path, url_path, "must start with a '/'"))
    for index, step in enumerate(url_path[1:].removesuffix("/").split("/")):
        wrong = [f"segment[{index}]: {why}" for why in dns1123_subdomain(step)]
        errors.extend(invalid_value(path, url_path, why)
                      for why in (wrong if step else [f"segment[{index}] may not be empty"]))
