/* SPDX-License-Identifier: MIT */
/* Draws the rows that are visible on a canvas: time, rails of the nodes, arrows and notes. */
"use strict";

const ROW_USUAL = 22; /* pixels */
const ROW_LARGEST = 44;
const ROW_WITH_TEXT = 12; /* lower rows have no text */
const TIME_WIDTH = 196;
const GAP_LEAST = 220; /* between two nodes */
const HEAD_HEIGHT = 30;
const FONT = 'ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace';

const COLOURS = [
  "ground", "raised", "edge", "text", "quiet", "faint", "accent", "chosen", "hover", "match", "rail", "packet",
  "response", "post", "completion", "state", "event", "timer", "fault", "repeated", "lost", "bad", "verb", "other",
];

/* Returns the colours of the theme, from the style sheet. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
}

/* Sizes a canvas for the screen's pixels, and returns its context in CSS pixels. */
function prepareCanvas(canvas) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/* Writes "1 234.567": microseconds, as `verbena trace show` does, with spaces between thousands. */
function timeText(ns) {
  const whole = Math.floor(ns / 1000).toString();
  const part = String(Math.round(ns % 1000)).padStart(3, "0");
  return whole.replace(/\B(?=(\d{3})+$)/g, "\u2009") + "." + part;
}

function durationText(ns) {
  const unit = [["s", 1e9], ["ms", 1e6], ["µs", 1e3]].find(([, size]) => Math.abs(ns) >= size);
  if (!unit) {
    return `${Math.round(ns)} ns`;
  }
  return `${Number((ns / unit[1]).toPrecision(4))} ${unit[0]}`;
}

/* Returns the name of the row's colour. */
function colourName(data, row) {
  const flags = data.flags[row];
  const kind = data.rowKinds[data.kind[row]];
  if (flags & LOST) {
    return "lost";
  }
  if (data.trouble[row] === BROKEN) {
    return "bad";
  }
  if (kind === "packet") {
    return flags & REPEATED ? "repeated" : flags & RESPONSE ? "response" : "packet";
  }
  return COLOURS.includes(kind) ? kind : "other";
}

class Drawing {
  constructor(canvas, data, view) {
    this.canvas = canvas;
    this.data = data;
    this.view = view; /* {choice, search, top, rowHeight, left, selected, hovered, works} */
    this.colours = readColours();
    this.widths = new Map(); /* of a character, by font */
  }

  /* --- places --- */

  gap(width) {
    const gaps = this.data.nodes.length - 1;
    return gaps > 0 ? Math.max(GAP_LEAST, (width - TIME_WIDTH - 90) / gaps) : 0;
  }

  /* The x of a node's rail. */
  rail(node) {
    return TIME_WIDTH + 45 + node * this.gap(this.canvas.clientWidth) - this.view.left;
  }

  leftMost() {
    const nodes = this.data.nodes.length;
    return Math.max(0, TIME_WIDTH + 90 + (nodes - 1) * this.gap(this.canvas.clientWidth) - this.canvas.clientWidth);
  }

  /* How far to move so that the nodes of the row are visible. */
  outside(row) {
    const xs = [this.data.node[row], this.data.peer[row]].filter((node) => node !== NO_NODE).map((node) => this.rail(node));
    const right = this.canvas.clientWidth - 40;
    if (!xs.length || Math.min(...xs) < TIME_WIDTH) {
      return xs.length ? Math.min(...xs) - TIME_WIDTH - 45 : 0;
    }
    return Math.max(0, Math.min(Math.max(...xs) - right, Math.min(...xs) - TIME_WIDTH - 45));
  }

  rowsHeight() {
    return this.canvas.clientHeight - HEAD_HEIGHT;
  }

  yOf(place) {
    return HEAD_HEIGHT + (place - this.view.top) * this.view.rowHeight;
  }

  placeAt(y) {
    return Math.floor(this.view.top + (y - HEAD_HEIGHT) / this.view.rowHeight);
  }

  /* --- parts of rows --- */

  characterWidth(font) {
    if (!this.widths.has(font)) {
      this.context.font = font;
      this.widths.set(font, this.context.measureText("0".repeat(50)).width / 50);
    }
    return this.widths.get(font);
  }

  /* Writes a text of at most the width, and returns the width that it has. */
  write(text, x, y, width, { bold = false, align = "left", colour, size = 12, behind } = {}) {
    const context = this.context;
    const font = `${bold ? "600 " : ""}${size}px ${FONT}`;
    const advance = this.characterWidth(font);
    const room = Math.floor(width / advance);
    if (room < 2) {
      return 0;
    }
    const shown = text.length > room ? text.slice(0, room - 1) + "…" : text;
    const used = shown.length * advance;
    const left = align === "right" ? x - used : align === "center" ? x - used / 2 : x;
    if (behind) {
      context.fillStyle = behind;
      context.fillRect(left - 5, y - 8, used + 10, 16);
    }
    context.font = font;
    context.fillStyle = colour || this.colours.text;
    context.textAlign = "left";
    context.fillText(shown, left, y);
    return used;
  }

  line(x1, x2, y, width, dash = []) {
    const context = this.context;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x1, y);
    context.lineTo(x2, y);
    context.stroke();
    context.setLineDash([]);
  }

  head(x, y, ahead, size) {
    const context = this.context;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - ahead * size * 1.7, y - size);
    context.lineTo(x - ahead * size * 1.7, y + size);
    context.fill();
  }

  cross(x, y, size) {
    const context = this.context;
    context.lineWidth = 2.2;
    context.beginPath();
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y + size);
    context.moveTo(x - size, y + size);
    context.lineTo(x + size, y - size);
    context.stroke();
  }

  /* The mark of a note on its rail. */
  mark(kind, x, y, size) {
    const context = this.context;
    context.beginPath();
    if (kind === "drop" || kind === "failure") {
      this.cross(x, y, size);
      return;
    }
    if (kind === "state") {
      context.moveTo(x, y - size - 1);
      context.lineTo(x + size + 1, y);
      context.lineTo(x, y + size + 1);
      context.lineTo(x - size - 1, y);
    } else if (kind === "post") {
      context.moveTo(x - size, y - size);
      context.lineTo(x + size, y);
      context.lineTo(x - size, y + size);
    } else if (kind === "fault") {
      context.moveTo(x, y - size - 1);
      context.lineTo(x + size + 1, y + size);
      context.lineTo(x - size - 1, y + size);
    } else if (kind === "event" || kind === "verb" || kind === "other") {
      context.rect(x - size, y - size, 2 * size, 2 * size);
    } else {
      context.arc(x, y, size, 0, 2 * Math.PI);
    }
    context.closePath();
    if (kind === "timer" || kind === "verb") {
      context.fillStyle = this.colours.ground;
      context.fill();
      context.lineWidth = 1.8;
      context.stroke();
    } else {
      context.fill();
    }
  }

  /* --- rows with text --- */

  ground(place, row, y, width) {
    const { view, colours, context } = this;
    const height = view.rowHeight;
    let colour = "";
    if (row === view.selected) {
      colour = colours.chosen;
    } else if (view.search.matches[row]) {
      colour = colours.match;
    } else if (place === view.hovered) {
      colour = colours.hover;
    }
    if (colour) {
      context.fillStyle = colour;
      context.fillRect(0, y, width, height);
    }
    if (view.works.size && this.data.worksOf(row).some((work) => view.works.has(work))) {
      context.fillStyle = colours.accent;
      context.fillRect(0, y, 3, height);
    }
    return colour || colours.ground;
  }

  times(place, row, y) {
    const { data, colours, view } = this;
    const before = place > 0 ? view.choice.shown[place - 1] : -1;
    const passed = before >= 0 ? data.time[row] - data.time[before] : 0;
    if (data.flags[row] & NO_TIME) {
      return;
    }
    this.write(timeText(data.time[row]), 112, y, 108, { align: "right", colour: colours.quiet });
    if (passed > 0) {
      const long = passed >= 1e6;
      const colour = long ? colours.timer : colours.faint;
      this.write("+" + durationText(passed), TIME_WIDTH - 8, y, 80, { align: "right", colour, size: 11, bold: long });
    }
  }

  /* Rails of a row, which its note or arrow is drawn over. */
  rails(y, height) {
    const { context, data } = this;
    context.fillStyle = this.colours.rail;
    for (let node = 0; node < data.nodes.length; node++) {
      context.fillRect(Math.round(this.rail(node)) - 1, y, 2, height);
    }
  }

  arrow(row, y, ground) {
    const { data, colours, context } = this;
    const flags = data.flags[row];
    const from = this.rail(data.node[row]);
    const to = this.rail(data.peer[row]);
    const ahead = to > from ? 1 : -1;
    const end = flags & LOST ? to - (to - from) / 5 : to;
    const colour = colours[colourName(data, row)];
    const strong = data.trouble[row] > FINE;
    context.strokeStyle = context.fillStyle = colour;
    this.line(from, end - ahead * (flags & LOST ? 0 : 9), y, strong ? 2 : flags & RESPONSE ? 1 : 1.5,
      flags & REPEATED ? [6, 4] : []);
    if (flags & LOST) {
      this.cross(end, y, 5);
    } else {
      this.head(end - ahead * 2, y, ahead, 4.5);
    }
    this.arrowText(row, y, { from, end, ahead, ground, colour, strong });
  }

  /* The opcode is bold, the rest is not; both stand at the sender's side. */
  arrowText(row, y, { from, end, ahead, ground, colour, strong }) {
    const { data } = this;
    const text = (data.flags[row] & REPEATED ? "again: " : "") + data.text(row);
    const split = text.indexOf(" PSN ");
    const name = split > 0 ? text.slice(0, split) : text;
    const rest = split > 0 ? text.slice(split) : "";
    const room = Math.abs(end - from) - 60;
    const advance = this.characterWidth(`12px ${FONT}`);
    const length = Math.min((name.length + rest.length) * advance, room);
    const x = ahead > 0 ? from + 22 : from - 22 - length;
    this.context.fillStyle = ground;
    this.context.fillRect(x - 6, y - 8, length + 12, 16);
    const used = this.write(name, x, y, room, { bold: true, colour });
    this.write(rest, x + used, y, room - used, { colour: strong ? colour : undefined });
  }

  note(row, y) {
    const { data, colours, context } = this;
    const last = data.nodes.length - 1;
    const node = data.node[row];
    const kind = data.rowKinds[data.kind[row]];
    const colour = colours[colourName(data, row)];
    const strong = data.trouble[row] === BROKEN;
    if (node === NO_NODE) {
      this.write(data.text(row), TIME_WIDTH + 20, y, this.canvas.clientWidth - TIME_WIDTH - 30, { colour });
      return;
    }
    const x = this.rail(node);
    const leftwards = node > 0 && node === last;
    const room = last > 0 ? this.gap(this.canvas.clientWidth) - 34 : this.canvas.clientWidth - x - 30;
    context.fillStyle = context.strokeStyle = colour;
    this.mark(kind, x, y, 4);
    this.write(data.text(row), leftwards ? x - 14 : x + 14, y, room, {
      align: leftwards ? "right" : "left",
      colour: kind === "post" || kind === "completion" || strong || kind === "state" ? colour : colours.quiet,
      bold: strong,
    });
  }

  row(place, width) {
    const { data, view } = this;
    const row = view.choice.shown[place];
    const top = this.yOf(place);
    const y = top + view.rowHeight / 2;
    const ground = this.ground(place, row, top, width);
    this.rails(top, view.rowHeight);
    if (data.peer[row] !== NO_NODE && data.node[row] !== NO_NODE) {
      this.arrow(row, y, ground);
    } else {
      this.note(row, y);
    }
    this.context.clearRect(3, top, TIME_WIDTH - 3, view.rowHeight);
    if (ground !== this.colours.ground) {
      this.context.fillStyle = ground;
      this.context.fillRect(3, top, TIME_WIDTH - 3, view.rowHeight);
    }
    this.times(place, row, y);
  }

  /* --- rows without text --- */

  /* Draws a row as a stroke of the height. */
  stroke(row, y, height) {
    const { data, context, colours } = this;
    const node = data.node[row];
    if (node === NO_NODE) {
      return;
    }
    const from = this.rail(node);
    context.fillStyle = colours[colourName(data, row)];
    if (data.peer[row] === NO_NODE) {
      context.fillRect(from - 5, y, 10, height);
      return;
    }
    const to = this.rail(data.peer[row]);
    const end = data.flags[row] & LOST ? to - (to - from) / 5 : to;
    context.globalAlpha = data.trouble[row] > FINE ? 1 : 0.5;
    context.fillRect(Math.min(from, end), y, Math.abs(end - from), height);
    context.globalAlpha = 1;
  }

  smallRow(place, width) {
    const { view, context, colours } = this;
    const row = view.choice.shown[place];
    const y = this.yOf(place);
    if (row === view.selected || view.search.matches[row]) {
      context.fillStyle = row === view.selected ? colours.chosen : colours.match;
      context.fillRect(0, y, width, Math.max(view.rowHeight, 2));
    }
    this.stroke(row, y, Math.max(view.rowHeight - 1, 1));
  }

  /* Of several rows in a line of pixels the worst is drawn, and the first. */
  pixelLine(first, end, y) {
    const { view, data, context, colours } = this;
    const shown = view.choice.shown;
    let worst = first;
    let hit = false;
    for (let place = first; place < end; place++) {
      const row = shown[place];
      worst = data.trouble[row] > data.trouble[shown[worst]] ? place : worst;
      hit = hit || view.search.matches[row] || row === view.selected;
    }
    if (hit) {
      context.fillStyle = colours.accent;
      context.fillRect(TIME_WIDTH - 16, y, 8, 1);
    }
    this.stroke(shown[first], y, 1);
    this.stroke(shown[worst], y, 1);
  }

  crowd(height) {
    const { view } = this;
    this.rails(HEAD_HEIGHT, Math.min(height, (view.choice.shown.length - view.top) * view.rowHeight));
    for (let y = HEAD_HEIGHT; y < height; y++) {
      const first = Math.floor(view.top + (y - HEAD_HEIGHT) / view.rowHeight);
      const end = Math.min(Math.floor(view.top + (y + 1 - HEAD_HEIGHT) / view.rowHeight), view.choice.shown.length);
      if (first < end) {
        this.pixelLine(first, end, y);
      }
    }
  }

  /* A scale of times for rows without text. */
  scale(height) {
    const { view, data, colours } = this;
    for (let y = HEAD_HEIGHT + 12; y < height - 8; y += 60) {
      const row = view.choice.shown[this.placeAt(y)];
      if (row !== undefined) {
        this.write(timeText(data.time[row]), 112, y, 108, { align: "right", colour: colours.quiet });
      }
    }
  }

  /* --- all --- */

  heads(width) {
    const { context, colours, data } = this;
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, width, HEAD_HEIGHT);
    context.fillStyle = colours.edge;
    context.fillRect(0, HEAD_HEIGHT - 1, width, 1);
    for (let node = 0; node < data.nodes.length; node++) {
      const x = this.rail(node);
      const align = node === 0 && data.nodes.length > 1 ? "left" : node === data.nodes.length - 1 && node ? "right" : "center";
      const at = align === "left" ? x - 20 : align === "right" ? x + 20 : x;
      this.write(data.nodes[node], at, HEAD_HEIGHT / 2, this.gap(width) - 20 || 400, { bold: true, align, size: 13 });
    }
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, TIME_WIDTH, HEAD_HEIGHT - 1);
    this.write("µs", 112, HEAD_HEIGHT / 2, 40, { align: "right", colour: colours.quiet, size: 11 });
    this.write("passed", TIME_WIDTH - 8, HEAD_HEIGHT / 2, 76, { align: "right", colour: colours.faint, size: 11 });
  }

  draw() {
    const { view } = this;
    const { context, width, height } = prepareCanvas(this.canvas);
    this.context = context;
    context.textBaseline = "middle";
    if (view.rowHeight < 2) {
      this.crowd(height);
      this.scale(height);
    } else {
      this.drawRows(width, height);
    }
    this.heads(width);
  }

  drawRows(width, height) {
    const { view } = this;
    const first = Math.max(0, Math.floor(view.top));
    const end = Math.min(view.choice.shown.length, Math.ceil(view.top + (height - HEAD_HEIGHT) / view.rowHeight));
    const withText = view.rowHeight >= ROW_WITH_TEXT;
    if (!withText) {
      this.rails(HEAD_HEIGHT, this.yOf(end) - HEAD_HEIGHT);
    }
    for (let place = first; place < end; place++) {
      if (withText) {
        this.row(place, width);
      } else {
        this.smallRow(place, width);
      }
    }
    if (!withText) {
      this.scale(height);
    }
  }
}
