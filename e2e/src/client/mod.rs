//! The applications as a client sees them: writes, reads, who leads.

mod etcd;
mod http;
mod openbao;
mod pd;

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

pub use self::{
    etcd::{Gateway, ROOT},
    http::{Failure, allowed},
    openbao::OpenBao,
    pd::Pd,
};

/// The applications that are upgraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Application {
    /// etcd.
    Etcd,
    /// OpenBao on its own Raft storage.
    OpenBao,
    /// TiKV's Placement Driver.
    Pd,
}

/// A key as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its name.
    pub key: String,
    /// What is in it.
    pub value: String,
    /// The revision of its last change; always 0 where the store has none.
    pub revision: i64,
}

/// What a member says of itself and of the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its own ID.
    pub member: u64,
    /// Whom it takes for the leader; 0 for nobody.
    pub leader: u64,
    /// A number that grows with every change of leadership; 0 from a member that does not know it.
    pub term: u64,
}

/// Whom to speak to, and as whom.
#[derive(Clone)]
pub struct Access {
    /// The application.
    pub application: Application,
    /// What OpenBao is shown.
    pub token: Option<String>,
}

impl Access {
    /// Access without a token.
    pub fn to(application: Application) -> Self {
        Self { application, token: None }
    }

    /// A client that waits so long for a connection, and so long for an answer (the connection included).
    pub fn client(&self, connect: Duration, answer: Duration) -> Client {
        match self.application {
            Application::Etcd => Client::Etcd(Gateway::new(connect, answer)),
            Application::OpenBao => Client::OpenBao(OpenBao::new(connect, answer, self.token.clone())),
            Application::Pd => Client::Pd(Pd::new(connect, answer)),
        }
    }
}

/// A client of any of the applications.
#[derive(Clone)]
pub enum Client {
    /// Of etcd.
    Etcd(Gateway),
    /// Of OpenBao.
    OpenBao(OpenBao),
    /// Of PD.
    Pd(Pd),
}

impl Client {
    /// Writes a key. The revision that the write has.
    pub async fn put(&self, member: SocketAddr, key: &str, value: &str) -> Result<i64, Failure> {
        match self {
            Self::Etcd(etcd) => etcd.put(member, key, value).await,
            Self::OpenBao(openbao) => openbao.put(member, key, value).await,
            Self::Pd(pd) => pd.etcd.put(member, key, value).await,
        }
    }

    /// Reads one key: not older than anything that was acknowledged before.
    pub async fn get(&self, member: SocketAddr, key: &str) -> Result<Option<Stored>, Failure> {
        match self {
            Self::Etcd(etcd) => etcd.get(member, key).await,
            Self::OpenBao(openbao) => openbao.get(member, key).await,
            Self::Pd(pd) => pd.etcd.get(member, key).await,
        }
    }

    /// What this member has of these keys by itself, once it has caught up. All of them begin with `prefix` and a slash.
    pub async fn held(
        &self,
        member: SocketAddr,
        prefix: &str,
        keys: &[&str],
    ) -> Result<BTreeMap<String, Stored>, Failure> {
        match self {
            Self::Etcd(etcd) => etcd.held(member, prefix).await,
            Self::OpenBao(openbao) => openbao.held(member, keys).await,
            Self::Pd(pd) => pd.etcd.held(member, prefix).await,
        }
    }

    /// What the member in this pod says of itself, without asking the others.
    pub async fn status(&self, pod: &str, member: SocketAddr) -> Result<Status, Failure> {
        match self {
            Self::Etcd(etcd) => etcd.status(member).await,
            Self::OpenBao(openbao) => openbao.status(pod, member).await,
            Self::Pd(pd) => pd.status(member).await,
        }
    }

    /// The version of the program that the member runs.
    pub async fn version(&self, member: SocketAddr) -> Result<String, Failure> {
        match self {
            Self::Etcd(etcd) => etcd.version(member).await,
            Self::OpenBao(openbao) => openbao.version(member).await,
            Self::Pd(pd) => pd.version(member).await,
        }
    }

    /// Lets nobody in who is not [`ROOT`]; etcd alone knows such a thing.
    pub async fn enable_authentication(&self, member: SocketAddr) -> anyhow::Result<()> {
        match self {
            Self::Etcd(etcd) => match etcd.enable_authentication(member).await {
                Ok(()) => Ok(()),
                Err(failure) => anyhow::bail!("authentication is not enabled: {failure:?}"),
            },
            Self::OpenBao(_) | Self::Pd(_) => anyhow::bail!("there is no such thing"),
        }
    }

    /// Asks the leader once to hand over to the member of this pod and ID; OpenBao can only be asked to hand over to anybody.
    pub async fn move_leader(&self, leader: SocketAddr, pod: &str, id: u64) -> Result<(), Failure> {
        match self {
            Self::Etcd(etcd) => etcd.move_leader(leader, id).await,
            Self::OpenBao(openbao) => openbao.step_down(leader).await,
            Self::Pd(pd) => pd.move_leader(leader, pod).await,
        }
    }
}
