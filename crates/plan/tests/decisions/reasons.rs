//! Reasons are an interface: conditions, events, metrics and runbooks carry them.

use std::collections::BTreeSet;

use rstest::rstest;
use strum::IntoEnumIterator;
use windlass_plan::{
    Hold, Reason, Step,
    rolling::known::{stage::StageKind, workload::Strategy},
    strategy::known::{
        snapshot::Attempt,
        step::{JobStep, Step as _},
    },
};

use crate::support::{name, noon, target};

/// Renaming one breaks people's alerts. A new one is added here.
const NAMES: &str = "Paused InvalidSpec Unreadable WorkloadNotFound ContainerNotFound NoReplicas WorkloadDeleting AlreadyManaged AuthorNotAsked \
    UnsupportedStrategy StrategyChanged TemplateChanged TemplateReverted FieldOwned RolloutPending DowngradeNotAllowed UnsupportedPath ClusterVersionBehind TooFewMembers AwaitingSnapshot ExecutorImageNotAllowed SnapshotFailed ControllerBehind \
    MembersDoNotMatch MembersUnknown TokenRefused LeaderUnknown MemberUnhealthy QuorumAtRisk PodNotReady Unschedulable \
    ImageUnusable ImagePullFailed ContainerConfigError CrashLooping MemberNotJoined MemberBehind VersionMismatch DisruptionBudgetTooLoose DisruptionBudgetTooTight AwaitingBudget \
    LeaderPriority WindowClosed AwaitingApproval Soaking NodeDraining AwaitingImage ImageNotPullable Locked CheckFailed AnalysisFailed AwaitingHook HookFailed AwaitingHandOver HandOverFailed NoHandOverTarget AwaitingReplacement \
    AwaitingConclusion DeadlineExceeded MemberSealed Aborted RolledBack TargetNotFound TargetNotAllowed GatesNotAllowed ResourcesTaken StampRefused AwaitingResources InFlightLimit ResourceFailed TooManyFailures \
    FieldContested ResourceUnknown ContractNotSeen WatchSilent EvidenceTooOld StaleView ApiServerRefused TakingOver AwaitingAnswer";

#[test]
fn the_names_of_reasons_stay_what_they_are() {
    let names: BTreeSet<&str> = Reason::iter().map(Reason::name).collect();
    assert_eq!(names, NAMES.split_whitespace().collect());
}

#[test]
fn every_reason_can_be_a_condition_and_a_metric_label() {
    for reason in Reason::iter() {
        let name = reason.name();
        assert!(name.starts_with(|first: char| first.is_ascii_uppercase()), "{name}");
        assert!(name.chars().all(|one| one.is_ascii_alphabetic()), "{name}");
        assert_eq!(reason.to_string(), name);
    }
}

#[test]
fn every_reason_says_what_to_do_next() {
    for reason in Reason::iter() {
        let next = reason.next_step();
        assert!(next.split_whitespace().count() >= 2, "{reason}: {next}");
        assert!(next.starts_with(|first: char| first.is_ascii_lowercase()), "it follows a message: {next}");
        assert!(!next.ends_with('.'), "{next}");
    }
}

#[test]
fn what_needs_a_person_does_not_say_wait() {
    for reason in Reason::iter().filter(|reason| reason.needs_a_person()) {
        assert!(!reason.next_step().starts_with("wait"), "{reason}");
    }
}

#[test]
fn a_hold_reads_as_what_is_waited_for_and_what_to_do() {
    let hold = Hold::new(Reason::Paused, "paused");
    assert_eq!(hold.to_string(), "paused; set spec.paused to false to go on");
}

#[rstest]
#[case::template(Step::WriteTemplate { image: "pd:v1".into(), strategy: Some(Strategy::RollingUpdate { partition: 3 }) }, "TemplateWritten", &["pd:v1"])]
#[case::snapshot(
    Step::Job(JobStep::TakeSnapshot { attempt: Attempt { number: 2, target: target("8.5.1"), since: noon(), used: false } }),
    "SnapshotBegun", &["8.5.1", "2"]
)]
#[case::job(Step::Job(JobStep::Answer { gate: "Hook/smoke".into() }), "JobStarted", &["Job", "Hook/smoke"])]
#[case::pull(
    Step::Job(JobStep::PullImage { image: "pd:v1".into(), nodes: vec!["a".into(), "b".into()] }),
    "ImagePullBegun", &["pd:v1", "a, b"]
)]
#[case::hold(Step::HoldEvictions, "EvictionsHeld", &["evictions"])]
#[case::hand_over(Step::HandOver { from: name(0), to: name(2) }, "HandOver", &["pd-0", "pd-2"])]
#[case::permit(Step::Permit { pod: name(2), partition: 2 }, "ReplacementAllowed", &["pd-2", "2"])]
#[case::take_back(
    Step::TakeBack { pod: name(2), partition: 3, because: Hold::new(Reason::Paused, "paused") },
    "ReplacementWithdrawn", &["pd-2", "3", "paused"]
)]
#[case::delete(
    Step::DeletePod { pod: name(2), uid: "7f3a".into(), image: "pd:v1".into() },
    "BrokenPodDeleted", &["pd-2", "7f3a", "pd:v1"]
)]
#[case::release(Step::ReleaseEvictions, "EvictionsReleased", &["evictions"])]
#[case::park(Step::Park { partition: 3 }, "RolloutLocked", &["3"])]
fn every_step_has_a_name_and_says_what_it_does(#[case] step: Step, #[case] expected: &str, #[case] said: &[&str]) {
    assert_eq!(step.name(), expected);
    let text = step.to_string();
    assert!(said.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn every_stage_says_what_has_not_happened() {
    let said: BTreeSet<&str> = StageKind::iter().map(StageKind::lacking).collect();
    assert_eq!(said.len(), StageKind::iter().count());
    assert!(said.iter().all(|text| text.contains("not")), "{said:?}");
}
