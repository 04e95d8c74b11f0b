//! A load on an application: writes and reads at a fixed rate, as a client with several endpoints sends them.
//!
//! A connection that can't be had is tried at the next endpoint: nothing was sent. Once a write was sent, it is not sent again: without
//! an answer its outcome is unknown and is booked so.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Result, bail, ensure};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval},
};

use crate::{
    client::{Access, Client, Failure, Stored, allowed},
    ledger::{Ledger, Outcome, Write},
};

/// A connection in the same cluster is there in no time, or not at all.
const CONNECT: Duration = Duration::from_millis(500);
/// How long an answer is waited for: etcd itself gives up a proposal after seven seconds.
const ANSWER: Duration = Duration::from_secs(8);
/// How long one write is carried from endpoint to endpoint.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long an endpoint that took no connection is passed over.
const PASSED_OVER: Duration = Duration::from_millis(500);
/// How many operations may be under way.
const IN_FLIGHT: usize = 256;

/// How much load, and how long at most.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Writes per second.
    pub writes: u32,
    /// Reads per second.
    pub reads: u32,
    /// It ends by itself after this.
    pub longest: Duration,
    /// It ends by itself after so many writes.
    pub most: usize,
}

impl Default for Rate {
    fn default() -> Self {
        Self { writes: 40, reads: 20, longest: Duration::from_mins(15), most: 40_000 }
    }
}

/// The endpoints, which may change while the load runs.
pub type Endpoints = watch::Receiver<Vec<SocketAddr>>;

/// A load that runs.
pub struct Load {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    client: Client,
    endpoints: Endpoints,
    prefix: String,
    began: Instant,
    books: Mutex<Books>,
    room: Arc<Semaphore>,
}

#[derive(Default)]
struct Books {
    ledger: Ledger,
    /// Where the next operation goes first.
    turn: usize,
    /// Endpoints that took no connection, and until when they are passed over.
    absent: BTreeMap<SocketAddr, Instant>,
    /// The write that was acknowledged last: what a read looks for.
    newest: Option<Stored>,
}

impl Load {
    /// Starts to write keys that begin with `prefix`.
    pub fn start(access: &Access, endpoints: Endpoints, prefix: &str, rate: Rate) -> Self {
        let shared = Arc::new(Shared {
            client: access.client(CONNECT, ANSWER),
            endpoints,
            prefix: format!("{prefix}/"),
            began: Instant::now(),
            books: Mutex::default(),
            room: Arc::new(Semaphore::new(IN_FLIGHT)),
        });
        let task = tokio::spawn(drive(shared.clone(), rate));
        Self { shared, task }
    }

    /// How many writes were acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        self.shared.books().ledger.acknowledged()
    }

    /// Sends nothing more, waits for what is under way, and closes the books.
    pub async fn stop(self) -> Ledger {
        let stopped = Instant::now();
        self.task.abort();
        let _aborted = self.task.await;
        // Every operation ends by its own deadlines.
        let all = u32::try_from(IN_FLIGHT).unwrap_or(u32::MAX);
        let _room = self.shared.room.acquire_many(all).await;
        let mut ledger = self.shared.books().ledger.clone();
        ledger.ran_ms = millis(stopped - self.shared.began);
        ledger
    }
}

impl Shared {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        millis(self.began.elapsed())
    }

    /// The next endpoint in turn that is not passed over; if all are, the next in turn.
    fn endpoint(&self) -> Option<SocketAddr> {
        let endpoints = self.endpoints.borrow().clone();
        let now = Instant::now();
        let mut books = self.books();
        books.absent.retain(|_, until| *until > now);
        books.turn = books.turn.wrapping_add(1);
        let turns = (0..endpoints.len()).map(|offset| books.turn.wrapping_add(offset) % endpoints.len());
        let in_turn: Vec<SocketAddr> = turns.filter_map(|index| endpoints.get(index).copied()).collect();
        in_turn.iter().find(|address| !books.absent.contains_key(address)).or(in_turn.first()).copied()
    }

    fn pass_over(&self, endpoint: SocketAddr) {
        self.books().absent.insert(endpoint, Instant::now() + PASSED_OVER);
    }

    /// Carries an operation from endpoint to endpoint until one takes the connection.
    async fn carry<T, F>(&self, send: impl Fn(SocketAddr) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let give_up = Instant::now() + PATIENCE;
        let mut last = Failure::NotSent("there is no endpoint".into());
        while Instant::now() < give_up {
            let Some(endpoint) = self.endpoint() else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            match send(endpoint).await {
                Err(Failure::NotSent(why)) => {
                    self.pass_over(endpoint);
                    last = Failure::NotSent(why);
                    // A refused connection is known at once: don't spin.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                other => return other,
            }
        }
        Err(last)
    }

    async fn write(&self, number: usize) {
        let (key, value) = (format!("{}{number:08}", self.prefix), format!("value-{number}"));
        let sent_ms = self.now_ms();
        let result = self.carry(|endpoint| self.client.put(endpoint, &key, &value)).await;
        let ended_ms = self.now_ms();
        let mut books = self.books();
        let outcome = match result {
            Ok(revision) => {
                books.newest = Some(Stored { key: key.clone(), value: value.clone(), revision });
                Outcome::Acknowledged { revision }
            }
            Err(Failure::NotSent(why) | Failure::Refused(why)) => Outcome::Failed { why },
            Err(Failure::Unknown(why)) => Outcome::Unknown { why },
        };
        books.ledger.writes.push(Write { key, value, sent_ms, ended_ms, outcome });
    }

    async fn read(&self) {
        let Some(expected) = self.books().newest.clone() else { return };
        let found = self.carry(|endpoint| self.client.get(endpoint, &expected.key)).await;
        let mut books = self.books();
        match found {
            Ok(found) if found.as_ref() == Some(&expected) => books.ledger.reads += 1,
            Ok(found) => books.ledger.wrong_reads.push(format!("{expected:?} was acknowledged, {found:?} was read")),
            Err(_) => books.ledger.failed_reads += 1,
        }
    }
}

async fn drive(shared: Arc<Shared>, rate: Rate) {
    let ticks = |per_second: u32| {
        let mut ticks = interval(Duration::from_secs(1) / per_second.max(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    };
    let (mut writes, mut reads) = (ticks(rate.writes), ticks(rate.reads));
    let end = tokio::time::sleep(rate.longest);
    tokio::pin!(end);
    let mut number = 0;
    loop {
        let wrote = tokio::select! {
            () = &mut end => return,
            _ = writes.tick() => true,
            _ = reads.tick() => false,
        };
        // The permit belongs to the operation: whoever has all of them knows that none is under way.
        let Ok(room) = shared.room.clone().try_acquire_owned() else {
            shared.books().ledger.held_back += u64::from(wrote);
            continue;
        };
        number += usize::from(wrote);
        if number > rate.most {
            return;
        }
        let operation = shared.clone();
        tokio::spawn(async move {
            if wrote {
                operation.write(number).await;
            } else {
                operation.read().await;
            }
            drop(room);
        });
    }
}

/// The acknowledged writes that are missing in what any single member has.
pub async fn missing(access: &Access, ledger: &Ledger, members: &[SocketAddr], prefix: &str) -> Result<Vec<String>> {
    ensure!(!members.is_empty(), "there is no member to read from");
    allowed(members)?;
    let client = access.client(CONNECT, ANSWER);
    let keys = ledger.acknowledged_keys();
    let mut missing = Vec::new();
    for member in members {
        let held = match client.held(*member, prefix, &keys).await {
            Ok(held) => held,
            Err(failure) => bail!("{member} can't be read: {failure:?}"),
        };
        let lost = ledger.lost(&held).into_iter();
        missing.extend(lost.map(|lost| format!("{} at {member}: {}", lost.key, lost.why)));
    }
    Ok(missing)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
