"use strict";
/* The page of a timeline: zoom, hover, keyboard, the table of steps.
   Everything was laid out by kubepy: places on the time axis go from 0 to data.plot, and zooming moves what is there. */
const timelinePage = (() => {
  const $ = id => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg", ROWS = 200, NEAR = 8;
  let data, objects, steps, places, byObject, shapes, view, selected = -1, frame = 0, left = 0, scale = 1, least = 1, shown = ROWS;

  // --- data

  function read(document_) {
    data = document_;
    steps = [];
    places = [];
    byObject = new Map();
    for (const [x, width, count] of data.moments)
      for (let place = 0; place < count; place++) places.push(x + width * (place + 0.5) / count);
    const starts = [];
    let micros = 0, object = 0, name = 0;
    objects = [];
    for (let place = 0; place < data.objects.length; place += 3) {
      name += data.objects[place];
      objects.push([name, data.objects[place + 1], data.objects[place + 2]]);
    }
    for (let run = 0; run < data.times.length; run += 2) {
      micros += data.times[run];
      const at = exactTime(data.since + micros), after = duration(micros);
      for (let more = data.times[run + 1]; more; more--) {
        const number = steps.length, [action, reason] = data.actions[data.steps[2 * number]];
        object += data.steps[2 * number + 1];
        const step = {...thing(object), at, after, when: shortDuration(micros), action: data.words[action], reason: data.words[reason], number};
        steps.push(step);
        starts.push(micros);
        if (!byObject.has(step.id)) byObject.set(step.id, []);
        byObject.get(step.id).push(step);
      }
    }
    let first = 0;
    for (const moment of data.moments) {
      moment.after = data.days.length ? steps[first].at.slice(11, 16)
        : shortDuration(Math.round(starts[first] / data.resolution) * data.resolution);
      first += moment[2];
    }
    let nearest = data.plot;
    for (let place = 1; place < places.length; place++) nearest = Math.min(nearest, places[place] - places[place - 1]);
    least = Math.min(Math.max(nearest * 4, data.plot / 5000), data.plot);
    for (const course of data.courses) course.numbers = sums(course[5].map(place => course[4][place]));
  }

  function exactTime(micros) {  // RFC 3339, with as much of a fraction as there is
    const rest = micros % 1e6, text = new Date(Math.floor(micros / 1e3)).toISOString().slice(0, 19);
    return text + (rest ? "." + String(rest).padStart(6, "0").replace(/0+$/, "") : "") + "Z";
  }

  function duration(micros) {  // as Go writes it: 1m30.5s
    const [size, unit] = micros % 6e7 && micros < 1e6 ? (micros < 1e3 ? [1, "µs"] : [1e3, "ms"]) : [1e6, "s"];
    const hours = Math.floor(micros / 36e8), minutes = Math.floor(micros / 6e7) % 60;
    return (hours ? hours + "h" : "") + (hours || minutes ? minutes + "m" : "") + micros % 6e7 / size + unit;
  }

  function shortDuration(micros) {  // rounded, without units that are 0 behind others: 1m30s, 6h
    const digits = micros < 1e6 ? 1e3 : micros < 6e7 ? 1e4 : 1e6;
    return duration(Math.round(micros / digits) * digits).replace(/(h)0m0s$|(m)0s$/, "$1$2");
  }

  function thing(object) {
    const [name, kind, node] = objects[object], word = place => data.words[place];
    const [resource, namespace, owner, revision] = data.kinds[kind].map(word);
    return {resource, namespace, owner, revision, name: word(name), node: word(node),
            id: [resource, namespace, word(name)].join("/")};
  }

  function sums(changes) {
    const rows = [];
    for (const change of changes) {
      const before = rows[rows.length - 1];
      rows.push(change.map((value, column) => value + (before ? before[column] : 0)));
    }
    return rows;
  }

  const placeOf = number => number < 0 ? 0 : number < places.length ? places[number] : data.plot;

  function stepAt(place) {  // the last step at or before a place; -1 before the first
    let low = 0, high = places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (places[middle] <= place) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  const title = step => `${step.action} ${step.resource}/${step.name}` + (step.reason ? ` (${step.reason})` : "");

  // --- drawing

  function parse(path) {  // the pieces of a path's d: [first place, last place, commands]
    const pieces = path.getAttribute("d").split(/(?=M)/).map(text => {
      let x = 0, low = Infinity, high = -Infinity;
      const commands = [...text.matchAll(/([MLHhVvlz])(-?[\d.]+)?(?:[ ]?(-?[\d.]+))?/g)].map(([, name, a, b]) => {
        const command = [name, +a, +b];
        if (name === "h") x += command[1]; else if ("MLH".includes(name)) x = command[1];
        low = Math.min(low, x);
        high = Math.max(high, x);
        return command;
      });
      return [low, high, commands];
    });
    return {path, pieces};
  }

  function pathText([low, high, commands], from, to) {
    const out = [], clip = place => (Math.min(Math.max(place, from), to) - view[0]) * scale;
    let x = 0;
    for (const [name, a, b] of commands) {
      if (name === "h") {
        out.push("h", (clip(x + a) - clip(x)).toFixed(2));
        x += a;
      } else if (name === "M" || name === "L") {
        const level = commands[1] && commands[1][0] === "h";
        out.push(name, (level ? clip(a) : (a - view[0]) * scale).toFixed(2), " ", b);
        x = a;
      } else if (name === "H") out.push("H", clip(a).toFixed(2));
      else if (name === "l") out.push("l", a, " ", b);
      else out.push(name, name === "z" ? "" : a);
    }
    return out.join("");
  }

  function draw() {
    frame = 0;
    const width = $("picture").clientWidth, narrow = width < 640, drawing = $("drawing");
    left = narrow ? 96 : data.left;
    const plot = Math.max(width - left - 10, 80);
    scale = plot / (view[1] - view[0]);
    const from = view[0] - 20 / scale, to = view[1] + 20 / scale;
    document.documentElement.classList.toggle("narrow", narrow);
    drawing.setAttribute("viewBox", `0 0 ${width} ${data.height}`);
    drawing.setAttribute("width", width);
    drawing.setAttribute("height", data.height);
    const inner = drawing.querySelector(".plot");
    inner.setAttribute("x", left);
    inner.setAttribute("width", plot);
    for (const {path, pieces} of shapes)
      path.setAttribute("d", pieces.filter(([low, high]) => high >= from && low <= to)
        .map(piece => pathText(piece, from, to)).join("") || "M0 0");
    drawTexts(narrow, plot);
    drawTicks(plot);
    drawNames(plot);
    drawNotes(plot);
    drawCursor();
  }

  function drawTexts(narrow, plot) {
    for (const text of $("drawing").querySelectorAll(".texts text")) {
      const label = text.label ??= {x: +text.getAttribute("x"), text: (text.querySelector("title") || text).textContent};
      if (text.classList.contains("end")) text.setAttribute("x", left - 6);
      else if (label.x >= data.left) write(text, left, label.text, plot);
      else write(text, label.x, label.text, left - label.x - (narrow ? 4 : roomBehind(text)));
    }
  }

  function roomBehind(text) {  // what stands to the right of a text beside the plot takes so much
    const has = name => text.classList.contains(name);
    return has("row") ? 84 : has("node") && data.folds.length ? 98 : has("node") ? 8 : has("cut") ? 36 : 26;
  }

  function write(text, x, whole, room) {
    const small = text.classList.contains("small"), bold = text.classList.contains("name"), most = Math.max(Math.floor(room / (small ? 5.5 : bold ? 6.9 : 6.2)), 2), tail = Math.floor((most - 1) / 2);
    text.setAttribute("x", x);
    text.textContent = whole.length <= most ? whole
      : text.classList.contains("cut") ? whole.slice(0, most - 1) + "…"
      : whole.slice(0, most - 1 - tail) + "…" + (tail ? whole.slice(-tail) : "");
    if (whole.length > most) element("title", {}, text).textContent = whole;
  }

  function element(name, attributes, parent) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return parent.appendChild(made);
  }

  function layer(name) {
    let group = $("drawing").querySelector("." + name);
    if (!group) group = element("g", {class: name}, $("drawing"));
    group.replaceChildren();
    return group;
  }

  function drawTicks(plot) {
    const group = layer("ticks"), taken = [], offset = Math.max(0, -$("picture").getBoundingClientRect().top);
    group.setAttribute("transform", `translate(0 ${Math.min(offset, data.height - 20)})`);
    element("rect", {class: "ground", width: left + plot + 20, height: 19}, group);
    let before = "";
    const labels = [...data.gaps.map(([x, text]) => [x, x, `⋯${text}⋯`, "tick middle"]),
                    ...data.days.map(([x, text]) => [x, x, text, "tick date"]),
                    ...data.moments.filter(moment => moment[3]).map(moment => [moment[0], moment[0] + moment[1], moment.after, "tick"])];
    for (const [begin, end, text, classes] of labels) {
      if (end < view[0] || begin > view[1]) continue;
      const x = Math.max((begin - view[0]) * scale, 0), width = 6.5 * text.length + 14;
      const start = classes === "tick middle" ? x - width / 2 : x;
      if ((classes === "tick" && text === before) || start < -4 || start + width > plot + 10 || taken.some(([a, b]) => start < b && a < start + width)) continue;
      taken.push([start, start + width]);
      before = text;
      element("text", {class: classes, x: left + x, y: 14}, group).textContent = text;
    }
  }

  function drawNames(plot) {
    const group = layer("names");
    for (const [x, width, y, name, classes] of data.names) {
      const failed = classes.endsWith("failed"), width_ = text => 5.4 * text.length * (failed ? 1.15 : 1) + 8;
      const text = failed && width_(name) > plot / 2 ? name.split(" ")[0] : name, room = width_(text);
      let begin = Math.max((x - view[0]) * scale, 0), end = Math.min((x + width - view[0]) * scale, plot);
      if (failed) {
        if (end < 0 || begin > plot) continue;
        begin = Math.max(Math.min(begin, plot - room), 0);
      } else if (end - begin <= room) continue;
      element("text", {class: classes, x: left + begin + 5, y}, group).textContent = text;
    }
  }

  function drawNotes(plot) {  // each has the room up to the next one of its line
    const group = layer("notes"), lines = new Map();
    for (const note of data.notes) lines.set(note[1], [...(lines.get(note[1]) || []), note]);
    for (const notes of lines.values()) {
      notes.sort((a, b) => a[0] - b[0]);
      notes.forEach(([x, y, text, classes], place) => {
        const begin = (x - view[0]) * scale + 7 - 7 * scale, next = notes[place + 1];
        const end = next ? Math.min((next[0] - view[0]) * scale - 7 * scale - 3, plot) : plot;
        if (begin < 0 || end - begin < 24) return;
        write(element("text", {class: classes + " small cut", y}, group), left + begin, text, end - begin);
      });
    }
  }

  function drawCursor() {
    const inner = layer("overlay");
    if (selected < 0) return;
    const x = left + (places[selected] - view[0]) * scale, bar = barOf(selected);
    if (x < left || x > $("picture").clientWidth) return;
    element("path", {class: "cursor", d: `M${x} 20V${data.height - 8}`}, inner);
    if (bar) element("circle", {class: "mark", fill: "none", cx: x, cy: bar[1], r: data.thickness / 2 + 3}, inner);
  }

  function later() {
    if (data) frame ||= requestAnimationFrame(draw);
  }

  // --- view

  function setView(begin, end) {
    const size = Math.min(Math.max(end - begin, least), data.plot);
    begin = Math.min(Math.max((begin + end - size) / 2, 0), data.plot - size);
    view = [begin, begin + size];
    later();
  }

  function zoom(factor, place = selected < 0 ? (view[0] + view[1]) / 2 : places[selected]) {
    setView(place - (place - view[0]) / factor, place + (view[1] - place) / factor);
  }

  const move = part => setView(...view.map(place => place + part * (view[1] - view[0])));

  const barOf = number => data.bars.find(
    bar => bar[2] <= number && number <= bar[3] && thing(bar[0]).id === steps[number].id);

  function select(number) {
    if (!steps.length) return;
    selected = Math.min(Math.max(number, 0), steps.length - 1);
    const place = places[selected], step = steps[selected], size = view[1] - view[0];
    if (place < view[0] || place > view[1]) setView(place - size / 2, place + size / 2);
    $("announcement").textContent = `${step.when}: ${title(step)}` + (step.node ? ` on ${step.node}` : "") +
      `, step ${selected + 1} of ${steps.length}`;
    for (const row of $("steps").tBodies[0].rows) row.classList.toggle("selected", +row.dataset.step === selected);
    const bar = barOf(selected), box = $("picture").getBoundingClientRect();
    if (frame) draw(); else drawCursor();
    showTip(bar ? podTip(bar, selected) : stepTip([step]), box.left + left + (place - view[0]) * scale,
            box.top + (bar ? bar[1] : 40));
  }

  function selectPod(direction) {
    const pods = data.bars.filter(bar => byObject.has(thing(bar[0]).id)), step = steps[Math.max(selected, 0)];
    const current = step ? pods.indexOf(barOf(step.number)) : -1;
    const bar = pods[Math.min(Math.max(current + direction, 0), pods.length - 1)];
    if (bar) select(byObject.get(thing(bar[0]).id).find(own => own.number >= bar[2]).number);
  }

  // --- hover

  function lines(heading, rows) {
    const box = document.createElement("div");
    box.append(Object.assign(document.createElement("strong"), {textContent: heading}));
    for (const [text, now] of rows)
      box.append(Object.assign(document.createElement("div"), {textContent: text, className: now ? "now" : ""}));
    return box;
  }

  function podTip(bar, number) {
    const pod = thing(bar[0]), successor = data.bars[bar[4]];
    const own = (byObject.get(pod.id) || []).filter(step => bar[2] <= step.number && step.number <= bar[3]);
    const current = own.filter(step => step.number <= number).length - 1, first = Math.max(current - 6, 0);
    return lines(pod.name, [
      [[pod.namespace, pod.node, pod.revision && "revision " + pod.revision].filter(Boolean).join(", ")],
      ...(pod.owner ? [["of " + pod.owner]] : []),
      ...own.slice(first, first + 9).map((step, place) => [
        `${step.when} ${step.action}` + (step.reason ? ` (${step.reason})` : ""), place + first === current]),
      ...(own.length ? [] : [["stayed as it was"]]),
      ...(successor ? [["replaced by " + thing(successor[0]).name]] : [])]);
  }

  function foldTip([top, bottom, text, idle], number) {  // the pods of a row, by what they did last
    const counts = new Map(idle ? [["stayed as they were", idle]] : []);
    for (const [object, level, start, end] of data.bars) {
      if (level < top || level > bottom || start > number || end <= number) continue;
      const own = byObject.get(thing(object).id).filter(step => start <= step.number && step.number <= number).pop();
      const action = own ? own.action : "stayed as they were";
      counts.set(action, (counts.get(action) || 0) + 1);
    }
    const pods = [...counts.values()].reduce((a, b) => a + b, 0);
    return lines(text, [[number < 0 ? "at the beginning" : steps[number].when], [pods === 1 ? "1 pod" : `${pods} pods`],
                        ...[...counts].map(([action, count]) => [`${count} ${action}`])]);
  }

  const stepTip = near => lines(near[0].when, near.slice(0, 8).map(step => [title(step)]));

  function courseTip(course, number) {
    const row = course.numbers.filter(([after]) => after - 1 <= number).pop() || course.numbers[0];
    const [, desired, pods, ready, available, updated, terminating, required] = row;
    return lines(course[0], [[number < 0 ? "at the beginning" : steps[number].when],
                             [`${available} available of ${desired}` + (required < 0 ? "" : `, ${required} required`)],
                             [`${ready} ready, ${updated} updated, ${terminating} terminating, ${pods} pods`]]);
  }

  function pointed(event) {  // what is at the pointer
    const box = $("drawing").getBoundingClientRect(), x = event.clientX - box.left - left, y = event.clientY - box.top;
    if (x < 0) return null;
    const place = view[0] + x / scale, number = stepAt(place), slack = 3 / scale;
    const fold = data.folds.find(([top, bottom]) => top <= y && y < bottom);
    if (fold) return foldTip(fold, number);
    const half = Math.max(data.thickness / 2 + 2, 4);
    const bar = data.bars.filter(([, level, start, end]) => Math.abs(level - y) <= half
      && placeOf(start) - slack <= place && place <= placeOf(end) + slack)
      .sort((a, b) => Math.abs(a[1] - y) - Math.abs(b[1] - y))[0];
    if (bar) return podTip(bar, number);
    const near = steps.filter(step => step.resource !== "pods" && Math.abs(places[step.number] - place) * scale < NEAR);
    if (near.length) return stepTip(near);
    const course = data.courses.find(([, , top, bottom]) => top <= y && y <= bottom);
    return course ? courseTip(course, number) : null;
  }

  function showTip(content, x, y) {
    const tip = $("tip");
    tip.hidden = !content;
    if (!content) return;
    tip.replaceChildren(content);
    const room = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(Math.min(x + 14, room - tip.offsetWidth - 8), 8) + scrollX}px`;
    tip.style.top = `${y + 16 + scrollY}px`;
  }

  // --- the table of steps

  function listSteps() {
    const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = step => [step.after, step.at, step.action, step.resource + "/" + step.name, step.namespace, step.node,
                          step.revision, step.reason];
    const fitting = steps.filter(step => {
      const all = text(step).join(" ").toLowerCase();
      return words.every(word => all.includes(word));
    });
    $("steps").tBodies[0].replaceChildren(...fitting.slice(0, shown).map(step => {
      const row = document.createElement("tr");
      row.dataset.step = step.number;
      row.classList.toggle("selected", step.number === selected);
      for (const [column, value] of text(step).entries()) {
        const cell = row.insertCell();
        if (column) cell.textContent = value;
        else cell.append(Object.assign(document.createElement("button"), {type: "button", textContent: value,
          title: "Show this step in the picture"}));
      }
      return row;
    }));
    $("count").textContent = `${fitting.length} of ${steps.length}`;
    $("more").hidden = fitting.length <= shown;
    $("more").textContent = `Show ${Math.min(fitting.length - shown, 5 * ROWS)} more`;
  }

  // --- input

  const KEYS = {
    ArrowRight: () => select(selected + 1), ArrowLeft: () => select(selected - 1),
    ArrowDown: () => selectPod(1), ArrowUp: () => selectPod(-1),
    Home: () => select(0), End: () => select(steps.length - 1),
    "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: () => setView(0, data.plot),
    Escape: () => { selected = -1; showTip(null); later(); }};
  const SHIFTED = {ArrowRight: () => move(0.2), ArrowLeft: () => move(-0.2)};
  const SCROLLS = ["ArrowUp", "ArrowDown", "Home", "End"];  // the page, where the picture has not the focus

  function press(event) {
    const act = !event.ctrlKey && !event.metaKey && !event.altKey && ((event.shiftKey && SHIFTED[event.key]) || KEYS[event.key]);
    if (!act || !data) return;
    event.preventDefault();
    act();
  }

  function connectPicture() {
    const picture = $("picture"), pointers = new Map();
    let drag = null;
    const at = x => view[0] + (x - picture.getBoundingClientRect().left - left) / scale;
    const down = event => {
      pointers.set(event.pointerId, event.clientX);
      drag = {x: event.clientX, view, spread: spread()};
    };
    const spread = () => pointers.size < 2 ? 0 : Math.max(...pointers.values()) - Math.min(...pointers.values());
    const pan = event => {
      if (!pointers.has(event.pointerId)) return showTip(pointed(event), event.clientX, event.clientY);
      pointers.set(event.pointerId, event.clientX);
      if (drag.spread) {
        const middle = at([...pointers.values()].reduce((a, b) => a + b) / pointers.size);
        zoom((spread() || 1) / drag.spread, middle);
        drag.spread = spread() || 1;
      } else if (Math.abs(event.clientX - drag.x) > 3 || drag.moved) {
        drag.moved = true;
        const by = (drag.x - event.clientX) / scale;
        showTip(null);
        setView(drag.view[0] + by, drag.view[1] + by);
      }
      return undefined;
    };
    const up = event => pointers.delete(event.pointerId);
    const wheel = event => {
      if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY / 300), at(event.clientX));
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey)
        move((event.deltaX || event.deltaY) / 1000);
      else return;
      event.preventDefault();
    };
    Object.assign(picture, {tabIndex: 0, onkeydown: press, onpointerdown: down, onpointermove: pan, onpointerleave: () => {
      pointers.clear();
      showTip(null);
    }, onpointerup: up, onpointercancel: up, onclick: event => {
      if (!drag || !drag.moved) showTip(pointed(event), event.clientX, event.clientY);
    }, ondblclick: event => zoom(2, at(event.clientX)), onblur: () => showTip(null)});
    picture.addEventListener("wheel", wheel, {passive: false});
    picture.setAttribute("role", "application");
    picture.setAttribute("aria-label", "Timeline");
    picture.setAttribute("aria-describedby", "help");
    new ResizeObserver(later).observe(picture);
  }

  function stored(name, value) {  // a browser may forbid storage
    try {
      if (value !== undefined) localStorage.setItem(name, value);
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  }

  function setTheme(theme) {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    $("theme").textContent = `Theme: ${theme}`;
  }

  function connect() {
    const themes = ["system", "light", "dark"], current = () => document.documentElement.dataset.theme || "system";
    document.documentElement.classList.add("js");
    setTheme(themes.includes(stored("theme")) ? stored("theme") : "system");
    $("theme").onclick = () => {
      setTheme(themes[(themes.indexOf(current()) + 1) % 3]);
      stored("theme", current());
    };
    $("zoom-in").onclick = () => zoom(1.5);
    $("zoom-out").onclick = () => zoom(1 / 1.5);
    $("fit").onclick = () => setView(0, data.plot);
    $("filter").oninput = () => { shown = ROWS; listSteps(); };
    $("more").onclick = () => { shown += 5 * ROWS; listSteps(); };
    $("steps").onclick = event => {
      const row = event.target.closest("tbody tr");
      if (!row) return;
      $("picture").focus();
      $("picture").scrollIntoView({block: "nearest"});
      select(+row.dataset.step);
    };
    addEventListener("scroll", later, {passive: true});
    addEventListener("keydown", event => {
      if (event.target === document.body && !SCROLLS.includes(event.key)) press(event);
    });
  }

  /* Shows a timeline whose drawing is in the page; one that goes on keeps its view. */
  function show(document_) {
    const whole = !view || (view[0] <= 0 && view[1] >= data.plot);
    const edges = whole ? null : view.map(stepAt);
    read(document_);
    document.documentElement.style.setProperty("--thickness", data.thickness);
    shapes = [...document.querySelectorAll("#drawing .plot path")].map(parse);
    view = [0, data.plot];
    if (selected >= steps.length) selected = -1;
    for (const id of ["tools", "help", "listing"]) $(id).hidden = false;
    connectPicture();
    if (edges) setView(...edges.map(placeOf));
    draw();
    listSteps();
  }

  connect();
  if ($("data").textContent) show(JSON.parse($("data").textContent));
  return {show, $};
})();
