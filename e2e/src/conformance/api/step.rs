//! What a script is made of: requests with gaps that are filled in from earlier answers.
//!
//! In every text of a path, a query or a body, `$(ns)` stands for the script's namespace and `$(slot/pointer)` for a value of
//! the answer that an earlier step saved under that name, so a script says "the revision that I read" without knowing it.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use super::kind::Kind;

/// The name of the objects that end watches.
pub const MARKER: &str = "zz-marker";

/// The body of a request.
#[derive(Clone, Debug)]
pub enum Body {
    /// No bytes.
    None,
    /// JSON with gaps.
    Json(Value),
    /// The object that was saved under this name, changed by a merge patch with gaps.
    Saved(String, Value),
    /// These bytes, whatever they are.
    Text(String),
}

/// Until when a read is repeated; for what a real server does in the background.
#[derive(Clone, Debug)]
pub enum Until {
    /// The value at this pointer.
    Value(String, Value),
    /// This status code.
    Code(u16),
}

/// One step of a script.
#[derive(Clone, Debug)]
pub struct Step {
    /// The HTTP method.
    pub method: Method,
    /// The path, with gaps.
    pub path: String,
    /// The query's parameters, with gaps.
    pub query: Vec<(String, String)>,
    /// The body's media type.
    pub content_type: Option<String>,
    /// The media types that are accepted as an answer.
    pub accept: Option<String>,
    /// Who says it is asking; the field manager follows from it.
    pub agent: String,
    /// The body.
    pub body: Body,
    /// Under which name the answer is saved, if it is a success.
    pub save: Option<String>,
    /// For a watch: the object whose appearance ends it.
    pub marker: Option<(Kind, Value)>,
    /// Repeats the request until this holds.
    pub until: Option<Until>,
}

impl Step {
    /// Any request.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            content_type: None,
            accept: None,
            agent: "conformance".to_owned(),
            body: Body::None,
            save: None,
            marker: None,
            until: None,
        }
    }

    fn json(method: Method, path: String, body: Body) -> Self {
        Self { body, content_type: Some("application/json".to_owned()), ..Self::new(method, path) }
    }

    /// With a query parameter.
    pub fn query(mut self, key: &str, value: &str) -> Self {
        self.query.push((key.to_owned(), value.to_owned()));
        self
    }

    /// With another media type of the body.
    pub fn content_type(mut self, media: &str) -> Self {
        self.content_type = Some(media.to_owned());
        self
    }

    /// With a media type for the answer.
    pub fn accept(mut self, media: &str) -> Self {
        self.accept = Some(media.to_owned());
        self
    }

    /// As another client.
    pub fn agent(mut self, agent: &str) -> Self {
        agent.clone_into(&mut self.agent);
        self
    }

    /// With this body.
    pub fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    /// Saves the answer.
    pub fn save(mut self, slot: &str) -> Self {
        self.save = Some(slot.to_owned());
        self
    }

    /// Repeated until the value at the pointer is this one.
    pub fn until(mut self, pointer: &str, value: Value) -> Self {
        self.until = Some(Until::Value(pointer.to_owned(), value));
        self
    }

    /// Repeated until the answer has this code.
    pub fn until_code(mut self, code: u16) -> Self {
        self.until = Some(Until::Code(code));
        self
    }

    /// In one line.
    pub fn describe(&self) -> String {
        let query: Vec<String> = self.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let body = match &self.body {
            Body::None => String::new(),
            Body::Json(value) => format!(" {value}"),
            Body::Saved(slot, patch) => format!(" $({slot}) + {patch}"),
            Body::Text(text) => format!(" {text:?}"),
        };
        let media = self.content_type.as_deref().filter(|media| *media != "application/json");
        let media = media.map(|media| format!(" [{media}]")).unwrap_or_default();
        let agent = if self.agent == "conformance" { String::new() } else { format!(" as {}", self.agent) };
        let save = self.save.as_ref().map(|slot| format!(" → {slot}")).unwrap_or_default();
        let watch = if self.marker.is_some() { "WATCH" } else { self.method.as_str() };
        format!("{watch} {}{query}{media}{agent}{body}{save}", self.path)
    }
}

/// Creates.
pub fn create(kind: Kind, object: Value) -> Step {
    Step::json(Method::POST, kind.collection(), Body::Json(object))
}

/// Replaces.
pub fn put(kind: Kind, name: &str, object: Value) -> Step {
    Step::json(Method::PUT, kind.object(name), Body::Json(object))
}

/// Replaces with what was saved, changed by a merge patch.
pub fn put_saved(kind: Kind, name: &str, slot: &str, change: Value) -> Step {
    Step::json(Method::PUT, kind.object(name), Body::Saved(slot.to_owned(), change))
}

/// A merge patch.
pub fn merge(kind: Kind, name: &str, patch: Value) -> Step {
    Step::json(Method::PATCH, kind.object(name), Body::Json(patch)).content_type("application/merge-patch+json")
}

/// A JSON patch.
pub fn json_patch(kind: Kind, name: &str, patch: Value) -> Step {
    Step::json(Method::PATCH, kind.object(name), Body::Json(patch)).content_type("application/json-patch+json")
}

/// A strategic merge patch.
pub fn strategic(kind: Kind, name: &str, patch: Value) -> Step {
    let media = "application/strategic-merge-patch+json";
    Step::json(Method::PATCH, kind.object(name), Body::Json(patch)).content_type(media)
}

/// Server-side apply by this manager.
pub fn apply(kind: Kind, name: &str, manager: &str, object: Value) -> Step {
    Step::json(Method::PATCH, kind.object(name), Body::Json(object))
        .content_type("application/apply-patch+yaml")
        .query("fieldManager", manager)
}

/// Deletes with the defaults.
pub fn delete(kind: Kind, name: &str) -> Step {
    Step::new(Method::DELETE, kind.object(name))
}

/// Deletes with options.
pub fn delete_with(kind: Kind, name: &str, options: Value) -> Step {
    Step::json(Method::DELETE, kind.object(name), Body::Json(options))
}

/// Deletes many.
pub fn delete_collection(kind: Kind) -> Step {
    Step::new(Method::DELETE, kind.collection())
}

/// Reads one.
pub fn get(kind: Kind, name: &str) -> Step {
    Step::new(Method::GET, kind.object(name))
}

/// Lists.
pub fn list(kind: Kind) -> Step {
    Step::new(Method::GET, kind.collection())
}

/// Watches; an object with these labels can be seen through it.
pub fn watch(kind: Kind, visible_labels: Value) -> Step {
    let mut marker = kind.minimal(MARKER);
    marker["metadata"]["labels"] = visible_labels;
    Step { marker: Some((kind, marker)), ..Step::new(Method::GET, kind.collection()).query("watch", "true") }
}

/// Watches one object by its name.
pub fn watch_named(kind: Kind, name: &str) -> Step {
    let step = Step::new(Method::GET, kind.collection()).query("watch", "true");
    Step { marker: Some((kind, kind.minimal(name))), ..step.query("fieldSelector", &format!("metadata.name={name}")) }
}

impl Step {
    /// The same of a part of the object.
    pub fn part(mut self, part: &str) -> Self {
        self.path = format!("{}/{part}", self.path);
        self
    }
}

/// A script: steps in order, in a namespace of their own.
#[derive(Clone, Debug)]
pub struct Script {
    /// What it is about.
    pub name: String,
    /// What it does.
    pub steps: Vec<Step>,
}

/// A script.
pub fn script(name: &str, steps: Vec<Step>) -> Script {
    Script { name: name.to_owned(), steps }
}

/// What is filled into the gaps.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    /// The script's namespace.
    pub namespace: String,
    /// Saved answers.
    pub saved: BTreeMap<String, Value>,
}

impl Slots {
    /// The text with its gaps filled.
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("$(") {
            let Some(length) = rest[start..].find(')') else { break };
            filled.push_str(&rest[..start]);
            filled.push_str(&self.gap(&rest[start + 2..start + length]));
            rest = &rest[start + length + 1..];
        }
        filled.push_str(rest);
        filled
    }

    fn gap(&self, gap: &str) -> String {
        if gap == "ns" {
            return self.namespace.clone();
        }
        let (slot, pointer) = gap.split_once('/').unwrap_or((gap, ""));
        let found = self.saved.get(slot).and_then(|value| value.pointer(&format!("/{pointer}")));
        match found {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }

    /// The value with the gaps in all its texts filled.
    pub fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(list) => list.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (self.fill(key), self.fill_value(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// The bytes of a body.
    pub fn bytes(&self, body: &Body) -> Vec<u8> {
        match body {
            Body::None => Vec::new(),
            Body::Json(value) => self.fill_value(value).to_string().into_bytes(),
            Body::Saved(slot, patch) => {
                let mut object = self.saved.get(slot).cloned().unwrap_or_else(|| json!({}));
                merge_into(&mut object, &self.fill_value(patch));
                object.to_string().into_bytes()
            }
            Body::Text(text) => self.fill(text).into_bytes(),
        }
    }
}

/// RFC 7396, here and not from the library that the embedded server uses: a fault there must not hide itself.
pub fn merge_into(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(map) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            map.remove(key);
        } else {
            merge_into(map.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_filled_from_saved_answers() {
        let saved = BTreeMap::from([("a".to_owned(), json!({"metadata": {"resourceVersion": "7"}}))]);
        let slots = Slots { namespace: "n".to_owned(), saved };
        assert_eq!(slots.fill("/x/$(ns)/$(a/metadata/resourceVersion)$(b/c)."), "/x/n/7.");
    }

    #[test]
    fn a_saved_object_is_changed_by_a_merge_patch() {
        let saved = BTreeMap::from([("a".to_owned(), json!({"x": 1, "y": {"z": 2, "w": 3}}))]);
        let slots = Slots { namespace: "n".to_owned(), saved };
        let bytes = slots.bytes(&Body::Saved("a".to_owned(), json!({"x": null, "y": {"z": "$(ns)"}})));
        assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), json!({"y": {"z": "n", "w": 3}}));
    }
}
