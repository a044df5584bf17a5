// The search tab: the query, its distance, the results. Every change searches again.
import { element, get, post, show } from "./api.js";
import { openCodes } from "./codes.js";

const $ = (id) => document.getElementById(id);
const checked = (name) => document.querySelector(`input[name=${name}]:checked`).value;
let info = null;
let query = null; // {id} or {vector} or {scores}, as /search takes it
let running = null; // the request in flight, aborted when another follows

async function start() {
  listen();
  try {
    info = await get("info");
  } catch (error) {
    showStatus(error.message, true);
    return;
  }
  const items = info.items.toLocaleString("en");
  $("about").textContent = `${info.method} · ${items} items · ${info.n_bits} bits`;
  document.title = `hbmp · ${info.method}, ${items} items`;
  document.body.dataset.takes = info.takes;
  $("n-bits").max = info.n_bits;
  $("n-bits").value = info.n_bits;
  if (info.takes === "vectors") $("vector").placeholder = `${info.n_features} numbers, between commas or spaces`;
  await randomItem();
}

function listen() {
  $("random").addEventListener("click", randomItem);
  $("by-item").addEventListener("submit", (event) => { event.preventDefault(); searchItem(Number($("item-id").value)); });
  $("item-id").addEventListener("change", () => { if ($("item-id").value !== "") searchItem(Number($("item-id").value)); });
  $("by-vector").addEventListener("submit", (event) => { event.preventDefault(); searchVector(); });
  $("image").addEventListener("change", () => searchImage($("image").files[0]));
  for (const input of document.getElementsByName("source")) input.addEventListener("change", chooseSource);
  for (const input of document.getElementsByName("mode")) input.addEventListener("change", search);
  $("n-bits").addEventListener("input", search);
  $("k").addEventListener("change", search);
  for (const [name, act] of [["dragover", () => {}], ["drop", dropped]]) {
    document.addEventListener(name, (event) => { event.preventDefault(); act(event); });
  }
  // Small pictures are drawn as sharp squares; photographs are smoothed.
  document.addEventListener("load", (event) => {
    if (event.target.tagName === "IMG") event.target.classList.toggle("pixels", event.target.naturalWidth < 64);
  }, true);
  const tabs = [$("tab-search"), $("tab-codes")];
  tabs.forEach((tab, place) => {
    tab.addEventListener("click", () => openTab(tab));
    tab.addEventListener("keydown", (event) => {
      if (event.key === "ArrowLeft" || event.key === "ArrowRight") openTab(tabs[1 - place], true);
    });
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("textarea, input:not([type=range]):not([type=radio]), select");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || $("token-dialog").open) return;
    if (event.key === "r") { openTab(tabs[0]); randomItem(); }
    if (event.key === "1" || event.key === "2") openTab(tabs[Number(event.key) - 1], true);
  });
}

function openTab(tab, focus = false) {
  for (const other of document.querySelectorAll("[role=tab]")) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", chosen);
    other.tabIndex = chosen ? 0 : -1;
    $(other.getAttribute("aria-controls")).hidden = !chosen;
  }
  if (focus) tab.focus();
  if (tab.id === "tab-codes") openCodes(info, (id) => { openTab($("tab-search")); searchItem(id); });
}

function chooseSource() {
  const source = checked("source");
  $("by-item").hidden = source !== "item";
  $("by-vector").hidden = source !== "vector";
  $("by-image").hidden = source !== "image";
  if (source === "vector") $("vector").focus();
}

async function randomItem() {
  document.querySelector("input[name=source][value=item]").checked = true;
  chooseSource();
  try {
    await searchItem((await get("items/random")).id);
  } catch (error) { showStatus(error.message, true); }
}

async function searchItem(id) {
  document.querySelector("input[name=source][value=item]").checked = true;
  chooseSource();
  $("item-id").value = id;
  query = { id };
  await search();
  try {
    const item = await get(`items/${id}`);
    if (query.id !== id) return;
    showQuery(item.label ?? item.name?.split("/").at(-1) ?? `item ${id}`, (image) => show(image, id));
    if (item.features && info.takes === "vectors") $("vector").value = item.features.join(", ");
  } catch { /* search shows the error */ }
}

async function searchVector() {
  const words = $("vector").value.replace(/[[\]]/g, " ").split(/[\s,;]+/).filter(Boolean);
  const vector = words.map(Number);
  const wrong = vector.findIndex((number) => !Number.isFinite(number));
  if (wrong >= 0) { showStatus(`“${words[wrong].slice(0, 20)}” is not a finite number; correct it and search again.`, true); return; }
  query = { vector };
  $("query-picture").hidden = true;
  await search();
}

function dropped(event) {
  const file = event.dataTransfer?.files?.[0];
  if (!file) return;
  if (info?.takes !== "images") { showStatus("This model takes vectors, not images.", true); return; }
  document.querySelector("input[name=source][value=image]").checked = true;
  chooseSource();
  searchImage(file);
}

async function searchImage(file) {
  if (!file) return;
  if (file.size > info.limits.upload_bytes) { showStatus(`${file.name} is larger than the server accepts.`, true); return; }
  const form = new FormData();
  form.append("image", file);
  try {
    query = { scores: (await post("encode", form)).scores };
  } catch (error) { showStatus(error.message, true); return; }
  showQuery(file.name, (image) => {
    image.dataset.id = "";
    const url = URL.createObjectURL(file);
    image.onload = () => URL.revokeObjectURL(url);
    image.src = url;
  });
  await search();
}

function showQuery(words, fill) {
  const figure = $("query-picture");
  fill(figure.querySelector("img"));
  figure.querySelector("figcaption").textContent = words;
  figure.hidden = false;
}

async function search() {
  if (!query || !info) return;
  const noScores = "id" in query && !info.scores_of_items;
  const real = document.querySelector("input[name=mode][value=real]");
  real.disabled = noScores;
  real.parentElement.title = noScores ? "The scores of items are not available: start the server with --features or --images" : "Scores instead of the signs of the query";
  if (noScores && real.checked) document.querySelector("input[name=mode][value=weighted]").checked = true;
  const n_bits = Number($("n-bits").value);
  $("n-bits-shown").textContent = `${n_bits} of ${info.n_bits}`;
  running?.abort();
  running = new AbortController();
  const started = performance.now();
  try {
    const body = { ...query, n_bits, mode: checked("mode"), k: Math.min(Number($("k").value), info.max_k) };
    const answer = await post("search", body, running.signal);
    showBits(answer);
    showResults(answer.results);
    showLatency(answer, performance.now() - started);
  } catch (error) {
    if (error.name !== "AbortError") { showStatus(error.message, true); $("results").replaceChildren(); }
  }
}

function showLatency(answer, total) {
  const { encode, search: searched } = answer.milliseconds;
  const right = answer.results.filter((found) => found.relevant).length;
  const known = answer.results.some((found) => found.relevant !== null);
  const relevant = known ? ` · ${right} of ${answer.results.length} share the label` : "";
  showStatus(`Encoded in ${encode.toFixed(1)} ms, searched in ${searched.toFixed(1)} ms, total ${total.toFixed(0)} ms${relevant}`);
}

function showBits(answer) {
  const weights = info.weights.map((weight, bit) => (bit < answer.n_bits ? answer.weights[bit] : 0));
  const largest = Math.max(...weights.map(Math.abs), 1e-9);
  const made = answer.code.map((sign, bit) => {
    const used = bit < answer.n_bits;
    const score = answer.scores ? `, score ${answer.scores[bit].toFixed(2)}` : "";
    const title = `bit ${bit + 1}: ${sign > 0 ? "+1" : "−1"}${used ? `, weight ${weights[bit].toFixed(3)}` : ", not used"}${score}`;
    const bar = element("i", { class: weights[bit] < 0 ? "weight negative" : "weight" });
    bar.style.height = `${(used ? 2 + 22 * Math.abs(weights[bit]) / largest : 0).toFixed(1)}px`;
    const box = element("b", { class: sign > 0 ? "plus" : "minus" });
    if (answer.scores && answer.mode === "real") {
      const size = Math.max(...answer.scores.map(Math.abs), 1e-9);
      box.style.opacity = (0.3 + 0.7 * Math.sqrt(Math.abs(answer.scores[bit]) / size)).toFixed(2);
    }
    return element("span", { class: used ? "bit" : "bit unused", title }, bar, box);
  });
  const bytes = [];
  for (let first = 0; first < made.length; first += 8) bytes.push(element("span", { class: "byte" }, ...made.slice(first, first + 8)));
  $("bits").replaceChildren(...bytes);
}

function showResults(results) {
  const old = [...$("results").children];
  $("results").replaceChildren(...results.map((found, rank) => {
    const card = old[rank] ?? makeCard();
    const button = card.firstChild;
    const verdict = found.relevant === null ? "" : found.relevant ? "right" : "wrong";
    button.className = `found ${verdict}`;
    button.dataset.id = found.id;
    const words = found.label ?? found.name?.split("/").at(-1) ?? `item ${found.id}`;
    const suffix = verdict && (found.relevant ? ", shares the label" : ", another label");
    button.setAttribute("aria-label", `${words}, item ${found.id}, distance ${distance(found.distance)}${suffix}`);
    button.title = found.name ?? "";
    show(button.querySelector("img"), found.id);
    button.querySelector(".label").textContent = words;
    button.querySelector(".distance").textContent = distance(found.distance);
    return card;
  }));
}

function makeCard() {
  const words = element("span", { class: "words" }, element("span", { class: "label" }), element("span", { class: "distance" }));
  const button = element("button", { type: "button" }, element("img", { alt: "" }), words);
  button.addEventListener("click", () => { searchItem(Number(button.dataset.id)); scrollTo({ top: 0, behavior: "smooth" }); });
  return element("li", {}, button);
}

function distance(value) {
  return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) < 10 ? 3 : 1);
}

function showStatus(words, wrong = false) {
  $("status").textContent = words;
  $("status").className = wrong ? "wrong" : "";
}

start();
