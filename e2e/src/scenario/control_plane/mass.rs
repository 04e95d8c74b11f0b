//! A fleet of ten thousand on a real control plane: how much it costs, whether its order was kept, and how its time compares with a bare
//! loop that sends the same patches.
//!
//! A part of the Dicoms has real Deployments, whose pods KWOK plays; the others are said to be up to date as soon as they are looked at.
//! The loop runs before and after, on the same resources, as the same user, with as many requests at once as the operator may have.

mod bare;
mod figures;
mod played;
mod witness;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use windlass_api::ServiceImage;

pub use self::figures::Figures;
use self::{
    figures::Spent,
    witness::{Fleet, Seen},
};
use super::{
    LEASE_SECONDS, Stage, USER,
    fleet::{allow, image},
};
use crate::{
    audit::AuditLog,
    cluster::{self, Shape},
    say,
    scenario::{operator::Installation, row::Row, wait},
};

/// Its name.
pub const NAME: &str = "service-image";
/// What it shows.
pub const SHOWS: &str =
    "ten thousand resources get their image tier by tier; what that costs, next to a bare loop with the same patches";
/// The cluster that it makes and takes down.
const CLUSTER: &str = "service-image";
/// Where Dicoms have real Deployments, and where they are played.
const REAL: &str = "clinics";
const PLAYED: &str = "clinics-played";
/// One of so many has a real Deployment.
const REAL_SHARE: usize = 40;
/// As many requests at once as the operator sends at most.
const CONCURRENCY: usize = 16;
/// The tiers, who goes first first, with their shares of a hundred.
const TIERS: [(&str, i64, usize); 4] = [("canary", 3, 1), ("earlyAccess", 2, 9), ("standard", 1, 40), ("", 0, 50)];
/// How long one pass over all of them may take.
const LIMIT: u64 = 900;

/// Runs it with so many resources.
pub async fn run(count: usize, program: Option<std::path::PathBuf>) -> Result<Row> {
    say(&format!("== {NAME}: {SHOWS}"));
    let begun = Instant::now();
    let mut row = Row { scenario: NAME.to_owned(), ..Row::default() };
    let options = cluster::Options {
        name: CLUSTER.into(),
        shape: Shape::ControlPlane,
        played_nodes: 5,
        api_server: Vec::new(),
        audited: Some(USER),
    };
    let cluster = cluster::up(&options).await?;
    let client = cluster::client(&cluster.kubeconfig()).await?;
    let windlass = Installation::install(&cluster, client.clone(), program)?;
    let stage = Stage { cluster, client, windlass };
    match measure(&stage, count).await {
        Ok(figures) => {
            row.wrong = figures.wrong();
            row.fleet = Some(figures);
        }
        Err(error) => row.wrong.push(format!("{error:#}")),
    }
    row.seconds = begun.elapsed().as_secs();
    if row.passed() {
        cluster::down(CLUSTER)?;
    } else {
        row.evidence = Some(stage.cluster.folder().display().to_string());
        say(&format!("the cluster is still up; cargo xtask cluster down --name {CLUSTER} ends it"));
    }
    say(&format!("== {NAME}: {} after {} s", if row.passed() { "ok" } else { "FAILED" }, row.seconds));
    Ok(row)
}

async fn measure(stage: &Stage, count: usize) -> Result<Figures> {
    super::fleet::define(stage, &[REAL, PLAYED])?;
    allow(stage)?;
    let fleet = Fleet::watch(&stage.client);
    let _services = [
        Running(tokio::spawn({
            let client = stage.client.clone();
            async move { dicom::controller::run(&client, Some(REAL), Timestamp::now).await }
        })),
        Running(tokio::spawn(played::run(Api::namespaced(stage.client.clone(), PLAYED)))),
    ];
    say(&format!("creating {count} Dicoms, {} of them with real Deployments", count.div_ceil(REAL_SHARE)));
    create(stage, count).await?;
    fleet.has(count, &image("v1"), LIMIT).await?;

    let sender = stage.windlass.client().await?;
    let before = bare_loop(&sender, &fleet, count, "v2").await?;

    say("the operator starts, and finds everything as it is wanted");
    let images: Api<ServiceImage> = Api::all(stage.client.clone());
    let operator = stage.windlass.start("service-image", LEASE_SECONDS).await?;
    images.create(&PostParams::default(), &serde_json::from_value(wanted("v2"))?).await?;
    complete(&images).await?;

    say("a new image for all of them, while somebody else writes to them, too");
    let audit = AuditLog::from_now(&stage.cluster.audit_log());
    let mark = fleet.mark();
    let others = Running(tokio::spawn(meddle(stage.client.clone(), count)));
    let changed = Instant::now();
    let spec = json!({"spec": wanted("v3")["spec"]});
    images.patch(NAME, &PatchParams::default(), &Patch::Merge(&spec)).await?;
    complete(&images).await?;
    let took = changed.elapsed();
    drop(others);
    say(&format!("done after {:.1} s", took.as_secs_f64()));
    let peak_memory = operator.peak_memory()?;
    let requests = audit.all()?;
    let spent = Spent::of(requests.iter().filter(|request| request.credential() == Some(&operator.credential)));
    drop(operator);
    let flows = flows(stage).await?;

    let after = bare_loop(&sender, &fleet, count, "v4").await?;
    let story = fleet.since(mark, &image("v3"));
    Ok(Figures::new(count, &story?, spent, peak_memory, took, [before, after], flows))
}

/// A task that ends with what it is for.
struct Running(tokio::task::JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Where the Dicom of this number is, and what it is called.
fn place(number: usize) -> (&'static str, String) {
    (if number.is_multiple_of(REAL_SHARE) { REAL } else { PLAYED }, format!("dicom-{number:05}"))
}

/// The tier of this number: shares of the whole, one after the other.
fn tier(number: usize, count: usize) -> &'static str {
    let mut end = 0;
    for (name, _, share) in TIERS {
        end += share;
        if number * 100 < end * count {
            return name;
        }
    }
    ""
}

async fn create(stage: &Stage, count: usize) -> Result<()> {
    let made = stream::iter(0..count).map(|number| async move {
        let (namespace, name) = place(number);
        let mut labels = serde_json::Map::new();
        if !tier(number, count).is_empty() {
            labels.insert("upgrade-tier".to_owned(), tier(number, count).into());
        }
        let object = json!({
            "apiVersion": "examples.windlass.dev/v1", "kind": "Dicom",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"image": image("v1"), "replicas": 1},
        });
        let dicoms: Api<dicom::Dicom> = Api::namespaced(stage.client.clone(), namespace);
        dicoms.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        anyhow::Ok(())
    });
    made.buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await.context("a Dicom can't be created")?;
    Ok(())
}

fn wanted(tag: &str) -> Value {
    let tiers = TIERS.map(|(name, priority, _)| json!({"upgradeTier": name, "priority": priority}));
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ServiceImage", "metadata": {"name": NAME},
        "spec": {
            "defaultImage": image(tag),
            "target": {"group": "examples.windlass.dev", "version": "v1", "kind": "Dicom"},
            "tiers": tiers,
        },
    })
}

async fn complete(images: &Api<ServiceImage>) -> Result<()> {
    wait::until_so("the ServiceImage to be complete", LIMIT, async || {
        let seen = images.get(NAME).await?;
        let status = seen.status.unwrap_or_default();
        ensure!(
            !status.conditions.iter().any(|one| one.type_ == "Stalled" && one.status == "True"),
            "it is stalled: {:?}",
            status.conditions
        );
        let is_complete = status.conditions.iter().any(|one| one.type_ == "Complete" && one.status == "True");
        Ok(is_complete && status.observed_generation == seen.metadata.generation)
    })
    .await
}

async fn bare_loop(sender: &kube::Client, fleet: &Fleet, count: usize, tag: &str) -> Result<Duration> {
    let all: Vec<Seen> = fleet.latest();
    ensure!(all.len() == count, "{} Dicoms instead of {count}", all.len());
    let took = bare::send(sender, &all, &image(tag), CONCURRENCY).await?;
    say(&format!("a bare loop sent {tag} to all of them in {:.1} s", took.as_secs_f64()));
    fleet.has(count, &image(tag), LIMIT).await?;
    Ok(took)
}

/// Others write to resources, too: what the operator saw of them is old then.
async fn meddle(client: kube::Client, count: usize) {
    for step in 0.. {
        let (namespace, name) = place((step * 7919) % count);
        let dicoms: Api<dicom::Dicom> = Api::namespaced(client.clone(), namespace);
        let note = json!({"metadata": {"annotations": {"example.com/visited": step.to_string()}}});
        dicoms.patch(&name, &PatchParams::default(), &Patch::Merge(&note)).await.ok();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How many requests each of our FlowSchemas took, as the API server counts them.
async fn flows(stage: &Stage) -> Result<Vec<(String, u64)>> {
    let asked = http::Request::get("/metrics").body(Vec::new())?;
    let text = stage.client.request_text(asked).await?;
    let mut flows = std::collections::BTreeMap::<String, u64>::new();
    for line in text.lines().filter(|line| line.starts_with("apiserver_flowcontrol_dispatched_requests_total{")) {
        let schema = line.split("flow_schema=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let number = line.rsplit(' ').next().and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0);
        if schema.starts_with("windlass-") {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let number = number as u64;
            *flows.entry(schema.to_owned()).or_default() += number;
        }
    }
    Ok(flows.into_iter().collect())
}
