/* SPDX-License-Identifier: MIT */
/* The data of the page, in the order in which src/picture/page_write.c writes it. */
"use strict";

const NONE = 0xffffffff;
const NO_NODE = 0xffff;

/* The bits of the column "flags". */
const LOST = 1;
const FAILED = 2;
const NAK = 4;
const REPEATED = 8;
const RESPONSE = 16;
const INFINIBAND = 32;
const NO_TIME = 64;

/* How bad a row is. */
const FINE = 0;
const SLOWED = 1; /* repeated, or a timer has expired */
const DISTURBED = 2; /* lost, or a fault rule has fired */
const BROKEN = 3; /* failed, refused or dropped */

function fromBase64(text) {
  if (Uint8Array.fromBase64) {
    return Uint8Array.fromBase64(text);
  }
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) {
    bytes[i] = binary.charCodeAt(i);
  }
  return bytes;
}

/* Reads a section, whose text is then no longer needed. */
async function readSection(name) {
  const element = document.getElementById("data-" + name);
  const bytes = fromBase64(element.textContent);
  element.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).arrayBuffer();
}

/* Takes typed arrays from a buffer, one behind the other. */
class Columns {
  constructor(buffer) {
    this.buffer = buffer;
    this.at = 0;
  }

  take(type, count) {
    const column = new type(this.buffer, this.at, count);
    this.at += column.byteLength;
    return column;
  }
}

class Data {
  async load() {
    const index = JSON.parse(document.getElementById("index").textContent);
    const sections = ["columns", "patterns", "texts", "lines"].map(readSection);
    const [columns, patterns, texts, lines] = await Promise.all(sections);
    Object.assign(this, index);
    this.count = index.rows;
    this.readColumns(new Columns(columns));
    const names = new TextDecoder().decode(patterns).split("\0").map(splitPattern);
    this.texts = new Records(new Uint8Array(texts), names);
    this.lines = new Records(new Uint8Array(lines), names);
    this.rowKind = Object.fromEntries(this.rowKinds.map((name, i) => [name, i]));
    this.blocksRead = new Map();
    this.judge();
  }

  readColumns(columns) {
    const count = this.count;
    this.time = columns.take(Float64Array, count);
    for (const name of ["line", "workAt", "textAt", "qp", "destQp", "psn", "frameAt", "frameBytes"]) {
      this[name] = columns.take(Uint32Array, count);
    }
    this.workList = columns.take(Uint32Array, this.works);
    for (const name of ["node", "peer", "frameKept"]) {
      this[name] = columns.take(Uint16Array, count);
    }
    for (const name of ["kind", "eventKind", "flags", "file"]) {
      this[name] = columns.take(Uint8Array, count);
    }
  }

  /* Fills in how bad each row is. */
  judge() {
    const { packet, drop, failure, fault, timer } = this.rowKind;
    const expired = this.patternsWith(" expired");
    this.trouble = new Uint8Array(this.count);
    for (let i = 0; i < this.count; i++) {
      const flags = this.flags[i];
      const kind = this.kind[i];
      if (kind === drop || kind === failure || flags & NAK || (flags & FAILED && !(flags & LOST))) {
        this.trouble[i] = BROKEN;
      } else if (flags & LOST || kind === fault) {
        this.trouble[i] = DISTURBED;
      } else if ((kind === packet && flags & REPEATED) || (kind === timer && this.isExpired(i, expired))) {
        this.trouble[i] = SLOWED;
      }
    }
  }

  patternsWith(text) {
    return this.texts.patterns.map(({ parts }) => parts.some((part) => part.includes(text)));
  }

  /* A timer that has started or ended is no trouble; that of a rewind is. */
  isExpired(row, expired) {
    this.texts.at = this.textAt[row];
    return expired[this.texts.number()] || this.kinds[this.eventKind[row]] === "rewind";
  }

  text(row) {
    return this.texts.text(this.textAt[row]);
  }

  /* Returns the event as it stands in the log. */
  lineText(row) {
    return this.lines.text(this.line[row]);
  }

  event(row) {
    return JSON.parse(this.lineText(row));
  }

  /* Returns the work requests of a row: numbers from 1. */
  worksOf(row) {
    const end = row + 1 < this.count ? this.workAt[row + 1] : this.works;
    return this.workList.subarray(this.workAt[row], end);
  }

  /* Returns all rows of a work request. */
  rowsOfWork(work) {
    const rows = [];
    for (let row = 0, at = 0; at < this.works; at++) {
      if (this.workList[at] !== work) {
        continue;
      }
      row = this.rowOfWorkAt(at, row);
      if (rows[rows.length - 1] !== row) {
        rows.push(row);
      }
    }
    return rows;
  }

  /* Returns the row that the entry of workList belongs to, which is `from` or a later one. */
  rowOfWorkAt(at, from) {
    let low = from;
    let high = this.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.workAt[middle] <= at) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  /* Returns the frame's bytes as far as the page has them; null: no capture has the packet. */
  async frame(row) {
    const at = this.frameAt[row];
    if (at === NONE) {
      return null;
    }
    let block = this.blocks.length - 1;
    while (this.blocks[block] > at) {
      block--;
    }
    if (!this.blocksRead.has(block)) {
      this.blocksRead.set(block, readSection("frames-" + block));
    }
    const bytes = await this.blocksRead.get(block);
    return new Uint8Array(bytes, at - this.blocks[block], this.frameKept[row]);
  }

  nodeName(node) {
    return node === NO_NODE ? "" : this.nodes[node];
  }
}
