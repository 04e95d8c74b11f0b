//! While a write of its own is on its way that it has given up waiting for, a process does nothing that could meet it (H1).

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use windlass_sim::journal::{Befell, Change, Event, Note, Verb};

use super::{Judge, Verdict, deed::Step};

/// Writes that nobody has heard of yet.
#[derive(Default)]
pub(super) struct Unanswered(Vec<Late>);

struct Late {
    user: String,
    what: String,
    arrives: Timestamp,
}

impl Judge for Unanswered {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        // Whoever creates what was already to be created makes the first request miss.
        self.0.retain(|late| step.at < late.arrives && !late.is_created_by(step.event));
        // Once is enough.
        self.0.retain(|late| {
            let hasty = done(&late.user, step.event);
            if let Some(hasty) = &hasty {
                let Late { user, what, .. } = late;
                let text = format!("{user} did {hasty} while its own {what} was still on its way");
                verdict.object(step.at, &text);
            }
            hasty.is_none()
        });
        if let Event::Note(Note::Process { user, what: Befell::Late { delay, what } }) = step.event
            && let Ok(arrives) = step.at.saturating_add(*delay)
        {
            self.0.push(Late { user: user.clone(), what: what.clone(), arrives });
        }
    }
}

impl Late {
    /// Whether its process has created by now what this request is still to create.
    fn is_created_by(&self, event: &Event) -> bool {
        let Event::Write(change) = event else { return false };
        let plural = change.resource.split('.').next().unwrap_or_default();
        let collection = format!("/namespaces/{}/{plural}", change.namespace);
        change.user == self.user
            && change.verb == Verb::Create
            && self.what.starts_with("POST ")
            && self.what.ends_with(&collection)
    }
}

/// A touch meets nothing: it is what makes others miss.
fn is_touch(change: &Change) -> bool {
    let said = |object: &Option<Arc<Value>>| object.as_deref().map(|object| object["spec"].clone());
    let going = |object: &Option<Arc<Value>>| {
        object.as_deref().is_some_and(|object| object.pointer("/metadata/deletionTimestamp").is_some())
    };
    change.verb == Verb::Update
        && said(&change.before) == said(&change.after)
        && going(&change.before) == going(&change.after)
}

/// What this process did to the quorum.
fn done(user: &str, event: &Event) -> Option<String> {
    match event {
        Event::Write(change) if change.user == user => {
            let matters =
                ["statefulsets.apps", "pods", "poddisruptionbudgets.policy"].contains(&change.resource.as_str());
            (matters && !is_touch(change)).then(|| format!("{:?} {} {}", change.verb, change.resource, change.name))
        }
        // Reading is no act.
        Event::Verb { user: caller, pod, what, changed: true } if caller == user => Some(format!("{what} at {pod}")),
        Event::Write(_) | Event::Verb { .. } | Event::Quorum(_) | Event::Note(_) => None,
    }
}
