//! The shapes of OpenBao's and Vault's answers, as the servers write them.
//!
//! Only what is used is declared. A field has a default only where one of the servers leaves it out; everything else that is missing
//! or of the wrong kind makes the answer unreadable. These types must never leave the adapter.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Address, Autopilot, Lease, RaftPosition, State};
use crate::secret::Secret;

/// `GET /v1/sys/health`.
#[derive(Debug, Deserialize)]
pub(super) struct Health {
    initialized: bool,
    sealed: bool,
    standby: bool,
    /// Left out, or empty, where Vault's listener hides it.
    #[serde(default)]
    version: String,
    /// Left out while sealed.
    #[serde(default)]
    cluster_name: String,
    /// Left out while sealed.
    #[serde(default)]
    cluster_id: String,
    #[serde(default)]
    replication_dr_mode: String,
    /// Vault, since 1.19, on Raft.
    #[serde(default)]
    removed_from_cluster: Option<bool>,
    /// Vault, since 1.19, on a standby that has heard of an active node.
    #[serde(default)]
    ha_connection_healthy: Option<bool>,
}

impl Health {
    pub(super) fn meaning(self) -> super::Health {
        // In the order in which the servers themselves decide.
        let state = if !self.initialized {
            State::Uninitialized
        } else if self.removed_from_cluster == Some(true) {
            State::Removed
        } else if self.sealed {
            State::Sealed
        } else if self.standby {
            State::Standby { hears_active: self.ha_connection_healthy }
        } else {
            State::Active
        };
        super::Health {
            state,
            version: told(self.version),
            cluster_name: told(self.cluster_name),
            cluster_id: told(self.cluster_id),
            is_dr_secondary: self.replication_dr_mode == "secondary",
        }
    }
}

/// Empty is how these servers write that there is nothing to tell.
fn told(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// `GET /v1/sys/leader`.
#[derive(Debug, Deserialize)]
pub(super) struct Leadership {
    is_self: bool,
    leader_address: String,
    leader_cluster_address: String,
    /// Left out where it is zero: without Raft.
    #[serde(default)]
    raft_committed_index: u64,
    /// Left out likewise.
    #[serde(default)]
    raft_applied_index: u64,
}

impl Leadership {
    pub(super) fn meaning(self) -> super::Leadership {
        let raft = RaftPosition { last: self.raft_committed_index, applied: self.raft_applied_index };
        super::Leadership {
            is_self: self.is_self,
            api_address: told(self.leader_address).map(|address| Address::new(&address)),
            cluster_address: told(self.leader_cluster_address).map(|address| Address::new(&address)),
            // A log has at least the entry that made it, so zero is not a position.
            raft: (raft.last > 0).then_some(raft),
        }
    }
}

/// What is inside the envelope that logical answers have; the flat shape, which the documentation shows, is taken as it is.
fn contents<T: DeserializeOwned>(answer: Value) -> Result<T, String> {
    let contents = match answer {
        Value::Object(mut fields) => match fields.remove("data") {
            Some(data @ Value::Object(_)) => data,
            Some(_) | None => Value::Object(fields),
        },
        // Not an answer of theirs, which the reader says better.
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => other,
    };
    serde_json::from_value(contents).map_err(|error| error.to_string())
}

#[derive(Debug, Deserialize)]
struct Configuration {
    config: Servers,
}

#[derive(Debug, Deserialize)]
struct Servers {
    servers: Vec<Server>,
}

#[derive(Debug, Deserialize)]
struct Server {
    node_id: String,
    address: String,
    leader: bool,
    voter: bool,
}

/// `GET /v1/sys/storage/raft/configuration`.
pub(super) fn servers(answer: Value) -> Result<Vec<super::RaftServer>, String> {
    let Configuration { config } = contents(answer)?;
    // The server that answers is at least in it itself, so an empty list is not a fact about the cluster.
    if config.servers.is_empty() {
        return Err("it names no servers".to_owned());
    }
    let meaning = |server: Server| super::RaftServer {
        node_id: server.node_id,
        address: Address::new(&server.address),
        is_leader: server.leader,
        is_voter: server.voter,
    };
    Ok(config.servers.into_iter().map(meaning).collect())
}

#[derive(Debug, Deserialize)]
struct AutopilotState {
    healthy: bool,
    failure_tolerance: i64,
    leader: String,
    servers: BTreeMap<String, AutopilotServer>,
}

#[derive(Debug, Deserialize)]
struct AutopilotServer {
    address: String,
    node_status: String,
    last_term: u64,
    last_index: u64,
    healthy: bool,
    status: String,
    /// Vault, since 1.11; OpenBao, always.
    #[serde(default)]
    version: String,
}

/// `GET /v1/sys/storage/raft/autopilot/state`.
pub(super) fn autopilot(answer: Value) -> Result<Autopilot, String> {
    let state: AutopilotState = contents(answer)?;
    let meaning = |server: AutopilotServer| super::AutopilotServer {
        address: Address::new(&server.address),
        is_healthy: server.healthy,
        is_alive: server.node_status == "alive",
        standing: match server.status.as_str() {
            "leader" => super::Standing::Leader,
            "voter" => super::Standing::Voter,
            "non-voter" => super::Standing::NonVoter,
            _ => super::Standing::Other(server.status),
        },
        last_term: server.last_term,
        last_index: server.last_index,
        version: told(server.version),
    };
    Ok(Autopilot {
        is_healthy: state.healthy,
        failure_tolerance: state.failure_tolerance,
        leader: told(state.leader),
        servers: state.servers.into_iter().map(|(id, server)| (id, meaning(server))).collect(),
    })
}

/// The answer to a login. Read by hand: the words of a derived reader repeat what they can't read, and that could be the token.
pub(super) fn lease(answer: &Value) -> Result<Lease, String> {
    let auth = answer.get("auth").unwrap_or(&Value::Null);
    let token = auth.get("client_token").and_then(Value::as_str).filter(|token| !token.is_empty());
    // So it is where the login needs a second factor, too.
    let token = token.ok_or("it gives no token")?;
    let token = Secret::new(token).map_err(|_| "what it gives as a token can't be one")?;
    let seconds =
        auth.get("lease_duration").and_then(Value::as_u64).ok_or("it does not say how long the token lives")?;
    let renewable =
        auth.get("renewable").and_then(Value::as_bool).ok_or("it does not say if the token is renewable")?;
    Ok(Lease { token, lease: (seconds > 0).then(|| Duration::from_secs(seconds)), renewable })
}
