//! Live reads: every object as a majority of etcd has it, each read by itself, so that one that can't be read harms no other.

use kube::{
    Api, Resource,
    api::{GetParams, ListParams, Request},
    core::request::Error as BadRequest,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_plan::{
    Hold,
    bug::{self, Bug},
};

use crate::{
    Context,
    error::Error,
    lenient::{Whole, typed},
};

/// A custom resource, read by itself.
pub enum Read<K> {
    /// All of it can be read.
    Clear(Box<K>),
    /// Something of it can't be: what, and the rest as it is.
    Odd(Hold, Box<Whole<K>>),
}

impl<K> Read<K> {
    /// Reads it.
    pub fn of(whole: Whole<K>, read: impl FnOnce(&Value) -> Result<K, Hold>) -> Self {
        match read(&whole.raw) {
            Ok(resource) => Self::Clear(Box::new(resource)),
            Err(hold) => Self::Odd(hold, Box::new(whole)),
        }
    }
}

/// Whether this object's controller has that uid.
pub fn is_owned(object: &impl Resource, uid: Option<&str>) -> bool {
    let owners = object.meta().owner_references.as_deref().unwrap_or_default();
    uid.is_some() && owners.iter().any(|owner| owner.controller == Some(true) && Some(owner.uid.as_str()) == uid)
}

/// One object, as a majority of etcd has it; none if there is none.
pub async fn get<K>(context: &Context, what: &str, api: &Api<K>, name: &str) -> Result<Option<K>, Error>
where
    K: Resource + Clone + DeserializeOwned,
{
    get_raw(context, what, api, name).await?.map(|raw| readable("get", what, raw)).transpose()
}

/// The same in the API server's own words, with fields that we have no names for.
pub async fn get_raw<K: Resource + Clone>(
    context: &Context,
    what: &str,
    api: &Api<K>,
    name: &str,
) -> Result<Option<Value>, Error> {
    // No resourceVersion: the newest state that a majority of etcd has.
    let params = if bug::active(Bug::StaleReads) { GetParams::any() } else { GetParams::default() };
    let request = Request::new(api.resource_url()).get(name, &params);
    match context.bounded(context.settings.read_deadline, "get", what, Box::pin(answer(api, request))).await {
        Ok(raw) => Ok(Some(raw)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The answer of the API server in its own words.
async fn answer<K: Resource + Clone>(
    api: &Api<K>,
    request: Result<http::Request<Vec<u8>>, BadRequest>,
) -> kube::Result<Value> {
    api.clone().into_client().request(request.map_err(kube::Error::BuildRequest)?).await
}

/// An object in our words.
pub fn readable<K: DeserializeOwned>(verb: &'static str, what: &str, object: Value) -> Result<K, Error> {
    typed(object).map_err(|error| Error::kubernetes(verb, what, kube::Error::SerdeError(error)))
}

/// How many objects are read at once: what is in them was written by others, and each may hold more than a megabyte.
const PAGE: u32 = 50;

/// The objects with these labels.
pub async fn list<K>(context: &Context, what: &str, api: &Api<K>, labels: &str) -> Result<Vec<K>, Error>
where
    K: Resource + Clone + DeserializeOwned,
{
    list_as(context, what, api, labels, |object| object).await
}

/// The same, where only something of each is kept.
pub async fn list_as<K, T>(
    context: &Context,
    what: &str,
    api: &Api<K>,
    labels: &str,
    keep: impl Fn(K) -> T,
) -> Result<Vec<T>, Error>
where
    K: Resource + Clone + DeserializeOwned,
{
    let params = ListParams { limit: Some(PAGE), ..ListParams::default().labels(labels) };
    let mut params = if bug::active(Bug::StaleReads) { params.match_any() } else { params };
    let mut kept = Vec::new();
    loop {
        let request = Request::new(api.resource_url()).list(&params);
        let deadline = context.settings.read_deadline;
        let mut page = context.bounded(deadline, "list", what, Box::pin(answer(api, request))).await?;
        let items = page.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        for item in items {
            kept.push(keep(readable("list", what, item)?));
        }
        let next = page.pointer("/metadata/continue").and_then(Value::as_str).filter(|next| !next.is_empty());
        // All pages are of the revision of the first one.
        let Some(next) = next else { return Ok(kept) };
        params = ListParams { continue_token: Some(next.to_owned()), version_match: None, ..params };
    }
}
