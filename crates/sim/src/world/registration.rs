//! What processes write on their own pods: OpenBao tells there whether it is active and sealed, so that Services can select by it.
//!
//! The labels come late, and those of a process that died stay until the next one has something to say: they can be stale.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::json::text;
use super::queue::{Event, Key};
use super::state::State;
use crate::apps::{App, Labels};

/// How long a process waits before it tries again what it could not write.
const RETRY: Duration = Duration::from_secs(5);

impl State {
    /// Lets the processes write that have something new to say, a moment later.
    pub(super) fn register_later(&mut self, workload: &Key, labels: &[(String, Labels)]) {
        for (pod, labels) in labels {
            let key = Key::new(&workload.namespace, pod);
            let Some(pod) = self.pods.get(&key) else { continue };
            let said = self.registered.get(&key);
            if said.is_none_or(|(uid, said)| *uid != pod.uid || said != labels) {
                let wait = self.draws.registration.between(Duration::from_millis(50), Duration::from_millis(1500));
                self.queue.push(self.now() + wait, Event::Registration(key));
            }
        }
    }

    /// The process in this pod writes what it has to say by now.
    pub(super) fn register(&mut self, key: &Key) {
        let Some(pod) = self.pods.get(key) else { return };
        let (uid, workload) = (pod.uid.clone(), pod.served_workload().cloned());
        if pod.is_hung() {
            return self.queue.push(self.now() + RETRY, Event::Registration(key.clone()));
        }
        let labels = workload.and_then(|workload| self.apps.get(&workload)).map(App::labels).unwrap_or_default();
        // One that has ended meanwhile says nothing more.
        let Some((_, labels)) = labels.into_iter().find(|(pod, _)| *pod == key.name) else { return };
        let Some(object) = self.api.get_value("pods", &key.namespace, &key.name) else { return };
        let account = match text(&object, "/spec/serviceAccountName") {
            "" => "default",
            account => account,
        };
        let user = format!("system:serviceaccount:{}:{account}", key.namespace);
        let patch = json!({"metadata": {"uid": uid, "labels": labels}});
        match self.api.merge::<Pod>(&user, &key.namespace, &key.name, &patch) {
            Ok(_) => {
                self.registered.insert(key.clone(), (uid, labels));
            }
            Err(_) => self.queue.push(self.now() + RETRY, Event::Registration(key.clone())),
        }
    }
}
