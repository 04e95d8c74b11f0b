//! Evicting a pod within its disruption budget, and binding one to a node.

use std::sync::Arc;

use kube::core::Status;
use kube::core::response::{StatusCause, StatusSummary};
use serde_json::{Value, json};

use super::delete::{Options, check_preconditions};
use super::error::{self, Answer, Named};
use super::key::Key;
use super::managed_fields::{self, Subresource, Writing};
use super::object;
use super::selector::Labels;
use super::store::Store;
use super::write::{Target, Writer};

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const CAUSE: &str = "DisruptionBudget";
const BUDGETS: &str = "poddisruptionbudgets.policy";
/// More unconfirmed evictions than this, and nobody is looking after the budget.
const MOST_DISRUPTED: usize = 2000;

/// Evicts; the answer is a `Status`, a failure among them that a real server returns as one.
pub(super) fn evict(store: &mut Store, writer: Writer<'_>, target: &Target, eviction: &Value) -> Answer<Status> {
    if object::name(eviction) != target.name {
        return Err(error::bad_request("name in URL does not match name in Eviction object"));
    }
    let options = Options::parse(object::at(eviction, &["deleteOptions"]).unwrap_or(&Value::Null))?;
    let pod = store.get("pods", &target.key()).cloned().ok_or_else(|| target.not_found())?;
    let success = Status { code: 201, ..Status::success() };
    if ignores_budgets(&pod) {
        condemn(store, writer, target, &options)?;
        return Ok(success);
    }
    let budgets = budgets_of(store, &target.namespace, &pod);
    let mut options = options;
    match budgets.as_slice() {
        [] => {}
        [budget] if may_go_unready(&pod, budget) => {
            // The pod must still be the unready one that was judged.
            let asked = options.revision.clone();
            let judged = object::meta_text(&pod, "resourceVersion").to_owned();
            options.revision = Some(asked.unwrap_or(judged));
        }
        [budget] => take_one(store, writer, target, budget, options.dry_run)?,
        _ => {
            return Ok(Status {
                status: Some(StatusSummary::Failure),
                code: 500,
                message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not \
                          support."
                    .to_owned(),
                ..Status::default()
            });
        }
    }
    condemn(store, writer, target, &options)?;
    Ok(success)
}

/// A pod that does no work any more, or none yet, disrupts nothing.
fn ignores_budgets(pod: &Value) -> bool {
    object::is_deleting(pod) || matches!(object::text(pod, &["status", "phase"]), "Succeeded" | "Failed" | "Pending")
}

fn budgets_of(store: &Store, namespace: &str, pod: &Value) -> Vec<Arc<Value>> {
    let labels = object::meta(pod, "labels");
    // A pod without labels is covered by no budget.
    if labels.and_then(Value::as_object).is_none_or(serde_json::Map::is_empty) {
        return Vec::new();
    }
    let budgets = store.list(BUDGETS, namespace).map(|(_, budget)| budget);
    let covers = |budget: &&Arc<Value>| {
        let selector = object::at(budget, &["spec", "selector"]).and_then(Labels::from_object);
        selector.is_some_and(|selector| selector.matches(labels))
    };
    budgets.filter(covers).cloned().collect()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = object::at(pod, &["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        object::text(condition, &["type"]) == "Ready" && object::text(condition, &["status"]) == "True"
    })
}

/// An unready pod may go when enough others are healthy, or when the budget says that unready pods don't count.
fn may_go_unready(pod: &Value, budget: &Value) -> bool {
    if is_ready(pod) {
        return false;
    }
    let status = |key: &str| object::integer(budget, &["status", key]).unwrap_or(0);
    object::text(budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow"
        || (status("currentHealthy") >= status("desiredHealthy") && status("desiredHealthy") > 0)
}

fn refuse(retry_after: u32, message: String) -> Box<Status> {
    let cause = StatusCause { reason: CAUSE.to_owned(), message, field: String::new() };
    error::too_many_requests(REFUSED, retry_after, cause)
}

/// Takes one of the budget's allowed disruptions for this pod.
fn take_one(store: &mut Store, writer: Writer<'_>, target: &Target, budget: &Arc<Value>, dry_run: bool) -> Answer<()> {
    let name = object::name(budget).to_owned();
    let status = |key: &str| object::integer(budget, &["status", key]).unwrap_or(0);
    if status("observedGeneration") < object::generation(budget) {
        return Err(refuse(10, format!("The disruption budget {name} is still being processed by the server.")));
    }
    let named = Named { group: "policy", what: "poddisruptionbudget" };
    let allowed = status("disruptionsAllowed");
    if allowed < 0 {
        return Err(error::forbidden(named, &name, "pdb disruptions allowed is negative"));
    }
    let disrupted = object::at(budget, &["status", "disruptedPods"]).and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > MOST_DISRUPTED) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(error::forbidden(named, &name, why));
    }
    if allowed == 0 {
        let (desired, current) = (status("desiredHealthy"), status("currentHealthy"));
        let why = format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently");
        return Err(refuse(0, why));
    }
    if dry_run || writer.dry_run {
        return Ok(());
    }
    let now = object::seconds(store.clock.now());
    let observed = status("observedGeneration");
    let mut changed = (**budget).clone();
    let map = object::child(object::as_map(&mut changed), "status");
    map.insert("disruptionsAllowed".to_owned(), json!(allowed - 1));
    object::child(map, "disruptedPods").insert(target.name.clone(), now.clone());
    if allowed == 1 {
        let condition = json!({
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": observed,
            "lastTransitionTime": now,
        });
        set_condition(map, condition);
    }
    if let Some(resource) = store.resource(BUDGETS).cloned() {
        // The server does this as a client of its own.
        if let Some(version) = resource.version(&resource.stored) {
            let writing = Writing::new(&resource, version, Subresource::Status, "kube-apiserver", store.clock.now());
            managed_fields::update(&writing, Some(budget), &mut changed);
        }
        store.put(writer.user, &resource, &Key::new(&target.namespace, &name), changed);
    }
    Ok(())
}

/// Puts a condition in the place of the one of its type; the time of transition stays where the status does.
fn set_condition(status: &mut serde_json::Map<String, Value>, mut condition: Value) {
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    let kind = object::text(&condition, &["type"]).to_owned();
    match list.iter_mut().find(|one| object::text(one, &["type"]) == kind) {
        Some(old) => {
            if old.get("status") == condition.get("status")
                && let Some(since) = old.get("lastTransitionTime")
            {
                condition["lastTransitionTime"] = since.clone();
            }
            *old = condition;
        }
        None => list.push(condition),
    }
}

/// Marks the pod as a target of disruption, then deletes it.
fn condemn(store: &mut Store, writer: Writer<'_>, target: &Target, options: &Options) -> Answer<()> {
    let mut options = options.clone();
    if !(options.dry_run || writer.dry_run) {
        let pod = store.get("pods", &target.key()).cloned().ok_or_else(|| target.not_found())?;
        check_preconditions(&target.resource, &pod, &options)?;
        let mut marked = (*pod).clone();
        let condition = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",

            "lastTransitionTime": object::seconds(store.clock.now()),
        });
        set_condition(object::child(object::as_map(&mut marked), "status"), condition);
        let marked = store.put(writer.user, &target.resource, &target.key(), marked);
        if options.revision.is_some() {
            options.revision = Some(object::meta_text(&marked, "resourceVersion").to_owned());
        }
    }
    store.delete(writer, target, &options)?;
    Ok(())
}

/// Puts a pod on a node.
pub(super) fn bind(store: &mut Store, writer: Writer<'_>, target: &Target, binding: &Value) -> Answer<()> {
    let pod = store.get("pods", &target.key()).cloned().ok_or_else(|| target.not_found())?;
    let conflict = |why: &str| Err(error::conflict(Named { group: "", what: "pods/binding" }, &target.name, why));
    if object::is_deleting(&pod) {
        return conflict(&format!("pod {} is being deleted, cannot be assigned to a host", target.name));
    }
    let current = object::text(&pod, &["spec", "nodeName"]);
    if !current.is_empty() {
        return conflict(&format!("pod {} is already assigned to node {current:?}", target.name));
    }
    let mut bound = (*pod).clone();
    let now = object::seconds(store.clock.now());
    let node = object::text(binding, &["target", "name"]);
    let map = object::as_map(&mut bound);
    object::child(map, "spec").insert("nodeName".to_owned(), json!(node));
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now});
    set_condition(object::child(map, "status"), scheduled);
    if !writer.dry_run {
        store.put(writer.user, &target.resource, &target.key(), bound);
    }
    Ok(())
}
