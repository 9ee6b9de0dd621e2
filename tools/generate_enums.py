"""Write ``kubepy/api/schema/data/enums.json``: the values of string fields of the API, from a Kubernetes checkout.

    python tools/generate_enums.py PATH-OF-KUBERNETES

The ``kubernetes-validate`` package has no enumerations, since those are only in OpenAPI v3. A key is the full name of
a type, a dot and its field: ``io.k8s.api.core.v1.PodSpec.dnsPolicy``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "kubepy" / "api" / "schema" / "data" / "enums.json"
SOURCE = "pkg/generated/openapi/zz_generated.openapi.go"
FUNCTION = re.compile(r"^func schema_k8sio_api_(\w+?)_(v1|v2)_(\w+)\(ref.*?^\}", re.MULTILINE | re.DOTALL)
# The values of a field are indented by seven tabs, the values of list items by more.
ROW = re.compile(r'^\t{5}"(\w+)": \{|^\t{7}Enum: +\[\]interface\{\}\{(.*)\},', re.MULTILINE)


def main(kubernetes: Path) -> None:
    text = (kubernetes / SOURCE).read_text()
    found: dict[str, list[str]] = {}
    for function in FUNCTION.finditer(text):
        group, version, kind = function.groups()
        found |= {f"io.k8s.api.{group}.{version}.{kind}.{field}": values for field, values in enums_of(function[0])}
    DATA.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")


def enums_of(function: str) -> Iterator[tuple[str, list[str]]]:
    field = ""
    for row in ROW.finditer(function):
        if row[1]:
            field = row[1]
        else:
            yield field, json.loads(f"[{row[2]}]")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
