"""Print docs/commands.md: every command with its line of help. `make docs` writes it, a test
compares it."""

from kubepy.cli.commands import COMMANDS, GROUPS
from kubepy.cli.runtime.command import walk

INTRODUCTION = """# Commands

`kubepy COMMAND --help` shows flags and examples. Verbs, flags, short names, output and exit codes are kubectl's;
`init`, `import`, `controller`, `serve`, `envtest-assets`, `mcp`, `clock`, `plan`, `why`, `timeline`, `fork`, `fsck`, `trust`
and `git` are kubepy's own. Flags that name a server or credentials (`-s`, `--token` …) are accepted and mean nothing; `--state DIR`,
`--reconcile=auto|never` and `--trust` are kubepy's own.
`--kubeconfig`, `--context` and `--cluster` choose a [state folder and a namespace](state-folder.md#contexts). A program
`kubepy-foo` on the PATH is the command `kubepy foo`. [simulated.md](simulated.md) says what is behind all that."""  # noqa: E501


def tables() -> str:
    parts = [INTRODUCTION]
    grouped = {name for names in GROUPS.values() for name in names}
    rest = [name for name, entry in COMMANDS.items() if entry.summary and name not in grouped]
    for title, names in [
        *GROUPS.items(),
        ("Unsupported commands, and the list of global flags", rest),
    ]:
        found = {name: COMMANDS[name] for name in names}
        rows = [f"| `{path}` | {entry.summary} |" for path, entry in walk(found)]
        parts.append("\n".join([f"## {title}", "", "| command | |", "| --- | --- |", *rows]))
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(tables())
