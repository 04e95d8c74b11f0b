//! What holds for every view at all, however little sense it makes.

use std::{collections::BTreeMap, time::Duration};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use windlass_plan::{
    Decision, Fact, MemberName, Order, Step, View, Want,
    quorum::{can_spare_one, majority},
    rolling::{
        self,
        known::{
            template_trial::TemplateTrial,
            workload::{Evictions, Strategy as Update},
        },
    },
    strategy::known::{
        pulls::Pull,
        request::{Outcome, Requests},
        snapshot::{Attempt, Progress},
        step::JobStep,
        want::Trigger,
    },
    trouble::Log,
};

use crate::support::{Answer, answer, arbitrary::anything, as_seen, noon};

fn config() -> ProptestConfig {
    ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() }
}

fn plan(want: &Want, view: &View) -> windlass_plan::Plan {
    rolling::plan(want, view, noon())
}

/// Who would be down, or without leadership, because of this decision.
fn disturbed(decision: &Decision) -> Option<&MemberName> {
    match decision {
        Decision::Act(Step::Permit { pod, .. } | Step::Replace { pod, .. }) => Some(pod),
        Decision::Act(Step::HandOver { from, .. }) => Some(from),
        Decision::Act(
            Step::Job(_)
            | Step::WriteTemplate { .. }
            | Step::SwitchStrategy { .. }
            | Step::PutBackStrategy
            | Step::HoldEvictions
            | Step::TakeBack { .. }
            | Step::ReleaseEvictions
            | Step::DeletePod { .. }
            | Step::Park { .. },
        )
        | Decision::Wait { .. }
        | Decision::Halt { .. }
        | Decision::Done => None,
    }
}

/// Replaced for a target that was given up, or down under OnDelete, and not known to serve.
fn is_lost(view: &View, name: &MemberName) -> bool {
    let abandoned = view.record.as_ref().is_some_and(|record| record.abandoned.contains(name));
    let down = view.workload.strategy == Update::OnDelete && view.pod(name).is_some_and(|pod| !pod.is_up());
    (abandoned || down) && view.quorum.member(name).is_none_or(|member| !member.is_healthy())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn there_is_always_a_decision_and_always_the_same((want, view) in anything(), ago in -100_000_i64..100_000) {
        let now = crate::support::at(noon().as_second() - ago);
        let first = rolling::plan(&want, &view, now);
        prop_assert_eq!(&rolling::plan(&want, &view, now), &first);
        match &first.decision {
            Decision::Wait { on, recheck } => {
                prop_assert!(!on.message.is_empty());
                prop_assert!(*recheck > Duration::ZERO);
            }
            Decision::Halt { on } => prop_assert!(!on.message.is_empty()),
            Decision::Act(step) => prop_assert!(!step.to_string().is_empty()),
            Decision::Done => prop_assert_eq!(&first.record, &None),
        }
    }

    #[test]
    fn nobody_goes_while_a_node_lacks_the_image((want, view) in anything()) {
        let plan = plan(&want, &view);
        let record = plan.record.as_ref();
        let Some(goes) = disturbed(&plan.decision).filter(|goes| !is_lost(&view, goes)) else { return Ok(()) };
        if want.pre_pull.is_some() && record.is_some_and(|record| !record.rolling_back) {
            let Fact::Known(pulls) = &view.pulls else { panic!("{goes} goes, and nothing is known of the nodes") };
            prop_assert!(pulls.nodes.values().all(|pull| *pull == Pull::Done), "{:?}", pulls);
        }
    }

    #[test]
    fn a_log_decides_nothing((want, view) in anything()) {
        let mut told = view.clone();
        for pod in &mut told.pods {
            pod.log = Some(Log::LastLine("fatal: all is lost".into()));
        }
        let (plain, hinted) = (plan(&want, &view), plan(&want, &told));
        prop_assert_eq!(answer(&hinted.decision), answer(&plain.decision));
        prop_assert_eq!(&hinted.record, &plain.record);
        // Why it is abandoned is a person's to read, log and all.
        let abandoned = |plan: windlass_plan::Plan| plan.given_up.map(|given_up| (given_up.target, given_up.outcome));
        prop_assert_eq!(abandoned(hinted), abandoned(plain));
    }

    #[test]
    fn a_leader_is_never_permitted_unless_it_is_alone((want, view) in anything()) {
        if let Decision::Act(Step::Permit { pod, .. } | Step::Replace { pod, .. }) = plan(&want, &view).decision {
            let leader = view.quorum.leader.known();
            if is_lost(&view, &pod) && want.accept_downtime && view.workload.replicas <= 2 {
                return Ok(());
            }
            prop_assert!(leader.is_some(), "nobody knows who leads");
            prop_assert!(leader != Some(&pod) || view.quorum.size() == 1, "{} leads", pod);
        }
    }

    #[test]
    fn nobody_is_disturbed_while_anything_is_unknown_or_the_quorum_would_not_survive((want, view) in anything()) {
        let decision = plan(&want, &view).decision;
        let Some(victim) = disturbed(&decision) else { return Ok(()) };
        let lost = is_lost(&view, victim);
        if lost && want.accept_downtime && view.workload.replicas <= 2 {
            return Ok(());
        }
        let members = view.quorum.members.known().expect("the members are known");
        prop_assert!(members.values().all(|member| member.healthy.known().is_some()), "a health is unknown");
        prop_assert!(lost || members.values().all(|member| member.version.known().is_some()), "a version is unknown");
        let others = members.iter().filter(|(name, member)| *name != victim && member.is_healthy()).count();
        let exempt = want.accept_downtime && !can_spare_one(members.len());
        prop_assert!(others >= majority(members.len()) || exempt, "{} of {} are left", others, members.len());
        prop_assert!(lost || view.pods.iter().all(windlass_plan::Pod::is_up), "one at a time");
        prop_assert!(view.pods.iter().all(|pod| !pod.terminating), "one at a time");
        prop_assert!(!want.paused, "paused");
    }

    #[test]
    fn a_pod_is_deleted_only_if_it_is_lost_already_and_comes_back_right((want, view) in anything()) {
        let plan = plan(&want, &view);
        let Decision::Act(Step::DeletePod { pod: name, uid, image }) = plan.decision else { return Ok(()) };
        let pod = view.pod(&name).expect("it was seen");
        let record = plan.record.expect("recorded first");
        prop_assert_eq!(&pod.uid, &uid);
        prop_assert_eq!(&record.target.image, &image);
        prop_assert!(is_lost(&view, &name) && !pod.is_up(), "it serves");
        prop_assert!(!want.paused, "paused");
        // The template was seen, the pod is not made from it, and its successor will be.
        prop_assert!(view.workload.observed && view.workload.image == image);
        prop_assert_eq!(record.revision.as_ref(), Some(&view.workload.update_revision));
        prop_assert_ne!(&pod.revision, &view.workload.update_revision);
        let held = crate::support::partition(&view).is_some_and(|partition| pod.index < partition);
        prop_assert!(!held || view.workload.current_revision == view.workload.update_revision);
        // One at a time.
        prop_assert!(view.pods.iter().all(|pod| !pod.terminating));
        prop_assert!((0..view.workload.replicas).all(|index| view.pod(&view.workload.member(index)).is_some()));
        prop_assert_ne!(&view.evictions, &Evictions::Open);
        if want.accept_downtime && view.workload.replicas <= 2 {
            return Ok(());
        }
        prop_assert!(view.quorum.leader.known().is_some_and(|leader| *leader != name), "it may lead");
        prop_assert!(view.quorum.survives_losing(&name), "it costs the quorum");
    }

    #[test]
    fn only_the_highest_outdated_member_is_permitted((want, view) in anything()) {
        if let Decision::Act(Step::Permit { pod, partition }) = plan(&want, &view).decision {
            let highest = view.outdated().max_by_key(|pod| pod.index).expect("somebody is outdated");
            prop_assert_eq!((&pod, partition), (&highest.name, highest.index));
            prop_assert_ne!(&view.evictions, &Evictions::Open);
            if let Evictions::Theirs(budgets) = &view.evictions && !is_lost(&view, &pod) {
                let counts = budgets[0].counts.expect("they were counted");
                let spare = counts.desired == counts.expected || counts.desired > view.workload.replicas / 2 + 1;
                prop_assert!(spare || want.accept_downtime, "H12: {:?}", counts);
            }
            prop_assert_eq!(&view.workload.image, &plan(&want, &view).record.expect("recorded").target.image);
        }
    }

    #[test]
    fn the_template_is_never_written_without_everything_held((want, view) in anything()) {
        let plan = plan(&want, &view);
        if let Decision::Act(Step::WriteTemplate { image, strategy }) = plan.decision {
            let record = plan.record.expect("recorded first");
            let put_back = record.is_put_back();
            prop_assert_eq!(if put_back { &record.from.image } else { &record.target.image }, &image);
            match record.order {
                Order::ReverseOrdinal => {
                    prop_assert_eq!(strategy, Some(Update::RollingUpdate { partition: view.workload.replicas }));
                    prop_assert!(view.workload.strategy != Update::OnDelete, "H7");
                }
                Order::LeaderLast => prop_assert_eq!(strategy, Some(Update::OnDelete)),
            }
        }
    }

    #[test]
    fn what_somebody_else_writes_is_never_written((want, view) in anything()) {
        if want.trigger == Trigger::Template {
            let decision = plan(&want, &view).decision;
            prop_assert!(!matches!(decision, Decision::Act(Step::WriteTemplate { .. } | Step::SwitchStrategy { .. })), "{:?}", decision);
        }
    }

    #[test]
    fn nobody_is_disturbed_after_a_person_said_stop((want, view) in anything()) {
        let plan = plan(&want, &view);
        if plan.given_up.is_some_and(|given_up| given_up.outcome == Outcome::Stopped) {
            prop_assert_eq!(disturbed(&plan.decision), None);
        }
    }

    #[test]
    fn a_sound_pod_is_deleted_only_in_its_turn_and_comes_back_right((want, view) in anything()) {
        let plan = plan(&want, &view);
        let Decision::Act(Step::Replace { pod: name, uid, image, through }) = plan.decision else { return Ok(()) };
        let pod = view.pod(&name).expect("it was seen");
        let record = plan.record.expect("recorded first");
        prop_assert_eq!(record.order, Order::LeaderLast);
        prop_assert_eq!((&pod.uid, &record.target.image), (&uid, &image));
        prop_assert!(view.workload.strategy == Update::OnDelete && view.workload.observed);
        prop_assert_eq!(&view.workload.image, &image);
        prop_assert_eq!(record.revision.as_ref(), Some(&view.workload.update_revision));
        prop_assert_ne!(&pod.revision, &view.workload.update_revision);
        prop_assert!(!record.is_put_back());
        match (&view.evictions, through) {
            (Evictions::HeldByUs, None) => {}
            (Evictions::Theirs(budgets), Some(_)) => {
                let counts = budgets[0].counts.expect("they were counted");
                let majority = view.workload.replicas / 2 + 1;
                prop_assert!(counts.desired >= majority || want.accept_downtime && view.workload.replicas <= 2);
                prop_assert!(counts.expected == view.workload.replicas && counts.allowed > 0);
            }
            (evictions, through) => prop_assert!(false, "H12: {:?} through {:?}", evictions, through),
        }
        // Whoever is new is well, and only followers of a higher index could have gone before.
        prop_assert!(view.updated().all(|pod| record.completed.contains(&pod.name)));
        let followers = view.outdated().filter(|other| !view.quorum.leader.is(&other.name));
        let turn = followers.max_by_key(|other| other.index).map_or(&name, |other| &other.name);
        prop_assert_eq!(turn, &name);
    }

    #[test]
    fn a_template_is_put_back_only_while_nobody_has_served_from_it((want, view) in anything()) {
        let plan = plan(&want, &view);
        let Some(record) = plan.record.filter(windlass_plan::Record::is_put_back) else { return Ok(()) };
        let before = view.record.as_ref().expect("it was under way");
        if !before.is_put_back() {
            prop_assert_eq!((before.template_trial, record.order), (TemplateTrial::Running, Order::LeaderLast));
            prop_assert_ne!(&record.from.image, &record.target.image);
            let back = Step::WriteTemplate { image: record.from.image, strategy: Some(Update::OnDelete) };
            prop_assert_eq!(plan.decision, Decision::Act(back));
        } else if let Decision::Act(step) = &plan.decision {
            let harmless = matches!(
                step,
                Step::WriteTemplate { .. }
                    | Step::PutBackStrategy
                    | Step::HoldEvictions
                    | Step::ReleaseEvictions
                    | Step::Job(_)
            );
            prop_assert!(harmless, "{} while the template is put back", step);
        }
    }

    #[test]
    fn the_strategy_is_switched_only_while_nobody_can_be_replaced((want, view) in anything()) {
        if let Decision::Act(Step::SwitchStrategy { partition }) = plan(&want, &view).decision {
            prop_assert_eq!((view.workload.strategy, partition), (Update::OnDelete, 0));
            prop_assert!(view.record.is_none() && view.outdated().next().is_none() && !want.paused);
            prop_assert_eq!(want.order, Some(Order::ReverseOrdinal));
            prop_assert!(view.pods.iter().all(windlass_plan::Pod::is_up));
        }
    }

    #[test]
    fn no_upgrade_begins_without_the_snapshot_that_is_wanted((want, view) in anything()) {
        let plan = plan(&want, &view);
        let begins = view.record.is_none() && matches!(plan.decision, Decision::Act(Step::WriteTemplate { .. }));
        if begins && want.snapshot.is_some() {
            let taken = plan.record.and_then(|record| record.snapshot);
            prop_assert!(taken.is_some_and(|taken| view.snapshot == Fact::Known(Progress::Done(taken))));
            prop_assert!(view.attempt.as_ref().is_some_and(|attempt| !attempt.used && attempt.target == want.target));
        }
        if let Decision::Act(Step::Job(JobStep::TakeSnapshot { attempt })) = &plan.decision {
            prop_assert_ne!(&view.snapshot, &Fact::Known(Progress::Running), "one at a time (H6)");
            prop_assert_eq!(Some(attempt), plan.attempt.as_ref());
        }
        let last = |attempt: &Option<Attempt>| attempt.as_ref().map_or(0, |attempt| attempt.number);
        prop_assert!(last(&plan.attempt) >= last(&view.attempt), "no number comes again");
    }

    #[test]
    fn what_is_about_to_be_written_is_recorded((want, view) in anything()) {
        let plan = plan(&want, &view);
        let written = match &plan.decision {
            Decision::Act(
                Step::Permit { partition, .. } | Step::TakeBack { partition, .. } | Step::Park { partition },
            ) => Some(*partition),
            Decision::Act(Step::Job(_) | Step::WriteTemplate { .. } | Step::HoldEvictions | Step::HandOver { .. } | Step::DeletePod { .. } | Step::Replace { .. } | Step::SwitchStrategy { .. } | Step::PutBackStrategy | Step::ReleaseEvictions)
            | Decision::Wait { .. }
            | Decision::Halt { .. }
            | Decision::Done => None,
        };
        if let (Some(partition), None) = (written, &plan.record) {
            prop_assert_eq!(plan.kept.map(|parked| parked.partition), Some(partition), "at rest");
        } else if let Some(partition) = written {
            let record = plan.record.expect("recorded first");
            prop_assert_eq!(record.partition, partition);
            prop_assert!(crate::support::partition(&view).is_some_and(|seen| record.accounts_for(seen)), "in case it is lost");
        }
    }

    #[test]
    fn leadership_never_goes_backwards_unless_that_is_allowed((want, view) in anything()) {
        if let Decision::Act(Step::HandOver { from, to }) = plan(&want, &view).decision {
            let runs = |name| view.quorum.member(name).and_then(|member| member.version.known());
            prop_assert!(view.quorum.leader.is(&from) && from != to);
            prop_assert!(want.allow_downgrade || runs(&to) >= runs(&from));
            prop_assert!(view.quorum.member(&to).is_some_and(windlass_plan::Member::is_healthy));
        }
    }

    #[test]
    fn an_unchanged_view_brings_no_second_disturbance((want, view) in anything()) {
        let first = plan(&want, &view);
        let (record, given_up, requests) = (first.record.clone(), first.given_up.clone(), Requests::default());
        let attempt = first.attempt.clone();
        let next = plan(&want, &as_seen(View { record, ..view.clone() }, |seen| { seen.given_up = given_up; seen.requests = requests; seen.attempt = attempt; }));
        match (&first.decision, &next.decision) {
            // Its write was lost, or is not seen yet: the same again, and nobody else.
            (Decision::Act(Step::Permit { .. }), Decision::Act(Step::Permit { .. }))
            | (Decision::Act(Step::Replace { .. }), Decision::Act(Step::Replace { .. })) => {
                prop_assert_eq!(&first.decision, &next.decision);
            }
            (Decision::Act(Step::HandOver { .. }), Decision::Act(_)) if want.deadlines.handover > Duration::ZERO => {
                prop_assert_eq!(disturbed(&next.decision), None, "after {:?}", &first.decision);
            }
            // Its write is seen already.
            (Decision::Act(Step::WriteTemplate { image, .. }), _) if *image == view.workload.image => {}
            (Decision::Act(step), _) if disturbed(&first.decision).is_none() => {
                prop_assert_eq!(disturbed(&next.decision), None, "after {}", step);
            }
            _ => {}
        }
    }
}

/// Properties of decisions that are never made would prove nothing.
#[test]
fn arbitrary_views_lead_to_every_kind_of_decision() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for _ in 0..9_000 {
        let (want, view) = anything().new_tree(&mut runner).expect("it can be generated").current();
        let kind = match answer(&plan(&want, &view).decision) {
            Answer::Act(step) => step,
            Answer::Wait(_) => "wait",
            Answer::Halt(_) => "halt",
            Answer::Done => "done",
        };
        *seen.entry(kind).or_default() += 1;
    }
    let needed = [
        "SnapshotBegun",
        "TemplateWritten",
        "EvictionsHeld",
        "HandOver",
        "ReplacementAllowed",
        "ReplacementWithdrawn",
        "BrokenPodDeleted",
        "MemberReplaced",
        "StrategySwitched",
        "EvictionsReleased",
        "RolloutLocked",
        "wait",
        "halt",
        "done",
    ];
    for kind in needed {
        // The switch comes after everything else that may be in the way, the snapshot too: few views get so far.
        let enough = if kind == "StrategySwitched" { 5 } else { 20 };
        assert!(seen.get(kind).is_some_and(|count| *count >= enough), "{kind}: {seen:?}");
    }
}
