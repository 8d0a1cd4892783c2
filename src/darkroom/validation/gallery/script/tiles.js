// Images in a grid, which are selected by click or key, and decided about together.

import { count, facts, showLabel, tellLabel, tileAt } from "./data.js";
import { decide, describeFate, groupPlaces } from "./decisions.js";
import { describeFact, describeRow, enlarge, nameFile } from "./describe.js";
import { changed, fill, format, h, picture, say, showInSteps } from "./dom.js";
import { filters, isShown, listShown } from "./filters.js";

const selectedRows = new Uint8Array(count);
export const selection = { size: 0 };

function select(place, isSelected) {
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

// How many of the selected rows the filters hide.
export function countHidden() {
  let hidden = 0;
  if (selection.size) for (let i = 0; i < count; i++) if (selectedRows[i] && !isShown(i)) hidden++;
  return hidden;
}

// The selected rows; or one, when none is selected.
function listChosen(place) {
  if (!selection.size && place !== undefined) return [place];
  const places = [];
  for (let i = 0; i < count; i++) if (selectedRows[i]) places.push(i);
  if (!places.length) say("Select images first.");
  return places;
}

export function decideSelected(action, place, value) {
  decide(action, [[value, listChosen(place)]]);
  if (selection.size) clearSelection();
}

// The label that is probably right: of the finding that is shown, else of any, else the model's.
function suggest(place) {
  const found = [filters.finding, ...facts.findings].find((each) => each?.suggested.has(place));
  return found?.suggested.get(place) ?? tellLabel(place);
}

export function takeSuggested(place) {
  const chosen = listChosen(place);
  const groups = groupPlaces(chosen, (each) => {
    const label = suggest(each);
    return label === showLabel(each) ? undefined : label;
  });
  if (chosen.length && !groups.length) return say("No other label is suggested.");
  decide("relabel", groups);
  if (selection.size) clearSelection();
}

function makeTile(place, facts) {
  const known = Object.entries(facts ?? {}).filter(([, value]) => value !== null);
  const tile = h(
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
  // By keys it is reached from the tile: with "e".
  const large = h("button", {
    class: "large", tabindex: "-1", "aria-label": `Enlarge ${nameFile(tileAt.get(place))}`,
    onclick: () => { tile.focus(); enlarge([place]); },
  }, "⤢");
  paintTile(tile);
  return h("li", {}, tile, large);
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
