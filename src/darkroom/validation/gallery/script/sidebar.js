// What is on the left: findings, splits, labels and decisions, each with its count and a filter.

import { confusionOf, confusions, count, facts, points, setOf, splitOf, tiles } from "./data.js";
import { colors, hasShapes, labelNames, labelsOfSet } from "./data.js";
import { countDecided, isDecided } from "./decisions.js";
import { fill, format, h } from "./dom.js";
import { filters, setFilter, tallies } from "./filters.js";

const mostChoices = 40;

function filterByFinding(finding) {
  if (filters.problem) setFilter("problem");
  if (filters.finding === finding) return setFilter("finding");
  const isOf = new Uint8Array(count);
  for (const item of finding.items) for (const place of item.places) isOf[place] = 1;
  // A finding about classes or the whole dataset names no rows, and hides none.
  setFilter("finding", finding, finding.items.length ? (place) => isOf[place] === 1 : () => true);
}

function openFinding(finding) {
  filterByFinding(finding);
  // On a phone it is below this list.
  if (filters.finding && matchMedia("(max-width: 899px)").matches) document.querySelector(".finding")?.scrollIntoView();
}

// Adds a value to the values that pass, or takes it out; without values, all rows pass.
function toggleValue(name, value, makeTest) {
  const chosen = new Set(filters[name] ?? []);
  if (!chosen.delete(value)) chosen.add(value);
  setFilter(name, chosen, chosen.size ? makeTest(chosen) : undefined);
}

export function filterByLabel(label) {
  toggleValue("label", label, (chosen) => {
    const passes = labelsOfSet.map((labels) => labels.some((each) => chosen.has(each)));
    return (place) => passes[setOf[place]];
  });
}

function filterByValue(name, value, valueOf) {
  toggleValue(name, value, (chosen) => (place) => chosen.has(valueOf[place]));
}

// How many rows that the other filters let pass have each label.
export function countLabels() {
  const found = new Array(labelNames.length).fill(0);
  labelsOfSet.forEach((labels, set) => {
    for (const label of labels) found[label] += tallies.label[set];
  });
  return found;
}

// A color beside its name.
export function makeDot(color) {
  const dot = h("span", { class: "dot", "aria-hidden": "true" });
  dot.style.setProperty("background", color);
  return dot;
}

// A button of a list: a name, a number, and a bar that is as long as its share of the largest.
function makeChoice(name, act, pill, color) {
  const number = h("span", { class: "number" }), bar = h("span", { class: "bar", "aria-hidden": "true" });
  const button = h("button", { class: "choice", "aria-pressed": "false", onclick: act },
    pill ? h("span", { class: `pill ${pill}` }, pill) : null,
    color ? makeDot(color) : null,
    h("span", { class: "name" }, name),
    number,
    bar);
  const paint = (value, largest, isChosen) => {
    fill(number, format(value));
    bar.style.setProperty("--share", String(largest ? value / largest : 0));
    button.setAttribute("aria-pressed", String(isChosen));
    button.classList.toggle("empty", value === 0);
  };
  return { item: h("li", {}, button), paint };
}

function makeSection(title, id, ...content) {
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), content);
}

function makeFindings() {
  const choices = facts.findings.map((finding) =>
    makeChoice(finding.title, () => openFinding(finding), finding.policy),
  );
  const paint = () =>
    choices.forEach((each, at) =>
      each.paint(facts.findings[at].count, 0, filters.finding === facts.findings[at]),
    );
  const list = h("ul", { class: "choices findings" }, choices.map((each) => each.item));
  const none = h("p", { class: "note" }, "No finding.");
  return { paint, node: makeSection("Findings", "findings", choices.length ? list : none) };
}

// A section with the values of a filter, those with most rows first where they are ranked.
function makeFilter(title, filter, { values, name, count, toggle, color, isRanked }) {
  const choices = new Map(), list = h("ul", { class: "choices" }), more = h("p", { class: "note" });
  const what = `Find in ${title.toLowerCase()}`;
  const search = h("input", { type: "search", placeholder: what, "aria-label": what, oninput: () => paint() });
  const find = (value) => {
    if (!choices.has(value)) choices.set(value, makeChoice(name(value), () => toggle(value), "", color?.(value)));
    return choices.get(value);
  };
  const paint = () => {
    const found = count(), text = search.value.toLowerCase(), focused = document.activeElement;
    const isChosen = (value) => Boolean(filters[filter]?.has(value));
    const hasRows = (value) => !isRanked || found[value] > 0 || isChosen(value);
    const matching = values.filter((value) => hasRows(value) && (!text || name(value).toLowerCase().includes(text)));
    const isCut = matching.length > mostChoices;
    matching.sort((a, b) =>
      (isCut && isChosen(b) - isChosen(a)) || (isRanked && found[b] - found[a]) || a - b);
    const shown = matching.slice(0, mostChoices);
    const largest = Math.max(...shown.map((value) => found[value]), 1);
    list.replaceChildren(...shown.map((value) => find(value).item));
    if (list.contains(focused)) focused.focus({ preventScroll: true });
    for (const value of shown) find(value).paint(found[value], largest, isChosen(value));
    fill(more, isCut ? `and ${format(matching.length - mostChoices)} more` : "");
  };
  const hasSearch = values.length > mostChoices && !isRanked;
  return { paint, node: makeSection(title, `${filter}s`, hasSearch ? search : null, list, more) };
}

function makeSplits() {
  return makeFilter("Splits", "split", {
    values: [...facts.splits.keys()], name: (split) => facts.splits[split], count: () => tallies.split,
    toggle: (split) => filterByValue("split", split, splitOf),
  });
}

function makeLabels() {
  const all = countLabels(), values = [...labelNames.keys()].filter((label) => all[label] > 0);
  return values.length < 2 ? null : makeFilter("Labels", "label", {
    values, name: (label) => labelNames[label], count: countLabels, toggle: filterByLabel,
    color: (label) => (points || hasShapes) && colors[label % colors.length],
  });
}

// Which labels a model takes for which.
function makeMistakes() {
  const show = (label) => h("span", {}, facts.labels[label]);
  return confusions.length < 2 ? null : makeFilter("Mistakes of the model", "mistake", {
    values: [...confusions.keys()].slice(1), count: () => tallies.mistake, isRanked: true,
    name: (number) => [show(confusions[number][0]), " taken for ", show(confusions[number][1])],
    toggle: (number) => filterByValue("mistake", number, confusionOf),
  });
}

// Only images with a tile have a name here.
function makeNames() {
  const what = "Name of a file, or a row";
  const input = h("input", { type: "search", placeholder: what, "aria-label": what, oninput: search });
  function search() {
    const text = input.value.trim().toLowerCase();
    const found = tiles.filter((tile) => tile.uri.toLowerCase().includes(text) || String(tile.row) === text);
    const places = new Set(found.map((tile) => tile.place));
    setFilter("name", text, text ? (place) => places.has(place) : undefined);
  }
  const paint = () => { if (!filters.name) input.value = ""; };
  return { paint, node: makeSection("Names", "names", input) };
}

function makeDecided() {
  const choice = makeChoice("Decided", () => {
    if (filters.decided) setFilter("decided");
    else setFilter("decided", true, isDecided);
  });
  const paint = () => choice.paint(countDecided(), 0, Boolean(filters.decided));
  const node = makeSection("Decisions", "decided", h("ul", { class: "choices" }, choice.item));
  return { paint, node };
}

// Returns the parts of the side bar: each has a `node`, and `paint` for when counts change.
export function makeSidebar() {
  return [makeFindings(), makeDecided(), makeMistakes(), makeSplits(), makeLabels(), makeNames()].filter(Boolean);
}
