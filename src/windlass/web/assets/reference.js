// Draws openapi.json. Text only ever enters the page as text nodes.
const METHODS = ["get", "post", "put", "patch", "delete"];

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

function nameOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  const choices = schema.anyOf || schema.oneOf;
  if (choices) return choices.map(nameOf).join(" | ");
  if (schema.type === "array") return `${nameOf(schema.items)}[]`;
  if (schema.enum) return schema.enum.join(" | ");
  return schema.format || schema.type || "any";
}

function table(head, rows) {
  if (!rows.length) return null;
  const cells = (tag, values) => el("tr", {}, ...values.map((value) => el(tag, {}, String(value ?? ""))));
  return el("table", {}, cells("th", head), ...rows.map((row) => cells("td", row)));
}

function fields(schema) {
  const required = new Set(schema.required || []);
  return Object.entries(schema.properties || {}).map(([name, field]) => [
    required.has(name) ? `${name} *` : name,
    nameOf(field),
    field.default === undefined ? "" : JSON.stringify(field.default),
  ]);
}

function contentOf(part) {
  return part && part.content && part.content["application/json"] && part.content["application/json"].schema;
}

function operation(method, path, described, schemas) {
  const body = contentOf(described.requestBody);
  const resolved = body && body.$ref ? schemas[body.$ref.split("/").pop()] : body;
  const params = (described.parameters || []).map((one) => [one.name, one.in, nameOf(one.schema), one.required ? "required" : ""]);
  const answers = Object.entries(described.responses).map(([status, one]) => [status, one.description, nameOf(contentOf(one))]);
  return el(
    "details",
    { id: described.operationId },
    el("summary", {}, el("code", { class: "method" }, method.toUpperCase()), el("code", {}, path), ` ${described.summary || ""}`),
    el("p", {}, described.description || ""),
    table(["parameter", "in", "type", ""], params),
    resolved ? el("p", {}, `Body: ${nameOf(body)}`) : null,
    resolved ? table(["field", "type", "default"], fields(resolved)) : null,
    table(["status", "meaning", "answer"], answers),
  );
}

async function draw() {
  const main = document.getElementById("reference");
  const answer = await fetch("/openapi.json", { credentials: "same-origin" });
  if (!answer.ok) throw new Error(`openapi.json: ${answer.status}`);
  const api = await answer.json();
  const schemas = (api.components && api.components.schemas) || {};
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((one) => methods[one])) {
      const tag = (methods[method].tags || ["other"])[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(operation(method, path, methods[method], schemas));
    }
  }
  main.replaceChildren(...[...groups].flatMap(([tag, entries]) => [el("h2", {}, tag), ...entries]), el("h2", {}, "Schemas"));
  for (const [name, schema] of Object.entries(schemas)) {
    main.append(el("details", { id: `schema-${name}` }, el("summary", {}, el("code", {}, name)), el("p", {}, schema.description || ""), table(["field", "type", "default"], fields(schema)) || ""));
  }
}

draw().catch((error) => document.getElementById("reference").replaceChildren(el("p", { class: "problem" }, String(error))));
