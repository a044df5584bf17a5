// The search tab: the query, its distance, the results. Every change searches again.
import { element, get, post, show } from "./api.js";
import { openCodes } from "./codes.js";
import { fillFilters, where } from "./filters.js";
import { distance, showResults, ties, words } from "./results.js";

const $ = (id) => document.getElementById(id);
const checked = (name) => document.querySelector(`input[name=${name}]:checked`).value;
let info = null;
let query = null; // {id}, {text}, {vector} or {scores}, as /search takes it
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
  if (info.ids === "text") Object.assign($("item-id"), { type: "text", inputMode: "text" });
  if (info.vectors) {
    $("by-cosine").hidden = false;
    document.querySelector("input[name=mode][value=cosine]").checked = true;
  }
  get("facets").then((facets) => fillFilters($("filters"), facets, search)).catch((error) => showStatus(error.message, true));
  await randomItem();
  if (info.takes === "texts") { // start with the box for words
    document.querySelector("input[name=source][value=text]").checked = true;
    chooseSource();
  }
}

function listen() {
  $("random").addEventListener("click", randomItem);
  $("by-item").addEventListener("submit", (event) => { event.preventDefault(); searchItem(typedId()); });
  $("item-id").addEventListener("change", () => { if ($("item-id").value !== "") searchItem(typedId()); });
  $("by-text").addEventListener("submit", (event) => { event.preventDefault(); searchText(); });
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

function typedId() {
  return info?.ids === "text" ? $("item-id").value : Number($("item-id").value);
}

function chooseSource() {
  const source = checked("source");
  $("by-item").hidden = source !== "item";
  $("by-text").hidden = source !== "text";
  $("by-vector").hidden = source !== "vector";
  $("by-image").hidden = source !== "image";
  if (source === "vector") $("vector").focus();
  if (source === "text") $("text").focus({ preventScroll: true });
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
    const item = await get(`items/${encodeURIComponent(id)}`);
    if (query.id !== id) return;
    const { title, text } = words(item, info);
    if (info.pictures === "text") showWords(title ?? item.label ?? `item ${id}`, text, item.label);
    else showQuery(title ?? `item ${id}`, (image) => show(image, id));
    if (item.features && info.takes === "vectors") $("vector").value = item.features.join(", ");
  } catch { /* search shows the error */ }
}

async function searchText() {
  const text = $("text").value.trim();
  if (!text) return;
  query = { text };
  hideQuery();
  await search();
}

async function searchVector() {
  const words = $("vector").value.replace(/[[\]]/g, " ").split(/[\s,;]+/).filter(Boolean);
  const vector = words.map(Number);
  const wrong = vector.findIndex((number) => !Number.isFinite(number));
  if (wrong >= 0) { showStatus(`“${words[wrong].slice(0, 20)}” is not a finite number; correct it and search again.`, true); return; }
  query = { vector };
  hideQuery();
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

function hideQuery() {
  $("query-picture").hidden = true;
  $("query-words").hidden = true;
}

function showQuery(caption, fill) {
  hideQuery();
  const figure = $("query-picture");
  fill(figure.querySelector("img"));
  figure.querySelector("figcaption").textContent = caption;
  figure.hidden = false;
}

function showWords(title, text, label) {
  hideQuery();
  const parts = [element("strong", {}, title)];
  if (label && label !== title) parts.push(" ", element("span", { class: "chip" }, label));
  if (text) parts.push(element("p", { class: "text" }, text));
  $("query-words").replaceChildren(...parts);
  $("query-words").hidden = false;
}

async function search() {
  if (!query || !info) return;
  allowModes();
  const n_bits = Number($("n-bits").value);
  $("n-bits-shown").textContent = `${n_bits} of ${info.n_bits}`;
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const started = performance.now();
  const late = setTimeout(() => { $("results").setAttribute("aria-busy", "true"); showStatus("Searching…"); }, 300);
  try {
    const k = Math.min(Number($("k").value), info.max_k);
    const mode = checked("mode");
    const body = { ...query, n_bits, k };
    if (mode !== "cosine") body.mode = mode;
    else body.rescore = Math.min(Math.max(100, 10 * k), 10 * info.max_k);
    if (where()) body.where = where();
    const answer = await post("search", body, signal);
    showBits(answer);
    showResults($("results"), answer.results, info, answer.metric, (id) => { searchItem(id); scrollTo({ top: 0, behavior: "smooth" }); });
    showLatency(answer, performance.now() - started);
  } catch (error) {
    if (error.name !== "AbortError") { showStatus(error.message, true); $("results").replaceChildren(); }
  } finally {
    clearTimeout(late);
    if (running?.signal === signal) $("results").removeAttribute("aria-busy");
  }
}

// Some distances need more than the code of the query.
function allowModes() {
  const noScores = "id" in query && !info.scores_of_items;
  const real = document.querySelector("input[name=mode][value=real]");
  real.disabled = noScores;
  real.parentElement.title = noScores ? "The scores of items are not available: start the server with --features or --images" : "Scores instead of the signs of the query";
  const cosine = document.querySelector("input[name=mode][value=cosine]");
  cosine.disabled = "scores" in query;
  if ((noScores && real.checked) || (cosine.disabled && cosine.checked)) document.querySelector("input[name=mode][value=weighted]").checked = true;
}

function showLatency(answer, total) {
  const { encode, search: searched } = answer.milliseconds;
  const { results } = answer;
  const parts = [`Encoded in ${encode.toFixed(1)} ms, searched in ${searched.toFixed(1)} ms, total ${total.toFixed(0)} ms`];
  if (!results.length) parts.push("no item meets the filters");
  if (results.some((found) => found.relevant !== null)) parts.push(`${results.filter((found) => found.relevant).length} of ${results.length} share the label`);
  const same = ties(results);
  if (same) parts.push(`the first ${same} tie at distance ${distance(results[0].distance, answer.metric)} and are in the order of the database`);
  showStatus(parts.join(" · "));
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

function showStatus(words, wrong = false) {
  $("status").textContent = words;
  $("status").className = wrong ? "wrong" : "";
}

start();
