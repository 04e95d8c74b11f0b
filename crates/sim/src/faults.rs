//! A program under test, as a process that can be cut off, frozen and killed at any call.
//!
//! Every request that the program makes, to the Kubernetes API or to an application, passes here. A [`Process`] counts the ones that
//! matter (writes and application calls) so that a test can strike at each of them in turn, and draws random faults from a seed.

use std::{
    collections::BTreeMap,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::sync::Notify;
use tower::{BoxError, Service};

use crate::{
    api::{Api, Reply, ReplyBody, Webhook},
    clock::Clock,
    journal::{Befell, Change, Entry, Event, Journal, Note},
    rng::Rng,
    world::World,
};

/// The latest that a request takes effect after it was sent: what the API server is told in `timeout=`, less the way there.
const LATEST: Duration = Duration::from_secs(9);

/// How long the API server waits for a webhook.
const WEBHOOK: Duration = Duration::from_secs(10);

/// When callers have given up waiting for an answer to a write.
const GIVEN_UP: Duration = Duration::from_secs(6);

/// A write to what members live in, or to what keeps drains from them.
fn is_of_a_workload(what: &str) -> bool {
    ["/statefulsets/", "/pods/", "/poddisruptionbudgets"].iter().any(|plural| what.contains(plural))
}

/// What happens to a process at one of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// It dies and the call is never made.
    KillBefore,
    /// The call is made and it dies before the answer arrives.
    KillAfter,
    /// It stops between its last check and the call, for this long; then it goes on as if nothing had happened.
    Freeze(Duration),
    /// The same, until the very moment in which another process says that it has taken over.
    FreezeUntilTakenOver,
    /// The call is made, and takes effect so much later, whether or not it still waits.
    Late(Duration),
}

/// How often random faults happen: once in so many calls, 0 for never.
#[derive(Clone, Debug, Default)]
pub struct Odds {
    /// The connection is refused.
    pub refused: u64,
    /// The request is lost on the way; the caller hears nothing.
    pub lost: u64,
    /// The request takes effect, and the answer is lost.
    pub answer_lost: u64,
    /// The request takes effect later, whether or not the caller still waits.
    pub late: u64,
    /// A write to a StatefulSet, a pod or a budget takes effect when its caller has given up waiting for an answer.
    pub unanswered: u64,
    /// A write is answered with 409 although nothing conflicts.
    pub conflict: u64,
    /// The API server is overloaded: 429 or 503.
    pub overloaded: u64,
    /// A read that allows it is answered from the past.
    pub stale: u64,
}

impl Odds {
    /// A random selection of faults, some of them off: each seed explores its own mix.
    pub fn draw(rng: &mut Rng) -> Self {
        let mut odds = || if rng.one_in(2) { 0 } else { 15 + rng.below(100) };
        Self {
            refused: odds(),
            lost: odds(),
            answer_lost: odds(),
            late: odds(),
            unanswered: odds() / 8,
            conflict: odds(),
            overloaded: odds(),
            stale: odds().min(4),
        }
    }
}

/// One process of the program under test.
#[derive(Clone)]
pub struct Process {
    user: String,
    clock: Clock,
    journal: Journal,
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

struct State {
    rng: Rng,
    odds: Odds,
    calls: u64,
    strikes: BTreeMap<u64, Strike>,
    frozen_until: Option<Duration>,
    dead: bool,
    /// Made so far, by what: `write` or `call`.
    made: Vec<String>,
    says_taken_over: fn(&Change) -> bool,
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It reads from the API.
    Reads,
    /// It asks an application.
    Calls,
    /// It writes to the API.
    Writes,
    /// It writes what members could suffer from.
    Disrupts,
}

/// What to do with one call.
enum Fate {
    Pass,
    Strike(Strike),
    Refuse,
    Lose,
    LoseAnswer,
    Late(Duration),
    Answer(StatusCode, &'static str),
    Stale(u64),
}

impl Process {
    /// A process of this name; nothing is wrong with it yet.
    pub fn new(user: &str, clock: Clock, journal: Journal, seed: u64) -> Self {
        let state = State {
            rng: Rng::new(seed).fork(user),
            odds: Odds::default(),
            calls: 0,
            strikes: BTreeMap::new(),
            frozen_until: None,
            dead: false,
            made: Vec::new(),
            says_taken_over: |_| false,
        };
        Self { user: user.to_owned(), clock, journal, state: Arc::new(Mutex::new(state)), changed: Arc::default() }
    }

    /// Who it is.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// From now on, random faults at these odds.
    pub fn set_odds(&self, odds: Odds) {
        self.state().odds = odds;
    }

    /// Strikes at the `index`th call that matters, counted from 0.
    pub fn strike_at(&self, index: u64, strike: Strike) {
        self.state().strikes.insert(index, strike);
    }

    /// By which write of another one [`Strike::FreezeUntilTakenOver`] knows that it has taken over. Before this is told, by none.
    pub fn thaw_when_taken_over(&self, says_taken_over: fn(&Change) -> bool) {
        self.state().says_taken_over = says_taken_over;
    }

    /// Every call that mattered so far.
    pub fn made(&self) -> Vec<String> {
        self.state().made.clone()
    }

    /// Kills it now.
    pub fn kill(&self) {
        self.state().dead = true;
        self.note(Befell::Killed);
        self.changed.notify_waiters();
    }

    /// Stops it now, for this long.
    pub fn freeze(&self, how_long: Duration) {
        self.state().frozen_until = Some(self.clock.elapsed() + how_long);
        self.note(Befell::Frozen(how_long));
        self.changed.notify_waiters();
    }

    /// Runs the program until it ends or is killed; while it is frozen it is not polled at all.
    pub async fn live(&self, program: impl Future<Output = ()>) {
        let mut program = std::pin::pin!(program);
        loop {
            let (dead, frozen) = {
                let state = self.state();
                (state.dead, state.frozen_until)
            };
            if dead {
                return;
            }
            if let Some(until) = frozen {
                let changed = self.changed.notified();
                tokio::select! {
                    biased;
                    () = changed => {}
                    () = tokio::time::sleep_until(self.clock.instant(until)) => self.thaw(),
                }
                continue;
            }
            let changed = self.changed.notified();
            tokio::select! {
                biased;
                () = changed => {}
                () = &mut program => return,
            }
        }
    }

    fn note(&self, what: Befell) {
        self.journal.push(self.clock.now(), Event::Note(Note::Process { user: self.user.clone(), what }));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What becomes of the next call. `may_be_stale`: the caller said that any state will do.
    fn fate(&self, what: &str, does: Does, may_be_stale: bool, revision: u64) -> Fate {
        let mut state = self.state();
        let writes = matches!(does, Does::Writes | Does::Disrupts);
        if does != Does::Reads {
            let index = state.calls;
            state.calls += 1;
            state.made.push(what.to_owned());
            if let Some(strike) = state.strikes.remove(&index) {
                return Fate::Strike(strike);
            }
        }
        let State { rng, odds, .. } = &mut *state;
        if may_be_stale && rng.one_in(odds.stale) {
            return Fate::Stale(revision.saturating_sub(1 + rng.below(60)));
        }
        if rng.one_in(odds.refused) {
            return Fate::Refuse;
        }
        if rng.one_in(odds.lost) {
            return Fate::Lose;
        }
        if rng.one_in(odds.answer_lost) {
            return Fate::LoseAnswer;
        }
        if rng.one_in(odds.late) {
            return Fate::Late(rng.between(Duration::from_millis(50), LATEST));
        }
        if does == Does::Disrupts && rng.one_in(odds.unanswered) {
            let delay = rng.between(GIVEN_UP, LATEST);
            drop(state);
            self.note(Befell::Late { delay, what: what.to_owned() });
            return Fate::Late(delay);
        }
        if writes && rng.one_in(odds.conflict) {
            return Fate::Answer(StatusCode::CONFLICT, "Conflict");
        }
        if rng.one_in(odds.overloaded) {
            return Fate::Answer(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
        }
        Fate::Pass
    }

    /// Makes a call, or what its fate makes of it. `perform` runs at most once.
    async fn make<T: Send + 'static>(
        &self,
        fate: Fate,
        perform: impl FnOnce(Option<u64>) -> BoxFuture<'static, T>,
        answer: impl FnOnce(StatusCode, &'static str) -> Result<T, io::Error>,
    ) -> Result<T, io::Error> {
        self.thawed().await;
        match fate {
            Fate::Pass => Ok(perform(None).await),
            Fate::Stale(revision) => Ok(perform(Some(revision)).await),
            Fate::Strike(Strike::KillBefore) => {
                self.kill();
                std::future::pending().await
            }
            Fate::Strike(Strike::KillAfter) => {
                perform(None).await;
                self.kill();
                std::future::pending().await
            }
            Fate::Strike(Strike::Freeze(how_long)) => {
                self.freeze(how_long);
                let thaw = tokio::time::sleep_until(self.clock.instant(self.clock.elapsed() + how_long));
                Self::send_at(thaw, perform(None)).await
            }
            Fate::Strike(Strike::FreezeUntilTakenOver) => {
                self.freeze(Duration::from_hours(1));
                let process = self.clone();
                let thaw = async move {
                    process.taken_over().await;
                    process.thaw();
                };
                Self::send_at(thaw, perform(None)).await
            }
            Fate::Refuse => Err(io::ErrorKind::ConnectionRefused.into()),
            Fate::Lose => silence().await,
            Fate::LoseAnswer => {
                perform(None).await;
                silence().await
            }
            Fate::Late(delay) | Fate::Strike(Strike::Late(delay)) => {
                // Detached: bytes that were sent arrive, whether or not the sender still waits.
                let work = perform(None);
                let late = tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    work.await
                });
                late.await.map_err(io::Error::other)
            }
            Fate::Answer(code, reason) => answer(code, reason),
        }
    }

    /// Sends at the thaw. Detached: the first thing that happens then is that the bytes go out. No timer that has run out meanwhile, and no
    /// lease that was lost, calls them back.
    async fn send_at<T: Send + 'static>(
        thaw: impl Future<Output = ()> + Send + 'static,
        work: BoxFuture<'static, T>,
    ) -> Result<T, io::Error> {
        let sent = tokio::spawn(async move {
            thaw.await;
            work.await
        });
        sent.await.map_err(io::Error::other)
    }

    /// Waits until another process has said that it has taken over.
    async fn taken_over(&self) {
        let mut seen = self.journal.entries().len();
        loop {
            {
                let journal = self.journal.entries();
                let says_so = self.state().says_taken_over;
                let taken = |entry: &Entry| {
                    let Event::Write(change) = &entry.event else { return false };
                    change.user != self.user && says_so(change)
                };
                if journal.iter().skip(seen).any(taken) {
                    return;
                }
                seen = journal.len();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Lets it go on.
    fn thaw(&self) {
        self.state().frozen_until = None;
        self.note(Befell::Thawed);
        self.changed.notify_waiters();
    }

    /// Waits while the process is frozen, and for ever once it is dead.
    async fn thawed(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.state();
                if !state.dead && state.frozen_until.is_none() {
                    return;
                }
            }
            changed.await;
        }
    }

    /// This process's client of the Kubernetes API.
    pub fn client(&self, api: &Api) -> kube::Client {
        kube::Client::new(Gate { process: self.clone(), api: api.clone() }, "default")
    }

    /// One request of this process to a pod.
    pub fn dial(&self, world: &World, request: Request<Bytes>) -> BoxFuture<'static, io::Result<Response<Bytes>>> {
        let (process, world) = (self.clone(), world.clone());
        Box::pin(async move {
            let what = format!("{} {}", request.method(), request.uri().path());
            let fate = process.fate(&what, Does::Calls, false, 0);
            let user = process.user.clone();
            let perform =
                move |_| -> BoxFuture<'static, _> { Box::pin(async move { world.dial(&user, request).await }) };
            let overloaded = |code: StatusCode, reason: &'static str| {
                let mut response = Response::new(Bytes::from_static(reason.as_bytes()));
                *response.status_mut() = code;
                Ok(Ok(response))
            };
            process.make(fate, perform, overloaded).await?
        })
    }
}

/// A server's answer to what went wrong.
fn failure(code: StatusCode, reason: &str, message: &str) -> Reply {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    let mut response = Response::new(Bytes::from(status.to_string()));
    *response.status_mut() = code;
    Reply::Done(response)
}

/// A connection on which nothing comes: the client library gives up in the end, as kube's read time-out does.
async fn silence<T>() -> Result<T, io::Error> {
    tokio::time::sleep(Duration::from_mins(5)).await;
    Err(io::ErrorKind::TimedOut.into())
}

/// The Kubernetes API behind a process's faults.
#[derive(Clone)]
struct Gate {
    process: Process,
    api: Api,
}

impl Service<Request<Body>> for Gate {
    type Response = Response<ReplyBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ReplyBody>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { process, api } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let request = Request::from_parts(parts, body.collect().await?.to_bytes());
            let query = request.uri().query().unwrap_or_default();
            let writes = *request.method() != Method::GET;
            let watches = query.contains("watch=");
            let any_state = !writes && !watches && query.split('&').any(|pair| pair == "resourceVersion=0");
            let what = format!("{} {}", request.method(), request.uri().path());
            // A merge patch of these is a touch: it changes nothing that anybody could suffer from.
            let touches =
                request.headers().get("content-type").is_some_and(|kind| kind == "application/merge-patch+json");
            let does = match (writes, !touches && is_of_a_workload(&what)) {
                (false, _) => Does::Reads,
                (true, false) => Does::Writes,
                (true, true) => Does::Disrupts,
            };
            let fate = process.fate(&what, does, any_state, api.revision());
            let (user, server) = (process.user.clone(), api.clone());
            let latency = process.state().rng.between(Duration::from_millis(1), Duration::from_millis(10));
            let perform = move |at: Option<u64>| -> BoxFuture<'static, Reply> {
                Box::pin(async move {
                    tokio::time::sleep(latency).await;
                    let webhook = writes.then(|| server.webhook(request.uri().path(), request.body())).flatten();
                    match webhook {
                        None => server.handle(&user, request, at),
                        Some(Webhook::Breaks) => failure(
                            StatusCode::INTERNAL_SERVER_ERROR,
                            "InternalError",
                            "Internal error occurred: replace operation does not apply",
                        ),
                        Some(Webhook::Hangs) => {
                            tokio::time::sleep(WEBHOOK).await;
                            failure(
                                StatusCode::INTERNAL_SERVER_ERROR,
                                "InternalError",
                                "Internal error occurred: failed calling webhook \"check.example\": context deadline exceeded",
                            )
                        }
                    }
                })
            };
            let refusal = |code: StatusCode, reason: &'static str| Ok(failure(code, reason, "injected fault"));
            Ok(process.make(fate, perform, refusal).await?.into_response())
        })
    }
}
