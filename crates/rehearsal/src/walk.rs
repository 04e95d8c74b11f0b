//! Random walks: a seed decides the system, the size of the quorum, what people do, what breaks and when. Nothing may be violated, and once
//! everything is mended the upgrade must come to its end.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_sim::{
    journal::Event,
    rng::Rng,
    scenario::{Action, Moment, Subject, When},
    world::{BadAnswer, ImageBehaviour},
};

use crate::{
    crash, odd, operator, pool,
    setting::{ETCD, EXECUTOR, HTTP, OPENBAO, PD, Setting, after, back_up, follow},
    trial::{self, Ending, Outcome, Scenario},
};

const NODES: u64 = 3;

/// Every fifth seed is OpenBao's, and of the others every other etcd's, of which one in four describes it.
fn setting(seed: u64) -> Setting {
    match (seed % 5, seed % 2) {
        (4, _) => OPENBAO,
        (_, 0) => PD,
        (2, _) => HTTP,
        (_, _) => ETCD,
    }
}

/// A seed's scenario.
pub fn scenario(seed: u64) -> Scenario {
    let setting = setting(seed);
    let mut rng = Rng::new(seed).fork("walk");
    let members = *rng.pick(&[3, 3, 3, 3, 5, 5, 4, 7, 2, 1]).unwrap_or(&3);
    let (from, to) = *rng.pick(&[(0, 1), (1, 2), (1, 3), (0, 2), (2, 2), (2, 1)]).unwrap_or(&(1, 2));
    let operators = if rng.one_in(3) { 1 } else { 2 };
    let way = Way::of(seed);
    let mut walk = Walk {
        setting,
        rng,
        members,
        operators,
        from,
        to,
        way,
        timeline: Vec::new(),
        mends: Vec::new(),
        allowed: false,
        gives_up: false,
        is_set_back: false,
        snapshots: false,
        authenticated: false,
        odd_neighbour: None,
        set_beside: false,
    };
    for _ in 0..walk.rng.below(9) {
        walk.step();
    }
    walk.gates(Rng::new(seed).fork("gates"));
    walk.requests(Rng::new(seed).fork("requests"));
    walk.snapshots(Rng::new(seed).fork("snapshots"));
    walk.clings(Rng::new(seed).fork("clings"));
    walk.busy(Rng::new(seed).fork("busy"));
    walk.two_are_sick(Rng::new(seed).fork("sick"));
    walk.authentication(Rng::new(seed).fork("authentication"));
    walk.learners(Rng::new(seed).fork("learners"));
    walk.oddities(Rng::new(seed).fork("oddities"));
    walk.budgets(Rng::new(seed).fork("budgets"));
    walk.git(Rng::new(seed).fork("git"));
    walk.mend();
    walk.grow(Rng::new(seed).fork("scale"));
    let mut objects = setting.objects(members, setting.versions[from], setting.versions[to]);
    if walk.authenticated {
        sign_in(&mut objects, setting.namespace);
    }
    if walk.rng.one_in(4) {
        for object in &mut objects {
            if object["kind"] == "StatefulSet" {
                object["spec"]["podManagementPolicy"] = json!("Parallel");
            }
        }
    }
    let mut minding = Rng::new(seed).fork("min-ready");
    if minding.one_in(8) {
        for set in objects.iter_mut().filter(|object| object["kind"] == "StatefulSet") {
            set["spec"]["minReadySeconds"] = json!(1 + minding.below(20));
        }
    }
    if walk.set_beside {
        objects.extend(beside(setting.namespace));
    }
    if let Some(odd) = walk.odd_neighbour.take() {
        // Before the others: it is the older one.
        let last = objects.len().saturating_sub(1);
        objects.insert(last, odd);
    }
    if walk.snapshots {
        back_up(&mut objects, "2m");
    }
    way.shape(&mut objects);
    if way == Way::Template {
        walk.timeline.insert(0, after(Duration::from_millis(500), walk.ask(to)));
    }
    let faults = !walk.rng.one_in(3);
    // Another version half way makes another upgrade.
    let harmless = |moment: &Moment| {
        let Action::Patch { patch, .. } = &moment.action else { return false };
        patch["spec"]["version"].is_null() && patch["spec"]["requests"].is_null()
    };
    let undisturbed = !faults && walk.timeline.iter().all(harmless);
    Scenario {
        seed,
        objects,
        operators,
        faults,
        timeline: walk.timeline.clone(),
        subject: setting.subject(),
        ending: walk.ending(),
        // One is enough for one upgrade that nothing disturbs where the leader goes last, two are otherwise; and where nobody can say
        // who leads next, or every member that is down ends the quorum, it takes as many as it takes.
        max_leader_moves: (undisturbed && walk.timeline.len() <= 1 && setting != OPENBAO && members > 2)
            .then_some(if way.is_leader_last() { 1 } else { 2 }),
        limit: Duration::from_hours(1),
    }
}

/// How the set is upgraded: its own strategy, and the order that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// RollingUpdate, and nobody asks for an order.
    Partition,
    /// OnDelete, and nobody asks for an order.
    OnDelete,
    /// RollingUpdate, and LeaderLast is asked for.
    ToOnDelete,
    /// OnDelete, and ReverseOrdinal is asked for.
    ToPartition,
    /// OnDelete, and somebody else writes the template.
    Template,
}

impl Way {
    /// Every third seed or so has to do with OnDelete.
    fn of(seed: u64) -> Self {
        if Rng::new(seed).fork("trigger").one_in(8) {
            return Self::Template;
        }
        match Rng::new(seed).fork("order").below(10) {
            0 | 1 => Self::OnDelete,
            2 => Self::ToOnDelete,
            3 => Self::ToPartition,
            _ => Self::Partition,
        }
    }

    fn is_leader_last(self) -> bool {
        matches!(self, Self::OnDelete | Self::ToOnDelete | Self::Template)
    }

    fn shape(self, objects: &mut [Value]) {
        let (on_delete, order) = match self {
            Self::Partition => return,
            Self::OnDelete | Self::Template => (true, None),
            Self::ToOnDelete => (false, Some("LeaderLast")),
            Self::ToPartition => (true, Some("ReverseOrdinal")),
        };
        if self == Self::Template {
            follow(objects);
        }
        for object in objects {
            if object["kind"] == "StatefulSet" && on_delete {
                object["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
            }
            if object["kind"] == "QuorumCluster"
                && let Some(order) = order
            {
                object["spec"]["updateStrategy"] = json!({"rollingUpdate": {"order": order}});
            }
        }
    }
}

#[expect(clippy::struct_excessive_bools, reason = "situations that have nothing to do with each other")]
struct Walk {
    setting: Setting,
    rng: Rng,
    members: u32,
    operators: u32,
    from: usize,
    to: usize,
    way: Way,
    timeline: Vec<Moment>,
    /// What undoes what was done.
    mends: Vec<Action>,
    /// In the end somebody allows downgrades and downtime.
    allowed: bool,
    /// Somebody gives an upgrade up.
    gives_up: bool,
    /// Somebody's loop sets things back.
    is_set_back: bool,
    /// A snapshot is taken before every upgrade.
    snapshots: bool,
    /// A user is named to ask in the name of.
    authenticated: bool,
    /// A QuorumCluster that can't be read and stands beside this one.
    odd_neighbour: Option<Value>,
    /// Another set in the namespace, whose pods a budget may cover as well.
    set_beside: bool,
}

impl Walk {
    /// Somebody asks for a version, wherever they ask.
    fn ask(&self, which: usize) -> Action {
        let version = self.setting.versions[which];
        match self.way {
            Way::Template => self.setting.edit(version),
            Way::Partition | Way::OnDelete | Way::ToOnDelete | Way::ToPartition => {
                self.setting.spec(json!({ "version": version }))
            }
        }
    }

    /// In a quarter of the seeds somebody stops an upgrade, takes it back or tries it again, or wants it to go back by itself.
    fn requests(&mut self, mut rng: Rng) {
        if !rng.one_in(4) || self.way == Way::Template {
            return;
        }
        self.gives_up = true;
        for number in 0..=rng.below(3) {
            let ask = |request: &str| self.setting.spec(json!({"requests": {request: format!("{request}-{number}")}}));
            let action = match rng.below(5) {
                0 => ask("abort"),
                1 | 2 => ask("rollback"),
                3 => ask("retry"),
                _ => self.setting.spec(json!({"onDeadline": "RollBack"})),
            };
            let place = usize::try_from(rng.below(self.timeline.len() as u64 + 1)).unwrap_or(0);
            let soon = rng.between(Duration::from_millis(10), Duration::from_secs(40));
            self.timeline.insert(place, after(soon, action));
        }
    }

    /// The controllers stand still, a permit is given, and then something changes: the permit must be taken back before they move.
    fn trap(&mut self) {
        let permits = self.timeline.iter().filter(|moment| matches!(moment.when, When::Permitted(_))).count();
        let place = self.setting.pod(u32::try_from(self.rng.below(u64::from(self.members))).unwrap_or(0));
        let sting = match self.rng.below(4) {
            0 => Action::Crash(place),
            1 => self.setting.spec(json!({"paused": true})),
            _ => Action::Elect(place),
        };
        let hand_over = self.rng.between(Duration::from_millis(1), Duration::from_secs(9));
        self.timeline.push(after(hand_over, Action::FreezeControllers(Duration::from_mins(2))));
        self.timeline.push(Moment { when: When::Permitted(permits + 1), action: sting });
        self.mends.push(self.setting.spec(json!({"paused": false})));
    }

    /// An image is broken for a while: until its registry, its Secret or its bug is mended, or until somebody asks for another.
    fn broken_image(&mut self) {
        let which = if self.rng.one_in(4) { usize::try_from(self.rng.below(4)).unwrap_or(0) } else { self.to };
        let image = self.setting.image(self.setting.versions[which]);
        let how = [
            ImageBehaviour::CannotPull,
            ImageBehaviour::Misconfigured,
            ImageBehaviour::Crashes,
            ImageBehaviour::OutOfMemory,
            ImageBehaviour::NeverReady,
        ];
        let how = self.rng.pick(&how).copied().unwrap_or(ImageBehaviour::Crashes);
        let soon = self.rng.between(Duration::from_millis(50), Duration::from_secs(10));
        self.timeline.push(after(soon, Action::Image(image.clone(), how)));
        if !self.rng.one_in(3) {
            let other = if self.rng.one_in(2) { self.from } else { usize::try_from(self.rng.below(4)).unwrap_or(0) };
            let noticed = self.rng.between(Duration::from_secs(5), Duration::from_secs(90));
            let asked = self.ask(other);
            self.timeline.push(after(noticed, asked));
        }
        self.mends.push(Action::Image(image, ImageBehaviour::Works));
    }

    fn step(&mut self) {
        if self.rng.one_in(12) && !self.way.is_leader_last() {
            return self.trap();
        }
        if self.rng.one_in(8) {
            return self.broken_image();
        }
        let when = match self.rng.below(6) {
            0 => When::Replaced(1 + usize::try_from(self.rng.below(u64::from(self.members))).unwrap_or(0)),
            // No permit is ever given under OnDelete.
            1 | 2 if self.way.is_leader_last() => {
                When::Replaced(1 + usize::try_from(self.rng.below(u64::from(self.members))).unwrap_or(0))
            }
            1 | 2 => When::Permitted(1 + usize::try_from(self.rng.below(u64::from(self.members))).unwrap_or(0)),
            3 => When::After(self.rng.between(Duration::from_millis(50), Duration::from_secs(2))),
            _ => When::After(self.rng.between(Duration::from_secs(1), Duration::from_secs(40))),
        };
        let place = self.setting.pod(u32::try_from(self.rng.below(u64::from(self.members))).unwrap_or(0));
        let short = self.rng.between(Duration::from_secs(1), Duration::from_secs(40));
        let node = format!("node-{}", self.rng.below(NODES));
        let (action, mend) = match self.rng.below(18) {
            0 | 1 => {
                let any = usize::try_from(self.rng.below(4)).unwrap_or(0);
                (self.ask(any), None)
            }
            2 | 3 => (self.ask(self.from), None),
            4 => (self.ask(self.to), None),
            5 => (self.setting.spec(json!({"paused": true})), Some(self.setting.spec(json!({"paused": false})))),
            6 if self.rng.one_in(2) => (Action::Pressure(place), None),
            6 => (Action::Crash(place), None),
            7 => {
                let target = Subject { resource: "pods".into(), namespace: place.namespace, name: place.pod };
                (Action::Delete(target), None)
            }
            8 => (Action::Hang(place, short), None),
            9 => {
                let how = [
                    BadAnswer::Garbage,
                    BadAnswer::Status500,
                    BadAnswer::Nothing,
                    BadAnswer::Refused,
                    BadAnswer::Empty,
                ];
                (Action::Answers(place.clone(), self.rng.pick(&how).copied()), Some(Action::Answers(place, None)))
            }
            10 => (Action::Node { name: node.clone(), up: false }, Some(Action::Node { name: node, up: true })),
            11 | 12 => (Action::Drain(node.clone()), Some(Action::Uncordon(node))),
            13 => (Action::FreezeControllers(short), None),
            14 => (Action::Elect(place), None),
            // The others know of no such wish.
            15 if self.setting != PD => (Action::Elect(place), None),
            15 => (Action::Priority(place.clone(), 10), Some(Action::Priority(place, 0))),
            16 => {
                let trouble = [Action::DropWatches, Action::Compact, Action::StillWatches];
                (self.rng.pick(&trouble).cloned().unwrap_or(Action::DropWatches), None)
            }
            _ => (self.operator_trouble(), None),
        };
        self.timeline.push(Moment { when, action });
        if let Some(mend) = mend {
            if self.rng.one_in(2) {
                self.timeline.push(after(short, mend));
            } else {
                self.mends.push(mend);
            }
        }
    }

    /// In a third of the seeds gates close, and open again at the end at the latest. Their chances are their own, so that the other
    /// seeds walk as if there were none.
    fn gates(&mut self, mut rng: Rng) {
        if !rng.one_in(3) {
            return;
        }
        let lock = |by: Value| json!({"metadata": {"annotations": {"windlass.dev/locked-by": by}}});
        for number in 0..=rng.below(3) {
            let target = if rng.one_in(2) { self.setting.subject() } else { self.setting.workload() };
            let patch = |patch| Action::Patch { target: target.clone(), patch };
            let (close, open) = match rng.below(8) {
                0 => (patch(lock(json!("a restore"))), patch(lock(json!(null)))),
                // Every other minute.
                1 | 2 => (window(&self.setting, "*/2 * * * *"), self.setting.spec(json!({"gates": {"windows": []}}))),
                3 => (window(&self.setting, "0 0 29 2 *"), self.setting.spec(json!({"gates": {"windows": []}}))),
                4 => (
                    self.setting.spec(json!({"upgrade": {"soak": format!("{}s", rng.below(40))}})),
                    self.setting.spec(json!({"upgrade": {"soak": "0s"}})),
                ),
                5 => (
                    self.setting.spec(json!({"gates": {"approval": {"mode": "BeforeUpgrade"}}})),
                    self.setting.spec(json!({"requests": {"approve": format!("approved-{number}")}})),
                ),
                6 => {
                    let name = format!("freeze-{number}");
                    let freeze = Subject { resource: "configmaps".into(), namespace: target.namespace.clone(), name };
                    let check = json!({
                        "name": "no-freeze", "cel": "objects.size() == 0",
                        "objects": {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "freeze=yes"},
                    });
                    let place = usize::try_from(rng.below(self.timeline.len() as u64 + 1)).unwrap_or(0);
                    let checked = self.setting.spec(json!({"gates": {"checks": [check]}}));
                    self.timeline.insert(place, after(rng.between(Duration::ZERO, Duration::from_secs(5)), checked));
                    let metadata = json!({
                        "name": freeze.name, "namespace": freeze.namespace, "labels": {"freeze": "yes"},
                    });
                    let close = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
                    (Action::Create(close), Action::Delete(freeze))
                }
                _ => (
                    self.setting.spec(json!({"gates": {"approval": {"mode": "BeforeEachHandOver"}}})),
                    self.setting.spec(json!({"requests": {"approve": format!("approved-{number}")}})),
                ),
            };
            let place = usize::try_from(rng.below(self.timeline.len() as u64 + 1)).unwrap_or(0);
            let soon = rng.between(Duration::from_millis(10), Duration::from_secs(20));
            self.timeline.insert(place, after(soon, close));
            let later = rng.between(Duration::from_secs(1), Duration::from_mins(3));
            if rng.one_in(2) {
                self.timeline.insert(place + 1, after(later, open));
            } else {
                self.mends.push(open);
            }
        }
        self.mends.push(self.setting.spec(json!({"gates": {"approval": {"mode": "None"}}})));
    }

    /// In a quarter of the seeds the pods have a budget of somebody else's, of these pods alone or of more, and nodes are emptied: by evictions
    /// without a cordon, and by an autoscaler that says so with a taint. In the end the budget goes: some of them can't be kept (H12).
    fn budgets(&mut self, mut rng: Rng) {
        if !rng.one_in(4) {
            return;
        }
        let Setting { namespace, name, .. } = self.setting;
        let selector = match rng.below(4) {
            0 => json!({}),
            1 => json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
            _ => json!({"matchLabels": {"app": name}}),
        };
        // Where the budget covers others, too, there is somebody else.
        self.set_beside = selector.get("matchLabels").is_none() && rng.one_in(2);
        let spec = match rng.below(4) {
            0 => json!({"minAvailable": self.members / 2 + 1, "selector": selector}),
            1 => json!({"maxUnavailable": 0, "selector": selector}),
            2 => json!({"maxUnavailable": "34%", "selector": selector}),
            _ => json!({"maxUnavailable": 1, "selector": selector}),
        };
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "theirs", "namespace": namespace}, "spec": spec,
        });
        let soon = rng.between(Duration::ZERO, Duration::from_secs(30));
        let first = if rng.one_in(2) { 0 } else { rng.below(self.timeline.len() as u64 + 1) };
        self.timeline.insert(usize::try_from(first).unwrap_or(0), after(soon, Action::Create(budget)));
        self.mends.push(Action::Delete(Subject {
            resource: "poddisruptionbudgets.policy".into(),
            namespace: namespace.into(),
            name: "theirs".into(),
        }));
        for _ in 0..=rng.below(3) {
            let name = format!("node-{}", rng.below(NODES));
            let pause = rng.between(Duration::from_millis(50), Duration::from_secs(30));
            let mut doings = vec![after(pause, Action::Empty(name.clone()))];
            if rng.one_in(2) {
                let target = Subject { resource: "nodes".into(), namespace: String::new(), name };
                let tainted = |taints: Value| Action::Patch {
                    target: target.clone(),
                    patch: json!({"spec": {"taints": taints}}),
                };
                let taint = json!([{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule", "value": "1"}]);
                let ahead = rng.between(Duration::ZERO, Duration::from_secs(2));
                doings.insert(0, after(ahead, tainted(taint)));
                self.mends.push(tainted(Value::Null));
            }
            let place = usize::try_from(rng.below(self.timeline.len() as u64 + 1)).unwrap_or(0);
            self.timeline.splice(place..place, doings);
        }
    }

    /// In a sixth of the seeds where the template is ours, somebody's loop sets image or partition back to what they were, a few times in a row,
    /// by server-side apply or otherwise. In the end it is told not to, and a person goes on or goes back (H39).
    fn git(&mut self, mut rng: Rng) {
        if self.way == Way::Template || !rng.one_in(6) {
            return;
        }
        let (name, image) = (self.setting.name, self.setting.image(self.setting.versions[self.from]));
        let rolls = matches!(self.way, Way::Partition | Way::ToOnDelete);
        let part = if rolls && !rng.one_in(3) {
            json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}})
        } else {
            json!({"template": {"spec": {"containers": [{"name": name, "image": image}]}}})
        };
        let target = self.setting.workload();
        let applies = rng.one_in(2);
        let write = if applies || part["template"].is_object() {
            let manager = if applies { "argocd-controller" } else { "deployer" };
            let part = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": part});
            Action::Apply { target, manager: manager.into(), part }
        } else {
            Action::Patch { target, patch: json!({ "spec": part }) }
        };
        let when = match rng.below(3) {
            0 => When::After(rng.between(Duration::ZERO, Duration::from_secs(30))),
            _ => When::Replaced(1 + usize::try_from(rng.below(u64::from(self.members))).unwrap_or(0)),
        };
        let mut loops = vec![Moment { when, action: write.clone() }];
        for _ in 0..rng.below(5) {
            loops.push(after(rng.between(Duration::from_millis(50), Duration::from_secs(5)), write.clone()));
        }
        let place = usize::try_from(rng.below(self.timeline.len() as u64 + 1)).unwrap_or(0);
        self.timeline.splice(place..place, loops);
        self.is_set_back = true;
        self.mends.push(self.setting.spec(json!({"policy": {"acceptOwners": ["argocd-controller", "deployer"]}})));
        self.mends.push(self.setting.spec(json!({"requests": {"resume": "git-is-silent"}})));
        self.mends.push(self.setting.spec(json!({"requests": {"rollback": "git-is-silent"}})));
        self.gives_up = true;
    }

    /// In a third of the seeds whose system gives snapshots one is taken before every upgrade, and half of the time its Jobs fail, are
    /// late, or are not heard of for a while. A person tries again when all is mended.
    fn snapshots(&mut self, mut rng: Rng) {
        if !(self.setting == ETCD || self.setting == OPENBAO) || !rng.one_in(3) {
            return;
        }
        self.snapshots = true;
        let broken = |how| Action::Image(EXECUTOR.into(), how);
        let works = broken(ImageBehaviour::Works);
        for _ in 0..rng.below(3) {
            let how = [
                // For a while: slow. For long: past its deadline.
                ImageBehaviour::CannotPull,
                ImageBehaviour::NeverReady,
                ImageBehaviour::Crashes,
                ImageBehaviour::Mute,
            ];
            let how = rng.pick(&how).copied().unwrap_or(ImageBehaviour::Crashes);
            // Often from the very beginning, for the first upgrade begins at once.
            let place = if rng.one_in(2) { 0 } else { rng.below(self.timeline.len() as u64 + 1) };
            let place = usize::try_from(place).unwrap_or(0);
            let soon = rng.between(Duration::ZERO, Duration::from_secs(5));
            self.timeline.insert(place, after(soon, broken(how)));
            if rng.one_in(2) {
                let later = rng.between(Duration::from_secs(1), Duration::from_mins(4));
                self.timeline.insert(place + 1, after(later, works.clone()));
            }
            if rng.one_in(2) {
                let resume = self.setting.spec(json!({"requests": {"resume": format!("again-{}", rng.below(100))}}));
                let last = self.timeline.len();
                self.timeline.insert(last, after(rng.between(Duration::from_secs(1), Duration::from_mins(3)), resume));
            }
        }
        self.mends.push(works);
    }

    /// In an eighth of the seeds whoever leads does not hand over for a while, whatever it is asked. A person tries again at the end.
    fn clings(&mut self, mut rng: Rng) {
        if !rng.one_in(8) {
            return;
        }
        let clings = |yes| Action::Cling(self.setting.workload(), yes);
        let place = usize::try_from(rng.below(self.timeline.len() as u64 + 1)).unwrap_or(0);
        let soon = rng.between(Duration::ZERO, Duration::from_secs(20));
        let later = rng.between(Duration::from_secs(10), Duration::from_mins(8));
        self.timeline.insert(place, after(soon, clings(true)));
        self.timeline.insert(place + 1, after(later, clings(false)));
        self.gives_up = true;
    }

    /// In a sixth of the seeds so much is written that every follower is behind at every look.
    fn busy(&mut self, mut rng: Rng) {
        if !rng.one_in(6) {
            return;
        }
        // Above two hundred OpenBao's own autopilot calls its followers unhealthy, for it hears of them every five seconds.
        let most = if self.setting == OPENBAO { 180 } else { 4_000 };
        let busy = Action::Busy(self.setting.workload(), most - rng.below(most / 2));
        let place = if rng.one_in(2) { 0 } else { rng.below(self.timeline.len() as u64 + 1) };
        let place = usize::try_from(place).unwrap_or(0);
        self.timeline.insert(place, after(rng.between(Duration::ZERO, Duration::from_secs(20)), busy));
    }

    /// In an eighth of the seeds one member is behind while another is worse, often when all was done already.
    fn two_are_sick(&mut self, mut rng: Rng) {
        if self.members < 3 || !rng.one_in(8) {
            return;
        }
        let behind = u32::try_from(rng.below(u64::from(self.members))).unwrap_or(0);
        let other = 1 + u32::try_from(rng.below(u64::from(self.members) - 1)).unwrap_or(0);
        let worse = self.setting.pod((behind + other) % self.members);
        let behind = self.setting.pod(behind);
        let rests = rng.between(Duration::from_secs(1), Duration::from_mins(6));
        self.timeline.push(after(rests, Action::Starve(behind.clone(), true)));
        if self.setting == OPENBAO {
            let unseals = |itself| Action::AutoUnseal(self.setting.workload(), itself);
            self.timeline.push(after(Duration::from_secs(10), unseals(false)));
            self.timeline.push(after(Duration::ZERO, Action::Crash(worse.clone())));
            self.timeline.push(after(Duration::from_mins(6), unseals(true)));
            self.timeline.push(after(Duration::ZERO, Action::Unseal(worse)));
        } else {
            self.timeline.push(after(Duration::from_secs(10), Action::Hang(worse, Duration::from_mins(6))));
            self.timeline.push(after(Duration::from_mins(6), Action::DropWatches));
        }
        self.timeline.push(after(Duration::ZERO, Action::Starve(behind, false)));
    }

    /// In a quarter of etcd's seeds its authentication is enabled, at the beginning or later, and now and then the password that we know is
    /// wrong for a while, or it is disabled again.
    fn authentication(&mut self, mut rng: Rng) {
        if self.setting != ETCD || !rng.one_in(4) {
            return;
        }
        self.authenticated = true;
        let whom = self.setting.pod(u32::try_from(rng.below(u64::from(self.members))).unwrap_or(0));
        let tell = |path: &str, body| Action::Tell { whom: whom.clone(), path: format!("/v3/auth/{path}"), body };
        let users = [
            ("user/add", json!({"name": "root", "password": PASSWORD.0})),
            ("user/grant", json!({"user": "root", "role": "root"})),
            ("enable", json!({})),
        ];
        let place = usize::try_from(rng.below(self.timeline.len() as u64 + 1)).unwrap_or(0);
        for (number, (path, body)) in users.into_iter().enumerate() {
            let soon = rng.between(Duration::ZERO, Duration::from_secs(10));
            self.timeline.insert(place + number, after(soon, tell(path, body)));
        }
        let secret =
            Subject { resource: "secrets".into(), namespace: self.setting.namespace.into(), name: USER.into() };
        let is = |password: &str| {
            let patch = json!({"data": {"password": password}});
            Action::Patch { target: secret.clone(), patch }
        };
        let later = rng.between(Duration::from_secs(1), Duration::from_mins(8));
        match rng.below(4) {
            0 => {
                self.timeline.push(after(later, is("d3Jvbmc=")));
                self.mends.push(is(PASSWORD.1));
            }
            1 => self.timeline.push(after(later, tell("disable", json!({})))),
            _ => {}
        }
    }

    /// In a sixth of etcd's seeds somebody adds a learner that stays, and says so then or in the end.
    fn learners(&mut self, mut rng: Rng) {
        // Who shows no token may not add anybody.
        if self.setting != ETCD || self.authenticated || !rng.one_in(6) {
            return;
        }
        let whom = self.setting.pod(u32::try_from(rng.below(u64::from(self.members))).unwrap_or(0));
        let body = json!({"peerURLs": ["http://mirror-0.mirror.registry.svc:2380"], "isLearner": true});
        let add = Action::Tell { whom, path: "/v3/cluster/member/add".into(), body };
        let place = usize::try_from(rng.below(self.timeline.len() as u64 + 1)).unwrap_or(0);
        self.timeline.insert(place, after(rng.between(Duration::ZERO, Duration::from_secs(20)), add));
        let stays = self.setting.spec(json!({"policy": {"acceptNonVoters": true}}));
        if rng.one_in(2) {
            self.timeline.insert(place + 1, after(rng.between(Duration::ZERO, Duration::from_mins(2)), stays));
        } else {
            self.mends.push(stays);
        }
    }

    /// In a tenth of PD's seeds the set is scaled up in the end, at rest or wherever it stands.
    fn grow(&mut self, mut rng: Rng) {
        if self.setting != PD || self.members < 3 || !rng.one_in(10) {
            return;
        }
        let patch = json!({"spec": {"replicas": self.members + 1}});
        let grown = Action::Patch { target: self.setting.workload(), patch };
        self.timeline.push(after(rng.between(Duration::from_mins(2), Duration::from_mins(20)), grown));
    }

    /// In a sixth of the seeds there is something that the API server takes and nobody can read: in the spec, in the status, or beside it.
    fn oddities(&mut self, mut rng: Rng) {
        if !rng.one_in(6) {
            return;
        }
        self.odd_neighbour = rng.one_in(2).then(|| {
            let mut odd = self.setting.quorum_cluster("odd", self.setting.versions[self.to]);
            odd["spec"]["workload"]["statefulSet"] = json!("another");
            odd["spec"]["gates"] = odd::gates("Soak");
            odd
        });
        let status =
            |status: Value| Action::PatchStatus { target: self.setting.subject(), patch: json!({ "status": status }) };
        let upgrade = |at: &str| status(json!({"upgrade": {"startedAt": at}}));
        let (odd, mend) = match rng.below(5) {
            4 => {
                let patch = json!({"metadata": {"managedFields": odd::managed_fields("windlass.dev/v1alpha1")}});
                (Action::Patch { target: self.setting.subject(), patch }, None)
            }
            0 => (status(json!({"operator": {"since": odd::TIME}})), None),
            // Refused where none is under way.
            1 => (upgrade(odd::TIME), Some(upgrade("2030-01-01T00:00:00.000000Z"))),
            _ => {
                let mended = self.setting.spec(json!({"gates": {"overrides": []}}));
                (self.setting.spec(json!({"gates": odd::gates("Soak")})), Some(mended))
            }
        };
        let place = usize::try_from(rng.below(self.timeline.len() as u64 + 1)).unwrap_or(0);
        self.timeline.insert(place, after(rng.between(Duration::from_millis(10), Duration::from_secs(30)), odd));
        self.mends.extend(mend);
    }

    fn operator_trouble(&mut self) -> Action {
        let number = usize::try_from(self.rng.below(u64::from(self.operators))).unwrap_or(0);
        if self.rng.one_in(2) {
            return Action::KillOperator(number);
        }
        // Either too short to matter or long enough for another one to take over: in between, a lone operator goes on with
        // evidence that nothing can refresh.
        let long = self.operators > 1 && number == 0 && self.rng.one_in(2);
        let how_long = if long {
            Duration::from_secs(45 + self.rng.below(60))
        } else {
            Duration::from_millis(self.rng.below(1500))
        };
        Action::FreezeOperator(number, how_long)
    }

    /// Where nobody allowed what is asked for, it must say so; otherwise it must be done.
    fn ending(&self) -> Ending {
        let mut reasons = Vec::new();
        if !self.allowed {
            reasons.push("DowngradeNotAllowed".to_owned());
        }
        if self.is_set_back {
            // Half way nobody writes over it, and nobody puts the image there again.
            reasons.push("TemplateChanged".to_owned());
        }
        if !self.allowed && self.members <= 2 {
            reasons.push("TooFewMembers".to_owned());
        }
        if self.setting == ETCD {
            // Nobody can allow a way that does not exist (H20).
            reasons.push("UnsupportedPath".to_owned());
            if self.way == Way::Template {
                // Their template is theirs: whoever is lost meanwhile comes back from it, also from one that its data can't go with.
                reasons.push("CrashLooping".to_owned());
                reasons.push("ClusterVersionBehind".to_owned());
            }
        }
        if reasons.is_empty() { Ending::Ready } else { Ending::ReadyOr(reasons) }
    }

    fn mend(&mut self) {
        let mends = std::mem::take(&mut self.mends);
        self.timeline.extend(mends.into_iter().map(|mend| after(Duration::from_secs(1), mend)));
        self.allowed = !self.rng.one_in(3);
        if self.allowed {
            self.timeline.push(after(
                Duration::from_secs(5),
                self.setting.spec(json!({"policy": {"allowDowngrade": true, "acceptDowntime": true}})),
            ));
        }
        if self.gives_up {
            // Somebody looks at what was given up, now and when every deadline is over.
            for (token, minutes) in [("soon", 1), ("later", 12)] {
                let retry = self.setting.spec(json!({"onDeadline": "Hold", "requests": {"retry": token}}));
                self.timeline.push(after(Duration::from_mins(minutes), retry));
            }
        }
        if self.snapshots {
            // One that failed waits for a person, who looks now and when the last Job must have ended.
            for (token, minutes) in [("once-more", 1), ("and-again", 5)] {
                let resume = self.setting.spec(json!({"requests": {"resume": token}}));
                self.timeline.push(after(Duration::from_mins(minutes), resume));
            }
        }
        if self.way.is_leader_last() && self.timeline.len() > 1 {
            // A template that was put back waits for a person, who looks now and when every deadline is over (H21).
            for (token, minutes) in [("soon", 2), ("later", 10)] {
                let resume = self.setting.spec(json!({"requests": {"resume": token}}));
                self.timeline.push(after(Duration::from_mins(minutes), resume));
            }
        }
    }
}

/// The Secret with etcd's user, and its password, as it is and as Secrets carry it.
const USER: &str = "etcd-user";
const PASSWORD: (&str, &str) = ("secret", "c2VjcmV0");

/// Asks in the name of a user.
fn sign_in(objects: &mut Vec<Value>, namespace: &str) {
    for object in objects.iter_mut().filter(|object| object["kind"] == "QuorumCluster") {
        object["spec"]["system"]["auth"] = json!({"passwordSecret": USER, "allowPlaintext": true});
    }
    objects.push(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": USER, "namespace": namespace},
        "data": {"username": "cm9vdA==", "password": PASSWORD.1},
    }));
}

/// Members may be taken down for a minute at these times.
fn window(setting: &Setting, schedule: &str) -> Action {
    setting.spec(json!({"gates": {"windows": [{"schedule": schedule, "duration": "1m"}]}}))
}

/// What became of one seed.
#[derive(Debug)]
pub struct Walked {
    /// Which.
    pub seed: u64,
    /// What was wrong, if anything.
    pub fault: Option<String>,
    /// How many states were judged.
    pub checked: usize,
    /// Permits that went bad too late for anybody.
    pub races: usize,
    /// Pods that were replaced because of us.
    pub restarts: usize,
    /// Two equal runs share it.
    pub trace: Option<u64>,
}

/// A set that nobody upgrades.
fn beside(namespace: &str) -> Vec<Value> {
    let labels = json!({"app": "beside"});
    vec![json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "beside", "namespace": namespace},
        "spec": {
            "replicas": 2, "serviceName": "beside", "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "cache", "image": "registry.example/cache:v1"}]},
            },
        },
    })]
}

/// Walks one seed.
pub fn walk(seed: u64) -> Walked {
    match trial::run(&scenario(seed), &[], &operator) {
        Ok(outcome) => judge(seed, &outcome),
        Err(error) => broken(seed, &error),
    }
}

/// The same with the trace of it, which takes its time.
fn traced(seed: u64) -> Walked {
    match trial::run(&scenario(seed), &[], &operator) {
        Ok(outcome) => Walked { trace: Some(outcome.trace()), ..judge(seed, &outcome) },
        Err(error) => broken(seed, &error),
    }
}

fn broken(seed: u64, error: &std::io::Error) -> Walked {
    Walked { seed, fault: Some(error.to_string()), checked: 0, races: 0, restarts: 0, trace: None }
}

/// What is not as the resource says, where it says that all is done.
fn untrue(outcome: &Outcome) -> Option<String> {
    if outcome.subject.pointer("/status/conditions/0/status") != Some(&json!("True")) {
        return None;
    }
    let end = crash::end_state(outcome);
    let image = end["set"].pointer("/template/spec/containers/0/image").and_then(Value::as_str).unwrap_or_default();
    let written = image.rsplit_once(":v").map_or("", |(_, version)| version);
    let version = outcome.subject["spec"]["version"].as_str().unwrap_or(written);
    let members = end["members"].as_array().cloned().unwrap_or_default();
    let strayed = members.iter().find(|member| member[1] != format!("v{version}"));
    if let Some(member) = strayed {
        return Some(format!("said to be done at {version}, and {} runs {}", member[0], member[1]));
    }
    let strategy = &end["set"]["updateStrategy"];
    let partition = strategy["rollingUpdate"]["partition"].as_u64().unwrap_or(0);
    let touched = !outcome.subject["status"]["adopted"].is_null();
    if touched && is_parked_by_us(outcome) && strategy["type"] == "RollingUpdate" && partition < members.len() as u64 {
        return Some(format!("said to be done, and with partition {partition} a stray template would roll"));
    }
    let held = end["evictions"].pointer("/matchLabels/app").is_some();
    held.then(|| "said to be done, and evictions are still held".to_owned())
}

/// Whether the last one who wrote a StatefulSet's strategy is one of us. One that somebody else sets at rest is theirs.
fn is_parked_by_us(outcome: &Outcome) -> bool {
    let strategy = |object: &Option<std::sync::Arc<Value>>| object.as_deref()?.pointer("/spec/updateStrategy").cloned();
    let writer = outcome.journal.iter().rev().find_map(|entry| match &entry.event {
        Event::Write(change) if change.resource == "statefulsets.apps" => {
            (strategy(&change.before) != strategy(&change.after)).then_some(&change.user)
        }
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    writer.is_some_and(|user| trial::is_ours(user))
}

fn judge(seed: u64, outcome: &Outcome) -> Walked {
    let verdict = &outcome.verdict;
    Walked {
        seed,
        fault: outcome.fault().or_else(|| untrue(outcome)),
        checked: verdict.checked,
        races: verdict.races,
        restarts: verdict.restarts.len(),
        trace: None,
    }
}

/// Walks many seeds on all cores, the first few of them with their traces, and tells what it finds when it finds it.
pub fn many(first: u64, count: usize, with_traces: usize, tell: impl Fn(&Walked) + Sync) -> Vec<Walked> {
    let walk = |number: usize| {
        let seed = first + number as u64;
        let walked = if number < with_traces { traced(seed) } else { walk(seed) };
        tell(&walked);
        walked
    };
    pool::run(count, walk, |_| false)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use rstest::rstest;
    use windlass_sim::{scenario::Action, world::ImageBehaviour};

    use super::{Scenario, scenario};
    use crate::{
        odd::{LAST_DAY, TIME},
        setting::EXECUTOR,
    };

    /// Not often enough would be never, where few seeds are walked.
    const OFTEN: usize = 8;

    #[rstest]
    #[case::nobody_can_read_it(TIME)]
    #[case::who_wrote_it_can_not_be_read(LAST_DAY)]
    #[case::an_older_one_that_nobody_can_read("\"name\": String(\"odd\")")]
    #[case::a_budget_of_somebody_elses("\"name\": String(\"theirs\")")]
    #[case::a_budget_over_another_set_too("\"name\": String(\"beside\")")]
    #[case::nodes_are_emptied_without_a_cordon("Empty(")]
    #[case::an_autoscaler_says_so("ToBeDeletedByClusterAutoscaler")]
    #[case::nodes_are_drained("Drain(")]
    #[case::a_loop_applies("argocd-controller")]
    #[case::a_loop_writes("deployer")]
    #[case::others_write_the_template("\"trigger\": String(\"Template\")")]
    #[case::two_are_sick("Starve(")]
    #[case::leadership_clings("Cling(")]
    #[case::the_leader_is_busy("Busy(")]
    #[case::a_learner("isLearner")]
    #[case::authentication("auth/enable")]
    #[case::min_ready("minReadySeconds")]
    #[case::parallel("Parallel")]
    #[case::leader_last("LeaderLast")]
    #[case::by_partition("ReverseOrdinal")]
    #[case::it_is_stopped("\"abort\"")]
    #[case::it_goes_back("\"rollback\"")]
    #[case::at_a_deadline("RollBack")]
    #[case::a_window("\"windows\": Array [Object")]
    #[case::a_lock("locked-by")]
    #[case::a_check("no-freeze")]
    #[case::an_approval("BeforeEachHandOver")]
    #[case::the_controllers_freeze("FreezeControllers(")]
    #[case::an_operator_is_killed("KillOperator(")]
    #[case::an_operator_freezes("FreezeOperator(")]
    #[case::watches_break("DropWatches")]
    #[case::watches_stand_still("StillWatches")]
    fn every_situation_is_among_the_walks(#[case] words: &str) {
        static TOLD: LazyLock<Vec<String>> = LazyLock::new(|| {
            let walks = (0..600).map(scenario);
            walks.map(|walk| format!("{:?} {:?}", walk.objects, walk.timeline)).collect()
        });
        let walks = TOLD.iter().filter(|told| told.contains(words)).count();
        assert!(walks >= OFTEN, "{words}: {walks} of 600");
    }

    #[test]
    fn snapshots_and_every_trouble_with_them_are_among_the_walks() {
        let walks: Vec<_> = (0..600).map(scenario).collect();
        let backed_up = |object: &serde_json::Value| object["spec"]["backup"]["preUpgradeSnapshot"] == true;
        assert!(walks.iter().filter(|walk| walk.objects.iter().any(backed_up)).count() > 60);
        for how in
            [ImageBehaviour::CannotPull, ImageBehaviour::NeverReady, ImageBehaviour::Crashes, ImageBehaviour::Mute]
        {
            let breaks =
                |action: &Action| matches!(action, Action::Image(image, so) if image == EXECUTOR && *so == how);
            let of = |walk: &&Scenario| walk.timeline.iter().any(|one| breaks(&one.action));
            assert!(walks.iter().filter(of).count() > 5, "{how:?}");
        }
    }

    #[test]
    fn calls_are_late_lost_and_unanswered_in_most_of_them() {
        assert!((0..600).filter(|seed| scenario(*seed).faults).count() > 300);
    }
}
