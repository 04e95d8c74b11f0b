//! What is wanted, after validation.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{approval::Mode, path::Path, version::Version, window::Window};

/// A version and the image that brings it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What the running process shall say it is.
    pub version: Version,
    /// What the pod template shall name.
    pub image: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.version.fmt(f)
    }
}

/// How long each stage of replacing a member may take, counted from that stage's own start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// From the call until leadership is seen elsewhere.
    pub handover: Duration,
    /// From the permit until the new pod is Ready.
    pub ready: Duration,
    /// From Ready until the member is healthy.
    pub health: Duration,
    /// From healthy until its log has caught up.
    pub sync: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            handover: Duration::from_secs(30),
            ready: Duration::from_mins(5),
            health: Duration::from_mins(2),
            sync: Duration::from_mins(2),
        }
    }
}

/// What makes an upgrade begin. The words are those of the custom resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::VariantNames)]
pub enum Trigger {
    /// Another version or image in the custom resource: the template is ours to write.
    #[default]
    Version,
    /// Another template: Helm or Git writes it, under OnDelete also while nothing changes, and we only replace the pods (X7).
    Template,
}

/// Who goes first. The words are those of the custom resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
pub enum Order {
    /// Highest ordinal first, held by the StatefulSet's partition.
    ReverseOrdinal,
    /// Followers first, from the highest ordinal down, and the leader last, so that leadership moves once; each pod deleted by us under
    /// OnDelete.
    LeaderLast,
}

/// What is done by itself when a stage takes too long. The words are those of the custom resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::VariantNames)]
pub enum OnDeadline {
    /// It stays as it is, and a person is called.
    #[default]
    Hold,
    /// It goes back to where it came from, where that is no downgrade, and a person is called. The same target is not tried again before that
    /// person says retry.
    RollBack,
}

/// What a person asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "switches that have nothing to do with each other")]
pub struct Want {
    /// Where to go.
    pub target: Target,
    /// Which ways the system supports (H20).
    pub path: Path,
    /// Who goes first; by the StatefulSet's own strategy where nobody says (H7).
    pub order: Option<Order>,
    /// The system can be told who shall lead next. One that can't is only asked to step down, and whoever leads then is read back (H16).
    pub names_target: bool,
    /// Nothing new is begun, and a permit that stands is taken back (H43).
    pub paused: bool,
    /// Going to an older version is all right (H15).
    pub allow_downgrade: bool,
    /// Taking down a quorum that can spare no member is all right (H14).
    pub accept_downtime: bool,
    /// Managers of fields that were told to leave the image and the strategy alone, and still own them (H39).
    pub accept_owners: BTreeSet<String>,
    /// Members without a vote are meant to be there, and stay as they are.
    pub accept_non_voters: bool,
    /// How long stages may take.
    pub deadlines: Deadlines,
    /// How long a snapshot before an upgrade may take; none where nobody wants one.
    pub snapshot: Option<Duration>,
    /// How long a node may take to pull the new image before anybody stops; none where nobody wants it pulled ahead.
    pub pre_pull: Option<Duration>,
    /// How many log entries a replaced member may be behind the leader and count as caught up.
    pub max_lag: u64,
    /// How long a replaced member must have been well before the next one goes, and before it may lead.
    pub soak: Duration,
    /// When members may be taken down; none for at any time.
    pub windows: Vec<Window>,
    /// What a person must approve first.
    pub approval: Mode,
    /// Whether the template is ours to write.
    pub trigger: Trigger,
    /// What is done by itself when a stage takes too long.
    pub on_deadline: OnDeadline,
    /// Gates that a person set aside, and until when (H43). [`crate::rolling::gates::list::overridable`] says which ones can be.
    pub overrides: BTreeMap<String, Timestamp>,
}
