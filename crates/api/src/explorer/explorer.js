// The page of the API, made from the document beside it. What the document or the daemon says is
// only ever set as text.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];
const at = (id) => document.getElementById(id);

function make(kind, attributes, ...children) {
  const node = document.createElement(kind);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const typeName = (reference) => reference.split("/").pop();

// What may stand there, as text and links to types.
function words(schema) {
  if (schema === true || schema === undefined) return ["anything"];
  if (schema.$ref) {
    const name = typeName(schema.$ref);
    return [make("a", { href: "#type-" + name }, name)];
  }
  if ("const" in schema) return [make("code", {}, JSON.stringify(schema.const))];
  if (schema.enum) return [schema.enum.map((it) => JSON.stringify(it)).join(", ")];
  const choices = schema.anyOf || schema.oneOf;
  if (choices) return choices.flatMap((it, i) => (i ? [", or "] : []).concat(words(it)));
  if (Array.isArray(schema.type)) return [schema.type.join(" or ")];
  if (schema.type === "array") {
    if (schema.prefixItems) return ["pair"];
    return ["list of ", ...words(schema.items)];
  }
  if (schema.type === "object") {
    if (schema.additionalProperties) return ["by name: ", ...words(schema.additionalProperties)];
    return ["object of " + Object.keys(schema.properties || {}).join(", ")];
  }
  return [schema.type || "anything"];
}

function table(head, rows) {
  const row = (kind, cells) => make("tr", {}, ...cells.map((cell) => make(kind, {}, ...[cell].flat())));
  return make("table", {}, make("thead", {}, row("th", head)), make("tbody", {}, ...rows.map((r) => row("td", r))));
}

function members(schema) {
  const required = schema.required || [];
  const rows = Object.entries(schema.properties || {}).map(([name, of]) => [
    make("code", {}, name), required.includes(name) ? "always" : "", words(of), of.description || "",
  ]);
  return rows.length ? table(["Member", "", "What may stand there", "Meaning"], rows) : make("p", {}, ...words({ ...schema, description: undefined }));
}

function quoted(text) {
  return "'" + text.replaceAll("'", "'\\''") + "'";
}

// A form that asks the daemon, and the same as a command.
function trial(method, path, operation) {
  const fields = new Map();
  const form = make("form", {});
  for (const parameter of operation.parameters) {
    const input = parameter.schema.type === "boolean"
      ? make("input", { type: "checkbox" })
      : make("input", { type: "text", placeholder: parameter.in === "path" ? parameter.name : "" });
    fields.set(parameter, input);
    form.append(make("p", {}, make("label", {}, parameter.name + " ", input), parameter.description || ""));
  }
  const body = operation.requestBody ? make("textarea", { "aria-label": "Body" }) : null;
  if (body) form.append(make("p", {}, "Body: ", ...words(operation.requestBody.content["application/json"].schema)), body);
  const command = make("code", {});
  const answer = make("pre", { hidden: "", tabindex: "0" });
  const read = () => {
    let url = path;
    const query = [];
    const headers = {};
    for (const [parameter, input] of fields) {
      const value = input.type === "checkbox" ? (input.checked ? "true" : "") : input.value;
      if (parameter.in === "path") url = url.replace("{" + parameter.name + "}", encodeURIComponent(value));
      else if (value && parameter.in === "query") query.push(parameter.name + "=" + encodeURIComponent(value));
      else if (value) headers[parameter.name] = value;
    }
    return { url: url + (query.length ? "?" + query.join("&") : ""), headers };
  };
  const show = () => {
    const input = body ? "echo " + quoted(body.value) + " | " : "";
    command.textContent = input + "causeway api " + method.toUpperCase() + " " + quoted(read().url) + (body ? " -" : "");
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { url, headers } = read();
    const token = at("token").value;
    if (token) headers.Authorization = "Bearer " + token;
    if (body) headers["Content-Type"] = "application/json";
    answer.hidden = false;
    answer.textContent = "...";
    try {
      const response = await fetch(url, { method: method.toUpperCase(), headers, body: body ? body.value : undefined });
      answer.textContent = response.status + " " + response.statusText + "\n" + (await response.text());
    } catch (error) {
      answer.textContent = "The daemon does not answer: " + error;
    }
  });
  show();
  form.append(make("p", {}, make("button", { type: "submit" }, "Ask the daemon"), " ", command), answer);
  return form;
}

function operationNode(method, path, operation) {
  const answers = Object.entries(operation.responses).map(([status, it]) => {
    const content = Object.entries(it.content || {})[0];
    return [status, it.description, content ? words(content[1].schema) : ""];
  });
  const inside = make("div", {}, table(["Status", "What it says", "Document"], answers));
  const node = make("details", { id: operation.operationId },
    make("summary", {}, make("span", { class: "method" }, method.toUpperCase()),
      make("span", { class: "path" }, path), make("span", { class: "what" }, operation.summary)), inside);
  node.dataset.text = (method + " " + path + " " + operation.summary).toLowerCase();
  // Only made when somebody opens it.
  node.addEventListener("toggle", () => inside.prepend(trial(method, path, operation)), { once: true });
  return node;
}

function show(api) {
  at("version").textContent = api.info.version;
  at("about").textContent = api.info.description;
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((it) => methods[it])) {
      const operation = methods[method];
      const group = operation.tags[0];
      if (!groups.has(group)) groups.set(group, make("section", {}, make("h2", {}, group)));
      groups.get(group).append(operationNode(method, path, operation));
    }
  }
  at("operations").replaceChildren(...groups.values());
  for (const [name, schema] of Object.entries(api.components.schemas)) {
    if (name === "Code") continue;
    at("types").append(make("details", { id: "type-" + name },
      make("summary", {}, name + " ", make("span", { class: "what" }, schema.description || "")), members(schema)));
  }
  for (const code of api.components.schemas.Code.oneOf) {
    at("codes").append(make("dt", { id: code.const }, code.const + ": " + code.title), make("dd", {}, code.description));
  }
  at("find").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const node of document.querySelectorAll("main details")) node.hidden = !node.dataset.text.includes(wanted);
  });
  follow();
}

// Opens what the address names.
function follow() {
  const named = location.hash && at(decodeURIComponent(location.hash.slice(1)));
  if (!named) return;
  if (named.tagName === "DETAILS") named.open = true;
  named.scrollIntoView();
}

window.addEventListener("hashchange", follow);
fetch("openapi.json").then(
  async (response) => {
    const api = await response.json();
    if (!response.ok) throw new Error(api.detail + "; " + api.hint);
    show(api);
  },
).catch((error) => { at("wait").textContent = "The document cannot be read: " + error.message; });
