// Reads charts out: the pointer or the arrow keys move a line over a chart, and the numbers of that point are shown and announced. They
// come from the table that the server wrote below the charts, so that there is one place for them.
import { refresh } from "./dashboard.js";

const EVERY_MS = 60000;
const shown = document.createElement("div");
shown.className = "reading-text";
shown.setAttribute("role", "status");
shown.hidden = true;
document.body.append(shown);
let chart = null; // the element that is read
let place = 0;

function rowOf(element, number) {
  return document.getElementById(element.dataset.numbers)?.querySelectorAll("tbody tr")[number];
}

// The heading of a row, and each of the chart's columns with its number.
function textOf(element, number) {
  const row = rowOf(element, number);
  if (!row) return "";
  const heads = row.closest("table").querySelectorAll("thead th");
  const parts = element.dataset.columns.split(" ").map(Number).map((column) => `${heads[column + 1].textContent} ${row.cells[column + 1].textContent}`);
  return `${row.cells[0].textContent}: ${parts.join(", ")}`;
}

function show() {
  const text = chart?.isConnected ? textOf(chart, place) : "";
  if (!text) return leave();
  const line = chart.querySelector("line.reading");
  const across = ((place + 0.5) / Number(chart.dataset.points)) * 100;
  line.setAttribute("x1", `${across}%`);
  line.setAttribute("x2", `${across}%`);
  line.classList.add("on");
  if (shown.textContent !== text) shown.textContent = text;
  shown.hidden = false;
  const box = line.ownerSVGElement.getBoundingClientRect();
  const left = box.left + (box.width * across) / 100 - shown.offsetWidth / 2;
  shown.style.left = `${Math.max(4, Math.min(innerWidth - shown.offsetWidth - 4, left))}px`;
  shown.style.top = `${box.top < 60 ? box.bottom + 6 : box.top - shown.offsetHeight - 6}px`;
}

function leave() {
  chart?.querySelector("line.reading")?.classList.remove("on");
  chart = null;
  shown.hidden = true;
}

function read(element, number) {
  if (chart !== element) leave();
  chart = element;
  place = Math.max(0, Math.min(Number(element.dataset.points) - 1, number));
  show();
}

document.addEventListener("pointermove", (event) => {
  const over = event.target.closest?.("[data-chart]");
  if (!over) {
    if (chart && !chart.contains(document.activeElement)) leave();
    return;
  }
  const box = over.querySelector("svg.plot").getBoundingClientRect();
  read(over, Math.floor(((event.clientX - box.left) / box.width) * Number(over.dataset.points)));
});
document.addEventListener("keydown", (event) => {
  const focused = document.activeElement?.closest("[data-chart]");
  if (!focused || event.ctrlKey || event.metaKey || event.altKey) return;
  const last = Number(focused.dataset.points) - 1;
  const from = chart === focused ? place : last + 1;
  const to = { ArrowLeft: from - 1, ArrowRight: chart === focused ? from + 1 : 0, Home: 0, End: last, PageUp: from - 10, PageDown: from + 10 }[event.key];
  if (to !== undefined) {
    event.preventDefault();
    read(focused, to);
  } else if (event.key === "Escape") leave();
});
document.addEventListener("focusout", () => leave());
document.addEventListener("scroll", () => chart && show(), { passive: true });
// A redrawn chart has no reading line any more.
document.addEventListener("refreshed", () => chart && show());
// Long ranges are costly to read: such a page is drawn anew once a minute, and not with every event.
if (document.querySelector("[data-every-minute]")) setInterval(() => document.hidden || refresh().catch(() => {}), EVERY_MS);
// A field that is chosen from a list takes effect at once.
document.addEventListener("change", (event) => event.target.matches("select[data-submit]") && event.target.form.requestSubmit());
