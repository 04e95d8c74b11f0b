//! Gates that are asked elsewhere: a freeze among the objects, a webhook and measurements from a small web server, Jobs before and after.

use anyhow::{Result, ensure};
use k8s_openapi::api::{batch::v1::Job, core::v1::ConfigMap};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};

use crate::{applications::IDLE, audit, say, scenario::trial::Trial};

/// Says no until it is told otherwise.
const MAY: &str = r#"#!/bin/sh
if [ -e /tmp/yes ]; then printf 'Status: 200 OK\r\nContent-Type: text/plain\r\n\r\nyes'
else printf 'Status: 409 Conflict\r\nContent-Type: application/json\r\n\r\n{"message": "the calendar says no"}'; fi
"#;

/// Measures bad values until it is told otherwise.
const PROMETHEUS: &str = r#"#!/bin/sh
if [ -e /tmp/good ]; then v=0.01; else v=0.5; fi
printf 'Status: 200 OK\r\nContent-Type: application/json\r\n\r\n{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"job": "api"}, "value": [1, "%s"]}]}}' $v
"#;

/// Every gate holds once, in its turn, and nobody is ended meanwhile; then all members are replaced.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    trial.create(&objects())?;
    trial.resource.change(gates()).await?;
    trial.ask_for_new().await?;
    let mut told = Vec::new();
    for reason in ["CheckFailed", "AnalysisFailed", "AwaitingHook"] {
        trial.resource.waits_for(&[reason], 120).await?;
        let message = trial.resource.seen().await?.message;
        say(&format!("{reason}: {message}"));
        told.push(message);
        ensure!(audit::endings(&trial.audit.requests(&trial.namespace)?).is_empty(), "pods were ended in spite of it");
        trial.more_writes(40).await?;
        let tell = |file: &str| {
            let touch = ["exec", "web", "--", "/bin/busybox", "touch", file];
            trial.site.windlass.kubectl(&[&["--namespace", trial.namespace.as_str()], touch.as_slice()].concat())
        };
        match reason {
            "CheckFailed" => {
                let maps: Api<ConfigMap> = Api::namespaced(trial.site.client.clone(), &trial.namespace);
                maps.delete("december", &DeleteParams::default()).await?;
            }
            "AnalysisFailed" => drop(tell("/tmp/good")?),
            _ => drop(tell("/tmp/yes")?),
        }
    }
    ensure!(told.iter().any(|message| message.contains("the value is 0.5")), "what was measured is not told: {told:?}");
    trial.finish(300).await?;
    let jobs: Api<Job> = Api::namespaced(trial.site.client.clone(), &trial.namespace);
    let jobs = jobs.list(&ListParams::default()).await?.items;
    let done = jobs.iter().filter(|job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1))).count();
    let names: Vec<String> = jobs.iter().map(ResourceExt::name_any).collect();
    ensure!(done == 2 && jobs.len() == 2, "two Jobs should have completed: {names:?}");
    trial.notes.push(told.join(" / "));
    Ok(())
}

fn gates() -> Value {
    let job = |name: &str, when: &str| json!({"name": name, "when": when, "job": {"cronJob": "smoke"}});
    json!({"gates": {
        "checks": [{
            "name": "no-freeze", "cel": "objects.size() == 0",
            "objects": {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "freeze=yes"},
        }],
        "analysis": [{
            "name": "errors", "prometheus": {"name": "web", "port": 80, "path": "/cgi-bin/prometheus"},
            "query": "sum(rate(errors[5m]))", "cel": "value < 0.1", "interval": "2s",
        }],
        "hooks": [
            job("first", "BeforeUpgrade"),
            {"name": "calendar", "when": "BeforeEachMember", "webhook": {"name": "web", "port": 80, "path": "/cgi-bin/may"}},
            job("last", "AfterUpgrade"),
        ],
    }})
}

fn objects() -> Vec<Value> {
    let windlass = json!([{"kind": "ServiceAccount", "name": "windlass", "namespace": "windlass-system"}]);
    let bound = |name: &str, kind: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}, "subjects": windlass,
        })
    };
    let smoke = json!({"name": "smoke", "image": IDLE, "command": ["/bin/busybox", "true"]});
    let web = json!({
        "name": "web", "image": IDLE, "command": ["/bin/busybox", "httpd", "-f", "-p", "8080", "-h", "/www"],
        "volumeMounts": [{"name": "scripts", "mountPath": "/www/cgi-bin"}],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    });
    vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "windlass-checks"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
        }),
        bound("windlass-checks", "Role"),
        bound("windlass-gates", "ClusterRole"),
        bound("windlass-jobs", "ClusterRole"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "december", "labels": {"freeze": "yes"}}}),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scripts"},
            "data": {"may": MAY, "prometheus": PROMETHEUS},
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {
                "terminationGracePeriodSeconds": 0, "containers": [web],
                "volumes": [{"name": "scripts", "configMap": {"name": "scripts", "defaultMode": 0o755}}],
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        }),
        json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "smoke"},
            "spec": {
                "schedule": "0 0 1 1 *", "suspend": true,
                "jobTemplate": {"spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [smoke]}}}},
            },
        }),
    ]
}
