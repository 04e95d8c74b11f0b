//! The embedded API server held to a real one: scripts run on both, and everything that comes back is compared.
//!
//! ```text
//!   scripts (by hand) ┐                ┌─▶ embedded ─▶ transcript ─▶ canonical ┐
//!   random (by seed) ─┴─▶ play a script┤                                      ├─▶ compare ─▶ differences
//!                                      └─▶ real ─────▶ transcript ─▶ canonical ┘
//! ```
//!
//! The real side is an API server and etcd alone: a controller manager or a scheduler would write into the scripts' objects.

mod canonical;
mod compare;
pub mod deviation;
mod kind;
mod play;
mod random;
mod scripts;
mod shrink;
mod side;
mod step;

use std::path::Path;

use anyhow::Context;
use futures::StreamExt;
use http::Request;
use serde_json::{Value, json};

pub use self::compare::Difference;
pub use self::deviation::Deviation;

use self::side::Side;
use self::step::Script;

/// Admission plugins that a real server must not run here: each adds to objects what only a controller or a whole cluster
/// gives a meaning to, and the embedded server has none of them.
pub const ADMISSION_PLUGINS_OFF: &[&str] = &[
    "ServiceAccount",
    "Priority",
    "DefaultTolerationSeconds",
    "TaintNodesByCondition",
    "StorageObjectInUseProtection",
];

/// How many scripts run at a time: enough to keep a real server busy on two cores.
const AT_A_TIME: usize = 4;
/// Enough to see what is wrong; each random script that fails is shrunk, which takes its time.
const MOST_FAILED_SCRIPTS: usize = 12;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Random scripts are added until at least so many operations were compared.
    pub operations: usize,
    /// Where the random scripts come from.
    pub seed: u64,
    /// Only scripts whose name contains this. `random-<seed>` is run alone.
    pub only: Option<String>,
    /// A fault to put into the embedded server; differences are wanted then, and the first ones end the run.
    pub deviation: Option<Deviation>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Scripts that ran.
    pub scripts: usize,
    /// Requests that were compared.
    pub operations: usize,
    /// Events of watches that were compared.
    pub watch_events: usize,
    /// Where the two servers disagree.
    pub differences: Vec<Difference>,
}

/// Runs the scripts on both servers.
pub async fn run(kubeconfig: &Path, options: &Options) -> anyhow::Result<Report> {
    let real = Side::real(kubeconfig).await?;
    let definitions = definitions()?;
    install(&real, &definitions).await?;
    let stage = Stage { real, definitions, deviation: options.deviation, run: run_id() };

    let mut report = Report::default();
    let mut failed = 0;
    let wanted = |script: &Script| options.only.as_ref().is_none_or(|only| script.name.contains(only.as_str()));
    let by_hand: Vec<Script> = scripts::all().into_iter().filter(wanted).collect();
    println!("conformance: {} scripts by hand", by_hand.len());
    stage.play_all(by_hand, &mut report, &mut failed).await?;
    println!("conformance: {} operations by hand, {} differences", report.operations, report.differences.len());

    if let Some(only) = &options.only {
        if let Some(seed) = only.strip_prefix(random::PREFIX).and_then(|seed| seed.parse().ok()) {
            stage.play_all(vec![random::script(seed)], &mut report, &mut failed).await?;
        }
        return Ok(report);
    }
    failed = 0;
    let mut seeds = windlass_sim::rng::Rng::new(options.seed);
    let mut batches = 0;
    // One batch at least, whatever the scripts by hand came to.
    while (batches == 0 || report.operations < options.operations) && failed < MOST_FAILED_SCRIPTS {
        if options.deviation.is_some() && !report.differences.is_empty() {
            break;
        }
        batches += 1;
        let batch: Vec<Script> = (0..16).map(|_| random::script(seeds.next() % 1_000_000)).collect();
        stage.play_all(batch, &mut report, &mut failed).await?;
        println!("conformance: {} operations, {} differences", report.operations, report.differences.len());
    }
    Ok(report)
}

/// Everything that a script needs to be played.
struct Stage {
    real: Side,
    definitions: Vec<Value>,
    deviation: Option<Deviation>,
    /// In the names of namespaces, so that a server can be used again.
    run: String,
}

/// What came of one script.
struct Played {
    operations: usize,
    watch_events: usize,
    differences: Vec<Difference>,
}

impl Stage {
    async fn play_all(&self, scripts: Vec<Script>, report: &mut Report, failed: &mut usize) -> anyhow::Result<()> {
        let offset = report.scripts;
        let numbered = scripts.into_iter().enumerate();
        let runs = numbered.map(|(number, script)| async move {
            let namespace = format!("c-{}-{}", self.run, offset + number);
            let played = self.play(&namespace, &script).await;
            (script, played)
        });
        let mut runs = futures::stream::iter(runs).buffered(AT_A_TIME);
        while let Some((script, played)) = runs.next().await {
            let played = played.with_context(|| format!("script {}", script.name))?;
            report.scripts += 1;
            report.operations += played.operations;
            report.watch_events += played.watch_events;
            if played.differences.is_empty() {
                continue;
            }
            *failed += 1;
            let differences = if script.name.starts_with(random::PREFIX) && self.deviation.is_none() {
                shrink::shrink(self, &script, played.differences).await?
            } else {
                played.differences
            };
            if self.deviation.is_none() {
                for difference in &differences {
                    println!("{difference}");
                }
            }
            report.differences.extend(differences);
            if self.deviation.is_some() {
                // Noticed is noticed.
                break;
            }
        }
        Ok(())
    }

    async fn play(&self, namespace: &str, script: &Script) -> anyhow::Result<Played> {
        let embedded = Side::embedded(&self.definitions, self.deviation)?;
        let (ours, theirs) =
            futures::try_join!(play::play(&embedded, namespace, script), play::play(&self.real, namespace, script))?;
        let watch_events = theirs.watches.iter().map(|(_, events)| events.len()).sum();
        let managed_fields = scripts::MANAGED_FIELDS;
        let ours = canonical::canonical(script, namespace, &ours, managed_fields);
        let theirs = canonical::canonical(script, namespace, &theirs, managed_fields);
        let differences = compare::compare(script, &ours, &theirs);
        Ok(Played { operations: script.steps.len(), watch_events, differences })
    }
}

/// Which faults the comparison notices: each is put into the embedded server in turn.
pub async fn deviations(kubeconfig: &Path, options: &Options) -> anyhow::Result<Vec<(Deviation, bool)>> {
    let mut caught = Vec::new();
    for deviation in Deviation::ALL {
        let report = run(kubeconfig, &Options { deviation: Some(deviation), ..options.clone() }).await?;
        println!("conformance: {deviation} made {} differences", report.differences.len());
        caught.push((deviation, !report.differences.is_empty()));
    }
    Ok(caught)
}

/// Windlass' own definitions, as they are deployed.
fn definitions() -> anyhow::Result<Vec<Value>> {
    let text = include_str!("../../../../deploy/crds/quorumclusters.windlass.dev.yaml");
    Ok(vec![serde_saphyr::from_str(text).context("a definition can't be read")?])
}

async fn install(real: &Side, definitions: &[Value]) -> anyhow::Result<()> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for definition in definitions {
        let body = bytes::Bytes::from(serde_json::to_vec(definition)?);
        let request = Request::post(path).header("content-type", "application/json").body(body)?;
        let answer = real.send(request).await?;
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        if answer.code == 409 {
            let there = real.send(Request::get(format!("{path}/{name}")).body(bytes::Bytes::new())?).await?;
            let versions = |object: &Value| object.pointer("/spec/versions/0/schema").map(Value::to_string);
            let same = versions(&there.body).map(|text| text.replace(".0,", ",").replace(".0}", "}"))
                == versions(definition).map(|text| text.replace(".0,", ",").replace(".0}", "}"));
            anyhow::ensure!(same, "the server has another {name} already; a new server is needed");
        } else {
            anyhow::ensure!(answer.code == 201, "the server refused a definition: {}", answer.body);
        }
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        let version = definition.pointer("/spec/versions/0/name").and_then(Value::as_str).unwrap_or_default();
        let listed = format!("/apis/{group}/{version}/{plural}");
        let start = tokio::time::Instant::now();
        loop {
            let answer = real.send(Request::get(&listed).body(bytes::Bytes::new())?).await?;
            if answer.code == 200 && answer.body["kind"] != json!("Status") {
                break;
            }
            anyhow::ensure!(start.elapsed().as_secs() < 30, "{name} is not served: {}", answer.body);
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

fn run_id() -> String {
    let now = jiff::Timestamp::now().as_millisecond();
    format!("{:x}", now % 0x1000_0000)
}
