// Images in a grid, which are selected by click or key, and decided about together.

import { count, showLabel, showSplit, tileAt } from "./data.js";
import { decide, describeFate } from "./decisions.js";
import { changed, fill, format, h, picture, say, showInSteps } from "./dom.js";
import { listShown } from "./filters.js";

const selectedRows = new Uint8Array(count);
export const selection = { size: 0 };

export function select(place, isSelected) {
  if (selectedRows[place] === Number(isSelected)) return;
  selectedRows[place] = Number(isSelected);
  selection.size += isSelected ? 1 : -1;
  changed("selection");
}

export function selectShown() {
  const places = listShown();
  selectedRows.fill(0);
  for (const place of places) selectedRows[place] = 1;
  selection.size = places.length;
  changed("selection");
  say(`${format(places.length)} rows selected.`);
}

export function clearSelection() {
  selectedRows.fill(0);
  selection.size = 0;
  changed("selection");
}

export function listSelected() {
  const places = [];
  for (let i = 0; i < count; i++) if (selectedRows[i]) places.push(i);
  return places;
}

// Decides about the selected rows, or about one when none is selected.
export function decideSelected(action, place, label) {
  const places = selection.size || place === undefined ? listSelected() : [place];
  decide(action, places, label);
  if (selection.size) clearSelection();
}

export function nameFile(tile) {
  return tile ? tile.uri.split(/[\\/]/).pop() || `row ${format(tile.row)}` : "no name";
}

// Split, label and file of a row, as a list of elements.
export function describeRow(place) {
  const tile = tileAt.get(place) ?? null;
  return [
    h("span", { class: "label" }, showLabel(place)),
    h("span", { class: `split ${showSplit(place)}` }, showSplit(place)),
    h("span", { class: "file", title: tile && `${tile.uri}${tile.size ? `, ${tile.size.join(" × ")}` : ""}` }, nameFile(tile)),
  ];
}

function makeTile(place, facts) {
  const known = Object.entries(facts ?? {}).filter(([, value]) => value !== null);
  const button = h(
    "button",
    {
      class: "tile",
      "data-place": place,
      "aria-pressed": "false",
      onclick: () => select(place, !selectedRows[place]),
    },
    picture(tileAt.get(place)),
    h("span", { class: "caption" }, describeRow(place), known.map(describeFact)),
    h("span", { class: "fate" }),
  );
  paintTile(button);
  return h("li", {}, button);
}

export function describeFact([name, value]) {
  const isFraction = typeof value === "number" && !Number.isInteger(value);
  const shown = isFraction ? value.toPrecision(3) : typeof value === "number" ? format(value) : value;
  return h("span", { class: "fact" }, `${name.replaceAll("_", " ")} ${shown}`);
}

function paintTile(button) {
  const place = Number(button.dataset.place), fate = describeFate(place);
  button.setAttribute("aria-pressed", String(selectedRows[place] === 1));
  button.classList.toggle("decided", fate !== "");
  fill(button.lastElementChild, fate);
}

export function paintTiles() {
  for (const button of document.querySelectorAll("button.tile")) paintTile(button);
}

// A grid of places; `factsAt` has what a finding says of some of them.
export function makeGrid(places, factsAt, step = 96) {
  const list = h("ul", { class: "tiles" });
  const more = showInSteps(list, places, (place) => makeTile(place, factsAt?.get(place)), step);
  return [list, more];
}
