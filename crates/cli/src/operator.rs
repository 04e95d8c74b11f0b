//! `windlass operator`: the operator in a cluster.

use std::{
    hash::{BuildHasher, RandomState},
    io::IsTerminal,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, ValueEnum};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tracing_subscriber::EnvFilter;
use windlass_operator::{Context, Settings, SystemClock, client, dial::OverNetwork, serve};

use crate::{access::Access, login::Login};

/// What the operator looks after.
const SCOPE: &str = "Scope";
/// Who of several acts.
const ELECTION: &str = "Leader election";
/// What executor Jobs run.
const JOBS: &str = "Jobs";
/// What resources may reach through the operator.
const PERMISSIONS: &str = "Permissions";

/// How the operator runs.
#[derive(Args)]
pub struct Arguments {
    /// The only namespace whose QuorumClusters are upgraded [default: all namespaces]
    #[arg(short, long, env = "WINDLASS_NAMESPACE", help_heading = SCOPE)]
    namespace: Option<String>,
    #[command(flatten)]
    access: Access,
    /// Don't read nodes, for an operator without the right to. The gate NodeDrain is then not asked
    #[arg(long, help_heading = SCOPE)]
    ignore_nodes: bool,
    /// The namespace of the Lease [default: the operator's own]
    #[arg(long, help_heading = ELECTION)]
    lease_namespace: Option<String>,
    /// The name of the Lease
    #[arg(long, default_value = "windlass", help_heading = ELECTION)]
    lease_name: String,
    /// How many seconds pass before another operator takes over from one that is silent
    #[arg(long, default_value_t = 15, help_heading = ELECTION, value_parser = clap::value_parser!(u64).range(6..=300))]
    lease_seconds: u64,
    /// The address of /healthz, /readyz and /metrics
    #[arg(long, default_value = "0.0.0.0:8080")]
    listen: SocketAddr,
    #[command(flatten)]
    login: Login,
    /// The image of executor Jobs where spec.upgrade.executorImage is not set
    #[arg(long, help_heading = JOBS, env = "WINDLASS_EXECUTOR_IMAGE")]
    executor_image: Option<String>,
    /// An image that spec.upgrade.executorImage may name, or a repository for all of its tags. Repeatable. Without it, executor Jobs run the
    /// image of --executor-image and no other: they get the members' credentials
    #[arg(help_heading = JOBS, long = "allow-executor-image", value_name = "IMAGE", value_parser = image)]
    allowed_executor_images: Vec<String>,
    /// A Service that gates of all namespaces may ask, like the cluster's Prometheus. Repeatable. Without a port, analyses may query it; with
    /// one, webhooks may call it, too. The gates of a QuorumCluster may always ask Services of its own namespace
    #[arg(help_heading = PERMISSIONS, long = "allow-service", value_name = "NAMESPACE/NAME[:PORT]", value_parser = service)]
    allowed_services: Vec<String>,
    /// A namespace in which gates of ServiceImages may read objects, call Services and create Jobs. Repeatable
    #[arg(help_heading = PERMISSIONS, long = "allow-gates-in", value_name = "NAMESPACE")]
    allowed_gates: Vec<String>,
    /// A kind whose resources ServiceImages may change, and the field; without a field, any. Repeatable. The operator also needs the rights to
    /// get, list, watch and patch them: bind a role of your own to its ServiceAccount
    #[arg(help_heading = PERMISSIONS, long = "allow-target", value_name = "GROUP/KIND[:FIELD]", value_parser = target)]
    allowed_targets: Vec<String>,
    /// ServiceImages may also change what their authors may patch themselves. Needs deploy/author-rights.yaml, which lets the API server check
    /// that
    #[arg(help_heading = PERMISSIONS, long = "allow-target-by-author")]
    targets_by_author: bool,
    /// Act on QuorumClusters only while the API server accepts them from people who may patch their StatefulSet, and from nobody else. Needs
    /// deploy/author-rights.yaml, which lets the API server check that
    #[arg(help_heading = PERMISSIONS, long = "quorums-by-author")]
    quorums_by_author: bool,
    /// The format of the log
    #[arg(long, value_enum, default_value_t = LogFormat::Json)]
    log_format: LogFormat,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    Json,
    Text,
}

/// Without the client's own line about every request that failed: whoever sent it says more.
const QUIET: &str = "info,kube_client=error,kube_client::client::builder=off";

pub fn run(arguments: Arguments) -> Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(QUIET));
    let colours = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours);
    match arguments.log_format {
        LogFormat::Json => log.json().flatten_event(true).init(),
        LogFormat::Text => log.init(),
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(operate(arguments))
}

async fn operate(arguments: Arguments) -> Result<()> {
    let config = arguments.access.config().await?;
    let own_namespace = config.default_namespace.clone();
    let lease = Duration::from_secs(arguments.lease_seconds);
    let settings = Settings {
        identity: identity(),
        lease_namespace: arguments.lease_namespace.unwrap_or(own_namespace),
        lease_name: arguments.lease_name,
        lease_duration: lease,
        renew_deadline: lease * 2 / 3,
        retry_period: lease * 2 / 15,
        write_deadline: lease / 3,
        namespace: arguments.namespace,
        ignore_nodes: arguments.ignore_nodes,
        executor_image: arguments.executor_image,
        allowed_executor_images: arguments.allowed_executor_images,
        allowed_services: arguments.allowed_services.into_iter().collect(),
        allowed_gates: arguments.allowed_gates.into_iter().collect(),
        allowed_targets: arguments.allowed_targets.into_iter().collect(),
        targets_by_author: arguments.targets_by_author,
        quorums_by_author: arguments.quorums_by_author,
        login_tokens: arguments.login.tokens(),
        ..Settings::default()
    };
    settings.check().map_err(|why| anyhow!(why))?;
    let client = client::connect(config, settings.longest_write)?;
    let context = Context::new(client, Arc::new(OverNetwork), Arc::new(SystemClock), settings);

    let listener =
        TcpListener::bind(arguments.listen).await.with_context(|| format!("can't listen on {}", arguments.listen))?;
    tracing::info!(listen = %arguments.listen, identity = context.settings.identity, version = env!("CARGO_PKG_VERSION"), "windlass operator");
    let mut serving = std::pin::pin!(serve::serve(listener, context.metrics.clone()));
    let mut running = std::pin::pin!(windlass_operator::run(&context, stopped()?));
    tokio::select! {
        () = &mut running => Ok(()),
        served = &mut serving => served.context("the HTTP server ended"),
    }
}

/// A kind by its group, for the core group has no resources of anybody's own; and perhaps a field, without the dot before it.
fn target(text: &str) -> Result<String, String> {
    let (name, field) = text.split_once(':').map_or((text, None), |(name, field)| (name, Some(field)));
    let is_kind = name
        .split_once('/')
        .is_some_and(|(group, kind)| group.contains('.') && kind.starts_with(|first: char| first.is_ascii_uppercase()));
    let field = field.map(|field| field.trim_start_matches('.'));
    match field {
        None if is_kind => Ok(name.to_owned()),
        Some(field) if is_kind && field.starts_with("spec.") => Ok(format!("{name}:{field}")),
        None | Some(_) => {
            Err("write it like examples.windlass.dev/Dicom or examples.windlass.dev/Dicom:spec.image".to_owned())
        }
    }
}

/// An image, or a repository.
fn image(text: &str) -> Result<String, String> {
    text.parse::<windlass_images::Reference>().map(|image| image.to_string()).map_err(|error| error.to_string())
}

/// A Service, as it is named here.
fn service(text: &str) -> Result<String, String> {
    let (service, port) = text.split_once(':').map_or((text, None), |(service, port)| (service, Some(port)));
    let is_port =
        port.is_none_or(|port| port.parse::<u16>().is_ok_and(|number| number > 0 && number.to_string() == port));
    match service.split('/').collect::<Vec<_>>().as_slice() {
        [namespace, name] if !namespace.is_empty() && !name.is_empty() && is_port => Ok(text.to_owned()),
        _ => Err("it must be NAMESPACE/NAME or NAMESPACE/NAME:PORT".to_owned()),
    }
}

/// Never the same for two processes: the pod's name says where to look, the rest is random.
fn identity() -> String {
    let host = std::env::var("POD_NAME").or_else(|_| std::env::var("HOSTNAME")).unwrap_or_else(|_| "windlass".into());
    format!("{host}-{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// Ends at SIGTERM or SIGINT.
fn stopped() -> Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("asked to stop");
    })
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn a_target_is_a_kind_and_perhaps_a_field() {
        assert_eq!(target("examples.windlass.dev/Dicom").as_deref(), Ok("examples.windlass.dev/Dicom"));
        for field in ["examples.windlass.dev/Dicom:spec.image", "examples.windlass.dev/Dicom:.spec.image"] {
            assert_eq!(target(field).as_deref(), Ok("examples.windlass.dev/Dicom:spec.image"));
        }
        for wrong in ["Dicom", "v1/Pod", "examples.windlass.dev/dicoms", "examples.windlass.dev/Dicom:image", "a.b/C:"]
        {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }
}
