//! What is kept of a trial that failed: logs, objects, events, the audit log, what the witness and the load saw.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    coordination::v1::Lease,
    core::v1::{Event, Pod},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, LogParams},
    core::NamespaceResourceScope,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{facts::Facts, operator, trial::Trial};
use crate::{cluster::layout, say};

/// Writes everything into a folder of its own; which one.
pub async fn keep(trial: &Trial<'_>, facts: Option<&Facts>) -> Result<PathBuf> {
    let moment = jiff::Timestamp::now().as_second();
    let folder = layout::cache()?.join("e2e").join(format!("{}-{moment}", trial.namespace));
    fs::create_dir_all(&folder)?;
    for operator in &trial.operators {
        if let Some(name) = operator.log.file_name() {
            fs::copy(&operator.log, folder.join(name))?;
        }
    }
    let audit = trial.audit.lines(&trial.namespace).unwrap_or_default();
    fs::write(folder.join("audit.jsonl"), audit.join("\n"))?;
    if let Some(facts) = facts {
        let lines: Vec<String> = facts.samples.iter().filter_map(|sample| serde_json::to_string(sample).ok()).collect();
        fs::write(folder.join("witness.jsonl"), lines.join("\n"))?;
        fs::write(folder.join("testimony.json"), serde_json::to_vec_pretty(&facts.testimony)?)?;
        fs::write(folder.join("load.json"), serde_json::to_vec_pretty(&facts.ledger)?)?;
    }
    let namespace = trial.namespace.as_str();
    // What can't be read now is missing there: no reason to lose the rest.
    let resource = trial.resource.whole().await.unwrap_or_default();
    fs::write(folder.join("quorumcluster.json"), serde_json::to_vec_pretty(&resource)?)?;
    list::<Pod>(trial, namespace, &folder, "pods.json").await;
    list::<StatefulSet>(trial, namespace, &folder, "statefulsets.json").await;
    list::<ControllerRevision>(trial, namespace, &folder, "revisions.json").await;
    list::<PodDisruptionBudget>(trial, namespace, &folder, "budgets.json").await;
    list::<Event>(trial, namespace, &folder, "events.json").await;
    list::<Lease>(trial, operator::NAMESPACE, &folder, "leases.json").await;
    list::<Pod>(trial, operator::NAMESPACE, &folder, "operator-pods.json").await;
    for namespace in [namespace, operator::NAMESPACE] {
        logs(trial, namespace, &folder).await;
    }
    Ok(folder)
}

async fn list<K>(trial: &Trial<'_>, namespace: &str, folder: &Path, file: &str)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(trial.site.client.clone(), namespace);
    let listed = api.list(&ListParams::default()).await.map_err(anyhow::Error::from);
    let written = listed.and_then(|list| Ok(fs::write(folder.join(file), serde_json::to_vec_pretty(&list.items)?)?));
    if let Err(error) = written {
        say(&format!("{file} is missing among the evidence: {error:#}"));
    }
}

async fn logs(trial: &Trial<'_>, namespace: &str, folder: &Path) {
    let pods: Api<Pod> = Api::namespaced(trial.site.client.clone(), namespace);
    let names = pods.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    for name in names.iter().map(ResourceExt::name_any) {
        for previous in [false, true] {
            let params = LogParams { previous, tail_lines: Some(5000), ..LogParams::default() };
            // Most pods have no previous container.
            let Ok(text) = pods.logs(&name, &params).await else { continue };
            let file = folder.join(format!("{name}{}.log", if previous { "-previous" } else { "" }));
            if let Err(error) = fs::write(&file, text) {
                say(&format!("{} is missing among the evidence: {error}", file.display()));
            }
        }
    }
}
