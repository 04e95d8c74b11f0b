//! Which pods are on which node, kept from what was written: the scheduler must not look through all pods for each one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::json::{controller, text};
use super::queue::Key;
use crate::journal::{Change, Event as Entry, Journal, Verb};

/// The uid of the controller, if a pod has one.
type Owner = Option<String>;

#[derive(Default)]
struct Load {
    pods: usize,
    by_owner: BTreeMap<Owner, usize>,
}

#[derive(Default)]
pub(super) struct Placement {
    /// How much of the journal has been taken in: a pod that was bound a moment ago counts for the next one.
    read: usize,
    places: BTreeMap<Key, (String, Owner)>,
    nodes: BTreeMap<String, Load>,
}

/// The uid of a pod's controller.
pub(super) fn owner_of(pod: &Value) -> Owner {
    controller(pod).map(|owner| text(owner, "/uid").to_owned())
}

impl Placement {
    /// Takes in what has been written since the last time.
    pub fn catch_up(&mut self, journal: &Journal) {
        let entries = journal.entries();
        for entry in entries.get(self.read..).unwrap_or_default() {
            match &entry.event {
                Entry::Write(change) if change.resource == "pods" => self.note(change),
                Entry::Write(_) | Entry::Quorum(_) | Entry::Verb { .. } | Entry::Note(_) => {}
            }
        }
        self.read = entries.len();
    }

    fn note(&mut self, change: &Change) {
        let key = Key::new(&change.namespace, &change.name);
        let holds = |pod: &&std::sync::Arc<Value>| {
            let over = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
            change.verb != Verb::Delete && !over && !text(pod, "/spec/nodeName").is_empty()
        };
        let place = change.after.as_ref().filter(holds);
        let place = place.map(|pod| (text(pod, "/spec/nodeName").to_owned(), owner_of(pod)));
        let before = match &place {
            Some(place) => self.places.insert(key, place.clone()),
            None => self.places.remove(&key),
        };
        if before == place {
            return;
        }
        if let Some((node, owner)) = before
            && let Some(load) = self.nodes.get_mut(&node)
        {
            load.pods = load.pods.saturating_sub(1);
            if let Some(count) = load.by_owner.get_mut(&owner) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    load.by_owner.remove(&owner);
                }
            }
        }
        if let Some((node, owner)) = place {
            let load = self.nodes.entry(node).or_default();
            load.pods += 1;
            *load.by_owner.entry(owner).or_default() += 1;
        }
    }

    /// How many pods of this owner a node has, and how many in all.
    pub fn load(&self, node: &str, owner: &Owner) -> (usize, usize) {
        self.nodes.get(node).map_or((0, 0), |load| (load.by_owner.get(owner).copied().unwrap_or(0), load.pods))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::clock::EPOCH;

    fn write(journal: &Journal, name: &str, verb: Verb, node: &str, phase: &str) {
        let owners = json!([{"uid": "set", "controller": true}]);
        let pod = json!({"metadata": {"name": name, "ownerReferences": owners}, "spec": {"nodeName": node}, "status": {"phase": phase}});
        journal.push(
            EPOCH,
            Entry::Write(Change {
                revision: 1,
                user: String::new(),
                verb,
                resource: "pods".to_owned(),
                namespace: "a".to_owned(),
                name: name.to_owned(),
                before: None,
                after: Some(Arc::new(pod)),
            }),
        );
    }

    #[test]
    fn a_pod_counts_from_its_binding_to_its_end() {
        let (journal, mut placement) = (Journal::default(), Placement::default());
        let owner = Some("set".to_owned());
        let mut seen = |verb, name: &str, node: &str, phase: &str| {
            write(&journal, name, verb, node, phase);
            placement.catch_up(&journal);
            (placement.load("n", &owner), placement.load("n", &None))
        };
        assert_eq!(seen(Verb::Create, "a", "", "Pending"), ((0, 0), (0, 0)));
        assert_eq!(seen(Verb::Update, "a", "n", "Pending"), ((1, 1), (0, 1)));
        assert_eq!(seen(Verb::Create, "b", "n", "Running"), ((2, 2), (0, 2)));
        assert_eq!(seen(Verb::Update, "a", "n", "Failed"), ((1, 1), (0, 1)));
        assert_eq!(seen(Verb::Delete, "b", "n", "Running"), ((0, 0), (0, 0)));
    }
}
