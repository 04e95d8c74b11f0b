//! A plan as text: the verdict first, then why.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use windlass_api::conditions::Tri;
use windlass_overview::{Ended, Gate, Held, Member, Outlook, Subject, Verdict};
use windlass_plan::gate::State;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WAIT: Style = AnsiColor::Yellow.on_default();

/// For a terminal; whoever prints it elsewhere strips the colours.
pub fn text(outlook: &Outlook) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let mut line = |words: String| _ = writeln!(text, "{words}");
    line(title(outlook));
    line(conclusion(outlook));
    if let Some(held) = &outlook.blocked_by {
        line(format!("  {}", held.message));
        line(format!("  {DIM}to do:{DIM:#} {}", held.next_step));
    }
    members(&outlook.members, &mut line);
    steps(outlook, &mut line);
    moves(outlook, &mut line);
    gates(&outlook.gates, &mut line);
    if !outlook.notes.is_empty() {
        line(heading("Notes"));
    }
    for note in &outlook.notes {
        line(format!("  {}", note.text));
    }
    text
}

fn title(outlook: &Outlook) -> String {
    let way = match (&outlook.from, &outlook.to) {
        (Some(from), Some(to)) => format!("{} → {}", from.version, to.version),
        (None, Some(to)) => to.version.clone(),
        (_, None) => String::new(),
    };
    let back = if outlook.rolling_back { ", going back" } else { "" };
    let order = outlook.order.map(<&str>::from);
    let order = order.map(|order| format!("  {DIM}{order}{back}{DIM:#}")).unwrap_or_default();
    let Subject { namespace, name, system, .. } = &outlook.subject;
    format!("{BOLD}{namespace}/{name}{BOLD:#}  {system} {way}{order}")
}

fn conclusion(outlook: &Outlook) -> String {
    match outlook.verdict {
        Verdict::UpToDate => format!("{GOOD}Nothing to do{GOOD:#}: all members run what is wanted."),
        Verdict::CanBegin => format!("{GOOD}It can begin{GOOD:#}: nothing holds the first member now."),
        Verdict::UnderWay => format!("{GOOD}It is under way{GOOD:#}, and nothing holds the next member now."),
        Verdict::Blocked => {
            let reason = outlook.blocked_by.as_ref().map_or("", |held| held.reason.name());
            format!("{BAD}Blocked now: {reason}{BAD:#}")
        }
    }
}

fn members(members: &[Member], line: &mut impl FnMut(String)) {
    let Some(width) = members.iter().map(|member| member.pod.len()).max() else { return };
    line(heading("Members now"));
    for Member { pod, role, version, healthy, lag: _ } in members {
        let role = <&str>::from(role);
        let healthy = match healthy {
            Tri::True => "healthy",
            Tri::False => "not healthy",
            Tri::Unknown => "health not known",
        };
        let version = version.as_deref().unwrap_or("unknown");
        line(format!("  {pod:width$}  {role:8}  {version:10}  {healthy}"));
    }
}

fn steps(outlook: &Outlook, line: &mut impl FnMut(String)) {
    if outlook.steps.is_empty() {
        return;
    }
    line(heading("Steps"));
    for step in &outlook.steps {
        let mark = if step.disturbs { "●" } else { " " };
        if let Some(once) = &step.once {
            line(format!("       {DIM}once {once}{DIM:#}"));
        }
        for Held { message, .. } in &step.waits_for {
            line(format!("       {WAIT}waits for: {message}{WAIT:#}"));
        }
        line(format!("{:4} {mark} {}", step.number, step.text));
    }
    match &outlook.end {
        Ended::Held { hold } => line(format!("       {WAIT}and then it holds: {}{WAIT:#}", hold.message)),
        Ended::OutOfSight => line(format!("       {WAIT}and so on, further than is looked ahead{WAIT:#}")),
        Ended::Done => {}
    }
    if outlook.steps.iter().any(|step| step.disturbs) {
        line(format!("  {DIM}● takes a member down or moves leadership: every gate is asked again first{DIM:#}"));
    }
}

fn moves(outlook: &Outlook, line: &mut impl FnMut(String)) {
    if outlook.steps.is_empty() {
        return;
    }
    let times = match outlook.leadership_moves.len() {
        0 => "does not move".to_owned(),
        1 => "moves once".to_owned(),
        2 => "moves twice".to_owned(),
        times => format!("moves {times} times"),
    };
    line(heading(&format!("Leadership {times}")));
    for moved in &outlook.leadership_moves {
        let likely = if moved.chosen { "" } else { ", or to whoever is elected" };
        line(format!("  in step {}: from {} to {}{likely}", moved.step, moved.from, moved.to));
    }
}

fn gates(gates: &[Gate], line: &mut impl FnMut(String)) {
    if gates.is_empty() {
        return;
    }
    line(heading("Gates now"));
    let (passed, others): (Vec<&Gate>, Vec<&Gate>) = gates.iter().partition(|gate| gate.state == State::Passed);
    if !passed.is_empty() {
        let passed: Vec<&str> = passed.iter().map(|gate| gate.name.as_str()).collect();
        line(format!("  {DIM}passed{DIM:#}  {}", passed.join(", ")));
    }
    for Gate { name, state, message, overridable, .. } in others {
        let (style, word) = match state {
            State::Passed => (DIM, "passed"),
            State::Overridden => (WAIT, "overridden"),
            State::NotAsked => (WAIT, "not asked"),
            State::Unknown => (BAD, "unknown"),
            State::Holding => (BAD, "holds"),
        };
        let may = if *overridable { "may be overridden" } else { "can't be overridden" };
        let message = message.as_deref().unwrap_or_default();
        line(format!("  {style}{word:6}{style:#}  {BOLD}{name}{BOLD:#} ({may}): {message}"));
    }
}

fn heading(words: &str) -> String {
    format!("\n{BOLD}{words}{BOLD:#}")
}
