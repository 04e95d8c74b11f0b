//! Saying something of a resource that can't be read. Of its status only what is said here is changed, and all else is sent back as it came: it
//! stays until a person has mended it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Resource, ResourceExt, api::PostParams};
use serde_json::{Value, json};
use windlass_api::conditions;
use windlass_plan::Hold;

use super::{
    events::{Telling, tell},
    finalizer::Located,
};
use crate::{actor::Actor, error::Error, lenient::Whole};

impl<K: Resource<DynamicType = ()> + std::fmt::Debug> Located<'_, K, Whole<K>> {
    /// The conditions that can be read. The others were said by us, and are said anew.
    pub fn conditions(&self) -> Vec<Condition> {
        let written = self.resource.raw.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        written.filter_map(|one| serde_json::from_value(one.clone()).ok()).collect()
    }

    /// Writes this into the status, where it does not say so already, and tells it once.
    pub async fn say(&self, actor: Actor<'_>, said: Value, hold: &Hold) -> Result<(), Error> {
        actor.context.metrics.hold(hold.reason);
        let before = &self.resource.raw["status"];
        if said.as_object().is_some_and(|said| said.iter().all(|(field, value)| before.get(field) == Some(value))) {
            return Ok(());
        }
        let told = conditions::word(&self.conditions()) == Some(hold.reason.into());
        self.write_status(actor, said).await?;
        if !told {
            let note = hold.to_string();
            self.tell(actor, Telling { warning: true, reason: hold.reason.name(), action: "Wait", note }).await;
        }
        Ok(())
    }

    /// Tells about it.
    pub async fn tell(&self, actor: Actor<'_>, telling: Telling<'_>) {
        tell(actor, self.resource, telling).await;
    }

    /// Changes these fields of the status of the resource as it was read. All others are sent back as they came.
    pub async fn write_status(&self, actor: Actor<'_>, fields: Value) -> Result<(), Error> {
        let mut wanted = self.resource.clone();
        if !wanted.raw["status"].is_object() {
            wanted.raw["status"] = json!({});
        }
        for (field, value) in fields.as_object().into_iter().flatten() {
            wanted.raw["status"][field] = value.clone();
        }
        let (name, params) = (self.resource.name_any(), PostParams::default());
        let written = actor.write("status", &self.what, self.api.replace_status(&name, &params, &wanted)).await?;
        actor.context.own_writes.wrote(&self.what, written.resource_version().as_deref());
        Ok(())
    }
}
