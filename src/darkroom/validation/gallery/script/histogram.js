// A histogram whose bars are filters: click one, or drag over several; with keys, Shift and arrows.

import { fill, format, h } from "./dom.js";
import { bins, filters, setFilter, tallies } from "./filters.js";

function describeBar(bar) {
  if (bar.name === "less") return `below ${format(bar.to + 1)}`;
  if (bar.name === "more") return `${format(bar.from)} and more`;
  return bar.from === bar.to ? format(bar.from) : `${format(bar.from)} to ${format(bar.to)}`;
}

export function makeHistogram(name, title, unit) {
  const { bars, binOf, total } = bins[name];
  // Bars at the ends that never hold a row are left out.
  const kept = bars.map((_, at) => at).filter((at) => !bars[at].name || tallies[name][at] > 0);
  let start = -1, focused = 0;
  const buttons = kept.map((at, number) =>
    h("button", {
      class: `bin ${bars[at].name}`,
      tabindex: number ? "-1" : "0",
      "aria-pressed": "false",
      onclick: (event) => event.detail === 0 && choose(number, number),
      onkeydown: (event) => move(event, number),
    }),
  );
  const note = h("p", { class: "note" });

  function choose(from, to) {
    const [first, last] = [kept[Math.min(from, to)], kept[Math.max(from, to)]];
    const now = filters[name];
    if (now && now[0] === first && now[1] === last) return setFilter(name);
    setFilter(name, [first, last], (place) => binOf[place] >= first && binOf[place] <= last);
  }

  function move(event, number) {
    const next = { ArrowLeft: number - 1, ArrowRight: number + 1 }[event.key];
    if (next === undefined || !buttons[next]) return;
    event.preventDefault();
    if (!event.shiftKey) focused = next;
    else choose(focused, next);
    buttons[number].tabIndex = -1;
    buttons[next].tabIndex = 0;
    buttons[next].focus();
  }

  function findNumber(event) {
    const node = document.elementFromPoint(event.clientX, event.clientY)?.closest(".bin");
    return buttons.indexOf(node);
  }

  const strip = h(
    "div",
    {
      class: "bins",
      role: "group",
      "aria-label": `${title}: bars that filter`,
      onpointerdown: (event) => { start = findNumber(event); },
      onpointerup: (event) => {
        const end = findNumber(event);
        if (start >= 0 && end >= 0) choose(start, end);
        start = -1;
      },
    },
    buttons,
  );

  function paint() {
    const found = tallies[name];
    // The bars at the ends are cut, so that they do not hide the others.
    const largest = Math.max(1, ...kept.filter((at) => !bars[at].name).map((at) => found[at]));
    const now = filters[name];
    kept.forEach((at, number) => {
      const button = buttons[number], isChosen = Boolean(now) && at >= now[0] && at <= now[1];
      const text = `${describeBar(bars[at])}: ${format(found[at])}`;
      button.style.setProperty("--share", String(Math.min(1, found[at] / largest)));
      button.setAttribute("aria-label", text);
      button.title = text;
      button.setAttribute("aria-pressed", String(isChosen));
      button.classList.toggle("out", Boolean(now) && !isChosen);
    });
    const chosen = new Set(now?.map((at) => describeBar(bars[at])));
    fill(note, [...chosen].join(" … ") || unit);
  }

  const inside = bars.filter((bar) => !bar.name);
  const axis = h(
    "div", { class: "axis", "aria-hidden": "true" },
    h("span", {}, format(inside[0].from)), h("span", {}, format(inside.at(-1).to)),
    kept.includes(bars.length - 1) ? h("span", {}, "more") : null,
  );
  const id = `histogram-${name}`;
  const body = total ? [strip, axis, note] : h("p", { class: "note" }, "not known for these images");
  return { paint, node: h("section", { "aria-labelledby": id }, h("h2", { id }, title), body) };
}
