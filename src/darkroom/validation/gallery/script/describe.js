// What the page says of a row, beside its picture or over the page.

import { showLabel, showSplit, tellLabel, tileAt } from "./data.js";
import { format, h, openDialog, picture } from "./dom.js";

export function nameFile(tile) {
  return tile ? tile.uri.split(/[\\/]/).pop() || `row ${format(tile.row)}` : "no name";
}

// The folder and the name of a file. Where they have no room, the style cuts their beginning: what
// numbers and endings tell is at the end. That makes the line one from right to left, but not the name.
function showFile(tile) {
  const folder = tile?.uri.split(/[\\/]/).at(-2);
  return h("bdi", {}, folder ? `${folder}/${nameFile(tile)}` : nameFile(tile));
}

// Label, split, what a model says, size and file of a row, as a list of elements.
export function describeRow(place) {
  const tile = tileAt.get(place) ?? null, told = tellLabel(place), own = showLabel(place);
  return [
    h("span", { class: "label" }, own),
    h("span", { class: `split ${showSplit(place)}` }, showSplit(place)),
    told === undefined ? null : h(
      "span", { class: told === own ? "fact" : "fact wrong" },
      "model: ", h("span", {}, told), ` ${tile?.score ?? ""}`,
    ),
    tile?.size ? h("span", { class: "fact size" }, tile.size.join(" × ")) : null,
    h("span", { class: "file", title: tile && tile.uri }, showFile(tile)),
  ];
}

export function describeFact([name, value]) {
  const isNumber = typeof value === "number", isFraction = isNumber && !Number.isInteger(value);
  const shown = isFraction ? value.toPrecision(3) : isNumber ? format(value) : value;
  return h("span", { class: "fact" }, ["detail", "object"].includes(name) ? shown : isNumber ? `${name} ${shown}` : `${name}: ${shown}`);
}

// Shows one or two images as large as the page allows, until the next click.
export function enlarge(places) {
  const figures = places.map((place) =>
    h("figure", {}, picture(tileAt.get(place)), h("figcaption", { class: "caption" }, describeRow(place))));
  openDialog("Enlarged", figures);
}
