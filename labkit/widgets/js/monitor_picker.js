// Which devices and which metrics are drawn: a panel that opens below the legend, closed most of the time.

// What a group of series is called where it is chosen; others go by their own name.
const GROUP_WORDS = {
  cpu: "processor", cores: "single cores", memory: "main memory", disk: "disks", network: "network",
  gpu: "GPU busy", "gpu memory": "GPU memory", "gpu power": "GPU power", "gpu temperature": "GPU temperature",
  "gpu clock": "GPU clocks", "gpu slowed": "reasons for low clocks", "gpu video": "video engines",
  "gpu nvlink": "NVLink", "gpu pcie": "PCIe", "gpu ecc": "memory errors", "gpu processes": "processes",
  "gpu own memory": "memory of this kernel", link: "InfiniBand", emulator: "emulated GPU", own: "own metrics",
};

// What a reader has chosen to see. `single` are entries of the legend, `groups` and `devices` those of the panel.
class Choice {
  constructor() {
    this.single = new Map();
    this.groups = new Map();
    this.off = new Set();
  }

  isShown(item) {
    return this.single.get(item.id) ?? this.groups.get(item.group) ?? !item.hidden;
  }

  // Entries that are off from the start are found in the panel only, or the legend would list forty of them.
  isListed(item) {
    return !item.hidden || this.isShown(item) || this.single.has(item.id);
  }

  toggle(item) {
    this.single.set(item.id, !this.isShown(item));
  }

  toggleGroup(group, items) {
    const members = items.filter((item) => item.group === group);
    const shown = members.some((item) => this.isShown(item));
    for (const item of members) this.single.delete(item.id);
    this.groups.set(group, !shown);
  }

  toggleDevice(device) {
    if (!this.off.delete(device)) this.off.add(device);
  }
}

class Picker {
  constructor(choice, onChange) {
    this.choice = choice;
    this.onChange = onChange;
    this.element = make("div", "picker");
    this.element.hidden = true;
    this.rows = [this.addRow("Devices"), this.addRow("Metrics")];
    this.button = make("button", "tool", "Choose");
    this.button.type = "button";
    this.button.title = "Choose devices and metrics";
    this.button.setAttribute("aria-expanded", "false");
    this.button.addEventListener("click", () => this.open(this.element.hidden));
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.open(false);
      this.button.focus();
    });
  }

  addRow(title) {
    const row = make("div", "choices");
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", title);
    row.append(make("span", "choices-title", title));
    this.element.append(row);
    return { row, chips: new Map() };
  }

  open(yes) {
    this.element.hidden = !yes;
    this.button.setAttribute("aria-expanded", String(yes));
    this.onChange();
  }

  update(series, items) {
    if (this.element.hidden) return;
    const devices = [...new Set(series.map((one) => one.device).filter(Boolean))];
    const groups = [...new Set(items.map((item) => item.group))];
    this.fill(0, devices, (device) => device, (device) => !this.choice.off.has(device),
      (device) => this.choice.toggleDevice(device));
    this.fill(1, groups, (group) => GROUP_WORDS[group] || group,
      (group) => items.some((item) => item.group === group && this.choice.isShown(item)),
      (group) => this.choice.toggleGroup(group, this.items));
    this.items = items;
  }

  fill(which, names, words, isOn, toggle) {
    const { row, chips } = this.rows[which];
    for (const name of names) {
      if (!chips.has(name)) chips.set(name, this.addChip(row, words(name), () => toggle(name)));
      chips.get(name).setAttribute("aria-pressed", String(isOn(name)));
    }
    for (const [name, chip] of chips) {
      if (names.includes(name)) continue;
      chip.remove();
      chips.delete(name);
    }
  }

  addChip(row, words, toggle) {
    const chip = make("button", "chip", words);
    chip.type = "button";
    chip.addEventListener("click", () => {
      toggle();
      this.onChange();
    });
    row.append(chip);
    return chip;
  }
}

// Stops the picture, not the recording: to look at something before it moves on.
class PauseButton {
  constructor(onToggle) {
    this.element = make("button", "tool", "Pause");
    this.element.type = "button";
    this.element.addEventListener("click", onToggle);
  }

  update(paused, stopped) {
    this.element.hidden = stopped && !paused;
    this.element.textContent = paused ? "Go on" : "Pause";
    this.element.title = paused ? "Show what happens now" : "Hold the picture; recording goes on";
    this.element.setAttribute("aria-pressed", String(paused));
  }
}
