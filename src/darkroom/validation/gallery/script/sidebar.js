// What is on the left: findings, splits, labels and decisions, each with its count and a filter.

import { count, facts, mapColors, points, setOf, splitOf } from "./data.js";
import { countDecided, isDecided } from "./decisions.js";
import { fill, format, h } from "./dom.js";
import { filters, setFilter, tallies } from "./filters.js";

const mostLabels = 40;
const noLabel = facts.labels.length;
const labelNames = [...facts.labels, "no label"];
// The labels of each set; an image without labels has the last one.
const labelsOfSet = facts.sets.map((each) => (each.length ? each : [noLabel]));

function filterByFinding(finding) {
  if (!finding || filters.finding === finding) return setFilter("finding");
  const isOf = new Uint8Array(count);
  for (const item of finding.items) for (const place of item.places) isOf[place] = 1;
  // A finding about classes or the whole dataset names no rows, and hides none.
  setFilter("finding", finding, finding.items.length ? (place) => isOf[place] === 1 : () => true);
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

function filterBySplit(split) {
  toggleValue("split", split, (chosen) => (place) => chosen.has(splitOf[place]));
}

export function nameLabel(label) {
  return labelNames[label];
}

export function countLabels(bySet) {
  const found = new Array(labelNames.length).fill(0);
  labelsOfSet.forEach((labels, set) => {
    for (const label of labels) found[label] += bySet[set];
  });
  return found;
}

// A button of a list: a name, a number, and a bar that is as long as its share of the largest.
function makeChoice(name, act, pill, color) {
  const number = h("span", { class: "number" }), bar = h("span", { class: "bar", "aria-hidden": "true" });
  const dot = color ? h("span", { class: "dot", "aria-hidden": "true" }) : null;
  dot?.style.setProperty("background", color);
  const button = h(
    "button",
    { class: "choice", "aria-pressed": "false", onclick: act },
    pill ? h("span", { class: `pill ${pill}` }, pill) : null,
    dot,
    h("span", { class: "name" }, name),
    number,
    bar,
  );
  const paint = (value, largest, isChosen) => {
    fill(number, format(value));
    bar.style.setProperty("--share", String(largest ? value / largest : 0));
    button.setAttribute("aria-pressed", String(isChosen));
    button.classList.toggle("empty", value === 0);
  };
  return { item: h("li", {}, button), paint, name };
}

function makeSection(title, id, ...content) {
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), content);
}

function makeFindings() {
  const choices = facts.findings.map((finding) =>
    makeChoice(finding.title, () => filterByFinding(finding), finding.policy),
  );
  const paint = () =>
    choices.forEach((each, at) =>
      each.paint(facts.findings[at].count, 0, filters.finding === facts.findings[at]),
    );
  const list = h("ul", { class: "choices findings" }, choices.map((each) => each.item));
  const none = h("p", { class: "note" }, "No finding.");
  return { paint, node: makeSection("Findings", "findings", choices.length ? list : none) };
}

function makeSplits() {
  const choices = facts.splits.map((split, at) => makeChoice(split, () => filterBySplit(at)));
  const paint = () => {
    const largest = Math.max(...tallies.split);
    choices.forEach((each, at) => each.paint(tallies.split[at], largest, Boolean(filters.split?.has(at))));
  };
  const list = h("ul", { class: "choices" }, choices.map((each) => each.item));
  return { paint, node: makeSection("Splits", "splits", list) };
}

function makeLabels() {
  const all = countLabels(tallies.set);
  const labels = labelNames.map((_, at) => at).filter((at) => all[at] > 0);
  const choices = new Map(
    labels.map((label) => {
      const color = points && mapColors[label % mapColors.length];
      return [label, makeChoice(labelNames[label], () => filterByLabel(label), "", color)];
    }),
  );
  const list = h("ul", { class: "choices" }), more = h("p", { class: "note" });
  const search = h("input", {
    type: "search", placeholder: "Find a label", "aria-label": "Find a label", oninput: () => paint(),
  });
  const paint = () => {
    const found = countLabels(tallies.set), text = search.value.toLowerCase();
    const matching = labels.filter((label) => labelNames[label].toLowerCase().includes(text));
    const isChosen = (label) => Boolean(filters.label?.has(label));
    matching.sort((a, b) => isChosen(b) - isChosen(a) || a - b);
    const shown = matching.slice(0, mostLabels);
    const largest = Math.max(...shown.map((label) => found[label]), 1);
    if (list.childElementCount !== shown.length || labels.length > mostLabels) {
      list.replaceChildren(...shown.map((label) => choices.get(label).item));
    }
    for (const label of shown) choices.get(label).paint(found[label], largest, isChosen(label));
    fill(more, matching.length > shown.length ? `and ${format(matching.length - shown.length)} more` : "");
  };
  const isLong = labels.length > mostLabels;
  if (labels.length < 2) return { paint: () => {}, node: null };
  return { paint, node: makeSection("Labels", "labels", isLong ? search : null, list, more) };
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
  return [makeFindings(), makeDecided(), makeSplits(), makeLabels()];
}
