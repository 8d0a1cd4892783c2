// What is at the bottom: what is selected, what to do with it, and the file of all decisions.

import { facts, told } from "./data.js";
import { canBeKept, countDecided, saveDecisions, saveName, undo } from "./decisions.js";
import { countOf, fill, format, h, keyButton, say } from "./dom.js";
import { showEffect } from "./effect.js";
import { tallies } from "./filters.js";
import { clearSelection, countHidden, decideSelected, findFocused, selection, selectShown, takeSuggested } from "./tiles.js";

const rowActions = [["drop", "Drop", "d"], ["ignore", "Ignore", "i"], ["undecided", "Undecide", "k"]];
// What asks for a value, by action; and for which row, where none is selected.
const inputs = {};
let askedPlace;

// Asks for the label or the split of the selected rows, or of the one that has the focus.
export function ask(action) {
  askedPlace = findFocused();
  inputs[action]?.focus();
}

function answer(action, value) {
  decideSelected(action, value, askedPlace);
  document.querySelector(`.tile[data-place="${askedPlace}"]`)?.focus();
  askedPlace = undefined;
}

function relabel() {
  const text = inputs.relabel.value.trim(), hasSeveral = facts.relabels === "several";
  const names = hasSeveral ? text.split(",").map((each) => each.trim()) : [text];
  const unknown = names.find((each) => !facts.labels.includes(each));
  if (unknown !== undefined) return say(`${unknown || "Nothing"} is not a label of this dataset.`);
  inputs.relabel.value = "";
  answer("relabel", hasSeveral ? names : text);
}

function makeRelabel() {
  inputs.relabel = h("input", {
    list: "known-labels", placeholder: "Label", "aria-label": "New label", autocomplete: "off",
    onkeydown: (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();  // or it would also press the tile that gets the focus
      relabel();
    },
  });
  const known = h("datalist", { id: "known-labels" }, facts.labels.map((each) => h("option", { value: each })));
  return h("span", { class: "asked" }, inputs.relabel, known, keyButton("Relabel", "r", relabel));
}

function makeMove() {
  const buttons = facts.splits.map((split) => h("button", { onclick: () => answer("move", split) }, split));
  inputs.move = buttons[0];
  const name = h("span", {}, "Move", h("kbd", { "aria-hidden": "true" }, "m"));
  return h("span", { class: "asked", role: "group", "aria-label": "Move to" }, name, buttons);
}

export function makeBar() {
  const chosen = h("span", { class: "chosen" });
  const all = h("button", { onclick: selectShown, "aria-keyshortcuts": "a" });
  const none = h("button", { onclick: clearSelection, "aria-keyshortcuts": "Escape" }, "Clear");
  const actions = rowActions.map(([action, name, key]) => keyButton(name, key, () => decideSelected(action)));
  const hasSuggested = told || facts.findings.some((finding) => finding.suggested.size);
  const group = h("div", { class: "group acts", role: "group", "aria-label": "Selected images" },
    actions,
    hasSuggested ? keyButton("Take suggestion", "t", takeSuggested) : null,
    facts.relabels && facts.labels.length ? makeRelabel() : null,
    makeMove());
  const total = h("span", { class: "total" });
  const save = keyButton(saveName, "S", saveDecisions, { class: "main" });
  const effect = keyButton("Effect", "v", showEffect);
  const node = [
    h("div", { class: "group" }, chosen, all, none),
    group,
    h("div", { class: "group end" }, total, keyButton("Undo", "u", undo), effect, save),
  ];

  function paint() {
    const hidden = countHidden(), where = hidden ? `, ${format(hidden)} not shown` : "";
    fill(chosen, `${format(selection.size)} selected${where}`);
    fill(all, `Select all ${format(tallies.shown)}`);
    none.hidden = selection.size === 0;
    group.classList.toggle("idle", selection.size === 0);
    const decided = countDecided();
    fill(total, countOf(decided, "decision"), decided && !canBeKept ? ", not kept" : "");
    save.disabled = effect.disabled = decided === 0;
  }
  return { node, paint };
}
