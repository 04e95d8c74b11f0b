//! Where a snapshot is to be taken first, one was stored since the last upgrade ended when the template is written; or, where somebody else
//! writes it, when we delete a sound pod (D2).

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_sim::journal::{Change, Event, Note};

use super::{
    Judge, Verdict,
    deed::{Deed, Step},
    record::{Name, under_way, wish},
};

#[derive(Default)]
pub(super) struct Snapshots(BTreeMap<Name, Snapshot>);

#[derive(Default)]
struct Snapshot {
    /// One is to be taken before an upgrade, and that was known before the present one began.
    wanted: bool,
    /// One was stored since the last upgrade ended.
    stored: bool,
}

impl Judge for Snapshots {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        match step.event {
            Event::Write(change) => self.wish(change),
            Event::Note(Note::SnapshotStored { namespace, workload }) => {
                self.0.entry((namespace.clone(), workload.clone())).or_default().stored = true;
            }
            Event::Note(_) | Event::Quorum(_) | Event::Verb { .. } => {}
        }
        match step.deed {
            Deed::Wrote(wrote) if wrote.template && self.is_missing(&wrote.set) => {
                verdict.object(step.at, "the template was written without the snapshot that was to be taken first");
            }
            Deed::Deleted(gone) if step.record.follows(&gone.set) && self.is_missing(&gone.set) => {
                let pod = &gone.pod.1;
                if step.record.set(&gone.set).is_some_and(|set| set.sound_and_leading(pod).0) {
                    let text = format!("{pod} deleted by us without the snapshot that was to be taken first");
                    verdict.object(step.at, &text);
                }
            }
            Deed::Wrote(_) | Deed::Deleted(_) | Deed::Replaced(..) | Deed::Drained(_) | Deed::Made(_) | Deed::Other => {
            }
        }
    }
}

impl Snapshots {
    fn is_missing(&self, set: &Name) -> bool {
        self.0.get(set).is_some_and(|snapshot| snapshot.wanted && !snapshot.stored)
    }

    fn wish(&mut self, change: &Change) {
        let Some((name, spec)) = wish(change) else { return };
        let snapshot = self.0.entry(name).or_default();
        match under_way(change) {
            (false, false) => {
                snapshot.wanted = spec.pointer("/backup/preUpgradeSnapshot") == Some(&Value::Bool(true));
            }
            (true, false) => snapshot.stored = false,
            (_, true) => {}
        }
    }
}
