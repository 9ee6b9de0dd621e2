// Python begins to load before the terminal does; what it says until then is kept for page.js.

const worker = new Worker("worker.js", { type: "module" });
const events = [];
worker.onmessage = (event) => events.push(["onmessage", event]);
worker.onerror = (event) => events.push(["onerror", event]);
globalThis.firstWorker = { worker, events };
