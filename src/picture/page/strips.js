/* SPDX-License-Identifier: MIT */
/* The time strip above the ladder, and the strip of all rows beside it: both show where trouble is. */
"use strict";

const TROUBLE_COLOURS = ["quiet", "repeated", "lost", "bad"];
const AXIS_HEIGHT = 16;

/* How many rows of each badness fall into each column of time. */
class TimeStrip {
  constructor(canvas, data, view) {
    this.canvas = canvas;
    this.data = data;
    this.view = view;
    this.first = data.count ? data.time[0] : 0;
    this.last = data.count ? data.time[data.count - 1] : 0;
    for (const time of data.time) {
      this.first = Math.min(this.first, time);
      this.last = Math.max(this.last, time);
    }
    this.bins = null;
    this.drag = null; /* {from, to}: x of a choice of time */
  }

  span() {
    return Math.max(this.last - this.first, 1);
  }

  xOf(time) {
    return 8 + ((time - this.first) / this.span()) * (this.canvas.clientWidth - 16);
  }

  timeAt(x) {
    const part = (x - 8) / (this.canvas.clientWidth - 16);
    return this.first + Math.min(Math.max(part, 0), 1) * this.span();
  }

  count() {
    const columns = Math.max(1, Math.floor((this.canvas.clientWidth - 16) / 3));
    const shown = this.view.choice.shown;
    const { time, trouble } = this.data;
    const scale = columns / (this.span() * (1 + 1e-12));
    this.bins = [0, 1, 2, 3].map(() => new Uint32Array(columns));
    for (let i = 0; i < shown.length; i++) {
      const row = shown[i];
      const bin = Math.min(columns - 1, Math.floor((time[row] - this.first) * scale));
      this.bins[trouble[row]][bin]++;
    }
  }

  draw(colours) {
    const { context, width, height } = prepareCanvas(this.canvas);
    if (!this.bins) {
      this.count();
    }
    this.drawBars(context, colours, height - AXIS_HEIGHT);
    this.drawAxis(context, colours, width, height);
    this.drawWindow(context, colours, height - AXIS_HEIGHT);
  }

  /* The height of a bar is the root of its count, so that a few rows are seen beside many. */
  drawBars(context, colours, height) {
    const columns = this.bins[0].length;
    let largest = 1;
    for (let bin = 0; bin < columns; bin++) {
      largest = Math.max(largest, this.bins[0][bin] + this.bins[1][bin] + this.bins[2][bin] + this.bins[3][bin]);
    }
    const scale = (height - 6) / Math.sqrt(largest);
    for (let bin = 0; bin < columns; bin++) {
      const total = this.bins[0][bin] + this.bins[1][bin] + this.bins[2][bin] + this.bins[3][bin];
      const tall = Math.sqrt(total) * scale;
      let bottom = height;
      for (let badness = BROKEN; badness >= FINE; badness--) {
        const count = this.bins[badness][bin];
        if (!count) {
          continue;
        }
        const part = badness ? Math.max((count / total) * tall, 4) : Math.max((count / total) * tall, 1);
        context.fillStyle = colours[TROUBLE_COLOURS[badness]];
        context.globalAlpha = badness ? 1 : 0.45;
        context.fillRect(8 + bin * 3, bottom - part, 2, part);
        bottom -= part;
      }
    }
    context.globalAlpha = 1;
  }

  drawAxis(context, colours, width, height) {
    const step = niceStep(this.span() / Math.max(1, width / 130));
    context.font = `11px ${FONT}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (let time = Math.ceil(this.first / step) * step; time <= this.last; time += step) {
      const x = this.xOf(time);
      context.fillStyle = colours.edge;
      context.fillRect(x, 0, 1, height - AXIS_HEIGHT + 4);
      context.fillStyle = colours.quiet;
      context.fillText(time ? durationText(time) : "0", Math.min(x + 3, width - 60), height - AXIS_HEIGHT / 2);
    }
  }

  /* The times that the ladder shows, and the choice of time. */
  drawWindow(context, colours, height) {
    const { choice } = this.view;
    const [first, last] = this.view.visibleTimes();
    const left = this.xOf(first);
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left - 1, 1.5, Math.max(this.xOf(last) - left, 3) + 2, height - 3);
    const range = this.drag
      ? [Math.min(this.drag.from, this.drag.to), Math.max(this.drag.from, this.drag.to)]
      : [this.xOf(Math.max(choice.from, this.first)), this.xOf(Math.min(choice.to, this.last))];
    if (this.drag || choice.from || choice.to !== Infinity) {
      context.fillStyle = colours.faint;
      context.globalAlpha = 0.3;
      context.fillRect(0, 0, range[0], height);
      context.fillRect(range[1], 0, this.canvas.clientWidth - range[1], height);
      context.globalAlpha = 1;
    }
  }
}

/* Returns 1, 2 or 5 times a power of ten, at least this much. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
}

/* All shown rows from top to bottom: a scroll bar with marks of trouble and of matches. */
class RowStrip {
  constructor(canvas, data, view) {
    this.canvas = canvas;
    this.data = data;
    this.view = view;
    this.worst = null;
  }

  count() {
    const lines = Math.max(1, this.canvas.clientHeight);
    const shown = this.view.choice.shown;
    const matches = this.view.search.matches;
    this.worst = new Uint8Array(lines);
    this.hits = new Uint8Array(lines);
    for (let place = 0; place < shown.length; place++) {
      const line = Math.floor((place / shown.length) * lines);
      this.worst[line] = Math.max(this.worst[line], this.data.trouble[shown[place]]);
      this.hits[line] |= matches[shown[place]];
    }
  }

  draw(colours) {
    const { context, width, height } = prepareCanvas(this.canvas);
    const { view } = this;
    const count = Math.max(view.choice.shown.length, 1);
    if (!this.worst || this.worst.length !== Math.max(1, height)) {
      this.count();
    }
    const top = (view.top / count) * height;
    const tall = Math.min(height, Math.max((view.visibleRows() / count) * height, 12));
    context.fillStyle = colours.edge;
    context.fillRect(0, Math.min(top, height - tall), width, tall);
    for (let y = 0; y < this.worst.length; y++) {
      if (this.worst[y]) {
        context.fillStyle = colours[TROUBLE_COLOURS[this.worst[y]]];
        context.fillRect(3, y, width - 10, 2);
      }
      if (this.hits[y]) {
        context.fillStyle = colours.accent;
        context.fillRect(width - 6, y, 5, 2);
      }
    }
  }

  /* The top row after a press at y. */
  topAt(y) {
    const count = this.view.choice.shown.length;
    return (y / Math.max(this.canvas.clientHeight, 1)) * count - this.view.visibleRows() / 2;
  }
}
