// A line of a terminal that can be edited, with a history and completion.

const UP = "\x1b[A";
const DOWN = "\x1b[B";
const RIGHT = "\x1b[C";
const LEFT = "\x1b[D";
const HOME = ["\x1b[H", "\x1bOH", "\x01"];
const END = ["\x1b[F", "\x1bOF", "\x05"];
const DELETE = "\x1b[3~";

export class LineEditor {
  constructor(terminal, { prompt, complete, interrupt }) {
    this.terminal = terminal;
    this.prompt = prompt;
    this.complete = complete;
    this.interrupt = interrupt;
    this.history = [];
    this.resolve = null;
    this.typedAhead = "";
    this.clear();
    terminal.onData((data) => this.take(data));
  }

  clear() {
    this.line = "";
    this.cursor = 0;
    this.at = this.history.length; // in the history
    this.document = []; // lines of a here-document, the command first
  }

  // Resolves with the next line, and with all of a command that has a here-document.
  read() {
    this.clear();
    this.terminal.write(this.shownPrompt());
    const line = new Promise((resolve) => (this.resolve = resolve));
    const ahead = this.typedAhead;
    this.typedAhead = "";
    if (ahead) this.take(ahead);
    return line;
  }

  shownPrompt() {
    return this.document.length ? "> " : this.prompt;
  }

  remember(command) {
    if (command.trim() && this.history.at(-1) !== command) this.history.push(command);
    this.at = this.history.length;
  }

  take(data) {
    if (!this.resolve) {
      if (data === "\x03") this.interrupt();
      else this.typedAhead += data;
      return;
    }
    if (data.startsWith("\x1b")) return this.press(data);
    const characters = [...data.replaceAll("\r\n", "\r")];
    for (let at = 0; at < characters.length; at++) {
      if (!this.resolve) {
        this.typedAhead += characters.slice(at).join("");
        return;
      }
      this.press(characters[at]);
    }
  }

  press(key) {
    if (key === "\r" || key === "\n") this.enter();
    else if (key === "\t") this.completeWord();
    else if (key === "\x7f" || key === "\b") this.remove(-1);
    else if (key === DELETE || key === "\x04") this.remove(1);
    else if (key === "\x03") this.cancel();
    else if (key === "\x0c") this.clearScreen();
    else if (key === "\x15") this.replace(this.line.slice(this.cursor), 0);
    else if (key === "\x0b") this.replace(this.line.slice(0, this.cursor), this.cursor);
    else if (key === "\x17") this.removeWord();
    else if (key === UP || key === "\x10") this.recall(-1);
    else if (key === DOWN || key === "\x0e") this.recall(1);
    else if (key === LEFT) this.move(this.cursor - 1);
    else if (key === RIGHT) this.move(this.cursor + 1);
    else if (HOME.includes(key)) this.move(0);
    else if (END.includes(key)) this.move(this.line.length);
    else if (key >= " ") this.insert(key);
  }

  insert(text) {
    const { line, cursor } = this;
    this.replace(line.slice(0, cursor) + text + line.slice(cursor), cursor + text.length);
  }

  remove(direction) {
    const start = direction < 0 ? this.cursor - 1 : this.cursor;
    if (start >= 0) this.replace(this.line.slice(0, start) + this.line.slice(start + 1), start);
  }

  removeWord() {
    const before = this.line.slice(0, this.cursor).replace(/\S+\s*$/, "");
    this.replace(before + this.line.slice(this.cursor), before.length);
  }

  move(cursor) {
    this.replace(this.line, Math.max(0, Math.min(this.line.length, cursor)));
  }

  recall(direction) {
    this.at = Math.max(0, Math.min(this.history.length, this.at + direction));
    const line = (this.history[this.at] ?? "").split("\n")[0];
    this.replace(line, line.length);
  }

  // Shows another line in place of this one, which may have wrapped.
  replace(line, cursor) {
    this.erase();
    this.line = line;
    this.cursor = cursor;
    this.redraw();
  }

  erase() {
    const columns = this.terminal.cols;
    const row = Math.floor((this.shownPrompt().length + this.cursor) / columns);
    this.terminal.write(`${row ? `\x1b[${row}A` : ""}\r\x1b[J`);
  }

  redraw() {
    const columns = this.terminal.cols;
    const before = this.shownPrompt().length;
    const end = before + this.line.length;
    const place = before + this.cursor;
    // a full last row leaves the cursor on it: a space and a step back bring it to the next one
    const wrap = end % columns === 0 ? " \b" : "";
    const up = Math.floor(end / columns) - Math.floor(place / columns);
    this.terminal.write(
      `${this.shownPrompt()}${this.line}${wrap}${up ? `\x1b[${up}A` : ""}\x1b[${(place % columns) + 1}G`,
    );
  }

  enter() {
    this.move(this.line.length);
    this.terminal.write("\r\n");
    const end = this.endOfDocument();
    this.document.push(this.line);
    const isOpen = end === null ? this.opensDocument() : this.line !== end;
    if (isOpen) {
      this.line = "";
      this.cursor = 0;
      this.terminal.write(this.shownPrompt());
      return;
    }
    this.finish(this.document.join("\n"));
  }

  opensDocument() {
    return /<<\s*['"]?\w+/.test(this.document[0]);
  }

  endOfDocument() {
    if (!this.document.length) return null;
    return /<<\s*['"]?(\w+)/.exec(this.document[0])[1];
  }

  cancel() {
    this.terminal.write("^C\r\n");
    this.finish("");
  }

  finish(line) {
    this.remember(line);
    const resolve = this.resolve;
    this.resolve = null;
    resolve(line);
  }

  clearScreen() {
    this.erase();
    this.terminal.clear();
    this.redraw();
  }

  async completeWord() {
    if (this.document.length) return this.insert("  ");
    const before = this.line.slice(0, this.cursor);
    const candidates = await this.complete(before);
    if (!Array.isArray(candidates) || !candidates.length || !this.resolve) return;
    const word = before.slice(before.lastIndexOf(" ") + 1);
    const common = candidates.reduce((one, other) => {
      let length = 0;
      while (length < one.length && one[length] === other[length]) length++;
      return one.slice(0, length);
    });
    if (common.length > word.length || candidates.length === 1) {
      const ending = candidates.length === 1 && !/[=/]$/.test(common) ? " " : "";
      const rest = this.line.slice(this.cursor);
      const start = before.slice(0, before.length - word.length);
      this.replace(start + common + ending + rest, (start + common + ending).length);
      return;
    }
    this.move(this.line.length);
    this.terminal.write(`\r\n${candidates.join("  ").slice(0, 2000)}\r\n`);
    this.redraw();
  }
}
