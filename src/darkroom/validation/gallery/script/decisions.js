// What to do with rows and pairs: a log, from which everything else follows. It is kept in the
// browser, and saved as a file that `darkroom gallery RECORDS --resolve FILE` reads.

import { facts } from "./data.js";
import { changed, countOf, h, say } from "./dom.js";

const storageKey = `darkroom decided ${facts.fingerprint}`;
// The actions on rows that are saved, each with what the file calls its value.
const valueNames = { drop: null, relabel: "label", move: "split", ignore: null };

// A list of steps, each a list of decisions that are undone together.
let log = [];
// What is decided about rows, by their places: the value of each action, or true.
const fates = new Map();
// What is decided about pairs, by their two places as text.
const pairFates = new Map();

function apply({ action, pair, places, value }) {
  const isUndone = action === "undecided";
  if (pair) {
    if (isUndone) pairFates.delete(pair.join(" "));
    else pairFates.set(pair.join(" "), action);
    return;
  }
  for (const place of places) {
    // A row may have both a new label and a new split; all else replaces what was decided.
    const { relabel, move } = (valueNames[action] && fates.get(place)) || {};
    if (isUndone) fates.delete(place);
    else fates.set(place, { relabel, move, [action]: value ?? true });
  }
}

function replay() {
  fates.clear();
  pairFates.clear();
  log.flat().forEach(apply);
  // "Keep left" drops the right one.
  for (const [pair, action] of pairFates) {
    const [left, right] = pair.split(" ").map(Number);
    if (action !== "ignore") fates.set(action === "left" ? right : left, { drop: true });
  }
}

function keep() {
  try {
    localStorage.setItem(storageKey, JSON.stringify(log));
  } catch {
    say("This browser cannot keep so many decisions: save them as a file before you close this page.");
  }
  replay();
  changed("decision");
}

function record(step) {
  log.push(step);
  keep();
}

// Places by a value of each, as a list of values and their places; rows without a value are left out.
export function groupPlaces(places, findValue) {
  const groups = new Map();
  for (const place of places) {
    const value = findValue(place), key = JSON.stringify(value);
    if (value === undefined) continue;
    if (!groups.has(key)) groups.set(key, [value, []]);
    groups.get(key)[1].push(place);
  }
  return [...groups.values()];
}

// Decides about groups of rows in one step. `action`: drop, ignore, undecided; or relabel or move, with
// the label or split of each group.
export function decide(action, groups) {
  const number = groups.reduce((sum, [, places]) => sum + places.length, 0);
  if (!number) return;
  const to = groups.length > 1 ? "as suggested" : showValue(groups[0][0]);
  const what = { drop: "dropped", ignore: "ignored", relabel: `relabelled ${to}`, move: `moved to ${to}` };
  say(`${countOf(number, "row")}: ${what[action] ?? "no decision"}.`);
  record(groups.map(([value, places]) => ({ action, places, value })));
}

// Decides about a pair. `action`: left, right or ignore; the same again takes it back.
export function decidePair(action, pair) {
  const isSame = findPairFate(pair.join(" ")) === action;
  const what = { left: "kept left", right: "kept right", ignore: "ignored" }[action];
  say(`Pair: ${isSame ? "no decision" : what}.`);
  record([{ action: isSame ? "undecided" : action, pair }]);
}

export function undo() {
  if (!log.length) return say("There is nothing to undo.");
  log.pop();
  say("Undone.");
  keep();
}

export function findPairFate(pair) {
  return pairFates.get(pair) ?? "";
}

function showValue(value) {
  return [value].flat().join(", ") || "no label";
}

// What happens to a row, in words; empty where nothing does.
export function describeFate(place) {
  const { drop, ignore, relabel, move } = fates.get(place) ?? {};
  const words = [drop && "drop", ignore && "ignore", relabel && `now ${showValue(relabel)}`, move && `to ${move}`];
  return words.filter(Boolean).join(", ");
}

export function isDecided(place) {
  return fates.has(place);
}

function listIgnoredPairs() {
  return [...pairFates].filter(([, action]) => action === "ignore").map(([pair]) => pair.split(" ").map(Number));
}

export function countDecided() {
  return fates.size + listIgnoredPairs().length;
}

// The file. A place is the number of a row in the index of this very dataset.
export function encodeDecisions() {
  const decisions = listIgnoredPairs().map((pair) => ({ action: "ignore", pair }));
  for (const [action, name] of Object.entries(valueNames)) {
    for (const [value, places] of groupPlaces(fates.keys(), (place) => fates.get(place)[action])) {
      decisions.push({ action, places, ...(name && { [name]: value }) });
    }
  }
  return { form: "darkroom decisions 1", dataset: facts.fingerprint, decisions };
}

export function saveDecisions() {
  const text = `${JSON.stringify(encodeDecisions())}\n`;
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  h("a", { href: url, download: `decisions-${facts.fingerprint.slice(0, 8)}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  say("Saved. Next: darkroom gallery RECORDS --resolve FILE --output decisions.jsonl");
}

export function openDecisions() {
  try {
    log = JSON.parse(localStorage.getItem(storageKey)) ?? [];
  } catch {
    // A browser may forbid it: then nothing was kept.
  }
  replay();
}
