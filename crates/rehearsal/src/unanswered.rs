//! What a process does while a write of its own is on its way that it has given up waiting for: nothing that could meet it (H1).

use std::sync::Arc;

use serde_json::Value;
use windlass_sim::{
    faults::read_late,
    journal::{Change, Entry, Event, Verb},
};

/// What was done too soon, if anything was.
pub fn hasty(journal: &[Entry]) -> Option<String> {
    journal.iter().enumerate().find_map(|(index, entry)| {
        let Event::Note(note) = &entry.event else { return None };
        let (user, delay, what) = read_late(note)?;
        let arrives = entry.at.saturating_add(delay).ok()?;
        let meanwhile = journal.iter().skip(index + 1).take_while(|later| later.at < arrives);
        // Whoever creates what was already to be created makes the first request miss.
        let mut meanwhile = meanwhile.take_while(|later| !creates_the_same(user, what, &later.event));
        let hasty = meanwhile.find_map(|later| done(user, &later.event))?;
        Some(format!("{user} did {hasty} while its own {what} was still on its way"))
    })
}

/// Whether this process has created by now what a request of its own is still to create.
fn creates_the_same(user: &str, what: &str, event: &Event) -> bool {
    let Event::Write(change) = event else { return false };
    let plural = change.resource.split('.').next().unwrap_or_default();
    let collection = format!("/namespaces/{}/{plural}", change.namespace);
    change.user == user && change.verb == Verb::Create && what.starts_with("POST ") && what.ends_with(&collection)
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
