//! Faults that are put into the embedded server on purpose, from outside: a comparison that does not notice them compares
//! nothing.

use std::fmt;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request};
use serde_json::{Value, json};
use windlass_sim::api::Api;

use super::side::{Answer, Lines};

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// A PUT with an old resourceVersion is accepted.
    AcceptsStalePut,
    /// The generation stays 1.
    ForgetsGeneration,
    /// The first MODIFIED of each watch is lost.
    LosesWatchEvent,
    /// An object that leaves a watch's selection is shown as MODIFIED.
    KeepsWhatLeftTheSelection,
    /// A name that is taken is a Conflict.
    WrongReason,
    /// A deletion's preconditions are not looked at.
    IgnoresPreconditions,
    /// Lists are in the opposite order.
    ReversesLists,
    /// A dry run writes.
    WritesInDryRun,
    /// Unknown fields are dropped in silence.
    SwallowsWarnings,
    /// Finalizers don't hold a deletion up.
    IgnoresFinalizers,
    /// One message has one word more.
    RewordsNotFound,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Deviation {
    /// Each of them.
    pub const ALL: [Self; 11] = [
        Self::AcceptsStalePut,
        Self::ForgetsGeneration,
        Self::LosesWatchEvent,
        Self::KeepsWhatLeftTheSelection,
        Self::WrongReason,
        Self::IgnoresPreconditions,
        Self::ReversesLists,
        Self::WritesInDryRun,
        Self::SwallowsWarnings,
        Self::IgnoresFinalizers,
        Self::RewordsNotFound,
    ];

    /// The request as the faulty server understands it.
    pub(super) fn of_request(self, api: &Api, request: &Request<Bytes>) -> Request<Bytes> {
        let mut changed = request.clone();
        let edit = |edit: &dyn Fn(&mut Value)| {
            let mut body: Value = serde_json::from_slice(request.body()).ok()?;
            edit(&mut body);
            serde_json::to_vec(&body).ok().map(Bytes::from)
        };
        let body = match (self, request.method()) {
            (Self::AcceptsStalePut, &Method::PUT) => {
                // What is there now is what the writer meant.
                let read = Request::get(request.uri().clone()).body(Bytes::new()).ok();
                let current = read.and_then(|read| current(api, read));
                edit(&|body| {
                    if let (Some(current), Some(meta)) =
                        (&current, body.get_mut("metadata").and_then(Value::as_object_mut))
                        && meta.contains_key("resourceVersion")
                    {
                        meta.insert("resourceVersion".to_owned(), current.clone());
                    }
                })
            }
            (Self::IgnoresPreconditions, &Method::DELETE) => edit(&|body| {
                if let Some(map) = body.as_object_mut() {
                    map.remove("preconditions");
                }
            }),
            (Self::IgnoresFinalizers, &Method::POST) => edit(&|body| {
                if let Some(meta) = body.get_mut("metadata").and_then(Value::as_object_mut) {
                    meta.remove("finalizers");
                }
            }),
            (Self::WritesInDryRun, _) => {
                if let Ok(uri) = request.uri().to_string().replace("dryRun=All", "").parse() {
                    *changed.uri_mut() = uri;
                }
                None
            }
            (_, _) => None,
        };
        if let Some(body) = body {
            *changed.body_mut() = body;
        }
        changed
    }

    /// The answer as the faulty server gives it.
    pub(super) fn of_answer(self, answer: &Answer) -> Answer {
        let mut answer = answer.clone();
        match self {
            Self::ForgetsGeneration => {
                if let Some(generation) = answer.body.pointer_mut("/metadata/generation") {
                    *generation = json!(1);
                }
            }
            Self::WrongReason => {
                if answer.body["reason"] == "AlreadyExists" {
                    answer.body["reason"] = json!("Conflict");
                }
            }
            Self::ReversesLists => {
                if let Some(items) = answer.body.get_mut("items").and_then(Value::as_array_mut) {
                    items.reverse();
                }
            }
            Self::SwallowsWarnings => answer.warnings.clear(),
            Self::RewordsNotFound => {
                if answer.body["reason"] == "NotFound"
                    && let Some(message) = answer.body["message"].as_str()
                {
                    answer.body["message"] = json!(message.replace(" not found", " was not found"));
                }
            }
            Self::AcceptsStalePut
            | Self::LosesWatchEvent
            | Self::KeepsWhatLeftTheSelection
            | Self::IgnoresPreconditions
            | Self::WritesInDryRun
            | Self::IgnoresFinalizers => {}
        }
        answer
    }

    /// The watch as the faulty server serves it.
    pub(super) fn of_lines(self, lines: Lines) -> Lines {
        match self {
            Self::LosesWatchEvent => {
                let mut lost = false;
                lines
                    .filter(move |line| {
                        let modified = line.as_ref().is_ok_and(|line| line["type"] == "MODIFIED");
                        let keep = lost || !modified;
                        lost |= modified;
                        std::future::ready(keep)
                    })
                    .boxed()
            }
            Self::KeepsWhatLeftTheSelection => lines
                .map(|line| {
                    line.map(|mut line| {
                        if line["type"] == "DELETED" && line.pointer("/object/metadata/deletionTimestamp").is_none() {
                            line["type"] = json!("MODIFIED");
                        }
                        line
                    })
                })
                .boxed(),
            Self::AcceptsStalePut
            | Self::ForgetsGeneration
            | Self::WrongReason
            | Self::IgnoresPreconditions
            | Self::ReversesLists
            | Self::WritesInDryRun
            | Self::SwallowsWarnings
            | Self::IgnoresFinalizers
            | Self::RewordsNotFound => lines,
        }
    }
}

/// The resourceVersion of the object at this address.
fn current(api: &Api, read: Request<Bytes>) -> Option<Value> {
    match api.handle("conformance", read, None) {
        windlass_sim::api::Reply::Done(response) => {
            let object: Value = serde_json::from_slice(response.body()).ok()?;
            object.pointer("/metadata/resourceVersion").cloned()
        }
        windlass_sim::api::Reply::Watch(_) => None,
    }
}
