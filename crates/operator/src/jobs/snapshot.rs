//! The snapshot before an upgrade: a Job whose pod runs `windlass executor`, and what became of it.
//!
//! Its name comes from the custom resource's uid and the attempt's number; it ends by itself at its deadline; and what it does is harmless to
//! the quorum, also when it comes late.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, EmptyDirVolumeSource, PersistentVolumeClaimVolumeSource, Pod, PodSpec,
    ProjectedVolumeSource, SecretVolumeSource, ServiceAccountTokenProjection, Volume, VolumeMount, VolumeProjection,
};
use kube::ResourceExt;
use windlass_api::{
    QuorumCluster,
    executor::{Ending, Outcome},
    quorum_cluster::{
        backup::{Backup, S3Destination, VolumeDestination},
        system::{Auth, LogIn},
    },
    translate,
};
use windlass_images::Reference;
use windlass_plan::{
    Fact, Hold, Reason, Snapshot,
    strategy::known::snapshot::{Attempt, Progress},
};
use windlass_systems::transport::Peer;

use super::{Draft, KEPT, Maker, Seen, State, USER, powerless};
use crate::{
    Context, Settings,
    error::Error,
    members::{account::audience, system::capabilities},
    queue::Key,
};

/// What a snapshot's Job is made with.
pub struct Means<'a> {
    /// What it runs.
    pub image: Option<&'a str>,
    /// The members: whoever leads has everything that is committed, and comes first; the others are asked if it can't be reached.
    pub members: Vec<&'a Peer>,
}

/// The name of the Job that makes an attempt: no two attempts share one, nor do two resources.
pub fn job_name(resource: &QuorumCluster, attempt: &Attempt) -> String {
    format!("windlass-snapshot-{}-{}", resource.uid().unwrap_or_default(), attempt.number)
}

/// What became of the last attempt, if there is one that an upgrade may still begin with. What can't be read is not known, and holds
/// nothing else up.
pub async fn read(context: &Context, resource: &QuorumCluster) -> Fact<Progress> {
    let written = resource.status.as_ref().and_then(|status| status.snapshot.as_ref());
    let Some(attempt) = written.filter(|written| !written.used).and_then(|written| translate::attempt(written).ok())
    else {
        return Fact::Known(Progress::Missing);
    };
    match look(context, &Maker::of(resource), &job_name(resource, &attempt)).await {
        Ok(progress) => Fact::Known(progress),
        Err(error) => Fact::Unknown(error.story()),
    }
}

async fn look(context: &Context, maker: &Maker, name: &str) -> Result<Progress, Error> {
    let seen = maker.look(context, name).await?;
    let pods = match &seen.state {
        State::Complete | State::Failed(_) => maker.pods(context, &seen).await?,
        State::Missing | State::Foreign(_) | State::Running => Vec::new(),
    };
    Ok(judge(seen, &pods))
}

/// What became of the snapshot where this Job and its pods are.
fn judge(Seen { name, state, .. }: Seen, pods: &[Pod]) -> Progress {
    match state {
        State::Missing => Progress::Missing,
        State::Running => Progress::Running,
        State::Foreign(why) => Progress::Failed(why),
        State::Complete => match ending(pods) {
            Some(Ending::Done(Outcome::Snapshot(stored))) => {
                Progress::Done(Snapshot { bytes: stored.bytes, sha256: stored.sha256, location: stored.place })
            }
            Some(Ending::Failed(_)) | None => {
                Progress::Failed(format!("Job {name} has completed and left no result that can be read"))
            }
        },
        State::Failed(why) => Progress::Failed(match ending(pods) {
            Some(Ending::Failed(failure)) => format!("{} ({})", failure.message, failure.class),
            Some(Ending::Done(_)) | None => why,
        }),
    }
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

/// The attempt of this number and its deadline, as long as its Job does anything: an upgrade has not begun with it, and that is not over.
pub fn open(resource: &QuorumCluster, number: i32, now: Timestamp) -> Option<(Attempt, Duration)> {
    let written = resource.status.as_ref()?.snapshot.as_ref();
    let attempt = translate::attempt(written.filter(|written| written.attempt == number && !written.used)?).ok()?;
    let deadline = translate::snapshot_deadline(&resource.spec).ok()??;
    (now < attempt.since.saturating_add(deadline).ok()?).then_some((attempt, deadline))
}

/// The Job that makes the attempt of this number. Another try is another attempt, and a person's decision.
pub fn draft(resource: &QuorumCluster, means: &Means<'_>, number: i32, now: Timestamp) -> Result<Draft, Error> {
    let gone = |what: &str| Error::Gone(what.to_owned());
    let (attempt, deadline) = open(resource, number, now).ok_or_else(|| gone("the time for that snapshot"))?;
    let backup = resource.spec.backup.as_ref().ok_or_else(|| gone("spec.backup"))?;
    let image = means.image.ok_or_else(|| gone("the executor's image"))?;
    let not_after = attempt.since.saturating_add(deadline).unwrap_or(Timestamp::MAX);
    let mut pod = Mounted::default();
    pod.say("executor");
    pod.say("snapshot");
    pod.option("system", resource.spec.system.type_.name());
    for peer in &means.members {
        let Peer { pod: called, address, port, server_name, tls: _ } = peer;
        pod.option("member", &format!("{called}={server_name}:{port}@{address}"));
    }
    pod.option("not-after", &not_after.to_string());
    pod.option("file", &file(resource, &attempt));
    pod.credentials(resource);
    pod.destination(backup);
    let pod = pod.spec(image.to_owned(), backup.service_account_name.clone());
    Ok(Draft::of_pod(job_name(resource, &attempt), "snapshot", pod, deadline, KEPT))
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
        let container = Container {
            name: "executor".to_owned(),
            image: Some(image),
            args: Some(arguments),
            volume_mounts: Some(mounts),
            // One that dies before it can say why has said something.
            termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
            ..Container::default()
        };
        let mut pod = powerless(Some(account), container);
        pod.security_context.get_or_insert_default().fs_group = Some(USER);
        pod.volumes = Some(volumes);
        pod
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
