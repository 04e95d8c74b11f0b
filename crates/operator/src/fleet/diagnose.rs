//! Looks at the pods behind the resources of a tier that is on its way, and says what is wrong with them (E12).
//!
//! It is only a diagnosis: of a few resources, seldom, with little patience, and what can't be read changes nothing. What is made of it is
//! `windlass_plan::fleet`'s. It is kept in memory and nowhere else: whoever comes after looks for themselves.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, api::ListParams};
use tokio::time::Instant;
use windlass_api::ServiceImage;
use windlass_plan::{
    Trouble,
    fleet::{
        Ailment, Diagnosis, Finding, ItemId, Look, PodLook, PodState, Record, Sample, Standing, Tier, TierName, Want,
        sample,
    },
};

use super::{Fleet, loose::Loose};
use crate::{
    Context,
    actor::Actor,
    logs,
    trouble::{diagnose, telling},
};

/// How often the pods of a tier are looked at.
const EVERY: Duration = Duration::from_secs(12);
/// How long a diagnosis counts when it can't be made anew: what halted for a good reason does not go on because a read failed.
const KEPT: Duration = Duration::from_mins(1);
/// How long all looks of a round may take: what is decided meanwhile grows old.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many resources are looked at at once.
const CONCURRENCY: usize = 4;
/// The most pods of one resource that are read.
const MOST_PODS: u32 = 200;
/// So long a process may run before it is worth a word that it is not ready.
const SLOW: Duration = Duration::from_secs(30);

/// What was said of tiers when they were last looked at, by ServiceImage. Lost with the process, and no loss.
#[derive(Debug, Default)]
pub struct Diagnoses(Mutex<BTreeMap<(String, TierName), Known>>);

#[derive(Clone, Debug)]
struct Known {
    /// The image that it is about.
    image: String,
    /// When it was looked.
    looked: Instant,
    /// What was wrong, and when that was seen.
    wrong: Option<(Instant, Diagnosis)>,
}

/// What a look came to.
enum Found {
    /// Nothing could be read.
    Unread,
    /// Nothing is wrong that pods tell.
    Well,
    /// This is.
    Wrong(Diagnosis),
}

impl Known {
    fn diagnosis(&self) -> Option<&Diagnosis> {
        self.wrong.as_ref().filter(|(seen, _)| seen.elapsed() < KEPT).map(|(_, diagnosis)| diagnosis)
    }
}

impl Diagnoses {
    fn map(&self) -> MutexGuard<'_, BTreeMap<(String, TierName), Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known about this tier with this image.
    fn get(&self, key: &(String, TierName), image: &str) -> Option<Known> {
        self.map().get(key).filter(|known| known.image == image).cloned()
    }

    /// It was looked just now. Where nothing could be read, what was known before is known a little longer.
    fn keep(&self, key: (String, TierName), image: &str, found: Found) -> Known {
        let now = Instant::now();
        let wrong = match found {
            Found::Unread => self.get(&key, image).and_then(|known| known.wrong),
            Found::Well => None,
            Found::Wrong(diagnosis) => Some((now, diagnosis)),
        };
        let known = Known { image: image.to_owned(), looked: now, wrong };
        self.map().insert(key, known.clone());
        known
    }

    /// A ServiceImage is gone.
    pub(super) fn forget(&self, name: &str) {
        self.map().retain(|(of, _), _| of != name);
    }
}

/// What is known of the tiers whose turn it is.
#[derive(Debug, Default)]
pub struct Looked {
    /// What is wrong.
    pub diagnoses: BTreeMap<TierName, Diagnosis>,
    /// When to look again; also where everything halts, or it would never go on.
    pub again: Option<Duration>,
}

/// Looks where it is time to.
pub async fn look(actor: Actor<'_>, fleet: &Fleet, resource: &ServiceImage, want: &Want, record: &Record) -> Looked {
    let (context, name) = (actor.context, resource.name_any());
    let until = Instant::now() + PATIENCE;
    let mut looked = Looked::default();
    // Pods are looked for in a resource's own namespace, and nowhere else (H41).
    for tier in want.tiers.iter().filter(|_| fleet.target.namespaced) {
        let key = (name.clone(), tier.name.clone());
        let now = context.clock.now();
        let sample = sample(tier, &fleet.index, record, now);
        if sample == Sample::default() {
            // Nobody is on the way, or it is another tier's turn.
            continue;
        }
        let ripe = sample.next.filter(|_| sample.ids.is_empty()).map(|next| next.duration_since(now));
        let ripe = ripe.map(|ripe| Duration::try_from(ripe).unwrap_or_default());
        let mut known = context.diagnoses.get(&key, &tier.image);
        let fresh = known.as_ref().is_some_and(|known| known.looked.elapsed() < EVERY);
        if !sample.ids.is_empty() && !fresh {
            let found = examine(actor, fleet, resource, tier, &sample, until).await;
            known = Some(context.diagnoses.keep(key, &tier.image, found));
        }
        let due = known.as_ref().filter(|_| !sample.ids.is_empty()).map(|it| EVERY.saturating_sub(it.looked.elapsed()));
        looked.again = [looked.again, due, ripe].into_iter().flatten().min();
        if let Some(diagnosis) = known.as_ref().and_then(Known::diagnosis) {
            looked.diagnoses.insert(tier.name.clone(), diagnosis.clone());
        }
    }
    looked
}

/// What is wrong with these.
async fn examine(
    actor: Actor<'_>,
    fleet: &Fleet,
    resource: &ServiceImage,
    tier: &Tier,
    sample: &Sample,
    until: Instant,
) -> Found {
    let (shown, image) = (resource.spec.show_logs, tier.image.as_str());
    let reads = stream::iter(&sample.ids).map(|id| async move { (id, pods(actor, fleet, id, image, until).await) });
    let read: Vec<(&ItemId, Option<Vec<Pod>>)> = reads.buffered(CONCURRENCY).collect().await;
    let read: Vec<(&ItemId, Vec<Pod>)> = read.into_iter().filter_map(|(id, pods)| Some((id, pods?))).collect();
    if read.is_empty() {
        return Found::Unread;
    }
    let now = actor.context.clock.now();
    let pod = |pod: &Pod| PodLook { name: pod.name_any(), state: state(pod, image, shown, now) };
    let of = |(id, pods): &(&ItemId, Vec<Pod>)| Look { id: (*id).clone(), pods: pods.iter().map(pod).collect() };
    let looks: Vec<Look> = read.iter().map(of).collect();
    let done = fleet.index.tier(&tier.name).map_or(0, |index| index.count(Standing::Done));
    let Some(finding) = Finding::of(&looks, sample.whole, done) else { return Found::Well };
    let example = read.iter().filter(|(id, _)| *id == finding.id).flat_map(|(_, pods)| pods);
    let example = example.into_iter().find(|pod| pod.name_any() == finding.pod);
    let source = example.and_then(|pod| Some((pod, telling(pod, container_of(pod, image)?)?)));
    let log = match source {
        Some((pod, source)) => Some(logs::read(actor.context, pod, &source, shown, until).await),
        None => None,
    };
    Found::Wrong(finding.diagnosis(log.as_ref()))
}

/// The pods of a resource that were made for this image; none where they can't be told.
async fn pods(actor: Actor<'_>, fleet: &Fleet, id: &ItemId, image: &str, until: Instant) -> Option<Vec<Pod>> {
    let context = actor.context;
    let targets = fleet.target.api(actor, id.namespace());
    let what = format!("{}/{id}", fleet.target.resource.plural);
    let Loose(object) = read(context, "get", &what, until, targets.get(id.name())).await?;
    if fleet.contract.pen.image(&object) != Some(image) {
        return None;
    }
    let selector = fleet.contract.pods_of(&object)?;
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), id.namespace());
    let params = ListParams::default().labels(&selector).limit(MOST_PODS);
    let list = read(context, "list", &format!("pods of {id}"), until, pods.list(&params)).await?;
    let mut pods: Vec<Pod> = list.items.into_iter().filter(|pod| is_of(pod, image)).collect();
    pods.sort_by_key(ResourceExt::name_any);
    Some(pods)
}

async fn read<T>(
    context: &Context,
    verb: &'static str,
    what: &str,
    until: Instant,
    send: impl Future<Output = kube::Result<T>>,
) -> Option<T> {
    let left = until.saturating_duration_since(Instant::now());
    let read = context.bounded(left.min(context.settings.read_deadline), verb, what, send).await;
    read.inspect_err(|error| tracing::debug!(error = error.story(), "pods can't be looked at")).ok()
}

/// It was made for this image, and is not over or on its way out.
fn is_of(pod: &Pod, image: &str) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none()
        && !matches!(phase, Some("Succeeded" | "Failed"))
        && container_of(pod, image).is_some()
}

/// The container that has the image.
fn container_of<'a>(pod: &'a Pod, image: &str) -> Option<&'a str> {
    let spec = pod.spec.as_ref()?;
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    containers.into_iter().find(|one| one.image.as_deref() == Some(image)).map(|one| one.name.as_str())
}

/// How a pod is.
fn state(pod: &Pod, image: &str, shown: bool, now: Timestamp) -> PodState {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    if conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True") {
        return PodState::Ready;
    }
    if let Some(trouble) = diagnose(pod) {
        return PodState::Ails(Ailment::Named(if shown { trouble } else { discreet(trouble) }));
    }
    let statuses = status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let slow = statuses.iter().filter(|one| !one.ready).find(|one| {
        let running = one.state.as_ref().and_then(|state| state.running.as_ref());
        let since = running.and_then(|running| running.started_at.as_ref()).map(|started| started.0);
        since.and_then(|since| since.checked_add(SLOW).ok()).is_some_and(|slow| slow <= now)
    });
    slow.map_or(PodState::Coming, |one| {
        let (container, image) = (format!("container {}", one.name), image.to_owned());
        PodState::Ails(Ailment::Unready { container, image })
    })
}

/// Without what a process said at its end: that can be the end of its log (H41).
fn discreet(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::CrashLoop { container, image, restarts, exit } => {
            let exit = exit.map(|mut exit| {
                exit.message.clear();
                exit
            });
            Trouble::CrashLoop { container, image, restarts, exit }
        }
        Trouble::Unschedulable { .. }
        | Trouble::ImageUnusable { .. }
        | Trouble::ImagePull { .. }
        | Trouble::Config { .. } => trouble,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::Pod;
    use rstest::rstest;
    use serde_json::{Value, json};
    use windlass_plan::{
        Reason,
        fleet::{Ailment, Diagnosis, PodState, TierName},
    };

    use super::{Diagnoses, EVERY, Found, KEPT, is_of, state};

    #[expect(clippy::needless_pass_by_value, reason = "callers write the JSON in place")]
    fn pod(image: &str, status: Value) -> Pod {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a-1"},
            "spec": {"containers": [{"name": "proxy", "image": "r/proxy:v1"}, {"name": "dicom", "image": image}]},
            "status": status,
        }))
        .unwrap()
    }

    fn running(since: &str, ready: bool) -> Value {
        json!({"phase": "Running", "containerStatuses": [{
            "name": "dicom", "image": "", "imageID": "", "ready": ready, "restartCount": 0,
            "state": {"running": {"startedAt": since}},
        }], "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]})
    }

    fn crashed() -> Value {
        json!({"phase": "Running", "containerStatuses": [{
            "name": "dicom", "image": "", "imageID": "", "ready": false, "restartCount": 4,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 3, "message": "password is hunter2"}},
        }]})
    }

    #[rstest]
    #[case::serves(running("2026-01-01T00:00:00Z", true), "Ready")]
    #[case::has_just_started(running("2026-01-01T00:00:59Z", false), "Coming")]
    #[case::has_run_for_a_while(running("2026-01-01T00:00:30Z", false), "Unready")]
    #[case::nothing_yet(json!({"phase": "Pending"}), "Coming")]
    #[case::keeps_ending(crashed(), "CrashLooping")]
    fn how_a_pod_is(#[case] status: Value, #[case] expected: &str) {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let told = match state(&pod("r/d:v2", status), "r/d:v2", false, now) {
            PodState::Ready => "Ready".to_owned(),
            PodState::Coming => "Coming".to_owned(),
            PodState::Ails(Ailment::Unready { container, .. }) => {
                assert_eq!(container, "container dicom");
                "Unready".to_owned()
            }
            PodState::Ails(Ailment::Named(trouble)) => trouble.reason().name().to_owned(),
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn h41_what_a_process_said_at_its_end_is_shown_like_its_log() {
        let told = |shown| format!("{:?}", state(&pod("r/d:v2", crashed()), "r/d:v2", shown, Timestamp::UNIX_EPOCH));
        assert!(told(true).contains("hunter2"));
        assert!(!told(false).contains("hunter2") && told(false).contains("code: 3"), "{}", told(false));
    }

    #[rstest]
    #[case::with_the_image("r/d:v2", json!({"phase": "Running"}), true)]
    #[case::of_the_image_before("r/d:v1", json!({"phase": "Running"}), false)]
    #[case::evicted("r/d:v2", json!({"phase": "Failed"}), false)]
    fn only_pods_of_the_new_image_say_something(#[case] image: &str, #[case] status: Value, #[case] expected: bool) {
        let mut pod = pod(image, status);
        assert_eq!(is_of(&pod, "r/d:v2"), expected);
        pod.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        assert!(!is_of(&pod, "r/d:v2"), "on its way out");
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_read_changes_nothing_for_a_while() {
        let (diagnoses, key) = (Diagnoses::default(), ("dicom".to_owned(), TierName::default()));
        let bad = Diagnosis { reason: Reason::ImagePullFailed, message: "all can't pull".into(), hopeless: Vec::new() };
        let said = |image: &str| diagnoses.get(&key, image).and_then(|known| known.diagnosis().cloned());
        assert_eq!(said("v2"), None);
        diagnoses.keep(key.clone(), "v2", Found::Wrong(bad.clone()));
        assert_eq!((said("v2"), said("v3")), (Some(bad.clone()), None), "another image begins anew");
        tokio::time::advance(EVERY).await;
        diagnoses.keep(key.clone(), "v2", Found::Unread);
        assert_eq!(said("v2"), Some(bad.clone()));
        tokio::time::advance(KEPT).await;
        diagnoses.keep(key.clone(), "v2", Found::Unread);
        assert_eq!(said("v2"), None, "not for ever");
        diagnoses.keep(key.clone(), "v2", Found::Wrong(bad));
        diagnoses.keep(key.clone(), "v2", Found::Well);
        assert_eq!(said("v2"), None, "the cause is gone");
        diagnoses.forget("dicom");
        assert!(diagnoses.map().is_empty());
    }
}
