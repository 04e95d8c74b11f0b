//! Where a container's log tells more, for people: a hint in messages, and nothing that is decided from.
//!
//! Whoever may read a resource of ours need not be allowed to read logs, and a log holds what nobody meant to show (H41). So its last line is
//! read only where `showLogs` says so, and otherwise the message says how to read it. It is read of pods that were replaced and are not up,
//! while an upgrade is under way, and seldom. What can't be read changes nothing.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{Api, ResourceExt, api::LogParams};
use tokio::time::Instant;
use windlass_api::{QuorumCluster, conditions::Tri};
use windlass_plan::trouble::Log;

use crate::{
    Context,
    trouble::{Source, telling},
};

/// How long a line counts before the log of the same pod is read again.
const KEPT: Duration = Duration::from_secs(15);
/// How long all logs of one look may take: what is decided meanwhile grows old.
const PATIENCE: Duration = Duration::from_secs(2);
/// As much of a line as is asked for, in bytes.
const ASKED: i64 = 4096;
/// As much of a line as is shown, in characters.
const SHOWN: usize = 200;

/// What logs ended with when they were last read, by the uid of their pods. Lost with the process, and no loss.
#[derive(Debug, Default)]
pub struct Logs(Mutex<BTreeMap<String, Kept>>);

#[derive(Clone, Debug)]
struct Kept {
    container: String,
    line: Option<String>,
    since: Instant,
}

impl Kept {
    /// Another container's line says nothing of this one, which waits its turn.
    fn line_of(self, container: &str) -> Option<String> {
        self.line.filter(|_| self.container == container)
    }
}

impl Logs {
    fn map(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was read of this pod a moment ago.
    fn kept(&self, uid: &str) -> Option<Kept> {
        let mut map = self.map();
        map.retain(|_, kept| kept.since.elapsed() < KEPT);
        map.get(uid).cloned()
    }

    fn keep(&self, uid: String, container: &str, line: Option<String>) {
        let kept = Kept { container: container.to_owned(), line, since: Instant::now() };
        self.map().insert(uid, kept);
    }
}

/// Where logs tell more, by pod, of those whose members are not up.
pub async fn look(
    context: &Context,
    resource: &QuorumCluster,
    set: &StatefulSet,
    pods: &[Pod],
) -> BTreeMap<String, Log> {
    let until = Instant::now() + PATIENCE;
    let mut logs = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !is_up(pod, resource)) {
        let Some(source) = telling(pod, &resource.spec.workload.container) else { continue };
        let shown = resource.spec.upgrade.show_logs && is_replaced(resource, set, pod);
        logs.insert(pod.name_any(), read(context, pod, &source, shown, until).await);
    }
    logs
}

/// Takes away what a pod's processes said at their end: that can be the end of a log.
pub fn silence(pod: &mut Pod) {
    let Some(status) = &mut pod.status else { return };
    let containers = [&mut status.container_statuses, &mut status.init_container_statuses];
    for container in containers.into_iter().flatten().flatten() {
        for state in [&mut container.state, &mut container.last_state].into_iter().flatten() {
            if let Some(ended) = &mut state.terminated {
                ended.message = None;
            }
        }
    }
}

/// What a log ends with, where that may be shown and can be had in time; otherwise how a person reads it.
pub async fn read(context: &Context, pod: &Pod, source: &Source, shown: bool, until: Instant) -> Log {
    let line = if shown { last_line(context, pod, source, until).await } else { None };
    line.map_or_else(|| Log::Command(command(pod, source)), Log::LastLine)
}

/// Its pod is ready, and its member was healthy at the last look: what the present one will say is asked at the same time.
fn is_up(pod: &Pod, resource: &QuorumCluster) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let ready = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let members = resource.status.as_ref().map(|status| status.members.as_slice()).unwrap_or_default();
    ready && members.iter().any(|member| member.pod == pod.name_any() && member.healthy.known() == Some(Tri::True))
}

/// It was made from the template of the upgrade that is under way.
fn is_replaced(resource: &QuorumCluster, set: &StatefulSet, pod: &Pod) -> bool {
    let Some(upgrade) = resource.status.as_ref().and_then(|status| status.upgrade.as_ref()) else { return false };
    let newest = set.status.as_ref().and_then(|status| status.update_revision.as_ref());
    // Where the template was put back, the newest one is not the upgrade's.
    let revision = upgrade.revision.as_ref().or(newest);
    revision.is_some() && pod.labels().get("controller-revision-hash") == revision
}

/// How a person reads it.
fn command(pod: &Pod, source: &Source) -> String {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let previous = if source.previous { " --previous" } else { "" };
    format!("kubectl logs -n {namespace} {name} -c {}{previous}", source.container)
}

/// What the log ends with; none where that can't be had in time.
async fn last_line(context: &Context, pod: &Pod, source: &Source, until: Instant) -> Option<String> {
    let uid = pod.uid()?;
    if let Some(kept) = context.logs.kept(&uid) {
        return kept.line_of(&source.container);
    }
    let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    let params = LogParams {
        container: Some(source.container.clone()),
        previous: source.previous,
        tail_lines: Some(1),
        limit_bytes: Some(ASKED),
        ..LogParams::default()
    };
    let left = until.saturating_duration_since(Instant::now());
    let read = context.bounded(left, "get", &format!("pods/{namespace}/{name}/log"), api.logs(&name, &params)).await;
    let line = match read {
        Ok(text) => printable(&text),
        Err(error) => {
            tracing::debug!(error = error.story(), "a log can't be read");
            None
        }
    };
    context.logs.keep(uid, &source.container, line.clone());
    line
}

/// The last line that says something, without what would move a terminal's cursor, its colours or its direction of writing, and not too
/// much of it.
fn printable(text: &str) -> Option<String> {
    let mut clean = String::new();
    let mut letters = text.lines().rfind(|line| !line.trim().is_empty())?.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' && letters.next_if_eq(&'[').is_some() {
            // A terminal's command: parameters, and a letter that ends it.
            while letters.next_if(|next| !('@'..='~').contains(next)).is_some() {}
            letters.next();
        } else if letter.is_whitespace() {
            clean.push(' ');
        } else if !letter.is_control() && !turns_text(letter) {
            clean.push(letter);
        }
    }
    let clean = clean.trim();
    let end = clean.char_indices().nth(SHOWN).map_or(clean.len(), |(end, _)| end);
    let cut = if end < clean.len() { "…" } else { "" };
    (!clean.is_empty()).then(|| format!("{}{cut}", clean.get(..end).unwrap_or_default()))
}

/// Letters that nobody sees and that change how the others are shown.
fn turns_text(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{KEPT, Logs, SHOWN, printable, silence};

    #[test]
    fn h41_what_a_process_said_at_its_end_is_not_seen() {
        let ended = serde_json::json!({"terminated": {"exitCode": 1, "message": "hunter2"}});
        let status = serde_json::json!([{"name": "pd", "image": "pd", "imageID": "", "ready": false, "restartCount": 1,
            "state": ended, "lastState": ended}]);
        let pod = serde_json::json!({"status": {"containerStatuses": status, "initContainerStatuses": status}});
        let mut pod: k8s_openapi::api::core::v1::Pod = serde_json::from_value(pod).unwrap();
        silence(&mut pod);
        let left = serde_json::to_string(&pod).unwrap();
        assert!(left.contains("exitCode") && !left.contains("hunter2"), "{left}");
    }

    #[rstest]
    #[case::plain("starting\nfatal: no data\n", Some("fatal: no data"))]
    #[case::trailing_blanks("fatal: no data\n\n   \n", Some("fatal: no data"))]
    #[case::colours("\u{1b}[1;31mERROR\u{1b}[0m no\tdata\r\n", Some("ERROR no data"))]
    #[case::a_bell_and_a_title("\u{1b}]0;root\u{7} # done\u{8}", Some("]0;root # done"))]
    #[case::backwards("a\u{202e}b\u{2066}c", Some("abc"))]
    #[case::unfinished("a\u{1b}[", Some("a"))]
    #[case::nothing("\n", None)]
    #[case::nothing_to_see("\u{1b}[0m\n", None)]
    fn a_line_is_shown_as_text(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(printable(text).as_deref(), expected);
    }

    #[test]
    fn a_long_line_is_cut_between_letters() {
        let shown = printable(&"é".repeat(500)).unwrap();
        assert_eq!(shown.chars().count(), SHOWN + 1);
        assert!(shown.ends_with("é…"), "{shown}");
        assert_eq!(printable(&"é".repeat(SHOWN)).unwrap().chars().count(), SHOWN);
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_is_read_again_after_a_while_also_when_it_could_not_be() {
        let logs = Logs::default();
        let line = |container: &str| logs.kept("uid").map(|kept| kept.line_of(container).unwrap_or_default());
        assert_eq!(line("pd"), None, "never read");
        logs.keep("uid".into(), "pd", Some("fatal".into()));
        assert_eq!(line("pd").as_deref(), Some("fatal"));
        assert_eq!(line("wait").as_deref(), Some(""), "one read per pod, whoever is asked for");
        assert!(logs.kept("another").is_none());
        tokio::time::advance(KEPT).await;
        assert_eq!(line("pd"), None);
        logs.keep("uid".into(), "pd", None);
        assert_eq!(line("pd").as_deref(), Some(""), "a refusal is kept as well");
    }
}
