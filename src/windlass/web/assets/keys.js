// Keys: g and a letter opens a page, / goes to the search, j and k move through rows, x selects one, a button's own letter presses it.
import { at } from "./dashboard.js";
import { openPalette } from "./palette.js";

const KEPT = "windlass-keys"; // "off" in this browser: only Ctrl-K is listened to
const GENERAL = [["/", "search jobs"], ["Ctrl K", "find a page, task, lane, job or action"], ["?", "these keys"]];
const ROWS = [["j, k", "next and previous row"], ["x", "select the row"], ["Enter", "open the row"], ["Esc", "select nothing"]];
const board = document.getElementById("board");
let isGoing = false;

function isOn() {
  return localStorage.getItem(KEPT) !== "off";
}

function rows() {
  return [...board.querySelectorAll("tr[data-id], tr[data-href]")];
}

function step(by) {
  const all = rows();
  if (!all.length) return;
  const place = all.findIndex((row) => row.classList.contains("here"));
  const row = all[Math.min(all.length - 1, Math.max(0, place === -1 ? 0 : place + by))];
  all.forEach((one) => one.classList.toggle("here", one === row));
  row.querySelector("a").focus();
}

function search() {
  const field = document.querySelector("[data-search]");
  if (field) field.focus();
  else location.assign(at("/jobs#search"));
}

// An action on many jobs with nothing selected means the row that j and k have gone to.
function press(key) {
  const button = board.querySelector(`button[data-shortcut="${CSS.escape(key)}"]`);
  if (!button || !button.checkVisibility()) return false;
  if (button.disabled) board.querySelector("tr.here [data-tick]")?.click();
  if (!button.disabled) button.click();
  return true;
}

function el(tag, text, ...children) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function group(title, keys) {
  const pairs = keys.flatMap(([key, what]) => [el("dt", "", el("kbd", key)), el("dd", what)]);
  return el("section", "", el("h3", title), el("dl", "", ...pairs));
}

export function showKeys() {
  const dialog = el("dialog");
  dialog.id = "keys";
  dialog.setAttribute("aria-labelledby", "keys-title");
  const title = el("h2", "Keys");
  title.id = "keys-title";
  const pages = [...document.querySelectorAll(".tabs a")].map((tab) => [`g ${tab.dataset.key}`, tab.textContent]);
  const actions = [...board.querySelectorAll("button[data-shortcut]")].map((button) => [button.dataset.shortcut, button.textContent.replace(" …", "")]);
  const groups = [group("Everywhere", GENERAL), group("Pages", pages)];
  if (rows().length) groups.push(group("Rows", ROWS));
  if (actions.length) groups.push(group(board.querySelector("[data-bulk]") ? "Actions on selected rows" : "Actions", actions));
  const all = el("div", "", ...groups);
  all.className = "keys-groups";
  const box = el("input");
  Object.assign(box, { type: "checkbox", checked: isOn() });
  box.addEventListener("change", () => localStorage.setItem(KEPT, box.checked ? "on" : "off"));
  const close = el("button", "Close");
  close.type = "button";
  close.addEventListener("click", () => dialog.close());
  const foot = el("div", "", el("label", "", box, " Use keys without Ctrl in this browser"), close);
  foot.className = "row";
  dialog.append(title, all, foot);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
}

// A field of a dialog that has just closed keeps the focus until the page is painted again: keys must not go into a field that is not shown.
function isTypedInto(target) {
  return target.closest("input:not([type=checkbox]), textarea, select, dialog[open]")?.checkVisibility() ?? false;
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTypedInto(event.target) || !isOn()) return;
  if (isGoing) {
    isGoing = false;
    document.querySelector(`.tabs a[data-key="${CSS.escape(event.key)}"]`)?.click();
    return;
  }
  if (event.key === "g") isGoing = true;
  else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  else if (event.key === "x") board.querySelector("tr.here [data-tick]")?.click();
  else if (event.key === "/" || event.key === "?") {
    event.preventDefault();
    if (event.key === "/") search();
    else showKeys();
  } else if (event.key.length === 1 && press(event.key)) event.preventDefault();
});
// A refreshed row is drawn without the mark of where j and k have gone to.
document.addEventListener("refreshed", () => document.activeElement?.closest("tr[data-id], tr[data-href]")?.classList.add("here"));
document.getElementById("palette-open")?.addEventListener("click", openPalette);
document.getElementById("keys-open")?.addEventListener("click", showKeys);
