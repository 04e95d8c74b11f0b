//! What two servers may differ in, made equal: revisions become their rank, uids, times and made-up names become symbols.
//!
//! - A revision of an object becomes its rank among all revisions of objects in the transcript. A list's revision becomes the
//!   rank of the newest object revision that it covers: other scripts write at the same time.
//! - A uid becomes its place in the order of first appearance.
//! - A time that the script itself wrote stays. The time of creation becomes a symbol of its object, and another one if it
//!   ever changes; the time of deletion becomes its distance from the object's first one, unless it is about now. All other times become one symbol.
//! - A name that the server made up becomes its place in the order of first appearance.
//! - A continue token is opaque.
//! - What a message says of Go's types and source files is cut off; JSON within a message has its keys in order; a cause that
//!   a failure names twice counts once; the entries of `managedFields` are in the order of their managers' names.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::play::Transcript;
use super::step::{Body, Script};

/// Rewrites one transcript.
struct Canon {
    namespace: String,
    revisions: Vec<u64>,
    uids: BTreeMap<String, usize>,
    generated: Vec<String>,
    written_times: BTreeSet<String>,
    created: BTreeMap<String, String>,
    deleted: BTreeMap<String, Timestamp>,
    managed_fields: bool,
}

/// The transcript of this script without anything that may differ between two servers.
pub fn canonical(script: &Script, namespace: &str, transcript: &Transcript, managed_fields: bool) -> Transcript {
    let mut revisions = BTreeSet::new();
    for answer in &transcript.answers {
        collect_revisions(&answer.body, &mut revisions);
    }
    for event in transcript.watches.iter().flat_map(|(_, events)| events) {
        collect_revisions(event, &mut revisions);
    }
    let mut canon = Canon {
        namespace: namespace.to_owned(),
        revisions: revisions.into_iter().collect(),
        uids: BTreeMap::new(),
        generated: transcript.generated.clone(),
        written_times: written_times(script),
        created: BTreeMap::new(),
        deleted: BTreeMap::new(),
        managed_fields,
    };
    let mut result = transcript.clone();
    for answer in &mut result.answers {
        answer.body = canon.value(&answer.body);
        for warning in &mut answer.warnings {
            *warning = canon.text(warning);
        }
    }
    for event in result.watches.iter_mut().flat_map(|(_, events)| events) {
        *event = canon.value(event);
    }
    result.generated.clear();
    result
}

/// The revisions of all objects in a value; lists have revisions too, but those depend on who else writes.
fn collect_revisions(value: &Value, found: &mut BTreeSet<u64>) {
    match value {
        Value::Object(map) => {
            let definition = map.get("kind").is_some_and(|kind| kind == "CustomResourceDefinition");
            if !map.contains_key("items")
                && !definition
                && let Some(revision) = value.pointer("/metadata/resourceVersion").and_then(Value::as_str)
                && !is_bookmark(map)
            {
                found.extend(revision.parse::<u64>().ok());
            }
            for inner in map.values() {
                collect_revisions(inner, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| collect_revisions(inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A bookmark carries nothing but a revision, which is the server's newest.
fn is_bookmark(object: &Map<String, Value>) -> bool {
    object.get("metadata").is_some_and(|meta| meta.get("uid").is_none() && meta.get("name").is_none())
}

fn written_times(script: &Script) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for step in &script.steps {
        match &step.body {
            Body::Json(value) | Body::Saved(_, value) => collect_times(value, &mut found),
            Body::None | Body::Text(_) => {}
        }
    }
    found
}

fn collect_times(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if is_time(text) => {
            found.insert(text.clone());
        }
        Value::Object(map) => map.values().for_each(|inner| collect_times(inner, found)),
        Value::Array(list) => list.iter().for_each(|inner| collect_times(inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.as_bytes()[4] == b'-' && text.ends_with('Z') && text.parse::<Timestamp>().is_ok()
}

impl Canon {
    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(map) => self.object(map),
            Value::Array(list) => Value::Array(list.iter().map(|inner| self.value(inner)).collect()),
            Value::String(text) => Value::String(self.text(text)),
            Value::Number(number) => whole(number),
            Value::Null | Value::Bool(_) => value.clone(),
        }
    }

    fn object(&mut self, map: &Map<String, Value>) -> Value {
        let mut result = Map::new();
        // A deletion that is moved into the past is moved to the present, and the present is no matter of rules.
        let grace = map.get("deletionGracePeriodSeconds").and_then(Value::as_i64);
        let short = grace.is_none_or(|grace| grace < 5);
        let uid = map.get("uid").and_then(Value::as_str).unwrap_or("");
        // The server writes the status of a definition in the background.
        let definition = map.get("kind").is_some_and(|kind| kind == "CustomResourceDefinition");
        let listed = map.get("items").is_some_and(Value::is_array);
        for (key, value) in map {
            let value = match (key.as_str(), value) {
                ("status", Value::Object(_)) if definition => continue,
                ("managedFields", Value::Array(_)) if !self.managed_fields => continue,
                ("managedFields", Value::Array(list)) => self.managers(list),
                ("causes", Value::Array(list)) => {
                    Value::Array(causes(list).iter().map(|cause| self.value(cause)).collect())
                }
                ("metadata", Value::Object(meta)) if definition => self.definition_meta(meta),
                ("metadata", Value::Object(meta)) if listed || is_bookmark(map) => self.list_meta(meta),
                ("resourceVersion", Value::String(text)) => json!(self.revision(text)),
                ("creationTimestamp", Value::String(time)) if !self.written_times.contains(time) => {
                    let first = self.created.entry(uid.to_owned()).or_insert_with(|| time.clone());
                    json!(if first == time { "<time of creation>" } else { "<another time of creation>" })
                }
                ("deletionTimestamp", Value::String(_)) if short => json!("<time of deletion>"),
                ("deletionTimestamp", Value::String(time)) => match time.parse::<Timestamp>() {
                    Ok(at) => {
                        let first = *self.deleted.entry(uid.to_owned()).or_insert(at);
                        json!(format!("<time of deletion {:+}s>", at.as_second() - first.as_second()))
                    }
                    Err(_) => value.clone(),
                },
                (_, value) => self.value(value),
            };
            result.insert(self.text(key), value);
        }
        Value::Object(result)
    }

    /// The server sorts these by time: in one second by name, in two not. Here the name decides.
    fn managers(&mut self, list: &[Value]) -> Value {
        let mut entries: Vec<Value> = list.iter().map(|entry| self.value(entry)).collect();
        let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
        entries.sort_by_key(|entry| ["manager", "operation", "subresource", "apiVersion"].map(|key| text(entry, key)));
        Value::Array(entries)
    }

    fn list_meta(&mut self, meta: &Map<String, Value>) -> Value {
        let mut result = Map::new();
        for (key, value) in meta {
            let value = match (key.as_str(), value) {
                ("resourceVersion", Value::String(text)) => match text.parse::<u64>() {
                    Ok(revision) => {
                        json!(format!("<covers {}>", self.revisions.partition_point(|one| *one <= revision)))
                    }
                    Err(_) => value.clone(),
                },
                ("continue", Value::String(text)) if !text.is_empty() => json!("<continue>"),
                (_, value) => self.value(value),
            };
            result.insert(key.clone(), value);
        }
        Value::Object(result)
    }

    fn revision(&self, text: &str) -> String {
        let rank = text.parse::<u64>().ok().and_then(|revision| self.revisions.binary_search(&revision).ok());
        rank.map_or_else(|| text.to_owned(), |rank| format!("<revision {rank}>"))
    }

    /// An object that the server itself writes to in the background has revisions that mean nothing to a script.
    fn definition_meta(&mut self, meta: &Map<String, Value>) -> Value {
        let mut meta = meta.clone();
        meta.remove("resourceVersion");
        meta.remove("managedFields");
        self.object(&meta)
    }

    fn text(&mut self, text: &str) -> String {
        if is_time(text) {
            return if self.written_times.contains(text) { text.to_owned() } else { "<time>".to_owned() };
        }
        let text = sort_json(&without_go(text));
        let mut text = self.uids_of(&text).replace(&self.namespace, "<ns>");
        for (number, name) in self.generated.iter().enumerate() {
            text = text.replace(name, &format!("<generated {number}>"));
        }
        let lower = text.to_lowercase();
        if lower.contains("resourceversion") || lower.contains("resource version") {
            text = self.revisions_of(&text);
        }
        text
    }

    /// Numbers in a message about revisions.
    fn revisions_of(&self, text: &str) -> String {
        let mut result = String::new();
        let mut digits = String::new();
        for character in text.chars().chain(std::iter::once('\n')) {
            if character.is_ascii_digit() {
                digits.push(character);
                continue;
            }
            if !digits.is_empty() {
                let known = self.revision(&digits);
                // One that no answer showed.
                let hidden = known == digits && digits.len() >= 3;
                result.push_str(if hidden { "<a revision>" } else { &known });
                digits.clear();
            }
            result.push(character);
        }
        result.pop();
        result
    }

    fn uids_of(&mut self, text: &str) -> String {
        const LENGTH: usize = 36;
        let mut result = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(candidate) = rest.get(..LENGTH)
                && is_uid(candidate)
            {
                let next = self.uids.len();
                let number = *self.uids.entry(candidate.to_owned()).or_insert(next);
                result.extend(["<uid ", &number.to_string(), ">"]);
                rest = &rest[LENGTH..];
            } else {
                let step = rest.chars().next().map_or(1, char::len_utf8);
                result.push_str(&rest[..step]);
                rest = &rest[step..];
            }
        }
        result
    }
}

/// What stands for a text that names Go's own types or source files.
const GO: &str = "<what Go says>";

/// Cuts off what names Go's own types and source files: it says nothing that a client could use, and differs between builds.
fn without_go(text: &str) -> String {
    if let Some(start) = text.find(UNDECODABLE) {
        let strict = text.find(STRICT).map(|at| &text[at..]);
        return format!("{}{}", &text[..start + UNDECODABLE.len()], strict.unwrap_or(GO));
    }
    // A list of strict decoding errors is the server's own and stays.
    if text.contains(STRICT) {
        return text.to_owned();
    }
    // The difference between two pods follows, in Go's form of them.
    let end = "(allow it to be set to 1 if it was previously negative)";
    if let Some(start) = text.find(end) {
        return format!("{}{GO}", &text[..start + end.len()]);
    }
    for head in ["the object provided is unrecognized (must be of type ", " cannot be handled as a "] {
        if let Some(start) = text.find(head)
            && let Some(end) = text[start..].find(": ")
        {
            return format!("{}: {GO}", &text[..start + end]);
        }
    }
    for head in [
        "error decoding patch: ",
        "couldn't get version/kind; json parse error: ",
        "continue key is not valid: ",
        "error converting YAML to JSON: ",
        UNDECODABLE,
    ] {
        if let Some(start) = text.find(head) {
            return format!("{}{GO}", &text[..start + head.len()]);
        }
    }
    if text.starts_with("json: ") || text.starts_with("no kind ") {
        return GO.to_owned();
    }
    text.to_owned()
}

const STRICT: &str = "strict decoding error";

/// How the message about an object begins that a patch made unreadable; the rest is the object as Go writes it.
const UNDECODABLE: &str = " \"\" is invalid: patch: Invalid value: ";

/// A number without a fraction is the same with and without a point.
fn whole(number: &serde_json::Number) -> Value {
    let as_whole = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15);
    as_whole
        .map_or_else(|| Value::Number(number.clone()), |float| json!(format!("{float}").parse::<i64>().unwrap_or(0)))
}

/// JSON within a text with its keys in order: Go writes them in the order of its types.
fn sort_json(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(['{', '[']) {
        result.push_str(&rest[..start]);
        let mut values = serde_json::Deserializer::from_str(&rest[start..]).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            result.push_str(&value.to_string());
            rest = &rest[start + values.byte_offset()..];
        } else {
            result.push_str(&rest[start..=start]);
            rest = &rest[start + 1..];
        }
    }
    result + rest
}

/// The causes of a failure, each once: some checks are made twice.
fn causes(list: &[Value]) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for cause in list {
        let mut cause = cause.clone();
        if cause["field"] == "patch" {
            cause["message"] = json!(GO);
        }
        if !found.contains(&cause) {
            found.push(cause);
        }
    }
    found
}

fn is_uid(text: &str) -> bool {
    text.bytes().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}
