//! What happens in a run: objects, operators, what people and bad luck do and when, and what must come of it.
//!
//! The same value drives every ring; it reads from and writes to YAML, so a run that failed can be kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::api::Webhook;
use crate::world::{BadAnswer, ImageBehaviour, ServiceAnswer};

/// One run. How it must end is for whoever has it run to say.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scenario<E> {
    /// Decides everything random.
    pub seed: u64,
    /// What is there at the beginning; created in this order.
    pub objects: Vec<Value>,
    /// How many operator processes compete. One that dies is started again.
    pub operators: u32,
    /// Random faults on the operators' calls, until the timeline has ended.
    #[serde(default)]
    pub faults: bool,
    /// What is done, and when.
    #[serde(default)]
    pub timeline: Vec<Moment>,
    /// The object that must come to rest.
    pub subject: Subject,
    /// How it must come to rest.
    #[serde(default)]
    pub ending: E,
    /// How often leadership may move, where that is known beforehand: for the judges.
    #[serde(default)]
    pub max_leader_moves: Option<usize>,
    /// Cluster time after the end of the timeline in which that must happen.
    pub limit: Duration,
}

/// An object, as in `kubectl get RESOURCE -n NAMESPACE NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Plural and group.
    pub resource: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A way in which a run may have to end.
pub trait End {
    /// Whether the subject has come to it.
    fn has_come(&self, subject: &Value) -> bool;
}

/// Something that is done at a time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Moment {
    /// When.
    pub when: When,
    /// What.
    pub action: Action,
}

/// When something is done. Moments happen in the order of the timeline: each waits for the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// So long after the moment before.
    After(Duration),
    /// When Kubernetes or a process under test has replaced so many pods in total; at the latest after two minutes.
    Replaced(usize),
    /// When the processes under test have lowered a partition so often in total; at the latest after two minutes.
    Permitted(usize),
    /// So long after this object is gone; at the latest after ten minutes: whoever has to let it go may see nothing for a while.
    Gone(Subject, Duration),
}

/// What is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Action {
    /// A person patches an object (merge patch).
    Patch {
        /// Which.
        target: Subject,
        /// With what.
        patch: Value,
    },
    /// A person patches an object's status (merge patch).
    PatchStatus {
        /// Which.
        target: Subject,
        /// With what.
        patch: Value,
    },
    /// Somebody applies part of an object by server-side apply, as this manager, whoever else owns it.
    Apply {
        /// Which.
        target: Subject,
        /// As whom.
        manager: String,
        /// What: with its `apiVersion` and `kind`.
        part: Value,
    },
    /// A person creates an object.
    Create(Value),
    /// A person deletes an object.
    Delete(Subject),
    /// From now on an administrator's policy lets no write change these fields of an object, given as JSON pointers; with none,
    /// everything may change again.
    FreezeFields {
        /// Which.
        target: Subject,
        /// What of it.
        fields: Vec<String>,
    },
    /// From now on a webhook that is asked about every write of the processes under test to an object goes wrong; or it works again.
    Webhook {
        /// Which object.
        target: Subject,
        /// How; none where it works.
        how: Option<Webhook>,
        /// Of which writes it is asked: those with these words in their bodies.
        about: String,
    },
    /// A pod's process dies.
    Crash(Place),
    /// A kubelet evicts a pod because its node runs out of something.
    Pressure(Place),
    /// What containers of an image do from their next start on.
    Image(String, ImageBehaviour),
    /// Whether one node can pull an image from now on.
    Pullable {
        /// Which node.
        node: String,
        /// Which image.
        image: String,
        /// It can.
        yes: bool,
    },
    /// A pod's process stops answering for a while.
    Hang(Place, Duration),
    /// A member serves and hears nothing of the log from now on, or hears again.
    Starve(Place, bool),
    /// A StatefulSet's quorum writes so many entries to its log each second from now on. Above twenty its followers trail.
    Busy(Subject, u64),
    /// Whoever leads a StatefulSet's quorum takes requests to hand over and goes on leading, or heeds them again.
    Cling(Subject, bool),
    /// A pod's process answers wrongly, or rightly again.
    Answers(Place, Option<BadAnswer>),
    /// A Service answers this to everything from now on; without an answer it refuses.
    Service(Place, Option<ServiceAnswer>),
    /// A node is gone, or back.
    Node {
        /// Which.
        name: String,
        /// Back again.
        up: bool,
    },
    /// Somebody drains a node.
    Drain(String),
    /// And lets pods on it again.
    Uncordon(String),
    /// Somebody evicts what is on a node and does not cordon it.
    Empty(String),
    /// The StatefulSet controller stands still for so long.
    FreezeControllers(Duration),
    /// Leadership goes to this member, by an election that nobody asked for.
    Elect(Place),
    /// A member wants to lead.
    Priority(Place, i32),
    /// Members of a StatefulSet's quorum unseal themselves when they start, as they do unless this says otherwise; or they stay sealed
    /// until somebody unseals them.
    AutoUnseal(Subject, bool),
    /// A person unseals a member.
    Unseal(Place),
    /// A person sends a process something, by POST.
    Tell {
        /// Whom.
        whom: Place,
        /// Where.
        path: String,
        /// What.
        body: Value,
    },
    /// All watches break off.
    DropWatches,
    /// Watches of operators stand still: nothing comes any more, not even their end.
    StillWatches,
    /// Lists and watches of a resource, by plural and group, fail, as where the conversion webhook of its kind is away; or they work again.
    Unlistable(String, bool),
    /// Old revisions are compacted away.
    Compact,
    /// etcd is restored from a snapshot that was taken so long ago: everything is as it was then, and revisions go back with it.
    Restore(Duration),
    /// An operator process dies and is started again a little later.
    KillOperator(usize),
    /// An operator process stands still for so long.
    FreezeOperator(usize, Duration),
}

/// A pod.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub pod: String,
}
