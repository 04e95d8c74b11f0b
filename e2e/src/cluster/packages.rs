//! The Debian packages that a node needs.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use super::missing::{Missing, on_path};
use crate::say;

/// A package, and a file or program that shows that it is there.
const PACKAGES: &[(&str, &str)] = &[
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("iproute2", "ip"),
    ("util-linux", "nsenter"),
    ("containernetworking-plugins", "/usr/lib/cni/bridge"),
    ("busybox-static", "/bin/busybox"),
];

fn is_there(sign: &str) -> bool {
    if sign.starts_with('/') { Path::new(sign).exists() } else { on_path(sign) }
}

/// Installs what is missing, where apt is there to do it.
pub fn install() -> Result<()> {
    let wanted: Vec<&str> = PACKAGES.iter().filter(|(_, sign)| !is_there(sign)).map(|(package, _)| *package).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    if !on_path("apt-get") {
        return Err(Missing(vec![format!("the programs of the Debian packages {}", wanted.join(", "))]).into());
    }
    say(&format!("installing {}", wanted.join(" ")));
    apt(&["update", "-qq"])?;
    let mut words = vec!["install", "-y", "-qq", "--no-install-recommends"];
    words.extend(&wanted);
    apt(&words)?;
    let still: Vec<String> = PACKAGES
        .iter()
        .filter(|(_, sign)| !is_there(sign))
        .map(|(package, sign)| format!("{sign} (package {package})"))
        .collect();
    if still.is_empty() { Ok(()) } else { Err(Missing(still).into()) }
}

fn apt(words: &[&str]) -> Result<()> {
    let output = Command::new("apt-get")
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .output()
        .context("apt-get can't be started")?;
    ensure!(
        output.status.success(),
        "apt-get {} failed: {}",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
