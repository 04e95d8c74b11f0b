//! What PD's pods said. PD's members tell of each other's health: a silent one's is known if the others call it dead.

use std::collections::{BTreeMap, BTreeSet};

use windlass_plan::{Fact, Member, MemberName, Quorum, Version, quorum::majority};
use windlass_systems::pd::{Answer, PdMember, Ready, Said};

use super::super::answers::{said, silence};
use crate::members::place::{Place, Seen};

/// What is known of a PD quorum whose members are in these places.
pub fn seen(answers: &[Answer], places: &[Place]) -> Seen {
    match in_pods(answers, places) {
        Ok((answers, ids)) => Seen::new(quorum(&answers), ids, places),
        Err(why) => Seen::unknown(&why),
    }
}

/// The same answers with the names of pods in the place of PD's own, and how PD calls each. Members are called like their pods, or, where
/// clusters span several Kubernetes clusters, by the pods' full names; or like nothing of the kind, and then their URLs tell.
fn in_pods(answers: &[Answer], places: &[Place]) -> Result<(Vec<Answer>, BTreeMap<MemberName, String>), String> {
    let mut ids = BTreeMap::new();
    let mut renamed = answers.to_vec();
    for said in renamed.iter_mut().filter_map(|answer| answer.said.as_mut().ok()) {
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for member in said.members.iter_mut().filter(|member| !member.name.is_empty()) {
            let own = member.name.clone();
            let pod = place_of(member, places)?.map_or_else(|| own.clone(), |place| place.pod.clone());
            if let Some((other, _)) = names.iter().find(|(_, taken)| **taken == pod) {
                return Err(format!("members {other} and {own} are both said to be in {pod}"));
            }
            ids.insert(MemberName::new(&pod), own.clone());
            member.name.clone_from(&pod);
            names.insert(own, pod);
        }
        let called = |own: String| names.get(&own).cloned().unwrap_or(own);
        said.leader = said.leader.take().map(called);
        said.etcd_leader = said.etcd_leader.take().map(called);
        said.health =
            std::mem::take(&mut said.health).into_iter().map(|(name, health)| (called(name), health)).collect();
    }
    Ok((renamed, ids))
}

/// The place that a member's name and URL tell of; none where they tell of none of these.
fn place_of<'a>(member: &PdMember, places: &'a [Place]) -> Result<Option<&'a Place>, String> {
    let named = places.iter().filter(|place| place.pod == member.name || place.is_at(&member.name));
    let hosted = places.iter().filter(|place| member.host.as_ref().is_some_and(|host| place.is_at(host)));
    let mut told = named.chain(hosted);
    let Some(first) = told.next() else { return Ok(None) };
    match told.find(|other| other.pod != first.pod) {
        None => Ok(Some(first)),
        Some(other) => {
            Err(format!("the name and the URL of member {} tell of both {} and {}", member.name, first.pod, other.pod))
        }
    }
}

/// What is known of a PD quorum.
fn quorum(answers: &[Answer]) -> Quorum {
    let said = said(answers);
    let Some(((first_pod, first), others)) = said.split_first() else {
        return Quorum::unknown(&silence(answers));
    };
    let listed = identities(&first.members);
    if let Some((pod, _)) = others.iter().find(|(_, said)| identities(&said.members) != listed) {
        return Quorum::unknown(&format!("{first_pod} and {pod} list different members"));
    }
    if said.len() < majority(first.members.len()) {
        return Quorum::unknown(&format!(
            "only {} of {} members answered: {}",
            said.len(),
            first.members.len(),
            silence(answers)
        ));
    }
    if let Some(member) = first.members.iter().find(|member| member.name.is_empty()) {
        return Quorum::unknown(&format!("member {} was added and has never started", member.id));
    }
    let leader = leader(&said);
    let members = first
        .members
        .iter()
        .map(|member| (MemberName::new(&member.name), judge(member, answers, &said, leader.known())))
        .collect();
    let leads = |pod: &str| leader.known().is_some_and(|leader| leader.as_str() == pod);
    let raft = said.iter().find(|(pod, _)| leads(pod)).and_then(|(_, said)| said.raft);
    let mut quorum = Quorum::new(Fact::Known(members), leader);
    // Only who leads the etcd in it can come to lead PD.
    quorum.term = raft.and_then(|raft| raft.term);
    quorum
}

fn identities(members: &[PdMember]) -> BTreeSet<(u64, &str)> {
    members.iter().map(|member| (member.id, member.name.as_str())).collect()
}

/// Everyone who answered names the same leader, of PD and of the etcd in it: while the two differ, a transfer is under way.
fn leader(said: &[(&str, &Said)]) -> Fact<MemberName> {
    let mut named: BTreeMap<&str, &str> = BTreeMap::new();
    for (pod, said) in said {
        match (&said.leader, &said.etcd_leader) {
            (Some(leader), Some(etcd)) if leader == etcd => {
                named.entry(leader).or_insert(pod);
            }
            (Some(leader), Some(etcd)) => {
                return Fact::Unknown(format!(
                    "{pod} says that {leader} leads PD and {etcd} leads its etcd: leadership is moving"
                ));
            }
            (None, _) | (_, None) => return Fact::Unknown(format!("{pod} knows of no leader")),
        }
    }
    let mut named = named.into_iter();
    match (named.next(), named.next()) {
        (Some((leader, _)), None) => Fact::Known(MemberName::new(leader)),
        (Some((one, by)), Some((other, and_by))) => {
            Fact::Unknown(format!("{by} says that {one} leads, {and_by} says {other}"))
        }
        (None, _) => Fact::Unknown("nobody names a leader".into()),
    }
}

fn judge(member: &PdMember, answers: &[Answer], said: &[(&str, &Said)], leader: Option<&MemberName>) -> Member {
    let own = answers.iter().find(|answer| answer.pod == member.name);
    let leads = leader.is_some_and(|leader| leader.as_str() == member.name);
    let called_dead = said.iter().find(|(_, said)| said.health.get(&member.name) == Some(&false));
    let called_healthy = said.iter().all(|(_, said)| said.health.get(&member.name) == Some(&true));
    let healthy = match own.map(|answer| &answer.said) {
        _ if called_dead.is_some() => Fact::Known(false),
        // A follower that has not loaded its regions can't take over. The leader of a cluster that is not bootstrapped says no, too.
        Some(Ok(said)) if said.ready == Ready::No && !leads => Fact::Known(false),
        Some(Ok(_)) if called_healthy => Fact::Known(true),
        Some(Ok(_)) => Fact::Unknown(format!("not everyone tells of {}'s health", member.name)),
        Some(Err(error)) => Fact::Unknown(error.to_string()),
        None => Fact::Unknown(format!("there is no pod {} to ask", member.name)),
    };
    let position = match own.map(|answer| &answer.said) {
        // The leader's log is the measure, what a follower has applied is measured against it.
        Some(Ok(said)) => Fact::Known(said.raft.map(|raft| if leads { raft.index } else { raft.applied })),
        Some(Err(error)) => Fact::Unknown(error.to_string()),
        None => Fact::Unknown(format!("there is no pod {} to ask", member.name)),
    };
    let version = match member.version.parse::<Version>() {
        Ok(version) => Fact::Known(version),
        Err(error) => Fact::Unknown(error.to_string()),
    };
    let priority = said.iter().flat_map(|(_, said)| &said.members).filter(|other| other.id == member.id);
    let priority = priority.filter_map(|member| member.leader_priority).max().unwrap_or(0);
    Member { votes: true, seat: None, healthy, trouble: None, version, position, priority: i64::from(priority) }
}

#[cfg(test)]
mod tests {
    use windlass_plan::{Fact, MemberName};
    use windlass_systems::pd::{Answer, PdMember, RaftPosition, Ready, Said};

    use std::net::IpAddr;

    use rstest::rstest;

    use super::{Place, quorum as pd, seen};

    fn said(leader: Option<&str>, etcd_leader: Option<&str>) -> Said {
        let names = ["pd-0", "pd-1", "pd-2"];
        let member = |(id, name): (u64, &str)| PdMember {
            name: name.into(),
            id: id + (1 << 60),
            host: None,
            version: "v8.5.0".into(),
            leader_priority: Some(0),
        };
        Said {
            members: (1..).zip(names).map(member).collect(),
            leader: leader.map(Into::into),
            etcd_leader: etcd_leader.map(Into::into),
            health: names.iter().map(|name| ((*name).to_owned(), true)).collect(),
            ready: Ready::Yes,
            raft: Some(RaftPosition {
                applied: 90,
                term: Some(3),
                index: 100,
                leader_id: Some(1),
                member_id: 1,
                is_learner: false,
            }),
        }
    }

    fn three(change: impl Fn(usize, &mut Said)) -> Vec<Answer> {
        (0..3)
            .map(|index| {
                let mut said = said(Some("pd-0"), Some("pd-0"));
                change(index, &mut said);
                Answer { pod: format!("pd-{index}"), said: Ok(said) }
            })
            .collect()
    }

    #[test]
    fn agreement_is_knowledge() {
        let quorum = pd(&three(|_, _| ()));
        assert_eq!(quorum.leader, Fact::Known(MemberName::new("pd-0")));
        assert!(quorum.members.known().unwrap().values().all(|member| member.healthy == Fact::Known(true)));
        assert_eq!(quorum.lag(&MemberName::new("pd-1")), Fact::Known(Some(10)));
        assert_eq!(quorum.lag(&MemberName::new("pd-0")), Fact::Known(Some(0)));
    }

    fn places() -> Vec<Place> {
        let place = |index: u8| Place {
            pod: format!("pd-{index}"),
            dns: format!("pd-{index}.pd-peer.ns.svc"),
            address: Some(IpAddr::from([10, 0, 0, index])),
        };
        (0..3).map(place).collect()
    }

    /// The three as they call themselves, and with these hosts in their URLs.
    fn called(name: impl Fn(&str) -> String, host: impl Fn(&str) -> Option<String>) -> Vec<Answer> {
        three(|_, said| {
            for member in &mut said.members {
                member.host = host(&member.name);
                member.name = name(&member.name);
            }
            said.leader = said.leader.take().map(|leader| name(&leader));
            said.etcd_leader = said.etcd_leader.take().map(|leader| name(&leader));
            said.health = said.health.iter().map(|(pod, health)| (name(pod), *health)).collect();
        })
    }

    #[rstest]
    #[case::like_pods(|pod: &str| pod.to_owned(), |_: &str| None)]
    #[case::by_short_names(|pod: &str| format!("{pod}.pd-peer"), |_: &str| None)]
    #[case::by_the_names_of_their_service(|pod: &str| format!("{pod}.pd-peer.ns.svc"), |_: &str| None)]
    #[case::by_full_names(|pod: &str| format!("{pod}.pd-peer.ns.svc.cluster.local"), |_: &str| None)]
    #[case::by_their_urls_alone(|pod: &str| pod.replace("pd-", "blue"), |pod: &str| Some(format!("{pod}.pd-peer.ns.svc")))]
    fn members_are_found_whatever_they_are_called(
        #[case] name: fn(&str) -> String,
        #[case] host: fn(&str) -> Option<String>,
    ) {
        let seen = seen(&called(name, host), &places());
        assert_eq!(seen.quorum.leader, Fact::Known(MemberName::new("pd-0")));
        assert!(seen.quorum.members.known().unwrap().values().all(|member| member.healthy == Fact::Known(true)));
        assert_eq!(seen.quorum.lag(&MemberName::new("pd-1")), Fact::Known(Some(10)));
        assert_eq!(seen.ids[&MemberName::new("pd-2")], name("pd-2"), "what a transfer must say");
    }

    /// One label too many or too few is another member.
    #[rstest]
    #[case::of_another_service(|pod: &str| format!("{pod}.other.ns.svc"), |_: &str| None)]
    #[case::of_a_longer_label(|pod: &str| format!("{pod}0.pd-peer.ns.svc"), |_: &str| None)]
    #[case::of_another_namespace(|pod: &str| format!("{pod}.pd-peer.ns2.svc"), |_: &str| None)]
    fn a_name_that_only_looks_alike_is_another_member(
        #[case] name: fn(&str) -> String,
        #[case] host: fn(&str) -> Option<String>,
    ) {
        let seen = seen(&called(name, host), &places());
        assert_eq!(seen.quorum.member(&MemberName::new("pd-0")), None);
    }

    #[rstest]
    #[case::two_in_one_pod(|_: &str| Some("pd-0.pd-peer.ns.svc".to_owned()), "both said to be in pd-0")]
    fn what_can_be_read_in_two_ways_is_not_known(#[case] host: fn(&str) -> Option<String>, #[case] why: &str) {
        let seen = seen(&called(|pod: &str| pod.replace("pd-", "blue"), host), &places());
        assert!(seen.quorum.members.why().unwrap().contains(why), "{:?}", seen.quorum.members);
    }

    #[test]
    fn a_name_and_a_url_that_contradict_each_other_are_not_believed() {
        let swapped = |pod: &str| Some(format!("{}.pd-peer.ns.svc", pod.replace("pd-0", "pd-1")));
        let seen = seen(&called(str::to_owned, swapped), &places());
        assert!(seen.quorum.members.why().unwrap().contains("tell of both pd-0 and pd-1"), "{:?}", seen.quorum.members);
    }

    #[test]
    fn two_leaders_are_none() {
        let quorum = pd(&three(|index, said| {
            if index == 2 {
                (said.leader, said.etcd_leader) = (Some("pd-2".into()), Some("pd-2".into()));
            }
        }));
        assert!(quorum.leader.why().unwrap().contains("pd-0 leads, pd-2 says pd-2"), "{:?}", quorum.leader);
    }

    #[test]
    fn a_leader_that_etcd_does_not_follow_yet_is_unknown() {
        let quorum = pd(&three(|_, said| said.etcd_leader = Some("pd-1".into())));
        assert!(quorum.leader.why().unwrap().contains("leadership is moving"));
    }

    #[test]
    fn different_lists_of_members_are_no_list() {
        let quorum = pd(&three(|index, said| {
            if index == 1 {
                said.members.pop();
            }
        }));
        assert_eq!(quorum.members.why(), Some("pd-0 and pd-1 list different members"));
    }

    #[test]
    fn one_who_calls_a_member_dead_is_enough() {
        let quorum = pd(&three(|index, said| {
            if index == 0 {
                said.health.insert("pd-2".into(), false);
            }
        }));
        assert_eq!(quorum.member(&MemberName::new("pd-2")).unwrap().healthy, Fact::Known(false));
    }

    #[test]
    fn a_follower_that_is_not_ready_is_not_healthy_and_the_leader_is() {
        let quorum = pd(&three(|_, said| said.ready = Ready::No));
        assert_eq!(quorum.member(&MemberName::new("pd-0")).unwrap().healthy, Fact::Known(true));
        assert_eq!(quorum.member(&MemberName::new("pd-1")).unwrap().healthy, Fact::Known(false));
    }

    #[test]
    fn a_lone_answer_is_no_majority() {
        let answers: Vec<Answer> = three(|_, _| ()).into_iter().take(1).collect();
        assert!(pd(&answers).members.known().is_none());
        assert!(pd(&[]).leader.known().is_none());
    }
}
