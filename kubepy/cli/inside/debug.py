"""``kubepy debug``: containers beside those of a pod, copies of pods, and pods on a node.

Upstream: ``kubectl/pkg/cmd/debug/debug.go``.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.errors import NotFound
from kubepy.api.meta import Object, clone, name_of, namespace_of, status_of, uid_of
from kubepy.api.objects.images import is_image_reference
from kubepy.apiserver.request import STRATEGIC_MERGE_PATCH, DeleteOptions, Patch
from kubepy.cli.errors import CliError
from kubepy.cli.inside.attach import Attachment, attach_or_log, print_log
from kubepy.cli.inside.pods import PODS, find_container
from kubepy.cli.inside.profiles import (
    COPY,
    EPHEMERAL,
    LEGACY,
    NODE,
    Kept,
    apply_profile,
    require_profile,
)
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import bringing, command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, string_flag, string_slice_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.options import FilenameOptions
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote

with lazy_imports():
    from kubepy.api.patches import documents
    from kubepy.api.schema import openapi
    from kubepy.storage import yaml

PULL_POLICIES = ("", "Always", "IfNotPresent", "Never")
UNCHANGEABLE = ("name", "command", "image", "lifecycle", "volumeDevices")
_ONLY_COPY = " (This flag only works when used with '--copy-to')"


class DebugOptions(FilenameOptions):
    """The flags of ``debug``."""

    filename: list[str] = string_slice_flag(
        "filename", "f", help="The file of the resource to debug."
    )
    arguments_only: bool = bool_flag(
        "arguments-only",
        help="If specified, everything after -- is passed to the new container as its arguments "
        "instead of its command.",
    )
    attach: bool = bool_flag(
        "attach",
        help="If true, wait for the container to start running, and then attach to it. Default "
        "false, unless -i is set, in which case the default is true.",
    )
    container: str = string_flag("container", "c", help="Container name to use for debugging.")
    copy_to: str = string_flag("copy-to", help="Create a copy of the target pod with this name.")
    replace: bool = bool_flag(
        "replace", help="When used with '--copy-to', delete the original pod."
    )
    env: list[str] = string_slice_flag(
        "env", help="Environment variables to set in the container (KEY=VALUE)."
    )
    image: str = string_flag("image", help="Container image to use for debugging.")
    keep_labels: bool = bool_flag("keep-labels", help="Keep the pod's labels." + _ONLY_COPY)
    keep_annotations: bool = bool_flag(
        "keep-annotations", help="Keep the pod's annotations." + _ONLY_COPY
    )
    keep_liveness: bool = bool_flag("keep-liveness", help="Keep liveness probes." + _ONLY_COPY)
    keep_readiness: bool = bool_flag("keep-readiness", help="Keep readiness probes." + _ONLY_COPY)
    keep_startup: bool = bool_flag("keep-startup", help="Keep startup probes." + _ONLY_COPY)
    keep_init_containers: bool = bool_flag(
        "keep-init-containers", default=True, help="Keep init containers." + _ONLY_COPY
    )
    set_image: list[str] = string_slice_flag(
        "set-image",
        help="When used with '--copy-to', name=image pairs of containers to change; * stands for "
        "all of them.",
    )
    image_pull_policy: str = string_flag(
        "image-pull-policy", help="The image pull policy for the container."
    )
    stdin: bool = bool_flag("stdin", "i", help="Keep stdin open on the container.")
    quiet: bool = bool_flag("quiet", "q", help="If true, suppress informational messages.")
    same_node: bool = bool_flag(
        "same-node", help="Schedule the copy on the same node." + _ONLY_COPY
    )
    share_processes: bool = bool_flag(
        "share-processes",
        default=True,
        help="Let the containers of the copy see each other's processes." + _ONLY_COPY,
    )
    target: str = string_flag(
        "target", help="For an ephemeral container: target processes in this container."
    )
    tty: bool = bool_flag("tty", "t", help="Allocate a terminal for the container.")
    profile: str = string_flag(
        "profile",
        default="general",
        help='Options are "general", "baseline", "restricted", "netadmin" or "sysadmin".',
    )
    custom: str = string_flag(
        "custom", help="A JSON or YAML file with a part of a container, to change the profile."
    )


@bringing
@command(
    "debug (POD | TYPE[[.VERSION].GROUP]/NAME) [ -- COMMAND [args...] ]",
    DebugOptions,
    examples="""
# A debugging container in a pod, and a session with it
kubepy debug web -it --image=busybox

# One of a chosen name
kubepy debug web --image=tools:1 -c debugger

# A copy of a pod with a debugging container
kubepy debug web -it --image=busybox --copy-to=web-debug

# A copy with another command in one of its containers, and one with other images
kubepy debug web -it --copy-to=web-debug --container=app -- sh
kubepy debug web --copy-to=web-debug --set-image=*=busybox

# A pod on a node, in the node's namespaces
kubepy debug node/node-1 -it --image=busybox
""",
)
def debug(factory: Factory, options: DebugOptions) -> None:
    """Debug cluster resources using interactive debugging containers.

    A pod gets an ephemeral container, or is copied with --copy-to; for a node a pod is created there."""  # noqa: E501
    debugger = Debugger(factory, options)
    debugger.validate()
    factory.catch_up()
    words = debugger.targets
    if len(words) == 1 and "/" not in words[0]:
        words = [PODS, words[0]]
    Builder(factory, options, args=words).do().visit_until_error(debugger.visit)


def _pairs(texts: list[str]) -> dict[str, str]:
    """Read ``name=value`` pairs. Raises CliError."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise CliError(f"{text} must be formatted as key=value")
        pairs[name] = value
    return pairs


class Debugger:
    """One run of ``debug``."""

    def __init__(self, factory: Factory, options: DebugOptions) -> None:
        self._factory = factory
        self._options = options
        dash = options.line.dash
        self.targets = options.args
        self._words: list[str] = []
        if dash >= 0:
            self.targets = options.args[:dash]
            self._words = options.args[dash:]
        self._env = _pairs(options.env)
        self._images = _pairs(options.set_image)
        self._attaches = options.attach
        if options.stdin and not options.changed("attach"):
            self._attaches = True
        self._custom: Object | None = None

    # --- flags

    def validate(self) -> None:
        """Raise CliError for flags that contradict each other."""
        options = self._options
        require_profile(options.profile)
        if options.custom:
            self._custom = self._read_custom(options.custom)
        if options.attach and not options.image and not options.container:
            raise CliError(
                "you must specify --container or create a new container using --image in order to "
                "attach."
            )
        if options.copy_to:
            self._validate_copy()
        else:
            self._validate_no_copy()
        if options.image and not is_image_reference(options.image):
            raise CliError(f"invalid image name {quote(options.image)}: invalid reference format")
        if not self.targets and not options.filename:
            raise CliError("NAME or filename is required for debug")
        if options.image_pull_policy not in PULL_POLICIES:
            raise CliError(f"invalid image pull policy: {options.image_pull_policy}")
        for name, image in self._images.items():
            if not is_image_reference(image):
                raise CliError(
                    f"invalid image name {quote(image)} for container {quote(name)}: invalid "
                    "reference format"
                )
        self._validate_target()
        if options.tty and not options.stdin:
            raise CliError("-i/--stdin is required for containers with -t/--tty=true")
        if self._custom is not None and any(self._custom.get(key) for key in UNCHANGEABLE):
            raise CliError(
                "name, command, image, lifecycle and volume devices are not modifiable via custom "
                "profile"
            )
        if options.profile == LEGACY:
            self._factory.say(
                "--profile=legacy is deprecated and planned to be removed in v1.39. It is "
                'recommended to specify other profile, for example "--profile=general".'
            )

    def _validate_copy(self) -> None:
        options = self._options
        if not options.image and not self._images and not self._words:
            raise CliError("you must specify --image, --set-image or command arguments.")
        if self._words and not options.container and not options.image:
            raise CliError(
                "you must specify an existing container or a new image when specifying args."
            )

    def _validate_no_copy(self) -> None:
        options = self._options
        if options.replace:
            raise CliError("--replace may only be used with --copy-to.")
        if options.same_node:
            raise CliError("--same-node may only be used with --copy-to.")
        if self._images:
            raise CliError("--set-image may only be used with --copy-to.")
        if not options.image:
            raise CliError("you must specify --image when not using --copy-to.")

    def _validate_target(self) -> None:
        options = self._options
        if not options.target:
            return
        if options.copy_to:
            raise CliError(
                "--target is incompatible with --copy-to. Use --share-processes instead."
            )
        if not options.quiet:
            self._factory.print(
                f"Targeting container {quote(options.target)}. If you don't see processes from "
                "this container it may be because the container runtime doesn't support this "
                "feature."
            )

    def _read_custom(self, path: str) -> Object:
        """Return the part of a container that a file holds. Raises CliError."""
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise CliError(
                f"must pass a container spec json file for custom profile: open {path}: {reason}"
            ) from None
        try:
            loaded = yaml.load_all(text)
        except yaml.YamlError as error:
            raise CliError(f"{path} does not contain a valid container spec: {error}") from None
        custom = loaded[0].object if loaded else None
        if not isinstance(custom, dict):
            raise CliError(f"{path} does not contain a valid container spec: it is no object")
        return custom

    # --- objects

    def visit(self, info: Info) -> None:
        """Debug one object, and attach to its container if that is asked for."""
        obj = info.get(self._factory)
        if info.resource.key == "nodes":
            pod, name = self._debug_node(obj)
        elif info.resource.key != PODS:
            resource = info.resource
            group = f"{resource.group}/{resource.version}"
            raise CliError(f'"{group}, Kind={resource.kind}" not supported by debug')
        elif self._options.copy_to:
            pod, name = self._debug_copy(obj)
        else:
            pod, name = self._debug_with_container(obj)
        if self._attaches and name:
            self._attach(pod, name)

    def _container_name(self, pod: Object) -> str:
        """Return the name of the new container, and say which it is if none was chosen."""
        if self._options.container:
            return self._options.container
        ids = self._factory.client.ids
        number = len(pod["spec"].get("ephemeralContainers") or ())
        attempt = 0
        name = ""
        while not name or find_container(pod, name) is not None:
            suffix = ids.suffix(
                "debugger",
                uid_of(pod),
                number=number,
                attempt=attempt,
            )
            name = f"debugger-{suffix}"
            attempt += 1
        if not self._options.quiet:
            self._factory.print(f"Defaulting debug container name to {name}.")
        return name

    def _new_container(self, name: str) -> Object:
        options = self._options
        container: dict[str, Any] = {"name": name, "image": options.image}
        if self._words:
            container["args" if options.arguments_only else "command"] = self._words
        if self._env:
            container["env"] = self._variables()
        if options.image_pull_policy:
            container["imagePullPolicy"] = options.image_pull_policy
        if options.stdin:
            container["stdin"] = True
        if options.tty:
            container["tty"] = True
        container["terminationMessagePolicy"] = "File"
        return container

    def _variables(self) -> list[Object]:
        variables = []
        for name, value in self._env.items():
            variables.append({"name": name, "value": value})
        return variables

    def _shape(self, pod: Object, name: str, style: str) -> None:
        """Give a container what the profile, and the custom one, say."""
        options = self._options
        kept = Kept(
            options.keep_labels,
            options.keep_annotations,
            options.keep_liveness,
            options.keep_readiness,
            options.keep_startup,
            options.keep_init_containers,
        )
        apply_profile(
            options.profile,
            pod,
            name,
            style,
            kept,
        )
        if self._custom is None:
            return
        container = find_container(pod, name)
        assert container is not None
        field = "ephemeralContainers" if style == EPHEMERAL else "containers"
        patch = {"spec": {field: [{**self._custom, "name": name}]}}
        schema = openapi.schema_for("v1", "Pod")
        merged = documents.strategic_merge_patch(pod, patch, schema)
        pod["spec"] = merged["spec"]

    def _warn_of_user(self, pod: Object, name: str) -> None:
        """Warn of capabilities that a user who is not root has not (``displayWarning``)."""
        container = find_container(pod, name)
        user = (pod["spec"].get("securityContext") or {}).get("runAsUser")
        if container is None or not user:
            return
        security = container.get("securityContext") or {}
        if security.get("runAsUser") == 0:
            return
        added = (security.get("capabilities") or {}).get("add")
        if security.get("privileged") or added:
            self._factory.say(
                "Warning: Non-root user is configured for the entire target Pod, and some "
                "capabilities granted by debug profile may not work. Please consider using "
                '"--custom" with a custom profile that specifies "securityContext.runAsUser: 0".'
            )

    def _debug_with_container(self, pod: Object) -> tuple[Object, str]:
        """Add an ephemeral container to a pod."""
        name = self._container_name(pod)
        container = self._new_container(name)
        if self._options.target:
            container["targetContainerName"] = self._options.target
        changed = clone(pod)
        changed["spec"].setdefault("ephemeralContainers", []).append(container)
        self._shape(changed, name, EPHEMERAL)
        self._warn_of_user(changed, name)
        order = []
        for entry in changed["spec"]["ephemeralContainers"]:
            order.append({"name": entry["name"]})
        patch = {
            "spec": {
                "$setElementOrder/ephemeralContainers": order,
                "ephemeralContainers": [find_container(changed, name)],
            }
        }
        result = self._factory.client.patch(
            PODS,
            name_of(pod),
            Patch(STRATEGIC_MERGE_PATCH, patch),
            namespace=namespace_of(pod),
            subresource="ephemeralcontainers",
        )
        return result, name

    def _debug_copy(self, pod: Object) -> tuple[Object, str]:
        """Create a copy of a pod, with a new container or a changed one."""
        options = self._options
        copied, name = self._copy_of(pod)
        if name:
            self._shape(copied, name, COPY)
            self._warn_of_user(copied, name)
        client = self._factory.client
        namespace = namespace_of(pod)
        created = client.create(PODS, copied, namespace=namespace)
        if options.replace:
            at_once = DeleteOptions(grace_period_seconds=0)
            client.delete(
                PODS,
                name_of(pod),
                namespace=namespace,
                options=at_once,
            )
        return created, name

    def _copy_of(self, pod: Object) -> tuple[Object, str]:
        """Return the copy of a pod, and the name of the container to debug, "" for none."""
        options = self._options
        metadata: dict[str, Any] = {"name": options.copy_to, "namespace": namespace_of(pod)}
        for field in ("labels", "annotations"):
            if pod["metadata"].get(field):
                metadata[field] = dict(pod["metadata"][field])
        spec = clone(pod)["spec"]
        spec.pop("ephemeralContainers", None)
        if options.changed("share-processes"):
            spec["shareProcessNamespace"] = options.share_processes
        if not options.same_node:
            spec.pop("nodeName", None)
        for container in spec["containers"]:
            image = self._images.get(container["name"], self._images.get("*", ""))
            if image:
                container["image"] = image
        copied = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return copied, self._debugged(copied)

    def _debugged(self, copied: Object) -> str:
        """Change the container of a copy that is to be debugged, or add one; return its name."""
        options = self._options
        name = options.container
        container = find_container(copied, name) if name else None
        if container is None:
            if not options.image and self._images:
                return ""
            if not options.image:
                raise CliError("you must specify image when creating new container")
            name = self._container_name(copied)
            copied["spec"]["containers"].append(self._new_container(name))
            return name
        if self._words and options.arguments_only:
            container["args"] = self._words
        elif self._words:
            container["command"] = self._words
            container.pop("args", None)
        if self._env:
            container["env"] = self._variables()
        if options.image:
            container["image"] = options.image
        if options.image_pull_policy:
            container["imagePullPolicy"] = options.image_pull_policy
        container["stdin"] = options.stdin
        container["tty"] = options.tty
        return name

    def _debug_node(self, node: Object) -> tuple[Object, str]:
        """Create a pod in the namespaces of a node."""
        options = self._options
        name = options.container or "debugger"
        client = self._factory.client
        selector = "app.kubernetes.io/managed-by=kubectl-debug"
        others = client.list(PODS, label_selector=selector).items
        suffix = client.ids.suffix("node-debugger", uid_of(node), number=len(others))
        pod_name = f"node-debugger-{name_of(node)}-{suffix}"
        if not options.quiet:
            self._factory.print(
                f"Creating debugging pod {pod_name} with container {name} on node {name_of(node)}."
            )
        spec = {
            "containers": [self._new_container(name)],
            "nodeName": name_of(node),
            "restartPolicy": "Never",
            "tolerations": [{"operator": "Exists"}],
        }
        metadata = {
            "name": pod_name,
            "labels": {"app.kubernetes.io/managed-by": "kubectl-debug"},
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self._shape(pod, name, NODE)
        created = client.create(PODS, pod, namespace=self._factory.namespace)
        return created, name

    # --- attaching

    def _attach(self, pod: Object, name: str) -> None:
        """Wait until the container runs or has ended, and attach to it or print its log."""
        self._factory.tell_unknowns()
        options = self._options
        factory = self._factory
        namespace = namespace_of(pod)

        def state() -> Object:
            try:
                present = factory.client.get(PODS, name_of(pod), namespace=namespace)
            except NotFound:
                raise CliError('pods "" not found') from None
            for field in ("containerStatuses", "ephemeralContainerStatuses"):
                for status in status_of(present).get(field) or ():
                    if status["name"] == name:
                        return status.get("state") or {}
            return {}

        def has_begun() -> bool:
            present = state()
            return "running" in present or "terminated" in present

        factory.driver.wait_until(has_begun, factory.options.timeout_seconds() or None)
        program = options.line.path.rpartition(" ")[0]
        attachment = Attachment(
            f"{program} attach", name, options.stdin, options.tty, options.quiet
        )
        present = factory.client.get(PODS, name_of(pod), namespace=namespace)
        if "terminated" in state():
            print_log(factory, present, attachment)
        else:
            attach_or_log(factory, present, attachment)
