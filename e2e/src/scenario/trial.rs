//! One scenario under way: a namespace with an application in it, load on it, a witness beside it.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{Namespace, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use windlass_sim::rng::{Rng, hash};

use super::{
    Keeper, Operators, Scenario, etcd, facts::Facts, openbao, operator, operator::LocalOperator, resource::Resource,
    roster::Roster, site::Site, wait,
};
use crate::{
    applications::Pair,
    audit::{self, AuditLog},
    client::{Access, Application, Client},
    ledger::Ledger,
    load::{self, Load, Rate},
    witness::{Witness, judge},
};

/// The keys that the load writes.
const PREFIX: &str = "load";
/// How many writes make it clear that the load runs.
const WARM: usize = 40;

/// One scenario under way.
pub struct Trial<'a> {
    /// What it shares with others.
    pub site: &'a Site,
    /// What is upgraded.
    pub application: Application,
    /// How many members.
    pub replicas: usize,
    /// Its namespace.
    pub namespace: String,
    /// The QuorumCluster.
    pub resource: Resource,
    /// Operators that are processes of this machine.
    pub operators: Vec<LocalOperator>,
    /// Decides everything random of this scenario.
    pub rng: Rng,
    /// The pods of the set.
    pub pods: Api<Pod>,
    /// StatefulSets of the namespace.
    pub sets: Api<StatefulSet>,
    /// What the API server was asked since the trial began.
    pub audit: AuditLog,
    /// Facts of its own that the scenario wants to be in the report.
    pub notes: Vec<String>,
    /// Whom the load and the scenario are to the application.
    pub access: Access,
    roster: Roster,
    load: Option<Load>,
    witness: Option<Witness>,
    data: String,
}

impl<'a> Trial<'a> {
    /// A trial in which nothing has happened yet.
    pub fn new(site: &'a Site, scenario: &Scenario) -> Self {
        let namespace = format!("e2e-{}", scenario.name);
        let (client, application, replicas) = (site.client.clone(), scenario.application, scenario.replicas);
        let pods = Api::namespaced(client.clone(), &namespace);
        let data = site.cluster.folder().join("data").join(&namespace);
        Self {
            site,
            application,
            replicas,
            resource: Resource::of(&client, &namespace, application),
            operators: Vec::new(),
            rng: Rng::new(site.seed ^ hash(scenario.name.bytes())),
            roster: Roster::follow(pods.clone(), application, replicas),
            pods,
            sets: Api::namespaced(client.clone(), &namespace),
            audit: AuditLog::from_now(&site.cluster.audit_log()),
            notes: Vec::new(),
            access: Access::to(application),
            load: None,
            witness: None,
            data: data.display().to_string(),
            namespace,
        }
    }

    /// Gives Windlass one of the roles that it has only where an administrator says so.
    pub fn bind(&self, role: &str) -> Result<()> {
        self.create(&[json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "windlass", "namespace": "windlass-system"}],
        })])
    }

    /// Everything that comes before the scenario itself: the old version, Windlass as the scenario wants it, load and witness.
    pub async fn set_up(&mut self, scenario: &Scenario) -> Result<()> {
        self.remove().await.context("what an earlier run left can't be removed")?;
        let namespaces: Api<Namespace> = Api::all(self.site.client.clone());
        let namespace = json!({"metadata": {"name": self.namespace, "labels": {"windlass.dev/e2e": "true"}}});
        namespaces.create(&PostParams::default(), &serde_json::from_value(namespace)?).await?;
        let old = self.pair()?.old.clone();
        let mut objects = self.application.objects(&self.namespace, self.replicas, &old.image, &self.data);
        match scenario.keeper {
            Keeper::Windlass => {}
            Keeper::WindlassOnDelete | Keeper::SomebodyElse => {
                for set in objects.iter_mut().filter(|object| object["kind"] == "StatefulSet") {
                    set["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
                }
            }
        }
        if scenario.secured {
            etcd::tls::secure(&mut objects)?;
            self.bind("windlass-secrets")?;
        }
        self.create(&objects)?;
        match scenario.operators {
            Operators::None => self.site.windlass.stop_pods().await?,
            Operators::Pods => self.site.windlass.run_pods(operator::IMAGES[0]).await?,
            Operators::Local { count, lease_seconds } => {
                self.site.windlass.stop_pods().await?;
                for number in 0..count {
                    let name = format!("{}-{number}", scenario.name);
                    self.operators.push(self.site.windlass.start(&name, lease_seconds).await?);
                }
            }
        }
        match self.application {
            Application::Etcd | Application::Pd => {}
            Application::OpenBao => self.access.token = Some(openbao::initialize(self).await?),
        }
        let witness = Witness::start(&self.access, &self.roster.seats);
        wait::until_so(&format!("{} to be formed and ready", self.application.name()), 120, async || {
            Ok(witness.leader().is_some() && witness.newest().len() == self.replicas && self.all_ready().await?)
        })
        .await?;
        self.witness = Some(witness);
        if let Some(ordinal) = scenario.leader {
            self.lead_from(&self.application.pod(ordinal)).await?;
        }
        if scenario.operators != Operators::None {
            let version = match scenario.keeper {
                Keeper::Windlass | Keeper::WindlassOnDelete => Some(old.version.as_str()),
                Keeper::SomebodyElse => None,
            };
            self.resource.create(version, scenario.described).await?;
            self.resource.ready_at(&old.version, 60).await?;
        }
        // What counts begins here: what it took to get here was ours.
        if let Some(witness) = self.witness.take() {
            witness.stop().await;
        }
        self.witness = Some(Witness::start(&self.access, &self.roster.seats));
        self.load = Some(Load::start(&self.access, self.roster.endpoints.clone(), PREFIX, Rate::default()));
        self.more_writes(WARM).await
    }

    /// Creates objects in the namespace, as a person does.
    pub fn create(&self, objects: &[Value]) -> Result<()> {
        let file = self.site.cluster.folder().join(format!("{}.json", self.namespace));
        std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string())?;
        let created =
            self.site.windlass.kubectl(&["--namespace", &self.namespace, "create", "-f", &file.display().to_string()]);
        std::fs::remove_file(&file)?;
        created.map(drop)
    }

    /// Where the application comes from and goes to.
    pub fn pair(&self) -> Result<&'a Pair> {
        self.site.pair(self.application)
    }

    /// A client of the application.
    pub fn client(&self) -> Client {
        self.access.client(Duration::from_secs(1), Duration::from_secs(5))
    }

    /// Where a pod's member answers.
    pub fn address(&self, pod: &str) -> Result<SocketAddr> {
        self.roster.address(pod).with_context(|| format!("{pod} has no address"))
    }

    /// Waits until so many more writes are acknowledged: the load goes through.
    pub async fn more_writes(&self, count: usize) -> Result<()> {
        let load = self.load.as_ref().context("there is no load")?;
        let before = load.acknowledged();
        wait::until_so("writes to be acknowledged", 60, async || Ok(load.acknowledged() >= before + count)).await
    }

    async fn all_ready(&self) -> Result<bool> {
        let status = self.sets.get(self.application.name()).await?.status.unwrap_or_default();
        Ok(status.ready_replicas == i32::try_from(self.replicas).ok())
    }

    /// Who leads, as the members say.
    pub fn leader(&self) -> Result<String> {
        let witness = self.witness.as_ref().context("there is no witness")?;
        witness.leader().context("nobody leads")
    }

    /// Makes this pod's member the leader, by the application's own means, and sees it lead.
    pub async fn lead_from(&self, pod: &str) -> Result<()> {
        wait::until_so(&format!("{pod} to lead"), 120, async || {
            if self.leader()? == pod {
                return Ok(true);
            }
            // It takes a moment until all members say so, and leadership may have moved meanwhile.
            self.lead_once(pod).await.map(|()| false)
        })
        .await
    }

    /// Asks the leader once to hand over to this pod's member.
    pub async fn lead_once(&self, pod: &str) -> Result<()> {
        let leader = self.leader()?;
        let witness = self.witness.as_ref().context("there is no witness")?;
        let target = witness.newest().get(pod).map(|status| status.member).context("the member does not answer")?;
        let address = self.address(&leader)?;
        match self.client().move_leader(address, pod, target).await {
            Ok(()) => Ok(()),
            Err(failure) => bail!("{leader} does not hand over to {pod}: {failure:?}"),
        }
    }

    /// A pod's own ID: another pod of the same name has another.
    pub async fn uid(&self, pod: &str) -> Result<String> {
        self.pods.get(pod).await?.uid().context("a pod without an ID")
    }

    /// The StatefulSet's partition.
    pub async fn partition(&self) -> Result<i32> {
        let spec = self.sets.get(self.application.name()).await?.spec.unwrap_or_default();
        let strategy = spec.update_strategy.and_then(|strategy| strategy.rolling_update);
        Ok(strategy.and_then(|rolling| rolling.partition).unwrap_or(0))
    }

    /// Asks for the new version.
    pub async fn ask_for_new(&self) -> Result<()> {
        self.resource.change(json!({"version": self.pair()?.new.version})).await
    }

    /// Waits for the new version everywhere.
    pub async fn finish(&self, seconds: u64) -> Result<()> {
        self.resource.ready_at(&self.pair()?.new.version, seconds).await
    }

    /// The process of a pod's member on this machine.
    pub fn member_process(&self, pod: &str) -> Result<rustix::process::Pid> {
        let (name, token) = (format!("--name={pod}"), format!("--initial-cluster-token={}", self.namespace));
        for entry in std::fs::read_dir("/proc")? {
            let entry = entry?;
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // Processes end while we look.
            let Ok(words) = std::fs::read(entry.path().join("cmdline")) else { continue };
            let words = String::from_utf8_lossy(&words);
            let mut words = words.split('\0');
            if words.clone().any(|word| word == name) && words.any(|word| word == token) {
                return rustix::process::Pid::from_raw(pid).context("no process ID");
            }
        }
        bail!("there is no process of {pod}")
    }

    /// Sets the StatefulSet's image, as somebody without Windlass does.
    pub async fn set_image(&self, image: &str) -> Result<()> {
        let name = self.application.name();
        let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": name, "image": image}]}}}});
        self.sets.patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await?;
        Ok(())
    }

    /// Lets Kubernetes replace the pods as soon as the template changes.
    pub async fn roll_by_itself(&self) -> Result<()> {
        let patch = json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}});
        self.sets.patch(self.application.name(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Ends load and witness, and gathers what happened.
    pub async fn close(&mut self) -> Result<Facts> {
        let ledger = self.load.take().context("the load never began")?.stop().await;
        // A scenario that failed may have left a member that is just coming back.
        let (lost, versions) =
            wait::until("all members to answer", 30, async || self.stored(&ledger).await.map(Some)).await?;
        let samples = self.witness.take().context("there is no witness")?.stop().await;
        let requests = self.audit.requests(&self.namespace)?;
        let testimony = judge(&samples, &audit::endings(&requests), self.replicas);
        let denied = requests.iter().filter(|request| request.user.username == operator::USER);
        let denied = denied.filter(|request| request.response_status.code == 403);
        let denied = denied.map(|request| format!("{} {}", request.verb, request.object_ref.resource)).collect();
        Ok(Facts { ledger, lost, testimony, versions, denied, samples })
    }

    /// The acknowledged writes that are missing, and the members' versions.
    async fn stored(&self, ledger: &Ledger) -> Result<(Vec<String>, Vec<String>)> {
        let addresses: Vec<_> = self.roster.seats.borrow().iter().filter_map(|seat| seat.address).collect();
        ensure!(
            addresses.len() == self.replicas,
            "only {} of {} members have an address",
            addresses.len(),
            self.replicas
        );
        let (client, mut versions) = (self.client(), Vec::new());
        for address in &addresses {
            match client.version(*address).await {
                Ok(version) => versions.push(version),
                Err(failure) => bail!("{address} does not say its version: {failure:?}"),
            }
        }
        Ok((load::missing(&self.access, ledger, &addresses, PREFIX).await?, versions))
    }

    /// Removes the namespace and the data.
    pub async fn remove(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.site.client.clone());
        if namespaces.get_opt(&self.namespace).await?.is_some() {
            namespaces.delete(&self.namespace, &DeleteParams::default()).await?;
            // Members need not say good-bye.
            let at_once = DeleteParams::default().grace_period(0);
            self.pods.delete_collection(&at_once, &ListParams::default()).await?;
            wait::until_so(&format!("namespace {} to be gone", self.namespace), 90, async || {
                // Without an operator that runs, nobody would take its finalizer away.
                self.resource.let_go().await?;
                Ok(namespaces.get_opt(&self.namespace).await?.is_none())
            })
            .await?;
        }
        match std::fs::remove_dir_all(&self.data) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{} can't be removed", self.data))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
