// Python in a thread of its own, so that the page stays alive while a command runs.
//
// Messages in: {id, call, argument}; out: {id, answer}, and {progress} or {failure} at the start.

import { loadPyodide } from "./vendor/pyodide/pyodide.mjs";
import { RE2JS } from "./vendor/re2js.js";

globalThis.RE2JS = RE2JS;

async function unzipped(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  const plain = response.body.pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

function unpack(FS, archive) {
  const end = archive.indexOf(10);
  const index = JSON.parse(new TextDecoder().decode(archive.subarray(0, end)));
  let at = end + 1;
  for (const [name, size] of index) {
    FS.mkdirTree(name.slice(0, name.lastIndexOf("/")));
    FS.writeFile(name, archive.subarray(at, at + size));
    at += size;
  }
}

// Python's program is compiled while the snapshot comes. The snapshot is larger than the memory that
// Python begins with, and Pyodide does not make room.
function prepare(snapshot) {
  const program = "vendor/pyodide/pyodide.asm.wasm";
  const compiled = WebAssembly.compileStreaming(fetch(program));
  const fetchOther = globalThis.fetch;
  globalThis.fetch = (resource, ...options) =>
    String(resource).endsWith(program) ? Promise.resolve(new Response()) : fetchOther(resource, ...options);
  WebAssembly.instantiateStreaming = async (response, imports) => {
    const module = await compiled;
    const instance = await WebAssembly.instantiate(module, imports);
    const { memory } = instance.exports;
    const missing = Math.ceil(((await snapshot).length - memory.buffer.byteLength) / 65536);
    if (missing > 0) memory.grow(missing);
    return { module, instance };
  };
}

async function begin() {
  const marks = { start: performance.now() };
  const mark = (name) => (marks[name] = Math.round(performance.now() - marks.start));
  const coming = unzipped("snapshot.gz");
  const home = unzipped("home.gz");
  prepare(coming);
  import("./vendor/pyodide/pyodide.asm.mjs"); // is read meanwhile, too
  const snapshot = await coming;
  mark("snapshot");
  const application = unzipped("app.gz");
  const pyodide = await loadPyodide({ _loadSnapshot: snapshot });
  mark("python");
  unpack(pyodide.FS, await home);
  const session = pyodide.pyimport("session");
  session.enter();
  mark("cluster");
  postMessage({ ready: marks });
  unpack(pyodide.FS, await application);
  pyodide.runPython("import importlib; importlib.invalidate_caches()");
  return session;
}

const session = begin().catch((error) => {
  postMessage({ failure: String(error) });
  throw error;
});

onmessage = async ({ data: { id, call, argument } }) => {
  const functions = await session;
  try {
    postMessage({ id, answer: JSON.parse(functions[call](argument)) });
  } catch (error) {
    postMessage({ id, answer: { stdout: "", stderr: `${error}\n`, status: 1 } });
  }
};
