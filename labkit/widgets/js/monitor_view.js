// The widget: one channel a model, one view for each place where the plot is shown.

const SPEAK_EVERY = 10000; // ms between changes of the label that screen readers find

class View {
  constructor(channel, model, el) {
    this.channel = channel;
    this.history = channel.history;
    this.interval = model.get("_interval");
    this.span = WINDOWS[0][1];
    this.choice = new Choice();
    this.held = null; // time at which the reader holds the picture
    this.cursor = null; // index of a sample
    this.spokenAt = -Infinity;
    this.build(el);
    this.plot = new Plot(this.canvas, this.history);
    this.listen();
    this.redraw = () => this.schedule();
    channel.open(this.redraw);
    this.schedule();
  }

  build(el) {
    this.root = make("div", "root");
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", "labkit monitor");
    this.legend = new Legend((item) => this.toggle(item));
    this.windows = new WindowChoice((seconds) => this.show(seconds));
    this.picker = new Picker(this.choice, () => this.schedule());
    this.pause = new PauseButton(() => this.hold());
    this.notices = new Notices();
    this.canvas = make("canvas", "canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", "Live plot of this machine, waiting for the first sample");
    this.canvas.setAttribute("aria-roledescription", "live plot; arrow keys move a cursor, Escape removes it");
    this.canvas.dataset.lmSuppressShortcuts = "true"; // arrow keys are the cursor's here, not the notebook's
    this.status = make("span", "status");
    this.sources = make("span", "sources");
    this.said = make("span", "said");
    this.said.setAttribute("aria-live", "polite");
    const head = make("div", "head"), foot = make("div", "foot"), tools = make("div", "tools");
    tools.append(this.windows.element, this.pause.element, this.picker.button);
    head.append(this.legend.element, tools);
    foot.append(this.status, this.sources, this.said);
    this.root.append(head, this.picker.element, this.canvas, foot, this.notices.element);
    el.append(this.root);
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", () => this.setCursor(null));
    canvas.addEventListener("mousedown", (event) => event.preventDefault()); // the notebook keeps its keys
    canvas.addEventListener("keydown", (event) => this.press(event));
    canvas.addEventListener("blur", () => this.setCursor(null));
    this.resizes = new ResizeObserver(() => this.paint());
    this.resizes.observe(this.root);
    this.themes = new MutationObserver(() => this.schedule());
    this.themes.observe(document.body, { attributes: true });
    this.onVisible = () => this.schedule();
    document.addEventListener("visibilitychange", this.onVisible);
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.ticking = setInterval(() => this.writeStatus(), 1000);
  }

  close() {
    this.channel.close(this.redraw);
    this.resizes.disconnect();
    this.themes.disconnect();
    document.removeEventListener("visibilitychange", this.onVisible);
    clearInterval(this.ticking);
    clearTimeout(this.later);
  }

  // At most one painting a frame, none that nobody sees; once a second for those who asked for less motion.
  schedule() {
    if (this.waiting || document.hidden) return;
    this.waiting = true;
    const soon = () => requestAnimationFrame(() => {
      this.waiting = false;
      this.paintedAt = performance.now();
      this.paint();
    });
    const since = performance.now() - (this.paintedAt || 0);
    if (this.calm.matches && this.history.length && since < 1000) this.later = setTimeout(soon, 1000 - since);
    else soon();
  }

  paint() {
    const items = this.entries();
    const shown = items.filter((item) => this.choice.isShown(item));
    const ink = this.inks();
    this.root.dataset.theme = ink.theme;
    const index = this.cursor === null ? this.newest() : this.cursor;
    const listed = items.filter((item) => this.choice.isListed(item));
    this.legend.update(
      listed, ink.theme, (item) => summary(this.history, item, index), (item) => this.choice.isShown(item),
    );
    this.picker.update(this.history.series, items);
    this.windows.update(this.span);
    this.pause.update(this.held !== null, this.channel.stopped);
    this.plot.paint({
      items: shown, ink, theme: ink.theme, span: this.span, interval: this.interval, cursor: this.cursor,
      until: this.held,
    });
    this.sources.textContent = items.length ? provenanceLine(listed, this.interval, this.channel.origin) : "";
    this.notices.update(this.channel.notices);
    this.writeStatus();
    this.describe(shown);
  }

  entries() {
    return entriesOf(this.history.series, this.choice.off);
  }

  // Index of the last sample in the picture.
  newest() {
    return this.held === null ? this.history.length - 1 : this.history.nearest(this.held);
  }

  toggle(item) {
    this.choice.toggle(item);
    this.schedule();
  }

  hold() {
    this.held = this.held === null ? this.history.last : null;
    this.schedule();
  }

  show(seconds) {
    this.span = seconds;
    this.schedule();
  }

  // Colours come from the page's theme, read anew at each painting: a theme may arrive after its name.
  inks() {
    const style = getComputedStyle(this.root);
    const strong = style.color;
    const [r, g, b] = (strong.match(/[\d.]+/g) || [0, 0, 0]).map(Number);
    const theme = 0.3 * r + 0.59 * g + 0.11 * b > 140 ? "dark" : "light";
    const dark = theme === "dark";
    return {
      theme, strong, font: style.fontFamily,
      paper: style.getPropertyValue("--jp-layout-color0").trim() || (dark ? "#111" : "#fff"),
      soft: dark ? "#b4b4b4" : "#5f5f5f",
      axis: dark ? "#777" : "#9a9a9a",
      grid: dark ? "#353535" : "#e6e6e6",
      span: dark ? "#9fb3d9" : "#5b78b0",
      spanEdge: dark ? "#5a6a8c" : "#a9b8d8",
      spanMark: dark ? "#a9bbe0" : "#5b78b0",
    };
  }

  writeStatus() {
    const [state, words] = statusOf(this.channel, this.interval, this.held);
    this.root.dataset.state = state;
    if (this.status.textContent !== words) this.status.textContent = words;
  }

  describe(shown) {
    const now = performance.now();
    if (!this.history.length || now - this.spokenAt < SPEAK_EVERY) return;
    this.spokenAt = now;
    const state = this.channel.stopped ? "Stopped plot" : "Live plot";
    this.canvas.setAttribute("aria-label", spoken(shown, this.history, this.history.length - 1, state));
  }

  point(event) {
    if (!this.history.length || !this.plot.time) return;
    this.setCursor(Math.min(this.history.nearest(this.plot.timeAt(event.offsetX)), this.newest()));
  }

  press(event) {
    const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") this.setCursor(null);
    if (!(event.key in moves) || !this.history.length) return;
    event.preventDefault();
    event.stopPropagation();
    const length = this.newest() + 1;
    const first = this.history.indexAt(this.plot.time.start);
    const from = this.cursor === null ? length : this.cursor;
    const to = from + moves[event.key] * (event.shiftKey ? 10 : 1);
    this.setCursor(Math.min(Math.max(to, first), length - 1));
    const shown = this.entries().filter((item) => this.choice.isShown(item));
    const when = `At ${fineClock(this.history.times[this.cursor])}`;
    this.said.textContent = spoken(shown, this.history, this.cursor, when);
  }

  setCursor(index) {
    if (index === this.cursor) return;
    this.cursor = index;
    this.schedule();
  }
}

export default () => {
  let channel;
  return {
    initialize({ model }) {
      channel = new Channel(model);
    },
    render({ model, el }) {
      const view = new View(channel, model, el);
      return () => view.close();
    },
  };
};
