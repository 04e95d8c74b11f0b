//! The witness: asks every member many times a second who leads, and judges afterwards what truly happened, together with the API
//! server's audit log. The judging is pure.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use crate::{
    audit::Ending,
    client::{Access, Client, Failure, Status},
};

/// How often each member is asked.
const PERIOD: Duration = Duration::from_millis(80);
/// How long its answer is waited for.
const ANSWER: Duration = Duration::from_millis(500);
/// A member that refuses no connection counts as healthy until it has given no good answer for so long: answers come late on a busy
/// machine, and during a hand-over the members know no leader for some milliseconds. What is shorter shows in the load's stalls.
const GRACE: SignedDuration = SignedDuration::from_secs(3);
/// What is over sooner than this is not told apart from the time that it takes to learn of a new pod's address: one that is ready
/// at once was up before it was known.
const RESOLUTION: SignedDuration = SignedDuration::from_millis(400);
/// When the witness itself got nothing done for so long, it can't tell who was healthy meanwhile.
const BLIND: SignedDuration = SignedDuration::from_millis(400);

/// A place in the quorum: the pod's name, and its address while it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The pod.
    pub pod: String,
    /// Where its member answers; none while there is no pod or it has no address.
    pub address: Option<SocketAddr>,
}

/// What a member said at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "said")]
pub enum Said {
    /// It answered.
    Status {
        /// Its own ID.
        member: u64,
        /// Whom it takes for the leader; 0 for nobody.
        leader: u64,
        /// The term that it is in.
        term: u64,
    },
    /// It took the connection, or may have, and gave no answer that can be read.
    Nothing {
        /// What went wrong.
        why: String,
    },
    /// Nobody took the connection, or there is no pod.
    Absent {
        /// What went wrong.
        why: String,
    },
}

/// One question to one member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// When it was over.
    pub at: Timestamp,
    /// The pod.
    pub pod: String,
    /// What was said.
    #[serde(flatten)]
    pub said: Said,
}

/// A witness at work.
pub struct Witness {
    samples: Arc<Mutex<Vec<Sample>>>,
    tasks: JoinSet<()>,
}

impl Witness {
    /// Starts to ask. The seats may change; their number and names do not.
    pub fn start(access: &Access, seats: &watch::Receiver<Vec<Seat>>) -> Self {
        let samples = Arc::<Mutex<Vec<Sample>>>::default();
        let mut tasks = JoinSet::new();
        let names: Vec<String> = seats.borrow().iter().map(|seat| seat.pod.clone()).collect();
        for pod in names {
            tasks.spawn(ask(access.client(ANSWER, ANSWER), pod, seats.clone(), samples.clone()));
        }
        Self { samples, tasks }
    }

    /// The newest answer of every member that gave one lately.
    pub fn newest(&self) -> BTreeMap<String, Status> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let mut newest = BTreeMap::new();
        for sample in samples.iter().rev().take(200) {
            let Said::Status { member, leader, term } = sample.said else { continue };
            newest.entry(sample.pod.clone()).or_insert(Status { member, leader, term });
        }
        newest
    }

    /// The pod that leads, by the newest term that any member speaks of.
    pub fn leader(&self) -> Option<String> {
        let newest = self.newest();
        let term = newest.values().filter(|status| status.leader != 0).map(|status| status.term).max()?;
        let leader = newest.values().find(|status| status.term == term && status.leader != 0)?.leader;
        newest.iter().find(|(_, status)| status.member == leader).map(|(pod, _)| pod.clone())
    }

    /// Stops to ask. Everything that was said, in order.
    pub async fn stop(mut self) -> Vec<Sample> {
        self.tasks.shutdown().await;
        let mut samples = std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner));
        samples.sort_by_key(|sample| sample.at);
        samples
    }
}

async fn ask(client: Client, pod: String, seats: watch::Receiver<Vec<Seat>>, samples: Arc<Mutex<Vec<Sample>>>) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let address = seats.borrow().iter().find(|seat| seat.pod == pod).and_then(|seat| seat.address);
        let said = match address {
            None => Said::Absent { why: "there is no pod with an address".into() },
            Some(address) => match client.status(&pod, address).await {
                Ok(Status { member, leader, term }) => Said::Status { member, leader, term },
                Err(Failure::NotSent(why)) => Said::Absent { why },
                Err(Failure::Refused(why) | Failure::Unknown(why)) => Said::Nothing { why },
            },
        };
        let sample = Sample { at: Timestamp::now(), pod: pod.clone(), said };
        samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
    }
}

/// What truly happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Testimony {
    /// How often another member became leader.
    pub moves: usize,
    /// Pods that were ended while they led, or began to lead before they were gone.
    pub leader_restarts: Vec<Ending>,
    /// Who ended which pod.
    pub endings: Vec<Ending>,
    /// The smallest number of members that were healthy at once, since all were.
    pub smallest_healthy: usize,
    /// When that was.
    pub smallest_at: Option<Timestamp>,
    /// How long the witness itself got nothing done.
    pub blind_ms: i64,
    /// How many answers there are.
    pub samples: usize,
}

/// Judges what was said and what was ended. `seats` is how many members there are.
pub fn judge(samples: &[Sample], endings: &[Ending], seats: usize) -> Testimony {
    let reigns = reigns(samples);
    let moves =
        reigns.windows(2).filter(|pair| matches!(pair, [before, after] if before.leader != after.leader)).count();
    let restarted = |ending: &&Ending| {
        let gone = gone(samples, ending);
        let at_the_time = reigns.iter().rev().find(|reign| reign.since <= ending.at);
        at_the_time.is_some_and(|reign| reign.leader == ending.pod)
            || reigns.iter().any(|reign| reign.since > ending.at && reign.since <= gone && reign.leader == ending.pod)
    };
    let leader_restarts = endings.iter().filter(restarted).cloned().collect();
    let (smallest_healthy, smallest_at, blind_ms) = smallest_healthy(samples, seats);
    Testimony {
        moves,
        leader_restarts,
        endings: endings.to_vec(),
        smallest_healthy,
        smallest_at,
        blind_ms,
        samples: samples.len(),
    }
}

/// A stretch in which one pod's member led.
struct Reign {
    since: Timestamp,
    leader: String,
}

/// Who led since when. Raft has one leader per term at most, so a term that anybody speaks of for the first time is a new reign; what is
/// said of older terms is late news.
fn reigns(samples: &[Sample]) -> Vec<Reign> {
    let mut pods = BTreeMap::new();
    for sample in samples {
        if let Said::Status { member, .. } = sample.said {
            pods.insert(member, sample.pod.as_str());
        }
    }
    let mut reigns = Vec::new();
    let mut newest = 0;
    for sample in samples {
        let Said::Status { leader, term, .. } = sample.said else { continue };
        if leader == 0 || term <= newest {
            continue;
        }
        newest = term;
        let leader = pods.get(&leader).map_or_else(|| format!("member {leader:x}"), |pod| (*pod).to_owned());
        reigns.push(Reign { since: sample.at, leader });
    }
    reigns
}

/// When the member of a pod that was ended was gone: nobody took a connection any more. If that was not seen, the end of what was said.
fn gone(samples: &[Sample], ending: &Ending) -> Timestamp {
    let mut later = samples.iter().filter(|sample| sample.at > ending.at && sample.pod == ending.pod);
    let gone = later.find(|sample| matches!(sample.said, Said::Absent { .. })).map(|sample| sample.at);
    gone.or_else(|| samples.last().map(|sample| sample.at)).unwrap_or(ending.at)
}

/// The smallest number of healthy members since the first moment at which all were, when that was, and how long the witness was blind.
fn smallest_healthy(samples: &[Sample], seats: usize) -> (usize, Option<Timestamp>, i64) {
    // When each member gave its last good answer; none while it is absent.
    let mut good = BTreeMap::<&str, Timestamp>::new();
    // Since when so many members were healthy, or fewer.
    let mut low = BTreeMap::<usize, Timestamp>::new();
    let mut smallest = None::<(usize, Timestamp)>;
    let mut before = None::<Timestamp>;
    let mut blind = SignedDuration::ZERO;
    for sample in samples {
        let silence = before.map_or(SignedDuration::ZERO, |before| sample.at.duration_since(before));
        before = Some(sample.at);
        if silence > BLIND {
            blind += silence;
            for moment in good.values_mut().chain(low.values_mut()) {
                *moment = moment.saturating_add(silence).unwrap_or(*moment);
            }
        }
        match sample.said {
            Said::Status { leader, .. } if leader != 0 => {
                good.insert(&sample.pod, sample.at);
            }
            Said::Status { .. } | Said::Nothing { .. } => {}
            Said::Absent { .. } => {
                good.remove(sample.pod.as_str());
            }
        }
        let healthy = good.values().filter(|last| sample.at.duration_since(**last) <= GRACE).count();
        if smallest.is_none() {
            smallest = (healthy >= seats).then_some((seats, sample.at));
            continue;
        }
        low.retain(|count, _| healthy <= *count);
        for count in healthy..seats {
            low.entry(count).or_insert(sample.at);
        }
        let lasting = low.iter().find(|(_, since)| sample.at.duration_since(**since) >= RESOLUTION);
        if let Some((count, since)) = lasting
            && smallest.is_none_or(|(least, _)| *count < least)
        {
            smallest = Some((*count, *since));
        }
    }
    let (least, at) = smallest.map_or((0, None), |(least, at)| (least, Some(at)));
    (least, at, i64::try_from(blind.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::{Ending, Said, Sample, Testimony, judge};

    fn at(ms: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_millis(ms)
    }

    /// Three members, IDs 1 to 3, asked every 100 ms; `said` gives the leader and the term that each reports, none for absent.
    fn watch(until: i64, said: impl Fn(i64, u64) -> Option<(u64, u64)>) -> Vec<Sample> {
        let mut samples = Vec::new();
        for ms in (0..until).step_by(100) {
            for member in 1..=3_u64 {
                let said = match said(ms, member) {
                    Some((leader, term)) => Said::Status { member, leader, term },
                    None => Said::Absent { why: "refused".into() },
                };
                let shift = i64::try_from(member).unwrap();
                samples.push(Sample { at: at(ms + shift), pod: format!("etcd-{}", member - 1), said });
            }
        }
        samples
    }

    fn deleted(pod: &str, ms: i64) -> Ending {
        Ending { pod: pod.into(), at: at(ms), user: "controller".into(), agent: "test".into() }
    }

    fn restarts(testimony: &Testimony) -> Vec<&str> {
        testimony.leader_restarts.iter().map(|ending| ending.pod.as_str()).collect()
    }

    #[test]
    fn a_follower_that_is_replaced_is_no_leader_restart() {
        let samples = watch(5000, |ms, member| (member != 3 || !(1500..3000).contains(&ms)).then_some((1, 4)));
        let testimony = judge(&samples, &[deleted("etcd-2", 1000)], 3);
        assert_eq!((testimony.moves, restarts(&testimony), testimony.smallest_healthy), (0, vec![], 2));
    }

    #[test]
    fn a_leader_that_is_deleted_is_seen() {
        // Member 3 leads until it is gone; then member 1 does.
        let samples = watch(5000, |ms, member| {
            let now = if ms < 1500 { (3, 4) } else { (1, 5) };
            (member != 3 || !(1500..3000).contains(&ms)).then_some(now)
        });
        let testimony = judge(&samples, &[deleted("etcd-2", 1000)], 3);
        assert_eq!((testimony.moves, restarts(&testimony)), (1, vec!["etcd-2"]));
    }

    #[test]
    fn a_leader_that_handed_over_before_is_no_leader_restart() {
        let samples = watch(5000, |ms, member| {
            let now = if ms < 800 { (3, 4) } else { (1, 5) };
            (member != 3 || !(1500..3000).contains(&ms)).then_some(now)
        });
        let testimony = judge(&samples, &[deleted("etcd-2", 1000)], 3);
        assert_eq!((testimony.moves, restarts(&testimony)), (1, vec![]));
    }

    #[test]
    fn leadership_that_falls_on_a_member_which_is_already_deleted_counts() {
        let samples = watch(5000, |ms, member| {
            let now = if ms < 1200 { (1, 4) } else { (3, 5) };
            (member != 3 || !(1500..3000).contains(&ms)).then_some(now)
        });
        let testimony = judge(&samples, &[deleted("etcd-2", 1000)], 3);
        assert_eq!(restarts(&testimony), ["etcd-2"]);
    }

    #[test]
    fn late_news_of_an_old_term_moves_nothing() {
        // Member 2 is behind and still speaks of the old leader for a while.
        let samples = watch(3000, |ms, member| match member {
            2 if ms < 2000 => Some((1, 4)),
            _ if ms < 1000 => Some((1, 4)),
            _ => Some((3, 5)),
        });
        assert_eq!(judge(&samples, &[], 3).moves, 1);
    }

    #[test]
    fn two_members_down_at_once_are_seen() {
        let samples = watch(5000, |ms, member| {
            let down = match member {
                3 => (1000..2500).contains(&ms),
                2 => (1900..3500).contains(&ms),
                _ => false,
            };
            (!down).then_some((1, 4))
        });
        assert_eq!(judge(&samples, &[], 3).smallest_healthy, 1);
    }

    #[test]
    fn a_pod_that_is_known_a_moment_late_was_not_down() {
        // Member 2 goes as member 3 comes: 100 ms of both missing are the time in which the new address became known.
        let samples = watch(5000, |ms, member| {
            let down = match member {
                3 => (1000..2000).contains(&ms),
                2 => (1900..2900).contains(&ms),
                _ => false,
            };
            (!down).then_some((1, 4))
        });
        assert_eq!(judge(&samples, &[], 3).smallest_healthy, 2);
    }

    #[test]
    fn a_quorum_without_a_leader_is_not_healthy_but_a_blink_is_no_outage() {
        let without = |from: i64, to: i64| {
            let samples = watch(6000, move |ms, _| Some((u64::from(!(from..to).contains(&ms)), 4)));
            judge(&samples, &[], 3).smallest_healthy
        };
        assert_eq!(without(500, 800), 3);
        assert_eq!(without(500, 5000), 0);
    }

    #[test]
    fn a_witness_that_slept_does_not_call_the_members_dead() {
        let samples: Vec<Sample> = watch(8000, |_, _| Some((1, 4)))
            .into_iter()
            .filter(|sample| !(at(2000)..at(5000)).contains(&sample.at))
            .collect();
        let testimony = judge(&samples, &[], 3);
        assert_eq!(testimony.smallest_healthy, 3);
        assert!(testimony.blind_ms > 2500, "{testimony:?}");
    }

    #[test]
    fn what_was_never_whole_is_not_called_healthy() {
        let samples = watch(2000, |_, member| (member != 2).then_some((1, 4)));
        assert_eq!(judge(&samples, &[], 3).smallest_healthy, 0);
    }
}
