"""Run bundles of manifests through the life that they have in a cluster, each in a cluster of its
own.

usage: run_bundles.py [-j N] [--keep] [--bootstrap=minimal|full] DIR

A bundle is a file of manifests, a folder of such files, or a folder with a kustomization; in a
folder that holds several kustomizations, those that no other one there names. Each bundle is
applied, the controllers run, it is applied again, everything is described and printed as YAML and
JSON, compared with the manifests, and deleted. The table says how that went; notes and problems
stand below it. Exit status 1 if a bundle has problems.

What the API refuses is counted and shown, and is no problem: a server would refuse it, too.
Problems are what a server never does: internal errors, wrong exit statuses, objects that change or
stay without a reason.

An object that the second apply configures again is explained by the fields that the server keeps in
another form than the manifest has them (`cpu: 0.5`, a Secret's `stringData`), as kubectl says
`configured` of them for ever. One without such a field is a problem.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import tabulate
import yaml

from kubepy.api.meta import name_of
from kubepy.api.patches.strategic import PatchMeta, lookup
from kubepy.api.schema import openapi
from kubepy.api.schema.openapi import Schema
from kubepy.cli.main import main as kubepy

Object = dict[str, Any]

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
MANIFESTS = (".yaml", ".yml", ".json")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
APPLIED = re.compile(
    r"^(\S+?)/(\S+) (created|configured|unchanged|serverside-applied)$", re.MULTILINE
)
DEFINITION_MISSING = "ensure CRDs are installed first"
NAMESPACE_MISSING = re.compile(r'namespaces "([^"]+)" not found')
TOO_LONG = "metadata.annotations: Too long"
UNLISTED = ("componentstatuses", "events")
MAX_ROUNDS = 5  # of applying, until definitions and namespaces are there
NAME_WIDTH = 22
SHOWN = 12  # notes and problems of a bundle
LINE_WIDTH = 200
LASTING = (
    "persistentvolumeclaims",
    "persistentvolumes",
)  # claims of StatefulSets stay in a cluster too


class YamlLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads times, and ``=``, as text, as Kubernetes does."""


YamlLoader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":value"))
    ]
    for first, resolvers in YamlLoader.yaml_implicit_resolvers.items()
}


class Bundle(NamedTuple):
    """A bundle: its name in the table, and the flags that name it on a command line."""

    name: str
    flags: tuple[str, ...]


class Done(NamedTuple):
    """The output of a command on both streams, and its exit status."""

    out: str
    err: str
    status: int


@dataclass
class Report:
    """The row of a bundle, with what is said below the table."""

    name: str
    objects: int = 0
    kinds: int = 0
    seconds: float = 0.0
    applied: str = ""
    again: str = ""
    described: str = ""
    deleted: str = ""
    refused: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def row(self) -> list[Any]:
        name = (
            self.name
            if len(self.name) <= NAME_WIDTH
            else f"{self.name[: NAME_WIDTH - 8]}…{self.name[-7:]}"
        )
        return [
            name,
            self.objects,
            self.kinds,
            f"{self.seconds:.1f}",
            self.applied,
            self.again,
            self.described,
            self.deleted,
            len(self.problems),
        ]


# --- bundles in a folder --------------------------------------------------------------------------


def find_bundles(folder: Path) -> list[Bundle]:
    """Return the bundles of a folder, in the order of their names."""
    if kustomization_of(folder):
        return [Bundle(folder.name, ("-k", str(folder)))]
    bundles: list[Bundle] = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in MANIFESTS:
            bundles.append(Bundle(path.name, ("-f", str(path))))
        elif path.is_dir():
            bundles += bundles_below(path)
    return bundles


def bundles_below(folder: Path) -> list[Bundle]:
    """Return the kustomizations of a folder that no other one in it names; without any, the
    folder's manifests."""
    kustomizations = {
        path.parent.resolve(): path
        for path in sorted(folder.rglob("*"))
        if path.name in KUSTOMIZATIONS
    }
    if not kustomizations:
        has_manifests = any(path.suffix in MANIFESTS for path in folder.rglob("*"))
        return [Bundle(folder.name, ("-R", "-f", str(folder)))] if has_manifests else []
    contents = {
        parent: yaml.load(path.read_bytes(), YamlLoader) or {}
        for parent, path in kustomizations.items()
    }
    named = {
        (parent / entry).resolve()
        for parent, content in contents.items()
        for key in ("resources", "bases", "components")
        for entry in content.get(key) or []
    }
    return [
        Bundle(str(parent.relative_to(folder.parent.resolve())), ("-k", str(parent)))
        for parent, content in contents.items()
        if parent not in named and content.get("kind") != "Component"
    ]


def kustomization_of(folder: Path) -> Path | None:
    return next((folder / name for name in KUSTOMIZATIONS if (folder / name).is_file()), None)


# --- one bundle -----------------------------------------------------------------------------------


class Run:
    """The life of one bundle in one cluster."""

    def __init__(self, bundle: Bundle, state: Path, bootstrap: str = "minimal") -> None:
        self.bundle = bundle
        self._bootstrap = bootstrap
        self.report = Report(bundle.name)
        self._state = str(state)
        self._manage: tuple[str, ...] = ()  # --server-side, where annotations would be too long
        self._made_namespaces: list[str] = []
        self._names: set[str] = set()  # of the bundle's objects, as `apply` prints them
        self._twice: set[str] = set()  # of those in more than one manifest

    def kubepy(self, *words: str) -> Done:
        out, err = io.StringIO(), io.StringIO()
        status = kubepy(
            ["--state", self._state, *words], stdin=io.StringIO(), stdout=out, stderr=err
        )
        return Done(out.getvalue(), err.getvalue(), status)

    def expect(self, *words: str, status: int = 0) -> Done:
        """Run a command that should end with this status and without other errors than those of the
        first apply."""
        done = self.kubepy(*words)
        self.check(
            done, " ".join(word for word in words if word not in self.bundle.flags)[:40], status
        )
        return done

    def check(self, done: Done, command: str, status: int) -> None:
        unknown = (
            []
            if self.report.refused and command.startswith("delete")
            else [line for line in refusals(done.err) if line not in self.report.refused]
        )
        defects = [
            line
            for line in done.err.splitlines()
            if "internal error" in line or "Traceback" in line
        ]
        if unknown or defects or done.status not in (status, 1 if self.report.refused else status):
            lines = [*defects, *unknown] or [f"exit status {done.status}"]
            self.report.problems += [f"{command}: {line}" for line in lines]

    def run(self) -> Report:
        start = time.monotonic()
        self.expect("init", "--nodes=3", f"--bootstrap={self._bootstrap}")
        before = self.everything()
        self.apply()
        self.settle()
        after = self.everything(checked=True)
        self.apply_again(after)
        self.compare(after)
        self.describe(after)
        self.delete(before)
        self.report.seconds = time.monotonic() - start
        return self.report

    def settle(self) -> None:
        done = self.kubepy("controller", "--once", "-q")
        if done.status:
            self.report.problems.append(f"controller: {done.err.strip()}")

    def everything(self, *, checked: bool = False) -> dict[str, Object]:
        """Return all objects but events, by resource, namespace and name. ``checked``: YAML must
        say what JSON does."""
        listing = self.kubepy("api-resources", "--verbs=get,list", "--no-headers").out
        rows = [line.split() for line in listing.splitlines()]
        names = {
            (row[-3].rpartition("/")[0], row[-1]): row[0] for row in rows if row[0] not in UNLISTED
        }
        words = ",".join(f"{name}.{group}" if group else name for (group, _), name in names.items())
        text = self.expect("get", words, "-A", "-o", "json").out
        if checked:
            text = self.compared_with_yaml(words, text)
        items = json.loads(text)["items"]
        return {key_of(item, names): item for item in items}

    def compared_with_yaml(self, words: str, text: str) -> str:
        """Check that YAML says what JSON does, and return the JSON. Where something has happened
        between the commands they are run again."""
        for _ in range(MAX_ROUNDS):
            as_yaml = self.expect("get", words, "-A", "-o", "yaml").out
            before = text
            text = self.expect("get", words, "-A", "-o", "json").out
            if text != before:
                continue
            if yaml.load(as_yaml, YamlLoader) != json.loads(text):
                self.report.problems.append("get: -o yaml and -o json differ")
            return text
        self.report.problems.append("get: the objects do not come to rest")
        return text

    def apply(self) -> None:
        """Apply until every definition and namespace is there; each round a user would have to
        type."""
        for _ in range(MAX_ROUNDS):
            done = self.kubepy("apply", *self._manage, *self.bundle.flags)
            self._names |= {f"{kind}/{name}" for kind, name, _ in APPLIED.findall(done.out)}
            if TOO_LONG in done.err and not self._manage:
                self._manage = ("--server-side", "--force-conflicts")
                self.report.notes.append(
                    "apply --server-side: a manifest is too long for the annotation"
                )
            elif NAMESPACE_MISSING.search(done.err):
                self.make_namespaces(NAMESPACE_MISSING.findall(done.err))
            elif DEFINITION_MISSING not in done.err:
                break
        self.report.refused = refusals(done.err)
        self.check(done, "apply", 1 if self.report.refused else 0)
        self.report.objects = len(APPLIED.findall(done.out))
        self.report.kinds = len({name.partition("/")[0] for name in self._names})
        self.report.applied = f"{len(self.report.refused)} no" if self.report.refused else "ok"
        self._twice = {
            f"{kind}/{name}"
            for (kind, name), times in Counter(
                (kind, name) for kind, name, _ in APPLIED.findall(done.out)
            ).items()
            if times > 1
        }

    def make_namespaces(self, names: Iterable[str]) -> None:
        """Make the namespaces that the bundle expects, as its documentation tells users to do."""
        for name in dict.fromkeys(names):
            if self.kubepy("create", "namespace", name).status == 0:
                self._made_namespaces.append(name)
                self.report.notes.append(f"namespace {name} was made first")

    def apply_again(self, before: dict[str, Object]) -> None:
        """Apply a second time. Nothing may change but what a real server changes every time,
        too."""
        done = self.expect("apply", *self._manage, *self.bundle.flags)
        after = self.everything()
        counts = Counter(verb for *_, verb in APPLIED.findall(done.out))
        if self._manage:
            changed = [
                key
                for key, obj in after.items()
                if key in before and version(obj) != version(before[key])
            ]
            self.report.problems += [f"apply again changed {key}" for key in changed]
            self.report.again = f"{len(changed)} set" if changed else "same"
            return
        self.report.again = f"{counts['configured']} set" if counts["configured"] else "same"
        for printed_kind, name, verb in APPLIED.findall(done.out):
            if f"{printed_kind}/{name}" in self._twice:
                continue
            if verb == "created" and any(
                is_named(obj, printed_kind, name) for obj in before.values()
            ):
                self.report.problems.append(f"apply again created {printed_kind}/{name}")
            if verb == "configured":
                self.explain(printed_kind, name, after)

    def explain(self, printed_kind: str, name: str, objects: dict[str, Object]) -> None:
        """Note which fields of a manifest the server keeps otherwise; a problem if there is
        none."""
        candidates = [
            obj
            for obj in objects.values()
            if is_named(obj, printed_kind, name) and LAST_APPLIED in annotations(obj)
        ]
        for obj in candidates:
            if paths := list(
                differences(json.loads(annotations(obj)[LAST_APPLIED]), obj, schema_of(obj))
            ):
                self.report.notes.append(
                    f"{printed_kind}/{name} is configured again: {', '.join(paths[:3])}"
                )
                return
        self.report.problems.append(
            f"apply again: {printed_kind}/{name} configured, though nothing differs"
        )

    def compare(self, objects: dict[str, Object]) -> None:
        """Compare the manifests with the cluster: ``diff`` has nothing to say right after an
        apply."""
        done = self.kubepy("diff", *self._manage, *self.bundle.flags)
        files = re.findall(r"^\+\+\+ \S*/(\S+)", done.out, re.MULTILINE)
        if done.status and not self._twice and not self.report.refused:
            aggregated = [
                name_of(obj) for obj in objects.values() if obj.get("aggregationRule")
            ]  # rules are filled in
            self.report.problems += [
                f"diff: {name} differs" for name in files if not name.endswith(tuple(aggregated))
            ]
            if not files:
                self.report.problems.append(f"diff: exit status {done.status}")

    def describe(self, objects: dict[str, Object]) -> None:
        known = len(self.report.problems)
        for resource in sorted({key.split("/")[0] for key in objects}):
            done = self.expect("describe", resource, "-A")
            if not done.out:
                self.report.problems.append(f"describe {resource}: says nothing")
        self.report.described = "error" if len(self.report.problems) > known else "ok"

    def delete(self, before: dict[str, Object]) -> None:
        """Delete the bundle and say what is left that was not there before."""
        self.expect("delete", *self.bundle.flags, "--ignore-not-found")
        if self._made_namespaces:
            self.expect("delete", "namespace", *self._made_namespaces)
        self.settle()
        after = self.everything()
        left = [key for key in after if key not in before]
        lasting = [key for key in left if key.startswith(LASTING)]
        self.report.deleted = f"{len(left)} left" if left else "all"
        self.report.problems += [f"delete left {key}" for key in left if key not in lasting]
        self.report.problems += [
            f"delete took {key}"
            for key, obj in before.items()
            if key not in after and f"{printed_name(obj)}/{name_of(obj)}" not in self._names
        ]
        if lasting:
            self.report.notes.append(f"as in a cluster, {len(lasting)} claims and volumes stay")


def refusals(err: str) -> list[str]:
    """Return the errors on stderr, a line each."""
    lines = [
        line
        for line in err.splitlines()
        if re.search(r"error|Error|not found|no matches|is invalid", line)
    ]
    return [
        line
        for line in dict.fromkeys(lines)
        if not line.startswith(("Warning:", "# Warning:", "{"))
    ]


def schema_of(obj: Object) -> Schema | None:
    """Return the schema of a built-in kind."""
    return openapi.schema_for(obj["apiVersion"], obj["kind"])


def annotations(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def version(obj: Object) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))


def printed_name(obj: Object) -> str:
    group = obj["apiVersion"].rpartition("/")[0]
    return f"{obj['kind'].lower()}.{group}" if group else obj["kind"].lower()


def is_named(obj: Object, kind: str, name: str) -> bool:
    """Return whether an object is the one that is printed as ``kind/name``."""
    return name_of(obj) == name and printed_name(obj) == kind


def key_of(obj: Object, names: dict[tuple[str, str], str]) -> str:
    """Return ``RESOURCE.GROUP/NAMESPACE/NAME``. ``names``: of resources, by group and kind."""
    group, metadata = obj["apiVersion"].rpartition("/")[0], obj["metadata"]
    resource = names[group, obj["kind"]] + (f".{group}" if group else "")
    return "/".join(
        part for part in (resource, metadata.get("namespace"), metadata["name"]) if part
    )


def differences(manifest: Any, live: Any, schema: Schema | None, path: str = "") -> Iterator[str]:
    """Yield the fields of a manifest for which a three-way patch of the live object says something.

    Without a schema (custom resources) the patch is a merge patch, in which lists are whole values.
    """
    if not isinstance(manifest, dict) or not isinstance(live, dict):
        if manifest != live or type(manifest) is not type(live):
            yield f"{path[1:]}: {shown(manifest)} is {shown(live)}"
        return
    for key, value in manifest.items():
        below = f"{path}.{key}"
        if below == ".metadata.annotations":
            continue
        meta = None
        if schema is not None and isinstance(value, list | dict) and schema.field(key) is not None:
            meta = lookup(schema, key, isinstance(value, list))
        subschema = meta.schema if meta else None
        other = live.get(key, "absent")
        if meta and meta.retain_keys and isinstance(value, dict) and set(other) - set(value):
            yield f"{below[1:]} retains {', '.join(value)} only"
        elif meta and meta.strategy == "replace" and isinstance(value, dict):
            yield f"{below[1:]} is replaced as a whole"
        elif (
            meta
            and meta.strategy == "merge"
            and isinstance(value, list)
            and isinstance(other, list)
        ):
            yield from list_differences(value, other, meta, below)
        else:
            yield from differences(value, other, subschema, below)


def list_differences(
    manifest: list[Any], live: list[Any], meta: PatchMeta, path: str
) -> Iterator[str]:
    """Yield the differences of two lists whose items are told apart by a key, or are simple
    values."""
    if manifest and not isinstance(manifest[0], dict):
        yield from (f"{path[1:]}: {shown(item)} is absent" for item in manifest if item not in live)
        return
    keys, live_keys = ([item.get(meta.merge_key) for item in items] for items in (manifest, live))
    if keys != live_keys and set(live_keys) > set(keys):
        yield f"{path[1:]}: others have added items"  # for ever, by their order
    for key, item in zip(keys, manifest, strict=True):
        others = [other for other in live if other.get(meta.merge_key) == key]
        yield from differences(
            item, others[-1] if others else "absent", meta.schema, f"{path}[{key}]"
        )


def shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 30 else f"{text[:29]}…"


# --- all bundles ----------------------------------------------------------------------------------


def run_bundle(bundle: Bundle, keep: bool = False, bootstrap: str = "minimal") -> Report:
    """Run one bundle in a temporary cluster, which ``keep`` leaves for a look."""
    folder = Path(tempfile.mkdtemp(prefix="kubepy-bundle-"))
    run = Run(bundle, folder / "state", bootstrap)
    try:
        return run.run()
    except Exception as error:
        run.report.problems.append(f"{type(error).__name__}: {error}")
        return run.report
    finally:
        if keep:
            run.report.notes.append(f"the cluster is in {folder / 'state'}")
        else:
            shutil.rmtree(folder)


def summary(reports: Iterable[Report]) -> str:
    """Return the table, then notes and problems of each bundle."""
    reports = list(reports)
    headers = [
        "bundle",
        "ob-\njects",
        "kinds",
        "sec-\nonds",
        "apply\n1",
        "apply\n2",
        "de-\nscribe",
        "de-\nlete",
        "prob-\nlems",
    ]
    tabulate.MIN_PADDING = 0  # else headers make each column two wider
    parts = [
        tabulate.tabulate(
            [report.row() for report in reports],
            headers,
            colalign=("left", "right", "right", "right"),
        )
    ]
    for report in reports:
        lines = [f"  problem: {line}" for line in report.problems]
        lines += [f"  refused: {line}" for line in report.refused]
        lines += [f"  {line}" for line in report.notes]
        if len(lines) > SHOWN:
            lines[SHOWN:] = [f"  and {len(lines) - SHOWN} more"]
        if lines:
            parts.append("\n".join([f"{report.name}:", *(line[:LINE_WIDTH] for line in lines)]))
    return "\n\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description="Apply, describe and delete bundles of manifests.")
    parser.add_argument("folder", type=Path, help="a folder of bundles")
    parser.add_argument(
        "-j", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="so many at a time"
    )
    parser.add_argument("--keep", action="store_true", help="leave the clusters, and say where")
    parser.add_argument(
        "--bootstrap", choices=("minimal", "full"), default="minimal", help="what the clusters have"
    )
    args = parser.parse_args()
    if not args.folder.is_dir():
        parser.error(f"{args.folder} is not a folder")
    bundles = find_bundles(args.folder)
    if not bundles:
        parser.error(f"{args.folder} holds no manifests")
    os.environ["KUBEPY_TRACEBACK"] = "1"
    with ProcessPoolExecutor(args.j) as pool:
        reports = list(
            pool.map(partial(run_bundle, keep=args.keep, bootstrap=args.bootstrap), bundles)
        )
    print(summary(reports))
    return 1 if any(report.problems for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
