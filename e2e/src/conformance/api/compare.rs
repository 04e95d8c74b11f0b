//! Two canonical transcripts, side by side.

use std::fmt;

use serde_json::{Value, json};

use super::play::Transcript;
use super::side::Answer;
use super::step::Script;

/// More of one step than this tells nothing new.
const SHOWN_PER_STEP: usize = 8;

/// One thing that the two servers disagree on.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The script.
    pub script: String,
    /// The number of the step, from 0.
    pub step: usize,
    /// The step, in a line.
    pub request: String,
    /// Where in the answer.
    pub place: String,
    /// What the embedded server says.
    pub embedded: Value,
    /// What the real server says.
    pub real: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} step {}: {}", self.script, self.step, self.request)?;
        writeln!(f, "    {}", self.place)?;
        writeln!(f, "    embedded: {}", self.embedded)?;
        write!(f, "    real:     {}", self.real)
    }
}

/// All differences, in the order of the steps; watches come with the step that opened them.
pub fn compare(script: &Script, embedded: &Transcript, real: &Transcript) -> Vec<Difference> {
    let mut found = Vec::new();
    for (step, (ours, theirs)) in embedded.answers.iter().zip(&real.answers).enumerate() {
        let places = if ours.code == theirs.code {
            let mut places = Vec::new();
            walk(&to_value(ours), &to_value(theirs), "", &mut places);
            places
        } else {
            // Nothing else of two answers that mean different things is worth comparing.
            vec![("/".to_owned(), summary(ours), summary(theirs))]
        };
        found.extend(differences(script, step, places));
    }
    for ((step, ours), (_, theirs)) in embedded.watches.iter().zip(&real.watches) {
        let mut places = Vec::new();
        walk(&json!(ours), &json!(theirs), "/events", &mut places);
        found.extend(differences(script, *step, places));
    }
    if embedded.watches.len() != real.watches.len() {
        let places = vec![("/watches".to_owned(), json!(embedded.watches.len()), json!(real.watches.len()))];
        found.extend(differences(script, 0, places));
    }
    found
}

type Place = (String, Value, Value);

fn differences(script: &Script, step: usize, places: Vec<Place>) -> impl Iterator<Item = Difference> {
    let request = script.steps.get(step).map(super::step::Step::describe).unwrap_or_default();
    let script = script.name.clone();
    places.into_iter().take(SHOWN_PER_STEP).map(move |(place, embedded, real)| Difference {
        script: script.clone(),
        step,
        request: request.clone(),
        place,
        embedded,
        real,
    })
}

fn to_value(answer: &Answer) -> Value {
    json!({
        "code": answer.code,
        "contentType": answer.content_type,
        "warnings": answer.warnings,
        "retryAfter": answer.retry_after,
        "body": answer.body,
    })
}

/// The code, and the message of a failure.
fn summary(answer: &Answer) -> Value {
    let message = answer.body.get("message").unwrap_or(&answer.body);
    json!(format!("{} {message}", answer.code))
}

fn walk(ours: &Value, theirs: &Value, place: &str, found: &mut Vec<Place>) {
    match (ours, theirs) {
        (Value::Object(left), Value::Object(right)) => {
            for (key, value) in left {
                match right.get(key) {
                    Some(other) => walk(value, other, &format!("{place}/{key}"), found),
                    None => found.push((format!("{place}/{key}"), value.clone(), json!("<absent>"))),
                }
            }
            for (key, value) in right.iter().filter(|(key, _)| !left.contains_key(*key)) {
                found.push((format!("{place}/{key}"), json!("<absent>"), value.clone()));
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (value, other)) in left.iter().zip(right).enumerate() {
                walk(value, other, &format!("{place}/{index}"), found);
            }
        }
        (ours, theirs) => {
            if ours != theirs {
                found.push((place.to_owned(), ours.clone(), theirs.clone()));
            }
        }
    }
}
