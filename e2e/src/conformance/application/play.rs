//! What is done and asked, in order, and how it is played on both sides.

use std::{
    fmt,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, header::LOCATION};

use super::{Application, Binaries, Cast, Options, Real, Side};

/// How long it may take until somebody leads.
const VERY_SLOW: Duration = Duration::from_mins(2);
/// How long until it is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// Which of the two binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Old,
    New,
}

/// Whom a step is about. Roles are assigned once a cluster is up and stay with their members until they are assigned again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// Whoever led when the roles were assigned.
    Leader,
    /// Of the others, whoever led when the roles were assigned before; otherwise the first by name.
    One,
    Other,
    /// The one that comes later.
    Later,
    /// By number, before there are roles.
    Founding(usize),
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leader => "the leader",
            Self::One => "the first follower",
            Self::Other => "the second follower",
            Self::Later => "the one that came later",
            Self::Founding(0) => "the first member",
            Self::Founding(_) => "a member",
        })
    }
}

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Nothing.
    None,
    /// The one that was given last.
    Given,
    /// One that nobody gave.
    Invented,
}

/// A script.
pub(super) struct Play<Act> {
    pub name: &'static str,
    pub steps: Vec<Step<Act>>,
}

#[derive(Clone)]
pub(super) enum Step<Act> {
    Start(Who, Which),
    /// With no time to hand over.
    Kill(Who),
    /// With a signal that a process may heed.
    Stop(Who),
    /// Seconds, on both sides.
    Wait(u64),
    /// Seconds in which the simulated side comes to rest; the real one is asked until it has.
    Settle(u64),
    /// Roles are assigned.
    Cast,
    /// From now on requests carry the token that was given last, another one, or none.
    Sign(Token),
    /// What this application alone knows.
    Act(Act),
    Ask(Ask),
}

/// The members once there are roles.
pub(super) const ALL: [Who; 3] = [Who::Leader, Who::One, Who::Other];

/// The members are started.
pub(super) fn founding<Act>(which: Which) -> Vec<Step<Act>> {
    (0..3).map(|number| Step::Start(Who::Founding(number), which)).collect()
}

pub(super) fn get<Act>(whom: Who, path: &'static str) -> Step<Act> {
    Step::Ask(Ask::get(whom, path))
}

/// The same, not to be forwarded.
pub(super) fn alone<Act>(whom: Who, path: &'static str) -> Step<Act> {
    Step::Ask(Ask::get(whom, path).alone())
}

/// A question, or something that is asked for.
#[derive(Clone)]
pub(super) struct Ask {
    whom: Who,
    method: Method,
    path: &'static str,
    body: &'static str,
    /// Whose `$name`, `$id` and `$url` stand in the path and in the body.
    about: Option<Who>,
    /// The member answers by itself.
    alone: bool,
    /// It changes something, so it is asked for once.
    once: bool,
    /// The body says nothing that could be compared.
    code_only: bool,
}

impl Ask {
    pub fn new(method: Method, whom: Who, path: &'static str) -> Self {
        let once = method != Method::GET && method != Method::HEAD;
        Self { whom, method, path, body: "", about: None, alone: false, once, code_only: false }
    }

    pub fn get(whom: Who, path: &'static str) -> Self {
        Self::new(Method::GET, whom, path)
    }

    pub fn post(whom: Who, path: &'static str, body: &'static str) -> Self {
        Self { body, ..Self::new(Method::POST, whom, path) }
    }

    /// It changes nothing, whatever its method.
    pub fn reads(self) -> Self {
        Self { once: false, ..self }
    }

    pub fn about(self, who: Who) -> Self {
        Self { about: Some(who), ..self }
    }

    pub fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    pub fn code_only(self) -> Self {
        Self { code_only: true, ..self }
    }

    fn request<A: Application>(&self, cast: &Cast, sign: Token) -> Result<Request<Bytes>> {
        let filled = |text: &str| match self.about {
            Some(who) => cast.fill(text, who),
            None => Ok(text.to_owned()),
        };
        let mut request = Request::new(Bytes::from(filled(self.body)?));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = filled(self.path)?.parse()?;
        let token = match sign {
            Token::None => None,
            Token::Given => Some(cast.token.as_deref().context("no token was given")?),
            Token::Invented => Some(A::INVENTED),
        };
        if let Some(token) = token {
            let (name, value) = A::sign(token)?;
            request.headers_mut().insert(name, value);
        }
        if let Some(alone) = A::ALONE.filter(|_| self.alone) {
            request.headers_mut().insert(HeaderName::from_static(alone), HeaderValue::from_static("true"));
        }
        Ok(request)
    }

    fn canonical<A: Application>(&self, cast: &Cast, answer: Option<&Response<Bytes>>) -> String {
        let Some(answer) = answer else { return "silence".to_owned() };
        let body = String::from_utf8_lossy(answer.body());
        let body = if self.code_only { String::new() } else { A::canonical(cast, &body) };
        let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let location = location.map(|location| format!(" to {}", cast.replace(location))).unwrap_or_default();
        format!("{}{location} {body}", answer.status().as_u16())
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.method, self.path, self.body)?;
        if let Some(who) = self.about {
            write!(f, " about {who}")?;
        }
        write!(f, " asked of {}{}", self.whom, if self.alone { " alone" } else { "" })
    }
}

/// What was asked or done, and what came of it.
type Seen = (String, String);

/// How many answers were compared, and those that differ.
pub(super) async fn compare<A: Application>(
    number: usize,
    play: &Play<A::Act>,
    binaries: &Binaries,
    options: &Options<'_>,
) -> Result<(usize, Vec<String>)> {
    let simulated = perform::<A>(play, Side::Simulated(Box::new(A::bench()), binaries), None).await;
    let simulated = simulated.with_context(|| format!("{} on the simulated {}", play.name, A::NAME))?;
    let (mut differences, mut unplayed) = (Vec::new(), None);
    let name = format!("{}: {}", A::NAME, play.name);
    for _ in 0..options.plays {
        let real = Side::Real(Real::new(number, binaries)?);
        differences.clear();
        unplayed = None;
        match perform::<A>(play, real, Some((&simulated, options.patience))).await {
            Ok(real) => {
                for ((what, real), (_, simulated)) in real.iter().zip(&simulated) {
                    if real != simulated {
                        differences.push(format!("{name}: {what}:\n    real      {real}\n    simulated {simulated}"));
                    }
                }
            }
            // On a machine that is busy enough a login gets no answer, and what comes after it can't be asked: that is played again, too.
            Err(error) => {
                println!("{name}: not played to its end on the real one: {error:#}");
                unplayed = Some(error);
            }
        }
        if differences.is_empty() && unplayed.is_none() {
            break;
        }
        for difference in &differences {
            println!("{difference}");
        }
    }
    // That tells nothing of who differs from whom: the machine may be too slow.
    if let Some(error) = unplayed {
        return Err(error.context(format!("{name}: not played to its end on the real one")));
    }
    Ok((simulated.len(), differences))
}

/// Everything that was answered, made comparable. What is wanted is waited for.
async fn perform<A: Application>(
    play: &Play<A::Act>,
    mut side: Side<'_, A>,
    wanted: Option<(&[Seen], Duration)>,
) -> Result<Vec<Seen>> {
    let mut cast = Cast::new::<A>(&side);
    let mut seen: Vec<Seen> = Vec::new();
    let mut sign = Token::None;
    for step in &play.steps {
        match step {
            Step::Start(who, which) => {
                let stays = side.start(&cast.member(*who)?, *which).await?;
                seen.push((format!("a process of the {which:?} binary in {who}"), format!("stays: {stays}")));
            }
            Step::Kill(who) => side.kill(&cast.member(*who)?).await?,
            Step::Stop(who) => side.stop(&cast.member(*who)?).await?,
            Step::Wait(seconds) => side.wait(Duration::from_secs(*seconds)).await,
            Step::Settle(seconds) => side.settle(Duration::from_secs(*seconds)),
            Step::Cast => assign(&mut side, &mut cast).await?,
            Step::Sign(token) => sign = *token,
            Step::Act(act) => {
                let done = A::act(&mut side, &mut cast, *act).await;
                done.with_context(|| format!("{act:?}, after {} answers", seen.len()))?;
            }
            Step::Ask(ask) => {
                let wanted = wanted.filter(|_| !ask.once);
                let wanted = wanted.and_then(|(wanted, patience)| Some((wanted.get(seen.len())?.1.as_str(), patience)));
                let got = wait_for(&mut side, &mut cast, (ask, sign), wanted).await?;
                seen.push((format!("answer {}, {ask} with the token {sign:?}", seen.len() + 1), got));
            }
        }
    }
    Ok(seen)
}

async fn wait_for<A: Application>(
    side: &mut Side<'_, A>,
    cast: &mut Cast,
    (ask, sign): (&Ask, Token),
    wanted: Option<(&str, Duration)>,
) -> Result<String> {
    let member = cast.member(ask.whom)?;
    let began = Instant::now();
    loop {
        let answer = side.ask(&member, ask.request::<A>(cast, sign)?).await?;
        if let Some(answer) = &answer {
            A::learn(cast, answer);
        }
        let seen = ask.canonical::<A>(cast, answer.as_ref());
        match wanted {
            Some((wanted, patience)) if wanted != seen && began.elapsed() < patience => side.wait(AGAIN).await,
            Some(_) | None => return Ok(seen),
        }
    }
}

async fn assign<A: Application>(side: &mut Side<'_, A>, cast: &mut Cast) -> Result<()> {
    let mut waited = Duration::ZERO;
    let began = Instant::now();
    loop {
        if let Some(leader) = A::assign(side, cast).await? {
            return cast.assign(&leader);
        }
        waited += AGAIN;
        if waited.max(began.elapsed()) > VERY_SLOW {
            bail!("nobody leads");
        }
        side.wait(AGAIN).await;
    }
}
