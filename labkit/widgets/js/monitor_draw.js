// The canvas: panels of lines over a common time axis, spans shaded through all of them, a cursor.

const LEFT = 46, RIGHT = 14, SPAN_ROW = 17, MAIN_PANEL = 136, PANEL = 70, GAP = 22, MARK = 7, AXIS = 20;
const MAX_PANELS = 8, MAX_SPAN_ROWS = 3;

class Plot {
  constructor(canvas, history) {
    this.canvas = canvas;
    this.history = history;
    this.scales = new Map();
    this.spanRows = 1;
  }

  // Draws what `look` asks for: {items, theme, ink, span, interval, cursor, until}; span is the seconds shown.
  paint(look) {
    this.look = look;
    const width = this.canvas.clientWidth;
    if (width < 80) return; // hidden, or not laid out yet
    const { history } = this;
    const last = look.until === null ? history.last : look.until;
    const end = Math.max(look.span, last);
    this.time = { start: end - look.span, end };
    const to = look.until === null ? history.length : history.indexAt(look.until + 1e-6);
    const range = { from: Math.max(0, history.indexAt(this.time.start) - 1), to };
    this.range = range;
    const spans = this.visibleSpans();
    this.panels = this.layOut(look.items);
    this.size(width, this.panels.bottom + AXIS);
    this.drawSpans(spans);
    for (const panel of this.panels.list) this.drawPanel(panel);
    this.drawTimes();
    if (look.cursor !== null) this.drawCursor();
    if (!history.length) this.say("waiting for the first sample");
  }

  size(width, height) {
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
      canvas.style.height = `${height}px`;
    }
    this.width = width;
    this.pixel = 1 / ratio;
    this.pen = canvas.getContext("2d");
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.pen.clearRect(0, 0, width, height);
    this.pen.font = `11px ${this.look.ink.font}`;
  }

  layOut(items) {
    const names = ["%", ...new Set(items.map((item) => item.panel).filter((name) => name !== "%"))];
    let top = this.spanRows * SPAN_ROW + MARK;
    const list = names.slice(0, MAX_PANELS).map((name, number) => {
      const height = number ? PANEL : MAIN_PANEL;
      const members = items.filter((item) => item.panel === name);
      const panel = { name, members, top, bottom: top + height };
      panel.scale = name === "%" ? { bottom: 0, top: 100 } : this.scaleOf(panel);
      top += height + GAP;
      return panel;
    });
    return { list, bottom: top - GAP };
  }

  scaleOf(panel) {
    let low = Infinity, high = -Infinity;
    for (const item of panel.members) {
      for (const series of item.members) {
        for (let i = this.range.from; i < this.range.to; i++) {
          const value = this.history.value(series, i);
          if (value < low) low = value;
          if (value > high) high = value;
        }
      }
    }
    const previous = this.scales.get(panel.name);
    const scale = high < low ? previous || { bottom: 0, top: 1 } : fitScale(previous, low, high);
    this.scales.set(panel.name, scale);
    return scale;
  }

  x(time) {
    return LEFT + ((time - this.time.start) / this.look.span) * (this.width - LEFT - RIGHT);
  }

  timeAt(x) {
    return this.time.start + ((x - LEFT) / (this.width - LEFT - RIGHT)) * this.look.span;
  }

  y(panel, value) {
    const { bottom, top } = panel.scale;
    return panel.bottom - ((value - bottom) / (top - bottom)) * (panel.bottom - panel.top);
  }

  // A line one device pixel wide is crisp only on the middle of a pixel.
  crisp(position) {
    return (Math.floor(position / this.pixel) + 0.5) * this.pixel;
  }

  hairline(x0, y0, x1, y1, colour, width = this.pixel) {
    const { pen } = this;
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
  }

  text(words, x, y, align = "left", colour = this.look.ink.soft) {
    this.pen.fillStyle = colour;
    this.pen.textAlign = align;
    this.pen.textBaseline = "middle";
    this.pen.fillText(words, x, y);
  }

  say(words) {
    const panel = this.panels.list[0];
    this.text(words, (LEFT + this.width - RIGHT) / 2, (panel.top + panel.bottom) / 2, "center");
  }

  drawPanel(panel) {
    const { ink } = this.look;
    const { bottom, top } = panel.scale;
    const marks = panel.name === "%" ? [0, 25, 50, 75, 100] : [bottom, (bottom + top) / 2, top];
    marks.forEach((mark, number) => {
      const y = this.crisp(this.y(panel, mark));
      this.hairline(LEFT, y, this.width - RIGHT, y, mark === 0 ? ink.axis : ink.grid);
      if (panel.name !== "%" || number % 2 === 0) this.text(this.markText(panel, mark), LEFT - 7, y, "right");
    });
    this.clip(panel, () => {
      for (const item of panel.members) if (item.family) this.drawFamily(panel, item);
      for (const item of panel.members) if (!item.family) this.drawSingle(panel, item);
    });
    if (panel.name !== "%") this.drawTitle(panel);
  }

  markText(panel, mark) {
    return panel.name === "%" ? `${mark} %` : shortNumber(mark);
  }

  drawTitle(panel) {
    const item = panel.members[0];
    const words = item.unit || item.label;
    this.text(words, LEFT, panel.top - 9);
  }

  clip(panel, draw) {
    const { pen } = this;
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, panel.top - 2, this.width - LEFT - RIGHT, panel.bottom - panel.top + 4);
    pen.clip();
    draw();
    pen.restore();
  }

  drawSingle(panel, item) {
    const own = item.group === "own";
    const series = item.members[0];
    const colour = colourOf(this.look.theme, item.group, item.number);
    const quiet = item.group === "memory" || item.group === "gpu memory";
    const value = (i) => this.history.value(series, i);
    if (item.group === "emulator" || item.group === "cpu") this.fillUnder(panel, value, colour);
    this.stroke(panel, value, colour, quiet ? 1.5 : 2, 1, item.from ? [6, 3] : [], own);
    if (own) this.dots(panel, value, colour);
  }

  drawFamily(panel, item) {
    const colour = colourOf(this.look.theme, item.group, 0);
    if (item.members.length > THIN_LINES) this.drawBands(panel, item, colour);
    else {
      for (const series of item.members) {
        this.stroke(panel, (i) => this.history.value(series, i), colour, 1, 0.4);
      }
    }
    if (item.group === "cores") return; // their mean is the line of the whole CPU
    const mean = (i) => (summary(this.history, item, i) || { mean: NaN }).mean;
    this.stroke(panel, mean, colour, 2.5, 1, item.from ? [6, 3] : []);
  }

  // From the least to the most busy, and the middle half: 64 lines would say less.
  drawBands(panel, item, colour) {
    const sorted = [];
    for (let i = this.range.from; i < this.range.to; i++) {
      const values = item.members.map((series) => this.history.value(series, i));
      sorted.push(values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b));
    }
    const at = (share) => (i) => {
      const values = sorted[i - this.range.from];
      return values.length ? values[Math.round(share * (values.length - 1))] : NaN;
    };
    this.fillBetween(panel, at(0), at(1), colour, 0.13);
    this.fillBetween(panel, at(0.25), at(0.75), colour, 0.2);
  }

  trace(panel, value, join) {
    const { pen, history } = this;
    const bridged = join ? this.bridge(value) : 0;
    let down = false, at = 0;
    pen.beginPath();
    for (let i = this.range.from; i < this.range.to; i++) {
      const height = value(i), time = history.times[i];
      if (Number.isNaN(height)) {
        down = down && join;
        continue;
      }
      const x = this.x(time), y = this.y(panel, height);
      if (down && (!join || time - at <= bridged)) pen.lineTo(x, y);
      else pen.moveTo(x, y);
      down = true;
      at = time;
    }
  }

  // Own metrics come in their own rhythm: what is much longer than it is a silence, and no line crosses it.
  bridge(value) {
    const { times } = this.history, gaps = [];
    let at = NaN;
    for (let i = this.range.from; i < this.range.to; i++) {
      if (Number.isNaN(value(i))) continue;
      if (!Number.isNaN(at)) gaps.push(times[i] - at);
      at = times[i];
    }
    gaps.sort((a, b) => a - b);
    return Math.max(4 * this.look.interval, 3 * (gaps[gaps.length >> 1] || 0));
  }

  stroke(panel, value, colour, width, alpha = 1, dash = [], join = false) {
    const { pen } = this;
    this.trace(panel, value, join);
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.lineJoin = "round";
    pen.globalAlpha = alpha;
    pen.setLineDash(dash);
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  fillUnder(panel, value, colour) {
    this.fillBetween(panel, () => panel.scale.bottom, value, colour, 0.07);
  }

  fillBetween(panel, low, high, colour, alpha) {
    const { pen, history } = this;
    pen.fillStyle = colour;
    pen.globalAlpha = alpha;
    let run = [];
    const flush = () => {
      if (run.length > 1) {
        pen.beginPath();
        for (const i of run) pen.lineTo(this.x(history.times[i]), this.y(panel, high(i)));
        for (const i of run.reverse()) pen.lineTo(this.x(history.times[i]), this.y(panel, low(i)));
        pen.fill();
      }
      run = [];
    };
    for (let i = this.range.from; i < this.range.to; i++) {
      if (Number.isNaN(high(i))) flush();
      else run.push(i);
    }
    flush();
    pen.globalAlpha = 1;
  }

  dots(panel, value, colour) {
    const { pen, history } = this;
    const known = [];
    for (let i = this.range.from; i < this.range.to; i++) if (!Number.isNaN(value(i))) known.push(i);
    if (known.length > (this.width - LEFT - RIGHT) / 8) return; // close together they are a thick line
    pen.fillStyle = colour;
    for (const i of known) {
      pen.beginPath();
      pen.arc(this.x(history.times[i]), this.y(panel, value(i)), 2.4, 0, 7);
      pen.fill();
    }
  }

  drawTimes() {
    const { ink, span } = this.look;
    const step = timeStep(span, this.width - LEFT - RIGHT);
    const y = this.panels.bottom;
    for (let t = Math.ceil(this.time.start / step) * step; t <= this.time.end + 1e-6; t += step) {
      const x = this.crisp(this.x(t));
      this.hairline(x, y, x, y + 4, ink.axis);
      this.text(clock(t), Math.min(x, this.width - RIGHT - 4), y + 12, "center");
    }
  }
}
