//! The columns that a CustomResourceDefinition asks for.

use serde_json::{Value, json};

use super::super::object;
use super::path::Path;
use super::{NAME, Seen, age};

#[derive(Clone, Debug)]
struct Column {
    name: String,
    kind: String,
    format: String,
    description: String,
    priority: i64,
    /// None where the path says more than is understood here; such a cell stays empty.
    path: Option<Path>,
}

/// A custom resource's columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns(Vec<Column>);

impl Columns {
    /// From `additionalPrinterColumns`; without them, the age.
    pub(crate) fn read(declared: Option<&Value>) -> Self {
        let declared = declared.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if declared.is_empty() {
            let age = json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
            return Self(vec![column(&age)]);
        }
        Self(declared.iter().map(column).collect())
    }

    pub(super) fn definitions(&self) -> Value {
        let mut definitions = super::definitions(&[NAME]);
        let own = self.0.iter().map(|column| {
            json!({
                "name": column.name,
                "type": column.kind,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            })
        });
        if let Some(list) = definitions.as_array_mut() {
            list.extend(own);
        }
        definitions
    }

    pub(super) fn cells(&self, seen: Seen<'_>) -> Vec<Value> {
        let mut cells = vec![json!(seen.name())];
        cells.extend(self.0.iter().map(|column| {
            let found = column.path.as_ref().and_then(|path| path.first(seen.object));
            found.map_or(Value::Null, |value| cell(&column.kind, value, seen))
        }));
        cells
    }
}

fn column(declared: &Value) -> Column {
    let text = |key: &str| object::text(declared, &[key]).to_owned();
    let path = text("jsonPath");
    let description = text("description");
    Column {
        name: text("name"),
        kind: text("type"),
        format: text("format"),
        description: if description.is_empty() {
            format!("Custom resource definition column (in JSONPath format): {path}")
        } else {
            description
        },
        priority: object::integer(declared, &["priority"]).unwrap_or(0),
        path: Path::parse(&path),
    }
}

/// A value as its column's type shows it; one of another type is not shown.
fn cell(kind: &str, value: &Value, seen: Seen<'_>) -> Value {
    match kind {
        "string" => match value {
            Value::String(text) => json!(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                json!(value.to_string())
            }
        },
        #[expect(clippy::cast_possible_truncation, reason = "a whole number is asked for")]
        "integer" => {
            value.as_i64().or(value.as_f64().map(|float| float as i64)).map_or(Value::Null, |whole| json!(whole))
        }
        "number" => value.as_f64().map_or(Value::Null, |float| json!(float)),
        "boolean" => value.as_bool().map_or(Value::Null, |flag| json!(flag)),
        "date" => value.as_str().map_or(Value::Null, |at| json!(age::since(at, seen.now))),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_shows_its_values_and_no_others() {
        let column = |name: &str, kind: &str| json!({"name": name, "type": kind, "jsonPath": format!(".{name}")});
        let declared = json!([
            column("text", "string"),
            column("list", "string"),
            column("count", "integer"),
            column("half", "number"),
            column("flag", "boolean"),
            column("when", "date"),
            column("text", "integer"),
            column("absent", "string"),
        ]);
        let object = json!({
            "metadata": {"name": "a"}, "text": "x", "list": [1], "count": 3, "half": 0.5, "flag": true,
            "when": "2025-12-31T23:59:00Z",
        });
        let cells = Columns::read(Some(&declared)).cells(Seen { object: &object, now: crate::clock::EPOCH });
        assert_eq!(json!(cells), json!(["a", "x", "[1]", 3, 0.5, true, "60s", null, null]));
    }

    #[test]
    fn a_definition_without_columns_shows_the_age() {
        let columns = Columns::read(None);
        assert_eq!(columns.definitions()[1]["name"], "Age");
        assert_eq!(columns.definitions()[1]["type"], "date");
    }
}
