//! What a simulated OpenBao answers over HTTP, in the shapes and with the texts of a real 2.5.5.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header::LOCATION};
use serde_json::{Value, json};

use super::super::{Answer, Context, minor, plain, respond};
use super::{Bao, BaoCluster, Process, uuid};
use crate::rng;

/// The token of whoever initialised the cluster. It never expires.
pub const ROOT_TOKEN: &str = "s.root";
/// How long the token of a login lives.
const LEASE: Duration = Duration::from_hours(1);
/// Asked of a standby with this header, a request is not forwarded.
const NO_FORWARDING: &str = "X-Vault-No-Request-Forwarding";
const TOKEN: &str = "X-Vault-Token";
/// Only the active member knows it.
const AUTOPILOT: &str = "/v1/sys/storage/raft/autopilot/state";
/// A standby never passes this on.
const SNAPSHOT: &str = "/v1/sys/storage/raft/snapshot";

fn render(status: StatusCode, body: &Value) -> Answer {
    respond(status, "application/json", format!("{body}\n"))
}

fn ok(body: &Value) -> Answer {
    render(StatusCode::OK, body)
}

fn refused(status: StatusCode, errors: &[&str]) -> Answer {
    render(status, &json!({ "errors": errors }))
}

/// A parameter of the query.
fn parameter<'a>(request: &'a Request<Bytes>, name: &str) -> Option<&'a str> {
    let pairs = request.uri().query().unwrap_or_default().split('&');
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// A status code that the caller may choose; none where what it chose is no code.
fn code(request: &Request<Bytes>, name: &str, otherwise: StatusCode) -> Option<StatusCode> {
    match parameter(request, name) {
        None => Some(otherwise),
        Some(text) => text.parse().ok().and_then(|number| StatusCode::from_u16(number).ok()),
    }
}

/// A flag of the query as Go reads one; none where it is no flag. One without a value is not set.
fn flag(request: &Request<Bytes>, name: &str) -> Option<bool> {
    match parameter(request, name) {
        None | Some("" | "0" | "f" | "F" | "false" | "False" | "FALSE") => Some(false),
        Some("1" | "t" | "T" | "true" | "True" | "TRUE") => Some(true),
        Some(_) => None,
    }
}

impl BaoCluster {
    pub fn answer(&mut self, context: &mut Context, pod: &str, request: &Request<Bytes>) -> Option<Answer> {
        let member = self.members.get(pod).filter(|member| member.answers())?;
        let path = request.uri().path();
        // These are answered by the process itself, sealed or not.
        match (request.method(), path) {
            (&Method::GET, "/v1/sys/health") => return Some(self.health(context, pod, member, request)),
            (&Method::HEAD, "/v1/sys/health") => {
                let mut answer = self.health(context, pod, member, request);
                *answer.response.body_mut() = Bytes::new();
                return Some(answer);
            }
            (&Method::GET, "/v1/sys/seal-status") => return Some(self.seal_status(member)),
            (_, path) if !path.starts_with("/v1/") => {
                return Some(refused(StatusCode::NOT_FOUND, &[]));
            }
            (_, _) if member.sealed() => {
                return Some(refused(StatusCode::SERVICE_UNAVAILABLE, &["Vault is sealed"]));
            }
            (&Method::GET, "/v1/sys/leader") => return Some(self.leader(context, pod, member)),
            (_, _) => {}
        }
        // What needs no write and does not ask for the active one, of whoever shows a token that it knows.
        let local = reads(&member.raft.version)
            && request.method() == Method::GET
            && path != AUTOPILOT
            && self.is_allowed(context, request);
        if self.active.as_deref() == Some(pod) || local {
            return Some(self.serve(context, pod, request));
        }
        let Some(active) = self.named(pod).cloned() else {
            let why = "local node not active but active cluster node not found";
            return Some(refused(StatusCode::INTERNAL_SERVER_ERROR, &[why]));
        };
        let stays = path == SNAPSHOT || request.headers().get(NO_FORWARDING).is_some_and(|value| !value.is_empty());
        if !stays && self.members.get(&active).is_some_and(|member| member.process == Process::Hung) {
            // Its own request to a stuck member never ends.
            return None;
        }
        if stays || self.active.as_ref() != Some(&active) {
            return Some(self.redirect(&active, request));
        }
        Some(self.serve(context, &active, request))
    }

    /// What a member that is asked for good answers.
    fn serve(&mut self, context: &mut Context, pod: &str, request: &Request<Bytes>) -> Answer {
        let path = request.uri().path().trim_start_matches("/v1/");
        let writes = matches!(*request.method(), Method::POST | Method::PUT);
        let login = path.strip_prefix("auth/").and_then(|path| path.strip_suffix("/login"));
        if let Some(mount) = login.filter(|mount| writes && is_login(mount)) {
            return self.login(context, mount, request.body());
        }
        if !self.is_allowed(context, request) {
            return refused(StatusCode::FORBIDDEN, &["permission denied"]);
        }
        match (request.method(), path) {
            (&Method::GET, "sys/storage/raft/configuration") => {
                let config = self.configuration();
                self.wrap(&json!({ "config": config }))
            }
            (&Method::GET, "sys/storage/raft/autopilot/state") => {
                let state = self.autopilot(context);
                self.wrap(&state)
            }
            // What is in it is not modelled.
            (&Method::GET, "sys/storage/raft/snapshot") => respond(StatusCode::OK, "application/gzip", ""),
            (&Method::PUT | &Method::POST, "sys/step-down") => {
                let answer = respond(StatusCode::NO_CONTENT, "application/json", "");
                if self.active.as_deref() != Some(pod) || self.clings {
                    return answer;
                }
                self.step_down(context);
                answer.changed()
            }
            (_, path) if path.starts_with("sys/") => {
                refused(StatusCode::NOT_FOUND, &["1 error occurred:\n\t* unsupported path\n\n"])
            }
            (_, path) => {
                let why = format!("no handler for route {path:?}. route entry not found.");
                refused(StatusCode::NOT_FOUND, &[&why])
            }
        }
    }

    fn url(&self, name: &str) -> String {
        format!("http://{name}.{}.{}.svc:8200", self.service, self.namespace)
    }

    pub(super) fn raft_address(&self, name: &str) -> String {
        format!("{name}.{}:8201", self.service)
    }

    /// Sends the caller to the member that is taken for the active one.
    fn redirect(&self, active: &str, request: &Request<Bytes>) -> Answer {
        let mut answer = plain(StatusCode::TEMPORARY_REDIRECT, "");
        let rest = request.uri().path_and_query().map_or("/", |rest| rest.as_str());
        if let Ok(location) = HeaderValue::from_str(&format!("{}{rest}", self.url(active))) {
            answer.response.headers_mut().insert(LOCATION, location);
        }
        answer
    }

    fn health(&self, context: &Context, pod: &str, member: &Bao, request: &Request<Bytes>) -> Answer {
        let codes = (
            code(request, "uninitcode", StatusCode::NOT_IMPLEMENTED),
            code(request, "sealedcode", StatusCode::SERVICE_UNAVAILABLE),
            code(request, "standbycode", StatusCode::TOO_MANY_REQUESTS),
            code(request, "activecode", StatusCode::OK),
            flag(request, "standbyok"),
        );
        let (Some(uninitialised), Some(sealed), Some(standby), Some(active), Some(standby_ok)) = codes else {
            return refused(StatusCode::BAD_REQUEST, &[]);
        };
        let stands_by = self.active.as_deref() != Some(pod);
        let status = match member {
            member if !member.initialized => uninitialised,
            member if member.sealed() => sealed,
            _ if stands_by && !standby_ok => standby,
            _ => active,
        };
        // A standby has this from the active member's answers to its echoes.
        let knows = !stands_by || (!member.sealed() && self.active.is_some());
        let mut body = json!({
            "initialized": member.initialized,
            "sealed": member.sealed(),
            "standby": stands_by,
            "performance_standby": false,
            "replication_performance_mode": if knows { self.replication() } else { "unknown" },
            "replication_dr_mode": if knows { "disabled" } else { "unknown" },
            "server_time_utc": context.time(context.now).as_second(),
            "version": member.raft.version.trim_start_matches('v'),
        });
        self.name_cluster(member, &mut body);
        render(status, &body)
    }

    /// What the active member calls the cluster; before 2.5 it had another word for the same.
    fn replication(&self) -> &'static str {
        let active = self.active.as_ref().and_then(|active| self.members.get(active));
        if active.is_none_or(|member| reads(&member.raft.version)) { "primary" } else { "disabled" }
    }

    /// A sealed member can't read which cluster it belongs to.
    fn name_cluster(&self, member: &Bao, body: &mut Value) {
        if !member.sealed() {
            body["cluster_name"] = json!(self.cluster_name);
            body["cluster_id"] = json!(self.cluster_id);
        }
    }

    fn seal_status(&self, member: &Bao) -> Answer {
        let (kind, threshold, shares) = if self.unseals_itself { ("static", 1, 1) } else { ("shamir", 3, 5) };
        let mut body = json!({
            "type": kind,
            "initialized": member.initialized,
            "sealed": member.sealed(),
            "t": if member.initialized { threshold } else { 0 },
            "n": if member.initialized { shares } else { 0 },
            "progress": 0,
            "nonce": "",
            "version": member.raft.version.trim_start_matches('v'),
            "build_date": "",
            "migration": false,
            "recovery_seal": self.unseals_itself,
            "storage_type": "raft",
        });
        if self.unseals_itself {
            body["recovery_seal_type"] = json!("shamir");
        }
        self.name_cluster(member, &mut body);
        ok(&body)
    }

    fn leader(&self, context: &Context, pod: &str, member: &Bao) -> Answer {
        let is_self = self.active.as_deref() == Some(pod);
        let named = if is_self { self.active.as_ref() } else { self.named(pod) };
        let cluster = named.map(|name| format!("https://{}", self.raft_address(name))).unwrap_or_default();
        let length = if is_self { self.log.length(context.now) } else { self.log.heard(context.now) };
        let applied = member.raft.applied(context.now, length);
        let since = if is_self { context.time(self.active_since).to_string() } else { "0001-01-01T00:00:00Z".into() };
        ok(&json!({
            "ha_enabled": true,
            "is_self": is_self,
            "active_time": since,
            "leader_address": named.map(|name| self.url(name)).unwrap_or_default(),
            "leader_cluster_address": cluster,
            "raft_committed_index": applied,
            "raft_applied_index": applied,
        }))
    }

    fn configuration(&self) -> Value {
        let leader = self.raft_leader.as_ref().filter(|leader| self.serves(leader));
        let server = |(name, member): (&String, &Bao)| {
            json!({
                "node_id": member.node_id,
                "address": self.raft_address(name),
                "leader": leader == Some(name),
                "protocol_version": "3",
                "voter": member.voter,
            })
        };
        json!({"servers": self.members.iter().map(server).collect::<Vec<_>>(), "index": 0})
    }

    fn request_id(&mut self) -> String {
        self.requests += 1;
        let number = rng::hash(self.requests.to_be_bytes());
        uuid(number, rng::hash(number.to_be_bytes()))
    }

    fn envelope(&mut self) -> Value {
        json!({
            "request_id": self.request_id(),
            "lease_id": "",
            "renewable": false,
            "lease_duration": 0,
            "data": null,
            "wrap_info": null,
            "warnings": null,
            "auth": null,
        })
    }

    fn wrap(&mut self, data: &Value) -> Answer {
        let mut body = self.envelope();
        body["data"] = data.clone();
        ok(&body)
    }

    fn is_allowed(&self, context: &Context, request: &Request<Bytes>) -> bool {
        let token = request.headers().get(TOKEN).and_then(|token| token.to_str().ok()).unwrap_or_default();
        token == ROOT_TOKEN || self.leases.get(token).is_some_and(|expires| context.now < *expires)
    }

    /// A ServiceAccount's token for one of OpenBao's own. Whom a role is for is not modelled: any token will do.
    fn login(&mut self, context: &Context, mount: &str, body: &Bytes) -> Answer {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let given = |name: &str| body[name].as_str().filter(|text| !text.is_empty());
        let missing = if mount.starts_with("jwt") { "missing token" } else { "missing jwt" };
        let Some(role) = given("role") else { return refused(StatusCode::BAD_REQUEST, &["missing role"]) };
        if given("jwt").is_none() {
            return refused(StatusCode::BAD_REQUEST, &[missing]);
        }
        let mut answer = self.envelope();
        let number = rng::hash(answer["request_id"].as_str().unwrap_or_default().bytes());
        let token = format!("s.{number:016x}");
        self.leases.retain(|_, expires| context.now < *expires);
        self.leases.insert(token.clone(), context.now + LEASE);
        answer["auth"] = json!({
            "client_token": token,
            "accessor": format!("{:016x}", rng::hash(token.bytes())),
            "policies": ["default", role],
            "token_policies": ["default", role],
            "metadata": {"role": role},
            "lease_duration": LEASE.as_secs(),
            "renewable": true,
            "entity_id": uuid(number, number),
            "token_type": "service",
            "orphan": true,
            "mfa_requirement": null,
            "num_uses": 0,
        });
        ok(&answer)
    }
}

/// Whether a standby of this version answers reads by itself.
fn reads(version: &str) -> bool {
    minor(version).is_none_or(|minor| minor >= (2, 5))
}

/// Whether logins are mounted there.
fn is_login(mount: &str) -> bool {
    (mount.starts_with("kubernetes") || mount.starts_with("jwt")) && !mount.contains('/')
}
