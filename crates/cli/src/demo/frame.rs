//! What the demo shows: one picture of the moment, and one line per thing that happens.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use serde_json::Value;
use windlass_api::phase::Phase;
use windlass_overview::{QuorumOverview, Subject};
use windlass_rehearsal::trial::is_ours;
use windlass_sim::journal::{Entry, Event, MemberTruth, QuorumTruth, Verb};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Cyan.on_default();

/// One picture.
pub struct Frame {
    title: String,
    members: Vec<[String; 4]>,
    styles: Vec<(Style, Style)>,
    status: Vec<(&'static str, String)>,
}

impl Frame {
    /// The moment: what the operator says of the resource, and how its members truly are.
    pub fn of(overview: &QuorumOverview, truth: Option<&QuorumTruth>, elapsed: Duration, speed: f64) -> Self {
        let to = overview.wanted.as_deref().unwrap_or_default();
        let members: Vec<&MemberTruth> = truth.iter().flat_map(|truth| &truth.members).collect();
        let done = members.iter().filter(|member| bare(&member.version) == to && member.healthy).count();
        let way = match (&overview.from, &overview.to) {
            (Some(from), Some(to)) => format!("{} → {}", from.version, to.version),
            (None, _) | (_, None) => overview.running.clone().unwrap_or_default(),
        };
        let Subject { namespace, name, system, .. } = &overview.subject;
        let title = format!(
            "{BOLD}{namespace}/{name}{BOLD:#}  {system} {way}  {} {done}/{}   {DIM}{} of cluster time, {speed}x{DIM:#}",
            bar(done, members.len()),
            members.len(),
            time(elapsed),
        );
        let row = |member: &&MemberTruth| {
            let role = if member.leader { "★ leader" } else { "  follower" };
            let health = if member.healthy { "healthy" } else { "down" };
            [member.pod.clone(), role.to_owned(), bare(&member.version).to_owned(), health.to_owned()]
        };
        let style = |member: &&MemberTruth| {
            (if bare(&member.version) == to { NEW } else { Style::new() }, if member.healthy { GOOD } else { BAD })
        };
        let waits = match &overview.said {
            Some(said) if said.ready => "nothing",
            Some(said) => said.message.split("; ").next().unwrap_or_default(),
            None => "",
        };
        let phase = overview.phase.map_or("", Phase::name);
        let step = overview.doing.as_ref().map_or("none", |doing| &doing.text);
        let status = [("state", phase), ("step", step), ("waits for", waits)];
        Self {
            title,
            styles: members.iter().map(style).collect(),
            members: members.iter().map(row).collect(),
            status: status.map(|(name, value)| (name, value.to_owned())).to_vec(),
        }
    }

    /// The picture as lines.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![String::new(), self.title.clone(), String::new()];
        lines.push(format!("  {DIM}{:<12} {:<12} {:<10} {}{DIM:#}", "MEMBER", "ROLE", "VERSION", "HEALTH"));
        for ([pod, role, version, health], (new, well)) in self.members.iter().zip(&self.styles) {
            lines.push(format!("  {pod:<12} {role:<12} {new}{version:<10}{new:#} {well}{health}{well:#}"));
        }
        lines.push(String::new());
        for (name, value) in &self.status {
            let value: String = value.chars().take(110).collect();
            lines.push(format!("  {DIM}{name:<10}{DIM:#} {value}"));
        }
        lines
    }
}

fn bar(done: usize, all: usize) -> String {
    const WIDTH: usize = 18;
    let full = (done * WIDTH).checked_div(all).unwrap_or(0);
    format!("{NEW}{}{NEW:#}{DIM}{}{DIM:#}", "█".repeat(full), "░".repeat(WIDTH - full))
}

fn bare(version: &str) -> &str {
    version.trim_start_matches('v')
}

/// Minutes and seconds.
pub fn time(elapsed: Duration) -> String {
    format!("{:02}:{:02}.{}", elapsed.as_secs() / 60, elapsed.as_secs() % 60, elapsed.subsec_millis() / 100)
}

/// What happened in a namespace, in a line; none for what nobody wants to read. The cluster began at `epoch`.
pub fn line(entry: &Entry, namespace: &str, epoch: Timestamp) -> Option<String> {
    let at = time(entry.at.duration_since(epoch).unsigned_abs());
    match &entry.event {
        Event::Quorum(truth) if truth.namespace == namespace => Some(format!("{at}     {}", members(truth))),
        Event::Write(change)
            if change.resource == "events"
                && change.namespace == namespace
                && is_ours(&change.user)
                && change.verb == Verb::Create =>
        {
            let event = change.after.as_deref()?;
            let field = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
            let note = event.get("note").or_else(|| event.get("message")).and_then(Value::as_str).unwrap_or_default();
            Some(format!("{at}  {BOLD}{}{BOLD:#}: {note}", field("reason")))
        }
        Event::Quorum(_) | Event::Write(_) | Event::Verb { .. } | Event::Note(_) => None,
    }
}

fn members(truth: &QuorumTruth) -> String {
    let member = |member: &MemberTruth| {
        let leader = if member.leader { "★" } else { " " };
        if member.version.is_empty() {
            return format!("{} starting", member.pod);
        }
        let well = if member.healthy { "" } else { " down" };
        format!("{}{leader}{}{well}", member.pod, bare(&member.version))
    };
    truth.members.iter().map(member).collect::<Vec<_>>().join("   ")
}
