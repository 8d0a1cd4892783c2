// What to do with rows and pairs: a log, from which everything else follows. It is kept in the
// browser, and saved as a file for `--decisions`, or copied.

import { facts, noLabel } from "./data.js";
import { changed, countOf, fill, format, h, openDialog, say } from "./dom.js";

const storageKey = `darkroom decided ${facts.fingerprint}`;
// What was kept; a frame, as in Kubeflow's UI, or a browser may forbid that.
let kept = null;
export let canBeKept = true;
try { kept = localStorage.getItem(storageKey); } catch { canBeKept = false; }
// A frame may forbid downloads, too, and then they fail without a word.
const mustBeCopied = !canBeKept || window !== window.top;
export const saveName = `${mustBeCopied ? "Copy" : "Save"} decisions`;
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

// Says what was done, when it is done.
function keep(tell) {
  replay();
  say(tell());
  try {
    if (canBeKept) localStorage.setItem(storageKey, JSON.stringify(log));
  } catch {
    const what = mustBeCopied ? "copy them" : "save them as a file";
    say(`This browser cannot keep so many decisions: ${what} before you close this page.`);
  }
  changed("decision");
}

function record(step, tell) {
  log.push(step);
  keep(tell);
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
  const all = groups.flatMap(([, places]) => places);
  if (!all.length) return;
  const to = groups.length > 1 ? "as suggested" : showValue(groups[0][0]);
  const what = { drop: "dropped", ignore: "ignored", relabel: `relabelled ${to}`, move: `moved to ${to}` };
  record(groups.map(([value, places]) => ({ action, places, value })), () => {
    // Those that a pair drops stay dropped, whatever else is decided about them.
    const stay = action === "drop" ? 0 : all.filter(isDropped).length;
    const rest = stay ? ` Dropped with a pair, and left so: ${format(stay)}.` : "";
    return `${countOf(all.length - stay, "row")}: ${what[action] ?? "no decision"}.${rest}`;
  });
}

// Of each pair that nothing is decided about, keeps the left image.
export function keepOfAll(pairs) {
  const step = [], lost = new Set();
  for (const pair of pairs) {
    // Where one is gone already, the other one stays: a chain of copies does not lose all.
    if (findPairFate(pair.join(" ")) || pair.some((place) => isDropped(place) || lost.has(place))) continue;
    step.push({ action: "left", pair });
    lost.add(pair[1]);
  }
  if (!step.length) return say("All these pairs are decided.");
  record(step, () => `${countOf(step.length, "pair")}: kept the left one.`);
}

// Decides about a pair. `action`: left, right or ignore; the same again takes it back.
export function decidePair(action, pair) {
  const isSame = findPairFate(pair.join(" ")) === action;
  const what = { left: "kept left", right: "kept right", ignore: "ignored" }[action];
  record([{ action: isSame ? "undecided" : action, pair }], () => `Pair: ${isSame ? "no decision" : what}.`);
}

export function undo() {
  if (!log.length) return say("There is nothing to undo.");
  log.pop();
  keep(() => "Undone.");
}

export function findPairFate(pair) {
  return pairFates.get(pair) ?? "";
}

function showValue(value) {
  return [value].flat().join(", ") || noLabel;
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

export function isDropped(place) {
  return Boolean(fates.get(place)?.drop);
}

// The value of each action on a row.
export function findFate(place) {
  return fates.get(place) ?? {};
}

function listIgnoredPairs() {
  return [...pairFates].filter(([, action]) => action === "ignore").map(([pair]) => pair.split(" ").map(Number));
}

export function countIgnored() {
  const rows = [...fates.values()].filter((fate) => fate.ignore).length, pairs = listIgnoredPairs().length;
  return [rows && countOf(rows, "image"), pairs && countOf(pairs, "pair")].filter(Boolean).join(", ");
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
  return { form: "darkroom decisions 1", dataset: facts.fingerprint, ...facts.place, decisions };
}

export function saveDecisions() {
  const escape = (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`;
  // ASCII: whatever it is copied through leaves it as it is.
  const text = `${JSON.stringify(encodeDecisions()).replace(/[^ -~]/g, escape)}\n`;
  if (mustBeCopied) return offerText(text);
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  h("a", { href: url, download: `decisions-${facts.fingerprint.slice(0, 8)}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  say("Saved. The next run takes the file: --decisions FILE.");
}

function offerText(text) {
  const field = h("textarea", { readonly: true, "aria-label": "Decisions" });
  const said = h("p", { role: "status" });
  const copy = async () => {
    field.select();
    try { await navigator.clipboard.writeText(text); } catch {
      if (!document.execCommand("copy")) return fill(said, "Selected: press Ctrl+C, or ⌘C.");
    }
    fill(said, "Copied.");
  };
  field.value = text;
  const what = "Add this line to your file of decisions. The next run takes the file by its option decisions.";
  openDialog("Copy decisions", h("p", {}, what), field, said, h("button", { class: "main", onclick: copy }, "Copy"));
}

export function openDecisions() {
  try { log = JSON.parse(kept) ?? []; } catch { /* It was damaged. */ }
  replay();
}
