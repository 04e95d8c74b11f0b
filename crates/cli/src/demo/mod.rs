//! `windlass demo`: a PD cluster upgraded by the real operator, on a cluster inside this process.

mod frame;
mod keep;
mod pace;
mod summary;

use std::{
    cell::RefCell,
    io::{IsTerminal, Write},
    process::ExitCode,
    rc::Rc,
    time::Duration,
};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokio::task::LocalSet;
use windlass_rehearsal::{operator, pd};
use windlass_sim::{clock::Clock, faults::Process, harness::Cluster, world::Settings};

use crate::demo::{frame::Frame, summary::Summary};

const FROM: &str = "8.5.0";
const TO: &str = "8.5.3";
/// Cluster time after which something must be wrong.
const PATIENCE: Duration = Duration::from_mins(30);

/// How the demo is shown.
#[derive(Args)]
pub struct Arguments {
    /// How many times faster than real time
    #[arg(long, default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// Which seed decides everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Plain lines instead of a live picture; chosen by itself when the output is no terminal
    #[arg(long)]
    no_tty: bool,
    /// Print a summary for machines on the last line
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// Leave the cluster running afterwards, and print a kubeconfig for it
    #[arg(long)]
    keep: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && (0.1..=100_000.0).contains(&speed) => Ok(speed),
        Ok(_) => Err("must be between 0.1 and 100000".into()),
        Err(error) => Err(error.to_string()),
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    LocalSet::new().block_on(&runtime, play(arguments))
}

async fn play(arguments: &Arguments) -> Result<ExitCode> {
    let clock = if arguments.keep { Clock::start_at(keep::epoch()) } else { Clock::start() };
    let cluster = Cluster::with(arguments.seed, clock, Settings::default());
    let pace = Rc::new(RefCell::new(arguments.speed));
    tokio::task::spawn_local(cluster.world.clone().run());
    tokio::task::spawn_local(pace::keep(pace.clone()));
    let mut show = Show::new(arguments, &cluster);

    for object in pd::objects(3, FROM, FROM) {
        if let Err(status) = cluster.api.create_value("user", object) {
            bail!("the embedded cluster refused an object: {status}");
        }
    }
    show.say(&format!("three nodes, and a PD cluster of three members at {FROM}"))?;
    let process = Process::new("windlass-0-0", cluster.clock, cluster.journal.clone(), arguments.seed);
    let seat = cluster.seat(&process);
    tokio::task::spawn_local(async move { process.live(operator(seat)).await });

    let ready = show.follow(FROM).await?;
    if ready {
        show.say(&format!("somebody sets spec.version to {TO}"))?;
        let patch = json!({"spec": {"version": TO}});
        if let Err(why) = windlass_sim::harness::patch_value(&cluster.api, &pd::subject(), &patch) {
            bail!("the embedded cluster refused the new version: {why}");
        }
        show.follow(TO).await?;
    }
    let summary = Summary::of(&cluster, FROM, TO);
    show.finish()?;
    let mut out = anstream::stdout().lock();
    match arguments.output {
        Some(Output::Json) => writeln!(out, "{}", summary.json()?)?,
        None => write!(out, "{}", summary.text())?,
    }
    drop(out);
    if arguments.keep {
        keep::keep(&cluster, &pace).await?;
    }
    Ok(if summary.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the person at the terminal sees.
struct Show<'a> {
    cluster: &'a Cluster,
    speed: f64,
    live: bool,
    quiet: bool,
    /// How much of the journal was told.
    told: usize,
    /// How many lines the last picture had.
    height: usize,
    last: String,
}

impl<'a> Show<'a> {
    fn new(arguments: &Arguments, cluster: &'a Cluster) -> Self {
        let quiet = arguments.output == Some(Output::Json);
        let live = !arguments.no_tty && !quiet && std::io::stdout().is_terminal();
        Self { cluster, speed: arguments.speed, live, quiet, told: 0, height: 0, last: String::new() }
    }

    /// Shows the cluster until all members run this version and the operator says so; false when that does not happen.
    async fn follow(&mut self, version: &str) -> Result<bool> {
        let deadline = self.cluster.clock.elapsed() + PATIENCE;
        while self.cluster.clock.elapsed() < deadline {
            // Ten pictures a second of the person's time, at least five looks a second of the cluster's.
            let step =
                if self.live { Duration::from_millis(100).mul_f64(self.speed) } else { Duration::from_millis(200) };
            tokio::time::sleep(step.max(Duration::from_millis(20))).await;
            self.refresh()?;
            if self.subject().is_some_and(|subject| is_at(&subject, version)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn subject(&self) -> Option<Value> {
        let subject = pd::subject();
        self.cluster.api.get_value(&subject.resource, &subject.namespace, &subject.name).map(|object| (*object).clone())
    }

    fn refresh(&mut self) -> Result<()> {
        if self.quiet {
            return Ok(());
        }
        let lines = {
            let journal = self.cluster.journal.entries();
            let epoch = self.cluster.clock.epoch();
            let fresh = journal.iter().skip(self.told);
            let lines: Vec<String> = fresh.filter_map(|entry| frame::line(entry, epoch)).collect();
            self.told = journal.len();
            lines
        };
        if self.live {
            return self.draw(&lines);
        }
        let mut out = anstream::stdout().lock();
        for line in lines {
            // The same state twice, as when a follower's lag changes, is no news.
            if line.get(9..) != self.last.get(9..) {
                writeln!(out, "{line}")?;
            }
            self.last = line;
        }
        Ok(())
    }

    /// Draws the picture over the last one, the news scrolling away above it.
    fn draw(&mut self, news: &[String]) -> Result<()> {
        let Some(subject) = self.subject() else { return Ok(()) };
        let frame = Frame::of(&subject, &self.cluster.world.truths(), self.cluster.clock.elapsed(), self.speed);
        let mut out = anstream::stdout().lock();
        if self.height > 0 {
            write!(out, "\x1b[{}A\x1b[J", self.height)?;
        }
        for line in news {
            writeln!(out, "{line}")?;
        }
        let lines = frame.lines();
        for line in &lines {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        self.height = lines.len();
        Ok(())
    }

    fn say(&mut self, what: &str) -> Result<()> {
        self.refresh()?;
        if self.quiet {
            return Ok(());
        }
        let line = format!("{}  -- {what}", frame::time(self.cluster.clock.elapsed()));
        if self.live {
            return self.draw(&[line]);
        }
        writeln!(anstream::stdout().lock(), "{line}")?;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.refresh()
    }
}

fn is_at(subject: &Value, version: &str) -> bool {
    let ready = subject.pointer("/status/conditions/0").is_some_and(|ready| {
        ready["type"] == "Ready"
            && ready["status"] == "True"
            && ready["observedGeneration"] == subject["metadata"]["generation"]
    });
    ready
        && subject.pointer("/status/currentVersion") == Some(&Value::from(version))
        && subject.pointer("/status/upgrade").is_none()
}
