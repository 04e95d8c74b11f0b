//! What an entry of the journal comes to, by the record of what was before it.

use jiff::Timestamp;
use serde_json::Value;
use windlass_sim::journal::{Change, Entry, Event, Verb};

use super::record::{Name, Record, around};
use crate::trial::is_ours;

/// Who drains nodes, by evicting pods.
const DRAIN: &str = "kubectl-drain";

/// What happens next, for a judge.
pub(super) struct Step<'a> {
    pub(super) at: Timestamp,
    pub(super) event: &'a Event,
    pub(super) deed: &'a Deed,
    /// What was known before.
    pub(super) record: &'a Record,
}

/// Who did what to a quorum.
pub(super) enum Deed {
    /// We wrote a StatefulSet.
    Wrote(Wrote),
    /// We deleted a pod.
    Deleted(Gone),
    /// The StatefulSet controller deleted a pod that had not ended by itself.
    Replaced(Gone, Cause),
    /// Somebody drained a pod's node.
    Drained(Name),
    /// A pod was made anew.
    Made(Gone),
    /// Nothing of all that.
    Other,
}

/// A write of ours to a StatefulSet.
pub(super) struct Wrote {
    pub(super) set: Name,
    /// It changes the template.
    pub(super) template: bool,
    /// Whom the controller could replace before.
    pub(super) held: Vec<String>,
    /// Whom it lets go that was held before.
    pub(super) freed: Vec<String>,
}

/// A pod that goes or comes, and the StatefulSet that it belongs to.
pub(super) struct Gone {
    pub(super) pod: Name,
    pub(super) set: Name,
}

/// Because of whom the controller deletes a pod.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// It is of the newest revision, or nobody upgrades its set.
    Nobody,
    /// Somebody else set a strategy that lets it go, at this time.
    Others(Timestamp),
    /// A partition of ours.
    Us,
}

impl Deed {
    pub(super) fn of(entry: &Entry, record: &Record) -> Self {
        let Event::Write(change) = &entry.event else { return Self::Other };
        match change.resource.as_str() {
            "statefulsets.apps" if is_ours(&change.user) => Self::Wrote(wrote(change, record)),
            "pods" => of_pod(change, record).unwrap_or(Self::Other),
            _ => Self::Other,
        }
    }
}

fn wrote(change: &Change, record: &Record) -> Wrote {
    let set = (change.namespace.clone(), change.name.clone());
    let (before, after) = around(change);
    let held = record.replaceable(&set, &before);
    let freed = record.replaceable(&set, &after).into_iter().filter(|pod| !held.contains(pod)).collect();
    Wrote { template: before.pointer("/spec/template") != after.pointer("/spec/template"), held, freed, set }
}

fn of_pod(change: &Change, record: &Record) -> Option<Deed> {
    let (before, after) = (change.before.as_deref(), change.after.as_deref());
    let pod = (change.namespace.clone(), change.name.clone());
    let gone = |object: &Value| {
        let owner = object.pointer("/metadata/ownerReferences/0/name")?.as_str()?;
        let set = (pod.0.clone(), owner.to_owned());
        record.set(&set).is_some().then(|| Gone { pod: pod.clone(), set })
    };
    if change.verb == Verb::Create {
        return gone(after?).map(Deed::Made);
    }
    let marked =
        |object: Option<&Value>| object.is_some_and(|object| object.pointer("/metadata/deletionTimestamp").is_some());
    let newly_marked = marked(after) && !marked(before);
    let gone_at_once = change.verb == Verb::Delete && !marked(before);
    if !newly_marked && !gone_at_once {
        return None;
    }
    if change.user == DRAIN {
        return Some(Deed::Drained(pod));
    }
    let before = before?;
    if is_ours(&change.user) {
        return gone(before).map(Deed::Deleted);
    }
    let phase = before.pointer("/status/phase").and_then(Value::as_str);
    // What ended by itself the controller only clears away.
    if change.user != "statefulset-controller" || matches!(phase, Some("Failed" | "Succeeded")) {
        return None;
    }
    let gone = gone(before)?;
    let cause = record.set(&gone.set)?.cause(before.pointer("/metadata/labels/controller-revision-hash"));
    Some(Deed::Replaced(gone, cause))
}
