//! The QuorumCluster of a trial, as a person handles it: apply, change, look.

use anyhow::Result;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::wait;
use crate::client::Application;

/// The QuorumCluster.
#[derive(Clone)]
pub struct Resource {
    api: Api<DynamicObject>,
    application: Application,
}

/// What its status says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Ready is True, for the newest generation.
    pub ready: bool,
    /// The reason of Ready.
    pub reason: String,
    /// The message of Ready.
    pub message: String,
    /// `status.currentVersion`.
    pub version: String,
    /// `status.upgrade.completedPods`.
    pub completed: usize,
}

/// etcd as the documentation describes it: the very text, so that it can't rot.
fn description() -> Result<Value> {
    let documented: Value = serde_saphyr::from_str(include_str!("../../../docs/examples/http-etcd.yaml"))?;
    Ok(documented["spec"]["system"].clone())
}

impl Resource {
    /// The one in this namespace.
    pub fn of(client: &Client, namespace: &str, application: Application) -> Self {
        let kind = GroupVersionKind::gvk("windlass.dev", "v1alpha1", "QuorumCluster");
        Self { api: Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind)), application }
    }

    /// Creates it: the set is to run `version`, which it runs already; or, without one, whatever its template says.
    pub async fn create(&self, version: Option<&str>, described: bool) -> Result<()> {
        let name = self.application.name();
        let system = if described { description()? } else { self.application.system() };
        let mut object = json!({
            "apiVersion": "windlass.dev/v1alpha1",
            "kind": "QuorumCluster",
            "metadata": {"name": name},
            "spec": {
                "workload": {"statefulSet": name, "container": name},
                "system": system,
            },
        });
        match version {
            Some(version) => object["spec"]["version"] = version.into(),
            None => object["spec"]["trigger"] = "Template".into(),
        }
        self.api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    /// Changes its spec.
    pub async fn change(&self, spec: Value) -> Result<()> {
        let patch = json!({"spec": spec});
        self.api.patch(self.application.name(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Takes the finalizers off, if it is still there.
    pub async fn let_go(&self) -> Result<()> {
        if self.api.get_opt(self.application.name()).await?.is_some() {
            let patch = json!({"metadata": {"finalizers": null}});
            self.api.patch(self.application.name(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
        Ok(())
    }

    /// All of it.
    pub async fn whole(&self) -> Result<Value> {
        Ok(serde_json::to_value(self.api.get(self.application.name()).await?)?)
    }

    /// What it says now.
    pub async fn seen(&self) -> Result<Seen> {
        Ok(read(&self.whole().await?))
    }

    /// Waits until it is Ready at a version.
    pub async fn ready_at(&self, version: &str, seconds: u64) -> Result<()> {
        let look = async || {
            let seen = self.seen().await?;
            Ok(seen.ready && seen.version == version)
        };
        match wait::until_so(
            &format!("QuorumCluster {} to be Ready at {version}", self.application.name()),
            seconds,
            look,
        )
        .await
        {
            Ok(()) => Ok(()),
            Err(error) => {
                let seen = self.seen().await.unwrap_or_default();
                Err(error.context(format!("it says {}: {}", seen.reason, seen.message)))
            }
        }
    }

    /// Waits until so many members are done.
    pub async fn completed(&self, members: usize, seconds: u64) -> Result<()> {
        let what = format!("{members} members to be done");
        wait::until_so(&what, seconds, async || Ok(self.seen().await?.completed >= members)).await
    }

    /// Waits until it gives one of these reasons for not being Ready; which one.
    pub async fn waits_for(&self, reasons: &[&str], seconds: u64) -> Result<String> {
        let what = format!("the reason {}", reasons.join(" or "));
        wait::until(&what, seconds, async || {
            let seen = self.seen().await?;
            Ok((!seen.ready && reasons.contains(&seen.reason.as_str())).then_some(seen.reason))
        })
        .await
    }
}

fn read(object: &Value) -> Seen {
    let status = &object["status"];
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(ready) = conditions.iter().find(|condition| condition["type"] == "Ready") else { return Seen::default() };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Seen {
        ready: ready["status"] == "True" && status["observedGeneration"] == object["metadata"]["generation"],
        reason: text(&ready["reason"]),
        message: text(&ready["message"]),
        version: text(&status["currentVersion"]),
        completed: status["upgrade"]["completedPods"].as_array().map_or(0, Vec::len),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn a_status_of_an_older_spec_is_not_ready() {
        let object = |observed: i64| {
            json!({
                "metadata": {"generation": 2},
                "status": {
                    "observedGeneration": observed, "currentVersion": "3.6.16",
                    "conditions": [{"type": "Ready", "status": "True", "reason": "UpToDate", "message": ""}],
                },
            })
        };
        assert!(read(&object(2)).ready);
        assert!(!read(&object(1)).ready);
        assert!(!read(&json!({})).ready);
    }
}
