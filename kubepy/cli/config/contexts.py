"""Contexts: which namespace of a state folder commands use. This machine's choice: ``.kubepy/contexts.json``.

``{"current": name, "contexts": {name: namespace}}``; a namespace of "" is "default". A cluster without that file has
one context, ``kubepy``. Upstream: ``client-go/tools/clientcmd``.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from kubepy.cli.runtime.errors import CliError

FILE = os.path.join(".kubepy", "contexts.json")
FIRST = "kubepy"


class Contexts(NamedTuple):
    """``namespaces`` by the name of the context."""

    current: str
    namespaces: dict[str, str]

    def namespace(self, context: str = "") -> str:
        """The namespace of a context, or of the current one if that is not there; "" when it says none."""
        return self.namespaces.get(context if context in self.namespaces else self.current, "")


def read(folder: str) -> Contexts:
    """Raises CliError for a file that is not of this form."""
    path = os.path.join(folder, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        contexts = Contexts(found["current"], found["contexts"])
        if not isinstance(contexts.current, str):
            raise ValueError("current must be a string")
        if not all(isinstance(text, str) for text in contexts.namespaces.values()):
            raise ValueError("a namespace must be a string")
        return contexts
    except (FileNotFoundError, NotADirectoryError):
        return Contexts(FIRST, {FIRST: ""})
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from None
    except KeyError as error:
        raise CliError(f"{path}: {error} is missing") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise CliError(f"{path}: {error}") from None


def write(folder: str, contexts: Contexts) -> None:
    """Replace the file. Raises CliError when it cannot be written."""
    path = os.path.join(folder, FILE)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"current": contexts.current, "contexts": contexts.namespaces}, file, indent=2)
            file.write("\n")
        os.replace(temporary, path)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from None
