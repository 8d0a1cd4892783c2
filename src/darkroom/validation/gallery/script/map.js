// The map of the features: a point for each row, in the pixels of a canvas. A lasso, or what is in
// view, becomes a filter.

import { count, facts, colors, labelNames, offMap, points, setOf, showLabel, showSplit, tiles } from "./data.js";
import { fill, format, h, keyButton, picture } from "./dom.js";
import { filters, isShown, setFilter } from "./filters.js";
import { countLabels, filterByLabel, makeDot } from "./sidebar.js";

const hiddenColor = "#9a9a9a";
const mostNames = 12;
const moveShare = 0.15;
const wholeMap = { x: 0.5, y: 0.5, scale: 0.94 };

// What the colors mean, the labels with most images first; each is a filter.
function listColors() {
  const found = countLabels(), isOn = (label) => Boolean(filters.label?.has(label));
  const labels = [...labelNames.keys()].filter((label) => found[label] || isOn(label));
  if (labels.length < 2 && !isOn(labels[0])) return null;
  const most = labels.sort((a, b) => found[b] - found[a]).slice(0, mostNames), more = labels.length - most.length;
  const names = most.map((label) =>
    h("button", { class: "color", "aria-pressed": String(isOn(label)), onclick: () => filterByLabel(label) },
      makeDot(colors[label % colors.length]), labelNames[label]));
  const rest = labels.length > colors.length ? `${more ? `and ${format(more)} more; ` : ""}some share a color` : more && `and ${more} more`;
  return [names, rest ? h("span", {}, rest) : null,
    Object.keys(filters).length ? h("span", {}, makeDot(hiddenColor), " filtered out") : null];
}

// A color as a number, of which the lowest byte is red.
function mixInk(color, alpha) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return (alpha << 24 | blue << 16 | green << 8 | red) >>> 0;
}

export function makeMap() {
  const canvas = h("canvas", { "aria-hidden": "true" }), overlay = h("canvas", { "aria-hidden": "true" });
  const peek = h("figure", { class: "peek", hidden: true });
  const view = { ...wholeMap };
  // Sizes in pixels of the canvas; those of a point are up to `reach` from its middle.
  let width = 0, height = 0, reach = 0, lasso = null, request = 0;

  // The number of the pixel in the middle of the point of a row; -1 where it is not in view.
  function findPixel(place) {
    const x = Math.round(((points.x[place] / 4096 - view.x) * view.scale + 0.5) * width);
    const y = Math.round(((points.y[place] / 4096 - view.y) * view.scale + 0.5) * height);
    const isOut = x < reach || y < reach || x >= width - reach || y >= height - reach;
    return isOut || points.x[place] === offMap ? -1 : y * width + x;
  }

  // Once before the next picture, whatever happened until then.
  function draw() {
    cancelAnimationFrame(request);
    request = requestAnimationFrame(drawPoints);
  }

  // Draws all points, those of rows that are shown above the others. A million are drawn in tens of
  // milliseconds, which neither WebGL nor shapes are without a graphics card.
  function drawPoints() {
    if (!frame.clientWidth) return;
    [width, height] = [frame.clientWidth, frame.clientHeight].map((each) => Math.round(each * devicePixelRatio));
    for (const each of [canvas, overlay]) Object.assign(each, { width, height });
    const least = count > 100_000 ? 2 : count > 5_000 ? 3.5 : 6;
    const size = devicePixelRatio * least * Math.min(3, Math.sqrt(view.scale));
    reach = Math.floor(size / 2);
    const disc = [];
    for (let y = -reach; y <= reach; y++) {
      for (let x = -reach; x <= reach; x++) if (Math.hypot(x, y) < size / 2 - 0.3) disc.push(y * width + x);
    }
    // The color of a row is that of its first label.
    const inks = facts.sets.map((labels) => mixInk(colors[(labels[0] ?? 0) % colors.length], 230));
    const hiddenInk = mixInk(hiddenColor, 90);
    const image = new ImageData(width, height), pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < count; i++) {
      const pixel = findPixel(i), isOn = isShown(i), ink = isOn ? inks[setOf[i]] : hiddenInk;
      if (pixel < 0) continue;
      for (const step of disc) if (isOn || pixels[pixel + step] === 0) pixels[pixel + step] = ink;
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  function zoom(factor, [x, y] = [width / 2, height / 2]) {
    const before = view.scale;
    view.scale = Math.min(200, Math.max(0.5, before * factor));
    view.x += (x / width - 0.5) * (1 / before - 1 / view.scale);
    view.y += (y / height - 0.5) * (1 / before - 1 / view.scale);
    draw();
  }

  function move(x, y) {
    view.x += x * moveShare / view.scale;
    view.y += y * moveShare / view.scale;
    draw();
  }

  // Where a pointer is, in pixels of the canvas.
  function findPoint(event) {
    return [event.offsetX * devicePixelRatio, event.offsetY * devicePixelRatio];
  }

  function drawLasso() {
    const context = overlay.getContext("2d");
    context.clearRect(0, 0, width, height);
    context.beginPath();
    for (const point of lasso ?? []) context.lineTo(...point);
    context.closePath();
    context.lineWidth = 2 * devicePixelRatio;
    context.strokeStyle = getComputedStyle(frame).color;
    context.globalAlpha = 1;
    context.stroke();
    context.globalAlpha = 0.12;
    context.fillStyle = context.strokeStyle;
    context.fill();
  }

  // Filters to the rows in the lasso, by its picture.
  function endLasso() {
    const { data } = overlay.getContext("2d").getImageData(0, 0, width, height);
    const isDrawn = lasso?.length > 4;
    lasso = null;
    drawLasso();
    if (isDrawn) setFilter("map", true, (place) => data[4 * findPixel(place) + 3] > 0);
    else if (filters.map) setFilter("map");
  }

  // Shows the nearest image that has a picture.
  function peekAt(event) {
    const [x, y] = findPoint(event);
    let best = null, least = 14 * devicePixelRatio;
    for (const tile of tiles) {
      const pixel = isShown(tile.place) ? findPixel(tile.place) : -1;
      const far = Math.hypot(pixel % width - x, Math.floor(pixel / width) - y);
      if (pixel >= 0 && far < least) [best, least] = [tile, far];
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
        lasso = [findPoint(event)];
        peek.hidden = true;
      },
      onpointermove: (event) => {
        if (!lasso) return peekAt(event);
        lasso.push(findPoint(event));
        drawLasso();
      },
      onpointerup: endLasso,
      onpointerleave: () => { peek.hidden = true; },
      onwheel: (event) => {
        event.preventDefault();
        zoom(Math.exp(-event.deltaY / 400), findPoint(event));
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
  const buttons = h(
    "div", { class: "group", role: "group", "aria-label": "Map" },
    h("button", { onclick: () => zoom(1.6), "aria-label": "Zoom in", "aria-keyshortcuts": "+" }, "+"),
    h("button", { onclick: () => zoom(1 / 1.6), "aria-label": "Zoom out", "aria-keyshortcuts": "-" }, "−"),
    keyButton("Whole map", "w", () => { Object.assign(view, wholeMap); draw(); }),
    keyButton("Only what is in view", "o", () => setFilter("map", true, (place) => findPixel(place) >= 0)),
    keyButton("No lasso", "c", () => setFilter("map")),
  );
  const note = h("span", { class: "note" }, "draw around some images to see only them");
  const legend = h("div", { class: "group legend note", role: "group", "aria-label": "Colors of the map" });
  const node = h("details", { class: "map", open: true }, h("summary", {}, "Map of features ", note), frame, legend, buttons);
  let wasSecond = false, wasOpen = true;
  new ResizeObserver(draw).observe(frame);

  function paint() {
    // Pairs of a finding are looked at one by one.
    node.hidden = Boolean(filters.finding?.items.some((item) => item.places.length === 2));
    // Images of a finding, and those like one, come first: the map is closed until the reader opens it.
    const isSecond = Boolean(filters.finding ?? filters.alike);
    if (isSecond && !wasSecond) wasOpen = node.open;
    if (isSecond !== wasSecond) node.open = !isSecond && wasOpen;
    wasSecond = isSecond;
    fill(legend, listColors());
    // After the images, for which the reader waits.
    if (!node.hidden) setTimeout(draw, 30);
  }
  return { node, paint };
}
