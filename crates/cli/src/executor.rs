//! `windlass executor`: one task, in the pod of a Job.

use std::{fs, io::Write, path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use windlass_api::executor::{Ending, Outcome};
use windlass_executor::{
    Class, Error,
    s3::{Bucket, Key, PART},
    snapshot::{self, Credentials, Giver, Member, Order},
    store::Store,
};
use windlass_systems::{
    Identity, Network, Password, Secret, etcd,
    openbao::{AuthMethod, Login, Namespace, Product},
};

/// Which task.
#[derive(Args)]
pub struct Arguments {
    /// Where the way that it ended is written, for the kubelet
    #[arg(long, global = true, default_value = "/dev/termination-log")]
    termination_log: PathBuf,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Take a snapshot of a quorum's data and store it
    Snapshot(Box<Snapshot>),
}

/// What to take, and where it goes.
#[derive(Args)]
struct Snapshot {
    /// Whose snapshot
    #[arg(long, value_enum, ignore_case = true)]
    system: System,
    /// A member to ask, in this order: POD=NAME:PORT@ADDRESS
    #[arg(long = "member", required = true, value_name = "MEMBER")]
    members: Vec<Member>,
    /// Nothing is begun after this moment, and all is given up then
    #[arg(long)]
    not_after: Timestamp,
    /// What the snapshot is called
    #[arg(long)]
    file: String,
    /// Talk TLS, and trust these certificate authorities (PEM)
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// The certificate that the members accept (PEM)
    #[arg(long, value_name = "FILE", requires = "key_file", requires = "ca_file")]
    certificate_file: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate_file")]
    key_file: Option<PathBuf>,
    /// The token to show
    #[arg(long, value_name = "FILE", conflicts_with = "log_in")]
    token_file: Option<PathBuf>,
    /// A folder with the files username and password of a user of etcd
    #[arg(long, value_name = "PATH", conflicts_with_all = ["token_file", "log_in"])]
    user_folder: Option<PathBuf>,
    /// Log in at an auth method of this type
    #[arg(long, value_enum, requires = "role", requires = "service_account_token")]
    log_in: Option<Method>,
    /// The role to log in with
    #[arg(long)]
    role: Option<String>,
    /// Where the auth method is mounted
    #[arg(long)]
    auth_mount: Option<String>,
    /// The namespace of OpenBao or Vault that the auth method is in
    #[arg(long)]
    auth_namespace: Option<String>,
    /// The ServiceAccount token to log in with
    #[arg(long, value_name = "FILE")]
    service_account_token: Option<PathBuf>,
    /// Where a volume for snapshots is mounted
    #[arg(long, value_name = "PATH", conflicts_with = "s3_endpoint", required_unless_present = "s3_endpoint")]
    directory: Option<PathBuf>,
    /// The folder in it
    #[arg(long, default_value = "")]
    folder: String,
    /// What people call the volume
    #[arg(long, default_value = "")]
    volume: String,
    /// Where the service of a bucket is, like https://s3.example
    #[arg(long, value_name = "URL", requires = "s3_bucket", requires = "s3_credentials", requires = "spool")]
    s3_endpoint: Option<http::Uri>,
    /// The bucket
    #[arg(long)]
    s3_bucket: Option<String>,
    /// What names of objects begin with
    #[arg(long, default_value = "")]
    s3_prefix: String,
    /// The region that requests are signed for
    #[arg(long, default_value = "us-east-1")]
    s3_region: String,
    /// A folder with the files accessKeyId and secretAccessKey
    #[arg(long, value_name = "PATH")]
    s3_credentials: Option<PathBuf>,
    /// The certificate authorities of the service (PEM); those that everybody trusts without it
    #[arg(long, value_name = "FILE")]
    s3_ca_file: Option<PathBuf>,
    /// Where there is room for a snapshot on its way to a bucket
    #[arg(long, value_name = "PATH")]
    spool: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum System {
    Etcd,
    #[value(name = "openbao")]
    OpenBao,
    Vault,
}

#[derive(Clone, Copy, ValueEnum)]
enum Method {
    Kubernetes,
    Jwt,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { termination_log, task: Task::Snapshot(snapshot) } = arguments;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = order(snapshot).and_then(|order| runtime.block_on(snapshot::run(&order, Timestamp::now())));
    let (ending, code) = match done {
        Ok(stored) => (Ending::Done(Outcome::Snapshot(stored)), ExitCode::SUCCESS),
        Err(error) => (Ending::Failed(error.failure()), ExitCode::from(error.class.exit_code())),
    };
    let line = serde_json::to_string(&ending)?;
    writeln!(anstream::stdout(), "{line}")?;
    // The kubelet makes that file; elsewhere there is none, and standard output says the same.
    if termination_log.exists() {
        fs::write(termination_log, line)?;
    }
    Ok(code)
}

fn order(asked: &Snapshot) -> Result<Order, Error> {
    let giver = match asked.system {
        System::Etcd => Giver::Etcd,
        System::OpenBao => Giver::OpenBao(Product::OpenBao),
        System::Vault => Giver::OpenBao(Product::Vault),
    };
    Ok(Order {
        giver,
        members: asked.members.clone(),
        network: network(asked)?,
        tls: asked.ca_file.is_some(),
        credentials: credentials(asked)?,
        not_after: asked.not_after,
        file: asked.file.clone(),
        store: store(asked)?,
    })
}

fn read(path: &PathBuf) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| invalid(format!("{}: {error}", path.display())))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Class::Invalid, message)
}

fn network(asked: &Snapshot) -> Result<Network, Error> {
    let Some(roots) = &asked.ca_file else { return Ok(Network::plain()) };
    let identity = match (&asked.certificate_file, &asked.key_file) {
        (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
        (Some(_), None) | (None, Some(_) | None) => None,
    };
    let identity = identity.as_ref().map(|(certificate, key)| Identity { certificate, key });
    Network::with_tls(&read(roots)?, identity).map_err(|error| invalid(error.to_string()))
}

fn secret(path: &PathBuf) -> Result<Secret, Error> {
    let text = String::from_utf8_lossy(&read(path)?).into_owned();
    Secret::new(&text).map_err(|error| invalid(format!("{}: {error}", path.display())))
}

fn credentials(asked: &Snapshot) -> Result<Credentials, Error> {
    if let Some(path) = &asked.token_file {
        return Ok(Credentials::Token(secret(path)?));
    }
    if let Some(folder) = &asked.user_folder {
        let text = |file: &str| Ok::<_, Error>(String::from_utf8_lossy(&read(&folder.join(file))?).into_owned());
        let password = Password::new(&text("password")?).map_err(|_| invalid("the password is empty"))?;
        return Ok(Credentials::User(etcd::Login { name: text("username")?.trim().to_owned(), password }));
    }
    let (Some(method), Some(role), Some(token)) = (asked.log_in, &asked.role, &asked.service_account_token) else {
        return Ok(Credentials::None);
    };
    let method = match method {
        Method::Kubernetes => AuthMethod::Kubernetes,
        Method::Jwt => AuthMethod::Jwt,
    };
    let login = Login::new(method, role, secret(token)?);
    let namespace = asked.auth_namespace.as_deref().map(Namespace::new).transpose();
    let namespace = namespace.map_err(|error| invalid(error.to_string()))?;
    let mount = asked.auth_mount.clone().unwrap_or_else(|| login.mount.clone());
    Ok(Credentials::LogIn(Box::new(Login { mount, namespace, ..login })))
}

fn store(asked: &Snapshot) -> Result<Store, Error> {
    if let Some(top) = &asked.directory {
        let (folder, volume) = (asked.folder.clone(), asked.volume.clone());
        return Ok(Store::Folder { top: top.clone(), folder, volume });
    }
    let given = (&asked.s3_endpoint, &asked.s3_bucket, &asked.s3_credentials, &asked.spool);
    let (Some(endpoint), Some(name), Some(credentials), Some(spool)) = given else {
        return Err(invalid("neither a directory nor a bucket is named"));
    };
    let tls = match endpoint.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        Some(_) | None => return Err(invalid(format!("{endpoint} is neither http nor https"))),
    };
    let network = if tls {
        let made = match &asked.s3_ca_file {
            Some(roots) => Network::with_tls(&read(roots)?, None),
            None => Network::with_public_roots(),
        };
        made.map_err(|error| invalid(error.to_string()))?
    } else {
        Network::plain()
    };
    let half = |file: &str| {
        let text = String::from_utf8_lossy(&read(&credentials.join(file))?).trim().to_owned();
        if text.is_empty() { Err(invalid(format!("{file} is empty"))) } else { Ok(text) }
    };
    let bucket = Bucket {
        network,
        tls,
        host: endpoint.host().ok_or_else(|| invalid(format!("{endpoint} names no host")))?.to_owned(),
        port: endpoint.port_u16().unwrap_or(if tls { 443 } else { 80 }),
        name: name.clone(),
        prefix: asked.s3_prefix.clone(),
        region: asked.s3_region.clone(),
        key: Key { id: half("accessKeyId")?, secret: half("secretAccessKey")? },
        part: PART,
    };
    Ok(Store::Bucket { bucket: Box::new(bucket), spool: spool.clone() })
}
