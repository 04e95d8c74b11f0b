//! The set's history: one ControllerRevision per template it ever had, reused when a template comes back.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::super::Deviation;
use super::super::json::{controller, name, number, text, uid};
use super::super::state::State;
use super::super::template::hash;
use super::replica::owner_reference;
use super::{Outcome, Revisions, USER, Wanted};

const HASH_LABEL: &str = "controller.kubernetes.io/hash";
/// Clashes of names that are tried before a look is given up.
const TRIES: u32 = 10;

/// One template of the set.
#[derive(Clone)]
pub(super) struct Revision {
    pub name: String,
    pub number: i64,
    pub template: Value,
}

impl Revision {
    fn of(object: &Value) -> Self {
        let mut template = object.pointer("/data/spec/template").cloned().unwrap_or(Value::Null);
        if let Some(fields) = template.as_object_mut() {
            fields.remove("$patch");
        }
        Self { name: name(object).to_owned(), number: number(object, "/revision").unwrap_or(0), template }
    }
}

impl State {
    /// The set's revisions, oldest first.
    pub(super) fn history_of(&self, wanted: &Wanted<'_>) -> Vec<Revision> {
        let mut history: Vec<Revision> = self
            .api
            .list_values("controllerrevisions.apps", &wanted.key.namespace)
            .iter()
            .filter(|object| controller(object).is_some_and(|owner| text(owner, "/uid") == uid(wanted.set)))
            .map(|object| Revision::of(object))
            .collect();
        history.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
        history
    }

    /// The revisions that the set is at and goes to; makes or renumbers one where the template changed.
    pub(super) fn resolve_revisions(&mut self, wanted: &Wanted<'_>, history: &mut Vec<Revision>) -> Outcome<Revisions> {
        let mut collisions = number(wanted.set, "/status/collisionCount").unwrap_or(0);
        let template = wanted.set.pointer("/spec/template").cloned().unwrap_or(Value::Null);
        let next = history.last().map_or(1, |newest| newest.number + 1);
        let equal = history.iter().rposition(|revision| revision.template == template);
        let update = match equal.and_then(|at| history.get(at).cloned().map(|revision| (at, revision))) {
            Some((at, revision)) if at + 1 == history.len() => revision,
            Some((at, mut revision)) => {
                // A template that was used before comes back under its old name, as the newest.
                let patch = json!({"revision": next});
                self.api.merge::<ControllerRevision>(USER, &wanted.key.namespace, &revision.name, &patch)?;
                revision.number = next;
                history.remove(at);
                history.push(revision.clone());
                revision
            }
            None => {
                let revision = self.create_revision(wanted, &template, next, &mut collisions)?;
                history.push(revision.clone());
                revision
            }
        };
        let at_now = text(wanted.set, "/status/currentRevision");
        // Without a trace of the current revision the set is taken to be at the newest: held pods would come up new.
        let current = history.iter().find(|revision| revision.name == at_now).unwrap_or(&update).clone();
        Ok(Revisions { current, update, collisions })
    }

    fn create_revision(
        &mut self,
        wanted: &Wanted<'_>,
        template: &Value,
        next: i64,
        collisions: &mut i64,
    ) -> Outcome<Revision> {
        let namespace = &wanted.key.namespace;
        let mut data = template.clone();
        if let Some(fields) = data.as_object_mut() {
            fields.insert("$patch".to_owned(), json!("replace"));
        }
        let mut tries = 0;
        loop {
            let hash = hash(template, *collisions);
            let name = format!("{}-{hash}", wanted.key.name);
            let mut labels =
                template.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
            labels.insert(HASH_LABEL.to_owned(), json!(hash));
            let object = json!({
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "labels": labels,
                    "ownerReferences": [owner_reference(wanted)],
                },
                "data": {"spec": {"template": data}},
                "revision": next,
            });
            match self.api.create_value(USER, object) {
                Ok(created) => return Ok(Revision::of(&created)),
                Err(status) if status.code == 409 && tries < TRIES => {
                    let known = self.api.get_value("controllerrevisions.apps", namespace, &name);
                    if let Some(known) =
                        known.map(|known| Revision::of(&known)).filter(|known| known.template == *template)
                    {
                        return Ok(known);
                    }
                    *collisions += 1;
                    tries += 1;
                }
                Err(status) => return Err(status),
            }
        }
    }

    pub(super) fn adopt_revision(&mut self, namespace: &str, name: &str, patch: &Value) -> Outcome<()> {
        self.api.merge::<ControllerRevision>(USER, namespace, name, patch).map(|_| ())
    }

    /// Deletes the oldest revisions beyond the limit; those in use don't count.
    pub(super) fn truncate_history(
        &mut self,
        wanted: &Wanted<'_>,
        revisions: &Revisions,
        history: &[Revision],
        live: &[String],
    ) -> Outcome<()> {
        let in_use =
            |name: &String| *name == revisions.current.name || *name == revisions.update.name || live.contains(name);
        let past: Vec<&String> = history.iter().map(|revision| &revision.name).filter(|name| !in_use(name)).collect();
        let limit = match wanted.deviation {
            Some(Deviation::HistoryKept) => i64::MAX,
            Some(_) | None => number(wanted.set, "/spec/revisionHistoryLimit").unwrap_or(10),
        };
        let excess = past.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        for name in past.into_iter().take(excess) {
            self.api.delete::<ControllerRevision>(USER, &wanted.key.namespace, name, &DeleteParams::default())?;
        }
        Ok(())
    }
}
