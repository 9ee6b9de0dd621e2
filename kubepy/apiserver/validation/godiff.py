"""The difference of two objects as the server appends it to an error (``apimachinery/pkg/util/diff``)."""

from __future__ import annotations

import difflib
import json
from typing import Any

from kubepy.apiserver.validation.goview import go_view


def go_diff(type_name: str, old: Any, new: Any) -> str:
    """A unified diff of the two internal structs printed as indented JSON, without file names."""
    before, after = (json.dumps(go_view(type_name, one), indent=1, ensure_ascii=False) for one in (old, new))
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), n=3, lineterm="")
    return "".join(f"{line}\n" for line in list(lines)[2:])
