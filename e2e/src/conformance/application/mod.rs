//! The simulated applications held to real processes: the same plays on both, status codes and bodies compared.
//!
//! The simulated application plays first, in virtual time. The real one then has to come to the same answers: a question that changes
//! nothing is asked again until it is answered alike or much time has passed, so that a slow machine is no difference. What differs
//! between any two clusters (ids, addresses, the members that play a role, positions, times) is made the same before; see
//! `docs/conformance.md` for what is left out on purpose.

mod cast;
mod etcd;
mod openbao;
mod pd;
mod play;
mod real;

use std::{collections::BTreeSet, fmt, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use tokio::process::Command;
use windlass_sim::apps::bench::Bench;

use cast::Cast;
use play::{Play, Which};
use real::{Place, Real};

use crate::{applications, client::Application as Kind, cluster::Missing};

/// What was compared and what differed.
#[derive(Debug, Default)]
pub struct Report {
    name: &'static str,
    /// How many answers were compared, or checked on the real one alone.
    pub compared: usize,
    /// What was not the same, each for a person to read.
    pub differences: Vec<String>,
    /// What is missing, where nothing could be compared.
    pub skipped: Option<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.skipped {
            None => write!(f, "{}: {} answers compared, {} differ", self.name, self.compared, self.differences.len()),
            Some(missing) => write!(f, "{}: SKIPPED, nothing was compared: {missing}", self.name),
        }
    }
}

/// What is played, and how.
pub struct Options<'a> {
    /// Only plays whose names contain this.
    pub only: Option<&'a str>,
    /// How long the real side may take to come to an answer.
    pub patience: Duration,
    /// A play that differs is played so often altogether: an election that nobody asked for on a busy machine is no difference.
    pub plays: usize,
}

/// Compares every application whose programs are there.
pub async fn run(options: &Options<'_>) -> Result<Vec<Report>> {
    Ok(vec![
        run_one::<etcd::Etcd>(options).await?,
        run_one::<openbao::OpenBao>(options).await?,
        run_one::<pd::Pd>(options).await?,
    ])
}

async fn run_one<A: Application>(options: &Options<'_>) -> Result<Report> {
    let mut report = Report { name: A::NAME, ..Report::default() };
    if let Err(error) = applications::check(&BTreeSet::from([A::KIND])) {
        let missing = error.downcast::<Missing>()?;
        report.skipped = Some(missing.0.join(", "));
        return Ok(report);
    }
    let [old, new] = applications::binaries(A::KIND)?;
    let binaries = Binaries { old, new };
    let wanted = |name: &str| options.only.is_none_or(|only| format!("{}: {name}", A::NAME).contains(only));
    let plays: Vec<Play<A::Act>> = A::plays().into_iter().filter(|play| wanted(play.name)).collect();
    let played = plays.iter().enumerate().map(|(number, play)| play::compare::<A>(number, play, &binaries, options));
    for (compared, differences) in futures::future::try_join_all(played).await? {
        report.compared += compared;
        report.differences.extend(differences);
    }
    for (number, which) in [Which::Old, Which::New].into_iter().enumerate() {
        if wanted("the adapter") {
            let real = Real::<A>::new(plays.len() + number, &binaries)?;
            let checked = A::check_adapter(real, which).await;
            report.compared += checked.with_context(|| format!("the adapter on a real {} ({which:?})", A::NAME))?;
        }
    }
    Ok(report)
}

/// The two programs and what they say they are.
pub(crate) struct Binaries {
    old: (PathBuf, String),
    new: (PathBuf, String),
}

impl Binaries {
    fn of(&self, which: Which) -> &(PathBuf, String) {
        match which {
            Which::Old => &self.old,
            Which::New => &self.new,
        }
    }
}

/// What one application has that the others don't.
trait Application: Sized {
    const NAME: &'static str;
    const KIND: Kind;
    /// The founding members, and the one that may come later.
    const MEMBERS: [&'static str; 3];
    const LATER: &'static str;
    /// Every play has ten ports from here on.
    const FIRST_PORT: u16;
    /// With this header a member answers by itself.
    const ALONE: Option<&'static str>;
    /// How long an answer is waited for.
    const PATIENCE: Duration;
    /// What can be done besides starting, ending and asking.
    type Act: Copy + fmt::Debug;

    fn plays() -> Vec<Play<Self::Act>>;

    fn bench() -> Bench;

    /// The version as the simulated one is told it.
    fn version(version: &str) -> String {
        version.to_owned()
    }

    /// Where a simulated member takes requests of clients, and of its peers.
    fn simulated_addresses(member: &str) -> [String; 2];

    /// How a real process is started.
    fn command(place: &Place<'_, Self>) -> Result<Command>;

    /// Whether a real process that finds data may be of a version that does not fit it.
    const MAY_REFUSE: bool = false;

    /// How a request is signed.
    fn sign(token: &str) -> Result<(HeaderName, HeaderValue)>;

    /// A token that nobody gave.
    const INVENTED: &'static str = "abcdefghijklmnop.1";

    /// Asks everybody, learns what they are called, and tells who leads; none where they don't agree yet.
    async fn assign(side: &mut Side<'_, Self>, cast: &mut Cast) -> Result<Option<String>>;

    /// Learns from an answer.
    fn learn(cast: &mut Cast, answer: &Response<Bytes>);

    async fn act(side: &mut Side<'_, Self>, cast: &mut Cast, act: Self::Act) -> Result<()>;

    /// The answer's body as it is compared.
    fn canonical(cast: &Cast, body: &str) -> String;

    /// Checks on real processes what only they can show of the adapter; how many checks there were.
    async fn check_adapter(real: Real<'_, Self>, which: Which) -> Result<usize>;
}

/// One side of the comparison.
enum Side<'a, A: Application> {
    Real(Real<'a, A>),
    Simulated(Box<Bench>, &'a Binaries),
}

impl<A: Application> Side<'_, A> {
    /// Whether the process stays.
    async fn start(&mut self, member: &str, which: Which) -> Result<bool> {
        match self {
            Self::Real(real) => real.start(member, which).await,
            Self::Simulated(bench, binaries) => Ok(bench.start(member, &A::version(&binaries.of(which).1)).is_ok()),
        }
    }

    async fn kill(&mut self, member: &str) -> Result<()> {
        match self {
            Self::Real(real) => real.kill(member).await,
            Self::Simulated(bench, _) => {
                bench.kill(member);
                Ok(())
            }
        }
    }

    async fn stop(&mut self, member: &str) -> Result<()> {
        match self {
            Self::Real(real) => real.stop(member).await,
            Self::Simulated(bench, _) => {
                bench.stop(member);
                Ok(())
            }
        }
    }

    async fn wait(&mut self, time: Duration) {
        match self {
            Self::Real(_) => tokio::time::sleep(time).await,
            Self::Simulated(bench, _) => bench.pass(time),
        }
    }

    /// Lets time pass where it costs nothing; the real side is asked until it is where it should be.
    fn settle(&mut self, time: Duration) {
        if let Self::Simulated(bench, _) = self {
            bench.pass(time);
        }
    }

    /// The answer; none where none comes in time.
    async fn ask(&mut self, member: &str, request: Request<Bytes>) -> Result<Option<Response<Bytes>>> {
        match self {
            Self::Real(real) => {
                real.revive().await?;
                real.ask(member, request).await
            }
            Self::Simulated(bench, _) => Ok(bench.ask(member, &request)),
        }
    }
}
