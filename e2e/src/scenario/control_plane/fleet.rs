//! A ServiceImage on a real control plane: real Deployments behind Dicoms, their pods played by KWOK.

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use kube::{
    Api, CustomResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use windlass_api::ServiceImage;

use super::{LEASE_SECONDS, Stage};
use crate::{audit::AuditLog, hold::Hold, scenario::wait};

/// The image of this tag.
pub fn image(tag: &str) -> String {
    format!("registry.example/dicom:{tag}")
}

/// A fleet in a namespace of its own, and the controller behind it.
pub struct Fleet<'a> {
    stage: &'a Stage,
    namespace: &'static str,
    /// All ServiceImages.
    pub images: Api<ServiceImage>,
    /// The Dicoms of the namespace.
    pub dicoms: Api<dicom::Dicom>,
    service: tokio::task::JoinHandle<()>,
}

impl Drop for Fleet<'_> {
    fn drop(&mut self) {
        self.service.abort();
    }
}

impl<'a> Fleet<'a> {
    /// The definition, the controller, and these Dicoms, serving.
    pub async fn create(stage: &'a Stage, namespace: &'static str, dicoms: &[(&str, &str, &str)]) -> Result<Self> {
        define(stage, &[namespace])?;
        let client = stage.client.clone();
        let service = tokio::spawn(async move { dicom::controller::run(&client, None, Timestamp::now).await });
        let this = Self {
            stage,
            namespace,
            images: Api::all(stage.client.clone()),
            dicoms: Api::namespaced(stage.client.clone(), namespace),
            service,
        };
        for (name, tier, tag) in dicoms {
            this.add(name, tier, Some(tag)).await?;
        }
        wait::until_so("the Dicoms to serve", 60, async || {
            let all = this.dicoms.list(&kube::api::ListParams::default()).await?;
            Ok(all.items.iter().all(|dicom| holds(dicom, "UpToDate")))
        })
        .await?;
        Ok(this)
    }

    async fn add(&self, name: &str, tier: &str, tag: Option<&str>) -> Result<()> {
        let mut object = json!({
            "apiVersion": "examples.windlass.dev/v1", "kind": "Dicom",
            "metadata": {"name": name, "namespace": self.namespace, "labels": {"fleet": self.namespace}},
            "spec": {"failureHaltsUpdate": true, "replicas": 1, "image": tag.map(image)},
        });
        if !tier.is_empty() {
            object["metadata"]["labels"]["upgrade-tier"] = json!(tier);
        }
        self.dicoms.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    /// The ServiceImage of this namespace's Dicoms.
    pub async fn want(&self, tiers: Value) -> Result<()> {
        let object = json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "ServiceImage",
            "metadata": {"name": self.namespace},
            "spec": {
                "defaultImage": image("v2"),
                "target": {
                    "group": "examples.windlass.dev", "version": "v1", "kind": "Dicom",
                    "labelSelector": format!("fleet={}", self.namespace),
                },
                "tiers": tiers,
            },
        });
        self.images.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    /// The image of each Dicom.
    pub async fn images(&self) -> Result<Vec<(String, String)>> {
        let all = self.dicoms.list(&kube::api::ListParams::default()).await?;
        let image =
            |dicom: dicom::Dicom| (dicom.metadata.name.unwrap_or_default(), dicom.spec.image.unwrap_or_default());
        Ok(all.items.into_iter().map(image).collect())
    }

    /// The ServiceImage.
    pub async fn whole(&self) -> Result<Value> {
        Ok(serde_json::to_value(self.images.get(self.namespace).await?)?)
    }

    /// Waits as kubectl does.
    pub fn waits(&self, condition: &str, seconds: u32) -> Result<String> {
        self.stage.windlass.kubectl(&[
            "wait",
            &format!("--for=condition={condition}"),
            &format!("--timeout={seconds}s"),
            &format!("serviceimage/{}", self.namespace),
        ])
    }

    async fn settled(&self, before: &str) -> Result<String> {
        wait::until("an operator to have taken over", 60, async || {
            let whole = self.whole().await?;
            let operator = &whole["status"]["operator"];
            let id = operator["identity"].as_str().filter(|id| operator["predecessorDone"] == true && *id != before);
            Ok(id.map(str::to_owned))
        })
        .await
    }

    /// Changes the ServiceImage's spec.
    pub async fn change(&self, spec: Value) -> Result<()> {
        self.images.patch(self.namespace, &PatchParams::default(), &Patch::Merge(json!({ "spec": spec }))).await?;
        Ok(())
    }
}

/// The definition of Dicoms, established, and these namespaces.
pub fn define(stage: &Stage, namespaces: &[&str]) -> Result<()> {
    let mut items = vec![serde_json::to_value(dicom::Dicom::crd())?];
    for namespace in namespaces {
        items.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
    }
    apply(stage, "dicoms", &Value::Array(items))?;
    let crd = "crd/dicoms.examples.windlass.dev";
    stage.windlass.kubectl(&["wait", "--for=condition=Established", "--timeout=30s", crd])?;
    Ok(())
}

/// The rights that an administrator gives.
pub fn allow(stage: &Stage) -> Result<()> {
    allow_to(stage, &["get", "list", "watch", "patch"])
}

/// The same with these verbs alone.
fn allow_to(stage: &Stage, verbs: &[&str]) -> Result<()> {
    let items = json!([
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "stamp-dicoms"},
         "rules": [{"apiGroups": ["examples.windlass.dev"], "resources": ["dicoms"], "verbs": verbs}]},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "stamp-dicoms"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "stamp-dicoms"},
         "subjects": [{"kind": "ServiceAccount", "name": "windlass", "namespace": "windlass-system"}]},
    ]);
    apply(stage, "stamp-dicoms", &items)
}

/// Applies these as an administrator.
pub fn apply(stage: &Stage, name: &str, items: &Value) -> Result<()> {
    let file = stage.cluster.folder().join(format!("{name}.json"));
    fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())?;
    stage.windlass.kubectl(&["apply", "-f", &file.to_string_lossy()])?;
    Ok(())
}

/// Its condition is true of its newest generation.
pub fn holds(dicom: &dicom::Dicom, type_: &str) -> bool {
    let conditions = dicom.status.iter().flat_map(|status| &status.conditions);
    let observed = dicom.status.as_ref().map(|status| status.observed_generation) == dicom.metadata.generation;
    observed && conditions.into_iter().any(|one| one.type_ == type_ && one.status == "True")
}

/// A tier.
pub fn tier(name: &str, tag: &str, priority: i64) -> Value {
    json!({"upgradeTier": name, "image": image(tag), "priority": priority})
}

/// The source document's example, then a wait right after an edit, then a new resource.
pub async fn tiers(stage: &Stage) -> Result<()> {
    let dicoms = [("a", "", "v1"), ("b", "", "v1"), ("e", "earlyAccess", "v2"), ("f", "earlyAccess", "v2")];
    let fleet = Fleet::create(stage, "fleet", &dicoms).await?;
    let audit = AuditLog::from_now(&stage.cluster.audit_log());
    let _operator = stage.windlass.start("fleet", LEASE_SECONDS).await?;
    fleet.want(json!([tier("", "v2", 0), tier("earlyAccess", "v3", 1)])).await?;
    // Nobody has given it the rights yet: that is what it says, and it goes on by itself when somebody does.
    let said = wait::until("it to say that it lacks the rights", 60, async || {
        let whole = fleet.whole().await?;
        let conditions = whole["status"]["conditions"].as_array().cloned().unwrap_or_default();
        Ok(conditions.into_iter().find(|one| one["type"] == "Stalled" && one["reason"] == "TargetNotAllowed"))
    })
    .await?;
    ensure!(said["message"].as_str().is_some_and(|text| text.contains("dicoms")), "it does not name the kind: {said}");
    allow(stage)?;
    fleet.waits("complete", 120)?;
    fleet.waits("Ready", 5)?;
    let expected = [("a", "v2"), ("b", "v2"), ("e", "v3"), ("f", "v3")];
    let expected: Vec<(String, String)> = expected.iter().map(|(name, tag)| ((*name).to_owned(), image(tag))).collect();
    ensure!(fleet.images().await? == expected, "wrong images: {:?}", fleet.images().await?);

    // Stamps are the operator's only writes to Dicoms, one each, the tier of higher priority first.
    let requests = audit.requests("fleet")?;
    let stamps: Vec<String> = requests
        .iter()
        .filter(|request| {
            request.writes() && request.object_ref.resource == "dicoms" && request.user.username == super::USER
        })
        .map(|request| request.object_ref.name.clone())
        .collect();
    ensure!(stamps.len() == 4, "{} writes to four Dicoms: {stamps:?}", stamps.len());
    let early = |name: &String| ["e", "f"].contains(&name.as_str());
    ensure!(stamps.iter().take(2).all(early), "the wrong ones went first: {stamps:?}");

    // Right after an edit neither kubectl's wait nor anybody else takes the old answer for the new one.
    fleet.change(json!({"tiers": [tier("", "v4", 0), tier("earlyAccess", "v3", 1)]})).await?;
    fleet.waits("complete", 120)?;
    ensure!(
        fleet.images().await?.iter().any(|(name, tag)| name == "a" && *tag == image("v4")),
        "waited for the old one"
    );

    fleet.add("n", "", None).await?;
    wait::until_so("a new one to get its image", 30, async || {
        Ok(fleet.images().await?.contains(&("n".to_owned(), image("v4"))))
    })
    .await?;
    let events = ["get", "events", "--namespace", "default", "--field-selector", "involvedObject.kind=ServiceImage"];
    let events = stage.windlass.kubectl(&events)?;
    ensure!(events.contains("TierComplete"), "no event tells:\n{events}");
    let shown = stage.windlass.kubectl(&["get", "serviceimages"])?;
    ensure!(shown.contains("Dicom") && shown.contains("True"), "kubectl get does not tell:\n{shown}");
    Ok(())
}

/// Nobody lists what may be changed: whoever may patch Dicoms may have them changed, in the namespaces with a label.
pub async fn author(stage: &Stage) -> Result<()> {
    stage.windlass.withdraw("author-rights.yaml")?;
    let fleet = Fleet::create(stage, "by-author", &[("a", "", "v1")]).await?;
    let elsewhere: Api<dicom::Dicom> = Api::namespaced(stage.client.clone(), "by-author-not");
    define(stage, &["by-author-not"])?;
    let left = json!({
        "apiVersion": "examples.windlass.dev/v1", "kind": "Dicom",
        "metadata": {"name": "left", "namespace": "by-author-not"}, "spec": {"image": image("v1")},
    });
    elsewhere.create(&PostParams::default(), &serde_json::from_value(left)?).await?;
    allow(stage)?;
    let rights = |name: &str, group: &str, resource: &str, verbs: &[&str], user: &str| {
        [
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
                   "rules": [{"apiGroups": [group], "resources": [resource], "verbs": verbs}]}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": format!("{name}-{user}")},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                   "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]}),
        ]
    };
    let all = ["get", "create", "patch", "update"];
    let items = [
        rights("write-images", "windlass.dev", "serviceimages", &all, "ada"),
        rights("write-images", "windlass.dev", "serviceimages", &all, "eve"),
        rights("write-status", "windlass.dev", "serviceimages/status", &["get", "patch"], "eve"),
        rights("patch-dicoms", "examples.windlass.dev", "dicoms", &["patch"], "ada"),
        rights("patch-scans", "examples.windlass.dev", "scans", &["patch"], "eve"),
    ];
    apply(stage, "authors", &Value::Array(items.concat()))?;
    let wanted = |name: &str| {
        json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "ServiceImage", "metadata": {"name": name},
            "spec": {
                "defaultImage": image("v2"), "tiers": [{}],
                "target": {
                    "group": "examples.windlass.dev", "version": "v1", "kind": "Dicom",
                    "namespaceSelector": "kubernetes.io/metadata.name=by-author",
                },
            },
        })
    };
    let server = stage.windlass.server()?;
    let words = ["--allow-target-by-author"];
    let _operator = stage.windlass.start_with("by-author", LEASE_SECONDS, &server, &words).await?;

    // Nobody asks for the author's rights yet, so nobody's count.
    let write = |user: &str, name: &str| {
        let file = stage.cluster.folder().join(format!("{user}.json"));
        fs::write(&file, wanted(name).to_string())?;
        stage.windlass.kubectl(&["apply", "--as", user, "-f", &file.to_string_lossy()])
    };
    write("ada", "by-author")?;
    wait::until_so("it to say that nobody asked", 60, async || {
        let told = fleet.whole().await?["status"]["conditions"].to_string();
        Ok(told.contains("TargetNotAllowed") && told.contains("windlass-author-rights"))
    })
    .await?;
    stage.windlass.ship("author-rights.yaml")?;
    fleet.waits("complete", 60)?;
    ensure!(fleet.images().await? == [("a".to_owned(), image("v2"))], "wrong images: {:?}", fleet.images().await?);
    let image_of = elsewhere.get("left").await?.spec.image;
    ensure!(image_of == Some(image("v1")), "another namespace was not left alone: {image_of:?}");

    // The policy is in force a moment after it is there.
    let refused = wait::until("the API server to refuse who may not patch Dicoms", 30, async || {
        let written = write("eve", "by-eve");
        if written.is_ok() {
            stage.windlass.kubectl(&["delete", "serviceimage", "by-eve"])?;
        }
        Ok(written.err())
    })
    .await?;
    ensure!(format!("{refused:#}").contains("you may not patch"), "it does not say why: {refused:#}");

    forge(stage)?;

    // An operator that may not patch them any more still says so, and keeps nobody who is deleted.
    allow_to(stage, &["get", "list", "watch"])?;
    fleet.change(json!({"defaultImage": image("v3")})).await?;
    wait::until_so("it to say that it may not", 60, async || {
        Ok(fleet.whole().await?["status"].to_string().contains("is forbidden"))
    })
    .await?;
    stage.windlass.kubectl(&["delete", "serviceimage", "by-author", "--timeout=60s"])?;
    Ok(())
}

/// Eve may write ServiceImages and their statuses, and may not patch Dicoms.
fn forge(stage: &Stage) -> Result<()> {
    let patch = |words: &[&str], patch: &Value| {
        let (mut all, patch) =
            (vec!["patch", "serviceimage", "by-author", "--as", "eve", "--type=merge"], patch.to_string());
        all.extend(words);
        all.extend(["-p", &patch]);
        stage.windlass.kubectl(&all)
    };
    let refused = |words: &[&str], forged: &Value| {
        let refused = patch(words, forged).err().with_context(|| format!("Eve may write {forged}"))?;
        ensure!(format!("{refused:#}").contains("you may not patch"), "it does not say why: {refused:#}");
        Ok(())
    };
    // What is recorded is acted on: another image for new resources, an approval, a hook's yes.
    let tier = json!({"upgradeTier": "", "image": image("v2"), "newDeploymentImage": image("v9"), "approved": true});
    for record in [
        json!({"tierStatus": [tier]}),
        json!({"hooksPassed": false}),
        json!({"batch": []}),
        json!({"requests": {"retry": "eve"}}),
    ] {
        refused(&["--subresource=status"], &json!({ "status": record }))?;
    }
    // What has no owner any more is deleted, what has no finalizer waits for nobody, and Scans are not what it changes.
    let gone = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "none"}]);
    refused(&[], &json!({"metadata": {"ownerReferences": gone}}))?;
    refused(&[], &json!({"metadata": {"finalizers": null}}))?;
    refused(&[], &json!({"spec": {"target": {"resource": "scans"}}}))?;
    patch(&[], &json!({"metadata": {"labels": {"by": "eve"}}})).map(|_| ())
}

/// An operator's stamps are held back on their way; another one takes over; then they arrive.
pub async fn late_stamp(stage: &Stage) -> Result<()> {
    let dicoms = [("a", "", "v1"), ("b", "", "v1"), ("c", "", "v1")];
    let fleet = Fleet::create(stage, "late-stamp", &dicoms).await?;
    allow(stage)?;
    fleet.want(json!([tier("", "v1", 0)])).await?;
    let audit = AuditLog::from_now(&stage.cluster.audit_log());
    let hold = Hold::before(&stage.cluster.kubeconfig()).await?;
    let first = stage.windlass.start_at("late-stamp-first", LEASE_SECONDS, &hold.server).await?;
    let operator = fleet.settled("").await?;
    fleet.waits("complete", 60)?;

    // The reservation goes through; what is written to the Dicoms gets stuck.
    hold.hold_only("/dicoms/");
    let begun = Timestamp::now();
    fleet.change(json!({"tiers": [tier("", "v2", 0)]})).await?;
    wait::until_so("the first operator to stamp", 30, async || Ok(hold.held() > 0)).await?;
    let reserved = fleet.whole().await?["status"]["batch"].as_array().map(Vec::len);
    ensure!(reserved == Some(3), "not reserved first: {reserved:?}");
    first.freeze()?;
    let second = stage.windlass.start("late-stamp-second", LEASE_SECONDS).await?;
    fleet.settled(&operator).await?;
    let settled = Timestamp::now();
    // Nothing but the late writes, which are to arrive after the touch, may say v2 later on: somebody else wants another image.
    fleet.change(json!({"tiers": [tier("", "v3", 0)]})).await?;
    fleet.waits("complete", 120)?;
    hold.release();
    first.resume()?;

    let late = wait::until("the late stamps to arrive", 30, async || {
        let requests = audit.requests("late-stamp")?;
        let late: Vec<_> = requests
            .into_iter()
            .filter(|request| request.object_ref.resource == "dicoms" && request.writes())
            .filter(|request| {
                request.credential() == Some(&first.credential) && request.request_received_timestamp > begun
            })
            .collect();
        Ok((late.len() >= 3).then_some(late))
    })
    .await?;
    for request in &late {
        let name = &request.object_ref.name;
        ensure!(request.request_received_timestamp > settled, "the stamp of {name} was not held back");
        ensure!(!request.succeeded(), "a late stamp of {name} took effect");
        ensure!(request.response_status.code == 409, "a late stamp of {name} got {}", request.response_status.code);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    ensure!(
        fleet.images().await?.iter().all(|(_, tag)| *tag == image("v3")),
        "wrong images: {:?}",
        fleet.images().await?
    );
    ensure!(second.credential != first.credential, "one operator took over from itself");
    stage
        .windlass
        .kubectl(&["delete", "serviceimage", "late-stamp", "--timeout=30s"])
        .context("it can't be deleted")?;
    Ok(())
}
