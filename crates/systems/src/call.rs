//! One request to one pod, with a time-out and an error that a person can act on.
//!
//! Used by every adapter. It must never retry (the next pass looks again), never treat a missing answer as an answer,
//! and never put a header, a query or a body that we sent into a message: these may hold secrets. A pod, or a proxy before it, may
//! send them back; so what is repeated of an answer has every [`Secret`] of the question taken out.

use std::{fmt, io, time::Duration};

use bytes::Bytes;
use futures::future::join_all;
use http::{HeaderMap, Method, Request, StatusCode};
use serde::de::DeserializeOwned;

use crate::{
    secret::BEARER,
    transport::{ANSWER_LIMIT, Fault, Peer, Transport},
};

/// How much of a pod's own text is repeated in a message.
const TEXT_LIMIT: usize = 200;

/// How long each call may take. Deadlines of steps are the planner's; these only keep one silent pod from holding up a
/// pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For reading what a pod knows itself.
    pub read: Duration,
    /// For health, in which the pod waits for others: PD up to 3 s for every silent one, etcd up to 7 s for a majority.
    pub health: Duration,
    /// For a verb; past the 5 s that PD gives a transfer. etcd itself never gives up.
    pub verb: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { read: Duration::from_secs(3), health: Duration::from_secs(8), verb: Duration::from_secs(10) }
    }
}

/// Who was asked what: the part of every message that tells a person where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pod: String,
    method: Method,
    /// Without the query.
    path: String,
}

impl Asked {
    /// The pod that was asked.
    pub fn pod(&self) -> &str {
        &self.pod
    }

    fn failed(&self, failure: Failure) -> CallError {
        CallError { asked: self.clone(), failure }
    }
}

/// An answer of any status, together with the question.
#[derive(Clone)]
pub struct Reply {
    asked: Asked,
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    hidden: Hidden,
}

/// Without headers and body: the answer to a login is a secret.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, status, headers: _, body, hidden: _ } = self;
        f.debug_struct("Reply").field("asked", asked).field("status", status).field("bytes", &body.len()).finish()
    }
}

impl Reply {
    /// The status as sent; redirects are not followed.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers as sent.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body as sent.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Accepts a 2xx and makes everything else an error.
    pub fn success(self) -> Result<Self, CallError> {
        if self.status.is_success() {
            return Ok(self);
        }
        Err(self.refused())
    }

    /// Keeps a secret that was sent in the body, and so is not known by its mark, out of every message about this answer.
    #[must_use]
    pub(crate) fn hiding(mut self, secret: &str) -> Self {
        self.hidden.0.push(secret.to_owned());
        self
    }

    /// A refusal that the status alone tells, in words.
    pub(crate) fn refused_because(&self, text: &str) -> CallError {
        self.asked.failed(Failure::Status { code: self.status.as_u16(), text: text.to_owned() })
    }

    /// Whether these words are in it.
    pub(crate) fn says(&self, words: &str) -> bool {
        told(&self.body).contains(words)
    }

    /// Whether it is about who asks.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }

    /// The refusal that this answer is.
    pub(crate) fn refused(&self) -> CallError {
        let (code, text) = (self.status.as_u16(), self.hidden.line(&told(&self.body)));
        self.asked.failed(if self.is_denied() {
            Failure::Denied { code, text }
        } else {
            Failure::Status { code, text }
        })
    }

    /// Reads the body as JSON where the application answers in JSON with these statuses too; every other status is an error.
    pub fn json_also<T: DeserializeOwned>(self, also: &[u16]) -> Result<T, CallError> {
        if !also.contains(&self.status.as_u16()) {
            return self.json();
        }
        serde_json::from_slice(&self.body).map_err(|_| self.refused())
    }

    /// Reads the body of a success as JSON.
    pub fn json<T: DeserializeOwned>(self) -> Result<T, CallError> {
        let reply = self.success()?;
        serde_json::from_slice(&reply.body).map_err(|error| reply.unreadable(&error.to_string()))
    }

    /// Reads the body of a success as JSON and then as what it means.
    pub fn read<W: DeserializeOwned, T>(self, meaning: impl FnOnce(W) -> Result<T, String>) -> Result<T, CallError> {
        let (asked, hidden) = (self.asked.clone(), self.hidden.clone());
        meaning(self.json()?).map_err(|text| asked.failed(Failure::Unreadable(hidden.line(&text))))
    }

    /// An answer that is not what was expected, in words.
    pub(crate) fn unreadable(&self, text: &str) -> CallError {
        self.asked.failed(Failure::Unreadable(self.hidden.line(text)))
    }
}

/// What was sent and must not be repeated.
#[derive(Clone, Default)]
struct Hidden(Vec<String>);

impl Hidden {
    /// The headers that are marked as sensitive, as those made of a [`Secret`] are. A bearer token comes back without that word, too.
    fn in_headers(request: &Request<Bytes>) -> Self {
        let sensitive = request.headers().values().filter(|value| value.is_sensitive());
        let bare = |value: &str| value.strip_prefix(BEARER).unwrap_or(value).to_owned();
        Self(sensitive.filter_map(|value| value.to_str().ok()).map(bare).collect())
    }

    /// The text without what is hidden, as one line. Cut last: half a secret would not be found.
    fn line(&self, text: &str) -> String {
        let shown = self.0.iter().filter(|secret| !secret.is_empty()).fold(text.to_owned(), |text, secret| {
            if text.contains(secret) { text.replace(secret, "(hidden)") } else { text }
        });
        cut(&shown)
    }
}

/// Sends `request` to `peer` and waits for the whole answer for at most `limit`.
pub async fn call(
    transport: &dyn Transport,
    peer: &Peer,
    request: Request<Bytes>,
    limit: Duration,
) -> Result<Reply, CallError> {
    let asked =
        Asked { pod: peer.pod.clone(), method: request.method().clone(), path: request.uri().path().to_owned() };
    let hidden = Hidden::in_headers(&request);
    match tokio::time::timeout(limit, transport.send(peer, request)).await {
        Err(_elapsed) => Err(asked.failed(Failure::TimedOut)),
        Ok(Err(error)) => Err(asked.failed(Failure::of(&error, &hidden))),
        Ok(Ok(response)) => {
            let (head, body) = response.into_parts();
            // Checked here too, so that the rule holds for every transport.
            if body.len() > ANSWER_LIMIT {
                return Err(asked.failed(Failure::TooLarge));
            }
            Ok(Reply { asked, status: head.status, headers: head.headers, body, hidden })
        }
    }
}

/// What one pod answered, or why its answer is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<S, E = CallError> {
    /// The pod that was asked.
    pub pod: String,
    /// All of it or none: where one of the reads failed, this is that failure.
    pub said: Result<S, E>,
}

/// Asks every pod, all at once, so that a silent one holds up no other. One answer per peer, in the order given.
pub async fn ask_all<'a, S, E, F>(peers: &'a [Peer], ask: impl Fn(&'a Peer) -> F) -> Vec<Answer<S, E>>
where
    F: Future<Output = Result<S, E>>,
{
    // Called for all before the first is awaited, so that what is awaited does not borrow `ask`.
    let asked = peers.iter().map(|peer| (peer, ask(peer)));
    join_all(asked.map(async |(peer, said)| Answer { pod: peer.pod.clone(), said: said.await })).await
}

/// Why a pod's answer is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    asked: Asked,
    failure: Failure,
}

/// What went wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody listens on the port.
    Refused,
    /// No whole answer in time. A verb may have been carried out.
    TimedOut,
    /// The two sides could not agree that they are who they say.
    Tls(String),
    /// The connection failed in another way. A verb may have been carried out.
    Broken(String),
    /// The application answered, and not with a success.
    Status {
        /// The HTTP status.
        code: u16,
        /// What the application said about it, cut.
        text: String,
    },
    /// The application wants to know who is asking, or does not let this caller.
    Denied {
        /// The HTTP status.
        code: u16,
        /// What the application said about it, cut.
        text: String,
    },
    /// The application answered something that is not what it is known to answer.
    Unreadable(String),
    /// The answer is longer than any that is known.
    TooLarge,
}

impl Failure {
    fn of(error: &io::Error, hidden: &Hidden) -> Self {
        if let Some(fault) = error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>()) {
            return match fault {
                Fault::Untrusted(check) => Self::Tls(hidden.line(check)),
                Fault::TooLarge => Self::TooLarge,
            };
        }
        if error.kind() == io::ErrorKind::ConnectionRefused {
            return Self::Refused;
        }
        if error.kind() == io::ErrorKind::TimedOut {
            return Self::TimedOut;
        }
        Self::Broken(hidden.line(&error.to_string()))
    }
}

/// What kind of trouble a [`CallError`] is, and so who can end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nothing was heard: the pod may be starting, stopping or cut off. Time can heal it.
    Unreachable,
    /// Certificates or names don't match. A person has to look.
    Untrusted,
    /// The application wants credentials, or others. A person has to look.
    Denied,
    /// The application itself said no.
    Refused,
    /// The application speaks in a way that this version does not know.
    Garbled,
}

impl CallError {
    /// The same refusal, once its words say that it is about credentials: not every application has a status for that.
    #[must_use]
    pub fn denied_if(mut self, about_credentials: impl FnOnce(&str) -> bool) -> Self {
        if let Failure::Status { code, text } = &self.failure
            && about_credentials(text)
        {
            self.failure = Failure::Denied { code: *code, text: text.clone() };
        }
        self
    }

    /// The pod that was asked.
    pub fn pod(&self) -> &str {
        self.asked.pod()
    }

    /// What went wrong.
    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// What kind of trouble this is.
    pub fn class(&self) -> Class {
        match &self.failure {
            Failure::Refused | Failure::TimedOut | Failure::Broken(_) => Class::Unreachable,
            Failure::Tls(_) => Class::Untrusted,
            Failure::Denied { .. } => Class::Denied,
            Failure::Status { .. } => Class::Refused,
            Failure::Unreadable(_) | Failure::TooLarge => Class::Garbled,
        }
    }

    /// What a person should look at first.
    pub fn next_step(&self) -> &'static str {
        match &self.failure {
            Failure::Refused => "check that the application in this pod has started and listens on this port",
            Failure::TimedOut => {
                "check the pod, its node, and that network policies let the operator in; the answer may also be slow"
            }
            Failure::Tls(_) => {
                "check the CA bundle, the names in the pod's certificate, and the operator's client certificate"
            }
            Failure::Broken(_) => {
                "check the pod's log for a restart, and whether the application speaks TLS on this port"
            }
            Failure::Denied { .. } => {
                "check what Windlass shows to the application, and what that lets it do: a client certificate, or a token or a role"
            }
            Failure::Status { .. } => "see the application's log for the reason it gave",
            Failure::Unreadable(_) | Failure::TooLarge => {
                "check that the port belongs to the application and that its version is supported"
            }
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Asked { pod, method, path } = &self.asked;
        match &self.failure {
            Failure::Refused => write!(f, "{pod} refused the connection for {method} {path}"),
            Failure::TimedOut => write!(f, "{pod} did not answer {method} {path} in time"),
            Failure::Tls(check) => write!(f, "no trusted connection to {pod} for {method} {path}: {check}"),
            Failure::Broken(text) => write!(f, "the connection to {pod} broke during {method} {path}: {text}"),
            Failure::Status { code, text } if text.is_empty() => write!(f, "{pod} answered {code} to {method} {path}"),
            Failure::Status { code, text } => write!(f, "{pod} answered {code} to {method} {path}: {text}"),
            Failure::Denied { code, text } if text.is_empty() => {
                write!(f, "{pod} asks for credentials: {code} to {method} {path}")
            }
            Failure::Denied { code, text } => {
                write!(f, "{pod} asks for credentials: {code} to {method} {path}: {text}")
            }
            Failure::Unreadable(text) => {
                write!(f, "{pod} answered {method} {path} with something unreadable: {text}")
            }
            Failure::TooLarge => {
                write!(f, "{pod} answered {method} {path} with more than {ANSWER_LIMIT} bytes")
            }
        }
    }
}

impl std::error::Error for CallError {}

/// The words in the body of an error: servers wrap them in a JSON string or in an object with a message or a list of them, and
/// people want the words.
fn told(body: &[u8]) -> String {
    match serde_json::from_slice::<serde_json::Value>(body) {
        Ok(serde_json::Value::String(words)) => Some(words),
        Ok(serde_json::Value::Object(fields)) => {
            let message = ["message", "error"].iter().find_map(|name| fields.get(*name)?.as_str().map(str::to_owned));
            message.or_else(|| {
                let errors = fields.get("errors")?.as_array()?;
                errors.iter().map(serde_json::Value::as_str).collect::<Option<Vec<_>>>().map(|errors| errors.join("; "))
            })
        }
        Ok(_) | Err(_) => None,
    }
    // Anything else is repeated as it came.
    .unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
}

/// One line of at most [`TEXT_LIMIT`] characters: this text ends up in conditions, events and terminals.
fn cut(text: &str) -> String {
    let line = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut cut = String::new();
    let mut length = 0;
    for (index, word) in line.enumerate() {
        let space = usize::from(index > 0);
        for character in std::iter::repeat_n(' ', space).chain(word.chars()) {
            if length == TEXT_LIMIT {
                cut.push('…');
                return cut;
            }
            cut.push(character);
            length += 1;
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_json_string_is_unwrapped(r#""no leader""#, "no leader")]
    #[case::a_message_is_taken_out(r#"{"code":9,"message":"etcdserver: not leader"}"#, "etcdserver: not leader")]
    #[case::errors_are_joined(
        r#"{"errors":["permission denied","invalid token"]}"#,
        "permission denied; invalid token"
    )]
    #[case::no_errors_are_no_words(r#"{"errors":[]}"#, "")]
    #[case::errors_of_another_kind_stay(r#"{"errors":[1]}"#, r#"{"errors":[1]}"#)]
    #[case::an_object_without_words_stays(r#"{"code":9}"#, r#"{"code":9}"#)]
    #[case::plain_text_stays("404 page not found\n", "404 page not found")]
    #[case::lines_are_joined("a\r\n\x1b[31m b\n", "a [31m b")]
    #[case::nothing_stays_nothing("", "")]
    fn words_of_an_error_are_found(#[case] body: &str, #[case] words: &str) {
        assert_eq!(cut(&told(body.as_bytes())), words);
    }

    #[test]
    fn what_was_sent_is_taken_out_before_the_text_is_cut() {
        let secret = "hvs.CAESIJ".to_owned();
        let text = format!("{}{secret} and {secret}", "x".repeat(TEXT_LIMIT - 5));
        let line = Hidden(vec![secret]).line(&text);
        assert!(line.ends_with("(hidd…") && !line.contains("hvs"), "{line}");
        assert_eq!(Hidden(vec![String::new()]).line("no secret"), "no secret");
    }

    #[test]
    fn long_text_is_cut_at_a_character_and_says_so() {
        let text = cut(&"é".repeat(500));
        assert_eq!(text.chars().count(), TEXT_LIMIT + 1);
        assert!(text.ends_with('…'));
        assert_eq!(cut(&"é".repeat(TEXT_LIMIT)).chars().count(), TEXT_LIMIT);
    }

    #[rstest]
    #[case(io::Error::from(io::ErrorKind::ConnectionRefused), Failure::Refused, Class::Unreachable)]
    #[case(io::Error::from(io::ErrorKind::TimedOut), Failure::TimedOut, Class::Unreachable)]
    #[case(io::Error::other("reset"), Failure::Broken("reset".into()), Class::Unreachable)]
    #[case(Fault::Untrusted("wrong name".into()).into(), Failure::Tls("wrong name".into()), Class::Untrusted)]
    #[case(Fault::TooLarge.into(), Failure::TooLarge, Class::Garbled)]
    fn transport_errors_are_told_apart(#[case] error: io::Error, #[case] failure: Failure, #[case] class: Class) {
        let found = Failure::of(&error, &Hidden::default());
        assert_eq!(found, failure);
        let asked = Asked { pod: "pd-0".into(), method: Method::GET, path: "/".into() };
        let error = asked.failed(found);
        assert_eq!(error.class(), class);
        assert!(!error.next_step().is_empty());
    }
}
