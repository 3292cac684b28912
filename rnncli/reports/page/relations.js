(() => {
  const ORDERS = {
    "": ["as they were asked", null],
    margin: ["largest margin", (a, b) => b.order - a.order],
    seconds: ["slowest", (a, b) => b.seconds - a.seconds],
  };
  const why = (one) => data.reasons[one.why];
  const text = (one) => (one.text ??= [one.case, one.relation, one.verdict, why(one)].join("\n").toLowerCase());
  const matches = (one, { relation, verdict, q }) =>
    (!relation || one.relation === relation) &&
    (!verdict || (verdict === "failing" ? one.fails : one.verdict === verdict)) &&
    hasWords(text(one), q);
  const row = (one) =>
    opening(
      one,
      [
        node("span", { className: "id", textContent: one.case }),
        node("span", { className: "what", textContent: one.relation }),
        node("span", { className: "what number", title: "worst margin", textContent: one.margin }),
        node("span", { className: "what number seconds", textContent: duration(one.seconds) }),
      ],
      body,
    );
  function body(one) {
    const asked = data.relations[one.relation];
    const parts = [];
    if (asked) parts.push(paragraphs("reasons note", asked));
    parts.push(paragraphs("reasons", [why(one) || data.meanings[one.verdict]]));
    if (one.judged) parts.push(paragraphs("reasons note", [one.judged]));
    if (one.repeat) parts.push(repeatIt(one.repeat));
    return node("div", { className: "body" }, ...parts);
  }

  showList({
    rows: data.rows,
    noun: "verdict",
    fields: {
      q: null,
      relation: allOr(data.rows.map((one) => one.relation)),
      verdict: [
        ["", "all"],
        ["failing", "failing"],
        ...allOr(data.rows.map((one) => one.verdict)).slice(1),
      ],
    },
    orders: ORDERS,
    matches,
    draw: row,
  });
})();
