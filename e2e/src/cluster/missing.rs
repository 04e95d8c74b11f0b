//! What this machine lacks: said exactly, before anything is begun.

use std::{env, fmt, path::Path, process::Command};

/// Things that must be there and are not. Whoever runs tests reports them as skipped, with this text.
#[derive(Debug)]
pub struct Missing(pub Vec<String>);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this machine lacks {}", self.0.join("; "))
    }
}

impl std::error::Error for Missing {}

/// Checks what no command of ours can install.
pub fn check(with_node: bool) -> Result<(), Missing> {
    let mut missing = Vec::new();
    if !cfg!(target_os = "linux") {
        missing.push("Linux (the cluster's parts are Linux programs)".to_owned());
    }
    if !answers("go", &["version"]) {
        missing.push("Go 1.24 or newer on the PATH (the cluster's parts are built from Go modules)".to_owned());
    }
    if with_node {
        if !rustix::process::geteuid().is_root() {
            missing.push("root (containers and their network; --control-plane-only needs none)".to_owned());
        }
        if !Path::new("/proc/self/ns/net").exists() {
            missing.push("network namespaces".to_owned());
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(Missing(missing)) }
}

/// Whether a program is there and runs.
pub fn answers(program: &str, words: &[&str]) -> bool {
    Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
}

/// Whether a program is on the PATH.
pub fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).chain([Path::new("/usr/sbin").to_path_buf()]).any(|folder| folder.join(program).is_file())
}
