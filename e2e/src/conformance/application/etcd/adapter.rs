//! The adapter on a real etcd: what only a real one can show.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::Request;
use windlass_systems::{
    Class, Network, NoSecret, Password, Timeouts,
    etcd::{Answer, Health, Login, login, observe, snapshot, transfer_leader, wants_another_token},
};

use super::super::{Application, play::Which, real::Real};
use super::Etcd;

const MEMBERS: [&str; 3] = Etcd::MEMBERS;

/// Checks what the adapter reads, the hand-over, the snapshot and the answer to missing credentials; how many checks there were.
pub(super) async fn check(mut real: Real<'_, Etcd>, which: Which) -> Result<usize> {
    for member in MEMBERS {
        real.start(member, which).await?;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (network, timeouts) = (Network::plain(), Timeouts::default());
    let peers = MEMBERS.map(|member| real.peer(member));

    let leader = async || -> Result<u64> {
        let answers = observe(&network, &peers, None, &timeouts).await;
        let mut leaders = Vec::new();
        for answer in answers {
            let said = answer.said.with_context(|| format!("ask {}", answer.pod))?;
            ensure!(said.health == Health::Yes && said.members.as_ref().is_some_and(|members| members.len() == 3));
            leaders.push(said.status.leader_id.context("a leader")?);
        }
        ensure!(leaders.windows(2).all(|pair| pair[0] == pair[1]), "they follow {leaders:?}");
        leaders.first().copied().context("three answers")
    };
    let before = leader().await?;
    let ids = observe(&network, &peers, None, &timeouts).await;
    let ids = ids.into_iter().filter_map(|answer| Some((answer.pod, answer.said.ok()?.status.member_id)));
    let (mut from, mut to) = (None, None);
    for (pod, id) in ids {
        if id == before { from = Some(pod) } else { to = Some(id) }
    }
    let from = real.peer(&from.context("the leader's pod")?);
    let to = to.context("a follower")?;
    transfer_leader(&network, &from, to, None, &timeouts).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    ensure!(leader().await? == to, "leadership did not go where it was sent");

    for number in 0..200 {
        let value = "AAAA".repeat(400);
        let body = format!(r#"{{"key":"{}","value":"{value}"}}"#, base64(number));
        let put =
            real.ask(MEMBERS[0], Request::post("/v3/kv/put").body(Bytes::from(body))?).await?.context("a write")?;
        ensure!(put.status().is_success(), "{}", String::from_utf8_lossy(put.body()));
    }
    let mut file = Vec::new();
    let saved = snapshot::save(&network, &peers[0], None, Duration::from_secs(10), &mut file).await?;
    ensure!(file.len() as u64 == saved.bytes + 32, "{} bytes were written, {} told", file.len(), saved.bytes);
    ensure!(saved.bytes.is_multiple_of(512) && saved.bytes > 32 * 1024, "no database of {} bytes", saved.bytes);

    for (path, body) in [
        ("/v3/auth/user/add", r#"{"name":"root","password":"secret"}"#),
        ("/v3/auth/user/grant", r#"{"user":"root","role":"root"}"#),
        ("/v3/auth/enable", "{}"),
    ] {
        let answer = real.ask(MEMBERS[0], Request::post(path).body(Bytes::from(body))?).await?.context("an answer")?;
        ensure!(answer.status().is_success(), "{path}: {}", String::from_utf8_lossy(answer.body()));
    }
    // The others hear of it a moment later.
    for answer in
        once_all(|answer| answer.said.is_err(), async || observe(&network, &peers, None, &timeouts).await).await
    {
        let error = answer.said.err().with_context(|| format!("{} let us in without credentials", answer.pod))?;
        ensure!(error.class() == Class::Denied && wants_another_token(&error), "{error}");
    }
    let user = |password| Ok::<_, NoSecret>(Login { name: "root".into(), password: Password::new(password)? });
    let error = login(&network, &peers[0], &user("wrong")?, &timeouts).await.err().context("a wrong password")?;
    ensure!(error.class() == Class::Denied, "{error}");
    let token = login(&network, &peers[0], &user("secret")?, &timeouts).await?.context("a token")?;
    // And of the token.
    let observed = async || observe(&network, &peers, Some(&token), &timeouts).await;
    let answers = once_all(|answer| answer.said.is_ok(), observed).await;
    let leads = leader_of(&answers)?;
    transfer_leader(&network, &real.peer(&leads.0), leads.1, Some(&token), &timeouts).await?;
    let mut file = Vec::new();
    snapshot::save(&network, &peers[0], Some(&token), Duration::from_secs(10), &mut file).await?;
    Ok(8)
}

/// The answers, once all of them are so or ten seconds have passed.
async fn once_all(so: impl Fn(&Answer) -> bool, observe: impl AsyncFn() -> Vec<Answer>) -> Vec<Answer> {
    let mut answers = observe().await;
    for _ in 0..50 {
        if answers.iter().all(&so) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        answers = observe().await;
    }
    answers
}

/// The leader's pod and id, as all members say.
fn leader_of(answers: &[Answer]) -> Result<(String, u64)> {
    for answer in answers {
        let said = answer.said.as_ref().map_err(Clone::clone).with_context(|| format!("ask {}", answer.pod))?;
        if said.status.leader_id == Some(said.status.member_id) {
            return Ok((answer.pod.clone(), said.status.member_id));
        }
    }
    anyhow::bail!("nobody leads")
}

/// A key of two letters, in base64 as the gateway wants it.
fn base64(number: u32) -> String {
    let letter = |number: u32| char::from(b'A' + u8::try_from(number % 26).unwrap_or_default());
    // Four letters are three bytes of some kind, which is all that a key has to be.
    [letter(number / 26), letter(number), 'A', 'A'].iter().collect()
}
