//! Plays a script on one server and writes down what came back.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, header};
use serde_json::{Value, json};

use super::kind::Kind;
use super::side::{Answer, Lines, Opened, Side};
use super::step::{Body, MARKER, Script, Slots, Step, Until, create, merge};

/// On the object whose appearance ends a watch.
const MARKER_LABEL: &str = "conformance-marker";
/// What does not come within this time from the embedded server is a difference: it needs milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);
/// What does not come within this time from a real server is an error, and no difference: the machine may be too slow to tell.
const REAL_PATIENCE: Duration = Duration::from_mins(2);

/// How long an answer of this server is waited for.
fn patience(side: &Side) -> Duration {
    match side {
        Side::Embedded(..) => PATIENCE,
        Side::Real(_) => REAL_PATIENCE,
    }
}

fn too_slow(what: &str) -> anyhow::Error {
    anyhow::anyhow!("{what} within {} s: the machine is too slow to tell", REAL_PATIENCE.as_secs())
}

/// Everything that came back from one server.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// One per step.
    pub answers: Vec<Answer>,
    /// The events of each watch, with the number of the step that opened it.
    pub watches: Vec<(usize, Vec<Value>)>,
    /// Names that the server made up, in the order of their appearance.
    pub generated: Vec<String>,
}

struct Open {
    step: usize,
    lines: Lines,
    marker: (Kind, Value),
}

/// Plays the script in this namespace, which is made first.
pub async fn play(side: &Side, namespace: &str, script: &Script) -> anyhow::Result<Transcript> {
    let mut slots = Slots { namespace: namespace.to_owned(), ..Slots::default() };
    let mut transcript = Transcript { answers: Vec::new(), watches: Vec::new(), generated: Vec::new() };
    let mut open = Vec::new();
    side.send(request(&slots, &create(Kind::Namespace, Kind::Namespace.minimal("$(ns)")))?).await?;
    for (number, step) in script.steps.iter().enumerate() {
        settle(side, &slots, step).await?;
        let answer = if let Some(marker) = &step.marker {
            match side.open(request(&slots, step)?).await? {
                Opened::Stream(lines) => {
                    open.push(Open { step: number, lines, marker: marker.clone() });
                    opened()
                }
                Opened::Refused(answer) => answer,
            }
        } else {
            let answer = repeat(side, &slots, step).await?;
            note_generated(step, &answer, &mut transcript.generated);
            if let Some(slot) = step.save.as_ref().filter(|_| answer.code < 300) {
                slots.saved.insert(slot.clone(), answer.body.clone());
            }
            answer
        };
        transcript.answers.push(answer);
    }
    for watch in open {
        let step = watch.step;
        let events = drain(side, &slots, watch).await?;
        transcript.watches.push((step, events));
    }
    Ok(transcript)
}

fn opened() -> Answer {
    Answer { code: 200, content_type: String::new(), warnings: Vec::new(), retry_after: None, body: json!("a watch") }
}

/// A read of "any revision", or of one not older than some, promises nothing about what was just written. A real server answers it from a cache that follows
/// the store; a consistent list makes it catch up first.
async fn settle(side: &Side, slots: &Slots, step: &Step) -> anyhow::Result<()> {
    let Side::Real(_) = side else { return Ok(()) };
    let parameter = |name: &str| step.query.iter().find(|(key, _)| key == name).map(|(_, value)| slots.fill(value));
    let revision = parameter("resourceVersion").unwrap_or_default();
    let exact = parameter("resourceVersionMatch").is_some_and(|matching| matching == "Exact");
    let watch = step.marker.is_some();
    let any = if watch { matches!(revision.as_str(), "" | "0") } else { !revision.is_empty() && !exact };
    if step.method == Method::GET && any {
        let collection = match step.path.rsplit_once('/') {
            Some((above, _))
                if above.ends_with('s') && !above.ends_with("/namespaces/$(ns)") && step.marker.is_none() =>
            {
                above
            }
            _ => &step.path,
        };
        side.send(request(slots, &Step::new(Method::GET, collection))?).await?;
    }
    Ok(())
}

async fn repeat(side: &Side, slots: &Slots, step: &Step) -> anyhow::Result<Answer> {
    let (start, patience) = (tokio::time::Instant::now(), patience(side));
    loop {
        let sent = tokio::time::timeout(patience, side.send(request(slots, step)?)).await;
        let answer = sent.map_err(|_| anyhow::anyhow!("no answer to {}", step.describe()))??;
        let done = match &step.until {
            None => true,
            Some(Until::Value(pointer, value)) => answer.body.pointer(pointer) == Some(value),
            Some(Until::Code(code)) => answer.code == *code,
        };
        if done {
            return Ok(answer);
        }
        if start.elapsed() > patience {
            return match side {
                Side::Embedded(..) => Ok(answer),
                Side::Real(_) => Err(too_slow(&format!("{} did not answer as expected", step.describe()))),
            };
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn request(slots: &Slots, step: &Step) -> anyhow::Result<Request<Bytes>> {
    let query: Vec<String> =
        step.query.iter().map(|(key, value)| format!("{key}={}", escape(&slots.fill(value)))).collect();
    let path = slots.fill(&step.path).split('/').map(escape).collect::<Vec<_>>().join("/");
    let uri = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
    let mut request = Request::builder().method(step.method.clone()).uri(uri).header(header::USER_AGENT, &step.agent);
    if let Some(media) = &step.content_type
        && !matches!(step.body, Body::None)
    {
        request = request.header(header::CONTENT_TYPE, media);
    }
    request = request.header(header::ACCEPT, step.accept.as_deref().unwrap_or("application/json"));
    Ok(request.body(Bytes::from(slots.bytes(&step.body)))?)
}

/// Percent-encodes everything that is not plainly harmless in a query or in a part of a path.
fn escape(text: &str) -> String {
    use std::fmt::Write;
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// A name that the server made up for an object, or would have.
fn note_generated(step: &Step, answer: &Answer, generated: &mut Vec<String>) {
    let Body::Json(object) = &step.body else { return };
    let base = object.pointer("/metadata/generateName").and_then(Value::as_str).filter(|base| !base.is_empty());
    let made = ["/metadata/name", "/details/name"].into_iter().find_map(|place| answer.body.pointer(place)?.as_str());
    if let (Some(base), Some(name)) = (base, made)
        && name.starts_with(base)
        && !generated.iter().any(|known| known == name)
    {
        generated.push(name.to_owned());
    }
}

/// Reads a watch until its marker, which is written now that everything else is.
async fn drain(side: &Side, slots: &Slots, watch: Open) -> anyhow::Result<Vec<Value>> {
    let Open { step, mut lines, marker: (kind, mut object) } = watch;
    object["metadata"]["labels"][MARKER_LABEL] = json!(format!("end-{step}"));
    let mut name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name == MARKER {
        // Two watches with different selectors need a marker each.
        name = format!("{MARKER}-{step}");
        object["metadata"]["name"] = json!(name);
    }
    let made = side.send(request(slots, &create(kind, object))?).await?;
    if made.code == 409 {
        let label = json!({"metadata": {"labels": {MARKER_LABEL: format!("end-{step}")}}});
        side.send(request(slots, &merge(kind, &name, label))?).await?;
    }
    let mut events = Vec::new();
    loop {
        match tokio::time::timeout(patience(side), lines.next()).await {
            Err(_) if matches!(side, Side::Real(_)) => return Err(too_slow("no marker came")),
            Err(_) => {
                events.push(json!({"type": "no marker came"}));
                return Ok(events);
            }
            Ok(None) => {
                events.push(json!({"type": "the stream ended"}));
                return Ok(events);
            }
            Ok(Some(Err(why))) => {
                events.push(json!({"type": "the stream broke", "object": why.to_string()}));
                return Ok(events);
            }
            Ok(Some(Ok(event))) => {
                let marked =
                    event.pointer("/object/metadata/labels").is_some_and(|labels| labels.get(MARKER_LABEL).is_some());
                if marked {
                    return Ok(events);
                }
                // When a bookmark comes is up to the server, save for the one that ends the initial events.
                let ends_initial = event.pointer("/object/metadata/annotations").is_some();
                if event["type"] != "BOOKMARK" || ends_initial {
                    events.push(event);
                }
            }
        }
    }
}
