//! The snapshot before an upgrade: a Job whose pod runs `windlass executor`, and what became of it.
//!
//! Its name comes from the custom resource's uid and the attempt's number; it ends by itself at its deadline; and what it does is harmless to
//! the quorum, also when it comes late.

use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::{Job, JobSpec},
    core::v1::{
        ConfigMapVolumeSource, Container, EmptyDirVolumeSource, PersistentVolumeClaimVolumeSource, Pod,
        PodSecurityContext, PodSpec, PodTemplateSpec, ProjectedVolumeSource, SecretVolumeSource,
        ServiceAccountTokenProjection, Volume, VolumeMount, VolumeProjection,
    },
};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use windlass_api::{
    QuorumCluster,
    executor::{Ending, Outcome},
    quorum_cluster::{Auth, Backup, LogIn, S3Destination, VolumeDestination},
    translate,
};
use windlass_images::Reference;
use windlass_plan::{
    Fact, Hold, Reason, Snapshot,
    strategy::snapshot::{Attempt, Progress},
};
use windlass_systems::transport::Peer;

use super::{KEPT_SECONDS, State, USER, create, find, labels, nobody, nothing_allowed, pods_of, state};
use crate::{
    Context, Settings,
    actor::Actor,
    error::Error,
    members::{account::audience, system::capabilities},
    queue::Key,
};

/// Whose Jobs these are.
const KIND: &str = "QuorumCluster";

/// What a snapshot's Job is made with.
pub struct Means<'a> {
    /// What it runs.
    pub image: Option<&'a str>,
    /// The members: whoever leads has everything that is committed, and comes first; the others are asked if it can't be reached.
    pub members: Vec<&'a Peer>,
}

/// A Job and its pods, as read.
#[derive(Clone, Debug)]
pub struct Task {
    /// The Job.
    pub job: Job,
    /// Its pods, read once it has ended.
    pub pods: Vec<Pod>,
}

/// The name of the Job that makes an attempt: no two attempts share one, nor do two resources.
pub fn job_name(resource: &QuorumCluster, attempt: &Attempt) -> String {
    format!("windlass-snapshot-{}-{}", resource.uid().unwrap_or_default(), attempt.number)
}

/// The Job of the last attempt, if there is one that an upgrade may still begin with. What can't be read is not known, and holds
/// nothing else up.
pub async fn read(context: &Context, resource: &QuorumCluster) -> Fact<Option<Box<Task>>> {
    let written = resource.status.as_ref().and_then(|status| status.snapshot.as_ref());
    let Some(attempt) = written.filter(|written| !written.spent).and_then(|written| translate::attempt(written).ok())
    else {
        return Fact::Known(None);
    };
    let (name, namespace) = (job_name(resource, &attempt), resource.namespace().unwrap_or_default());
    match task(context, &namespace, &name, resource.uid().as_deref()).await {
        Ok(task) => Fact::Known(task.map(Box::new)),
        Err(error) => Fact::Unknown(error.story()),
    }
}

async fn task(context: &Context, namespace: &str, name: &str, uid: Option<&str>) -> Result<Option<Task>, Error> {
    let Some(job) = find(context, namespace, name).await? else { return Ok(None) };
    let ended = matches!(state(&job, uid, KIND), State::Complete | State::Failed(_));
    let pods = if ended { pods_of(context, namespace, &job).await? } else { Vec::new() };
    Ok(Some(Task { job, pods }))
}

/// What became of the snapshot.
pub fn progress(resource: &QuorumCluster, task: &Fact<Option<Box<Task>>>) -> Fact<Progress> {
    let task = match task {
        Fact::Known(Some(task)) => task,
        Fact::Known(None) => return Fact::Known(Progress::Missing),
        Fact::Unknown(why) => return Fact::Unknown(why.clone()),
    };
    let Task { job, pods } = task.as_ref();
    let name = job.name_any();
    Fact::Known(match state(job, resource.uid().as_deref(), KIND) {
        State::Foreign(why) => Progress::Failed(why),
        State::Complete => match ending(pods) {
            Some(Ending::Done(Outcome::Snapshot(stored))) => {
                Progress::Done(Snapshot { bytes: stored.bytes, sha256: stored.sha256, place: stored.place })
            }
            Some(Ending::Failed(_)) | None => {
                Progress::Failed(format!("Job {name} has completed and left no result that can be read"))
            }
        },
        State::Failed(why) => Progress::Failed(match ending(pods) {
            Some(Ending::Failed(failure)) => format!("{} ({})", failure.message, failure.class),
            Some(Ending::Done(_)) | None => why,
        }),
        State::Running => Progress::Running,
    })
}

/// What the container that ended last left behind.
fn ending(pods: &[Pod]) -> Option<Ending> {
    let statuses = pods.iter().filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref()).flatten();
    let ended = statuses.filter_map(|status| status.state.as_ref()?.terminated.as_ref());
    let last = ended.max_by_key(|ended| ended.finished_at.as_ref().map(|time| time.0))?;
    Ending::read(last.message.as_deref()?)
}

/// The image that executor Jobs run: the operator's own, or one that its administrator allows, for what runs there gets the members'
/// credentials (H41). Or what keeps a snapshot from being taken at all.
pub fn image(settings: &Settings, resource: &QuorumCluster) -> Result<String, Hold> {
    let own = settings.executor_image.as_ref();
    let Some(named) = &resource.spec.upgrade.executor_image else {
        let why = "spec.upgrade.executorImage: it is not set, and the operator was started without --executor-image";
        return own.cloned().ok_or_else(|| Hold::new(Reason::InvalidSpec, why));
    };
    if own == Some(named) || settings.allowed_executor_images.iter().any(|allowed| is_of(named, allowed)) {
        return Ok(named.clone());
    }
    let why = format!("spec.upgrade.executorImage: nobody allowed {named} for executor Jobs");
    Err(Hold::new(Reason::ExecutorImageNotAllowed, why))
}

/// Whether an image is the one that was allowed, or of the repository that was allowed with all its tags.
fn is_of(image: &str, allowed: &str) -> bool {
    let (Ok(image), Ok(allowed)) = (image.parse::<Reference>(), allowed.parse::<Reference>()) else { return false };
    let whole = allowed.tag().is_none() && allowed.digest().is_none();
    image == allowed || (whole && (image.registry(), image.repository()) == (allowed.registry(), allowed.repository()))
}

/// The attempt whose Job is not there, and which a predecessor may be about to make (H1): later than its deadline it would do nothing.
pub fn pending(resource: &QuorumCluster, task: &Fact<Option<Box<Task>>>, now: Timestamp) -> Option<Attempt> {
    let written = resource.status.as_ref()?.snapshot.as_ref().filter(|written| !written.spent)?;
    let attempt = translate::attempt(written).ok()?;
    let deadline = translate::snapshot_deadline(&resource.spec).ok()??;
    let missing = matches!(task, Fact::Known(None));
    (missing && now < attempt.since.saturating_add(deadline).ok()?).then_some(attempt)
}

/// Makes the Job of an attempt.
pub async fn start(
    actor: Actor<'_>,
    resource: &QuorumCluster,
    means: &Means<'_>,
    attempt: &Attempt,
) -> Result<(), Error> {
    let Some(backup) = &resource.spec.backup else { return Err(Error::Gone("spec.backup".into())) };
    let Some(image) = means.image else { return Err(Error::Gone("the executor's image".into())) };
    let job = job(resource, &means.members, attempt, backup, image.to_owned())?;
    create(actor, &resource.namespace().unwrap_or_default(), &job).await
}

fn job(
    resource: &QuorumCluster,
    members: &[&Peer],
    attempt: &Attempt,
    backup: &Backup,
    image: String,
) -> Result<Job, Error> {
    let Ok(Some(deadline)) = translate::snapshot_deadline(&resource.spec) else {
        return Err(Error::Gone("spec.backup.preUpgradeSnapshot".into()));
    };
    let not_after = attempt.since.saturating_add(deadline).unwrap_or(Timestamp::MAX);
    let mut pod = Mounted::default();
    pod.say("executor");
    pod.say("snapshot");
    pod.option("system", resource.spec.system.type_.name());
    for peer in members {
        let Peer { pod: called, address, port, server_name, tls: _ } = peer;
        pod.option("member", &format!("{called}={server_name}:{port}@{address}"));
    }
    pod.option("not-after", &not_after.to_string());
    pod.option("file", &file(resource, attempt));
    pod.credentials(resource);
    pod.destination(backup);
    let labels = labels("snapshot");
    let seconds = i64::try_from(deadline.as_secs()).unwrap_or(i64::MAX);
    Ok(Job {
        metadata: ObjectMeta {
            name: Some(job_name(resource, attempt)),
            labels: Some(labels.clone()),
            owner_references: resource.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            // Another try is another attempt, and a person's decision.
            backoff_limit: Some(0),
            active_deadline_seconds: Some(seconds),
            ttl_seconds_after_finished: Some(KEPT_SECONDS),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(pod.spec(image, backup.service_account_name.clone())),
            },
            ..JobSpec::default()
        }),
        ..Job::default()
    })
}

/// What the snapshot is called: the set, when it was asked for, and by which attempt.
fn file(resource: &QuorumCluster, attempt: &Attempt) -> String {
    let since = attempt.since.strftime("%Y%m%dT%H%M%SZ");
    let ending = capabilities(&resource.spec.system).snapshot.unwrap_or("snap");
    format!("{}-{since}-{}.{ending}", resource.spec.workload.stateful_set, attempt.number)
}

/// The arguments of an executor, and what is mounted for them.
#[derive(Default)]
struct Mounted {
    arguments: Vec<String>,
    volumes: Vec<Volume>,
    mounts: Vec<VolumeMount>,
}

impl Mounted {
    fn say(&mut self, word: &str) {
        self.arguments.push(word.to_owned());
    }

    fn option(&mut self, name: &str, value: &str) {
        self.arguments.push(format!("--{name}={value}"));
    }

    fn mount(&mut self, volume: Volume, read_only: bool) -> String {
        let path = format!("/windlass/{}", volume.name);
        self.mounts.push(VolumeMount {
            name: volume.name.clone(),
            mount_path: path.clone(),
            read_only: Some(read_only),
            ..VolumeMount::default()
        });
        self.volumes.push(volume);
        path
    }

    fn secret(&mut self, volume: &str, secret: &str) -> String {
        let source = SecretVolumeSource { secret_name: Some(secret.to_owned()), ..SecretVolumeSource::default() };
        self.mount(Volume { name: volume.to_owned(), secret: Some(source), ..Volume::default() }, true)
    }

    fn config_map(&mut self, volume: &str, name: &str) -> String {
        let source = ConfigMapVolumeSource { name: name.to_owned(), ..ConfigMapVolumeSource::default() };
        self.mount(Volume { name: volume.to_owned(), config_map: Some(source), ..Volume::default() }, true)
    }

    /// Whom to trust, and who asks.
    fn credentials(&mut self, resource: &QuorumCluster) {
        if let Some(tls) = &resource.spec.system.tls {
            let path = match (&tls.ca_secret, &tls.ca_config_map) {
                (Some(secret), _) => Some(self.secret("ca", secret)),
                (None, Some(map)) => Some(self.config_map("ca", map)),
                // The schema takes one of the two; without any it finds nobody to trust.
                (None, None) => None,
            };
            if let Some(path) = path {
                self.option("ca-file", &format!("{path}/ca.crt"));
            }
            if let Some(client) = &tls.client_secret {
                let path = self.secret("client", client);
                self.option("certificate-file", &format!("{path}/tls.crt"));
                self.option("key-file", &format!("{path}/tls.key"));
            }
        }
        let Some(Auth { token_secret, password_secret, kubernetes, jwt, allow_plaintext: _ }) =
            &resource.spec.system.auth
        else {
            return;
        };
        let audience = audience(&Key::of(resource));
        if let Some(secret) = password_secret {
            let path = self.secret("user", secret);
            self.option("user-folder", &path);
        } else if let Some(secret) = token_secret {
            let path = self.secret("token", secret);
            self.option("token-file", &format!("{path}/token"));
        } else if let Some(role) = kubernetes {
            self.log_in("kubernetes", role, &audience);
        } else if let Some(role) = jwt {
            self.log_in("jwt", role, &audience);
        }
    }

    /// A token of the pod's own account is mounted, for this alone: any account of the namespace can be named, and the members get to
    /// see its token, so the API server must not take it (H41).
    fn log_in(&mut self, method: &str, LogIn { role, mount, namespace }: &LogIn, audience: &str) {
        let token = ServiceAccountTokenProjection {
            path: "token".to_owned(),
            audience: Some(audience.to_owned()),
            ..ServiceAccountTokenProjection::default()
        };
        let source = VolumeProjection { service_account_token: Some(token), ..VolumeProjection::default() };
        let projected = ProjectedVolumeSource { sources: Some(vec![source]), ..ProjectedVolumeSource::default() };
        let volume = Volume { name: "account".to_owned(), projected: Some(projected), ..Volume::default() };
        let path = self.mount(volume, true);
        self.option("log-in", method);
        self.option("role", role);
        if let Some(mount) = mount {
            self.option("auth-mount", mount);
        }
        if let Some(namespace) = namespace {
            self.option("auth-namespace", namespace);
        }
        self.option("service-account-token", &format!("{path}/token"));
    }

    fn destination(&mut self, backup: &Backup) {
        if let Some(VolumeDestination { claim_name, path }) = &backup.destination.volume {
            let claim = PersistentVolumeClaimVolumeSource { claim_name: claim_name.clone(), read_only: Some(false) };
            let volume =
                Volume { name: "backup".to_owned(), persistent_volume_claim: Some(claim), ..Volume::default() };
            let top = self.mount(volume, false);
            self.option("directory", &top);
            self.option("folder", path);
            self.option("volume", claim_name);
        }
        if let Some(s3) = &backup.destination.s3 {
            let S3Destination { endpoint, bucket, prefix, region, credentials_secret, ca_secret } = s3;
            // The length of an object must be known before it is sent, and that of a snapshot is not: it is put down here first.
            let empty = Some(EmptyDirVolumeSource::default());
            let spool = self.mount(Volume { name: "spool".to_owned(), empty_dir: empty, ..Volume::default() }, false);
            let credentials = self.secret("s3", credentials_secret);
            self.option("s3-endpoint", endpoint);
            self.option("s3-bucket", bucket);
            self.option("s3-prefix", prefix);
            self.option("s3-region", region);
            self.option("s3-credentials", &credentials);
            self.option("spool", &spool);
            if let Some(secret) = ca_secret {
                let path = self.secret("s3-ca", secret);
                self.option("s3-ca-file", &format!("{path}/ca.crt"));
            }
        }
    }

    fn spec(self, image: String, account: String) -> PodSpec {
        let Self { arguments, volumes, mounts } = self;
        PodSpec {
            restart_policy: Some("Never".to_owned()),
            service_account_name: Some(account),
            // It asks Kubernetes for nothing.
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            security_context: Some(PodSecurityContext { fs_group: Some(USER), ..nobody() }),
            containers: vec![Container {
                name: "executor".to_owned(),
                image: Some(image),
                args: Some(arguments),
                volume_mounts: Some(mounts),
                // One that dies before it can say why has said something.
                termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
                security_context: Some(nothing_allowed()),
                ..Container::default()
            }],
            volumes: Some(volumes),
            ..PodSpec::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::is_of;

    #[rstest]
    #[case::the_same("registry.example/windlass:1", "registry.example/windlass:1", true)]
    #[case::a_tag_of_the_repository("registry.example/windlass:2", "registry.example/windlass", true)]
    #[case::another_tag("registry.example/windlass:2", "registry.example/windlass:1", false)]
    #[case::a_digest_where_a_tag_was_allowed("registry.example/windlass@md5:00", "registry.example/windlass:1", false)]
    #[case::another_repository("registry.example/windlass-evil:1", "registry.example/windlass", false)]
    #[case::below_it("registry.example/windlass/evil:1", "registry.example/windlass", false)]
    #[case::another_registry("evil.example/windlass:1", "registry.example/windlass", false)]
    #[case::no_image("registry.example/windlass:1 --evil", "registry.example/windlass", false)]
    fn h41_an_executor_is_of_what_was_allowed(#[case] image: &str, #[case] allowed: &str, #[case] expected: bool) {
        assert_eq!(is_of(image, allowed), expected);
    }
}
