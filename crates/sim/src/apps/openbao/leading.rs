//! Who leads: from a vote that is won to the active member, back again, and what the others know of it.

use std::time::Duration;

use super::super::{AppEvent, Context};
use super::autopilot::Echo;
use super::{BaoCluster, BaoEvent};

/// How long whoever stepped down stays out of it.
const REST: Duration = Duration::from_secs(10);

/// The lock in the storage that says who leads. It outlives the leadership.
pub(super) struct Lock {
    pub term: u64,
    pub holder: String,
    /// The holder's address stands next to it: from its activation until it gives up in good order.
    pub advertised: bool,
}

impl BaoCluster {
    /// Leadership is given to one of the others, if they can take it.
    pub(super) fn hand_over(&mut self, context: &mut Context) {
        if self.has_majority() {
            self.vote_in(context, Duration::from_millis(200), Duration::from_millis(500));
        }
    }

    pub(super) fn give_up_lock(&mut self) {
        if let Some(lock) = &mut self.lock {
            lock.advertised = false;
        }
    }

    /// This member leads Raft from now on, and is active once it has loaded everything.
    pub(super) fn win(&mut self, context: &mut Context, name: String) {
        self.term += 1;
        self.active = None;
        let rests_until = self.members.get(&name).map_or(Duration::ZERO, |member| member.rests_until);
        if rests_until <= context.now {
            // From here on the others know that the old leader is none, and don't know the new one.
            self.lock = Some(Lock { term: self.term, holder: name.clone(), advertised: false });
        }
        self.raft_leader = Some(name);
        self.activate_at(context, rests_until);
    }

    /// The Raft leader begins to load everything at this time, or now.
    pub(super) fn activate_at(&mut self, context: &mut Context, begins: Duration) {
        self.activation = self.token();
        let takes = self.rng.between(Duration::from_millis(800), Duration::from_millis(1300));
        let event = BaoEvent::Activate(self.activation);
        context.later.push((begins.max(context.now) + takes, AppEvent::Openbao(event)));
    }

    pub(super) fn activate(&mut self, context: &mut Context, name: String) {
        self.activation = 0;
        self.lock = Some(Lock { term: self.term, holder: name.clone(), advertised: true });
        self.active_since = context.now;
        self.term_began = self.log.length(context.now);
        self.log.grow(context.now);
        let others: Vec<String> = self.members.keys().filter(|other| **other != name).cloned().collect();
        self.active = Some(name);
        for other in others {
            let serves = self.serves(&other);
            if let Some(member) = self.members.get_mut(&other) {
                // A new leader counts from its own beginning, for those whom it has not heard, too.
                member.echo = Echo::new(context.now);
            }
            if serves {
                self.hears(context, &other);
            }
        }
    }

    /// The active member gives up. It stays out of it for a while, so that another one comes first.
    pub(super) fn step_down(&mut self, context: &mut Context) {
        let Some(pod) = self.active.take() else { return };
        self.give_up_lock();
        self.log.stop(context.now);
        if let Some(member) = self.members.get_mut(&pod) {
            member.rests_until = context.now + REST;
        }
        if self.voters().any(|(name, member)| *name != pod && member.serves()) {
            self.raft_leader = None;
            self.hand_over(context);
        } else {
            // Nobody else can lead Raft.
            self.activate_at(context, context.now + REST);
        }
        self.reconsider(context);
    }

    /// This member leads at once, if it serves and the quorum stands.
    pub fn elect(&mut self, context: &mut Context, pod: &str) {
        if self.has_majority() && self.voters().any(|(name, member)| name == pod && member.serves()) {
            self.win(context, pod.to_owned());
            self.activate(context, pod.to_owned());
            self.reconsider(context);
        }
    }

    /// The member that truly leads: the active one, as long as its process serves.
    pub(super) fn true_leader(&self) -> Option<&String> {
        self.active.as_ref().filter(|active| self.serves(active))
    }

    /// Whom a standby takes for the active member: the holder of the lock, as long as its address is there or in mind.
    pub(super) fn named(&self, pod: &str) -> Option<&String> {
        let remembers = self.members.get(pod).map_or(0, |member| member.remembers);
        let lock = self.lock.as_ref().filter(|lock| lock.holder != pod)?;
        (lock.advertised || remembers == lock.term).then_some(&lock.holder)
    }
}
