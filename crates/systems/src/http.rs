//! Any system with HTTP endpoints: what each pod says of the cluster and how leadership is handed over, as a person described it.
//!
//! Called by the operator once per pass. It asks every pod itself, sends every request of the description once to each, and evaluates the
//! expressions on the answers. It must never merge the pods' answers into one view, fill in what an expression did not yield, or take a
//! success of a hand-over as proof that leadership moved.
//!
//! An answer is all of it or none: what can't be asked, can't be evaluated or is of the wrong kind is [`Unclear`], with the name of its
//! field. A status other than 2xx is that, too, unless the expression itself looks at `status`; 401 and 403 always are.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "which kinds of values there are depends on the library's features"
)]

use std::{collections::BTreeMap, fmt, net::IpAddr};

use bytes::Bytes;
use cel::Value;
use futures::future::join_all;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header, uri::PathAndQuery};

pub use crate::{call::Timeouts, expression::LONGEST};
use crate::{
    call::{self, CallError, Class, Reply, ask_all, call},
    escape,
    expression::{self, Expression, Variables},
    secret::Secret,
    transport::{Peer, Transport},
};

/// The longest answer that expressions are given.
const ANSWER_LIMIT: usize = 64 * 1024;
/// What an expression on an answer may use.
const NAMES: &[&str] = &["body", "headers", "pod", "status", "text"];
/// What an expression of the hand-over may use.
const TARGET: &str = "target";
/// Belong to the connection, not to the request.
const NOT_OURS: &[HeaderName] = &[
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// How a system is asked and told, as a person described it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Whether a pod takes part in a working quorum.
    pub health: Question,
    /// Whether a pod leads, or who does.
    pub leader: Question,
    /// The version that a pod runs.
    pub version: Question,
    /// How far a pod's log is; none where the system does not tell.
    pub position: Option<Question>,
    /// What the system calls a pod; its name without this.
    pub id: Option<Question>,
    /// Which pods are members; all are without this.
    pub members: Option<Question>,
    /// How the leader is told to hand over.
    pub hand_over: HandOver,
    /// The header that carries the token; `Authorization` without this, as a bearer's.
    pub token_header: Option<String>,
}

/// A request, and the expression on its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// GET or POST.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Headers by their names.
    pub headers: BTreeMap<String, String>,
    /// What is sent.
    pub body: Option<String>,
    /// What the answer means.
    pub cel: String,
}

/// How the leader is told to hand over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// How it is sent.
    pub method: Method,
    /// Path and query.
    pub path: Part,
    /// Headers by their names.
    pub headers: BTreeMap<String, String>,
    /// What is sent.
    pub body: Option<Part>,
}

/// A part of the hand-over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// As it is.
    Plain(String),
    /// What an expression on `target` yields.
    Cel(String),
}

/// A field of the description, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `health`.
    Health,
    /// `leader`.
    Leader,
    /// `version`.
    Version,
    /// `position`.
    Position,
    /// `id`.
    Id,
    /// `members`.
    Members,
    /// `handOver`.
    HandOver,
    /// `tokenHeader`.
    TokenHeader,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Health => "health",
            Self::Leader => "leader",
            Self::Version => "version",
            Self::Position => "position",
            Self::Id => "id",
            Self::Members => "members",
            Self::HandOver => "handOver",
            Self::TokenHeader => "tokenHeader",
        };
        write!(f, "spec.system.http.{name}")
    }
}

/// A description that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}{part}: {why}")]
pub struct Invalid {
    field: Field,
    /// What of it, like `.cel`.
    part: &'static str,
    why: String,
}

/// What could not be found out or told, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct Unclear {
    /// Which.
    pub field: Field,
    /// Why.
    pub why: Why,
}

/// Why something could not be found out or told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The pod did not answer, or not what was expected.
    #[error(transparent)]
    Call(CallError),
    /// The expression yielded nothing that can be sent.
    #[error("{0}")]
    Expression(String),
}

impl Unclear {
    /// What kind of trouble this is.
    pub fn class(&self) -> Class {
        match &self.why {
            Why::Call(error) => error.class(),
            Why::Expression(_) => Class::Garbled,
        }
    }
}

/// What one pod answered, or why its answer is not known.
pub type Answer = call::Answer<Said, Unclear>;

/// The cluster as one pod sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whether it takes part in a working quorum.
    pub healthy: bool,
    /// Whether it leads, or who does.
    pub leader: Leader,
    /// The version of the running process, as it was told.
    pub version: String,
    /// How far its log is; none where the system does not tell.
    pub position: Option<u64>,
    /// What the system calls it.
    pub id: String,
    /// The names of the pods that are members; none where nobody asks.
    pub members: Option<Vec<String>>,
}

/// What a pod knows of the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leader {
    /// It leads itself.
    Itself,
    /// It does not lead, and does not say who does.
    Another,
    /// Who leads, by id.
    Named(String),
    /// It knows of no leader.
    Nobody,
}

/// A system whose description was read.
#[derive(Clone, Debug)]
pub struct System {
    /// Every request once, however many questions are about its answer.
    asks: Vec<Prepared>,
    health: Asked,
    leader: Asked,
    version: Asked,
    position: Option<Asked>,
    id: Option<Asked>,
    members: Option<Asked>,
    hand_over: Told,
    token_header: Option<HeaderName>,
}

/// A request that can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prepared {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

#[derive(Clone, Debug)]
struct Asked {
    field: Field,
    /// Which of the requests.
    ask: usize,
    expression: Expression,
}

#[derive(Clone, Debug)]
struct Told {
    method: Method,
    path: Yields<Uri>,
    headers: HeaderMap,
    body: Yields<Bytes>,
}

/// What is known before the target is, or not.
#[derive(Clone, Debug)]
enum Yields<T> {
    Always(T),
    Evaluated(Expression),
}

impl System {
    /// Reads a description: all that can be wrong with it is found here, before anything is sent.
    pub fn new(description: &Description) -> Result<Self, Invalid> {
        let Description { health, leader, version, position, id, members, hand_over, token_header } = description;
        let mut asks = Asks(Vec::new());
        Ok(Self {
            health: asks.asked(Field::Health, health)?,
            leader: asks.asked(Field::Leader, leader)?,
            version: asks.asked(Field::Version, version)?,
            position: asks.perhaps(Field::Position, position.as_ref())?,
            id: asks.perhaps(Field::Id, id.as_ref())?,
            members: asks.perhaps(Field::Members, members.as_ref())?,
            asks: asks.0,
            hand_over: told(hand_over)?,
            token_header: token_header.as_deref().map(token_name).transpose()?,
        })
    }

    fn request(&self, prepared: &Prepared, token: Option<&Secret>) -> Request<Bytes> {
        let Prepared { method, uri, headers, body } = prepared.clone();
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        if let Some(token) = token {
            match &self.token_header {
                Some(name) => request.headers_mut().insert(name, token.header()),
                None => request.headers_mut().insert(header::AUTHORIZATION, token.bearer()),
            };
        }
        request
    }
}

/// Every request once.
struct Asks(Vec<Prepared>);

impl Asks {
    fn asked(&mut self, field: Field, question: &Question) -> Result<Asked, Invalid> {
        let Question { method, path, headers, body, cel } = question;
        let invalid = |part, why| Invalid { field, part, why };
        let prepared = Prepared {
            method: method.clone(),
            uri: uri(path).map_err(|why| invalid(".path", why))?,
            headers: headers_of(headers, body.is_some()).map_err(|why| invalid(".headers", why))?,
            body: body.clone().unwrap_or_default().into(),
        };
        let ask = self.0.iter().position(|other| *other == prepared).unwrap_or_else(|| {
            self.0.push(prepared);
            self.0.len() - 1
        });
        let expression = Expression::read(cel, NAMES).map_err(|why| invalid(".cel", why))?;
        Ok(Asked { field, ask, expression })
    }

    fn perhaps(&mut self, field: Field, question: Option<&Question>) -> Result<Option<Asked>, Invalid> {
        question.map(|question| self.asked(field, question)).transpose()
    }
}

fn told(hand_over: &HandOver) -> Result<Told, Invalid> {
    let HandOver { method, path, headers, body } = hand_over;
    let invalid = |part, why| Invalid { field: Field::HandOver, part, why };
    let evaluated = |part, cel: &str| {
        let expression = Expression::read(cel, &[TARGET]).map_err(|why| invalid(part, why))?;
        if expression.mentions(TARGET) {
            return Ok(expression);
        }
        Err(invalid(part, format!("it does not use {TARGET}: write it as it is, without an expression")))
    };
    Ok(Told {
        method: method.clone(),
        path: match path {
            Part::Plain(path) => Yields::Always(uri(path).map_err(|why| invalid(".path", why))?),
            Part::Cel(cel) => Yields::Evaluated(evaluated(".pathCel", cel)?),
        },
        headers: headers_of(headers, body.is_some()).map_err(|why| invalid(".headers", why))?,
        body: match body {
            None => Yields::Always(Bytes::new()),
            Some(Part::Plain(text)) => Yields::Always(text.clone().into()),
            Some(Part::Cel(cel)) => Yields::Evaluated(evaluated(".bodyCel", cel)?),
        },
    })
}

fn uri(path: &str) -> Result<Uri, String> {
    if !path.starts_with('/') {
        return Err("a path begins with a slash".to_owned());
    }
    let path = PathAndQuery::try_from(path).map_err(|error| error.to_string())?;
    Ok(Uri::from(path))
}

fn headers_of(written: &BTreeMap<String, String>, has_body: bool) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    if has_body {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in written {
        let header = header_name(name)?;
        let value = HeaderValue::try_from(value).map_err(|_| format!("the value of {name} can't be a header's"))?;
        headers.insert(header, value);
    }
    Ok(headers)
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    let header = HeaderName::try_from(name).map_err(|_| format!("{name} can't be a header's name"))?;
    if NOT_OURS.contains(&header) { Err(format!("{name} can't be set")) } else { Ok(header) }
}

fn token_name(name: &str) -> Result<HeaderName, Invalid> {
    header_name(name).map_err(|why| Invalid { field: Field::TokenHeader, part: "", why })
}

/// Asks every pod, all at once. One answer per peer, in the order given.
pub async fn observe(
    system: &System,
    transport: &dyn Transport,
    peers: &[Peer],
    token: Option<&Secret>,
    timeouts: &Timeouts,
) -> Vec<Answer> {
    ask_all(peers, |peer| ask(system, transport, peer, token, timeouts)).await
}

async fn ask(
    system: &System,
    transport: &dyn Transport,
    peer: &Peer,
    token: Option<&Secret>,
    timeouts: &Timeouts,
) -> Result<Said, Unclear> {
    let sent = system.asks.iter().enumerate().map(|(number, prepared)| {
        let limit = if number == system.health.ask { timeouts.health } else { timeouts.read };
        call(transport, peer, system.request(prepared, token), limit)
    });
    let heard = join_all(sent).await;
    let heard: Vec<Heard> = heard.into_iter().map(|reply| Heard::new(reply, peer)).collect();
    // The first failure in this order is told: the same answers give the same message.
    Ok(Said {
        healthy: understood(&heard, &system.health, boolean)?,
        leader: understood(&heard, &system.leader, leader)?,
        version: understood(&heard, &system.version, text)?,
        position: perhaps(&heard, system.position.as_ref(), position)?.flatten(),
        id: perhaps(&heard, system.id.as_ref(), text)?.unwrap_or_else(|| peer.pod.clone()),
        members: perhaps(&heard, system.members.as_ref(), names)?,
    })
}

/// An answer, and what expressions see of it.
enum Heard {
    Reply(Reply, Variables),
    Nothing(CallError),
}

impl Heard {
    fn new(reply: Result<Reply, CallError>, peer: &Peer) -> Self {
        match reply {
            Err(error) => Self::Nothing(error),
            Ok(reply) if reply.is_denied() => Self::Nothing(reply.refused()),
            Ok(reply) if reply.body().len() > ANSWER_LIMIT => {
                let why = format!("it is longer than {ANSWER_LIMIT} bytes, the most that expressions are given");
                Self::Nothing(reply.unreadable(&why))
            }
            Ok(reply) => {
                let variables = variables(&reply, peer);
                Self::Reply(reply, variables)
            }
        }
    }
}

fn variables(reply: &Reply, peer: &Peer) -> Variables {
    let headers = reply.headers().iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?.into())));
    let headers: serde_json::Map<_, _> = headers.map(|(name, value)| (name.to_owned(), value)).collect();
    let variables = Variables::new()
        .with("status", i64::from(reply.status().as_u16()))
        .with("headers", expression::seen(headers.into()))
        .with("pod", expression::seen(pod(&peer.pod, peer.address)));
    let variables = match std::str::from_utf8(reply.body()) {
        Ok(text) => variables.with("text", text),
        Err(_) => variables,
    };
    match serde_json::from_slice(reply.body()) {
        Ok(body) => variables.with("body", expression::seen(body)),
        Err(_) => variables,
    }
}

fn pod(name: &str, address: IpAddr) -> serde_json::Value {
    let index = name.rsplit('-').next().and_then(|ordinal| ordinal.parse::<u32>().ok());
    serde_json::json!({"name": name, "index": index, "address": address.to_string()})
}

fn perhaps<T>(
    heard: &[Heard],
    asked: Option<&Asked>,
    meaning: impl Fn(&Value) -> Result<T, String>,
) -> Result<Option<T>, Unclear> {
    asked.map(|asked| understood(heard, asked, meaning)).transpose()
}

fn understood<T>(heard: &[Heard], asked: &Asked, meaning: impl Fn(&Value) -> Result<T, String>) -> Result<T, Unclear> {
    let unclear = |error: CallError| Unclear { field: asked.field, why: Why::Call(error) };
    match heard.get(asked.ask) {
        Some(Heard::Nothing(error)) => Err(unclear(error.clone())),
        Some(Heard::Reply(reply, _)) if !reply.status().is_success() && !asked.expression.mentions("status") => {
            Err(unclear(reply.refused()))
        }
        Some(Heard::Reply(reply, variables)) => {
            let meaning = asked.expression.evaluate(variables).and_then(|value| meaning(&value));
            meaning.map_err(|why| unclear(reply.unreadable(&why)))
        }
        // Every question has its request.
        None => Err(Unclear { field: asked.field, why: Why::Expression("it was not asked".to_owned()) }),
    }
}

fn boolean(value: &Value) -> Result<bool, String> {
    if let Value::Bool(is) = value { Ok(*is) } else { Err(expected("true or false", value)) }
}

fn leader(value: &Value) -> Result<Leader, String> {
    match value {
        Value::Bool(true) => Ok(Leader::Itself),
        Value::Bool(false) => Ok(Leader::Another),
        Value::Null => Ok(Leader::Nobody),
        Value::String(id) if id.is_empty() => Ok(Leader::Nobody),
        _ => text(value).map(Leader::Named).map_err(|_| expected("true, false, an id or null", value)),
    }
}

/// Text that is not empty. A whole number is taken for the text of it: ids often are.
fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) if !text.is_empty() => Ok(text.to_string()),
        Value::Int(number) => Ok(number.to_string()),
        Value::UInt(number) => Ok(number.to_string()),
        _ => Err(expected("a text that is not empty", value)),
    }
}

fn position(value: &Value) -> Result<Option<u64>, String> {
    let number = match value {
        Value::Null => return Ok(None),
        Value::UInt(number) => Some(*number),
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    number.map(Some).ok_or_else(|| expected("a whole number from 0 on, or null", value))
}

/// A member is at least itself, so an empty list is not a fact about the cluster.
fn names(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::List(list) if !list.is_empty() => list.iter().map(text).collect(),
        _ => Err(expected("a list of names that is not empty", value)),
    }
}

fn expected(what: &str, value: &Value) -> String {
    format!("the expression must yield {what}, and yields {}", expression::kind(value))
}

/// Tells the leader to hand over, to the member with the id `target` where the description names one. `leader` is the pod that leads now.
///
/// Success means that this pod took it; read the others to believe it. After a time-out or a broken connection it may have happened as
/// well. Whether one that is sent too late does harm is for whoever described it to know.
pub async fn hand_over(
    system: &System,
    transport: &dyn Transport,
    leader: &Peer,
    target: &str,
    token: Option<&Secret>,
    timeouts: &Timeouts,
) -> Result<(), Unclear> {
    let unclear = |why| Unclear { field: Field::HandOver, why };
    let Told { method, path, headers, body } = &system.hand_over;
    let prepared = Prepared {
        method: method.clone(),
        uri: path_to(path, target).map_err(|why| unclear(Why::Expression(why)))?,
        headers: headers.clone(),
        body: body_to(body, target).map_err(|why| unclear(Why::Expression(why)))?,
    };
    let reply = call(transport, leader, system.request(&prepared, token), timeouts.verb).await;
    reply.and_then(Reply::success).map(drop).map_err(|error| unclear(Why::Call(error)))
}

fn path_to(path: &Yields<Uri>, target: &str) -> Result<Uri, String> {
    match path {
        Yields::Always(uri) => Ok(uri.clone()),
        // Whatever an id holds, it stays where it was put.
        Yields::Evaluated(expression) => {
            let path = expression.evaluate(&Variables::new().with(TARGET, escape::segment(target)));
            uri(&path.and_then(|path| text(&path)).map_err(|why| format!("pathCel: {why}"))?)
        }
    }
}

fn body_to(body: &Yields<Bytes>, target: &str) -> Result<Bytes, String> {
    let expression = match body {
        Yields::Always(body) => return Ok(body.clone()),
        Yields::Evaluated(expression) => expression,
    };
    let body = expression.evaluate(&Variables::new().with(TARGET, target)).and_then(|value| match value {
        Value::String(text) => Ok(text.to_string()),
        _ => expression::json(&value).map(|json| json.to_string()).ok_or_else(|| expected("text or JSON", &value)),
    });
    body.map(Bytes::from).map_err(|why| format!("bodyCel: {why}"))
}
