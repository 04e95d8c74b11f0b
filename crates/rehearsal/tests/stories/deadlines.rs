//! Every deadline that there is: how what it limits is made to hang, and what is said and done when it is over (D4).
//!
//! Who hangs is the second member to go. The first one soaks for longer than any deadline, so that the upgrade is older than that when
//! the stage begins: a deadline that counted from the upgrade's start would have passed already.

#![allow(clippy::print_stdout, reason = "which row it was")]

use std::{collections::BTreeSet, time::Duration};

use crate::support::{
    A_WHILE, Spoken, Tale,
    stage::{self, pass, stalled, subject, until_at_last as until},
    with,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use strum::IntoEnumIterator;
use windlass_api::quorum_cluster::upgrade::Deadlines;
use windlass_plan::{Reason, rolling::known::stage::StageKind};
use windlass_rehearsal::setting::{ETCD, EXECUTOR, OPENBAO, PD, Setting};
use windlass_sim::{
    harness::Cluster,
    world::{BadAnswer, ImageBehaviour},
};

const VICTIM: u32 = 1;
const SOAK: Duration = Duration::from_mins(10);
/// How much later than it is over a deadline may be noticed: the next look, and for a Job, its controller's.
const SLACK: Duration = Duration::from_secs(10);

/// What has a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limited {
    Stage(StageKind),
    HandOver,
    Snapshot,
}

impl Limited {
    fn all() -> impl Iterator<Item = Self> {
        StageKind::iter().map(Self::Stage).chain([Self::HandOver, Self::Snapshot])
    }

    /// Where the spec says how long, and how long that is unless it says otherwise.
    fn deadline(self) -> (&'static str, Duration) {
        match self {
            Self::Stage(StageKind::Replace) => ("ready", Duration::from_mins(5)),
            Self::Stage(StageKind::Join) => ("health", Duration::from_mins(2)),
            Self::Stage(StageKind::Sync) => ("sync", Duration::from_mins(2)),
            Self::HandOver => ("handover", Duration::from_secs(30)),
            Self::Snapshot => ("backup", Duration::from_mins(10)),
        }
    }

    /// When it began, as recorded.
    fn since(self, status: &Value) -> Timestamp {
        let written = match self {
            Self::Stage(kind) => {
                let stage = &status["upgrade"]["stage"];
                assert_eq!(stage["name"], json!(kind), "{status}");
                &stage["since"]
            }
            Self::HandOver => &status["upgrade"]["pendingHandover"]["since"],
            Self::Snapshot => &status["snapshot"]["since"],
        };
        written.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no start in {status}"))
    }
}

/// What makes it hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hang {
    /// The new version's process never serves.
    NeverServes,
    /// The StatefulSet controller does nothing.
    NoController,
    /// The new process has no key.
    Sealed,
    /// The new process does not answer.
    Silent,
    /// The new process hears nothing of the log.
    Starved,
    /// Whoever leads takes requests to hand over and goes on.
    Clings,
    /// The snapshot's process does not end.
    SlowSnapshot,
    /// And nobody ends its Job.
    EndlessJob,
}

impl Hang {
    /// The moment at which it has to be set up, and the deed.
    async fn begin(self, cluster: &Cluster, row: &Row) {
        let Setting { namespace, name, .. } = row.setting;
        let pod = row.pod(VICTIM);
        let first = uid(cluster, row, &pod);
        let gone = |cluster: &Cluster| uid(cluster, row, &pod) != first;
        match self {
            Self::SlowSnapshot => return cluster.world.set_image(EXECUTOR, ImageBehaviour::NeverReady),
            Self::EndlessJob => return freeze(cluster, Duration::from_hours(9)),
            Self::Clings => return cluster.world.cling(namespace, name, true),
            Self::NeverServes | Self::NoController | Self::Sealed | Self::Silent | Self::Starved => {}
        }
        let soaks = |cluster: &Cluster| subject(cluster)["status"]["conditions"][0]["reason"] == "Soaking";
        until(cluster, "it soaks", soaks).await;
        match self {
            Self::NeverServes => {
                cluster.world.set_image(&row.setting.image(row.setting.reference.1), ImageBehaviour::NeverReady);
            }
            // Longer than the soak and the deadline.
            Self::NoController => freeze(cluster, Duration::from_mins(25)),
            Self::Sealed => cluster.world.auto_unseal(namespace, name, false),
            Self::Silent => {
                until(cluster, "it goes down", gone).await;
                cluster.world.break_answers(namespace, &pod, Some(BadAnswer::Refused));
            }
            Self::Starved => {
                until(cluster, "it goes down", gone).await;
                cluster.world.starve(namespace, name, &pod, true);
            }
            Self::Clings | Self::SlowSnapshot | Self::EndlessJob => {}
        }
    }

    /// What made it hang is over.
    fn end(self, cluster: &Cluster, row: &Row) {
        let Setting { namespace, name, .. } = row.setting;
        let pod = row.pod(VICTIM);
        match self {
            Self::Silent => cluster.world.break_answers(namespace, &pod, None),
            Self::Starved => cluster.world.starve(namespace, name, &pod, false),
            // It is over by itself, or does not concern the old version.
            Self::NoController
            | Self::NeverServes
            | Self::Sealed
            | Self::Clings
            | Self::SlowSnapshot
            | Self::EndlessJob => {}
        }
    }
}

fn freeze(cluster: &Cluster, how_long: Duration) {
    cluster.world.freeze_controllers(cluster.clock.elapsed() + how_long);
}

/// The pod that there is; none where it is on its way out.
fn uid(cluster: &Cluster, row: &Row, pod: &str) -> Option<Value> {
    let found = cluster.api.get_value("pods", row.setting.namespace, pod)?;
    found.pointer("/metadata/deletionTimestamp").is_none().then(|| found["metadata"]["uid"].clone())
}

async fn until_stalled(cluster: &Cluster, reason: &str) -> Spoken {
    until(cluster, reason, |cluster| stalled(cluster, reason).is_some()).await;
    stalled(cluster, reason).expect("it has just been so")
}

/// What comes of `onDeadline: RollBack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Back {
    /// Everybody goes back by themselves.
    AtOnce,
    /// Everybody goes back as soon as what made it hang is over, and a person is called until then.
    Called,
    /// The same, and nobody is called: who hangs is none of the members.
    Waited,
    /// It stays as it is: there is no way back, or nothing to go back from.
    Never,
}

/// One way to be late.
#[derive(Debug)]
struct Row {
    limited: Limited,
    setting: Setting,
    hang: Hang,
    leader: u32,
    /// What is said when it is over.
    reason: Reason,
    words: &'static [&'static str],
    /// How long after its start that is: more than the deadline where it is tried again, or where somebody else ends it first.
    after: Duration,
    /// Who was replaced by then.
    replaced: &'static [u32],
    back: Back,
}

impl Row {
    /// A stage of the second member, while the lowest one leads.
    fn stage(kind: StageKind, setting: Setting, hang: Hang, reason: Reason, back: Back) -> Self {
        let limited = Limited::Stage(kind);
        let words: &[&str] = match kind {
            StageKind::Replace => &["its pod is not ready"],
            StageKind::Join => &["it is not healthy as a member"],
            StageKind::Sync => &["it has not caught up with the leader"],
        };
        let after = limited.deadline().1;
        Self { limited, setting, hang, leader: 0, reason, words, after, replaced: &[2, 1], back }
    }

    /// A hand-over is asked for three times more before a person is called.
    fn hand_over(setting: Setting, leader: u32, replaced: &'static [u32], back: Back) -> Self {
        let limited = Limited::HandOver;
        let words: &[&str] = &["to hand leadership over 4 times", "it still leads"];
        let (reason, after) = (Reason::HandOverFailed, limited.deadline().1 * 3);
        Self { limited, setting, hang: Hang::Clings, leader, reason, words, after, replaced, back }
    }

    fn snapshot(setting: Setting, hang: Hang, reason: Reason, words: &'static [&'static str], grace: Duration) -> Self {
        let limited = Limited::Snapshot;
        let after = limited.deadline().1 + grace;
        Self { limited, setting, hang, leader: 0, reason, words, after, replaced: &[], back: Back::Never }
    }

    fn pod(&self, ordinal: u32) -> String {
        self.setting.pod(ordinal).pod
    }

    /// The member that the message names.
    fn named(&self) -> Option<String> {
        match self.limited {
            Limited::Stage(_) => Some(self.pod(VICTIM)),
            Limited::HandOver => Some(self.pod(self.leader)),
            Limited::Snapshot => None,
        }
    }

    fn objects(&self, on_deadline: &str) -> Vec<Value> {
        let (from, to) = self.setting.reference;
        with(self.setting.objects(3, from, to), "QuorumCluster", |resource| {
            resource["spec"]["onDeadline"] = json!(on_deadline);
            resource["spec"]["upgrade"] = json!({"soak": format!("{}s", SOAK.as_secs())});
            if self.limited == Limited::Snapshot {
                resource["spec"]["backup"] =
                    json!({"preUpgradeSnapshot": true, "destination": {"volume": {"claimName": "backups"}}});
            }
        })
    }

    fn play(&self, on_deadline: &str, story: impl AsyncFnOnce(&Cluster)) -> Tale {
        println!("{on_deadline}: {self:?}");
        stage::play(self.objects(on_deadline), async |cluster| {
            let up = |cluster: &Cluster| {
                let truths = cluster.world.truths();
                let mut members = truths.iter().flat_map(|truth| &truth.members);
                members.all(|member| member.healthy)
            };
            until(cluster, "everybody is up", up).await;
            cluster.world.elect(self.setting.namespace, self.setting.name, &self.pod(self.leader));
            self.hang.begin(cluster, self).await;
            story(cluster).await;
        })
    }

    fn first_said(&self, tale: &Tale, so: impl Fn(&Spoken) -> bool) -> (usize, Timestamp, Spoken) {
        tale.first_said(self.setting.name, so).expect("it was said")
    }

    /// When the first of its attempts began, as recorded.
    fn since(&self, tale: &Tale, last: &Spoken) -> Timestamp {
        if self.limited == Limited::HandOver {
            let first = |spoken: &Spoken| spoken.status["upgrade"]["pendingHandover"]["attempts"] == 1;
            return self.limited.since(&self.first_said(tale, first).2.status);
        }
        self.limited.since(&last.status)
    }

    /// It was over when it should have been, counted from its own start, and not a moment earlier.
    fn was_punctual(&self, tale: &Tale, at: Timestamp, said: &Spoken) {
        let since = self.since(tale, said);
        let took = at.duration_since(since).unsigned_abs();
        assert!(took >= self.after && took <= self.after + SLACK, "after {took:?}, and {:?} were due", self.after);
        let begun = said.status["upgrade"]["startedAt"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
        if let Some(begun) = begun.filter(|_| self.replaced.contains(&2)) {
            assert!(since.duration_since(begun).unsigned_abs() >= SOAK, "the upgrade was older than any deadline");
        }
    }

    /// Kubernetes replaced nobody but these.
    fn replaced_only(&self, tale: &Tale, ordinals: &[u32]) {
        let expected: Vec<String> = ordinals.iter().map(|ordinal| self.pod(*ordinal)).collect();
        let mut replaced = tale.replaced(0..tale.journal.len());
        // Pods of Jobs come and go.
        replaced.retain(|pod| pod.starts_with(self.setting.name));
        assert_eq!(replaced, expected);
    }

    /// It said that a person is needed, in time, and left everything as it was.
    fn was_held(&self, tale: &Tale) {
        let (index, at, said) = self.first_said(tale, |spoken| spoken.stalled == "True");
        let named = self.named().unwrap_or_default();
        let words: Vec<&str> = self.words.iter().copied().chain([named.as_str()]).collect();
        said.is_stalled(self.reason.name(), &words);
        self.was_punctual(tale, at, &said);
        tale.moved_nothing(index..tale.journal.len());
        self.replaced_only(tale, self.replaced);
        tale.was_safe();
    }
}

/// All ways to be late that there are. A new stage needs one, or this does not compile.
fn rows(limited: Limited) -> Vec<Row> {
    use Back::{AtOnce, Called, Never, Waited};
    use Limited::{HandOver, Snapshot, Stage};
    use StageKind::{Join, Replace, Sync};
    match limited {
        Stage(Replace) => vec![
            Row::stage(Replace, PD, Hang::NeverServes, Reason::DeadlineExceeded, AtOnce),
            // None of its peers says how it is.
            Row::stage(Replace, ETCD, Hang::NeverServes, Reason::DeadlineExceeded, AtOnce),
            // A permit that nobody uses.
            Row {
                words: &["Kubernetes may replace pod", "has not begun"],
                replaced: &[2],
                ..Row::stage(Replace, ETCD, Hang::NoController, Reason::AwaitingReplacement, Waited)
            },
            // It wants its key, not another version.
            Row::stage(Replace, OPENBAO, Hang::Sealed, Reason::MemberSealed, Never),
        ],
        Stage(Join) => [PD, ETCD, OPENBAO]
            .map(|setting| Row::stage(Join, setting, Hang::Silent, Reason::MemberNotJoined, Called))
            .into(),
        Stage(Sync) => {
            [PD, ETCD].map(|setting| Row::stage(Sync, setting, Hang::Starved, Reason::DeadlineExceeded, Called)).into()
        }
        HandOver => vec![
            // It was asked to go to a member of the new version, which may have led.
            Row::hand_over(PD, VICTIM, &[2], Never),
            Row::hand_over(OPENBAO, VICTIM, &[2], Never),
            // And here to one of the old.
            Row::hand_over(ETCD, 2, &[], AtOnce),
        ],
        Snapshot => vec![
            Row::snapshot(
                ETCD,
                Hang::SlowSnapshot,
                Reason::SnapshotFailed,
                &["attempt 1", "longer than"],
                Duration::ZERO,
            ),
            Row::snapshot(
                OPENBAO,
                Hang::EndlessJob,
                Reason::AwaitingSnapshot,
                &["attempt 1", "its Job has not ended"],
                Duration::from_mins(1),
            ),
        ],
    }
}

fn all_rows() -> impl Iterator<Item = Row> {
    Limited::all().flat_map(rows)
}

#[test]
fn every_deadline_has_a_row_and_its_documented_length() {
    let Ok(Value::Object(written)) = serde_json::to_value(Deadlines::default()) else { panic!("no object") };
    // That of a pull passes in prepulls.rs: it limits no stage of a member, and nobody is down meanwhile.
    let stages = written.keys().map(String::as_str).filter(|key| *key != "pull");
    let spec: BTreeSet<&str> = stages.chain(["backup"]).collect();
    assert_eq!(Limited::all().map(|limited| limited.deadline().0).collect::<BTreeSet<_>>(), spec);
    for limited in Limited::all() {
        assert!(!rows(limited).is_empty(), "{limited:?}");
        let (field, length) = limited.deadline();
        let default = written.get(field).and_then(Value::as_str).unwrap_or("10m");
        let span: jiff::SignedDuration = default.parse().expect("a duration");
        assert_eq!(span.unsigned_abs(), length, "{limited:?}");
    }
}

#[test]
fn at_every_deadline_a_person_is_called_and_nothing_else_happens() {
    for row in all_rows() {
        let tale = row.play("Hold", async |cluster| {
            until_stalled(cluster, row.reason.name()).await;
            pass(A_WHILE).await;
        });
        row.was_held(&tale);
    }
}

#[test]
fn at_every_deadline_everybody_goes_back_where_there_is_a_way() {
    for row in all_rows() {
        let (from, to) = row.setting.reference;
        if row.back == Back::Never {
            let tale = row.play("RollBack", async |cluster| {
                until_stalled(cluster, row.reason.name()).await;
                pass(A_WHILE).await;
            });
            row.was_held(&tale);
            continue;
        }
        let tale = row.play("RollBack", async |cluster| {
            until(cluster, "the way back", |cluster| {
                subject(cluster)["status"]["abandoned"]["outcome"] == "RolledBack"
            })
            .await;
            match row.back {
                Back::AtOnce | Back::Never => {}
                Back::Waited => pass(A_WHILE).await,
                // The member has no more time on the way back than it had on the way there.
                Back::Called => {
                    let said = until_stalled(cluster, "DeadlineExceeded").await;
                    said.is_stalled("DeadlineExceeded", &[&row.pod(VICTIM)]);
                }
            }
            if row.back != Back::AtOnce {
                row.hang.end(cluster, &row);
            }
            until_stalled(cluster, "RolledBack").await.is_stalled("RolledBack", &[to, "spec.requests.retry"]);
        });
        let (index, at, _) = row.first_said(&tale, |spoken| spoken.status["abandoned"]["outcome"] == "RolledBack");
        // The stage is over by then, and only what was said before tells when it began.
        let before = tale.said_of(row.setting.name, 0..index).pop().expect("it was said");
        row.was_punctual(&tale, at, &before);
        assert_eq!(tale.subject["status"]["currentVersion"], from);
        let versions = tale.subject["status"]["members"].as_array().into_iter().flatten();
        assert!(versions.into_iter().all(|member| member["version"] == from), "{}", tale.subject["status"]["members"]);
        tale.was_safe();
    }
}
