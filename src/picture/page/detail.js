/* SPDX-License-Identifier: MIT */
/* The details of the selected event: its text, cause, headers with their bytes, work request and fields. */
"use strict";

const RELATED_MOST = 200; /* rows of a work request that are listed */

/* The headers below RDMA's, which are folded at first. */
const LOWER = ["Ethernet", "IPv4", "IPv6", "UDP", "LRH"];

/* Makes an element: element("td", {className: "x"}, "text", child). */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function valueText(value) {
  if (Array.isArray(value)) {
    const text = value.map(valueText).join(typeof value[0] === "object" ? "; " : " | ");
    return text || "none";
  }
  if (value && typeof value === "object") {
    return Object.entries(value).map(([key, member]) => `${key} ${valueText(member)}`).join(", ");
  }
  return String(value);
}

class Detail {
  constructor(panel, data, actions) {
    this.panel = panel;
    this.data = data;
    this.actions = actions; /* {select, followQp, followWork, copyLink} */
    this.row = -1;
    this.lit = null; /* the field whose bytes are marked */
    this.folded = new Set(LOWER);
  }

  async show(row) {
    this.row = row;
    if (row < 0) {
      this.panel.replaceChildren(this.intro());
      return;
    }
    const event = this.data.event(row);
    const parts = [this.title(row, event), ...this.whys(event), this.buttons(row)];
    const frame = element("div");
    parts.push(frame, this.related(row), this.fields(event), this.line(row));
    this.panel.replaceChildren(...parts);
    this.panel.scrollTop = 0;
    if (event.packet) {
      await this.showFrame(frame, row);
    }
  }

  intro() {
    return element(
      "div", { className: "note" },
      element("h2", {}, "No event is selected"),
      element("p", {}, "Click a row. E goes to the next trouble, / searches, ? lists the keys."),
    );
  }

  title(row, event) {
    const { data } = this;
    const kind = data.rowKinds[data.kind[row]];
    const flags = data.flags[row];
    const words = [event.kind === kind ? kind : `${kind} (${event.kind})`];
    words.push(...(flags & LOST ? ["lost"] : []), ...(flags & REPEATED ? ["sent again"] : []));
    const badge = element("span", { className: "kind" }, words.join(", "));
    badge.style.setProperty("--colour", `var(--${colourName(data, row)})`);
    const from = data.nodeName(data.node[row]);
    const to = data.nodeName(data.peer[row]);
    const where = [from && to ? `${from} → ${to}` : from];
    where.push(flags & NO_TIME ? "no time" : `${timeText(data.time[row])} µs`, `event ${event.n}`);
    where.push(...(data.files.length > 1 ? [data.files[data.file[row]]] : []));
    return element("div", {}, badge, element("h2", {}, data.text(row)),
      element("p", { className: "where" }, where.filter(Boolean).join(" · ")));
  }

  whys(event) {
    return ["why", "peer_why"].filter((key) => event[key]).map((key) =>
      element("div", { className: "why" },
        element("b", {}, (key === "why" ? "Why: " : "The peer: ") + event[key].name), event[key].text));
  }

  buttons(row) {
    const { data, actions } = this;
    const box = element("div", { className: "actions" });
    const add = (text, title, onclick) => box.append(element("button", { title, onclick }, text));
    const work = data.worksOf(row)[0];
    if (data.qp[row]) {
      add(`Follow QP 0x${data.qp[row].toString(16)} of ${data.nodeName(data.node[row])}`, "Only events of this QP (F)",
        () => actions.followQp(data.node[row], data.qp[row]));
    }
    if (data.destQp[row] && data.peer[row] !== NO_NODE) {
      add(`Follow QP 0x${data.destQp[row].toString(16)} of ${data.nodeName(data.peer[row])}`, "Only events of this QP",
        () => actions.followQp(data.peer[row], data.destQp[row]));
    }
    if (work) {
      add("Follow the work request", "Only its post, packets and completion (W)", () => actions.followWork(work));
    }
    add("Copy link", "The address of this page with this event and the filters", actions.copyLink);
    return box;
  }

  /* --- headers and bytes --- */

  async showFrame(box, row) {
    const { data } = this;
    const bytes = await data.frame(row);
    if (row !== this.row) {
      return;
    }
    if (!bytes) {
      box.append(element("p", { className: "note" },
        "The page has no bytes of this packet, since a log has none. Give the capture as well: ",
        element("code", {}, "verbena trace show --html FILE LOG CAPTURE")));
      return;
    }
    const headers = decodeFrame(bytes, data.frameBytes[row], Boolean(data.flags[row] & INFINIBAND));
    this.cells = [];
    box.append(element("h3", {}, `Bytes: ${data.frameBytes[row]}`), this.dump(bytes, headers), this.tree(headers));
  }

  /* The hex dump: 16 bytes a line. Headers alternate in colour. */
  dump(bytes, headers) {
    const scroll = element("div", { className: "scroll" });
    for (let start = 0; start < bytes.length; start += 16) {
      const line = element("div");
      line.append(element("span", { className: "at" }, start.toString(16).padStart(4, "0") + "  "));
      let ascii = "";
      for (let at = start; at < start + 16; at++) {
        if (at < bytes.length) {
          const cell = element("b", {}, bytes[at].toString(16).padStart(2, "0"));
          const header = headers.findIndex((one) => at >= one.start && at < one.end);
          cell.className = header % 2 ? "odd" : "";
          cell.dataset.at = at;
          this.cells.push(cell);
          line.append(cell);
          ascii += bytes[at] >= 0x20 && bytes[at] < 0x7f ? String.fromCharCode(bytes[at]) : "·";
        } else {
          line.append("  ");
        }
        line.append(at % 8 === 7 ? "  " : " ");
      }
      line.append(element("span", { className: "ascii" }, ascii));
      scroll.append(line);
    }
    scroll.onmouseover = (event) => this.lightFieldAt(Number(event.target.dataset.at ?? -1));
    return element("div", { className: "dump" }, scroll);
  }

  tree(headers) {
    const table = element("table", { className: "fields" });
    this.rowsOfFields = [];
    for (const header of headers) {
      const size = header.end - header.start;
      const head = element("tr", { className: "head field" }, element("td", {}, header.name),
        element("td", {}, header.text || `${size} byte${size === 1 ? "" : "s"}`));
      this.addField(table, head, header);
      const lines = header.fields.map((field) => {
        const line = element("tr", { className: "field" }, element("td", {}, field.name), element("td", {}, field.text));
        line.dataset.field = `${header.name}.${field.name}`;
        this.addField(table, line, field);
        return line;
      });
      if (lines.length) {
        this.addFold(header.name, head, lines);
      }
    }
    table.onmouseleave = () => this.light(this.pinned || null);
    this.pinned = null;
    return table;
  }

  /* A press on the name of a header folds its fields away, or shows them, in all packets. */
  addFold(name, head, lines) {
    const show = () => {
      const folded = this.folded.has(name);
      head.firstChild.textContent = `${folded ? "▸" : "▾"} ${name}`;
      lines.forEach((line) => (line.hidden = folded));
    };
    head.onclick = () => {
      if (!this.folded.delete(name)) {
        this.folded.add(name);
      }
      show();
    };
    show();
  }

  addField(table, line, field) {
    line.title = `bytes ${field.start} to ${field.end - 1}` + (field.width % 8 ? `, ${field.width} bits` : "");
    line.onmouseenter = () => this.light(field);
    line.onclick = () => {
      this.pinned = this.pinned === field ? null : field;
      this.light(field);
    };
    this.rowsOfFields.push({ line, field });
    table.append(line);
  }

  /* Marks the bytes of a field, or of a header. */
  light(field) {
    this.lit = field;
    for (const cell of this.cells) {
      const at = Number(cell.dataset.at);
      cell.classList.toggle("lit", Boolean(field) && at >= field.start && at < field.end);
    }
    for (const { line, field: other } of this.rowsOfFields) {
      line.classList.toggle("lit", other === field);
    }
  }

  lightFieldAt(at) {
    const found = this.rowsOfFields.filter(({ field }) => at >= field.start && at < field.end);
    this.light(found.length ? found[found.length - 1].field : this.pinned || null);
  }

  /* --- the rest --- */

  related(row) {
    const { data } = this;
    const box = element("div");
    for (const work of data.worksOf(row)) {
      const rows = data.rowsOfWork(work);
      if (rows.length < 2) {
        continue;
      }
      const first = data.time[rows[0]];
      const passed = durationText(data.time[rows[rows.length - 1]] - first);
      const table = element("table", { className: "related" });
      for (const other of rows.slice(0, RELATED_MOST)) {
        const line = element("tr", { className: other === row ? "lit" : "", onclick: () => this.actions.select(other) },
          element("td", {}, "+" + durationText(data.time[other] - first)), element("td", {}, data.text(other)));
        line.lastChild.style.color = `var(--${colourName(data, other)})`;
        table.append(line);
      }
      box.append(element("h3", {}, `Work request: ${rows.length} rows in ${passed}`), table);
      if (rows.length > RELATED_MOST) {
        box.append(element("p", { className: "note" }, `and ${rows.length - RELATED_MOST} more; follow it to see all`));
      }
    }
    return box;
  }

  fields(event) {
    const table = element("table");
    const add = (name, value) => table.append(element("tr", {}, element("td", {}, name), element("td", {}, valueText(value))));
    for (const [key, value] of Object.entries(event)) {
      if (key === "packet" || key === "args") {
        Object.entries(value).forEach(([name, member]) => add(name, member));
      } else if (key !== "why" && key !== "peer_why") {
        add(key, value);
      }
    }
    return element("div", {}, element("h3", {}, "Fields"), table);
  }

  line(row) {
    const box = element("details", {}, element("summary", { className: "note" }, "The line of the log"));
    box.ontoggle = () => box.open && box.children.length < 2 &&
      box.append(element("pre", { className: "json" }, JSON.stringify(this.data.event(row), null, 1)));
    return element("div", {}, element("h3", {}, "JSON"), box);
  }
}
