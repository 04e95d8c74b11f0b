//! What the pods of OpenBao and Vault said. Each tells of itself; the one that leads tells who the members are, if it is shown a token.
//!
//! Ids in Raft are left to chance by the charts, so a member is found by its address. The leader's list counts only while a majority of
//! the voters take part and none of them names another leader: one that was deposed and does not know it yet lists members, too (H17).

use std::collections::BTreeMap;

use windlass_plan::{
    Fact, Member, MemberName, Quorum, Version,
    quorum::{Complaint, majority},
};
use windlass_systems::{
    Class,
    openbao::{Answer, Raft, RaftServer, Said, State},
};

use super::super::answers::{said, silence};
use crate::members::place::{Place, Seen};

/// What is known of a quorum whose members are in these places.
pub fn seen(answers: &[Answer], places: &[Place]) -> Seen {
    if let Some(why) = refusal(answers) {
        return Seen::refused(&why);
    }
    agreed(answers, places).unwrap_or_else(|why| Seen::unknown(&why))
}

/// The pod that leads is the one that is shown a token: where it refuses that, it tells nothing at all, and nobody else says that it leads.
fn refusal(answers: &[Answer]) -> Option<String> {
    let refused = |answer: &Answer| answer.said.as_ref().err().filter(|error| error.class() == Class::Denied).cloned();
    let error = answers.iter().find_map(refused)?;
    active(&said(answers)).is_err().then(|| format!("the token is refused, it may have expired: {error}"))
}

fn agreed(answers: &[Answer], places: &[Place]) -> Result<Seen, String> {
    let said = said(answers);
    let (leader, raft) = match active(&said) {
        Ok((pod, said)) => (
            pod,
            said.raft.as_ref().ok_or_else(|| {
                format!(
                    "{pod} leads, and tells who the members are to nobody without a token: spec.system.auth names one"
                )
            })?,
        ),
        Err(why) if answers.iter().all(|answer| answer.said.is_ok()) => return Err(why),
        Err(why) => return Err(format!("{why}: {}", silence(answers))),
    };
    let names = name(&raft.servers, places)?;
    let voters: Vec<&MemberName> =
        raft.servers.iter().filter(|server| server.is_voter).filter_map(|server| names.get(&server.node_id)).collect();
    let takes_part =
        |voter: &&&MemberName| said.iter().any(|(pod, said)| voter.as_str() == *pod && said.health.state.takes_part());
    let present = voters.iter().filter(takes_part).count();
    if present < majority(voters.len()) {
        return Err(format!("only {present} of {} members take part: {}", voters.len(), silence(answers)));
    }
    let leader =
        contradicted(leader, raft, &said, &names).map_or_else(|| Fact::Known(MemberName::new(leader)), Fact::Unknown);
    let judged = raft.servers.iter().filter_map(|server| {
        let name = names.get(&server.node_id)?;
        Some((name.clone(), Member { votes: server.is_voter, ..judge(name, server, raft, answers) }))
    });
    let mut quorum = Quorum::new(Fact::Known(judged.collect()), leader);
    quorum.term = term(raft);
    // Nobody can be named as the next leader, so nobody needs a name for that.
    let ids = voters.into_iter().map(|name| (name.clone(), name.to_string())).collect();
    Ok(Seen::new(quorum, ids, places))
}

/// The term that the leader's log has reached, as its autopilot says.
fn term(raft: &Raft) -> Option<u64> {
    let leader = raft.servers.iter().find(|server| server.is_leader)?;
    let heard = raft.autopilot.as_ref()?.servers.get(&leader.node_id)?;
    (heard.last_term > 0).then_some(heard.last_term)
}

/// The one pod that says that it leads.
fn active<'a>(said: &[(&'a str, &'a Said)]) -> Result<(&'a str, &'a Said), String> {
    let leads = |said: &Said| {
        said.health.state == State::Active && said.leadership.as_ref().is_some_and(|leadership| leadership.is_self)
    };
    let mut active = said.iter().filter(|(_, said)| leads(said));
    match (active.next(), active.next()) {
        (Some(one), None) => Ok(*one),
        (Some((one, _)), Some((other, _))) => Err(format!("both {one} and {other} say that they lead")),
        (None, _) => Err("nobody says that it leads".into()),
    }
}

/// Why the pod that says it leads may not.
fn contradicted(
    leader: &str,
    raft: &Raft,
    said: &[(&str, &Said)],
    names: &BTreeMap<String, MemberName>,
) -> Option<String> {
    let listed = raft.servers.iter().find(|server| server.is_leader);
    let Some(listed) = listed.filter(|server| names.get(&server.node_id).is_some_and(|name| name.as_str() == leader))
    else {
        return Some(format!("{leader} says that it leads, and lists another member as Raft's leader"));
    };
    // Where listeners hide addresses, the leader hides its own as well, and nobody names anybody.
    let told = |said: &Said| said.leadership.as_ref().and_then(|leadership| leadership.cluster_address.clone());
    let hidden = said.iter().any(|(pod, said)| *pod == leader && told(said).is_none());
    said.iter().filter(|(pod, said)| *pod != leader && said.health.state.takes_part() && !hidden).find_map(
        |(pod, said)| match told(said) {
            None => Some(format!("{pod} knows of no leader")),
            Some(address) if address != listed.address => {
                Some(format!("{leader} says that it leads, {pod} says that {} does", address.as_str()))
            }
            Some(_) => None,
        },
    )
}

/// Which pod each server is in, by its address; one that is in none keeps its id.
fn name(servers: &[RaftServer], places: &[Place]) -> Result<BTreeMap<String, MemberName>, String> {
    let mut names: BTreeMap<String, MemberName> = BTreeMap::new();
    for server in servers {
        let host = server.address.host().unwrap_or_default();
        let place = places.iter().find(|place| place.is_at(host));
        let name = place.map_or_else(|| MemberName::new(&server.node_id), |place| MemberName::new(&place.pod));
        if let Some((other, _)) = names.iter().find(|(_, taken)| **taken == name) {
            return Err(format!("servers {other} and {} are both said to be in {name}", server.node_id));
        }
        if names.insert(server.node_id.clone(), name).is_some() {
            return Err(format!("two servers have the id {}", server.node_id));
        }
    }
    Ok(names)
}

fn judge(name: &MemberName, server: &RaftServer, raft: &Raft, answers: &[Answer]) -> Member {
    let said = match answers.iter().find(|answer| answer.pod == name.as_str()).map(|answer| &answer.said) {
        Some(Ok(said)) => said,
        Some(Err(error)) => return silent(&error.to_string(), server, raft),
        None => return Member::unknown(&format!("there is no pod {name} to ask")),
    };
    let trouble = trouble(said, server, raft);
    Member {
        votes: true,
        seat: None,
        healthy: Fact::Known(trouble.is_none()),
        trouble,
        version: match said.health.version.as_deref().map(str::parse::<Version>) {
            Some(Ok(version)) => Fact::Known(version),
            Some(Err(error)) => Fact::Unknown(error.to_string()),
            None => Fact::Unknown(format!("{name} hides its version")),
        },
        // What each has applied, told by itself: what autopilot heard is seconds old (H18).
        position: match said.leadership.as_ref().map(|leadership| leadership.raft) {
            Some(Some(raft)) => Fact::Known(Some(raft.applied)),
            Some(None) => Fact::Unknown(format!("{name} does not keep its data in Raft")),
            None => Fact::Unknown(format!("{name} takes no part in Raft at the moment")),
        },
        priority: 0,
    }
}

/// One that does not answer is not known to be unwell, unless the leader finds so, too: two who can't reach it are not one broken wire.
fn silent(why: &str, server: &RaftServer, raft: &Raft) -> Member {
    let member = Member::unknown(why);
    match unheard(server, raft) {
        None => member,
        Some(found) => Member {
            healthy: Fact::Known(false),
            trouble: Some(Complaint::Other(format!("{found}, and it does not answer: {why}"))),
            ..member
        },
    }
}

/// What the leader finds wrong with a member; none where it finds nothing, or does not tell.
fn unheard(server: &RaftServer, raft: &Raft) -> Option<&'static str> {
    let heard = raft.autopilot.as_ref()?.servers.get(&server.node_id)?;
    match (heard.is_alive, heard.is_healthy) {
        (true, true) => None,
        (false, _) => Some("the leader does not hear it"),
        (true, false) => Some("it does not keep up with the leader"),
    }
}

/// What keeps a member from being healthy.
fn trouble(said: &Said, server: &RaftServer, raft: &Raft) -> Option<Complaint> {
    let other = |what: &str| Some(Complaint::Other(what.to_owned()));
    match said.health.state {
        State::Sealed => return Some(Complaint::Sealed),
        State::Uninitialized => return other("it has not joined: it is not initialised"),
        State::Removed => return other("it was removed from the cluster"),
        State::Standby { hears_active: Some(false) } => return other("it does not hear the active node"),
        State::Standby { hears_active: None | Some(true) } | State::Active => {}
    }
    unheard(server, raft).and_then(other)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use rstest::rstest;
    use windlass_plan::{Fact, MemberName, Quorum};
    use windlass_systems::openbao::{
        Address, Answer, Autopilot, AutopilotServer, Health, Leadership, Raft, RaftPosition, RaftServer, Said,
        Standing, State,
    };

    use super::{Place, seen, silent};

    fn places() -> Vec<Place> {
        (0..3)
            .map(|index| Place {
                pod: format!("bao-{index}"),
                dns: format!("bao-{index}.bao-internal.ns.svc"),
                address: Some(IpAddr::from([10, 0, 0, index])),
            })
            .collect()
    }

    fn address(index: u64) -> Address {
        Address::new(&format!("bao-{index}.bao-internal:8201"))
    }

    fn raft() -> Raft {
        let server = |index: u64| RaftServer {
            node_id: format!("{index:08x}"),
            address: address(index),
            is_leader: index == 0,
            is_voter: true,
        };
        let heard = |index: u64| AutopilotServer {
            address: address(index),
            is_healthy: true,
            is_alive: true,
            standing: if index == 0 { Standing::Leader } else { Standing::Voter },
            last_term: 3,
            last_index: 90,
            version: None,
        };
        Raft {
            servers: (0..3).map(server).collect(),
            autopilot: Some(Autopilot {
                is_healthy: true,
                failure_tolerance: 1,
                leader: Some("00000000".into()),
                servers: (0..3).map(|index| (format!("{index:08x}"), heard(index))).collect(),
            }),
        }
    }

    fn said(index: u64) -> Said {
        Said {
            health: Health {
                state: if index == 0 { State::Active } else { State::Standby { hears_active: None } },
                version: Some("2.5.5".into()),
                cluster_name: None,
                cluster_id: None,
                is_dr_secondary: false,
            },
            leadership: Some(Leadership {
                is_self: index == 0,
                api_address: None,
                cluster_address: Some(address(0)),
                raft: Some(RaftPosition { last: 101, applied: 100 - index }),
            }),
            raft: (index == 0).then(raft),
        }
    }

    fn three(change: impl Fn(u64, &mut Said)) -> Vec<Answer> {
        let answer = |index| {
            let mut said = said(index);
            change(index, &mut said);
            Answer { pod: format!("bao-{index}"), said: Ok(said) }
        };
        (0..3).map(answer).collect()
    }

    fn quorum(change: impl Fn(u64, &mut Said)) -> Quorum {
        seen(&three(change), &places()).quorum
    }

    fn name(index: u64) -> MemberName {
        MemberName::new(format!("bao-{index}"))
    }

    fn healthy(quorum: &Quorum, index: u64) -> &Fact<bool> {
        &quorum.member(&name(index)).unwrap().healthy
    }

    #[test]
    fn agreement_is_knowledge() {
        let quorum = quorum(|_, _| ());
        assert_eq!(quorum.leader, Fact::Known(name(0)));
        assert!((0..3).all(|index| *healthy(&quorum, index) == Fact::Known(true)));
        assert_eq!(quorum.lag(&name(2)), Fact::Known(Some(2)));
        assert_eq!(quorum.non_voters().next(), None);
    }

    #[test]
    fn two_who_lead_are_none_and_so_is_nobody() {
        let both = quorum(|index, said| {
            if index == 1 {
                said.health.state = State::Active;
                said.leadership.as_mut().unwrap().is_self = true;
            }
        });
        assert_eq!(both.members.why(), Some("both bao-0 and bao-1 say that they lead"));
        let nobody = quorum(|_, said| said.health.state = State::Standby { hears_active: None });
        assert_eq!(nobody.members.why(), Some("nobody says that it leads"));
    }

    #[test]
    fn a_follower_of_somebody_else_or_of_nobody_makes_the_leader_unknown() {
        let follows = |whom: Option<u64>| {
            quorum(|index, said| {
                if index == 2 {
                    said.leadership.as_mut().unwrap().cluster_address = whom.map(address);
                }
            })
        };
        assert!(follows(Some(1)).leader.why().unwrap().contains("bao-2 says that bao-1.bao-internal:8201 does"));
        assert_eq!(follows(None).leader.why(), Some("bao-2 knows of no leader"));
        let hidden = quorum(|_, said| said.leadership.as_mut().unwrap().cluster_address = None);
        assert_eq!(hidden.leader, Fact::Known(name(0)), "a listener that hides addresses hides all of them");
    }

    #[test]
    fn a_leader_that_lists_another_is_none() {
        let quorum = quorum(|_, said| {
            for server in said.raft.iter_mut().flat_map(|raft| &mut raft.servers) {
                server.is_leader = server.node_id == "00000001";
            }
        });
        assert!(quorum.leader.why().unwrap().contains("lists another member"));
    }

    #[tokio::test]
    async fn a_refusal_is_told_first_and_by_its_name() {
        use windlass_systems::{
            Timeouts,
            openbao::{Product, observe},
            secret::Secret,
            transport::Peer,
        };

        let peer = Peer {
            pod: "bao-0".into(),
            address: IpAddr::from([10, 0, 0, 0]),
            port: 8200,
            server_name: String::new(),
            tls: false,
        };
        let (token, timeouts) = (Secret::new("s.expired").unwrap(), Timeouts::default());
        let refused = observe(Product::OpenBao, &Refusing, &[peer], Some(&token), &timeouts).await;
        let mut answers = three(|_, _| ());
        answers.splice(..1, refused);
        let quorum = seen(&answers, &places()).quorum;
        let why = quorum.members.why().unwrap();
        assert!(quorum.refused && why.starts_with("the token is refused"), "{why}");
        assert!(why.contains("403"), "{why}");

        // Somebody else leads by now: what the old leader refuses does not matter.
        if let Ok(other) = &mut answers[1].said {
            *other = said(0);
        }
        assert!(!seen(&answers, &places()).quorum.refused);
    }

    /// Leads, and refuses every token.
    struct Refusing;

    impl windlass_systems::transport::Transport for Refusing {
        fn send(
            &self,
            _: &windlass_systems::transport::Peer,
            request: http::Request<bytes::Bytes>,
        ) -> futures::future::BoxFuture<'static, std::io::Result<http::Response<bytes::Bytes>>> {
            let (code, body) = match request.uri().path() {
                "/v1/sys/health" => (
                    200,
                    r#"{"initialized":true,"sealed":false,"standby":false,"performance_standby":false,"server_time_utc":1,"version":"2.5.5"}"#,
                ),
                "/v1/sys/leader" => (
                    200,
                    r#"{"ha_enabled":true,"is_self":true,"leader_address":"","leader_cluster_address":"","raft_committed_index":9,"raft_applied_index":9}"#,
                ),
                _ => (403, r#"{"errors":["permission denied"]}"#),
            };
            let mut response = http::Response::new(bytes::Bytes::from_static(body.as_bytes()));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
            Box::pin(async move { Ok(response) })
        }
    }

    #[test]
    fn without_a_token_nobody_is_a_member() {
        let quorum = quorum(|_, said| said.raft = None);
        assert!(quorum.members.why().unwrap().contains("spec.system.auth"), "{quorum:?}");
    }

    #[rstest]
    #[case::heard(true, true, None)]
    #[case::behind(true, false, Some("it does not keep up with the leader, and it does not answer: silence"))]
    #[case::gone(false, false, Some("the leader does not hear it, and it does not answer: silence"))]
    fn a_silent_member_is_unwell_only_if_the_leader_finds_so_too(
        #[case] is_alive: bool,
        #[case] is_healthy: bool,
        #[case] expected: Option<&str>,
    ) {
        let mut raft = raft();
        let autopilot = raft.autopilot.as_mut().unwrap();
        for heard in autopilot.servers.values_mut() {
            (heard.is_alive, heard.is_healthy) = (is_alive, is_healthy);
        }
        let member = silent("silence", &raft.servers[2], &raft);
        assert_eq!(member.healthy == Fact::Known(false), expected.is_some());
        assert_eq!(member.trouble.map(|trouble| trouble.to_string()).as_deref(), expected);
        assert!(member.version.known().is_none() && member.position.known().is_none());
        raft.autopilot = None;
        assert!(silent("silence", &raft.servers[2], &raft).healthy.known().is_none(), "nobody else was asked");
    }

    #[test]
    fn a_silent_member_is_neither_healthy_nor_dead_and_two_are_no_majority() {
        let mut answers = three(|_, _| ());
        answers.pop();
        let quorum = seen(&answers, &places()).quorum;
        assert_eq!(healthy(&quorum, 2), &Fact::Unknown("there is no pod bao-2 to ask".into()));
        assert!(!quorum.survives_losing(&name(1)));
        answers.pop();
        assert!(seen(&answers, &places()).quorum.members.why().unwrap().starts_with("only 1 of 3 members take part"));
    }

    #[rstest]
    #[case::sealed(State::Sealed, "it is sealed")]
    #[case::uninitialised(State::Uninitialized, "it has not joined")]
    #[case::removed(State::Removed, "it was removed")]
    #[case::deaf(State::Standby { hears_active: Some(false) }, "it does not hear")]
    fn a_member_that_takes_no_part_is_unhealthy_and_says_why(#[case] state: State, #[case] why: &str) {
        let quorum = quorum(|index, said| {
            if index == 1 {
                said.health.state = state;
                if !state.takes_part() {
                    said.leadership = None;
                }
            }
        });
        let member = quorum.member(&name(1)).unwrap();
        assert_eq!(member.healthy, Fact::Known(false));
        assert!(member.trouble.as_ref().unwrap().to_string().starts_with(why), "{member:?}");
        assert_eq!(healthy(&quorum, 2), &Fact::Known(true));
    }

    #[test]
    fn what_the_leader_hears_counts_and_its_absence_does_not() {
        let heard = |alive: bool, keeps_up: bool| {
            quorum(|_, said| {
                let server = said
                    .raft
                    .as_mut()
                    .and_then(|raft| raft.autopilot.as_mut())
                    .and_then(|it| it.servers.get_mut("00000002"));
                if let Some(server) = server {
                    (server.is_alive, server.is_healthy) = (alive, keeps_up);
                }
            })
        };
        assert_eq!(healthy(&heard(false, true), 2), &Fact::Known(false));
        assert_eq!(healthy(&heard(true, false), 2), &Fact::Known(false));
        let off = quorum(|_, said| {
            if let Some(raft) = &mut said.raft {
                raft.autopilot = None;
            }
        });
        assert_eq!(healthy(&off, 2), &Fact::Known(true));
    }

    #[test]
    fn a_non_voter_is_named_and_has_no_vote() {
        let quorum = quorum(|_, said| {
            for server in said.raft.iter_mut().flat_map(|raft| &mut raft.servers) {
                server.is_voter = server.node_id != "00000002";
            }
        });
        let learners: Vec<&str> = quorum.non_voters().map(|(name, _)| name.as_str()).collect();
        assert_eq!((quorum.size(), learners), (2, vec!["bao-2"]));
    }

    #[test]
    fn two_servers_in_one_pod_make_the_members_unknown() {
        let quorum = quorum(|_, said| {
            for server in said.raft.iter_mut().flat_map(|raft| &mut raft.servers) {
                server.address = if server.node_id == "00000002" { address(1) } else { server.address.clone() };
            }
        });
        assert!(quorum.members.why().unwrap().contains("both said to be in bao-1"), "{quorum:?}");
    }

    #[test]
    fn a_server_elsewhere_keeps_its_id() {
        let quorum = quorum(|_, said| {
            for server in said.raft.iter_mut().flat_map(|raft| &mut raft.servers) {
                if server.node_id == "00000002" {
                    server.address = Address::new("192.0.2.7:8201");
                }
            }
        });
        assert!(quorum.member(&name(2)).is_none() && quorum.member(&MemberName::new("00000002")).is_some());
    }
}
