//! The Job controller as of Kubernetes 1.34, for Jobs that are not indexed and have no policies of failure or success; and the one that
//! removes Jobs some time after their end.
//!
//! One look: count the pods that have ended, decide whether the Job has, create or delete pods, and report. A pod is counted once: it
//! carries a finalizer until its end is in the status. The words SuccessCriteriaMet and FailureTarget go before Complete and Failed, which
//! wait for the last pod to be gone.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::api::{DeleteParams, PropagationPolicy};
use kube::core::Status;
use serde_json::{Value, json};

use super::JobDeviation;
use super::json::{
    Condition, controller, is_true, list, name, number, since, terminating, text, time, uid, with_conditions,
};
use super::queue::{Event, Key};
use super::state::State;

const USER: &str = "job-controller";
const CLEANER: &str = "ttl-after-finished-controller";
/// What a pod carries until it is counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// The first wait after a failed pod; it doubles each time.
const BACK_OFF: Duration = Duration::from_secs(10);
const LONGEST_BACK_OFF: Duration = Duration::from_mins(10);

type Outcome<T> = Result<T, Box<Status>>;

/// Failures of a Job's pods since one of them last succeeded.
#[derive(Clone, Copy, Default)]
pub(super) struct Failures {
    count: u32,
    last: Option<Timestamp>,
}

impl Failures {
    /// How long no pod is made because of them.
    fn wait(self, now: Timestamp) -> Duration {
        let Some((last, times)) = self.last.zip(self.count.checked_sub(1)) else { return Duration::ZERO };
        let wait = BACK_OFF.saturating_mul(1 << times.min(10)).min(LONGEST_BACK_OFF);
        wait.saturating_sub(now.duration_since(last).try_into().unwrap_or_default())
    }
}

/// How a Job ends.
struct End {
    failed: bool,
    reason: String,
    message: String,
}

impl End {
    fn failed(reason: &str, message: &str) -> Self {
        Self { failed: true, reason: reason.to_owned(), message: message.to_owned() }
    }

    /// The word that goes before the last one, if a look before this one has said it.
    fn announced(job: &Value) -> Option<Self> {
        let said = |kind: &str, failed: bool| {
            let condition = super::json::condition(job, kind).filter(|_| is_true(job, kind))?;
            let (reason, message) = (text(condition, "/reason").to_owned(), text(condition, "/message").to_owned());
            Some(Self { failed, reason, message })
        };
        said("SuccessCriteriaMet", false).or_else(|| said("FailureTarget", true))
    }

    fn words(&self) -> [&'static str; 2] {
        if self.failed { ["FailureTarget", "Failed"] } else { ["SuccessCriteriaMet", "Complete"] }
    }
}

/// One pod of a Job.
struct Member {
    pod: std::sync::Arc<Value>,
    phase: String,
    leaving: bool,
    tracked: bool,
}

impl Member {
    fn of(pod: std::sync::Arc<Value>) -> Self {
        let phase = text(&pod, "/status/phase").to_owned();
        let tracked = list(&pod, "/metadata/finalizers").contains(&json!(TRACKING));
        Self { leaving: terminating(&pod), phase, tracked, pod }
    }

    fn succeeded(&self) -> bool {
        self.phase == "Succeeded"
    }

    /// A pod that somebody deletes has failed, too, unless only those that have truly ended are replaced.
    fn failed(&self, only_ended: bool) -> bool {
        self.phase == "Failed" || (self.leaving && !only_ended && !self.succeeded())
    }

    fn active(&self) -> bool {
        !self.leaving && !self.succeeded() && self.phase != "Failed"
    }

    fn still_leaving(&self) -> bool {
        self.leaving && !self.succeeded() && self.phase != "Failed"
    }

    fn ready(&self) -> bool {
        is_true(&self.pod, "Ready")
    }

    fn ended_at(&self) -> Timestamp {
        let ended = list(&self.pod, "/status/containerStatuses").iter();
        let ended = ended.filter_map(|status| text(status, "/state/terminated/finishedAt").parse::<Timestamp>().ok());
        let unready = super::json::condition(&self.pod, "Ready").map_or("", |ready| text(ready, "/lastTransitionTime"));
        let deleted = text(&self.pod, "/metadata/deletionTimestamp");
        ended.max().or_else(|| unready.parse().ok()).or_else(|| deleted.parse().ok()).unwrap_or_default()
    }
}

/// What one look counts.
struct Tally {
    active: i64,
    ready: i64,
    leaving: i64,
    succeeded: i64,
    failed: i64,
}

impl Tally {
    fn of(job: &Value, members: &[Member], newly: &[&Member]) -> Self {
        let count = |field: &str| number(job, &format!("/status/{field}")).unwrap_or(0);
        let size = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Self {
            active: size(members.iter().filter(|member| member.active()).count()),
            ready: size(members.iter().filter(|member| member.active() && member.ready()).count()),
            leaving: size(members.iter().filter(|member| member.still_leaving()).count()),
            succeeded: count("succeeded") + size(newly.iter().filter(|member| member.succeeded()).count()),
            failed: count("failed") + size(newly.iter().filter(|member| !member.succeeded()).count()),
        }
    }

    fn is_enough(&self, job: &Value) -> bool {
        match number(job, "/spec/completions") {
            Some(wanted) => self.succeeded >= wanted,
            None => self.succeeded > 0,
        }
    }

    /// As it is reported; the real status leaves out some counts that are zero.
    fn status(&self, started: Option<Timestamp>) -> Value {
        let some = |count: i64| if count == 0 { Value::Null } else { json!(count) };
        json!({
            "active": some(self.active),
            "ready": self.ready,
            "terminating": self.leaving,
            "succeeded": some(self.succeeded),
            "failed": some(self.failed),
            "uncountedTerminatedPods": {},
            "startTime": started.map_or(Value::Null, time),
        })
    }
}

impl State {
    pub(super) fn sync_job(&mut self, key: &Key) {
        if self.now() < self.frozen_until {
            self.queue.push(self.frozen_until, Event::Job(key.clone()));
            return;
        }
        let Some(job) = self.api.get_value("jobs.batch", &key.namespace, &key.name) else {
            self.job_failures.remove(key);
            for pod in self.api.list_values("pods", &key.namespace) {
                let lost = controller(&pod)
                    .is_some_and(|owner| text(owner, "/kind") == "Job" && text(owner, "/name") == key.name);
                if lost {
                    self.release(&Key::new(&key.namespace, name(&pod)), &pod);
                }
            }
            return;
        };
        if is_true(&job, "Complete") || is_true(&job, "Failed") {
            self.job_failures.remove(key);
            self.clean_up(key, &job);
        } else if self.look_at_job(key, &job).is_err() {
            self.queue.push(self.now() + Duration::from_secs(1), Event::Job(key.clone()));
        }
    }

    fn look_at_job(&mut self, key: &Key, job: &Value) -> Outcome<()> {
        let now = self.clock.now();
        let members = self.members(key, job);
        let only_ended = text(job, "/spec/podReplacementPolicy") == "Failed";
        let suspended = job.pointer("/spec/suspend") == Some(&json!(true));
        let ended = |member: &&Member| member.tracked && (member.succeeded() || member.failed(only_ended));
        let newly: Vec<&Member> = members.iter().filter(ended).collect();
        let mut tally = Tally::of(job, &members, &newly);
        self.note_failures(key, &newly);
        let mut started = text(job, "/status/startTime").parse::<Timestamp>().ok();
        if started.is_none() && !suspended {
            started = Some(now);
        }
        let mut end = End::announced(job).or_else(|| self.fails(key, job, &tally, started, suspended));
        if end.is_some() {
            for member in members.iter().filter(|member| member.active()) {
                self.delete_member(key, member)?;
                tally.leaving += 1;
            }
            (tally.active, tally.ready) = (0, 0);
        } else if !terminating(job) {
            self.manage(key, job, &members, &mut tally, suspended)?;
        }
        if end.is_none() && tally.is_enough(job) && tally.active == 0 {
            let message = "Reached expected number of succeeded pods".to_owned();
            end = Some(End { failed: false, reason: "CompletionsReached".to_owned(), message });
        }
        let mut words: Vec<Condition<'_>> = Vec::new();
        if end.is_none() && suspended {
            words.push(Condition {
                kind: "Suspended",
                status: "True",
                reason: "JobSuspended",
                message: "Job suspended",
            });
        } else if end.is_none() && is_true(job, "Suspended") {
            words.push(Condition { kind: "Suspended", status: "False", reason: "JobResumed", message: "Job resumed" });
            // A Job that was suspended has all its time again.
            started = Some(now);
        }
        // Counted, in the status, and only then let go.
        let over = end.is_some() || terminating(job);
        let uncounted = members.iter().filter(|member| member.tracked && (over || ended(member)));
        for member in uncounted {
            // Whoever has not ended when the Job has failed has failed with it.
            tally.failed += i64::from(end.as_ref().is_some_and(|end| end.failed) && !ended(&member));
            if self.job_deviation != Some(JobDeviation::FinalizerKept) {
                self.release(&Key::new(&key.namespace, name(&member.pod)), &member.pod);
            }
        }
        let mut status = tally.status(started);
        if let Some(end) = &end {
            let [first, last] = end.words();
            let condition = |kind| Condition { kind, status: "True", reason: &end.reason, message: &end.message };
            if end.failed || self.job_deviation != Some(JobDeviation::NoCriteriaMet) {
                words.push(condition(first));
            }
            if tally.leaving == 0 {
                words.push(condition(last));
                if !end.failed {
                    status["completionTime"] = time(now);
                }
            }
        }
        if !words.is_empty() {
            status["conditions"] = probed(with_conditions(job, &words, now));
        }
        self.report_job(key, job, &status)
    }

    fn members(&self, key: &Key, job: &Value) -> Vec<Member> {
        let pods = self.api.list_values("pods", &key.namespace).into_iter();
        let ours = pods.filter(|pod| controller(pod).is_some_and(|owner| text(owner, "/uid") == uid(job)));
        ours.map(Member::of).collect()
    }

    fn note_failures(&mut self, key: &Key, newly: &[&Member]) {
        if newly.is_empty() {
            return;
        }
        let succeeded = newly.iter().filter(|member| member.succeeded()).map(|member| member.ended_at()).max();
        let failures = self.job_failures.entry(key.clone()).or_default();
        if succeeded.is_some() {
            *failures = Failures::default();
        }
        let after = |member: &&&Member| !member.succeeded() && succeeded.is_none_or(|last| member.ended_at() > last);
        for failed in newly.iter().filter(after) {
            failures.count += 1;
            failures.last = failures.last.max(Some(failed.ended_at()));
        }
    }

    /// Whether too many pods have failed, or the time is up.
    fn fails(
        &mut self,
        key: &Key,
        job: &Value,
        tally: &Tally,
        started: Option<Timestamp>,
        suspended: bool,
    ) -> Option<End> {
        let limit = number(job, "/spec/backoffLimit").unwrap_or(6);
        if tally.failed > limit && self.job_deviation != Some(JobDeviation::BackoffLimitIgnored) {
            return Some(End::failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
        }
        let seconds = number(job, "/spec/activeDeadlineSeconds").and_then(|seconds| u64::try_from(seconds).ok())?;
        if suspended || self.job_deviation == Some(JobDeviation::DeadlineIgnored) {
            return None;
        }
        // Times in a status are whole seconds.
        let started = started.and_then(|at| Timestamp::from_second(at.as_second()).ok())?;
        let ran: Duration = self.clock.now().duration_since(started).try_into().unwrap_or_default();
        let allowed = Duration::from_secs(seconds);
        if ran >= allowed {
            return Some(End::failed("DeadlineExceeded", "Job was active longer than specified deadline"));
        }
        self.queue.push(self.now() + allowed.saturating_sub(ran), Event::Job(key.clone()));
        None
    }

    /// Brings the number of running pods to what it should be.
    fn manage(
        &mut self,
        key: &Key,
        job: &Value,
        members: &[Member],
        tally: &mut Tally,
        suspended: bool,
    ) -> Outcome<()> {
        let parallelism = number(job, "/spec/parallelism").unwrap_or(1);
        let wanted = match number(job, "/spec/completions") {
            _ if suspended && self.job_deviation != Some(JobDeviation::SuspendIgnored) => 0,
            Some(completions) => (completions - tally.succeeded).clamp(0, parallelism),
            None if tally.succeeded > 0 => tally.active,
            None => parallelism,
        };
        let mut active: Vec<&Member> = members.iter().filter(|member| member.active()).collect();
        // Those that have come least far go first.
        active.sort_by_key(|member| {
            (member.ready(), member.phase == "Running", text(&member.pod, "/spec/nodeName").is_empty())
        });
        let surplus = usize::try_from(tally.active - wanted).unwrap_or(0);
        for member in active.into_iter().take(surplus) {
            self.release(&Key::new(&key.namespace, name(&member.pod)), &member.pod);
            self.delete_member(key, member)?;
            tally.active -= 1;
            tally.ready -= i64::from(member.ready());
            tally.leaving += 1;
        }
        if surplus > 0 || suspended {
            return Ok(());
        }
        let held = if text(job, "/spec/podReplacementPolicy") == "Failed" { tally.leaving } else { 0 };
        let lacking = wanted - held - tally.active;
        if lacking <= 0 {
            return Ok(());
        }
        let wait = self.job_failures.get(key).copied().unwrap_or_default().wait(self.clock.now());
        if !wait.is_zero() {
            self.queue.push(self.now() + wait, Event::Job(key.clone()));
            // What the real one reports until then.
            tally.active = 0;
            return Ok(());
        }
        for _ in 0..lacking {
            self.api.create_value(USER, build_pod(key, job))?;
            tally.active += 1;
        }
        Ok(())
    }

    fn delete_member(&self, key: &Key, member: &Member) -> Outcome<()> {
        match self.api.delete::<Pod>(USER, &key.namespace, name(&member.pod), &DeleteParams::default()) {
            Err(status) if status.code == 404 => Ok(()),
            other => other,
        }
    }

    /// Takes the finalizer off a pod.
    fn release(&self, key: &Key, pod: &Value) {
        let finalizers = list(pod, "/metadata/finalizers");
        if !finalizers.contains(&json!(TRACKING)) {
            return;
        }
        let kept: Vec<&Value> = finalizers.iter().filter(|finalizer| **finalizer != json!(TRACKING)).collect();
        let patch = json!({"metadata": {"uid": uid(pod), "finalizers": kept}});
        // One that is gone has none.
        let _ = self.api.merge::<Pod>(USER, &key.namespace, &key.name, &patch);
    }

    /// A pod without a controller is not counted by anybody any more.
    pub(super) fn release_orphan(&self, key: &Key) {
        if let Some(pod) = self.api.get_value("pods", &key.namespace, &key.name)
            && controller(&pod).is_none()
        {
            self.release(key, &pod);
        }
    }

    fn report_job(&self, key: &Key, job: &Value, status: &Value) -> Outcome<()> {
        let before = job.get("status").unwrap_or(&Value::Null);
        let changed = status.as_object().is_some_and(|status| {
            status.iter().any(|(field, value)| before.get(field).unwrap_or(&Value::Null) != value)
        });
        if changed {
            let patch = json!({"metadata": {"uid": uid(job)}, "status": status});
            self.api.merge_status::<Job>(USER, &key.namespace, &key.name, &patch)?;
        }
        Ok(())
    }

    /// Removes a Job that has ended, when it has been kept for as long as it wants.
    fn clean_up(&mut self, key: &Key, job: &Value) {
        let Some(kept) = number(job, "/spec/ttlSecondsAfterFinished").and_then(|kept| u64::try_from(kept).ok()) else {
            return;
        };
        let last = ["Complete", "Failed"].into_iter().find_map(|kind| super::json::condition(job, kind));
        let age = last.and_then(|last| since(last, "/lastTransitionTime", self.clock.now())).unwrap_or_default();
        let left = Duration::from_secs(kept).saturating_sub(age);
        if !left.is_zero() {
            self.queue.push(self.now() + left, Event::Job(key.clone()));
        } else if !terminating(job) {
            let options =
                DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
            let _ = self.api.delete::<Job>(CLEANER, &key.namespace, &key.name, &options);
        }
    }
}

/// Conditions of a Job say when they were last looked at, too.
fn probed(mut conditions: Value) -> Value {
    for condition in conditions.as_array_mut().into_iter().flatten() {
        let at = condition["lastTransitionTime"].clone();
        if condition.get("lastProbeTime").is_none_or(Value::is_null) {
            condition["lastProbeTime"] = at;
        }
    }
    conditions
}

fn build_pod(key: &Key, job: &Value) -> Value {
    let template = job.pointer("/spec/template").cloned().unwrap_or_default();
    let mut finalizers = list(&template, "/metadata/finalizers").to_vec();
    finalizers.push(json!(TRACKING));
    let mut metadata = json!({
        "generateName": format!("{}-", key.name),
        "namespace": key.namespace,
        "labels": template.pointer("/metadata/labels").cloned().unwrap_or(json!({})),
        "finalizers": finalizers,
        "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": key.name, "uid": uid(job),
            "controller": true, "blockOwnerDeletion": true,
        }],
    });
    if let Some(annotations) = template.pointer("/metadata/annotations") {
        metadata["annotations"] = annotations.clone();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec").cloned().unwrap_or(json!({}))})
}
