// The API from /openapi.json, without a page that loads scripts from elsewhere.
import { element, get } from "./api.js";

const api = await get("openapi.json");
document.getElementById("about").textContent = api.info.description;

function named(schema) {
  return schema?.$ref ? api.components.schemas[schema.$ref.split("/").at(-1)] : schema;
}

function kind(schema) {
  if (schema.anyOf) return schema.anyOf.map(kind).filter((word) => word !== "null").join(" or ");
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  return schema.type === "array" ? `list of ${kind(schema.items)}` : schema.format ?? schema.type ?? "anything";
}

function fields(title, schema) {
  const rows = Object.entries(named(schema)?.properties ?? {}).flatMap(([name, field]) => [
    element("dt", {}, element("code", {}, name)),
    element("dd", {}, [kind(field), field.description].filter(Boolean).join(": ")),
  ]);
  return rows.length ? [element("p", { class: "quiet" }, title), element("dl", {}, ...rows)] : [];
}

for (const [path, verbs] of Object.entries(api.paths)) {
  for (const [verb, about] of Object.entries(verbs)) {
    const json = about.requestBody?.content?.["application/json"];
    const form = about.requestBody?.content?.["multipart/form-data"];
    const answer = about.responses["200"]?.content?.["application/json"]?.schema;
    const example = json?.example && `curl -X POST ${location.origin}${path} -H 'Content-Type: application/json' -d '${JSON.stringify(json.example)}'`;
    document.getElementById("api").append(element("article", { class: "panel" },
      element("h2", {}, element("b", {}, verb.toUpperCase()), element("code", {}, path)),
      element("p", { class: "quiet" }, about.description ?? ""),
      ...fields("JSON body", json?.schema),
      ...fields("or a form", form?.schema),
      ...fields("Answer", answer),
      ...(example ? [element("pre", {}, element("code", {}, example))] : [])));
  }
}
