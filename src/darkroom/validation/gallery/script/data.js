// The data of the page: facts about the dataset, tiles, and a few numbers of every row.
// A row is named by its place: its number in the index, from 0.

const arrayTypes = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array };

function readBlock(id) {
  const node = document.getElementById(id);
  if (!node) return null;
  const value = JSON.parse(node.textContent);
  node.remove(); // The text would be kept in memory beside the value.
  return value;
}

function readArray(name) {
  const block = readBlock(`rows-${name}`);
  if (!block) return null;
  const text = atob(block.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  return new arrayTypes[block.type](bytes.buffer);
}

// Twelve bits a side, in three bytes; 4095 is "not on the map".
function unpackMap(packed) {
  const points = { x: new Uint16Array(facts.count), y: new Uint16Array(facts.count) };
  for (let i = 0, at = 0; i < facts.count; i++, at += 3) {
    points.x[i] = packed[at] | (packed[at + 1] & 15) << 8;
    points.y[i] = packed[at + 1] >> 4 | packed[at + 2] << 4;
  }
  return points;
}

export const facts = readBlock("facts");
export const count = facts.count;
export const tiles = readBlock("tiles");
export const tileAt = new Map(tiles.map((tile) => [tile.place, tile]));
export const side = readArray("side");
export const brightness = readArray("brightness");
// What the kind of target says of every row: 65535 where it is not known.
export const measures = facts.filters.map((each, at) => ({
  ...each, name: `measure-${at}`, values: readArray(`measure-${at}`),
}));

const group = readArray("group");
export const splitOf = new Uint8Array(count);
export const setOf = new Uint32Array(count);
for (let i = 0; i < count; i++) {
  setOf[i] = group[i] / facts.splits.length;
  splitOf[i] = group[i] % facts.splits.length;
}

// The label that a model says, by its number from 1; 0 where it says nothing.
export const told = readArray("told");

export function tellLabel(place) {
  return facts.labels[(told?.[place] ?? 0) - 1];
}

// The confusions of a model: which label it takes for which, and the number of that of each row. The
// first one is that of all other rows.
export const confusions = [null];
export const confusionOf = told && new Uint32Array(count);
if (told) {
  const numbers = new Map();
  for (let i = 0; i < count; i++) {
    const own = facts.sets[setOf[i]][0], key = setOf[i] * (facts.labels.length + 1) + told[i];
    if (own === undefined || !told[i] || own === told[i] - 1) continue;
    if (!numbers.has(key)) numbers.set(key, confusions.push([own, told[i] - 1]) - 1);
    confusionOf[i] = numbers.get(key);
  }
}

// What a finding suggests for some of its rows, by their places.
for (const finding of facts.findings) {
  const judged = finding.items.filter((item) => facts.labels.length && "suggested" in item.facts);
  finding.suggested = new Map(judged.map(({ places, facts: { suggested } }) =>
    [places[0], facts.relabels === "several" ? JSON.parse(suggested) : suggested]));
}

const packedMap = readArray("map");
export const points = packedMap && unpackMap(packedMap);
export const offMap = 4095;
// Of classes, by their numbers.
export const colors = facts.colors;
export const hasShapes = tiles.some((tile) => tile.shapes.length);

// Said of images that are not annotated, and of those that are, without any label.
export const noLabel = "no label";
// Labels by their numbers; an image without labels has the last one.
export const labelNames = [...facts.labels, noLabel];
export const labelsOfSet = facts.sets.map((each) => (each.length ? each : [facts.labels.length]));

// The images that are most like one with a picture, by their features: places, the nearest first.
const alike = readArray("alike");
export const hasAlike = alike !== null;
if (alike) tiles.forEach((tile, at) => {
  const numbers = alike.subarray(at * alike.length / tiles.length, (at + 1) * alike.length / tiles.length);
  tile.alike = [...numbers].filter((number) => number in tiles).map((number) => tiles[number].place);
});

// What an image is labelled with, as text: exact for images with a tile, else by its labels.
export function showLabel(place) {
  const tile = tileAt.get(place);
  if (tile) return tile.label || noLabel;
  return facts.sets[setOf[place]].map((number) => facts.labels[number]).join(", ") || noLabel;
}

export function showSplit(place) {
  return facts.splits[splitOf[place]];
}
