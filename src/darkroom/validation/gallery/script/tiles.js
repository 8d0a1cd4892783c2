// Images in a grid, which are selected by click or key, and decided about together.

import { count, facts, hasAlike, showLabel, tellLabel, tileAt } from "./data.js";
import { decide, describeFate, groupPlaces, isDropped } from "./decisions.js";
import { describeFact, describeRow, enlarge, nameFile } from "./describe.js";
import { changed, fill, format, h, picture, say, showInSteps } from "./dom.js";
import { filters, goBack, isShown, showAlike } from "./filters.js";

export const selection = new Set();

function toggle(place) {
  if (!selection.delete(place)) selection.add(place);
  changed("selection");
}

export function selectShown() {
  selection.clear();
  for (let i = 0; i < count; i++) if (isShown(i)) selection.add(i);
  changed("selection");
  say(`${format(selection.size)} rows selected.`);
}

export function clearSelection() {
  selection.clear();
  changed("selection");
}

// How many of the selected rows the filters hide.
export function countHidden() {
  let hidden = 0;
  for (const place of selection) if (!isShown(place)) hidden++;
  return hidden;
}

// The row of the image that has the focus.
export function findFocused() {
  return document.activeElement.closest(".tile")?.dataset.place;
}

// The selected rows; or one, when none is selected.
function listChosen(place) {
  if (!selection.size && place !== undefined) return [Number(place)];
  if (!selection.size) say("Select images first.");
  return [...selection];
}

export function decideSelected(action, value, place = findFocused()) {
  decide(action, [[value, listChosen(place)]]);
  if (selection.size) clearSelection();
}

// The label that is probably right: of the finding that is shown, else of any, else the model's.
function suggest(place) {
  const found = [filters.finding, ...facts.findings].find((each) => each?.suggested.has(place));
  return found?.suggested.get(place) ?? tellLabel(place);
}

export function takeSuggested() {
  const chosen = listChosen(findFocused());
  const groups = groupPlaces(chosen, (each) => {
    const label = suggest(each);
    // What is dropped stays so: a label for it would change nothing, and is no label to count.
    return label === showLabel(each) || isDropped(each) ? undefined : label;
  });
  if (chosen.length && !groups.length) return say("No other label is suggested.");
  decide("relabel", groups);
  if (selection.size) clearSelection();
}

function makeTile(place, said = []) {
  const tile = h(
    "button",
    { class: "tile", "data-place": place, onclick: () => toggle(place) },
    picture(tileAt.get(place)),
    h("span", { class: "caption" }, describeRow(place), said.map((each) => Object.entries(each).map(describeFact))),
    h("span", { class: "fate" }),
  );
  const over = (key, name, sign, act) => h("button", {
    class: "over", tabindex: "-1", title: `${name} (${key})`, "aria-keyshortcuts": key,
    "aria-label": `${name} ${nameFile(tileAt.get(place))}`, onclick: () => { tile.focus(); act(); },
  }, sign);
  paintTile(tile);
  return h("li", {}, tile,
    h("span", { class: "overs" },
      hasAlike ? over("l", "More like", "≈", () => showLike(place)) : null,
      over("e", "Enlarge", "⤢", () => enlarge([place]))));
}

function showLike(place) {
  const alike = tileAt.get(place)?.alike ?? [];
  if (!alike.length) return say("This image has no features.");
  showAlike([place, ...alike]);
  focusTile(place);
  say(`${format(alike.length)} images like it, the most alike first.`);
}

// Shows again what was shown before the images like one.
export function leaveAlike() {
  const [place] = filters.alike;
  goBack();
  focusTile(place);
  say("Back.");
}

function focusTile(place) {
  document.querySelector(`.tile[data-place="${place}"]`)?.focus();
}

function paintTile(button) {
  const place = Number(button.dataset.place), fate = describeFate(place);
  button.setAttribute("aria-pressed", String(selection.has(place)));
  button.classList.toggle("decided", fate !== "");
  fill(button.lastElementChild, fate);
}

export function paintTiles() {
  for (const button of document.querySelectorAll("button.tile")) paintTile(button);
}

// A grid of places; `factsAt` has all that a finding says of some of them.
export function makeGrid(places, factsAt, step = 96) {
  const list = h("ul", { class: "tiles" });
  const more = showInSteps(list, places, (place) => makeTile(place, factsAt?.get(place)), step);
  return [list, more];
}
