// The codes tab: matrices on canvas, the residual and the map as SVG. Drawn again when the colour scheme changes.
import { drawn, element, get, show } from "./api.js";

const $ = (id) => document.getElementById(id);
const COLOURS = ["#4c78a8", "#e4883d", "#54a268", "#d1605e", "#8b6cb1", "#9c755f", "#d884b3", "#7f7f7f", "#b5a642", "#3fa7b5"];
let opened = false;
let data = null;

export async function openCodes(info, choose) {
  if (opened) return;
  opened = true;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => data && drawCodes());
  try {
    data = await get("codes");
    drawCodes();
  } catch (error) {
    $("card-book").querySelector("p").textContent = error.message;
  }
  await followMap(info, choose);
}

function drawCodes() {
  const unknown = data.unknown ?? [];
  const notes = [];
  if (data.names.length < data.of) notes.push(`Shown are ${data.names.length} of ${data.of} ${data.kind}: those with the most items.`);
  if (data.sampled) notes.push(`Their codes are majorities over ${data.sampled.toLocaleString("en")} of the items.`);
  if (unknown.length) notes.push(`${unknown.length} classes of the database are not in the code book: ${unknown.slice(0, 12).join(", ")}${unknown.length > 12 ? ", …" : ""}.`);
  const longest = Math.max(3, ...data.names.map((name) => name.length));
  $("codes").style.setProperty("--axis", `min(${(longest * 0.6 + 0.8).toFixed(1)}em, ${innerWidth < 560 ? 16 : 18}em)`);
  $("codes-note").textContent = notes.join(" ");
  const first = data.first_results;
  $("first-results").textContent = first ? `${first} Measured by searching a sample of the items among the others.` : "";
  drawMatrix("card-wanted", data.affinity, -1, 1);
  const peak = data.rebuilt ? Math.max(1, ...data.rebuilt.flat().map(Math.abs)) : 1;
  drawMatrix("card-rebuilt", data.rebuilt, -peak, peak);
  const far = data.distances.length ? Math.max(1e-9, ...data.distances.flat()) : 1;
  drawMatrix("card-distances", data.distances.length ? data.distances : null, far, 0);
  drawCurve(data.residuals);
  drawBook();
}

function blend(colour, other, part) {
  return colour.map((channel, place) => Math.round(channel + (other[place] - channel) * part));
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim().split(/\s+/).map(Number);
  return { near: read("--near"), middle: read("--middle"), far: read("--far") };
}

// From `far` through `middle` to `near`.
function shade(value, low, high, { near, middle, far }) {
  const part = Math.min(1, Math.max(0, (value - low) / (high - low || 1)));
  return part < 0.5 ? blend(far, middle, part * 2) : blend(middle, near, part * 2 - 1);
}

const mostLabels = () => (innerWidth < 560 ? 11 : 24); // per axis; of more classes only some are written

function drawMatrix(card, rows, low, high) {
  const holder = $(card).querySelector(".matrix");
  $(card).hidden = rows === null;
  if (rows === null) return;
  const n = rows.length;
  const canvas = element("canvas", { width: n, height: n, role: "img", "aria-label": `${n} by ${n} matrix of ${data.kind}` });
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(n, n);
  const palette = colours();
  rows.flat().forEach((value, at) => pixels.data.set([...shade(value, low, high, palette), 255], at * 4));
  context.putImageData(pixels, 0, 0);
  const readout = element("p", { class: "readout quiet" }, "Point at a cell to read it.");
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const column = Math.min(n - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * n)));
    const row = Math.min(n - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * n)));
    readout.textContent = `${data.names[row]} – ${data.names[column]}: ${rows[row][column].toFixed(2)}`;
  });
  const [least, most] = low < high ? [low, high] : [high, low];
  const legend = element("p", { class: "scale quiet" }, least.toFixed(least % 1 ? 2 : 0), scale(low, high), most.toFixed(most % 1 ? 2 : 0));
  holder.replaceChildren(element("div", { class: "plot" }, axis(n, "rows"), canvas, axis(n, "columns")), legend, readout);
}

// The names of the rows or columns, at the middle of their cells; every second, third, … where there are many.
function axis(n, side) {
  const step = Math.ceil(n / mostLabels());
  const names = data.names.flatMap((name, place) => {
    if (place % step) return [];
    const label = element("span", { title: name }, name);
    label.style.setProperty("--at", `${((place + 0.5) / n * 100).toFixed(2)}%`);
    return [label];
  });
  const more = step > 1 ? `, every ${step === 2 ? "second" : step === 3 ? "third" : `${step}th`} named` : "";
  const title = element("b", {}, `${data.kind}${more}`);
  return element("div", { class: `axis ${side}`, "aria-hidden": "true" }, ...names, ...(side === "columns" ? [title] : []));
}

function scale(low, high) {
  const palette = colours();
  const stops = [0, 0.5, 1].map((part) => {
    const value = low < high ? low + part * (high - low) : high + part * (low - high);
    return `rgb(${shade(value, low, high, palette).join(" ")})`;
  });
  const bar = element("i", {});
  bar.style.background = `linear-gradient(90deg, ${stops.join(", ")})`;
  return bar;
}

function drawCurve(residuals) {
  $("card-residuals").hidden = residuals === null;
  if (residuals === null) return;
  const [width, height, edge] = [320, 320, 34];
  const x = (bit) => edge + bit / (residuals.length - 1) * (width - edge - 8);
  const y = (value) => 10 + (1 - value) * (height - edge - 10);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Residual from 1 down to ${residuals.at(-1)}` });
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(drawn("line", { class: "grid", x1: edge, x2: width - 8, y1: y(value), y2: y(value) }));
    const text = drawn("text", { x: edge - 6, y: y(value) + 4, "text-anchor": "end" });
    text.textContent = value;
    svg.append(text);
  }
  const line = residuals.map((value, bit) => `${x(bit).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  svg.append(drawn("polygon", { class: "area", points: `${x(0)},${y(0)} ${line} ${x(residuals.length - 1)},${y(0)}` }));
  svg.append(drawn("polyline", { class: "line", points: line }));
  for (const bit of [0, residuals.length - 1]) {
    const text = drawn("text", { x: x(bit), y: height - 16, "text-anchor": bit ? "end" : "start" });
    text.textContent = bit;
    svg.append(text);
  }
  const axisTitle = drawn("text", { x: (edge + width) / 2, y: height - 2, "text-anchor": "middle" });
  axisTitle.textContent = "bits";
  svg.append(axisTitle);
  const last = drawn("text", { class: "strong", x: x(residuals.length - 1), y: y(residuals.at(-1)) + 20, "text-anchor": "end" });
  last.textContent = residuals.at(-1).toFixed(3);
  svg.append(last);
  $("card-residuals").querySelector(".curve").replaceChildren(svg);
}

function drawBook() {
  $("card-book").hidden = data.codes.length === 0;
  const largest = Math.max(...data.weights.map(Math.abs), 1e-9);
  const bars = data.weights.map((weight) => {
    const bar = element("i", { class: weight < 0 ? "weight negative" : "weight", title: weight.toFixed(3) });
    bar.style.height = `${(2 + 26 * Math.abs(weight) / largest).toFixed(1)}px`;
    return bar;
  });
  const head = element("div", { class: "entry" }, element("span", { class: "name quiet" }, "weights"), element("span", { class: "strip weights" }, ...bars));
  const rows = data.codes.map((code, place) => {
    const bits = element("span", { class: "strip", role: "img", "aria-label": code.map((sign) => (sign > 0 ? "+" : "−")).join("") });
    bits.append(...code.map((sign) => element("b", { class: sign > 0 ? "plus" : "minus" })));
    return element("div", { class: "entry" }, element("span", { class: "name", title: data.names[place] }, data.names[place]), bits);
  });
  const book = $("card-book").querySelector(".book");
  $("card-book").querySelector("p").textContent = `${data.codes.length} codes, one per row; one column per bit.`;
  const longest = Math.max(7, ...data.names.map((name) => name.length));
  book.style.setProperty("--names", `min(${Math.ceil(longest * 0.68)}em, 34%)`);
  book.replaceChildren(head, ...rows);
}

async function followMap(info, choose) {
  const card = $("card-map");
  if (!info.map) { card.hidden = true; return; }
  let found = await get("map");
  while (found.state === "working" || found.state === "waiting") {
    await new Promise((wait) => setTimeout(wait, 700));
    found = await get("map");
  }
  const n = found.points.length;
  $("map-state").textContent = found.state === "ready" ? `t-SNE of ${n.toLocaleString("en")} codes; click a point to search with it.` : `The map ${found.state}.`;
  if (n) drawMap(found.points, (id) => choose(info.ids === "text" ? id : Number(id)), info);
}

function drawMap(points, choose, info) {
  const names = [...new Set(points.map((point) => point.label ?? ""))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const colour = new Map(names.map((name, place) => [name, names.length <= COLOURS.length ? COLOURS[place] : `hsl(${Math.round(place * 137.5) % 360} 50% 55%)`]));
  const [width, height] = [1000, 640];
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Map of ${points.length} items by their codes` });
  const edge = 60;
  const here = new Map(); // items with equal codes share a point; they are spread around it in a spiral
  for (const point of points) {
    const place = `${point.x} ${point.y}`;
    const rank = here.get(place) ?? 0;
    here.set(place, rank + 1);
    const [far, turn] = [4 * Math.sqrt(rank), rank * 2.39996];
    const x = edge + point.x * (width - 2 * edge) + far * Math.cos(turn);
    const y = edge + (1 - point.y) * (height - 2 * edge) + far * Math.sin(turn);
    const dot = drawn("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: 3.6, fill: colour.get(point.label ?? "") });
    dot.dataset.id = point.id;
    dot.dataset.label = [point.title, point.label].filter(Boolean).join(" · ") || `item ${point.id}`;
    svg.append(dot);
  }
  const tip = $("tip");
  svg.addEventListener("pointerover", (event) => {
    const { id, label } = event.target.dataset;
    tip.hidden = id === undefined;
    if (id === undefined) return;
    tip.querySelector("img").hidden = info.pictures === "text";
    if (info.pictures !== "text") show(tip.querySelector("img"), id);
    tip.querySelector("span").textContent = label;
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - 130)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - 140)}px`;
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  svg.addEventListener("click", (event) => {
    if (event.target.dataset.id === undefined) return;
    tip.hidden = true;
    choose(event.target.dataset.id);
  });
  $("card-map").querySelector(".map").replaceChildren(svg);
  if (names.length > 24) $("map-state").textContent += ` ${names.length} labels: point at one to read it.`;
  if (names.length > 24 || names.length < 2) return;
  $("card-map").querySelector(".legend").replaceChildren(...names.map((name) => {
    const dot = drawn("svg", { viewBox: "0 0 10 10", width: 10, height: 10 });
    dot.append(drawn("circle", { cx: 5, cy: 5, r: 5, fill: colour.get(name) }));
    return element("li", {}, dot, name || "no label");
  }));
}
