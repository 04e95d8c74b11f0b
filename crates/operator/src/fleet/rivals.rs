//! Older ServiceImages of the same kind: a resource that they select as well is theirs.
//!
//! Two that both stamped it would do so for ever, each seeing its image set back by the other. So one has it: the one that was created
//! first, and of two of one second the one whose name comes first.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, Resource, ResourceExt, api::DynamicObject};
use serde_json::Value;
use windlass_api::ServiceImage;

use super::{labels::Labels, namespaces::Namespaces};
use crate::{actor::Actor, error::Error, lenient::Whole, live::list, owner::finalizer::is_guarded};

/// They, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rivals(Vec<Rival>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rival {
    name: String,
    uid: String,
    labels: Option<Labels>,
    namespaces: Namespaces,
}

impl Rivals {
    /// Reads who there is now. They are not read as ServiceImages: one that is too odd for that still has what it selects.
    pub async fn read(actor: Actor<'_>, resource: &ServiceImage) -> Result<Self, Error> {
        let api: Api<Whole<ServiceImage>> = Api::all(actor.context.client.clone());
        let mut older = list(actor.context, "serviceimages", &api, "").await?;
        older.retain(|other| is_rival(resource, other) && age(other) < age(resource));
        older.sort_by_key(age);
        let mut rivals = Vec::with_capacity(older.len());
        for other in &older {
            let namespaces = text(other, "namespaceSelector").map(str::to_owned);
            rivals.push(Rival {
                name: other.name_any(),
                uid: other.uid().unwrap_or_default(),
                labels: text(other, "labelSelector").map(Labels::read),
                namespaces: Namespaces::read(actor, namespaces.as_ref()).await?,
            });
        }
        Ok(Self(rivals))
    }

    /// Who has this resource, if one of them does.
    pub fn owner_of(&self, object: &DynamicObject) -> Option<String> {
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let has = |rival: &&Rival| {
            rival.labels.as_ref().is_none_or(|labels| labels.may_select(object.labels()))
                && rival.namespaces.contains(namespace)
        };
        self.0.iter().find(has).map(|rival| rival.name.clone())
    }
}

/// Of the same kind, whichever version it speaks. One that is being deleted has what it has until we let it go: until then its writes may land.
fn is_rival(resource: &ServiceImage, other: &Whole<ServiceImage>) -> bool {
    let target = &resource.spec.target;
    other.uid() != resource.uid()
        && (other.meta().deletion_timestamp.is_none() || is_guarded(other))
        && text(other, "kind") == Some(target.kind.as_str())
        && text(other, "group").unwrap_or_default() == target.group
}

fn text<'a>(one: &'a Whole<ServiceImage>, field: &str) -> Option<&'a str> {
    one.raw.pointer("/spec/target")?.get(field).and_then(Value::as_str)
}

/// The smaller, the older.
fn age(object: &impl Resource) -> (Option<Time>, String) {
    (object.meta().creation_timestamp.clone(), object.name_any())
}
