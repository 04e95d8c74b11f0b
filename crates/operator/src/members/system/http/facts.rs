//! What the pods of a described system said. Each tells of itself alone, so a silent one's health is unknown.
//!
//! Who the members are is what all who answered list, by the names of their pods; where the description does not ask, every pod of the set.
//! A leader may be told by its id, which only the pod that has it knows, or by its pod's name.

use std::collections::{BTreeMap, BTreeSet};

use windlass_plan::{
    Fact, Member, MemberName, Quorum, Version,
    quorum::{Complaint, majority},
};
use windlass_systems::http::{Answer, Field, Leader, Said};

use super::super::answers::{said, silence};
use crate::members::place::{Place, Seen};

/// What is known of a quorum whose members are in these places.
pub fn seen(answers: &[Answer], places: &[Place]) -> Seen {
    agreed(answers, places).unwrap_or_else(|why| Seen::unknown(&why))
}

fn agreed(answers: &[Answer], places: &[Place]) -> Result<Seen, String> {
    let said = said(answers);
    let members = members(&said, places)?;
    let answered = said.iter().filter(|(pod, _)| members.contains(pod)).count();
    if answered < majority(members.len()) {
        return Err(format!("only {answered} of {} members answered: {}", members.len(), silence(answers)));
    }
    let ids = ids(&said)?;
    let leader = leader(&said, &ids, &members);
    let judged = members.iter().map(|name| (MemberName::new(*name), judge(name, answers)));
    let quorum = Quorum::new(Fact::Known(judged.collect()), leader);
    let ids = ids.into_iter().map(|(id, pod)| (MemberName::new(pod), id.to_owned())).collect();
    Ok(Seen::new(quorum, ids, places))
}

/// The pods that are members, if all who answered list the same.
fn members<'a>(said: &[(&'a str, &'a Said)], places: &'a [Place]) -> Result<BTreeSet<&'a str>, String> {
    let field = Field::Members;
    let mut lists = said.iter().filter_map(|(pod, said)| said.members.as_ref().map(|list| (*pod, list)));
    let Some((first, list)) = lists.next() else { return Ok(places.iter().map(|place| place.pod.as_str()).collect()) };
    let set = |list: &'a [String]| list.iter().map(String::as_str).collect::<BTreeSet<&str>>();
    if set(list).len() < list.len() {
        return Err(format!("{field}: {first} lists a member twice"));
    }
    match lists.find(|(_, other)| set(other) != set(list)) {
        Some((pod, _)) => Err(format!("{field}: {first} and {pod} list different members")),
        None => Ok(set(list)),
    }
}

/// Which pod each id is of.
fn ids<'a>(said: &[(&'a str, &'a Said)]) -> Result<BTreeMap<&'a str, &'a str>, String> {
    let mut ids = BTreeMap::new();
    for (pod, said) in said {
        if let Some(other) = ids.insert(said.id.as_str(), *pod) {
            return Err(format!("{}: {other} and {pod} both say that they are {}", Field::Id, said.id));
        }
    }
    Ok(ids)
}

/// Everyone who answered means the same leader, and it is a member.
fn leader(said: &[(&str, &Said)], ids: &BTreeMap<&str, &str>, members: &BTreeSet<&str>) -> Fact<MemberName> {
    let unknown = |why: String| Fact::Unknown(format!("{}: {why}", Field::Leader));
    let mut leaders: BTreeMap<&str, &str> = BTreeMap::new();
    let mut others = BTreeSet::new();
    for (pod, said) in said {
        let told = match &said.leader {
            Leader::Nobody => return unknown(format!("{pod} knows of no leader")),
            Leader::Another => {
                others.insert(*pod);
                continue;
            }
            Leader::Itself => *pod,
            Leader::Named(id) => ids.get(id.as_str()).copied().unwrap_or(id.as_str()),
        };
        leaders.entry(told).or_insert(pod);
    }
    let mut leaders = leaders.into_iter();
    match (leaders.next(), leaders.next()) {
        (Some((leader, by)), None) if !members.contains(leader) => {
            unknown(format!("{by} says that {leader} leads, and no member that answered is called so"))
        }
        (Some((leader, _)), None) if others.contains(leader) => unknown(format!("{leader} says that it does not lead")),
        (Some((leader, _)), None) => Fact::Known(MemberName::new(leader)),
        (Some((one, by)), Some((other, and_by))) => {
            unknown(format!("{by} says that {one} leads, {and_by} says {other}"))
        }
        (None, _) => unknown("nobody says that it leads".into()),
    }
}

fn judge(name: &str, answers: &[Answer]) -> Member {
    let said = match answers.iter().find(|answer| answer.pod == name).map(|answer| &answer.said) {
        Some(Ok(said)) => said,
        Some(Err(error)) => return Member::unknown(&error.to_string()),
        None => return Member::unknown(&format!("there is no pod {name} to ask")),
    };
    let trouble = trouble(said).map(Complaint::Other);
    Member {
        votes: true,
        seat: None,
        healthy: Fact::Known(trouble.is_none()),
        trouble,
        version: match said.version.parse::<Version>() {
            Ok(version) => Fact::Known(version),
            Err(error) => Fact::Unknown(format!("{}: {error}", Field::Version)),
        },
        position: Fact::Known(said.position),
        priority: 0,
    }
}

/// What keeps a member from being healthy.
fn trouble(said: &Said) -> Option<String> {
    if said.leader == Leader::Nobody {
        return Some("it knows of no leader".into());
    }
    (!said.healthy).then(|| format!("{} yields false", Field::Health))
}

#[cfg(test)]
mod tests {
    use windlass_plan::{Fact, MemberName, Quorum, quorum::Complaint};
    use windlass_systems::http::{Answer, Leader, Said};

    use super::{Place, seen};

    fn places() -> Vec<Place> {
        (0..3)
            .map(|index| Place { pod: pod(index), dns: format!("{}.app.ns.svc", pod(index)), address: None })
            .collect()
    }

    fn pod(index: u64) -> String {
        format!("app-{index}")
    }

    fn said(index: u64) -> Said {
        Said {
            healthy: true,
            leader: Leader::Named("id-0".into()),
            version: "1.2.3".into(),
            position: Some(100 - index),
            id: format!("id-{index}"),
            members: Some((0..3).map(pod).collect()),
        }
    }

    fn three(change: impl Fn(u64, &mut Said)) -> Vec<Answer> {
        let answer = |index| {
            let mut said = said(index);
            change(index, &mut said);
            Answer { pod: pod(index), said: Ok(said) }
        };
        (0..3).map(answer).collect()
    }

    fn quorum(change: impl Fn(u64, &mut Said)) -> Quorum {
        seen(&three(change), &places()).quorum
    }

    fn name(index: u64) -> MemberName {
        MemberName::new(pod(index))
    }

    #[test]
    fn agreement_is_knowledge() {
        let seen = seen(&three(|_, _| ()), &places());
        assert_eq!(seen.quorum.leader, Fact::Known(name(0)));
        assert!((0..3).all(|index| seen.quorum.member(&name(index)).unwrap().is_healthy()));
        assert_eq!(seen.quorum.lag(&name(2)), Fact::Known(Some(2)));
        assert_eq!(seen.ids[&name(2)], "id-2");
    }

    #[test]
    fn without_a_list_the_pods_are_the_members() {
        let mut answers = three(|_, said| said.members = None);
        answers.pop();
        let quorum = seen(&answers, &places()).quorum;
        assert_eq!(quorum.size(), 3);
        assert_eq!(quorum.member(&name(2)).unwrap().healthy.why(), Some("there is no pod app-2 to ask"));
        assert!(!quorum.survives_losing(&name(1)));
    }

    #[test]
    fn who_leads_is_known_when_one_says_it_does_and_nobody_else() {
        let leads = |which: fn(u64) -> bool| {
            quorum(|index, said| said.leader = if which(index) { Leader::Itself } else { Leader::Another }).leader
        };
        assert_eq!(leads(|index| index == 1), Fact::Known(name(1)));
        assert_eq!(leads(|_| false).why(), Some("spec.system.http.leader: nobody says that it leads"));
        let two = leads(|index| index > 0);
        assert_eq!(two.why(), Some("spec.system.http.leader: app-1 says that app-1 leads, app-2 says app-2"));
    }

    #[test]
    fn a_leader_may_be_told_by_its_pods_name() {
        assert_eq!(quorum(|_, said| said.leader = Leader::Named(pod(2))).leader, Fact::Known(name(2)));
    }

    #[test]
    fn a_leader_that_is_doubted_is_none() {
        let strange = quorum(|_, said| said.leader = Leader::Named("id-7".into())).leader;
        assert!(strange.why().unwrap().contains("app-0 says that id-7 leads, and no member"), "{strange:?}");
        let two = quorum(|index, said| said.leader = Leader::Named(format!("id-{}", index / 2))).leader;
        assert!(two.why().unwrap().contains("app-0 says that app-0 leads, app-2 says app-1"), "{two:?}");
        let denied = quorum(|index, said| {
            if index == 0 {
                said.leader = Leader::Another;
            }
        });
        assert_eq!(denied.leader.why(), Some("spec.system.http.leader: app-0 says that it does not lead"));
        let none = quorum(|index, said| {
            if index == 1 {
                said.leader = Leader::Nobody;
            }
        });
        assert_eq!(none.leader.why(), Some("spec.system.http.leader: app-1 knows of no leader"));
        assert_eq!(none.member(&name(1)).unwrap().trouble, Some(Complaint::Other("it knows of no leader".into())));
    }

    #[test]
    fn a_silent_leader_is_not_known_by_its_id() {
        let quorum = seen(&three(|_, _| ())[1..], &places()).quorum;
        assert!(quorum.leader.why().unwrap().contains("no member that answered is called so"));
    }

    #[test]
    fn a_lone_answer_is_no_majority() {
        let one = seen(&three(|_, _| ())[..1], &places()).quorum;
        assert!(one.members.why().unwrap().starts_with("only 1 of 3 members answered"), "{one:?}");
        assert!(seen(&[], &places()).quorum.members.known().is_none());
    }

    #[test]
    fn what_contradicts_itself_is_not_known() {
        let lists = quorum(|index, said| {
            if index == 2 {
                said.members = Some(vec![pod(0), pod(2)]);
            }
        });
        assert_eq!(lists.members.why(), Some("spec.system.http.members: app-0 and app-2 list different members"));
        let twice = quorum(|_, said| said.members = Some(vec![pod(0), pod(0), pod(1)]));
        assert_eq!(twice.members.why(), Some("spec.system.http.members: app-0 lists a member twice"));
        let ids = quorum(|_, said| said.id = "same".into());
        assert_eq!(ids.members.why(), Some("spec.system.http.id: app-0 and app-1 both say that they are same"));
    }

    #[test]
    fn a_member_tells_what_is_wrong_with_it() {
        let quorum = quorum(|index, said| match index {
            0 => said.healthy = false,
            1 => said.version = "newest".into(),
            _ => said.position = None,
        });
        let member = |index| quorum.member(&name(index)).unwrap();
        assert_eq!(member(0).healthy, Fact::Known(false));
        assert_eq!(member(0).trouble, Some(Complaint::Other("spec.system.http.health yields false".into())));
        assert!(member(1).version.why().unwrap().starts_with("spec.system.http.version"), "{:?}", member(1));
        assert_eq!(member(2).position, Fact::Known(None));
    }
}
