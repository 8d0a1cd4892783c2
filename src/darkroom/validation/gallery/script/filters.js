// Which rows are shown. Each filter has a bit in `misses` of every row that it hides, so a change
// of one filter is one pass over its column, and one pass a part counts again.

import { brightness, confusionOf, confusions, count, facts, measures, setOf, side, splitOf } from "./data.js";
import { changed } from "./dom.js";

const filterNames = [
  "finding", "problem", "split", "label", "mistake", "side", "brightness", "map", "decided", "name", "alike",
  ...measures.map((each) => each.name),
];
const filterBits = Object.fromEntries(filterNames.map((name, at) => [name, 1 << at]));
const misses = new Uint16Array(count);

// The value of each filter, as its part of the page understands it; absent where all rows pass.
export const filters = {};
// How many rows are shown; and of each part the rows by their values.
export const tallies = { shown: 0 };

// A histogram ends where all but one in 200 values are; what is beyond has bars "less" and "more".
function makeBins(values, unknown, most = 24) {
  const known = values.filter((value) => value !== unknown).sort();
  const beyond = Math.floor(known.length / 200);
  const low = known[beyond] ?? 0, high = known[known.length - 1 - beyond] ?? 0;
  const step = Math.max(1, Math.ceil((high - low + 1) / most));
  const inside = Math.ceil((high - low + 1) / step);
  const bars = [{ from: 0, to: low - 1, name: "less" }];
  for (let i = 0; i < inside; i++) {
    const from = low + i * step;
    bars.push({ from, to: from + step - 1, name: "" });
  }
  bars.push({ from: low + inside * step, to: 65535, name: "more" });
  const binOf = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    const value = values[i];
    if (value === unknown) binOf[i] = bars.length;
    else binOf[i] = value < low ? 0 : Math.min(1 + Math.floor((value - low) / step), inside + 1);
  }
  return { bars, binOf, total: known.length };
}

export const bins = { side: makeBins(side, 0), brightness: makeBins(brightness, 255) };
for (const each of measures) bins[each.name] = makeBins(each.values, 65535);

// Sets a filter: `keep(place)` says which rows pass it. Without `keep` all rows do.
export function setFilter(name, value, keep) {
  const bit = filterBits[name];
  if (keep) filters[name] = value;
  else delete filters[name];
  for (let i = 0; i < count; i++) {
    misses[i] = !keep || keep(i) ? misses[i] & ~bit : misses[i] | bit;
  }
  tally();
}

// The filters before images like one were shown.
let before = null;

// Shows an image and those like it, whatever the filters say, until `goBack`.
export function showAlike(places) {
  const found = new Set(places);
  before ??= [{ ...filters }, misses.slice()];
  empty();
  setFilter("alike", places, (place) => found.has(place));
}

export function goBack() {
  empty();
  Object.assign(filters, before[0]);
  misses.set(before[1]);
  before = null;
  tally();
}

function empty() {
  for (const name of Object.keys(filters)) delete filters[name];
  misses.fill(0);
}

export function clearFilters() {
  before = null;
  empty();
  tally();
}

export function isShown(place) {
  return misses[place] === 0;
}

// The values of all rows that each part counts, and how many values there are.
const columns = {
  split: [splitOf, facts.splits.length],
  label: [setOf, facts.sets.length],
  ...Object.fromEntries(Object.entries(bins).map(([name, each]) => [name, [each.binOf, each.bars.length + 1]])),
  ...(confusionOf && { mistake: [confusionOf, confusions.length] }),
};

// Each part counts the rows that all filters but its own let pass.
function tally() {
  for (const [name, [values, size]] of Object.entries(columns)) {
    const found = new Uint32Array(size), bit = filterBits[name];
    for (let i = 0; i < count; i++) if (misses[i] === 0 || misses[i] === bit) found[values[i]]++;
    tallies[name] = found;
  }
  tallies.shown = 0;
  for (let i = 0; i < count; i++) if (isShown(i)) tallies.shown++;
  changed("filter");
}

tally();
