// Draws /openapi.json. Text always goes in as text, never as HTML.
"use strict";

const element = (tag, ...children) => {
  const node = document.createElement(tag);
  node.append(...children);
  return node;
};
const code = (text) => element("code", text);

const draw = (api) => {
  const resolve = (schema) => (schema && schema.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema);
  const nameOf = (schema) => (schema && schema.$ref ? schema.$ref.split("/").pop() : "");

  const typeOf = (schema) => {
    const target = resolve(schema) || {};
    if (nameOf(schema)) return nameOf(schema);
    if (target.enum) return target.enum.map((v) => JSON.stringify(v)).join(" | ");
    return [].concat(target.type || "any").join(" | ");
  };

  const fields = (schema) => {
    const target = resolve(schema);
    if (!target || !target.properties) return "";
    const required = target.required || [];
    const table = element("table", element("tr", ...["field", "type", "default", ""].map((h) => element("th", h))));
    for (const [name, field] of Object.entries(target.properties)) {
      if (name === "$schema") continue;
      table.append(element("tr",
        element("td", code(name), required.includes(name) ? " *" : ""),
        element("td", typeOf(field)),
        element("td", field.default === undefined ? "" : code(JSON.stringify(field.default))),
        element("td", field.description || "")));
    }
    return table;
  };

  const curl = (method, path, op) => {
    const lines = [`curl ${method === "get" ? "" : "-X POST "}${location.origin}${path}`];
    if (op.security) lines.push(`-H "Authorization: Bearer $ATOLL_API_KEY"`);
    if (op.requestBody) lines.push(`-H "Content-Type: application/json"`, `-d '{"code": "print(1 + 1)"}'`);
    return lines.join(" \\\n  ");
  };

  const operation = (method, path, op) => {
    const section = element("section",
      element("h2", code(`${method.toUpperCase()} ${path}`)),
      element("p", element("strong", op.summary || ""), op.description ? ` — ${op.description}` : ""),
      element("pre", curl(method, path, op)));
    if (op.requestBody) {
      section.append(element("h3", "Request"), fields(op.requestBody.content["application/json"].schema));
    }
    const answers = element("table");
    const shown = new Map();
    for (const [status, response] of Object.entries(op.responses)) {
      const bodies = Object.entries(response.content || {}).map(([media, m]) => `${media}: ${nameOf(m.schema) || "object"}`);
      answers.append(element("tr", element("td", code(status)), element("td", response.description), element("td", bodies.join(", "))));
      for (const media of Object.values(response.content || {})) {
        if (nameOf(media.schema)) shown.set(nameOf(media.schema), media.schema);
      }
    }
    section.append(element("h3", "Answers"), answers);
    for (const [name, schema] of shown) section.append(element("h4", name), fields(schema));
    return section;
  };

  document.getElementById("about").replaceChildren(
    `${api.info.description} Version ${api.info.version}. `,
    Object.assign(element("a", "openapi.json"), { href: "/openapi.json" }));
  const main = document.getElementById("operations");
  const all = Object.entries(api.paths).flatMap(([path, item]) =>
    ["get", "post", "put", "patch", "delete"].filter((method) => item[method]).map((method) => [method, path, item[method]]));
  const forOperators = ([, , op]) => (op.tags || []).includes("operations");
  all.sort((a, b) => forOperators(a) - forOperators(b));
  for (const [method, path, op] of all) main.append(operation(method, path, op));
};

fetch("/openapi.json")
  .then((response) => response.json())
  .then(draw)
  .catch((error) => document.getElementById("about").append(` It could not be drawn: ${error.message}`));
