//! JSON patches as a Kubernetes API server applies them, which is more lenient than RFC 6902 in places: `replace` and `copy`
//! don't mind a missing field of an object, an index may count from the end, and an absent value is null.

use serde_json::{Map, Value};

/// The operations of a patch, one by one.
#[derive(Clone, Debug)]
pub(crate) struct Operations(Vec<Map<String, Value>>);

impl Operations {
    /// Reads a patch; nothing is said here about whether its operations make sense.
    pub(crate) fn read(body: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(body).map_err(|why| why.to_string())?;
        let list = match value {
            Value::Null => Vec::new(),
            Value::Array(list) => list,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                return Err("a patch is a list of operations".to_owned());
            }
        };
        let operations = list.into_iter().map(|operation| match operation {
            Value::Object(map)
                if ["op", "path", "from"].iter().all(|key| map.get(*key).is_none_or(Value::is_string)) =>
            {
                Ok(map)
            }
            Value::Null => Ok(Map::new()),
            Value::Object(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err("an operation is an object with texts".to_owned())
            }
        });
        operations.collect::<Result<_, _>>().map(Self)
    }

    /// Applies one operation after the other; none where one of them can't be.
    pub(crate) fn apply(&self, object: &mut Value) -> Option<()> {
        self.0.iter().try_for_each(|operation| apply(operation, object))
    }
}

fn apply(operation: &Map<String, Value>, object: &mut Value) -> Option<()> {
    let text = |key: &str| operation.get(key).and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    let path = text("path");
    match text("op")? {
        "add" => {
            let (place, key) = find(object, path?)?;
            add(place, &key, value())
        }
        "remove" => {
            let (place, key) = find(object, path?)?;
            remove(place, &key).map(|_| ())
        }
        "replace" if path == Some("") => {
            *object = value();
            (object.is_object() || object.is_array()).then_some(())
        }
        "replace" => {
            let (place, key) = find(object, path?)?;
            get(place, &key)?;
            set(place, &key, value())
        }
        "move" => {
            let (place, key) = find(object, text("from")?)?;
            let moved = remove(place, &key)?;
            let (place, key) = find(object, path?)?;
            add(place, &key, moved)
        }
        "copy" => {
            let (place, key) = find(object, text("from")?)?;
            let copied = get(place, &key)?.clone();
            let (place, key) = find(object, path?)?;
            add(place, &key, copied)
        }
        "test" if path == Some("") => (*object == value()).then_some(()),
        "test" => {
            let (place, key) = find(object, path?)?;
            let found = get(place, &key)?.clone();
            (found == value()).then_some(())
        }
        _ => None,
    }
}

/// The object or list that holds the last part of a path, and that part.
fn find<'a>(object: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let mut parts: Vec<String> = path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    if parts.len() < 2 {
        return None;
    }
    let key = parts.pop()?;
    let mut place = object;
    for part in parts.iter().skip(1) {
        place = match place {
            Value::Object(map) => map.get_mut(part)?,
            Value::Array(list) => {
                let index = index(list.len(), part)?;
                list.get_mut(index)?
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    (place.is_object() || place.is_array()).then_some((place, key))
}

/// An index, which may count from the end.
fn index(length: usize, text: &str) -> Option<usize> {
    let index: i64 = text.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { index + length } else { index };
    usize::try_from(index).ok()
}

/// What is there; none where the place can't be, and null where an object has no such field.
fn get<'a>(place: &'a Value, key: &str) -> Option<&'a Value> {
    match place {
        Value::Object(map) => Some(map.get(key).unwrap_or(&Value::Null)),
        Value::Array(list) => list.get(index(list.len(), key)?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn set(place: &mut Value, key: &str, value: Value) -> Option<()> {
    match place {
        Value::Object(map) => {
            map.insert(key.to_owned(), value);
        }
        Value::Array(list) => {
            let index = index(list.len(), key)?;
            *list.get_mut(index)? = value;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}

fn add(place: &mut Value, key: &str, value: Value) -> Option<()> {
    match place {
        Value::Object(map) => {
            map.insert(key.to_owned(), value);
        }
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            let index = index(list.len() + 1, key).filter(|index| *index <= list.len())?;
            list.insert(index, value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}

fn remove(place: &mut Value, key: &str) -> Option<Value> {
    match place {
        Value::Object(map) => map.remove(key),
        Value::Array(list) => {
            let index = index(list.len(), key).filter(|index| *index < list.len())?;
            Some(list.remove(index))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!([{"op": "add", "path": "/l/-", "value": 3}]), Some(json!({"a": 1, "l": [1, 2, 3]})))]
    #[case(json!([{"op": "add", "path": "/l/-1", "value": 3}]), Some(json!({"a": 1, "l": [1, 2, 3]})))]
    #[case(json!([{"op": "remove", "path": "/l/0"}]), Some(json!({"a": 1, "l": [2]})))]
    #[case(json!([{"op": "remove", "path": "/b"}]), None)]
    #[case(json!([{"op": "replace", "path": "/b", "value": 1}]), Some(json!({"a": 1, "b": 1, "l": [1, 2]})))]
    #[case(json!([{"op": "copy", "from": "/b", "path": "/c"}]), Some(json!({"a": 1, "c": null, "l": [1, 2]})))]
    #[case(json!([{"op": "test", "path": "/a", "value": 2}]), None)]
    #[case(json!([{"op": "jump", "path": "/a"}]), None)]
    fn an_operation_does_what_the_real_server_does(#[case] patch: Value, #[case] expected: Option<Value>) {
        let operations = Operations::read(patch.to_string().as_bytes()).unwrap();
        let mut object = json!({"a": 1, "l": [1, 2]});
        let applied = operations.apply(&mut object);
        assert_eq!(applied.map(|()| object), expected);
    }
}
