//! The simulated etcd held to real processes: the same scripts on both, status codes and bodies compared.
//!
//! What differs between any two clusters (ids, names of the members that play a role, positions, sizes) is made the same first; see
//! `docs/conformance.md` for what is left out on purpose.

mod adapter;
mod canonical;
mod real;
mod script;

use std::{fmt, path::Path, time::Duration};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Method, Request, header::AUTHORIZATION};
use windlass_sim::apps::bench::Bench;

use canonical::Cast;
use real::Real;
use script::{Play, Step, Token, Who};

/// What was compared and what differed.
#[derive(Debug, Default)]
pub struct Report {
    /// How many answers were compared, or checked on the real one alone.
    pub compared: usize,
    /// What was not the same, each for a person to read.
    pub differences: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "etcd: {} answers compared, {} differ", self.compared, self.differences.len())
    }
}

/// The names of the founding members, and of the one that comes later.
const MEMBERS: [&str; 3] = ["etcd-0", "etcd-1", "etcd-2"];
const LATER: &str = "etcd-3";
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(9);

/// Which of the two binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Old,
    New,
}

/// Runs all scripts on processes of these two binaries, one minor release apart, and on the simulated one.
pub async fn run(old: &Path, new: &Path) -> Result<Report> {
    let binaries = [(Which::Old, old), (Which::New, new)];
    let versions = real::versions(binaries).await?;
    let plays = script::all();
    let played = plays.iter().enumerate().map(|(number, play)| compare(number, play, binaries, &versions));
    let mut report = Report::default();
    for played in futures::future::try_join_all(played).await? {
        report.compared += played.compared;
        report.differences.extend(played.differences);
    }
    for (number, (_, binary)) in binaries.into_iter().enumerate() {
        let checked = adapter::check(plays.len() + number, binary).await.context("the adapter on a real etcd")?;
        report.compared += checked;
    }
    Ok(report)
}

/// The versions that the binaries say they are.
struct Versions {
    old: String,
    new: String,
}

impl Versions {
    fn of(&self, which: Which) -> &str {
        match which {
            Which::Old => &self.old,
            Which::New => &self.new,
        }
    }
}

/// One side of the comparison.
enum Side<'a> {
    Real(Real<'a>),
    Simulated(Box<Bench>, &'a Versions),
}

impl Side<'_> {
    /// Whether the process stays.
    async fn start(&mut self, member: &str, which: Which) -> Result<bool> {
        match self {
            Self::Real(real) => real.start(member, which).await,
            Self::Simulated(bench, versions) => Ok(bench.start(member, versions.of(which)).is_ok()),
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

    async fn wait(&mut self, time: Duration) {
        match self {
            Self::Real(_) => tokio::time::sleep(time).await,
            Self::Simulated(bench, _) => bench.pass(time),
        }
    }

    /// The answer; none where none comes in time.
    async fn ask(
        &mut self,
        member: &str,
        method: Method,
        path: &str,
        body: &str,
        token: Option<&str>,
    ) -> Result<Option<(u16, String)>> {
        let mut request = Request::new(Bytes::from(body.to_owned()));
        if let Some(token) = token {
            request.headers_mut().insert(AUTHORIZATION, token.parse()?);
        }
        *request.method_mut() = method;
        *request.uri_mut() = path.parse()?;
        let answer = match self {
            Self::Real(real) => real.ask(member, request).await?,
            Self::Simulated(bench, _) => bench.ask(member, &request),
        };
        Ok(answer.map(|answer| (answer.status().as_u16(), String::from_utf8_lossy(answer.body()).into_owned())))
    }

    fn peer_url(&self, member: &str) -> String {
        match self {
            Self::Real(real) => real.peer_url(member),
            Self::Simulated(..) => format!("http://{member}.etcd.bench.svc.cluster.local:2380"),
        }
    }
}

async fn compare(number: usize, play: &Play, binaries: [(Which, &Path); 2], versions: &Versions) -> Result<Report> {
    let real = perform(play, Side::Real(Real::new(number, binaries)?)).await;
    let real = real.with_context(|| format!("{} on the real etcd", play.name))?;
    let bench = Box::new(Bench::etcd(7, &MEMBERS));
    let simulated = perform(play, Side::Simulated(bench, versions)).await?;
    let mut report = Report { compared: real.len(), differences: Vec::new() };
    for ((what, real), (_, simulated)) in real.iter().zip(&simulated) {
        if real != simulated {
            let difference = format!("{}: {what}:\n    real      {real}\n    simulated {simulated}", play.name);
            report.differences.push(difference);
        }
    }
    Ok(report)
}

/// Everything that was answered, made comparable, by what was asked.
async fn perform(play: &Play, mut side: Side<'_>) -> Result<Vec<(String, String)>> {
    let mut cast = Cast::default();
    let mut answers = Vec::new();
    let mut sign = Token::None;
    for step in &play.steps {
        match step {
            Step::Start(who, which) => {
                let member = cast.member(*who)?;
                let stays = side.start(&member, *which).await?;
                answers.push((format!("a process of the {which:?} binary in {who}"), format!("stays: {stays}")));
            }
            Step::Kill(who) => side.kill(&cast.member(*who)?).await?,
            Step::Wait(seconds) => side.wait(Duration::from_secs(*seconds)).await,
            Step::Cast => cast.assign(&mut side).await?,
            Step::Sign(token) => sign = *token,
            Step::Ask { whom, method, path, body } => {
                let member = cast.member(*whom)?;
                let text = cast.body(body, &side.peer_url(LATER))?;
                let token = match sign {
                    Token::None => None,
                    Token::Given => Some(cast.token.clone().context("no token was given")?),
                    Token::Invented => Some("abcdefghijklmnop.1".to_owned()),
                };
                let answer = side.ask(&member, method.clone(), path, &text, token.as_deref()).await?;
                if let Some((_, text)) = &answer {
                    cast.learn(text);
                }
                let seen = answer.map_or_else(|| "silence".to_owned(), |(code, text)| cast.canonical(code, &text));
                answers.push((format!("{method} {path} {body:?} asked of {whom} with the token {sign:?}"), seen));
            }
        }
    }
    Ok(answers)
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leader => "the leader",
            Self::One => "the first follower",
            Self::Other => "the second follower",
            Self::Learner => "the learner",
            Self::Founding(0) => "the first member",
            Self::Founding(_) => "a member",
        })
    }
}
