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
    className: `badge ${one.verdict}${one.fails ? "" : " calm"}`,
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

(() => {
  const COLUMNS = [
    "output",
    "verdict",
    "differing",
    "margin",
    "max abs",
    "max ulp",
    "worst at",
    "got",
    "wanted",
  ];
  const LEVELS = [
    [0, "exact"],
    [0.1, "up to 0.1"],
    [1, "up to 1, the tolerance"],
    [10, "up to 10"],
    [100, "up to 100"],
    [1000, "up to 1000"],
    [Infinity, "beyond"],
  ];
  const ORDERS = {
    "": ["as in the pack", null],
    margin: ["largest margin", (a, b) => b.order - a.order],
    seconds: ["slowest", (a, b) => b.seconds - a.seconds],
  };
  // Filters.
  const SPECIAL = new Map([
    ["failing", (one) => one.fails],
    ["expected", (one) => one.expected],
    ["allowed", (one) => one.allowed],
  ]);
  function matches(one, wanted) {
    const { operator, flag, verdict, q } = wanted;
    return (
      (!wanted.case || one.id === wanted.case) &&
      (!wanted.cause || one.cause === wanted.cause) &&
      (!operator || one.operator === operator) &&
      (!flag || one.flags.includes(flag)) &&
      (!verdict || (SPECIAL.get(verdict) ?? ((one) => one.verdict === verdict))(one)) &&
      hasWords(text(one), q)
    );
  }
  function text(one) {
    one.text ??= [
      one.id,
      one.operator,
      one.dtype,
      one.verdict,
      one.summary,
      ...one.flags,
      ...one.reasons,
      ...one.notes,
    ]
      .join("\n")
      .toLowerCase();
    return one.text;
  }
  const row = (one) =>
    opening(
      one,
      [
        node("span", { className: "id", textContent: one.id }),
        node("span", { className: "what", textContent: one.operator }),
        node("span", { className: "what dtype", textContent: one.dtype }),
        node("span", { className: "what number", title: "worst margin", textContent: one.margin }),
        node("span", { className: "what number seconds", textContent: duration(one.seconds) }),
      ],
      body,
    );

  // One case in full.
  function body(one) {
    const flags = one.flags.map((flag) =>
      node("li", {}, node("a", { href: address({ flag }), textContent: flag })),
    );
    const self = node(
      "li",
      {},
      node("a", { href: address({ case: one.id }), textContent: "link to this case" }),
    );
    const parts = [node("ul", { className: "tags" }, ...flags, self)];
    if (one.summary) parts.unshift(node("p", { textContent: one.summary }));
    if (one.reasons.length) parts.push(paragraphs("reasons", one.reasons));
    if (one.notes.length) parts.push(paragraphs("reasons note", one.notes));
    if (one.outputs.length) parts.push(outputs(one));
    if (one.map) parts.push(maps(one.map));
    parts.push(repeatIt(one.repeat));
    return node("div", { className: "body" }, ...parts);
  }
  function outputs(one) {
    const heading = node(
      "tr",
      {},
      ...COLUMNS.map((name) => node("th", { scope: "col", textContent: name })),
    );
    const rows = one.outputs.map(([name, verdict, ...cells]) =>
      node(
        "tr",
        {},
        node("th", { scope: "row", textContent: name }),
        node("td", {}, node("span", { className: `badge calm ${verdict}`, textContent: verdict })),
        ...cells.map((cell) =>
          node("td", { textContent: cell, colSpan: cells.length === 1 ? COLUMNS.length - 2 : 1 }),
        ),
      ),
    );
    const region = node(
      "div",
      { className: "scroll", tabIndex: 0 },
      node("table", {}, node("thead", {}, heading), node("tbody", {}, ...rows)),
    );
    region.setAttribute("role", "region");
    region.setAttribute("aria-label", "Outputs");
    return region;
  }

  // Error maps: time to the right, hidden units downwards, a panel for each direction.
  function maps(map) {
    const right = map.steps ? "time" : "directions";
    const count = map.rows.length / map.panels.length;
    const panels = map.panels.map((name, k) =>
      panel(map, name, map.rows.slice(k * count, (k + 1) * count)),
    );
    const legend = LEVELS.map(([, name], k) => node("li", {}, swatch(k), name));
    return node(
      "div",
      {},
      node("p", {
        className: "caption",
        textContent: `${map.output}: largest margin, ${right} to the right, hidden units downwards`,
      }),
      node("div", { className: "maps" }, ...panels),
      node("ul", { className: "legend" }, ...legend),
    );
  }
  const swatch = (k) =>
    drawing(
      "svg",
      { viewBox: "0 0 10 10", "aria-hidden": "true" },
      drawing("rect", { class: `level-${k}`, width: 10, height: 10 }),
    );
  function panel(map, name, rows) {
    const units = rows[0].length;
    const size = Math.max(5, Math.min(18, Math.floor(480 / Math.max(rows.length, units))));
    const [left, top] = [8 + 7 * String(map.units - 1).length, 5];
    const [width, height] = [left + rows.length * size, top + units * size];
    const cells = rows.flatMap((line, t) =>
      [...line].map((letter, unit) =>
        cell(map, rows.length, units, t, unit, letter, left + t * size, top + unit * size, size),
      ),
    );
    const label = (unit, y) =>
      drawing("text", { x: left - 5, y, "text-anchor": "end" }, String(unit));
    const labels = [
      label(0, top + Math.max(size / 2, 5) + 4),
      ...(units > 1 ? [label(map.units - 1, height - Math.max(size / 2 - 4, 0))] : []),
    ];
    const worst = Math.max(...rows.flatMap((line) => [...line].map(margin)));
    const words = `Error map, ${name}: ${rows.length} by ${units}, worst margin ${factor(worst)}`;
    const steps = map.steps ? `, t = 0${map.steps > 1 ? ` to ${map.steps - 1}` : ""}` : "";
    return node(
      "figure",
      {},
      node("figcaption", { textContent: `${name}${steps}` }),
      drawing(
        "svg",
        { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words },
        ...labels,
        ...cells,
      ),
    );
  }
  function place(k, count, size) {
    const [first, next] = [k, k + 1].map((edge) => Math.floor((edge * size) / count));
    return next > first + 1 ? `${first} to ${next - 1}` : `${first}`;
  }
  function cell(map, steps, units, t, unit, letter, x, y, size) {
    const value = margin(letter);
    const level = LEVELS.findIndex(([limit]) => value <= limit);
    const when = map.steps ? `t ${place(t, steps, map.steps)}, ` : "";
    const words = `${when}unit ${place(unit, units, map.units)}: margin ${factor(value)}`;
    return drawing(
      "rect",
      { class: `cell level-${level}`, x, y, width: size, height: size },
      drawing("title", {}, words),
    );
  }

  showList({
    rows: data.cases,
    noun: "case",
    fields: {
      q: null,
      operator: allOr(data.cases.map((one) => one.operator)),
      flag: allOr(data.cases.flatMap((one) => one.flags)),
      verdict: [
        ["", "all"],
        ["failing", "failing"],
        ["expected", "expected to fail"],
        ["allowed", "allowed to fail"],
        ...allOr(data.cases.map((one) => one.verdict)).slice(1),
      ],
    },
    orders: ORDERS,
    matches,
    draw: row,
  });
})();
