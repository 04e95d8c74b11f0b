//! A real node: containerd, kubelet, kube-proxy, and the cluster's DNS beside them.

use std::{fs, path::Path};

use anyhow::Result;
use serde_json::{Value, json};

use super::{
    certificates::Authority,
    layout::{Layout, NODE_ADDRESS, POD_RANGE},
    process::{Place, Process, run, start},
    tools::{Tool, build},
};
use crate::image;

/// The real node's name.
pub const NODE: &str = "windlass-node";
/// What holds a pod's namespaces.
const PAUSE: &str = "windlass.test/pause:1";
/// containerd's socket, inside the cluster's namespaces.
pub const SOCKET: &str = "/run/containerd/containerd.sock";

/// Starts all of it.
pub fn launch(layout: &Layout, place: Place, server: &str, authority: &Authority) -> Result<Vec<Process>> {
    let node = format!("system:node:{NODE}");
    authority.kubeconfig(layout, "kubelet.kubeconfig", server, &node, Some("system:nodes"))?;
    authority.kubeconfig(layout, "kube-proxy.kubeconfig", server, "system:kube-proxy", None)?;
    authority.kubeconfig(layout, "dns.kubeconfig", server, "windlass-dns", Some("system:masters"))?;
    fs::create_dir_all(layout.at("cni"))?;
    fs::write(layout.at("cni/10-windlass.conflist"), pod_network().to_string())?;
    fs::write(layout.at("containerd.toml"), containerd(layout))?;
    fs::write(layout.at("kubelet.json"), kubelet(layout).to_string())?;
    fs::write(layout.at("kube-proxy.json"), kube_proxy(layout).to_string())?;
    fs::write(layout.at("Corefile"), dns(layout))?;

    let kubernetes = build(Tool::Kubernetes)?;
    let begin = |name: &str, program: &Path, words: &[String]| start(place, name, program, words, &layout.log(name));
    let config = |name: &str| format!("--config={}", layout.at(name).display());
    let containerd = begin("containerd", Path::new("containerd"), &[config("containerd.toml")])?;
    wait_for_containerd(place)?;
    image::pause(PAUSE, &layout.at("pause.tar"))?;
    load(place, &layout.at("pause.tar"))?;
    let kubelet = begin(
        "kubelet",
        &kubernetes.join("kubelet"),
        &[
            config("kubelet.json"),
            format!("--kubeconfig={}", layout.at("kubelet.kubeconfig").display()),
            format!("--hostname-override={NODE}"),
            format!("--node-ip={NODE_ADDRESS}"),
            format!("--root-dir={}", layout.at("kubelet").display()),
        ],
    )?;
    let proxy = begin("kube-proxy", &kubernetes.join("kube-proxy"), &[config("kube-proxy.json")])?;
    let dns =
        begin("dns", &build(Tool::Dns)?.join("dns"), &["-conf".into(), layout.at("Corefile").display().to_string()])?;
    Ok(vec![containerd, kubelet, proxy, dns])
}

fn wait_for_containerd(place: Place) -> Result<()> {
    super::wait_for("containerd", || run(place.command("ctr").args(["--address", SOCKET, "version"])).is_ok())
}

/// Makes an image known to the node.
pub fn load(place: Place, archive: &Path) -> Result<()> {
    run(place.command("ctr").args(["--address", SOCKET, "--namespace", "k8s.io", "images", "import"]).arg(archive))
        .map(drop)
}

fn pod_network() -> Value {
    json!({
        "cniVersion": "0.4.0",
        "name": "windlass",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "pods",
                "isDefaultGateway": true,
                "hairpinMode": true,
                "ipam": {"type": "host-local", "ranges": [[{"subnet": POD_RANGE}]]},
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

fn containerd(layout: &Layout) -> String {
    format!(
        r#"version = 2
root = "{root}"
state = "/run/containerd"
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  # Without CAP_SYS_RESOURCE a lower oom_score_adj is refused, and no sandbox would start.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
"#,
        root = layout.at("containerd").display(),
        cni = layout.at("cni").display(),
    )
}

fn kubelet(layout: &Layout) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "authentication": {"x509": {"clientCAFile": layout.at("ca.pem")}, "webhook": {"enabled": false}, "anonymous": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": "/windlass",
        "failCgroupV1": false,
        "failSwapOn": false,
        "enforceNodeAllocatable": [],
        "clusterDNS": [NODE_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "podLogsDir": layout.at("var-log/pods"),
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "maxPods": 250,
        "serializeImagePulls": false,
        "registryPullQPS": 0,
        // A crash loop is shown sooner, and a test waits less.
        "featureGates": {"KubeletCrashLoopBackOffMax": true},
        "crashLoopBackOff": {"maxContainerRestartPeriod": "10s"},
    })
}

fn kube_proxy(layout: &Layout) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": layout.at("kube-proxy.kubeconfig")},
        "mode": "iptables",
        "clusterCIDR": POD_RANGE,
        "hostnameOverride": NODE,
        // These are settings of the whole machine, which are none of a test's business.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    })
}

fn dns(layout: &Layout) -> String {
    format!(
        ".:53 {{\n  bind {NODE_ADDRESS}\n  errors\n  kubernetes cluster.local in-addr.arpa {{\n    kubeconfig {}\n    ttl 1\n  }}\n}}\n",
        layout.at("dns.kubeconfig").display()
    )
}
