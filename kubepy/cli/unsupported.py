"""kubectl's verbs that have no meaning here: each says why in one line."""

from __future__ import annotations

import click

from kubepy.cli.commands import NO_CONTAINERS, NO_METRICS, NO_PREFERENCES, NO_SERVER
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import Invocation, Run, Verb
from kubepy.cli.runtime.session import Session
from kubepy.quoting import quote


def _refusing(name: str, why: str) -> Verb:
    def refuse(session: Session, given: Invocation) -> None:
        raise CliError(f"{quote(name)} is not supported: {why}")

    run: Run = refuse
    return _AnyWords(name, name, run, help=f"Not supported: {why}.")


class _AnyWords(Verb):
    """A command that takes any words and flags, since it does nothing with them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--help"] if {"-h", "--help"} & set(args) else [])


top = _refusing("top", NO_METRICS)
logs = _refusing("logs", NO_CONTAINERS)
attach = _refusing("attach", NO_CONTAINERS)
exec_ = _refusing("exec", NO_CONTAINERS)
port_forward = _refusing("port-forward", NO_CONTAINERS)
cp = _refusing("cp", NO_CONTAINERS)
debug = _refusing("debug", NO_CONTAINERS)
proxy = _refusing("proxy", NO_SERVER)
create_token = _refusing("create token", NO_SERVER)
kuberc = _refusing("kuberc", NO_PREFERENCES)
