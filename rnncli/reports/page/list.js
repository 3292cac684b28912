// A list of what the address selects: the controls show the selection, and change it.
const address = (filters) => "#" + new URLSearchParams(Object.entries(filters).filter(([, v]) => v));
const allOr = (values) => [["", "all"], ...[...new Set(values)].map((value) => [value, value])];
const duration = (s) => (s >= 1 ? `${digits(s, 3)} s` : `${digits(s * 1000, 2)} ms`);
const counted = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;
const paragraphs = (className, lines) =>
  node("div", { className }, ...lines.map((line) => node("p", { textContent: line })));
const repeatIt = (command) =>
  node(
    "div",
    {},
    node("p", { className: "caption", textContent: "Repeat it" }),
    node("pre", { textContent: command, tabIndex: 0 }),
  );

// One line of a list, which opens; what is in it is made when it does.
function opening(one, cells, body) {
  const badge = node("span", {
    className: `badge ${one.verdict.replaceAll(" ", "-")}${one.fails ? "" : " calm"}`,
    title: one.fails ? "makes the run fail" : "does not make the run fail",
    textContent: one.verdict,
  });
  const made = node("details", { className: "case" }, node("summary", {}, badge, ...cells));
  made.addEventListener("toggle", () => {
    if (made.open && made.children.length === 1) made.append(body(one));
  });
  return made;
}

// rows: all there is; noun: what one is; fields: control -> its choices, null for a text; orders:
// name -> [words, compare]; matches: whether the filters select a row; draw: from a row to a node.
function showList({ rows, noun, fields, orders, matches, draw }) {
  const CHUNK = 100;
  const names = [...Object.keys(fields), "sort"];
  let wanted = {}; // the filters, as in the address
  let found = []; // the rows they select
  let drawn = 0; // how many of those are in the list

  function readAddress() {
    wanted = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    for (const name of names) byId(name).value = wanted[name] ?? "";
    select();
  }
  function readControls() {
    wanted = Object.fromEntries(names.map((name) => [name, byId(name).value]));
    history.replaceState(null, "", address(wanted));
    select();
  }
  function select() {
    found = rows.filter((one) => matches(one, wanted));
    const order = (orders[wanted.sort] ?? orders[""])[1];
    if (order) found.sort(order);
    drawn = 0;
    byId("list").replaceChildren();
    drawMore();
    const all = found.length === rows.length;
    const total = counted(rows.length, noun);
    byId("found").textContent = all ? total : `${found.length} of ${total}`;
    if (found.length === 1) byId("list").firstElementChild.open = true;
  }
  // The list grows as it is scrolled: thousands of rows at once would be slow.
  function drawMore() {
    byId("list").append(...found.slice(drawn, drawn + CHUNK).map(draw));
    drawn = Math.min(drawn + CHUNK, found.length);
    byId("more").hidden = drawn === found.length;
    byId("more").textContent = `Show more (${found.length - drawn} left)`;
  }
  function choices(id, pairs) {
    byId(id).append(...pairs.map(([value, words]) => node("option", { value, textContent: words })));
  }

  for (const [id, pairs] of Object.entries(fields)) if (pairs) choices(id, pairs);
  choices("sort", Object.entries(orders).map(([value, [words]]) => [value, words]));
  for (const name of names) byId(name).addEventListener("input", readControls);
  byId("reset").addEventListener("click", () => {
    location.hash = "cases";
    byId("q").focus();
  });
  byId("more").addEventListener("click", drawMore);
  new IntersectionObserver(
    (entries) => {
      if (entries.some((entry) => entry.isIntersecting)) drawMore();
    },
    { rootMargin: "400px" },
  ).observe(byId("more"));
  window.addEventListener("hashchange", () => {
    readAddress();
    byId("cases").scrollIntoView();
  });
  byId("filters").hidden = false;

  readAddress();
}

// Whether a text in lower case has every word that is searched for.
const hasWords = (text, q) => (q ?? "").toLowerCase().split(/\s+/).every((w) => text.includes(w));

