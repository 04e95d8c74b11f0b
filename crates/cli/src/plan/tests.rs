//! Plans of quorums on the embedded cluster: what they say, that they come true, and that looking changes nothing.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that lacks something has failed")]

use std::{path::Path, time::Duration};

use rstest::rstest;
use serde_json::{Value, json};
use tokio::task::LocalSet;
use windlass_api::QuorumCluster;
use windlass_operator::quorum::observe;
use windlass_overview::{Ended, Outlook, Verdict};
use windlass_plan::{Reason, StepKind};
use windlass_rehearsal::{
    context, operator,
    setting::{ETCD, OPENBAO, PD, Setting},
    trial::is_ours,
};
use windlass_sim::{
    faults::Process,
    harness::{Cluster, patch_value},
    journal::{Event, Verb},
};

use super::{from_afar, outlook, text, wish::Wish};

/// Who looks. Not one of ours: whatever they write would be found.
const PERSON: &str = "person";

/// Puts these objects into a cluster of its own, waits until the quorum is up and `leader` leads it, and tells a story.
fn stage<T>(setting: Setting, objects: Vec<Value>, leader: u32, story: impl AsyncFnOnce(&Cluster) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), async {
        let cluster = Cluster::new(1);
        tokio::task::spawn_local(cluster.world.clone().run());
        for object in objects {
            cluster.api.create_value("user", object).expect("an object that the API takes");
        }
        let pod = format!("{}-{leader}", setting.name);
        let up = |cluster: &Cluster| {
            let truths = cluster.world.truths();
            let members = || truths.iter().flat_map(|truth| &truth.members);
            members().next().is_some()
                && members().all(|member| member.healthy)
                && members().any(|member| member.leader && member.pod == pod)
        };
        for _ in 0..600 {
            cluster.world.elect(setting.namespace, setting.name, &pod);
            tokio::time::sleep(Duration::from_secs(1)).await;
            if up(&cluster) {
                break;
            }
        }
        assert!(up(&cluster), "{:?}", cluster.world.truths());
        // Kubernetes notes that the pods are ready, followers catch up.
        tokio::time::sleep(Duration::from_secs(30)).await;
        story(&cluster).await
    })
}

/// Three members at the reference's first version, and the wish for its second.
fn three(setting: Setting) -> (Vec<Value>, QuorumCluster) {
    let (from, to) = setting.reference;
    let (wishes, objects): (Vec<Value>, Vec<Value>) =
        setting.objects(3, from, to).into_iter().partition(|object| object["kind"] == "QuorumCluster");
    (objects, serde_json::from_value(wishes[0].clone()).expect("a QuorumCluster"))
}

/// The same with another spec.
fn with(resource: QuorumCluster, spec: &Value) -> QuorumCluster {
    let mut object = serde_json::to_value(resource).expect("a QuorumCluster");
    for (field, value) in spec.as_object().expect("an object") {
        object["spec"][field] = value.clone();
    }
    serde_json::from_value(object).expect("a QuorumCluster")
}

/// The set replaces a pod when somebody deletes it.
fn on_delete(mut objects: Vec<Value>) -> Vec<Value> {
    for object in objects.iter_mut().filter(|object| object["kind"] == "StatefulSet") {
        object["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    }
    objects
}

/// A person looks; nothing that they do may change anything.
async fn look(cluster: &Cluster, resource: &QuorumCluster) -> Outlook {
    let process = Process::new(PERSON, cluster.clock, cluster.journal.clone(), 1);
    let report = outlook(&context(cluster.seat(&process)), resource).await.expect("a cluster that answers");
    changed_nothing(cluster, &process);
    report
}

#[track_caller]
fn changed_nothing(cluster: &Cluster, process: &Process) {
    let journal = cluster.journal.entries();
    let theirs = |event: &&Event| match event {
        Event::Write(change) => change.user == PERSON,
        Event::Verb { user, changed, .. } => *changed && user == PERSON,
        Event::Quorum(_) | Event::Note(_) => false,
    };
    let changes: Vec<&Event> = journal.iter().map(|entry| &entry.event).filter(theirs).collect();
    assert!(changes.is_empty(), "{changes:?}");
    // etcd's gateway takes its questions as POST, and who logs in is answered with a token.
    let questions = ["POST /v3/cluster/member/list", "POST /v3/maintenance/status"];
    let asked = process.made();
    assert!(!asked.is_empty(), "nobody was asked");
    for call in asked {
        let reads = call.starts_with("GET ") || questions.contains(&call.as_str());
        assert!(reads || call == "POST /v1/auth/kubernetes/login", "{call}");
    }
}

/// Compares with a file that people can read; `BLESS=1` writes it.
#[track_caller]
fn golden(name: &str, said: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, said).expect("a file");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(said, there, "{name}");
}

fn plain(outlook: &Outlook) -> String {
    anstream::adapter::strip_str(&text(outlook)).to_string()
}

#[test]
fn a_plan_reads_well() {
    let (objects, wish) = three(PD);
    let report = stage(PD, objects, 2, async |cluster| look(cluster, &wish).await);
    assert_eq!(report.verdict, Verdict::CanBegin);
    golden("pd.txt", &plain(&report));
    golden("pd.json", &format!("{}\n", serde_json::to_string_pretty(&report).expect("JSON")));
}

#[test]
fn a_plan_that_waits_says_for_what() {
    let (objects, wish) = three(OPENBAO);
    let spec = json!({
        "gates": {"windows": [{"schedule": "0 2 * * *", "duration": "1h", "timeZone": "Europe/Berlin"}], "approval": {"mode": "BeforeUpgrade"}},
        "upgrade": {"soak": "10m"},
    });
    let wish = with(wish, &spec);
    let report = stage(OPENBAO, on_delete(objects), 0, async |cluster| look(cluster, &wish).await);
    assert_eq!(report.verdict, Verdict::Blocked);
    golden("openbao-waits.txt", &plain(&report));
}

#[test]
fn what_does_not_fit_together_is_blocked() {
    let (objects, wish) = three(ETCD);
    let two = |mut objects: Vec<Value>| {
        for object in objects.iter_mut().filter(|object| object["kind"] == "StatefulSet") {
            object["spec"]["replicas"] = json!(2);
        }
        objects
    };
    let report = stage(ETCD, two(objects), 0, async |cluster| look(cluster, &wish).await);
    golden("etcd-two.txt", &plain(&report));

    let (objects, wish) = three(ETCD);
    let (mut elsewhere, mut unreadable) = (wish.clone(), wish);
    elsewhere.spec.workload.stateful_set = "none".into();
    unreadable.spec.version = Some("soon".into());
    let reasons = stage(ETCD, objects, 0, async |cluster| {
        let context = context(cluster.seat(&Process::new(PERSON, cluster.clock, cluster.journal.clone(), 1)));
        let mut reasons = Vec::new();
        for resource in [&elsewhere, &unreadable] {
            let report = outlook(&context, resource).await.expect("a cluster that answers");
            reasons.push(report.blocked_by.map(|held| held.reason));
        }
        reasons
    });
    assert_eq!(reasons, [Some(Reason::WorkloadNotFound), Some(Reason::InvalidSpec)]);
}

#[test]
fn a_silent_member_blocks_and_is_named() {
    let (objects, wish) = three(PD);
    let report = stage(PD, objects, 0, async |cluster| {
        cluster.world.hang_process(PD.namespace, "pd-1", Duration::from_mins(10));
        look(cluster, &wish).await
    });
    let held = report.blocked_by.expect("something holds");
    assert!(held.message.contains("pd-1"), "{}", held.message);
    assert_eq!(report.verdict, Verdict::Blocked);
    assert!(report.steps.iter().all(|step| !step.disturbs), "nobody is foreseen to go while it is silent");
}

#[test]
fn a_cordoned_node_is_told_before_it_begins() {
    let (objects, wish) = three(PD);
    let report = stage(PD, objects, 0, async |cluster| {
        let node = json!({"spec": {"unschedulable": true}});
        let pod = cluster.api.get_value("pods", PD.namespace, "pd-1").expect("the pod");
        let name = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default().to_owned();
        patch_node(cluster, &name, &node);
        look(cluster, &wish).await
    });
    let waits: Vec<Reason> = report.steps[0].waits_for.iter().map(|held| held.reason).collect();
    assert_eq!(waits, [Reason::NodeDraining]);
    assert_eq!(report.blocked_by.map(|held| held.reason), Some(Reason::NodeDraining));
}

#[test]
fn an_image_that_is_pulled_ahead_is_the_first_step() {
    let (objects, wish) = three(PD);
    let wish = with(wish, &json!({"upgrade": {"prePull": true}}));
    let report = stage(PD, objects, 0, async |cluster| look(cluster, &wish).await);
    let first = &report.steps[0];
    assert_eq!((first.kind, first.disturbs), (StepKind::ImagePullBegun, false));
    assert!(first.text.contains("on node-0, node-1, node-2 before anybody stops"), "{}", first.text);
    assert_eq!(report.verdict, Verdict::CanBegin);
}

fn patch_node(cluster: &Cluster, name: &str, patch: &Value) {
    let request = http::Request::patch(format!("/api/v1/nodes/{name}"))
        .header("content-type", "application/merge-patch+json")
        .body(patch.to_string().into_bytes().into());
    let windlass_sim::api::Reply::Done(response) = cluster.api.handle("user", request.expect("a request"), None) else {
        panic!("nobody asked for a watch")
    };
    assert!(response.status().is_success(), "{response:?}");
}

/// The notes of what the operator did, oldest first.
fn done(cluster: &Cluster) -> Vec<String> {
    let journal = cluster.journal.entries();
    let events = journal.iter().filter_map(|entry| match &entry.event {
        Event::Write(change)
            if change.resource.starts_with("events") && change.verb == Verb::Create && is_ours(&change.user) =>
        {
            change.after.as_deref()
        }
        Event::Write(_) | Event::Quorum(_) | Event::Verb { .. } | Event::Note(_) => None,
    });
    let note = |event: &Value| event["note"].as_str().or(event["message"].as_str()).map(str::to_owned);
    events.filter(|event| event["action"] == "Act").filter_map(note).collect()
}

#[rstest]
#[case::pd(PD, false)]
#[case::etcd(ETCD, false)]
#[case::pd_on_delete(PD, true)]
#[case::openbao(OPENBAO, true)]
fn what_is_planned_is_what_the_operator_does(
    #[case] setting: Setting,
    #[case] deleting: bool,
    #[values(0, 1, 2)] leader: u32,
) {
    let (objects, wish) = three(setting);
    let objects = if deleting { on_delete(objects) } else { objects };
    stage(setting, objects, leader, async |cluster| {
        let planned = look(cluster, &wish).await;
        assert_eq!(planned.verdict, Verdict::CanBegin, "{}", plain(&planned));
        cluster.api.create_value("user", serde_json::to_value(&wish).expect("JSON")).expect("a QuorumCluster");
        let process = Process::new("windlass-0-0", cluster.clock, cluster.journal.clone(), 1);
        let program = operator(cluster.seat(&process));
        tokio::task::spawn_local(async move { process.live(program).await });
        let resource = setting.subject();
        let live = || cluster.api.get_value(&resource.resource, &resource.namespace, &resource.name);
        let is_done = || live().is_some_and(|object| object["status"]["phase"] == "UpToDate");
        for _ in 0..1_800 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if is_done() {
                break;
            }
        }
        let steps: Vec<String> = planned.steps.into_iter().map(|step| step.text).collect();
        assert_eq!(steps, done(cluster));

        // A plan of what is done has nothing in it.
        let object = live().map(|object| (*object).clone()).unwrap_or_default();
        let report = look(cluster, &serde_json::from_value(object).expect("a QuorumCluster")).await;
        assert_eq!((report.verdict, report.steps.len()), (Verdict::UpToDate, 0), "{}", plain(&report));
    });
}

#[test]
fn far_from_the_cluster_it_says_so_and_asks_nobody() {
    let (objects, wish) = three(OPENBAO);
    stage(OPENBAO, objects, 0, async |cluster| {
        let process = Process::new(PERSON, cluster.clock, cluster.journal.clone(), 1);
        let context = context(cluster.seat(&process));
        let peers = observe::addresses(&context, &wish).await.expect("a cluster that answers");
        let report = from_afar(context, &wish, &peers).await.expect("a cluster that answers");
        let blocked = report.blocked_by.expect("nothing is known");
        assert_eq!(blocked.reason, Reason::MembersUnknown);
        for part in [
            "can't be reached at their pods' addresses from here (openbao-0 at 10.",
            "windlass plan openbao -n secrets",
        ] {
            assert!(blocked.message.contains(part), "{part:?} is not in {:?}", blocked.message);
        }
        assert!(!process.made().iter().any(|call| call.contains("/v1/sys/") || call.contains("login")));
    });
}

#[test]
fn a_wish_is_what_exists_with_the_manifest_applied() {
    let (objects, wish) = three(PD);
    stage(PD, objects, 0, async |cluster| {
        let process = Process::new(PERSON, cluster.clock, cluster.journal.clone(), 1);
        let context = context(cluster.seat(&process));
        let ask = |name: &str, manifest: Option<QuorumCluster>| {
            let wish = Wish { name: name.to_owned(), namespace: PD.namespace.to_owned(), manifest };
            wish.resource(&context)
        };
        let missing = ask(PD.name, None).await.expect("an answer").unwrap_err().to_string();
        assert!(missing.contains("there is no QuorumCluster tikv/pd"), "{missing}");
        let new = ask("", Some(wish.clone())).await.expect("an answer").expect("a wish");
        assert!(new.metadata.creation_timestamp.is_some() && new.status.is_none());

        cluster.api.create_value("user", PD.quorum_cluster("older", PD.reference.0)).expect("a QuorumCluster");
        tokio::time::sleep(Duration::from_secs(2)).await;
        let new = ask("", Some(wish.clone())).await.expect("an answer").expect("a wish");
        let report = outlook(&context, &new).await.expect("a cluster that answers");
        assert_eq!(
            report.blocked_by.map(|held| held.reason),
            Some(Reason::AlreadyManaged),
            "the younger one is refused"
        );

        let mut manifest = new;
        manifest.metadata.name = Some("older".into());
        let applied = ask("", Some(manifest)).await.expect("an answer").expect("a wish");
        assert_eq!(applied.spec.version.as_deref(), Some(PD.reference.1));
        assert!(applied.metadata.uid.is_some(), "it is the one that exists");
        let report = outlook(&context, &applied).await.expect("a cluster that answers");
        assert_eq!(report.verdict, Verdict::CanBegin);
        changed_nothing(cluster, &process);
    });
}

#[test]
fn a_pause_half_way_is_blocked_and_the_rest_is_told() {
    let (objects, wish) = three(PD);
    stage(PD, objects, 0, async |cluster| {
        cluster.api.create_value("user", serde_json::to_value(&wish).expect("JSON")).expect("a QuorumCluster");
        let process = Process::new("windlass-0-0", cluster.clock, cluster.journal.clone(), 1);
        let program = operator(cluster.seat(&process));
        tokio::task::spawn_local(async move { process.live(program).await });
        let live = || cluster.api.get_value("quorumclusters.windlass.dev", PD.namespace, PD.name);
        let one = || live().is_some_and(|object| object["status"]["upgrade"]["progress"] == "1/3");
        for _ in 0..1_800 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            if one() {
                break;
            }
        }
        patch_value(&cluster.api, &PD.subject(), &json!({"spec": {"paused": true}})).expect("a pause");
        tokio::time::sleep(Duration::from_mins(2)).await;
        let object = live().map(|object| (*object).clone()).unwrap_or_default();
        let report = look(cluster, &serde_json::from_value(object).expect("a QuorumCluster")).await;
        assert_eq!(report.blocked_by.as_ref().map(|held| held.reason), Some(Reason::Paused), "{}", plain(&report));
        assert!(report.steps.iter().any(|step| step.kind == StepKind::ReplacementAllowed), "{}", plain(&report));
        assert_eq!(report.end, Ended::Done);
    });
}
