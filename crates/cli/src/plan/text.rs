//! A plan as text: the verdict first, then why.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::report::{Held, Report, Verdict};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WAIT: Style = AnsiColor::Yellow.on_default();

impl Report {
    /// For a terminal; whoever prints it elsewhere strips the colours.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let mut line = |words: String| _ = writeln!(text, "{words}");
        line(self.title());
        line(self.conclusion());
        if let Some(held) = &self.blocked_by {
            line(format!("  {}", held.message));
            line(format!("  {DIM}to do:{DIM:#} {}", held.next_step));
        }
        self.members(&mut line);
        self.steps(&mut line);
        self.moves(&mut line);
        self.gates(&mut line);
        if !self.notes.is_empty() {
            line(heading("Notes"));
        }
        for note in &self.notes {
            line(format!("  {}", note.text));
        }
        text
    }

    fn title(&self) -> String {
        let way = match (&self.from, &self.to) {
            (Some(from), Some(to)) => format!("{} → {}", from.version, to.version),
            (None, Some(to)) => to.version.clone(),
            (_, None) => String::new(),
        };
        let back = if self.reverting { ", going back" } else { "" };
        let order = self.order.map(|order| format!("  {DIM}{order}{back}{DIM:#}")).unwrap_or_default();
        format!("{BOLD}{}/{}{BOLD:#}  {} {way}{order}", self.namespace, self.name, self.system)
    }

    fn conclusion(&self) -> String {
        match self.verdict {
            Verdict::UpToDate => format!("{GOOD}Nothing to do{GOOD:#}: all members run what is wanted."),
            Verdict::CanBegin => format!("{GOOD}It can begin{GOOD:#}: nothing holds the first member now."),
            Verdict::UnderWay => format!("{GOOD}It is under way{GOOD:#}, and nothing holds the next member now."),
            Verdict::Blocked => {
                let reason = self.blocked_by.as_ref().map_or("", |held| held.reason);
                format!("{BAD}Blocked now: {reason}{BAD:#}")
            }
        }
    }

    fn members(&self, line: &mut impl FnMut(String)) {
        let Some(width) = self.members.iter().map(|member| member.pod.len()).max() else { return };
        line(heading("Members now"));
        for member in &self.members {
            let healthy = match member.healthy.as_str() {
                "True" => "healthy",
                "False" => "not healthy",
                _ => "health not known",
            };
            let version = member.version.as_deref().unwrap_or("unknown");
            line(format!("  {:width$}  {:8}  {version:10}  {healthy}", member.pod, member.role));
        }
    }

    fn steps(&self, line: &mut impl FnMut(String)) {
        if self.steps.is_empty() {
            return;
        }
        line(heading("Steps"));
        for step in &self.steps {
            let mark = if step.disturbs { "●" } else { " " };
            if let Some(once) = &step.once {
                line(format!("       {DIM}once {once}{DIM:#}"));
            }
            for Held { message, .. } in &step.waits_for {
                line(format!("       {WAIT}waits for: {message}{WAIT:#}"));
            }
            line(format!("{:4} {mark} {}", step.number, step.text));
        }
        match (self.end.result, &self.end.hold) {
            (_, Some(held)) => line(format!("       {WAIT}and then it holds: {}{WAIT:#}", held.message)),
            ("OutOfSight", None) => line(format!("       {WAIT}and so on, further than is looked ahead{WAIT:#}")),
            (_, None) => {}
        }
        if self.steps.iter().any(|step| step.disturbs) {
            line(format!("  {DIM}● takes a member down or moves leadership: every gate is asked again first{DIM:#}"));
        }
    }

    fn moves(&self, line: &mut impl FnMut(String)) {
        if self.steps.is_empty() {
            return;
        }
        let times = match self.leadership_moves.len() {
            0 => "does not move".to_owned(),
            1 => "moves once".to_owned(),
            2 => "moves twice".to_owned(),
            times => format!("moves {times} times"),
        };
        line(heading(&format!("Leadership {times}")));
        for moved in &self.leadership_moves {
            let likely = if moved.chosen { "" } else { ", or to whoever is elected" };
            line(format!("  in step {}: from {} to {}{likely}", moved.step, moved.from, moved.to));
        }
    }

    fn gates(&self, line: &mut impl FnMut(String)) {
        if self.gates.is_empty() {
            return;
        }
        line(heading("Gates now"));
        let passed: Vec<&str> = self
            .gates
            .iter()
            .filter(|gate| gate.status.state == "Passed")
            .map(|gate| gate.status.name.as_str())
            .collect();
        if !passed.is_empty() {
            line(format!("  {DIM}passed{DIM:#}  {}", passed.join(", ")));
        }
        for gate in self.gates.iter().filter(|gate| gate.status.state != "Passed") {
            let (style, word) = match gate.status.state.as_str() {
                "Overridden" => (WAIT, "overridden"),
                "NotAsked" => (WAIT, "not asked"),
                "Unknown" => (BAD, "unknown"),
                _ => (BAD, "holds"),
            };
            let may = if gate.overridable { "may be overridden" } else { "can't be overridden" };
            let message = gate.status.message.as_deref().unwrap_or_default();
            line(format!("  {style}{word:6}{style:#}  {BOLD}{}{BOLD:#} ({may}): {message}", gate.status.name));
        }
    }
}

fn heading(words: &str) -> String {
    format!("\n{BOLD}{words}{BOLD:#}")
}
