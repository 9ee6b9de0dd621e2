"""Build the page with a cluster in a browser's tab: static files in a folder.

``make browser`` runs this, after ``npm install`` in ``browser/``. It needs node. The folder can be
served by any web server, below any path.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
BROWSER = ROOT / "browser"
# The libraries that the package cannot do without in a browser; all of them are Python alone.
LIBRARIES = ("click", "filelock", "jsonpatch", "jsonpointer", "ruamel.yaml", "tabulate")
PAGE = ("index.html", "style.css", "start.js", "page.js", "lineeditor.js", "links.js", "worker.js")
VENDORED = {
    "@xterm/xterm/lib/xterm.mjs": "xterm.js",
    "@xterm/xterm/css/xterm.css": "xterm.css",
    "@xterm/xterm/LICENSE": "xterm.LICENSE",
    "@xterm/addon-fit/lib/addon-fit.mjs": "addon-fit.js",
    "re2js/build/index.js": "re2js.js",
    "re2js/LICENSE": "re2js.LICENSE",
    "pyodide/pyodide.mjs": "pyodide/pyodide.mjs",
    "pyodide/pyodide.asm.mjs": "pyodide/pyodide.asm.mjs",
    "pyodide/pyodide.asm.wasm": "pyodide/pyodide.asm.wasm",
    "pyodide/pyodide-lock.json": "pyodide/pyodide-lock.json",
    "pyodide/python_stdlib.zip": "pyodide/python_stdlib.zip",
}


def build(output: Path) -> None:
    """Build the page in a folder, which is emptied. Raises CalledProcessError, OSError."""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        sources = Path(temporary, "sources")
        unpack_packages(sources, Path(temporary, "wheels"))
        command = ["node", "build.mjs", str(sources), str(output)]
        subprocess.run(command, cwd=BROWSER, check=True)
    for name in PAGE:
        shutil.copyfile(BROWSER / name, output / name)
    for source, name in VENDORED.items():
        target = output / "vendor" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(BROWSER / "node_modules" / source, target)
    write_service_worker(output)


def unpack_packages(sources: Path, wheels: Path) -> None:
    """Put the package, its libraries in the versions of this environment, the session of the page
    and its home directory into a folder."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", f"--wheel-dir={wheels}", str(ROOT)], check=True)
    pinned = [f"{name}=={metadata.version(name)}" for name in LIBRARIES]
    pure = ["--only-binary=:all:", "--platform=any", "--python-version=3.14"]
    subprocess.run([*pip, "download", "--no-deps", *pure, f"--dest={wheels}", *pinned], check=True)
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(sources)
    for module in (BROWSER / "python").glob("*.py"):
        shutil.copyfile(module, sources / module.name)
    home = sources / "home"
    home.mkdir()
    for manifest in (ROOT / "manifests").glob("*.yaml"):
        shutil.copyfile(manifest, home / manifest.name)
    shutil.copyfile(BROWSER / "warm-up.txt", home / ".warm-up")


def write_service_worker(output: Path) -> None:
    """Write the service worker, with the names of all files and a version that follows from
    them."""
    files = sorted(path for path in output.rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.relative_to(output).as_posix().encode() + path.read_bytes())
    names = ["./", *(path.relative_to(output).as_posix() for path in files)]
    text = (BROWSER / "sw.js").read_text(encoding="utf-8")
    text = text.replace("@VERSION@", f"kubepy-{digest.hexdigest()[:16]}")
    (output / "sw.js").write_text(text.replace("@FILES@", " ".join(names)), encoding="utf-8")


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
