//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

use std::{fs, net::TcpListener, path::Path};

use anyhow::Result;
use serde_json::json;

use super::{
    Options, Shape,
    certificates::{Authority, signing_keys},
    layout::{Layout, NODE_ADDRESS, POD_RANGE, SERVICE_RANGE},
    process::{Place, Process, start},
    tools::{Tool, build},
};

/// Where the parts listen.
pub struct Ports {
    host: &'static str,
    api: u16,
    store: u16,
    store_peers: u16,
    controller_manager: u16,
    scheduler: u16,
}

impl Ports {
    /// In a network namespace of its own every port is free.
    pub fn usual() -> Self {
        Self {
            host: NODE_ADDRESS,
            api: 6443,
            store: 2379,
            store_peers: 2380,
            controller_manager: 10257,
            scheduler: 10259,
        }
    }

    /// On loopback, where other programs listen too.
    pub fn free() -> Result<Self> {
        // Bound together, so that they differ.
        let listeners: Vec<TcpListener> =
            (0..5).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<std::io::Result<_>>()?;
        let mut ports = Vec::new();
        for listener in &listeners {
            ports.push(listener.local_addr()?.port());
        }
        let [api, store, store_peers, controller_manager, scheduler] = ports[..] else { anyhow::bail!("five ports") };
        Ok(Self { host: "127.0.0.1", api, store, store_peers, controller_manager, scheduler })
    }

    /// Where the API server is reached.
    pub fn server(&self) -> String {
        format!("https://{}:{}", self.host, self.api)
    }
}

/// What the API server records: every change, and who asked for it. Or everything that one user asks for, and nothing else.
fn audit_policy(of: Option<&str>) -> serde_json::Value {
    let rules = match of {
        Some(user) => json!([{"level": "Metadata", "users": [user]}]),
        None => json!([
            {"level": "None", "verbs": ["get", "list", "watch"]},
            {"level": "None", "resources": [{"group": "coordination.k8s.io"}, {"group": "events.k8s.io"}, {"group": "", "resources": ["events"]}]},
            {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets", "configmaps", "serviceaccounts/token"]}]},
            {"level": "Request"},
        ]),
    };
    json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules})
}

/// Starts all of it. The files that it needs are made first.
pub fn launch(
    layout: &Layout,
    place: Place,
    ports: &Ports,
    authority: &Authority,
    options: &Options,
) -> Result<Vec<Process>> {
    authority.server(layout)?;
    signing_keys(layout)?;
    fs::write(layout.at("audit-policy.json"), audit_policy(options.audited).to_string())?;
    let server = ports.server();
    authority.kubeconfig(layout, "kubeconfig", &server, "windlass-admin", Some("system:masters"))?;
    authority.kubeconfig(layout, "controller-manager.kubeconfig", &server, "system:kube-controller-manager", None)?;
    authority.kubeconfig(layout, "scheduler.kubeconfig", &server, "system:kube-scheduler", None)?;

    let kubernetes = build(Tool::Kubernetes)?;
    let etcd = build(Tool::EtcdNew)?;
    let begin = |name: &str, program: &Path, words: Vec<String>| start(place, name, program, &words, &layout.log(name));
    let store = format!("http://127.0.0.1:{}", ports.store);
    let peers = format!("http://127.0.0.1:{}", ports.store_peers);
    let etcd = begin(
        "etcd",
        &etcd.join("server"),
        vec![
            "--name=store".into(),
            format!("--data-dir={}", layout.at("etcd").display()),
            // Nothing here outlives the machine.
            "--unsafe-no-fsync".into(),
            format!("--listen-client-urls={store}"),
            format!("--advertise-client-urls={store}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=store={peers}"),
        ],
    )?;
    let file = |name: &str| layout.at(name).display().to_string();
    let mut words = vec![
        format!("--etcd-servers={store}"),
        format!("--bind-address={}", ports.host),
        format!("--secure-port={}", ports.api),
        // A loopback address is refused here, and nobody asks for it on a control plane alone.
        format!("--advertise-address={NODE_ADDRESS}"),
        format!("--client-ca-file={}", file("ca.pem")),
        format!("--tls-cert-file={}", file("apiserver.pem")),
        format!("--tls-private-key-file={}", file("apiserver-key.pem")),
        "--authorization-mode=Node,RBAC".into(),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", file("service-accounts.pem")),
        format!("--service-account-signing-key-file={}", file("service-accounts-key.pem")),
        format!("--audit-policy-file={}", file("audit-policy.json")),
        format!("--audit-log-path={}", layout.audit_log().display()),
        "--allow-privileged".into(),
        "--kubelet-preferred-address-types=InternalIP".into(),
        format!("--kubelet-client-certificate={}", file("kubeconfig.pem")),
        format!("--kubelet-client-key={}", file("kubeconfig-key.pem")),
    ];
    if place == Place::Machine {
        words.push("--endpoint-reconciler-type=none".into());
    }
    words.extend_from_slice(&options.api_server);
    let api = begin("kube-apiserver", &kubernetes.join("kube-apiserver"), words)?;
    if options.shape == Shape::ApiServer {
        return Ok(vec![etcd, api]);
    }
    let manager = begin(
        "kube-controller-manager",
        &kubernetes.join("kube-controller-manager"),
        vec![
            format!("--kubeconfig={}", file("controller-manager.kubeconfig")),
            "--leader-elect=false".into(),
            "--use-service-account-credentials=true".into(),
            format!("--service-account-private-key-file={}", file("service-accounts-key.pem")),
            format!("--root-ca-file={}", file("ca.pem")),
            format!("--cluster-cidr={POD_RANGE}"),
            // Hundreds of StatefulSets are played side by side; with the defaults they would mostly wait for their turn.
            "--kube-api-qps=1000".into(),
            "--kube-api-burst=2000".into(),
            "--concurrent-statefulset-syncs=20".into(),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", ports.controller_manager),
            format!("--cert-dir={}", file("controller-manager")),
        ],
    )?;
    let scheduler = begin(
        "kube-scheduler",
        &kubernetes.join("kube-scheduler"),
        vec![
            format!("--kubeconfig={}", file("scheduler.kubeconfig")),
            "--leader-elect=false".into(),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", ports.scheduler),
            format!("--cert-dir={}", file("scheduler")),
        ],
    )?;
    Ok(vec![etcd, api, manager, scheduler])
}
