// What is at the bottom: what is selected, what to do with it, and the file of all decisions.

import { facts } from "./data.js";
import { countDecided, saveDecisions, undo } from "./decisions.js";
import { countOf, fill, format, h, say } from "./dom.js";
import { tallies } from "./filters.js";
import { clearSelection, decideSelected, selection, selectShown } from "./tiles.js";

const rowActions = [["drop", "Drop", "d"], ["ignore", "Ignore", "i"], ["undecided", "Undecide", "k"]];
let relabelInput = null;
let relabelPlace;

// Asks for the label of the selected rows, or of one.
export function startRelabel(place) {
  relabelPlace = place;
  relabelInput?.focus();
}

function relabel() {
  const text = relabelInput.value.trim(), hasSeveral = facts.kind === "labels";
  const names = hasSeveral ? text.split(",").map((each) => each.trim()) : [text];
  const unknown = names.find((each) => !facts.labels.includes(each));
  if (unknown !== undefined) return say(`${unknown || "Nothing"} is not a label of this dataset.`);
  decideSelected("relabel", relabelPlace, hasSeveral ? names : text);
  relabelInput.value = "";
  const back = relabelPlace === undefined ? null : document.querySelector(`[data-place="${relabelPlace}"]`);
  relabelPlace = undefined;
  back?.focus();
}

export function makeBar() {
  const chosen = h("span", { class: "chosen" });
  const all = h("button", { onclick: selectShown, "aria-keyshortcuts": "a" });
  const none = h("button", { onclick: clearSelection, "aria-keyshortcuts": "Escape" }, "Clear");
  const actions = rowActions.map(([action, name, key]) =>
    h("button", { onclick: () => decideSelected(action), "aria-keyshortcuts": key }, name,
      h("kbd", { "aria-hidden": "true" }, key)),
  );
  relabelInput = h("input", {
    list: "known-labels", placeholder: "New label", "aria-label": "New label", autocomplete: "off",
    onkeydown: (event) => event.key === "Enter" && relabel(),
  });
  const known = h("datalist", { id: "known-labels" }, facts.labels.map((each) => h("option", { value: each })));
  const relabels = h(
    "span", { class: "relabel" }, relabelInput, known,
    h("button", { onclick: relabel, "aria-keyshortcuts": "r" }, "Relabel", h("kbd", { "aria-hidden": "true" }, "r")),
  );
  const total = h("span", { class: "total" });
  const back = h("button", { onclick: undo, "aria-keyshortcuts": "u" }, "Undo", h("kbd", { "aria-hidden": "true" }, "u"));
  const save = h("button", { class: "main", onclick: saveDecisions }, "Save decisions");
  const group = h("div", { class: "group acts", role: "group", "aria-label": "Selected images" },
    actions, facts.labels.length ? relabels : null);
  const node = [
    h("div", { class: "group" }, chosen, all, none),
    group,
    h("div", { class: "group end" }, total, back, save),
  ];

  function paint() {
    fill(chosen, `${format(selection.size)} selected`);
    fill(all, `Select all ${format(tallies.shown)}`);
    none.hidden = selection.size === 0;
    group.classList.toggle("idle", selection.size === 0);
    const decided = countDecided();
    fill(total, countOf(decided, "decision"));
    save.disabled = decided === 0;
  }
  return { node, paint };
}
