// Keeps the first page up to date: events say that something changed, the server draws it, and only what differs is touched.
const EVERY_MS = 1000;
const board = document.getElementById("board");
const live = document.getElementById("live");
let ahead = Date.now() - Date.parse(board.dataset.at); // how far this clock is ahead of the database's
let askedAt = 0;
let waiting = null;

function say(state, text) {
  if (live.dataset.is !== state) live.dataset.is = state;
  if (live.textContent !== text) live.textContent = text;
}

// Makes `old` equal to `fresh` and keeps every node that can stay: focus, selection, scrolling and what was opened survive.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
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

async function refresh() {
  waiting = null;
  askedAt = Date.now();
  const answer = await fetch("/", { credentials: "same-origin", headers: { accept: "text/html" } });
  if (answer.redirected) {
    location.assign("/login");
    return;
  }
  if (!answer.ok) throw new Error(String(answer.status));
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("board");
  morph(board, fresh);
  ahead = Date.now() - Date.parse(board.dataset.at);
  listenToButton();
  tick();
}

// At most once a second, not at all while nobody looks, and the last change is never left out.
function soon() {
  if (waiting !== null || document.hidden) return;
  waiting = setTimeout(() => refresh().catch(() => say("lost", "not reachable")), Math.max(0, askedAt + EVERY_MS - Date.now()));
}

function count(counts) {
  for (const [state, jobs] of Object.entries(counts)) {
    const shown = board.querySelector(`[data-count="${CSS.escape(state)}"]`);
    if (!shown) continue;
    const text = jobs.toLocaleString("en");
    if (shown.textContent !== text) shown.textContent = text;
    shown.parentElement.classList.toggle("none", jobs === 0);
  }
}

function short(seconds, isWhole) {
  if (seconds < 1) return isWhole ? "now" : `${Math.max(0, Math.floor(seconds * 1000))} ms`;
  if (seconds < 60) return isWhole || seconds >= 10 ? `${Math.floor(seconds)} s` : `${seconds.toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
}

function tick() {
  const now = Date.now() - ahead;
  for (const time of board.querySelectorAll("time")) {
    const text = short((now - Date.parse(time.dateTime)) / 1000, "age" in time.dataset);
    if (time.textContent !== text) time.textContent = text;
  }
}

function listenToButton() {
  const button = document.getElementById("hello");
  if (!button || button.onclick) return;
  button.onclick = async () => {
    button.disabled = true;
    const headers = { "content-type": "application/json", "x-csrf-token": button.dataset.csrf };
    const body = JSON.stringify({ task: "hello" });
    const answer = await fetch("/api/v1/jobs", { method: "POST", credentials: "same-origin", headers, body }).catch(() => null);
    const said = document.getElementById("hello-said");
    if (said) said.textContent = answer && answer.ok ? "It is on its way." : "It could not be enqueued.";
    button.disabled = false;
    soon();
  };
}

function follow() {
  const events = new EventSource("/api/v1/events");
  events.addEventListener("open", () => say("on", "live"));
  events.addEventListener("change", (event) => {
    say("on", "live");
    count(JSON.parse(event.data).counts);
    soon();
  });
  events.addEventListener("error", () => {
    say("lost", "connection lost, trying again");
    // The browser gives up after an answer that is no stream, such as 401 or 503; it comes back when its session ended or the server is full.
    if (events.readyState === EventSource.CLOSED) setTimeout(() => { soon(); follow(); }, 5000);
  });
}

document.documentElement.classList.add("scripted");
document.addEventListener("visibilitychange", () => document.hidden || soon());
setInterval(tick, 1000);
listenToButton();
follow();
