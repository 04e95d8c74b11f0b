//! What etcd's pods said. Each tells of itself alone, so a silent one's health is unknown.
//!
//! Members have ids and names of their own. Which pod a member is in is told by its name, where that is a pod's name, or by the host in
//! its URLs, and by the pod itself, which knows its id. These must not contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use windlass_plan::{
    Fact, Member, MemberName, Quorum, Version,
    quorum::{Complaint, majority},
};
use windlass_systems::{
    Class,
    etcd::{Answer, EtcdMember, Health, Said},
};

use super::super::answers::{said, silence};
use crate::members::place::{Place, Seen};

/// What is known of an etcd quorum whose members are in these places.
pub fn seen(answers: &[Answer], places: &[Place]) -> Seen {
    agreed(answers, places).unwrap_or_else(|why| match refusal(answers) {
        Some(refused) => Seen::refused(&refused),
        None => Seen::unknown(&why),
    })
}

/// Where authentication is on, who shows no token, or that of somebody who may not ask, is told nothing.
fn refusal(answers: &[Answer]) -> Option<String> {
    let denied = |answer: &Answer| answer.said.as_ref().err().filter(|error| error.class() == Class::Denied).cloned();
    let error = answers.iter().find_map(denied)?;
    Some(format!("etcd's authentication is enabled, and spec.system.auth gives nobody who may ask: {error}"))
}

fn agreed(answers: &[Answer], places: &[Place]) -> Result<Seen, String> {
    let said = said(answers);
    let mut lists = said.iter().filter_map(|(pod, said)| said.members.as_ref().map(|members| (*pod, members)));
    let Some((first_pod, members)) = lists.next() else { return Err(silence(answers)) };
    if let Some((pod, _)) = lists.find(|(_, other)| identities(other) != identities(members)) {
        return Err(format!("{first_pod} and {pod} list different members"));
    }
    let voters = members.iter().filter(|member| !member.is_learner).count();
    let answered = said.iter().filter(|(_, said)| !said.status.is_learner).count();
    if answered < majority(voters) {
        return Err(format!("only {answered} of {voters} members answered: {}", silence(answers)));
    }
    if let Some(member) = members.iter().find(|member| member.name.is_empty() && !member.is_learner) {
        return Err(format!("member {:x} was added and has never started", member.id));
    }
    let names = names(members, &said, places)?;
    let leader = leader(&said, &names);
    let called = |member: &EtcdMember| names.get(&member.id).cloned();
    let judged = |member: &EtcdMember| {
        let name = called(member)?;
        let judged = Member { votes: !member.is_learner, ..judge(&name, answers, leader.known()) };
        Some((name, judged))
    };
    let called_so: BTreeMap<MemberName, Member> = members.iter().filter_map(judged).collect();
    if called_so.len() < members.len() {
        // One would hide another, and the quorum look smaller than it is.
        return Err("two members have names that can't be told apart".to_owned());
    }
    let leads = |pod: &str| leader.known().is_some_and(|leader| leader.as_str() == pod);
    let term = said.iter().find(|(pod, _)| leads(pod)).and_then(|(_, said)| said.status.term);
    let mut quorum = Quorum::new(Fact::Known(called_so), leader);
    quorum.term = term;
    quorum.downgrade = all_say(&said, |said| said.status.downgrade.as_deref());
    quorum.agreed = all_say(&said, |said| said.cluster_version.as_deref());
    Ok(Seen::new(quorum, names.into_iter().map(|(id, name)| (name, id.to_string())).collect(), places))
}

fn identities(members: &[EtcdMember]) -> BTreeSet<(u64, &str, bool)> {
    members.iter().map(|member| (member.id, member.name.as_str(), member.is_learner)).collect()
}

/// What each member is called here: its pod's name, or its own where it is in no pod of the set.
fn names(
    members: &[EtcdMember],
    said: &[(&str, &Said)],
    places: &[Place],
) -> Result<BTreeMap<u64, MemberName>, String> {
    let mut pods: BTreeMap<u64, &str> = BTreeMap::new();
    for member in members {
        if let Some(place) = place_of(member, places)? {
            pods.insert(member.id, &place.pod);
        }
    }
    for (pod, said) in said {
        let id = said.status.member_id;
        if !members.iter().any(|member| member.id == id) {
            return Err(format!("{pod} says that it is member {id:x}, and nobody lists that one"));
        }
        match pods.insert(id, pod) {
            Some(other) if other != *pod => {
                return Err(format!("{pod} says that it is member {id:x}, whose name or URL is {other}'s"));
            }
            Some(_) | None => {}
        }
    }
    let mut taken: BTreeMap<&str, u64> = BTreeMap::new();
    for (id, pod) in &pods {
        if let Some(other) = taken.insert(pod, *id) {
            return Err(format!("members {other:x} and {id:x} are both said to be in {pod}"));
        }
    }
    // etcd lets several have the same name.
    let is_shared = |member: &EtcdMember| {
        let is_another = |one: &&EtcdMember| one.id != member.id && !pods.contains_key(&one.id);
        members.iter().filter(is_another).any(|one| one.name == member.name)
    };
    let name = |member: &EtcdMember| match pods.get(&member.id) {
        Some(pod) => MemberName::new(*pod),
        None if member.name.is_empty() || is_shared(member) => MemberName::new(format!("member {:x}", member.id)),
        None => MemberName::new(&member.name),
    };
    Ok(members.iter().map(|member| (member.id, name(member))).collect())
}

/// The place that a member's name and URLs tell of; none where they tell of none of these.
fn place_of<'a>(member: &EtcdMember, places: &'a [Place]) -> Result<Option<&'a Place>, String> {
    let named = places.iter().filter(|place| place.pod == member.name);
    let hosted = places.iter().filter(|place| member.hosts.iter().any(|host| place.is_at(host)));
    let mut told = named.chain(hosted);
    let Some(first) = told.next() else { return Ok(None) };
    match told.find(|other| other.pod != first.pod) {
        None => Ok(Some(first)),
        Some(other) => {
            Err(format!("the name and the URLs of member {:x} tell of both {} and {}", member.id, first.pod, other.pod))
        }
    }
}

/// Everyone who answered names the same leader, and it is a member.
fn leader(said: &[(&str, &Said)], names: &BTreeMap<u64, MemberName>) -> Fact<MemberName> {
    let mut leaders: BTreeMap<u64, &str> = BTreeMap::new();
    for (pod, said) in said {
        match said.status.leader_id {
            Some(id) => leaders.entry(id).or_insert(pod),
            None => return Fact::Unknown(format!("{pod} knows of no leader")),
        };
    }
    let called = |id: &u64| names.get(id).map_or_else(|| format!("member {id:x}"), ToString::to_string);
    let mut leaders = leaders.into_iter();
    match (leaders.next(), leaders.next()) {
        (Some((id, by)), None) => match names.get(&id) {
            Some(name) => Fact::Known(name.clone()),
            None => Fact::Unknown(format!("{by} says that member {id:x} leads, and nobody lists that one")),
        },
        (Some((one, by)), Some((other, and_by))) => {
            Fact::Unknown(format!("{by} says that {} leads, {and_by} says {}", called(&one), called(&other)))
        }
        (None, _) => Fact::Unknown("nobody names a leader".into()),
    }
}

fn judge(name: &MemberName, answers: &[Answer], leader: Option<&MemberName>) -> Member {
    let said = match answers.iter().find(|answer| answer.pod == name.as_str()).map(|answer| &answer.said) {
        Some(Ok(said)) => said,
        Some(Err(error)) => return Member::unknown(&error.to_string()),
        None => return Member::unknown(&format!("there is no pod {name} to ask")),
    };
    let trouble = trouble(said);
    let status = &said.status;
    Member {
        votes: true,
        seat: None,
        healthy: Fact::Known(trouble.is_none()),
        trouble,
        version: match status.version.parse::<Version>() {
            Ok(version) => Fact::Known(version),
            Err(error) => Fact::Unknown(error.to_string()),
        },
        // The leader's log is the measure, what a follower has applied is measured against it.
        position: Fact::Known(Some(if leader == Some(name) { status.index } else { status.applied })),
        priority: 0,
    }
}

/// What keeps a member from being healthy.
fn trouble(said: &Said) -> Option<Complaint> {
    if let Some(alarm) = said.status.alarms.first() {
        return Some(Complaint::Other(format!("alarm {}", alarm.trim())));
    }
    if said.status.leader_id.is_none() {
        return Some(Complaint::Other("it knows of no leader".into()));
    }
    match &said.health {
        Health::Yes => None,
        Health::No(reason) => Some(Complaint::Other(reason.clone())),
    }
}

/// A version that everyone who answered names alike.
fn all_say(said: &[(&str, &Said)], what: impl Fn(&Said) -> Option<&str>) -> Option<Version> {
    let mut told = said.iter().map(|(_, said)| what(said));
    let first = told.next()??;
    if told.all(|other| other == Some(first)) { first.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use rstest::rstest;
    use windlass_plan::{Fact, MemberName, Quorum, quorum::Seat};
    use windlass_systems::etcd::{Answer, EtcdMember, Health, Said, Status};

    use super::{Place, seen};

    const IDS: u64 = 1 << 60;

    fn places() -> Vec<Place> {
        (0..3)
            .map(|index| Place {
                pod: format!("etcd-{index}"),
                dns: format!("etcd-{index}.etcd.ns.svc"),
                address: Some(IpAddr::from([10, 0, 0, index])),
            })
            .collect()
    }

    fn member(index: u64) -> EtcdMember {
        EtcdMember {
            id: IDS + index,
            name: format!("etcd-{index}"),
            hosts: vec![format!("etcd-{index}.etcd.ns.svc.cluster.local")],
            is_learner: false,
        }
    }

    fn said(index: u64) -> Said {
        Said {
            status: Status {
                member_id: IDS + index,
                version: "3.5.35".into(),
                leader_id: Some(IDS),
                index: 100,
                applied: 90,
                term: Some(3),
                is_learner: false,
                alarms: vec![],
                downgrade: None,
            },
            health: Health::Yes,
            members: Some((0..3).map(member).collect()),
            cluster_version: Some("3.5.0".into()),
        }
    }

    fn three(change: impl Fn(u64, &mut Said)) -> Vec<Answer> {
        let answer = |index| {
            let mut said = said(index);
            change(index, &mut said);
            Answer { pod: format!("etcd-{index}"), said: Ok(said) }
        };
        (0..3).map(answer).collect()
    }

    fn quorum(change: impl Fn(u64, &mut Said)) -> Quorum {
        seen(&three(change), &places()).quorum
    }

    /// Every pod lists the members so changed.
    fn listing(change: impl Fn(&mut Vec<EtcdMember>)) -> Quorum {
        quorum(|_, said| change(said.members.as_mut().unwrap()))
    }

    fn name(index: u64) -> MemberName {
        MemberName::new(format!("etcd-{index}"))
    }

    fn healthy(quorum: &Quorum, index: u64) -> &Fact<bool> {
        &quorum.member(&name(index)).unwrap().healthy
    }

    #[test]
    fn agreement_is_knowledge() {
        let seen = seen(&three(|_, _| ()), &places());
        assert_eq!(seen.quorum.leader, Fact::Known(name(0)));
        assert!((0..3).all(|index| *healthy(&seen.quorum, index) == Fact::Known(true)));
        assert_eq!(seen.quorum.lag(&name(1)), Fact::Known(Some(10)));
        assert_eq!(seen.ids[&name(2)], (IDS + 2).to_string());
        assert_eq!((seen.quorum.non_voters().count(), seen.quorum.downgrade), (0, None));
    }

    #[test]
    fn a_mixed_cluster_tells_each_members_own_version() {
        let quorum = quorum(|index, said| {
            if index == 2 {
                said.status.version = "3.6.16".into();
            }
        });
        let version = |index| quorum.member(&name(index)).unwrap().version.to_string();
        assert_eq!((version(0), version(2)), ("3.5.35".to_owned(), "3.6.16".to_owned()));
    }

    #[test]
    fn two_leaders_are_none_and_so_is_one_who_knows_of_none() {
        let two = quorum(|index, said| said.status.leader_id = Some(IDS + index / 2));
        assert!(two.leader.why().unwrap().contains("etcd-0 leads, etcd-2 says etcd-1"), "{:?}", two.leader);
        let none = quorum(|index, said| said.status.leader_id = (index > 0).then_some(IDS));
        assert_eq!(none.leader, Fact::Unknown("etcd-0 knows of no leader".into()));
        assert_eq!(healthy(&none, 0), &Fact::Known(false));
        let stranger = quorum(|_, said| said.status.leader_id = Some(7));
        assert!(stranger.leader.why().unwrap().contains("member 7 leads, and nobody lists"));
    }

    #[test]
    fn a_silent_member_is_neither_healthy_nor_dead() {
        let mut answers = three(|_, _| ());
        answers.pop();
        let quorum = seen(&answers, &places()).quorum;
        assert_eq!(quorum.leader, Fact::Known(name(0)));
        assert_eq!(healthy(&quorum, 2), &Fact::Unknown("there is no pod etcd-2 to ask".into()));
        assert!(!quorum.survives_losing(&name(1)));
    }

    #[test]
    fn a_lone_answer_is_no_majority() {
        let answers: Vec<Answer> = three(|_, _| ()).into_iter().take(1).collect();
        assert!(seen(&answers, &places()).quorum.members.why().unwrap().starts_with("only 1 of 3 members answered"));
        assert!(seen(&[], &places()).quorum.leader.known().is_none());
    }

    #[rstest]
    #[case::alarm(|said: &mut Said| said.status.alarms = vec!["memberID:1 alarm:NOSPACE ".into()], "alarm memberID:1 alarm:NOSPACE")]
    #[case::health(|said: &mut Said| said.health = Health::No("RANGE ERROR".into()), "RANGE ERROR")]
    fn an_unhealthy_member_says_why(#[case] spoil: fn(&mut Said), #[case] why: &str) {
        let quorum = quorum(|index, said| {
            if index == 1 {
                spoil(said);
            }
        });
        let member = quorum.member(&name(1)).unwrap();
        assert_eq!(
            (&member.healthy, &member.trouble),
            (&Fact::Known(false), &Some(windlass_plan::quorum::Complaint::Other(why.into())))
        );
        assert_eq!(healthy(&quorum, 0), &Fact::Known(true));
    }

    #[test]
    fn different_lists_of_members_are_no_list() {
        let quorum = quorum(|index, said| {
            if index == 1 {
                said.members.as_mut().unwrap()[2].is_learner = true;
            }
        });
        assert_eq!(quorum.members.why(), Some("etcd-0 and etcd-1 list different members"));
    }

    #[test]
    fn a_learner_is_named_and_has_no_vote() {
        let learner = |members: &mut Vec<EtcdMember>| {
            members.push(EtcdMember { name: String::new(), hosts: vec![], is_learner: true, ..member(9) });
        };
        let quorum = listing(learner);
        assert_eq!(quorum.size(), 3);
        let learners: Vec<&str> = quorum.non_voters().map(|(name, _)| name.as_str()).collect();
        assert_eq!(learners, [format!("member {:x}", IDS + 9)]);
    }

    /// etcd asks nobody for a name of its own. One that has another's is told apart by its id, and hides nobody.
    #[test]
    fn a_learner_that_is_called_like_a_voter_hides_nobody() {
        let elsewhere = |index| EtcdMember { name: "infra".into(), hosts: vec!["elsewhere".into()], ..member(index) };
        let quorum = listing(|members| {
            members.push(elsewhere(8));
            members.push(EtcdMember { is_learner: true, ..elsewhere(9) });
        });
        let named = |index| quorum.member(&MemberName::new(format!("member {:x}", IDS + index))).unwrap();
        assert_eq!((named(8).votes, named(9).votes, quorum.size()), (true, false, 4));
    }

    /// A name may be the very words that tell of one without a name.
    #[test]
    fn names_that_can_not_be_told_apart_make_the_members_unknown() {
        let elsewhere = |name: String, index| EtcdMember { name, hosts: vec![], ..member(index) };
        let quorum = listing(|members| {
            members.push(elsewhere(format!("member {:x}", IDS + 9), 8));
            members.push(EtcdMember { is_learner: true, ..elsewhere(String::new(), 9) });
        });
        assert_eq!(quorum.members.why(), Some("two members have names that can't be told apart"));
    }

    #[test]
    fn members_say_in_which_pod_they_are() {
        let quorum = listing(|members| members.push(EtcdMember { name: "infra".into(), hosts: vec![], ..member(9) }));
        let seat = |name: &str| quorum.member(&MemberName::new(name)).unwrap().seat.clone();
        assert_eq!(seat("etcd-2"), Seat::of_pod("etcd-2"));
        assert_eq!(seat("infra"), None, "in no pod that is known");
    }

    #[test]
    fn a_learner_that_answers_does_not_count_towards_the_majority() {
        let mut answers = three(|_, _| ());
        for answer in answers.iter_mut().skip(1) {
            let said = answer.said.as_mut().unwrap();
            said.status.is_learner = true;
            said.members = None;
        }
        assert!(seen(&answers, &places()).quorum.members.why().unwrap().starts_with("only 1 of 3"));
    }

    #[test]
    fn a_voter_that_never_started_makes_everything_unknown() {
        let quorum = listing(|members| members.push(EtcdMember { name: String::new(), ..member(9) }));
        assert!(quorum.members.why().unwrap().ends_with("was added and has never started"));
    }

    #[rstest]
    #[case::whole_name("etcd-1.etcd.ns.svc.cluster.local")]
    #[case::service_name("etcd-1.etcd.ns.svc")]
    #[case::short_name("etcd-1.etcd")]
    #[case::bare_name("etcd-1")]
    #[case::address("10.0.0.1")]
    fn a_member_of_another_name_is_found_by_its_url(#[case] host: &str) {
        let mut answers = three(|_, said| {
            let members = said.members.as_mut().unwrap();
            members[1] = EtcdMember { name: "infra1".into(), hosts: vec![host.into()], ..member(1) };
        });
        // Its own answer would tell as well.
        answers.remove(1);
        let seen = seen(&answers, &places());
        assert!(seen.quorum.member(&name(1)).is_some(), "{:?}", seen.quorum);
        assert_eq!(seen.ids[&name(1)], (IDS + 1).to_string());
    }

    #[rstest]
    #[case::another_namespace("etcd-1.etcd.other.svc")]
    #[case::a_longer_ordinal("etcd-11.etcd.ns.svc")]
    #[case::a_prefix("etcd")]
    #[case::loopback("127.0.0.1")]
    #[case::nothing("")]
    fn a_member_elsewhere_is_not_taken_for_a_pod(#[case] host: &str) {
        let mut answers = three(|_, said| {
            let members = said.members.as_mut().unwrap();
            members[1] = EtcdMember { name: "infra1".into(), hosts: vec![host.into()], ..member(1) };
        });
        let told = seen(&answers, &places()).quorum;
        assert!(told.member(&name(1)).is_some(), "the pod itself says which member it is");
        answers.remove(1);
        let quorum = seen(&answers, &places()).quorum;
        assert!(quorum.member(&name(1)).is_none() && quorum.member(&MemberName::new("infra1")).is_some());
    }

    #[test]
    fn names_urls_and_pods_that_contradict_each_other_make_the_members_unknown() {
        let url = listing(|members| members[1].hosts = vec!["etcd-2.etcd.ns.svc".into()]);
        assert!(url.members.why().unwrap().contains("tell of both etcd-1 and etcd-2"), "{url:?}");
        let swapped = quorum(|index, said| said.status.member_id = IDS + (index + 1) % 3);
        assert!(swapped.members.why().unwrap().contains("whose name or URL is"), "{swapped:?}");
        let stranger = quorum(|index, said| said.status.member_id = IDS + index * 7);
        assert!(stranger.members.why().unwrap().contains("and nobody lists that one"), "{stranger:?}");
        let twins = listing(|members| {
            members[1] = EtcdMember { name: "a".into(), hosts: vec!["etcd-2".into()], ..member(1) };
        });
        assert!(twins.members.known().is_none());
    }

    #[test]
    fn the_clusters_version_counts_when_everybody_names_the_same() {
        assert_eq!(quorum(|_, _| {}).agreed, Some("3.5.0".parse().unwrap()));
        let some = quorum(|index, said| said.cluster_version = (index > 0).then(|| "3.5.0".into()));
        assert_eq!(some.agreed, None);
        let apart =
            quorum(|index, said| said.cluster_version = Some(if index == 0 { "3.4.0" } else { "3.5.0" }.into()));
        assert_eq!(apart.agreed, None);
    }

    #[test]
    fn a_downgrade_counts_when_everybody_was_told() {
        let all = quorum(|_, said| said.status.downgrade = Some("3.5.0".into()));
        assert_eq!(all.downgrade, Some("3.5.0".parse().unwrap()));
        let some = quorum(|index, said| said.status.downgrade = (index > 0).then(|| "3.5.0".into()));
        assert_eq!(some.downgrade, None);
    }
}
