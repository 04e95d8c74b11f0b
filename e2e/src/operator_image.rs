//! Windlass's own image: one static program, built without the embedded cluster, run by nobody in particular.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    cluster::{Missing, answers},
    image::{Entry, Image},
    say,
};

/// Builds the static program; where it is.
pub fn build_program() -> Result<PathBuf> {
    let target = format!("{}-unknown-linux-musl", env::consts::ARCH);
    prepare(&target)?;
    say("building the operator, static and without the embedded cluster");
    let root = workspace()?;
    let home =
        env::var("CARGO_HOME").or_else(|_| env::var("HOME").map(|home| format!("{home}/.cargo"))).unwrap_or_default();
    // Where it was built must not show in the program: the same sources give the same bytes.
    let flags = format!("--remap-path-prefix={}=windlass --remap-path-prefix={home}=cargo", root.display());
    let mut cargo = cargo_build(root);
    cargo
        .args(["--release", "--locked", "--no-default-features", "--target", &target])
        .env("RUSTFLAGS", flags)
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "none")
        .env(format!("CC_{}", target.replace('-', "_")), "musl-gcc");
    built(&mut cargo)
}

/// Builds the program with the embedded cluster in it, as people run it for the demo; where it is.
pub fn build_demo() -> Result<PathBuf> {
    built(&mut cargo_build(workspace()?))
}

fn workspace() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no workspace")
}

fn cargo_build(root: &Path) -> Command {
    let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    // What the one that runs us says of itself would make some libraries, and all above them, be built anew.
    let of_e2e = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars().filter(|(name, _)| of_e2e(name)) {
        cargo.env_remove(name);
    }
    cargo.args(["build", "--package", "windlass", "--message-format", "json-render-diagnostics"]).current_dir(root);
    cargo
}

fn built(cargo: &mut Command) -> Result<PathBuf> {
    let output = cargo.stderr(std::process::Stdio::inherit()).output().context("cargo can't be started")?;
    ensure!(output.status.success(), "windlass does not build");
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    programs.next_back().context("cargo names no program")
}

/// The compiler's target and a C compiler for it.
fn prepare(target: &str) -> Result<()> {
    if !answers("musl-gcc", &["--version"]) {
        let installed = answers("apt-get", &["install", "-y", "-qq", "musl-tools"])
            || (answers("apt-get", &["update", "-qq"]) && answers("apt-get", &["install", "-y", "-qq", "musl-tools"]));
        if !installed {
            return Err(Missing(vec!["musl-gcc (Debian package musl-tools)".into()]).into());
        }
    }
    if !answers("rustup", &["target", "add", target]) {
        return Err(Missing(vec![format!("Rust's target {target} (rustup target add {target})")]).into());
    }
    Ok(())
}

/// The image of a program that was built, with the libraries that it loads: the one that is shipped loads none.
pub fn image(name: &str, program: &Path) -> Result<Image> {
    let libraries = libraries(program)?
        .into_iter()
        .map(|library| (library.display().to_string().trim_start_matches('/').to_owned(), Entry::Program(library)));
    let program = ("usr/local/bin/windlass".to_owned(), Entry::Program(program.into()));
    Ok(Image {
        name: name.to_owned(),
        entries: std::iter::once(program).chain(libraries).collect(),
        entrypoint: vec!["/usr/local/bin/windlass".into()],
        user: "65532:65532".into(),
        labels: vec![
            ("org.opencontainers.image.title".into(), "windlass".into()),
            ("org.opencontainers.image.version".into(), env!("CARGO_PKG_VERSION").into()),
            ("org.opencontainers.image.licenses".into(), env!("CARGO_PKG_LICENSE").into()),
        ],
    })
}

/// The libraries that a program loads, and what loads them.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("ldd can't be started")?;
    // It ends with 1 for a program that loads none.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
        .map(PathBuf::from)
        .filter(|path| path != program)
        .collect())
}

/// The same program without what only a debugger reads: an image holds all of it.
pub fn strip(program: &Path, to: &Path) -> Result<()> {
    let output = Command::new("strip").arg("-o").arg(to).arg(program).output().context("strip can't be started")?;
    ensure!(output.status.success(), "strip: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
