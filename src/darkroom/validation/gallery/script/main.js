// Puts the page together, and has its keys.

import { count, facts, points, tileAt, tiles } from "./data.js";
import { openDecisions, undo } from "./decisions.js";
import { enlarge } from "./describe.js";
import { countOf, fill, format, h, showInSteps, when } from "./dom.js";
import { clearFilters, filters, isShown, tallies } from "./filters.js";
import { ask, makeBar } from "./bar.js";
import { makeHistogram } from "./histogram.js";
import { makeMap } from "./map.js";
import { actOnPair, makePairs, paintPairs, setPairMode } from "./pairs.js";
import { countLabels, filterByLabel, makeSidebar, nameLabel } from "./sidebar.js";
import { clearSelection, decideSelected, makeGrid, paintTiles, selectShown, takeSuggested } from "./tiles.js";

const eachClass = 8;
const keyHelp = [
  ["Arrows", "next image or pair"], ["Space", "select"], ["a", "select all shown"], ["Esc", "clear"],
  ["e", "enlarge"], ["d", "drop"], ["i", "ignore"], ["r", "relabel"], ["t", "take suggestion"], ["m", "move"],
  ["k", "undecide"], ["u", "undo"], ["1", "keep left"], ["2", "keep right"], ["f", "flicker"], ["x", "difference"],
];

function makeFindingHeader(finding) {
  const listed = finding.items.length;
  const more = finding.count > listed && listed ? `The ${format(listed)} worst are listed. ` : "";
  return h(
    "section",
    { class: `finding ${finding.policy}`, "aria-label": finding.title },
    h("h2", {}, h("span", { class: `pill ${finding.policy}` }, finding.policy), finding.title),
    h("p", {}, finding.message, more && ` ${more}`),
    finding.hint ? h("p", { class: "note" }, finding.hint) : null,
    finding.lines.length ? h("ul", { class: "lines" }, finding.lines.map((line) => h("li", {}, line))) : null,
  );
}

// Eight images of each class, from all that have a picture of it.
function makeOverview() {
  const byLabel = new Map();
  for (const tile of tiles) {
    const key = tile.label;
    if (!byLabel.has(key)) byLabel.set(key, []);
    byLabel.get(key).push(tile.place);
  }
  const found = countLabels(tallies.label);
  const labels = found.map((_, label) => label).filter((label) => byLabel.has(nameLabel(label)));
  if (labels.length < 2) return makeGrid(tiles.map((tile) => tile.place));
  const list = h("div");
  const more = showInSteps(list, labels, (label) => {
    const places = byLabel.get(nameLabel(label));
    const some = Array.from({ length: Math.min(eachClass, places.length) }, (_, at) =>
      places[Math.floor(at * places.length / Math.min(eachClass, places.length))]);
    const name = h("button", { class: "class", onclick: () => filterByLabel(label) }, nameLabel(label));
    const heading = h("h2", {}, name, h("span", { class: "number" }, countOf(found[label], "image")));
    return h("section", { class: "row" }, heading, makeGrid(some)[0]);
  }, 12);
  return [list, more];
}

function makeView() {
  const finding = filters.finding, parts = [];
  if (finding) parts.push(makeFindingHeader(finding));
  const items = (finding?.items ?? []).filter((item) => item.places.some(isShown));
  const isFiltered = Object.keys(filters).length > 0;
  if (isFiltered) {
    const clear = h("button", { onclick: clearFilters }, "Show all images");
    parts.push(h("p", { class: "shown" }, `${format(tallies.shown)} of ${countOf(count, "image")}`, clear));
  }
  if (finding && items.length) {
    const pairs = items.filter((item) => item.places.length === 2);
    const single = items.filter((item) => item.places.length === 1);
    if (pairs.length) parts.push(makePairs(pairs));
    if (single.length) {
      const said = new Map(single.map((item) => [item.places[0], item.facts]));
      parts.push(makeGrid([...said.keys()], said));
    }
  } else if (isFiltered) {
    const places = tiles.map((tile) => tile.place).filter(isShown);
    const missing = tallies.shown - places.length;
    parts.push(makeGrid(places));
    if (missing > 0) {
      parts.push(h("p", { class: "note" }, `${countOf(missing, "more image")} without a picture here. `
        + "Decisions about all of them are possible: select all."));
    }
  } else parts.push(makeOverview());
  return parts;
}

function actByKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, dialog")) return;
  const card = event.target.closest(".pair"), tile = event.target.closest("button.tile");
  const place = tile ? Number(tile.dataset.place) : undefined;
  const { key } = event;
  const pairKeys = { 1: "left", 2: "right", i: "ignore" };
  const rowKeys = { d: "drop", i: "ignore", k: "undecided" };
  if (card && pairKeys[key]) {
    actOnPair(card, pairKeys[key]);
    card.nextElementSibling?.querySelector("[data-action]").focus();
  } else if (card && "et".includes(key)) card.querySelector(`[aria-keyshortcuts=${key}]`)?.click();
  else if (tile && key === "e") enlarge([place]);
  else if (key === "f") setPairMode("flicker");
  else if (key === "x") setPairMode("difference");
  else if (key === "u") undo();
  else if (key === "a") selectShown();
  else if (key === "Escape") clearSelection();
  else if (rowKeys[key]) decideSelected(rowKeys[key], place);
  else if (key === "t") takeSuggested(place);
  else if (key === "r") ask("relabel", place);
  else if (key === "m") ask("move", place);
  else if (key.startsWith("Arrow")) return moveFocus(event, card, tile);
  else return;
  event.preventDefault();
}

function moveFocus(event, card, tile) {
  const isBack = event.key === "ArrowUp" || event.key === "ArrowLeft";
  let next = null;
  if (card && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    const other = isBack ? card.previousElementSibling : card.nextElementSibling;
    next = other?.querySelector(`[data-action="${event.target.dataset.action ?? "left"}"]`);
  } else if (tile) {
    const all = [...document.querySelectorAll("button.tile")], at = all.indexOf(tile);
    const box = tile.getBoundingClientRect();
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") next = all[at + (isBack ? -1 : 1)];
    else {
      const rest = isBack ? all.slice(0, at).reverse() : all.slice(at + 1);
      next = rest.find((each) => {
        const other = each.getBoundingClientRect();
        return Math.abs(other.left - box.left) < box.width / 2 && other.top !== box.top;
      });
    }
  }
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function start() {
  openDecisions();
  const view = h("div", { id: "images" });
  const sidebar = [
    ...makeSidebar(),
    makeHistogram("side", "Shorter side", "pixels"),
    makeHistogram("brightness", "Brightness", "mean luminance, 0 to 254"),
  ];
  const map = points ? makeMap() : null;
  const bar = makeBar();
  const verdict = document.getElementById("verdict");
  verdict.className = facts.tone;
  fill(verdict, facts.verdict);
  const pictured = tiles.filter((tile) => tile.picture).length;
  fill(document.getElementById("summary"), `${countOf(count, "image")}, ${format(pictured)} with a picture here. ${facts.scope}`);
  const keys = h("details", { class: "keys" }, h("summary", {}, "Keys"),
    h("dl", {}, keyHelp.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)))));
  const filtersBox = h("details", { class: "filters" }, h("summary", {}, "Findings and filters"),
    sidebar.map((each) => each.node).filter(Boolean), keys);
  filtersBox.open = matchMedia("(min-width: 900px)").matches;
  document.getElementById("side").append(filtersBox);
  document.getElementById("view").append(...(map ? [map.node] : []), view);
  document.getElementById("bar").append(...bar.node);
  const paintFilters = () => {
    for (const each of sidebar) each.paint();
    map?.paint();
    bar.paint();
    view.replaceChildren(...makeView().flat(Infinity).filter(Boolean));
  };
  when("filter", paintFilters);
  when("selection", () => { paintTiles(); bar.paint(); });
  when("decision", () => { paintTiles(); paintPairs(); bar.paint(); sidebar[1].paint(); });
  document.addEventListener("keydown", actByKey);
  paintFilters();
}

start();
performance.mark("ready");
