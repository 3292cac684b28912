"use strict";
// What all pages share: their data, nodes, margins and colours.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

// Nodes are made one by one and hold text: nothing that was said by others is ever markup.
function node(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
function drawing(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const digits = (value, count) => Number(value.toPrecision(count));
function margin(letter) {
  if (letter === ".") return 0;
  const k = data.letters.indexOf(letter);
  return k < 0 ? Infinity : 10 ** ((k - data.tolerance) / 5);
}
const factor = (value) =>
  value === 0
    ? "0"
    : value === Infinity
      ? "beyond 1,000,000 or infinite"
      : `up to ${digits(value, 2)}`;

// Light and dark: the system's, until the button is pressed.
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const theme = () => root.dataset.theme || (system.matches ? "dark" : "light");
const other = () => (theme() === "dark" ? "light" : "dark");
function showTheme() {
  byId("theme").textContent = other() === "dark" ? "Dark" : "Light";
}
byId("theme").addEventListener("click", () => {
  root.dataset.theme = other();
  showTheme();
});
system.addEventListener("change", showTheme);
byId("theme").hidden = false;
showTheme();

