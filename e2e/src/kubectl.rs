//! The real kubectl on the embedded cluster: what people type, against `windlass demo --keep`.
//!
//! Every check runs one command and looks at its exit code and at the words that matter in its output. Ages, uids and columns'
//! widths are left alone.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long one command may take. Far more than it needs: only a hanging one is caught.
const PATIENCE: Duration = Duration::from_mins(2);

/// Runs kubectl's verbs on a demo cluster that it starts and ends; the answer is the number of checks.
pub async fn run(kubectl: &Path, windlass: &Path) -> Result<usize> {
    let cache = std::env::temp_dir().join(format!("windlass-kubectl-{}", std::process::id()));
    let mut demo = Demo::start(windlass).await?;
    let mut session =
        Session { kubectl: kubectl.to_owned(), kubeconfig: demo.kubeconfig.clone(), cache: cache.clone(), checks: 0 };
    let outcome = session.everything().await;
    demo.stop().await?;
    std::fs::remove_dir_all(cache).ok();
    outcome.map(|()| session.checks)
}

/// A running `windlass demo --keep`.
struct Demo {
    process: Child,
    kubeconfig: PathBuf,
}

impl Demo {
    async fn start(windlass: &Path) -> Result<Self> {
        let mut process = Command::new(windlass)
            .args(["demo", "--system", "pd", "--keep", "--no-tty", "--speed", "1000"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("can't run {}", windlass.display()))?;
        let out = process.stdout.take().context("the demo has no output")?;
        let mut lines = BufReader::new(out).lines();
        let find = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(path) = line.trim().strip_prefix("export KUBECONFIG=") {
                    return Ok(PathBuf::from(path));
                }
            }
            bail!("the demo ended without a kubeconfig")
        };
        let kubeconfig = timeout(PATIENCE, find).await.context("the demo takes too long")??;
        // The rest of its output must not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { process, kubeconfig })
    }

    /// Ends it as a person would, and sees to it that it cleans up.
    async fn stop(&mut self) -> Result<()> {
        let id = self.process.id().context("the demo ended early")?;
        Command::new("kill").args(["-TERM", &id.to_string()]).status().await?;
        let status = timeout(PATIENCE, self.process.wait()).await.context("the demo does not end")??;
        ensure!(status.success(), "the demo ended with {status}");
        ensure!(!self.kubeconfig.exists(), "the demo left its kubeconfig behind");
        Ok(())
    }
}

/// What a command came to.
struct Said {
    command: String,
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    fn demand(&self, success: bool, words: &[&str]) -> Result<()> {
        let text = format!("{}{}", self.out, self.err);
        ensure!((self.code == Some(0)) == success, "{} ended with {:?}:\n{text}", self.command, self.code);
        for word in words {
            ensure!(text.contains(word), "{} does not say {word:?}:\n{text}", self.command);
        }
        Ok(())
    }
}

struct Session {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    cache: PathBuf,
    checks: usize,
}

impl Session {
    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg("--cache-dir")
            .arg(&self.cache)
            .args(words(arguments))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn ask(&mut self, arguments: &str, input: &str) -> Result<Said> {
        self.checks += 1;
        let mut child =
            self.command(arguments).spawn().with_context(|| format!("can't run {}", self.kubectl.display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that reads nothing may be gone already.
            stdin.write_all(input.as_bytes()).await.ok();
        }
        let command = format!("kubectl {arguments}");
        let output =
            timeout(PATIENCE, child.wait_with_output()).await.with_context(|| format!("{command} hangs"))??;
        Ok(Said {
            command,
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// The command succeeds and says all of this.
    async fn says(&mut self, arguments: &str, expected: &[&str]) -> Result<()> {
        self.ask(arguments, "").await?.demand(true, expected)
    }

    /// The same with an input.
    async fn given(&mut self, arguments: &str, input: &str, expected: &[&str]) -> Result<()> {
        self.ask(arguments, input).await?.demand(true, expected)
    }

    /// The command fails and says all of this.
    async fn refuses(&mut self, arguments: &str, input: &str, expected: &[&str]) -> Result<()> {
        self.ask(arguments, input).await?.demand(false, expected)
    }

    /// The command prints exactly this.
    async fn prints(&mut self, arguments: &str, expected: &str) -> Result<()> {
        let said = self.ask(arguments, "").await?;
        said.demand(true, &[])?;
        ensure!(said.out.trim() == expected, "{} prints {:?}, not {expected:?}", said.command, said.out);
        Ok(())
    }

    async fn everything(&mut self) -> Result<()> {
        self.discovering().await?;
        self.reading().await?;
        self.describing().await?;
        self.explaining().await?;
        self.custom_resources().await?;
        self.configuration().await?;
        self.workloads().await?;
        self.services().await?;
        self.nodes().await?;
        self.watching().await
    }

    async fn discovering(&mut self) -> Result<()> {
        self.says("version", &["Server Version: v1.34"]).await?;
        self.says("cluster-info", &["Kubernetes control plane", "is running at"]).await?;
        self.says("api-versions", &["apps/v1", "discovery.k8s.io/v1", "policy/v1", "windlass.dev/v1alpha1", "v1"])
            .await?;
        let resources = [
            "SHORTNAMES",
            "configmaps",
            "statefulsets",
            "StatefulSet",
            "endpointslices",
            "quorumclusters",
            "QuorumCluster",
        ];
        self.says("api-resources", &resources).await?;
        self.says(
            "api-resources --namespaced=false -o name",
            &["nodes", "customresourcedefinitions.apiextensions.k8s.io"],
        )
        .await?;
        self.says("get --raw /healthz", &["ok"]).await?;
        self.says("get --raw /openapi/v3", &["apis/apps/v1", "apis/windlass.dev/v1alpha1"]).await
    }

    async fn reading(&mut self) -> Result<()> {
        let wide =
            ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE", "pd-0", "1/1", "Running"];
        self.says("get pods", &["NAME", "READY", "STATUS", "RESTARTS", "AGE", "pd-0", "pd-1", "pd-2", "1/1"]).await?;
        self.says("get pods -o wide", &wide).await?;
        self.says("get pods -A -l app=pd --show-labels", &["NAMESPACE", "LABELS", "tikv", "app=pd"]).await?;
        self.says("get pods -l app=other", &["No resources found in tikv namespace."]).await?;
        self.says("get pods --field-selector metadata.name=pd-1 -o name", &["pod/pd-1"]).await?;
        self.says("get pod pd-0 pd-1", &["pd-0", "pd-1"]).await?;
        self.says(
            "get sts -o wide",
            &["NAME", "READY", "AGE", "CONTAINERS", "IMAGES", "pd", "3/3", "pingcap/pd:v8.5.3"],
        )
        .await?;
        self.says("get controllerrevisions", &["CONTROLLER", "REVISION", "statefulset.apps/pd"]).await?;
        self.says("get nodes -o wide", &["STATUS", "ROLES", "INTERNAL-IP", "node-0", "Ready", "10.0.0.10"]).await?;
        self.says("get ns", &["NAME", "STATUS", "AGE", "default", "kube-system", "tikv", "Active"]).await?;
        self.says(
            "get svc,endpointslices",
            &["CLUSTER-IP", "None", "2379/TCP", "ADDRESSTYPE", "IPv4", "endpointslice"],
        )
        .await?;
        self.says("get leases -A", &["HOLDER", "windlass"]).await?;
        self.says("get crd", &["NAME", "CREATED AT", "quorumclusters.windlass.dev"]).await?;
        self.says("get events", &["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE", "quorumcluster/pd"]).await?;
        self.says("events --for quorumcluster/pd", &["LAST SEEN", "REASON"]).await?;
        self.says("get all", &["pod/pd-0", "service/pd", "statefulset.apps/pd"]).await?;
        self.says("get quorumclusters", &["SYSTEM", "VERSION", "TARGET", "STATE", "REASON", "pd", "8.5.3", "UpToDate"])
            .await?;
        self.says("get quorumclusters -o wide -A", &["NAMESPACE", "MESSAGE"]).await?;
        self.says("get sts pd --subresource=scale", &["DESIRED", "AVAILABLE", "pd"]).await?;
        self.says("get pods --sort-by=.metadata.name -o custom-columns=N:.metadata.name", &["N", "pd-0"]).await?;
        self.prints("get sts pd -o jsonpath={.spec.replicas}", "3").await?;
        self.says("get sts pd -o yaml", &["kind: StatefulSet", "serviceName: pd"]).await?;
        self.says("get pods --chunk-size=1", &["pd-0", "pd-1", "pd-2"]).await?;
        self.refuses("get pod none", "", &["Error from server (NotFound): pods \"none\" not found"]).await?;
        self.refuses("get nothing", "", &["the server doesn't have a resource type \"nothing\""]).await
    }

    async fn describing(&mut self) -> Result<()> {
        let pod = ["Name:", "pd-0", "Controlled By:", "StatefulSet/pd", "Conditions:", "QoS Class:", "Events:"];
        self.says("describe pod pd-0", &pod).await?;
        self.says("describe sts pd", &["Replicas:", "3 desired | 3 total", "Pods Status:", "3 Running / 0 Waiting"])
            .await?;
        self.says("describe node node-0", &["Conditions:", "Non-terminated Pods:", "Allocated resources:"]).await?;
        self.says("describe svc pd", &["Selector:", "app=pd", "Endpoints:", ":2379"]).await?;
        self.says("describe endpointslices", &["AddressType:", "Conditions:", "Ready:"]).await?;
        self.says("describe ns tikv", &["Status:", "Active"]).await?;
        self.says("describe quorumcluster pd", &["API Version:", "windlass.dev/v1alpha1", "Current Version:", "8.5.3"])
            .await
    }

    async fn explaining(&mut self) -> Result<()> {
        self.says("explain pod.spec.containers", &["KIND:       Pod", "FIELD: containers <[]Container>", "image"])
            .await?;
        let set = ["GROUP:      apps", "KIND:       StatefulSet", "volumeClaimTemplates", "partition"];
        self.says("explain sts --recursive", &set).await?;
        self.says("explain sts.spec.replicas", &["FIELD: replicas <integer>"]).await?;
        self.says("explain quorumcluster", &["GROUP:      windlass.dev", "KIND:       QuorumCluster", "spec"]).await?;
        self.says("explain quorumcluster.spec --recursive", &["workload", "statefulSet", "version"]).await?;
        self.refuses("explain pod.spec.nothing", "", &["field \"nothing\" does not exist"]).await
    }

    /// Applying, comparing, patching and deleting what has a schema of its own. It is paused, so the operator leaves it be.
    async fn custom_resources(&mut self) -> Result<()> {
        let cluster = |version: &str| {
            format!(
                "{{apiVersion: windlass.dev/v1alpha1, kind: QuorumCluster, metadata: {{name: other, namespace: default}}, \
                 spec: {{paused: true, version: {version}, workload: {{statefulSet: none, container: pd}}, \
                 system: {{type: Pd, port: 2379}}}}}}"
            )
        };
        self.given("apply -f -", &cluster("8.5.0"), &["quorumcluster.windlass.dev/other created"]).await?;
        self.given("apply -f -", &cluster("8.5.0"), &["quorumcluster.windlass.dev/other unchanged"]).await?;
        let diff = self.ask("diff -f -", &cluster("8.5.1")).await?;
        ensure!(diff.code == Some(1), "kubectl diff finds a difference with 1, not {:?}:\n{}", diff.code, diff.err);
        diff.demand(false, &["-  version: 8.5.0", "+  version: 8.5.1"])?;
        self.given("diff -f -", &cluster("8.5.0"), &[]).await?;
        self.given("apply -f - --dry-run=server", &cluster("8.5.1"), &["configured (server dry run)"]).await?;
        self.given("apply -f -", &cluster("8.5.1"), &["quorumcluster.windlass.dev/other configured"]).await?;
        self.prints("get quorumcluster other -n default -o jsonpath={.spec.version}", "8.5.1").await?;
        let typo = cluster("8.5.1").replace("paused", "pausde");
        self.refuses("apply -f -", &typo, &["strict decoding error: unknown field \"spec.pausde\""]).await?;
        self.given("apply -f - --validate=warn", &typo, &["unknown field \"spec.pausde\""]).await?;
        self.refuses("apply -f -", &cluster("\"\""), &["is invalid"]).await?;
        let patch = "patch quorumcluster other -n default --type=merge -p {\"spec\":{\"version\":\"8.5.2\"}}";
        self.says(patch, &["quorumcluster.windlass.dev/other patched"]).await?;
        self.says("label quorumcluster other -n default tier=db", &["labeled"]).await?;
        self.says("get quorumcluster -n default -L tier", &["TIER", "db"]).await?;
        self.says("annotate quorumcluster other -n default note=x", &["annotated"]).await?;
        self.says("label quorumcluster other -n default tier-", &["unlabeled"]).await?;
        self.says("wait quorumcluster other -n default --for=jsonpath={.spec.version}=8.5.2", &["condition met"])
            .await?;
        self.says("wait quorumcluster other -n default --for=condition=Ready=False", &["condition met"]).await?;
        self.says("wait quorumcluster pd --for=condition=Ready", &["condition met"]).await?;
        let other = self.ask("get quorumcluster other -n default -o json", "").await?;
        self.given("replace -f -", &other.out.replace("8.5.2", "8.5.3"), &["replaced"]).await?;
        self.refuses("replace -f -", &other.out, &["the object has been modified"]).await?;
        self.given("apply --server-side --force-conflicts -f -", &cluster("8.5.4"), &["serverside-applied"]).await?;
        self.says("delete quorumcluster other -n default", &["\"other\" deleted"]).await?;
        self.says("wait quorumcluster/other -n default --for=delete", &[]).await?;
        self.refuses("get quorumcluster other -n default", "", &["NotFound"]).await
    }

    /// Objects that are only kept.
    async fn configuration(&mut self) -> Result<()> {
        self.says("create ns scratch", &["namespace/scratch created"]).await?;
        self.says("create configmap -n scratch c --from-literal=a=1", &["configmap/c created"]).await?;
        self.says("create secret generic -n scratch s --from-literal=a=1", &["secret/s created"]).await?;
        self.says("get cm,secrets -n scratch", &["DATA", "configmap/c", "TYPE", "Opaque"]).await?;
        self.refuses("create configmap -n scratch c", "", &["configmaps \"c\" already exists"]).await?;
        let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: scratch}, data: {a: one}}";
        self.given("apply -f -", map, &["configmap/d created"]).await?;
        self.given("apply -f -", &map.replace("one", "two"), &["configmap/d configured"]).await?;
        self.prints("get cm d -n scratch -o jsonpath={.data.a}", "two").await?;
        self.given(
            "apply --server-side --field-manager=e2e --force-conflicts -f -",
            &map.replace("one", "three"),
            &["serverside-applied"],
        )
        .await?;
        self.says("patch cm d -n scratch -p {\"data\":{\"b\":\"x\"}}", &["configmap/d patched"]).await?;
        self.says("delete cm d -n scratch", &["configmap \"d\" deleted"]).await?;
        self.says("delete cm --all -n scratch", &["configmap \"c\" deleted"]).await?;
        self.says("delete ns scratch", &["namespace \"scratch\" deleted"]).await
    }

    /// A StatefulSet that is nobody's but ours.
    async fn workloads(&mut self) -> Result<()> {
        let set = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, namespace: default}, spec: {replicas: 2, \
                   serviceName: web, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, \
                   spec: {containers: [{name: web, image: web:1}]}}}}";
        self.given("apply -f -", set, &["statefulset.apps/web created"]).await?;
        self.says("rollout status -n default sts/web --timeout=90s", &["partitioned roll out complete", "2 new pods"])
            .await?;
        self.given("diff -f -", set, &[]).await?;
        self.given("apply -f -", &set.replace("web:1", "web:2"), &["statefulset.apps/web configured"]).await?;
        self.says("rollout status -n default sts/web --timeout=90s", &["roll"]).await?;
        self.prints("get pod -n default web-0 -o jsonpath={.spec.containers[0].image}", "web:2").await?;
        self.says("rollout history -n default sts/web", &["REVISION", "1", "2"]).await?;
        self.says("scale -n default sts/web --replicas=1", &["statefulset.apps/web scaled"]).await?;
        self.says("wait -n default pod/web-1 --for=delete --timeout=90s", &[]).await?;
        self.says("wait -n default sts/web --for=jsonpath={.status.replicas}=1 --timeout=90s", &["condition met"])
            .await?;
        self.says("set image -n default sts/web web=web:3", &["image updated"]).await?;
        self.says("rollout status -n default sts/web --timeout=90s", &["roll"]).await?;
        self.says("rollout restart -n default sts/web", &["restarted"]).await?;
        self.says("rollout status -n default sts/web --timeout=90s", &["roll"]).await?;
        let refused = set.replace("serviceName: web", "serviceName: other");
        self.refuses("apply -f -", &refused, &["Forbidden: updates to statefulset spec"]).await?;
        self.says("logs -n default web-0 --tail=1", &["serving"]).await?;
        self.says("delete sts -n default web --cascade=foreground", &["statefulset.apps \"web\" deleted"]).await?;
        self.says("wait -n default pod -l app=web --for=delete --timeout=90s", &[]).await
    }

    async fn services(&mut self) -> Result<()> {
        self.says("create service clusterip -n default front --tcp=80:8080", &["service/front created"]).await?;
        self.says("get svc -n default front", &["ClusterIP", "10.96.", "<none>", "80/TCP"]).await?;
        self.says("create service nodeport -n default door --tcp=80", &["service/door created"]).await?;
        self.says("get svc -n default door", &["NodePort", "80:3"]).await?;
        let wrong =
            "{apiVersion: v1, kind: Service, metadata: {name: x, namespace: default}, spec: {selector: {a: b}}}";
        self.refuses("create -f -", wrong, &["The Service \"x\" is invalid: spec.ports: Required value"]).await?;
        self.says("delete svc -n default front door", &["\"front\" deleted", "\"door\" deleted"]).await
    }

    /// A drain asks every budget; the embedded kubelet lets the pods go.
    async fn nodes(&mut self) -> Result<()> {
        self.says("create pdb pd --selector=app=pd --max-unavailable=1", &["poddisruptionbudget.policy/pd created"])
            .await?;
        self.says("wait pdb/pd --for=jsonpath={.status.disruptionsAllowed}=1 --timeout=60s", &["condition met"])
            .await?;
        self.says("get pdb", &["MIN AVAILABLE", "MAX UNAVAILABLE", "ALLOWED DISRUPTIONS", "N/A"]).await?;
        let node = self.ask("get pod pd-2 -o jsonpath={.spec.nodeName}", "").await?.out;
        self.says(&format!("cordon {node}"), &["cordoned"]).await?;
        self.says("get nodes", &["Ready,SchedulingDisabled"]).await?;
        let drained = ["evicting pod tikv/pd-2", "drained"];
        self.says(&format!("drain {node} --ignore-daemonsets --delete-emptydir-data --timeout=100s"), &drained).await?;
        self.says(&format!("uncordon {node}"), &["uncordoned"]).await?;
        self.says("wait pod/pd-2 --for=create --timeout=60s", &["condition met"]).await?;
        self.says("wait pod/pd-2 --for=condition=Ready --timeout=90s", &["condition met"]).await?;
        self.says("delete pdb pd", &["\"pd\" deleted"]).await?;
        self.says("taint node node-0 e2e=x:PreferNoSchedule", &["tainted"]).await?;
        self.says("taint node node-0 e2e-", &["untainted"]).await
    }

    /// A watch prints what there is, then what happens.
    async fn watching(&mut self) -> Result<()> {
        self.checks += 1;
        let mut child = self.command("get configmaps -n default -w").spawn()?;
        let out = child.stdout.take().context("kubectl has no output")?;
        let mut lines = BufReader::new(out).lines();
        self.says("create configmap -n default seen --from-literal=a=1", &["created"]).await?;
        let appears = async {
            while let Some(line) = lines.next_line().await? {
                if line.starts_with("seen ") {
                    return Ok(());
                }
            }
            bail!("the watch ended without a word of the new object")
        };
        timeout(PATIENCE, appears).await.context("kubectl get -w does not tell of a new object")??;
        child.start_kill()?;
        self.says("delete configmap -n default seen", &["deleted"]).await
    }
}

/// A command's words: they hold no spaces, so there is nothing to quote.
fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}
