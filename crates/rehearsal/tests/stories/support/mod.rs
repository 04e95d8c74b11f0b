//! Scenarios in few words, and short ways to ask what happened in them.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
pub mod stage;

use std::{
    collections::BTreeMap,
    ops::Range,
    panic::{UnwindSafe, catch_unwind},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_plan::bug::{Bug, plant};
use windlass_rehearsal::{
    crash,
    judge::Verdict,
    operator, pd,
    trial::{self, Ending, Outcome, Scenario, is_ours},
};
use windlass_sim::{
    harness::Program,
    journal::{Change, Entry, Event, Note},
    scenario::{Action, Moment, When},
};

/// What the cluster runs before, and what is wanted.
pub const FROM: &str = "8.5.0";
pub const TO: &str = "8.5.3";
/// Long enough for the operator to notice, to say so, and to wrongly act.
pub const A_WHILE: Duration = Duration::from_mins(3);

/// Three members at [`FROM`], and a QuorumCluster that wants [`TO`].
pub fn three() -> Vec<Value> {
    pd::objects(3, FROM, TO)
}

/// A story that holds must break with this mistake planted.
pub fn is_noticed(bug: Bug, story: impl FnOnce() + UnwindSafe) {
    plant(Some(bug));
    let told = catch_unwind(story);
    plant(None);
    assert!(told.is_err(), "{bug:?} was not noticed");
}

/// What the QuorumCluster says in the end.
pub fn message(outcome: &Outcome) -> &str {
    outcome.subject.pointer("/status/conditions/0/message").and_then(Value::as_str).unwrap_or_default()
}

/// What every member runs in the end.
pub fn versions(outcome: &Outcome) -> Vec<String> {
    let members = crash::end_state(outcome)["members"].as_array().cloned().unwrap_or_default();
    members.iter().filter_map(|member| member[1].as_str().map(str::to_owned)).collect()
}

/// How often etcd's leadership was moved by a call.
pub fn transfers(outcome: &Outcome) -> usize {
    let moved = |event: &Event| matches!(event, Event::Verb { what, changed: true, .. } if what.ends_with("transfer-leadership"));
    outcome.journal.iter().filter(|entry| moved(&entry.event)).count()
}

/// The same objects, one kind of them changed.
pub fn with(mut objects: Vec<Value>, kind: &str, change: impl Fn(&mut Value)) -> Vec<Value> {
    objects.iter_mut().filter(|object| object["kind"] == kind).for_each(change);
    objects
}

/// The same objects without one kind, and what was taken out.
pub fn without(objects: Vec<Value>, kind: &str) -> (Vec<Value>, Value) {
    let (mut out, rest): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(|object| object["kind"] == kind);
    (rest, out.pop().expect("an object of this kind"))
}

/// A change of the StatefulSet.
pub fn set(patch: &Value) -> Action {
    Action::Patch { target: pd::workload(), patch: patch.clone() }
}

/// A change of the image in the StatefulSet's template.
pub fn set_image(image: &str) -> Action {
    set(
        &json!({"spec": {"template": {"spec": {"containers": [{"name": "pd", "image": image, "ports": [{"containerPort": 2379}]}]}}}}),
    )
}

/// PD's image of a version.
pub fn image(version: &str) -> String {
    format!("registry.example/pingcap/pd:v{version}")
}

/// Something that changes nothing but can be found again in the journal.
pub fn mark() -> Action {
    Action::Create(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mark", "namespace": pd::NAMESPACE}}),
    )
}

pub fn at(when: When, action: Action) -> Moment {
    Moment { when, action }
}

/// Runs a timeline on these objects, one operator, until Ready.
pub fn tell(objects: Vec<Value>, timeline: Vec<Moment>) -> Tale {
    tell_until(objects, timeline, Ending::Ready)
}

/// The same until another end.
pub fn tell_until(objects: Vec<Value>, timeline: Vec<Moment>, ending: Ending) -> Tale {
    tell_with(objects, timeline, ending, &operator)
}

/// The same with another program.
pub fn tell_with(objects: Vec<Value>, timeline: Vec<Moment>, ending: Ending, program: &Program) -> Tale {
    let scenario = Scenario {
        seed: 1,
        objects,
        operators: 1,
        faults: false,
        timeline,
        subject: pd::subject(),
        ending,
        max_leader_moves: None,
        limit: Duration::from_mins(20),
    };
    let Outcome { verdict, settled, subject, journal, calls, .. } =
        trial::run(&scenario, &[], program).expect("a runtime for the scenario");
    Tale { settled, calls, ..Tale::new(journal, verdict, subject) }
}

/// What happened.
pub struct Tale {
    pub journal: Vec<Entry>,
    pub verdict: Verdict,
    pub settled: bool,
    /// The QuorumCluster at the end; null when it is gone.
    pub subject: Value,
    /// What the operator sent to the API and to the members, as method and path.
    pub calls: Vec<String>,
    /// Where in the journal people and bad luck did something, in the timeline's order.
    marks: Vec<usize>,
}

/// What the QuorumCluster said at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Spoken {
    pub ready: String,
    pub reconciling: String,
    pub stalled: String,
    pub reason: String,
    pub message: String,
    pub status: Value,
}

impl Spoken {
    fn of(object: &Value) -> Option<Self> {
        let conditions = object.pointer("/status/conditions")?.as_array()?;
        let find = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind);
        let text = |kind: &str, field: &str| {
            find(kind).and_then(|condition| condition[field].as_str()).unwrap_or_default().to_owned()
        };
        Some(Self {
            ready: text("Ready", "status"),
            reconciling: text("Reconciling", "status"),
            stalled: text("Stalled", "status"),
            reason: text("Ready", "reason"),
            message: text("Ready", "message"),
            status: object["status"].clone(),
        })
    }

    fn says(&self, reason: &str, words: &[&str]) {
        assert_eq!((self.ready.as_str(), self.reason.as_str()), ("False", reason), "{}", self.message);
        for word in words {
            assert!(self.message.contains(word), "{word:?} is not in {:?}", self.message);
        }
    }

    /// A person must do something, and the message says what.
    #[track_caller]
    pub fn is_stalled(&self, reason: &str, words: &[&str]) {
        self.says(reason, words);
        assert_eq!((self.stalled.as_str(), self.reconciling.as_str()), ("True", "False"), "{}", self.message);
    }

    /// It goes on by itself, and the message says when.
    #[track_caller]
    pub fn is_waiting(&self, reason: &str, words: &[&str]) {
        self.says(reason, words);
        assert_eq!((self.stalled.as_str(), self.reconciling.as_str()), ("False", "True"), "{}", self.message);
    }
}

impl Tale {
    pub fn new(journal: Vec<Entry>, verdict: Verdict, subject: Value) -> Self {
        // What was there at the beginning was made before any time had passed.
        let start = journal.first().expect("a journal").at;
        let marks = journal.iter().enumerate().filter(|(_, entry)| entry.at > start && is_from_outside(&entry.event));
        let marks = marks.map(|(index, _)| index).collect();
        Self { journal, verdict, settled: true, subject, calls: Vec::new(), marks }
    }

    /// From the beginning to the first thing that the timeline did.
    pub fn before_all(&self) -> Range<usize> {
        0..self.mark(0)
    }

    /// Between two things that the timeline did.
    pub fn between(&self, first: usize, second: usize) -> Range<usize> {
        self.mark(first)..self.mark(second)
    }

    /// From something that the timeline did to the end.
    pub fn since(&self, mark: usize) -> Range<usize> {
        self.mark(mark)..self.journal.len()
    }

    fn mark(&self, number: usize) -> usize {
        *self.marks.get(number).unwrap_or_else(|| panic!("the timeline did {} things", self.marks.len()))
    }

    pub fn writes(&self, span: Range<usize>) -> impl Iterator<Item = &Change> {
        self.journal[span].iter().filter_map(|entry| match &entry.event {
            Event::Write(change) => Some(change),
            Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
        })
    }

    pub fn our_writes(&self, span: Range<usize>) -> impl Iterator<Item = &Change> {
        self.writes(span).filter(|change| is_ours(&change.user))
    }

    /// Everything that was said of the QuorumCluster, in order.
    pub fn said(&self, span: Range<usize>) -> Vec<Spoken> {
        self.said_of(pd::NAME, span)
    }

    pub fn said_of(&self, name: &str, span: Range<usize>) -> Vec<Spoken> {
        let ours = self
            .our_writes(span)
            .filter(|change| change.resource == "quorumclusters.windlass.dev" && change.name == name);
        ours.filter_map(|change| Spoken::of(change.after.as_deref()?)).collect()
    }

    /// When something was first said of it that is so, and where in the journal.
    pub fn first_said(&self, name: &str, so: impl Fn(&Spoken) -> bool) -> Option<(usize, Timestamp, Spoken)> {
        self.journal.iter().enumerate().find_map(|(index, entry)| match &entry.event {
            Event::Write(change) if change.resource == "quorumclusters.windlass.dev" && change.name == name => {
                let spoken = Spoken::of(change.after.as_deref()?).filter(&so)?;
                Some((index, entry.at, spoken))
            }
            Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
        })
    }

    /// The last thing that was said of it.
    #[track_caller]
    pub fn last_said(&self, span: Range<usize>) -> Spoken {
        self.said(span).pop().expect("something was said")
    }

    /// What we wrote to what is not ours: StatefulSets, pods, budgets.
    pub fn touched(&self, span: Range<usize>) -> Vec<String> {
        let foreign = |change: &&Change| {
            matches!(change.resource.as_str(), "statefulsets.apps" | "pods" | "poddisruptionbudgets.policy")
        };
        self.our_writes(span).filter(foreign).map(|change| format!("{} {}", change.resource, change.name)).collect()
    }

    #[track_caller]
    pub fn touched_nothing(&self, span: Range<usize>) {
        assert_eq!(self.touched(span), Vec::<String>::new());
    }

    /// Nothing of the workload was written; evictions may have been let through again.
    #[track_caller]
    pub fn moved_nothing(&self, span: Range<usize>) {
        let moved: Vec<String> =
            self.touched(span).into_iter().filter(|what| !what.starts_with("poddisruptionbudgets")).collect();
        assert_eq!(moved, Vec::<String>::new());
    }

    /// Pods that were marked for deletion, by name.
    pub fn replaced(&self, span: Range<usize>) -> Vec<String> {
        let marked = |object: Option<&Value>| {
            object.is_some_and(|object| object.pointer("/metadata/deletionTimestamp").is_some())
        };
        let newly = |change: &&Change| {
            change.resource == "pods" && marked(change.after.as_deref()) && !marked(change.before.as_deref())
        };
        self.writes(span).filter(newly).map(|change| change.name.clone()).collect()
    }

    /// Pods that we deleted ourselves, by name.
    pub fn deleted_by_us(&self) -> Vec<String> {
        let marked = |object: Option<&Value>| {
            object.is_some_and(|object| object.pointer("/metadata/deletionTimestamp").is_some())
        };
        let ours = self.our_writes(0..self.journal.len()).filter(|change| change.resource == "pods");
        ours.filter(|change| {
            let gone = change.verb == windlass_sim::journal::Verb::Delete;
            (gone || marked(change.after.as_deref())) && !marked(change.before.as_deref())
        })
        .map(|change| change.name.clone())
        .collect()
    }

    /// The newest state of an object; none when it is gone or never was.
    pub fn newest(&self, resource: &str, name: &str) -> Option<&Value> {
        let all = 0..self.journal.len();
        let last = self.writes(all).filter(|change| change.resource == resource && change.name == name).last()?;
        last.after.as_deref().filter(|_| last.verb != windlass_sim::journal::Verb::Delete)
    }

    pub fn strategy(&self) -> Value {
        self.newest("statefulsets.apps", pd::NAME)
            .map(|set| set["spec"]["updateStrategy"].clone())
            .expect("the StatefulSet")
    }

    /// Events by reason: how many, and the notes.
    pub fn events(&self, span: Range<usize>) -> BTreeMap<String, Vec<String>> {
        let mut events = BTreeMap::<String, Vec<String>>::new();
        for event in self
            .our_writes(span)
            .filter(|change| change.resource.starts_with("events"))
            .filter_map(|change| change.after.as_deref())
        {
            let note = event["note"].as_str().or(event["message"].as_str()).unwrap_or_default();
            events.entry(event["reason"].as_str().unwrap_or_default().to_owned()).or_default().push(note.to_owned());
        }
        events
    }

    /// It ended Ready at this version, with nothing violated.
    #[track_caller]
    pub fn ended_ready_at(&self, version: &str) {
        self.was_safe();
        assert!(self.settled, "did not settle: {}", self.subject["status"]["conditions"]);
        let last = Spoken::of(&self.subject).expect("conditions");
        assert_eq!((last.ready.as_str(), last.reason.as_str()), ("True", "UpToDate"), "{}", last.message);
        assert_eq!((last.reconciling.as_str(), last.stalled.as_str()), ("False", "False"));
        assert_eq!(last.status["currentVersion"], version);
        assert_eq!(last.status["upgrade"], Value::Null);
        assert_eq!(last.status["observedGeneration"], self.subject["metadata"]["generation"]);
    }

    /// Nothing was violated, and nothing that the timeline asked for was refused.
    #[track_caller]
    pub fn was_safe(&self) {
        assert_eq!(self.verdict.violations, Vec::<String>::new());
        let notes = self.journal.iter().filter_map(|entry| match &entry.event {
            Event::Note(note) => Some(note),
            Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } => None,
        });
        let refused: Vec<&Note> = notes.filter(|note| note.is_refusal()).collect();
        assert_eq!(refused, Vec::<&Note>::new());
    }
}

/// Done by the timeline: a person's write, or a note of something that befell the cluster.
fn is_from_outside(event: &Event) -> bool {
    match event {
        Event::Write(change) => change.user == "user",
        Event::Note(note) => !note.process().is_some_and(is_ours),
        Event::Quorum(_) | Event::Verb { .. } => false,
    }
}
