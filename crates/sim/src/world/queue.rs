//! What will happen and when: one ordered queue, so that two runs of a seed do the same things in the same order.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::apps::AppEvent;

/// A namespaced object's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// What a kubelet does next with one container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The pull has ended, well or badly.
    Pulled,
    /// The kubelet stops calling it a failed pull and calls it a back-off.
    PullBackOff,
    /// The image is asked for again.
    PullAgain,
    /// The process begins to serve.
    Serve,
    /// The readiness probe succeeds.
    Ready,
    /// The readiness probe has failed often enough.
    Unready,
    /// The process ends with this code.
    Exit(i32),
    /// The back-off is over.
    Restart,
}

/// One thing that happens at a time of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The StatefulSet controller looks at a set.
    Set(Key),
    /// The Job controller looks at a Job.
    Job(Key),
    /// The ReplicaSet controller looks at a set.
    ReplicaSet(Key),
    /// The Deployment controller looks at a Deployment.
    Deployment(Key),
    /// The scheduler looks at a pod.
    Schedule(Key),
    /// The pod's kubelet looks at its pod.
    Kubelet(Key),
    /// The disruption controller looks at a budget.
    Budget(Key),
    /// The EndpointSlice controller looks at a service.
    Endpoints(Key),
    /// The namespace controller looks at a namespace.
    Namespace(String),
    /// A process writes on its own pod what it says of itself.
    Registration(Key),
    /// The garbage collector asks whether this object (by uid) still has an owner.
    Dependent(String),
    /// The garbage collector looks at the dependents of this object (by uid).
    Owner(String),
    /// A container of one pod instance moves on; void when the container's epoch has changed meanwhile.
    Container { pod: Key, uid: String, container: usize, epoch: u64, step: Step },
    /// A terminating pod's processes have taken the signal.
    Stopped { pod: Key, uid: String },
    /// A terminating pod's last remains are cleaned up.
    Gone { pod: Key, uid: String },
    /// A hung process comes back.
    Resume { pod: Key, uid: String, epoch: u64 },
    /// The control plane has missed a node's heartbeats for long enough.
    NodeLost { node: String, epoch: u64 },
    /// The pods of a lost node have outstayed their toleration.
    NodeEvicts { node: String, epoch: u64 },
    /// A node's kubelet has reported again.
    NodeBack { node: String, epoch: u64 },
    /// An application's own timer.
    App(Key, AppEvent),
    /// A drain tries to evict a pod.
    Evict { while_cordoned: Option<String>, pod: Key, uid: String, until: Duration },
}

impl Event {
    /// True for events that mean "look at this": several of them for one object are worth one look.
    fn is_look(&self) -> bool {
        match self {
            Self::Set(_)
            | Self::Job(_)
            | Self::ReplicaSet(_)
            | Self::Deployment(_)
            | Self::Schedule(_)
            | Self::Kubelet(_)
            | Self::Budget(_)
            | Self::Endpoints(_)
            | Self::Namespace(_)
            | Self::Registration(_)
            | Self::Dependent(_)
            | Self::Owner(_) => true,
            Self::Container { .. }
            | Self::Stopped { .. }
            | Self::Gone { .. }
            | Self::Resume { .. }
            | Self::NodeLost { .. }
            | Self::NodeEvicts { .. }
            | Self::NodeBack { .. }
            | Self::App(..)
            | Self::Evict { .. } => false,
        }
    }
}

/// The events to come, by time and then by order of arrival.
#[derive(Default)]
pub(crate) struct Queue {
    events: BTreeMap<(Duration, u64), Event>,
    looks: BTreeMap<Event, (Duration, u64)>,
    sequence: u64,
}

impl Queue {
    /// Adds an event. A look that is already due no later is not added again; one that is due later is moved forward.
    pub fn push(&mut self, at: Duration, event: Event) {
        if event.is_look() {
            if let Some(known) = self.looks.get(&event).copied() {
                if known.0 <= at {
                    return;
                }
                self.events.remove(&known);
            }
            self.looks.insert(event.clone(), (at, self.sequence));
        }
        self.events.insert((at, self.sequence), event);
        self.sequence += 1;
    }

    /// When the next event is due.
    pub fn next_at(&self) -> Option<Duration> {
        self.events.first_key_value().map(|(key, _)| key.0)
    }

    /// The next event that is due by now.
    pub fn pop(&mut self, now: Duration) -> Option<Event> {
        if self.next_at()? > now {
            return None;
        }
        let (_, event) = self.events.pop_first()?;
        self.looks.remove(&event);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_waits_is_not_queued_twice_and_an_earlier_one_moves_it() {
        let mut queue = Queue::default();
        let look = Event::Set(Key::new("a", "b"));
        queue.push(Duration::from_secs(5), look.clone());
        queue.push(Duration::from_secs(9), look.clone());
        queue.push(Duration::from_secs(2), look.clone());
        assert_eq!(queue.next_at(), Some(Duration::from_secs(2)));
        assert_eq!(queue.pop(Duration::from_secs(1)), None);
        assert_eq!(queue.pop(Duration::from_secs(2)), Some(look));
        assert_eq!(queue.next_at(), None);
    }
}
