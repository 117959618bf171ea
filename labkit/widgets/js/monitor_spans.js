// Spans on the canvas: shaded regions with their name above, marks for those shorter than an interval; the cursor.

Object.assign(Plot.prototype, {
  // The spans in view, each with the row that its label gets: nested and overlapping ones go below each other.
  visibleSpans() {
    const { start, end } = this.time;
    const ends = [];
    const found = [];
    for (const span of this.history.spans.values()) {
      const until = span.end === null ? end : span.end;
      if (until < start || span.start > end) continue;
      let row = ends.findIndex((taken) => taken <= span.start);
      if (row < 0) row = Math.min(ends.length, MAX_SPAN_ROWS - 1);
      ends[row] = Math.max(until, span.start);
      found.push({ ...span, until, row });
    }
    this.spanRows = Math.max(this.spanRows, Math.min(ends.length, MAX_SPAN_ROWS), 1);
    return found;
  },

  drawSpans(spans) {
    const labelEnds = [];
    let lastMark = -Infinity;
    for (const span of spans) {
      const left = Math.max(this.x(span.start), LEFT), right = Math.min(this.x(span.until), this.width - RIGHT);
      const brief = span.end !== null && span.end - span.start < this.look.interval;
      if (!brief) this.drawRegion(span, left, right);
      else if (left - lastMark >= 1) this.drawMark(span, (lastMark = left));
      this.drawLabel(span, left, brief ? left : right, labelEnds);
    }
  },

  drawRegion(span, left, right) {
    const { pen, look } = this;
    const top = span.row * SPAN_ROW + 2;
    pen.fillStyle = look.ink.span;
    pen.globalAlpha = 0.1;
    pen.fillRect(left, top, right - left, this.panels.bottom - top);
    pen.globalAlpha = 0.22;
    pen.fillRect(left, top, right - left, SPAN_ROW - 3);
    pen.globalAlpha = 1;
    const [x0, x1] = [this.crisp(left), this.crisp(right)];
    if (this.x(span.start) >= LEFT) this.hairline(x0, top, x0, this.panels.bottom, look.ink.spanEdge);
    if (span.end !== null) this.hairline(x1, top, x1, this.panels.bottom, look.ink.spanEdge);
  },

  drawMark(span, left) {
    const { pen, look } = this;
    const x = this.crisp(left);
    const top = span.row * SPAN_ROW + 4;
    this.hairline(x, top, x, this.panels.bottom, look.ink.spanMark, 1);
    pen.fillStyle = look.ink.spanMark;
    pen.beginPath();
    pen.moveTo(x - 4, top);
    pen.lineTo(x + 4, top);
    pen.lineTo(x, top + 6);
    pen.fill();
  },

  // A label inside its region, or right of a narrow one when nothing else is there.
  drawLabel(span, left, right, labelEnds) {
    const { pen, look } = this;
    const wide = pen.measureText(span.name).width;
    const room = right - left - 8;
    const inside = room >= Math.min(wide, 28);
    const x = inside ? left + 5 : right + 7;
    const until = inside ? x + Math.min(wide, room) : x + wide;
    if (x < (labelEnds[span.row] ?? -Infinity) + 4 || (!inside && until > this.width)) return;
    labelEnds[span.row] = until;
    pen.save();
    pen.beginPath();
    pen.rect(x, 0, inside ? room : wide + 1, this.panels.bottom);
    pen.clip();
    this.text(span.name, x, span.row * SPAN_ROW + 2 + (SPAN_ROW - 3) / 2 + 0.5, "left", look.ink.strong);
    pen.restore();
  },

  drawCursor() {
    const { pen, history, look } = this;
    const time = history.times[look.cursor];
    if (time === undefined || time < this.time.start) return;
    const x = this.crisp(this.x(time));
    this.hairline(x, this.spanRows * SPAN_ROW + 2, x, this.panels.bottom, look.ink.strong);
    for (const panel of this.panels.list) {
      for (const item of panel.members) if (item.group !== "cores") this.cursorDot(panel, item, x);
    }
    const words = clock(time);
    const wide = pen.measureText(words).width + 10;
    const left = Math.min(Math.max(x - wide / 2, LEFT), this.width - wide);
    pen.fillStyle = look.ink.strong;
    pen.fillRect(left, this.panels.bottom + 4, wide, 16);
    this.text(words, left + wide / 2, this.panels.bottom + 12, "center", look.ink.paper);
  },

  cursorDot(panel, item, x) {
    const found = summary(this.history, item, this.look.cursor);
    if (!found) return;
    const { pen, look } = this;
    pen.fillStyle = colourOf(look.theme, item.group, item.number);
    pen.strokeStyle = look.ink.paper;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.arc(x, this.y(panel, found.mean), 4, 0, 7);
    pen.fill();
    pen.stroke();
  },
});
