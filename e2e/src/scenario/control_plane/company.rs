//! ServiceImages on a real control plane among others: a second one on the same resources, and resources that can't be written.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    discovery::ApiResource,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass_api::ServiceImage;

use super::{
    LEASE_SECONDS, Stage, USER,
    fleet::{Fleet, allow, apply, image, tier},
};
use crate::{audit::AuditLog, scenario::wait};

/// What a ServiceImage says of being ready.
async fn ready(images: &Api<ServiceImage>, name: &str) -> Result<Value> {
    let whole = serde_json::to_value(images.get(name).await?)?;
    let conditions = whole["status"]["conditions"].as_array().cloned().unwrap_or_default();
    Ok(conditions.into_iter().find(|one| one["type"] == "Ready").unwrap_or_default())
}

async fn says(images: &Api<ServiceImage>, name: &str, reason: &str) -> Result<Value> {
    wait::until(&format!("{name} to say {reason}"), 60, async || {
        Ok(Some(ready(images, name).await?).filter(|ready| ready["reason"] == reason))
    })
    .await
}

/// Two that want other images on the same Dicoms; then the older is deleted; then its successor writes elsewhere.
pub async fn two_owners(stage: &Stage) -> Result<()> {
    const NAMESPACE: &str = "two-owners";
    let fleet = Fleet::create(stage, NAMESPACE, &[("a", "", "v1"), ("b", "", "v1"), ("c", "", "v1")]).await?;
    allow(stage)?;
    let audit = AuditLog::from_now(&stage.cluster.audit_log());
    let _operator = stage.windlass.start(NAMESPACE, LEASE_SECONDS).await?;
    fleet.want(json!([tier("", "v2", 0)])).await?;
    fleet.waits("complete", 60)?;
    // Times of creation are whole seconds.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let younger = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ServiceImage", "metadata": {"name": "another-owner"},
        "spec": {
            "target": {
                "group": "examples.windlass.dev", "version": "v1", "kind": "Dicom",
                "namespaceSelector": format!("kubernetes.io/metadata.name in ({NAMESPACE})"),
            },
            "tiers": [tier("", "v3", 0)],
        },
    });
    fleet.images.create(&PostParams::default(), &serde_json::from_value(younger)?).await?;
    let said = says(&fleet.images, "another-owner", "ResourcesTaken").await?;
    // Which of them is named depends on their uids.
    let expected = format!(" and 2 more belong to ServiceImage {NAMESPACE}, which is older");
    let message = said["message"].as_str().unwrap_or_default();
    ensure!(message.contains(&expected), "it does not say who has them: {message}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let stamps = || -> Result<usize> {
        let requests = audit.requests(NAMESPACE)?;
        let ours = requests.iter().filter(|request| {
            request.writes() && request.object_ref.resource == "dicoms" && request.user.username == USER
        });
        Ok(ours.count())
    };
    let written = stamps()?;
    ensure!(written == 3, "{written} writes to three Dicoms: they duel");
    ensure!(fleet.images().await?.iter().all(|(_, tag)| *tag == image("v2")), "{:?}", fleet.images().await?);

    stage.windlass.kubectl(&["delete", "serviceimage", NAMESPACE, "--timeout=30s"])?;
    wait::until_so("the younger to have them", 60, async || {
        Ok(fleet.images().await?.iter().all(|(_, tag)| *tag == image("v3")))
    })
    .await?;
    says(&fleet.images, "another-owner", "UpToDate").await?;
    let written = stamps()?;
    ensure!(written == 6, "{written} writes to three Dicoms, twice");
    let dicoms: Api<DynamicObject> =
        Api::namespaced_with(stage.client.clone(), NAMESPACE, &ApiResource::erase::<dicom::Dicom>(&()));
    let managed = dicoms.get("a").await?.metadata.managed_fields.unwrap_or_default();
    let uid = fleet.images.get("another-owner").await?.metadata.uid.context("a uid")?;
    let mine = managed.iter().filter_map(|entry| entry.manager.as_deref()).any(|manager| manager.contains(&uid));
    ensure!(mine, "the manager of the image does not name its ServiceImage: {managed:?}");
    stage.windlass.kubectl(&["delete", "serviceimage", "another-owner", "--timeout=30s"])?;
    Ok(())
}

/// One whose annotations are at their limit, and one that a ValidatingAdmissionPolicy keeps as it is: the others go on, again and again.
pub async fn refused(stage: &Stage) -> Result<()> {
    const NAMESPACE: &str = "refused";
    let fleet = Fleet::create(stage, NAMESPACE, &[("full", "", "v1"), ("kept", "", "v1"), ("well", "", "v1")]).await?;
    allow(stage)?;
    let change =
        async |name: &str, patch: Value| fleet.dicoms.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    for name in ["full", "kept"] {
        change(name, json!({"spec": {"failureHaltsUpdate": false}})).await?;
    }
    let filler = "x".repeat(256 * 1024 - "filler".len());
    change("full", json!({"metadata": {"annotations": {"filler": filler}}})).await?;
    let policy = json!([
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "keep-images"},
         "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["examples.windlass.dev"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["dicoms"]}]},
            "validations": [{"expression": "object.metadata.name != 'kept' || object.spec.image == oldObject.spec.image",
                             "message": "this image stays"}]}},
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "keep-images"},
         "spec": {"policyName": "keep-images", "validationActions": ["Deny"]}},
    ]);
    apply(stage, "keep-images", &policy)?;
    wait::until_so("the policy to be in force", 30, async || {
        // Only tried: once it had the other image, nothing would be changed by giving it that.
        let tried = PatchParams { dry_run: true, ..PatchParams::default() };
        let patch = Patch::Merge(json!({"spec": {"image": image("v0")}}));
        Ok(fleet.dicoms.patch("kept", &tried, &patch).await.is_err())
    })
    .await?;
    let before = fleet.images().await?.into_iter().find(|(name, _)| name == "kept").map(|(_, tag)| tag);
    let _operator = stage.windlass.start(NAMESPACE, LEASE_SECONDS).await?;
    fleet.want(json!([tier("", "v2", 0)])).await?;
    for tag in ["v2", "v3"] {
        fleet.change(json!({"tiers": [tier("", tag, 0)]})).await?;
        fleet.waits("complete", 60)?;
        let images = fleet.images().await?;
        ensure!(images.contains(&("well".to_owned(), image(tag))), "the others do not go on: {images:?}");
        ensure!(images.contains(&("full".to_owned(), image("v1"))), "it was written: {images:?}");
    }
    let kept = fleet.images().await?.into_iter().find(|(name, _)| name == "kept").map(|(_, tag)| tag);
    ensure!(kept == before, "the policy was not heard: {kept:?}");
    let refused = fleet.whole().await?["status"]["refused"].clone();
    let why = |name: &str| {
        let one = refused.as_array().into_iter().flatten().find(|one| one["name"] == name);
        one.and_then(|one| one["message"].as_str()).unwrap_or_default().to_owned()
    };
    ensure!(why("full").contains("may not be more than 262144 bytes"), "the status does not name it: {refused}");
    ensure!(why("kept").contains("this image stays"), "the status does not name it: {refused}");

    // Where it says so it halts, and goes on by itself when it can be written.
    change("full", json!({"spec": {"failureHaltsUpdate": true}})).await?;
    fleet.change(json!({"tiers": [tier("", "v4", 0)]})).await?;
    let said = says(&fleet.images, NAMESPACE, "StampRefused").await?;
    ensure!(said["message"].as_str().is_some_and(|text| text.contains("refused/full")), "it is not named: {said}");
    change("full", json!({"metadata": {"annotations": {"filler": null}}})).await?;
    fleet.waits("complete", 120)?;
    ensure!(fleet.images().await?.contains(&("full".to_owned(), image("v4"))), "{:?}", fleet.images().await?);
    stage.windlass.kubectl(&["delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "keep-images"])?;
    stage.windlass.kubectl(&["delete", "serviceimage", NAMESPACE, "--timeout=30s"])?;
    Ok(())
}

/// Whoever connects is kept waiting. Where.
async fn hanging() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://{}/", listener.local_addr()?);
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            kept.push(connection);
        }
    });
    Ok(url)
}

/// A webhook hangs for one of three, with a limit of one at once: it has its time, the others go on, and it stays reserved until it is answered.
pub async fn unanswered(stage: &Stage) -> Result<()> {
    const NAMESPACE: &str = "unanswered";
    let fleet = Fleet::create(stage, NAMESPACE, &[("stuck", "", "v1"), ("well", "", "v1"), ("fine", "", "v1")]).await?;
    allow(stage)?;
    let marked = json!({"metadata": {"labels": {"webhook": "hangs"}}, "spec": {"failureHaltsUpdate": false}});
    fleet.dicoms.patch("stuck", &PatchParams::default(), &Patch::Merge(marked)).await?;
    let webhook = json!([{
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "hanging"},
        "webhooks": [{
            "name": "hanging.example.com", "clientConfig": {"url": hanging().await?}, "timeoutSeconds": 20, "failurePolicy": "Fail",
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "objectSelector": {"matchLabels": {"webhook": "hangs"}},
            "rules": [{"apiGroups": ["examples.windlass.dev"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["dicoms"]}],
        }],
    }]);
    apply(stage, "hanging", &webhook)?;
    wait::until_so("writes to hang", 60, async || {
        let (begun, tried) = (Instant::now(), PatchParams { dry_run: true, ..PatchParams::default() });
        let patch = Patch::Merge(json!({"spec": {"image": image("v0")}}));
        let write = fleet.dicoms.patch("stuck", &tried, &patch);
        Ok(tokio::time::timeout(Duration::from_secs(6), write).await.is_err() && begun.elapsed().as_secs() >= 6)
    })
    .await?;
    let _operator = stage.windlass.start(NAMESPACE, LEASE_SECONDS).await?;
    let narrow = |tag: &str| {
        let mut tier = tier("", tag, 0);
        (tier["maxInFlight"], tier["progressDeadline"]) = (json!(1), json!("20s"));
        json!([tier])
    };
    fleet.want(narrow("v2")).await?;
    fleet.waits("complete", 180)?;
    let images = fleet.images().await?;
    for (name, tag) in [("stuck", "v1"), ("well", "v2"), ("fine", "v2")] {
        ensure!(images.contains(&(name.to_owned(), image(tag))), "{name} has not {tag}: {images:?}");
    }
    let status = fleet.whole().await?["status"].clone();
    ensure!(status["batch"][0]["name"] == "stuck", "nothing says that a write may be on its way: {status}");
    let refused = &status["refused"][0];
    let told = refused["message"].as_str().is_some_and(|text| text.contains("no answer in time"));
    ensure!(refused["name"] == "stuck" && told, "the status does not name it: {status}");

    stage.windlass.kubectl(&["delete", "validatingwebhookconfiguration", "hanging"])?;
    wait::until_so("it to be settled", 120, async || Ok(fleet.whole().await?["status"]["batch"].is_null())).await?;
    fleet.change(json!({"tiers": narrow("v3")})).await?;
    fleet.waits("complete", 120)?;
    let images = fleet.images().await?;
    ensure!(images.iter().all(|(_, tag)| *tag == image("v3")), "{images:?}");
    stage.windlass.kubectl(&["delete", "serviceimage", NAMESPACE, "--timeout=30s"])?;
    Ok(())
}
