// The command palette: pages, tasks, lanes, jobs by number, and the actions of the page, found by some of their letters.
import { ask, at, refresh, send, toast } from "./dashboard.js";

const MOST = 40;
const JOB_VERBS = [["retry", "Retry"], ["run-now", "Run now"], ["pause", "Pause"], ["resume", "Resume"], ["boost", "Boost"], ["cancel", "Cancel"]];
const opener = document.getElementById("palette-open");
const mayOperate = opener?.dataset.may === "operate";
let names = null; // tasks and lanes, read when the palette is first opened
let shown = [];
let place = 0;
let dialog = null;
let input = null;
let list = null;

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// How well letters fit a text in their order: more for whole runs and beginnings of words; 0 if they do not.
export function score(text, typed) {
  const [where, what] = [text.toLowerCase(), typed.toLowerCase().replace(/\s+/g, "")];
  let [points, last] = [1, -2];
  for (const letter of what) {
    const found = where.indexOf(letter, last < 0 ? 0 : last + 1);
    if (found < 0) return 0;
    points += found === last + 1 ? 3 : 1;
    if (found === 0 || /[\s\-_./:#]/.test(where[found - 1])) points += 2;
    last = found;
  }
  return points + (where.startsWith(what) ? 5 : 0) - text.length / 100;
}

function goTo(path) {
  location.assign(at(path));
}

async function act(path, done) {
  try {
    await send("POST", at(path));
    toast(done);
    await refresh();
  } catch (error) {
    toast(error.message, { isBad: true });
  }
}

async function moveJob(number, verb, label) {
  if (verb === "cancel" && (await ask(`Cancel job ${number}?`, { yes: label, isDanger: true })) === null) return;
  await act(`/api/v1/jobs/${number}/${verb}`, `${label}: job ${number}.`);
}

function pages() {
  const tabs = [...document.querySelectorAll(".tabs a")].map((tab) => ({ kind: "Page", label: tab.textContent, note: `g ${tab.dataset.key}`, run: () => tab.click() }));
  const keys = { kind: "Help", label: "Keys", note: "?", run: async () => (await import("./keys.js")).showKeys() };
  return [...tabs, keys];
}

// Every button of the page that can be pressed, with the row or section it belongs to.
function actions() {
  const buttons = [...document.getElementById("board").querySelectorAll("button[data-url], button[data-bulk]")];
  return buttons.filter((button) => !button.disabled && button.checkVisibility()).map((button) => {
    const whose = button.closest("tr")?.querySelector("th, a")?.textContent || button.closest("li, section")?.querySelector("h2, a, b")?.textContent || document.querySelector("h1")?.textContent || "";
    return { kind: "Action", label: button.textContent.replace(" …", ""), note: whose.trim(), run: () => button.click() };
  });
}

function gates(kind, found) {
  return found.flatMap(({ name, is_paused: isPaused }) => {
    const word = kind.toLowerCase();
    const entry = { kind, label: name, note: "its jobs", run: () => goTo(`/jobs?${word}=${encodeURIComponent(name)}`) };
    if (!mayOperate) return [entry];
    const verb = isPaused ? "resume" : "pause";
    return [entry, { kind: "Action", label: `${verb === "pause" ? "Pause" : "Resume"} ${word} ${name}`, note: "", run: () => act(`/api/v1/${word}s/${encodeURIComponent(name)}/${verb}`, verb === "pause" ? "Paused." : "Resumed.") }];
  });
}

function jobs(typed) {
  const found = /^(?:(\D*?)\s*)?#?(\d+)$/.exec(typed);
  const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(typed);
  if (!found && !uuid) return [];
  const number = uuid ? typed : found[2];
  const open = { kind: "Job", label: `Job ${number}`, note: "open", run: () => goTo(`/jobs/${number}`) };
  if (!mayOperate || uuid) return [open];
  const verbs = JOB_VERBS.map(([verb, label]) => ({ kind: "Action", label: `${label} job ${number}`, note: "", run: () => moveJob(number, verb, label) }));
  const word = (found[1] || "").trim();
  return word && !"job".startsWith(word) ? verbs.filter((one) => score(one.label, word)) : [open, ...verbs];
}

function entries(typed) {
  const ranked = [...actions(), ...pages(), ...gates("Task", names?.tasks || []), ...gates("Lane", names?.lanes || [])]
    .map((one) => ({ ...one, points: typed ? Math.max(score(one.label, typed), score(`${one.kind} ${one.label} ${one.note}`, typed) / 2) : 1 }))
    .filter((one) => one.points > 0);
  if (typed) ranked.sort((one, other) => other.points - one.points);
  const search = typed ? [{ kind: "Search", label: `Jobs with “${typed}”`, note: "", run: () => goTo(`/jobs?search=${encodeURIComponent(typed)}`) }] : [];
  return [...jobs(typed), ...ranked.slice(0, MOST), ...search];
}

function draw() {
  list.replaceChildren(...shown.map((one, index) => el(
    "li",
    { role: "option", id: `command-${index}`, "aria-selected": String(index === place) },
    el("span", { class: "kind dim" }, one.kind), el("span", { class: "clip" }, one.label), el("span", { class: "whose dim clip" }, one.note),
  )));
  if (shown.length) input.setAttribute("aria-activedescendant", `command-${place}`);
  else input.removeAttribute("aria-activedescendant");
  list.children[place]?.scrollIntoView({ block: "nearest" });
}

function look() {
  shown = entries(input.value.trim());
  place = 0;
  draw();
}

function choose(index) {
  const one = shown[index];
  dialog.close();
  one?.run();
}

function build() {
  input = el("input", { type: "text", id: "palette-input", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", "aria-label": "Find a page, task, lane, job or action", placeholder: "Page, task, lane, job number or action", autocomplete: "off", spellcheck: "false", maxlength: "200" });
  list = el("ul", { id: "palette-list", role: "listbox", "aria-label": "What was found" });
  dialog = el("dialog", { id: "palette", "aria-label": "Command palette" }, input, list);
  input.addEventListener("input", look);
  input.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && shown.length) {
      event.preventDefault();
      place = (place + by + shown.length) % shown.length;
      draw();
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(place);
    }
  });
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) choose([...list.children].indexOf(option));
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
}

async function readNames() {
  const [tasks, lanes] = await Promise.all(["tasks", "lanes"].map((noun) => send("GET", at(`/api/v1/${noun}`)).catch(() => ({}))));
  const named = (found) => (found || []).map((one) => ({ name: one.name, is_paused: Boolean(one.is_paused ?? one.paused_at) }));
  names = { tasks: named(tasks.tasks), lanes: named(lanes.lanes) };
  if (!dialog.open) return;
  // Kept where the user has moved to it; else what fits best now is first.
  const chosen = place > 0 ? shown[place].label : null;
  look();
  place = Math.max(0, shown.findIndex((one) => one.label === chosen));
  draw();
}

// The browser gives the focus back to where it was when the dialog closes.
export function openPalette() {
  if (!dialog) build();
  if (dialog.open) {
    dialog.close();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  input.value = "";
  dialog.showModal();
  look();
  readNames();
}
