// Pairs of images side by side, in turn (flicker) or as their difference, with a decision each.

import { facts, showLabel, tileAt } from "./data.js";
import { decide, decidePair, describeFate, findFate, findPairFate, isDropped, keepOfAll } from "./decisions.js";
import { describeFact, describeRow, enlarge } from "./describe.js";
import { countOf, fill, h, keyButton, picture, showInSteps } from "./dom.js";

const pairModes = { side: ["Side by side", "s"], flicker: ["Flicker", "f"], difference: ["Difference", "x"] };
const pairActions = { left: ["Keep left", "1"], right: ["Keep right", "2"], ignore: ["Ignore", "i"] };
let pairMode = "side";

function setPairMode(mode) {
  pairMode = pairMode === mode ? "side" : mode;
  for (const node of document.querySelectorAll("[data-mode]")) node.dataset.mode = pairMode;
  for (const node of document.querySelectorAll("[data-set-mode]")) {
    node.setAttribute("aria-pressed", String(node.dataset.setMode === pairMode));
  }
}

function makePair(item, number, total) {
  const [left, right] = item.places;
  const sides = [left, right].map((place, at) =>
    h("figcaption", { class: "caption" },
      h("span", { class: "place" }, at ? "right" : "left"),
      describeRow(place),
      h("span", { class: "fate", "data-place": place })),
  );
  const buttons = Object.entries(pairActions).map(([action, [name, key]]) =>
    keyButton(name, key, () => decidePair(action, item.places), { "data-action": action, "aria-pressed": "false" }));
  if (facts.relabels === "one" && showLabel(left) !== showLabel(right)) {
    // One of the two labels is wrong: the other image tells the right one.
    const labels = [[left, right, "3"], [right, left, "4"]].map(([from, to, key]) =>
      keyButton(`Both ${showLabel(from)}`, key, () => decide("relabel", [[showLabel(from), [to]]]), { "data-to": to, "data-label": showLabel(from) }),
    );
    buttons.splice(2, 0, labels);
  }
  const split = item.facts["move to"];
  if (split) buttons.push(keyButton(`Left to ${split}`, "t", () => decide("move", [[split, [left]]])));
  buttons.push(keyButton("Enlarge", "e", () => enlarge(item.places)));
  const focus = (event) => event.target.closest("button") ?? card.querySelector("[data-action=left]").focus({ preventScroll: true });
  const card = h("li", { class: "pair", "data-pair": item.places.join(" "), onclick: focus },
    h("figure", {}, makeStage(item.places), sides),
    h("p", { class: "facts" }, `pair ${number} of ${total}`, Object.entries(item.facts).map(describeFact)),
    h("div", { class: "actions", role: "group", "aria-label": `Pair ${number}` }, buttons));
  paintPair(card);
  return card;
}

function makeStage(places) {
  const shown = places.map((place) => tileAt.get(place)), [width, height] = shown[0]?.size ?? [1, 1];
  const stage = h("div", { class: "stage" }, shown.map(picture));
  // A difference has the form of the left image.
  stage.style.setProperty("--form", String(width / height));
  return stage;
}

function paintPair(card) {
  const fate = findPairFate(card.dataset.pair), places = card.dataset.pair.split(" ").map(Number);
  for (const button of card.querySelectorAll("[data-action]")) {
    button.setAttribute("aria-pressed", String(button.dataset.action === fate));
  }
  for (const button of card.querySelectorAll("[data-to]")) {
    button.setAttribute("aria-pressed", String(findFate(Number(button.dataset.to)).relabel === button.dataset.label));
  }
  const hasOneLabel = card.querySelector("[data-to][aria-pressed=true]") !== null;
  card.classList.toggle("decided", fate !== "" || hasOneLabel || places.some(isDropped));
  for (const node of card.querySelectorAll(".fate")) {
    const what = describeFate(Number(node.dataset.place));
    fill(node, what);
    node.closest("figcaption").classList.toggle("gone", what === "drop");
  }
}

export function paintPairs() {
  for (const card of document.querySelectorAll(".pair")) paintPair(card);
}

export function makePairs(items) {
  const modes = Object.entries(pairModes).map(([mode, [name, key]]) =>
    keyButton(name, key, () => setPairMode(mode), {
      "data-set-mode": mode, "aria-pressed": String(mode === pairMode),
    }));
  const list = h("ol", { class: "pairs", "data-mode": pairMode });
  const more = showInSteps(list, items, (item, at) => makePair(item, at + 1, items.length), 24);
  // A person says which image is right where labels or objects differ, something covers one, or one has to move.
  const same = items.filter(({ facts }) => !facts.objects && !facts.edit && !facts["move to"]).map((item) => item.places)
    .filter(([one, other]) => showLabel(one) === showLabel(other));
  const every = keyButton(`Keep left of all ${countOf(same.length, "pair")}`, "H", () => keepOfAll(same));
  return [
    h("div", { class: "modes", role: "group", "aria-label": "How pairs are shown" }, modes, same.length ? every : null),
    same.length ? h("p", { class: "facts" }, "Left is the larger image; of equal sizes the one that is held out of training.") : null, list, more,
  ];
}
