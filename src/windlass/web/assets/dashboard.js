// Keeps a page up to date and lets it act: events report that something changed, the server draws the page anew, and only what
// differs is touched. Buttons send requests of the HTTP API.
const EVERY_MS = 1000;
const POLL_MS = 10000;
const UNDO_MS = 10000;
const LOST_MS = 3000;
const BASE = new URL("..", import.meta.url).pathname.slice(0, -1); // where the server is mounted; empty at the root
const board = document.getElementById("board");
const live = document.getElementById("live");
const csrf = document.querySelector("meta[name=csrf]").content;
let ahead = Date.now() - Date.parse(board.dataset.at); // how far this clock is ahead of the database's
let askedAt = 0;
let asked = 0; // how often the page was asked for, and which of these answers is drawn
let drawn = 0;
let waiting = null;
let asking = null;
let losing = null;
let events = null;

// The address of a path of the server, wherever it is mounted; what the server writes into a page has it already.
export function at(path) {
  return BASE + path;
}

function show(state, text) {
  if (live.dataset.is !== state) live.dataset.is = state;
  if (live.textContent !== text) live.textContent = text;
}

// Makes `old` equal to `fresh` and keeps every node that can stay: focus, selection, scrolling and what was opened survive.
function morph(old, fresh) {
  // What stands in for a script is parsed into elements only where there is none, as in a page that was fetched.
  if (old.isEqualNode(fresh) || old.matches("noscript")) return;
  const isTyped = old.matches("input, textarea, select") && (old === document.activeElement || old.type === "checkbox");
  // What the user opened or closed stays so.
  const isTheirs = (name) => name === "open" || (isTyped && (name === "value" || name === "checked"));
  for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (!isTheirs(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  const named = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let next = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const known = child.id ? named.get(child.id) : next && !next.id && next.nodeName === child.nodeName ? next : null;
    if (!known) {
      old.insertBefore(child, next);
      continue;
    }
    if (known === next) next = next.nextSibling;
    else old.insertBefore(known, next);
    if (known.nodeType === Node.ELEMENT_NODE) morph(known, child);
    else if (known.data !== child.data) known.data = child.data;
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

// Nothing moves while the user selects, types or reads a question.
function isHeld() {
  return document.hidden || board.dataset.held || document.querySelector("dialog[open]") || board.contains(document.activeElement?.closest("form"));
}

export async function refresh(isAsked = true) {
  waiting = null;
  askedAt = Date.now();
  const mine = ++asked;
  asking = new AbortController();
  const answer = await fetch(location.href, { credentials: "same-origin", headers: { accept: "text/html" }, signal: asking.signal });
  if (answer.redirected && new URL(answer.url).pathname === at("/login")) {
    location.assign(at(`/login?next=${encodeURIComponent(location.pathname)}`));
    return;
  }
  // The user may have begun to type meanwhile.
  if (!isAsked && isHeld()) {
    soon();
    return;
  }
  // A job that was deleted has a page too, with another status.
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("board");
  if (!fresh) throw new Error(String(answer.status));
  // An answer that was overtaken shows how things were before.
  if (mine < drawn) return;
  drawn = mine;
  const focused = document.activeElement;
  const here = board.querySelector("tr.here")?.id;
  morph(board, fresh);
  // A row that has moved has lost the focus, and its mark.
  if (here) document.getElementById(here)?.classList.add("here");
  if (focused !== document.activeElement && board.contains(focused)) focused.focus({ preventScroll: true });
  ahead = Date.now() - Date.parse(board.dataset.at);
  tick();
  document.dispatchEvent(new Event("refreshed"));
}

// At most once a second, not at all while the page is hidden, and the last change is never left out.
export function soon() {
  if (waiting !== null || "still" in board.dataset) return;
  const after = Math.max(0, askedAt + EVERY_MS - Date.now());
  waiting = setTimeout(() => {
    waiting = null;
    if (document.hidden) return;
    if (isHeld()) {
      show("held", "paused");
      soon();
      return;
    }
    refresh(false).then(() => show("on", "live")).catch(() => show("lost", "reconnecting"));
  }, Math.max(after, isHeld() ? EVERY_MS : 0));
}

function short(seconds, isWhole) {
  if (seconds < 1) return isWhole ? "now" : `${Math.max(0, Math.floor(seconds * 1000))} ms`;
  if (seconds < 60) return isWhole || seconds >= 10 ? `${Math.floor(seconds)} s` : `${seconds.toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
}

function until(seconds) {
  if (seconds >= 1) return `in ${short(seconds, true)}`;
  return seconds <= -1 ? `${short(-seconds, true)} ago` : "now";
}

function tick() {
  const now = Date.now() - ahead;
  for (const time of board.querySelectorAll("time")) {
    const passed = (now - Date.parse(time.dateTime)) / 1000;
    const text = "until" in time.dataset || "ago" in time.dataset ? until(-passed) : short(passed, "age" in time.dataset);
    if (time.textContent !== text) time.textContent = text;
  }
}

// Shows what happened for a while; `undo` takes it back.
export function toast(text, { isBad = false, undo = null } = {}) {
  const shown = document.createElement("p");
  shown.className = isBad ? "toast bad" : "toast";
  shown.textContent = text;
  if (undo) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Undo";
    button.addEventListener("click", () => { shown.remove(); undo(); });
    shown.append(" ", button);
  }
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), undo || isBad ? UNDO_MS : 5000);
}

// Sends a request of the API; an answer that refuses becomes an error with the server's own sentence.
export async function send(method, url, body) {
  const headers = { "x-csrf-token": csrf, accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(url, { method, credentials: "same-origin", headers, body: typeof body === "object" ? JSON.stringify(body) : body });
  } catch {
    throw new Error("The server cannot be reached. Nothing is known to have changed.");
  }
  const given = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(given.error || `The server answered ${answer.status}.`);
  return given;
}

// Asks in a dialog; resolves to the values of its fields, or null when it was left.
export function ask(title, { text = "", yes = "OK", isDanger = false, fields = [], typed = null } = {}) {
  const dialog = document.getElementById("ask");
  const [problem, button, place] = ["ask-problem", "ask-yes", "ask-fields"].map((id) => document.getElementById(id));
  document.getElementById("ask-title").textContent = title;
  document.getElementById("ask-text").textContent = text;
  button.textContent = yes;
  button.className = isDanger ? "danger" : "";
  problem.hidden = true;
  place.replaceChildren(...fields.map((field) => {
    const label = document.createElement("label");
    const input = document.createElement(field.rows ? "textarea" : "input");
    Object.assign(input, { name: field.name, value: field.value ?? "" });
    if (field.rows) Object.assign(input, { rows: field.rows, spellcheck: false });
    else input.type = field.type || "text";
    for (const name of ["min", "max", "maxLength", "required", "placeholder"]) if (field[name] !== undefined) input[name] = field[name];
    label.append(field.label, input);
    return label;
  }));
  if (typed !== null) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    Object.assign(input, { name: "typed", required: true, autocomplete: "off" });
    label.append(`Type ${typed} to confirm`, input);
    place.append(label);
  }
  dialog.showModal();
  return new Promise((resolve) => {
    const form = dialog.querySelector("form");
    const done = (value) => {
      form.removeEventListener("submit", submit);
      dialog.removeEventListener("cancel", leave);
      document.getElementById("ask-no").removeEventListener("click", leave);
      dialog.close();
      resolve(value);
    };
    const leave = () => done(null);
    const submit = (event) => {
      event.preventDefault();
      const values = Object.fromEntries(new FormData(form));
      if (typed !== null && values.typed !== String(typed)) {
        problem.textContent = `That is not ${typed}.`;
        problem.hidden = false;
        return;
      }
      for (const field of fields.filter((one) => one.isJson)) {
        try {
          JSON.parse(values[field.name]);
        } catch (error) {
          problem.textContent = `${field.label}: ${error.message}`;
          problem.hidden = false;
          return;
        }
      }
      done(values);
    };
    form.addEventListener("submit", submit);
    dialog.addEventListener("cancel", leave);
    document.getElementById("ask-no").addEventListener("click", leave);
  });
}

// Written by hand: a text of JSON goes to the server as it was typed, so that no number loses digits on its way through the browser.
function bodyOf(button, fields, values) {
  const parts = Object.entries(JSON.parse(button.dataset.body || "{}")).map(([name, value]) => [name, JSON.stringify(value)]);
  for (const field of fields) {
    const text = values[field.name];
    if (text === "" && !field.required) continue;
    parts.push([field.name, field.isJson ? text : JSON.stringify(field.type === "number" ? Number(text) : text)]);
  }
  return `{${parts.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}

async function act(button) {
  const { method, url, ask: question, done, undo } = button.dataset;
  const fields = button.dataset.fields ? JSON.parse(button.dataset.fields) : [];
  let values = {};
  if (question || fields.length) {
    const title = question || button.textContent.replace(" …", "");
    values = await ask(title, { yes: button.textContent.replace(" …", ""), isDanger: button.classList.contains("danger"), fields });
    if (values === null) return;
  }
  button.disabled = true;
  if (button.dataset.next) {
    // The page is left: what it shows may be gone before that.
    board.dataset.held = "leaving";
    asking?.abort();
  }
  try {
    const body = button.dataset.body !== undefined || fields.length ? bodyOf(button, fields, values) : undefined;
    const answer = await send(method, url, body);
    const takeBack = undo && (() => send("POST", undo).then(() => toast("Taken back."), (error) => toast(error.message, { isBad: true })).then(() => refresh()));
    toast(done || "Done.", { undo: takeBack });
    if (button.dataset.next) location.assign(button.dataset.next.replace("{number}", answer.number));
    else await refresh();
  } catch (error) {
    delete board.dataset.held;
    toast(error.message, { isBad: true });
  } finally {
    button.disabled = false;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-url]");
  if (button) act(button);
  const copied = event.target.closest("button[data-copy]");
  if (copied) navigator.clipboard.writeText(document.getElementById(copied.dataset.copy).textContent).then(() => toast("Copied."), () => toast("The browser does not allow copying here.", { isBad: true }));
});

// Only a visible page listens: a browser has six connections for all of them.
function follow() {
  if (events || document.hidden) return;
  events = new EventSource(at("/api/v1/events"));
  events.addEventListener("open", () => {
    clearTimeout(losing);
    show("on", "live");
  });
  // Its counts are not shown: the page is drawn anew from one look, so that no number is ahead of the others.
  events.addEventListener("change", () => {
    if (live.dataset.is !== "held") show("on", "live");
    soon();
  });
  events.addEventListener("error", (event) => {
    // A stream that has ended in order is there again after its `retry`.
    clearTimeout(losing);
    losing = setTimeout(() => show("lost", "reconnecting"), LOST_MS);
    // The browser gives up after an answer that is no stream, such as 401 or 503; it comes back when its session ended or the server is full.
    if (event.target.readyState === EventSource.CLOSED) {
      leave();
      setTimeout(() => { soon(); follow(); }, 5000);
    }
  });
}

function leave() {
  events?.close();
  events = null;
}

// Empty fields need not stand in the address.
document.addEventListener("submit", (event) => {
  if (event.target.matches(".filters")) for (const field of event.target.querySelectorAll("input")) if (!field.value) field.disabled = true;
});
document.documentElement.classList.add("scripted");
// On a phone the row of pages is longer than the screen.
const tabs = document.querySelector(".tabs");
const tab = tabs.querySelector("[aria-current]");
if (tab) tabs.scrollLeft = tab.offsetLeft - (tabs.clientWidth - tab.offsetWidth) / 2;
document.addEventListener("visibilitychange", () => {
  if (document.hidden) leave();
  else follow();
});
// What the browser keeps for the way back must not hold a connection, and is old when it is shown again.
window.addEventListener("pagehide", leave);
window.addEventListener("pageshow", follow);
setInterval(tick, 1000);
// What leaves every count as it was is no event.
setInterval(soon, POLL_MS);
follow();
