// Elements made of text that never becomes markup, and the one way in which parts of the page
// tell each other that something changed.

import { colors } from "./data.js";

// Control, format, surrogate, private and unassigned characters, ends of lines and paragraphs:
// a right-to-left mark could make "gpj.exe" look like "exe.jpg".
const hiddenCharacters = /[\p{C}\p{Zl}\p{Zp}]/gu;

export function visible(text) {
  return String(text).replace(
    hiddenCharacters,
    (each) => `<U+${each.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`,
  );
}

// An element: h("button", { class: "x", onclick: act }, "text", child). Null children are left out.
export function h(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== null && value !== false) node.setAttribute(key, visible(value));
  }
  fill(node, ...children);
  return node;
}

export function fill(node, ...children) {
  const shown = children.flat(Infinity).filter((each) => each !== null && each !== false);
  node.replaceChildren(
    ...shown.map((each) => (each instanceof Node ? each : document.createTextNode(visible(each)))),
  );
}

// The name of a key as screen readers know it.
export function nameKey(key) {
  return /^[A-Z]$/.test(key) ? `Shift+${key}` : key;
}

// A button that says its key, or its keys.
export function keyButton(name, key, act, attributes = {}) {
  const keys = key.split(" "), hints = keys.map((each) => h("kbd", { "aria-hidden": "true" }, each));
  return h("button", { ...attributes, onclick: act, "aria-keyshortcuts": keys.map(nameKey).join(" ") }, name, hints);
}

// The page names no address, so that it can be searched for them.
const svgNames = document.getElementById("svg").namespaceURI;

function draw(name, attributes, text = "") {
  const node = document.createElementNS(svgNames, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = visible(text);
  return node;
}

// A picture with what is drawn over it, whose places are shares of its sides.
function drawShapes({ picture, shapes, size: [width, height] }) {
  const node = draw("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const letter = Math.max(width, height) / 28, lines = [];
  node.append(draw("image", { href: picture, width, height, preserveAspectRatio: "none" }));
  for (const [text, left, top, right, bottom, tone] of shapes) {
    const x = left * width, y = top * height, isLost = tone === null;
    const color = isLost ? "#fff" : colors[tone % colors.length];
    const sides = { width: (right - left) * width, height: (bottom - top) * height };
    // A dark line below the colored one, which is seen on any photograph.
    node.append(draw("rect", { x, y, ...sides, stroke: "#000" }));
    node.append(draw("rect", { x, y, ...sides, stroke: color, ...(isLost && { "stroke-dasharray": "5 4" }) }));
    // A name goes down until it is over no other one, and is left out where there is no room.
    let base = Math.max(y - letter / 4, letter);
    const end = x + text.length * letter * 0.6;
    const isOver = (line) => Math.abs(line.base - base) < letter && x < line.end && line.x < end;
    while (base < height && lines.some(isOver)) base += letter;
    lines.push({ x, end, base });
    if (base < height) node.append(draw("text", { x, y: base, "font-size": letter }, text));
  }
  return node;
}

// An image of the page's own data. Its name says nothing that the text beside it does not say.
export function picture(tile) {
  if (!tile || !tile.picture) return h("span", { class: "none" }, "no picture");
  if (tile.shapes.length) return drawShapes(tile);
  const node = h("img", { alt: "", decoding: "async", loading: "lazy" });
  node.src = tile.picture; // Not as an attribute: it is long, and plain ASCII.
  return node;
}

// Made once: making it takes longer than using it.
const numberFormat = new Intl.NumberFormat("en-US");

export function format(number) {
  return numberFormat.format(number);
}

export function countOf(number, noun) {
  return `${format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

let silence = 0;

export function say(text) {
  const status = document.getElementById("status");
  status.textContent = visible(text);
  clearTimeout(silence);
  silence = setTimeout(() => fill(status), 6_000);
}

// Shows items a few at a time, the next ones when the reader comes near the end.
export function showInSteps(list, items, make, step) {
  let shown = 0;
  const more = h("button", { class: "more", onclick: () => add() }, "Show more");
  const watcher = new IntersectionObserver((found) => {
    if (found.some((each) => each.isIntersecting)) add();
  }, { rootMargin: "600px" });
  function add() {
    for (const end = Math.min(items.length, shown + step); shown < end; shown++) {
      list.append(make(items[shown], shown));
    }
    more.hidden = shown === items.length;
  }
  add();
  watcher.observe(more);
  return more;
}

// Opens over the page. The browser closes a dialog at Escape, and gives the focus back.
export function openDialog(name, ...children) {
  const close = ({ target }) => { if (target.closest("figure, .close") || target === dialog) dialog.close(); };
  const dialog = h("dialog", { "aria-label": name, onclick: close, onclose: () => dialog.remove() },
    children, h("button", { class: "close" }, "Close"));
  document.body.append(dialog);
  dialog.showModal();
}

export function changed(what) {
  document.dispatchEvent(new Event(what));
}
