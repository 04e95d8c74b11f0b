//! The last line of a log, for those who switched it on: of members that don't come up, seldom, and never in the way (H41).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::support::{
    TO, Tale, image, message,
    stage::{pass, play_with, until, until_reason},
    three, with,
};
use http::{Request, Response, StatusCode};
use kube::client::Body;
use rstest::rstest;
use serde_json::{Value, json};
use windlass_rehearsal::{
    context, operator, pd,
    setting::{OPENBAO, after},
    trial::{self, Ending, Scenario},
};
use windlass_sim::{
    harness::{Cluster, Seat},
    scenario::Action,
    world::{BadAnswer, ImageBehaviour},
};

/// What becomes of requests for logs.
#[derive(Clone, Copy, Debug)]
enum Answers {
    /// They are answered.
    Yes,
    /// The operator may not read them.
    Forbidden,
    /// The node does not answer.
    Never,
}

/// When logs were asked for, and how.
type Asked = Arc<Mutex<Vec<(Duration, String)>>>;

fn shown(objects: Vec<Value>) -> Vec<Value> {
    with(objects, "QuorumCluster", |resource| resource["spec"]["upgrade"] = json!({"showLogs": true}))
}

/// A client that notes every request for a log and lets it through, or does not.
fn noting(client: kube::Client, clock: windlass_sim::clock::Clock, asked: Asked, answers: Answers) -> kube::Client {
    let send = move |request: Request<Body>| {
        let (client, asked) = (client.clone(), asked.clone());
        async move {
            if !request.uri().path().ends_with("/log") {
                return client.send(request).await;
            }
            asked.lock().unwrap_or_else(PoisonError::into_inner).push((clock.elapsed(), request.uri().to_string()));
            match answers {
                Answers::Yes => client.send(request).await,
                Answers::Forbidden => {
                    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                        "message": "pods is forbidden", "reason": "Forbidden"});
                    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
                    *response.status_mut() = StatusCode::FORBIDDEN;
                    Ok(response)
                }
                Answers::Never => std::future::pending().await,
            }
        }
    };
    kube::Client::new(tower::service_fn(send), "default")
}

/// A story with these answers, and when logs were asked for in it.
fn play(objects: Vec<Value>, answers: Answers, story: impl AsyncFnOnce(&Cluster)) -> (Tale, Vec<(Duration, String)>) {
    let asked = Asked::default();
    let notes = asked.clone();
    let program = move |seat: Seat| -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
        let (clock, notes) = (seat.clock, notes.clone());
        Box::pin(async move {
            let mut context = context(seat);
            context.client = noting(context.client.clone(), clock, notes, answers);
            windlass_operator::run(&context, std::future::pending()).await;
        })
    };
    let tale = play_with(objects, &program, story);
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (tale, asked)
}

/// The new image ends at once until it is mended; what is said of it last before.
fn broken_for_a_while(objects: Vec<Value>, answers: Answers) -> (Tale, Vec<(Duration, String)>, String) {
    let mut said = String::new();
    let (tale, asked) = play(objects, answers, async |cluster| {
        cluster.world.set_image(&image(TO), ImageBehaviour::Crashes);
        until_reason(cluster, "CrashLooping").await;
        pass(Duration::from_mins(3)).await;
        said = until_reason(cluster, "CrashLooping").await.message;
        cluster.world.set_image(&image(TO), ImageBehaviour::Works);
        until_reason(cluster, "UpToDate").await;
        pass(Duration::from_mins(5)).await;
    });
    tale.ended_ready_at(TO);
    (tale, asked, said)
}

#[test]
fn a_process_that_keeps_ending_is_told_with_the_end_of_its_log() {
    let (tale, asked, said) = broken_for_a_while(shown(three()), Answers::Yes);
    assert!(said.contains("keeps ending"), "{said}");
    assert!(said.contains("; last line of its log: \"fatal: this build is broken\"; read its log"), "{said}");
    assert!(asked.iter().any(|(_, uri)| uri.contains("previous=true")), "{asked:?}");
    let modest =
        |uri: &String| uri.contains("tailLines=1") && uri.contains("limitBytes=") && uri.contains("container=pd");
    assert!(asked.iter().all(|(_, uri)| modest(uri)), "{asked:?}");
    // Every member that is replaced is unready for a moment before and after; beyond that, only the broken one is asked about, and seldom.
    let mut broken = asked
        .iter()
        .filter(|(_, uri)| uri.contains("/pods/pd-2/log") && uri.contains("previous=true"))
        .map(|(at, _)| *at);
    let mut last = broken.next().expect("a read");
    for at in broken {
        assert!(at >= last + Duration::from_secs(15), "{asked:?}");
        last = at;
    }
    // It reaches who may read the resource, and nobody else.
    let events = tale.our_writes(0..tale.journal.len()).filter(|change| change.resource.starts_with("events"));
    let told: Vec<String> = events.filter_map(|change| Some(change.after.as_ref()?.to_string())).collect();
    assert!(told.iter().any(|event| event.contains("CrashLooping")), "{told:?}");
    assert!(!told.iter().any(|event| event.contains("this build is broken")), "{told:?}");
    let over = tale.journal.last().expect("an entry").at;
    assert!(asked.len() < 40, "{} reads until {over}: {asked:?}", asked.len());
}

#[test]
fn nobody_reads_a_log_unasked() {
    let (_, asked, said) = broken_for_a_while(three(), Answers::Yes);
    assert!(asked.is_empty(), "{asked:?}");
    assert!(said.contains("; its log: kubectl logs -n tikv pd-2 -c pd"), "{said}");
    assert!(!said.contains("this build is broken"), "{said}");
}

#[rstest]
fn a_log_that_cannot_be_read_changes_nothing(#[values(Answers::Forbidden, Answers::Never)] answers: Answers) {
    let (_, asked, said) = broken_for_a_while(shown(three()), answers);
    assert!(!asked.is_empty());
    assert!(said.contains("; its log: kubectl logs -n tikv pd-2 -c pd"), "{said}");
}

#[test]
fn the_logs_of_healthy_members_are_left_alone() {
    let windows = json!([{"schedule": "0 0 29 2 *", "duration": "1h"}]);
    let held =
        with(shown(three()), "QuorumCluster", |resource| resource["spec"]["gates"] = json!({"windows": windows}));
    let (_, asked) = play(held, Answers::Yes, async |cluster| {
        until_reason(cluster, "WindowClosed").await;
        // One that is down, and was not replaced.
        cluster.world.hang_process(pd::NAMESPACE, "pd-1", Duration::from_mins(2));
        pass(Duration::from_mins(5)).await;
    });
    assert!(asked.is_empty(), "{asked:?}");
}

#[test]
fn a_member_that_does_not_answer_is_told_with_the_end_of_its_log() {
    let (tale, _) = play(shown(three()), Answers::Yes, async |cluster| {
        let terminating = |cluster: &Cluster| {
            let pod = cluster.api.get_value("pods", pd::NAMESPACE, "pd-2");
            pod.is_some_and(|pod| pod.pointer("/metadata/deletionTimestamp").is_some())
        };
        until(cluster, "the first member goes", terminating).await;
        cluster.world.break_answers(pd::NAMESPACE, "pd-2", Some(BadAnswer::Refused));
        until_reason(cluster, "MemberNotJoined").await;
        // What was read while it started counts for a while.
        pass(Duration::from_secs(20)).await;
        let spoken = until_reason(cluster, "MemberNotJoined").await;
        spoken.is_waiting("MemberNotJoined", &["pd-2", "; last line of its log: \"serving\""]);
        cluster.world.break_answers(pd::NAMESPACE, "pd-2", None);
        until_reason(cluster, "UpToDate").await;
    });
    tale.ended_ready_at(TO);
}

#[test]
fn a_sealed_member_is_told_with_the_end_of_its_log() {
    let scenario = OPENBAO.reference(1);
    let mut timeline = scenario.timeline.clone();
    timeline.push(after(Duration::ZERO, Action::AutoUnseal(OPENBAO.workload(), false)));
    let ending = Ending::Held("MemberSealed".to_owned());
    let scenario = Scenario { objects: shown(scenario.objects.clone()), timeline, ending, ..scenario };
    let outcome = trial::run(&scenario, &[], &operator).expect("a runtime for the scenario");
    assert_eq!(outcome.fault(), None);
    let said = message(&outcome);
    assert!(said.contains("; last line of its log: \"sealed, and waiting for the key\""), "{said}");
}
