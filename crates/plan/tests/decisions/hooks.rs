//! What has to say yes before an upgrade begins, and before it is done: webhooks, and Jobs that are made first.

use rstest::rstest;
use windlass_plan::{
    Hold, Reason, View, Want,
    gate::{ExternalGate, Outcome, When},
    rolling::known::workload::{Evictions, Strategy},
    strategy::known::want::Trigger,
};

use crate::support::{
    Answer, NEW, answer, as_seen, decide, half_way, noon, record_mut, rest, rest_on_delete, revision, want,
};

/// What a hook says.
#[derive(Clone, Copy, Debug)]
enum Said {
    Yes,
    No,
    Nothing,
    /// Its Job is not there yet.
    Lacking,
    /// Its Job has failed.
    Failed,
}

fn hook(name: &str, when: When, said: Said) -> ExternalGate {
    let hold = |reason| Hold::new(reason, format!("{name} says {said:?}"));
    let outcome = match said {
        Said::Yes => Outcome::Pass,
        Said::No | Said::Lacking => Outcome::Hold(hold(Reason::AwaitingHook)),
        Said::Nothing => Outcome::Unknown(hold(Reason::AwaitingHook)),
        Said::Failed => Outcome::Hold(hold(Reason::HookFailed)),
    };
    ExternalGate { when, lacks_job: matches!(said, Said::Lacking), ..ExternalGate::new(name, outcome) }
}

/// Everybody is replaced and well, and the set is parked.
fn done(members: u32, leader: u32) -> View {
    let mut view = half_way(members, leader, members);
    view.workload.current_revision = revision(NEW);
    view.workload.strategy = Strategy::RollingUpdate { partition: members };
    view.evictions = Evictions::Open;
    record_mut(&mut view).move_partition(0, members);
    view
}

fn with(view: View, hooks: Vec<ExternalGate>) -> View {
    as_seen(view, |seen| seen.external = hooks)
}

#[rstest]
#[case::yes(Said::Yes, Answer::Act("TemplateWritten"))]
#[case::no(Said::No, Answer::Wait(Reason::AwaitingHook))]
#[case::nothing(Said::Nothing, Answer::Wait(Reason::AwaitingHook))]
#[case::lacking(Said::Lacking, Answer::Act("JobStarted"))]
#[case::failed(Said::Failed, Answer::Halt(Reason::HookFailed))]
fn nothing_begins_before_its_hooks_say_yes(#[case] said: Said, #[case] expected: Answer) {
    for view in [rest(3, 0), rest_on_delete(3, 0)] {
        let view = with(view, vec![hook("Hook/first", When::BeforeUpgrade, said)]);
        assert_eq!(answer(&decide(&want(NEW), &view)), expected);
    }
}

#[rstest]
#[case::yes(Said::Yes, Answer::Done)]
#[case::no(Said::No, Answer::Wait(Reason::AwaitingHook))]
#[case::nothing(Said::Nothing, Answer::Wait(Reason::AwaitingHook))]
#[case::lacking(Said::Lacking, Answer::Act("JobStarted"))]
#[case::failed(Said::Failed, Answer::Halt(Reason::HookFailed))]
fn nothing_is_done_before_its_hooks_say_yes(#[case] said: Said, #[case] expected: Answer) {
    let view = with(done(3, 0), vec![hook("Hook/last", When::AfterUpgrade, said)]);
    assert_eq!(answer(&decide(&want(NEW), &view)), expected);
}

#[test]
fn hooks_of_the_end_keep_nothing_from_beginning_and_the_other_way_round() {
    let view = with(rest(3, 0), vec![hook("Hook/last", When::AfterUpgrade, Said::Lacking)]);
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Act("TemplateWritten"));
    let view = with(done(3, 0), vec![hook("Hook/first", When::BeforeUpgrade, Said::Failed)]);
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Done);
}

#[test]
fn jobs_are_made_one_by_one_and_only_when_nothing_else_is_in_the_way() {
    let first = hook("Hook/first", When::BeforeUpgrade, Said::No);
    let second = hook("Hook/second", When::BeforeUpgrade, Said::Lacking);
    let view = with(rest(3, 0), vec![first, second.clone()]);
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Wait(Reason::AwaitingHook));
    let view = with(rest(3, 0), vec![second]);
    let paused = Want { paused: true, ..want(NEW) };
    assert_eq!(answer(&decide(&paused, &view)), Answer::Wait(Reason::Paused));
}

#[test]
fn a_hook_can_be_set_aside() {
    let until = noon() + std::time::Duration::from_mins(1);
    let want = Want { overrides: [("Hook/first".to_owned(), until)].into(), ..want(NEW) };
    let view = with(rest(3, 0), vec![hook("Hook/first", When::BeforeUpgrade, Said::Failed)]);
    assert_eq!(answer(&decide(&want, &view)), Answer::Act("TemplateWritten"));
}

#[test]
fn a_revert_asks_nobody_at_its_end() {
    let mut view = with(done(3, 0), vec![hook("Hook/last", When::AfterUpgrade, Said::Failed)]);
    record_mut(&mut view).rolling_back = true;
    assert_eq!(answer(&decide(&want(NEW), &view)), Answer::Done);
}

#[test]
fn a_template_of_somebody_elses_is_followed_when_its_hooks_say_yes() {
    let want = Want { trigger: Trigger::Template, ..want(NEW) };
    let mut view = rest_on_delete(3, 0);
    view.workload.update_revision = revision(NEW);
    view.workload.image.clone_from(&want.target.image);
    let said = |said| with(view.clone(), vec![hook("Hook/first", When::BeforeUpgrade, said)]);
    assert_eq!(answer(&decide(&want, &said(Said::Lacking))), Answer::Act("JobStarted"));
    assert_eq!(answer(&decide(&want, &said(Said::Failed))), Answer::Halt(Reason::HookFailed));
    assert!(matches!(answer(&decide(&want, &said(Said::Yes))), Answer::Act(name) if name != "JobStarted"));
}

#[cfg(feature = "seeded-bugs")]
#[test]
fn hooks_that_are_not_awaited_are_caught() {
    use std::panic::catch_unwind;

    use windlass_plan::bug::{Bug, plant};

    let caught = |story: fn()| {
        plant(Some(Bug::HooksNotAwaited));
        let result = catch_unwind(story);
        plant(None);
        result.is_err()
    };
    assert!(caught(|| nothing_is_done_before_its_hooks_say_yes(Said::No, Answer::Wait(Reason::AwaitingHook))));
}
