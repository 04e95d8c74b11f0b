//! The adapter on a real PD: what only a real one can show.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use windlass_systems::{
    Network, Timeouts,
    pd::{Answer, observe, transfer_leader},
};

use super::{
    super::{Application, play::Which, real::Real},
    Pd,
};

const MEMBERS: [&str; 3] = Pd::MEMBERS;

/// Checks what the adapter reads, and the hand-over; how many checks there were.
pub(super) async fn check(mut real: Real<'_, Pd>, which: Which) -> Result<usize> {
    for member in MEMBERS {
        real.start(member, which).await?;
    }
    let (network, timeouts) = (Network::plain(), Timeouts::default());
    let peers = MEMBERS.map(|member| real.peer(member));
    let peer = |pod: &str| peers.iter().find(|peer| peer.pod == pod).context("a peer");
    let before = settled(&network, &peers, &timeouts, |_| true).await?;
    let target = MEMBERS.into_iter().find(|member| *member != before).context("another one")?;
    let nobody = transfer_leader(&network, peer(&before)?, "nobody", &timeouts).await;
    ensure!(nobody.is_err(), "leadership went to nobody");
    transfer_leader(&network, peer(&before)?, target, &timeouts).await?;
    settled(&network, &peers, &timeouts, |leader| leader == target).await?;
    // Too late, it is passed on, and does no harm.
    transfer_leader(&network, peer(&before)?, target, &timeouts).await?;
    settled(&network, &peers, &timeouts, |leader| leader == target).await?;
    Ok(5)
}

/// The leader, once all know everything and it is one that is wanted.
async fn settled(
    network: &Network,
    peers: &[windlass_systems::Peer],
    timeouts: &Timeouts,
    wanted: impl Fn(&str) -> bool,
) -> Result<String> {
    for _ in 0..600 {
        let answers = observe(network, peers, timeouts).await;
        if let Some(leader) = agreed(&answers).filter(|leader| wanted(leader)) {
            return Ok(leader);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bail!("it did not come to rest")
}

/// The leader that all name, if all know of three members that are well and of their own place in Raft.
fn agreed(answers: &[Answer]) -> Option<String> {
    let mut leaders = Vec::new();
    for answer in answers {
        let said = answer.said.as_ref().ok()?;
        let raft = said.raft.as_ref()?;
        let id = |name: &str| said.members.iter().find(|member| member.name == name).map(|member| member.id);
        let leader = said.leader.clone()?;
        let well = said.members.len() == 3
            && said.members.iter().all(|member| !member.version.is_empty() && member.leader_priority == Some(0))
            && said.health.len() == 3
            && said.health.values().all(|well| *well)
            && said.etcd_leader.as_ref() == Some(&leader)
            && raft.leader_id == id(&leader)
            && id(&answer.pod) == Some(raft.member_id);
        if !well {
            return None;
        }
        leaders.push(leader);
    }
    leaders.windows(2).all(|pair| pair[0] == pair[1]).then(|| leaders.first().cloned()).flatten()
}
