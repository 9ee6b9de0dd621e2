"""What is not known, or not acted on, of the containers of a manifest before they run.

Pure functions. ``kubepy.kubelet.unknowns`` speaks of pods that are there.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.meta import AnyObject, Object, annotations_of, name_of, namespace_of, nested_map
from kubepy.api.objects.images import image_repository
from kubepy.api.objects.outcomes import OUTCOME, UnknownOutcomeError
from kubepy.api.objects.unknowns import (
    CALLED,
    COMMANDS,
    HOOKS,
    IMAGE,
    PROBES,
    PROGRAM,
    TAG,
    VOLUME,
    UnknownPart,
)
from kubepy.api.objects.usage import AnnotationError
from kubepy.apiserver.settings import MODELLED
from kubepy.kubelet.behaviours import (
    OF_TABLE,
    SAYS_ENOUGH,
    Behaviours,
    answer_to,
    containers_of,
    finder,
)
from kubepy.kubelet.modelled.programs import program_of
from kubepy.lazy import lazy_imports
from kubepy.shell.words import OWN_WORDS, SHELLS, is_known_program, program_name

with lazy_imports():
    from kubepy.kubelet import images  # reads a file
    from kubepy.shell import parser

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kubepy.api.typed import Container, Pod
    from kubepy.apiserver.client import Client
    from kubepy.kubelet.behaviours import Behaviour
    from kubepy.shell.syntax import Script, Word

PROBE_FIELDS = ("livenessProbe", "readinessProbe", "startupProbe")
HOOK_FIELDS = ("postStart", "preStop")
JOB_KINDS = ("Job", "CronJob")
# Volumes that hold what they hold in a cluster; all others are empty directories.
KNOWN_VOLUMES = frozenset(
    {
        "configMap", "downwardAPI", "emptyDir", "ephemeral", "hostPath", "persistentVolumeClaim",
        "projected", "secret",
    }
)  # fmt: skip
# Words in tags of well-known images that have no version in them.
TAG_WORDS = frozenset(
    {
        "alpha", "alpine", "alpinelinux", "apache", "beta", "bookworm", "bullseye", "buster",
        "canary", "cli", "community", "current", "debian", "debug", "dev", "develop", "edge",
        "enterprise", "focal", "fpm", "full", "glibc", "jammy", "jdk", "jre", "latest", "lts",
        "main", "mainline", "management", "master", "minimal", "musl", "nanoserver", "nightly",
        "noble", "nonroot", "otel", "perl", "rc", "release", "root", "slim", "stable", "stretch",
        "temurin", "test", "trixie", "trusty", "ubi", "ubuntu", "uclibc", "unstable",
        "windowsservercore", "xenial",
    }
)  # fmt: skip


def unknowns_of(client: Client, objects: Sequence[Object]) -> list[UnknownPart]:
    """Return what is not known of the pods of some pods and workloads, each once."""
    settings = client.settings.kubelet

    unknowns: dict[UnknownPart, None] = {}
    is_modelled = settings.containers == MODELLED
    behaviours = Behaviours.of_cluster(client, finder(client))
    for obj in objects:
        pod = pod_of(obj)
        if pod is None or annotations_of(pod).get(OUTCOME) or settings.outcome:
            continue
        ends = obj["kind"] in JOB_KINDS
        try:
            foreseen = [*_of_pod(pod, behaviours, ends, is_modelled=is_modelled)]
        except (AnnotationError, UnknownOutcomeError):  # the kubelet tells of it in an event
            continue
        unknowns.update(dict.fromkeys(foreseen))
    return list(unknowns)


def pod_of(obj: Object) -> Pod | None:
    """Return a pod as it is, or one as a workload makes them; None for an object without pods."""
    if obj["kind"] == "Pod":
        return cast("Pod", obj)
    spec: Any = obj.get("spec") or {}
    owner = {"kind": obj["kind"], "name": name_of(obj), "controller": True}
    if obj["kind"] == "CronJob":
        spec = (spec.get("jobTemplate") or {}).get("spec") or {}
        owner["kind"] = "Job"
    template = spec.get("template") or {}
    if not (template.get("spec") or {}).get("containers"):
        return None
    metadata = {
        **(template.get("metadata") or {}),
        "namespace": namespace_of(obj),
        "name": name_of(obj),
        "ownerReferences": [owner],
    }
    return cast("Pod", {"metadata": metadata, "spec": template["spec"]})


def _of_pod(
    pod: Pod, behaviours: Behaviours, ends: bool, *, is_modelled: bool
) -> Iterator[UnknownPart]:
    for container in containers_of(pod):
        behaviour = behaviours.of(pod, container)
        yield from _of_tag(container.get("image") or "", behaviour)
        if is_modelled:
            yield from _of_container(container, behaviour, ends)
        else:
            for subject in not_acted_on(container):
                # A Job is said to succeed, whatever its command is.
                is_surprising = ends and subject == COMMANDS
                yield UnknownPart(subject, "", ends, is_surprising)
    if is_modelled:
        for _, type_ in unknown_volumes(pod):
            yield UnknownPart(VOLUME, type_)


def _of_tag(image: str, behaviour: Behaviour) -> Iterator[UnknownPart]:
    """Yield a well-known image whose tag looks like none that there is."""
    if "pull" not in behaviour.sources and is_doubtful(image):
        yield UnknownPart(TAG, image)


def is_doubtful(image: str) -> bool:
    """Tell whether a tag of a well-known image has neither a version in it nor a word that tags
    without one have."""
    repository, tag = image_repository(image)
    if not tag or re.search(r"\d", tag):
        return False
    words = re.split(r"[._-]", tag)
    if TAG_WORDS.issuperset(words):
        return False
    return repository in images.table()


def not_acted_on(container: Container) -> list[str]:
    """Return what a manifest says of a container and nobody does where containers are not
    modelled."""
    values = cast("dict[str, Any]", container)
    subjects = []
    if values.get("command"):
        subjects.append(COMMANDS)
    if any(values.get(field) for field in PROBE_FIELDS):
        subjects.append(PROBES)
    if values.get("lifecycle"):
        subjects.append(HOOKS)
    return subjects


def unknown_volumes(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield the name and the type of each volume whose content is not known."""
    volumes = cast("Sequence[dict[str, Any]]", pod["spec"].get("volumes") or ())
    for volume in volumes:
        for field in volume:
            is_known = field == "name" or field in KNOWN_VOLUMES
            if not is_known and not is_known_image_volume(volume):
                yield volume["name"], field


def is_known_image_volume(volume: AnyObject) -> bool:
    """Tell whether a volume is an image of which files are known."""
    image = nested_map(volume, "image").get("reference") or ""
    return bool(image) and bool(images.files_of(image))


# --- programs -------------------------------------------------------------------------------------


def _of_container(container: Container, behaviour: Behaviour, ends: bool) -> Iterator[UnknownPart]:
    """Yield what is not known of a container's program, probes and hooks."""
    if not SAYS_ENOUGH.isdisjoint(_ruled(behaviour.sources)):
        return
    program = program_of(container, behaviour)
    has_program = bool(container.get("command"))
    if program.unknown and not has_program and not behaviour.is_known:
        yield UnknownPart(IMAGE, container.get("image") or "", ends, is_surprising=False)
    elif program.unknown and is_called(program.unknown, container):
        yield UnknownPart(PROGRAM, program.unknown, ends, behaviour.is_known)
    if not program.is_opaque:
        for name in _unknown_in_script(program.command, container, behaviour):
            yield UnknownPart(PROGRAM, name, ends, behaviour.is_known)
    for words in _called_commands(container):
        yield from _of_call(words, container, behaviour)


def _ruled(sources: Mapping[str, str]) -> Iterator[str]:
    """Yield the fields that something else says than the table of well-known images."""
    for field, source in sources.items():
        if not source.startswith(OF_TABLE):
            yield field


def is_called(word: str, container: Container) -> bool:
    """Tell whether a container's own command, or its args where it has none, begin with a word."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return words[:1] == [word]


def _called_commands(container: Container) -> Iterator[Sequence[str]]:
    """Yield the command lines of the probes and hooks of a container."""
    values = cast("dict[str, Any]", container)
    handlers = [values.get(field) for field in PROBE_FIELDS]
    lifecycle = values.get("lifecycle") or {}
    handlers += [lifecycle.get(field) for field in HOOK_FIELDS]
    for handler in handlers:
        words = ((handler or {}).get("exec") or {}).get("command")
        if words:
            yield words


def _of_call(
    words: Sequence[str], container: Container, behaviour: Behaviour
) -> Iterator[UnknownPart]:
    """Yield what is not known of the command of a probe or a hook."""
    if answer_to(behaviour, words) is not None:
        return
    names = [words[0]]
    if _is_known(words[0], container, behaviour):
        names = _unknown_in_script(words, container, behaviour)
    for name in names:
        yield UnknownPart(CALLED, name, is_surprising=behaviour.is_known)


def _unknown_in_script(
    words: Sequence[str], container: Container, behaviour: Behaviour
) -> list[str]:
    """Return the programs, and a construct, of ``sh -c SCRIPT`` that are not known."""
    text = script_in(words)
    if not text:
        return []
    script = parser.parse(text)
    functions = {node.name for node in script.nodes if node.kind == "function"}
    unknown = []
    for name in _names_in(script):
        if name not in functions and not _is_known(name, container, behaviour):
            unknown.append(name)
    for node in script.nodes:
        if node.kind == "unknown":
            unknown.append(f"a construct in line {node.line} of a script")
    return unknown


def script_in(words: Sequence[str]) -> str:
    """Return the script of a command line like ``sh -ec SCRIPT``; "" for any other."""
    if program_name(words[0]) not in SHELLS:
        return ""
    for index, word in enumerate(words[1:], start=2):
        if not word.startswith("-"):
            return ""
        is_cluster = not word.startswith("--") and "c" in word
        if is_cluster and index < len(words):
            return words[index]
    return ""


def _names_in(script: Script) -> Iterator[str]:
    """Yield the programs and functions that a script calls by a name that stands in it."""
    for node in script.nodes:
        if node.kind != "simple" or not node.words:
            continue
        name = _literal(node.words[0])
        if name == "exec" and len(node.words) > 1:
            name = _literal(node.words[1])
        if name and not name.startswith("-"):
            yield name


def _literal(word: Word) -> str:
    """Return the text of a word in which nothing is expanded; "" for another."""
    text = ""
    for part in word:
        literal = getattr(part, "text", None)
        if literal is None:
            return ""
        text += literal
    return text


def _is_known(name: str, container: Container, behaviour: Behaviour) -> bool:
    """Tell whether it is known what a program does that is called in a container. One at a path may
    be a file that a volume has, or that the container makes."""
    if name in OWN_WORDS or is_known_program(name):
        return True
    if posixpath.basename(name) in behaviour.programs:
        return True
    if "/" in name and container.get("volumeMounts"):
        return True
    return answer_to(behaviour, [name]) is not None
