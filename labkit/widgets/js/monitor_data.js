// The samples and spans that the views of one model draw, decoded from what monitor_wire.py encodes.

const BYTE_GAP = 255;
const BYTE_STEPS = 2; // steps of a one-byte value in one per cent
const KEEP_SAMPLES = 7200;
const KEEP_SPANS = 800;

class History {
  constructor() {
    this.series = []; // descriptions, as monitor_wire.describe writes them
    this.clear();
  }

  clear() {
    this.length = 0;
    this.times = new Float64Array(2 * KEEP_SAMPLES);
    this.columns = [];
    this.spans = new Map(); // number -> {name, start, end}
  }

  get last() {
    return this.length ? this.times[this.length - 1] : 0;
  }

  // Appends the rows in a DataView that holds `count` series a row; false if the series are not known yet.
  append(view, count) {
    if (count > this.series.length) return false;
    const width = this.rowBytes(count);
    for (let at = 0; at + width <= view.byteLength; at += width) this.appendRow(view, at, count);
    return true;
  }

  rowBytes(count) {
    let bytes = 8;
    for (let i = 0; i < count; i++) bytes += this.series[i].byte ? 1 : 4;
    return bytes;
  }

  appendRow(view, at, count) {
    this.makeRoom();
    while (this.columns.length < count) {
      this.columns.push(new Float32Array(2 * KEEP_SAMPLES).fill(NaN));
    }
    const row = this.length;
    this.times[row] = view.getFloat64(at, true);
    at += 8;
    for (let i = 0; i < count; i++) {
      if (this.series[i].byte) {
        const byte = view.getUint8(at);
        this.columns[i][row] = byte === BYTE_GAP ? NaN : byte / BYTE_STEPS;
        at += 1;
      } else {
        this.columns[i][row] = view.getFloat32(at, true);
        at += 4;
      }
    }
    for (let i = count; i < this.columns.length; i++) this.columns[i][row] = NaN;
    this.length = row + 1;
  }

  // Columns stay contiguous: when twice the samples to keep are there, the newer half moves to the front.
  makeRoom() {
    if (this.length < 2 * KEEP_SAMPLES) return;
    for (const column of [this.times, ...this.columns]) column.copyWithin(0, KEEP_SAMPLES);
    this.length = KEEP_SAMPLES;
  }

  noteSpans(rows) {
    for (const [number, name, start, end] of rows) this.spans.set(number, { name, start, end });
    for (const number of this.spans.keys()) {
      if (this.spans.size <= KEEP_SPANS) break;
      this.spans.delete(number);
    }
  }

  // Index of the first sample at or after a time.
  indexAt(time) {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  nearest(time) {
    const right = Math.min(this.indexAt(time), this.length - 1);
    const left = Math.max(0, right - 1);
    return time - this.times[left] < this.times[right] - time ? left : right;
  }

  value(series, index) {
    const column = this.columns[series];
    return column && index >= 0 ? column[index] : NaN;
  }

  // Own metrics are given now and then: the last value at or before a sample.
  latest(series, index) {
    for (let i = index; i >= 0; i--) {
      const value = this.value(series, i);
      if (!Number.isNaN(value)) return value;
    }
    return NaN;
  }
}

// Talks with the kernel for all views of one model: decodes, acknowledges, asks for what was missed.
class Channel {
  constructor(model) {
    this.model = model;
    this.history = new History();
    this.views = new Set(); // functions to call when there is something new to draw
    this.number = null; // of the last sample
    this.arrived = 0; // when it came, ms
    this.ackNumber = 0;
    this.ackSent = 0;
    this.heard = 0;
    this.helloSent = -Infinity;
    this.describe();
    model.on("change:_series", () => this.describe());
    model.on("change:_state change:_notices", () => this.changed());
    model.on("msg:custom", (content, buffers) => this.receive(content, buffers));
  }

  get stopped() {
    return this.model.get("_state") === "stopped";
  }

  get notices() {
    return this.model.get("_notices") || [];
  }

  get origin() {
    return this.model.get("_origin") || "";
  }

  describe() {
    this.history.series = this.model.get("_series") || [];
    this.changed();
  }

  changed() {
    for (const redraw of this.views) redraw();
  }

  open(redraw) {
    this.views.add(redraw);
    this.hello();
  }

  close(redraw) {
    this.views.delete(redraw);
  }

  hello() {
    if (performance.now() - this.helloSent < 5000) return;
    this.helloSent = performance.now();
    this.model.send({ hello: 1 });
  }

  receive(content, buffers) {
    const whole = content.history;
    const [number, count, heard, spans] = whole || content;
    if (whole) this.history.clear();
    const missed = !whole && this.number !== null && number !== this.number + 1;
    const data = buffers[0];
    const view = new DataView(data.buffer || data, data.byteOffset || 0, data.byteLength);
    const known = this.history.append(view, count);
    this.history.noteSpans((whole ? content.spans : spans) || []);
    this.number = number;
    this.heard = heard;
    this.arrived = performance.now();
    if (missed || !known) this.hello();
    this.acknowledge();
    this.changed();
  }

  // Only while somebody looks, and one at a time: a busy kernel must not collect a pile of them.
  acknowledge() {
    const now = performance.now();
    const waiting = this.ackNumber > this.heard && now - this.ackSent < 60000;
    if (!this.views.size || waiting || now - this.ackSent < 8000) return;
    this.ackSent = now;
    this.ackNumber = this.number;
    this.model.send({ ack: this.number });
  }
}
