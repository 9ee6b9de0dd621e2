"""The behaviour of containers that their manifests do not say: which annotation, rule, default or
well-known image says it.

The first of these that says something sets a field: annotations of the pod, annotations of its
node, the rules of ``kubelet.rules`` in their order, the defaults of ``kubepy.yaml``, the table of
well-known images (``kubepy.kubelet.images``). Pure, but for a look at the file of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.errors import NotFound
from kubepy.api.meta import (
    AnyObject,
    annotations_of,
    controller_of,
    labels_of,
    name_of,
    namespace_of,
)
from kubepy.api.objects.images import familiar_image, normalized_image
from kubepy.api.objects.outcomes import (
    EXIT_CODE,
    OUTCOME,
    POD_OUTCOME,
    READY_AFTER,
    RUNS_FOR,
    STOPS_AFTER,
    parse_exit_code,
    parse_length,
    parse_outcomes,
)
from kubepy.api.objects.pods import containers_with_paths
from kubepy.apiserver.rule_settings import (
    NO_RULES,
    BehaviourRule,
    ExecAnswer,
    Glob,
    HttpReply,
    HttpSchedule,
    Length,
    RuleFile,
    RuleSettings,
    StartProblem,
)
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.objects.references import Find
    from kubepy.api.typed import Container, Node, Pod
    from kubepy.apiserver.client import Client
    from kubepy.kubelet.images import ImageFacts

PREFIX = "kubepy.dev/"
LOG = "kubepy.dev/log"
MOST_KEPT = 20_000  # behaviours of different containers
# The resources of the owners of pods that have owners themselves, by kind.
OWNED_OWNERS = {"ReplicaSet": "replicasets.apps", "Job": "jobs.batch"}
ANNOTATED = {
    OUTCOME: "outcome",
    EXIT_CODE: "exit_code",
    RUNS_FOR: "runs_for",
    READY_AFTER: "ready_after",
    STOPS_AFTER: "stops_after",
}
SETTING_NAMES = {
    OUTCOME: "outcome",
    EXIT_CODE: "exitCode",
    RUNS_FOR: "runsFor",
    READY_AFTER: "readyAfter",
    STOPS_AFTER: "stopsAfter",
}
FOR_JOBS = (RUNS_FOR, EXIT_CODE)  # those of nodes and kubepy.yaml count for the pods of Jobs only
# What a container does while the program of its image runs, and not where another one does.
OF_PROGRAM = frozenset(
    ("serves", "writes", "listens", "http", "log", "runs_for", "exit_code", "memory", "cpu")
)
# Fields that tell when things happen, and nothing of what a container does.
TIMES = frozenset(("ready_after", "stops_after"))
# A container is known if one of these is said of it.
SAYS_ENOUGH = frozenset(("program", "runs_for", "exit_code", "outcome", "entrypoint", "command"))
REFERENCES = {"configMapRef": "configmaps", "secretRef": "secrets"}  # resources, by envFrom's field
OF_TABLE = "well-known image"  # what the sources of its fields begin with
EMPTY: Mapping[str, str] = MappingProxyType({})


class Behaviour(NamedTuple):
    """The knowledge about one container. Every field is None or empty where nothing says it.

    :param pull: how long a pull takes; or "fails", with what the kubelet says of it.
    :param start: why the container is not started.
    :param program: "unknown" where the command says nothing of what the container does.
    :param exit_reason: the reason of its end, where it is not the one that follows from the code.
    :param exit_message: what it has written about its end.
    :param http: answers by path, which may be a pattern (:func:`schedule_of`).
    :param exec: answers by patterns of command lines (:func:`answer_to`).
    :param entrypoint: what the image runs, where the container has no command …
    :param command: … and its arguments, where the container has neither command nor args.
    :param is_known: the image, or what the container does, is known.
    :param sources: what says it, by field.
    :param programs: names of the image's programs that are known to run on: while one does, the
        container listens.
    :param serves: the folder whose files the container gives to HTTP requests of other paths than
        those of ``http``: 404 for one that is not there, 403 for a folder without index.html.
    :param is_bare: the image has the programs of ``programs`` and no others, not even a shell.
    :param lacks: programs that the image does not have.
    :param user: as whom the image's program runs: a name or a number, and a group after a colon.
    :param writes: empty files that the image's program makes when it starts, where their folder is
        there.
    """

    pull: Length | str | None = None
    start: StartProblem | None = None
    program: str | None = None
    ready_after: Length | str | None = None
    stops_after: Length | str | None = None
    runs_for: Length | None = None
    exit_code: int | None = None
    exit_reason: str | None = None
    exit_message: str | None = None
    memory: int | None = None
    cpu: Decimal | None = None
    listens: tuple[int, ...] | None = None
    http: tuple[tuple[str, HttpSchedule], ...] = ()
    log: str | None = None
    files: Mapping[str, str] = EMPTY
    env: Mapping[str, str] = EMPTY
    exec: tuple[tuple[Glob, ExecAnswer], ...] = ()
    outcome: str | None = None
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    is_known: bool = False
    sources: Mapping[str, str] = EMPTY
    programs: tuple[str, ...] = ()
    serves: str = ""
    is_bare: bool = False
    writes: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    user: str | None = None


def schedule_of(behaviour: Behaviour, path: str) -> HttpSchedule | None:
    """Return the answers to requests of a path: those for that very path, or those of the first
    pattern that matches it; None where nothing is said of it."""
    for known_path, schedule in behaviour.http:
        if known_path == path:
            return schedule
    for pattern, schedule in behaviour.http:
        if Glob(pattern).matches(path):
            return schedule
    return None


def answer_to(behaviour: Behaviour, words: Sequence[str]) -> ExecAnswer | None:
    """Return the answer to a command that is run in the container, None where no pattern matches
    its command line."""
    line = " ".join(words)
    for pattern, answer in behaviour.exec:
        if pattern.matches(line):
            return answer
    return None


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return the body of an answer, or a log, with each ``$(NAME)`` of a known variable
    replaced."""
    for name, value in variables.items():
        text = text.replace(f"$({name})", value)
    return text


def command_line(container: Container) -> str:
    """Return the command and the args of a container in one line."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return " ".join(words)


class Subject(NamedTuple):
    """A container as the conditions of rules see it."""

    images: tuple[str, ...]
    args: str
    container: str
    namespace: str = ""
    name: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    owners: tuple[str, ...] = ()
    node: str = ""


class Behaviours:
    """The behaviours of containers, kept by what they depend on: the containers of one template are
    looked at once.

    :param rules: a file of rules, or those of ``kubepy.yaml``; None: there are none.
    :param defaults: the values of annotations that neither pod nor node has.
    :param find: looks up the owners of owners, and what the environment of containers refers to.
    """

    def __init__(
        self,
        rules: RuleFile | RuleSettings | None = None,
        defaults: Mapping[str, str] = EMPTY,
        find: Find = lambda resource, namespace, name: None,
    ) -> None:
        self._file: RuleFile | None = None
        self._find = find
        self._defaults = {name: text for name, text in defaults.items() if text}
        settings = NO_RULES
        if isinstance(rules, RuleFile):
            self._file = rules
            settings = rules.settings()
        elif rules is not None:
            settings = rules
        self._take(settings)

    @classmethod
    def of_cluster(cls, client: Client, find: Find) -> Behaviours:
        """Build those of a cluster from its settings."""
        kubelet = client.settings.kubelet
        defaults = kubelet.annotations()
        return cls(client.open_rules(), defaults, find)

    @property
    def problem(self) -> str:
        """The reason why the newest file of rules does not count, "" where it does."""
        if self._file is None:
            return ""
        return self._file.problem

    def refresh(self) -> bool:
        """Look whether the file of rules has changed; return whether other rules hold from now
        on."""
        if self._file is None:
            return False
        settings = self._file.settings()
        if settings.source == self._settings.source:
            return False
        self._take(settings)
        return True

    def _take(self, settings: RuleSettings) -> None:
        """Go by other rules from now on."""
        self._settings = settings
        self._rules = settings.rules
        self._kept: dict[Any, Behaviour] = {}
        self._matching: dict[Any, tuple[BehaviourRule, ...]] = {}
        self._seen: set[str] = set()
        label_keys: set[str] = set()
        for rule in self._rules:
            conditions = rule.match._asdict()
            for condition, value in conditions.items():
                if value:
                    self._seen.add(condition)
            label_keys.update(rule.match.label_keys)
        self._label_keys = sorted(label_keys)

    def of(self, pod: Pod, container: Container, node: Node | None = None) -> Behaviour:
        """Return what a container of a pod does. Raises AnnotationError, UnknownOutcomeError for an
        annotation that cannot be read."""
        image = container.get("image") or ""
        command = tuple(container.get("command") or ())
        args = tuple(container.get("args") or ())
        environment = self._environment_key(image, pod, container)
        annotations = self._annotations_key(pod, node)
        rules: tuple[BehaviourRule, ...] = ()
        if self._rules:
            rules = self._rules_for(pod, container)
        name = ""
        if annotations:
            name = container["name"]
        places = tuple(rule.place for rule in rules)
        key = (image, command, args, environment, annotations, name, places)
        behaviour = self._kept.get(key)
        if behaviour is None:
            behaviour = self._evaluated(
                pod,
                container,
                node,
                rules,
            )
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = behaviour
        return behaviour

    def of_pod(self, pod: Pod, node: Node | None = None) -> dict[str, Behaviour]:
        """Return what each container of a pod does, by its name."""
        behaviours: dict[str, Behaviour] = {}
        for container in containers_of(pod):
            name = container["name"]
            behaviours[name] = self.of(pod, container, node)
        return behaviours

    # --- what it depends on

    def _environment_key(self, image: str, pod: Pod, container: Container) -> tuple[str, ...]:
        """Return the names of a container's variables, where its image goes by them."""
        facts = facts_of(image)
        if facts is None or not facts.sees_environment:
            return ()
        return _variable_names(pod, container, self._find)

    def _annotations_key(self, pod: Pod, node: Node | None) -> Any:
        """Return the annotations and defaults by which a pod lives."""
        own = _own_annotations(pod)
        of_node: tuple[tuple[str, str], ...] = ()
        node_name = ""
        if node is not None:
            of_node = _own_annotations(node)
        if node is not None and of_node:
            node_name = name_of(node)
        if not own and not of_node and not self._defaults:
            return None
        return own, of_node, node_name, _is_of_job(pod)

    def _subject(self, pod: Pod, container: Container) -> Subject:
        """Return what the rules see of a container, and nothing that none of them looks at."""
        image = container.get("image") or ""
        subject = Subject(
            _spellings(image),
            command_line(container),
            container["name"],
        )
        if "namespace" in self._seen:
            subject = subject._replace(namespace=namespace_of(pod))
        if "name" in self._seen:
            subject = subject._replace(name=name_of(pod))
        if "node" in self._seen:
            subject = subject._replace(node=pod["spec"].get("nodeName", ""))
        if "owner" in self._seen:
            subject = subject._replace(owners=self._owners(pod))
        if self._label_keys:
            own = labels_of(pod)
            labels = [(key, own[key]) for key in self._label_keys if key in own]
            subject = subject._replace(labels=tuple(labels))
        return subject

    def _owners(self, pod: Pod) -> tuple[str, ...]:
        """Return the controller of a pod and the controller of that one, as ``Kind/name``."""
        owners: list[str] = []
        obj: AnyObject | None = pod
        while obj is not None:
            owner = controller_of(obj)
            if owner is None:
                break
            kind = owner["kind"]
            name = owner["name"]
            owners.append(f"{kind}/{name}")
            resource = OWNED_OWNERS.get(kind)
            obj = None
            if resource is not None:
                obj = self._find(resource, namespace_of(pod), name)
        return tuple(owners)

    def _rules_for(self, pod: Pod, container: Container) -> tuple[BehaviourRule, ...]:
        """Return the rules that speak of a container."""
        subject = self._subject(pod, container)
        rules = self._matching.get(subject)
        if rules is None:
            rules = tuple(rule for rule in self._rules if _matches(rule, subject))
            if len(self._matching) >= MOST_KEPT:
                self._matching.clear()
            self._matching[subject] = rules
        if not any(rule.match.cel for rule in rules):
            return rules
        return tuple(
            rule for rule in rules if rule.match.cel is None or rule.match.cel.holds(pod, container)
        )

    # --- what it is

    def _evaluated(
        self, pod: Pod, container: Container, node: Node | None, rules: tuple[BehaviourRule, ...]
    ) -> Behaviour:
        """Put together what is said of a container, each field by the first who says it."""
        fields: dict[str, Any] = {}
        sources: dict[str, str] = {}

        def say(field: str, value: Any, source: str) -> None:
            if field not in fields:
                fields[field] = value
                sources[field] = source

        _say_annotations(
            pod,
            container,
            node,
            say,
        )
        for rule in rules:
            for field, value in rule.values.items():
                say(
                    field,
                    value,
                    f"rule {rule.place}",
                )
        self._say_defaults(pod, say)
        image = container.get("image") or ""
        facts = facts_of(image)
        if facts is not None:
            variables = _variable_names(pod, container, self._find)
            _say_facts(
                facts,
                container,
                variables,
                say,
            )
        is_ruled = any(not rule.values.keys() <= TIMES for rule in rules)
        fields["is_known"] = is_ruled or facts is not None
        fields["sources"] = MappingProxyType(sources)
        return Behaviour(**fields)

    def _say_defaults(self, pod: Pod, say: Callable[[str, Any, str], None]) -> None:
        for name, field in ANNOTATED.items():
            text = self._defaults.get(name)
            if not text or not _counts(name, pod):
                continue
            value = _read(name, text)
            setting = SETTING_NAMES[name]
            say(
                field,
                value,
                f"kubepy.yaml: kubelet.{setting}",
            )


def unknown_notes(
    pod: Pod,
    behaviours: Mapping[str, Behaviour],
    unknowns: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[str]:
    """Return a line for each container of whose image or programs nothing is known.

    :param behaviours: by the names of the containers (:meth:`Behaviours.of_pod`).
    :param unknowns: the programs and constructs that each container's shell has met and does not
        know.
    """
    does = "it runs until it is stopped"
    if _is_of_job(pod):
        does = "it ends with 0 after a moment"
    lines: list[str] = []
    for container in containers_of(pod):
        name = container["name"]
        shown_name = quote(name)
        behaviour = behaviours.get(name, Behaviour())
        is_said = not SAYS_ENOUGH.isdisjoint(behaviour.sources)
        if not behaviour.is_known and not is_said and not container.get("command"):
            image = container.get("image") or ""
            what = f"the image {quote(image)}"
            lines.append(f"container {shown_name}: {what} is not known: {does}")
        for unknown in unknowns.get(name, ()):
            what = quote(unknown)
            lines.append(f"container {shown_name}: {what} is not known: {does}")
    return lines


def containers_of(pod: Pod) -> list[Container]:
    """Return all containers of a pod, the init containers first, the ephemeral ones last."""
    containers: list[Any] = []
    for container, _path in containers_with_paths(pod["spec"], "spec"):
        containers.append(container)
    return containers


def finder(client: Client) -> Find:
    """Return what looks up an object in a cluster; None where it is not there."""

    def find(resource: str, namespace: str, name: str) -> AnyObject | None:
        try:
            return client.get(resource, name, namespace=namespace)
        except NotFound:
            return None

    return find


def facts_of(image: str) -> ImageFacts | None:
    """Return what is known of a well-known image, None of others."""
    from kubepy.kubelet import images  # reads a file

    return images.facts_of(image)


# --- annotations ----------------------------------------------------------------------------------


def _say_annotations(
    pod: Pod, container: Container, node: Node | None, say: Callable[[str, Any, str], None]
) -> None:
    own = annotations_of(pod)
    for name, field in ANNOTATED.items():
        text = own.get(name)
        if text:
            say(
                field,
                _read(name, text),
                f"annotation {name} of the pod",
            )
    for name in (f"{LOG}.{container['name']}", LOG):
        if name in own:
            say(
                "log",
                own[name],
                f"annotation {name} of the pod",
            )
    if node is None:
        return
    of_node = annotations_of(node)
    node_name = name_of(node)
    for name, field in ANNOTATED.items():
        name_on_node = name
        if name == OUTCOME:
            name_on_node = POD_OUTCOME
        text = of_node.get(name_on_node)
        if not text or not _counts(name, pod):
            continue
        value = _read(name, text)
        say(
            field,
            value,
            f"annotation {name_on_node} of node {node_name}",
        )


def _own_annotations(obj: AnyObject) -> tuple[tuple[str, str], ...]:
    """Return the annotations of an object that are kubepy's."""
    annotations = annotations_of(obj)
    if not annotations:
        return ()
    names = [name for name in annotations if name.startswith(PREFIX)]
    return tuple((name, annotations[name]) for name in sorted(names))


def _read(annotation: str, text: str) -> Any:
    """Read the value of an annotation. Raises AnnotationError, UnknownOutcomeError."""
    if annotation == OUTCOME:
        parse_outcomes(annotation, text)
        return text
    if annotation == EXIT_CODE:
        return parse_exit_code(annotation, text)
    return Length(*parse_length(annotation, text))


def _is_of_job(pod: Pod) -> bool:
    owner = controller_of(pod)
    return owner is not None and owner["kind"] == "Job"


def _counts(annotation: str, pod: Pod) -> bool:
    """Return whether an annotation counts for a pod on which it does not stand."""
    if annotation in FOR_JOBS:
        return _is_of_job(pod)
    return True


# --- rules ----------------------------------------------------------------------------------------


def _spellings(image: str) -> tuple[str, ...]:
    """Return an image as it is written, with all that its name leaves out, and with its tag
    alone."""
    full = normalized_image(image)
    short = familiar_image(image)
    return (image, full, short)


def _matches(rule: BehaviourRule, subject: Subject) -> bool:
    """Return whether a rule speaks of a container, its CEL expression left out."""
    match = rule.match
    if match.selector is not None:
        labels = dict(subject.labels)
        if not match.selector.matches(labels):
            return False
    conditions: tuple[tuple[Glob | None, tuple[str, ...]], ...] = (
        (match.image, subject.images),
        (match.owner, subject.owners),
        (match.namespace, (subject.namespace,)),
        (match.name, (subject.name,)),
        (match.container, (subject.container,)),
        (match.node, (subject.node,)),
        (match.args, (subject.args,)),
    )
    for pattern, texts in conditions:
        if pattern is not None and not any(map(pattern.matches, texts)):
            return False
    return True


# --- the table ------------------------------------------------------------------------------------


def _say_facts(
    facts: ImageFacts,
    container: Container,
    variables: tuple[str, ...],
    say: Callable[[str, Any, str], None],
) -> None:
    """Say what is known of a well-known image; of its program only where that one runs."""
    runs_program = facts.runs_program(container)
    for field, value, source in facts.fields(container, variables):
        if runs_program or field not in OF_PROGRAM:
            say(
                field,
                value,
                f"{OF_TABLE} {source}",
            )


def _variable_names(pod: Pod, container: Container, find: Find) -> tuple[str, ...]:
    """Return the names of the variables that a container gets from its manifest."""
    names: list[str] = []
    for variable in container.get("env") or ():
        names.append(variable["name"])
    for source in container.get("envFrom") or ():
        prefix = source.get("prefix") or ""
        for field, resource in REFERENCES.items():
            reference = source.get(field)
            if not isinstance(reference, dict):
                continue
            obj = find(resource, namespace_of(pod), reference.get("name", ""))
            if obj is None:
                continue
            keys = obj.get("data") or ()
            names += [f"{prefix}{key}" for key in keys]
    return tuple(names)


__all__ = [
    "Behaviour",
    "Behaviours",
    "ExecAnswer",
    "HttpReply",
    "HttpSchedule",
    "Length",
    "answer_to",
    "expanded",
    "facts_of",
    "schedule_of",
    "unknown_notes",
]
