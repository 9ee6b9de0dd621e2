// The page: a terminal, the cluster's timeline beside it, and links that play commands.

import { Terminal } from "./vendor/xterm.js";
import { FitAddon } from "./vendor/addon-fit.js";
import { LineEditor } from "./lineeditor.js";
import { commandsOf, hashOf } from "./links.js";

const element = (id) => document.getElementById(id);
const LIGHT = {
  background: "#ffffff",
  foreground: "#1c2733",
  cursor: "#1a5fb4",
  cursorAccent: "#ffffff",
  selectionBackground: "#b5d3f5",
  red: "#b3261e",
};
const DARK = {
  background: "#15181d",
  foreground: "#dfe5ec",
  cursor: "#78aeed",
  cursorAccent: "#15181d",
  selectionBackground: "#34506f",
  red: "#ff8a80",
};
const WELCOME = "kubectl and kubepy work here; help tells more.\r\n";

// --- light and dark ---

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : prefersDark.matches;
}

function applyTheme() {
  terminal.options.theme = isDark() ? DARK : LIGHT;
  showPicture();
}

const chosenTheme = localStorage.getItem("theme");
if (chosenTheme) document.documentElement.dataset.theme = chosenTheme;

const terminal = new Terminal({
  fontSize: innerWidth < 800 ? 12 : 14,
  fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace",
  theme: isDark() ? DARK : LIGHT,
  scrollback: 5000,
  screenReaderMode: false,
});
globalThis.terminal = terminal; // for the console of the browser, and tests
const fit = new FitAddon();
terminal.loadAddon(fit);
terminal.open(element("terminal"));
fit.fit();
new ResizeObserver(() => fit.fit()).observe(element("terminal"));

element("theme").onclick = () => {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
  applyTheme();
};
prefersDark.addEventListener("change", applyTheme);

// --- the worker ---

let worker = null;
let numberOfCall = 0;
const waiting = new Map();

function startWorker() {
  const first = globalThis.firstWorker;
  globalThis.firstWorker = null;
  worker = first?.worker ?? new Worker("worker.js", { type: "module" });
  return new Promise((resolve, reject) => {
    worker.onerror = (event) => reject(new Error(event.message || "the worker cannot be loaded"));
    worker.onmessage = ({ data }) => {
      if (data.ready) resolve(data.ready);
      else if (data.failure) reject(new Error(data.failure));
      else {
        waiting.get(data.id)?.(data.answer);
        waiting.delete(data.id);
      }
    };
    for (const [handler, event] of first?.events ?? []) worker[handler](event);
  });
}

function call(name, argument) {
  const id = ++numberOfCall;
  worker.postMessage({ id, call: name, argument });
  return new Promise((resolve) => waiting.set(id, resolve));
}

// --- commands ---

const played = []; // the commands since the cluster was made: they make it anew, and are the link
let running = null; // what stops the command that runs

function print(text, colour = "") {
  const lines = text.replaceAll("\n", "\r\n");
  terminal.write(colour ? `\x1b[${colour}m${lines}\x1b[0m` : lines);
}

async function run(line) {
  const command = line.trim();
  if (!command) return;
  if (command === "clear") return terminal.clear();
  if (command === "reset") return reset();
  say("Running …");
  const stopped = new Promise((resolve) => (running = () => resolve(null)));
  const answer = await Promise.race([call("run", line), stopped]);
  running = null;
  if (answer === null) {
    print("^C\n");
    return restart("Stopped: the cluster is made again …");
  }
  print(answer.stdout);
  print(answer.stderr, "31");
  document.body.dataset.status = answer.status;
  if (!/^(help|ls|cat)\b/.test(command)) played.push(line);
  say("");
}

// The cluster is made by its commands: the same ones make the same cluster.
async function restart(reason) {
  say(reason);
  worker.terminate();
  waiting.clear();
  await startWorker();
  for (const line of played) await call("run", line);
  await draw();
  say("");
}

async function reset() {
  played.length = 0;
  pictureText = "";
  showPicture();
  await restart("The cluster is made again …");
  history.replaceState(null, "", location.pathname);
  terminal.clear();
}

async function play(commands) {
  for (const command of commands) {
    terminal.write(`${PROMPT}${command.replaceAll("\n", "\r\n> ")}\r\n`);
    editor.remember(command);
    await run(command);
    await draw();
  }
}

// --- the timeline ---

let pictureText = "";
let pictureUrl = "";

async function draw() {
  const text = await call("picture", false);
  if (typeof text !== "string") return;
  pictureText = text;
  showPicture();
}

function showPicture() {
  const image = element("picture");
  image.hidden = !pictureText;
  element("nothing").hidden = Boolean(pictureText);
  if (!pictureText) return;
  const old = pictureUrl;
  const scheme = isDark() ? "dark" : "light";
  const text = pictureText.replace(/<svg /, `<svg style="color-scheme: ${scheme}" `);
  pictureUrl = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  image.onload = () => URL.revokeObjectURL(old);
  image.src = pictureUrl;
}

// --- the line ---

const PROMPT = "$ ";

function say(text) {
  element("state").textContent = text || "Ready";
}

const editor = new LineEditor(terminal, {
  prompt: PROMPT,
  complete: (line) => call("complete", line),
  interrupt: () => running?.(),
});

element("share").onclick = async () => {
  const link = `${location.origin}${location.pathname}${hashOf(played)}`;
  history.replaceState(null, "", link);
  try {
    await navigator.clipboard.writeText(link);
    say("The link to these commands is copied, and in the address bar");
  } catch {
    say("The link to these commands is in the address bar");
  }
  terminal.focus();
};
element("reset").onclick = async () => {
  await reset();
  editor.redraw();
  terminal.focus();
};

// From now on the page starts without a network. Where that is not allowed, the browser's own cache
// does the same for a while.
function keepFiles() {
  if (!navigator.serviceWorker) return;
  navigator.serviceWorker.register("sw.js").catch((error) => console.info(`not kept: ${error}`));
}

async function main() {
  terminal.write(WELCOME);
  const marks = await startWorker();
  document.body.dataset.ready = JSON.stringify({ ...marks, prompt: Math.round(performance.now()) });
  say("");
  keepFiles();
  await play(commandsOf(location.hash));
  terminal.focus();
  for (;;) {
    await run(await editor.read());
    await draw();
  }
}

addEventListener("hashchange", () => location.reload());
main().catch((error) => {
  document.body.dataset.failure = String(error);
  say("");
  print(`This page cannot start: ${error.message}\n`, "31");
  element("state").textContent = "Failed";
});
