"""The variables of a shell, as the expansion of words sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.shell.processes import Process

if TYPE_CHECKING:
    from kubepy.shell.files import FileSystem
    from kubepy.shell.kernel import Kernel


class FatalError(Exception):
    """An error with which a shell that is not interactive ends."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class ShellScope:
    """The variables of a process, as expansions see them.

    :param changes: the variables that are set and what they were before, in order.
    """

    def __init__(
        self, machine: Kernel, process: Process, changes: list[tuple[str, str | None]]
    ) -> None:
        self.machine = machine
        self.process = process
        self.changes = changes
        self.files: FileSystem = machine.files
        self.cwd = process.cwd
        self.args = process.shell.args
        self.has_braces = process.shell.has_braces
        self.fails_on_unset = "u" in process.shell.options
        self.finds_paths = "f" not in process.shell.options

    def take_status(self, status: int) -> None:
        """Take the status of a substitution: that of the command so far in bash."""
        if self.has_braces:
            self.process.status = status

    def get(self, name: str) -> str | None:
        """Return the value of a variable or of a special parameter."""
        shell = self.process.shell
        value = shell.variables.get(name)
        if value is not None:
            return value
        match name:
            case "?":
                return str(self.process.status)
            case "#":
                return str(len(shell.args))
            case "$":
                return str(shell.main_pid or self.process.pid)
            case "!":
                return str(shell.last_job) if shell.last_job else None
            case "-":
                return shell.options
            case "0":
                return shell.zero
            case "RANDOM":
                self.process.is_unsteady = True
                return str(int(self.machine.random() * 32768)) if shell.has_braces else None
            case "PWD":
                return self.process.cwd
            case "HOSTNAME":
                return self.machine.hostname if shell.has_braces else None
            case "PPID":
                return str(self.process.parent)
            case "SECONDS" if shell.has_braces:
                self.process.is_unsteady = True
                return str(int((self.machine.now - self.process.started).total_seconds()))
        if name.isdigit():
            number = int(name)
            return shell.args[number - 1] if number <= len(shell.args) else None
        return None

    def elements(self, name: str) -> list[str]:
        """Return the elements of an array in the order of their numbers."""
        variables = self.process.shell.variables
        return [variables[each] for each in self.element_names(name)]

    def element_names(self, name: str) -> list[str]:
        """Return the names of the variables that hold the elements of an array."""
        variables = self.process.shell.variables
        numbers = sorted(
            int(each[len(name) + 1 : -1]) for each in variables if each.startswith(f"{name}[")
        )
        first = [name] if name in variables else []
        return [*first, *(f"{name}[{number}]" for number in numbers)]

    def assign(self, name: str, value: str) -> None:
        """Set a variable."""
        self.changes.append((name, self.process.shell.variables.get(name)))
        set_variable(self.process, name, value)


def set_variable(process: Process, name: str, value: str) -> None:
    """Set a variable of a shell. Raises FatalError for one that is read-only."""
    if name in process.shell.readonly:
        is_bash = process.shell.has_braces
        message = "readonly variable" if is_bash else "is read only"
        raise FatalError(f"{name}: {message}", 1 if is_bash else 2)
    process.shell.variables[name] = value
    if "a" in process.shell.options and name not in process.shell.exported:
        process.shell.exported.append(name)
