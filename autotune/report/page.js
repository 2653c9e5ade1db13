"use strict";
// Draws the charts when they come into view, and runs the table of trials. No library besides Plotly.
(() => {
  const record = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.classList.add("scripted");

  function element(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "onclick") node.addEventListener("click", value);
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  // ---- figures as people read them: the same rules as units.py
  function bare(value) {
    if (value === 0) return "0";
    const rounded = Number(value.toPrecision(3));
    return rounded.toFixed(Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded)))));
  }
  function time(ms) {
    const rounded = Number(ms.toPrecision(3));
    if (rounded < 1e-3) return bare(rounded * 1e6) + " ns";
    if (rounded < 1) return bare(rounded * 1e3) + " µs";
    return rounded < 1e3 ? bare(rounded) + " ms" : bare(rounded / 1e3) + " s";
  }
  const show = {
    time, count: (v) => v.toLocaleString("en"), spread: (v) => v === 1 ? "one sample" : "±" + (100 * v).toFixed(1) + " %",
    share: (v) => Math.round(100 * v) + " %",
  };

  // ---- one row of the table of trials
  const raw = (column, row) => (column.values ? column.values[row] : column.names[column.codes[row]]);
  function idOf(table, row) {
    table.policies ??= Object.fromEntries(table.columns.filter((c) => c.kind === "policy").map((c) => [c.key, c]));
    return table.id.map((name) => name + "=" + raw(table.policies[name], row)).join(",");
  }
  function beside(table, row) {
    const figures = table.columns.filter((c) => c.values && c.values[row] !== null).map((c) => (c.kind === "spread" ? "" : c.label + " ") + show[c.kind](c.values[row]));
    const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    return plain(figures.join(", ")) + "<br>" + plain(idOf(table, row)).replaceAll(",", "<br>");
  }

  // ---- download
  function save(name, rows) {
    const quote = (cell) => (/[",\r\n]/.test(cell) ? '"' + cell.replaceAll('"', '""') + '"' : cell);
    const text = rows.map((row) => row.map((cell) => quote(String(cell ?? ""))).join(",")).join("\n") + "\n";
    const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })) });
    link.download = name.replace(/[^\w.-]+/g, "_") + ".csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  for (const button of document.querySelectorAll("[data-download]")) {
    button.addEventListener("click", () => {
      const table = button.parentElement.querySelector("table");
      const head = [...table.tHead.rows[0].cells].map((cell) => cell.dataset.key);
      const body = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.dataset.v));
      save(button.closest("article").dataset.title + "-" + table.dataset.name, [head, ...body]);
    });
  }

  // ---- charts
  function themed(figure, width, table) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const ink = colour("--ink"), grid = colour("--grid");
    const narrow = width < 620;
    const axis = (given) => ({
      gridcolor: grid, linecolor: grid, zerolinecolor: colour("--muted"), automargin: true, fixedrange: false, ...given,
      title: given.title && { ...given.title, font: { size: 12 } },
    });
    const layout = structuredClone(figure.layout);
    layout.xaxis = axis(layout.xaxis);
    layout.yaxis = axis(layout.yaxis);
    if (figure.narrow && narrow) {
      layout.yaxis.ticktext = figure.narrow;
      layout.xaxis.range[1] += 0.35 * (layout.xaxis.range[1] - layout.xaxis.range[0]); // the text beside a bar needs room
    }
    if (narrow && layout.xaxis.tickvals?.length > 5) {
      const every = Math.ceil(layout.xaxis.tickvals.length / 5), keep = (_, i) => i % every === 0;
      layout.xaxis.ticktext = layout.xaxis.ticktext.filter(keep);
      layout.xaxis.tickvals = layout.xaxis.tickvals.filter(keep);
    }
    if (layout.yaxis.ticktext && layout.yaxis.automargin && !layout.yaxis.type) {
      layout.yaxis.tickfont = { family: "ui-monospace, DejaVu Sans Mono, monospace", size: narrow ? 10 : 11 };
    }
    layout.shapes = (layout.shapes || []).map((shape) => ({ ...shape, line: { color: colour("--muted"), width: 1.5 } }));
    layout.annotations = (layout.annotations || []).map((note) => ({
      ...note, showarrow: true, arrowhead: 0, arrowcolor: ink, bgcolor: colour("--bg"), bordercolor: ink, borderpad: 2,
      font: { size: 12, color: ink },
    }));
    const data = figure.data.map((trace) => {
      const copy = structuredClone(trace);
      if (copy.customdata) copy.hovertext = copy.customdata.map((row) => beside(table, row));
      if (copy.mode === "lines") copy.line.color = colour("--muted");
      else copy.marker.line = { color: ink, width: copy.type === "bar" ? 1 : 0.8 };
      return copy;
    });
    Object.assign(layout, {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, family: "system-ui, sans-serif", size: 12 },
      margin: { l: 10, r: 16, t: layout.showlegend ? 48 : 12, b: 10 }, bargap: 0.25, dragmode: false,
      legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", ...layout.legend },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--muted"), activecolor: ink },
      hoverlabel: { bgcolor: colour("--panel"), font: { color: ink }, align: "left" },
    });
    return [data, layout, { responsive: true, displaylogo: false, plotlyServerURL: "", modeBarButtons: [["toImage", "zoomIn2d", "zoomOut2d", "resetScale2d"]] }];
  }
  function draw(node) {
    const host = node.closest("article").querySelector("[data-trials]");
    Plotly.react(node, ...themed(record.charts[node.id], node.clientWidth, record.trials[host.dataset.trials]));
    if (!node.dataset.drawn && node.on) {
      node.on("plotly_click", (event) => {
        const row = event.points[0].customdata;
        if (row !== undefined) host.find(idOf(record.trials[host.dataset.trials], row));
      });
    }
    node.dataset.drawn = "yes";
  }
  const charts = [...document.querySelectorAll(".chart")];
  for (const node of charts) node.style.minHeight = record.charts[node.id].layout.height + "px";
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && !entry.target.dataset.drawn) draw(entry.target);
    }
  }, { rootMargin: "500px" });
  charts.forEach((node) => seen.observe(node));
  dark.addEventListener("change", () => charts.filter((node) => node.dataset.drawn).forEach(draw));

  // ---- every trial
  function trials(host) {
    const { rows, columns } = record.trials[host.dataset.trials];
    const PAGE = 50;
    const id = Array.from({ length: rows }, (_, row) => idOf(record.trials[host.dataset.trials], row));
    let order = Array.from({ length: rows }, (_, row) => row), found = order, first = 0, sorted = columns[0], down = false;
    let words = null;
    const policies = Object.fromEntries(columns.filter((column) => column.kind === "policy").map((column) => [column.key, column]));
    const states = columns.find((column) => column.key === "state");

    const filter = element("input", { type: "search", autocomplete: "off", placeholder: "words, or policy=value" });
    const state = element("select", {}, element("option", { value: "" }, "all"), ...states.names.map((name) => element("option", { value: name }, name)));
    const told = element("p", { "aria-live": "polite" });
    const body = element("tbody");
    const headed = columns.filter((column) => column.kind !== "remark");
    const heads = headed.map((column) => {
      const button = element("button", { type: "button", onclick: () => sort(column, column === sorted && !down) }, column.label);
      return element("th", { scope: "col", class: column.values ? "num" : "" }, button);
    });
    const step = (label, move) => element("button", { type: "button", onclick: () => { first = move(); fill(); } }, label);
    const last = () => Math.max(0, Math.floor((found.length - 1) / PAGE) * PAGE);
    const steps = [step("First", () => 0), step("Previous", () => Math.max(0, first - PAGE)),
      step("Next", () => Math.min(last(), first + PAGE)), step("Last", last)];
    const download = element("button", { type: "button", class: "download", onclick: () => save(
      host.closest("article").dataset.title + "-trials",
      [["configuration", ...columns.map((column) => column.key)], ...found.map((row) => [id[row], ...columns.map((column) => raw(column, row))])]) },
      "Download the rows found (CSV)");

    // A word policy=value is that very value; any other word may stand anywhere in the id, the state or the reason.
    function test(word) {
      const at = word.indexOf("="), column = policies[word.slice(0, at)];
      if (column) return (row) => raw(column, row).toLowerCase() === word.slice(at + 1);
      words ??= order.map((row) => [id[row], ...columns.filter((c) => c.names && c.kind !== "policy").map((c) => raw(c, row))].join("\n").toLowerCase());
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
      const compare = column.values
        ? (a, b) => (a === null) - (b === null) || sign * (a - b)
        : (a, b) => (a === "") - (b === "") || sign * a.localeCompare(b, "en", { numeric: true });
      order = Array.from({ length: rows }, (_, row) => row).sort((a, b) => compare(raw(column, a), raw(column, b)) || a - b);
      words = null;
      search();
    }
    function cell(column, row) {
      const value = raw(column, row);
      if (column.values) return element("td", { class: "num" }, value === null ? "" : show[column.kind](value));
      return element("td", { class: column.kind === "policy" && value === column.default ? "same" : "" }, value);
    }
    function fill() {
      const remarks = columns.find((column) => column.kind === "remark");
      body.replaceChildren(...found.slice(first, first + PAGE).flatMap((row) => {
        const remark = raw(remarks, row), cells = headed.map((column) => cell(column, row));
        if (!remark) return [element("tr", {}, ...cells)];
        const text = element("div", remark.length > 400 ? { tabindex: "0" } : {}, remark);
        return [element("tr", { class: "remarked" }, ...cells), element("tr", { class: "remark" }, element("td", { colspan: headed.length }, text))];
      }));
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
        element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body)),
      download);
    host.find = (one) => {
      filter.value = one;
      state.value = "";
      search();
      filter.scrollIntoView({ block: "center" });
      filter.focus({ preventScroll: true });
    };
    filter.addEventListener("input", search);
    state.addEventListener("change", search);
    fill();
  }
  document.querySelectorAll("[data-trials]").forEach(trials);

  // ---- one study at a time
  const links = [...document.querySelectorAll("nav.studies a")];
  const articles = [...document.querySelectorAll("article")];
  function choose() {
    const named = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const chosen = (named && named.closest("article")) || articles[0];
    for (const article of articles) article.hidden = article !== chosen;
    for (const link of links) {
      if (chosen && link.hash === "#" + chosen.id) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (named) named.scrollIntoView();
  }
  if (links.length) {
    addEventListener("hashchange", choose);
    choose();
  }
})();
