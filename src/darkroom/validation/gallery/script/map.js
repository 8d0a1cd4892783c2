// The map of the features: a point for each row, drawn by WebGL2, else a sample of them on a canvas.
// A lasso, or what is in view, becomes a filter.

import { count, facts, mapColors, offMap, points, setOf, showLabel, showSplit, tiles } from "./data.js";
import { fill, format, h, picture } from "./dom.js";
import { filters, isShown, setFilter } from "./filters.js";

// A million points would hide each other: of the rows that are shown and hidden, so many are drawn.
const mostShown = 150_000, mostHidden = 50_000;
const hiddenColor = mapColors.length;
const allColors = [...mapColors, "#9a9a9a"];
const lassoMaskSide = 1024;
const moveShare = 0.15;

const vertexShader = `#version 300 es
in vec2 place; in float color;
uniform vec3 view; uniform float size; uniform vec3 colors[${allColors.length}];
out vec4 tint;
void main() {
  vec2 at = (place - view.xy) * view.z * 2.0;
  gl_Position = vec4(at.x, -at.y, 0.0, 1.0);
  gl_PointSize = size;
  tint = vec4(colors[int(color)], color < ${hiddenColor}.0 ? 0.85 : 0.3);
}`;
const fragmentShader = `#version 300 es
precision mediump float;
in vec4 tint; out vec4 color;
void main() {
  if (length(gl_PointCoord - 0.5) > 0.5) discard;
  color = vec4(tint.rgb * tint.a, tint.a);
}`;

// The rows to draw: places on the map, two numbers of 16 bits each, and colours; hidden ones first.
function chooseDrawn(found, isWanted) {
  const onMap = points.x, total = Math.min(found[0], mostHidden) + Math.min(found[1], mostShown) + 2;
  const steps = [Math.max(1, found[0] / mostHidden), Math.max(1, found[1] / mostShown)];
  const drawn = { places: new Uint16Array(2 * total), colors: new Uint8Array(total), count: 0 };
  for (const isShownPass of [0, 1]) {
    let next = 0, seen = 0;
    for (let i = 0; i < count; i++) {
      if (onMap[i] === offMap || isWanted[i] !== isShownPass || seen++ < next) continue;
      next += steps[isShownPass];
      const at = drawn.count++;
      drawn.places[2 * at] = points.x[i] * 16;
      drawn.places[2 * at + 1] = points.y[i] * 16;
      // The colour of a row is that of its first label.
      drawn.colors[at] = isShownPass ? (facts.sets[setOf[i]][0] ?? 0) % hiddenColor : hiddenColor;
    }
  }
  return drawn;
}

// Draws with WebGL2; null where a browser has none.
function makePainter(canvas) {
  const gl = canvas.getContext("webgl2", { antialias: false });
  if (!gl) return null;
  const program = gl.createProgram();
  for (const [type, text] of [[gl.VERTEX_SHADER, vertexShader], [gl.FRAGMENT_SHADER, fragmentShader]]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return null;
  gl.useProgram(program);
  const buffers = [["place", 2, gl.UNSIGNED_SHORT, true], ["color", 1, gl.UNSIGNED_BYTE, false]].map(
    ([name, size, type, isNormal]) => {
      const buffer = gl.createBuffer(), place = gl.getAttribLocation(program, name);
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, type, isNormal, 0, 0);
      return buffer;
    },
  );
  const find = (name) => gl.getUniformLocation(program, name);
  gl.uniform3fv(find("colors"), allColors.flatMap((each) =>
    [1, 3, 5].map((at) => parseInt(each.slice(at, at + 2), 16) / 255)));
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  let drawn = null;
  return {
    update(now) {
      drawn = now;
      [now.places, now.colors].forEach((values, at) => {
        gl.bindBuffer(gl.ARRAY_BUFFER, buffers[at]);
        gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
      });
    },
    draw(view, size) {
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform3f(find("view"), view.x, view.y, view.scale);
      gl.uniform1f(find("size"), size);
      gl.drawArrays(gl.POINTS, 0, drawn.count);
    },
  };
}

function makeCanvasPainter(canvas) {
  const context = canvas.getContext("2d");
  let drawn = null;
  return {
    update(now) { drawn = now; },
    draw(view, size) {
      context.clearRect(0, 0, canvas.width, canvas.height);
      for (let i = 0; i < drawn.count; i++) {
        context.fillStyle = allColors[drawn.colors[i]];
        const x = ((drawn.places[2 * i] / 65536 - view.x) * view.scale + 0.5) * canvas.width;
        const y = ((drawn.places[2 * i + 1] / 65536 - view.y) * view.scale + 0.5) * canvas.height;
        context.fillRect(x - size / 2, y - size / 2, size, size);
      }
    },
  };
}

export function makeMap() {
  const canvas = h("canvas", { "aria-hidden": "true" }), overlay = h("canvas", { "aria-hidden": "true" });
  const peek = h("figure", { class: "peek", hidden: true });
  const view = { x: 0.5, y: 0.5, scale: 0.94 };
  const shown = new Uint8Array(count);
  const painter = makePainter(canvas) ?? makeCanvasPainter(canvas);
  let lasso = null, isWaiting = false, coming = 0, isDrawable = false;

  // Once before the next picture, whatever happened until then.
  function draw() {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => { isWaiting = false; drawNow(); });
  }

  function drawNow() {
    if (!frame.clientWidth || !isDrawable) return;
    const ratio = devicePixelRatio || 1;
    const width = Math.round(frame.clientWidth * ratio), height = Math.round(frame.clientHeight * ratio);
    for (const each of [canvas, overlay]) {
      if (each.width !== width || each.height !== height) Object.assign(each, { width, height });
    }
    const size = ratio * (count > 100_000 ? 2 : count > 5_000 ? 3.5 : 6) * Math.min(3, Math.sqrt(view.scale));
    painter.draw(view, size);
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
    if (!node.hidden) coming = setTimeout(choose, 30);
  }

  function choose() {
    const found = [0, 0];
    for (let i = 0; i < count; i++) {
      shown[i] = isShown(i) ? 1 : 0;
      if (points.x[i] !== offMap) found[shown[i]]++;
    }
    fill(note, `${format(found[1])} images, draw around some to see only them`);
    painter.update(chooseDrawn(found, shown));
    isDrawable = true;
    draw();
  }
  return { node, paint };
}
