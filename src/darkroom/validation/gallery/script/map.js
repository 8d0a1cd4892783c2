// The map of the features: a point for each row, in the pixels of a canvas. A lasso, or what is in
// view, becomes a filter.

import { count, facts, mapColors, offMap, points, setOf, showLabel, showSplit, tiles } from "./data.js";
import { countOf, fill, h, picture } from "./dom.js";
import { filters, isShown, setFilter } from "./filters.js";

const hiddenColor = "#9a9a9a";
const lassoMaskSide = 1024;
const moveShare = 0.15;

// A color as a number, of which the lowest byte is red.
function mixInk(color, alpha) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return (alpha << 24 | blue << 16 | green << 8 | red) >>> 0;
}

// Draws all points, those of rows that are shown above the others; returns how many these are. A
// million are drawn in tens of milliseconds, which neither WebGL nor shapes are without a graphics card.
function drawPoints(context, view, size) {
  const { width, height } = context.canvas;
  const image = context.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
  const disc = [], reach = Math.floor(size / 2);
  for (let y = -reach; y <= reach; y++) {
    for (let x = -reach; x <= reach; x++) if (Math.hypot(x, y) < size / 2 - 0.3) disc.push(y * width + x);
  }
  // The color of a row is that of its first label.
  const inks = facts.sets.map((labels) => mixInk(mapColors[(labels[0] ?? 0) % mapColors.length], 230));
  const hiddenInk = mixInk(hiddenColor, 90), scale = [width, height].map((each) => view.scale * each);
  const { x: across, y: down } = points;
  let found = 0;
  for (let i = 0; i < count; i++) {
    if (across[i] === offMap) continue;
    const isOn = isShown(i), ink = isOn ? inks[setOf[i]] : hiddenInk;
    if (isOn) found++;
    const x = Math.round((across[i] / 4096 - view.x) * scale[0] + width / 2);
    const y = Math.round((down[i] / 4096 - view.y) * scale[1] + height / 2);
    if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
    for (const step of disc) {
      const at = y * width + x + step;
      if (isOn || pixels[at] === 0) pixels[at] = ink;
    }
  }
  context.putImageData(image, 0, 0);
  return found;
}

export function makeMap() {
  const canvas = h("canvas", { "aria-hidden": "true" }), overlay = h("canvas", { "aria-hidden": "true" });
  const peek = h("figure", { class: "peek", hidden: true });
  const view = { x: 0.5, y: 0.5, scale: 0.94 };
  let lasso = null, isWaiting = false, coming = 0;

  // Once before the next picture, whatever happened until then.
  function draw() {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => { isWaiting = false; drawNow(); });
  }

  function drawNow() {
    if (!frame.clientWidth) return;
    const ratio = devicePixelRatio || 1;
    const width = Math.round(frame.clientWidth * ratio), height = Math.round(frame.clientHeight * ratio);
    for (const each of [canvas, overlay]) {
      if (each.width !== width || each.height !== height) Object.assign(each, { width, height });
    }
    const size = ratio * (count > 100_000 ? 2 : count > 5_000 ? 3.5 : 6) * Math.min(3, Math.sqrt(view.scale));
    const found = drawPoints(canvas.getContext("2d"), view, size);
    fill(note, `${countOf(found, "image")}, draw around some to see only them`);
  }

  // From a place in the frame, 0 to 1, to one on the map, 0 to 1.
  const toMap = ([x, y]) => [(x - 0.5) / view.scale + view.x, (y - 0.5) / view.scale + view.y];

  function zoom(factor, at = [0.5, 0.5]) {
    const [x, y] = toMap(at);
    view.scale = Math.min(200, Math.max(0.5, view.scale * factor));
    const [nowX, nowY] = toMap(at);
    view.x += x - nowX;
    view.y += y - nowY;
    draw();
  }

  function move(x, y) {
    view.x += x * moveShare / view.scale;
    view.y += y * moveShare / view.scale;
    draw();
  }

  // Filters to the rows in an outline of places on the map, by a picture of the outline.
  function filterInside(outline) {
    const xs = outline.map(([x]) => x * 4096), ys = outline.map(([, y]) => y * 4096);
    const low = [Math.min(...xs), Math.min(...ys)], high = [Math.max(...xs), Math.max(...ys)];
    const scale = (lassoMaskSide - 1) / Math.max(high[0] - low[0], high[1] - low[1], 1e-6);
    const mask = new OffscreenCanvas(lassoMaskSide, lassoMaskSide).getContext("2d");
    mask.beginPath();
    outline.forEach((_, at) => mask.lineTo((xs[at] - low[0]) * scale, (ys[at] - low[1]) * scale));
    mask.fill();
    const pixels = mask.getImageData(0, 0, lassoMaskSide, lassoMaskSide).data;
    setFilter("map", outline, (place) => {
      const x = points.x[place], y = points.y[place];
      if (x === offMap || x < low[0] || x > high[0] || y < low[1] || y > high[1]) return false;
      const at = Math.round((y - low[1]) * scale) * lassoMaskSide + Math.round((x - low[0]) * scale);
      return pixels[4 * at + 3] > 127;
    });
  }

  function findPlace(event) {
    const box = frame.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  function drawLasso() {
    const context = overlay.getContext("2d");
    context.clearRect(0, 0, overlay.width, overlay.height);
    if (!lasso) return;
    context.beginPath();
    for (const [x, y] of lasso) context.lineTo(x * overlay.width, y * overlay.height);
    context.closePath();
    context.lineWidth = 2 * (devicePixelRatio || 1);
    context.strokeStyle = getComputedStyle(frame).color;
    context.stroke();
    context.globalAlpha = 0.12;
    context.fillStyle = context.strokeStyle;
    context.fill();
  }

  // Shows the nearest image that has a picture.
  function peekAt(event) {
    const box = frame.getBoundingClientRect(), [x, y] = toMap(findPlace(event));
    let best = null, least = 14 / Math.min(box.width, box.height) / view.scale;
    for (const tile of tiles) {
      if (points.x[tile.place] === offMap || !isShown(tile.place)) continue;
      const far = Math.hypot(points.x[tile.place] / 4096 - x, points.y[tile.place] / 4096 - y);
      if (far < least) [best, least] = [tile, far];
    }
    peek.hidden = !best;
    if (best) fill(peek, picture(best), h("figcaption", {}, `${showLabel(best.place)} · ${showSplit(best.place)}`));
  }

  const frame = h(
    "div",
    {
      class: "frame",
      tabindex: "0",
      role: "group",
      "aria-label": "Map of features: similar images are near each other. Arrows move, plus and minus zoom.",
      onpointerdown: (event) => {
        frame.setPointerCapture(event.pointerId);
        lasso = [findPlace(event)];
        peek.hidden = true;
      },
      onpointermove: (event) => {
        if (!lasso) return peekAt(event);
        lasso.push(findPlace(event));
        drawLasso();
      },
      onpointerup: () => {
        const outline = lasso?.map(toMap) ?? [];
        lasso = null;
        drawLasso();
        if (outline.length > 4) filterInside(outline);
        else if (filters.map) setFilter("map");
      },
      onpointerleave: () => { peek.hidden = true; },
      onwheel: (event) => {
        event.preventDefault();
        zoom(Math.exp(-event.deltaY / 400), findPlace(event));
      },
      onkeydown: (event) => {
        const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
        if (moves[event.key]) move(...moves[event.key]);
        else if (event.key === "+" || event.key === "=") zoom(1.4);
        else if (event.key === "-") zoom(1 / 1.4);
        else return;
        event.preventDefault();
        event.stopPropagation();
      },
    },
    canvas, overlay, peek,
  );
  const corners = [[0, 0], [1, 0], [1, 1], [0, 1]];
  const buttons = h(
    "div", { class: "group", role: "group", "aria-label": "Map" },
    h("button", { onclick: () => zoom(1.6), "aria-label": "Zoom in" }, "+"),
    h("button", { onclick: () => zoom(1 / 1.6), "aria-label": "Zoom out" }, "−"),
    h("button", { onclick: () => { Object.assign(view, { x: 0.5, y: 0.5, scale: 0.94 }); draw(); } }, "Whole map"),
    h("button", { onclick: () => filterInside(corners.map(toMap)) }, "Only what is in view"),
    h("button", { onclick: () => setFilter("map") }, "No lasso"),
  );
  const note = h("span", { class: "note" });
  const node = h("details", { class: "map", open: true, ontoggle: draw }, h("summary", {}, "Map of features ", note), frame, buttons);
  new ResizeObserver(draw).observe(frame);

  function paint() {
    // Pairs of a finding are looked at one by one.
    node.hidden = Boolean(filters.finding?.items.some((item) => item.places.length === 2));
    // After the images, for which the reader waits.
    clearTimeout(coming);
    if (!node.hidden) coming = setTimeout(draw, 30);
  }
  return { node, paint };
}
