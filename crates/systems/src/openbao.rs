//! OpenBao and Vault: what each pod says of the cluster, a token to ask with, and stepping down.
//!
//! Called by the operator once per pass. It asks every pod itself. It must never merge the pods' answers into one view, log in again by
//! itself, or take a 204 to a step-down as proof that leadership moved. The two speak one language; [`Product`] holds what differs.
//!
//! Facts of the wire that this relies on, from the sources of OpenBao 2.5.5 and 2.6.2 and of Vault 1.21.4, and from recordings of
//! OpenBao 2.5.5:
//!
//! - `GET /v1/sys/health` needs no token, is answered by the pod itself, and has the same body whatever the status: 200 active, 429
//!   standby, 501 not initialised, 503 sealed; Vault adds 472, 473, 474 and 530. The cluster's name and id are left out while sealed.
//!   Vault can hide the version from those who show no token; with one, the answer waits for a lock that is held while leadership
//!   changes, so none is sent.
//! - `GET /v1/sys/leader` needs no token and is the pod's own view: sealed or not initialised it is a 503; the addresses are empty while
//!   it knows of no leader, and where Vault's listener hides them. It waits while the pod becomes active or steps down. What is called
//!   `raft_committed_index` is the last entry of the pod's log, committed or not. `raft_applied_index` is the last one in its data,
//!   where the entry that a new leader begins with never arrives: applied is to be compared with applied.
//! - `GET /v1/sys/storage/raft/configuration` and `…/autopilot/state` need a token, which 403 refuses whether it is missing, expired or
//!   not allowed to. Autopilot tells what the leader last heard, up to some seconds ago; it is a 404 where it is switched off.
//!   The servers wrap both in `data`; their documentation shows autopilot without.
//! - A standby passes on what needs a token, and then the answer is another pod's; OpenBao since 2.5 answers reads itself, from what it
//!   has applied, a snapshot included, unless it does not know the token. With `X-Vault-No-Request-Forwarding` what would be passed on is
//!   a 307, or a 500 while there is no leader. So only a pod that calls itself active is asked, with that header, and a 307 says that it
//!   no longer is.
//! - `PUT /v1/sys/step-down` needs a token with `sudo`. It is answered when it is queued: a second one meanwhile, and one that finds the
//!   pod no longer active, are a 204, too. Nobody can be named as the next leader; the old one stays out for 10 s.
//! - `POST /v1/auth/<mount>/login` takes `role` and `jwt` for both methods, and is passed on by a standby. Kubernetes refuses with 403 and
//!   an unknown role with 400, JWT with 400. A lease of zero seconds does not end.
//! - `X-Vault-Namespace` on health, step-down and everything about Raft is a 400 in OpenBao. It is sent with a login alone.

mod login;
pub mod snapshot;
mod wire;

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};

pub use self::login::{AuthMethod, Lease, Login, Namespace, NoNamespace, login};
pub use crate::call::Timeouts;
use crate::{
    call::{self, CallError, Reply, ask_all, call},
    secret::Secret,
    transport::{Peer, Transport},
};

/// Both products use the names of the older.
const TOKEN: HeaderName = HeaderName::from_static("x-vault-token");
const NAMESPACE: HeaderName = HeaderName::from_static("x-vault-namespace");
const NO_FORWARDING: HeaderName = HeaderName::from_static("x-vault-no-request-forwarding");

/// Which of the two it is, and so what differs. Paths, headers and bodies that are not named here are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// OpenBao.
    OpenBao,
    /// Vault.
    Vault,
}

impl Product {
    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenBao => "OpenBao",
            Self::Vault => "Vault",
        }
    }

    /// The label that marks the active pod, where pods label themselves. It can be stale or on two pods: a hint.
    pub fn active_label(self) -> &'static str {
        match self {
            Self::OpenBao => "openbao-active",
            Self::Vault => "vault-active",
        }
    }

    /// The statuses, other than successes, that health is answered with.
    fn health_statuses(self) -> &'static [u16] {
        match self {
            Self::OpenBao => &[429, 501, 503],
            // 472: a secondary for disaster recovery; 473: a standby that answers reads; 474: a standby that does not hear the active
            // node; 530: removed from the cluster.
            Self::Vault => &[429, 472, 473, 474, 501, 503, 530],
        }
    }
}

/// What one pod answered, or why its answer is not known.
pub type Answer = call::Answer<Said>;

/// The cluster as one pod sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Its own state.
    pub health: Health,
    /// Who leads, as it knows; none from a pod that takes no part: not initialised, removed or sealed.
    pub leadership: Option<Leadership>,
    /// Raft as the leader knows it; none from a pod that is not active, and without a token.
    pub raft: Option<Raft>,
}

/// A pod's own state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// What it is at the moment.
    pub state: State,
    /// The version of the running process; none where the listener hides it.
    pub version: Option<String>,
    /// The cluster's name; not told while sealed.
    pub cluster_name: Option<String>,
    /// The cluster's id; not told while sealed.
    pub cluster_id: Option<String>,
    /// Whether the whole cluster is a secondary for disaster recovery (Vault), in which tokens of its own have no force.
    pub is_dr_secondary: bool,
}

/// What a pod is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has no data: it waits to be initialised, or to join.
    Uninitialized,
    /// It was removed from the cluster and will not come back by itself (Vault).
    Removed,
    /// It has data and can't read it.
    Sealed,
    /// It takes part and does not lead.
    Standby {
        /// Whether it hears the active node; none where it does not tell (OpenBao, and Vault before 1.19).
        hears_active: Option<bool>,
    },
    /// It leads.
    Active,
}

impl State {
    /// Whether it takes part in the cluster: initialised and not sealed.
    pub fn takes_part(self) -> bool {
        match self {
            Self::Standby { .. } | Self::Active => true,
            Self::Uninitialized | Self::Removed | Self::Sealed => false,
        }
    }
}

/// Who leads, as one pod knows, and where this pod is in Raft's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// Whether it is this pod.
    pub is_self: bool,
    /// Where the leader takes requests; none while this pod knows of no leader, and where the listener hides it.
    pub api_address: Option<Address>,
    /// Where the leader talks to the others: its address in Raft's configuration.
    pub cluster_address: Option<Address>,
    /// This pod's own position; none where storage is not Raft.
    pub raft: Option<RaftPosition>,
}

/// Where a pod is in Raft's log, as told by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaftPosition {
    /// The last entry of its log, which need not be committed.
    pub last: u64,
    /// The last entry that is in its data.
    pub applied: u64,
}

/// Raft as the leader knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raft {
    /// Raft's configuration; never empty.
    pub servers: Vec<RaftServer>,
    /// What autopilot thinks of the servers; none where it is switched off or has not looked yet.
    pub autopilot: Option<Autopilot>,
}

/// A server in Raft's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaftServer {
    /// Its id, which charts leave to chance; the address tells which pod it is.
    pub node_id: String,
    /// Where the others reach it.
    pub address: Address,
    /// Whether it leads Raft.
    pub is_leader: bool,
    /// Whether it has a vote.
    pub is_voter: bool,
}

/// What autopilot thinks of the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autopilot {
    /// Whether all are healthy.
    pub is_healthy: bool,
    /// How many more voters may fail, as autopilot counts.
    pub failure_tolerance: i64,
    /// The id of the leader.
    pub leader: Option<String>,
    /// By id.
    pub servers: BTreeMap<String, AutopilotServer>,
}

/// What autopilot last heard of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutopilotServer {
    /// Where the others reach it.
    pub address: Address,
    /// Whether it keeps up.
    pub is_healthy: bool,
    /// Whether it was heard of lately.
    pub is_alive: bool,
    /// What it is in Raft.
    pub standing: Standing,
    /// The term that it was last heard in.
    pub last_term: u64,
    /// How far its log was when it was last heard of: an echo, some seconds old.
    pub last_index: u64,
    /// The version of its process; Vault before 1.11 does not tell.
    pub version: Option<String>,
}

/// What a server is in Raft, in autopilot's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It leads.
    Leader,
    /// It has a vote.
    Voter,
    /// It has none.
    NonVoter,
    /// A word that is not known here.
    Other(String),
}

/// A host and a port, as servers write it: with a scheme in URLs and without in Raft's configuration. The scheme is not kept, so that
/// the two can be compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(String);

impl Address {
    /// Takes an address as a server wrote it.
    pub fn new(text: &str) -> Self {
        let rest = text.split_once("://").map_or(text, |(_scheme, rest)| rest);
        Self(rest.split('/').next().unwrap_or_default().to_owned())
    }

    /// Host and port.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host, without the brackets that an IPv6 address has before a port; none where there is none.
    pub fn host(&self) -> Option<&str> {
        let host = match self.0.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?.0,
            None => match self.0.split_once(':') {
                // More than one colon is an IPv6 address without a port.
                Some((_, rest)) if rest.contains(':') => &self.0,
                Some((host, _port)) => host,
                None => &self.0,
            },
        };
        (!host.is_empty()).then_some(host)
    }
}

/// Asks every pod, all at once. One answer per peer, in the order given.
///
/// Without a token nobody tells of Raft. A token that is refused makes the active pod's whole answer an error of the class
/// [`Denied`](crate::Class::Denied): log in again and ask again.
pub async fn observe(
    product: Product,
    transport: &dyn Transport,
    peers: &[Peer],
    token: Option<&Secret>,
    timeouts: &Timeouts,
) -> Vec<Answer> {
    ask_all(peers, |peer| ask(product, transport, peer, token, timeouts)).await
}

async fn ask(
    product: Product,
    transport: &dyn Transport,
    peer: &Peer,
    token: Option<&Secret>,
    timeouts: &Timeouts,
) -> Result<Said, CallError> {
    // Both are awaited to the end, and the first failure in this order is told: the same answers give the same message.
    let (health, leadership) = futures::join!(
        call(transport, peer, get("/v1/sys/health"), timeouts.read),
        call(transport, peer, get("/v1/sys/leader"), timeouts.read),
    );
    let health = health?.json_also::<wire::Health>(product.health_statuses())?.meaning();
    let leadership = match health.state {
        // It refuses to say, which is no news.
        State::Uninitialized | State::Removed | State::Sealed => None,
        State::Standby { .. } | State::Active => Some(leadership?.json::<wire::Leadership>()?.meaning()),
    };
    let raft = match (token, health.state) {
        (Some(token), State::Active) => Some(ask_raft(transport, peer, token, timeouts).await?),
        (None, _) | (Some(_), State::Uninitialized | State::Removed | State::Sealed | State::Standby { .. }) => None,
    };
    Ok(Said { health, leadership, raft })
}

async fn ask_raft(
    transport: &dyn Transport,
    peer: &Peer,
    token: &Secret,
    timeouts: &Timeouts,
) -> Result<Raft, CallError> {
    let read = |path| call(transport, peer, to_itself(get(path), token), timeouts.read);
    let (servers, autopilot) =
        futures::join!(read("/v1/sys/storage/raft/configuration"), read("/v1/sys/storage/raft/autopilot/state"));
    let servers = by_itself(servers?)?.read(wire::servers)?;
    let autopilot = match by_itself(autopilot?)? {
        reply if reply.status() == StatusCode::NOT_FOUND => None,
        reply => Some(reply.read(wire::autopilot)?),
    };
    Ok(Raft { servers, autopilot })
}

/// Tells the pod that leads to stop leading. `leader` is the pod that leads now; it can't be told who is next.
///
/// It is for this pod alone: a standby refuses instead of deposing whoever leads by then (H17). Success means that it was queued; read
/// the pods to believe it. After a time-out or a broken connection it may have happened as well. Repeat it only after reading.
pub async fn step_down(
    transport: &dyn Transport,
    leader: &Peer,
    token: &Secret,
    timeouts: &Timeouts,
) -> Result<(), CallError> {
    let mut request = get("/v1/sys/step-down");
    *request.method_mut() = Method::PUT;
    let reply = call(transport, leader, to_itself(request, token), timeouts.verb).await?;
    by_itself(reply)?.success().map(drop)
}

/// Whether this pod leads, by its own word.
pub async fn leads(
    product: Product,
    transport: &dyn Transport,
    peer: &Peer,
    timeouts: &Timeouts,
) -> Result<bool, CallError> {
    let reply = call(transport, peer, get("/v1/sys/health"), timeouts.read).await?;
    Ok(reply.json_also::<wire::Health>(product.health_statuses())?.meaning().state == State::Active)
}

fn get(path: &'static str) -> Request<Bytes> {
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = Uri::from_static(path);
    request
}

/// The request with a token, and not to be passed on to another pod.
fn to_itself(mut request: Request<Bytes>, token: &Secret) -> Request<Bytes> {
    request.headers_mut().insert(TOKEN, token.header());
    request.headers_mut().insert(NO_FORWARDING, HeaderValue::from_static("1"));
    request
}

/// The answer, unless it points to another pod.
fn by_itself(reply: Reply) -> Result<Reply, CallError> {
    if reply.status() == StatusCode::TEMPORARY_REDIRECT {
        return Err(reply.refused_because("it does not lead (any more), and was asked not to pass this on"));
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://bao-0.bao-internal:8201", "bao-0.bao-internal:8201", Some("bao-0.bao-internal"))]
    #[case("bao-0.bao-internal:8201", "bao-0.bao-internal:8201", Some("bao-0.bao-internal"))]
    #[case("http://10.0.0.7:8200/v1", "10.0.0.7:8200", Some("10.0.0.7"))]
    #[case("https://[2001:db8::1]:8201", "[2001:db8::1]:8201", Some("2001:db8::1"))]
    #[case("2001:db8::1", "2001:db8::1", Some("2001:db8::1"))]
    #[case("bao-0", "bao-0", Some("bao-0"))]
    #[case(":8201", ":8201", None)]
    #[case("[2001:db8::1", "[2001:db8::1", None)]
    #[case("", "", None)]
    fn addresses_compare_with_and_without_a_scheme(#[case] text: &str, #[case] kept: &str, #[case] host: Option<&str>) {
        let address = Address::new(text);
        assert_eq!((address.as_str(), address.host()), (kept, host));
    }
}
