// Open the page in Chromium, type the lines of the standard input, and print as JSON what the
// terminal shows, and how long the start took with a cold and a warm cache, in milliseconds.
//
//     node drive.mjs FOLDER [PICTURES] < lines.json

import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { chromium } from "playwright-core";

const [folder, pictures] = process.argv.slice(2);
const CHROMIUM = process.env.CHROMIUM || "/usr/bin/chromium";
const PATIENCE = 120_000;
const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
  ".json": "application/json",
};

// A server of static files, as any is: a day in the browser's cache.
function serve() {
  const server = http.createServer((request, response) => {
    const name = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    const file = path.join(folder, name.endsWith("/") ? `${name}index.html` : name);
    if (!path.resolve(file).startsWith(path.resolve(folder)) || !fs.existsSync(file)) {
      console.error(`404 ${name}`);
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {
      "content-type": TYPES[path.extname(file)] ?? "application/octet-stream",
      "cache-control": "max-age=86400",
    });
    fs.createReadStream(file).pipe(response);
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

async function start(page, url) {
  const begin = Date.now();
  await page.goto(url);
  await page.waitForFunction(
    () => document.body.dataset.ready || document.body.dataset.failure,
    null,
    { timeout: PATIENCE },
  );
  const failure = await page.evaluate(() => document.body.dataset.failure);
  if (failure) throw new Error(failure);
  const marks = JSON.parse(await page.evaluate(() => document.body.dataset.ready));
  return { ...marks, whole: Date.now() - begin };
}

// All lines of the terminal, those that were wrapped in one.
function screen(page) {
  return page.evaluate(() => {
    const buffer = globalThis.terminal.buffer.active;
    const lines = [];
    for (let at = 0; at < buffer.length; at++) {
      const line = buffer.getLine(at);
      const text = line.translateToString(!buffer.getLine(at + 1)?.isWrapped);
      if (line.isWrapped) lines[lines.length - 1] += text;
      else lines.push(text);
    }
    return lines.join("\n").trimEnd();
  });
}

async function waitForPrompt(page) {
  await page.waitForFunction(
    () => {
      const { active } = globalThis.terminal.buffer;
      const line = active.getLine(active.baseY + active.cursorY)?.translateToString(true);
      return /[$] ?$/.test(line ?? ""); // also after output without a line feed at its end
    },
    null,
    { timeout: PATIENCE },
  );
}

const server = await serve();
const url = `http://127.0.0.1:${server.address().port}/`;
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
try {
  const lines = JSON.parse(fs.readFileSync(0, "utf8"));
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  const page = await context.newPage();
  const errors = [];
  page.on("requestfailed", (request) => {
    // a picture that is drawn anew before it was shown is none
    if (!request.url().startsWith("blob:")) errors.push(`${request.url()}: ${request.failure().errorText}`);
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  const cold = await start(page, url).catch((error) => {
    throw new Error(`${error.message}\n${errors.join("\n")}`);
  });
  await waitForPrompt(page);
  const shown = [];
  for (const line of lines) {
    await page.evaluate(() => globalThis.terminal.clear());
    await page.keyboard.type(line.split("\n")[0]);
    for (const more of line.split("\n").slice(1)) {
      await page.keyboard.press("Enter");
      await page.keyboard.type(more);
    }
    await page.keyboard.press("Enter");
    await page.waitForTimeout(50);
    await waitForPrompt(page).catch(async (error) => {
      throw new Error(`${line}: ${error.message}\n${await screen(page)}\n${errors.join("\n")}`);
    });
    shown.push({ line, shown: await screen(page), status: await page.evaluate(() => document.body.dataset.status) });
  }
  await page.click("#share");
  const link = page.url();
  const keys = await pressKeys(page);
  const warm = await start(page, url);
  const pictured = pictures ? await takePictures(context, link) : [];
  console.log(JSON.stringify({ cold, warm, shown, keys, link: link.slice(url.length), errors, pictured }));
} finally {
  await browser.close();
  server.close();
}

// What the line shows after Tab and after Up, and the screen after a command that Ctrl-C stops.
async function pressKeys(page) {
  const shows = (text) =>
    page.waitForFunction(
      (wanted) => {
        const { active } = globalThis.terminal.buffer;
        return active.getLine(active.baseY + active.cursorY)?.translateToString(true).includes(wanted);
      },
      text,
      { timeout: PATIENCE },
    );
  await page.click("#terminal");
  await page.evaluate(() => globalThis.terminal.clear());
  await page.keyboard.type("kubectl get daemons\t");
  await shows("daemonsets");
  const completed = await screen(page);
  await page.keyboard.press("Control+u");
  await page.keyboard.press("ArrowUp");
  await page.waitForTimeout(200);
  const recalled = await screen(page);
  await page.keyboard.press("Control+u");
  await page.keyboard.type("kubectl get pods --watch\n");
  await page.waitForTimeout(1000);
  await page.keyboard.press("Control+c");
  await waitForPrompt(page);
  await page.evaluate(() => globalThis.terminal.clear());
  await page.keyboard.type("kubectl get daemonsets -o name\n");
  await page.waitForTimeout(500);
  await waitForPrompt(page);
  return { completed, recalled, stopped: await screen(page) };
}

async function takePictures(context, link) {
  const names = [];
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [400, 1400]) {
      const page = await context.newPage();
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await start(page, link);
      await waitForPrompt(page);
      const name = path.join(pictures, `browser-${colorScheme}-${width}.png`);
      await page.screenshot({ path: name });
      names.push(name);
      await page.close();
    }
  }
  return names;
}
