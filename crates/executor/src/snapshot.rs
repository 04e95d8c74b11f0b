//! The task `snapshot`: asks the members in their order for the one that leads, and stores the whole snapshot that it gives.
//!
//! The bytes go through in pieces, so that the memory it takes does not grow with the data. What is not whole is never stored: it has a
//! name of its own until its last byte is on the disk, and is removed when anything goes wrong.

use std::{net::IpAddr, str::FromStr, time::Duration};

use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout};
use windlass_api::executor::Stored;
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
/// So often everybody is asked while nobody leads, and so long is waited in between.
const LAPS: usize = 4;
const PAUSE: Duration = Duration::from_secs(2);

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

/// The systems that give snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Giver {
    /// etcd.
    Etcd,
    /// OpenBao or Vault.
    OpenBao(Product),
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
    pub giver: Giver,
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

/// Asks everybody, and again after a while as long as nobody leads: an election takes seconds.
async fn take(order: &Order) -> Result<Stored, Error> {
    let mut round = ask_everybody(order).await?;
    for _ in 1..LAPS {
        let denied = matches!(&round, Round::Nobody { failure: Some(error), .. } if error.class == Class::Denied);
        if denied || !matches!(&round, Round::Nobody { follower: Some(_), .. }) {
            break;
        }
        sleep(PAUSE).await;
        round = ask_everybody(order).await?;
    }
    match round {
        Round::Stored(stored) => Ok(stored),
        // What keeps the leader from giving one says more than that the others don't lead.
        Round::Nobody { failure: Some(error), .. } => Err(error),
        Round::Nobody { failure: None, follower } => {
            let asked = follower.map(|pod| format!("; {pod} was asked last")).unwrap_or_default();
            let message = format!("no member leads, and only the leader's snapshot counts{asked}");
            Err(Error::new(Class::Unreachable, message))
        }
    }
}

/// What came of asking everybody once.
enum Round {
    /// The leader gave one.
    Stored(Stored),
    /// Nobody did.
    Nobody {
        /// The first thing that went wrong.
        failure: Option<Error>,
        /// One that takes part and does not lead.
        follower: Option<String>,
    },
}

/// Why a member gave no snapshot.
enum Refusal {
    /// It does not lead: it may lack what the leader has acknowledged.
    NotLeading,
    /// Anything else.
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

async fn ask_everybody(order: &Order) -> Result<Round, Error> {
    let (mut failure, mut follower) = (None, None);
    for member in &order.members {
        let partial = order.store.begin(&order.file).await?;
        match ask(order, &member.peer(order.tls), partial).await {
            Ok((partial, bytes, sha256)) => {
                let place = order.store.finish(partial, &order.file, bytes, &sha256).await?;
                return Ok(Round::Stored(Stored { bytes, sha256: hex(&sha256), place, milliseconds: 0 }));
            }
            // Another member can't help with what is ours.
            Err(Refusal::Failed(error)) if matches!(error.class, Class::Store | Class::Invalid | Class::Late) => {
                return Err(error);
            }
            Err(Refusal::Failed(error)) => failure = failure.or(Some(error)),
            Err(Refusal::NotLeading) => follower = Some(member.pod.clone()),
        }
    }
    if order.members.is_empty() {
        return Err(Error::new(Class::Invalid, "no member is named"));
    }
    Ok(Round::Nobody { failure, follower })
}

async fn ask(order: &Order, peer: &Peer, partial: Partial) -> Result<(Partial, u64, [u8; 32]), Refusal> {
    let mut writer = Measured::new(partial);
    let saved = match order.giver {
        Giver::Etcd => {
            let token = etcd_token(order, peer).await?;
            let token = token.as_ref();
            leads(etcd::leads(&order.network, peer, token, &Timeouts::default())).await?;
            let saved = etcd::snapshot::save(&order.network, peer, token, PATIENCE, &mut writer).await;
            if saved.is_ok() {
                leads(etcd::leads(&order.network, peer, token, &Timeouts::default())).await?;
            }
            saved.map(drop)
        }
        Giver::OpenBao(product) => {
            leads(openbao::leads(product, &order.network, peer, &Timeouts::default())).await?;
            let token = token(order, peer).await?;
            let saved = openbao::snapshot::save(&order.network, peer, &token, PATIENCE, &mut writer).await;
            if saved.is_ok() {
                leads(openbao::leads(product, &order.network, peer, &Timeouts::default())).await?;
            }
            saved
        }
    };
    saved.map_err(|error| failed(&error))?;
    Ok(writer.finish())
}

/// A member that does not lead may lack what the leader has acknowledged, and one that came to lead in the middle lacked it when it began.
async fn leads(says: impl Future<Output = Result<bool, CallError>>) -> Result<(), Refusal> {
    match says.await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Refusal::NotLeading),
        Err(error) => Err(Error::new(class(&error), error.to_string()).into()),
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
