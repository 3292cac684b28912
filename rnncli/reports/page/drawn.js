// What pages share that draw from data: the data, margins and drawings.
const data = JSON.parse(byId("data").textContent);

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

