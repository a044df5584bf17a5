// Filters: one menu per column with few values; values of one column are alternatives, columns must all hold.
import { element } from "./api.js";

const chosen = new Map(); // column -> Set of values

export function where() {
  const found = {};
  for (const [column, values] of chosen) if (values.size) found[column] = [...values];
  return Object.keys(found).length ? found : null;
}

export function fillFilters(holder, facets, changed) {
  const columns = Object.entries(facets).sort(([a], [b]) => (b === "label") - (a === "label"));
  holder.hidden = columns.length === 0;
  const menus = columns.map(([column, values]) => makeMenu(column, values, update));
  const clear = element("button", { type: "button", class: "clear", hidden: "" }, "Clear filters");
  clear.addEventListener("click", () => {
    chosen.clear();
    for (const box of holder.querySelectorAll("input:checked")) box.checked = false;
    update();
  });
  function update() {
    for (const menu of menus) showChosen(menu);
    clear.hidden = where() === null;
    changed();
  }
  holder.replaceChildren(element("span", { class: "quiet" }, "Filter"), ...menus, clear);
  document.addEventListener("click", (event) => {
    for (const menu of menus) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of menus) menu.open = false;
  });
}

function makeMenu(column, values, update) {
  const list = element("ul", {}, ...values.map(({ value, items }) => {
    const box = element("input", { type: "checkbox" });
    box.addEventListener("change", () => {
      if (!chosen.has(column)) chosen.set(column, new Set());
      chosen.get(column)[box.checked ? "add" : "delete"](value);
      update();
    });
    const count = element("span", { class: "quiet" }, items.toLocaleString("en"));
    return element("li", {}, element("label", {}, box, element("span", { class: "value" }, shown(value)), count));
  }));
  const menu = element("details", { class: "filter" }, element("summary", {}, column), list);
  menu.dataset.column = column;
  return menu;
}

function showChosen(menu) {
  const values = [...(chosen.get(menu.dataset.column) ?? [])].map(shown);
  const words = values.length > 2 ? `${values.length} chosen` : values.join(" or ");
  menu.querySelector("summary").textContent = words ? `${menu.dataset.column}: ${words}` : menu.dataset.column;
  menu.classList.toggle("on", values.length > 0);
}

function shown(value) {
  return value === true ? "yes" : value === false ? "no" : String(value);
}
