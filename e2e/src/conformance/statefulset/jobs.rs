//! The scenarios of Jobs: how many pods, how they end, and what people and time do meanwhile.

use serde_json::{Value, json};
use windlass_sim::world::JobDeviation;

use super::scenario::Step::{Settle, Some as Few};
use super::scenario::{Act, Propagation, Scenario, Stage, Step, Transition, job};

/// The scenarios (by a part of their names) that notice a deviation.
pub fn notices(deviation: JobDeviation) -> &'static str {
    match deviation {
        JobDeviation::BackoffLimitIgnored => "job/1-of-1/fails",
        JobDeviation::DeadlineIgnored => "job/deadline/while-it-runs",
        JobDeviation::NoCriteriaMet | JobDeviation::FinalizerKept => "job/1-of-1/succeeds",
        JobDeviation::SuspendIgnored => "job/suspended/half-way",
    }
}

fn patch(patch: Value) -> Step {
    Step::Do(Act::PatchJob(patch))
}

fn release(stage: Stage, transition: Transition) -> Step {
    Step::Do(Act::ReleaseJobPod(stage, transition))
}

fn delete_pod(stage: Stage) -> Step {
    Step::Do(Act::DeleteJobPod(stage))
}

fn delete(how: Propagation) -> Step {
    Step::Do(Act::DeleteJob(how))
}

fn scenario(name: &str, job: Value, plot: impl IntoIterator<Item = Step>) -> Scenario {
    let mut steps = vec![Step::Do(Act::Create(job))];
    steps.extend(plot);
    Scenario { name: format!("job/{name}"), steps }
}

/// A Job of so many completions (none where any success is enough), so many pods at once, and so many failures that it survives.
fn counted(completions: Option<i64>, parallelism: i64, backoff: i64) -> Value {
    let mut job = job("v1");
    job["spec"]["parallelism"] = json!(parallelism);
    job["spec"]["backoffLimit"] = json!(backoff);
    if let Some(completions) = completions {
        job["spec"]["completions"] = json!(completions);
    }
    job
}

/// What becomes of the pods, one after the other.
fn plots() -> Vec<(&'static str, i64, Vec<Step>)> {
    use Stage::{Leaving, Pending, Running};
    use Transition::{Fail, Gone, Ready, Run, Succeed};
    vec![
        ("succeeds", 0, vec![Settle]),
        ("without-being-ready", 0, vec![release(Pending, Run), release(Running, Succeed), Settle]),
        ("at-once", 0, vec![release(Pending, Succeed), Settle]),
        ("fails", 0, vec![release(Pending, Ready), release(Running, Fail), Settle]),
        ("fails-at-once", 0, vec![release(Pending, Fail), Settle]),
        // The next pod comes ten seconds later.
        ("fails-and-succeeds", 1, vec![release(Pending, Ready), release(Running, Fail), Settle]),
        ("fails-twice", 1, vec![release(Pending, Fail), release(Pending, Fail), Settle]),
        ("pod-deleted", 1, vec![release(Pending, Ready), delete_pod(Running), release(Leaving, Gone), Settle]),
        ("last-pod-deleted", 0, vec![release(Pending, Ready), delete_pod(Running), release(Leaving, Gone), Settle]),
        ("pending-pod-deleted", 1, vec![delete_pod(Pending), Settle]),
    ]
}

/// All scenarios.
pub fn all() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    let shapes = [
        ("1-of-1", Some(1), 1),
        ("2-by-1", Some(2), 1),
        ("2-by-2", Some(2), 2),
        ("3-by-2", Some(3), 2),
        ("any-of-2", None, 2),
        ("none", Some(0), 1),
    ];
    for (shape, completions, parallelism) in shapes {
        for (plot, backoff, steps) in plots() {
            scenarios.push(scenario(&format!("{shape}/{plot}"), counted(completions, parallelism, backoff), steps));
        }
    }
    scenarios.extend(deadlines());
    scenarios.extend(suspensions());
    scenarios.extend(changes());
    scenarios.extend(ends());
    scenarios
}

fn deadlines() -> Vec<Scenario> {
    let timed = |seconds: i64, parallelism: i64| {
        let mut job = counted(Some(parallelism), parallelism, 0);
        job["spec"]["activeDeadlineSeconds"] = json!(seconds);
        job
    };
    let set = |seconds: i64| patch(json!({"spec": {"activeDeadlineSeconds": seconds}}));
    let ready = || release(Stage::Pending, Transition::Ready);
    vec![
        scenario("deadline/before-it-runs", timed(2, 1), [Settle]),
        scenario("deadline/while-it-runs", timed(3600, 1), [ready(), set(1), Settle]),
        scenario("deadline/two-at-once", timed(3600, 2), [ready(), ready(), set(1), Settle]),
        scenario("deadline/one-has-ended", timed(3600, 2), [ready(), Few(2), set(1), Settle]),
        scenario("deadline/far-away", timed(3600, 1), [Settle]),
    ]
}

fn suspensions() -> Vec<Scenario> {
    let suspend = |on: bool| patch(json!({"spec": {"suspend": on}}));
    let ready = || release(Stage::Pending, Transition::Ready);
    let mut born = job("v1");
    born["spec"]["suspend"] = json!(true);
    let mut timed = born.clone();
    timed["spec"]["activeDeadlineSeconds"] = json!(3600);
    vec![
        scenario("suspended/from-the-start", born, [Settle, suspend(false), Settle]),
        scenario("suspended/with-a-deadline", timed, [Settle, suspend(false), Settle]),
        scenario(
            "suspended/half-way",
            counted(Some(2), 2, 0),
            [ready(), suspend(true), Settle, suspend(false), Settle],
        ),
        scenario("suspended/before-it-runs", job("v1"), [suspend(true), Settle, suspend(false), Settle]),
        scenario("suspended/after-its-end", job("v1"), [Settle, suspend(true), Settle]),
    ]
}

fn changes() -> Vec<Scenario> {
    let parallel = |count: i64| patch(json!({"spec": {"parallelism": count}}));
    let ready = || release(Stage::Pending, Transition::Ready);
    let replaced_when_gone = || {
        let mut job = counted(Some(1), 1, 1);
        job["spec"]["podReplacementPolicy"] = json!("Failed");
        job
    };
    vec![
        scenario("scaled/up", counted(Some(3), 1, 0), [ready(), parallel(3), Settle]),
        scenario("scaled/down", counted(Some(3), 3, 0), [ready(), parallel(1), Settle]),
        scenario(
            "scaled/to-none-and-back",
            counted(Some(2), 2, 0),
            [ready(), parallel(0), Settle, parallel(2), Settle],
        ),
        scenario(
            "replaced-when-gone/pod-deleted",
            replaced_when_gone(),
            [ready(), delete_pod(Stage::Running), release(Stage::Leaving, Transition::Fail), Settle],
        ),
        scenario("refused/completions", job("v1"), [patch(json!({"spec": {"completions": 2}})), Settle]),
        scenario("refused/parallelism", job("v1"), [parallel(-1), Settle]),
    ]
}

fn ends() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for (name, how) in [
        ("background", Propagation::Background),
        ("foreground", Propagation::Foreground),
        ("orphan", Propagation::Orphan),
    ] {
        let ready = release(Stage::Pending, Transition::Ready);
        scenarios.push(scenario(&format!("deleted/{name}"), counted(Some(2), 2, 0), [ready, delete(how), Settle]));
        scenarios.push(scenario(&format!("deleted/{name}-at-the-end"), job("v1"), [Settle, delete(how), Settle]));
    }
    let mut short = job("v1");
    short["spec"]["ttlSecondsAfterFinished"] = json!(1);
    scenarios.push(scenario("kept-for-a-second/succeeds", short.clone(), [Settle]));
    scenarios.push(scenario("kept-for-a-second/fails", short, [release(Stage::Pending, Transition::Fail), Settle]));
    scenarios
}
