"""kustomize and -k: names, references, hashes, and refused kustomizations."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubepy.cli.kustomization.replacements import split
from kubepy.cli.kustomization.transformers import changed_image, split_image
from tests.cli.conftest import Done, Kubepy

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\n"
POD = """apiVersion: v1
kind: Pod
metadata: {name: box}
spec:
  containers:
  - name: c
    image: box:1
    envFrom: [{configMapRef: {name: conf}}]
"""


def write(folder: Path, **files: str) -> None:
    """Write files named by keyword: ``over_p__yaml`` is ``over/p.yaml``."""
    for name, content in files.items():
        path = folder / name.replace("__", ".").replace("_", "/", 1)
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)


def test_references_follow_hashed_and_prefixed_names(bare: Kubepy, folder: Path) -> None:
    write(
        folder,
        a_kustomization__yaml="resources: [p.yaml]\nnamePrefix: x-\n"
        "configMapGenerator:\n- name: conf\n  literals: [DEPTH=12]\n",
        a_p__yaml=POD,
    )
    assert (
        bare("kustomize", "a").out
        == """apiVersion: v1
data:
  DEPTH: "12"
kind: ConfigMap
metadata:
  name: x-conf-kckfc8hhb6
---
apiVersion: v1
kind: Pod
metadata:
  name: x-box
spec:
  containers:
  - envFrom:
    - configMapRef:
        name: x-conf-kckfc8hhb6
    image: box:1
    name: c
"""
    )


def test_kustomization_is_applied_read_and_deleted(kubepy: Kubepy, folder: Path) -> None:
    write(
        folder, a_kustomization__yaml="resources: [c.yaml]\nnameSuffix: -z\n", a_c__yaml=CONFIG_MAP
    )
    assert kubepy("apply", "-k", "a") == Done("configmap/conf-z created\n", "", 0)
    assert kubepy("get", "-k", "a", "-o", "name") == Done("configmap/conf-z\n", "", 0)
    assert kubepy("delete", "-k", "a").out == 'configmap "conf-z" deleted from default namespace\n'


def test_output_goes_to_file(bare: Kubepy, folder: Path) -> None:
    write(folder, a_kustomization__yaml="resources: [c.yaml]\n", a_c__yaml=CONFIG_MAP)
    assert bare("kustomize", "a", "-o", "out.yaml") == Done("", "", 0)
    assert (
        folder / "out.yaml"
    ).read_text() == "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: conf\n"


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ("", "kustomization.yaml is empty"),
        ("foo: 1\nresources: [c.yaml]", 'invalid Kustomization: json: unknown field "foo"'),
        (
            "resources: c.yaml",
            "invalid Kustomization: json: cannot unmarshal string into Go struct field "
            "Kustomization.resources of type []string",
        ),
        (
            "replicas: [{name: a, count: 1.5}]",
            "invalid Kustomization: json: cannot unmarshal number 1.5 into Go struct "
            "field Replica.replicas.count of type int64",
        ),
        (
            "labels: [{pairs: {a: true}}]",
            "invalid Kustomization: json: cannot unmarshal bool into Go struct field "
            "Label.labels.pairs of type string",
        ),
        (
            "images: [{name: a, newTag: 1.27}]",
            "invalid Kustomization: json: cannot unmarshal number into Go struct field "
            "Image.images.newTag of type string",
        ),
        ("helmCharts: [{name: a}]", 'the kustomization field "helmCharts" is not supported'),
        (
            "resources: [absent.yaml]",
            "accumulating resources: accumulation err='accumulating resources from 'absent.yaml': "
            "evalsymlink failure on 'DIR/a/absent.yaml' : lstat DIR/a/absent.yaml: no such file "
            "or directory': must build at "
            "directory: not a valid directory: evalsymlink failure on 'DIR/a/absent.yaml' : lstat "
            "DIR/a/absent.yaml: no such "
            "file or directory",
        ),
        (
            "resources: [../c.yaml]",
            "accumulating resources: accumulation err='accumulating resources from '../c.yaml': "
            "security; file 'DIR/c.yaml' is not in or below 'DIR/a'': must build at directory: "
            "'DIR/c.yaml': file is not "
            "directory",
        ),
        (
            "resources: [c.yaml, c.yaml]",
            "accumulating resources: accumulation err='merging resources from 'c.yaml': "
            "may not add resource with an already registered id: "
            "ConfigMap.v1.[noGrp]/conf.[noNs]': must build at directory: "
            "'DIR/a/c.yaml': file is not directory",
        ),
        (
            "resources: [c.yaml]\nkind: Foo",
            "Failed to read kustomization file under DIR/a:\nkind should be Kustomization or "
            "Component",
        ),
        (
            "resources: [c.yaml]\nreplicas: [{name: zz, count: 2}]",
            "resource with name zz does not match a config with the "
            "following GVK [Deployment.[noVer].[noGrp] StatefulSet.[noVer].[noGrp] "
            "ReplicaSet.[noVer].[noGrp] "
            "ReplicationController.[noVer].[noGrp]]",
        ),
        (
            "resources: [c.yaml]\npatches: [{path: p.yaml}]",
            "trouble configuring builtin PatchTransformer with config: `\n"
            "path: p.yaml\n`: failed to get the patch file from path(p.yaml): evalsymlink failure "
            "on 'DIR/a/p.yaml' : lstat "
            "DIR/a/p.yaml: no such file or directory",
        ),
        (
            "resources: [c.yaml]\npatches: [{target: {kind: Pod}}]",
            "trouble configuring builtin PatchTransformer with "
            "config: `\ntarget:\n  kind: Pod\n`: must specify one of patch and path in\ntarget:\n "
            " kind: Pod",
        ),
        (
            "configMapGenerator: [{name: a, behavior: merge, literals: [b=c]}]",
            "merging from generator: id "
            'resid.ResId{Gvk:resid.Gvk{Group:"", Version:"v1", Kind:"ConfigMap", '
            'isClusterScoped:false}, Name:"a", '
            'Namespace:""} does not exist; cannot merge or replace',
        ),
        (
            "configMapGenerator: [{name: a, literals: [b]}]",
            "loading KV pairs: literal sources [b]: invalid literal source b, expected key=value",
        ),
        (
            "resources: [..]",
            "accumulating resources: accumulation err='accumulating resources from '..': 'DIR' "
            "must resolve to a file': cycle "
            "detected: candidate root 'DIR' contains visited root 'DIR/a'",
        ),
    ],
)
def test_invalid_kustomization_is_refused(
    bare: Kubepy, folder: Path, settings: str, error: str
) -> None:
    write(folder, a_kustomization__yaml=settings, a_c__yaml=CONFIG_MAP)
    (folder / "c.yaml").write_text(CONFIG_MAP)
    assert bare("kustomize", "a") == Done("", f"error: {error}\n".replace("DIR", str(folder)), 1)


def test_invalid_folder_args_are_refused(bare: Kubepy, folder: Path) -> None:
    (folder / "empty").mkdir()
    assert bare("kustomize", "empty").err == (
        "error: unable to find one of 'kustomization.yaml', 'kustomization.yml' or "
        "'Kustomization' in directory "
        f"'{folder}/empty'\n"
    )
    assert bare("kustomize", "absent").err == (
        "error: must build at directory: not a valid directory: evalsymlink failure on 'absent' : "
        "lstat "
        f"{folder}/absent: no such file or directory\n"
    )
    assert (
        bare("apply", "-k", "empty", "-R").err == "error: the -k flag can't be used with -f or -R\n"
    )


@pytest.mark.parametrize(
    ("image", "settings", "changed"),
    [
        ("nginx:1", {"name": "nginx", "newTag": "2"}, "nginx:2"),
        ("nginx:1@sha256:0", {"name": "nginx", "newTag": "2"}, "nginx:2"),
        ("nginx:1", {"name": "nginx", "digest": "sha256:1"}, "nginx@sha256:1"),
        ("nginx", {"name": "nginx", "newName": "r/n"}, "r/n"),
        ("mynginx:1", {"name": "nginx", "newTag": "2"}, "mynginx:1"),
        ("r:5000/a/b:1", {"name": "r:5000/a/b", "newTag": "2"}, "r:5000/a/b:2"),
        ("a:1", {"name": "[", "newTag": "2"}, "a:1"),
    ],
)
def test_images(image: str, settings: dict[str, str], changed: str) -> None:
    assert changed_image(image, settings) == changed


def test_split_image_and_path() -> None:
    assert split_image("r:5000/a:t@sha256:0") == ("r:5000/a", "t", "sha256:0")
    assert split(r"spec.containers.[name=a.b].env.*.x\.y") == [
        "spec",
        "containers",
        "[name=a.b]",
        "env",
        "*",
        "x.y",
    ]


SERVICE = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}"
READER = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - {name: c, image: i, args: [$(WEB):$(PORT), $$(WEB), $(OTHER)], env: [{name: A, value: $(WEB)}]}
"""
VARS = """
namePrefix: my-
resources: [s.yaml, p.yaml]
vars:
- {name: WEB, objref: {apiVersion: v1, kind: Service, name: web}}
- {name: PORT, objref: {apiVersion: v1, kind: Service, name: web}, fieldref: {fieldpath: "spec.ports[0].port"}}
"""  # noqa: E501


PATCHED = "resources: [c.yaml]\npatches: [{target: {kind: ConfigMap}, path: p.yaml}]"


def test_variables_have_final_values_of_fields(bare: Kubepy, folder: Path) -> None:
    write(folder, a_kustomization__yaml=VARS, a_s__yaml=SERVICE, a_p__yaml=READER)
    done = bare("kustomize", "a")
    assert (
        "  - args:\n    - my-web:80\n    - $(WEB)\n    - $(OTHER)\n    env:\n    - name: A\n      "
        "value: my-web\n" in done.out
    )
    assert (done.err, done.status) == (
        "# Warning: 'vars' is deprecated. Please use 'replacements' instead. [EXPERIMENTAL] Run "
        "'kustomize edit fix' "
        "to update your Kustomization automatically.\n",
        0,
    )


def test_variable_without_object_is_refused(bare: Kubepy, folder: Path) -> None:
    write(
        folder,
        a_kustomization__yaml="resources: [p.yaml]\nvars: [{name: X, objref: {apiVersion: v1, "
        "kind: Service, "
        "name: web}}]",
        a_p__yaml=READER,
    )
    done = bare("kustomize", "a")
    assert done.err.endswith(
        "error: var '{X Service.v1.[noGrp] {metadata.name}}' cannot be mapped to a field in the "
        "set of known resources\n"
    )


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (
            "{op: replace, path: /z, value: b}",
            "replace operation does not apply: doc is missing key: /z: missing value",
        ),
        (
            "{op: move, from: /z, path: /y}",
            "error in move for path: 'z': unable to get nonexistent key: z: missing value",
        ),
    ],
)
def test_json_patch_of_missing_path_is_refused(
    bare: Kubepy, folder: Path, operation: str, error: str
) -> None:
    write(folder, a_c__yaml=CONFIG_MAP, a_kustomization__yaml=PATCHED, a_p__yaml=f"- {operation}")
    assert bare("kustomize", "a").err == f"error: {error}\n"


def test_json_patch_adds_annotation_to_object_without_annotations(
    bare: Kubepy, folder: Path
) -> None:
    write(
        folder,
        a_c__yaml=CONFIG_MAP,
        a_kustomization__yaml=PATCHED,
        a_p__yaml="- {op: add, path: /metadata/annotations/x, value: z}",
    )
    assert "  annotations:\n    x: z\n" in bare("kustomize", "a").out


def test_build_metadata_adds_managed_by_label(bare: Kubepy, folder: Path) -> None:
    write(
        folder,
        a_c__yaml=CONFIG_MAP,
        a_kustomization__yaml="resources: [c.yaml]\nbuildMetadata: [managedByLabel]",
    )
    assert (
        "  labels:\n    app.kubernetes.io/managed-by: kustomize-v5.8.1\n"
        in bare("kustomize", "a").out
    )


def test_empty_secret_has_data(bare: Kubepy, folder: Path) -> None:
    write(folder, a_kustomization__yaml="secretGenerator: [{name: s}]")
    assert bare("kustomize", "a").out == (
        "apiVersion: v1\ndata: {}\nkind: Secret\nmetadata:\n  name: s-46f8b28mk5\ntype: Opaque\n"
    )


def test_merged_generator_keeps_disabled_name_suffix_hash(bare: Kubepy, folder: Path) -> None:
    merged = "configMapGenerator:\n- {name: conf, behavior: merge, literals: [DEPTH=12]}\n"
    write(
        folder,
        a_kustomization__yaml="resources: [cm.yaml]\n" + merged,
        a_cm__yaml=CONFIG_MAP,
        b_kustomization__yaml="configMapGenerator:\n- {name: conf, literals: [WIDTH=3]}\n",
        c_kustomization__yaml="resources: [../b]\n" + merged,
        d_kustomization__yaml="resources: [../b]\ngeneratorOptions: {disableNameSuffixHash: true}\n"
        + merged,
    )
    assert bare("kustomize", "a").out.endswith("metadata:\n  name: conf\n")
    assert bare("kustomize", "c").out.endswith("metadata:\n  name: conf-fhb8kt9cgc\n")
    assert bare("kustomize", "d").out.endswith("metadata:\n  name: conf\n")


def test_annotations_become_strings(bare: Kubepy, folder: Path) -> None:
    noted = CONFIG_MAP.replace(
        "{name: conf}", "{name: conf, annotations: {ready: true, port: 80, note: x}}"
    )
    write(folder, a_kustomization__yaml="resources: [cm.yaml]\n", a_cm__yaml=noted)
    assert (
        '  annotations:\n    note: x\n    port: "80"\n    ready: "true"\n'
        in bare("kustomize", "a").out
    )


def test_field_names_are_case_insensitive(bare: Kubepy, folder: Path) -> None:
    write(
        folder,
        a_kustomization__yaml="Resources: [cm.yaml]\nnameprefix: x-\n",
        a_cm__yaml=CONFIG_MAP,
    )
    assert bare("kustomize", "a").out.endswith("  name: x-conf\n")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            "{legacySortOptions: {orderFirst: [Pod]}}",
            "the field 'sortOptions.order' must be one of [fifo, legacy]",
        ),
        (
            "{order: fifo, legacySortOptions: {}}",
            "the field 'sortOptions.legacySortOptions' is set but the selected sort order is "
            "'fifo', not 'legacy'",
        ),
    ],
)
def test_sort_options_are_validated(bare: Kubepy, folder: Path, options: str, error: str) -> None:
    write(
        folder,
        a_kustomization__yaml=f"resources: [cm.yaml]\nsortOptions: {options}\n",
        a_cm__yaml=CONFIG_MAP,
    )
    assert bare("kustomize", "a").err == f"error: {error}\n"


@pytest.mark.parametrize(
    ("field", "trouble"),
    [
        (
            "patchesStrategicMerge: [no.yaml]",
            "PatchStrategicMergeTransformer with config: `\npaths:\n- no.yaml\n`: "
            "evalsymlink failure on 'DIR/a/no.yaml' : lstat DIR/a/no.yaml: no such file or "
            "directory",
        ),
        (
            "patchesJson6902: [{path: no.yaml, target: {kind: Pod, name: x}}]",
            "PatchJson6902Transformer with config: `\n"
            "path: no.yaml\ntarget:\n  kind: Pod\n  name: x\n`: evalsymlink failure on "
            "'DIR/a/no.yaml' : lstat "
            "DIR/a/no.yaml: no such file or directory",
        ),
        (
            "patchesJson6902: [{target: {name: x}}]",
            "PatchJson6902Transformer with config: `\ntarget:\n  name: x\n`: empty file path and "
            "empty jsonOp",
        ),
        (
            "patchesJson6902: [{target: {kind: Pod}}]",
            "PatchJson6902Transformer with config: `\ntarget:\n  kind: Pod\n`: must specify the "
            "target name",
        ),
    ],
)
def test_old_patch_fields_name_their_transformer(
    bare: Kubepy, folder: Path, field: str, trouble: str
) -> None:
    write(folder, a_kustomization__yaml=f"resources: [c.yaml]\n{field}\n", a_c__yaml=CONFIG_MAP)
    expected = f"error: trouble configuring builtin {trouble}\n".replace("DIR", str(folder))
    assert bare("kustomize", "a").err.endswith(expected)
