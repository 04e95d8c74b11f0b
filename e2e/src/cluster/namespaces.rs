//! The namespaces in which a whole cluster lives: network, mounts and processes. When they end, everything in them has
//! ended: no process, mount, interface or rule of a firewall is left behind.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use super::{
    layout::{Layout, MACHINE_ADDRESS, NODE_ADDRESS, POD_RANGE, SERVICE_RANGE},
    process::{Place, Process, run, start},
};

/// The network namespace and the control group; the machine's end of the pair of interfaces.
const NAME: &str = "windlass";
const CGROUPS: &str = "/sys/fs/cgroup";

fn ip(words: &str) -> Result<String> {
    run(Command::new("ip").args(words.split_whitespace()))
}

/// Whether something of a cluster is there already.
pub fn exist() -> bool {
    Path::new("/run/netns").join(NAME).exists()
}

/// Makes them. The process that is returned holds them.
pub fn create(layout: &Layout) -> Result<Process> {
    ip(&format!("netns add {NAME}"))?;
    ip(&format!("link add {NAME} type veth peer name eth0 netns {NAME}"))?;
    ip(&format!("addr add {MACHINE_ADDRESS}/24 dev {NAME}"))?;
    ip(&format!("link set {NAME} up"))?;
    for command in [
        format!("-n {NAME} link set lo up"),
        format!("-n {NAME} addr add {NODE_ADDRESS}/24 dev eth0"),
        format!("-n {NAME} link set eth0 up"),
        format!("-n {NAME} route add default via {MACHINE_ADDRESS}"),
        // The machine speaks to pods and Services through the node.
        format!("route add {POD_RANGE} via {NODE_ADDRESS}"),
        format!("route add {SERVICE_RANGE} via {NODE_ADDRESS}"),
    ] {
        ip(&command)?;
    }
    for group in control_groups()? {
        make_control_group(&group)?;
    }
    fs::create_dir_all(layout.at("var-log"))?;
    // The paths that no component lets us choose are covered by mounts of our own. Then the shell stays, and reaps what is
    // left to the first process of the namespace.
    let script = format!(
        "set -e; mount -t tmpfs tmpfs /run; mkdir -p /run/lock /var/lib/cni /var/lib/kubelet; \
         mount -t tmpfs tmpfs /var/lib/cni; mount -t tmpfs tmpfs /var/lib/kubelet; mount --bind '{}' /var/log; \
         touch /run/ready; while :; do sleep 1000 & wait $!; done",
        layout.at("var-log").display()
    );
    let words =
        ["--net=/run/netns/windlass", "unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"];
    let words: Vec<String> = words.into_iter().map(str::to_owned).chain(["sh".into(), "-c".into(), script]).collect();
    let holder = start(Place::Machine, "namespaces", Path::new("nsenter"), &words, &layout.log("namespaces"))?;
    let begun = Instant::now();
    while run(inside(&holder).command("test").args(["-e", "/run/ready"])).is_err() {
        if begun.elapsed() > Duration::from_secs(10) || !holder.runs() {
            let complaint = fs::read_to_string(layout.log("namespaces")).unwrap_or_default();
            bail!("the cluster's namespaces can't be made: {}", complaint.trim());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(holder)
}

/// The place that a holder holds.
pub fn inside(holder: &Process) -> Place {
    Place::Inside(holder.program())
}

/// Ends them, and everything in them.
pub fn remove(holder: Option<&Process>) -> Result<()> {
    if let Some(holder) = holder {
        // Its first process goes with it, and with that every other.
        holder.kill()?;
    }
    for group in control_groups()? {
        remove_control_group(&group)?;
    }
    if Path::new("/sys/class/net").join(NAME).exists() {
        ip(&format!("link del {NAME}"))?;
    }
    if exist() {
        ip(&format!("netns del {NAME}"))?;
    }
    Ok(())
}

/// Our control group in each hierarchy (version 1), or the one (version 2).
fn control_groups() -> Result<Vec<PathBuf>> {
    let root = Path::new(CGROUPS);
    if root.join("cgroup.controllers").exists() {
        return Ok(vec![root.join(NAME)]);
    }
    let mut groups = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        // Names such as `cpu` may be links to a hierarchy with two controllers.
        if entry.file_type()?.is_dir() {
            groups.push(entry.path().join(NAME));
        }
    }
    groups.sort();
    Ok(groups)
}

fn make_control_group(group: &Path) -> Result<()> {
    fs::create_dir_all(group)?;
    // A new group of this hierarchy may use nothing, and no process can be put in.
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let parent = group.with_file_name(file);
        if group.join(file).exists() && parent.exists() {
            fs::write(group.join(file), fs::read(parent)?)?;
        }
    }
    Ok(())
}

fn remove_control_group(group: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(group) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_control_group(&entry.path())?;
        }
    }
    let start = Instant::now();
    // Processes that were killed leave their group a moment later.
    while let Err(error) = fs::remove_dir(group) {
        if !group.exists() {
            break;
        }
        if start.elapsed() > Duration::from_secs(10) {
            bail!("the control group {} can't be removed: {error}", group.display());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
