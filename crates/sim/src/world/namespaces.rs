//! The namespace controller: it empties a namespace that is to go, and lets it go when it is empty.

use http::Method;
use serde_json::json;

use super::calls::Call;
use super::json::{list, terminating, uid};
use super::state::State;

const USER: &str = "namespace-controller";

impl State {
    pub(super) fn sync_namespace(&mut self, name: &str) {
        let Some(namespace) = self.api.get_value("namespaces", "", name) else {
            self.graph.left(name);
            return;
        };
        if !terminating(&namespace) {
            return;
        }
        let inside = self.graph.in_namespace(name);
        for (id, place) in &inside {
            let object = self.api.get_value(&place.resource, &place.namespace, &place.name);
            if object.is_some_and(|object| uid(&object) == id && !terminating(&object)) {
                self.calls.push(Self::delete_call(USER, place, id, "Background"));
            }
        }
        if inside.is_empty() && !list(&namespace, "/spec/finalizers").is_empty() {
            let mut finalized = (*namespace).clone();
            finalized["spec"]["finalizers"] = json!([]);
            self.calls.push(Call {
                user: USER,
                method: Method::PUT,
                path: format!("/api/v1/namespaces/{name}/finalize"),
                body: finalized,
                if_refused: None,
            });
        }
    }
}
