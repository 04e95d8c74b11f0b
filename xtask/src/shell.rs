//! Running other programs from the workspace's root, with their output shown and kept.

use std::{
    cell::Cell,
    env,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

thread_local! {
    static LABEL: Cell<&'static str> = const { Cell::new("") };
}

/// What is shown of programs that this thread runs begins with this from now on: another thread shows something, too.
pub fn label(name: &'static str) {
    LABEL.set(name);
}

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// `cargo` at the root, without what the one that runs us says of itself: libraries whose build looks at that would be built anew, and
/// everything above them, for every place that the workspace is in.
fn plain_cargo() -> Command {
    let mut cargo = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    let of_xtask = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars().filter(|(name, _)| of_xtask(name)) {
        cargo.env_remove(name);
    }
    cargo.current_dir(root());
    cargo
}

/// `cargo` with these words, shown as it runs. What it printed on standard output; an error if it failed.
pub fn cargo(words: &[&str]) -> Result<String> {
    match cargo_code(words)? {
        (0, text) => Ok(text),
        (_, text) => bail!("cargo {} failed{}", words.join(" "), last_words(&text)),
    }
}

/// The same with its exit code, whatever that is.
fn cargo_code(words: &[&str]) -> Result<(i32, String)> {
    run(plain_cargo().args(words), &format!("cargo {}", words.join(" ")))
}

/// A program of the workspace with these words, shown as it runs: its exit code and what it printed on standard output.
pub fn program_code(name: &str, words: &[&str]) -> Result<(i32, String)> {
    run(Command::new(program(name)?).args(words).current_dir(root()), &format!("{name} {}", words.join(" ")))
}

/// The same; an error if it failed.
pub fn run_program(name: &str, words: &[&str]) -> Result<String> {
    match program_code(name, words)? {
        (0, text) => Ok(text),
        (_, text) => bail!("{name} {} failed{}", words.join(" "), last_words(&text)),
    }
}

/// What a program said last: in a long log, the summary is where people look.
pub fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(12)..).unwrap_or_default();
    last.iter().flat_map(|line| ["\n      ", *line]).collect()
}

/// Where a program of the workspace is. It is built with everything else, as the unit tests build it: for one package alone cargo chooses
/// other features of shared libraries, and builds them and everything above them a second time.
pub fn program(name: &str) -> Result<PathBuf> {
    let words = ["build", "--workspace", "--all-targets", "--message-format", "json-render-diagnostics"];
    let output = plain_cargo().args(words).stderr(Stdio::inherit()).output().context("cargo can't be started")?;
    ensure!(output.status.success(), "the workspace does not build");
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter(|message| {
        message["target"]["name"] == name
            && message["target"]["kind"][0] == "bin"
            && message["profile"]["test"] == false
    });
    let path = programs.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    path.with_context(|| format!("cargo built no program {name}"))
}

/// Which cargo-deny judges the dependencies: another one may say other things.
const CARGO_DENY: &str = "0.20.2";

/// Where cargo-deny is, installed now if it is not there yet.
pub fn cargo_deny() -> Result<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").filter(|base| !base.is_empty()).map(PathBuf::from);
    let cache = cache.or_else(|| env::home_dir().map(|home| home.join(".cache"))).context("HOME is not set")?;
    let place = cache.join("windlass").join(format!("cargo-deny-{CARGO_DENY}"));
    let program = place.join("bin/cargo-deny");
    if program.is_file() {
        return Ok(program);
    }
    // It runs for a second: to optimise it would take longer than that ever saves.
    let words = ["install", "--quiet", "--debug", "--locked", "--version", CARGO_DENY, "cargo-deny", "--root"];
    let mut cargo = plain_cargo();
    cargo.args(words).arg(place).env_remove("CARGO_TARGET_DIR");
    let (code, _) = run(&mut cargo, "cargo install cargo-deny")?;
    ensure!(code == 0, "cargo-deny {CARGO_DENY} can't be installed");
    Ok(program)
}

/// A command, shown as it runs: its exit code and what it printed on standard output.
pub fn run(command: &mut Command, what: &str) -> Result<(i32, String)> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .with_context(|| format!("{what} can't be started"))?;
    let output = child.stdout.take().context("no output")?;
    let label = LABEL.get();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if label.is_empty() {
                println!("{line}");
            } else {
                println!("{label}: {line}");
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    });
    let status = child.wait()?;
    let text = reader.join().unwrap_or_default();
    let code = status.code().with_context(|| format!("{what} was killed"))?;
    Ok((code, text))
}

/// A command of the tests on a real cluster; its exit code is ours.
pub fn e2e(command: &str, words: &[String]) -> Result<ExitCode> {
    let status = plain_cargo()
        .args(["run", "--quiet", "--package", "windlass-e2e", "--", command])
        .args(words)
        .status()
        .context("cargo can't be started")?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// The mutating test of `crates/images/tests/fuzz`; its exit code is ours.
pub fn fuzz(minutes: u64, seed: u64, keep: bool) -> Result<ExitCode> {
    let mut cargo = plain_cargo();
    cargo
        .args(["test", "--quiet", "--package", "windlass-images", "--test", "fuzz"])
        .args(["--", "--ignored", "--exact", "minutes", "--nocapture"])
        .env("WINDLASS_FUZZ_MINUTES", minutes.to_string())
        .env("WINDLASS_FUZZ_SEED", seed.to_string());
    if keep {
        cargo.env("WINDLASS_FUZZ_KEEP", "yes");
    }
    let status = cargo.status().context("cargo can't be started")?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
