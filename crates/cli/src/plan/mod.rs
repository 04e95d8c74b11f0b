//! `windlass plan`: what an upgrade would do, and what blocks it now. Reads only.

mod reach;
#[cfg(all(test, feature = "sim"))]
mod tests;
mod text;
mod wish;

use std::{io::Write, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use windlass_api::QuorumCluster;
use windlass_operator::{
    Context, Settings, SystemClock, client,
    dial::OverNetwork,
    error::{Class, Error},
    members::{account::Tokens, place::Seen},
    quorum::{
        observe::{self, Observed},
        strategies::{AnyStrategy, Foresight},
    },
};
use windlass_overview::{Outlook, Verdict};
use windlass_systems::transport::Peer;

pub use self::text::text;
use crate::{access::Access, login::Login};

/// What is planned, and how it is shown.
#[derive(Args)]
pub struct Arguments {
    /// The QuorumCluster in the cluster
    #[arg(required_unless_present = "filename", conflicts_with = "filename")]
    name: Option<String>,
    /// A manifest with one QuorumCluster, existing or not; - for standard input
    #[arg(short, long, value_name = "FILE")]
    filename: Option<PathBuf>,
    /// The QuorumCluster's namespace; without it the manifest's, then the kubeconfig's
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    login: Login,
    /// A ServiceAccount token to log in with instead, for the audience windlass/NAMESPACE/NAME of the resource
    #[arg(long, value_name = "FILE")]
    login_token: Option<PathBuf>,
    /// Print it for machines; docs/plan.md describes the fields
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Json,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outlook = runtime.block_on(read(arguments))?;
    let mut out = anstream::stdout().lock();
    match arguments.output {
        Some(Output::Json) => writeln!(out, "{}", serde_json::to_string_pretty(&outlook)?)?,
        None => write!(out, "{}", text(&outlook))?,
    }
    Ok(exit_code(outlook.verdict))
}

/// What the shell is told.
fn exit_code(verdict: Verdict) -> ExitCode {
    match verdict {
        Verdict::UpToDate | Verdict::CanBegin | Verdict::UnderWay => ExitCode::SUCCESS,
        Verdict::Blocked => ExitCode::from(2),
    }
}

async fn read(arguments: &Arguments) -> Result<Outlook> {
    let manifest = arguments.filename.as_deref().map(wish::manifest).transpose()?;
    let config = arguments.access.config().await?;
    let namespace = wish::namespace(arguments.namespace.as_deref(), manifest.as_ref(), &config.default_namespace)?;
    let host = config.cluster_url.host().unwrap_or_default().to_owned();
    let client = client::read_only(config)?;
    let login_tokens = arguments.login_token.clone().map_or_else(|| arguments.login.tokens(), Tokens::File);
    let settings = Settings { login_tokens, ..Settings::default() };
    let mut context = Context::new(client, Arc::new(OverNetwork), Arc::new(SystemClock), settings);
    let wish = wish::Wish { name: arguments.name.clone().unwrap_or_default(), namespace, manifest };
    let resource = wish.resource(&context).await.map_err(|error| explain(&error, &host))??;
    // What the operator was told to run, and to let others name, is not known here: whatever it is will do.
    let named = resource.spec.upgrade.executor_image.clone();
    context.settings.executor_image = named.or_else(|| Some("windlass".to_owned()));
    from_here(context, &resource).await.map_err(|error| explain(&error, &host))
}

/// The same from a place where pods may be out of reach: that is said at once, and nobody is waited for.
async fn from_here(context: Context, resource: &QuorumCluster) -> Result<Outlook, Error> {
    let peers = observe::addresses(&context, resource).await?;
    if reach::any(&peers).await {
        return outlook(&context, resource).await;
    }
    from_afar(context, resource, &peers).await
}

async fn from_afar(context: Context, resource: &QuorumCluster, peers: &[Peer]) -> Result<Outlook, Error> {
    let context = Context { dial: Arc::new(reach::Nowhere), ..context };
    let mut observed = strategy(&context, resource).observe_ahead(&context, resource).await?;
    observed.seen = Seen::unknown(&reach::advice(resource, peers));
    Ok(foresee(&context, resource, &observed))
}

/// What the operator would see and do from here.
pub async fn outlook(context: &Context, resource: &QuorumCluster) -> Result<Outlook, Error> {
    let observed = strategy(context, resource).observe_ahead(context, resource).await?;
    Ok(foresee(context, resource, &observed))
}

fn foresee(context: &Context, resource: &QuorumCluster, observed: &Observed) -> Outlook {
    match strategy(context, resource).foresee(context, resource, observed) {
        Ok(Foresight { want, under_way, members, forecast }) => {
            Outlook::of(resource, &want, under_way, &members, &forecast)
        }
        Err(hold) => Outlook::held(resource, &hold),
    }
}

/// The one that it asks for.
fn strategy(context: &Context, resource: &QuorumCluster) -> &'static dyn AnyStrategy {
    (context.strategies.asked_for)(resource)
}

/// The error, with what a person can do about it.
fn explain(error: &Error, host: &str) -> anyhow::Error {
    let advice = match error.class() {
        Class::Transient => format!("the cluster at {host} does not answer: check the kubeconfig and its context"),
        Class::Refused => format!(
            "the cluster at {host} refuses to be read: quorumclusters, statefulsets, pods, poddisruptionbudgets, nodes and the secrets that the QuorumCluster names are read"
        ),
        Class::Stale | Class::Lost => format!("the cluster at {host} changed meanwhile: try again"),
    };
    anyhow!(error.story()).context(advice)
}
