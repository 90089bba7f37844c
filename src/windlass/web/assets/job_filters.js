// The search of the list of jobs: what is typed becomes filters in the address, with suggestions. A form without this script
// has a field for each filter.
import { at, send } from "./dashboard.js";

const FREE = ["state", "task", "lane", "priority", "subject", "correlation", "worker", "since", "error"];
const WHAT = {
  state: "pending, running, failed …",
  task: "a task's name",
  lane: "a lane's name",
  priority: "as it is now",
  subject: "what they are about",
  correlation: "which action they came of",
  worker: "who runs them now",
  since: "made at this time or later",
  error: "a text in the last error",
};
const SPANS = [["15 minutes", 900], ["1 hour", 3600], ["24 hours", 86400], ["7 days", 604800]];
const MOST = 12;
const CHOSEN_FROM = new Set(["state", "priority"]);
const input = document.getElementById("search");
const list = document.getElementById("suggestions");
let found = [];
let place = -1;
let workers = null;

function values(name) {
  if (name === "state") return [...document.querySelectorAll(".chips .chip")].map((chip) => [chip.id.replace("chip-", ""), chip.querySelector("b").textContent]);
  if (name === "priority") return ["100", "75", "50", "25", "0"].map((value) => [value, ""]);
  if (name === "since") return SPANS.map(([label, seconds]) => [new Date(Date.now() - seconds * 1000).toISOString().slice(0, 19) + "Z", `the last ${label}`]);
  if (name === "worker") return workers || [];
  return [...(document.getElementById(`known-${name}`)?.options || [])].map((option) => [option.value, ""]);
}

// What stands before the last filter or word, and that one's name and value.
function parts() {
  const [, before, name, quoted, plain] = /^(.*?)(?:\b(\w+):(?:"([^"]*)"?|(\S*)))?$/s.exec(input.value);
  if (FREE.includes(name)) return { before: before.trim(), name, value: quoted ?? plain ?? "" };
  const cut = /^(.*\s)?(\S*)$/s.exec(input.value);
  return { before: (cut[1] || "").trim(), name: null, value: cut[2] };
}

function matches(text, typed) {
  return text.toLowerCase().includes(typed.toLowerCase());
}

function suggest() {
  const { before, name, value } = parts();
  found = [];
  if (name) {
    const known = values(name).filter(([one, note]) => matches(one, value) || matches(note, value));
    found = known.map(([one, note]) => ({ name, value: one, note, before }));
    if (value && !CHOSEN_FROM.has(name) && !known.some(([one]) => one === value)) found.push({ name, value, note: name === "error" ? "anywhere in the error" : "as typed", before });
  } else {
    found = FREE.filter((one) => one.startsWith(value.toLowerCase())).map((one) => ({ name: one, value: null, note: WHAT[one], before }));
    if (value) {
      for (const one of ["state", "task", "lane"]) found.push(...values(one).filter(([text]) => matches(text, value)).map(([text, note]) => ({ name: one, value: text, note, before })));
      if (/^\d+$/.test(value)) found.unshift({ name: "job", value, note: "open it", before });
    }
  }
  found = found.slice(0, MOST);
  place = -1;
  draw();
}

function draw() {
  list.replaceChildren(...found.map((one, index) => {
    const option = document.createElement("li");
    option.id = `suggestion-${index}`;
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", String(index === place));
    const [label, text, note] = ["b", "span", "span"].map((tag) => document.createElement(tag));
    label.textContent = `${one.name}:`;
    text.textContent = one.value === null ? "" : ` ${one.value}`;
    note.textContent = one.note;
    note.className = "dim";
    option.append(label, text, " ", note);
    return option;
  }));
  list.hidden = !found.length;
  input.setAttribute("aria-expanded", String(found.length > 0));
  if (place >= 0) input.setAttribute("aria-activedescendant", `suggestion-${place}`);
  else input.removeAttribute("aria-activedescendant");
  list.children[place]?.scrollIntoView({ block: "nearest" });
}

function close() {
  found = [];
  place = -1;
  draw();
}

async function pick({ name, value, before }) {
  if (name === "job") {
    location.assign(at(`/jobs/${value}`));
    return;
  }
  if (value !== null) {
    go([[name, value]], before);
    return;
  }
  input.value = `${before} ${name}:`.trimStart();
  suggest();
  if (name === "worker" && workers === null) {
    workers = [];
    const answer = await send("GET", at("/api/v1/workers")).catch(() => ({ workers: [] }));
    workers = answer.workers.filter((one) => one.is_online).map((one) => [one.id, `${one.host}:${one.pid}`]);
    suggest();
  }
}

// Opens the list with filters added; what is left of the text is searched for.
function go(filters, text) {
  const address = new URL(location.href);
  const asked = address.searchParams;
  asked.delete("cursor");
  for (const [name, value] of filters) {
    if (name === "state") asked.set("state", [...new Set([...(asked.get("state") || "").split(","), value])].filter(Boolean).join(","));
    else asked.set(name, value);
  }
  if (text) asked.set("search", text);
  else asked.delete("search");
  location.assign(address);
}

function submit() {
  const filters = [];
  const text = input.value.replace(/(\w+):(?:"([^"]*)"?|(\S+))/g, (whole, name, quoted, plain) => {
    if (!FREE.includes(name)) return whole;
    filters.push([name, quoted ?? plain]);
    return "";
  });
  go(filters, text.trim().replace(/\s+/g, " "));
}

input.addEventListener("input", suggest);
input.addEventListener("click", () => list.hidden && suggest());
input.addEventListener("blur", close);
input.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    if (list.hidden) suggest();
    const by = event.key === "ArrowDown" ? 1 : -1;
    place = found.length ? (place + by + found.length + (place === -1 && by === -1 ? 1 : 0)) % found.length : -1;
    draw();
  } else if (event.key === "Enter" && place >= 0) {
    event.preventDefault();
    pick(found[place]);
  } else if (event.key === "Escape") {
    if (list.hidden) input.blur();
    else close();
    event.preventDefault();
  } else if (event.key === "Backspace" && !input.value) {
    const token = [...document.querySelectorAll("#tokens .token")].at(-1);
    if (!token) return;
    const address = new URL(token.href);
    address.searchParams.delete("search");
    location.assign(address);
  }
});
// Before the field loses the focus, which would close the list.
list.addEventListener("mousedown", (event) => {
  event.preventDefault();
  const option = event.target.closest("[role=option]");
  if (option) pick(found[[...list.children].indexOf(option)]);
});
document.getElementById("filters").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
if (location.hash === "#search") input.focus();
