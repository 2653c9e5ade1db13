// What the other scripts of the page share: the record, figures as people read them, downloads, theme and tabs.
const record = JSON.parse(document.getElementById("data").textContent);
document.documentElement.classList.add("scripted");

function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// ---- figures: the same rules as units.py
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
function size(bytes) {
  const power = Math.min(3, Math.max(0, Math.floor(Math.log2(bytes || 1) / 10)));
  return power ? bare(bytes / 1024 ** power) + [" KiB", " MiB", " GiB"][power - 1] : bytes + " B";
}
const percent = (value) => ((value > 0 ? "+" : "") + value.toFixed(1) + " %").replace("-", "−");
const show = {
  time, bytes: size, count: (v) => v.toLocaleString("en"), share: (v) => Math.round(100 * v) + " %",
  spread: (v) => (v === 1 ? "one sample" : "±" + (100 * v).toFixed(1) + " %"),
  error: (v) => (v ? v.toExponential(1) : "0"),
};

// ---- a row of the table of trials
function raw(column, row) {
  if (column.values) return column.values[row] ?? null;
  return column.names[column.codes[row]] ?? "";
}
function shown(column, row) {
  const value = raw(column, row);
  return column.values ? (value === null ? "" : show[column.kind](value)) : value;
}
function idOf(table, row) {
  table.policies ??= Object.fromEntries(table.columns.filter((c) => c.kind === "policy").map((c) => [c.key, c]));
  return table.id.map((name) => name + "=" + raw(table.policies[name], row)).join(",");
}
// What tells it from the control: short enough to read.
function changed(table, row) {
  idOf(table, row);
  const parts = table.id.map((name) => table.policies[name]).filter((c) => raw(c, row) !== c.default);
  return parts.map((c) => c.key + "=" + raw(c, row)).join(", ") || "control";
}

// ---- downloads
function save(name, rows) {
  const quote = (cell) => (/[",\r\n]/.test(cell) ? '"' + cell.replaceAll('"', '""') + '"' : cell);
  const text = rows.map((row) => row.map((cell) => quote(String(cell ?? ""))).join(",")).join("\n") + "\n";
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })) });
  link.download = name.replace(/[^\w.-]+/g, "_") + ".csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
const titleOf = (node) => node.closest("article").dataset.title;
for (const button of document.querySelectorAll("[data-download]")) {
  button.addEventListener("click", () => {
    const table = button.parentElement.querySelector("table");
    const head = [...table.tHead.rows[0].cells].map((cell) => cell.dataset.key);
    const body = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.dataset.v));
    save(titleOf(button) + "-" + table.dataset.name, [head, ...body]);
  });
}

// ---- light and dark: as the system has it, until the switch is used
const system = matchMedia("(prefers-color-scheme: dark)");
const sheet = document.getElementById("dark");
const redraws = []; // called when the colours have changed
const isDark = () => (sheet.media === "all" ? true : sheet.media === "not all" ? false : system.matches);
const themeSwitch = document.getElementById("theme");
const nameSwitch = () => { themeSwitch.textContent = isDark() ? "Light" : "Dark"; }; // what pressing it gives
function recolour() {
  nameSwitch();
  redraws.forEach((redraw) => redraw());
}
themeSwitch.addEventListener("click", () => {
  sheet.media = isDark() ? "not all" : "all";
  recolour();
});
system.addEventListener("change", recolour);
nameSwitch();

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
const bar = document.querySelector("header.bar");
new ResizeObserver(() => document.documentElement.style.setProperty("--bar", bar.offsetHeight + "px")).observe(bar);
