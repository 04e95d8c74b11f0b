//! Reading the bodies that kubectl's typed commands send (`create configmap`, the evictions of `drain`): Kubernetes' protobuf,
//! turned into the JSON that everything else works on. Answers are JSON always; every client accepts that.

mod wire;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::wire::{Broken, Fields, Held};

/// The media type.
pub(super) const MEDIA: &str = "application/vnd.kubernetes.protobuf";
/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Why a body can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// The kind is known in JSON only.
    Kind,
    /// The bytes make no sense.
    Bytes,
}

impl From<Broken> for Unreadable {
    fn from(_: Broken) -> Self {
        Self::Bytes
    }
}

/// What a field holds, once read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Type {
    Text,
    Number,
    Flag,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    NumberOrText,
    Raw,
    Message(&'static str),
    List(Box<Type>),
    Map(Box<Type>),
}

#[derive(Clone, Debug)]
struct Field {
    /// None where the field's own fields stand in its place.
    name: Option<&'static str>,
    of: Type,
    kept: bool,
}

type Message = BTreeMap<u64, Field>;

#[derive(Debug, Default)]
struct Messages {
    kinds: BTreeMap<(&'static str, &'static str), &'static str>,
    messages: BTreeMap<&'static str, Message>,
}

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| read(include_str!("fields.txt")));

/// Reads the table; a line that is not understood is left out, and a test sees to it that there is none.
fn read(table: &'static str) -> Messages {
    let mut messages = Messages::default();
    let mut current = None;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("message ") {
            current = Some(messages.messages.entry(name).or_default());
        } else if let Some(kind) = line.strip_prefix("kind ") {
            if let [version, kind, message] = kind.split(' ').collect::<Vec<_>>().as_slice() {
                messages.kinds.insert((version, kind), message);
            }
        } else if let (Some(message), Some((number, field))) = (&mut current, field(line.trim())) {
            message.insert(number, field);
        }
    }
    messages
}

fn field(line: &'static str) -> Option<(u64, Field)> {
    let mut words = line.split(' ');
    let number = words.next()?.parse().ok()?;
    let name = words.next().filter(|name| *name != "-");
    let of = type_of(words.next()?);
    Some((number, Field { name, of, kept: words.next() == Some("kept") }))
}

fn type_of(text: &'static str) -> Type {
    if let Some(item) = text.strip_prefix("[]") {
        return Type::List(Box::new(type_of(item)));
    }
    if let Some(value) = text.strip_prefix("{}") {
        return Type::Map(Box::new(type_of(value)));
    }
    match text {
        "text" => Type::Text,
        "number" => Type::Number,
        "flag" => Type::Flag,
        "bytes" => Type::Bytes,
        "time" => Type::Time,
        "micro-time" => Type::MicroTime,
        "quantity" => Type::Quantity,
        "number-or-text" => Type::NumberOrText,
        "raw" => Type::Raw,
        message => Type::Message(message),
    }
}

/// Reads a body.
pub(super) fn decode(body: &[u8]) -> Result<Value, Unreadable> {
    let envelope = body.strip_prefix(MAGIC).ok_or(Unreadable::Bytes)?;
    let (mut kind, mut version, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Fields::of(envelope) {
        match field? {
            (1, Held::Bytes(about)) => {
                for field in Fields::of(about) {
                    match field? {
                        (1, Held::Bytes(text)) => version = utf8(text)?,
                        (2, Held::Bytes(text)) => kind = utf8(text)?,
                        (_, Held::Number(_) | Held::Bytes(_) | Held::Fixed) => {}
                    }
                }
            }
            (2, Held::Bytes(inner)) => raw = inner,
            (_, Held::Number(_) | Held::Bytes(_) | Held::Fixed) => {}
        }
    }
    // Options are sent in the version of whatever they are about.
    let place = if kind == "DeleteOptions" { "v1" } else { version.as_str() };
    let message = MESSAGES.kinds.get(&(place, kind.as_str())).ok_or(Unreadable::Kind)?;
    let mut object = Map::new();
    fill(&mut object, message, raw)?;
    object.insert("apiVersion".to_owned(), json!(version));
    object.insert("kind".to_owned(), json!(kind));
    Ok(Value::Object(object))
}

/// Adds a message's fields to an object.
fn fill(object: &mut Map<String, Value>, message: &str, bytes: &[u8]) -> Result<(), Unreadable> {
    let known = MESSAGES.messages.get(message).ok_or(Unreadable::Kind)?;
    for field in Fields::of(bytes) {
        let (number, held) = field?;
        // A newer client may know more.
        let Some(field) = known.get(&number) else { continue };
        match (field.name, &field.of) {
            (None, Type::Message(inner)) => fill(object, inner, bytes_of(held)?)?,
            (None, _) => {}
            (Some(name), Type::List(item)) => {
                if let Value::Array(list) = object.entry(name).or_insert_with(|| json!([])) {
                    list.push(value(item, held)?);
                }
            }
            (Some(name), Type::Map(of)) => {
                let (key, value) = entry(of, bytes_of(held)?)?;
                if let Value::Object(map) = object.entry(name).or_insert_with(|| json!({})) {
                    map.insert(key, value);
                }
            }
            (Some(name), of) => {
                let value = value(of, held)?;
                if field.kept || !is_empty(&value) {
                    object.insert(name.to_owned(), value);
                }
            }
        }
    }
    Ok(())
}

/// Fields without a pointer are always sent, and say nothing while they are empty.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn entry(of: &Type, bytes: &[u8]) -> Result<(String, Value), Unreadable> {
    let (mut key, mut held) = (String::new(), Held::Bytes(&[]));
    for field in Fields::of(bytes) {
        match field? {
            (1, Held::Bytes(text)) => key = utf8(text)?,
            (2, found) => held = found,
            (_, Held::Number(_) | Held::Bytes(_) | Held::Fixed) => {}
        }
    }
    Ok((key, value(of, held)?))
}

fn value(of: &Type, held: Held<'_>) -> Result<Value, Unreadable> {
    Ok(match of {
        Type::Text => json!(utf8(bytes_of(held)?)?),
        Type::Number => json!(number_of(held)?),
        Type::Flag => json!(number_of(held)? != 0),
        Type::Bytes => json!(STANDARD.encode(bytes_of(held)?)),
        Type::Time => time(bytes_of(held)?, 0)?,
        Type::MicroTime => time(bytes_of(held)?, 6)?,
        Type::Quantity => {
            let mut text = String::new();
            for field in Fields::of(bytes_of(held)?) {
                if let (1, Held::Bytes(found)) = field? {
                    text = utf8(found)?;
                }
            }
            json!(text)
        }
        Type::NumberOrText => number_or_text(bytes_of(held)?)?,
        Type::Raw => {
            let mut raw = Value::Null;
            for field in Fields::of(bytes_of(held)?) {
                if let (1, Held::Bytes(found)) = field? {
                    raw = serde_json::from_slice(found).map_err(|_| Unreadable::Bytes)?;
                }
            }
            raw
        }
        Type::Message(message) => {
            let mut object = Map::new();
            fill(&mut object, message, bytes_of(held)?)?;
            Value::Object(object)
        }
        // Neither has lists of lists.
        Type::List(_) | Type::Map(_) => return Err(Unreadable::Kind),
    })
}

fn time(bytes: &[u8], digits: usize) -> Result<Value, Unreadable> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields::of(bytes) {
        match field? {
            (1, held) => seconds = number_of(held)?,
            (2, held) => nanos = number_of(held)?,
            (_, Held::Number(_) | Held::Bytes(_) | Held::Fixed) => {}
        }
    }
    if (seconds, nanos) == (0, 0) {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(nanos).map_err(|_| Unreadable::Bytes)?;
    let at = Timestamp::new(seconds, nanos).map_err(|_| Unreadable::Bytes)?;
    Ok(json!(format!("{at:.digits$}")))
}

fn number_or_text(bytes: &[u8]) -> Result<Value, Unreadable> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in Fields::of(bytes) {
        match field? {
            (1, held) => is_text = number_of(held)? == 1,
            (2, held) => number = number_of(held)?,
            (3, Held::Bytes(found)) => text = utf8(found)?,
            (_, Held::Number(_) | Held::Bytes(_) | Held::Fixed) => {}
        }
    }
    Ok(if is_text { json!(text) } else { json!(number) })
}

fn utf8(bytes: &[u8]) -> Result<String, Unreadable> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Unreadable::Bytes)
}

fn bytes_of(held: Held<'_>) -> Result<&[u8], Unreadable> {
    match held {
        Held::Bytes(bytes) => Ok(bytes),
        Held::Number(_) | Held::Fixed => Err(Unreadable::Bytes),
    }
}

fn number_of(held: Held<'_>) -> Result<i64, Unreadable> {
    match held {
        // Negative numbers travel as their two's complement.
        Held::Number(number) => Ok(number.cast_signed()),
        Held::Bytes(_) | Held::Fixed => Err(Unreadable::Bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood_and_every_message_is_there() {
        let lines = include_str!("fields.txt").lines().filter(|line| line.starts_with("  "));
        let fields: usize = MESSAGES.messages.values().map(BTreeMap::len).sum();
        assert_eq!(lines.count(), fields);
        let mut named: Vec<&str> = MESSAGES.kinds.values().copied().collect();
        for field in MESSAGES.messages.values().flat_map(BTreeMap::values) {
            match &field.of {
                Type::Message(name) => named.push(name),
                Type::List(inner) | Type::Map(inner) => {
                    if let Type::Message(name) = **inner {
                        named.push(name);
                    }
                }
                Type::Text
                | Type::Number
                | Type::Flag
                | Type::Bytes
                | Type::Time
                | Type::MicroTime
                | Type::Quantity
                | Type::NumberOrText
                | Type::Raw => {}
            }
        }
        for name in named {
            assert!(MESSAGES.messages.contains_key(name), "{name}");
        }
    }

    /// A field that holds bytes.
    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        field.extend_from_slice(content);
        field
    }

    fn number(number: u8, value: u8) -> Vec<u8> {
        vec![number << 3, value]
    }

    fn body(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let about = [bytes(1, version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &about), bytes(2, raw)].concat()
    }

    #[test]
    fn a_budget_is_read_with_what_is_set_and_without_what_is_empty() {
        let meta = [bytes(1, b"pd"), bytes(2, b""), bytes(8, b"")].concat();
        let labels = bytes(1, &[bytes(1, b"app"), bytes(2, b"pd")].concat());
        let limit = [number(1, 0), number(2, 0), bytes(3, b"")].concat();
        let spec = [bytes(2, &labels), bytes(3, &limit)].concat();
        let raw = [bytes(1, &meta), bytes(2, &spec), bytes(3, &number(3, 0))].concat();
        assert_eq!(
            decode(&body("policy/v1", "PodDisruptionBudget", &raw)).unwrap(),
            json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "pd"},
                "spec": {"selector": {"matchLabels": {"app": "pd"}}, "maxUnavailable": 0},
                "status": {"disruptionsAllowed": 0},
            })
        );
    }

    #[test]
    fn bytes_become_base64_and_times_text() {
        let data = bytes(2, &[bytes(1, b"a"), bytes(2, b"1")].concat());
        let meta = [bytes(1, b"s"), bytes(8, &number(1, 60))].concat();
        let secret = decode(&body("v1", "Secret", &[bytes(1, &meta), data].concat())).unwrap();
        assert_eq!(secret["data"], json!({"a": "MQ=="}));
        assert_eq!(secret["metadata"]["creationTimestamp"], "1970-01-01T00:01:00Z");
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        assert_eq!(decode(b"{}"), Err(Unreadable::Bytes));
        assert_eq!(decode(&body("example.org/v1", "Widget", b"")), Err(Unreadable::Kind));
        assert_eq!(decode(&body("v1", "Secret", &[0x0a, 0x7f])), Err(Unreadable::Bytes));
    }
}
