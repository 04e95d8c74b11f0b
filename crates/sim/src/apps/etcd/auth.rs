//! etcd's authentication: users and their roles, and the tokens that each member remembers.
//!
//! A token is got through the quorum, and every member knows it from then on: until five minutes after its last use there, or until its
//! process is started anew, for tokens are kept in memory alone. (A real member that is killed before it has written anything else replays
//! the log from there and knows the token again; whoever relies on that is lost at the next write.)

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header::AUTHORIZATION};
use serde_json::{Value, json};

use super::super::{Answer, Context, plain};
use super::answers::{FAILED_PRECONDITION, INVALID_ARGUMENT, PERMISSION_DENIED, UNAUTHENTICATED, ok, refused};
use super::{Etcd, EtcdCluster};

/// How long a token lives after its last use at a member.
const TOKEN_LIFE: Duration = Duration::from_mins(5);
/// Its owner may do everything.
const ROOT: &str = "root";

/// Who may ask.
#[derive(Default)]
pub(super) struct Auth {
    enabled: bool,
    users: BTreeMap<String, User>,
    roles: BTreeSet<String>,
}

struct User {
    password: String,
    roles: BTreeSet<String>,
}

/// A token, as one member remembers it.
#[derive(Clone)]
pub(super) struct Token {
    user: String,
    until: Duration,
    /// A member that has not applied the log so far waits before it believes or refuses the token.
    index: u64,
}

/// What a request needs.
enum Need {
    Nobody,
    Anybody,
    Root,
}

/// Whether a request is let in.
pub(super) enum Admission {
    Granted,
    Refused(Answer),
    /// It waits for longer than any caller does.
    Waits,
}

impl Need {
    fn of(path: &str) -> Self {
        match path {
            "/v3/maintenance/status" | "/v3/cluster/member/list" => Self::Anybody,
            "/v3/auth/authenticate" => Self::Nobody,
            "/v3/maintenance/transfer-leadership"
            | "/v3/maintenance/snapshot"
            | "/v3/cluster/member/add"
            | "/v3/cluster/member/remove" => Self::Root,
            path if path.starts_with("/v3/auth/") => Self::Root,
            _ => Self::Nobody,
        }
    }
}

impl EtcdCluster {
    pub(super) fn admit(&mut self, context: &Context, pod: &str, request: &Request<Bytes>) -> Admission {
        let length = self.log.length(context.now);
        let Some(member) = self.members.get_mut(pod).filter(|_| self.auth.enabled) else { return Admission::Granted };
        let no = |member: &Etcd, code, why| Admission::Refused(refused(member, code, why));
        let need = Need::of(request.uri().path());
        if matches!(need, Need::Nobody) {
            return Admission::Granted;
        }
        let Some(shown) = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()) else {
            return no(member, INVALID_ARGUMENT, "etcdserver: user name is empty");
        };
        let applied = member.process.applied(context.now, length);
        let user = match member.tokens.get_mut(shown) {
            Some(token) if applied < token.index => return Admission::Waits,
            Some(token) if context.now < token.until => {
                token.until = context.now + TOKEN_LIFE;
                token.user.clone()
            }
            Some(_) | None => return no(member, UNAUTHENTICATED, "etcdserver: invalid auth token"),
        };
        let is_root = self.auth.users.get(&user).is_some_and(|user| user.roles.contains(ROOT));
        match need {
            Need::Root if !is_root => no(member, PERMISSION_DENIED, "etcdserver: permission denied"),
            Need::Root | Need::Anybody | Need::Nobody => Admission::Granted,
        }
    }

    /// Requests that are about users, and go through the quorum.
    pub(super) fn answer_auth(&mut self, context: &Context, pod: &str, path: &str, body: &Value) -> Answer {
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let mut token = None;
        let done = match path {
            "user/add" => self.auth.add_user(text("name"), text("password")),
            "user/grant" => self.auth.grant(&text("user"), &text("role")),
            "role/add" => self.auth.add_role(text("name")),
            "enable" => self.auth.enable(),
            "disable" => {
                self.auth.enabled = false;
                self.members.values_mut().for_each(|member| member.tokens.clear());
                Ok(())
            }
            "authenticate" => self.auth.check(&text("name"), &text("password")).map(|()| {
                token = Some(self.issue(context, text("name")));
            }),
            _ => return plain(http::StatusCode::NOT_FOUND, "404 page not found\n"),
        };
        let Some(member) = self.members.get(pod) else { return plain(http::StatusCode::NOT_FOUND, "") };
        if let Err((code, why)) = done {
            return refused(member, code, why);
        }
        let mut header = self.header(member);
        header["revision"] = json!(self.log.length(context.now).saturating_sub(4).to_string());
        let mut answer = json!({ "header": header });
        if let Some(token) = token {
            answer["token"] = json!(token);
        }
        ok(&answer)
    }

    /// A token that every member knows.
    fn issue(&mut self, context: &Context, user: String) -> String {
        let index = self.log.length(context.now);
        let letters: String = format!("{:016x}", self.rng.next()).chars().map(letter).collect();
        let text = format!("{letters}.{index}");
        let token = Token { user, until: context.now + TOKEN_LIFE, index };
        for member in self.members.values_mut() {
            member.tokens.insert(text.clone(), token.clone());
        }
        text
    }
}

/// A letter for a digit.
fn letter(digit: char) -> char {
    char::from_digit(digit.to_digit(16).map_or(10, |number| number + 10), 36).unwrap_or('a')
}

type Refusal = (u32, &'static str);

impl Auth {
    fn add_user(&mut self, name: String, password: String) -> Result<(), Refusal> {
        if name.is_empty() {
            return Err((INVALID_ARGUMENT, "etcdserver: user name is empty"));
        }
        if self.users.contains_key(&name) {
            return Err((FAILED_PRECONDITION, "etcdserver: user name already exists"));
        }
        self.users.insert(name, User { password, roles: BTreeSet::new() });
        Ok(())
    }

    fn add_role(&mut self, name: String) -> Result<(), Refusal> {
        if self.roles.insert(name) {
            Ok(())
        } else {
            Err((FAILED_PRECONDITION, "etcdserver: role name already exists"))
        }
    }

    fn grant(&mut self, user: &str, role: &str) -> Result<(), Refusal> {
        let known = role == ROOT || self.roles.contains(role);
        let user = self.users.get_mut(user).ok_or((FAILED_PRECONDITION, "etcdserver: user name not found"))?;
        if !known {
            return Err((FAILED_PRECONDITION, "etcdserver: role name not found"));
        }
        user.roles.insert(role.to_owned());
        Ok(())
    }

    fn enable(&mut self) -> Result<(), Refusal> {
        let root = self.users.get(ROOT).ok_or((FAILED_PRECONDITION, "etcdserver: root user does not exist"))?;
        if !root.roles.contains(ROOT) {
            return Err((FAILED_PRECONDITION, "etcdserver: root user does not have root role"));
        }
        self.enabled = true;
        Ok(())
    }

    fn check(&self, name: &str, password: &str) -> Result<(), Refusal> {
        if !self.enabled {
            return Err((FAILED_PRECONDITION, "etcdserver: authentication is not enabled"));
        }
        let right = self.users.get(name).is_some_and(|user| user.password == password);
        let wrong = (INVALID_ARGUMENT, "etcdserver: authentication failed, invalid user ID or password");
        if right { Ok(()) } else { Err(wrong) }
    }
}
