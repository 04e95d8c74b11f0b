//! A simulated OpenBao: members that are sealed or take part in Raft, and the one of them that is active.
//!
//! Only what an upgrader can see or break is modelled: who runs, who is unsealed, who leads, whom the others name as the leader, how far
//! each has applied the log, and how long each change takes to show. A vote makes a Raft leader; it is active a moment later.
//! Nothing ticks: positions are computed when asked for.

mod answers;
mod autopilot;
mod leading;

use std::collections::BTreeMap;
use std::time::Duration;

use super::log::Log;
use super::member::{Member, candidates};
use super::{AppEvent, Context, Founding, Labels};
use crate::journal::{MemberTruth, QuorumTruth};
use crate::rng::{self, Rng};
use autopilot::Echo;
use leading::Lock;

pub use answers::ROOT_TOKEN;

/// Entries of a log in which nobody has written anything.
const FOUNDING_ENTRIES: u64 = 30;
/// How long a member waits for its leader before it votes, at least; at most twice as long.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a leader goes on without a majority.
const LEADER_LEASE: Duration = Duration::from_millis(2500);
/// How often a standby looks who leads.
const LEADER_CHECK: Duration = Duration::from_millis(2500);
/// How often a member whose key service fails tries to unseal again.
const UNSEAL_AGAIN: Duration = Duration::from_secs(5);
/// How long a member that has joined must be well before it votes.
const STABILISATION: Duration = Duration::from_secs(10);

/// OpenBao's timers. A token ends the wait that it was made for; a wait that was called off leaves a token nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BaoEvent {
    /// The members vote.
    Elect(u64),
    /// The leader has not heard from a majority for too long.
    StepDown(u64),
    /// The Raft leader is ready to be the active one.
    Activate(u64),
    /// A member's process, by the number of its starts, unseals itself.
    Unseal(String, u64),
    /// A member that has joined may vote from now on.
    Promote(String),
}

/// What the quorum waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Vote(u64),
    Contact(u64),
}

/// A process, sealed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    Down,
    Up,
    Hung,
}

/// A member and its process.
struct Bao {
    node_id: String,
    voter: bool,
    process: Process,
    starts: u64,
    /// It has been unsealed once, and so has the quorum's data.
    initialized: bool,
    /// Its part in Raft, from its unsealing on.
    raft: Member,
    /// The leadership whose holder it has in mind.
    remembers: u64,
    rests_until: Duration,
    echo: Echo,
}

impl Bao {
    fn serves(&self) -> bool {
        self.raft.serves()
    }

    fn answers(&self) -> bool {
        self.process == Process::Up
    }

    fn sealed(&self) -> bool {
        !self.raft.runs()
    }
}

/// One OpenBao cluster, its members by the names of their pods.
pub(crate) struct BaoCluster {
    namespace: String,
    workload: String,
    service: String,
    cluster_id: String,
    cluster_name: String,
    members: BTreeMap<String, Bao>,
    /// A member that starts unseals itself.
    unseals_itself: bool,
    /// Who is active stays so, whatever it is asked.
    clings: bool,
    raft_leader: Option<String>,
    active: Option<String>,
    active_since: Duration,
    /// The length of the log when the present term began.
    term_began: u64,
    lock: Option<Lock>,
    term: u64,
    log: Log,
    /// Tokens and when they expire.
    leases: BTreeMap<String, Duration>,
    requests: u64,
    waiting: Option<Waiting>,
    activation: u64,
    tokens: u64,
    rng: Rng,
}

fn raft<'a>((name, member): (&'a String, &'a Bao)) -> (&'a String, &'a Member) {
    (name, &member.raft)
}

/// A UUID made of two numbers.
fn uuid(high: u64, low: u64) -> String {
    let (high, low) = (format!("{high:016x}"), format!("{low:016x}"));
    format!("{}-{}-{}-{}-{}", &high[..8], &high[8..12], &high[12..], &low[..4], &low[4..])
}

impl BaoCluster {
    pub fn new(founding: Founding, mut rng: Rng) -> Self {
        let id = rng.next();
        let mut cluster = Self {
            namespace: founding.namespace,
            workload: founding.workload,
            service: founding.service,
            cluster_id: uuid(id, rng::hash(id.to_be_bytes())),
            cluster_name: format!("vault-cluster-{:08x}", id & 0xffff_ffff),
            members: BTreeMap::new(),
            unseals_itself: true,
            clings: false,
            raft_leader: None,
            active: None,
            active_since: Duration::ZERO,
            term_began: 0,
            lock: None,
            term: 1,
            log: Log::new(FOUNDING_ENTRIES),
            leases: BTreeMap::new(),
            requests: 0,
            waiting: None,
            activation: 0,
            tokens: 0,
            rng,
        };
        for name in founding.members {
            cluster.add(&name, true);
        }
        cluster
    }

    fn add(&mut self, name: &str, voter: bool) {
        // Charts leave a node's ID to chance.
        let id = self.rng.next();
        let member = Bao {
            node_id: uuid(id, rng::hash(name.bytes())),
            voter,
            process: Process::Down,
            starts: 0,
            initialized: false,
            raft: Member::new(id),
            remembers: 0,
            rests_until: Duration::ZERO,
            echo: Echo::default(),
        };
        self.members.insert(name.to_owned(), member);
    }

    fn token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    fn serves(&self, name: &str) -> bool {
        self.members.get(name).is_some_and(Bao::serves)
    }

    fn voters(&self) -> impl Iterator<Item = (&String, &Bao)> {
        self.members.iter().filter(|(_, member)| member.voter)
    }

    fn has_majority(&self) -> bool {
        let serving = self.voters().filter(|(_, member)| member.serves()).count();
        serving > self.voters().count() / 2
    }

    pub fn started(&mut self, context: &mut Context, pod: &str, version: &str) {
        if !self.members.contains_key(pod) {
            self.add(pod, false);
        }
        if let Some(member) = self.members.get_mut(pod) {
            member.process = Process::Up;
            member.starts += 1;
            version.clone_into(&mut member.raft.version);
        }
        self.unseal_later(context, pod, Duration::from_millis(1500));
    }

    /// A member unseals itself within this time, if members do that at all.
    fn unseal_later(&mut self, context: &mut Context, pod: &str, within: Duration) {
        let Some(member) = self.members.get(pod).filter(|member| self.unseals_itself && member.sealed()) else {
            return;
        };
        let event = BaoEvent::Unseal(pod.to_owned(), member.starts);
        let at = context.now + self.rng.between(Duration::from_millis(300), within);
        context.later.push((at, AppEvent::Openbao(event)));
    }

    /// Members unseal themselves from now on when they start, those that wait for it soon; or they don't any more.
    pub fn auto_unseal(&mut self, context: &mut Context, works: bool) {
        self.unseals_itself = works;
        let waiting: Vec<String> =
            self.members.iter().filter(|(_, member)| member.answers()).map(|(name, _)| name.clone()).collect();
        for name in waiting {
            self.unseal_later(context, &name, UNSEAL_AGAIN);
        }
    }

    /// A member is unsealed and takes part in Raft from now on.
    pub fn unseal(&mut self, context: &mut Context, pod: &str) {
        let catch_up = self.rng.between(Duration::from_millis(500), Duration::from_secs(5));
        let length = self.log.length(context.now);
        let Some(member) = self.members.get_mut(pod).filter(|member| member.answers() && member.sealed()) else {
            return;
        };
        member.initialized = true;
        let version = member.raft.version.clone();
        member.raft.starts(context.now, &version, length, catch_up);
        if !member.voter {
            let at = context.now + catch_up + STABILISATION;
            context.later.push((at, AppEvent::Openbao(BaoEvent::Promote(pod.to_owned()))));
        }
        self.hears(context, pod);
        self.reconsider(context);
    }

    /// A member hears of the leader, and the leader of it, from the next time on that it looks.
    fn hears(&mut self, context: &Context, pod: &str) {
        let wait = self.rng.between(Duration::ZERO, LEADER_CHECK);
        let advertised = self.lock.as_ref().filter(|lock| lock.advertised).map_or(0, |lock| lock.term);
        if let Some(member) = self.members.get_mut(pod) {
            member.remembers = advertised;
            member.echo.begins(context.now + wait);
        }
    }

    /// A member is not heard of any more. To be called while it still serves.
    fn falls_silent(&mut self, now: Duration, pod: &str) {
        if let Some(last) = self.members.get(pod).map(|member| self.last_echo(member, now))
            && let Some(member) = self.members.get_mut(pod)
        {
            member.echo.ends(last);
        }
    }

    pub fn stopped(&mut self, context: &mut Context, pod: &str, graceful: bool) {
        self.falls_silent(context.now, pod);
        let length = self.log.length(context.now);
        if let Some(member) = self.members.get_mut(pod) {
            member.raft.stops(context.now, length);
            member.process = Process::Down;
            member.remembers = 0;
            member.rests_until = Duration::ZERO;
        }
        if self.raft_leader.as_deref() == Some(pod) {
            self.raft_leader = None;
            self.active = None;
            self.log.stop(context.now);
            if graceful {
                // A leader that is told to stop hands over: no election time-out passes.
                self.give_up_lock();
                self.hand_over(context);
            }
        }
        self.reconsider(context);
    }

    pub fn hung(&mut self, context: &mut Context, pod: &str, hung: bool) {
        if hung {
            self.falls_silent(context.now, pod);
        }
        let catch_up = self.rng.between(Duration::from_millis(200), Duration::from_secs(2));
        let length = self.log.length(context.now);
        let (from, to) = if hung { (Process::Up, Process::Hung) } else { (Process::Hung, Process::Up) };
        if let Some(member) = self.members.get_mut(pod).filter(|member| member.process == from) {
            member.process = to;
            member.raft.hang(context.now, hung, length, catch_up);
            if !hung {
                self.hears(context, pod);
                self.unseal_later(context, pod, UNSEAL_AGAIN);
            }
        }
        self.reconsider(context);
    }

    /// This member hears nothing of the log from now on although it serves, or hears again.
    pub fn starve(&mut self, context: &Context, pod: &str, starved: bool) {
        let length = self.log.length(context.now);
        let catch_up = self.rng.between(Duration::from_millis(200), Duration::from_secs(2));
        if let Some(member) = self.members.get_mut(pod) {
            member.raft.starve(context.now, starved, length, catch_up);
        }
    }

    /// So many entries are written each second from now on.
    pub fn busy(&mut self, context: &Context, per_second: u64) {
        self.log.pace(context.now, per_second);
    }

    /// Requests to step down are taken and come to nothing from now on, or are carried out again.
    pub fn cling(&mut self, clings: bool) {
        self.clings = clings;
    }

    fn vote_in(&mut self, context: &mut Context, low: Duration, high: Duration) {
        let token = self.token();
        self.waiting = Some(Waiting::Vote(token));
        let at = context.now + self.rng.between(low, high);
        context.later.push((at, AppEvent::Openbao(BaoEvent::Elect(token))));
    }

    /// Draws the consequences of a change of who serves.
    fn reconsider(&mut self, context: &mut Context) {
        let led = self.raft_leader.as_deref().is_some_and(|leader| self.serves(leader));
        match (led, self.has_majority()) {
            (true, true) => {
                self.waiting = None;
                if self.active.is_some() {
                    self.log.grow(context.now);
                } else if self.activation == 0 {
                    // It could not when its time came.
                    self.activate_at(context, Duration::ZERO);
                }
            }
            (true, false) => {
                if !matches!(self.waiting, Some(Waiting::Contact(_))) {
                    let token = self.token();
                    self.waiting = Some(Waiting::Contact(token));
                    context.later.push((context.now + LEADER_LEASE, AppEvent::Openbao(BaoEvent::StepDown(token))));
                }
            }
            (false, true) => {
                self.log.stop(context.now);
                if !matches!(self.waiting, Some(Waiting::Vote(_))) {
                    // The first vote of a new cluster has no old leader to wait for.
                    let wait = if self.term == 1 { Duration::from_millis(500) } else { ELECTION_TIMEOUT };
                    self.vote_in(context, wait, wait * 2);
                }
            }
            (false, false) => {
                // Nobody can win. The next unsealing or return is another chance.
                self.log.stop(context.now);
                self.waiting = None;
            }
        }
    }

    pub fn ring(&mut self, context: &mut Context, event: &BaoEvent) {
        match event {
            BaoEvent::Elect(token) if self.waiting == Some(Waiting::Vote(*token)) => {
                self.waiting = None;
                let length = self.log.length(context.now);
                let rested = |(_, member): &(&String, &Bao)| member.rests_until <= context.now;
                let mut able = candidates(self.voters().filter(rested).map(raft), context.now, length);
                if able.is_empty() {
                    able = candidates(self.voters().map(raft), context.now, length);
                }
                if let Some(winner) = self.rng.pick(&able).cloned() {
                    self.win(context, winner);
                }
                self.reconsider(context);
            }
            BaoEvent::StepDown(token) if self.waiting == Some(Waiting::Contact(*token)) => {
                self.waiting = None;
                self.raft_leader = None;
                self.active = None;
                self.log.stop(context.now);
            }
            BaoEvent::Activate(token) if self.activation == *token => {
                self.activation = 0;
                if self.has_majority()
                    && let Some(leader) = self.raft_leader.clone().filter(|leader| self.serves(leader))
                {
                    self.activate(context, leader);
                }
            }
            BaoEvent::Unseal(pod, start) => {
                if self.unseals_itself && self.members.get(pod).is_some_and(|member| member.starts == *start) {
                    self.unseal(context, pod);
                }
            }
            BaoEvent::Promote(pod) => {
                if let Some(member) = self.members.get_mut(pod).filter(|member| member.serves()) {
                    member.voter = true;
                    self.reconsider(context);
                }
            }
            BaoEvent::Elect(_) | BaoEvent::StepDown(_) | BaoEvent::Activate(_) => {}
        }
    }

    /// Whether the readiness probe of the usual chart succeeds.
    pub fn is_ready(&self, pod: &str) -> bool {
        self.members.get(pod).is_some_and(|member| member.process != Process::Down && !member.sealed())
    }

    /// What each process says of itself on its pod.
    pub fn labels(&self) -> Vec<(String, Labels)> {
        let of = |(name, member): (&String, &Bao)| {
            let labels = Labels::from([
                ("openbao-active", (self.active.as_ref() == Some(name)).to_string()),
                ("openbao-initialized", member.initialized.to_string()),
                ("openbao-perf-standby", false.to_string()),
                ("openbao-sealed", member.sealed().to_string()),
                ("openbao-version", member.raft.version.trim_start_matches('v').to_owned()),
            ]);
            (name.clone(), labels)
        };
        self.members.iter().filter(|(_, member)| member.answers()).map(of).collect()
    }

    pub fn truth(&self) -> QuorumTruth {
        let leader = self.true_leader();
        let member = |(name, member): (&String, &Bao)| MemberTruth {
            pod: name.clone(),
            healthy: member.serves(),
            leader: leader == Some(name),
            version: member.raft.version.clone(),
        };
        QuorumTruth {
            namespace: self.namespace.clone(),
            workload: self.workload.clone(),
            members: self.voters().map(member).collect(),
        }
    }
}
