//! The facts about built-in types by which the embedded API merges, held to what a real API server publishes.
//!
//! A server's OpenAPI documents say of each field which type it has, how lists and maps are merged and which default it
//! has. The embedded API keeps these facts, and nothing else of the documents, in a table (`BUILT_IN_TYPES`): one line per
//! field, so that a new version of Kubernetes shows as a readable difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, anyhow, bail};
use kube::Client;
use serde_json::{Map, Value};
use windlass_sim::api::{BUILT_IN_TYPES, built_in_kinds};

/// One line of the table that the server contradicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The server says this, and the table doesn't.
    Missing(String),
    /// The table says this, and the server doesn't.
    Surplus(String),
}

/// What the table gets wrong about this server; empty when it is right.
pub async fn check(client: &Client) -> Result<Vec<Difference>> {
    Ok(differences(BUILT_IN_TYPES, &regenerate(client).await?))
}

/// The table as this server would have it.
pub async fn regenerate(client: &Client) -> Result<String> {
    let kinds = built_in_kinds();
    let mut schemas = Map::new();
    let groups: BTreeSet<(&str, &str)> =
        kinds.iter().map(|kind| (kind.group.as_str(), kind.version.as_str())).collect();
    for (group, version) in groups {
        let place = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        let request = http::Request::get(format!("/openapi/v3/{place}")).body(Vec::new())?;
        let mut document: Value = client.request(request).await.with_context(|| format!("reading {place}"))?;
        if let Some(Value::Object(found)) = document.pointer_mut("/components/schemas").map(Value::take) {
            schemas.extend(found);
        }
    }
    let kinds: Vec<[&str; 3]> = kinds.iter().map(|kind| [&*kind.group, &*kind.version, &*kind.kind]).collect();
    render(&schemas, &kinds)
}

/// Each line is compared together with the type that it belongs to.
fn differences(table: &str, served: &str) -> Vec<Difference> {
    let (table, served) = (facts(table), facts(served));
    let missing = served.difference(&table).cloned().map(Difference::Missing);
    let surplus = table.difference(&served).cloned().map(Difference::Surplus);
    missing.chain(surplus).collect()
}

fn facts(table: &str) -> BTreeSet<String> {
    let mut owner = "";
    let mut facts = BTreeSet::new();
    for line in table.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(field) = line.strip_prefix("  ") {
            facts.insert(format!("{owner}: {field}"));
        } else {
            owner = line;
            facts.insert(line.to_owned());
        }
    }
    facts
}

const HEADER: &str = "\
# How the values of Kubernetes' built-in types are merged. Generated from a server's OpenAPI documents; see
# e2e/src/conformance/schema.rs, which also compares it with a server.
#
#   kind <apiVersion> <kind> <type>
#   type <name> [atomic]
#     <field> <type> [required] [default=<JSON>] [patch=<strategy>[/<merge key>]]
#
# A type is text, number, boolean, scalar (one of them), deduced (by the value), opaque (never looked into), the name of
# another type, {T} for a map, atomic{T} for one that is replaced as a whole, [T] for a list that is, set[T], or
# keys(a,b)[T] for a list whose items are told apart by fields.
";

fn render(schemas: &Map<String, Value>, kinds: &[[&str; 3]]) -> Result<String> {
    let mut text = HEADER.to_owned();
    let mut wanted = BTreeSet::new();
    for [group, version, kind] in kinds {
        let name = schemas
            .iter()
            .find(|(_, schema)| is_kind(schema, group, version, kind))
            .map(|(name, _)| name)
            .with_context(|| format!("the server doesn't serve {group}/{version} {kind}"))?;
        let api_version = if group.is_empty() { (*version).to_owned() } else { format!("{group}/{version}") };
        writeln!(text, "kind {api_version} {kind} {}", short(name))?;
        wanted.insert(name.clone());
    }
    // Custom resources have it too.
    wanted.insert("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta".to_owned());
    let mut done = BTreeMap::new();
    while let Some(name) = wanted.pop_first() {
        let schema = schemas.get(&name).with_context(|| format!("no schema for {name}"))?;
        let lines = fields(schemas, schema, &mut wanted).with_context(|| name.clone())?;
        let atomic = if map_type(schema) == Some("atomic") { " atomic" } else { "" };
        done.insert(name.clone(), format!("type {}{atomic}\n{lines}", short(&name)));
        wanted.retain(|name| !done.contains_key(name));
    }
    for block in done.values() {
        text.push_str(block);
    }
    Ok(text)
}

fn is_kind(schema: &Value, group: &str, version: &str, kind: &str) -> bool {
    let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
    // Options and the like belong to every group; a kind of its own names one.
    kinds
        .filter(|kinds| kinds.len() == 1)
        .and_then(|kinds| kinds.first())
        .is_some_and(|found| found["group"] == group && found["version"] == version && found["kind"] == kind)
}

/// Names are long and nearly all begin alike.
fn short(name: &str) -> &str {
    name.strip_prefix("io.k8s.").unwrap_or(name)
}

fn fields(schemas: &Map<String, Value>, schema: &Value, wanted: &mut BTreeSet<String>) -> Result<String> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut text = String::new();
    for (name, field) in schema["properties"].as_object().context("a named type without fields")? {
        write!(text, "  {name} {}", type_of(schemas, field, wanted).with_context(|| name.clone())?)?;
        if required.contains(&name.as_str()) {
            text.push_str(" required");
        }
        if let Some(default) = field.get("default") {
            write!(text, " default={default}")?;
        }
        if let Some(strategy) = field.get("x-kubernetes-patch-strategy").and_then(Value::as_str) {
            write!(text, " patch={strategy}")?;
            if let Some(key) = field.get("x-kubernetes-patch-merge-key").and_then(Value::as_str) {
                write!(text, "/{key}")?;
            }
        }
        text.push('\n');
    }
    Ok(text)
}

fn map_type(schema: &Value) -> Option<&str> {
    schema.get("x-kubernetes-map-type").and_then(Value::as_str)
}

fn reference(schema: &Value) -> Option<&str> {
    let only = schema.get("allOf").and_then(Value::as_array).filter(|all| all.len() == 1).and_then(|all| all.first());
    let place = schema.get("$ref").or_else(|| only?.get("$ref"))?.as_str()?;
    place.rsplit('/').next()
}

fn type_of(schemas: &Map<String, Value>, schema: &Value, wanted: &mut BTreeSet<String>) -> Result<String> {
    let atomic = if map_type(schema) == Some("atomic") { "atomic" } else { "" };
    if let Some(name) = reference(schema) {
        return match name {
            // The server's own exceptions.
            "io.k8s.apimachinery.pkg.api.resource.Quantity" => Ok("scalar".to_owned()),
            "io.k8s.apimachinery.pkg.runtime.RawExtension" => Ok("opaque".to_owned()),
            name => {
                let named = schemas.get(name).ok_or_else(|| anyhow!("no schema for {name}"))?;
                if named.get("properties").is_none() {
                    return type_of(schemas, named, wanted);
                }
                if atomic != "" {
                    bail!("a field that makes {name} atomic, for which the table has no words");
                }
                wanted.insert(name.to_owned());
                Ok(short(name).to_owned())
            }
        };
    }
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or("");
    match text("type") {
        "" => Ok("deduced".to_owned()),
        "integer" | "number" => Ok("number".to_owned()),
        "boolean" => Ok("boolean".to_owned()),
        "string" if matches!(text("format"), "" | "byte") => Ok("text".to_owned()),
        "string" => Ok("scalar".to_owned()),
        "array" => {
            let element = type_of(schemas, &schema["items"], wanted)?;
            Ok(format!("{}[{element}]", list_type(schema)?))
        }
        "object" => match schema.get("additionalProperties") {
            Some(element @ Value::Object(_)) => Ok(format!("{atomic}{{{}}}", type_of(schemas, element, wanted)?)),
            _ if schema.get("properties").is_none() => Ok(format!("{atomic}{{deduced}}")),
            _ => bail!("a type with fields that has no name"),
        },
        other => bail!("a type {other:?}"),
    }
}

/// Where a server does not say how to merge a list, it follows the older facts about patches.
fn list_type(schema: &Value) -> Result<String> {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    match (text("x-kubernetes-list-type"), text("x-kubernetes-patch-strategy"), text("x-kubernetes-patch-merge-key")) {
        (Some("atomic"), _, _) | (None, None | Some("retainKeys"), _) => Ok(String::new()),
        (Some("set"), _, _) | (None, Some("merge" | "merge,retainKeys"), None) => Ok("set".to_owned()),
        (None, Some("merge" | "merge,retainKeys"), Some(key)) => Ok(format!("keys({key})")),
        (Some("map"), _, _) => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().context("a list without keys")?;
            let keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
            Ok(format!("keys({})", keys.join(",")))
        }
        other => bail!("a list like {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_becomes_one_line_per_field() -> Result<()> {
        let schemas = json!({
            "io.k8s.api.x.v1.Thing": {
                "type": "object", "required": ["parts"],
                "x-kubernetes-group-version-kind": [{"group": "x", "version": "v1", "kind": "Thing"}],
                "properties": {
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/io.k8s.api.x.v1.Part"},
                        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "side"],
                        "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"},
                    "pick": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.x.v1.Part"}], "default": {}},
                    "when": {"type": "string", "format": "date-time"},
                    "notes": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
                },
            },
            "io.k8s.api.x.v1.Part": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "name": {"type": "string", "default": ""}, "side": {"type": "integer"},
            }},
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"properties": {"name": {"type": "string"}}},
        });
        let text = render(schemas.as_object().context("a map")?, &[["x", "v1", "Thing"]])?;
        let expected = "\
kind x/v1 Thing api.x.v1.Thing
type api.x.v1.Part atomic
  name text default=\"\"
  side number
type api.x.v1.Thing
  notes atomic{text}
  parts keys(name,side)[api.x.v1.Part] required patch=merge/name
  pick api.x.v1.Part default={}
  when scalar
type apimachinery.pkg.apis.meta.v1.ObjectMeta
  name text
";
        assert_eq!(text.strip_prefix(HEADER), Some(expected));
        Ok(())
    }

    #[test]
    fn a_line_that_differs_is_named_with_its_type() {
        let (ours, theirs) = ("type a\n  x text\n  y text\n", "type a\n  x text\n  y number\n");
        assert_eq!(
            differences(ours, theirs),
            [Difference::Missing("type a: y number".into()), Difference::Surplus("type a: y text".into())]
        );
    }
}
