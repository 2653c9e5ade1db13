// Draws the charts when they come into view. Labels that come from a record were escaped where they were made.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function beside(table, row) {
  const figures = table.columns.filter((c) => c.values && !c.detail && c.values[row] !== null)
    .map((c) => (c.kind === "spread" ? "" : c.label + " ") + show[c.kind](c.values[row]));
  return plain(figures.join(", ")) + "<br>" + plain(idOf(table, row)).replaceAll(",", "<br>");
}
function regrets(trace) {
  return trace.ratios.map((row, i) => row.map((ratio, j) => {
    const said = ratio === null ? "not timed" : bare(ratio) + "×";
    return trace.rows[i] + ": " + said + "<br>" + plain(trace.columns[j]).replaceAll(",", "<br>");
  }));
}

// The figure of one chart; clustered bars get the heights of the kernel that their section's choice names.
function figureOf(node) {
  const figure = record.charts[node.id];
  if (!figure.choices) return figure;
  const choice = node.closest("section").querySelector("[data-kernels]");
  const of = figure.choices[choice ? choice.value : Object.keys(figure.choices)[0]];
  const [trace] = figure.data;
  const bars = {
    ...trace, y: of.y, flush: true, marker: { color: of.y.map((y) => (y < 0 ? trace.faster : trace.slower)) },
    hovertext: of.y.map((y, i) => [y === null ? "not timed" : percent(y), ...trace.by.map((name, k) => name + "=" + trace.settings[i][k])].join("<br>")),
  };
  if (of.array) bars.error_y = { type: "data", symmetric: false, array: of.array, arrayminus: of.arrayminus, width: 0, thickness: 1 };
  return { data: [bars], layout: { ...figure.layout, xaxis: { ...figure.layout.xaxis, ticktext: of.ticktext } } };
}

function themed(figure, width, table) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const ink = colour("--ink"), muted = colour("--muted"), grid = colour("--grid"), panel = colour("--panel");
  const narrow = width < 620;
  const axis = (given) => ({
    gridcolor: grid, linecolor: grid, zerolinecolor: muted, automargin: true, fixedrange: false, ...given,
    title: given.title && { ...given.title, font: { size: 12 } },
  });
  const layout = structuredClone(figure.layout);
  layout.xaxis = axis(layout.xaxis);
  layout.yaxis = axis(layout.yaxis);
  if (figure.narrow && narrow) {
    layout.yaxis.ticktext = figure.narrow;
    layout.xaxis.range[1] += 0.35 * (layout.xaxis.range[1] - layout.xaxis.range[0]); // the text beside a bar needs room
  }
  if (narrow && layout.xaxis.type === "log" && layout.xaxis.tickvals?.length > 5) {
    const every = Math.ceil(layout.xaxis.tickvals.length / 5), keep = (_, i) => i % every === 0;
    layout.xaxis.ticktext = layout.xaxis.ticktext.filter(keep);
    layout.xaxis.tickvals = layout.xaxis.tickvals.filter(keep);
  }
  if (layout.yaxis.ticktext && layout.yaxis.automargin && !layout.yaxis.type) {
    layout.yaxis.tickfont = { family: "ui-monospace, DejaVu Sans Mono, monospace", size: narrow ? 10 : 11 };
  }
  layout.shapes = (layout.shapes || []).map((shape) => ({ ...shape, line: { ...shape.line, color: muted, width: 1.5 } }));
  layout.annotations = (layout.annotations || []).map((note) => (note.name === "step"
    ? { ...note, font: { size: 11, color: muted } }
    : {
      ...note, showarrow: true, arrowhead: 0, arrowcolor: ink, bgcolor: colour("--bg"), bordercolor: ink, borderpad: 2,
      font: { size: 12, color: ink },
    }));
  const data = figure.data.map((trace) => {
    const copy = structuredClone(trace);
    if (copy.customdata && !copy.hovertext) copy.hovertext = copy.customdata.map((row) => beside(table, row));
    if (copy.type === "heatmap") {
      copy.text = regrets(copy);
      copy.colorbar = { ...copy.colorbar, outlinecolor: grid, tickfont: { color: ink } };
    } else if (copy.mode === "lines" && !copy.keep) copy.line.color = muted;
    else if (copy.marker && !copy.flush) copy.marker.line = { color: ink, width: copy.type === "bar" ? 0.5 : 0.8 };
    if (copy.error_y) copy.error_y.color = muted;
    return copy;
  });
  Object.assign(layout, {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, family: "system-ui, sans-serif", size: 12 },
    margin: { l: 10, r: 16, t: layout.showlegend ? 48 : 12, b: 10 }, bargap: layout.bargap ?? 0.25, dragmode: false,
    legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", ...layout.legend },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: muted, activecolor: ink },
    hoverlabel: { bgcolor: panel, bordercolor: muted, font: { color: ink }, align: "left" },
  });
  return [data, layout, { responsive: true, displaylogo: false, plotlyServerURL: "", modeBarButtons: [["toImage", "zoomIn2d", "zoomOut2d", "resetScale2d"]] }];
}

const hostOf = (node) => node.closest("article").querySelector("[data-trials]");
const tableOf = (node) => hostOf(node) && record.trials[hostOf(node).dataset.trials];
function draw(node) {
  Plotly.react(node, ...themed(figureOf(node), node.clientWidth, tableOf(node)));
  if (!node.dataset.drawn && hostOf(node)) {
    node.on("plotly_click", (event) => {
      const row = event.points[0].customdata;
      if (Number.isInteger(row)) hostOf(node).find(idOf(tableOf(node), row));
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
redraws.push(() => charts.filter((node) => node.dataset.drawn).forEach(draw));
for (const choice of document.querySelectorAll("[data-kernels]")) {
  choice.addEventListener("change", () => {
    for (const node of choice.closest("section").querySelectorAll(".chart")) {
      if (node.dataset.drawn && record.charts[node.id].choices) draw(node);
    }
  });
}

// ---- the figures behind a chart
function points(node) {
  const { data, layout } = figureOf(node), table = tableOf(node);
  const text = (html) => new DOMParser().parseFromString(String(html ?? "").replaceAll("<br>", ", "), "text/html").body.textContent;
  const named = (axis, name) => text(axis.title?.text) || name;
  const label = (axis, value) => {
    const at = axis.range && axis.ticktext ? axis.tickvals.indexOf(value) : -1;
    return at < 0 ? value : text(axis.ticktext[at]);
  };
  if (data[0].type === "heatmap") {
    const [{ rows, columns, ratios }] = data;
    return [["workload", "configuration", "time_over_best"],
      ...rows.flatMap((row, i) => columns.map((id, j) => [text(row), id, ratios[i][j]]))];
  }
  const head = ["series", named(layout.xaxis, "x"), named(layout.yaxis, "y"), "text", "configuration"];
  return [head, ...data.flatMap((trace) => trace.x.map((x, i) => [text(trace.name), label(layout.xaxis, x),
    label(layout.yaxis, trace.y[i]), text(trace.hovertext?.[i]),
    table && Number.isInteger(trace.customdata?.[i]) ? idOf(table, trace.customdata[i]) : ""]).filter((row) => row[1] !== null))];
}
for (const button of document.querySelectorAll("[data-points]")) {
  const node = document.getElementById(button.dataset.points);
  button.addEventListener("click", () => save(titleOf(node) + "-" + node.id.replace(/^[a-z]+-\d+-chart-/, "") + "-chart", points(node)));
}
