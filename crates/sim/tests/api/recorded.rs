//! What a real API server (Kubernetes 1.34.4) answered, asked again of the embedded one.
//!
//! A recording is a list of requests with the answers to them. Of an answer it keeps what doesn't differ from run to run:
//! no names that the server made up, and of times only whether there is one.

use http::Method;
use rstest::rstest;
use serde_json::{Map, Value, json};

use super::support::{Answer, api, get, send_text};

/// The custom resource that the recordings speak of.
fn definition() -> Value {
    serde_json::from_str(include_str!("recorded/definition.json")).expect("a definition")
}

#[rstest]
#[case::apply_owns_what_it_says(include_str!("recorded/apply_owns_what_it_says.json"))]
#[case::updates_move_ownership(include_str!("recorded/updates_move_ownership.json"))]
#[case::too_many_updaters_become_one(include_str!("recorded/too_many_updaters_become_one.json"))]
#[case::a_stateful_set(include_str!("recorded/a_stateful_set.json"))]
#[case::strategic_merges(include_str!("recorded/strategic_merges.json"))]
#[case::pods_and_services(include_str!("recorded/pods_and_services.json"))]
#[case::custom_resources(include_str!("recorded/custom_resources.json"))]
#[case::kubectl_takes_over_from_its_annotation(include_str!("recorded/kubectl_takes_over_from_its_annotation.json"))]
#[tokio::test(start_paused = true)]
async fn the_embedded_api_answers_as_the_real_one(#[case] recording: &str) {
    let wrong = replay(recording, &|path| !path.starts_with("/answer/details/uid"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Of kinds whose defaults the embedded API doesn't all fill in.
#[rstest]
#[case::other_kinds(include_str!("recorded/other_kinds.json"))]
#[case::a_definition(include_str!("recorded/a_definition.json"))]
#[tokio::test(start_paused = true)]
async fn fields_have_the_managers_that_the_real_api_gives_them(#[case] recording: &str) {
    let wrong = replay(recording, &|path| {
        ["/code", "/answer/message", "/answer/details", "/answer/metadata/managedFields"]
            .iter()
            .any(|compared| path.starts_with(compared))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Asks again, and returns what was answered otherwise at the places that count.
fn replay(recording: &str, counts: &dyn Fn(&str) -> bool) -> Vec<String> {
    let steps: Vec<Value> = serde_json::from_str(recording).expect("a recording");
    let api = api();
    api.create_value("tester", definition()).expect("the definition");
    let mut wrong = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        let text = |key: &str| step[key].as_str().unwrap_or("");
        let mut body = step["body"].clone();
        if step["current"] == true {
            let path = text("path").split('?').next().unwrap_or("");
            body["metadata"]["resourceVersion"] = get(&api, path).body["metadata"]["resourceVersion"].clone();
        }
        let body = match body {
            Value::Null => String::new(),
            Value::String(text) => text,
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other.to_string(),
        };
        let method = Method::from_bytes(text("method").as_bytes()).expect("a method");
        let answer = send_text(&api, method, text("path"), text("type"), body.clone());
        let (ours, theirs) = (kept(&answer), json!({"code": step["code"], "answer": sorted(step["answer"].clone())}));
        let what: Vec<String> = differences(&theirs, &ours, "")
            .into_iter()
            .filter_map(|(path, why)| counts(&path).then(|| format!("  {path}: {why}")))
            .collect();
        if !what.is_empty() {
            wrong.push(format!("step {place}: {} {} {body}\n{}", text("method"), text("path"), what.join("\n")));
        }
    }
    wrong
}

/// What a recording keeps of an answer.
fn kept(answer: &Answer) -> Value {
    let Value::Object(body) = &answer.body else { return json!({"code": answer.code, "answer": answer.body}) };
    if body.get("kind") == Some(&json!("Status")) {
        let kept: Map<String, Value> = body
            .iter()
            .filter(|(key, value)| matches!(key.as_str(), "message" | "reason" | "details") && *value != "")
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        return json!({"code": answer.code, "answer": sorted(Value::Object(kept))});
    }
    let mut kept = body.clone();
    kept.remove("apiVersion");
    kept.remove("kind");
    let mut metadata = Map::new();
    for key in ["labels", "annotations", "finalizers", "ownerReferences", "generation"] {
        if let Some(value) = body["metadata"].get(key) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    let mut entries = body["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    for entry in &mut entries {
        let timed = entry.get("time").is_some();
        entry["time"] = json!(timed);
    }
    let key = |entry: &Value| {
        ["operation", "manager", "apiVersion", "subresource"].map(|key| entry[key].as_str().unwrap_or("").to_owned())
    };
    entries.sort_by_key(key);
    metadata.insert("managedFields".to_owned(), Value::Array(entries));
    kept.insert("metadata".to_owned(), Value::Object(metadata));
    json!({"code": answer.code, "answer": kept})
}

/// Causes come in no order.
fn sorted(mut answer: Value) -> Value {
    if let Some(causes) = answer.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.sort_by_key(ToString::to_string);
    }
    answer
}

/// The places where the answers differ. Whether something empty is shown is not what these recordings are about, save in
/// `managedFields`, where it means something.
fn differences(theirs: &Value, ours: &Value, path: &str) -> Vec<(String, String)> {
    let empty = |value: &Value| matches!(value, Value::Null) || *value == json!({}) || *value == json!([]);
    if !path.starts_with("/answer/metadata/managedFields") && empty(theirs) && empty(ours) {
        return Vec::new();
    }
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let keys = theirs.keys().chain(ours.keys().filter(|key| !theirs.contains_key(*key)));
            keys.flat_map(|key| {
                let none = Value::Null;
                let (theirs, ours) = (theirs.get(key).unwrap_or(&none), ours.get(key).unwrap_or(&none));
                differences(theirs, ours, &format!("{path}/{key}"))
            })
            .collect()
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            let pairs = theirs.iter().zip(ours).enumerate();
            pairs.flat_map(|(place, (theirs, ours))| differences(theirs, ours, &format!("{path}/{place}"))).collect()
        }
        (theirs, ours) if theirs == ours => Vec::new(),
        (theirs, ours) => vec![(path.to_owned(), format!("real {theirs}, embedded {ours}"))],
    }
}
