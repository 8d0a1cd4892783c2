// What the decisions do to each split and each label, to look at before they are saved.

import { count, facts, labelNames, labelsOfSet, setOf, splitOf } from "./data.js";
import { countIgnored, findFate, saveDecisions, saveName } from "./decisions.js";
import { format, h, openDialog } from "./dom.js";

const mostLabels = 12;

// Numbers of rows: of each split what happens to its rows; and of each label, in each split, how
// many have it now and then.
function countEffect() {
  const splits = facts.splits.map(() => ({ images: 0, dropped: 0, relabelled: 0, out: 0, in: 0, left: 0 }));
  const labels = labelNames.map(() => facts.splits.map(() => [0, 0]));
  const numbers = new Map(facts.labels.map((label, number) => [label, number]));
  for (let place = 0; place < count; place++) {
    const { drop, relabel, move } = findFate(place), from = splitOf[place], own = labelsOfSet[setOf[place]];
    const to = move ? facts.splits.indexOf(move) : from;
    splits[from].images++;
    for (const label of own) labels[label][from][0]++;
    if (drop) {
      splits[from].dropped++;
      continue;
    }
    splits[to].left++;
    if (relabel) splits[to].relabelled++;
    if (to !== from) {
      splits[from].out++;
      splits[to].in++;
    }
    const named = relabel && [relabel].flat().map((label) => numbers.get(label));
    for (const label of !named ? own : named.length ? named : [facts.labels.length]) labels[label][to][1]++;
  }
  return { splits, labels };
}

function makeTable(name, head, rows) {
  const cells = (row, at) => h(at ? "td" : "th", { scope: at ? null : "row" }, row);
  return h("table", {}, h("caption", {}, name),
    h("thead", {}, h("tr", {}, head.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cells)))));
}

const sign = (number, mark) => (number ? `${mark}${format(number)}` : "");

export function showEffect() {
  const { splits, labels } = countEffect();
  const rows = splits.map((each, at) => [facts.splits[at], format(each.images), sign(each.dropped, "−"), sign(each.out, "−"),
    sign(each.in, "+"), format(each.left), sign(each.relabelled, "")]);
  const changed = [...labels.keys()].filter((label) => labels[label].some(([now, then]) => now !== then));
  const share = (label) => Math.min(...labels[label].map(([now, then]) => (now ? then / now : 1)));
  const worst = changed.sort((a, b) => share(a) - share(b));
  const show = ([now, then]) => (now === then ? format(now) : `${format(now)} → ${format(then)}`);
  const gone = worst.flatMap((label) => facts.splits.filter((_, at) => labels[label][at][0] && !labels[label][at][1])
    .map((split) => `${split} has no image of ${labelNames[label]} left`));
  const more = worst.length - mostLabels, ignored = countIgnored();
  openDialog("Effect of the decisions",
    makeTable("Effect on the splits", ["split", "images", "dropped", "moved out", "moved in", "left", "with a new label"], rows),
    worst.length
      ? makeTable("Effect on the labels", ["label", ...facts.splits],
        worst.slice(0, mostLabels).map((label) => [labelNames[label], ...labels[label].map(show)]))
      : null,
    more > 0 ? h("p", { class: "note" }, `and ${format(more)} labels that lose less`) : null,
    gone.length ? h("p", { class: "wrong" }, gone.slice(0, mostLabels).map((each) => `${each}. `)) : null,
    ignored ? h("p", { class: "note" }, `Ignored, and hidden from the next checks: ${ignored}.`) : null,
    h("button", { class: "main", onclick: saveDecisions }, saveName));
}
