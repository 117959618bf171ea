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
    const edge = LEFT, end = this.width - RIGHT;
    let lastMark = -Infinity;
    const placed = spans.map((span) => {
      const left = Math.max(this.x(span.start), edge), right = Math.min(this.x(span.until), end);
      const brief = span.end !== null && span.end - span.start < this.look.interval;
      if (!brief) this.drawRegion(span, left, right);
      else if (left - lastMark >= 2) {
        this.drawMark(left, left - lastMark >= 16);
        lastMark = left;
      }
      return { span, left, right: brief ? left : right, brief };
    });
    this.drawLabels(placed);
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

  // Marks of a loop stand close together: their lines would hide what they mark, so only the heads are drawn.
  drawMark(left, alone) {
    const { pen, look } = this;
    const x = this.crisp(left);
    const top = this.spanRows * SPAN_ROW + 1;
    if (alone) this.hairline(x, top, x, this.panels.bottom, look.ink.spanMark);
    pen.fillStyle = look.ink.spanMark;
    pen.beginPath();
    pen.moveTo(x - 3.5, top);
    pen.lineTo(x + 3.5, top);
    pen.lineTo(x, top + 5);
    pen.fill();
  },

  // Names inside their regions first; then, beside marks and narrow regions, those for which there is room.
  drawLabels(placed) {
    const taken = placed.filter((one) => !one.brief).map(({ span, left, right }) => [span.row, left, right]);
    for (const one of placed) {
      const wide = this.pen.measureText(one.span.name).width;
      const room = one.right - one.left - 9;
      if (room >= Math.min(wide, 24)) {
        this.drawLabel(one.span, one.left + 5, this.fitting(one.span.name, room));
      } else {
        const from = one.brief ? one.left - 3 : one.right + 4;
        const until = from + wide + 4;
        const free = taken.every(([row, left, right]) => row !== one.span.row || until < left || from > right);
        if (!free || until > this.width) continue;
        taken.push([one.span.row, from, until]);
        this.drawLabel(one.span, from, one.span.name);
      }
    }
  },

  drawLabel(span, x, words) {
    this.text(words, x, span.row * SPAN_ROW + 2 + (SPAN_ROW - 3) / 2 + 0.5, "left", this.look.ink.strong);
  },

  fitting(words, room) {
    let text = words;
    for (let keep = words.length - 1; keep > 0 && this.pen.measureText(text).width > room; keep--) {
      text = `${words.slice(0, keep)}…`;
    }
    return text;
  },

  drawCursor() {
    const { pen, history, look } = this;
    const time = history.times[look.cursor];
    if (time === undefined || time < this.time.start) return;
    const x = this.crisp(this.x(time));
    this.hairline(x, this.panels.list[0].top - MARK, x, this.panels.bottom, look.ink.strong);
    for (const panel of this.panels.list) {
      for (const item of panel.members) if (item.group !== "cores") this.cursorDot(panel, item, x);
    }
    const words = fineClock(time);
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
