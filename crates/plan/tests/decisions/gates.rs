//! Every gate: what it lets through, what it holds, and what it makes of what is not known.

use std::collections::BTreeSet;

use std::time::Duration;

use windlass_plan::{
    Fact, Hold, Member, Reason, View, Want,
    approval::Mode,
    gate::{CONCURRENT_OPERATION, ExternalGate, GateState, NODE_DRAIN, Outcome, State, overridable, overridable_names},
    quorum::Complaint,
    rolling::gates::{
        ask::Ask,
        list::{BEFORE_RESTART, check_overrides},
    },
    strategy::{
        gates::{evaluate, first_objection},
        known::pulls::{Pull, Pulls},
        prepull,
    },
};

use crate::support::{
    NEW, OLD, POSITION, at, half_way, image, member_mut, name, noon, pod, pod_mut, question, record_mut, remove_pod,
    rest, unknown, version, want, window,
};

/// What a row shows its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    /// What it demands.
    Right,
    /// The opposite.
    Wrong,
    /// Nothing that it could judge by.
    Unknown,
}

use Shown::{Right, Unknown, Wrong};

/// A gate, what it is shown, and what it says to that: none lets the victim be taken down.
struct Row(&'static str, Shown, Option<Reason>, fn(&mut Scene));

/// Five members, the top one replaced, `pd-3` is the victim and `pd-0` leads.
struct Scene {
    want: Want,
    view: View,
}

impl Scene {
    fn new() -> Self {
        Self { want: want(NEW), view: half_way(5, 0, 1) }
    }

    fn member(&mut self, index: u32) -> &mut Member {
        member_mut(&mut self.view, index)
    }

    /// A gate that was evaluated elsewhere says this.
    fn external(&mut self, name: &str, outcome: Outcome) {
        self.view.external = vec![ExternalGate::new(name, outcome)];
    }

    /// `pd-4` has been well since so long ago, and must have been for a minute.
    fn soaking(&mut self, ago: Option<u64>) {
        self.want.soak = Duration::from_mins(1);
        let since = ago.map(|ago| (name(4), noon() - Duration::from_secs(ago)));
        record_mut(&mut self.view).healthy_since = since.into_iter().collect();
    }

    /// The image shall be there before anybody stops, and on one of two nodes this became of it.
    fn pulls(&mut self, pull: Pull) {
        self.want.pre_pull = Some(Duration::from_mins(10));
        let nodes = [("node-a".to_owned(), Pull::Done), ("node-b".to_owned(), pull)].into();
        self.view.pulls = Fact::Known(Pulls { image: image(NEW), nodes });
    }

    fn leader(&mut self, index: u32) {
        self.view.quorum.leader = Fact::Known(name(index));
    }

    /// What this gate alone says.
    fn state(&self, name: &str) -> GateState {
        self.ask(|ask| evaluate(BEFORE_RESTART, ask).find(|gate| gate.name == name).expect("there is such a gate"))
    }

    fn ask<T>(&self, question: impl FnOnce(&Ask<'_>) -> T) -> T {
        let version = version(NEW);
        let victim = self.view.outdated().next_back().cloned().unwrap_or_else(|| pod(3, OLD));
        let (want, view, record) = (&self.want, &self.view, self.view.record.as_ref());
        question(&Ask { want, view, record, version: &version, victim: &victim, now: noon() })
    }
}

/// A pause, the list of pods and the calendar are always known.
const NOTHING_UNKNOWN: [&str; 3] = ["NotPaused", "PodsPresent", "MaintenanceWindow"];

fn locked() -> Hold {
    Hold::new(Reason::Locked, "locked by a restore")
}

/// Here an earlier gate has objected to what is not known, so this one has nothing to add.
const SOMEBODY_ELSE_OBJECTS: [&str; 1] = ["LeadershipStays"];

const ROWS: &[Row] = &[
    Row("NotPaused", Right, None, |_| {}),
    Row("NotPaused", Wrong, Some(Reason::Paused), |scene| scene.want.paused = true),
    Row("VersionPath", Right, None, |_| {}),
    Row("VersionPath", Right, None, |scene| scene.view = rest(5, 0)),
    // What is under way was asked when it began.
    Row("VersionPath", Right, None, |scene| scene.want.target.version = version("8.4.0")),
    Row("VersionPath", Wrong, Some(Reason::DowngradeNotAllowed), |scene| {
        scene.view = rest(5, 0);
        scene.want.target.version = version("8.4.0");
    }),
    Row("VersionPath", Wrong, Some(Reason::UnsupportedPath), |scene| {
        scene.view = rest(5, 0);
        scene.want.path = windlass_plan::path::ETCD;
        scene.want.target.version = version("8.7.0");
    }),
    Row("VersionPath", Unknown, Some(Reason::MembersUnknown), |scene| {
        scene.view = rest(5, 0);
        scene.member(1).version = unknown();
    }),
    Row("VersionPath", Unknown, Some(Reason::MembersUnknown), |scene| {
        scene.view = rest(5, 0);
        scene.view.quorum.members = unknown();
    }),
    Row("PodsPresent", Right, None, |_| {}),
    Row("PodsPresent", Right, None, |scene| pod_mut(&mut scene.view, 2).ready_since = None),
    Row("PodsPresent", Wrong, Some(Reason::PodNotReady), |scene| remove_pod(&mut scene.view, 0)),
    Row("PodsPresent", Wrong, Some(Reason::PodNotReady), |scene| pod_mut(&mut scene.view, 4).terminating = true),
    Row("PodsPresent", Wrong, Some(Reason::PodNotReady), |scene| pod_mut(&mut scene.view, 3).terminating = true),
    Row("MembersKnown", Right, None, |_| {}),
    Row("MembersKnown", Wrong, Some(Reason::MembersDoNotMatch), |scene| remove_pod(&mut scene.view, 1)),
    Row("MembersKnown", Wrong, Some(Reason::MembersDoNotMatch), |scene| scene.view.pods.push(pod(5, OLD))),
    Row("MembersKnown", Unknown, Some(Reason::MembersUnknown), |scene| scene.view.quorum.members = unknown()),
    Row("LeaderKnown", Right, None, |_| {}),
    Row("LeaderKnown", Wrong, Some(Reason::LeaderUnknown), |scene| scene.leader(7)),
    Row("LeaderKnown", Unknown, Some(Reason::LeaderUnknown), |scene| scene.view.quorum.leader = unknown()),
    Row("SpareMember", Right, None, |_| {}),
    Row("SpareMember", Right, None, |scene| scene.view = rest(3, 0)),
    Row("SpareMember", Wrong, Some(Reason::TooFewMembers), |scene| scene.view = rest(2, 0)),
    Row("SpareMember", Wrong, Some(Reason::TooFewMembers), |scene| scene.view = rest(1, 0)),
    Row("SpareMember", Right, None, |scene| {
        scene.view = rest(2, 0);
        scene.want.accept_downtime = true;
    }),
    Row("SpareMember", Unknown, Some(Reason::TooFewMembers), |scene| scene.view.quorum.members = unknown()),
    Row("EveryoneSettled", Right, None, |_| {}),
    Row("EveryoneSettled", Right, None, |scene| scene.member(4).position = Fact::Known(Some(POSITION - 100))),
    Row("EveryoneSettled", Right, None, |scene| scene.member(4).position = Fact::Known(None)),
    Row("EveryoneSettled", Wrong, Some(Reason::MemberBehind), |scene| {
        scene.member(1).position = Fact::Known(Some(0));
    }),
    Row("EveryoneSettled", Wrong, Some(Reason::PodNotReady), |scene| pod_mut(&mut scene.view, 1).ready_since = None),
    Row("EveryoneSettled", Wrong, Some(Reason::PodNotReady), |scene| pod_mut(&mut scene.view, 3).ready_since = None),
    Row("EveryoneSettled", Wrong, Some(Reason::MemberUnhealthy), |scene| scene.member(1).healthy = Fact::Known(false)),
    Row("EveryoneSettled", Wrong, Some(Reason::MemberUnhealthy), |scene| scene.member(3).healthy = Fact::Known(false)),
    Row("EveryoneSettled", Wrong, Some(Reason::VersionMismatch), |scene| {
        scene.member(4).version = Fact::Known(version(OLD));
    }),
    Row("EveryoneSettled", Wrong, Some(Reason::MemberBehind), |scene| {
        scene.member(4).position = Fact::Known(Some(POSITION - 101));
    }),
    Row("EveryoneSettled", Unknown, Some(Reason::MembersUnknown), |scene| scene.member(1).healthy = unknown()),
    Row("EveryoneSettled", Unknown, Some(Reason::MembersUnknown), |scene| scene.member(1).version = unknown()),
    Row("EveryoneSettled", Unknown, Some(Reason::MembersUnknown), |scene| scene.member(4).position = unknown()),
    Row("EveryoneSettled", Unknown, Some(Reason::MembersUnknown), |scene| scene.member(0).position = unknown()),
    Row("EveryoneSettled", Unknown, Some(Reason::MembersUnknown), |scene| scene.view.quorum.members = unknown()),
    Row("QuorumSurvives", Right, None, |_| {}),
    Row("QuorumSurvives", Right, None, |scene| scene.member(1).healthy = Fact::Known(false)),
    Row("QuorumSurvives", Right, None, |scene| {
        scene.view = rest(2, 0);
        scene.want.accept_downtime = true;
    }),
    Row("QuorumSurvives", Wrong, Some(Reason::QuorumAtRisk), |scene| {
        scene.member(1).healthy = Fact::Known(false);
        scene.member(2).healthy = Fact::Known(false);
    }),
    // Accepted downtime is no excuse for a larger quorum that is merely sick (H14).
    Row("QuorumSurvives", Wrong, Some(Reason::QuorumAtRisk), |scene| {
        scene.want.accept_downtime = true;
        scene.member(1).healthy = Fact::Known(false);
        scene.member(2).healthy = Fact::Known(false);
    }),
    Row("QuorumSurvives", Unknown, Some(Reason::QuorumAtRisk), |scene| scene.member(1).healthy = unknown()),
    Row("QuorumSurvives", Unknown, Some(Reason::QuorumAtRisk), |scene| scene.view.quorum.members = unknown()),
    Row("LeadershipStays", Right, None, |_| {}),
    Row("LeadershipStays", Right, None, |scene| scene.member(0).priority = 9),
    Row("LeadershipStays", Right, None, |scene| scene.leader(3)),
    Row("LeadershipStays", Right, None, |scene| {
        scene.view = rest(1, 0);
        scene.member(0).priority = 9;
    }),
    Row("LeadershipStays", Wrong, Some(Reason::LeaderPriority), |scene| scene.member(2).priority = 1),
    Row("LeadershipStays", Wrong, Some(Reason::LeaderPriority), |scene| {
        scene.leader(3);
        scene.member(3).priority = 1;
    }),
    Row("LeadershipStays", Wrong, Some(Reason::NoHandOverTarget), |scene| {
        scene.leader(3);
        for index in [0, 1, 2, 4] {
            scene.member(index).healthy = Fact::Known(false);
        }
    }),
    Row("LeadershipStays", Wrong, Some(Reason::DowngradeNotAllowed), |scene| {
        scene.leader(3);
        scene.member(3).version = Fact::Known(version("9.0.0"));
    }),
    Row("LeadershipStays", Unknown, None, |scene| scene.view.quorum.members = unknown()),
    Row("LeadershipStays", Unknown, None, |scene| scene.view.quorum.leader = unknown()),
    Row(CONCURRENT_OPERATION, Right, None, |scene| scene.external(CONCURRENT_OPERATION, Outcome::Pass)),
    Row(CONCURRENT_OPERATION, Wrong, Some(Reason::Locked), |scene| {
        scene.external(CONCURRENT_OPERATION, Outcome::Hold(locked()));
    }),
    Row(CONCURRENT_OPERATION, Unknown, Some(Reason::Locked), |scene| {
        scene.external(CONCURRENT_OPERATION, Outcome::Unknown(locked()));
    }),
    Row("Approval", Right, None, |_| {}),
    Row("Approval", Right, None, |scene| {
        scene.want.approval = Mode::BeforeUpgrade;
        scene.view.approvals.granted = vec![question(NEW, None)];
    }),
    Row("Approval", Wrong, Some(Reason::AwaitingApproval), |scene| scene.want.approval = Mode::BeforeUpgrade),
    Row("Approval", Wrong, Some(Reason::AwaitingApproval), |scene| {
        scene.want.approval = Mode::BeforeUpgrade;
        scene.view.approvals.granted = vec![question(OLD, None), question(NEW, Some(3))];
    }),
    // It does not lead, so nothing is handed over.
    Row("Approval", Right, None, |scene| scene.want.approval = Mode::BeforeEachHandOver),
    Row("Approval", Right, None, |scene| {
        scene.want.approval = Mode::BeforeEachHandOver;
        scene.leader(3);
        scene.view.approvals.granted = vec![question(NEW, Some(3))];
    }),
    Row("Approval", Wrong, Some(Reason::AwaitingApproval), |scene| {
        scene.want.approval = Mode::BeforeEachHandOver;
        scene.leader(3);
        scene.view.approvals.granted = vec![question(NEW, Some(2)), question(OLD, Some(3)), question(NEW, None)];
    }),
    Row("Approval", Unknown, Some(Reason::LeaderUnknown), |scene| {
        scene.want.approval = Mode::BeforeEachHandOver;
        scene.view.quorum.leader = unknown();
    }),
    Row("MaintenanceWindow", Right, None, |_| {}),
    Row("MaintenanceWindow", Right, None, |scene| scene.want.windows = vec![window("0 11 * * *", 120, "UTC")]),
    Row("MaintenanceWindow", Right, None, |scene| {
        scene.want.windows = vec![window("0 13 * * *", 60, "UTC"), window("0 11 * * *", 120, "UTC")];
    }),
    Row("MaintenanceWindow", Wrong, Some(Reason::WindowClosed), |scene| {
        scene.want.windows = vec![window("0 13 * * *", 60, "UTC")];
    }),
    Row("MaintenanceWindow", Wrong, Some(Reason::WindowClosed), |scene| {
        scene.want.windows = vec![window("0 11 * * *", 70, "UTC")];
        record_mut(&mut scene.view).durations = [(name(4), Duration::from_mins(11))].into();
    }),
    Row("Soak", Right, None, |_| {}),
    Row("Soak", Right, None, |scene| scene.soaking(Some(60))),
    Row("Soak", Wrong, Some(Reason::Soaking), |scene| scene.soaking(Some(59))),
    Row("Soak", Unknown, Some(Reason::Soaking), |scene| scene.soaking(None)),
    Row(NODE_DRAIN, Right, None, |scene| scene.external(NODE_DRAIN, Outcome::Pass)),
    Row(NODE_DRAIN, Wrong, Some(Reason::NodeDraining), |scene| {
        let hold = Hold::new(Reason::NodeDraining, "node a under pd-1 is cordoned");
        scene.external(NODE_DRAIN, Outcome::Hold(hold));
    }),
    Row(NODE_DRAIN, Unknown, Some(Reason::NodeDraining), |scene| {
        let hold = Hold::new(Reason::NodeDraining, "node a under pd-1 does not exist");
        scene.external(NODE_DRAIN, Outcome::Unknown(hold));
    }),
    Row("Check/freeze", Right, None, |scene| scene.external("Check/freeze", Outcome::Pass)),
    Row("Check/freeze", Wrong, Some(Reason::CheckFailed), |scene| {
        scene.external("Check/freeze", Outcome::Hold(Hold::new(Reason::CheckFailed, "there is a freeze")));
    }),
    Row("Check/freeze", Unknown, Some(Reason::CheckFailed), |scene| {
        scene.external("Check/freeze", Outcome::Unknown(Hold::new(Reason::CheckFailed, "nobody may read that")));
    }),
    Row("Analysis/errors", Right, None, |scene| scene.external("Analysis/errors", Outcome::Pass)),
    Row("Analysis/errors", Wrong, Some(Reason::AnalysisFailed), |scene| {
        scene.external("Analysis/errors", Outcome::Hold(Hold::new(Reason::AnalysisFailed, "too many")));
    }),
    Row("Analysis/errors", Unknown, Some(Reason::AnalysisFailed), |scene| {
        scene.external("Analysis/errors", Outcome::Unknown(Hold::new(Reason::AnalysisFailed, "no measurement")));
    }),
    Row("Hook/ask", Right, None, |scene| scene.external("Hook/ask", Outcome::Pass)),
    Row("Hook/ask", Wrong, Some(Reason::AwaitingHook), |scene| {
        scene.external("Hook/ask", Outcome::Hold(Hold::new(Reason::AwaitingHook, "it says no")));
    }),
    Row("Hook/ask", Unknown, Some(Reason::AwaitingHook), |scene| {
        scene.external("Hook/ask", Outcome::Unknown(Hold::new(Reason::AwaitingHook, "it says nothing")));
    }),
    // Nobody asked for it.
    Row(prepull::NAME, Right, None, |_| {}),
    Row(prepull::NAME, Right, None, |scene| scene.pulls(Pull::Done)),
    // A way back leads to where the image was.
    Row(prepull::NAME, Right, None, |scene| {
        scene.pulls(Pull::Missing);
        record_mut(&mut scene.view).rolling_back = true;
    }),
    // It was asked about before the permit.
    Row(prepull::NAME, Right, None, |scene| {
        scene.pulls(Pull::Missing);
        scene.view.workload.strategy =
            windlass_plan::rolling::known::workload::Strategy::RollingUpdate { partition: 3 };
    }),
    Row(prepull::NAME, Wrong, Some(Reason::AwaitingImage), |scene| scene.pulls(Pull::Missing)),
    Row(prepull::NAME, Wrong, Some(Reason::AwaitingImage), |scene| scene.pulls(running(599, None))),
    Row(prepull::NAME, Wrong, Some(Reason::ImageNotPullable), |scene| scene.pulls(running(600, None))),
    Row(prepull::NAME, Wrong, Some(Reason::ImageNotPullable), |scene| scene.pulls(running(1, Some("not found")))),
    Row(prepull::NAME, Wrong, Some(Reason::ImageNotPullable), |scene| scene.pulls(Pull::Failed("not found".into()))),
    Row(prepull::NAME, Unknown, Some(Reason::AwaitingImage), |scene| {
        scene.pulls(Pull::Done);
        scene.view.pulls = unknown();
    }),
    // What is known of another image says nothing of this one.
    Row(prepull::NAME, Unknown, Some(Reason::AwaitingImage), |scene| {
        scene.pulls(Pull::Done);
        record_mut(&mut scene.view).target.image = "pd:another".into();
    }),
];

fn running(ago: u64, trouble: Option<&str>) -> Pull {
    Pull::Running { since: noon() - Duration::from_secs(ago), trouble: trouble.map(str::to_owned) }
}

#[test]
fn every_gate_says_what_its_rows_say() {
    for (number, Row(gate, shown, expected, arrange)) in ROWS.iter().enumerate() {
        let mut scene = Scene::new();
        arrange(&mut scene);
        let said = scene.state(gate);
        let reason = said.hold.as_ref().map(|hold| hold.reason);
        assert_eq!(reason, *expected, "{gate} with what is {shown:?}, row {number}: {said:?}");
        assert_eq!(said.state.blocks(), reason.is_some());
        assert!(said.hold.is_none_or(|hold| !hold.message.is_empty()));
    }
}

#[test]
fn every_gate_has_a_row_of_each_kind() {
    let rows: BTreeSet<(&str, Shown)> = ROWS.iter().map(|Row(gate, shown, ..)| (*gate, *shown)).collect();
    let mut needed = BTreeSet::new();
    // One of every kind that is evaluated elsewhere.
    let others = [NODE_DRAIN, "Check/freeze", "Analysis/errors", "Hook/ask"];
    let named = BEFORE_RESTART.iter().map(|gate| gate.name).filter(|name| *name != "*");
    for name in named.chain(others) {
        needed.extend([(name, Right), (name, Wrong)]);
        if !NOTHING_UNKNOWN.contains(&name) {
            needed.insert((name, Unknown));
        }
    }
    assert_eq!(rows, needed);
}

#[test]
fn right_passes_and_wrong_holds_in_every_row() {
    for Row(gate, shown, expected, _) in ROWS {
        let holds = *shown == Wrong || *shown == Unknown && !SOMEBODY_ELSE_OBJECTS.contains(gate);
        assert_eq!(expected.is_some(), holds, "{gate} with what is {shown:?}");
    }
}

#[test]
fn what_is_wrong_or_unknown_for_one_gate_holds_the_whole_list() {
    for (number, Row(gate, shown, _, arrange)) in ROWS.iter().enumerate().filter(|(_, row)| row.1 != Right) {
        let mut scene = Scene::new();
        arrange(&mut scene);
        let verdict = scene.ask(|ask| first_objection(BEFORE_RESTART, ask));
        assert!(verdict.is_err(), "{gate} with what is {shown:?}, row {number}");
    }
}

#[test]
fn nobody_objects_where_all_is_well() {
    assert_eq!(Scene::new().ask(|ask| first_objection(BEFORE_RESTART, ask)), Ok(()));
}

#[test]
fn the_first_objection_in_the_list_is_the_one_that_is_told() {
    let mut scene = Scene::new();
    scene.view.quorum.leader = unknown();
    scene.member(1).healthy = Fact::Known(false);
    let told = |scene: &Scene| scene.ask(|ask| first_objection(BEFORE_RESTART, ask)).map_err(|hold| hold.reason);
    assert_eq!(told(&scene), Err(Reason::LeaderUnknown));
    scene.want.paused = true;
    assert_eq!(told(&scene), Err(Reason::Paused));
}

#[test]
fn gates_are_named_once_each() {
    let names: BTreeSet<&str> = BEFORE_RESTART.iter().map(|gate| gate.name).collect();
    assert_eq!(names.len(), BEFORE_RESTART.len());
}

#[test]
fn a_pod_that_is_not_ready_says_what_kubernetes_says() {
    let mut scene = Scene::new();
    let sick = pod_mut(&mut scene.view, 1);
    sick.ready_since = None;
    sick.trouble = Some(windlass_plan::Trouble::Unschedulable { message: "no room".into() });
    let verdict = scene.ask(|ask| first_objection(BEFORE_RESTART, ask));
    assert_eq!(verdict, Err(Hold::new(Reason::Unschedulable, "pod pd-1 is not ready: no node takes it: no room")));
}

#[test]
fn a_pod_that_is_not_ready_says_what_its_member_says_where_kubernetes_has_no_word() {
    let mut scene = Scene::new();
    pod_mut(&mut scene.view, 1).ready_since = None;
    let member = member_mut(&mut scene.view, 1);
    (member.healthy, member.trouble) = (Fact::Known(false), Some(Complaint::Sealed));
    let verdict = scene.ask(|ask| first_objection(BEFORE_RESTART, ask));
    let Err(hold) = verdict else { panic!("it let through") };
    assert_eq!(hold.reason, Reason::MemberSealed);
    assert!(hold.message.starts_with("pod pd-1 is not ready: it is sealed"), "{}", hold.message);
}

/// Kubernetes makes it when those below it are ready, so what keeps one of them is the thing to look at.
#[test]
fn a_pod_that_does_not_exist_names_the_one_it_waits_for() {
    let mut scene = Scene::new();
    remove_pod(&mut scene.view, 4);
    let sick = pod_mut(&mut scene.view, 1);
    sick.ready_since = None;
    sick.trouble = Some(windlass_plan::Trouble::Unschedulable { message: "no room".into() });
    let verdict = scene.ask(|ask| first_objection(BEFORE_RESTART, ask));
    let words = "pod pd-4 does not exist yet, and pod pd-1 is not ready: no node takes it: no room";
    assert_eq!(verdict, Err(Hold::new(Reason::Unschedulable, words)));
}

#[test]
fn pods_and_members_are_counted_from_the_first_ordinal() {
    let mut scene = Scene::new();
    scene.view.workload.first_ordinal = 1;
    let verdict = scene.ask(|ask| first_objection(BEFORE_RESTART, ask));
    assert_eq!(verdict, Err(Hold::new(Reason::PodNotReady, "pod pd-5 does not exist yet")));
}

/// Every row that holds, once more with its gate set aside: only where people are masters of it that helps.
#[test]
fn an_override_sets_aside_what_people_asked_for_and_never_what_guards_the_quorum() {
    for (number, Row(gate, shown, expected, arrange)) in ROWS.iter().enumerate().filter(|(_, row)| row.2.is_some()) {
        let mut scene = Scene::new();
        arrange(&mut scene);
        let held = scene.state(gate);
        scene.want.overrides = [((*gate).to_owned(), at(noon().as_second() + 1))].into();
        let said = scene.state(gate);
        assert_eq!(said.hold.as_ref().map(|hold| hold.reason), *expected, "what is overridden is told all the same");
        if overridable(gate) {
            assert_eq!(said.state, State::Overridden, "{gate} with what is {shown:?}, row {number}");
            assert!(said.message().starts_with("overridden until 1970-01-01T12:00:01Z: "), "{}", said.message());
        } else {
            assert_eq!(said, held, "{gate} with what is {shown:?}, row {number}");
        }

        scene.want.overrides = [((*gate).to_owned(), noon())].into();
        assert_eq!(scene.state(gate), held, "an override ends at its time");
        scene.want.overrides = [("Another".to_owned(), at(noon().as_second() + 1))].into();
        assert_eq!(scene.state(gate), held, "an override is for one gate");
    }
}

#[test]
fn unknown_and_hold_are_told_apart() {
    for Row(gate, shown, expected, arrange) in ROWS.iter().filter(|row| overridable(row.0)) {
        let mut scene = Scene::new();
        arrange(&mut scene);
        let state = match (shown, expected) {
            (Right, _) | (_, None) => State::Passed,
            (Wrong, Some(_)) => State::Holding,
            (Unknown, Some(_)) => State::Unknown,
        };
        assert_eq!(scene.state(gate).state, state, "{gate} with what is {shown:?}");
    }
}

#[test]
fn overrides_of_what_guards_the_quorum_are_refused() {
    assert_eq!(check_overrides(overridable_names()), Ok(()));
    for gate in BEFORE_RESTART.iter().filter(|gate| gate.name != "*" && !overridable(gate.name)) {
        let hold = check_overrides(["Soak", gate.name]).unwrap_err();
        assert_eq!(hold.reason, Reason::InvalidSpec);
        assert!(hold.message.starts_with(&format!("gate {} can't be overridden", gate.name)), "{}", hold.message);
    }
    for strange in ["*", "", "soak", "Everything"] {
        let hold = check_overrides([strange]).unwrap_err();
        assert!(strange == "*" || hold.message.contains("does not exist"), "{}", hold.message);
    }
}

#[test]
fn what_guards_the_quorum_is_told_before_what_people_asked_for() {
    let firm: Vec<bool> = BEFORE_RESTART.iter().map(|gate| !overridable(gate.name)).collect();
    let first = firm.iter().position(|firm| !firm).expect("there are others");
    assert_eq!(BEFORE_RESTART.get(first).map(|gate| gate.name), Some(CONCURRENT_OPERATION));
    let mut scene = Scene::new();
    scene.want.windows = vec![window("0 13 * * *", 60, "UTC")];
    scene.member(1).healthy = Fact::Known(false);
    let told = scene.ask(|ask| first_objection(BEFORE_RESTART, ask)).map_err(|hold| hold.reason);
    assert_eq!(told, Err(Reason::MemberUnhealthy));
}

#[test]
fn every_gate_is_told_once() {
    let mut scene = Scene::new();
    let gate = |name: &str| ExternalGate::new(name, Outcome::Pass);
    scene.view.external = vec![gate(CONCURRENT_OPERATION), gate(NODE_DRAIN), gate("Analysis")];
    let names: Vec<String> =
        scene.ask(|ask| evaluate(BEFORE_RESTART, ask).map(|gate| gate.name.into_owned()).collect());
    let known = |name: &'static str| if name == "*" { vec![NODE_DRAIN, "Analysis"] } else { vec![name] };
    let expected: Vec<&str> = BEFORE_RESTART.iter().flat_map(|gate| known(gate.name)).collect();
    assert_eq!(names, expected);
}
