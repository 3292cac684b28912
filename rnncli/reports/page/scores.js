(() => {
  const CHUNK = 200; // rows that are drawn at once
  const GAP = 2; // between families, in pixels of the screen
  const FATES = { k: "killed", a: "acceptable", s: "survived", e: "equivalent" };
  const WHICH = {
    all: ["all", () => true],
    enough: ["few that kill what all do", (one) => one.enough],
    only: ["those that alone kill something", (one) => one.only.length],
  };
  const ORDERS = {
    pack: ["as in the pack", () => 0],
    kills: ["most kills", (a, b) => b.kills - a.kills],
    only: ["most that no other kills", (a, b) => b.only.length - a.only.length],
  };

  // What the page was given, and what follows from it.
  class Matrix {
    constructor(cell) {
      Object.assign(this, cell);
      this.mutants = cell.mutants.map(([id, family, sentence]) => ({ id, family, sentence }));
      this.families = [...new Set(this.mutants.map((each) => each.family))];
      for (const one of this.vectors) {
        let reason = 0;
        one.why = [...one.fates].map((fate) => ("ae".includes(fate) ? one.why[reason++] : -1));
        one.kills = [...one.fates].filter((fate) => fate === "k").length;
      }
    }
    killers(k) {
      return this.vectors.filter((one) => one.fates[k] === "k");
    }
    // Where column k begins and ends on a strip of some width.
    left(k, width) {
      const gaps = this.families.indexOf(this.mutants[k].family);
      return k * this.step(width) + gaps * GAP;
    }
    step(width) {
      return (width - GAP * (this.families.length - 1)) / this.mutants.length;
    }
    at(x, width) {
      const last = this.mutants.length - 1;
      const next = this.mutants.findIndex((_, k) => this.left(k, width) > x);
      return next < 0 ? last : Math.max(next - 1, 0);
    }
  }

  function colours() {
    const colour = (name) => getComputedStyle(byId(`fate-${name}`)).backgroundColor;
    return Object.fromEntries(["k1", "k2", "k3", "a", "s", "e", "n"].map((n) => [n, colour(n)]));
  }
  function shade(fate, value) {
    if (fate !== "k") return fate;
    return value <= 10 ? "k1" : value <= 1000 ? "k2" : "k3";
  }
  let palette = colours();

  // A strip: the outcomes of one vector, or the best of all.
  function strip(matrix, fates, margins, label) {
    const canvas = node("canvas", { className: "strip", tabIndex: -1 });
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-label", label);
    canvas.draw = () => {
      const scale = devicePixelRatio || 1;
      canvas.width = canvas.clientWidth * scale;
      canvas.height = canvas.clientHeight * scale;
      const context = canvas.getContext("2d");
      const step = matrix.step(canvas.clientWidth) * scale;
      const space = step >= 5 ? 1 : step >= 3 ? 0.5 : 0;
      [...fates].forEach((fate, k) => {
        context.fillStyle = palette[shade(fate, margins ? margin(margins[k]) : Infinity)];
        const x = matrix.left(k, canvas.clientWidth) * scale;
        context.fillRect(x, 0, step - space, canvas.height);
      });
    };
    return canvas;
  }
  const sizes = new ResizeObserver((entries) => entries.forEach((one) => one.target.draw()));

  // A panel for each cell.
  function panel(matrix) {
    const list = node("ol");
    const marker = node("div", { className: "marker", hidden: true });
    const more = node("button", { type: "button", className: "more", hidden: true });
    const jump = node(
      "select",
      {},
      node("option", { value: "", textContent: "point, or choose one" }),
      ...matrix.families.map((family) =>
        node(
          "optgroup",
          { label: family },
          ...matrix.mutants.flatMap((each, k) =>
            each.family === family ? [node("option", { value: k, textContent: each.id })] : [],
          ),
        ),
      ),
    );
    const heading = node("h3", {
      id: `matrix-${matrix.name}`,
      textContent: `${matrix.name}: ${matrix.mutants.length} mutants, ${matrix.vectors.length} vector${matrix.vectors.length === 1 ? "" : "s"}`,
    });
    const made = node(
      "section",
      { className: "matrix" },
      node("div", { className: "top" }, heading, node("label", {}, "Mutant ", jump)),
      families(matrix),
      all(matrix),
      list,
      marker,
      more,
    );
    made.setAttribute("aria-labelledby", heading.id);
    const shown = { matrix, made, list, marker, more, jump, vectors: [], column: -1, active: null };
    jump.addEventListener("input", () => jump.value && show(shown, Number(jump.value), null));
    more.addEventListener("click", () => drawMore(shown));
    made.addEventListener("pointermove", (event) => pointed(shown, event));
    made.addEventListener("pointerdown", (event) => pointed(shown, event));
    made.addEventListener("keydown", (event) => walked(shown, event));
    made.addEventListener("focusin", (event) => {
      if (event.target.vector) show(shown, Math.max(shown.column, 0), event.target.vector);
    });
    return shown;
  }
  function families(matrix) {
    const labels = matrix.families.map((name) => node("span", { textContent: name }));
    const made = node("div", { className: "families", ariaHidden: "true" }, ...labels);
    made.draw = () => {
      const width = made.clientWidth;
      let next = 0;
      labels.forEach((label, k) => {
        const members = matrix.mutants.flatMap((each, m) =>
          each.family === matrix.families[k] ? [m] : [],
        );
        const middle = matrix.left(members[0], width) + (members.length * matrix.step(width)) / 2;
        const least = width - 14 * (labels.length - k);
        const left = Math.min(Math.max(middle - 7, next), least);
        label.style.left = `${left}px`;
        next = left + 14;
      });
    };
    sizes.observe(made);
    return node("div", { className: "row" }, made);
  }
  function all(matrix) {
    // What no vector kills is a gap, whether it was tried or not.
    const fates = matrix.fates.replaceAll(/[se]/g, "n");
    const made = strip(matrix, fates, null, `All vectors of ${matrix.name}`);
    sizes.observe(made);
    return node(
      "div",
      { className: "row all" },
      node("span", { className: "id", textContent: "all vectors" }),
      made,
      node("span", { className: "number", textContent: "kills" }),
      node("span", { className: "number", textContent: "alone", title: "kills that no other has" }),
    );
  }
  function number(count, unit) {
    const made = node("span", { className: "number", textContent: count || "·" });
    if (count) made.dataset.unit = unit;
    return made;
  }
  function row(shown, one) {
    const { matrix } = shown;
    const words = `${one.id} kills ${one.kills} of ${matrix.mutants.length} mutants`;
    const canvas = strip(matrix, one.fates, one.margins, `${words}; arrow keys walk`);
    canvas.vector = one;
    sizes.observe(canvas);
    const id = node("button", { type: "button", className: "id", textContent: one.id });
    id.title = `${one.id}, ${one.dtype}: what it kills`;
    id.ariaExpanded = "false";
    const made = node(
      "li",
      {},
      node("div", { className: "row" }, id, canvas, number(one.kills, "killed"), number(one.only.length, "alone")),
    );
    id.addEventListener("click", () => {
      const open = made.children.length === 1;
      id.ariaExpanded = String(open);
      if (open) made.append(listed(matrix, one));
      else made.lastElementChild.remove();
    });
    return made;
  }
  function listed(matrix, one) {
    const killed = matrix.mutants.filter((_, k) => one.fates[k] === "k");
    const only = one.only.map((k) => matrix.mutants[k].id).join(", ");
    const lines = matrix.families.flatMap((family) => {
      const ids = killed.filter((each) => each.family === family).map((each) => each.id);
      return ids.length ? [node("p", {}, node("strong", { textContent: `${family}: ` }), ids.join(", "))] : [];
    });
    if (only) lines.unshift(node("p", {}, node("strong", { textContent: "it alone: " }), only));
    return node("div", { className: "listed" }, ...lines);
  }

  // Rows come in chunks: thousands at once would be slow.
  function draw(shown) {
    const keep = WHICH[byId("which").value][1];
    const order = ORDERS[byId("order").value][1];
    shown.vectors = shown.matrix.vectors.filter(keep).sort(order);
    shown.list.replaceChildren();
    shown.active = null;
    drawMore(shown);
  }
  function drawMore(shown) {
    const drawn = shown.list.children.length;
    shown.list.append(...shown.vectors.slice(drawn, drawn + CHUNK).map((one) => row(shown, one)));
    const left = shown.vectors.length - shown.list.children.length;
    shown.more.hidden = !left;
    shown.more.textContent = `Show more (${left} left)`;
    activate(shown, shown.active ?? strips(shown)[0]);
    mark(shown);
  }
  const strips = (shown) => [...shown.list.querySelectorAll(".strip")];
  // One strip of a panel is reached by Tab, the others by arrow keys.
  function activate(shown, canvas) {
    if (shown.active) shown.active.tabIndex = -1;
    shown.active = canvas;
    if (canvas) canvas.tabIndex = 0;
  }

  // One place at a time is told.
  function pointed(shown, event) {
    if (!event.target.matches(".strip")) return;
    const box = event.target.getBoundingClientRect();
    show(shown, shown.matrix.at(event.clientX - box.left, box.width), event.target.vector);
  }
  const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  function walked(shown, event) {
    if (!event.target.vector || !(event.key in STEPS)) return;
    event.preventDefault();
    const [right, down] = STEPS[event.key];
    const rows = strips(shown);
    const next = rows[Math.min(Math.max(rows.indexOf(event.target) + down, 0), rows.length - 1)];
    const last = shown.matrix.mutants.length - 1;
    shown.column = Math.min(Math.max(shown.column + right, 0), last);
    activate(shown, next);
    next.focus();
    show(shown, shown.column, next.vector);
  }
  let panels = [];
  function show(shown, column, vector) {
    for (const each of panels) if (each !== shown) Object.assign(each, { column: -1 });
    shown.column = column;
    panels.forEach(mark);
    shown.jump.value = column;
    byId("told").replaceChildren(...told(shown.matrix, column, vector));
    byId("told").hidden = false;
  }
  function mark(shown) {
    const { matrix, marker, made, column } = shown;
    marker.hidden = column < 0;
    if (marker.hidden) return;
    const top = made.querySelector(".all .strip");
    const [outer, inner] = [made.getBoundingClientRect(), top.getBoundingClientRect()];
    const middle = matrix.left(column, inner.width) + matrix.step(inner.width) / 2;
    marker.style.left = `${inner.left - outer.left + middle}px`;
    marker.style.top = `${inner.top - outer.top}px`;
    marker.style.bottom = `${outer.bottom - shown.list.getBoundingClientRect().bottom}px`;
  }
  function told(matrix, column, vector) {
    const { id, family, sentence } = matrix.mutants[column];
    const killers = matrix.killers(column);
    const names = killers.slice(0, 6).map((one) => one.id);
    if (killers.length > 6) names.push("...");
    const whole = `Killed by ${killers.length} of ${matrix.vectors.length} vectors`;
    const lines = [
      node("p", {}, node("strong", { textContent: id }), ` (${family}): ${sentence}`),
      node("p", { textContent: names.length ? `${whole}: ${names.join(", ")}` : whole }),
    ];
    if (vector) lines.splice(1, 0, outcome(vector, column));
    return lines;
  }
  function outcome(vector, column) {
    const fate = FATES[vector.fates[column]];
    const far = fate === "equivalent" ? "" : `, margin ${factor(margin(vector.margins[column]))}`;
    const why = vector.why[column] < 0 ? "" : `: ${data.reasons[vector.why[column]]}`;
    const name = node("span", { className: `name ${fate}`, textContent: fate });
    return node("p", {}, node("strong", { textContent: vector.id }), ": ", name, `${far}${why}`);
  }

  // Controls.
  for (const [id, rows] of Object.entries({ which: WHICH, order: ORDERS })) {
    const options = Object.entries(rows).map(([value, [words]]) =>
      node("option", { value, textContent: words }),
    );
    byId(id).append(...options);
    byId(id).addEventListener("input", () => panels.forEach(draw));
  }
  panels = data.cells.map((cell) => panel(new Matrix(cell)));
  byId("matrices").append(...panels.map((shown) => shown.made));
  panels.forEach(draw);
  byId("controls").hidden = false;
  function redraw() {
    palette = colours();
    for (const canvas of document.querySelectorAll(".strip")) canvas.draw();
  }
  byId("theme").addEventListener("click", redraw);
  system.addEventListener("change", redraw);
  new ResizeObserver(() => panels.forEach(mark)).observe(byId("matrices"));
})();
