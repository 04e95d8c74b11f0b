//! A simulated PD: an etcd quorum with a leader, and PD's own leader who follows it.
//!
//! Only what an upgrader can see or break is modelled: who is a member, who serves, who leads, how far each has applied the
//! log, priorities, and how long each change takes to show. Nothing ticks: positions are computed when asked for.

mod answers;
mod handle;

use std::collections::BTreeMap;
use std::time::Duration;

pub use handle::PdHandle;

use super::log::Log;
use super::member::{Member, candidates};
use super::{AppEvent, Context, Founding};
use crate::journal::{MemberTruth, QuorumTruth};
use crate::rng::Rng;

/// How long a quorum waits for its leader before it votes.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(3);
/// How often the leader compares priorities.
const PRIORITY_CHECK: Duration = Duration::from_mins(1);

/// PD's timers. Each carries the token of the wait that it ends; a wait that was called off leaves a token nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PdEvent {
    /// The members vote.
    Elect(u64),
    /// The leader has not heard from a majority for too long.
    StepDown(u64),
    /// The last PD leader's lease ends.
    LeaseEnds(u64),
    /// PD's leadership follows etcd's.
    Follow(u64),
    /// A transfer takes effect.
    Transfer(u64, String),
    /// Priorities are compared.
    Priority(u64),
}

/// What the quorum waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Vote(u64),
    Contact(u64),
}

/// One PD cluster.
pub(crate) struct PdCluster {
    namespace: String,
    workload: String,
    service: String,
    cluster_id: u64,
    members: BTreeMap<String, Member>,
    etcd_leader: Option<String>,
    leader: Option<String>,
    /// Until then the PD leader loads its regions and is not ready.
    loaded_at: Duration,
    term: u64,
    log: Log,
    waiting: Option<Waiting>,
    follow: u64,
    lease: u64,
    transfer: u64,
    priority: Option<u64>,
    /// Who leads stays in the lead, whatever it is asked.
    clings: bool,
    tokens: u64,
    rng: Rng,
}

impl PdCluster {
    pub fn new(founding: Founding, mut rng: Rng) -> Self {
        let mut cluster = Self {
            namespace: founding.namespace,
            workload: founding.workload,
            service: founding.service,
            cluster_id: rng.next() | 1 << 62,
            members: BTreeMap::new(),
            etcd_leader: None,
            leader: None,
            loaded_at: Duration::ZERO,
            term: 1,
            log: Log::new(10),
            waiting: None,
            follow: 0,
            lease: 0,
            transfer: 0,
            priority: None,
            clings: false,
            tokens: 0,
            rng,
        };
        for name in founding.members {
            cluster.add(&name);
        }
        cluster
    }

    fn add(&mut self, name: &str) {
        // Ids are beyond what a double can hold, as the real ones are.
        let id = self.rng.next() | 1 << 62;
        self.members.entry(name.to_owned()).or_insert_with(|| Member::new(id));
    }

    fn token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    fn serves(&self, name: &str) -> bool {
        self.members.get(name).is_some_and(Member::serves)
    }

    fn has_majority(&self) -> bool {
        let serving = self.members.values().filter(|member| member.serves()).count();
        serving > self.members.len() / 2
    }

    pub fn started(&mut self, context: &mut Context, pod: &str, version: &str) {
        if !self.members.contains_key(pod) {
            self.add(pod);
        }
        let length = self.log.length(context.now);
        let catch_up = self.rng.between(Duration::from_millis(500), Duration::from_secs(5));
        if let Some(member) = self.members.get_mut(pod) {
            member.starts(context.now, version, length, catch_up);
        }
        self.reconsider(context);
    }

    pub fn stopped(&mut self, context: &mut Context, pod: &str, graceful: bool) {
        let length = self.log.length(context.now);
        if let Some(member) = self.members.get_mut(pod) {
            member.stops(context.now, length);
        }
        if graceful && self.etcd_leader.as_deref() == Some(pod) && self.has_majority() {
            // A leader that is told to stop hands over: no election time-out passes.
            self.etcd_leader = None;
            self.leader = None;
            self.log.stop(context.now);
            self.vote_in(context, Duration::from_millis(100), Duration::from_millis(400));
        }
        self.reconsider(context);
    }

    pub fn hung(&mut self, context: &mut Context, pod: &str, hung: bool) {
        let length = self.log.length(context.now);
        let catch_up = self.rng.between(Duration::from_millis(200), Duration::from_secs(2));
        if let Some(member) = self.members.get_mut(pod) {
            member.hang(context.now, hung, length, catch_up);
        }
        self.reconsider(context);
    }

    /// This member hears nothing of the log from now on although it serves, or hears again.
    pub fn starve(&mut self, context: &Context, pod: &str, starved: bool) {
        let length = self.log.length(context.now);
        let catch_up = self.rng.between(Duration::from_millis(200), Duration::from_secs(2));
        if let Some(member) = self.members.get_mut(pod) {
            member.starve(context.now, starved, length, catch_up);
        }
    }

    /// So many entries are written each second from now on.
    pub fn busy(&mut self, context: &Context, per_second: u64) {
        self.log.pace(context.now, per_second);
    }

    /// Transfers are taken and come to nothing from now on, or are carried out again.
    pub fn cling(&mut self, clings: bool) {
        self.clings = clings;
    }

    fn vote_in(&mut self, context: &mut Context, low: Duration, high: Duration) {
        let token = self.token();
        self.waiting = Some(Waiting::Vote(token));
        let at = context.now + self.rng.between(low, high);
        context.later.push((at, AppEvent::Pd(PdEvent::Elect(token))));
    }

    /// Draws the consequences of a change of who serves.
    fn reconsider(&mut self, context: &mut Context) {
        let majority = self.has_majority();
        let led = self.etcd_leader.as_deref().is_some_and(|leader| self.serves(leader));
        match (led, majority) {
            (true, true) => self.waiting = None,
            (true, false) => {
                if !matches!(self.waiting, Some(Waiting::Contact(_))) {
                    let token = self.token();
                    self.waiting = Some(Waiting::Contact(token));
                    context.later.push((context.now + ELECTION_TIMEOUT, AppEvent::Pd(PdEvent::StepDown(token))));
                }
            }
            (false, majority) => {
                if self.etcd_leader.take().is_some() {
                    self.log.stop(context.now);
                    self.end_lease_later(context);
                }
                match self.waiting {
                    Some(Waiting::Vote(_)) if majority => {}
                    Some(Waiting::Vote(_) | Waiting::Contact(_)) | None if majority => {
                        // The first vote of a new cluster has no old leader to wait for.
                        let wait = if self.term == 1 { Duration::from_millis(300) } else { ELECTION_TIMEOUT };
                        self.vote_in(context, wait, wait + Duration::from_secs(2));
                    }
                    Some(Waiting::Vote(_) | Waiting::Contact(_)) | None => self.waiting = None,
                }
            }
        }
    }

    fn end_lease_later(&mut self, context: &mut Context) {
        self.lease = self.token();
        context.later.push((context.now + ELECTION_TIMEOUT, AppEvent::Pd(PdEvent::LeaseEnds(self.lease))));
    }

    pub fn ring(&mut self, context: &mut Context, event: &PdEvent) {
        match event {
            PdEvent::Elect(token) if self.waiting == Some(Waiting::Vote(*token)) => {
                self.waiting = None;
                let length = self.log.length(context.now);
                let candidates = candidates(self.members.iter(), context.now, length);
                if let Some(winner) = self.rng.pick(&candidates).cloned() {
                    self.lead(context, winner);
                }
                self.reconsider(context);
            }
            PdEvent::StepDown(token) if self.waiting == Some(Waiting::Contact(*token)) => {
                self.waiting = None;
                self.etcd_leader = None;
                self.leader = None;
                self.log.stop(context.now);
                self.reconsider(context);
            }
            PdEvent::LeaseEnds(token) if self.lease == *token && self.etcd_leader.is_none() => self.leader = None,
            PdEvent::Follow(token) if self.follow == *token => {
                self.leader.clone_from(&self.etcd_leader);
                self.loaded_at = context.now + self.rng.between(Duration::from_millis(500), Duration::from_secs(3));
            }
            PdEvent::Transfer(token, to) if self.transfer == *token => {
                if self.serves(to) && self.etcd_leader.is_some() && self.has_majority() {
                    self.lead(context, to.clone());
                }
            }
            PdEvent::Priority(token) if self.priority == Some(*token) => {
                self.priority = None;
                self.prefer(context);
                self.watch_priorities(context);
            }
            PdEvent::Elect(_)
            | PdEvent::StepDown(_)
            | PdEvent::LeaseEnds(_)
            | PdEvent::Follow(_)
            | PdEvent::Transfer(..)
            | PdEvent::Priority(_) => {}
        }
    }

    /// This member leads etcd from now on, and PD a moment later.
    fn lead(&mut self, context: &mut Context, name: String) {
        if self.leader.as_deref().is_some_and(|leader| !self.serves(leader)) {
            self.leader = None;
        }
        self.etcd_leader = Some(name);
        self.term += 1;
        self.log.grow(context.now);
        self.follow = self.token();
        let at = context.now + self.rng.between(Duration::from_millis(50), Duration::from_millis(400));
        context.later.push((at, AppEvent::Pd(PdEvent::Follow(self.follow))));
        self.watch_priorities(context);
    }

    /// Leadership goes to this member after the time that a transfer takes, which is returned.
    fn transfer_to(&mut self, context: &mut Context, name: &str) -> Duration {
        self.transfer = self.token();
        let takes = self.rng.between(Duration::from_millis(50), Duration::from_millis(200));
        context.later.push((context.now + takes, AppEvent::Pd(PdEvent::Transfer(self.transfer, name.to_owned()))));
        takes
    }

    /// Keeps the priority check going while priorities differ at all; equal ones never move anything.
    fn watch_priorities(&mut self, context: &mut Context) {
        if self.priority.is_none() && self.members.values().any(|member| member.priority != 0) {
            let token = self.token();
            self.priority = Some(token);
            context.later.push((context.now + PRIORITY_CHECK, AppEvent::Pd(PdEvent::Priority(token))));
        }
    }

    fn prefer(&mut self, context: &mut Context) {
        let Some(leader) = self.leader.as_ref().and_then(|name| self.members.get(name)) else { return };
        let best = self.members.iter().filter(|(_, member)| member.serves() && member.priority > leader.priority);
        if let Some(name) = best.max_by_key(|(_, member)| member.priority).map(|(name, _)| name.clone()) {
            self.transfer_to(context, &name);
        }
    }

    /// This member leads at once, if it serves and the quorum stands.
    pub fn elect(&mut self, context: &mut Context, pod: &str) {
        if self.serves(pod) && self.has_majority() {
            self.lead(context, pod.to_owned());
            self.leader = Some(pod.to_owned());
            // The follower's step has been taken here, regions included.
            self.follow = 0;
            self.loaded_at = context.now;
            self.reconsider(context);
        }
    }

    fn remove(&mut self, context: &mut Context, name: &str) -> bool {
        let removed = self.members.remove(name).is_some();
        if self.leader.as_deref() == Some(name) {
            self.leader = None;
        }
        self.reconsider(context);
        removed
    }

    /// The member that truly leads: PD's leader, as long as its process serves.
    fn true_leader(&self) -> Option<&String> {
        self.leader.as_ref().filter(|leader| self.serves(leader))
    }

    pub fn truth(&self) -> QuorumTruth {
        let leader = self.true_leader();
        QuorumTruth {
            namespace: self.namespace.clone(),
            workload: self.workload.clone(),
            members: self
                .members
                .iter()
                .map(|(name, member)| MemberTruth {
                    pod: name.clone(),
                    healthy: member.serves(),
                    leader: leader == Some(name),
                    version: member.version.clone(),
                })
                .collect(),
        }
    }
}
