//! The structural schema of a custom resource, compiled once per definition.

mod cel;
mod defaulting;
mod formats;
mod pruning;
mod validation;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex::Regex;
use serde_json::Value;

use super::error::FieldError;
use super::types::{self, TypeRef};
use super::write::Part;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    root: Node,
    /// How objects are merged.
    pub(crate) merging: TypeRef,
    rules: kube_cel::CompiledSchema,
    /// Most schemas have rules only in some places, and many have none: then the evaluator need not walk the object.
    has_rules: bool,
    /// Rules that can't be compiled.
    faults: Vec<FieldError>,
}

/// What a list promises about its items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// What keys beside the declared ones may hold.
#[derive(Debug, Default)]
enum Additional {
    #[default]
    Undeclared,
    Any,
    Of(Box<Node>),
}

/// One place of a schema.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the keywords of a schema are independent of each other")]
struct Node {
    kind: Option<String>,
    format: Option<String>,
    nullable: bool,
    int_or_string: bool,
    preserve_unknown: bool,
    embedded: bool,
    default: Option<Value>,
    properties: BTreeMap<String, Node>,
    additional: Additional,
    items: Option<Box<Node>>,
    required: Vec<String>,
    allowed: Option<Vec<Value>>,
    minimum: Option<f64>,
    exclusive_minimum: bool,
    maximum: Option<f64>,
    exclusive_maximum: bool,
    multiple_of: Option<f64>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    pattern: Option<(String, Option<Regex>)>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    unique_items: bool,
    min_properties: Option<u64>,
    max_properties: Option<u64>,
    list_type: ListType,
    all_of: Vec<Node>,
    any_of: Vec<Node>,
    one_of: Vec<Node>,
    not: Option<Box<Node>>,
    /// The texts of this place's rules, to find the place that a failed rule belongs to.
    rules: Vec<String>,
}

/// Compiled schemas by their text. Thousands of clusters with the same definitions are run in one process, and compiling is
/// by far the costliest step of making one.
static COMPILED: LazyLock<Mutex<BTreeMap<String, Arc<Schema>>>> = LazyLock::new(Mutex::default);

impl Schema {
    /// Compiles an `openAPIV3Schema`, once per process. The fields that every object has are declared by the server, not by
    /// the schema.
    pub(crate) fn compile(schema: &Value) -> Arc<Self> {
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        let made = compiled.entry(schema.to_string()).or_insert_with(|| {
            Arc::new(Self {
                root: node(schema),
                merging: types::of_schema(schema),
                rules: kube_cel::compile_schema(schema),
                has_rules: contains_rules(schema),
                faults: cel::definition_errors(schema),
            })
        });
        Arc::clone(made)
    }

    /// The rules that can't be read, with their places below this one; such a definition is refused.
    pub(crate) fn rule_errors(&self, path: &str) -> Vec<FieldError> {
        self.faults.iter().map(|fault| fault.below(path)).collect()
    }

    /// Fills in the defaults.
    pub(crate) fn default(&self, object: &mut Value) {
        defaulting::apply(&self.root, object);
    }

    /// Removes what the schema doesn't declare, and tells which fields those were.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        pruning::apply(&self.root, object)
    }

    /// What is wrong with the object, after what is wrong with its metadata; `before` is what it replaces.
    pub(crate) fn validate(
        &self,
        metadata: Vec<FieldError>,
        part: Part,
        object: &Value,
        before: Option<&Value>,
    ) -> Vec<FieldError> {
        let mut errors = metadata;
        match (part, self.root.properties.get("status"), object.get("status")) {
            // A status is judged as if it were all there is, which shows in what is said of it.
            (Part::Status, Some(node), Some(status)) => {
                let found = validation::check(node, status, before.and_then(|before| before.get("status")));
                errors.extend(found.iter().map(|error| error.below("status.")));
            }
            (Part::Status, _, _) => {}
            (Part::Main, _, _) => errors.extend(validation::check(&self.root, object, before)),
        }
        if !self.has_rules {
            return errors;
        }
        // The rules may rely on types and required fields.
        if errors.iter().any(FieldError::blocks_rules) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing \
                       errors to complete validation";
            errors.push(FieldError::invalid("<nil>", Value::Null, why));
        } else {
            errors.extend(cel::check(&self.rules, &self.root, object, before));
        }
        errors
    }
}

fn contains_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            map.get("x-kubernetes-validations").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty())
                || map.values().any(contains_rules)
        }
        Value::Array(list) => list.iter().any(contains_rules),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn node(schema: &Value) -> Node {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
    let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
    let float = |key: &str| schema.get(key).and_then(Value::as_f64);
    let count = |key: &str| schema.get(key).and_then(Value::as_u64);
    let nodes = |key: &str| -> Vec<Node> {
        schema.get(key).and_then(Value::as_array).into_iter().flatten().map(node).collect()
    };
    let texts = |key: &str| -> Vec<String> {
        let list = schema.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    Node {
        kind: text("type"),
        format: text("format"),
        nullable: flag("nullable"),
        int_or_string: flag("x-kubernetes-int-or-string"),
        preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        embedded: flag("x-kubernetes-embedded-resource"),
        default: schema.get("default").cloned(),
        properties: properties.into_iter().flatten().map(|(name, child)| (name.clone(), node(child))).collect(),
        additional: match schema.get("additionalProperties") {
            None | Some(Value::Bool(false)) => Additional::Undeclared,
            Some(Value::Object(map)) if !map.is_empty() => Additional::Of(Box::new(node(&Value::Object(map.clone())))),
            Some(_) => Additional::Any,
        },
        items: schema.get("items").map(|items| Box::new(node(items))),
        required: texts("required"),
        allowed: schema.get("enum").and_then(Value::as_array).cloned(),
        minimum: float("minimum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        maximum: float("maximum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        multiple_of: float("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: text("pattern").map(|pattern| {
            let compiled = Regex::new(&pattern).ok();
            (pattern, compiled)
        }),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: flag("uniqueItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        list_type: match text("x-kubernetes-list-type").as_deref() {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(texts("x-kubernetes-list-map-keys")),
            _ => ListType::Atomic,
        },
        all_of: nodes("allOf"),
        any_of: nodes("anyOf"),
        one_of: nodes("oneOf"),
        not: schema.get("not").map(|inner| Box::new(node(inner))),
        rules: schema
            .get("x-kubernetes-validations")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|rule| rule.get("rule")?.as_str().map(str::to_owned))
            .collect(),
    }
}

/// A field's path below another.
fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Arc<Schema> {
        Schema::compile(&json!({
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "required": ["size"],
                    "properties": {
                        "size": {"type": "integer", "minimum": 1, "maximum": 9},
                        "mode": {"type": "string", "enum": ["Fast", "Safe"], "default": "Safe"},
                        "nested": {"type": "object", "default": {}, "properties": {
                            "deep": {"type": "integer", "default": 3},
                        }},
                        "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4},
                        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                        "port": {"x-kubernetes-int-or-string": true},
                        "when": {"type": "string", "format": "date-time"},
                        "maybe": {"type": "string", "nullable": true},
                        "ports": {
                            "type": "array", "maxItems": 3,
                            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                            "items": {"type": "object", "required": ["name"], "properties": {
                                "name": {"type": "string"}, "number": {"type": "integer", "default": 80},
                            }},
                        },
                        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                        "choice": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                            "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                    },
                },
            },
        }))
    }

    fn problems(spec: &Value) -> Vec<String> {
        let object = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a"}, "spec": spec});
        let errors = schema().validate(Vec::new(), Part::Main, &object, None);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn defaults_reach_into_defaults_and_list_items() {
        let mut object = json!({"spec": {"size": 1, "ports": [{"name": "a"}]}});
        schema().default(&mut object);
        assert_eq!(
            object,
            json!({"spec": {"size": 1, "mode": "Safe", "nested": {"deep": 3}, "ports": [{"name": "a", "number": 80}]}})
        );
    }

    #[test]
    fn pruning_removes_what_is_not_declared_and_says_so() {
        let mut object = json!({
            "apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a", "labels": {"l": "v"}},
            "spec": {"size": 1, "typo": 1, "free": {"any": [1]}, "labels": {"x": "y"}, "ports": [{"name": "a", "no": 1}]},
        });
        assert_eq!(schema().prune(&mut object), ["spec.ports[0].no", "spec.typo"]);
        assert_eq!(
            object["spec"],
            json!({"size": 1, "free": {"any": [1]}, "labels": {"x": "y"}, "ports": [{"name": "a"}]})
        );
        assert_eq!(object["metadata"]["labels"]["l"], "v");
    }

    #[test]
    fn a_sound_object_has_no_problems() {
        let spec = json!({
            "size": 3, "mode": "Fast", "name": "abc", "labels": {"a": "b"}, "port": "http", "maybe": null,
            "when": "2026-01-01T00:00:00Z", "ports": [{"name": "a"}, {"name": "b"}], "tags": ["x", "y"],
            "choice": {"a": 1},
        });
        assert_eq!(problems(&spec), [""; 0]);
    }

    #[test]
    fn each_kind_of_violation_has_its_message() {
        let one = |spec: Value| problems(&spec).join("; ");
        assert_eq!(one(json!({})), "spec.size: Required value");
        assert_eq!(
            one(json!({"size": "x"})),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\""
        );
        assert_eq!(
            one(json!({"size": 0})),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"
        );
        assert_eq!(
            one(json!({"size": 10})),
            "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9"
        );
        assert_eq!(
            one(json!({"size": 1, "mode": "Odd"})),
            "spec.mode: Unsupported value: \"Odd\": supported values: \"Fast\", \"Safe\""
        );
        assert_eq!(
            one(json!({"size": 1, "name": "AB"})),
            "spec.name: Invalid value: \"AB\": spec.name in body should match '^[a-z]+$'"
        );
        assert_eq!(
            one(json!({"size": 1, "name": "a"})),
            "spec.name: Invalid value: \"a\": spec.name in body should be at least 2 chars long"
        );
        assert_eq!(one(json!({"size": 1, "name": "abcde"})), "spec.name: Too long: may not be more than 4 bytes");
        assert_eq!(one(json!({"size": 1, "tags": ["x", "x"]})), "spec.tags[1]: Duplicate value: \"x\"");
        assert_eq!(
            one(json!({"size": 1, "ports": [{"name": "a"}, {"name": "a"}]})),
            "spec.ports[1]: Duplicate value: {\"name\":\"a\"}"
        );
        assert_eq!(
            one(json!({"size": 1, "when": "soon"})),
            "spec.when: Invalid value: \"soon\": spec.when in body must be of type date-time: \"soon\""
        );
        assert_eq!(
            one(json!({"size": 1, "choice": {"a": 1, "b": 1}})),
            "spec.choice: Invalid value: {\"a\":1,\"b\":1}: \"spec.choice\" must validate one and only one schema (oneOf). Found 2 valid alternatives"
        );
        assert_eq!(
            one(json!({"size": 1, "ports": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]})),
            "spec.ports: Too many: 4: must have at most 3 items"
        );
    }
}
