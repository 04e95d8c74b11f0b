//! Access for code in the same process, with the types of `k8s_openapi`.

use std::sync::Arc;

use kube::api::{DeleteParams, PropagationPolicy};
use kube::core::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Api;
use super::delete::{Options, Propagation};
use super::error::{self, Answer};
use super::key::Key;
use super::object;
use super::patch::Patch;
use super::resource::Resource;
use super::store::Store;
use super::write::{Part, Target, UnknownFields, Update, Writer};

/// What the typed calls work on.
pub trait Object: kube::Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone {}

impl<K: kube::Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone> Object for K {}

fn writer(user: &str) -> Writer<'_> {
    Writer { user, manager: user, dry_run: false, unknown_fields: UnknownFields::Ignore }
}

fn id<K: Object>() -> String {
    Resource::id_of(&K::group(&()), &K::plural(&()))
}

fn target<K: Object>(store: &Store, namespace: &str, name: &str) -> Answer<Target> {
    let id = id::<K>();
    let resource = store.resource(&id).cloned().ok_or_else(|| no_such(&id))?;
    Ok(Target {
        resource,
        version: K::version(&()).into_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

fn no_such(id: &str) -> Box<Status> {
    error::not_found(error::Named { group: "", what: "resources" }, id)
}

fn encode<K: Object>(object: &K) -> Answer<Value> {
    serde_json::to_value(object).map_err(|why| error::bad_request(why.to_string()))
}

fn decode<K: Object>(value: &Value) -> Answer<K> {
    K::deserialize(value).map_err(|why| error::unknown(500, &why.to_string()))
}

impl Api {
    /// One object; `namespace` is empty for cluster-scoped ones.
    pub fn get<K: Object>(&self, namespace: &str, name: &str) -> Option<K> {
        let value = self.get_value(&id::<K>(), namespace, name)?;
        K::deserialize(&*value).ok()
    }

    /// All objects of a namespace, or of all namespaces where it is empty, sorted by namespace and name.
    pub fn list<K: Object>(&self, namespace: &str) -> Vec<K> {
        let values = self.list_values(&id::<K>(), namespace);
        values.iter().filter_map(|value| K::deserialize(&**value).ok()).collect()
    }

    /// Creates.
    pub fn create<K: Object>(&self, user: &str, object: &K) -> Result<K, Box<Status>> {
        let mut store = self.lock();
        let namespace = object.meta().namespace.as_deref().unwrap_or("");
        let target = target::<K>(&store, namespace, "")?;
        let written = store.create(writer(user), &target, encode(object)?)?;
        decode(&written.object)
    }

    /// Replaces; a resourceVersion in the object is a precondition.
    pub fn replace<K: Object>(&self, user: &str, object: &K) -> Result<K, Box<Status>> {
        self.update(user, object, Part::Main)
    }

    /// Replaces the status.
    pub fn replace_status<K: Object>(&self, user: &str, object: &K) -> Result<K, Box<Status>> {
        self.update(user, object, Part::Status)
    }

    fn update<K: Object>(&self, user: &str, object: &K, part: Part) -> Result<K, Box<Status>> {
        let mut store = self.lock();
        let meta = object.meta();
        let target = target::<K>(&store, meta.namespace.as_deref().unwrap_or(""), meta.name.as_deref().unwrap_or(""))?;
        let update = Update::Replace(encode(object)?);
        let written = store.update(writer(user), &target, part, &update)?;
        decode(&written.object)
    }

    /// Applies a merge patch.
    pub fn merge<K: Object>(&self, user: &str, namespace: &str, name: &str, patch: &Value) -> Result<K, Box<Status>> {
        self.patch(user, namespace, name, patch, Part::Main)
    }

    /// Applies a merge patch to the status.
    pub fn merge_status<K: Object>(
        &self,
        user: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<K, Box<Status>> {
        self.patch(user, namespace, name, patch, Part::Status)
    }

    fn patch<K: Object>(
        &self,
        user: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
        part: Part,
    ) -> Result<K, Box<Status>> {
        let mut store = self.lock();
        let target = target::<K>(&store, namespace, name)?;
        let update = Update::Patch(Patch::Merge(patch.clone()));
        let written = store.update(writer(user), &target, part, &update)?;
        decode(&written.object)
    }

    /// Applies a merge patch to an object of any kind; answers with what is stored then.
    pub fn merge_value(
        &self,
        user: &str,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Value>, Box<Status>> {
        self.patch_value(user, resource, (namespace, name), patch, Part::Main)
    }

    /// The same for its status.
    pub fn merge_status_value(
        &self,
        user: &str,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Value>, Box<Status>> {
        self.patch_value(user, resource, (namespace, name), patch, Part::Status)
    }

    fn patch_value(
        &self,
        user: &str,
        resource: &str,
        (namespace, name): (&str, &str),
        patch: &Value,
        part: Part,
    ) -> Result<Arc<Value>, Box<Status>> {
        let mut store = self.lock();
        let resource = store.resource(resource).cloned().ok_or_else(|| no_such(resource))?;
        let version = resource.stored.clone();
        let target = Target { resource, version, namespace: namespace.to_owned(), name: name.to_owned() };
        let update = Update::Patch(Patch::Merge(patch.clone()));
        store.update(writer(user), &target, part, &update).map(|written| written.object)
    }

    /// Deletes, or marks for deletion.
    pub fn delete<K: Object>(
        &self,
        user: &str,
        namespace: &str,
        name: &str,
        options: &DeleteParams,
    ) -> Result<(), Box<Status>> {
        self.delete_value(user, &id::<K>(), namespace, name, options)
    }

    /// The same, untyped.
    pub fn delete_value(
        &self,
        user: &str,
        resource: &str,
        namespace: &str,
        name: &str,
        options: &DeleteParams,
    ) -> Result<(), Box<Status>> {
        let mut store = self.lock();
        let resource = store.resource(resource).cloned().ok_or_else(|| no_such(resource))?;
        let version = resource.stored.clone();
        let target = Target { resource, version, namespace: namespace.to_owned(), name: name.to_owned() };
        store.delete(writer(user), &target, &delete_options(options)).map(|_| ())
    }

    /// Puts a pod on a node, as the scheduler does.
    pub fn bind(&self, user: &str, namespace: &str, pod: &str, node: &str) -> Result<(), Box<Status>> {
        let mut store = self.lock();
        let resource = store.resource("pods").cloned().ok_or_else(|| no_such("pods"))?;
        let version = resource.stored.clone();
        let target = Target { resource, version, namespace: namespace.to_owned(), name: pod.to_owned() };
        super::eviction::bind(&mut store, writer(user), &target, &serde_json::json!({"target": {"name": node}}))
    }

    /// Tells that a namespace's content is gone (its `spec.finalizers` are done), which removes it.
    pub fn finalize_namespace(&self, user: &str, name: &str) -> Result<(), Box<Status>> {
        let mut store = self.lock();
        let resource = store.resource("namespaces").cloned().ok_or_else(|| no_such("namespaces"))?;
        let version = resource.stored.clone();
        let target = Target { resource, version, namespace: String::new(), name: name.to_owned() };
        let emptied = serde_json::json!({"metadata": {"name": name}, "spec": {"finalizers": []}});
        store.finalize_namespace(writer(user), &target, &emptied).map(|_| ())
    }

    /// Creates an object whose apiVersion and kind say what it is.
    pub fn create_value(&self, user: &str, object: Value) -> Result<Value, Box<Status>> {
        let mut store = self.lock();
        let api_version = object::text(&object, &["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = object::text(&object, &["kind"]);
        let resource = store
            .resource_of_kind(group, version, kind)
            .ok_or_else(|| error::bad_request(format!("no matches for kind {kind:?} in version {api_version:?}")))?;
        let namespace = match object::meta_text(&object, "namespace") {
            "" if resource.namespaced => "default",
            given => given,
        };
        let namespace = if resource.namespaced { namespace.to_owned() } else { String::new() };
        let target = Target { version: version.to_owned(), resource, namespace, name: String::new() };
        let written = store.create(writer(user), &target, object)?;
        Ok((*written.object).clone())
    }

    /// One object as it is stored.
    pub fn get_value(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let store = self.lock();
        let resource = store.resource(resource)?;
        let stored = store.get(&resource.storage, &Key::new(namespace, name))?;
        Some(super::definition::view(resource, resource.version(&resource.stored)?, stored))
    }

    /// All objects of a namespace (of all where it is empty) as they are stored.
    pub fn list_values(&self, resource: &str, namespace: &str) -> Vec<Arc<Value>> {
        let store = self.lock();
        let Some(resource) = store.resource(resource) else { return Vec::new() };
        let Some(version) = resource.version(&resource.stored) else { return Vec::new() };
        let stored = store.list(&resource.storage, namespace);
        stored.map(|(_, stored)| super::definition::view(resource, version, stored)).collect()
    }
}

fn delete_options(params: &DeleteParams) -> Options {
    let preconditions = params.preconditions.as_ref();
    Options {
        grace: params.grace_period_seconds.map(i64::from),
        propagation: params.propagation_policy.as_ref().map(|policy| match policy {
            PropagationPolicy::Orphan => Propagation::Orphan,
            PropagationPolicy::Background => Propagation::Background,
            PropagationPolicy::Foreground => Propagation::Foreground,
        }),
        uid: preconditions.and_then(|conditions| conditions.uid.clone()),
        revision: preconditions.and_then(|conditions| conditions.resource_version.clone()),
        dry_run: params.dry_run,
    }
}
