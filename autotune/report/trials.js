// The table of all trials, and two of them side by side.
function trials(host) {
  const table = record.trials[host.dataset.trials];
  const { rows, columns } = table;
  const PAGE = 25;
  const all = Array.from({ length: rows }, (_, row) => row);
  const id = all.map((row) => idOf(table, row));
  let order = all, found = all, first = 0, sorted = columns[0], down = false, words = null;
  const policies = table.policies || {};
  const states = columns.find((column) => column.key === "state");
  const remarks = columns.find((column) => column.kind === "remark");
  const headed = columns.filter((column) => column.kind !== "remark" && !column.detail);
  const compared = compare(host.nextElementSibling, table, () => fill());

  const filter = element("input", { type: "search", autocomplete: "off", placeholder: "words, or policy=value", oninput: search });
  const state = element("select", { onchange: search }, element("option", { value: "" }, "all"), ...states.names.map((name) => element("option", { value: name }, name)));
  const told = element("p", { "aria-live": "polite" });
  const body = element("tbody");
  const heads = headed.map((column) => {
    const button = element("button", { type: "button", onclick: () => sort(column, column === sorted && !down) }, column.label);
    return element("th", { scope: "col", class: column.values ? "num" : "" }, button);
  });
  const step = (label, move) => element("button", { type: "button", onclick: () => { first = move(); fill(); } }, label);
  const last = () => Math.max(0, Math.floor((found.length - 1) / PAGE) * PAGE);
  const steps = [step("First", () => 0), step("Previous", () => Math.max(0, first - PAGE)),
    step("Next", () => Math.min(last(), first + PAGE)), step("Last", last)];
  const download = element("button", { type: "button", class: "download", onclick: () => save(
    titleOf(host) + "-trials",
    [["configuration", ...columns.map((column) => column.key)], ...found.map((row) => [id[row], ...columns.map((column) => raw(column, row))])]) },
    "Download the rows found (CSV)");

  // A word policy=value is that very value; any other word may stand anywhere in the id, the state or the reason.
  function test(word) {
    const at = word.indexOf("="), column = policies[word.slice(0, at)];
    if (column) return (row) => raw(column, row).toLowerCase() === word.slice(at + 1);
    words ??= all.map((row) => [id[row], ...columns.filter((c) => c.names && c.kind !== "policy").map((c) => raw(c, row))].join("\n").toLowerCase());
    return (row) => words[row].includes(word);
  }
  function search() {
    const text = filter.value.toLowerCase().trim();
    const exact = id.findIndex((one) => one.toLowerCase() === text);
    const tests = exact >= 0 ? [(row) => row === exact] : text.split(/[\s,]+/).filter(Boolean).map(test);
    found = order.filter((row) => (!state.value || raw(states, row) === state.value) && tests.every((ok) => ok(row)));
    first = 0;
    fill();
  }
  function sort(column, descending) {
    sorted = column;
    down = descending;
    const sign = down ? -1 : 1;
    const by = column.values
      ? (a, b) => (a === null) - (b === null) || sign * (a - b)
      : (a, b) => (a === "") - (b === "") || sign * a.localeCompare(b, "en", { numeric: true });
    order = [...all].sort((a, b) => by(raw(column, a), raw(column, b)) || a - b);
    search();
  }
  function cells(row) {
    const sides = ["A", "B"].map((side) => element("button", {
      type: "button", "aria-label": `compare as ${side}`, "aria-pressed": compared.rows[side] === row,
      onclick: () => compared.set(side, row),
    }, side));
    return [element("td", { class: "sides" }, ...sides), ...headed.map((column) => {
      const same = column.kind === "policy" && raw(column, row) === column.default;
      return element("td", { class: column.values ? "num" : same ? "same" : "" }, shown(column, row));
    })];
  }
  function fill() {
    const focused = body.contains(document.activeElement) && [...body.querySelectorAll("button")].indexOf(document.activeElement);
    body.replaceChildren(...found.slice(first, first + PAGE).flatMap((row) => {
      const remark = raw(remarks, row);
      if (!remark) return [element("tr", {}, ...cells(row))];
      const text = element("div", remark.length > 400 ? { tabindex: "0" } : {}, remark);
      return [element("tr", { class: "remarked" }, ...cells(row)), element("tr", { class: "remark" }, element("td", { colspan: headed.length + 1 }, text))];
    }));
    if (focused !== false) body.querySelectorAll("button")[focused]?.focus();
    const end = Math.min(first + PAGE, found.length);
    told.textContent = found.length ? `${(first + 1).toLocaleString("en")} to ${end.toLocaleString("en")} of ${found.length.toLocaleString("en")}` : "none found";
    steps[0].disabled = steps[1].disabled = first === 0;
    steps[2].disabled = steps[3].disabled = first >= last();
    heads.forEach((head, i) => {
      const here = headed[i] === sorted;
      head.setAttribute("aria-sort", here ? (down ? "descending" : "ascending") : "none");
      head.firstChild.textContent = headed[i].label + (here ? (down ? " ▼" : " ▲") : "");
    });
  }
  host.append(
    element("div", { class: "controls" }, element("label", {}, "Filter ", filter), element("label", {}, "State ", state), ...steps, told),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Every trial" },
      element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col", class: "plain" }, "compare"), ...heads)), body)),
    download);
  host.find = (one) => {
    filter.value = one;
    state.value = "";
    search();
    filter.scrollIntoView({ block: "center" });
    filter.focus({ preventScroll: true });
  };
  fill();
}

// Two trials, by default the winner and the control; ``told`` is called when one is exchanged.
function compare(host, table, told) {
  const { columns, roles, code, lines } = table;
  const named = (name) => roles.find(([names]) => names.split(", ").includes(name))?.[1];
  const sides = { A: named("winner") ?? 0, B: named("control") ?? Math.min(1, table.rows - 1) };
  if (sides.A === sides.B) sides.B = named("runner-up") ?? Math.min(1, table.rows - 1);
  const only = element("input", { type: "checkbox", onchange: render });
  const head = element("div", { class: "controls" }), body = element("div");

  function pick(side) {
    const others = roles.some(([, row]) => row === sides[side]) ? [] : [["of the table", sides[side]]];
    const select = element("select", { onchange: () => set(side, Number(select.value)), "data-side": side },
      ...[...roles, ...others].map(([names, row]) => element("option", { value: row }, changed(table, row) === names ? names : `${names}: ${changed(table, row)}`)));
    select.value = sides[side];
    return element("label", {}, side + " ", select);
  }
  const apart = (a, b) => (a && b ? (b === a ? "equal" : bare(b / a) + "×") : "");
  function row(column) {
    const [a, b] = [raw(column, sides.A), raw(column, sides.B)];
    if ((only.checked && a === b) || (!a && !b && column.kind !== "policy")) return [];
    const ratio = column.values && !["rank", "spread_relative"].includes(column.key) ? apart(a, b) : a === b ? "equal" : "differs";
    return [element("tr", { class: a === b ? "same" : "differs" }, element("th", { scope: "row" }, column.label),
      ...["A", "B"].map((side) => element("td", {}, shown(column, sides[side]))), element("td", {}, ratio))];
  }
  function part(title, some) {
    const found = some.flatMap(row);
    if (!found.length) return [];
    const head = element("tr", {}, ...[title, "A", "B", "B over A"].map((text, i) => element("th", { scope: "col", class: i ? "num" : "" }, text)));
    return [element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title + " side by side" },
      element("table", { class: "compared" }, element("thead", {}, head), element("tbody", {}, ...found)))];
  }
  function difference() {
    const [a, b] = ["A", "B"].map((side) => code[sides[side]]);
    if (!a || !b) return element("p", { class: "where" }, "The generated code of these two is not in this page: autotune show FAMILY CONFIG prints it.");
    const marks = aligned(a, b).filter(([mark]) => mark !== " " || !only.checked);
    return element("pre", { class: "diff", tabindex: "0", role: "region", "aria-label": "Difference of the generated code" },
      ...marks.map(([mark, line]) => element("span", { class: mark === "-" ? "gone" : mark === "+" ? "came" : "" }, `${mark} ${lines[line]}\n`)));
  }
  function render() {
    head.replaceChildren(pick("A"), pick("B"), element("label", {}, only, " only what differs"));
    const figures = columns.filter((c) => c.kind !== "policy" && c.kind !== "remark" && !c.detail);
    body.replaceChildren(
      element("div", { class: "sidebyside" }, ...part("Policies", columns.filter((c) => c.kind === "policy")),
        ...part("Figures", figures), ...part("Kernels", columns.filter((c) => c.detail))),
      ...["A", "B"].filter((side) => raw(columns.at(-1), sides[side])).map((side) => element("p", {}, `${side}: ${raw(columns.at(-1), sides[side])}`)),
      element("h4", {}, "Generated code: − is A, + is B"), difference());
  }
  function set(side, row) {
    sides[side] = row;
    render();
    told();
  }
  if (table.rows) {
    host.append(head, body);
    render();
  }
  return { rows: sides, set };
}

// Lines of A and B as [mark, line]: the longest common subsequence of two short lists.
function aligned(a, b) {
  const length = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const found = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) found.push([" ", a[i++]]), j++;
    else if (i < a.length && (j >= b.length || length[i + 1][j] >= length[i][j + 1])) found.push(["-", a[i++]]);
    else found.push(["+", b[j++]]);
  }
  return found;
}

document.querySelectorAll("[data-trials]").forEach(trials);
for (const link of document.querySelectorAll("[data-find]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    hostOf(link)?.find(link.dataset.find);
  });
}
