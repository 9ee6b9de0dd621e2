"""``kubepy why``: how an object stands, what holds it up, and which commands would unblock it."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kubepy.api.clock import format_exact_time
from kubepy.api.errors import NotFound
from kubepy.api.meta import is_being_deleted
from kubepy.api.values.goformat import format_duration, to_json
from kubepy.cli.errors import CliError, SilentExit
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command, reading
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag
from kubepy.cli.runtime.infos import Info, printed_kind
from kubepy.cli.runtime.options import (
    AllNamespacesOptions,
    KustomizeOptions,
    SelectorOptions,
    filename_flag,
    output_flag,
)
from kubepy.cli.runtime.output import document
from kubepy.insight import Link, stdin_of
from kubepy.insight.why import (
    DESTRUCTIVE,
    DONE,
    PROGRESSING,
    SIMULATED,
    STUCK,
    Remedy,
    RemedySequence,
    RemedyStep,
    Why,
    why_document,
)
from kubepy.insight.why.causes import CAUSES
from kubepy.lazy import lazy_imports
from kubepy.quoting import printable, quote
from kubepy.storage import Key
from kubepy.terminal import WIDTH, Colour, Painter, shortened

with lazy_imports():
    from kubepy.cli import behaviours, inner_commands
    from kubepy.insight.why import overview, verdict
    from kubepy.kubelet import unknowns

if TYPE_CHECKING:
    pass

LONGEST_JSON = 240  # characters of a value that is no text
STATUS = {DONE: 0, STUCK: 2, PROGRESSING: 3}
COLOURS = {DONE: Colour.GREEN, STUCK: Colour.RED, PROGRESSING: Colour.YELLOW}
MARKS = {SIMULATED: "but only in the simulation", DESTRUCTIVE: "destructive"}
SAID = {DONE: "done", STUCK: "stuck", PROGRESSING: "on its way"}


class WhyOptions(KustomizeOptions, SelectorOptions, AllNamespacesOptions):
    """The flags of ``why``."""

    filename: list[str] = filename_flag("containing the objects that are asked about.")
    output: str = output_flag("text, json, yaml", "text")
    behaviour: bool = bool_flag(
        "behaviour",
        help="Say of pods which rule, annotation, setting, well-known image or part of the "
        "manifest makes each container do what it does.",
    )


@reading
@command(
    "why (-f FILENAME | TYPE NAME | TYPE/NAME | [TYPE] -A)",
    WhyOptions,
    examples="""
# Why a rollout does not finish
kubepy why deployment/web

# Why a namespace does not go
kubepy why namespace shop

# The objects of a file, as they are in the cluster
kubepy why -f web.yaml

# Whatever is not done, in all namespaces
kubepy why -A

# Which rule, or which part of its manifest, makes a pod do what it does
kubepy why pod/task --behaviour

# For a program
kubepy why pod/task -o json
""",
)
def why(factory: Factory, options: WhyOptions) -> None:
    """Say whether an object is done, on its way or stuck, and what is to blame.

    An object is stuck if it never gets there on a fork of the cluster on which time runs on. Below that line stands the
    chain from the object to what is to blame, with the fields that show it; then commands that would help, each tried
    on a fork; then what happens next by itself. Nothing in the cluster is changed.

    With -A and no type the question is about all objects of all namespaces that are not done. Those that belong to
    another one, as pods do to a Deployment, are left to its answer.

    The exit status is 0 for done, 2 for stuck, 3 for on its way, 1 for an error."""  # noqa: E501
    if options.output not in ("text", "json", "yaml"):
        raise CliError(
            f"unable to match a printer suitable for the output format {quote(options.output)}, "
            f"allowed "
            "formats are: text,json,yaml"
        )

    if options.behaviour:
        builder = Builder(factory, options, bare_types=options.all_namespaces, latest=True)
        behaviours.show_behaviours(factory, builder, options.output)
        return
    is_everything = options.all_namespaces and not (
        options.args or options.selector or options.filename or options.kustomize
    )
    answers: list[Why] = []

    def ask(key: Key) -> None:
        answers.append(
            verdict.explain(
                verdict.Question(
                    factory.cluster,
                    key,
                    runner(factory),
                    factory.reconciles,
                    factory.context_namespace,
                )
            )
        )

    def ask_about(info: Info) -> None:
        ask(Key(info.resource.storage_key, info.namespace, info.name))

    single = False
    try:
        if is_everything:
            factory.catch_up()
            for key in overview.unfinished(factory.cluster):
                ask(key)
        else:
            result = Builder(
                factory, options, bare_types=options.all_namespaces, latest=True, related=True
            ).do()
            single = result.single
            try:
                result.visit(ask_about)
            except NotFound as error:
                say_if_absent(factory, error)
                raise
            if options.all_namespaces and not answers:
                factory.say("No resources found")
    finally:
        show(factory, options, answers, single=single)

    if is_everything and not answers and options.output == "text":
        factory.print("everything is done")
        factory.notes.missing_nodes(factory.client)
    states = {answer.state for answer in answers}
    if STUCK not in states:
        status = max((STATUS[state] for state in states if state != STUCK), default=0)
    else:
        status = 2

    if status:
        raise SilentExit(status)


def say_if_absent(factory: Factory, error: NotFound) -> None:
    """Say of an object that is not there that others name it as their owner, and that the source
    which the cluster was imported from does not hold it."""
    absent = factory.client.settings.absent
    resource = factory.scheme.get(error.resource)
    if absent is None or resource is None:
        return
    namespace = factory.namespace if resource.namespaced else ""
    if absent.owner_named(resource.kind, namespace, error.name) is not None:
        factory.say(
            f"{resource.kind} {printable(error.name)} is not in the source that this cluster was "
            "imported from: it counts as there for what it owns"
        )


def runner(factory: Factory) -> verdict.Run:
    """Return a function that runs a command line on a fork; what it prints is dropped."""

    run = inner_commands.runner(factory.main)
    return lambda fork, words: run(fork, words, stdin_of(words)).status


def show(factory: Factory, options: WhyOptions, answers: list[Why], *, single: bool) -> None:
    """Print answers: as documents, several as a list; or as text."""
    if options.output != "text":
        documents = [why_document(answer, program_of_remedies(factory)) for answer in answers]
        if documents or options.all_namespaces:
            shown = documents[0] if single else {"kind": "List", "items": documents}
            factory.print(document(options.output, shown, typed=True), end="")
        return
    paint = Painter(factory.stdout)
    for number, answer in enumerate(answers):
        lines = text_of(factory, answer, paint, with_namespace=options.all_namespaces)
        factory.print(("\n" if number else "") + "\n".join(lines))
        for note in _unknowns(factory, answer.key):
            factory.print(f"note: {note}")


def _unknowns(factory: Factory, key: Key) -> list[str]:
    """Return what is not known of the containers of a pod, a line each; nothing of a pod that is
    being deleted, or of which no container has run: there it explains nothing."""
    if key.resource != "pods":
        return []
    try:
        pod = factory.client.get(key.resource, key.name, namespace=key.namespace)
    except NotFound:
        return []
    client = factory.client
    silence = unknowns.notes_on_silence(client, pod)
    if is_being_deleted(pod) or not unknowns.has_run(pod):
        return silence
    return [*unknowns.notes_on_unknowns(client, pod), *silence]


def text_of(
    factory: Factory, answer: Why, paint: Painter, *, with_namespace: bool = False
) -> Iterator[str]:
    """Yield the lines of an answer; the first one may name the namespace."""
    namespace = answer.key.namespace if with_namespace else ""
    where = f" in {printable(namespace)}" if namespace else ""
    asked = word(factory, answer.key) + where
    head = f"{asked} is {SAID[answer.state]}: {CAUSES.get(answer.cause, '')} ({answer.cause})"
    first, *rest = wrapped(head)
    yield paint(first, COLOURS[answer.state], Colour.BOLD)
    yield from (paint(line, COLOURS[answer.state], Colour.BOLD) for line in rest)
    if answer.chain:
        yield ""
    for link in answer.chain:
        yield from lines_of_link(factory, link, paint)
    steps: tuple[RemedyStep, ...] = ()
    if answer.sequence is not None and not any(remedy.proven for remedy in answer.remedies):
        steps = answer.sequence.steps
        yield ""
        yield from lines_of_sequence(program_of_remedies(factory), answer.sequence, paint)

    others = [
        remedy
        for remedy in answer.remedies
        if remedy.command not in {step.command for step in steps}
    ]
    if others:
        yield ""
    for remedy in others:
        yield from lines_of_remedy(program_of_remedies(factory), remedy, paint)
    if answer.next is not None:
        after = format_duration((answer.next.at - answer.now).total_seconds())
        yield ""
        yield from wrapped(
            f"Next: in {after} ({format_exact_time(answer.next.at)}), "
            f"{answer.next.controller}: {answer.next.key.place}",
            "  ",
        )


def word(factory: Factory, key: Key) -> str:
    """Return ``deployment.apps/web``: an object as commands print it."""
    resource = factory.scheme.get(key.resource)
    return printable(f"{printed_kind(resource) if resource else key.resource}/{key.name}")


def lines_of_link(factory: Factory, link: Link, paint: Painter) -> Iterator[str]:
    """Yield an object with what there is to say about it, then the field that shows it, with its
    value."""
    yield from wrapped(f"{word(factory, link.key)}: {printable(link.text)}", "    ", "  ")
    if link.field:
        if isinstance(link.value, str):
            text = link.value
        else:
            text = shortened(to_json(link.value), LONGEST_JSON)
        shown = wrapped(
            f"{link.field}: {'(missing)' if link.value is None else printable(text)}",
            "      ",
            "    ",
        )
        yield from (paint(line, Colour.DIM) for line in shown)


def program_of_remedies(factory: Factory) -> str:
    """Return the name that the program was called by, with the flags that have chosen the cluster,
    as a shell reads them."""
    options = factory.options
    chosen = {
        "state": options.state,
        "kubeconfig": options.kubeconfig,
        "context": options.context,
        "cluster": options.cluster,
        "user": options.user,
    }
    flags = [f"--{name}={value}" for name, value in chosen.items() if value]
    return shlex.join([*factory.program.split(), *flags])


def lines_of_sequence(program: str, sequence: RemedySequence, paint: Painter) -> Iterator[str]:
    """Yield the commands that together bring the object to done, each with what it is against."""
    yield "  One after the other:"
    for step in sequence.steps:
        yield command_line(program, step.command)
        when = f"{format_duration(step.after)} after the first: " if step.after else ""
        yield from wrapped(
            f"{when}{CAUSES[step.cause]} ({step.cause}){marked(step.kind)}", "      ", "      "
        )
    yield "  " + paint(
        f"proven together: done {format_duration(sequence.finishes_after)} later", Colour.GREEN
    )


def lines_of_remedy(program: str, remedy: Remedy, paint: Painter) -> Iterator[str]:
    """Yield a command, and whether it helps."""
    yield command_line(program, remedy.command)
    if remedy.proven:
        verdict_text = paint(
            f"proven: done {format_duration(remedy.finishes_after or 0.0)} later", Colour.GREEN
        )
    else:
        verdict_text = paint("not proven", Colour.YELLOW)
    yield f"      {verdict_text}{marked(remedy.kind)}"


def command_line(program: str, words: tuple[str, ...]) -> str:
    """Return a command line for a shell, which is never broken."""
    manifest = stdin_of(words)
    # What echo makes of a backslash differs between shells.
    echo = "printf '%s\\n'" if "\\" in manifest else "echo"
    source = f"{echo} {shlex.quote(manifest)} | " if manifest else ""
    return printable(f"  {source}{program} {shlex.join(words)}")


def marked(kind: str) -> str:
    """Return what is said of a remedy that is more, or less, than what an operator does."""
    if kind in MARKS:
        return f", {MARKS[kind]}"
    return ""


def wrapped(text: str, further: str = "", first: str = "") -> list[str]:
    """Return the lines of a text, at most WIDTH wide unless a word is longer, with indents of
    further lines and of the first."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
