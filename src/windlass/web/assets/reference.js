// Draws openapi.json, and lets its operations be tried. Text only ever enters the page as text nodes.
import { ask, at } from "./dashboard.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const LONGEST = 200000; // characters of an answer that are shown
const DEEPEST = 6;
const RANK = { viewer: 0, producer: 1, operator: 2, admin: 3 };
const csrf = document.querySelector("meta[name=csrf]").content;
const main = document.getElementById("reference");
const mine = main.dataset.role;
const search = document.getElementById("reference-search");
let schemas = {};

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

// What stands between backticks is code.
function marked(text) {
  return text.split("`").map((part, place) => (place % 2 ? el("code", {}, part) : part));
}

function refOf(schema) {
  return schema.$ref.split("/").pop();
}

function resolved(schema) {
  return schema && schema.$ref ? schemas[refOf(schema)] : schema;
}

// A schema as a short text, with a link for each one that has a name.
function kind(schema) {
  if (!schema || !Object.keys(schema).length) return ["any"];
  if (schema.$ref) return [el("a", { href: `#schema-${refOf(schema)}` }, refOf(schema))];
  const choices = schema.anyOf || schema.oneOf;
  if (choices) return choices.flatMap((one, place) => (place ? [" or ", ...kind(one)] : kind(one)));
  if (schema.allOf) return schema.allOf.flatMap(kind);
  if (schema.type === "array") return ["list of ", ...kind(schema.items)];
  if (schema.const !== undefined) return [JSON.stringify(schema.const)];
  if (schema.enum) return [schema.enum.join(" or ")];
  return [[schema.format || schema.type || "any", bounds(schema)].filter(Boolean).join(" ")];
}

function bounds(schema) {
  const said = [];
  if (schema.minimum !== undefined) said.push(`≥ ${schema.minimum}`);
  if (schema.exclusiveMinimum !== undefined) said.push(`> ${schema.exclusiveMinimum}`);
  if (schema.maximum !== undefined) said.push(`≤ ${schema.maximum}`);
  if (schema.maxLength !== undefined) said.push(`${schema.minLength || 0} to ${schema.maxLength} characters`);
  else if (schema.minLength) said.push(`≥ ${schema.minLength} characters`);
  if (schema.maxItems !== undefined) said.push(`≤ ${schema.maxItems} entries`);
  return said.length ? `(${said.join(", ")})` : "";
}

function table(title, head, rows) {
  if (!rows.length) return null;
  const used = head.map((_, place) => rows.some((row) => [row[place]].flat().some((part) => part !== "" && part !== undefined)));
  const line = (tag, values) => el("tr", {}, ...values.filter((_, place) => used[place]).map((value) => el(tag, tag === "th" ? { scope: "col" } : {}, ...[value ?? ""].flat())));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, el("table", { class: "sheet" }, el("thead", {}, line("th", head)), el("tbody", {}, ...rows.map((row) => line("td", row)))));
}

function fields(schema) {
  const required = new Set(schema.required || []);
  return Object.entries(schema.properties || {}).map(([name, field]) => [
    el("code", {}, name),
    required.has(name) ? "yes" : "",
    kind(field),
    field.default === undefined || field.default === null ? "" : JSON.stringify(field.default),
    marked(field.description || ""),
  ]);
}

const FIELDS = ["field", "required", "type", "default", "meaning"];

// A value that fits a schema; of a body only what it must have, of an answer everything.
function example(schema, isWhole, depth = 0) {
  const found = resolved(schema);
  if (!found || depth > DEEPEST) return null;
  if (found.default !== undefined && found.default !== null) return found.default;
  if (found.const !== undefined) return found.const;
  if (found.enum) return found.enum[0];
  const choices = found.anyOf || found.oneOf || found.allOf;
  if (choices) return example(choices.find((one) => one.type !== "null") || {}, isWhole, depth + 1);
  if (found.type === "object" || found.properties) {
    const names = Object.keys(found.properties || {}).filter((name) => isWhole || (found.required || []).includes(name));
    return Object.fromEntries(names.map((name) => [name, example(found.properties[name], isWhole, depth + 1)]));
  }
  if (found.type === "array") return isWhole ? [example(found.items, isWhole, depth + 1)] : [];
  if (found.type === "integer" || found.type === "number") return Math.max(found.minimum ?? 0, 1);
  if (found.type === "boolean") return false;
  if (found.format === "date-time") return "2026-01-15T12:00:00Z";
  if (found.format === "uuid") return "00000000-0000-8000-8000-000000000001";
  return found.type === "string" ? "text" : null;
}

function contentOf(part) {
  return part?.content?.["application/json"]?.schema;
}

function shell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function curl(method, path, body) {
  const parts = ["curl", ...(method === "get" ? [] : ["-X", method.toUpperCase()]), "-H", '"Authorization: Bearer $TOKEN"'];
  if (body !== undefined) parts.push("-H", '"Content-Type: application/json"', "-d", shell(JSON.stringify(body)));
  return [...parts, shell(location.origin + at(path))].join(" ");
}

function exampleOf(method, path, described) {
  const body = contentOf(described.requestBody);
  const good = Object.entries(described.responses).find(([status]) => status.startsWith("2"));
  const answer = good && contentOf(good[1]);
  const parts = [el("h3", {}, "Example"), el("pre", { tabindex: "0" }, curl(method, path, body ? example(body, false) : undefined))];
  if (answer) parts.push(el("pre", { tabindex: "0" }, JSON.stringify(example(answer, true), null, 2)));
  return parts;
}

function roleOf(described) {
  return /role `(\w+)`/.exec(described.description || "")?.[1] || null;
}

// Whether the user may call it; the server decides in any case.
function mayCall(described) {
  const least = roleOf(described);
  return least === null || (least in RANK && RANK[mine] >= RANK[least]);
}

function pretty(text) {
  // Numbers that a browser would round are left as the server wrote them.
  if (/\d{16,}/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function addressOf(path, params, values) {
  const query = new URLSearchParams();
  let address = path;
  for (const one of params) {
    const value = values.get(one.name);
    if (one.in === "path") address = address.replace(`{${one.name}}`, encodeURIComponent(value));
    else if (one.in === "query" && value !== "") query.set(one.name, value);
  }
  return query.size ? `${address}?${query}` : address;
}

function tryIt(method, path, described) {
  if (!csrf) return [el("p", { class: "dim" }, "Log in to try it here.")];
  if (!mayCall(described)) return [el("p", { class: "dim" }, `Trying it takes the role ${roleOf(described)}.`)];
  const streams = Object.values(described.responses).some((one) => one.content?.["text/event-stream"]);
  if (streams) return [el("p", { class: "dim" }, "It answers for as long as the client listens; try it with curl.")];
  const params = (described.parameters || []).filter((one) => one.in !== "header");
  const id = described.operationId;
  const inputs = params.map((one) => {
    const input = el("input", { name: one.name, id: `${id}-${one.name}`, autocomplete: "off", placeholder: one.in });
    input.required = one.in === "path" || Boolean(one.required);
    return el("div", { class: "field" }, el("label", { for: `${id}-${one.name}` }, one.name), input);
  });
  const body = contentOf(described.requestBody);
  const text = body ? el("textarea", { name: "body", rows: "6", id: `${id}-body`, spellcheck: "false", "aria-label": "Body (JSON)" }) : null;
  if (text) text.value = JSON.stringify(example(body, false), null, 2);
  const send = el("button", { type: "submit" }, "Send");
  const result = el("div", { class: "answer", role: "status" });
  const form = el("form", { class: "try", "aria-label": `Try ${method.toUpperCase()} ${path}` }, ...inputs, text, el("div", { class: "actions" }, send), result);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const address = addressOf(path, params, new FormData(form));
    const question = { text: `${method.toUpperCase()} ${address}\nThis changes the queue, as the button of a page would.`, yes: "Send", isDanger: method === "delete" };
    if (method !== "get" && (await ask("Send this request?", question)) === null) return;
    send.disabled = true;
    result.replaceChildren(...(await answerTo(method, address, text?.value)));
    send.disabled = false;
  });
  return [el("h3", {}, "Try it"), form];
}

async function answerTo(method, address, body) {
  const headers = { accept: "application/json" };
  if (method !== "get") headers["x-csrf-token"] = csrf;
  if (body !== undefined) headers["content-type"] = "application/json";
  const began = performance.now();
  try {
    const answer = await fetch(at(address), { method: method.toUpperCase(), credentials: "same-origin", headers, body });
    const text = await answer.text();
    const took = Math.round(performance.now() - began);
    const badge = el("span", { class: `badge s-${answer.ok ? "completed" : "failed"}` }, `${answer.status} ${answer.statusText}`);
    const shown = text.length > LONGEST ? `${text.slice(0, LONGEST)}\n… ${text.length - LONGEST} more characters` : pretty(text);
    return [el("p", {}, badge, ` ${took} ms · request ${answer.headers.get("x-request-id") || "?"}`), el("pre", { tabindex: "0" }, shown)];
  } catch {
    return [el("p", { class: "problem" }, "The server cannot be reached. Nothing is known to have changed.")];
  }
}

function bodyParts(schema) {
  if (!schema) return [];
  const found = resolved(schema);
  const choices = found.anyOf || found.oneOf || [schema];
  return [el("h3", {}, "Body: ", ...kind(schema)), ...choices.map((one) => table(`Fields of ${one.$ref ? refOf(one) : "the body"}`, FIELDS, fields(resolved(one))))];
}

function answerParts(responses) {
  const all = Object.entries(responses);
  const good = all.filter(([status]) => status < "4");
  const refused = all.filter(([status]) => status >= "4");
  const rows = good.map(([status, one]) => [status, one.description, kind(contentOf(one) || Object.values(one.content || {})[0]?.schema)]);
  const line = refused.map(([status, one]) => `${status} ${one.description}`).join(", ");
  return [el("h3", {}, "Answers"), table("Answers", ["status", "meaning", "answer"], rows), refused.length ? el("p", { class: "dim" }, "Refusals are ", ...kind({ $ref: "#/Problem" }), `: ${line}`) : null];
}

function fill(place, method, path, described) {
  const params = (described.parameters || []).map((one) => [el("code", {}, one.name), one.in, one.required ? "yes" : "", kind(one.schema), marked(one.description || one.schema?.description || "")]);
  const parts = [
    described.description ? el("p", { class: "dim" }, ...marked(described.description)) : null,
    table("Parameters", ["parameter", "in", "required", "type", "meaning"], params),
    ...bodyParts(contentOf(described.requestBody)),
    ...answerParts(described.responses),
    ...exampleOf(method, path, described),
    ...tryIt(method, path, described),
  ];
  place.append(...parts.filter((part) => part !== null));
}

// What is folded is drawn when it is opened first: there are many, and most are never looked at.
function folded(id, summary, draw) {
  const made = el("details", { id }, summary);
  made.addEventListener("toggle", () => made.open && made.childElementCount === 1 && draw(made));
  return made;
}

function operation(method, path, described) {
  const title = el("summary", {}, el("code", { class: "method" }, method.toUpperCase()), el("code", {}, path), ` ${described.summary || ""}`);
  return folded(described.operationId, title, (place) => fill(place, method, path, described));
}

function schema(name, one) {
  return folded(`schema-${name}`, el("summary", {}, el("code", {}, name)), (place) => {
    const parts = [one.description ? el("p", {}, ...marked(one.description)) : null, one.enum ? el("p", {}, one.enum.join(" or ")) : null, table("Fields", FIELDS, fields(one)), el("h3", {}, "Example"), el("pre", { tabindex: "0" }, JSON.stringify(example(one, true), null, 2))];
    place.append(...parts.filter((part) => part !== null));
  });
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.tagName !== "DETAILS") return;
  search.value = "";
  filter("");
  target.open = true;
  target.scrollIntoView();
}

function filter(word) {
  for (const one of main.querySelectorAll("details")) one.hidden = !one.firstChild.textContent.toLowerCase().includes(word);
  for (const section of main.querySelectorAll("section")) section.hidden = !section.querySelector("details:not([hidden])");
}

async function draw() {
  const answer = await fetch(at("/openapi.json"), { credentials: "same-origin" });
  if (!answer.ok) throw new Error(`openapi.json: ${answer.status}`);
  const api = await answer.json();
  schemas = api.components?.schemas || {};
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((one) => methods[one])) {
      const tag = (methods[method].tags || ["other"])[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(operation(method, path, methods[method]));
    }
  }
  groups.set("Schemas", Object.entries(schemas).map(([name, one]) => schema(name, one)));
  main.replaceChildren(...[...groups].map(([tag, entries]) => el("section", { "aria-label": tag }, el("h2", {}, tag), ...entries)));
  const narrow = () => filter(search.value.trim().toLowerCase());
  search.addEventListener("input", narrow);
  narrow(); // to what was typed while the document was on its way
  addEventListener("hashchange", openTarget);
  openTarget();
}

draw().catch((error) => main.replaceChildren(el("p", { class: "problem" }, String(error))));
