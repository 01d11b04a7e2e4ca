/* SPDX-License-Identifier: MIT */
/* The page: its state, the mouse, the keys, and the part of its address behind "#". */
"use strict";

const $ = (id) => document.getElementById(id);
const ROW_ZOOM = 1.25;
const DRAG_LEAST = 4; /* pixels; less is a click */

class Page {
  constructor(data) {
    this.data = data;
    this.choice = new Choice(data);
    this.search = new Search(data);
    this.top = 0; /* the place of the first visible row, with a fraction */
    this.left = 0;
    this.rowHeight = ROW_USUAL;
    this.selected = -1; /* a row */
    this.hovered = -1; /* a place */
    this.works = new Set(); /* of the selected row */
    this.drawing = new Drawing($("ladder"), data, this);
    this.timeStrip = new TimeStrip($("timeline"), data, this);
    this.rowStrip = new RowStrip($("strip"), data, this);
    this.detail = new Detail($("detail"), data, {
      select: (row) => this.select(row),
      followQp: (node, number) => this.followQp(node, number),
      followWork: (work) => this.followWork(work),
      copyLink: () => this.copyLink(),
    });
    this.frame = 0;
  }

  /* --- places --- */

  visibleRows() {
    return this.drawing.rowsHeight() / this.rowHeight;
  }

  visibleTimes() {
    const { shown } = this.choice;
    if (!shown.length) {
      return [this.timeStrip.first, this.timeStrip.first];
    }
    const first = Math.min(Math.max(Math.floor(this.top), 0), shown.length - 1);
    const last = Math.min(Math.floor(this.top + this.visibleRows()), shown.length - 1);
    return [this.data.time[shown[first]], this.data.time[shown[last]]];
  }

  scrollTo(top) {
    this.top = Math.max(0, Math.min(top, this.choice.shown.length - this.visibleRows() + 1));
    this.redraw();
  }

  /* Shows the place, in the middle if it is out of sight. */
  reveal(place) {
    const rows = this.visibleRows();
    if (place < this.top + 1 || place > this.top + rows - 2) {
      this.scrollTo(place - rows / 2);
    }
    this.redraw();
  }

  redraw() {
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => this.draw());
    }
  }

  draw() {
    const began = performance.now();
    this.frame = 0;
    this.drawing.draw();
    this.timeStrip.draw(this.drawing.colours);
    this.rowStrip.draw(this.drawing.colours);
    this.drawMs = performance.now() - began;
  }

  recount() {
    this.timeStrip.bins = null;
    this.rowStrip.worst = null;
    this.redraw();
  }

  /* --- zoom --- */

  zoom(factor, y = this.drawing.rowsHeight() / 2 + HEAD_HEIGHT) {
    const place = this.top + (y - HEAD_HEIGHT) / this.rowHeight;
    const least = Math.min(ROW_USUAL, (this.drawing.rowsHeight() - 4) / Math.max(this.choice.shown.length, 1));
    this.rowHeight = Math.min(ROW_LARGEST, Math.max(least, this.rowHeight * factor));
    this.showZoom();
    this.scrollTo(place - (y - HEAD_HEIGHT) / this.rowHeight);
  }

  showZoom() {
    const percent = (this.rowHeight / ROW_USUAL) * 100;
    $("zoom-reset").textContent = `${percent < 1 ? percent.toPrecision(1) : Math.round(percent)}%`;
  }

  /* --- selection --- */

  select(row) {
    this.selected = row;
    this.works = new Set(row < 0 ? [] : this.data.worksOf(row));
    if (row >= 0) {
      const place = this.choice.placeOf(row);
      if (this.choice.shown[place] !== row) {
        this.clearFilters();
      }
      this.reveal(this.choice.placeOf(row));
      this.shift(this.drawing.outside(row));
      $("live").textContent = this.data.text(row);
    }
    this.shownDetail = this.detail.show(row);
    this.writeHash();
    this.redraw();
  }

  selectPlace(place) {
    const { shown } = this.choice;
    if (shown.length) {
      this.select(shown[Math.max(0, Math.min(place, shown.length - 1))]);
    }
  }

  place() {
    return this.selected < 0 ? Math.ceil(this.top) - 1 : this.choice.placeOf(this.selected);
  }

  move(rows) {
    const place = this.place();
    const behind = this.choice.shown[place] === this.selected || rows < 0;
    this.selectPlace(behind || this.selected < 0 ? place + rows : place + rows - 1);
  }

  /* Selects the next shown row for which wanted(row) is true, or one before with a step of -1. */
  seek(step, wanted) {
    const { shown } = this.choice;
    for (let i = 1; i <= shown.length; i++) {
      const place = (((this.place() + i * step) % shown.length) + shown.length) % shown.length;
      if (wanted(shown[place])) {
        this.select(shown[place]);
        return;
      }
    }
  }

  seekMatch(step) {
    this.seek(step, (row) => this.search.matches[row]);
  }

  seekTrouble(step) {
    this.seek(step, (row) => this.data.trouble[row] > FINE);
  }

  /* --- filters --- */

  applyFilters() {
    const { choice } = this;
    const anchor = this.selected >= 0 ? this.selected : choice.shown[Math.floor(this.top)] || 0;
    choice.update();
    this.top = 0;
    this.scrollTo(choice.placeOf(anchor) - this.visibleRows() / 3);
    this.recount();
    this.showFilters();
    this.showHits();
    this.writeHash();
  }

  clearFilters() {
    this.choice.clear();
    this.applyFilters();
  }

  followQp(node, number) {
    const { qp } = this.choice;
    const same = qp && qp.node === node && qp.number === number;
    this.choice.qp = same ? null : { node, number };
    this.applyFilters();
  }

  followWork(work) {
    this.choice.work = this.choice.work === work ? 0 : work;
    this.applyFilters();
  }

  showFilters() {
    const { choice, data } = this;
    const shown = choice.shown.length;
    $("count").textContent = shown === data.count ? `${data.count.toLocaleString("en")} rows`
      : `${shown.toLocaleString("en")} of ${data.count.toLocaleString("en")} rows`;
    for (const chip of $("kinds").children) {
      chip.setAttribute("aria-pressed", String(!choice.kinds.has(Number(chip.dataset.kind))));
    }
    $("qp").value = choice.qp ? `${choice.qp.node}:${choice.qp.number}` : "";
    $("from").value = choice.from ? writeTime(choice.from) : "";
    $("to").value = choice.to === Infinity ? "" : writeTime(choice.to);
    $("only-trouble").setAttribute("aria-pressed", String(choice.onlyTrouble));
    $("work").hidden = !choice.work;
    $("work").textContent = `work request ${choice.work} ✕`;
    $("clear").hidden = choice.isEmpty();
    $("empty").hidden = shown > 0;
    this.showTroubles();
  }

  showTroubles() {
    const { shown } = this.choice;
    let count = 0;
    for (let i = 0; i < shown.length; i++) {
      count += this.data.trouble[shown[i]] > FINE ? 1 : 0;
    }
    $("troubles").textContent = count ? `${count.toLocaleString("en")} troubles` : "no trouble";
    $("trouble-before").disabled = $("trouble-after").disabled = !count;
  }

  readTimes() {
    for (const [id, key, none] of [["from", "from", 0], ["to", "to", Infinity]]) {
      const text = $(id).value.trim();
      const time = text ? readTime(text) : none;
      $(id).classList.toggle("wrong", Number.isNaN(time));
      if (!Number.isNaN(time)) {
        this.choice[key] = time;
      }
    }
    this.applyFilters();
  }

  /* --- search --- */

  async find(query) {
    let went = false;
    await this.search.start(query, () => {
      this.showHits();
      if (!went && this.search.found && this.search.countIn(this.choice.shown)) {
        went = true;
        const at = this.selected >= 0 && this.search.matches[this.selected];
        if (!at) {
          this.seekMatch(1);
        }
      }
      this.recount();
    });
    this.writeHash();
  }

  showHits() {
    const { search, choice } = this;
    const done = search.done >= this.data.count;
    const count = search.query ? search.countIn(choice.shown) : 0;
    const of = done ? "" : ` (${Math.floor((search.done / this.data.count) * 100)} %)`;
    $("hits").textContent = search.query ? `${count.toLocaleString("en")} match${count === 1 ? "" : "es"}${of}` : "";
    $("hit-before").disabled = $("hit-after").disabled = !count;
  }

  /* --- the address --- */

  writeHash() {
    const { choice } = this;
    const words = new URLSearchParams();
    const set = (key, value) => value && words.set(key, value);
    set("row", this.selected >= 0 && String(this.selected + 1));
    set("hide", [...choice.kinds].map((kind) => this.data.rowKinds[kind]).join(","));
    set("qp", choice.qp && `${choice.qp.node}:0x${choice.qp.number.toString(16)}`);
    set("from", choice.from && writeTime(choice.from));
    set("to", choice.to !== Infinity && writeTime(choice.to));
    set("trouble", choice.onlyTrouble && "1");
    set("work", choice.work && String(choice.work));
    set("search", this.search.query);
    const hash = "#" + words.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
    if (hash !== location.hash && !this.reading) {
      this.hash = hash;
      history.replaceState(null, "", hash === "#" ? location.pathname + location.search : hash);
    }
  }

  readHash() {
    const words = new URLSearchParams(location.hash.slice(1));
    const { choice, data } = this;
    const [node, number] = (words.get("qp") || "").split(":").map(Number);
    this.reading = true;
    choice.clear();
    (words.get("hide") || "").split(",").filter((name) => name in data.rowKind)
      .forEach((name) => choice.kinds.add(data.rowKind[name]));
    choice.qp = number ? { node, number } : null;
    choice.from = readTime(words.get("from") || "0") || 0;
    choice.to = readTime(words.get("to") || "") || Infinity;
    choice.onlyTrouble = words.has("trouble");
    choice.work = Number(words.get("work")) || 0;
    $("search").value = words.get("search") || "";
    this.applyFilters();
    const row = Number(words.get("row")) - 1;
    this.select(row >= 0 && row < data.count ? row : -1);
    this.reading = false;
    if ($("search").value !== this.search.query) {
      this.find($("search").value);
    }
  }

  copyLink() {
    this.writeHash();
    const copied = navigator.clipboard ? navigator.clipboard.writeText(location.href) : Promise.reject();
    copied.catch(() => window.prompt("The link to this event:", location.href));
  }

  /* --- light and dark --- */

  setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    $("theme").textContent = theme === "dark" ? "Light" : "Dark";
    this.drawing.colours = readColours();
    this.redraw();
  }

  switchTheme() {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("verbena-theme", theme);
    } catch {
      /* A page from a file may have no storage: then the choice lasts until the page is closed. */
    }
    this.setTheme(theme);
  }

  startTheme() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    let stored = null;
    try {
      stored = localStorage.getItem("verbena-theme");
    } catch {
      stored = null;
    }
    this.setTheme(stored || (dark.matches ? "dark" : "light"));
    dark.addEventListener("change", () => this.setTheme(dark.matches ? "dark" : "light"));
  }
}

/* --- keys --- */

/* Each row: the keys, what they do, and how. */
const KEYS = [
  [["ArrowDown", "j"], "next row", (page) => page.move(1)],
  [["ArrowUp", "k"], "row before", (page) => page.move(-1)],
  [["PageDown", " "], "a screen down", (page) => page.scrollTo(page.top + page.visibleRows() - 2)],
  [["PageUp"], "a screen up", (page) => page.scrollTo(page.top - page.visibleRows() + 2)],
  [["Home"], "first row", (page) => page.selectPlace(0)],
  [["End"], "last row", (page) => page.selectPlace(Infinity)],
  [["ArrowRight"], "nodes to the right", (page) => page.shift(80)],
  [["ArrowLeft"], "nodes to the left", (page) => page.shift(-80)],
  [["e"], "next trouble: a failure, loss, retransmission or expired timer", (page) => page.seekTrouble(1)],
  [["E"], "trouble before", (page) => page.seekTrouble(-1)],
  [["/"], "search", () => $("search").focus()],
  [["n"], "next match", (page) => page.seekMatch(1)],
  [["N"], "match before", (page) => page.seekMatch(-1)],
  [["f"], "follow the QP of the selected row, or show all", (page) => page.followSelectedQp()],
  [["w"], "follow the work request of the selected row, or show all", (page) => page.followSelectedWork()],
  [["t"], "only trouble, or all", (page) => page.toggleTrouble()],
  [["c"], "clear the filters", (page) => page.clearFilters()],
  [["+", "="], "larger rows", (page) => page.zoom(ROW_ZOOM)],
  [["-"], "smaller rows, down to all in one screen", (page) => page.zoom(1 / ROW_ZOOM)],
  [["0"], "rows of the usual size", (page) => page.zoom(ROW_USUAL / page.rowHeight)],
  [["d"], "light or dark", (page) => page.switchTheme()],
  [["Escape"], "select nothing", (page) => page.select(-1)],
  [["?"], "these keys", () => $("help").showModal()],
];

const KEY_NAMES = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", " ": "Space", Escape: "Esc" };

Page.prototype.shift = function (pixels) {
  this.left = Math.max(0, Math.min(this.left + pixels, this.drawing.leftMost()));
  this.redraw();
};

Page.prototype.followSelectedQp = function () {
  const { data, choice, selected } = this;
  if (choice.qp) {
    this.followQp(choice.qp.node, choice.qp.number);
  } else if (selected >= 0 && data.qp[selected]) {
    this.followQp(data.node[selected], data.qp[selected]);
  } else if (selected >= 0 && data.destQp[selected] && data.peer[selected] !== NO_NODE) {
    this.followQp(data.peer[selected], data.destQp[selected]);
  }
};

Page.prototype.followSelectedWork = function () {
  const work = this.choice.work || (this.selected >= 0 && this.data.worksOf(this.selected)[0]);
  if (work) {
    this.followWork(work);
  }
};

Page.prototype.toggleTrouble = function () {
  this.choice.onlyTrouble = !this.choice.onlyTrouble;
  this.applyFilters();
};

function onKey(page, event) {
  const writing = event.target.matches("input, select");
  if (writing && (event.key === "Escape" || event.key === "Enter")) {
    if (event.target.id === "search" && event.key === "Enter") {
      page.seekMatch(event.shiftKey ? -1 : 1);
    } else {
      $("ladder").focus();
    }
    event.preventDefault();
    return;
  }
  if (writing || event.ctrlKey || event.metaKey || event.altKey || $("help").open) {
    return;
  }
  if (event.target.matches("button") && (event.key === " " || event.key === "Enter")) {
    return;
  }
  const found = KEYS.find(([keys]) => keys.includes(event.key));
  if (found) {
    event.preventDefault();
    found[2](page);
  }
}

/* --- what the page is made of --- */

function fillKinds(page) {
  const { data } = page;
  const counts = new Uint32Array(data.rowKinds.length);
  for (let row = 0; row < data.count; row++) {
    counts[data.kind[row]]++;
  }
  data.rowKinds.forEach((name, kind) => {
    if (!counts[kind]) {
      return;
    }
    const chip = element("button", { className: "chip", title: `Show or hide ${name}; with Shift, only ${name}` },
      element("i"), name, element("small", {}, counts[kind].toLocaleString("en")));
    chip.dataset.kind = kind;
    chip.style.setProperty("--colour", `var(--${name === "drop" || name === "failure" ? "bad" : name})`);
    chip.onclick = (event) => toggleKind(page, kind, event.shiftKey);
    $("kinds").append(chip);
  });
}

function toggleKind(page, kind, only) {
  const { kinds } = page.choice;
  if (only) {
    page.data.rowKinds.forEach((name, other) => (other === kind ? kinds.delete(other) : kinds.add(other)));
  } else if (!kinds.delete(kind)) {
    kinds.add(kind);
  }
  page.applyFilters();
}

function fillQps(page) {
  const { data } = page;
  const qps = listQps(data);
  $("qp").append(element("option", { value: "" }, `all ${qps.length}`));
  for (const { node, number } of qps) {
    $("qp").append(element("option", { value: `${node}:${number}` }, `0x${number.toString(16)} of ${data.nodes[node]}`));
  }
  $("qp").onchange = () => {
    const [node, number] = $("qp").value.split(":").map(Number);
    page.choice.qp = $("qp").value ? { node, number } : null;
    page.applyFilters();
  };
}

const MARKS = [
  ["packet", "a request"], ["response", "a response"], ["repeated", "a request that is sent again (dashed)"],
  ["lost", "a packet that is lost (a cross before the node)"], ["bad", "a NAK, a drop, a failure"],
  ["completion", "a completion"], ["state", "a state"], ["timer", "a timer"],
];

function fillHelp() {
  for (const [keys, what] of KEYS) {
    const names = keys.map((key) => element("kbd", {}, KEY_NAMES[key] || key));
    const cell = element("td");
    names.forEach((name, i) => cell.append(i ? " " : "", name));
    $("keys").append(element("tr", {}, cell, element("td", {}, what)));
  }
  for (const [colour, what] of MARKS) {
    const mark = element("i");
    mark.style.setProperty("--colour", `var(--${colour})`);
    $("marks").append(element("li", {}, mark, what));
  }
}

/* --- the mouse --- */

function listenToLadder(page) {
  const canvas = $("ladder");
  const tip = $("tip");
  canvas.onwheel = (event) => {
    event.preventDefault();
    const pixels = event.deltaMode ? event.deltaY * ROW_USUAL : event.deltaY;
    if (event.ctrlKey) {
      page.zoom(pixels < 0 ? ROW_ZOOM : 1 / ROW_ZOOM, event.offsetY);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      page.shift(event.deltaX || pixels);
    } else {
      page.scrollTo(page.top + pixels / page.rowHeight);
    }
    tip.hidden = true;
  };
  canvas.onmousemove = (event) => {
    const place = event.offsetY < HEAD_HEIGHT ? -1 : page.drawing.placeAt(event.offsetY);
    if (place !== page.hovered) {
      page.hovered = place;
      page.redraw();
    }
    showTip(page, tip, page.choice.shown[place], event);
  };
  canvas.onmouseleave = () => {
    page.hovered = -1;
    tip.hidden = true;
    page.redraw();
  };
  canvas.onclick = (event) => {
    const row = page.choice.shown[page.drawing.placeAt(event.offsetY)];
    if (row !== undefined && event.offsetY >= HEAD_HEIGHT) {
      page.select(row);
    }
  };
}

function showTip(page, tip, row, event) {
  tip.hidden = row === undefined;
  if (tip.hidden) {
    return;
  }
  const { data } = page;
  const from = data.nodeName(data.node[row]);
  const to = data.nodeName(data.peer[row]);
  const where = from && to ? `${from} → ${to}` : from;
  const marks = [data.flags[row] & REPEATED ? "sent again" : "", data.flags[row] & LOST ? "lost" : ""];
  const words = [`${timeText(data.time[row])} µs`, where, data.rowKinds[data.kind[row]], ...marks];
  tip.replaceChildren(element("small", {}, words.filter(Boolean).join(" · ")), element("div", {}, data.text(row)));
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.min(event.clientX + 16, innerWidth - box.width - 8) + "px";
  tip.style.top = (event.clientY + box.height + 26 > innerHeight ? event.clientY - box.height - 10
    : event.clientY + 18) + "px";
}

/* Calls move(event) while the button is pressed, and end(event) behind it. */
function onDrag(target, press, move, end = () => {}) {
  target.onpointerdown = (event) => {
    if (event.button) {
      return;
    }
    target.setPointerCapture(event.pointerId);
    press(event);
    target.onpointermove = move;
    target.onpointerup = (last) => {
      target.onpointermove = target.onpointerup = null;
      end(last);
    };
  };
}

function listenToStrips(page) {
  const { timeStrip, rowStrip } = page;
  const scroll = (event) => page.scrollTo(rowStrip.topAt(event.offsetY));
  onDrag($("strip"), scroll, scroll);
  $("strip").onwheel = $("ladder").onwheel;
  onDrag($("timeline"),
    (event) => (timeStrip.drag = { from: event.offsetX, to: event.offsetX }),
    (event) => {
      timeStrip.drag.to = event.offsetX;
      page.redraw();
    },
    () => endTimeDrag(page));
  $("timeline").ondblclick = () => {
    page.choice.from = 0;
    page.choice.to = Infinity;
    page.applyFilters();
  };
}

/* A short drag is a click: it goes to the time. A long one chooses the times between. */
function endTimeDrag(page) {
  const { timeStrip, choice } = page;
  const { from, to } = timeStrip.drag;
  timeStrip.drag = null;
  if (Math.abs(to - from) < DRAG_LEAST) {
    page.scrollTo(choice.placeAtTime(timeStrip.timeAt(to)) - page.visibleRows() / 2);
    return;
  }
  choice.from = Math.floor(timeStrip.timeAt(Math.min(from, to)));
  choice.to = Math.ceil(timeStrip.timeAt(Math.max(from, to)));
  page.applyFilters();
}

function listenToBars(page) {
  let typing = 0;
  $("search").oninput = () => {
    clearTimeout(typing);
    typing = setTimeout(() => page.find($("search").value), 120);
  };
  $("hit-after").onclick = () => page.seekMatch(1);
  $("hit-before").onclick = () => page.seekMatch(-1);
  $("trouble-after").onclick = () => page.seekTrouble(1);
  $("trouble-before").onclick = () => page.seekTrouble(-1);
  $("zoom-in").onclick = () => page.zoom(ROW_ZOOM);
  $("zoom-out").onclick = () => page.zoom(1 / ROW_ZOOM);
  $("zoom-reset").onclick = () => page.zoom(ROW_USUAL / page.rowHeight);
  $("theme").onclick = () => page.switchTheme();
  $("help-button").onclick = () => $("help").showModal();
  $("only-trouble").onclick = () => page.toggleTrouble();
  $("work").onclick = () => page.followWork(page.choice.work);
  $("clear").onclick = $("empty-clear").onclick = () => page.clearFilters();
  $("from").onchange = $("to").onchange = () => page.readTimes();
  onDrag($("divider"), () => {}, (event) => {
    $("detail").style.width = `${Math.max(220, Math.min(innerWidth - event.clientX, innerWidth - 300))}px`;
    page.recount();
  });
}

async function start() {
  const data = new Data();
  await data.load();
  const page = new Page(data);
  window.page = page; /* for tests, and for the console of a browser */
  document.title = `${data.files.map((file) => file.split("/").pop()).join(", ") || "ladder"} – Verbena`;
  $("files").textContent = data.files.map((file) => file.split("/").pop()).join(", ");
  $("loading").remove();
  fillKinds(page);
  fillQps(page);
  fillHelp();
  page.startTheme();
  listenToLadder(page);
  listenToStrips(page);
  listenToBars(page);
  addEventListener("keydown", (event) => onKey(page, event));
  addEventListener("resize", () => page.recount());
  addEventListener("hashchange", () => location.hash !== page.hash && page.readHash());
  page.readHash();
  page.showHits();
  page.draw();
  $("ladder").focus();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start().catch((error) => {
  const loading = $("loading");
  if (loading) {
    loading.textContent = `The page cannot show its data: ${error.message}. A browser of 2023 or later is needed.`;
  }
  throw error;
});
