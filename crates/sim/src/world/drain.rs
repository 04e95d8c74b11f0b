//! What an administrator does to a node: cordon, and a drain that asks again until the budget allows it or patience ends; and what
//! deschedulers do: the same without a cordon.

use std::time::Duration;

use http::Method;
use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use super::calls::Call;
use super::json::{name, terminating, text, uid};
use super::queue::{Event, Key};
use super::state::State;

const USER: &str = "kubectl-drain";
const PATIENCE: Duration = Duration::from_mins(2);
const RETRY: Duration = Duration::from_secs(5);

impl State {
    pub(super) fn cordon(&mut self, node: &str, cordoned: bool) {
        let patch = json!({"spec": {"unschedulable": if cordoned { json!(true) } else { json!(null) }}});
        // A node that isn't there can't be cordoned; the scenario's note says what was meant.
        let _ = self.api.merge::<Node>(USER, "", node, &patch);
        if let Some(node) = self.nodes.get_mut(node) {
            node.cordoned = cordoned;
        }
    }

    pub(super) fn drain(&mut self, node: &str) {
        self.cordon(node, true);
        self.empty(node, Some(node));
    }

    /// Evicts what is on a node, for as long as that one stays cordoned, if any has to.
    pub(super) fn empty(&mut self, node: &str, while_cordoned: Option<&str>) {
        let now = self.now();
        for pod in self.api.list_values("pods", "") {
            if text(&pod, "/spec/nodeName") == node && !terminating(&pod) {
                let event = Event::Evict {
                    while_cordoned: while_cordoned.map(str::to_owned),
                    pod: Key::new(text(&pod, "/metadata/namespace"), name(&pod)),
                    uid: uid(&pod).to_owned(),
                    until: now + PATIENCE,
                };
                self.queue.push(now, event);
            }
        }
    }

    pub(super) fn evict(&mut self, while_cordoned: Option<String>, pod: Key, id: String, until: Duration) {
        let known = self.api.get_value("pods", &pod.namespace, &pod.name);
        let still_here = known.is_some_and(|known| uid(&known) == id && !terminating(&known));
        let goes_on = |node: &String| self.nodes.get(node).is_some_and(|node| node.cordoned);
        if !still_here || !while_cordoned.as_ref().is_none_or(goes_on) {
            return;
        }
        let again = self.now() + RETRY;
        self.calls.push(Call {
            user: USER,
            method: Method::POST,
            path: format!("/api/v1/namespaces/{}/pods/{}/eviction", pod.namespace, pod.name),
            body: json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"namespace": pod.namespace, "name": pod.name},
                "deleteOptions": {"preconditions": {"uid": id}},
            }),
            if_refused: (again < until).then_some((again, Event::Evict { while_cordoned, pod, uid: id, until })),
        });
    }
}
