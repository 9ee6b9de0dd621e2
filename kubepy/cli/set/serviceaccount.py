"""``set serviceaccount``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.cli.set.change import change_each, common_flags, infos_for, refuse_local_server, reply_of
from kubepy.cli.set.pod_specs import pod_spec_of

EXAMPLES = """
    # Run the pods of a deployment as another service account
    kubepy set serviceaccount deployment/web runner

    # Only show what that would change
    kubepy set serviceaccount deployment/web runner --dry-run=client -o yaml
"""


@verb("serviceaccount", "serviceaccount (-f FILENAME | TYPE NAME) SERVICE_ACCOUNT",
      flags=common_flags("serviceaccount"), examples=EXAMPLES)
def serviceaccount(factory: Factory, given: Invocation) -> None:
    """Update the service account of pod template resources."""
    reply = reply_of(factory, given, "serviceaccount updated")
    refuse_local_server(given, reply)
    if not given.args:
        raise CliError("serviceaccount is required")
    *resources, name = given.args

    def change(obj: Object) -> None:
        pod_spec_of(obj)["serviceAccountName"] = name

    infos = infos_for(factory, given, resources, drops_words=True)
    change_each(factory, given, infos, change, reply, failed="failed to patch ServiceAccountName ", always=True)
