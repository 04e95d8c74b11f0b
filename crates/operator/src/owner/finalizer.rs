//! The finalizer: a resource of ours is kept until what it has under way is left in order.

use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{actor::Actor, error::Error, lenient::Whole};

/// Keeps a resource until Windlass lets it go.
pub const FINALIZER: &str = "windlass.dev/restore";

/// A resource of the kind `K` as it was read, all of it or what there is, and where it is.
pub struct Located<'a, K, Seen = K> {
    /// Where its kind is.
    pub api: Api<Whole<K>>,
    /// Its plural, its namespace and its name.
    pub what: String,
    /// As it was read.
    pub resource: &'a Seen,
}

/// Whether the resource carries our finalizer.
pub fn is_guarded(resource: &impl Resource) -> bool {
    resource.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

impl<K: Resource + std::fmt::Debug, Seen: Resource> Located<'_, K, Seen> {
    /// Adds our finalizer, before the first write on behalf of the resource.
    pub async fn guard(&self, actor: Actor<'_>) -> Result<(), Error> {
        let mut finalizers = self.resource.finalizers().to_vec();
        finalizers.push(FINALIZER.to_owned());
        self.set_finalizers(actor, &finalizers).await
    }

    /// Removes our finalizer, after the last one.
    pub async fn release(&self, actor: Actor<'_>) -> Result<(), Error> {
        let finalizers = self.resource.finalizers().iter();
        let left: Vec<String> = finalizers.filter(|finalizer| *finalizer != FINALIZER).cloned().collect();
        self.set_finalizers(actor, &left).await
    }

    async fn set_finalizers(&self, actor: Actor<'_>, finalizers: &[String]) -> Result<(), Error> {
        let version = self.resource.resource_version();
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
        let (name, params, patch) = (self.resource.name_any(), PatchParams::default(), Patch::Merge(&patch));
        let written = actor.write("patch", &self.what, self.api.patch(&name, &params, &patch)).await?;
        actor.context.own_writes.wrote(&self.what, written.resource_version().as_deref());
        Ok(())
    }
}
