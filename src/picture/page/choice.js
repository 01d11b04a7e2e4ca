/* SPDX-License-Identifier: MIT */
/* Which rows are shown, and which match the search. */
"use strict";

const UNITS_NS = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 };

/* Reads "1.5ms"; a number without unit is in µs, as the rows show it. NaN: the text is no time. */
function readTime(text) {
  const match = /^([0-9]*\.?[0-9]+)\s*(ns|us|µs|ms|s)?$/.exec(text.trim());
  return match ? Math.round(Number(match[1]) * UNITS_NS[match[2] || "us"]) : NaN;
}

/* Writes a time so that readTime() reads the same. */
function writeTime(ns) {
  const unit = ["s", "ms", "us", "ns"].find((name) => ns >= UNITS_NS[name]) || "ns";
  return String(ns / UNITS_NS[unit]) + unit;
}

class Choice {
  constructor(data) {
    this.data = data;
    this.kinds = new Set(); /* row kinds that are left out */
    this.qp = null; /* {node, number} */
    this.from = 0;
    this.to = Infinity;
    this.onlyTrouble = false;
    this.work = 0;
    this.update();
  }

  isEmpty() {
    return !this.kinds.size && !this.qp && !this.from && this.to === Infinity && !this.onlyTrouble && !this.work;
  }

  clear() {
    this.kinds.clear();
    this.qp = null;
    this.from = 0;
    this.to = Infinity;
    this.onlyTrouble = false;
    this.work = 0;
  }

  /* Events of the QP, packets that it sends, and packets to it. */
  isOfQp(row) {
    const { node, number } = this.qp;
    const data = this.data;
    const isDrop = data.kind[row] === data.rowKind.drop; /* the node that drops is the one it was for */
    const dest = isDrop ? data.node[row] : data.peer[row];
    return (data.qp[row] === number && data.node[row] === node) || (data.destQp[row] === number && dest === node);
  }

  passes(row) {
    const data = this.data;
    return (
      data.time[row] >= this.from &&
      data.time[row] <= this.to &&
      !this.kinds.has(data.kind[row]) &&
      (!this.onlyTrouble || data.trouble[row] > FINE) &&
      (!this.qp || this.isOfQp(row))
    );
  }

  /* Fills in the rows that are shown, in their order. */
  update() {
    const data = this.data;
    const candidates = this.work ? data.rowsOfWork(this.work) : null;
    const count = candidates ? candidates.length : data.count;
    const shown = new Uint32Array(count);
    let used = 0;
    for (let i = 0; i < count; i++) {
      const row = candidates ? candidates[i] : i;
      if (this.passes(row)) {
        shown[used++] = row;
      }
    }
    this.shown = shown.subarray(0, used);
  }

  /* Returns the place of the first shown row that is this one or a later one. */
  placeOf(row) {
    let low = 0;
    let high = this.shown.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.shown[middle] < row) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /* Returns the place of the first shown row at this time or later. */
  placeAtTime(ns) {
    let low = 0;
    let high = this.shown.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.data.time[this.shown[middle]] < ns) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}

/* Returns all QPs with an event, by node and number. */
function listQps(data) {
  const seen = new Map();
  const add = (node, number) => {
    const key = node * 2 ** 24 + number;
    if (number && node !== NO_NODE && !seen.has(key)) {
      seen.set(key, { node, number });
    }
  };
  for (let row = 0; row < data.count; row++) {
    add(data.node[row], data.qp[row]);
    add(data.peer[row], data.destQp[row]);
  }
  return [...seen.values()].sort((a, b) => a.node - b.node || a.number - b.number);
}

const SLICE_MS = 12;
const PROGRESS_MS = 150;

/* Searches in the texts of all rows, a slice at a time, so that the page stays usable. */
class Search {
  constructor(data) {
    this.data = data;
    this.matches = new Uint8Array(data.count);
    this.query = "";
    this.run = 0;
    this.done = 0; /* rows */
    this.found = 0; /* of these */
  }

  /* Calls progress() now and then, and at the end. A later call ends an earlier one. */
  async start(query, progress) {
    const run = ++this.run;
    let told = performance.now();
    this.found = 0;
    this.query = query.trim().toLowerCase();
    this.done = 0;
    this.matches.fill(0);
    if (!this.query) {
      this.done = this.data.count;
    }
    const always = this.data.texts.patterns.map(({ parts }) =>
      parts.some((part) => part.toLowerCase().includes(this.query)),
    );
    while (this.done < this.data.count && run === this.run) {
      this.slice(always);
      if (performance.now() - told > PROGRESS_MS) {
        progress();
        told = performance.now();
      }
      await new Promise((resolve) => setTimeout(resolve));
    }
    if (run === this.run) {
      progress();
    }
  }

  slice(always) {
    const { texts, textAt, count } = this.data;
    const end = performance.now() + SLICE_MS;
    while (this.done < count && performance.now() < end) {
      const last = Math.min(this.done + 1000, count);
      for (let row = this.done; row < last; row++) {
        texts.at = textAt[row];
        this.matches[row] = always[texts.number()] || this.data.text(row).toLowerCase().includes(this.query) ? 1 : 0;
        this.found += this.matches[row];
      }
      this.done = last;
    }
  }

  /* Returns how many of the rows match. */
  countIn(shown) {
    let count = 0;
    for (let i = 0; i < shown.length; i++) {
      count += this.matches[shown[i]];
    }
    return count;
  }
}
