"""``kubepy create token``. Upstream: ``kubectl/pkg/cmd/create/create_token.go``."""

from __future__ import annotations

from typing import Any

from kubepy.api.errors import Status
from kubepy.api.meta import Object
from kubepy.api.scheme import GroupVersionResource
from kubepy.apiserver.request import CreateOptions, Request
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import duration_flag, string_array_flag, string_flag
from kubepy.cli.runtime.options import PrintFlags
from kubepy.cli.runtime.output import printer_for
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.cli import installation

ACCOUNTS = GroupVersionResource.parse("serviceaccounts")
KINDS = ("Node", "Pod", "Secret")  # to which a token can be bound


class TokenOptions(PrintFlags):
    """The flags of ``create token``."""

    audience: list[str] = string_array_flag(
        "audience",
        help="Audience of the requested token. Without it, the token "
        "is for the API server. Repeat this flag for several audiences.",
    )
    duration: float = duration_flag(
        "duration",
        help="Requested lifetime of the token. If it is 0, the server chooses it: an hour.",
    )
    bound_object_kind: str = string_flag(
        "bound-object-kind",
        help="Kind of an object to bind the token to: Node, Pod "
        "or Secret. Requires --bound-object-name.",
    )
    bound_object_name: str = string_flag(
        "bound-object-name",
        help="Name of an object to bind the token to. The token "
        "ends when the object is deleted. Requires --bound-object-kind.",
    )
    bound_object_uid: str = string_flag(
        "bound-object-uid",
        help="UID of the object to bind the token to. If unset, that of the existing object.",
    )

    def spec(self) -> Object:
        """Return the spec of the TokenRequest. Raises CliError."""
        if self.duration < 0:
            raise CliError("--duration must be greater than or equal to 0")
        if self.duration % 1:
            raise CliError("--duration cannot be expressed in units less than seconds")
        if "" in self.audience:
            raise CliError("--audience must not be an empty string")
        spec: dict[str, Any] = {"audiences": self.audience}
        if self.duration:
            spec["expirationSeconds"] = int(self.duration)
        kind = self.bound_object_kind
        name = self.bound_object_name
        uid = self.bound_object_uid
        if not kind:
            for flag, value in (("name", name), ("uid", uid)):
                if value:
                    raise CliError(
                        f"--bound-object-{flag} can only be set if --bound-object-kind is provided"
                    )
            return spec

        if kind not in KINDS:
            raise CliError(f"supported --bound-object-kind values are {', '.join(KINDS)}")
        if not name:
            raise CliError("--bound-object-name is required if --bound-object-kind is provided")
        return {
            **spec,
            "boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name, "uid": uid},
        }


@command(
    "token SERVICE_ACCOUNT_NAME",
    TokenOptions,
    examples="""
# For the ServiceAccount robot of this namespace
kubepy create token robot

# For one of another namespace, for ten minutes
kubepy create token robot -n shop --duration=10m

# For another server than the API server
kubepy create token robot --audience=https://vault.example.com

# For two of them
kubepy create token robot --audience=https://vault.example.com --audience=https://mail.example.com

# Until a Secret is deleted
kubepy create token robot --bound-object-kind=Secret --bound-object-name=robot-token

# With all that the server says of it
kubepy create token robot -o yaml
""",
)
def token(factory: Factory, options: TokenOptions) -> None:
    """Request a service account token.

    A server of this cluster ("kubepy serve") accepts it: both sign with the same key."""
    if len(options.args) != 1:
        options.usage_error(f"exactly one NAME is required, got {len(options.args)}")
    [name] = options.args
    if not name:
        raise CliError("service account name is required")
    spec = options.spec()
    if options.output or options.template:
        printer = printer_for(factory, options, "", typed=True)
    else:
        printer = None

    client = factory.client
    if client.tokens.signing_key(factory.say) is None:
        raise CliError(f"this command needs {installation.missing_extra('serve')}")

    options_sent = CreateOptions(field_manager="kubectl-create")
    request = Request("create", ACCOUNTS, factory.namespace, name, "token", options_sent)
    try:
        issued = client.do(
            request,
            {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec},
        )
    except Status as error:
        raise CliError(f"failed to create token: {error}") from None

    assert isinstance(issued, dict)
    if printer is None:
        factory.print(issued["status"]["token"])
    else:
        printer(issued)
