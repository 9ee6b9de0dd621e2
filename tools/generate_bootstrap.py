"""Write ``kubepy/apiserver/data/bootstrap.json``: the roles and bindings that an API server makes,
read from a Kubernetes checkout.

    python tools/generate_bootstrap.py PATH-OF-KUBERNETES

Roles and bindings come from the test data of ``bootstrappolicy``, which upstream's tests compare
with its policy. Per resource (``clusterroles.rbac.authorization.k8s.io``) the file has a list of
objects without what all of them share: apiVersion and kind, the label and the annotation of
bootstrapping. ``ca`` is a certificate of a CA in PEM, made once by openssl; its key was thrown
away, since nothing here speaks TLS.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).resolve().parent.parent / "kubepy" / "apiserver" / "data" / "bootstrap.json"
TESTDATA = Path("plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata")
GROUP = "rbac.authorization.k8s.io"
SOURCES = {
    "clusterroles": ("cluster-roles", "controller-roles"),
    "clusterrolebindings": ("cluster-role-bindings", "controller-role-bindings"),
    "roles": ("namespace-roles",),
    "rolebindings": ("namespace-role-bindings",),
}
LABEL = "kubernetes.io/bootstrapping"
SHARED = ("apiVersion", "kind")


def main(kubernetes: Path) -> None:
    data: dict[str, Any] = {"ca": json.loads(DATA.read_text())["ca"]}
    for plural, names in SOURCES.items():
        objects: dict[
            tuple[str, str], dict[str, Any]
        ] = {}  # upstream's files name some objects twice
        for name in names:
            for item in yaml.safe_load((kubernetes / TESTDATA / f"{name}.yaml").read_text())[
                "items"
            ]:
                if not item["metadata"]["name"].startswith(
                    "system:openshift:"
                ):  # of a distribution's tree
                    objects[item["metadata"].get("namespace", ""), item["metadata"]["name"]] = (
                        trimmed(item)
                    )
        data[f"{plural}.{GROUP}"] = [objects[key] for key in sorted(objects)]
    DATA.write_text(json.dumps(data, separators=(",", ":"), sort_keys=True) + "\n")


def trimmed(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what the loader adds, and without empty fields."""
    metadata = {name: value for name, value in item["metadata"].items() if name != "annotations"}
    metadata["labels"] = {
        name: value for name, value in metadata.get("labels", {}).items() if name != LABEL
    }
    metadata = {name: value for name, value in metadata.items() if value}
    kept = {name: value for name, value in item.items() if name not in SHARED and value}
    return {**kept, "metadata": metadata}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
