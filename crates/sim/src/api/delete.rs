//! Deleting: at once, after a grace period, or when the last finalizer is gone.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::definition;
use super::error::{self, Answer};
use super::key::Key;
use super::object;
use super::resource::{Resource, Rules};
use super::store::Store;
use super::write::{Target, Writer};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What becomes of the dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// How to delete.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) grace: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) uid: Option<String>,
    pub(crate) revision: Option<String>,
    pub(crate) dry_run: bool,
}

impl Options {
    /// Reads a `DeleteOptions` body; an empty one means the defaults.
    pub(crate) fn parse(body: &Value) -> Answer<Self> {
        if body.get("gracePeriodSeconds").is_some_and(|grace| !grace.is_null() && grace.as_i64().is_none()) {
            return Err(error::unknown(500, "json: gracePeriodSeconds is no number"));
        }
        check_type(body)?;
        if let (Some(policy), Some(_)) =
            (object::at(body, &["propagationPolicy"]), object::at(body, &["orphanDependents"]))
        {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            return Err(invalid(error::FieldError::invalid("propagationPolicy", policy.clone(), why)));
        }
        if let Some(given) =
            object::at(body, &["dryRun"]).filter(|given| **given != json!(["All"]) && **given != json!([]))
        {
            return Err(invalid(error::FieldError::not_supported("dryRun", given.clone(), &["All"])));
        }
        let propagation = match object::text(body, &["propagationPolicy"]) {
            "" => match object::at(body, &["orphanDependents"]).and_then(Value::as_bool) {
                Some(true) => Some(Propagation::Orphan),
                Some(false) => Some(Propagation::Background),
                None => None,
            },
            policy => Some(Propagation::parse(policy)?),
        };
        let precondition =
            |key: &str| object::at(body, &["preconditions", key]).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            grace: object::integer(body, &["gracePeriodSeconds"]),
            propagation,
            uid: precondition("uid"),
            revision: precondition("resourceVersion"),
            dry_run: object::at(body, &["dryRun"]).and_then(Value::as_array).is_some_and(|list| !list.is_empty()),
        })
    }
}

fn invalid(why: error::FieldError) -> Box<kube::core::Status> {
    error::invalid(error::Named { group: "meta.k8s.io", what: "DeleteOptions" }, "", &[why])
}

/// Options of another kind than theirs can't be read, which the server takes for its own fault.
fn check_type(body: &Value) -> Answer<()> {
    let (version, kind) = (object::text(body, &["apiVersion"]), object::text(body, &["kind"]));
    if kind.is_empty() || kind == "DeleteOptions" {
        return Ok(());
    }
    Err(error::unknown(500, &format!("no kind {kind:?} is registered for version {version:?}")))
}

impl Propagation {
    pub(crate) fn parse(text: &str) -> Answer<Self> {
        match text {
            "Background" => Ok(Self::Background),
            "Foreground" => Ok(Self::Foreground),
            "Orphan" => Ok(Self::Orphan),
            other => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                Err(invalid(error::FieldError::not_supported("propagationPolicy", json!(other), &supported)))
            }
        }
    }
}

/// What became of the object.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It is gone; this was its last state.
    Gone(Arc<Value>),
    /// It waits, in this state.
    Waiting(Arc<Value>),
}

/// What the grace period says.
enum Grace {
    /// This resource has none: remove it as soon as no finalizer is left.
    None,
    /// Mark the object so.
    Mark(Value, i64),
    /// It is marked already and nothing gets shorter.
    Pending,
}

impl Store {
    /// Deletes one object or marks it.
    pub(crate) fn delete(&mut self, writer: Writer<'_>, target: &Target, options: &Options) -> Answer<Deleted> {
        let resource = Arc::clone(&target.resource);
        let key = target.key();
        let stored = self.get(&resource.storage, &key).cloned().ok_or_else(|| target.not_found())?;
        // What is marked is written as it is seen.
        let before = match resource.version(&resource.stored) {
            Some(version) => definition::view(&resource, version, &stored),
            None => stored,
        };
        check_preconditions(&resource, &before, options)?;
        let dry_run = writer.dry_run || options.dry_run;
        if resource.rules == Rules::Namespace {
            if matches!(target.name.as_str(), "default" | "kube-system" | "kube-public") {
                return Err(error::forbidden(resource.named(), &target.name, "this namespace may not be deleted"));
            }
            return Ok(self.delete_namespace(writer, &resource, &key, &before, dry_run));
        }
        if resource.rules == Rules::CustomResourceDefinition {
            return definition::delete(self, Writer { dry_run, ..writer }, target);
        }
        let now = self.clock.now();
        let (mut marked, grace) = match grace(&resource, &before, options, now) {
            Grace::Pending => return Ok(Deleted::Waiting(before)),
            Grace::Mark(marked, grace) => (marked, Some(grace)),
            Grace::None => ((*before).clone(), None),
        };
        let finalizers = finalizers_for(&resource, &before, options.propagation);
        if finalizers != object::finalizers(&before) {
            object::set_finalizers(&mut marked, &finalizers);
        }
        if grace.is_none() && !finalizers.is_empty() {
            mark_as_deleting(&mut marked, now);
        }
        let waits = !finalizers.is_empty() || grace.is_some_and(|grace| grace > 0);
        if dry_run {
            return Ok(match (waits, grace) {
                (true, _) => Deleted::Waiting(Arc::new(marked)),
                (false, Some(_)) => Deleted::Gone(Arc::new(marked)),
                (false, None) => Deleted::Gone(before),
            });
        }
        if !waits && grace.is_none() && !object::finalizers(&before).is_empty() && options.revision.is_some() {
            // The server forgets the revision on the way, and compares with nothing.
            let key = resource.registry_key(&target.namespace, &target.name);
            let found = object::meta_text(&before, "resourceVersion");
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
                 failed: ResourceVersion in precondition: , ResourceVersion in object meta: {found}"
            );
            return Err(error::conflict(resource.named(), &target.name, &why));
        }
        // A graceful deletion writes its mark even when the object goes in the same breath; watches see both.
        if waits || grace.is_some() {
            let marked = self.put(writer.user, &resource, &key, marked);
            if waits {
                return Ok(Deleted::Waiting(marked));
            }
        }
        let last = self.remove(writer.user, &resource, &key).ok_or_else(|| target.not_found())?;
        self.after_removal(&resource);
        Ok(Deleted::Gone(last))
    }

    /// Removes an object whose last write took away what its deletion waited for. That write is never stored, so the state
    /// before it is the last that anybody sees.
    pub(crate) fn finish(&mut self, user: &str, resource: &Resource, key: &Key) {
        self.remove(user, resource, key);
        self.after_removal(resource);
    }

    /// The last object of a kind may have been what the kind's definition waited for.
    fn after_removal(&mut self, resource: &Resource) {
        if resource.rules == Rules::Custom {
            definition::finish(self, &resource.id);
        }
    }

    /// A namespace is only marked: its content goes first, then whoever finalizes it removes it.
    fn delete_namespace(
        &mut self,
        writer: Writer<'_>,
        resource: &Resource,
        key: &Key,
        before: &Arc<Value>,
        dry_run: bool,
    ) -> Deleted {
        let content = object::at(before, &["spec", "finalizers"]).and_then(Value::as_array);
        let finished = content.is_none_or(Vec::is_empty) && object::finalizers(before).is_empty();
        if finished && object::is_deleting(before) {
            let last = if dry_run { None } else { self.remove(writer.user, resource, key) };
            return Deleted::Gone(last.unwrap_or_else(|| Arc::clone(before)));
        }
        let mut marked = (**before).clone();
        if !object::is_deleting(before) {
            object::set_meta(&mut marked, "deletionTimestamp", object::seconds(self.clock.now()));
        }
        object::child(object::as_map(&mut marked), "status").insert("phase".to_owned(), json!("Terminating"));
        Deleted::Waiting(if dry_run { Arc::new(marked) } else { self.put(writer.user, resource, key, marked) })
    }
}

pub(crate) fn check_preconditions(resource: &Resource, object: &Value, options: &Options) -> Answer<()> {
    let name = object::name(object);
    if let Some(asked) = &options.uid {
        let found = object::meta_text(object, "uid");
        if asked != found {
            let why = format!(
                "the UID in the precondition ({asked}) does not match the UID in record ({found}). \
                 The object might have been deleted and then recreated"
            );
            return Err(error::conflict(resource.kind_named(), name, &why));
        }
    }
    if let Some(asked) = &options.revision {
        let found = object::meta_text(object, "resourceVersion");
        if asked != found {
            let why = format!(
                "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record \
                 ({found}). The object might have been modified"
            );
            return Err(error::conflict(resource.kind_named(), name, &why));
        }
    }
    Ok(())
}

/// Only pods have a grace period.
fn grace(resource: &Resource, before: &Value, options: &Options, now: Timestamp) -> Grace {
    if resource.rules != Rules::Pod {
        return Grace::None;
    }
    let asked = options.grace.map(|grace| if grace < 0 { 1 } else { grace });
    let mut marked = before.clone();
    if let Some(marked_at) = object::meta(before, "deletionTimestamp") {
        let current = object::integer(before, &["metadata", "deletionGracePeriodSeconds"]);
        let Some(current) = current.filter(|current| *current != 0) else { return Grace::None };
        let Some(asked) = asked.filter(|asked| *asked < current) else { return Grace::Pending };
        let end: Timestamp = marked_at.as_str().and_then(|text| text.parse().ok()).unwrap_or(now);
        let end = end.saturating_add(SignedDuration::from_secs(asked - current)).unwrap_or(end);
        // What would have to end in the past ends now; a pod that was promised some time gets the least there is.
        let (end, asked) = if end < now { (now, asked.min(1)) } else { (end, asked) };
        let meta = object::meta_mut(&mut marked);
        meta.insert("deletionTimestamp".to_owned(), object::seconds(end));
        meta.insert("deletionGracePeriodSeconds".to_owned(), json!(asked));
        return Grace::Mark(marked, asked);
    }
    let unscheduled = object::text(before, &["spec", "nodeName"]).is_empty();
    let over = matches!(object::text(before, &["status", "phase"]), "Failed" | "Succeeded");
    let grace = if unscheduled || over {
        0
    } else {
        asked.or_else(|| object::integer(before, &["spec", "terminationGracePeriodSeconds"])).unwrap_or(0)
    };
    let end = now.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(now);
    let generation = object::generation(before);
    let meta = object::meta_mut(&mut marked);
    meta.insert("deletionTimestamp".to_owned(), object::seconds(end));
    meta.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
    if generation > 0 {
        meta.insert("generation".to_owned(), json!(generation + 1));
    }
    Grace::Mark(marked, grace)
}

/// The mark on an object without a grace period that must wait for finalizers.
fn mark_as_deleting(object: &mut Value, now: Timestamp) {
    let generation = object::generation(object);
    let first = object::meta(object, "deletionGracePeriodSeconds").is_none();
    let meta = object::meta_mut(object);
    if first && generation > 0 {
        meta.insert("generation".to_owned(), json!(generation + 1));
    }
    object::default(meta, "deletionTimestamp", object::seconds(now));
    meta.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
}

/// The finalizers after the propagation policy had its say; without one, what the object already has decides.
fn finalizers_for(resource: &Resource, object: &Value, propagation: Option<Propagation>) -> Vec<String> {
    let before = object::finalizers(object);
    // Nobody owns anything through an event.
    if resource.rules == Rules::Event {
        return before;
    }
    let has = |name: &str| before.iter().any(|one| one == name);
    let effective = propagation.unwrap_or(if has(ORPHAN) {
        Propagation::Orphan
    } else if has(FOREGROUND) {
        Propagation::Foreground
    } else if resource.rules == Rules::Job {
        // As it was before there was a choice.
        Propagation::Orphan
    } else {
        Propagation::Background
    });
    let wanted = match effective {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    if before.iter().filter(|one| *one == ORPHAN || *one == FOREGROUND).map(String::as_str).eq(wanted) {
        return before;
    }
    let mut after: Vec<String> = before.into_iter().filter(|one| one != ORPHAN && one != FOREGROUND).collect();
    after.extend(wanted.map(str::to_owned));
    after
}
