// Puts the page together, and has its keys.

import { count, facts, labelNames, labelsOfSet, measures, points, setOf, showLabel, tileAt, tiles } from "./data.js";
import { canBeKept, openDecisions } from "./decisions.js";
import { nameFile } from "./describe.js";
import { countOf, fill, format, h, keyButton, nameKey, say, showInSteps } from "./dom.js";
import { clearFilters, filters, isShown, setFilter, tallies } from "./filters.js";
import { ask, makeBar } from "./bar.js";
import { makeHistogram } from "./histogram.js";
import { makeMap } from "./map.js";
import { makePairs, paintPairs } from "./pairs.js";
import { countLabels, filterByLabel, makeSidebar } from "./sidebar.js";
import { leaveAlike, makeGrid, paintTiles } from "./tiles.js";

const eachClass = 8;
const keyHelp = [
  ["Arrows", "next image or pair"], ["Space", "select"], ["a", "select all shown"], ["Esc", "clear"],
  ["e", "enlarge"], ["l", "more like this"], ["b", "back"], ["d", "drop"], ["i", "ignore"], ["r", "relabel"], ["t", "take suggestion"], ["m", "move"],
  ["k", "undecide"], ["u", "undo"], ["v", "effect"], ["1", "keep left"], ["2", "keep right"],
  ["H", "keep left of all pairs"], ["3", "both the left label"], ["4", "both the right one"], ["s", "side by side"],
  ["f", "flicker"], ["x", "difference"], ["n", "next finding"], ["0", "show all"], ["w", "whole map"],
  ["o", "only what is in view"], ["c", "no lasso"], ["+", "zoom in"], ["-", "zoom out"], ["S", "save"], ["?", "these keys"],
];

// What to do about a finding, by the buttons that are here; its own hint names commands.
function advise({ check, items, hint, suggested }) {
  // It is about many images, and not about those that show it.
  if (check === "drift") return hint;
  const pairs = items.map(({ places }) => places).filter((places) => places.length === 2);
  const ignore = "Ignore (i) says that they are no copies.";
  if (items.some((item) => item.facts["move to"])) return "Left to … (t) brings the left image to the split of its group.";
  if (items.some((item) => item.facts.objects)) return `The objects differ: keep the image that has the right ones (1, 2). ${ignore}`;
  if (facts.relabels === "one" && pairs.some(([one, other]) => showLabel(one) !== showLabel(other))) {
    const both = check === "label_conflicts"
      ? "keep the image that has the right one (1, 2); or give it to both (Both …), then keep one"
      : "Both … gives both images the right one, or keep the image that has it (1, 2)";
    return `One of the labels is wrong: ${both}. ${ignore}`;
  }
  if (pairs.length) {
    return `Keep left (1) or Keep right (2) drops the other image, Keep left of all (H) the right one of each pair; look which is the original. ${ignore}`;
  }
  if (suggested.size && facts.relabels) {
    return "Take suggestion (t) gives an image the suggested label, Relabel (r) another one. Ignore (i) says that its label is right.";
  }
  return items.length ? "Drop (d) leaves an image out of the next run. Ignore (i) says that it is as it should be." : hint;
}

// Buttons that show the images with one of the problems of a finding, to decide about all of them.
function makeProblems({ items }) {
  const placesOf = new Map();
  for (const { places: [place], facts } of items) {
    for (const name of facts.problem?.split(", ") ?? []) placesOf.set(name, [...placesOf.get(name) ?? [], place]);
  }
  if (placesOf.size < 2) return null;
  const buttons = [...placesOf].map(([name, places]) => {
    const found = new Set(places), isChosen = filters.problem === name;
    const choose = () => {
      setFilter("problem", name, isChosen ? undefined : (place) => found.has(place));
      document.querySelector(`[data-problem="${CSS.escape(name)}"]`).focus();
    };
    return h("button", { "data-problem": name, "aria-pressed": String(isChosen), onclick: choose }, `${name} ${format(places.length)}`);
  });
  return h("div", { class: "modes", role: "group", "aria-label": "Problems" }, buttons);
}

function makeFindingHeader(finding) {
  const listed = finding.items.length;
  const more = finding.count > listed && listed ? ` The ${format(listed)} worst are listed.` : "";
  return h("section", { class: `finding ${finding.policy}`, "aria-label": finding.title },
    h("h2", {}, h("span", { class: `pill ${finding.policy}` }, finding.policy), finding.title),
    h("p", {}, finding.message, more),
    h("p", { class: "note" }, advise(finding)),
    makeProblems(finding),
    finding.lines.length ? h("ul", { class: "lines" }, finding.lines.map((line) => h("li", {}, line))) : null);
}

// Eight images of each class, from all that have a picture of it.
function makeOverview() {
  const placesOf = labelNames.map(() => []);
  for (const { place } of tiles) for (const label of labelsOfSet[setOf[place]]) placesOf[label].push(place);
  const labels = [...labelNames.keys()].filter((label) => placesOf[label].length);
  if (labels.length < 2) return makeGrid(tiles.map((tile) => tile.place));
  const list = h("div"), found = countLabels();
  const more = showInSteps(list, labels, (label) => {
    const places = placesOf[label], step = Math.max(1, Math.floor(places.length / eachClass));
    const some = places.filter((_, at) => at % step === 0).slice(0, eachClass);
    const name = h("button", { class: "class", onclick: () => filterByLabel(label) }, labelNames[label]);
    const heading = h("h2", {}, name, h("span", { class: "number" }, countOf(found[label], "image")));
    return h("section", { class: "row" }, heading, makeGrid(some)[0]);
  }, 12);
  return [list, more];
}

function makeView() {
  const finding = filters.finding, parts = [];
  const items = (finding?.items ?? []).filter((item) => item.places.some(isShown));
  const isFiltered = Object.keys(filters).length > 0;
  const hasHidden = Object.keys(filters).some((name) => name !== "finding" || finding.items.length > 0);
  if (isFiltered) {
    const clear = keyButton("Show all images", "0", clearFilters);
    const [like] = filters.alike ?? [];
    const chosen = [...[...filters.label ?? []].map((label) => labelNames[label]), ...[...filters.split ?? []].map((split) => facts.splits[split])];
    const what = like !== undefined ? `: ${nameFile(tileAt.get(like))} and those like it` : chosen.length ? `: ${chosen.join(", ")}` : "";
    const back = like !== undefined && keyButton("Back", "b", leaveAlike);
    parts.push(h("p", { class: "shown" }, `${format(tallies.shown)} of ${countOf(count, "image")}${what}`, back, clear));
  }
  if (finding && items.length) {
    const pairs = items.filter((item) => item.places.length === 2);
    const single = items.filter((item) => item.places.length === 1);
    if (pairs.length) parts.push(makePairs(pairs));
    if (single.length) {
      const said = new Map(single.map((item) => [item.places[0], []]));
      for (const item of single) said.get(item.places[0]).push(item.facts);
      parts.push(makeGrid([...said.keys()], said));
    }
  } else if (hasHidden) {
    const places = (filters.alike ?? tiles.map((tile) => tile.place)).filter(isShown);
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
  const { key } = event, dialog = event.target.closest("dialog");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (dialog) {
    // What is enlarged can be decided at once.
    if (key.length > 1 || key === " " || !dialog.querySelector("figure")) return;
    dialog.close();
    if (key === "e") return;
  }
  const target = document.activeElement;
  if (target.matches("input")) {
    if (key !== "Escape") return;
    target.value = "";
    target.dispatchEvent(new Event("input"));
    target.blur();
  } else if (key.startsWith("Arrow")) return moveFocus(event);
  else if (key === "?") showKeys();
  else if (key === "r") ask("relabel");
  else if (key === "m") ask("move");
  else if (key === "n") openNext();
  else if (!pressButton(key, target.closest("li"))) return;
  event.preventDefault();
}

function showKeys() {
  document.querySelector(".filters").open = true;
  const keys = document.querySelector(".keys");
  keys.open = true;
  keys.scrollIntoView({ block: "nearest" });
}

// Opens the finding after the one that is shown.
function openNext() {
  const all = [...document.querySelectorAll(".findings button")];
  const next = all[all.findLastIndex((each) => each.getAttribute("aria-pressed") === "true") + 1];
  if (!next) return say("There is no further finding.");
  next.click();
  say(next.querySelector(".name").textContent);
}

// Presses the button that says this key: of the pair or image that has the focus, else of all.
function pressButton(key, item) {
  const named = `[aria-keyshortcuts~="${CSS.escape(nameKey(key))}"]`, own = item?.querySelector(named);
  const button = own ?? document.querySelector(`.modes ${named}, .shown ${named}, .map[open] ${named}, #bar ${named}`);
  // Never one that is perhaps not seen: the first key shows it, the next one decides.
  if (!button && document.querySelector(`.pair ${named}`)) return focusFirst("The first key takes this pair, the next one decides.");
  if (!button && keyHelp.some(([each]) => each === key)) say(`Nothing here has the key ${key}.`);
  button?.click();
  if (own?.dataset.action) item.nextElementSibling?.querySelector("[data-action]").focus();
  return button;
}

// Shows the first pair that is not decided, or the first image.
function focusFirst(what) {
  const first = document.querySelector(".pair:not(.decided) [data-action=left], .tile");
  if (first && what) say(what);
  first?.closest("li").scrollIntoView({ block: "center" });
  first?.focus({ preventScroll: true });
  return first;
}

// Left and right go to the one before and the next one, up and down to those in the same column.
function moveFocus(event) {
  const each = ".tile, [data-action=left]", from = event.target.closest("li")?.querySelector(each);
  if (!from) return event.target.closest("body, .findings button") === event.target && focusFirst() && event.preventDefault();
  const all = [...document.querySelectorAll(each)], at = all.indexOf(from);
  const isBack = event.key === "ArrowUp" || event.key === "ArrowLeft";
  const rest = isBack ? all.slice(0, at).reverse() : all.slice(at + 1);
  const { left, top, width } = from.getBoundingClientRect();
  const isBelow = (other) => {
    const box = other.getBoundingClientRect();
    return Math.abs(box.left - left) < width / 2 && box.top !== top;
  };
  const next = event.key === "ArrowLeft" || event.key === "ArrowRight" ? rest[0] : rest.find(isBelow);
  next?.focus();
  event.preventDefault();
}

function start() {
  openDecisions();
  // The finding is above the map, and what is shown of it below.
  const found = h("div"), view = h("div", { id: "images" });
  const sidebar = [
    ...makeSidebar(),
    makeHistogram("side", "Shorter side", "pixels"),
    makeHistogram("brightness", "Brightness", "mean luminance, 0 to 254"),
    ...measures.map((each) => makeHistogram(each.name, each.title, each.unit)),
  ];
  const map = points ? makeMap() : null;
  const bar = makeBar();
  const verdict = document.getElementById("verdict");
  verdict.className = facts.tone;
  fill(verdict, facts.verdict);
  const pictured = tiles.filter((tile) => tile.picture).length;
  fill(document.getElementById("summary"), `${countOf(count, "image")}, ${format(pictured)} with a picture here. ${facts.scope}`);
  const warning = "Decisions are not kept here, and no file can be saved: copy them before you leave this page.";
  if (!canBeKept) document.getElementById("top").append(h("p", { id: "unkept", class: "note wrong" }, warning));
  const keys = h("details", { class: "keys" }, h("summary", {}, "Keys"),
    h("dl", {}, keyHelp.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)))));
  const filtersBox = h("details", { class: "filters" }, h("summary", {}, "Findings and filters"),
    sidebar.map((each) => each.node), keys);
  filtersBox.open = matchMedia("(min-width: 900px)").matches;
  document.getElementById("side").append(filtersBox);
  document.getElementById("view").append(found, ...(map ? [map.node] : []), view);
  document.getElementById("bar").append(...bar.node);
  // Not a link: in a frame, even one to a part of the page loads another page.
  document.querySelector(".skip").onclick = () => document.getElementById("view").focus();
  const paintCounts = () => { for (const each of [...sidebar, bar]) each.paint(); };
  const paintFilters = () => {
    paintCounts();
    map?.paint();
    fill(found, filters.finding ? makeFindingHeader(filters.finding) : null);
    fill(view, makeView());
  };
  document.addEventListener("filter", paintFilters);
  document.addEventListener("selection", () => { paintTiles(); bar.paint(); });
  document.addEventListener("decision", () => { paintTiles(); paintPairs(); paintCounts(); });
  document.addEventListener("keydown", actByKey);
  paintFilters();
}

start();
performance.mark("ready");
