"""Attaching to the pod that ``kubepy run`` has made.

Upstream: ``kubectl/pkg/cmd/run/run.go`` (``handleAttachPod``, ``waitForPod``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kubepy.api.meta import Object, name_of, namespace_of, nested_list, status_of
from kubepy.api.objects.pods import TERMINAL_PHASES, is_pod_ready
from kubepy.cli.delete import DeletionSettings, print_deleted
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.inside.attach import Attachment, attach_or_log, print_log
from kubepy.cli.inside.pods import PODS
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.infos import info_of
from kubepy.cli.runtime.options import NONE
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api import errors
    from kubepy.apiserver import request as requests


class AttachedRun(NamedTuple):
    """The things that ``run`` does with the pod that it has made.

    :ivar command: the command that attaches again.
    :ivar policy: the propagation policy with which ``--rm`` deletes.
    :ivar waits: the command ends as the pod does.
    """

    command: str
    policy: str
    timeout: float
    restart: str
    stdin: bool = False
    tty: bool = False
    quiet: bool = False
    removes: bool = False
    waits: bool = True


def attach_to_created(
    factory: Factory, run: AttachedRun, created: list[Object], pod: Object
) -> None:
    """Attach to the pod, end as it has ended, and remove with ``--rm`` what was created."""
    try:
        _attach(factory, run, pod)
    finally:
        if run.removes:
            _remove(factory, run, created)


def _attach(factory: Factory, run: AttachedRun, pod: Object) -> None:
    """Attach to the pod until its container ends. Raises SilentExit for one that has failed."""
    pod = _wait_for(
        factory,
        pod,
        run.timeout,
        _can_be_shown,
    )
    attachment = Attachment(
        run.command,
        "",
        run.stdin,
        run.tty,
        run.quiet,
    )
    print_log(factory, pod, attachment)
    if not _is_completed(pod):
        attach_or_log(factory, pod, attachment)
    if not run.waits or run.restart not in ("Never", "OnFailure"):
        return
    is_over = _has_succeeded
    if run.restart == "Never":
        is_over = _is_completed
    ended = _wait_for(
        factory,
        pod,
        run.timeout,
        is_over,
    )
    _end_as(factory, ended)


def _can_be_shown(pod: Object) -> bool:
    if _is_completed(pod):
        return True
    return _is_ready(pod)


def _is_completed(pod: Object) -> bool:
    return status_of(pod).get("phase") in TERMINAL_PHASES


def _has_succeeded(pod: Object) -> bool:
    return status_of(pod).get("phase") == "Succeeded"


def _is_ready(pod: Object) -> bool:
    if status_of(pod).get("phase") != "Running":
        return False
    return is_pod_ready(pod)


def _wait_for(
    factory: Factory, pod: Object, timeout: float, condition: Callable[[Object], bool]
) -> Object:
    """Wait until a pod meets a condition; return it. Raises CliError, NotFound."""
    name = name_of(pod)
    namespace = namespace_of(pod)

    def present() -> Object:
        return factory.client.get(PODS, name, namespace=namespace)

    if not factory.driver.wait_until(lambda: condition(present()), timeout or None):
        raise CliError("timed out waiting for the condition")
    return present()


def _end_as(factory: Factory, pod: Object) -> None:
    """Fail with the exit status of a pod that has failed. Raises CliError, SilentExit."""
    if _has_succeeded(pod):
        return
    subject = f"pod {namespace_of(pod)}/{name_of(pod)}"
    statuses = nested_list(status_of(pod), "containerStatuses")
    ended: Object = {}
    if statuses:
        ended = (statuses[0].get("state") or {}).get("terminated") or {}
    code = ended.get("exitCode", 0)
    if not code:
        raise CliError(f"{subject} failed with unknown exit code")
    factory.say(f"{subject} terminated ({ended.get('reason', '')})\n{ended.get('message', '')}")
    raise SilentExit(code)


def _remove(factory: Factory, run: AttachedRun, created: list[Object]) -> None:
    """Delete what was created, and say so. What is gone already is no error.

    The controllers do what follows at once: the next command may want the same name.
    """
    deletion = DeletionSettings(
        -1,
        False,
        run.policy,
        NONE,
        False,
    )
    deletion_options = requests.DeleteOptions(propagation_policy=run.policy)
    for obj in created:
        kind = obj["kind"].lower()
        resource = factory.scheme.by_key(f"{kind}s")
        name = name_of(obj)
        namespace = namespace_of(obj)
        try:
            factory.client.delete(
                resource.gvr,
                name,
                namespace=namespace,
                options=deletion_options,
            )
        except errors.NotFound:
            continue
        if not run.quiet:
            print_deleted(factory, info_of(resource, obj), deletion)
    factory.driver.react()
