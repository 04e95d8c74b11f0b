//! Judges a run from its journal: what truly happened, never what the operator believed.
//!
//! A violation is
//! - a write of ours that lets Kubernetes take a member down when the others were no majority, or when that member led;
//! - more than one member let go at once (C2);
//! - the leader's pod deleted by the StatefulSet controller under our permit;
//! - a pod deleted by it under a strategy that somebody else set, long enough ago for us to have held it once (H39);
//! - a pod that we delete ourselves although it leads, or the others are no majority, or before the template it is to come back from is
//!   written; and one that comes back from another template than the one that was written (H44);
//! - a pod that we delete although it is ready, unless that is how the set is upgraded (OnDelete); and there, a sound one while another
//!   is down because of us (C2, H21);
//! - a member that went to an older version without anybody having asked for that;
//! - a sound member let go while somebody else has locked the workload, or while a node under a member is cordoned;
//! - a template written, or an upgrade called done, before the Jobs of its hooks have completed;
//! - a template written, or where somebody else writes it, a sound pod deleted, although a snapshot is to be taken first and none was
//!   stored since the last upgrade ended (D2);
//! - a quorum that is called ready for minutes although a member is not well;
//! - a leader that is asked to hand over again and again, and stays (D4);
//! - a quorum lost to an eviction while we had a member down (H12), unless somebody had just taken their own budget away;
//! - a write of an operator after another one had settled its take-over (H1).
//!
//! Nobody sees the present. What a write is judged by is the truth within [`EVIDENCE`] before it: a write is wrong if it was wrong
//! all that time. A permit is used later than it is given: a leader that moves onto the permitted member less than [`REACTION`]
//! before Kubernetes deletes it, or while no operator was running, is counted as a race and not as a violation.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    closed::Closed,
    journal::{Change, Entry, Event, QuorumTruth, Verb},
    words::Words,
};

/// How old the truth may be that a write rests on: the operator's own limit, and the longest delay of a request under way.
pub const EVIDENCE: Duration = Duration::from_secs(15);
/// How long an operator has to take a permit back.
pub const REACTION: Duration = Duration::from_secs(10);

/// How long we have to hold what somebody else opened: a write of ours may be without an answer at that moment, the touches that settle it may
/// be, and then the hold itself.
pub const HOLD: Duration = Duration::from_secs(90);

/// How long it takes until somebody acts again after the acting operator is gone: the lease, the wait, the touch, a look around.
pub const TAKE_OVER: Duration = Duration::from_mins(1);

/// Who drains nodes, by evicting pods.
const DRAIN: &str = "kubectl-drain";

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What went wrong, with the time and the words for it.
    pub violations: Vec<String>,
    /// Permits that went bad too late for anybody to take them back.
    pub races: usize,
    /// How many states were judged.
    pub checked: usize,
    /// The smallest number of healthy members that any quorum had while it was being upgraded.
    pub min_healthy: Option<usize>,
    /// How often leadership changed hands while upgrading.
    pub leader_moves: usize,
    /// How often a leader's pod was deleted because of us.
    pub leader_restarts: usize,
    /// Pods that were deleted because of us, in order.
    pub restarts: Vec<String>,
    /// Our writes to the API, events and leases aside.
    pub writes: usize,
}

/// Judges a journal. `is_ours` tells our processes from everybody else by their names.
pub fn judge(journal: &[Entry], is_ours: impl Fn(&str) -> bool) -> Verdict {
    let mut judge = Judge {
        is_ours: &is_ours,
        verdict: Verdict::default(),
        sets: BTreeMap::new(),
        pods: BTreeMap::new(),
        away: Vec::new(),
        owner: None,
        closed: Closed::default(),
        words: Words::default(),
        managed: BTreeMap::new(),
        uncovered: BTreeMap::new(),
    };
    for entry in journal {
        judge.see(entry);
    }
    judge.verdict
}

type Name = (String, String);

struct Judge<'a> {
    is_ours: &'a dyn Fn(&str) -> bool,
    verdict: Verdict,
    sets: BTreeMap<Name, Set>,
    pods: BTreeMap<Name, Pod>,
    /// When which of our processes died, froze or thawed.
    away: Vec<(Timestamp, String)>,
    /// Who holds the custom resources, once its take-over has settled.
    owner: Option<(String, bool)>,
    closed: Closed,
    words: Words,
    /// Which set a QuorumCluster is about.
    managed: BTreeMap<Name, Name>,
    /// When somebody last removed or changed a budget of theirs, by namespace.
    uncovered: BTreeMap<String, Timestamp>,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
struct Set {
    object: Value,
    truths: Vec<(Timestamp, QuorumTruth)>,
    /// We have written to it and it has not come to rest since.
    upgrading: bool,
    /// When we last wrote the template.
    template_written: Option<Timestamp>,
    /// The images of the template before this one, and until when they stood.
    last_template: Option<(Timestamp, Vec<String>)>,
    /// What was asked for since all members last ran one version.
    wanted: Vec<String>,
    /// That version, where people asked to go back to it should anything go wrong.
    home: Option<String>,
    may_return: bool,
    /// The images that the template names were written by somebody else.
    foreign_images: bool,
    /// Whom the controller let go for a template that nobody asked us for, and who are not back yet.
    let_go_by_others: BTreeSet<String>,
    /// Somebody else writes the template.
    follows: bool,
    allow_downgrade: bool,
    accept_downtime: bool,
    snapshots: Snapshots,
    hooks: Hooks,
    /// When a member of a version first led since then.
    led: BTreeMap<String, Timestamp>,
    /// Members that are down because of us.
    down: Vec<String>,
    /// Pods that we deleted ourselves and that are not back.
    mended: Vec<String>,
    /// Since when somebody else's write lets pods go that were held.
    opened: Option<Timestamp>,
    /// We held them after such a write. It is not done twice.
    held_once: bool,
}

#[derive(Default)]
struct Snapshots {
    /// One is to be taken before an upgrade, and that was known before the present one began.
    wanted: bool,
    /// One was stored since the last upgrade ended.
    stored: bool,
}

/// Jobs that must have completed.
#[derive(Default)]
struct Hooks {
    /// So many before an upgrade begins, and that was known before the present one did.
    before: usize,
    /// And so many before it is done.
    after: usize,
    /// Those that have, since the last upgrade ended.
    completed: BTreeSet<String>,
}

#[derive(Default)]
struct Pod {
    object: Value,
    /// When a drain evicted it. A pod that somebody deletes by hand is no budget's business.
    evicted: Option<Timestamp>,
}

impl Judge<'_> {
    fn see(&mut self, entry: &Entry) {
        match &entry.event {
            Event::Write(change) => self.write(entry.at, change),
            Event::Quorum(truth) => self.truth(entry.at, truth),
            Event::Verb { user, pod, what, .. } => {
                if let Some(wrong) = self.words.verb(pod, what).filter(|_| (self.is_ours)(user)) {
                    self.violation(entry.at, &wrong);
                }
            }
            Event::Note(note) => {
                self.stored(note);
                let user = note.split(' ').next().unwrap_or_default();
                let away = note.contains("frozen") || note.contains("killed") || note.contains("thawed");
                if away && (self.is_ours)(user) {
                    self.away.push((entry.at, user.to_owned()));
                    self.words.is_away(entry.at);
                }
            }
        }
        if let Some(untrue) = self.words.untrue(entry.at) {
            self.violation(entry.at, &untrue);
        }
    }

    fn write(&mut self, at: Timestamp, change: &Change) {
        let name = (change.namespace.clone(), change.name.clone());
        let ours = (self.is_ours)(&change.user);
        self.closed.see(at, change);
        if ours && !matches!(change.resource.as_str(), "events" | "events.events.k8s.io" | "leases.coordination.k8s.io")
        {
            self.verdict.writes += 1;
            self.fenced(at, change);
        }
        match change.resource.as_str() {
            "statefulsets.apps" | "pods" | "quorumclusters.windlass.dev" => self.verdict.checked += 1,
            _ => {}
        }
        match change.resource.as_str() {
            "statefulsets.apps" => {
                let before = change.before.as_deref().cloned().unwrap_or_default();
                let after = if change.verb == Verb::Delete {
                    Value::Null
                } else {
                    change.after.as_deref().cloned().unwrap_or_default()
                };
                self.opened(at, &name, ours, &before, &after);
                if ours {
                    self.our_write(at, &name, &before, &after);
                } else if images(before.pointer("/spec/template/spec")) != images(after.pointer("/spec/template/spec"))
                {
                    let set = self.sets.entry(name.clone()).or_default();
                    set.wanted
                        .extend(images(after.pointer("/spec/template/spec")).iter().filter_map(|image| tag(image)));
                }
                let set = self.sets.entry(name).or_default();
                let template = |set: &Value| images(set.pointer("/spec/template/spec"));
                let old = template(&set.object);
                if old != template(&after) {
                    set.last_template = Some((at, old));
                    set.foreign_images = !ours;
                }
                set.object = after;
            }
            "pods" => self.pod_write(at, &name, change),
            "quorumclusters.windlass.dev" => self.wish(at, change),
            "jobs.batch" => self.job_write(change),
            "poddisruptionbudgets.policy" if !ours => {
                let spec =
                    |object: &Option<std::sync::Arc<Value>>| object.as_deref().map(|object| object["spec"].clone());
                if change.verb == Verb::Delete || spec(&change.before) != spec(&change.after) {
                    self.uncovered.insert(change.namespace.clone(), at);
                }
            }
            _ => {}
        }
    }

    /// A Job of a hook's may have completed.
    fn job_write(&mut self, change: &Change) {
        let Some(job) = change.after.as_deref() else { return };
        let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
        let complete = |condition: &Value| condition["type"] == "Complete" && condition["status"] == "True";
        let owner = &job["metadata"]["ownerReferences"][0];
        if !conditions.is_some_and(|conditions| conditions.iter().any(complete)) || owner["kind"] != "QuorumCluster" {
            return;
        }
        let owner = (change.namespace.clone(), owner["name"].as_str().unwrap_or_default().to_owned());
        if let Some(set) = self.managed.get(&owner).and_then(|set| self.sets.get_mut(set))
            && change.name.starts_with("windlass-hook-")
        {
            set.hooks.completed.insert(change.name.clone());
        }
    }

    /// After a take-over has settled, nobody else's write lands (H1).
    fn fenced(&mut self, at: Timestamp, change: &Change) {
        if change.resource == "quorumclusters.windlass.dev" {
            let election = change.after.as_deref().and_then(|after| after.pointer("/status/election"));
            let id = election.and_then(|election| election["id"].as_str()).unwrap_or_default();
            if id.split('/').any(|part| part == change.user) {
                self.owner = Some((change.user.clone(), election.is_some_and(|election| election["settled"] == true)));
                return;
            }
        }
        // An eviction that comes too late takes one from the budget before its preconditions are looked at, and ends nobody.
        let spec = |object: Option<&Value>| object.map(|object| object["spec"].clone());
        let counts_alone = change.resource == "poddisruptionbudgets.policy"
            && spec(change.before.as_deref()) == spec(change.after.as_deref())
            && change.before.is_some();
        if let Some((owner, true)) = &self.owner
            && *owner != change.user
            && !counts_alone
        {
            let text =
                format!("{} wrote {}/{} after {owner} had taken over", change.user, change.resource, change.name);
            self.violation(at, &text);
        }
    }

    /// A snapshot was truly taken and is where it should be.
    fn stored(&mut self, note: &str) {
        let place = note.strip_prefix("snapshot of ").and_then(|rest| rest.strip_suffix(" stored"));
        if let Some((namespace, workload)) = place.and_then(|place| place.split_once('/')) {
            self.sets.entry((namespace.to_owned(), workload.to_owned())).or_default().snapshots.stored = true;
        }
    }

    /// What people ask for.
    fn wish(&mut self, at: Timestamp, change: &Change) {
        self.words.see(change);
        let Some(spec) = change.after.as_deref().map(|after| &after["spec"]) else { return };
        let Some(workload) = spec.pointer("/workload/statefulSet").and_then(Value::as_str) else { return };
        let name = (change.namespace.clone(), workload.to_owned());
        self.managed.insert((change.namespace.clone(), change.name.clone()), name.clone());
        let set = self.sets.entry(name).or_default();
        let under_way = |object: Option<&Value>| {
            object.and_then(|object| object.pointer("/status/upgrade")).is_some_and(|upgrade| !upgrade.is_null())
        };
        let (before, after) = (under_way(change.before.as_deref()), under_way(change.after.as_deref()));
        if !before && !after {
            set.snapshots.wanted = spec.pointer("/backup/preUpgradeSnapshot") == Some(&Value::Bool(true));
            let hooks = spec.pointer("/gates/hooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let jobs = |when: &str| hooks.iter().filter(|hook| hook["when"] == when && !hook["job"].is_null()).count();
            (set.hooks.before, set.hooks.after) = (jobs("BeforeUpgrade"), jobs("AfterUpgrade"));
        }
        set.snapshots.stored &= !before || after;
        let mut unasked = false;
        if before && !after {
            let reverting = change.before.as_deref().and_then(|before| before.pointer("/status/upgrade/reverting"));
            let Hooks { before, after, completed } = std::mem::take(&mut set.hooks);
            let overrides = spec.pointer("/gates/overrides").and_then(Value::as_array).map(Vec::as_slice);
            let of_hooks = |one: &Value| one["gate"].as_str().is_some_and(|gate| gate.starts_with("Hook/"));
            let aside = overrides.is_some_and(|overrides| overrides.iter().any(of_hooks));
            unasked = completed.len() < before + after && reverting != Some(&Value::Bool(true)) && !aside;
            (set.hooks.before, set.hooks.after) = (before, after);
        }
        set.allow_downgrade = spec.pointer("/policy/allowDowngrade") == Some(&Value::Bool(true));
        set.accept_downtime = spec.pointer("/policy/acceptDowntime") == Some(&Value::Bool(true));
        set.follows = spec["trigger"] == "Template";
        set.may_return = !spec["requests"]["rollback"].is_null() || spec["onDeadline"] == "Revert";
        if let Some(version) = spec["version"].as_str() {
            let version = version.trim_start_matches('v').to_owned();
            if set.wanted.last() != Some(&version) {
                set.wanted.push(version);
            }
        }
        if unasked {
            self.violation(at, "the upgrade was called done before its hooks' Jobs had completed");
        }
    }

    /// Somebody else's write lets pods go that were held, or we hold them (H39). Whom Kubernetes replaces then it does not replace because of us.
    fn opened(&mut self, at: Timestamp, name: &Name, ours: bool, before: &Value, after: &Value) {
        let held = self.replaceable(name, before);
        let free = self.replaceable(name, after);
        let set = self.sets.entry(name.clone()).or_default();
        if ours {
            set.held_once |= set.opened.is_some() && free.len() < held.len();
            set.opened = set.opened.filter(|_| free.iter().any(|pod| held.contains(pod)));
        } else if set.upgrading && free.iter().any(|pod| !held.contains(pod)) {
            set.opened = set.opened.or(Some(at));
        } else if free.is_empty() {
            set.opened = None;
        }
    }

    /// A write of ours to a StatefulSet: whom does it let go that was held before?
    fn our_write(&mut self, at: Timestamp, name: &Name, before: &Value, after: &Value) {
        let held = self.replaceable(name, before);
        let freed: Vec<String> = self.replaceable(name, after).into_iter().filter(|pod| !held.contains(pod)).collect();
        let set = self.sets.entry(name.clone()).or_default();
        set.upgrading = true;
        if before.pointer("/spec/template") != after.pointer("/spec/template") {
            set.template_written = Some(at);
        }
        let follows = set.follows && before.pointer("/spec/template") != after.pointer("/spec/template");
        let hasty = set.template_written == Some(at) && set.snapshots.wanted && !set.snapshots.stored;
        let unasked = set.template_written == Some(at) && set.hooks.completed.len() < set.hooks.before;
        let down = set.down.clone();
        if unasked {
            self.violation(at, "the template was written before its hooks' Jobs had completed");
        }
        if follows {
            self.violation(at, "the template was written by us although somebody else writes it");
        }
        if hasty {
            self.violation(at, "the template was written without the snapshot that was to be taken first");
        }
        if let (Some(pod), Some(other)) = (freed.first(), held.first()) {
            self.violation(at, &format!("{pod} let go while the permit for {other} still stands"));
        }
        if freed.len() > 1 {
            self.violation(at, &format!("{} let go at once", freed.join(" and ")));
        }
        for pod in &freed {
            if let Some(other) = down.iter().find(|other| *other != pod) {
                self.violation(at, &format!("{pod} let go while {other} is still down because of us"));
            }
            let wrong = self.wrong_throughout(name, pod, at).or_else(|| self.closed_throughout(name, pod, at));
            if let Some(wrong) = wrong {
                self.violation(at, &format!("{pod} let go although {wrong}"));
            }
        }
    }

    /// What people closed before a sound member was let go. One that is broken may be mended all the same.
    fn closed_throughout(&self, name: &Name, pod: &str, at: Timestamp) -> Option<String> {
        let of_set = |(key, _): &(&Name, &Pod)| key.0 == name.0 && key.1.starts_with(&format!("{}-", name.1));
        let nodes =
            self.pods.iter().filter(of_set).filter_map(|(_, pod)| pod.object.pointer("/spec/nodeName")?.as_str());
        let conditions = self.pods.get(&(name.0.clone(), pod.to_owned()))?.object.pointer("/status/conditions")?;
        let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
        conditions.as_array()?.iter().any(ready).then(|| self.closed.against(name, nodes, at)).flatten()
    }

    /// Pods that the controller may replace under this spec: at or above the partition, and not of the template's image.
    fn replaceable(&self, name: &Name, set: &Value) -> Vec<String> {
        if set.pointer("/spec/updateStrategy/type") != Some(&Value::from("RollingUpdate")) {
            return Vec::new();
        }
        let number = |path: &str| set.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let (start, partition) =
            (number("/spec/ordinals/start"), number("/spec/updateStrategy/rollingUpdate/partition"));
        let wanted = images(set.pointer("/spec/template/spec"));
        let first = start + partition;
        (first..start + number("/spec/replicas"))
            .map(|ordinal| format!("{}-{ordinal}", name.1))
            .filter(|pod| {
                let pod = self.pods.get(&(name.0.clone(), pod.clone()));
                pod.is_some_and(|pod| pod.object != Value::Null && images(pod.object.get("spec")) != wanted)
            })
            .collect()
    }

    /// What was wrong with taking `pod` down, if it was wrong at every moment of the evidence.
    fn wrong_throughout(&self, name: &Name, pod: &str, at: Timestamp) -> Option<String> {
        let set = self.sets.get(name)?;
        let oldest = at - EVIDENCE;
        let mut last = None;
        for (index, (_, truth)) in set.truths.iter().enumerate() {
            let until = set.truths.get(index + 1).map_or(at, |(until, _)| *until);
            if until < oldest {
                continue;
            }
            last = Some(wrong(set, truth, pod)?);
        }
        last
    }

    fn pod_write(&mut self, at: Timestamp, name: &Name, change: &Change) {
        let marked = |object: Option<&Value>| {
            object.is_some_and(|object| object.pointer("/metadata/deletionTimestamp").is_some())
        };
        let newly_marked = marked(change.after.as_deref()) && !marked(change.before.as_deref());
        let gone_at_once = change.verb == Verb::Delete && !marked(change.before.as_deref());
        let pod = self.pods.entry(name.clone()).or_default();
        if change.verb == Verb::Create {
            pod.evicted = None;
            self.pod_is_back(at, name, change);
        }
        let pod = self.pods.entry(name.clone()).or_default();
        pod.object = if change.verb == Verb::Delete {
            Value::Null
        } else {
            change.after.as_deref().cloned().unwrap_or_default()
        };
        if !newly_marked && !gone_at_once {
            return;
        }
        if change.user == "statefulset-controller" {
            self.controller_deletes(at, name, change);
        } else if change.user == DRAIN {
            pod.evicted = Some(at);
        } else if (self.is_ours)(&change.user) {
            self.we_delete(at, name, change);
        }
    }

    /// We delete a pod: only when it comes back as another, and under a partition only a broken one (H44).
    fn we_delete(&mut self, at: Timestamp, pod: &Name, change: &Change) {
        let Some(before) = change.before.as_deref() else { return };
        let Some(owner) = before.pointer("/metadata/ownerReferences/0/name").and_then(Value::as_str) else { return };
        let name = (pod.0.clone(), owner.to_owned());
        let Some(set) = self.sets.get_mut(&name) else { return };
        let template = images(set.object.pointer("/spec/template/spec"));
        let on_delete = set.object.pointer("/spec/updateStrategy/type") == Some(&Value::from("OnDelete"));
        let member = set.truths.last().and_then(|(_, truth)| truth.members.iter().find(|member| member.pod == pod.1));
        let (sound, leads) = member.map_or((false, false), |member| (member.healthy, member.leader));
        let alone = set.object.pointer("/spec/replicas") == Some(&Value::from(1));
        let other = set.down.iter().find(|other| **other != pod.1).cloned();
        let images_now = images(before.get("spec"));
        // A pod can't be deleted on condition of its StatefulSet: what stood a moment ago is what could be known.
        let stood = set.last_template.as_ref().filter(|(until, _)| *until + EVIDENCE > at).map(|(_, images)| images);
        let in_vain = images_now == template;
        let never_of_use = in_vain && stood.is_none_or(|stood| *stood == images_now);
        set.upgrading = true;
        let to = template.iter().find_map(|image| tag(image)).unwrap_or_default();
        let led = set.led.iter().find(|(led, since)| older(&to, led) && **since + REACTION < at);
        let hasty = set.follows && sound && set.snapshots.wanted && !set.snapshots.stored;
        let backwards = led.filter(|_| set.follows && sound && !set.allow_downgrade).map(|(led, _)| led.clone());
        set.mended.push(pod.1.clone());
        set.down.push(pod.1.clone());
        self.verdict.restarts.push(pod.1.clone());
        if let Some(other) = other.filter(|_| on_delete && sound) {
            self.violation(at, &format!("{} deleted by us while {other} is still down because of us", pod.1));
        }
        if hasty {
            self.violation(at, &format!("{} deleted by us without the snapshot that was to be taken first", pod.1));
        }
        if let Some(led) = backwards {
            self.violation(at, &format!("{} deleted by us for the older {to} although {led} had led", pod.1));
        }
        let conditions = before.pointer("/status/conditions").and_then(Value::as_array);
        let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
        if !on_delete && conditions.is_some_and(|conditions| conditions.iter().any(ready)) {
            self.violation(at, &format!("{} deleted by us although it is ready", pod.1));
        }
        if never_of_use {
            self.violation(at, &format!("{} deleted by us before the template was mended", pod.1));
        } else if in_vain {
            self.verdict.races += 1;
        }
        if let Some(wrong) = self.wrong_throughout(&name, &pod.1, at) {
            self.violation(at, &format!("{} deleted by us although {wrong}", pod.1));
            self.verdict.leader_restarts += usize::from(leads && !alone);
        } else if leads && !alone {
            // It was elected after we had looked.
            self.verdict.races += 1;
        }
    }

    /// A pod that we deleted is made anew: from the template that stands.
    fn pod_is_back(&mut self, at: Timestamp, pod: &Name, change: &Change) {
        let Some(made) = change.after.as_deref() else { return };
        let Some(owner) = made.pointer("/metadata/ownerReferences/0/name").and_then(Value::as_str) else { return };
        let Some(set) = self.sets.get_mut(&(pod.0.clone(), owner.to_owned())) else { return };
        let ours = set.mended.contains(&pod.1);
        set.mended.retain(|mended| *mended != pod.1);
        let (wanted, made) = (images(set.object.pointer("/spec/template/spec")), images(made.get("spec")));
        if ours && wanted != made {
            let text = format!("{} was deleted by us and came back from {made:?}, not from {wanted:?}", pod.1);
            self.violation(at, &text);
        }
    }

    /// The StatefulSet controller deletes a pod: because of us, if it replaces it under a partition of ours.
    fn controller_deletes(&mut self, at: Timestamp, pod: &Name, change: &Change) {
        let owner = change
            .before
            .as_deref()
            .and_then(|pod| pod.pointer("/metadata/ownerReferences/0/name"))
            .and_then(Value::as_str);
        let Some(owner) = owner else { return };
        let phase = change.before.as_deref().and_then(|pod| pod.pointer("/status/phase")).and_then(Value::as_str);
        if matches!(phase, Some("Failed" | "Succeeded")) {
            // It ended by itself, and the controller only clears it away.
            return;
        }
        let name = (pod.0.clone(), owner.to_owned());
        let revision =
            change.before.as_deref().and_then(|pod| pod.pointer("/metadata/labels/controller-revision-hash"));
        let Some(set) = self.sets.get_mut(&name) else { return };
        // The controller deletes before it says in the status that their template is the newest.
        if set.upgrading && set.foreign_images && !set.follows {
            set.let_go_by_others.insert(pod.1.clone());
        }
        if !set.upgrading || revision == set.object.pointer("/status/updateRevision") {
            return;
        }
        if let Some(since) = set.opened {
            let truth = set.truths.last();
            let leads = truth.is_some_and(|(_, truth)| truth.members.iter().any(|one| one.pod == pod.1 && one.leader));
            let alone = set.object.pointer("/spec/replicas") == Some(&Value::from(1));
            let (in_time, held_once) = (at.duration_since(since).unsigned_abs() < HOLD, set.held_once);
            if in_time || held_once || self.was_absent(since, at) {
                self.verdict.races += 1;
                // Their doing, and still one that we could have led away from.
                self.verdict.leader_restarts += usize::from(leads && !alone && !in_time);
            } else {
                self.violation(at, &format!("{} deleted under somebody else's strategy that we did not hold", pod.1));
            }
            return;
        }
        set.down.push(pod.1.clone());
        self.verdict.restarts.push(pod.1.clone());
        let set = &self.sets[&name];
        let (now, since) = set.truths.last().map_or((None, at), |(since, truth)| (wrong(set, truth, &pod.1), *since));
        let leads = set
            .truths
            .last()
            .is_some_and(|(_, truth)| truth.members.iter().any(|member| member.pod == pod.1 && member.leader));
        if leads && set.object.pointer("/spec/replicas") != Some(&Value::from(1)) {
            self.verdict.leader_restarts += 1;
        }
        let Some(wrong_now) = now else { return };
        // Since when it has been wrong without a break.
        let mut began = since;
        for (since, truth) in set.truths.iter().rev() {
            if wrong(set, truth, &pod.1).is_none() {
                break;
            }
            began = *since;
        }
        if at.duration_since(began).unsigned_abs() < REACTION || self.was_absent(began, at) {
            self.verdict.races += 1;
            if leads {
                self.verdict.leader_restarts -= 1;
            }
        } else {
            self.violation(at, &format!("{} deleted because of us although {wrong_now}", pod.1));
        }
    }

    /// Whether nobody was there to act on what began then.
    fn was_absent(&self, began: Timestamp, at: Timestamp) -> bool {
        let owner = self.owner.as_ref().map(|(owner, _)| owner);
        self.away.iter().any(|(away, who)| {
            Some(who) == owner && *away >= began - REACTION && at.duration_since(*away).unsigned_abs() < TAKE_OVER
        })
    }

    fn truth(&mut self, at: Timestamp, truth: &QuorumTruth) {
        let name = (truth.namespace.clone(), truth.workload.clone());
        self.verdict.checked += 1;
        self.words.truth(at, truth);
        let mut violations = Vec::new();
        let set = self.sets.entry(name.clone()).or_default();
        let before = set.truths.last().map(|(_, before)| before.clone());
        for member in &truth.members {
            let old = before.as_ref().and_then(|before| before.members.iter().find(|old| old.pod == member.pod));
            if let Some(old) = old
                && older(&member.version, &old.version)
                && let Some(why) = unasked(set, &member.version, &old.version)
            {
                let home = set.home.as_deref() == Some(&plain(&member.version));
                if home && set.let_go_by_others.contains(&member.pod) {
                    // Somebody's template had it deleted before anybody could hold it, and held it comes back as all were before.
                    self.verdict.races += 1;
                } else {
                    let (from, to) = (&old.version, &member.version);
                    violations.push(format!("{} went back from {from} to {to}: {why}", member.pod));
                }
            }
            if old.is_some_and(|old| old.version != member.version) {
                set.let_go_by_others.remove(&member.pod);
            }
            if member.leader {
                set.led.entry(plain(&member.version)).or_insert(at);
            }
        }
        let healthy = truth.members.iter().filter(|member| member.healthy).count();
        if set.upgrading {
            let lowest = self.verdict.min_healthy.unwrap_or(usize::MAX).min(healthy);
            self.verdict.min_healthy = Some(lowest);
            let leader = |truth: &QuorumTruth| {
                truth.members.iter().find(|member| member.leader).map(|member| member.pod.clone())
            };
            let last_leader = set.truths.iter().rev().find_map(|(_, truth)| leader(truth));
            if let (Some(old), Some(new)) = (last_leader, leader(truth))
                && old != new
            {
                self.verdict.leader_moves += 1;
            }
        }
        set.down.retain(|pod| {
            truth.members.iter().any(|member| member.pod == *pod && !member.healthy) || !back(&self.pods, &name.0, pod)
        });
        if healthy <= truth.members.len() / 2
            && let Some(down) = set.down.first()
        {
            let evicted = truth.members.iter().filter(|member| !member.healthy && member.pod != *down).find(|member| {
                let pod = self.pods.get(&(name.0.clone(), member.pod.clone()));
                let freed = set.template_written;
                pod.and_then(|pod| pod.evicted).is_some_and(|evicted| freed.is_some_and(|freed| evicted > freed))
            });
            let at_once = |evicted: Timestamp| {
                let uncovered = self.uncovered.get(&name.0).filter(|uncovered| **uncovered <= evicted);
                uncovered.is_some_and(|uncovered| evicted.duration_since(*uncovered).unsigned_abs() < REACTION)
            };
            let too_soon = |pod: &str| {
                self.pods.get(&(name.0.clone(), pod.to_owned())).and_then(|pod| pod.evicted).is_some_and(at_once)
            };
            if evicted.is_some_and(|evicted| too_soon(&evicted.pod)) {
                // Nobody could have held it in time.
                self.verdict.races += 1;
            } else if let Some(evicted) = evicted
                && !set.accept_downtime
            {
                violations.push(format!(
                    "{} was evicted while {down} was down because of us, and the quorum was lost",
                    evicted.pod
                ));
            }
        }
        let uniform = truth.members.iter().all(|member| member.version == truth.members[0].version);
        if uniform && truth.members.iter().all(|member| member.healthy) && set.down.is_empty() {
            let last = set.wanted.pop();
            set.wanted.clear();
            set.wanted.extend(last.filter(|last| *last != plain(&truth.members[0].version)));
            set.held_once = false;
            set.home = Some(plain(&truth.members[0].version));
            let leader = truth.members.iter().find(|member| member.leader).map(|leader| plain(&leader.version));
            set.led.retain(|version, _| Some(version) == leader.as_ref());
        }
        set.truths.push((at, truth.clone()));
        for violation in violations {
            self.violation(at, &violation);
        }
    }

    fn violation(&mut self, at: Timestamp, text: &str) {
        self.verdict.violations.push(format!("{at} {text}"));
    }
}

/// The images of a pod's or a template's containers.
fn images(spec: Option<&Value>) -> Vec<String> {
    let containers = spec.and_then(|spec| spec["containers"].as_array()).cloned().unwrap_or_default();
    containers.iter().map(|container| container["image"].to_string()).collect()
}

/// What would be wrong with taking `pod` down in this state.
fn wrong(set: &Set, truth: &QuorumTruth, pod: &str) -> Option<String> {
    let members = truth.members.len();
    let needed = members / 2 + 1;
    let others = truth.members.iter().filter(|member| member.pod != pod && member.healthy).count();
    if others < needed && !(set.accept_downtime && members <= 2) {
        return Some(format!("only {others} of {members} others are healthy and {needed} are needed"));
    }
    if members > 1 && truth.members.iter().any(|member| member.pod == pod && member.leader) {
        return Some("it leads".to_owned());
    }
    None
}

/// Whether the pod that was deleted has a successor that runs.
fn back(pods: &BTreeMap<Name, Pod>, namespace: &str, pod: &str) -> bool {
    pods.get(&(namespace.to_owned(), pod.to_owned())).is_some_and(|pod| {
        pod.object != Value::Null
            && pod.object.pointer("/metadata/deletionTimestamp").is_none()
            && pod.object.pointer("/status/podIP").is_some()
    })
}

/// Why a step back was not asked for.
fn unasked(set: &Set, to: &str, from: &str) -> Option<String> {
    if set.allow_downgrade {
        return None;
    }
    let returns = set.may_return && set.home.as_deref() == Some(&plain(to));
    if !set.wanted.contains(&plain(to)) && !returns {
        return Some("nobody asked for that version".to_owned());
    }
    let led = set.led.get(&plain(from))?;
    let written = set.template_written?;
    (*led + REACTION < written).then(|| format!("{from} had led, and no downgrade was allowed"))
}

/// The version that an image's tag names.
fn tag(image: &str) -> Option<String> {
    let (_, tag) = image.trim_matches('"').rsplit_once(':')?;
    Some(plain(tag))
}

fn plain(version: &str) -> String {
    version.trim_start_matches('v').to_owned()
}

fn older(one: &str, other: &str) -> bool {
    let numbers = |text: &str| {
        plain(text).split(['.', '-', '+']).map(|part| part.parse::<u64>().unwrap_or(0)).collect::<Vec<_>>()
    };
    numbers(one) < numbers(other)
}
