//! Members without a vote, like those of another StatefulSet that is to take over: they count for nothing, and nobody hands over to them.

use proptest::prelude::*;
use windlass_plan::{
    Decision, Fact, Member, MemberName, Step,
    quorum::Seat,
    rolling::{self, handover},
};

use crate::support::{arbitrary::anything, noon};

fn config() -> ProptestConfig {
    ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() }
}

/// In a set of their own, or in no pod that is known.
const ELSEWHERE: [&str; 3] = ["pd-green-0", "pd-green-1", "somewhere else"];

fn any_health() -> impl Strategy<Value = Fact<bool>> {
    prop_oneof![any::<bool>().prop_map(Fact::Known), Just(Fact::Unknown("timed out".into()))]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_that_is_meant_to_stay_elsewhere_changes_nothing(
        (mut want, view) in anything(),
        health in prop::array::uniform3(any_health()),
        priority in -3_i64..3,
    ) {
        want.accept_non_voters = true;
        let mut beside = view.clone();
        if let Fact::Known(members) = &mut beside.quorum.members {
            for (name, healthy) in ELSEWHERE.into_iter().zip(health) {
                let seat = Seat::of_pod(name);
                let member = Member { votes: false, seat, healthy, priority, ..Member::unknown("it was not asked") };
                members.insert(MemberName::new(name), member);
            }
        }
        prop_assert_eq!(rolling::plan(&want, &beside, noon()), rolling::plan(&want, &view, noon()));
    }

    #[test]
    fn nobody_hands_over_to_one((mut want, mut view) in anything(), accepted: bool, which: prop::sample::Index) {
        want.accept_non_voters = accepted;
        let voteless = match &mut view.quorum.members {
            Fact::Known(members) if !members.is_empty() => {
                let place = which.index(members.len());
                let (name, member) = members.iter_mut().nth(place).expect("it is there");
                member.votes = false;
                name.clone()
            }
            Fact::Known(_) | Fact::Unknown(_) => return Ok(()),
        };
        for victim in &view.pods {
            prop_assert_ne!(handover::target(&want, &view, victim).ok().map(|pod| &pod.name), Some(&voteless));
        }
        if let Decision::Act(Step::HandOver { to, .. }) = rolling::plan(&want, &view, noon()).decision {
            prop_assert_ne!(to, voteless);
        }
    }
}
