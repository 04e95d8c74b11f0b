//! The types of custom resources, from the schemas in their definitions.

use serde_json::Value;

use super::{Field, Items, PatchRule, Record, Scalar, Type, TypeRef, built_in};

const OBJECT_META: &str = "apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type of a custom resource with this schema (`openAPIV3Schema`).
pub(crate) fn of_schema(schema: &Value) -> TypeRef {
    let mut root = of(schema, false);
    add_envelope(&mut root);
    root.inline()
}

/// What every object has.
fn add_envelope(of: &mut Type) {
    let field = |of: TypeRef| Field { of, required: false, default: None, patch: PatchRule::default() };
    let record = of.map.get_or_insert_default();
    for name in ["apiVersion", "kind"] {
        record.fields.insert(name.to_owned(), field(Type::scalar(Scalar::Text).inline()));
    }
    record.fields.insert("metadata".to_owned(), field(built_in::named(OBJECT_META)));
}

/// `open` where a schema further up lets undeclared fields be.
fn of(schema: &Value, open: bool) -> Type {
    let flag = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or("");
    let open = open || flag("x-kubernetes-preserve-unknown-fields");
    let scalar = |scalar: Scalar| Type::scalar(scalar);
    let mut found = match text("type") {
        "object" => Type { map: Some(record(schema, open)), ..Type::default() },
        "array" => list(schema, open),
        "integer" | "number" => scalar(Scalar::Number),
        "boolean" => scalar(Scalar::Boolean),
        "string" if matches!(text("format"), "" | "byte") => scalar(Scalar::Text),
        "string" => scalar(Scalar::Any),
        // An int-or-string, or anything.
        _ => Type { map: Some(record(schema, open)), scalar: Some(Scalar::Any), list: list(schema, open).list },
    };
    if flag("x-kubernetes-embedded-resource") {
        add_envelope(&mut found);
    }
    found
}

fn record(schema: &Value, open: bool) -> Record {
    let properties = schema.get("properties").and_then(Value::as_object);
    let field = |schema: &Value| Field {
        of: of(schema, open).inline(),
        required: false,
        default: schema.get("default").cloned(),
        patch: PatchRule::default(),
    };
    let fields = properties.into_iter().flatten().map(|(name, schema)| (name.clone(), field(schema))).collect();
    let others = match schema.get("additionalProperties") {
        Some(additional @ Value::Object(_)) => Some(of(additional, open).inline()),
        Some(Value::Bool(true)) => Some(Type::deduced()),
        None if open || properties.is_none_or(serde_json::Map::is_empty) => Some(Type::deduced()),
        Some(_) | None => None,
    };
    let atomic = schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic");
    Record { fields, others, atomic }
}

fn list(schema: &Value, open: bool) -> Type {
    let items = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => Items::Set,
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            Items::Keyed(keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        Some(_) | None => Items::Atomic,
    };
    let element = schema.get("items").map_or_else(Type::opaque, |items| of(items, open).inline());
    Type::list(element, items)
}
