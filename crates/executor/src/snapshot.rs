//! The task `snapshot`: asks the members in their order until one gives a whole snapshot, and stores that one.
//!
//! The bytes go through in pieces, so that the memory it takes does not grow with the data. What is not whole is never stored: it has a
//! name of its own until its last byte is on the disk, and is removed when anything goes wrong.

use std::{net::IpAddr, str::FromStr, time::Duration};

use jiff::Timestamp;
use tokio::time::{Instant, timeout};
use windlass_api::{executor::Stored, quorum_cluster::SystemType};
use windlass_systems::{
    CallError, Network, Timeouts, etcd,
    openbao::{self, Login, Product},
    secret::Secret,
    snapshot::SnapshotError,
    transport::Peer,
};

use crate::{
    error::{Class, Error},
    measured::{Measured, hex},
    store::{Partial, Store},
};

/// How long may pass without a byte.
const PATIENCE: Duration = Duration::from_secs(30);

/// A member to ask: `POD=NAME:PORT@ADDRESS`. The address is dialled, the name is verified (H42).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// How people call it.
    pub pod: String,
    /// What its certificate must say.
    pub name: String,
    /// Where it listens.
    pub port: u16,
    /// Where it is.
    pub address: IpAddr,
}

impl FromStr for Member {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || format!("{text} is not POD=NAME:PORT@ADDRESS");
        let (pod, place) = text.split_once('=').filter(|(pod, _)| !pod.is_empty()).ok_or_else(shape)?;
        let (place, address) = place.rsplit_once('@').ok_or_else(shape)?;
        let (name, port) = place.rsplit_once(':').filter(|(name, _)| !name.is_empty()).ok_or_else(shape)?;
        Ok(Self {
            pod: pod.to_owned(),
            name: name.to_owned(),
            port: port.parse().map_err(|_| shape())?,
            address: address.parse().map_err(|_| shape())?,
        })
    }
}

impl Member {
    fn peer(&self, tls: bool) -> Peer {
        let Self { pod, name, port, address } = self;
        Peer { pod: pod.clone(), address: *address, port: *port, server_name: name.clone(), tls }
    }
}

/// Who asks.
pub enum Credentials {
    /// Nobody in particular.
    None,
    /// Whoever has this token.
    Token(Secret),
    /// Whoever logs in like this.
    LogIn(Box<Login>),
    /// A user of etcd.
    User(etcd::Login),
}

/// What is to be done.
pub struct Order {
    /// Whose snapshot.
    pub system: SystemType,
    /// Whom to ask, in this order.
    pub members: Vec<Member>,
    /// How they are reached.
    pub network: Network,
    /// Whether they talk TLS.
    pub tls: bool,
    /// Who asks.
    pub credentials: Credentials,
    /// It must have ended by then.
    pub not_after: Timestamp,
    /// What the snapshot is called.
    pub file: String,
    /// Where it goes.
    pub store: Store,
}

/// Takes a snapshot and stores it.
pub async fn run(order: &Order, now: Timestamp) -> Result<Stored, Error> {
    let late = || Error::new(Class::Late, format!("it had to be done by {}; ask for another attempt", order.not_after));
    let left = Duration::try_from(order.not_after.duration_since(now)).ok().filter(|left| !left.is_zero());
    let began = Instant::now();
    let stored = timeout(left.ok_or_else(late)?, take(order)).await.map_err(|_| late())?;
    stored
        .map(|stored| Stored { milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX), ..stored })
}

async fn take(order: &Order) -> Result<Stored, Error> {
    if order.members.is_empty() {
        return Err(Error::new(Class::Invalid, "no member is named"));
    }
    let mut failure = None;
    for member in &order.members {
        let partial = order.store.begin(&order.file).await?;
        match ask(order, &member.peer(order.tls), partial).await {
            Ok((partial, bytes, sha256)) => {
                let place = order.store.finish(partial, &order.file, bytes, &sha256).await?;
                return Ok(Stored { bytes, sha256: hex(&sha256), place, milliseconds: 0 });
            }
            // Another member can't help with what is ours.
            Err(error) if matches!(error.class, Class::Store | Class::Invalid | Class::Late) => return Err(error),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| Error::new(Class::Invalid, "no member is named")))
}

async fn ask(order: &Order, peer: &Peer, partial: Partial) -> Result<(Partial, u64, [u8; 32]), Error> {
    let mut writer = Measured::new(partial);
    let saved = match order.system {
        SystemType::Etcd => {
            let token = etcd_token(order, peer).await?;
            etcd::snapshot::save(&order.network, peer, token.as_ref(), PATIENCE, &mut writer).await.map(drop)
        }
        SystemType::OpenBao | SystemType::Vault => {
            let token = token(order, peer).await?;
            leads(order, peer, &token).await?;
            let saved = openbao::snapshot::save(&order.network, peer, &token, PATIENCE, &mut writer).await;
            if saved.is_ok() {
                leads(order, peer, &token).await?;
            }
            saved
        }
        SystemType::Pd | SystemType::Http => {
            return Err(Error::new(Class::Invalid, "this type of system gives no snapshots"));
        }
    };
    saved.map_err(|error| failed(&error))?;
    Ok(writer.finish())
}

/// A pod that does not lead may lack what the leader has acknowledged, and one that came to lead in the middle lacked it when it began.
async fn leads(order: &Order, peer: &Peer, token: &Secret) -> Result<(), Error> {
    let product = if order.system == SystemType::Vault { Product::Vault } else { Product::OpenBao };
    match openbao::leads(product, &order.network, peer, token, &Timeouts::default()).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::new(Class::Unreachable, format!("{} does not lead, or not any more", peer.pod))),
        Err(error) => Err(Error::new(class(&error), error.to_string())),
    }
}

async fn token(order: &Order, peer: &Peer) -> Result<Secret, Error> {
    match &order.credentials {
        Credentials::None | Credentials::User(_) => {
            Err(Error::new(Class::Denied, "a token is needed; set spec.system.auth"))
        }
        Credentials::Token(token) => Ok(token.clone()),
        Credentials::LogIn(login) => {
            let lease = openbao::login(&order.network, peer, login, &Timeouts::default()).await;
            lease.map(|lease| lease.token).map_err(|error| no_token(&error))
        }
    }
}

/// None where nobody needs one.
async fn etcd_token(order: &Order, peer: &Peer) -> Result<Option<Secret>, Error> {
    let Credentials::User(login) = &order.credentials else { return Ok(None) };
    etcd::login(&order.network, peer, login, &Timeouts::default()).await.map_err(|error| no_token(&error))
}

fn class(error: &CallError) -> Class {
    if error.class() == windlass_systems::Class::Denied { Class::Denied } else { Class::Unreachable }
}

fn no_token(error: &CallError) -> Error {
    Error::new(class(error), format!("no token: {error}; {}", error.next_step()))
}

fn failed(error: &SnapshotError) -> Error {
    let class = match error {
        SnapshotError::Write(_) => Class::Store,
        SnapshotError::Refused { code: 401 | 403, .. } => Class::Denied,
        SnapshotError::Refused { text, .. } if text.contains("user name is empty") => Class::Denied,
        SnapshotError::Refused { .. }
        | SnapshotError::Transport { .. }
        | SnapshotError::Stalled(_)
        | SnapshotError::Damaged { .. } => Class::Unreachable,
    };
    Error::new(class, error.to_string())
}
