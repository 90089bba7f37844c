// One job: keeps the messages it has sent while the page is open, and follows the end of logs.
import { soon } from "./dashboard.js";

const MOST = 200;
const EVERY_MS = 2000;
const AT_END = 24; // pixels from the end within which a log is followed
const board = document.getElementById("board");
const messages = [];
const heights = new WeakMap(); // how high a log was when it was last looked at

function follow() {
  const place = document.getElementById("messages");
  const text = document.getElementById("message")?.textContent;
  if (!place) return;
  if (text && messages.at(-1)?.text !== text) messages.push({ at: board.dataset.at.slice(11, 19), text });
  messages.splice(0, messages.length - MOST);
  place.replaceChildren(...messages.map((one) => {
    const line = document.createElement("div");
    const time = document.createElement("span");
    time.className = "dim";
    time.textContent = `${one.at} `;
    line.append(time, one.text);
    return line;
  }));
}

// A log is read from its end, where the newest lines are, unless the user has scrolled back.
function showEnds() {
  for (const log of board.querySelectorAll("[data-log]")) {
    if (!log.clientHeight) continue; // in a fold that is closed
    if (log.scrollTop + log.clientHeight > (heights.get(log) ?? 0) - AT_END) log.scrollTop = log.scrollHeight;
    heights.set(log, log.scrollHeight);
  }
}

function openRun() {
  const run = location.hash.startsWith("#run-") && document.getElementById(location.hash.slice(1));
  if (run) run.open = true;
}

board.addEventListener("toggle", showEnds, true);
window.addEventListener("hashchange", openRun);
document.addEventListener("refreshed", () => { follow(); showEnds(); });
openRun();
follow();
showEnds();
// What a run reports meanwhile changes no count, and so is no event.
setInterval(() => { if (board.querySelector(".headline.s-running")) soon(); }, EVERY_MS);
