//! Containers that do one thing and end. One that takes a snapshot is modelled: it asks the members that its arguments name, in their order,
//! and says in its termination message what became of it. Another, `say`, repeats what it is told.

use serde_json::{Value, json};

use super::json::list;
use super::queue::Key;
use super::state::State;
use crate::journal::Note;

/// How a task ends: the process's exit code, and what it leaves behind.
pub(super) struct Ending {
    pub code: i32,
    pub message: String,
}

/// Whether a container runs a task.
pub(super) fn is_task(container: &str) -> bool {
    container == "executor"
}

/// The values of an option, in their order.
fn options<'a>(arguments: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = move |argument: &'a Value| argument.as_str()?.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('=');
    arguments.iter().filter_map(named)
}

impl State {
    /// What becomes of the task in this container, if it is done now.
    pub(super) fn end_of_task(&self, key: &Key, index: usize) -> Ending {
        let pod = self.api.get_value("pods", &key.namespace, &key.name).unwrap_or_default();
        let arguments = list(&pod, "/spec/containers").get(index).map(|container| list(container, "/args"));
        let arguments = arguments.unwrap_or_default();
        if let [verb, said] = arguments
            && verb == "say"
        {
            return Ending { code: 0, message: said.as_str().unwrap_or_default().to_owned() };
        }
        let late = options(arguments, "not-after")
            .next()
            .and_then(|limit| limit.parse::<jiff::Timestamp>().ok())
            .is_none_or(|limit| self.clock.now() >= limit);
        if late {
            return failed(6, "Late", "it is too late for this snapshot");
        }
        let mut addresses = options(arguments, "member").filter_map(|member| member.rsplit_once('@'));
        let workload = addresses.find_map(|(_, address)| self.serving_at(address));
        let Some(workload) = workload else { return failed(4, "Unreachable", "no member gives a snapshot") };
        self.note(Note::SnapshotStored { namespace: workload.namespace.clone(), workload: workload.name.clone() });
        let place = |name: &str| options(arguments, name).next().unwrap_or_default().to_owned();
        let hash = crate::rng::hash(format!("{workload:?} {}", self.clock.now()).bytes());
        let stored = json!({"done": {"snapshot": {
            "bytes": 20_480,
            "sha256": format!("{hash:016x}").repeat(4),
            "place": format!("volume {}/{}/{}", place("volume"), place("folder"), place("file")),
            "milliseconds": 1_200,
        }}});
        Ending { code: 0, message: stored.to_string() }
    }

    /// The workload of the member at this address, if that one can answer.
    fn serving_at(&self, address: &str) -> Option<Key> {
        let pod = self.addresses.get(address)?;
        let state = self.pods.get(pod).filter(|state| state.address.as_deref() == Some(address) && !state.is_hung())?;
        let workload = state.served_workload()?;
        let truth = self.apps.get(workload)?.truth();
        let healthy = truth.members.iter().any(|member| member.pod == pod.name && member.healthy);
        (healthy && !self.bad_answers.contains_key(pod)).then(|| workload.clone())
    }
}

fn failed(code: i32, class: &str, message: &str) -> Ending {
    Ending { code, message: json!({"failed": {"class": class, "message": message}}).to_string() }
}
