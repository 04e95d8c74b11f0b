//! What a simulated etcd answers over HTTP, in the shapes and with the texts of real ones: 3.5.35, and 3.6.16 from 3.6 on.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use serde_json::{Value, json};

use super::super::{Answer, Context, minor, plain, respond};
use super::auth::Admission;
use super::{Etcd, EtcdCluster};

const STATUS: &str = "/v3/maintenance/status";
const LIST: &str = "/v3/cluster/member/list";

/// How long a request through the quorum is tried: five seconds and two election time-outs.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(7);
/// The numbers of gRPC's statuses.
pub(super) const INVALID_ARGUMENT: u32 = 3;
pub(super) const PERMISSION_DENIED: u32 = 7;
pub(super) const FAILED_PRECONDITION: u32 = 9;
const UNAVAILABLE: u32 = 14;
pub(super) const UNAUTHENTICATED: u32 = 16;

fn render(status: StatusCode, body: &Value) -> Answer {
    respond(status, "application/json", body.to_string())
}

pub(super) fn ok(body: &Value) -> Answer {
    render(StatusCode::OK, body)
}

/// Whether the process is of 3.6 or later.
pub(super) fn is_new(member: &Etcd) -> bool {
    member.minor().is_none_or(|minor| minor >= (3, 6))
}

/// A refusal: until 3.5 the gateway says everything twice.
pub(super) fn refused(member: &Etcd, code: u32, message: &str) -> Answer {
    let status = match code {
        UNAVAILABLE => StatusCode::SERVICE_UNAVAILABLE,
        UNAUTHENTICATED => StatusCode::UNAUTHORIZED,
        PERMISSION_DENIED => StatusCode::FORBIDDEN,
        _ => StatusCode::BAD_REQUEST,
    };
    let mut body = json!({"code": code, "message": message});
    if !is_new(member) {
        body["error"] = json!(message);
    }
    render(status, &body)
}

fn timed_out(member: &Etcd) -> Answer {
    refused(member, UNAVAILABLE, "etcdserver: request timed out").after(REQUEST_TIMEOUT)
}

fn not_for_learners(member: &Etcd) -> Answer {
    let code = if is_new(member) { FAILED_PRECONDITION } else { UNAVAILABLE };
    refused(member, code, "etcdserver: rpc not supported for learner")
}

/// A 64-bit number in a request, which may be a string or a number.
fn wide(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).or_else(|| value.as_u64()).unwrap_or(0)
}

impl EtcdCluster {
    pub fn answer(&mut self, context: &mut Context, pod: &str, request: &Request<Bytes>) -> Option<Answer> {
        let member = self.members.get(pod).filter(|member| member.serves())?;
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let path = request.uri().path();
        if request.method() == Method::POST && path.starts_with("/v3/") {
            if member.learner && path != STATUS {
                return Some(not_for_learners(member));
            }
            if path == LIST && body["linearizable"] == true && !self.works() {
                return Some(timed_out(member));
            }
            match self.admit(context, pod, request) {
                Admission::Granted => {}
                Admission::Refused(answer) => return Some(answer),
                Admission::Waits => return None,
            }
        }
        let member = self.members.get(pod)?;
        Some(match (request.method(), path) {
            (&Method::POST, STATUS) => self.status(context, pod, member),
            (&Method::POST, path) if path.starts_with("/v3/auth/") && !self.works() => timed_out(member),
            (&Method::POST, path) if path.starts_with("/v3/auth/") => {
                let what = path.trim_start_matches("/v3/auth/").to_owned();
                return Some(self.answer_auth(context, pod, &what, &body));
            }
            (&Method::POST, LIST) => ok(&json!({"header": self.header(member), "members": self.list()})),
            (&Method::POST, "/v3/maintenance/transfer-leadership") => return self.move_leader(context, pod, &body),
            (&Method::POST, "/v3/cluster/member/add") => self.add_member(pod, &body),
            (&Method::POST, "/v3/cluster/member/remove") => self.remove_member(context, pod, &body),
            (&Method::GET, "/health") => self.health(context, member),
            (&Method::GET, "/readyz") => self.ready(member),
            (&Method::GET, "/livez") => plain(StatusCode::OK, "ok\n"),
            (&Method::GET, "/version") => self.version_of(member),
            _ => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
        })
    }

    /// Whether a request through the quorum would succeed.
    fn works(&self) -> bool {
        self.true_leader().is_some() && self.has_majority()
    }

    pub(super) fn header(&self, member: &Etcd) -> Value {
        json!({
            "cluster_id": self.cluster_id.to_string(),
            "member_id": member.process.id.to_string(),
            "raft_term": self.term.to_string(),
        })
    }

    /// Whom this member follows.
    fn followed(&self, context: &Context, member: &Etcd) -> Option<&Etcd> {
        self.leader.as_ref().and_then(|leader| self.members.get(leader)).filter(|_| context.now >= member.hears_at)
    }

    /// The member's own state: 64-bit numbers are strings, what is zero or false is left out.
    fn status(&self, context: &Context, pod: &str, member: &Etcd) -> Answer {
        let leads = self.leader.as_deref() == Some(pod);
        let length = if leads { self.log.length(context.now) } else { self.log.heard(context.now) };
        let applied = member.process.applied(context.now, length);
        let mut header = self.header(member);
        header["revision"] = json!(applied.saturating_sub(4).to_string());
        let mut body = json!({
            "header": header,
            "version": member.process.version.trim_start_matches('v'),
            "dbSize": "528384",
            "raftIndex": applied.to_string(),
            "raftTerm": self.term.to_string(),
            "raftAppliedIndex": applied.to_string(),
            "dbSizeInUse": "528384",
        });
        match self.followed(context, member) {
            Some(leader) => body["leader"] = json!(leader.process.id.to_string()),
            None if self.leader.as_deref() == Some(pod) => body["leader"] = json!(member.process.id.to_string()),
            None => body["errors"] = json!(["etcdserver: no leader"]),
        }
        if member.learner {
            body["isLearner"] = json!(true);
        }
        if is_new(member) {
            body["storageVersion"] = json!(self.cluster_version());
            body["dbSizeQuota"] = json!("2147483648");
            body["downgradeInfo"] = json!({});
        }
        ok(&body)
    }

    fn cluster_version(&self) -> String {
        let (major, minor) = self.version.unwrap_or((3, 0));
        format!("{major}.{minor}.0")
    }

    fn url(&self, name: &str, port: u16) -> String {
        format!("http://{name}.{}.{}.svc.cluster.local:{port}", self.service, self.namespace)
    }

    /// The members in the order of their ids.
    fn list(&self) -> Value {
        let mut members: Vec<_> = self.members.iter().collect();
        members.sort_by_key(|(_, member)| member.process.id);
        members.into_iter().map(|(name, member)| self.describe(name, member)).collect()
    }

    fn describe(&self, name: &str, member: &Etcd) -> Value {
        let mut shown = json!({"ID": member.process.id.to_string(), "peerURLs": [self.url(name, 2380)]});
        if member.started {
            shown["name"] = json!(name);
            shown["clientURLs"] = json!([self.url(name, 2379)]);
        }
        if member.learner {
            shown["isLearner"] = json!(true);
        }
        shown
    }

    /// None when it never answers: a target that does not serve is waited for as long as the caller waits.
    fn move_leader(&mut self, context: &mut Context, pod: &str, body: &Value) -> Option<Answer> {
        let own = self.members.get(pod)?;
        if self.leader.as_deref() != Some(pod) {
            return Some(refused(own, FAILED_PRECONDITION, "etcdserver: not leader"));
        }
        let target = wide(&body["targetID"]);
        let found = self.voters().find(|(_, member)| member.process.id == target).map(|(name, _)| name.clone());
        let Some(name) = found else {
            return Some(refused(own, FAILED_PRECONDITION, "etcdserver: bad leader transferee"));
        };
        if name == pod {
            return Some(ok(&json!({})));
        }
        if !self.serves(&name) || !self.has_majority() {
            return None;
        }
        if self.clings {
            return Some(ok(&json!({})));
        }
        let takes = self.transfer_to(context, &name);
        Some(ok(&json!({})).after(takes).changed())
    }

    fn add_member(&mut self, pod: &str, body: &Value) -> Answer {
        let peer = body["peerURLs"][0].as_str().and_then(|url| url.parse::<Uri>().ok());
        let name = peer.as_ref().and_then(Uri::host).and_then(|host| host.split('.').next()).unwrap_or_default();
        let whole = self.voters().all(|(_, member)| member.serves());
        let new = !name.is_empty() && !self.members.contains_key(name);
        if let Some(own) = self.members.get(pod).filter(|_| !whole || !new) {
            let why = if whole { "etcdserver: Peer URLs already exists" } else { "etcdserver: unhealthy cluster" };
            return refused(own, if whole { FAILED_PRECONDITION } else { UNAVAILABLE }, why);
        }
        self.add(name, body["isLearner"] == true, false);
        match (self.members.get(name), self.members.get(pod)) {
            (Some(member), Some(own)) => {
                let member = self.describe(name, member);
                ok(&json!({"header": self.header(own), "member": member, "members": self.list()})).changed()
            }
            _ => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
        }
    }

    fn remove_member(&mut self, context: &mut Context, pod: &str, body: &Value) -> Answer {
        let id = wide(&body["ID"]);
        let found = self.members.iter().find(|(_, member)| member.process.id == id).map(|(name, _)| name.clone());
        if let Some(name) = &found {
            self.remove(context, name);
        }
        match (self.members.get(pod), found) {
            (Some(own), Some(_)) => ok(&json!({"header": self.header(own), "members": self.list()})).changed(),
            (Some(own), None) => {
                let mut answer = refused(own, 5, "etcdserver: member not found");
                *answer.response.status_mut() = StatusCode::NOT_FOUND;
                answer
            }
            (None, _) => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
        }
    }

    fn health(&self, context: &Context, member: &Etcd) -> Answer {
        let sick = |reason: &str| {
            plain(StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", json!({"health": "false", "reason": reason})))
        };
        if self.followed(context, member).is_none() {
            return sick("RAFT NO LEADER");
        }
        let well = plain(StatusCode::OK, json!({"health": "true", "reason": ""}).to_string());
        match (self.works(), self.has_majority()) {
            (true, _) => well,
            // It waits for the vote that is coming.
            (false, true) => well.after(Duration::from_secs(2)),
            (false, false) => sick("RANGE ERROR:etcdserver: request timed out").after(REQUEST_TIMEOUT),
        }
    }

    /// Every check with its outcome, if one of them failed.
    fn ready(&self, member: &Etcd) -> Answer {
        if self.works() && !member.learner {
            return plain(StatusCode::OK, "ok\n");
        }
        let outcome = |name: &str, failure: Option<&str>| match failure {
            None => format!("[+]{name} ok\n"),
            Some(why) => format!("[-]{name} failed: {why}\n"),
        };
        let read = (!self.works()).then_some("etcdserver: request timed out");
        let learner = member.learner.then_some("not supported for learner");
        let text = [
            outcome("data_corruption", None),
            outcome("serializable_read", None),
            outcome("linearizable_read", read),
            outcome("non_learner", learner),
        ]
        .concat();
        let answer = plain(StatusCode::SERVICE_UNAVAILABLE, format!("{text}\n"));
        if read.is_some() { answer.after(REQUEST_TIMEOUT) } else { answer }
    }

    fn version_of(&self, member: &Etcd) -> Answer {
        let mut body = json!({
            "etcdserver": member.process.version.trim_start_matches('v'),
            "etcdcluster": self.cluster_version(),
        });
        if minor(&member.process.version).is_none_or(|minor| minor >= (3, 6)) {
            body["storage"] = json!(self.cluster_version());
        }
        ok(&body)
    }
}
