// What to do with rows and pairs: a log, from which everything else follows. It is kept in the
// browser, and saved as a file that `darkroom gallery RECORDS --resolve FILE` reads.

import { count, facts } from "./data.js";
import { changed, countOf, h, say } from "./dom.js";

const storageKey = `darkroom decided ${facts.fingerprint}`;
const UNDECIDED = 0, DROP = 1, IGNORE = 2, CHANGE = 3;
const fateNames = ["", "drop", "ignore", "change"];

// A list of steps, each a list of decisions that are undone together.
let log = [];
const fates = new Uint8Array(count);
// The new label or split of rows; in the file these values have names.
const changes = { relabel: new Map(), move: new Map() };
const valueNames = { relabel: "label", move: "split" };
const pairFates = new Map();
// The rows of pairs that go: "keep left" drops the right one.
const losers = new Set();

function apply(decision) {
  if (decision.pair) {
    const key = decision.pair.join(" ");
    if (decision.action === "undecided") pairFates.delete(key);
    else pairFates.set(key, decision.action);
    return;
  }
  const changed = changes[decision.action];
  const fate = changed ? CHANGE : Math.max(0, fateNames.indexOf(decision.action));
  for (const place of decision.places) {
    fates[place] = fate;
    if (changed) changed.set(place, decision.value);
    else for (const each of Object.values(changes)) each.delete(place);
  }
}

function applyStep(step) {
  step.forEach(apply);
  losers.clear();
  for (const [key, action] of pairFates) {
    const [left, right] = key.split(" ").map(Number);
    if (action !== "ignore") losers.add(action === "left" ? right : left);
  }
}

function replay() {
  fates.fill(UNDECIDED);
  for (const each of [...Object.values(changes), pairFates]) each.clear();
  applyStep(log.flat());
}

function keep() {
  try {
    localStorage.setItem(storageKey, JSON.stringify(log));
  } catch {
    say("This browser cannot keep so many decisions: save them as a file before you close this page.");
  }
}

function record(step) {
  log.push(step);
  applyStep(step);
  keep();
  changed("decision");
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
  record(groups.map(([value, places]) => ({ action, places, value })));
  const to = groups.length > 1 ? "as suggested" : showValue(groups[0][0]);
  const what = { drop: "dropped", ignore: "ignored", relabel: `relabelled ${to}`, move: `moved to ${to}` };
  say(`${countOf(number, "row")}: ${what[action] ?? "no decision"}.`);
}

// Decides about a pair. `action`: left, right or ignore; the same again takes it back.
export function decidePair(action, pair) {
  const isSame = pairFates.get(pair.join(" ")) === action;
  record([{ action: isSame ? "undecided" : action, pair }]);
  const what = { left: "kept left", right: "kept right", ignore: "ignored" }[action];
  say(isSame ? "Pair: no decision." : `Pair: ${what}.`);
}

export function undo() {
  if (!log.length) return say("There is nothing to undo.");
  log.pop();
  replay();
  keep();
  changed("decision");
  say("Undone.");
}

export function findPairFate(pair) {
  return pairFates.get(pair.join(" ")) ?? "";
}

function showValue(value) {
  return [value].flat().join(", ") || "no label";
}

// What happens to a row, in words; empty where nothing does.
export function describeFate(place) {
  if (fates[place] === DROP || losers.has(place)) return "drop";
  if (fates[place] !== CHANGE) return fateNames[fates[place]];
  const { relabel, move } = changes, words = [];
  if (relabel.has(place)) words.push(`now ${showValue(relabel.get(place))}`);
  if (move.has(place)) words.push(`to ${move.get(place)}`);
  return words.join(", ");
}

export function isDecided(place) {
  return fates[place] !== UNDECIDED || losers.has(place);
}

export function countDecided() {
  let found = [...pairFates.values()].filter((each) => each === "ignore").length;
  for (const place of losers) if (!fates[place]) found++;
  for (let i = 0; i < count; i++) if (fates[i]) found++;
  return found;
}

// The file. A place is the number of a row in the index of this very dataset.
export function encodeDecisions() {
  const drops = [], ignored = [], decisions = [];
  for (let i = 0; i < count; i++) {
    if (fates[i] === DROP || losers.has(i)) drops.push(i);
    else if (fates[i] === IGNORE) ignored.push(i);
  }
  if (drops.length) decisions.push({ action: "drop", places: drops });
  for (const [action, values] of Object.entries(changes)) {
    const kept = [...values.keys()].filter((place) => !losers.has(place));
    for (const [value, places] of groupPlaces(kept, (place) => values.get(place))) {
      decisions.push({ action, [valueNames[action]]: value, places });
    }
  }
  if (ignored.length) decisions.push({ action: "ignore", places: ignored });
  for (const [key, action] of pairFates) {
    if (action === "ignore") decisions.push({ action, pair: key.split(" ").map(Number) });
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
    log = JSON.parse(localStorage.getItem(storageKey) ?? "[]");
    replay();
  } catch {
    log = [];
    replay();
  }
}
