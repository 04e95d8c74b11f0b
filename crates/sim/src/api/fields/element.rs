//! One step of a field's path, written as `managedFields` has it: `f:name` for a field, `k:{…}` for the item of a list with
//! these keys, `v:…` for the item of a set, `i:0` for a place in a list.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::super::types::{Items, List};

pub(super) fn field(name: &str) -> String {
    format!("f:{name}")
}

/// The step to an item of a list that is a set or has keys.
pub(super) fn item(list: &List, value: &Value) -> Result<String, String> {
    match &list.items {
        Items::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        Items::Set => match value {
            Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(format!("v:{}", json(value))),
            Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
        },
        Items::Keyed(keys) => keyed(list, keys, value),
    }
}

fn keyed(list: &List, keys: &[String], value: &Value) -> Result<String, String> {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err("associative list with keys may not have non-map elements".to_owned());
        }
    };
    let record = list.element.get().map.as_ref();
    let default = |key: &String| record.and_then(|record| record.fields.get(key)?.default.as_ref());
    // A map of its own sorts them by name.
    let found: Map<String, Value> =
        keys.iter().filter_map(|key| Some((key.clone(), fields.get(key).or_else(|| default(key))?.clone()))).collect();
    if found.is_empty() {
        let names: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
             for any key fields)",
            names.join(" ")
        ));
    }
    Ok(format!("k:{}", json(&Value::Object(found))))
}

/// As the server writes it: with the characters escaped that mean something in HTML.
fn json(value: &Value) -> String {
    let text = value.to_string();
    if text.contains(['<', '>', '&']) {
        text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
    } else {
        text
    }
}

/// The step in the one way of writing it; none where it is none.
pub(super) fn parse(text: &str) -> Option<String> {
    let content = text.get(2..)?;
    let value = || serde_json::from_str::<Value>(content).ok();
    match text.get(..2)? {
        "f:" => Some(text.to_owned()),
        "i:" => content.parse::<i64>().ok().map(|place| format!("i:{place}")),
        "v:" => value().map(|value| format!("v:{}", json(&value))),
        "k:" => value().filter(Value::is_object).map(|value| format!("k:{}", json(&value))),
        _ => None,
    }
}

/// The step as people read it.
pub(super) fn show(element: &str) -> String {
    let content = element.get(2..).unwrap_or("");
    match element.get(..2) {
        Some("f:") => format!(".{content}"),
        Some("i:") => format!("[{content}]"),
        Some("v:") => format!("[={content}]"),
        Some("k:") => {
            let keys = keys(element);
            let pairs: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", pairs.join(","))
        }
        Some(_) | None => element.to_owned(),
    }
}

fn keys(element: &str) -> Map<String, Value> {
    serde_json::from_str(element.get(2..).unwrap_or("")).unwrap_or_default()
}

/// The order in which people are told about them.
pub(super) fn order(one: &str, other: &str) -> Ordering {
    let rank = |element: &str| match element.get(..2) {
        Some("f:") => 0,
        Some("k:") => 1,
        Some("v:") => 2,
        Some(_) | None => 3,
    };
    rank(one).cmp(&rank(other)).then_with(|| {
        if rank(one) == 1 {
            let (one, other) = (keys(one), keys(other));
            let pairs = one
                .iter()
                .zip(&other)
                .map(|((one, value), (other, against))| one.cmp(other).then_with(|| by_value(value, against)));
            pairs.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
        } else {
            one.cmp(other)
        }
    })
}

fn by_value(one: &Value, other: &Value) -> Ordering {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        _ => one.to_string().cmp(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::types::Type;

    fn list(items: Items) -> List {
        List { element: Type::deduced(), items }
    }

    #[test]
    fn an_item_is_named_by_its_keys_or_its_value() {
        let keyed = list(Items::Keyed(vec!["port".into(), "name".into()]));
        assert_eq!(
            item(&keyed, &json!({"port": 80, "name": "a<b", "x": 1})).unwrap(),
            r#"k:{"name":"a\u003cb","port":80}"#
        );
        assert_eq!(item(&list(Items::Set), &json!("a")).unwrap(), r#"v:"a""#);
        assert!(item(&keyed, &json!({"x": 1})).unwrap_err().contains(r#"all key fields ["port" "name"]"#));
    }

    #[test]
    fn a_path_is_shown_as_people_read_it() {
        let shown: String = [r#"f:ports"#, r#"k:{"port":80,"name":"x"}"#, r#"v:"a""#, "i:3"].map(show).concat();
        assert_eq!(shown, r#".ports[name="x",port=80][="a"][3]"#);
        assert_eq!(order(r#"k:{"port":80}"#, r#"k:{"port":443}"#), Ordering::Less);
    }

    #[test]
    fn what_is_no_step_is_not_taken_for_one() {
        for text in ["x:a", "f", "k:1", "v:{", "i:x", "fa"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(r#"k:{"b":1, "a":2}"#).unwrap(), r#"k:{"a":2,"b":1}"#);
    }
}
