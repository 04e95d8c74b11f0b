//! Windlass on the cluster: as pods from the manifests that are shipped, or as processes of this machine that can be killed and
//! frozen. Either way it has the rights of `deploy/rbac.yaml` and no others.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{Pod, ServiceAccount},
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::wait;
use crate::{
    cluster::{
        Cluster,
        tools::{Tool, build},
    },
    operator_image, say,
};

/// Where the operator lives, what it is called, and whom it is.
pub const NAMESPACE: &str = "windlass-system";
const NAME: &str = "windlass";
/// The user that the API server sees.
pub const USER: &str = "system:serviceaccount:windlass-system:windlass";
/// The image of the operator, and the same build under another name.
pub const IMAGES: [&str; 2] = ["windlass.test/windlass:dev", "windlass.test/windlass:dev-again"];

/// Windlass, ready to be run.
pub struct Installation {
    client: Client,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    program: PathBuf,
    folder: PathBuf,
}

impl Installation {
    /// Builds the program, and applies what users apply: the CustomResourceDefinitions, the rights, the policies and the flow control.
    pub fn install(cluster: &Cluster, client: Client, program: Option<PathBuf>) -> Result<Self> {
        let program = program.map_or_else(operator_image::build_program, Ok)?;
        let folder = cluster.folder().join("operators");
        fs::create_dir_all(&folder)?;
        let kubectl = build(Tool::Kubernetes)?.join("kubectl");
        let this = Self { client, kubectl, kubeconfig: cluster.kubeconfig(), program, folder };
        let shipped =
            ["crds", "rbac.yaml", "author-rights.yaml", "flow-control.yaml"].map(|name| shown(&deploy().join(name)));
        let files = shipped.iter().flat_map(|file| ["-f", file]);
        this.kubectl(&std::iter::once("apply").chain(files).collect::<Vec<_>>())?;
        Ok(this)
    }

    /// Where one of the manifests that are shipped is.
    pub fn shipped(name: &str) -> String {
        shown(&deploy().join(name))
    }

    /// Applies one of them.
    pub fn ship(&self, name: &str) -> Result<String> {
        self.kubectl(&["apply", "-f", &Self::shipped(name)])
    }

    /// Takes what one of them says away.
    pub fn withdraw(&self, name: &str) -> Result<String> {
        self.kubectl(&["delete", "--ignore-not-found", "-f", &Self::shipped(name)])
    }

    /// Makes the program's images known to the cluster's node.
    pub fn load_images(&self, cluster: &Cluster) -> Result<()> {
        let program = self.folder.join("windlass");
        operator_image::strip(&self.program, &program)?;
        for (index, name) in IMAGES.iter().enumerate() {
            let archive = self.folder.join(format!("windlass-{index}.tar"));
            operator_image::image(name, &program)?.write(&archive)?;
            cluster.load_image(&archive)?;
        }
        Ok(())
    }

    /// kubectl as an administrator; what it printed.
    pub fn kubectl(&self, words: &[&str]) -> Result<String> {
        let output = Command::new(&self.kubectl).arg("--kubeconfig").arg(&self.kubeconfig).args(words).output()?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {}: {}", words.join(" "), complaint.trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Runs it as a Deployment from the shipped manifest, with the image of this build. Waits until all replicas are available.
    pub async fn run_pods(&self, image: &str) -> Result<()> {
        let manifest = fs::read_to_string(deploy().join("operator.yaml"))?;
        let shipped = manifest.lines().find_map(|line| line.trim().strip_prefix("image: "));
        let manifest = manifest.replace(shipped.context("the shipped Deployment names no image")?, image);
        let file = self.folder.join("operator.yaml");
        fs::write(&file, manifest)?;
        self.kubectl(&["apply", "-f", &shown(&file)])?;
        self.available().await
    }

    /// Changes the Deployment's image, as an upgrade of Windlass itself does.
    pub async fn change_image(&self, image: &str) -> Result<()> {
        let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "operator", "image": image}]}}}});
        self.deployments().patch(NAME, &PatchParams::default(), &Patch::Strategic(patch)).await?;
        Ok(())
    }

    /// Waits until the Deployment's newest template runs everywhere.
    pub async fn available(&self) -> Result<()> {
        wait::until_so("the operator's pods to be available", 120, async || {
            let deployment = self.deployments().get(NAME).await?;
            let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
            let Some(status) = deployment.status else { return Ok(false) };
            Ok(status.observed_generation == deployment.metadata.generation
                && [status.updated_replicas, status.available_replicas, status.replicas] == [Some(wanted); 3])
        })
        .await
    }

    /// Lets no pod of it run, so that the processes of a scenario are the only ones.
    pub async fn stop_pods(&self) -> Result<()> {
        if self.deployments().get_opt(NAME).await?.is_none() {
            return Ok(());
        }
        let none = json!({"spec": {"replicas": 0}});
        self.deployments().patch(NAME, &PatchParams::default(), &Patch::Merge(none)).await?;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        wait::until_so("the operator's pods to be gone", 60, async || {
            Ok(pods.list(&ListParams::default()).await?.items.is_empty())
        })
        .await
    }

    /// Where the API server is.
    pub fn server(&self) -> Result<String> {
        let server = self.admin()?["clusters"][0]["cluster"]["server"].as_str().map(str::to_owned);
        server.context("the kubeconfig names no server")
    }

    fn admin(&self) -> Result<Value> {
        serde_json::from_slice(&fs::read(&self.kubeconfig)?).context("the kubeconfig is no JSON")
    }

    /// A client with the same rights, whose requests the API server treats as the operator's.
    pub async fn client(&self) -> Result<Client> {
        let file = self.folder.join("client.kubeconfig");
        self.write_kubeconfig(&file, &self.server()?, &self.token(NAMESPACE).await?, NAMESPACE)?;
        crate::cluster::client(&file).await
    }

    /// Starts it as a process of this machine, with a token of its ServiceAccount.
    pub async fn start(&self, name: &str, lease_seconds: u64) -> Result<LocalOperator> {
        self.start_at(name, lease_seconds, &self.server()?).await
    }

    /// The same, with another way to the API server.
    pub async fn start_at(&self, name: &str, lease_seconds: u64, server: &str) -> Result<LocalOperator> {
        self.start_with(
            name,
            lease_seconds,
            server,
            &["--allow-target", "examples.windlass.dev/Dicom", "--quorums-by-author"],
        )
        .await
    }

    /// The same, with other words for what it may do.
    pub async fn start_with(
        &self,
        name: &str,
        lease_seconds: u64,
        server: &str,
        words: &[&'static str],
    ) -> Result<LocalOperator> {
        self.start_in(name, lease_seconds, server, NAMESPACE, words).await
    }

    /// The same as the account of another namespace.
    pub async fn start_as(
        &self,
        name: &str,
        lease_seconds: u64,
        namespace: &str,
        words: &[&'static str],
    ) -> Result<LocalOperator> {
        self.start_in(name, lease_seconds, &self.server()?, namespace, words).await
    }

    async fn start_in(
        &self,
        name: &str,
        lease_seconds: u64,
        server: &str,
        namespace: &str,
        words: &[&'static str],
    ) -> Result<LocalOperator> {
        let token = self.token(namespace).await?;
        let credential = credential(&token).context("the token has no ID")?;
        let file = self.folder.join(format!("{name}.kubeconfig"));
        self.write_kubeconfig(&file, server, &token, namespace)?;
        let mut operator = LocalOperator {
            program: self.program.clone(),
            kubeconfig: file,
            log: self.folder.join(format!("{name}.log")),
            lease_seconds,
            words: words.to_vec(),
            credential,
            child: None,
        };
        fs::write(&operator.log, "")?;
        operator.run()?;
        Ok(operator)
    }

    fn write_kubeconfig(&self, file: &Path, server: &str, token: &str, namespace: &str) -> Result<()> {
        let mut admin = self.admin()?;
        admin["clusters"][0]["cluster"]["server"] = server.into();
        let cluster = admin["clusters"][0]["name"].clone();
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": admin["clusters"],
            "users": [{"name": NAME, "user": {"token": token}}],
            "contexts": [{"name": NAME, "context": {"cluster": cluster, "user": NAME, "namespace": namespace}}],
            "current-context": NAME,
        });
        Ok(fs::write(file, kubeconfig.to_string())?)
    }

    async fn token(&self, namespace: &str) -> Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: Vec::new(),
                expiration_seconds: Some(3600),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };

        let granted: TokenRequest =
            accounts.create_subresource("token", NAME, &PostParams::default(), &request).await?;
        Ok(granted.status.context("no token was given")?.token)
    }
}

/// The operator as a process that belongs to the test.
pub struct LocalOperator {
    program: PathBuf,
    kubeconfig: PathBuf,
    /// What it logs, over all its lives.
    pub log: PathBuf,
    lease_seconds: u64,
    words: Vec<&'static str>,
    /// What the audit log calls its token: all lives of this operator, and of no other.
    pub credential: String,
    child: Option<Child>,
}

impl LocalOperator {
    /// Starts it (again).
    pub fn run(&mut self) -> Result<()> {
        ensure!(self.child.is_none(), "it runs already");
        let log = fs::OpenOptions::new().append(true).open(&self.log)?;
        let child = Command::new(&self.program)
            .arg("operator")
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["--lease-seconds", &self.lease_seconds.to_string(), "--listen", "127.0.0.1:0"])
            .args(&self.words)
            .env("RUST_LOG", "info,windlass_operator=debug,kube_client::client::builder=off")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("the operator can't be started")?;
        self.child = Some(child);
        Ok(())
    }

    /// How it ended by itself, if it did.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.as_mut().map_or(Ok(None), |child| Ok(child.try_wait()?))
    }

    /// SIGKILL: it gets no chance to say anything.
    pub fn kill(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { bail!("it does not run") };
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// The most memory that it has had, in MiB.
    pub fn peak_memory(&self) -> Result<u64> {
        let child = self.child.as_ref().context("it does not run")?;
        let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
        let peak =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")).and_then(|rest| rest.split_whitespace().next());
        let kibibytes: u64 = peak.context("the kernel does not tell")?.parse()?;
        Ok(kibibytes / 1024)
    }

    /// SIGSTOP.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// SIGCONT.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let child = self.child.as_ref().context("it does not run")?;
        Ok(kill_process(Pid::from_child(child), signal)?)
    }
}

impl Drop for LocalOperator {
    fn drop(&mut self) {
        if self.child.is_some()
            && let Err(error) = self.kill()
        {
            say(&format!("an operator is left over: {error:#}"));
        }
    }
}

/// What the API server calls a token in its audit log.
fn credential(token: &str) -> Option<String> {
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Some(format!("JTI={}", claims["jti"].as_str()?))
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
