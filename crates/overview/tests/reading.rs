//! What people are told of a resource in each state that it can be in, by what the operator writes.

#![allow(clippy::unwrap_used, reason = "a test that lacks something has failed")]

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};
use windlass_api::{
    Word,
    conditions::{Tri, Verdict, conditions},
    phase::Phase,
    status::members::{Lag, Role},
};
use windlass_overview::{Doing, FleetOverview, QuorumOverview, Said, TierState};
use windlass_plan::{Hold, Order, Reason, StepKind, gate::State, rolling::known::stage::StageKind};

const BEGUN: &str = "2030-01-01T00:00:00.000000Z";
const IMAGES: [&str; 2] = ["pd:v8.1.0", "pd:v8.5.3"];

/// A QuorumCluster of this status.
fn quorum(status: &Value) -> Value {
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "QuorumCluster",
        "metadata": {"name": "pd", "namespace": "tikv", "generation": 3},
        "spec": {
            "workload": {"statefulSet": "pd", "container": "pd"}, "system": {"type": "Pd"}, "version": "8.5.3",
            "gates": {"overrides": [{"gate": "NodeDrain", "until": "2030-02-03T00:00:00Z"}]},
        },
        "status": status,
    })
}

/// What the operator writes into its conditions.
fn said(word: Word, message: &str, stalled: bool) -> Value {
    let ready = Tri::from(word == Word::UpToDate);
    let message = message.to_owned();
    let verdict = Verdict { ready, reconciling: false, stalled, upgrading: false, word, message };
    json!(conditions(&[], &verdict, 3, BEGUN.parse().unwrap()))
}

fn upgrade(more: &Value) -> Value {
    let mut upgrade = json!({
        "fromVersion": "8.1.0", "fromImage": IMAGES[0], "targetVersion": "8.5.3", "targetImage": IMAGES[1],
        "startedAt": BEGUN, "currentPartition": 2, "rollingBack": false, "progress": "1/3",
    });
    upgrade.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    upgrade
}

fn read(status: &Value) -> QuorumOverview {
    QuorumOverview::read(&quorum(status), None)
}

#[track_caller]
fn speaks(overview: &QuorumOverview) -> &Said {
    overview.said.as_ref().unwrap()
}

#[test]
fn one_that_nobody_has_looked_at_says_nothing() {
    let overview = read(&Value::Null);
    assert_eq!((overview.phase, &overview.said, &overview.from), (None, &None, &None));
    assert_eq!(overview.wanted.as_deref(), Some("8.5.3"));
    assert!(!overview.is_at_rest());
}

#[test]
fn one_at_rest_waits_for_nothing() {
    let conditions = said(Word::UpToDate, "all members run the wanted version", false);
    let status = json!({"phase": "UpToDate", "currentVersion": "8.5.3", "conditions": conditions});
    let overview = read(&status);
    assert_eq!((overview.phase, overview.running.as_deref()), (Some(Phase::UpToDate), Some("8.5.3")));
    assert!(overview.is_at_rest());
    let said = speaks(&overview);
    assert_eq!((said.word.clone(), said.next_step), (Word::UpToDate, None));
    assert_eq!(said.since, Some(BEGUN.parse::<Timestamp>().unwrap()));

    let mut edited = quorum(&status);
    edited["metadata"]["generation"] = json!(4);
    let overview = QuorumOverview::read(&edited, None);
    assert!(!speaks(&overview).current && !overview.is_at_rest(), "it speaks of the spec before");
}

#[test]
fn an_upgrade_says_where_it_goes_and_what_is_being_done() {
    let step = "8.1.0 to 8.5.3: let Kubernetes replace pd-2 (partition 2)";
    let intent = json!({"intent": "let Kubernetes replace pd-2 (partition 2)"});
    let members = json!([
        {"pod": "pd-0", "role": "Leader", "version": "8.1.0", "healthy": "True", "lag": "InSync"},
        {"pod": "pd-1", "role": "Follower", "healthy": "Unknown", "lag": "Behind"},
    ]);
    let conditions = said(Word::Step(StepKind::ReplacementAllowed), step, false);
    let overview =
        read(&json!({"phase": "Upgrading", "upgrade": upgrade(&intent), "conditions": conditions, "members": members}));
    let place = |place: &Option<windlass_overview::Place>| place.clone().map(|place| (place.version, place.image));
    let told = |version: &str, image: &str| Some((version.to_owned(), image.to_owned()));
    assert_eq!(place(&overview.from), told("8.1.0", IMAGES[0]));
    assert_eq!(place(&overview.to), told("8.5.3", IMAGES[1]));
    assert_eq!((overview.order, overview.rolling_back), (Some(Order::ReverseOrdinal), false));
    assert_eq!(overview.progress.as_deref(), Some("1/3"));
    let text = "let Kubernetes replace pd-2 (partition 2)".to_owned();
    assert_eq!(overview.doing, Some(Doing { text, stage: None, pod: None, since: None }));
    let said = speaks(&overview);
    assert_eq!((said.message.as_str(), said.next_step, said.ready), (step, None, false));
    let seen: Vec<_> = overview.members.iter().map(|one| (one.role, one.healthy, one.lag)).collect();
    let expected = [(Role::Leader, Tri::True, Some(Lag::InSync)), (Role::Follower, Tri::Unknown, Some(Lag::Behind))];
    assert_eq!(seen, expected);
}

#[rstest]
#[case::replace("Replace", StageKind::Replace, "pd-2 is replaced")]
#[case::join("Join", StageKind::Join, "pd-2 joins the quorum")]
#[case::sync("Sync", StageKind::Sync, "pd-2 catches up")]
fn a_member_on_its_way_is_told_by_its_stage(#[case] name: &str, #[case] stage: StageKind, #[case] text: &str) {
    let going = json!({"stage": {"name": name, "pod": "pd-2", "since": BEGUN}, "intent": "anything"});
    let doing = read(&json!({"upgrade": upgrade(&going)})).doing;
    let since = Some(BEGUN.parse().unwrap());
    assert_eq!(doing, Some(Doing { text: text.into(), stage: Some(stage), pod: Some("pd-2".into()), since }));
}

#[rstest]
#[case::waits(Reason::AwaitingApproval, "NeedsApproval", Phase::NeedsApproval, false)]
#[case::paused(Reason::Paused, "Paused", Phase::Paused, false)]
#[case::halted(Reason::TemplateChanged, "NeedsAttention", Phase::NeedsAttention, true)]
fn what_holds_is_told_with_what_to_do(
    #[case] reason: Reason,
    #[case] word: &str,
    #[case] phase: Phase,
    #[case] stalled: bool,
) {
    let hold = Hold::new(reason, "pd-0 leads; it would hand over");
    let conditions = said(reason.into(), &hold.to_string(), stalled);
    let asked = json!({"asked": {"targetVersion": "8.5.3", "targetImage": IMAGES[1], "handOver": "pd-0"}});
    let overview = read(&json!({"phase": word, "approval": asked, "conditions": conditions}));
    assert_eq!(overview.phase, Some(phase));
    let said = speaks(&overview);
    assert_eq!((said.word.reason(), said.stalled, said.ready), (Some(reason), stalled, false));
    assert_eq!((said.message.as_str(), said.next_step), (hold.message.as_str(), Some(reason.next_step())));
    assert_eq!(said.sentence(), hold.to_string());
    assert_eq!(overview.asked.and_then(|asked| asked.hand_over).as_deref(), Some("pd-0"));
}

#[test]
fn gates_say_where_they_stand_and_what_a_person_may_do() {
    let gates = json!([
        {"name": "LeaderKnown", "state": "Passed"},
        {"name": "NodeDrain", "state": "Overridden", "reason": "NodeDraining", "message": "m"},
        {"name": "Soak", "state": "Holding", "reason": "Soaking", "message": "m"},
    ]);
    let gates = read(&json!({"gates": gates})).gates;
    let told: Vec<_> = gates.iter().map(|gate| (gate.state, gate.reason.clone(), gate.overridable)).collect();
    let expected = [
        (State::Passed, None, false),
        (State::Overridden, Some(Reason::NodeDraining.into()), true),
        (State::Holding, Some(Reason::Soaking.into()), true),
    ];
    assert_eq!(told, expected);
    let until: Vec<_> = gates.iter().map(|gate| gate.overridden_until.map(|until| until.to_string())).collect();
    assert_eq!(until, [None, Some("2030-02-03T00:00:00Z".to_owned()), None]);
}

#[test]
fn a_status_that_can_not_be_read_names_the_field() {
    let overview = read(&json!({"phase": "NeedsAttention", "upgrade": upgrade(&json!({"targetVersion": "soon"}))}));
    let said = speaks(&overview);
    assert_eq!((said.word.reason(), said.stalled), (Some(Reason::Unreadable), true));
    assert!(said.message.starts_with("status.upgrade.targetVersion"), "{}", said.message);
    assert_eq!(said.next_step, Some(Reason::Unreadable.next_step()));
    assert_eq!((overview.subject.name.as_str(), overview.subject.system.as_str()), ("pd", "Pd"));
    assert_eq!((overview.phase, &overview.from), (Some(Phase::NeedsAttention), &None));
}

#[test]
fn what_a_newer_operator_says_is_told_in_its_words_or_not_known() {
    let conditions = said(Word::Strange("WaitsForTheMoon".into()), "it is not full; wait", false);
    let overview = read(&json!({
        "phase": "Musing", "conditions": conditions,
        "members": [{"pod": "pd-0", "role": "Chair", "healthy": "Mostly", "lag": "Ahead"}],
        "gates": [{"name": "Moon", "state": "Waning", "reason": "WaitsForTheMoon"}],
    }));
    let said = speaks(&overview);
    assert_eq!((said.word.name(), said.word.reason()), ("WaitsForTheMoon", None));
    assert_eq!((said.message.as_str(), said.next_step), ("it is not full; wait", None));
    let member = &overview.members[0];
    assert_eq!((overview.phase, member.role, member.healthy, member.lag), (None, Role::Unknown, Tri::Unknown, None));
    assert!(overview.gates[0].state.blocks() && !overview.gates[0].overridable);
}

#[test]
fn machines_are_told_the_same() {
    let hold = Hold::new(Reason::Paused, "it is paused");
    let going = json!({"stage": {"name": "Sync", "pod": "pd-2", "since": BEGUN}});
    let overview = read(&json!({
        "phase": "Paused", "upgrade": upgrade(&going), "conditions": said(hold.reason.into(), &hold.to_string(), false),
        "members": [{"pod": "pd-0", "role": "Leader", "healthy": "True"}],
        "gates": [{"name": "Soak", "state": "Holding", "reason": "Soaking"}],
    }));
    let expected = json!({
        "namespace": "tikv", "name": "pd", "system": "Pd", "statefulSet": "pd",
        "phase": "Paused", "running": null, "wanted": "8.5.3",
        "from": {"version": "8.1.0", "image": IMAGES[0]}, "to": {"version": "8.5.3", "image": IMAGES[1]},
        "order": "ReverseOrdinal", "rollingBack": false, "progress": "1/3",
        "doing": {"text": "pd-2 catches up", "stage": "Sync", "pod": "pd-2", "since": "2030-01-01T00:00:00Z"},
        "said": {
            "reason": "Paused", "message": "it is paused", "nextStep": Reason::Paused.next_step(),
            "since": "2030-01-01T00:00:00Z", "ready": false, "stalled": false, "current": true,
        },
        "asked": null,
        "members": [{"pod": "pd-0", "role": "Leader", "healthy": "True"}],
        "gates": [{"name": "Soak", "state": "Holding", "reason": "Soaking", "overridable": true}],
    });
    assert_eq!(json!(overview), expected);
}

/// A ServiceImage of two tiers whose first one says this, of this image.
fn fleet(tier: &str, image: &str, complete: bool, going: bool, word: &Word) -> Value {
    let condition = |type_: &str, holds: bool| {
        let status = Tri::from(holds).text();
        json!({"type": type_, "status": status, "reason": word.name(), "message": "m", "lastTransitionTime": BEGUN})
    };
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ServiceImage", "metadata": {"name": "dicom", "generation": 3},
        "spec": {
            "target": {"group": "example.com", "version": "v1", "kind": "Dicom"}, "defaultImage": "dicom:v2",
            "tiers": [{"upgradeTier": "", "image": "dicom:v2-rest"}, {"upgradeTier": "early", "priority": 1}],
        },
        "status": {
            "observedGeneration": 3, "progress": "1/2",
            "tierStatus": [{
                "upgradeTier": tier, "image": image, "resources": 2, "updated": 1, "canaryStepsDone": 1,
                "conditions": [condition("Complete", complete), condition("InProgress", going)],
            }],
            "conditions": [condition("Complete", complete), condition("Ready", complete), condition("Stalled", false)],
        },
    })
}

#[rstest]
#[case::waits(false, false, Word::Waiting, TierState::Waiting)]
#[case::goes_on(false, true, Word::Stamping, TierState::InProgress)]
#[case::soaks(false, true, Word::Held(Reason::Soaking), TierState::InProgress)]
#[case::done(true, false, Word::UpToDate, TierState::Complete)]
fn a_tier_says_how_far_it_is(
    #[case] complete: bool,
    #[case] going: bool,
    #[case] word: Word,
    #[case] expected: TierState,
) {
    let overview = FleetOverview::read(&fleet("early", "dicom:v2", complete, going, &word));
    let [first, rest] = overview.tiers.as_slice() else { unreachable!() };
    assert_eq!((first.name.as_str(), first.state, &first.word), ("early", expected, &Some(word.clone())));
    assert_eq!((first.resources, first.updated, first.shares_done), (2, 1, 1));
    assert_eq!((rest.image.as_str(), rest.state, &rest.word), ("dicom:v2-rest", TierState::NotSeen, &None));
    let said = overview.said.unwrap();
    assert_eq!((overview.complete, said.ready, said.word), (complete, complete, word));
}

#[test]
fn what_was_said_of_another_image_or_spec_does_not_count() {
    let mut raw = fleet("early", "dicom:v1", true, false, &Word::UpToDate);
    let before = FleetOverview::read(&raw);
    assert_eq!((before.tiers[0].state, before.tiers[0].updated), (TierState::NotSeen, 0));
    raw["metadata"]["generation"] = json!(4);
    assert!(before.complete && !FleetOverview::read(&raw).complete);
}

#[test]
fn a_fleet_that_can_not_be_read_names_the_field() {
    let mut raw = fleet("early", "dicom:v2", true, false, &Word::UpToDate);
    raw["spec"]["tiers"][0]["priority"] = json!("high");
    let overview = FleetOverview::read(&raw);
    let said = overview.said.unwrap();
    assert_eq!((overview.name.as_str(), overview.kind.as_str()), ("dicom", "Dicom"));
    assert!(said.stalled && said.message.starts_with("spec.tiers[0].priority"), "{}", said.message);
}
