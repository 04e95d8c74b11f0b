//! A simulated etcd: voters and learners, a leader, and the version of the cluster, below which no process starts.
//!
//! Only what an upgrader can see or break is modelled: who is a member, who serves, who leads, how far each has applied the log, and
//! how long each change takes to show. Nothing ticks: positions are computed when asked for.

mod answers;
mod auth;

use std::collections::BTreeMap;
use std::time::Duration;

use super::log::Log;
use super::member::{Member, candidates};
use super::{AppEvent, Context, Founding, Minor, minor};
use crate::journal::{MemberTruth, QuorumTruth};
use crate::rng::Rng;

/// Entries of a log in which nobody has written anything.
const FOUNDING_ENTRIES: u64 = 8;
/// How long a member waits for its leader before it votes, at least; at most twice as long.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(1);

/// etcd's timers. Each carries the token of the wait that it ends; a wait that was called off leaves a token nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EtcdEvent {
    /// The members vote.
    Elect(u64),
    /// The leader has not heard from a majority for too long.
    StepDown(u64),
    /// A transfer takes effect.
    Transfer(u64, String),
}

/// What the quorum waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Vote(u64),
    Contact(u64),
}

/// A member and what etcd alone knows of one.
struct Etcd {
    process: Member,
    learner: bool,
    /// It has run once, and told its name and its URLs.
    started: bool,
    /// From then on it knows who leads: a process that has only just started has heard of nobody.
    hears_at: Duration,
    /// The tokens that its process remembers.
    tokens: BTreeMap<String, auth::Token>,
}

impl Etcd {
    fn serves(&self) -> bool {
        self.process.serves()
    }

    fn minor(&self) -> Option<Minor> {
        minor(&self.process.version)
    }
}

/// One etcd cluster, its members by the names of their pods.
pub(crate) struct EtcdCluster {
    namespace: String,
    workload: String,
    service: String,
    cluster_id: u64,
    members: BTreeMap<String, Etcd>,
    /// Whom the members follow. One that is gone is followed until the next vote.
    leader: Option<String>,
    /// The lowest minor release of all members, once all have been seen with one leader. It never falls.
    version: Option<Minor>,
    term: u64,
    log: Log,
    waiting: Option<Waiting>,
    transfer: u64,
    /// Who leads stays in the lead, whatever it is asked.
    clings: bool,
    tokens: u64,
    auth: auth::Auth,
    rng: Rng,
}

impl EtcdCluster {
    pub fn new(founding: Founding, mut rng: Rng) -> Self {
        let mut cluster = Self {
            namespace: founding.namespace,
            workload: founding.workload,
            service: founding.service,
            cluster_id: rng.next() | 1 << 62,
            members: BTreeMap::new(),
            leader: None,
            version: None,
            term: 1,
            log: Log::new(0),
            waiting: None,
            transfer: 0,
            clings: false,
            tokens: 0,
            auth: auth::Auth::default(),
            rng,
        };
        for name in founding.members {
            // Founding members are listed with their names before they have ever run.
            cluster.add(&name, false, true);
        }
        cluster
    }

    fn add(&mut self, name: &str, learner: bool, started: bool) {
        // Ids are beyond what a double can hold, as the real ones are.
        let process = Member::new(self.rng.next() | 1 << 62);
        self.members.insert(
            name.to_owned(),
            Etcd { process, learner, started, hears_at: Duration::ZERO, tokens: BTreeMap::new() },
        );
    }

    fn token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    fn serves(&self, name: &str) -> bool {
        self.members.get(name).is_some_and(Etcd::serves)
    }

    fn voters(&self) -> impl Iterator<Item = (&String, &Etcd)> {
        self.members.iter().filter(|(_, member)| !member.learner)
    }

    fn has_majority(&self) -> bool {
        let serving = self.voters().filter(|(_, member)| member.serves()).count();
        serving > self.voters().count() / 2
    }

    /// Why a process of this version ends at once in this pod.
    pub fn refusal(&self, pod: &str, version: &str) -> Option<String> {
        if !self.members.contains_key(pod) {
            return Some(format!("{pod} was never added to the cluster"));
        }
        let ((major, cluster), own) = (self.version?, minor(version)?);
        if own < (major, cluster) {
            return Some(format!("server version {version} is lower than cluster version {major}.{cluster}"));
        }
        (own > (major, cluster + 1)).then(|| format!("server version {version} can't read data of {major}.{cluster}"))
    }

    pub fn started(&mut self, context: &mut Context, pod: &str, version: &str) {
        let length = self.log.length(context.now);
        let catch_up = self.rng.between(Duration::from_millis(500), Duration::from_secs(5));
        let hears = self.rng.between(Duration::from_millis(50), Duration::from_millis(500));
        if let Some(member) = self.members.get_mut(pod) {
            member.started = true;
            member.hears_at = context.now + hears;
            member.process.starts(context.now, version, length, catch_up);
        }
        self.reconsider(context);
    }

    pub fn stopped(&mut self, context: &mut Context, pod: &str, graceful: bool) {
        let length = self.log.length(context.now);
        if let Some(member) = self.members.get_mut(pod) {
            member.process.stops(context.now, length);
            member.tokens.clear();
        }
        if graceful && self.leader.as_deref() == Some(pod) && self.has_majority() {
            // A leader that is told to stop hands over: no election time-out passes.
            self.vote_in(context, Duration::from_millis(50), Duration::from_millis(300));
        }
        self.reconsider(context);
    }

    pub fn hung(&mut self, context: &mut Context, pod: &str, hung: bool) {
        let length = self.log.length(context.now);
        let catch_up = self.rng.between(Duration::from_millis(200), Duration::from_secs(2));
        if let Some(member) = self.members.get_mut(pod) {
            member.process.hang(context.now, hung, length, catch_up);
        }
        self.reconsider(context);
    }

    /// This member hears nothing of the log from now on although it serves, or hears again.
    pub fn starve(&mut self, context: &Context, pod: &str, starved: bool) {
        let length = self.log.length(context.now);
        let catch_up = self.rng.between(Duration::from_millis(200), Duration::from_secs(2));
        if let Some(member) = self.members.get_mut(pod) {
            member.process.starve(context.now, starved, length, catch_up);
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
        context.later.push((at, AppEvent::Etcd(EtcdEvent::Elect(token))));
    }

    /// Draws the consequences of a change of who serves.
    fn reconsider(&mut self, context: &mut Context) {
        let led = self.leader.as_deref().is_some_and(|leader| self.serves(leader));
        match (led, self.has_majority()) {
            (true, true) => {
                self.waiting = None;
                self.raise_version();
            }
            (true, false) => {
                if !matches!(self.waiting, Some(Waiting::Contact(_))) {
                    let token = self.token();
                    self.waiting = Some(Waiting::Contact(token));
                    context.later.push((context.now + ELECTION_TIMEOUT, AppEvent::Etcd(EtcdEvent::StepDown(token))));
                }
            }
            (false, _) => {
                self.log.stop(context.now);
                if !matches!(self.waiting, Some(Waiting::Vote(_))) {
                    self.vote_in(context, ELECTION_TIMEOUT, ELECTION_TIMEOUT * 2);
                }
            }
        }
    }

    /// The leader asks everybody for their versions; the lowest becomes the cluster's.
    fn raise_version(&mut self) {
        let all = self.members.values().map(|member| member.minor().filter(|_| member.serves()));
        let lowest: Option<Vec<Minor>> = all.collect();
        self.version = self.version.max(lowest.and_then(|versions| versions.into_iter().min()));
    }

    pub fn ring(&mut self, context: &mut Context, event: &EtcdEvent) {
        match event {
            EtcdEvent::Elect(token) if self.waiting == Some(Waiting::Vote(*token)) => {
                self.waiting = None;
                if !self.has_majority() {
                    // Nobody can win, and nobody follows the old one any more. The next start or return is another chance.
                    self.leader = None;
                    return;
                }
                let length = self.log.length(context.now);
                let voters = self.voters().map(|(name, member)| (name, &member.process));
                let candidates = candidates(voters, context.now, length);
                if let Some(winner) = self.rng.pick(&candidates).cloned() {
                    self.lead(context, winner);
                }
                self.reconsider(context);
            }
            EtcdEvent::StepDown(token) if self.waiting == Some(Waiting::Contact(*token)) => {
                self.waiting = None;
                self.leader = None;
                self.log.stop(context.now);
            }
            EtcdEvent::Transfer(token, to) if self.transfer == *token => {
                if self.serves(to) && self.true_leader().is_some() && self.has_majority() {
                    self.lead(context, to.clone());
                    self.reconsider(context);
                }
            }
            EtcdEvent::Elect(_) | EtcdEvent::StepDown(_) | EtcdEvent::Transfer(..) => {}
        }
    }

    fn lead(&mut self, context: &mut Context, name: String) {
        if self.log.length(context.now) == 0 {
            // The members themselves, and what they tell of themselves.
            self.log = Log::new(FOUNDING_ENTRIES);
        }
        self.leader = Some(name);
        self.term += 1;
        self.log.grow(context.now);
    }

    /// This member leads at once, if it serves and the quorum stands.
    pub fn elect(&mut self, context: &mut Context, pod: &str) {
        if self.serves(pod) && self.has_majority() && self.voters().any(|(name, _)| name == pod) {
            self.lead(context, pod.to_owned());
            self.reconsider(context);
        }
    }

    /// Leadership goes to this member after the time that a transfer takes, which is returned.
    fn transfer_to(&mut self, context: &mut Context, name: &str) -> Duration {
        self.transfer = self.token();
        let takes = self.rng.between(Duration::from_millis(50), Duration::from_millis(200));
        let event = EtcdEvent::Transfer(self.transfer, name.to_owned());
        context.later.push((context.now + takes, AppEvent::Etcd(event)));
        takes
    }

    fn remove(&mut self, context: &mut Context, name: &str) {
        self.members.remove(name);
        self.reconsider(context);
    }

    /// The member that truly leads: whom all follow, as long as its process serves.
    fn true_leader(&self) -> Option<&String> {
        self.leader.as_ref().filter(|leader| self.serves(leader))
    }

    pub fn truth(&self) -> QuorumTruth {
        let leader = self.true_leader();
        let member = |(name, member): (&String, &Etcd)| MemberTruth {
            pod: name.clone(),
            healthy: member.serves(),
            leader: leader == Some(name),
            version: member.process.version.clone(),
        };
        QuorumTruth {
            namespace: self.namespace.clone(),
            workload: self.workload.clone(),
            members: self.voters().map(member).collect(),
        }
    }
}
