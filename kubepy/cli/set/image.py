"""``set image``."""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.cli.errors import CliError, raise_all
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flagsets import selector_flag
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.cli.set.change import change_each, common_flags, infos_for, refuse_contradictions, reply_of
from kubepy.cli.set.pod_specs import all_containers, pod_spec_of, split_pairs
from kubepy.quoting import quote

EXAMPLES = """
    # Give the container agent of a DaemonSet a new image
    kubepy set image ds/log-agent agent=fluent-bit:3.1

    # The same image for every container of all DaemonSets and Deployments
    kubepy set image ds,deploy --all '*=registry.example.com/app:7'

    # Change a manifest without looking at the cluster
    kubepy set image -f ds.yaml agent=fluent-bit:3.1 --local -o yaml
"""


FLAGS = [*common_flags("image"), selector_flag()]


@verb("image", "image (-f FILENAME | TYPE NAME) CONTAINER=IMAGE ...", flags=FLAGS, examples=EXAMPLES)
def image(factory: Factory, given: Invocation) -> None:
    """Update existing container image(s) of resources.

    Possible resources: pods, replication controllers, deployments, daemon sets, stateful sets, cron jobs, replica sets.
    """
    reply = reply_of(factory, given, "image updated")
    resources, images = split_pairs(given.args, "image")
    infos = infos_for(factory, given, resources)
    _validate(given, resources, images)
    refuse_contradictions(given, reply)
    errors: list[Exception] = []

    def change(obj: Object) -> None:
        errors.extend(set_images(pod_spec_of(obj), images))

    change_each(factory, given, infos, change, reply, errors=errors,
                failed="failed to patch image update to pod template: ")


def _validate(given: Invocation, resources: list[str], images: dict[str, str]) -> None:
    errors: list[Exception] = []
    if not resources and not given.filename and not given.kustomize:
        errors.append(CliError("one or more resources must be specified as <resource> <name> or <resource>/<name>"))
    if not images:
        errors.append(CliError("at least one image update is required"))
    elif len(images) > 1 and "*" in images:
        errors.append(CliError("all containers are already specified by *, but saw more than one"
                               " container_name=container_image pairs"))
    raise_all(errors)


def set_images(spec: Object, images: dict[str, str]) -> list[Exception]:
    """Set the images of containers by name (``*``: all); returns an error for each name that no container has."""
    errors: list[Exception] = []
    for name, new_image in images.items():
        found = [container for container in all_containers(spec) if name in ("*", container["name"])]
        for container in found:
            container["image"] = new_image
        if not found:
            errors.append(CliError(f"error: unable to find container named {quote(name)}"))
    return errors
