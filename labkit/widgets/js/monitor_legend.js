// Around the canvas: the legend with its values, the choice of how much time is shown, a line of status.

const WINDOWS = [["1 min", 60], ["5 min", 300], ["30 min", 1800]];

function make(tag, name, words = "") {
  const element = document.createElement(tag);
  element.className = `lk-mon-${name}`;
  element.textContent = words;
  return element;
}

class Legend {
  constructor(onToggle) {
    this.element = make("div", "legend");
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", "Series: press to hide or show");
    this.onToggle = onToggle;
    this.buttons = new Map();
  }

  // One button an entry; buttons stay where they are, only words change.
  update(items, theme, values, isShown) {
    for (const item of items) {
      const button = this.buttons.get(item.id) || this.add(item);
      const shown = isShown(item);
      button.root.setAttribute("aria-pressed", String(shown));
      button.line.setAttribute("stroke", colourOf(theme, item.group, item.number));
      button.value.textContent = shown ? valueText(item, values(item)) : "";
      button.label.textContent = item.label;
      button.root.title = this.title(item, shown);
    }
    for (const [id, button] of this.buttons) {
      if (!items.some((item) => item.id === id)) {
        button.root.remove();
        this.buttons.delete(id);
      }
    }
  }

  title(item, shown) {
    const facts = [item.from || "measured", item.of && `of ${item.of}`, item.reason && `n/a: ${item.reason}`];
    return `${item.label}: ${facts.filter(Boolean).join(", ")}. Press to ${shown ? "hide" : "show"}.`;
  }

  add(item) {
    const root = make("button", "entry");
    root.type = "button";
    root.innerHTML =
      '<svg class="lk-mon-swatch" width="20" height="8" aria-hidden="true"><line x1="1" y1="4" x2="19" y2="4"/></svg>';
    const line = root.querySelector("line");
    line.setAttribute("stroke-width", item.group === "cores" ? 1 : 2.5);
    line.setAttribute("stroke-dasharray", item.from ? "5 3" : "none");
    const label = make("span", "label"), value = make("span", "value");
    root.append(line.parentElement, label);
    if (item.from) root.append(make("span", "from", item.from));
    root.append(value);
    root.addEventListener("click", () => this.onToggle(item));
    this.element.append(root);
    const button = { root, line, label, value };
    this.buttons.set(item.id, button);
    return button;
  }
}

class WindowChoice {
  constructor(onChoice) {
    this.element = make("div", "windows");
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", "Time shown");
    this.buttons = WINDOWS.map(([words, seconds]) => {
      const button = make("button", "window", words);
      button.type = "button";
      button.addEventListener("click", () => onChoice(seconds));
      this.element.append(button);
      return [button, seconds];
    });
  }

  update(chosen) {
    for (const [button, seconds] of this.buttons) button.setAttribute("aria-pressed", String(seconds === chosen));
  }
}

// Warnings, each a sentence; said aloud when they change, and without a place of their own when there are none.
class Notices {
  constructor() {
    this.element = make("ul", "notices");
    this.element.setAttribute("role", "status");
    this.element.hidden = true;
    this.said = "";
  }

  update(notices) {
    const said = notices.join("\n");
    if (said === this.said) return;
    this.said = said;
    this.element.hidden = !notices.length;
    this.element.replaceChildren(...notices.map((words) => {
      const row = document.createElement("li");
      row.textContent = words;
      return row;
    }));
  }
}

// What is going on, in words a learner can act on.
function statusOf(channel, interval, held) {
  const { history } = channel;
  if (held !== null) return ["held", `held at ${clock(held)}${channel.stopped ? "" : "; recording goes on"}`];
  const late = (performance.now() - channel.arrived) / 1000;
  if (channel.stopped) return ["stopped", `stopped after ${clock(history.last)}`];
  if (!history.length) return ["waiting", "run this cell to see the live plot"];
  if (late > Math.max(4 * interval, 5)) return ["waiting", `no samples for ${clock(late)}: is the kernel running?`];
  return ["live", "live"];
}

function provenanceLine(items, interval, origin) {
  const others = [...new Set(items.map((item) => item.from).filter(Boolean))];
  const every = origin || `measured on this machine every ${shortNumber(interval)} s`;
  return others.length ? `${every}; dashed lines are ${others.join(" or ")}` : every;
}

// The plot in one sentence, for those who hear it.
function spoken(items, history, index, when) {
  const parts = items.map((item) => {
    const found = summary(history, item, index);
    const name = item.from ? `${item.label} (${item.from})` : item.label;
    return `${name} ${found ? valueText(item, found).replace(" %", " percent").replace("–", " to ") : "not available"}`;
  });
  const time = history.times[index];
  const spans = [...history.spans.values()].filter((s) => s.start <= time && (s.end === null || s.end >= time));
  const names = spans.length ? `; span ${spans.map((span) => span.name).join(", ")}` : "";
  return `${when}: ${parts.join(", ")}${names}`;
}
