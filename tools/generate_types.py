"""Write ``kubepy/api/types/data``: Go's view of the built-in API types, read from a Kubernetes
checkout.

    python tools/generate_types.py PATH-OF-KUBERNETES [FOLDER]

One JSON file per Go package (``apps_v1.json``), and one per package of internal types
(``apps.json``), whose field names show up in some error messages. ``structs``: for each type its
fields in order, each one string of

    GoName jsonName GoType flags number

with ``-`` for a name that is absent; flags are ``o`` omitempty, ``z`` omitzero, ``i`` inline; the
number is the field's in protobuf and is left out where there is none. The numbers are compared with
``generated.proto``. ``named``: the types behind named types that are no structs. Types of the same
package have no prefix, others the path of their package (``core/v1.PodSpec``). ``index.json`` maps
apiVersions to packages. List types, merge keys and required fields are no part of it: they are in
``kubepy/api/schema/data`` (``tools/generate_schemas.py``).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "kubepy" / "api" / "types" / "data"
STAGING = Path("staging/src/k8s.io")
ELSEWHERE = {
    "meta/v1": "apimachinery/pkg/apis/meta/v1",
    "meta/v1beta1": "apimachinery/pkg/apis/meta/v1beta1",
    "apiextensions/v1": "apiextensions-apiserver/pkg/apis/apiextensions/v1",
    "apiextensions/v1beta1": "apiextensions-apiserver/pkg/apis/apiextensions/v1beta1",
    "apiregistration/v1": "kube-aggregator/pkg/apis/apiregistration/v1",
    "metrics/v1beta1": "metrics/pkg/apis/metrics/v1beta1",
}
GROUPS = (
    "admissionregistration/v1",
    "apps/v1",
    "authentication/v1",
    "authorization/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "certificates/v1",
    "coordination/v1",
    "core/v1",
    "discovery/v1",
    "events/v1",
    "flowcontrol/v1",
    "networking/v1",
    "node/v1",
    "policy/v1",
    "rbac/v1",
    "resource/v1",
    "scheduling/v1",
    "storage/v1",
)

INTERNAL = ("apps", "autoscaling", "batch", "core", "networking", "policy", "resource", "storage")

GENERATED = re.compile(r"zz_|generated\.pb|.*_swagger_doc|.*_test\.go")
STRUCT = re.compile(r"^type (\w+) struct \{(?:\}|\n(.*?)^\})", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^type (\w+) ((?:\[\]|\*|map\[)?[\w.\[\]*]+)$", re.MULTILINE)
IMPORT = re.compile(r'^(?:import)?\s+(?:(\w+) )?"([\w./-]+)"$', re.MULTILINE)
FIELD = re.compile(r"^\t(?:([A-Z]\w*)\s+)?([\w.\[\]*{}]+)(?:\s+`([^`]*)`|\s*(?://.*)?$)")
MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
MESSAGE_FIELD = re.compile(
    r"^  (?:optional |repeated )?(?:[\w.]+|map<.*>) \w+ = (\d+);$", re.MULTILINE
)
GROUP_NAME = re.compile(r'GroupName\s*=\s*"([^"]*)"')


def main(kubernetes: Path, target: Path = DATA) -> None:
    target.mkdir(exist_ok=True)
    index: dict[str, str] = {}
    for name, folder in (ELSEWHERE | {name: f"api/{name}" for name in GROUPS}).items():
        sources = read_sources(kubernetes / STAGING / folder)
        package = read_package(sources)
        check_numbers(
            name, package, (kubernetes / STAGING / folder / "generated.proto").read_text()
        )
        write(target / f"{name.replace('/', '_')}.json", package)
        index |= {api_version(sources["register.go"], name): name}
    write(target / "index.json", index)
    for name in INTERNAL:
        write(target / f"{name}.json", read_package(read_sources(kubernetes / "pkg/apis" / name)))


def api_version(register: str, name: str) -> str:
    match = GROUP_NAME.search(register)
    if match is None:
        raise SystemExit(f"{name}: no GroupName in register.go")
    return f"{match[1]}/{name.partition('/')[2]}".lstrip("/")


def read_sources(folder: Path) -> dict[str, str]:
    return {
        file.name: file.read_text()
        for file in sorted(folder.glob("*.go"))
        if not GENERATED.match(file.name)
    }


def read_package(sources: dict[str, str]) -> dict[str, Any]:
    structs: dict[str, list[str]] = {}
    named: dict[str, str] = {}
    for text in sources.values():
        packages = {alias or path.rpartition("/")[2]: path for alias, path in IMPORT.findall(text)}
        for name, body in STRUCT.findall(text):
            structs[name] = [
                line for line in (read_field(row, packages) for row in body.splitlines()) if line
            ]
        named |= {
            name: qualify(type_, packages)
            for name, type_ in NAMED.findall(text)
            if type_ != "interface"
        }
    return {"named": dict(sorted(named.items())), "structs": dict(sorted(structs.items()))}


def read_field(row: str, packages: dict[str, str]) -> str:
    """Return a line of a struct as it goes into the table; "" for comments and fields that JSON
    does not have."""
    match = FIELD.match(row)
    tags = dict(re.findall(r'(\w+):"([^"]*)"', match[3] or "")) if match else {}
    json_name, *options = tags.get("json", "").split(",")
    if match is None or json_name == "-":
        return ""
    type_ = qualify(match[2], packages)
    go_name = match[1] or type_.rpartition(".")[2].lstrip("*")
    inline = "inline" in options or (not match[1] and not json_name)
    flags = (
        ("i" if inline else "")
        + ("o" if "omitempty" in options else "")
        + ("z" if "omitzero" in options else "")
    )
    number = tags.get("protobuf", "").split(",")[1:2]
    return " ".join(
        [go_name, json_name or ("-" if inline else go_name), type_, flags or "-", *number]
    )


def check_numbers(name: str, package: dict[str, Any], proto: str) -> None:
    """Exit if the numbers of a struct are not those of its message. ``Time`` is written as a
    ``Timestamp``."""
    for message, body in MESSAGE.findall(proto):
        rows = [row.split() for row in package["structs"].get(message, [])]
        numbers = {row[4] for row in rows if len(row) > 4}
        if numbers and numbers != set(MESSAGE_FIELD.findall(body)):
            raise SystemExit(
                f"{name}.{message}: the numbers of its fields are not those of generated.proto"
            )


def qualify(type_: str, packages: dict[str, str]) -> str:
    """Return a Go type with the paths of its packages: ``[]v1.Pod`` → ``[]core/v1.Pod``."""
    return re.sub(
        r"(\w+)\.(\w+)", lambda match: f"{short_path(packages[match[1]])}.{match[2]}", type_
    )


def short_path(path: str) -> str:
    match = re.fullmatch(r"k8s\.io/(?:api|apimachinery/pkg/apis)/(\w+/\w+)", path)
    return match[1] if match else path.rpartition("/")[2]


def write(path: Path, table: dict[str, Any]) -> None:
    text = json.dumps(table, indent=1, ensure_ascii=False)
    path.write_text(f'{{"generated by": "tools/generate_types.py",{text.removeprefix("{")}\n')


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
