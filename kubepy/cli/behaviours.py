"""``kubepy why pod/NAME --behaviour``: what makes each container do what it does."""

from __future__ import annotations

from collections.abc import Iterator

from kubepy.api.objects.outcomes import UnknownOutcomeError
from kubepy.api.objects.usage import AnnotationError
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.output import document
from kubepy.insight.why.behaviour import (
    BehaviourAnswer,
    behaviour_document,
    explain_behaviour,
)
from kubepy.quoting import printable, quote

SIMPLE_NOTE = (
    "containers are simple (kubepy.yaml: kubelet.containers): they run, whatever is said below"
)


def show_behaviours(factory: Factory, builder: Builder, output: str) -> None:
    """Print what the containers of the pods do that a builder finds, as text or as documents."""
    answers: list[BehaviourAnswer] = []

    def ask_about(info: Info) -> None:
        if info.resource.storage_key != "pods":
            raise CliError(f"--behaviour is about pods, not {quote(info.resource.key)}")
        pod = factory.client.get("pods", info.name, namespace=info.namespace)
        try:
            answers.append(explain_behaviour(factory.client, pod))
        except (AnnotationError, UnknownOutcomeError) as error:
            raise CliError(f"pod/{printable(info.name)}: {error}") from None

    result = builder.do()
    result.visit(ask_about)
    if output == "text":
        for number, answer in enumerate(answers):
            separator = "\n" if number else ""
            factory.print(separator + "\n".join(_lines(answer)))
        return

    documents = [behaviour_document(answer) for answer in answers]
    shown = documents[0] if result.single else {"kind": "List", "items": documents}
    factory.print(document(output, shown, typed=True), end="")


def _lines(answer: BehaviourAnswer) -> Iterator[str]:
    """Yield the lines about one pod."""
    yield f"pod/{printable(answer.name)}"
    if not answer.is_modelled:
        yield f"  {SIMPLE_NOTE}"
    for container in answer.answers:
        yield f"  container {printable(container.name)} ({printable(container.image)})"
        for field, value, source in container.said:
            yield f"    {field}: {printable(value)}"
            yield f"      {printable(source)}"
    for note in answer.notes:
        yield f"  {printable(note)}"
