//! A scenario's grip on one simulated PD cluster.

use super::super::{App, Context};
use super::PdCluster;
use crate::world::World;
use crate::world::queue::Key;

/// Looks into and disturbs one PD cluster from outside. Each disturbance leaves a note in the journal.
#[derive(Clone)]
pub struct PdHandle {
    world: World,
    key: Key,
}

impl PdHandle {
    pub(crate) fn new(world: World, key: Key) -> Self {
        Self { world, key }
    }

    fn with<T>(&self, note: Option<String>, act: impl FnOnce(&mut PdCluster, &mut Context) -> T) -> Option<T> {
        let with = |app: &mut App, context: &mut Context| match app {
            App::Pd(cluster) => Some(act(cluster, context)),
            App::Etcd(_) | App::Openbao(_) => None,
        };
        self.world.with_app(&self.key, note, with).flatten()
    }

    /// The member that truly leads.
    pub fn leader(&self) -> Option<String> {
        self.with(None, |cluster, _| cluster.true_leader().cloned()).flatten()
    }

    /// Gives a member a priority, as an administrator would.
    pub fn set_leader_priority(&self, pod: &str, priority: i64) {
        self.with(Some(format!("leader priority of {pod} set to {priority}")), |cluster, context| {
            if let Some(member) = cluster.members.get_mut(pod) {
                member.priority = priority;
            }
            cluster.watch_priorities(context);
        });
    }

    /// Makes a member lead at once, if it serves and the quorum stands.
    pub fn force_leader(&self, pod: &str) {
        self.with(Some(format!("leadership forced to {pod}")), |cluster, context| cluster.elect(context, pod));
    }

    /// Removes a member from the quorum.
    pub fn remove_member(&self, name: &str) {
        self.with(Some(format!("member {name} removed")), |cluster, context| cluster.remove(context, name));
    }

    /// Adds a member that no process backs, as a failed join leaves behind.
    pub fn add_ghost_member(&self, name: &str) {
        self.with(Some(format!("member {name} added without a process")), |cluster, context| {
            cluster.add(name);
            cluster.reconsider(context);
        });
    }
}
