//! Processes that outlive the command that started them: where they run, how they are found again and how they end.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// Where a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// As any other process of this machine.
    Machine,
    /// In the namespaces that this process holds.
    Inside(u32),
}

impl Place {
    /// A command that runs `program` there.
    pub fn command(self, program: impl Into<OsString>) -> Command {
        match self {
            Self::Machine => Command::new(program.into()),
            Self::Inside(holder) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--target={holder}")).args(["--mount", "--net", "--pid", "--"]).arg(program.into());
                command
            }
        }
    }
}

/// A process that was started here. A number alone would name another process after this one has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// What it is.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// When it began, in the kernel's ticks.
    began: u64,
}

/// Starts a program that goes on when we end. Its output goes to `log`.
pub fn start(place: Place, name: &str, program: &Path, words: &[String], log: &Path) -> Result<Process> {
    let output = fs::File::create(log).with_context(|| format!("{} can't be written", log.display()))?;
    // A session of its own, so that the end of a terminal is not its end. setsid starts no further process here.
    let mut command = Command::new("setsid");
    let inner = place.command(program);
    command.arg(inner.get_program()).args(inner.get_args()).args(words);
    let child = command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("{} can't be started", program.display()))?;
    let pid = child.id();
    let began = began(pid).with_context(|| format!("{name} ended at once; see {}", log.display()))?;
    Ok(Process { name: name.to_owned(), pid, began })
}

/// When a process began; none if it has ended. A zombie has ended.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

impl Process {
    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        began(self.pid) == Some(self.began)
    }

    /// The program itself: where we entered other namespaces, our child's child.
    pub fn program(&self) -> u32 {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid)).unwrap_or_default();
        let comm = fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        match children.split_whitespace().next().and_then(|child| child.parse().ok()) {
            Some(child) if matches!(comm.trim(), "nsenter" | "unshare") => child,
            Some(_) | None => self.pid,
        }
    }

    /// Sends a signal to the program, if it still runs.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.send(self.program(), signal)?;
        // nsenter freezes with the program that it started, and does not wake with it.
        if signal == Signal::CONT {
            self.send(self.pid, signal)?;
        }
        Ok(())
    }

    fn send(&self, to: u32, signal: Signal) -> Result<()> {
        if !self.runs() {
            return Ok(());
        }
        let pid = i32::try_from(to).ok().and_then(Pid::from_raw).context("no such process id")?;
        match kill_process(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("{} can't be signalled", self.name)),
        }
    }

    /// Ends the process that we started itself, at once.
    pub fn kill(&self) -> Result<()> {
        self.send(self.pid, Signal::KILL)?;
        if !self.wait_for_end(Duration::from_secs(10)) {
            bail!("{} (process {}) does not end", self.name, self.pid);
        }
        Ok(())
    }

    /// Asks it to end, and makes it end after `patience`.
    pub fn stop(&self, patience: Duration) -> Result<()> {
        // A frozen process hears nothing.
        self.signal(Signal::CONT)?;
        self.signal(Signal::TERM)?;
        if !self.wait_for_end(patience) {
            self.signal(Signal::KILL)?;
            if !self.wait_for_end(Duration::from_secs(10)) {
                return self.kill();
            }
        }
        Ok(())
    }

    fn wait_for_end(&self, patience: Duration) -> bool {
        let start = Instant::now();
        while self.runs() {
            if start.elapsed() > patience {
                return false;
            }
            thread::sleep(Duration::from_millis(50));
        }
        true
    }
}

/// Runs a command to its end; what it printed, or an error that carries its complaint.
pub fn run(command: &mut Command) -> Result<String> {
    let shown = format!(
        "{} {}",
        PathBuf::from(command.get_program()).display(),
        command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    );
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{shown} can't be started"))?;
    if !output.status.success() {
        bail!("{shown}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
