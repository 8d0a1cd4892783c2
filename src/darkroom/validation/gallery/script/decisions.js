// What to do with rows and pairs: a log, from which everything else follows. It is kept in the
// browser, and saved as a file that `darkroom gallery RECORDS --resolve FILE` reads.

import { count, facts } from "./data.js";
import { changed, countOf, h, say } from "./dom.js";

const storageKey = `darkroom decisions ${facts.fingerprint}`;
const UNDECIDED = 0, DROP = 1, IGNORE = 2, RELABEL = 3;
const fateNames = ["", "drop", "ignore", "relabel"];

let log = [];
const fates = new Uint8Array(count);
const newLabels = new Map();
const pairFates = new Map();
const losers = new Map();

function pairKey(pair) {
  return `${pair[0]} ${pair[1]}`;
}

// The row of a pair that goes, if one does: "keep left" drops the right one.
function findLoser(pair, action) {
  return { left: pair[1], right: pair[0] }[action];
}

function apply(entry) {
  if (entry.pair) {
    const key = pairKey(entry.pair), before = pairFates.get(key);
    const lost = before && findLoser(entry.pair, before);
    if (lost !== undefined) losers.set(lost, losers.get(lost) - 1);
    pairFates.set(key, entry.action);
    const loser = findLoser(entry.pair, entry.action);
    if (loser !== undefined) losers.set(loser, (losers.get(loser) ?? 0) + 1);
    if (entry.action === "undecided") pairFates.delete(key);
    return;
  }
  const fate = Math.max(0, fateNames.indexOf(entry.action));
  for (const place of entry.places) {
    fates[place] = fate;
    if (fate === RELABEL) newLabels.set(place, entry.label);
    else newLabels.delete(place);
  }
}

function replay() {
  fates.fill(UNDECIDED);
  for (const each of [newLabels, pairFates, losers]) each.clear();
  log.forEach(apply);
}

function keep() {
  try {
    localStorage.setItem(storageKey, JSON.stringify(log));
  } catch {
    say("This browser cannot keep so many decisions: save them as a file before you close this page.");
  }
}

function record(entry) {
  log.push(entry);
  apply(entry);
  keep();
  changed("decision");
}

// Decides about rows. `action`: drop, ignore, relabel (with a label) or undecided.
export function decide(action, places, label) {
  const entry = { action, places: Array.from(places) };
  if (!entry.places.length) return say("Select images first.");
  if (action === "relabel") entry.label = label;
  record(entry);
  const what = { drop: "dropped", ignore: "ignored", relabel: `relabelled ${[label].flat().join(", ")}` }[action];
  say(`${countOf(entry.places.length, "row")}: ${what ?? "no decision"}.`);
}

// Decides about a pair. `action`: left, right or ignore; the same again takes it back.
export function decidePair(action, pair) {
  const isSame = pairFates.get(pairKey(pair)) === action;
  record({ action: isSame ? "undecided" : action, pair });
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
  return pairFates.get(pairKey(pair)) ?? "";
}

// What happens to a row, in words; empty where nothing does.
export function describeFate(place) {
  if (fates[place] === DROP || losers.get(place) > 0) return "drop";
  if (fates[place] === RELABEL) return `now ${[newLabels.get(place)].flat().join(", ")}`;
  return fateNames[fates[place]];
}

export function isDecided(place) {
  return fates[place] !== UNDECIDED || losers.get(place) > 0;
}

export function countDecided() {
  let found = [...pairFates.values()].filter((each) => each === "ignore").length;
  for (const [place, times] of losers) if (times > 0 && !fates[place]) found++;
  for (let i = 0; i < count; i++) if (fates[i]) found++;
  return found;
}

// The file. A place is the number of a row in the index of this very dataset.
export function encodeDecisions() {
  const drops = [], ignored = [], relabelled = new Map();
  for (let i = 0; i < count; i++) {
    if (fates[i] === DROP || losers.get(i) > 0) drops.push(i);
    else if (fates[i] === IGNORE) ignored.push(i);
    else if (fates[i] === RELABEL) {
      const key = JSON.stringify(newLabels.get(i));
      if (!relabelled.has(key)) relabelled.set(key, []);
      relabelled.get(key).push(i);
    }
  }
  const decisions = [];
  if (drops.length) decisions.push({ action: "drop", places: drops });
  for (const [key, places] of relabelled) {
    decisions.push({ action: "relabel", label: JSON.parse(key), places });
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
