// The map of the features: a point for each row, drawn by WebGL2, else a sample of them on a canvas.
// A lasso, or what is in view, becomes a filter.

import { count, facts, offMap, points, setOf, showLabel, showSplit, tiles } from "./data.js";
import { fill, format, h, picture } from "./dom.js";
import { filters, isShown, setFilter } from "./filters.js";

const mapColors = [
  [0.31, 0.47, 0.66], [0.95, 0.56, 0.17], [0.35, 0.63, 0.31], [0.88, 0.34, 0.35], [0.46, 0.72, 0.70],
  [0.69, 0.48, 0.63], [0.61, 0.46, 0.37], [0.93, 0.79, 0.28], [0.85, 0.51, 0.63], [0.55, 0.55, 0.60],
];
const canvasPoints = 100_000;
const lassoMaskSide = 1024;
const moveShare = 0.15;

const vertexShader = `#version 300 es
in vec2 place; in float color; in float shown;
uniform vec3 view; uniform float size; uniform float pass; uniform vec3 colors[${mapColors.length}];
out vec4 tint;
void main() {
  vec2 at = (place - view.xy) * view.z * 2.0;
  bool isHere = place.x < 4095.0 / 4096.0 && shown == pass;
  gl_Position = isHere ? vec4(at.x, -at.y, 0.0, 1.0) : vec4(9.0);
  gl_PointSize = size;
  tint = pass > 0.5 ? vec4(colors[int(color)], 0.85) : vec4(0.5, 0.5, 0.5, 0.25);
}`;
const fragmentShader = `#version 300 es
precision mediump float;
in vec4 tint; out vec4 color;
void main() {
  if (length(gl_PointCoord - 0.5) > 0.5) discard;
  color = vec4(tint.rgb * tint.a, tint.a);
}`;

function findColor(place) {
  return setOf[place] % mapColors.length;
}

// Draws with WebGL2; null where a browser has none.
function makePainter(canvas) {
  const gl = canvas.getContext("webgl2", { antialias: true, premultipliedAlpha: true });
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
  const places = new Uint16Array(count * 2), colors = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    places[2 * i] = points.x[i] * 16;
    places[2 * i + 1] = points.y[i] * 16;
    colors[i] = findColor(i);
  }
  function addBuffer(name, values, size, type, isNormal) {
    const buffer = gl.createBuffer(), place = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, type, isNormal, 0, 0);
    return buffer;
  }
  addBuffer("place", places, 2, gl.UNSIGNED_SHORT, true);
  addBuffer("color", colors, 1, gl.UNSIGNED_BYTE, false);
  const shownBuffer = addBuffer("shown", new Uint8Array(count), 1, gl.UNSIGNED_BYTE, false);
  const find = (name) => gl.getUniformLocation(program, name);
  gl.uniform3fv(find("colors"), mapColors.flat());
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  return {
    update(shown) {
      gl.bindBuffer(gl.ARRAY_BUFFER, shownBuffer);
      gl.bufferSubData(gl.ARRAY_BUFFER, 0, shown);
    },
    draw(view, size) {
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform3f(find("view"), view.x, view.y, view.scale);
      gl.uniform1f(find("size"), size);
      for (const pass of [0, 1]) {
        gl.uniform1f(find("pass"), pass);
        gl.drawArrays(gl.POINTS, 0, count);
      }
    },
  };
}

function makeCanvasPainter(canvas) {
  const context = canvas.getContext("2d"), step = Math.ceil(count / canvasPoints);
  let shown = null;
  return {
    update(values) { shown = values; },
    draw(view, size) {
      context.clearRect(0, 0, canvas.width, canvas.height);
      for (const pass of [0, 1]) {
        for (let i = 0; i < count; i += step) {
          if (points.x[i] === offMap || shown[i] !== pass) continue;
          const [r, g, b] = pass ? mapColors[findColor(i)] : [0.5, 0.5, 0.5];
          context.fillStyle = `rgba(${r * 255},${g * 255},${b * 255},${pass ? 0.85 : 0.25})`;
          const x = ((points.x[i] / 4096 - view.x) * view.scale + 0.5) * canvas.width;
          const y = ((points.y[i] / 4096 - view.y) * view.scale + 0.5) * canvas.height;
          context.fillRect(x - size / 2, y - size / 2, size, size);
        }
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
  let lasso = null;

  function draw() {
    const ratio = devicePixelRatio || 1;
    for (const each of [canvas, overlay]) {
      each.width = Math.max(1, Math.round(frame.clientWidth * ratio));
      each.height = Math.max(1, Math.round(frame.clientHeight * ratio));
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
    let found = 0;
    for (let i = 0; i < count; i++) {
      shown[i] = isShown(i) ? 1 : 0;
      if (shown[i] && points.x[i] !== offMap) found++;
    }
    fill(note, `${format(found)} images, colours by ${facts.labels.length ? "label" : "nothing"}; draw around some to see them`);
    painter.update(shown);
    draw();
  }
  return { node, paint };
}
