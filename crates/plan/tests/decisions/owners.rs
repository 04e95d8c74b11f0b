//! Somebody else writes what an upgrade writes (H39): refused before it begins, stopped when it happens half way, and never fought over.

use std::time::Duration;

use rstest::rstest;
use windlass_plan::{
    Decision, Fact, Hold, Plan, Reason, Step, View, Want,
    rolling::{
        self,
        known::{
            contest::Contest,
            order::Order,
            owners::{Field, MANAGER, Operation, Owner, Owners},
            parked::Parked,
            workload::{Evictions, Strategy},
        },
        parking, permit,
    },
    strategy::known::want::Trigger,
};

use crate::support::{
    Answer, NEW, OLD, answer, as_seen, decide, half_way, half_way_on_delete, hold, image, name, noon, owned_by, owner,
    permitted, plan, pod_mut, record_mut, rest, rest_on_delete, resumed, revision, unknown, want,
};

const ALL: &[Field] = &[Field::Image, Field::Partition, Field::Strategy, Field::Replicas];
const ARGO: &str = "argocd-controller";

fn apply(manager: &str, fields: &[Field]) -> Owner {
    owner(manager, Operation::Apply, fields)
}

fn update(manager: &str, fields: &[Field]) -> Owner {
    owner(manager, Operation::Update, fields)
}

fn scaled_by(manager: &str) -> Owner {
    Owner { scales: true, ..update(manager, &[Field::Replicas]) }
}

/// Mere owning is how every StatefulSet looks that anybody ever made.
#[rstest]
#[case::kubectl(update("kubectl-client-side-apply", ALL))]
#[case::kubectl_create(update("kubectl-create", ALL))]
#[case::helm(update("helm", ALL))]
#[case::an_editor(update("kubectl-edit", &[Field::Image]))]
#[case::nobody_knows_who(update("unknown", ALL))]
#[case::before_anybody_kept_account(update("before-first-apply", ALL))]
#[case::git_keeps_the_replicas(apply(ARGO, &[Field::Replicas]))]
#[case::a_person_scaled_it(scaled_by("kubectl"))]
#[case::ourselves(update(MANAGER, ALL))]
#[case::ourselves_by_apply(apply(MANAGER, ALL))]
fn whoever_wrote_once_is_in_nobodys_way(#[case] owner: Owner) {
    let view = View { owners: owned_by(vec![owner]), ..rest(3, 0) };
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Act("TemplateWritten"));
}

#[rstest]
#[case::argo_by_apply(apply(ARGO, ALL), &["argocd-controller (Apply)", "RespectIgnoreDifferences=true"])]
#[case::argo_by_update(update(ARGO, &[Field::Image]), &["argocd-controller (Update)", "the image", "ignoreDifferences"])]
#[case::flux(apply("kustomize-controller", &[Field::Partition]), &["the partition", "kustomize.toolkit.fluxcd.io/ssa"])]
#[case::flux_with_helm(update("helm-controller", &[Field::Strategy]), &["the update strategy", "driftDetection"])]
#[case::kubectl_server_side(apply("kubectl", &[Field::Image]), &["kubectl (Apply)", "--force-conflicts"])]
#[case::helm_server_side(apply("helm", &[Field::Image]), &["helm (Apply)", "Helm release"])]
#[case::anybody_by_apply(apply("ours-inc", &[Field::Strategy]), &["ours-inc (Apply)", "let it ignore"])]
#[case::an_autoscaler(scaled_by("kube-controller-manager"), &["the replicas", "autoscaler"])]
fn whoever_writes_again_is_named_before_anything_is_written(#[case] owner: Owner, #[case] words: &[&str]) {
    for resting in [rest(3, 0), rest_on_delete(3, 0)] {
        let view = View { owners: owned_by(vec![update("kubectl-create", ALL), owner.clone()]), ..resting };
        let decision = decide(&want(NEW), &view);
        assert_eq!(answer(&decision), Answer::Halt(Reason::FieldOwned));
        let told = hold(&decision).to_string();
        for word in words.iter().chain(&["spec.trigger", "spec.policy.acceptOwners"]) {
            assert!(told.contains(word), "{word:?} is not in {told:?}");
        }
    }
}

#[test]
fn whoever_controls_the_set_is_named() {
    let owners = Owners { controller: Some("TidbCluster/basic".into()), managers: vec![] };
    let view = View { owners: Fact::Known(owners), ..rest(3, 0) };
    let decision = decide(&want(NEW), &view);
    assert_eq!(answer(&decision), Answer::Halt(Reason::FieldOwned));
    assert!(hold(&decision).message.contains("TidbCluster/basic"), "{decision:?}");
    let accepted = Want { accept_owners: ["TidbCluster/basic".to_owned()].into(), ..want(NEW) };
    assert_eq!(answer(&decide(&accepted, &view)), Answer::Act("TemplateWritten"));
}

#[test]
fn an_owner_that_was_told_to_leave_it_alone_is_accepted_by_name() {
    let view = View { owners: owned_by(vec![apply(ARGO, ALL)]), ..rest(3, 0) };
    let accepts = |manager: &str| Want { accept_owners: [manager.to_owned()].into(), ..want(NEW) };
    assert_eq!(answer(&decide(&accepts(ARGO), &view)), Answer::Act("TemplateWritten"));
    assert_eq!(answer(&decide(&accepts("another"), &view)), Answer::Halt(Reason::FieldOwned));
}

#[test]
pub fn owners_that_can_not_be_read_block() {
    let view = View { owners: unknown(), ..rest(3, 0) };
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Halt(Reason::FieldOwned));
}

#[test]
fn nobody_is_asked_where_nothing_is_to_be_written() {
    let owners = owned_by(vec![apply(ARGO, ALL)]);
    assert_eq!(decide(&want(OLD), &View { owners: owners.clone(), ..rest(3, 0) }), Decision::Done);
    let follows = Want { trigger: Trigger::Template, ..want(OLD) };
    assert_eq!(decide(&follows, &View { owners, ..rest_on_delete(3, 0) }), Decision::Done);
}

/// A half-done rollout of somebody's is finished only where nobody goes on with it, too (H40).
#[test]
fn nothing_half_done_is_resumed_from_whoever_writes_again() {
    let mut view = resumed(View { record: None, owners: owned_by(vec![apply(ARGO, ALL)]), ..half_way(3, 0, 1) });
    view.evictions = Evictions::Open;
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Halt(Reason::FieldOwned));
    view.owners = owned_by(vec![update("helm", ALL)]);
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Act("EvictionsHeld"));
}

/// The first write of an upgrade of three members that had no partition, seen to stand: everything is held.
fn held(view: &View) -> View {
    let first = plan(&want(NEW), view);
    assert_eq!(answer(&first.decision), Answer::Act("TemplateWritten"));
    let mut view = View { record: first.record, ..view.clone() };
    view.workload.image = image(NEW);
    view.workload.update_revision = revision(NEW);
    view.workload.strategy = Strategy::RollingUpdate { partition: 3 };
    view.owners = owned_by(vec![update(MANAGER, &[Field::Image, Field::Partition])]);
    let seen = plan(&want(NEW), &view);
    View { record: seen.record, ..view }
}

/// Somebody sets the partition.
fn reset(view: &View, partition: u32) -> View {
    let mut view = view.clone();
    view.workload.strategy = Strategy::RollingUpdate { partition };
    view.owners = owned_by(vec![update(MANAGER, &[Field::Image]), apply(ARGO, &[Field::Partition, Field::Strategy])]);
    view
}

/// What the StatefulSet is after a write of ours.
fn written(view: &View, plan: &Plan) -> View {
    let mut view = View { record: plan.record.clone(), ..view.clone() };
    if let Decision::Act(Step::TakeBack { partition, .. }) = plan.decision {
        view.workload.strategy = Strategy::RollingUpdate { partition };
    }
    view.owners = owned_by(vec![update(MANAGER, &[Field::Image, Field::Partition])]);
    view
}

#[test]
pub fn the_original_partition_is_foreign_and_held_once() {
    let view = reset(&held(&rest(3, 2)), 0);
    let first = plan(&want(NEW), &view);
    let Decision::Act(Step::TakeBack { pod, partition, because }) = &first.decision else {
        panic!("not held: {:?}", first.decision)
    };
    assert_eq!((pod, *partition, because.reason), (&name(2), 3, Reason::FieldOwned));

    let view = written(&view, &first);
    let second = plan(&want(NEW), &view);
    assert_eq!(answer(&second.decision), Answer::Halt(Reason::FieldOwned));
    let told = &hold(&second.decision).message;
    assert!(told.contains("argocd-controller (Apply)") && told.contains("held again"), "{told}");

    let view = reset(&View { record: second.record, ..view }, 0);
    let third = plan(&want(NEW), &view);
    assert_eq!(third.decision, Decision::Act(Step::HandOver { from: name(2), to: name(0) }), "its turn comes first");
    let fourth = decide(&want(NEW), &View { record: third.record, ..view });
    assert_eq!(answer(&fourth), Answer::Halt(Reason::FieldOwned), "no duel");
    assert!(hold(&fourth).message.contains("set the update strategy back again"), "{fourth:?}");
}

/// What is wanted can't be read: nobody but this minds what Kubernetes is free to do.
#[test]
pub fn a_foreign_partition_is_held_while_the_spec_is_invalid() {
    let view = reset(&held(&rest(3, 2)), 0);
    let because = Hold::new(Reason::InvalidSpec, "");
    let first = permit::stand_down(Trigger::Version, &view, &because).expect("it is held");
    assert!(matches!(first.decision, Decision::Act(Step::TakeBack { partition: 3, .. })), "{:?}", first.decision);
    let again = reset(&written(&view, &first), 0);
    let mut record = again.record.clone();
    record.as_mut().and_then(|record| record.contest.as_mut()).expect("recorded").held = true;
    let second = permit::stand_down(Trigger::Version, &View { record, ..again }, &because);
    assert!(second.is_none_or(|plan| !matches!(plan.decision, Decision::Act(Step::TakeBack { .. }))), "no duel");
}

/// Somebody sets RollingUpdate while members go by OnDelete, and the resource can't be read: the strategy goes back, for a partition would bring
/// whoever is above it back as before. It is theirs to set where they write the template.
#[test]
pub fn a_strategy_is_put_back_where_the_resource_cannot_be_read() {
    let view = reset(&half_way_on_delete(3, 2, 2), 0);
    let because = Hold::new(Reason::ResourceUnknown, "");
    let told = |trigger| {
        let mut record = view.record.clone().expect("it is under way");
        permit::withdraw(trigger, &view.workload, &view.pods, &view.owners, &mut record, &because)
    };
    assert_eq!(told(Trigger::Version), Some(Decision::Act(Step::PutBackStrategy)));
    assert_eq!(told(Trigger::Template), None);
    let unrecorded = |trigger, order| {
        permit::withdraw_unrecorded(trigger, order, &view.workload, &view.pods, &view.owners, &mut None, &because)
    };
    assert_eq!(unrecorded(Trigger::Version, Some(Order::LeaderLast)), Some(Decision::Act(Step::PutBackStrategy)));
    assert_eq!(unrecorded(Trigger::Template, Some(Order::LeaderLast)), None);
    let held = unrecorded(Trigger::Version, None);
    assert!(matches!(held, Some(Decision::Act(Step::TakeBack { .. }))), "{held:?}");
}

/// A loop writes what our switch had written, at rest and again and again: it is theirs now.
#[test]
pub fn a_switch_that_a_loop_writes_is_left_to_it() {
    let view = rest(3, 0);
    let workload = windlass_plan::Workload { strategy: Strategy::RollingUpdate { partition: 0 }, ..view.workload };
    let stands = |owners: &Fact<Owners>| parking::stand_down(&workload, owners, Some(Parked::at(0)));
    let ours = owned_by(vec![update(MANAGER, &[Field::Partition, Field::Strategy])]);
    assert_eq!(stands(&ours), Some(Decision::Act(Step::PutBackStrategy)));
    assert_eq!(stands(&owned_by(vec![update(ARGO, &[Field::Partition, Field::Strategy])])), None);
}

/// The resource goes away half way, and nobody minds anything from now on.
#[test]
pub fn nobody_is_left_held_above_who_was_replaced() {
    // Ours: taken back, whoever is deleted.
    let left = permit::leave(Trigger::Version, &permitted(3, 0, 1));
    assert!(matches!(left, Some(Step::TakeBack { partition: 2, .. })), "{left:?}");
    // Somebody's image lets a replaced member go: held, a drain would bring it back as it was before.
    let mut view = half_way(3, 0, 1);
    (view.workload.image, view.workload.update_revision) = (image("theirs"), revision("theirs"));
    assert_eq!(permit::leave(Trigger::Version, &view), None);
    // Under OnDelete a partition would do the same to all.
    let view = reset(&half_way_on_delete(3, 2, 2), 0);
    assert_eq!(permit::leave(Trigger::Version, &view), Some(Step::PutBackStrategy));
    assert_eq!(permit::leave(Trigger::Template, &view), None);
    // At rest it is theirs.
    let mut view = reset(&rest(3, 0), 0);
    (view.workload.image, view.workload.update_revision) = (image("theirs"), revision("theirs"));
    assert_eq!(permit::leave(Trigger::Version, &view), None);
}

/// Nobody is replaced and up, so leadership could only go from one who is to go to another.
#[test]
pub fn leadership_does_not_wander_where_kubernetes_goes_on_by_itself() {
    let mut view = reset(&held(&rest(3, 0)), 0);
    record_mut(&mut view).contest = Some(Contest { by: ARGO.into(), holds: 1, held: true });
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Halt(Reason::FieldOwned), "the last one to go leads");
    view.quorum.leader = Fact::Known(name(2));
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Act("HandOver"), "the next one to go leads");
}

/// The record is all that outlives a restart, and nothing of this is kept elsewhere.
#[test]
fn nothing_goes_on_until_a_person_resumes() {
    let view = reset(&held(&rest(3, 2)), 0);
    let view = written(&view, &plan(&want(NEW), &view));
    let later = |view: &View| rolling::plan(&want(NEW), view, noon() + Duration::from_hours(9));
    let halted = later(&view);
    assert_eq!(answer(&halted.decision), Answer::Halt(Reason::FieldOwned));
    let view = resumed(View { record: halted.record, ..view });
    let resumed = later(&view);
    assert_eq!(answer(&resumed.decision), Answer::Act("HandOver"), "{resumed:?}");
    assert_eq!(resumed.record.unwrap().contest, None);
}

#[test]
pub fn a_hold_that_is_lost_is_tried_again_and_not_for_ever() {
    let mut view = reset(&held(&rest(3, 2)), 0);
    let mut writes = 0;
    for _ in 0..20 {
        let plan = plan(&want(NEW), &view);
        writes += usize::from(matches!(plan.decision, Decision::Act(Step::TakeBack { .. })));
        view.record = plan.record;
    }
    assert_eq!(writes, 8);
}

/// Left alone, Kubernetes has replaced everybody by itself: what stands is theirs, lets nobody go, and is taken as it is.
#[test]
fn what_they_left_is_taken_as_it_is_when_a_person_resumes() {
    let mut view = reset(&half_way(3, 2, 3), 0);
    let record = record_mut(&mut view);
    record.partition = 2;
    record.contest = Some(Contest { by: ARGO.into(), holds: 1, held: true });
    view.evictions = Evictions::Open;
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Halt(Reason::FieldOwned));
    view.resumed = true;
    view.workload.current_revision = revision(NEW);
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Act("RolloutLocked"));
    let mut view = reset(&half_way_on_delete(3, 0, 3), 0);
    record_mut(&mut view).contest = Some(Contest { by: ARGO.into(), holds: 1, held: true });
    view.resumed = true;
    assert_eq!(decide(&want(NEW), &view), Decision::Act(Step::PutBackStrategy));
}

/// It is over, and 0 was left standing: that is held, and nobody has to be asked a second time.
#[test]
fn a_partition_that_they_left_open_is_held_when_a_person_resumes() {
    let mut view = reset(&held(&rest(3, 2)), 0);
    record_mut(&mut view).contest = Some(Contest { by: ARGO.into(), holds: 1, held: true });
    view.resumed = true;
    let first = plan(&want(NEW), &view);
    assert_eq!(answer(&first.decision), Answer::Act("ReplacementWithdrawn"));
    let view = as_seen(written(&view, &first), |seen| seen.resumed = false);
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Act("HandOver"));
    // What was never held is taken over likewise.
    let view = resumed(reset(&held(&rest(3, 2)), 7));
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Wait(Reason::AwaitingHandOver));
}

/// A paused upgrade is minded like any other: Kubernetes does not know that it is paused.
#[test]
fn a_pause_does_not_keep_it_from_being_held() {
    let paused = Want { paused: true, ..want(NEW) };
    let view = reset(&held(&rest(3, 2)), 0);
    assert_eq!(answer(&decide(&paused, &view)), Answer::Act("ReplacementWithdrawn"));
}

/// Members that are replaced stay below nothing: held, they would come back as the old version (H10).
#[test]
fn who_is_replaced_is_not_held() {
    let mut view = reset(&half_way(5, 0, 2), 0);
    view.workload.image = image(NEW);
    let plan = plan(&want(NEW), &view);
    let Decision::Act(Step::TakeBack { partition, .. }) = plan.decision else { panic!("{:?}", plan.decision) };
    assert_eq!(partition, 3);
}

#[test]
fn what_was_found_is_ours_until_our_own_write_is_seen() {
    let found = rest(3, 2);
    let lost = View { record: plan(&want(NEW), &found).record, ..found };
    let again = plan(&want(NEW), &lost);
    assert_eq!(answer(&again.decision), Answer::Act("TemplateWritten"), "the first write was lost");
}

/// Template and partition are one write: where the template is there, the partition that was found is somebody's.
#[test]
fn a_partition_that_is_set_back_before_anybody_looks_is_foreign() {
    let found = rest(3, 2);
    let mut view = reset(&View { record: plan(&want(NEW), &found).record, ..found }, 0);
    view.workload.image = image(NEW);
    view.workload.update_revision = revision(NEW);
    let told = plan(&want(NEW), &view);
    assert_eq!(answer(&told.decision), Answer::Act("ReplacementWithdrawn"));
    assert!(told.record.unwrap().contest.is_some());
}

/// Where a record could not be kept, what we wrote is known by our name on it.
#[test]
fn a_partition_that_carries_our_name_is_ours() {
    let mut view = half_way(5, 0, 2);
    view.workload.strategy = Strategy::RollingUpdate { partition: 4 };
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Halt(Reason::StrategyChanged));
    view.evictions = Evictions::Open;
    view.owners = owned_by(vec![update(MANAGER, &[Field::Partition])]);
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Act("EvictionsHeld"));
}

#[test]
fn a_partition_that_lets_nobody_go_is_only_reported() {
    let view = reset(&held(&rest(3, 0)), 7);
    let decision = decide(&want(NEW), &view);
    assert_eq!(answer(&decision), Answer::Halt(Reason::StrategyChanged));
    let told = &hold(&decision).message;
    assert!(told.contains("partition to 7") && told.contains("argocd-controller (Apply)"), "{told}");
    let mended = reset(&view, 3);
    assert_eq!(answer(&decide(&want(NEW), &mended)), Answer::Act("EvictionsHeld"));
}

/// Under OnDelete the strategy itself holds everybody, and a partition would hold replaced ones back.
#[test]
fn a_rolling_update_half_way_becomes_on_delete_again_once() {
    let mut view = reset(&half_way_on_delete(3, 0, 1), 0);
    let first = plan(&want(NEW), &view);
    assert_eq!(first.decision, Decision::Act(Step::PutBackStrategy));
    view.record = first.record;
    view.workload.strategy = Strategy::OnDelete;
    view.evictions = Evictions::Open;
    let second = plan(&want(NEW), &view);
    assert_eq!(answer(&second.decision), Answer::Halt(Reason::FieldOwned));
    let view = reset(&View { record: second.record, ..view }, 0);
    let third = plan(&want(NEW), &view);
    assert_eq!(third.decision, Decision::Act(Step::HandOver { from: name(0), to: name(2) }));
    let view = View { record: third.record, ..view };
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Halt(Reason::FieldOwned));
}

/// Somebody sets the image back so long after our write of the template.
fn set_back(view: &View, seconds: u64) -> View {
    let late = Owner { at: Some(noon() + Duration::from_secs(seconds)), ..update(ARGO, &[Field::Image]) };
    View { owners: owned_by(vec![late]), ..view.clone() }
}

#[test]
pub fn an_image_that_is_set_back_before_anybody_looks_is_not_written_again() {
    let found = rest(3, 2);
    let lost = View { record: plan(&want(NEW), &found).record, ..found };
    let earlier = set_back(&lost, 0);
    assert_eq!(answer(&decide(&want(NEW), &earlier)), Answer::Act("TemplateWritten"), "it had been theirs before");
    let decision = decide(&want(NEW), &set_back(&lost, 1));
    assert_eq!(answer(&decision), Answer::Halt(Reason::TemplateChanged));
    let told = &hold(&decision).message;
    assert!(told.contains("argocd-controller (Update)") && told.contains("RespectIgnoreDifferences"), "{told}");
    let resumed = resumed(set_back(&lost, 1));
    assert_eq!(answer(&decide(&want(NEW), &resumed)), Answer::Act("TemplateWritten"));
}

/// Times are to the second, and some loops are faster than that.
#[test]
pub fn an_image_that_is_set_back_at_once_is_written_a_bounded_number_of_times() {
    let mut view = set_back(&rest(3, 2), 0);
    let accepted = Want { accept_owners: [ARGO.to_owned()].into(), ..want(NEW) };
    let mut writes = 0;
    for _ in 0..20 {
        let plan = plan(&accepted, &view);
        writes += usize::from(matches!(plan.decision, Decision::Act(Step::WriteTemplate { .. })));
        view.record = plan.record;
    }
    assert_eq!(writes, 3);
}

#[test]
fn an_image_that_is_set_back_half_way_is_reported_by_name() {
    let mut view = half_way(3, 0, 1);
    view.workload.image = image(OLD);
    view.workload.update_revision = revision(OLD);
    view.owners = owned_by(vec![apply(ARGO, &[Field::Image])]);
    let first = plan(&want(NEW), &view);
    assert_eq!(answer(&first.decision), Answer::Act("ReplacementWithdrawn"), "pd-2 would go back at once");
    view.record = first.record;
    view.workload.strategy = Strategy::RollingUpdate { partition: 3 };
    pod_mut(&mut view, 2).ready_since = Some(noon());
    record_mut(&mut view).stage = None;
    let decision = decide(&want(NEW), &view);
    assert_eq!(answer(&decision), Answer::Halt(Reason::TemplateChanged));
    assert!(hold(&decision).message.contains("argocd-controller (Apply)"), "{decision:?}");
}
