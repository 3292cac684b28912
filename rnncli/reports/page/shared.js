"use strict";
// What all pages share: nodes, light and dark, and tables that are searched and sorted.
const byId = (id) => document.getElementById(id);

// Nodes are made one by one and hold text: nothing that was said by others is ever markup.
function node(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Light and dark: the system's, until the button is pressed, on this page and those after it.
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const systems = () => (system.matches ? "dark" : "light");
const other = () => ((root.dataset.theme || systems()) === "dark" ? "light" : "dark");
function kept(action) {
  try {
    return action(localStorage);
  } catch {
    return null; // a browser may keep nothing for a file
  }
}
function showTheme(theme) {
  if (theme) root.dataset.theme = theme;
  byId("theme").textContent = other() === "dark" ? "Dark" : "Light";
}
byId("theme").addEventListener("click", () => {
  showTheme(other());
  const theme = root.dataset.theme;
  kept((store) => (theme === systems() ? store.removeItem("theme") : store.setItem("theme", theme)));
});
system.addEventListener("change", () => showTheme());
byId("theme").hidden = false;
showTheme(kept((store) => store.getItem("theme")));

// Whether a text in lower case has every word that is searched for.
const hasWords = (text, q) => (q ?? "").toLowerCase().split(/\s+/).every((w) => text.includes(w));

// What a cell is sorted by: a number or a text; null if it is empty.
function sortKey(cell) {
  const text = cell.dataset.order ?? cell.textContent.trim();
  if (["", "·", "-"].includes(text)) return null;
  const number = Number(/^(?:over )?(\S+?)(?: %|x)?$/.exec(text)?.[1]);
  return Number.isNaN(number) ? text : number;
}
const inOrder = (a, b) =>
  typeof a === "number" && typeof b === "number"
    ? a - b
    : String(a).localeCompare(String(b), "en", { numeric: true });

// Press a heading: numbers from the largest, texts from the first; again: the other way round; and
// again: as they were. Empty cells are last.
function makeSortable(table, rows) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, k) => {
    const keys = new Map(rows.map((row) => [row, sortKey(row.cells[k])]));
    const first = [...keys.values()].some((key) => typeof key === "number") ? -1 : 1;
    const button = node("button", { type: "button", className: "sort" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const ways = [0, first, -first];
      const way = ways[(ways.indexOf(Number(head.dataset.way ?? 0)) + 1) % 3];
      for (const each of heads) {
        each.removeAttribute("aria-sort");
        delete each.dataset.way;
      }
      head.dataset.way = way;
      if (way) head.setAttribute("aria-sort", way < 0 ? "descending" : "ascending");
      const [empty, full] = [true, false].map((none) => rows.filter((r) => (keys.get(r) === null) === none));
      if (way) full.sort((a, b) => way * inOrder(keys.get(a), keys.get(b)));
      table.tBodies[0].append(...(way ? [...full, ...empty] : rows));
    });
  });
}
function makeSearchable(table, rows) {
  const input = node("input", { type: "search", placeholder: "words of a row", spellcheck: false });
  const found = node("span", { className: "note" });
  found.setAttribute("role", "status");
  const texts = rows.map((row) => row.textContent.toLowerCase());
  input.addEventListener("input", () => {
    rows.forEach((row, k) => (row.hidden = !hasWords(texts[k], input.value)));
    const shown = rows.filter((row) => !row.hidden).length;
    found.textContent = shown < rows.length ? `${shown} of ${rows.length}` : "";
  });
  table.parentElement.before(node("div", { className: "find" }, node("label", {}, "Find ", input), found));
}
const [FEWEST_SORTED, FEWEST_SEARCHED] = [3, 10]; // rows
for (const table of document.querySelectorAll("table.grid")) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length >= FEWEST_SEARCHED) makeSearchable(table, rows);
  if (rows.length >= FEWEST_SORTED) makeSortable(table, rows);
}
