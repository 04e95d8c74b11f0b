//! The adapter on a real OpenBao: what only a real one can show.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use windlass_systems::{
    Class, Network, Secret, Timeouts,
    openbao::{Answer, Product, State, observe, snapshot, step_down},
};

use super::{
    super::{Application, Side, cast::Cast, play::Which, real::Real},
    Act, OpenBao,
};

const MEMBERS: [&str; 3] = OpenBao::MEMBERS;

/// Checks what the adapter reads, the hand-over, the snapshot and the answer to a wrong token; how many checks there were.
pub(super) async fn check(mut real: Real<'_, OpenBao>, which: Which) -> Result<usize> {
    let (network, timeouts) = (Network::plain(), Timeouts::default());
    let peers = MEMBERS.map(|member| real.peer(member));
    real.start(MEMBERS[0], which).await?;
    let without = async || observe(Product::OpenBao, &network, &peers[..1], None, &timeouts).await;
    until("an answer of one that is not initialised", async || {
        Ok(without().await.iter().all(|answer| state(answer) == Some(State::Uninitialized)))
    })
    .await?;
    for member in &MEMBERS[1..] {
        real.start(member, which).await?;
    }
    let mut side = Side::Real(real);
    let mut cast = Cast::new(&side);
    OpenBao::act(&mut side, &mut cast, Act::Initialise).await?;
    let token = Secret::new(cast.token.as_deref().context("a token")?)?;
    let look = async |token| observe(Product::OpenBao, &network, &peers, token, &timeouts).await;

    until("a healthy cluster of three", async || Ok(is_healthy(&look(Some(&token)).await))).await?;
    let answers = look(Some(&token)).await;
    let leader = leader(&answers).context("somebody leads")?;
    let address =
        answers.iter().filter_map(|answer| Some(answer.said.as_ref().ok()?.leadership.clone()?.cluster_address));
    let address: Vec<_> = address.collect();
    ensure!(address.len() == 3 && address.windows(2).all(|pair| pair[0] == pair[1]), "they name {address:?}");
    ensure!(look(None).await.iter().all(|answer| answer.said.as_ref().is_ok_and(|said| said.raft.is_none())));

    let wrong = Secret::new("s.abcdefghijklmnopqrstuvwx")?;
    let refused = look(Some(&wrong)).await.into_iter().filter_map(|answer| answer.said.err());
    let refused: Vec<Class> = refused.map(|error| error.class()).collect();
    ensure!(refused == [Class::Denied], "a wrong token: {refused:?}");

    let peer = |pod: &str| peers.iter().find(|peer| peer.pod == pod).context("a peer");
    let mut file = Vec::new();
    let patience = Duration::from_secs(20);
    snapshot::save(&network, peer(&leader)?, &token, patience, &mut file).await?;
    ensure!(file.len() > 1000, "a snapshot of {} bytes", file.len());
    let refused = snapshot::save(&network, peer(&leader)?, &wrong, patience, &mut file).await;
    ensure!(refused.is_err(), "a snapshot for a wrong token");
    let other = MEMBERS.into_iter().find(|member| *member != leader).context("another one")?;

    ensure!(step_down(&network, peer(other)?, &token, &timeouts).await.is_err(), "a standby stepped down");
    ensure!(step_down(&network, peer(&leader)?, &wrong, &timeouts).await.is_err(), "for a wrong token");
    step_down(&network, peer(&leader)?, &token, &timeouts).await?;
    until("another leader", async || {
        let answers = look(Some(&token)).await;
        Ok(is_healthy(&answers) && self::leader(&answers).is_some_and(|new| new != leader))
    })
    .await?;
    Ok(10)
}

fn state(answer: &Answer) -> Option<State> {
    answer.said.as_ref().ok().map(|said| said.health.state)
}

fn leader(answers: &[Answer]) -> Option<String> {
    answers.iter().find(|answer| state(answer) == Some(State::Active)).map(|answer| answer.pod.clone())
}

/// All take part, and the one that leads knows of three voters that are well.
fn is_healthy(answers: &[Answer]) -> bool {
    let raft = answers.iter().find_map(|answer| answer.said.as_ref().ok()?.raft.as_ref());
    let Some((raft, autopilot)) = raft.and_then(|raft| Some((raft, raft.autopilot.as_ref()?))) else { return false };
    answers.iter().all(|answer| state(answer).is_some_and(State::takes_part))
        && raft.servers.iter().filter(|server| server.is_voter).count() == 3
        && autopilot.is_healthy
        && autopilot.failure_tolerance == 1
}

/// Waits for what a busy machine may take its time for.
async fn until(what: &str, is_so: impl AsyncFn() -> Result<bool>) -> Result<()> {
    for _ in 0..600 {
        if is_so().await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    anyhow::bail!("there was not {what}")
}
