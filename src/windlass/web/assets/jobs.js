// The list of jobs: select rows, act on them or on all that match, choose columns.
import { ask, at, refresh, send, soon, toast } from "./dashboard.js";

const TYPED_FROM = 1000;
const PART = 500; // how many jobs a request changes: small enough that progress shows and Stop works soon
const MOST_IDS = 10000;
const NAMED = 5;
const LABELS = { retry: "Retry", run_now: "Run now", pause: "Pause", resume: "Resume", set_priority: "Set the priority of", clone: "Requeue", cancel: "Cancel", delete: "Delete" };
const NOTES = { clone: "A new job is made from each that has ended. ", delete: "They are removed with their runs. ", run_now: "Running ones run once more after this run. " };
const UNDONE_BY = { pause: "resume", resume: "pause" };
const board = document.getElementById("board");
const chosen = new Map(); // number → the priority it had when it was selected
let isAll = false;
let isStopped = false;

function bulk() {
  return document.getElementById("bulk");
}

function shown(jobs) {
  return jobs.toLocaleString("en");
}

function show() {
  const panel = bulk();
  if (!panel) {
    delete board.dataset.held;
    return;
  }
  const total = Number(panel.dataset.total);
  const jobs = isAll ? total : chosen.size;
  const plus = isAll && panel.dataset.exact !== "true" ? "+" : "";
  document.getElementById("bulk-chosen").textContent = jobs ? `${shown(jobs)}${plus} selected` : "Nothing selected";
  for (const button of panel.querySelectorAll("[data-bulk]")) button.disabled = !jobs;
  document.getElementById("bulk-all").hidden = isAll;
  if (jobs) board.dataset.held = "selection";
  else delete board.dataset.held;
  const ticks = [...board.querySelectorAll("[data-tick]")];
  for (const tick of ticks) tick.checked = isAll || chosen.has(Number(tick.value));
  const all = document.getElementById("tick-all");
  if (all) all.checked = ticks.length > 0 && ticks.every((tick) => tick.checked);
}

function clear() {
  chosen.clear();
  isAll = false;
  show();
}

function choose(tick) {
  if (tick.checked) chosen.set(Number(tick.value), Number(tick.closest("tr").dataset.priority));
  else chosen.delete(Number(tick.value));
}

function choosePage(isChosen) {
  isAll = false;
  for (const tick of board.querySelectorAll("[data-tick]")) {
    tick.checked = isChosen;
    choose(tick);
  }
  show();
}

// Names some of the jobs that are meant, so that the question is about something one can see.
function sample(jobs) {
  const rows = [...board.querySelectorAll("tr[data-id]")].filter((row) => isAll || chosen.has(Number(row.dataset.id)));
  const names = rows.slice(0, NAMED).map((row) => `#${row.dataset.id} ${row.querySelector(".task a").textContent} (${row.querySelector(".badge").textContent})`);
  return names.length ? `\n${names.join(", ")}${jobs > names.length ? ` and ${shown(jobs - names.length)} more` : ""}` : "";
}

async function run(action) {
  const panel = bulk();
  const which = isAll ? { filter: JSON.parse(panel.dataset.filter) } : { ids: [...chosen.keys()] };
  const before = new Map(chosen);
  try {
    const seen = await send("POST", at("/api/v1/bulk"), { action, dry_run: true, ...optionsOf(action, { priority: 50 }), ...which });
    const jobs = seen.matched;
    if (!jobs) {
      toast("No job matches any longer.", { isBad: true });
      return;
    }
    const values = await ask(`${LABELS[action]} ${shown(jobs)} ${jobs === 1 ? "job" : "jobs"}?`, {
      text: `${NOTES[action] || ""}Jobs whose state does not allow it are left as they are.${sample(jobs)}`,
      yes: LABELS[action].replace(" the priority of", " priority"),
      isDanger: action === "cancel" || action === "delete",
      typed: jobs > TYPED_FROM ? jobs : null,
      fields: fieldsOf(action),
    });
    if (values === null) return;
    const done = await inParts({ action, ...optionsOf(action, values), ...which }, jobs);
    const rest = (done.refused ? `, ${shown(done.refused)} left as they were` : "") + (done.isStopped ? "; stopped before the rest" : "");
    toast(`${shown(done.changed.length)} changed${rest}.`, { undo: undoOf(action, done.changed, before) });
    clear();
    await refresh();
  } catch (error) {
    toast(error.message, { isBad: true });
  }
}

// Does a bulk part by part; each is done for good, and between two of them it can be stopped.
async function inParts(body, jobs) {
  const [place, bar, text] = ["bulk-progress", "bulk-bar", "bulk-text"].map((id) => document.getElementById(id));
  const done = { changed: [], refused: 0, isStopped: false };
  let seen = 0;
  let bounds = {};
  isStopped = false;
  try {
    for (;;) {
      const part = await send("POST", at("/api/v1/bulk"), { ...body, ...bounds, limit: PART });
      done.changed.push(...part.changed_ids);
      done.refused += part.refused;
      seen += part.matched;
      if (part.next === null) return done;
      if (isStopped) return { ...done, isStopped: true };
      bounds = { after: part.next, until: part.until };
      place.hidden = false;
      Object.assign(bar, { max: Math.max(jobs, seen), value: seen });
      text.textContent = `${shown(seen)} of ${shown(Math.max(jobs, seen))}`;
    }
  } finally {
    place.hidden = true;
  }
}

// Takes back exactly what was changed: jobs that were in that state before are left alone.
function undoOf(action, changed, before) {
  const requests = [];
  const add = (body, ids) => {
    for (let start = 0; start < ids.length; start += MOST_IDS) requests.push({ ...body, ids: ids.slice(start, start + MOST_IDS) });
  };
  if (UNDONE_BY[action]) add({ action: UNDONE_BY[action] }, changed);
  else if (action === "set_priority" && changed.every((id) => before.has(id))) {
    for (const priority of new Set(before.values())) add({ action, priority }, changed.filter((id) => before.get(id) === priority));
  }
  if (!requests.length) return null;
  return async () => {
    try {
      for (const request of requests) await send("POST", at("/api/v1/bulk"), request);
      toast("Taken back.");
    } catch (error) {
      toast(error.message, { isBad: true });
    }
    await refresh();
  };
}

function fieldsOf(action) {
  if (action === "set_priority") return [{ name: "priority", label: "Priority (1 to 100)", type: "number", min: 1, max: 100, value: 50, required: true }];
  if (action === "cancel") return [{ name: "reason", label: "Reason (optional)", maxLength: 500 }];
  return [];
}

function optionsOf(action, values) {
  if (action === "set_priority") return { priority: Number(values.priority) };
  return action === "cancel" && values.reason ? { reason: values.reason } : {};
}

document.addEventListener("change", (event) => {
  const one = event.target;
  if (one.matches("[data-tick]")) {
    isAll = false;
    choose(one);
    show();
  } else if (one.id === "tick-all") {
    choosePage(one.checked);
  } else if (one.closest("#columns")) {
    const address = new URL(location.href);
    address.searchParams.delete("cursor");
    address.searchParams.set("columns", [...document.querySelectorAll("#columns input:checked")].map((box) => box.value).join(",") || "none");
    location.assign(address);
  }
});

document.addEventListener("click", (event) => {
  const verb = event.target.closest("[data-bulk]");
  if (verb) run(verb.dataset.bulk);
  else if (event.target.id === "bulk-stop") isStopped = true;
  else if (event.target.id === "bulk-page") choosePage(true);
  else if (event.target.id === "bulk-all") {
    isAll = true;
    show();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]") && !event.target.closest("#filters")) {
    clear();
    soon();
  }
});

document.addEventListener("refreshed", show);
show();
