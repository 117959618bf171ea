// What is drawn how: colours, groups of series, round numbers, and words for values.

// Colours that readers with any colour vision can tell apart (after Okabe and Ito), for either background.
const PALETTE = {
  light: {
    cpu: "#0072b2", memory: "#b0579a", gpu: ["#00825f", "#86a81c", "#0b5c6b", "#4fae8b"],
    emulator: "#c2500a", "gpu memory": ["#3a7ca5", "#6d6fb3", "#2b8a9d", "#7a8fb0"],
    "gpu power": ["#a86a00", "#8a5a00", "#b8860b", "#7a6a00"],
    "gpu temperature": ["#a3323b", "#8b4a4a", "#b0603a", "#7d3c50"],
    own: ["#4059ad", "#b4443f", "#2f7d32", "#8e3b8a", "#00768a", "#8a6d00"],
  },
  dark: {
    cpu: "#5ab4f0", memory: "#e29acb", gpu: ["#3ddba8", "#c3e06a", "#3fa7b8", "#a8e6cf"],
    emulator: "#ff9d4d", "gpu memory": ["#86c5ea", "#a9abee", "#74cfe0", "#b1c4e2"],
    "gpu power": ["#f0b840", "#d9a441", "#e6c35c", "#c9b458"],
    "gpu temperature": ["#f08a91", "#d99a9a", "#f0a584", "#d690aa"],
    own: ["#8ea6ff", "#ff8f87", "#7fd483", "#dd93da", "#63cfe0", "#e0c557"],
  },
};
const SEPARATE_GPUS = 4; // more of them are drawn as one family: thin lines, their range, a strong mean
const THIN_LINES = 16; // more cores than that are drawn as bands

function colourOf(theme, group, number) {
  const colours = PALETTE[theme][group === "cores" ? "cpu" : group] || PALETTE[theme].own;
  return Array.isArray(colours) ? colours[number % colours.length] : colours;
}

// The things a reader can switch on and off: single series, and families of alike ones; not those of devices in `off`.
function entriesOf(series, off) {
  const groups = new Map();
  series.forEach((one, index) => {
    if (off.has(one.device)) return;
    if (!groups.has(one.group)) groups.set(one.group, []);
    groups.get(one.group).push(index);
  });
  const entries = [];
  for (const [group, members] of groups) {
    if (group === "cores") entries.push(entry(series, group, members, 0));
    else for (const kin of alike(series, group, members)) entries.push(...kin);
  }
  // Beside GPUs the single cores are a detail, for those who ask.
  for (const item of entries) if (item.group === "cores" && groups.has("gpu")) item.hidden = true;
  return entries;
}

// The entries of a group: of many devices one for each metric of theirs, else one for each series.
function alike(series, group, members) {
  const metrics = new Map();
  for (const index of members) {
    const metric = series[index].name.replace(series[index].device || "", "");
    if (!metrics.has(metric)) metrics.set(metric, []);
    metrics.get(metric).push(index);
  }
  return [...metrics.values()].map((kin) =>
    group !== "own" && kin.length > SEPARATE_GPUS
      ? [entry(series, group, kin, 0)]
      : kin.map((index) => entry(series, group, [index], members.indexOf(index))));
}

function entry(series, group, members, number) {
  const first = series[members[0]];
  const family = members.length > 1 || group === "cores";
  const what = group === "cores" ? "cores" : group.startsWith("rank") ? "ranks" : group.startsWith("gpu") ? "GPUs" : "";
  const metric = group === "cores" ? "" : first.name.replace(first.device || "", "");
  const plural = `${members.length} ${what}${metric}`.trim();
  return {
    id: family ? `${group}/${metric}` : `${group}/${first.name}`,
    label: family ? (members.length === 1 ? "1 core" : plural) : first.name,
    group, members, number, family,
    unit: first.unit || "",
    panel: group !== "own" && first.unit === "%" ? "%" : `${group === "own" ? "own" : ""} ${first.unit || first.name}`,
    from: first.from || "",
    of: first.of || "",
    hidden: Boolean(first.hidden),
    reason: members.map((index) => series[index].reason).find(Boolean) || "",
  };
}

// Mean and range of an entry's members at a sample; own metrics hold their last value.
function summary(history, item, index) {
  let sum = 0, count = 0, low = Infinity, high = -Infinity;
  for (const series of item.members) {
    const value = item.group === "own" ? history.latest(series, index) : history.value(series, index);
    if (Number.isNaN(value)) continue;
    sum += value;
    count += 1;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return count ? { mean: sum / count, low, high } : null;
}

function valueText(item, found) {
  if (!found) return item.reason ? "n/a" : "–";
  if (item.group === "cores") {
    const low = Math.round(found.low), high = Math.round(found.high);
    return low === high ? `${low} %` : `${low}–${high} %`;
  }
  const said = item.group === "own" && item.label.includes(item.unit); // "images/s 852" says it once
  return withUnit(found.mean, said ? "" : item.unit);
}

function withUnit(value, unit) {
  const text = unit === "%" || unit === "°C" ? shortNumber(Math.round(value)) : shortNumber(value);
  return unit ? `${text} ${unit}` : text;
}

function shortNumber(value) {
  const size = Math.abs(value);
  for (const [limit, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= limit) {
      const scaled = value / (letter === "k" ? 1e3 : limit);
      return `${Number(scaled.toPrecision(3))}${letter}`;
    }
  }
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  return String(Number(value.toPrecision(size >= 1000 ? 4 : 3)));
}

function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const pad = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  return hours ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
}

// For single samples, which may be several a second.
function fineClock(seconds) {
  const tenths = Math.max(0, Math.round(seconds * 10));
  return `${clock(Math.floor(tenths / 10))}.${tenths % 10}`;
}

function timeStep(span, width) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
  return steps.find((step) => (step / span) * width >= 64) || 7200;
}

// A round number of at least `value`, whose half is short to write too.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value * 0.999999) * power;
}

// A panel's scale. It grows at once and shrinks only when much too large, so that it does not breathe.
function fitScale(previous, low, high) {
  const top = high > 0 ? roundUp(high) : low < 0 ? 0 : 1;
  const bottom = low < 0 ? -roundUp(-low) : 0;
  if (previous && previous.top >= top && previous.bottom <= bottom) {
    if (top - bottom > 0.35 * (previous.top - previous.bottom)) return previous;
  }
  return { bottom, top };
}
