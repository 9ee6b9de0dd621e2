// Make of the package and its libraries what the page loads: their bytecode in one archive, and a
// snapshot of Python's memory in which the usual commands have run.
//
//     node build.mjs SOURCES OUTPUT
//
// SOURCES is a folder of importable packages; `home` in it is the home directory of the tab.

import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { loadPyodide } from "pyodide";

process.on("uncaughtException", (error) => {
  console.error(String(error.message ?? error).slice(-2000)); // node would print all of Pyodide's code
  process.exit(1);
});

const [sources, output] = process.argv.slice(2);
const APP = "/app";
const HOME = "/home/pyodide";
const LEFT_OUT = /\.pyi?$|\.dist-info\/|__pycache__\//;

function walk(folder, inner = "") {
  return fs
    .readdirSync(path.join(folder, inner), { withFileTypes: true })
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const name = path.posix.join(inner, entry.name);
      return entry.isDirectory() ? walk(folder, name) : [name];
    });
}

function put(pyodide, name, data) {
  pyodide.FS.mkdirTree(path.posix.dirname(name));
  pyodide.FS.writeFile(name, data);
}

const pyodide = await loadPyodide({ _makeSnapshot: true, env: { HOME, PYTHONHASHSEED: "0" } });
for (const name of walk(sources)) {
  const target = name.startsWith("home/") ? `${HOME}/${name.slice(5)}` : `${APP}/${name}`;
  put(pyodide, target, fs.readFileSync(path.join(sources, name)));
}

pyodide.runPython(`
import compileall, py_compile, sys
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
assert compileall.compile_dir("${APP}", quiet=1, legacy=True, invalidation_mode=mode, stripdir="${APP}")
`);

// An archive: a line of JSON with names and sizes, and the files one after the other.
function archive(names) {
  const files = names.map((name) => pyodide.FS.readFile(name));
  const index = JSON.stringify(names.map((name, at) => [name, files[at].length]));
  return zlib.gzipSync(Buffer.concat([Buffer.from(`${index}\n`), ...files]), { level: 9 });
}

function tree(folder) {
  return pyodide.FS.readdir(folder)
    .filter((name) => name !== "." && name !== "..")
    .sort()
    .flatMap((name) => {
      const inner = `${folder}/${name}`;
      return pyodide.FS.isDir(pyodide.FS.stat(inner).mode) ? tree(inner) : [inner];
    });
}

fs.writeFileSync(path.join(output, "app.gz"), archive(tree(APP).filter((name) => !LEFT_OUT.test(name))));

// Only bytecode from here on, as in the page.
for (const name of tree(APP)) if (name.endsWith(".py")) pyodide.FS.unlink(name);
pyodide.runPython(`
import gc, importlib, sys
sys.path.insert(0, "${APP}")
importlib.invalidate_caches()
import session
session.make()
`);
const home = tree(HOME).filter((name) => !name.endsWith("/.warm-up"));
fs.writeFileSync(path.join(output, "home.gz"), archive(home));

pyodide.runPython(`
for line in open("${HOME}/.warm-up", encoding="utf-8"):
    answer = session.run(line)
    assert '"status": 0' in answer, (line, answer)
session.picture(False)
session.complete("kubectl get dep")
import shutil, os
shutil.rmtree("${HOME}/state")
os.unlink("${HOME}/.warm-up")
os.chdir("/")
gc.collect()
`);
fs.writeFileSync(path.join(output, "snapshot.gz"), zlib.gzipSync(pyodide.makeMemorySnapshot(), { level: 6 }));
