//! A condition on objects of the asker's namespace.

use kube::{
    Api, ResourceExt,
    api::{DynamicObject, GroupVersionKind},
    discovery::{Scope, pinned_kind},
};
use serde_json::Value;
use windlass_api::gates::{ObjectCheck, Objects};
use windlass_plan::{Hold, Reason, gate::Outcome};

use super::Asker;
use crate::{
    Context,
    live::{get, list},
};

/// Reads the objects, and says what the condition says of them.
pub async fn ask(context: &Context, asker: &Asker, name: &str, check: &ObjectCheck) -> Outcome {
    let hold = |message: String| Hold::new(Reason::CheckFailed, format!("{name}: {message}"));
    let condition = match context.asked.condition(&check.cel, &["objects"]) {
        Ok(condition) => condition,
        Err(why) => return Outcome::Unknown(hold(format!("cel: {why}"))),
    };
    let found = match read(context, asker, &check.objects).await {
        Ok(found) => found,
        Err(why) => return Outcome::Unknown(hold(why)),
    };
    let (count, kind) = (found.len(), &check.objects.kind);
    match condition.holds([("objects", Value::Array(found))]) {
        Ok(true) => Outcome::Pass,
        Ok(false) => Outcome::Hold(hold(format!("{} is not so of the {count} of kind {kind}", check.cel))),
        Err(why) => Outcome::Unknown(hold(format!("it can't be told of the {count} of kind {kind}: {why}"))),
    }
}

async fn read(context: &Context, asker: &Asker, objects: &Objects) -> Result<Vec<Value>, String> {
    let Objects { api_version, kind, name, label_selector } = objects;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if (group, kind.as_str()) == ("", "Secret") {
        return Err("Secrets are not looked at".to_owned());
    }
    let what = format!("{kind} of {api_version}");
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let found = context.bounded(context.settings.read_deadline, "discover", &what, pinned_kind(&context.client, &gvk));
    let (kind, capabilities) = found.await.map_err(|error| error.story())?;
    if capabilities.scope != Scope::Namespaced {
        return Err(format!("{what} is in no namespace"));
    }
    let namespace = &asker.maker.namespace;
    let api: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), namespace, &kind);
    let found = match name {
        Some(name) => get(context, &format!("{what} {namespace}/{name}"), &api, name).await.map(Vec::from_iter),
        None => list(context, &format!("{what} in {namespace}"), &api, label_selector.as_deref().unwrap_or("")).await,
    };
    let mut found = found.map_err(|error| error.story())?;
    found.sort_by_key(ResourceExt::name_any);
    let seen = |mut object: DynamicObject| {
        object.metadata.managed_fields = None;
        serde_json::to_value(object).map_err(|error| error.to_string())
    };
    found.into_iter().map(seen).collect()
}
