// The form of a recurring job: what is typed is checked by the server, which answers with the next five times.
import { at, refresh, send, toast } from "./dashboard.js";
import { clearFaults, dialogFrom, place, showFault } from "./fields.js";

const PREVIEW_MS = 250;
const dialog = dialogFrom("schedule-form");
const form = dialog.querySelector("form");
const ahead = document.getElementById("ahead");
let editing = null; // the address of the job that is edited; null for a new one
let asked = 0;
let waiting = null;

function kind() {
  return form.elements.kind.value;
}

function arrange() {
  for (const name of ["every", "cron"]) place(form, name).hidden = kind() !== name;
  place(form, "fixed_rate").hidden = kind() !== "every";
  for (const name of ["task", "name", "payload"]) place(form, name).hidden = editing !== null;
}

function write(times, words) {
  const list = document.createElement("ol");
  for (const one of times) {
    const line = document.createElement("li");
    const time = document.createElement("b");
    const day = new Date(`${one.local}Z`).toLocaleDateString("en", { weekday: "short", timeZone: "UTC" });
    const hours = one.utc_offset_seconds / 3600;
    time.textContent = `${day} ${one.local.replace("T", " ")}`;
    line.append(time, ` UTC${hours < 0 ? "−" : "+"}${Math.abs(hours)}`);
    if (one.shift) {
      const mark = document.createElement("span");
      mark.className = "warn";
      mark.textContent = one.shift === "moved" ? " clock jumps: moved" : " clock goes back: shown twice";
      line.append(mark);
    }
    list.append(line);
  }
  const title = document.createElement("p");
  title.textContent = words;
  ahead.replaceChildren(title, list);
}

async function preview() {
  const [mine, text] = [++asked, form.elements[kind()].value.trim()];
  clearFaults(form, ["every", "cron", "timezone"]);
  if (!text) {
    ahead.replaceChildren();
    return;
  }
  const query = new URLSearchParams({ [kind()]: text, count: 5 });
  if (form.elements.timezone.value.trim()) query.set("timezone", form.elements.timezone.value.trim());
  try {
    const answer = await send("GET", at(`/api/v1/schedules/preview?${query}`));
    if (mine === asked) write(answer.times, answer.in_words);
  } catch (error) {
    if (mine !== asked) return;
    ahead.replaceChildren();
    showFault(form, error.message, { isTyping: true });
  }
}

function open(title, yes, values) {
  form.reset();
  clearFaults(form);
  ahead.replaceChildren();
  for (const [name, value] of Object.entries(values)) form.elements[name].value = value;
  document.getElementById("schedule-title").textContent = title;
  document.getElementById("schedule-yes").textContent = yes;
  const zones = document.getElementById("schedule-zones");
  if (!zones.childElementCount && Intl.supportedValuesOf) zones.append(...["UTC", ...Intl.supportedValuesOf("timeZone")].map((name) => Object.assign(document.createElement("option"), { value: name })));
  arrange();
  dialog.showModal();
  preview();
}

// Written by hand: a payload goes to the server as it was typed, so that no number loses digits on its way through the browser.
function body() {
  const given = (name) => form.elements[name].value.trim();
  const parts = [[kind(), JSON.stringify(given(kind()))], ["misfire", JSON.stringify(given("misfire"))]];
  if (given("timezone")) parts.push(["timezone", JSON.stringify(given("timezone"))]);
  if (kind() === "every") parts.push(["fixed_rate", given("fixed_rate") === "yes"]);
  if (editing === null) {
    parts.push(["task", JSON.stringify(given("task"))]);
    if (given("name")) parts.push(["name", JSON.stringify(given("name"))]);
    if (given("payload")) parts.push(["payload", given("payload")]);
  }
  return `{${parts.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}

async function submit() {
  clearTimeout(waiting);
  clearFaults(form);
  const text = form.elements.payload.value.trim();
  if (editing === null && text) {
    try {
      JSON.parse(text);
    } catch (error) {
      showFault(form, `payload: ${error.message}`);
      return;
    }
  }
  const button = document.getElementById("schedule-yes");
  button.disabled = true;
  try {
    await (editing === null ? send("POST", at("/api/v1/jobs"), body()) : send("PUT", editing, body()));
  } catch (error) {
    showFault(form, error.message);
    return;
  } finally {
    button.disabled = false;
  }
  dialog.close();
  toast(editing === null ? "Created." : "Changed.");
  await refresh();
}

document.addEventListener("click", (event) => {
  if (event.target.closest("#schedule-new")) {
    editing = null;
    open("New recurring job", "Create", {});
  }
  const edit = event.target.closest("[data-schedule]");
  if (!edit) return;
  editing = at(`/api/v1/jobs/${edit.dataset.schedule}`);
  const { every, cron, timezone, misfire, fixed } = edit.dataset;
  open(`Edit ${edit.dataset.name}`, "Save", { kind: every ? "every" : "cron", every, cron, timezone, misfire, fixed_rate: fixed });
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
form.addEventListener("input", () => {
  arrange();
  clearTimeout(waiting);
  waiting = setTimeout(preview, PREVIEW_MS);
});
document.getElementById("schedule-no").addEventListener("click", () => dialog.close());
