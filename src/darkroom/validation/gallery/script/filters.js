// Which rows are shown. Each filter has a bit in `misses` of every row that it hides, so a change
// of one filter is one pass over its column, and one pass counts everything again.

import { brightness, count, facts, setOf, side, splitOf } from "./data.js";
import { changed } from "./dom.js";

const filterBits = { finding: 1, split: 2, label: 4, side: 8, brightness: 16, map: 32, decided: 64 };
const misses = new Uint8Array(count);

// The value of each filter, as its part of the page understands it; absent where all rows pass.
export const filters = {};
export const tallies = { shown: 0, split: null, set: null, side: null, brightness: null };

// A histogram ends where all but one in 200 values are; what is beyond has bars "less" and "more".
function makeBins(values, unknown, most = 24) {
  const counts = new Uint32Array(65536);
  let total = 0;
  for (let i = 0; i < count; i++) if (values[i] !== unknown) { counts[values[i]]++; total++; }
  let low = 0, high = 65535;
  for (let sum = counts[low]; low < 65535 && sum <= total / 200; sum += counts[++low]);
  for (let sum = counts[high]; high > low && sum <= total / 200; sum += counts[--high]);
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
  return { bars, binOf, total };
}

export const bins = { side: makeBins(side, 0), brightness: makeBins(brightness, 255) };

// Sets a filter: `keep(place)` says which rows pass it. Without `keep` all rows do.
export function setFilter(name, value, keep) {
  const bit = filterBits[name], others = ~bit;
  if (keep) filters[name] = value;
  else delete filters[name];
  for (let i = 0; i < count; i++) {
    misses[i] = !keep || keep(i) ? misses[i] & others : misses[i] | bit;
  }
  tally();
  changed("filter");
}

export function clearFilters() {
  for (const name of Object.keys(filters)) delete filters[name];
  misses.fill(0);
  tally();
  changed("filter");
}

export function isShown(place) {
  return misses[place] === 0;
}

export function listShown() {
  const places = new Uint32Array(tallies.shown);
  for (let i = 0, at = 0; i < count; i++) if (misses[i] === 0) places[at++] = i;
  return places;
}

// Each part counts the rows that all filters but its own let pass.
function tally() {
  const bySplit = new Uint32Array(facts.splits.length);
  const bySet = new Uint32Array(facts.sets.length);
  const bySide = new Uint32Array(bins.side.bars.length + 1);
  const byBrightness = new Uint32Array(bins.brightness.bars.length + 1);
  const sideBins = bins.side.binOf, brightnessBins = bins.brightness.binOf;
  let shown = 0;
  for (let i = 0; i < count; i++) {
    const miss = misses[i];
    if (miss === 0) {
      shown++;
      bySplit[splitOf[i]]++;
      bySet[setOf[i]]++;
      bySide[sideBins[i]]++;
      byBrightness[brightnessBins[i]]++;
    } else if (miss === filterBits.split) bySplit[splitOf[i]]++;
    else if (miss === filterBits.label) bySet[setOf[i]]++;
    else if (miss === filterBits.side) bySide[sideBins[i]]++;
    else if (miss === filterBits.brightness) byBrightness[brightnessBins[i]]++;
  }
  Object.assign(tallies, {
    shown, split: bySplit, set: bySet, side: bySide, brightness: byBrightness,
  });
}

tally();
