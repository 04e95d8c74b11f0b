//! What a simulated PD answers over HTTP, in the shapes and with the texts of a real v8.5.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use super::super::{Answer, Context, member::Member, plain, respond};
use super::PdCluster;

/// How long etcd waits for a transfer's target.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long PD waits for each member when it is asked for health.
const PING_TIMEOUT: Duration = Duration::from_secs(3);
/// The text for a transfer whose target did not answer, as recorded.
const TRANSFER_TIMED_OUT: &str = "[PD:etcd:ErrEtcdMoveLeader]etcdserver: request timed out, leader transfer took too long: etcdserver: request timed out, leader transfer took too long";
/// Asked of a follower with this header, a request is not forwarded.
const ALLOW_FOLLOWER: &str = "PD-Allow-follower-handle";

/// How long a follower waits for a leader to forward to.
const LEADER_WAIT: Duration = Duration::from_secs(3);
/// How long PD waits for its etcd.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Nobody is there to forward to.
fn no_leader() -> Answer {
    let why = "[PD:apiutil:ErrRedirectNoLeader]redirect finds no leader\n";
    plain(StatusCode::SERVICE_UNAVAILABLE, why).after(LEADER_WAIT)
}

fn render(status: StatusCode, body: &Value) -> Answer {
    respond(status, "application/json; charset=UTF-8", format!("{body}\n"))
}

impl PdCluster {
    pub fn answer(&mut self, context: &mut Context, pod: &str, request: &Request<Bytes>) -> Option<Answer> {
        let Some(member) = self.members.get(pod) else {
            // A process whose member was removed has no part in the quorum and knows nobody to ask.
            return Some(no_leader());
        };
        if !member.serves() {
            return None;
        }
        let path = request.uri().path();
        if let Some(path) = path.strip_prefix("/pd/api/v1/") {
            return self.version_one(context, pod, path, request);
        }
        // These are answered by the process itself, whoever leads.
        Some(match (request.method(), path) {
            (&Method::GET, "/pd/api/v2/ready") => self.ready(context, pod),
            (&Method::GET, "/readyz") if has_new_etcd(&member.version) => plain(StatusCode::OK, "ok\n"),
            (&Method::POST, "/v3/maintenance/status") => self.etcd_status(context, pod),
            (_, path) if path.starts_with("/pd/api/v2/") => plain(StatusCode::NOT_FOUND, "404 page not found"),
            _ => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
        })
    }

    /// The first API version, which followers forward to the leader.
    fn version_one(
        &mut self,
        context: &mut Context,
        pod: &str,
        path: &str,
        request: &Request<Bytes>,
    ) -> Option<Answer> {
        let version = self.members.get(pod).map(|member| member.version.as_str()).unwrap_or_default();
        let own = matches!(path, "health" | "ping" | "version") && answers_alone(version);
        let local = own || request.headers().get(ALLOW_FOLLOWER).is_some_and(|value| !value.is_empty());
        let mut server = pod.to_owned();
        if !local && self.leader.as_deref() != Some(pod) {
            match self.leader.clone() {
                None => return Some(no_leader()),
                // The follower's own request to a stuck leader never ends.
                Some(leader) if self.members.get(&leader).is_some_and(Member::hangs) => return None,
                Some(leader) if !self.serves(&leader) => {
                    return Some(plain(StatusCode::INTERNAL_SERVER_ERROR, "[PD:apiutil:ErrRedirect]redirect failed\n"));
                }
                Some(leader) => server = leader,
            }
        }
        let parts: Vec<&str> = path.split('/').collect();
        Some(match (request.method(), parts.as_slice()) {
            (&Method::GET, ["members"]) => self.list_members(),
            (&Method::GET, ["health"]) => self.health(),
            (&Method::GET, ["leader"]) => render(StatusCode::OK, &self.describe(self.leader.as_ref(), false)),
            (&Method::GET, ["version"]) => {
                let version = self.members.get(&server).map(|member| member.version.as_str());
                render(StatusCode::OK, &json!({"version": version, "build_time": "", "hash": "", "branch": ""}))
            }
            (&Method::GET, ["ping"]) => plain(StatusCode::OK, ""),
            (&Method::POST, ["leader", "transfer", name]) if !name.is_empty() => self.transfer(context, name),
            (&Method::POST, ["leader", "resign"]) => self.resign(context),
            (&Method::POST, ["members", "name", name]) => self.set_member(context, name, request.body()),
            (&Method::DELETE, ["members", "name", name]) => {
                if self.remove(context, name) {
                    render(StatusCode::OK, &json!(format!("removed, pd: {name}"))).changed()
                } else {
                    render(StatusCode::NOT_FOUND, &json!(format!("not found, pd: {name}")))
                }
            }
            _ => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
        })
    }

    /// The members in the order of their ids, which is etcd's.
    fn by_id(&self) -> Vec<(&String, &Member)> {
        let mut members: Vec<_> = self.members.iter().collect();
        members.sort_by_key(|(_, member)| member.id);
        members
    }

    fn url(&self, name: &str, port: u16) -> String {
        format!("http://{name}.{}.{}.svc:{port}", self.service, self.namespace)
    }

    /// One member as PD shows it; in full with what it runs.
    fn describe(&self, name: Option<&String>, full: bool) -> Value {
        let Some((name, member)) = name.and_then(|name| self.members.get_key_value(name)) else { return Value::Null };
        let mut shown = json!({
            "name": name,
            "member_id": member.id,
            "peer_urls": [self.url(name, 2380)],
            "client_urls": [self.url(name, 2379)],
        });
        if full {
            if member.priority != 0 {
                shown["leader_priority"] = json!(member.priority);
            }
            shown["deploy_path"] = json!("/");
            shown["binary_version"] = json!(member.version);
            shown["git_hash"] = json!("None");
        }
        shown
    }

    fn list_members(&self) -> Answer {
        if self.etcd_leader.is_none() {
            let why = "[PD:etcd:ErrEtcdKVGet]context deadline exceeded: context deadline exceeded";
            return render(StatusCode::INTERNAL_SERVER_ERROR, &json!(why)).after(REQUEST_TIMEOUT);
        }
        let members: Vec<Value> = self.by_id().into_iter().map(|(name, _)| self.describe(Some(name), true)).collect();
        let mut body = json!({"header": {"cluster_id": self.cluster_id}, "members": members});
        // Absent rather than null: a leader that isn't there has no field.
        for (field, leader) in [("leader", &self.leader), ("etcd_leader", &self.etcd_leader)] {
            if leader.is_some() {
                body[field] = self.describe(leader.as_ref(), true);
            }
        }
        render(StatusCode::OK, &body)
    }

    /// Each member is pinged. One that asks the leader for the answer is not well while there is none.
    fn health(&self) -> Answer {
        let led = self.leader.as_ref().is_some_and(|leader| self.serves(leader));
        let pings = |member: &Member| member.serves() && (led || answers_alone(&member.version));
        let shown: Vec<Value> = self
            .by_id()
            .into_iter()
            .map(|(name, member)| {
                let mut shown = self.describe(Some(name), false);
                if let Some(shown) = shown.as_object_mut() {
                    shown.remove("peer_urls");
                    shown.insert("health".to_owned(), json!(pings(member)));
                }
                shown
            })
            .collect();
        // A dead process refuses at once; one that is stuck, or waits for a leader, lets the caller wait. One comes after the other.
        let slow = self.members.values().filter(|member| member.hangs() || (member.serves() && !pings(member))).count();
        let wait = PING_TIMEOUT * u32::try_from(slow).unwrap_or(u32::MAX);
        render(StatusCode::OK, &Value::Array(shown)).after(wait)
    }

    fn transfer(&mut self, context: &mut Context, name: &str) -> Answer {
        if !self.members.contains_key(name) {
            return render(StatusCode::INTERNAL_SERVER_ERROR, &json!("no valid pd to transfer etcd leader"));
        }
        let submitted = render(StatusCode::OK, &json!("The transfer command is submitted."));
        if self.etcd_leader.as_deref() == Some(name) {
            return submitted;
        }
        self.move_leader(context, name, submitted)
    }

    fn resign(&mut self, context: &mut Context) -> Answer {
        let submitted = render(StatusCode::OK, &json!("The resign command is submitted."));
        let others: Vec<String> =
            self.members.keys().filter(|name| self.etcd_leader.as_ref() != Some(name)).cloned().collect();
        // Any other member may be picked, a dead one too.
        match self.rng.pick(&others).cloned() {
            Some(name) => self.move_leader(context, &name, submitted),
            None => submitted,
        }
    }

    fn move_leader(&mut self, context: &mut Context, name: &str, submitted: Answer) -> Answer {
        if !self.serves(name) || self.etcd_leader.is_none() {
            return render(StatusCode::INTERNAL_SERVER_ERROR, &json!(TRANSFER_TIMED_OUT)).after(TRANSFER_TIMEOUT);
        }
        if self.clings {
            return submitted;
        }
        let takes = self.transfer_to(context, name);
        submitted.after(takes).changed()
    }

    fn set_member(&mut self, context: &mut Context, name: &str, body: &Bytes) -> Answer {
        let Some(member) = self.members.get_mut(name) else {
            return render(StatusCode::NOT_FOUND, &json!(format!("not found, pd: {name}")));
        };
        let Ok(input) = serde_json::from_slice::<Value>(body) else {
            return render(StatusCode::BAD_REQUEST, &json!("invalid character in request body"));
        };
        let mut changed = false;
        if let Some(priority) = input.get("leader-priority") {
            let Some(priority) = priority.as_i64() else {
                return render(StatusCode::BAD_REQUEST, &json!("bad format leader priority"));
            };
            changed = member.priority != priority;
            member.priority = priority;
        }
        self.watch_priorities(context);
        let answer = render(StatusCode::OK, &json!("success"));
        if changed { answer.changed() } else { answer }
    }

    /// Whether this process would serve its clients; older versions don't know the question.
    fn ready(&self, context: &Context, pod: &str) -> Answer {
        let version = self.members.get(pod).map(|member| member.version.as_str()).unwrap_or_default();
        if numbers(version) < vec![8, 5, 2] {
            return plain(StatusCode::NOT_FOUND, "404 page not found");
        }
        let loads = self.leader.as_deref() == Some(pod) && context.now < self.loaded_at;
        plain(if loads { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }, "")
    }

    /// The embedded etcd's own view, in its gateway's JSON: 64-bit numbers are strings, absent means zero.
    fn etcd_status(&self, context: &Context, pod: &str) -> Answer {
        let Some(member) = self.members.get(pod) else {
            return plain(StatusCode::NOT_FOUND, "404 page not found\n");
        };
        let leads = self.etcd_leader.as_deref() == Some(pod);
        let length = if leads { self.log.length(context.now) } else { self.log.heard(context.now) };
        let applied = member.applied(context.now, length);
        let mut body = json!({
            "header": {
                "cluster_id": self.cluster_id.to_string(),
                "member_id": member.id.to_string(),
                "revision": applied.saturating_sub(4).to_string(),
                "raft_term": self.term.to_string(),
            },
            "version": if has_new_etcd(&member.version) { "3.5.15" } else { "3.4.31" },
            "dbSize": "528384",
            "raftIndex": applied.to_string(),
            "raftTerm": self.term.to_string(),
            "raftAppliedIndex": applied.to_string(),
            "dbSizeInUse": "528384",
        });
        match self.etcd_leader.as_ref().and_then(|leader| self.members.get(leader)) {
            Some(leader) => body["leader"] = json!(leader.id.to_string()),
            None => body["errors"] = json!(["etcdserver: no leader"]),
        }
        respond(StatusCode::OK, "application/json", body.to_string())
    }
}

/// Whether a follower of this version answers what is about itself without the leader.
fn answers_alone(version: &str) -> bool {
    numbers(version) >= vec![8, 5, 5]
}

/// Whether the etcd inside is a 3.5.
fn has_new_etcd(version: &str) -> bool {
    numbers(version) >= vec![8, 4]
}

/// The numbers of a release; anything that is none (a build of a branch, say) counts as newer than every release.
fn numbers(version: &str) -> Vec<u64> {
    let release = version.trim_start_matches('v').split('-').next().unwrap_or_default();
    let numbers: Result<Vec<u64>, _> = release.split('.').map(str::parse).collect();
    numbers.unwrap_or_else(|_| vec![u64::MAX])
}
