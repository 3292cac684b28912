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
