// Results: cards with the picture, or with the title and the text of an item; its label, link, rank and distance.
import { element, show } from "./api.js";

const MOST_FACTS = 4;
const DRAWN = /^[0-9a-f-]{32,36}$/i; // an id that a program drew

export function words(item, info) {
  const { title, text } = info.shown;
  const payload = item.payload ?? {};
  const name = item.name?.split("/").at(-1);
  const named = payload[title] ?? null;
  const id = info.ids === "text" && !DRAWN.test(item.id) ? item.id : null;
  return {
    title: named ?? (info.pictures === "text" ? null : item.label) ?? name ?? id ?? (text && payload[text] ? null : `item ${item.id}`),
    text: (text && payload[text]) || null,
  };
}

export function showResults(holder, results, info, metric, choose) {
  holder.classList.toggle("texts", info.pictures === "text");
  holder.replaceChildren(...results.map((found, place) => card(found, place + 1, info, metric, choose)));
}

function card(found, rank, info, metric, choose) {
  const { title, text } = words(found, info);
  const verdict = found.relevant === null ? "" : found.relevant ? "right" : "wrong";
  const near = distance(found.distance, metric);
  const button = element("button", { type: "button", class: "like" });
  button.dataset.id = found.id;
  const spoken = verdict && (found.relevant ? ", shares the label" : ", another label");
  button.setAttribute("aria-label", `${title ?? text?.slice(0, 80)}, item ${found.id}, rank ${rank}, distance ${near}${spoken}`);
  button.title = found.name ?? `Items like ${found.id}`;
  button.addEventListener("click", () => choose(found.id));
  const place = element("span", { class: "rank" }, String(rank));
  const far = element("span", { class: "distance", title: metric === "cosine" ? "1 − cosine of the original vectors" : "distance of the codes" }, near);
  if (info.pictures === "text") {
    button.append(element("span", { class: "head" }, place, element("span", { class: "title" }, title ?? ""), far));
    if (text) button.append(element("span", { class: "text" }, text));
  } else {
    const image = element("img", { alt: "" });
    show(image, found.id);
    button.append(image, element("span", { class: "head" }, place, element("span", { class: "title" }, title ?? String(found.id)), far));
  }
  return element("li", { class: `found ${verdict}` }, button, ...facts(found, title, info));
}

// Label, link and the other columns, below the button, so that a link is no part of it.
function facts(found, title, info) {
  const { title: titled, text, link } = info.shown;
  const parts = [];
  if (found.label !== null && found.label !== title) parts.push(element("span", { class: "chip" }, found.label));
  const others = Object.entries(found.payload).filter(([name, value]) => ![titled, text, link].includes(name) && value !== null && typeof value !== "object" && !name.startsWith("_") && String(value) !== found.label);
  for (const [name, value] of others.slice(0, MOST_FACTS)) {
    parts.push(element("span", { class: "fact" }, element("i", {}, `${name} `), fact(value)));
  }
  const address = safe(found.payload[link]);
  if (address) parts.push(element("a", { href: address.href, target: "_blank", rel: "noopener noreferrer nofollow" }, `${address.hostname} ↗`));
  return parts.length ? [element("p", { class: "facts" }, ...parts)] : [];
}

// Only web addresses become links; `javascript:` and the like stay away.
function safe(text) {
  try {
    const address = new URL(text);
    return address.protocol === "https:" || address.protocol === "http:" ? address : null;
  } catch {
    return null;
  }
}

function fact(value) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 4, useGrouping: false }) : value;
}

export function distance(value, metric) {
  if (metric === "cosine") return value.toFixed(3);
  return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) < 10 ? 3 : 1);
}

// How many results share the smallest distance, which the codes cannot tell apart.
export function ties(results) {
  const first = results[0]?.distance;
  const same = results.filter((found) => found.distance === first).length;
  return same > 1 ? same : 0;
}
