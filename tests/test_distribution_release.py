"""The files of a release: its workflow, what Homebrew and krew take, the manual pages."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from kubepy.cli.main import main

PROJECT = Path(__file__).parents[1]
WORKFLOW = yaml.safe_load((PROJECT / ".github/workflows/release.yaml").read_text())
DOCKERFILE = (PROJECT / "Dockerfile").read_text()
CHANGES = """# Changes

## Unreleased

- New.

## 0.4.0 (2026-11-23)

Predictions.

- Old.
"""


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


templates = load(PROJECT / "packaging" / "templates.py")


# --- the workflow ---------------------------------------------------------------------------------


def test_release_check_runs_each_step_of_workflow_in_its_order() -> None:
    steps = [step["run"] for step in WORKFLOW["jobs"]["build"]["steps"] if "run" in step]
    makefile = (PROJECT / "Makefile").read_text()
    check = re.search(r"^release-check: (.*)$", makefile, re.MULTILINE)
    assert check
    assert steps == [f"make {target}" for target in check[1].split()]


def test_nothing_is_published_without_tag_and_trial() -> None:
    jobs = WORKFLOW["jobs"]
    writes = {"attestations", "contents", "id-token", "packages"}
    publishing = {
        name
        for name, job in jobs.items()
        if any(job["permissions"].get(scope) == "write" for scope in writes)
    }
    assert publishing == {"attest", "publish", "release", "image"}
    for name in publishing:
        assert jobs[name]["if"] == "startsWith(github.ref, 'refs/tags/v')"
        assert set(jobs[name]["needs"]) in ({"build", "try"}, {"attest", "publish"})


def test_bill_of_materials_that_is_attested_is_the_one_that_was_written() -> None:
    steps = WORKFLOW["jobs"]["attest"]["steps"]
    (path,) = (step["with"]["sbom-path"] for step in steps if "sbom-path" in step["with"])
    name = path.removeprefix("release/")
    assert f'EXTRAS / "{name}"' in (PROJECT / "packaging/release.py").read_text()


def test_workflow_knows_no_secret() -> None:
    assert "secrets." not in (PROJECT / ".github/workflows/release.yaml").read_text()


def test_script_that_makes_release_passes_notes_and_files(tmp_path: Path) -> None:
    """Run the script of the step with a gh that records its words."""
    (script,) = (step["run"] for step in WORKFLOW["jobs"]["release"]["steps"] if "run" in step)
    gh = tmp_path / "bin/gh"
    gh.parent.mkdir()
    gh.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > words\ncat NOTES.md\n')
    gh.chmod(0o755)
    for name in ("dist/a.whl", "release/NOTES.md", "release/kubepy.rb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={"PATH": f"{gh.parent}:{os.environ['PATH']}", "TAG": "v7.8.9"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "release/NOTES.md"
    words = (tmp_path / "words").read_text().split("\n")[:-1]
    assert words[:3] == ["release", "create", "v7.8.9"]
    assert words[words.index("--title") + 1] == "kubepy 7.8.9"
    assert words[-2:] == ["dist/a.whl", "release/kubepy.rb"]


# --- the changelog --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "title", "text"),
    [
        ("0.4.0", "0.4.0 (2026-11-23)", "Predictions.\n\n- Old.\n"),
        ("0.5.0.dev12+gabc", "Unreleased", "- New.\n"),
        ("0.5.0rc1", "Unreleased", "- New.\n"),
    ],
)
def test_notes_of_version_are_its_section(version: str, title: str, text: str) -> None:
    assert templates.section_of(CHANGES, version) == (title, text)


def test_version_without_section_is_told() -> None:
    with pytest.raises(templates.TemplateError, match=r"no section '## 0\.5\.0'"):
        templates.section_of(CHANGES, "0.5.0")


def test_changelog_begins_with_what_is_unreleased_and_goes_back_by_version() -> None:
    titles = re.findall(r"^## (.*)$", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert titles[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", title) for title in titles[1:])
    versions = [tuple(map(int, title.split(" ")[0].split("."))) for title in titles[1:]]
    assert versions == sorted(versions, reverse=True)
    assert len(versions) == len(set(versions))


def test_links_of_notes_lead_into_repository(release: Path) -> None:
    notes = (release / "NOTES.md").read_text()
    assert "](https://forge.example/o/r/blob/v0.4.0/docs/plan.md)" in notes
    assert "](docs/" not in notes


# --- Homebrew and krew ----------------------------------------------------------------------------


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of a release 0.4.0, whose wheel and sdist are no real ones."""
    monkeypatch.setenv("KUBEPY_REPOSITORY_URL", "https://forge.example/o/r/")
    sdist = tmp_path / "kubepy_cluster-0.4.0.tar.gz"
    wheel = tmp_path / "kubepy_cluster-0.4.0-py3-none-any.whl"
    sdist.write_bytes(b"sdist")
    wheel.write_bytes(b"wheel")
    folder = tmp_path / "release"
    folder.mkdir()
    assert list(templates.fill(folder, "0.4.0", sdist, wheel)) == [
        folder / "kubectl-kubepy-0.4.0.tar.gz",
        folder / "kubepy.rb",
        folder / "kubepy.yaml",
        folder / "NOTES.md",
    ]
    return folder


def test_formula_names_sdist_and_its_checksum(release: Path) -> None:
    formula = (release / "kubepy.rb").read_text()
    assert 'homepage "https://forge.example/o/r"' in formula
    address = "https://forge.example/o/r/releases/download/v0.4.0/kubepy_cluster-0.4.0.tar.gz"
    assert f'url "{address}"' in formula
    assert f'sha256 "{hashlib.sha256(b"sdist").hexdigest()}"' in formula
    assert "@VERSION@" not in formula


@pytest.mark.skipif(not shutil.which("ruby"), reason="needs ruby")
def test_formula_is_ruby(release: Path) -> None:
    done = subprocess.run(
        ["ruby", "-c", "kubepy.rb"], cwd=release, capture_output=True, text=True, check=True
    )
    assert done.stdout == "Syntax OK\n"


def krew_errors(manifest: dict[str, Any], name: str) -> list[str]:
    """Return what krew refuses in a manifest (krew's ``internal/index/validation``)."""
    spec = manifest["spec"]
    checks = {
        "apiVersion": manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2",
        "kind": manifest["kind"] == "Plugin",
        "name": manifest["metadata"]["name"] == name and re.fullmatch(r"[\w-]+", name),
        "shortDescription": re.fullmatch(r"[^\r\n]+", spec.get("shortDescription", "")),
        "version": re.fullmatch(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", spec.get("version", "")),
        "platforms": spec.get("platforms"),
    }
    for platform in spec.get("platforms", []):
        selector = platform.get("selector", {})
        keys = {*selector.get("matchLabels", {})}
        keys |= {expression["key"] for expression in selector.get("matchExpressions", [])}
        checks["uri"] = platform.get("uri")
        checks["sha256"] = re.fullmatch(r"[a-f0-9]{64}", platform.get("sha256", ""))
        checks["bin"] = platform.get("bin")
        checks["files"] = all(
            file.get("from") and file.get("to") for file in platform.get("files", [{}])
        )
        checks["selector"] = keys and keys <= {"os", "arch"}
    return [name for name, holds in checks.items() if not holds]


def test_krew_takes_manifest(release: Path) -> None:
    manifest = yaml.safe_load((release / "kubepy.yaml").read_text())
    assert krew_errors(manifest, "kubepy") == []
    (platform,) = manifest["spec"]["platforms"]
    archive = release / platform["uri"].rpartition("/")[2]
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    with tarfile.open(archive) as packed:
        modes = {member.name: member.mode for member in packed}
    assert modes == {
        "kubectl-kubepy": 0o755,
        "LICENSE": 0o644,
        "kubepy_cluster-0.4.0-py3-none-any.whl": 0o644,
    }
    patterns = [file["from"] for file in platform["files"]]
    assert all(any(Path(name).match(pattern) for pattern in patterns) for name in modes)
    assert platform["bin"] in modes


@pytest.mark.parametrize(
    ("field", "value"),
    [("version", "0.4.0"), ("shortDescription", "a\nb"), ("platforms", [])],
)
def test_checks_of_krew_manifest_find_mistakes(release: Path, field: str, value: object) -> None:
    manifest = yaml.safe_load((release / "kubepy.yaml").read_text())
    manifest["spec"][field] = value
    assert krew_errors(manifest, "kubepy") == [field]


@pytest.mark.parametrize(
    ("version", "semantic"),
    [
        ("0.5.0", "v0.5.0"),
        ("0.5.0rc1", "v0.5.0-rc.1"),
        ("0.5.0.dev12+gabc", "v0.5.0-dev.12"),
    ],
)
def test_version_for_krew_is_semantic(version: str, semantic: str) -> None:
    assert templates.semantic(version) == semantic


def test_archive_of_same_files_has_same_bytes(tmp_path: Path) -> None:
    wheel = tmp_path / "kubepy_cluster-0.4.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    first = templates.krew_archive(wheel)
    os.utime(wheel, (0, 0))
    assert templates.krew_archive(wheel) == first


def test_name_in_template_without_value_is_told() -> None:
    with pytest.raises(templates.TemplateError, match="@COLOUR@"):
        templates.filled("a @COLOUR@", {})


# --- krew's launcher ------------------------------------------------------------------------------

# Makes an environment whose pip installs nothing, and whose kubectl-kubepy prints its words.
PYTHON3 = """#!/bin/sh
case "$1" in
  -c) exit "${TOO_OLD:-0}" ;;
  -m) mkdir -p "$3/bin"
      printf '#!/bin/sh\\necho pip "$@" >> "$CALLS"\\n' > "$3/bin/python"
      printf '#!/bin/sh\\nprintf "%%s|" "$@"\\n' > "$3/bin/kubectl-kubepy"
      chmod +x "$3/bin/python" "$3/bin/kubectl-kubepy" ;;
esac
"""


@pytest.fixture
def plugin(release: Path, tmp_path: Path) -> Path:
    """The plugin as krew installs it: unpacked, and called through a link."""
    store = tmp_path / "store of krew"
    archive = (release / "kubectl-kubepy-0.4.0.tar.gz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(store, filter="data")
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "python3").write_text(PYTHON3)
    (bin / "python3").chmod(0o755)
    (bin / "kubectl-kubepy").symlink_to(store / "kubectl-kubepy")
    return bin / "kubectl-kubepy"


def call(plugin: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{plugin.parent}:/usr/bin:/bin",
        "HOME": str(plugin.parent.parent),
        "CALLS": str(plugin.parent / "calls"),
        **more,
    }
    return subprocess.run([plugin, *words], env=environment, capture_output=True, text=True)


def test_plugin_makes_environment_once(plugin: Path) -> None:
    first = call(plugin, "get", "two words")
    assert (first.returncode, first.stdout) == (0, "get|two words|")
    assert "making its environment in" in first.stderr
    second = call(plugin, "why")
    assert (second.stdout, second.stderr) == ("why|", "")
    calls = (plugin.parent / "calls").read_text().splitlines()
    assert len(calls) == 1
    assert calls[0].endswith("/store of krew/kubepy_cluster-0.4.0-py3-none-any.whl")


def test_plugin_without_fitting_python_says_so(plugin: Path) -> None:
    done = call(plugin, "get", TOO_OLD="1")
    assert done.returncode == 1
    assert done.stderr == "error: kubepy needs python3, 3.11 or newer, with its module venv\n"


def test_plugin_without_its_wheel_says_so(plugin: Path) -> None:
    for wheel in plugin.resolve().parent.glob("*.whl"):
        wheel.unlink()
    done = call(plugin, "get")
    assert done.returncode == 1
    assert "install the plugin again" in done.stderr


# --- manual pages ---------------------------------------------------------------------------------


def test_manual_pages_are_what_help_prints(tmp_path: Path) -> None:
    script = PROJECT / "tools/write_man_pages.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text() for path in (PROJECT / "man").iterdir()}
    assert made == kept, "run `make man`"
    assert len(made) > 50


@pytest.mark.skipif(not shutil.which("groff"), reason="needs groff")
def test_manual_pages_are_roff_without_warnings() -> None:
    pages = sorted(str(path) for path in (PROJECT / "man").iterdir())
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-ww", "-z", *pages], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_manual_page_shows_flags_and_text_as_help_does() -> None:
    page = (PROJECT / "man/kubepy-plan.1").read_text()
    assert ".TP\n\\fB\\-f\\fR, \\fB\\-\\-filename\\fR=[]\n" in page
    assert "kubepy plan set image ds/log\\-agent agent=fluent\\-bit:3.1" in page


def test_text_of_manual_page_is_never_request_of_roff() -> None:
    pages = load(PROJECT / "tools" / "write_man_pages.py")
    assert pages.escaped(".so /etc/passwd\n'x\nC:\\a-b é") == (
        "\\&.so /etc/passwd\n\\&'x\nC:\\ea\\-b \\[u00E9]"
    )


# --- hooks and image ------------------------------------------------------------------------------


def test_hooks_run_commands_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    hooks = yaml.safe_load((PROJECT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["kubepy-fsck", "kubepy-plan"]
    for hook in hooks:
        program, *words = shlex.split(hook["entry"])
        assert program == "kubepy"
        assert main([*words, "--help"]) == 0
        assert hook["language"] == "python"
        assert hook["id"] in (PROJECT / "packaging/README.md").read_text()
        assert not hook["pass_filenames"]
    assert "Usage:" in capsys.readouterr().out


def test_image_takes_wheel_and_its_programs_alone() -> None:
    ignored, *kept = [
        line
        for line in (PROJECT / ".dockerignore").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert ignored == "*"
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    for path in " ".join(copied).split():
        assert any(f"!{path}".startswith(pattern.rstrip("/")) for pattern in kept), path
        assert "*" in path or os.access(PROJECT / path, os.X_OK)


def test_image_runs_as_nobody_and_says_whether_it_is_ready() -> None:
    (user,) = re.findall(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)
    assert int(user[0]) > 0
    assert re.search(r'^HEALTHCHECK .* CMD \["healthy"\]$', DOCKERFILE, re.MULTILINE)
    assert DOCKERFILE.rstrip().endswith('CMD ["serve"]')


def test_program_of_image_serves_and_its_health_check_sees_it(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "KUBEPY_STATE": str(tmp_path / "cluster"),
        "KUBEPY_INIT": "--nodes=2",
    }
    serve = subprocess.Popen(
        [PROJECT / "packaging/image/serve", "--port=0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert serve.stdout
        said = []
        for line in serve.stdout:
            said.append(line)
            if line.startswith("serving "):
                break
        address = re.search(r"https://127\.0\.0\.1:(\d+)", said[-1])
        assert address, said
        assert "node/node-2 created\n" in said
        assert healthy(address[1]) == (0, "ok\n")
    finally:
        serve.terminate()
        serve.communicate(timeout=30)
    status, message = healthy(address[1])
    assert status == 1
    assert message.startswith("not ready: ")


def healthy(port: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, PROJECT / "packaging/image/healthy"],
        env={**os.environ, "KUBEPY_PORT": port},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


# --- the development container --------------------------------------------------------------------


def test_script_of_feature_knows_each_option() -> None:
    folder = PROJECT / "packaging/devcontainer/kubepy"
    feature = json.loads((folder / "devcontainer-feature.json").read_text())
    script = (folder / "install.sh").read_text()
    for name, option in feature["options"].items():
        default = str(option["default"]).lower()
        assert re.search(rf"^{name.upper()}=\$\{{{name.upper()}:?-{default}\}}$", script, re.M)
