//! The fleet at one moment: a line of cells for each tier, what it waits for, and what of it is worth telling.

use std::{sync::Arc, time::Duration};

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use windlass_api::Word;
use windlass_overview::{self as overview, FleetOverview, TierState};
use windlass_plan::Reason;
use windlass_rehearsal::stamping::reading::tier_of;

use super::map::{PARTLY, Standing, cells, per_cell};
use crate::demo::frame::time;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const NEW: Style = AnsiColor::Cyan.on_default();
/// The columns beside the cells: a name, how many are done, how many are on their way, and what a tier waits for in a word or two.
const NAME: usize = 11;
const DONE: usize = 6;
const WAY: usize = 4;
const WAITS: usize = 15;
/// All but the cells, with what is between them.
const BESIDE: usize = 2 + NAME + 1 + DONE + WAY + 1 + WAITS;
/// The fewest cells, whatever the terminal: it cuts off what has no room.
const CELLS: usize = 10;
/// The lines for what all of it waits for: always as many, or the picture would jump.
const LINES: usize = 2;

/// What is worth a line of its own. Each is told once for a tier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Its turn has come.
    Begun,
    /// So many of its shares that go first are done, and the next one must be well for a while.
    Soaking(i64),
    /// Half of it is up to date.
    Half,
    /// Nothing moves before a person looks.
    Halted,
    /// It is done.
    Complete,
}

/// A tier as it is and as the operator says that it is.
pub struct Tier {
    /// The value of the label.
    pub name: String,
    /// Each of its resources, by name.
    pub standings: Vec<Standing>,
    /// In words: what its condition gives as the reason.
    waits: String,
    /// What is worth telling now.
    pub mark: Option<Mark>,
}

impl Tier {
    fn of(said: &overview::Tier, stalled: bool, fleet: &Value, resources: &[Arc<Value>]) -> Self {
        let is_this = |tier: &Value| tier["upgradeTier"].as_str().unwrap_or_default() == said.name;
        let is_mine = |resource: &Value| tier_of(fleet, resource).is_some_and(is_this);
        let mine = resources.iter().filter(|resource| is_mine(resource));
        let mut tier = Self {
            name: said.name.clone(),
            standings: mine.map(|resource| Standing::of(resource, &said.image)).collect(),
            waits: said.word.as_ref().map(waits_for).unwrap_or_default(),
            mark: None,
        };
        tier.mark = match said.state {
            TierState::Complete => Some(Mark::Complete),
            TierState::NotSeen | TierState::Waiting => None,
            TierState::InProgress if stalled => Some(Mark::Halted),
            TierState::InProgress if said.word == Some(Reason::Soaking.into()) => Some(Mark::Soaking(said.shares_done)),
            TierState::InProgress if tier.count(Standing::Done) * 2 >= tier.managed() => Some(Mark::Half),
            TierState::InProgress => Some(Mark::Begun),
        };
        tier
    }

    /// How many stand like this.
    pub fn count(&self, standing: Standing) -> usize {
        self.standings.iter().filter(|one| **one == standing).count()
    }

    /// How many are the operator's to change.
    pub fn managed(&self) -> usize {
        self.standings.len() - self.count(Standing::Manual)
    }

    /// What there is to tell of it, in a line.
    fn news(&self, mark: &Mark) -> String {
        let (name, done, all) = (spoken(&self.name), self.count(Standing::Done), self.managed());
        match mark {
            Mark::Begun => format!("{name} begins: {all} resources"),
            Mark::Soaking(_) => format!("{name} soaks: {done} of {all} go first"),
            Mark::Half => format!("{name} goes on: {done} of {all} are up to date"),
            Mark::Halted => format!("{name} is halted: {done} of {all} are up to date"),
            Mark::Complete => format!("{name} is up to date: {done} of {all}"),
        }
    }
}

/// The name of a tier as the operator speaks of it.
fn spoken(name: &str) -> String {
    if name.is_empty() { "the empty tier".to_owned() } else { format!("tier {name}") }
}

/// What a tier with this reason waits for: `InFlightLimit` is the `in flight limit`, and `AwaitingApproval` an `approval`.
fn waits_for(word: &Word) -> String {
    let name = match word {
        Word::UpToDate | Word::Stamping => "-",
        Word::Waiting => "its turn",
        Word::Held(_) | Word::Step(_) | Word::Strange(_) => word.name(),
    };
    let mut words = String::new();
    for letter in name.strip_prefix("Awaiting").unwrap_or(name).chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// The fleet at one moment.
pub struct Picture {
    title: String,
    /// Highest priority first.
    pub tiers: Vec<Tier>,
    waits: String,
    /// The operator says that everything is up to date, and of the newest spec.
    pub is_complete: bool,
}

impl Picture {
    /// The moment: what the operator says of the fleet, and how its resources are. `way` is what it is on.
    pub fn of(fleet: &Value, resources: &[Arc<Value>], way: &str) -> Self {
        let overview = FleetOverview::read(fleet);
        let said = overview.said.as_ref();
        let stalled = said.is_some_and(|said| said.stalled);
        let waits = match said {
            _ if overview.complete => "nothing".to_owned(),
            None => String::new(),
            Some(said) if said.word == Word::Stamping => format!("nothing: {}", said.message),
            Some(said) if stalled => said.sentence(),
            // What to do about it is only of interest where a person must.
            Some(said) => said.message.split("; ").next().unwrap_or_default().to_owned(),
        };
        Self {
            title: format!("{BOLD}{}{BOLD:#}  {way}", overview.name),
            tiers: overview.tiers.iter().map(|tier| Tier::of(tier, stalled, fleet, resources)).collect(),
            waits,
            is_complete: overview.complete,
        }
    }

    /// How many stand like this.
    pub fn count(&self, standing: Standing) -> usize {
        self.tiers.iter().map(|tier| tier.count(standing)).sum()
    }

    /// How many are the operator's to change.
    pub fn managed(&self) -> usize {
        self.tiers.iter().map(Tier::managed).sum()
    }

    /// Everybody is up to date, and the operator says so.
    pub fn is_done(&self) -> bool {
        self.is_complete && self.count(Standing::Done) == self.managed()
    }

    /// What is worth telling and was not told yet, in lines; `told` keeps it.
    pub fn news(&self, told: &mut std::collections::BTreeSet<(String, Mark)>) -> Vec<String> {
        let fresh = self.tiers.iter().filter_map(|tier| Some((tier, tier.mark.as_ref()?)));
        fresh
            .filter(|(tier, mark)| told.insert((tier.name.clone(), (*mark).clone())))
            .map(|(tier, mark)| tier.news(mark))
            .collect()
    }

    /// The whole picture as lines that fit into so many columns.
    pub fn lines(&self, elapsed: Duration, speed: f64, width: usize) -> Vec<String> {
        let bar = bar(self.count(Standing::Done), self.managed());
        let count = format!("{}/{}", self.count(Standing::Done), self.managed());
        let title = format!("{}  {bar} {count}   {DIM}{} of cluster time, {speed}x{DIM:#}", self.title, time(elapsed));
        let mut lines = vec![String::new(), title, String::new()];
        lines.extend(self.map(width));
        lines.push(String::new());
        lines.extend(self.waits(width));
        lines
    }

    /// A line of cells for each tier, between a head and a legend.
    pub fn map(&self, width: usize) -> Vec<String> {
        let room = width.saturating_sub(BESIDE).max(CELLS);
        let longest = self.tiers.iter().map(|tier| tier.standings.len()).max().unwrap_or(0);
        let per_cell = per_cell(longest, room);
        let scale = match per_cell {
            1 => "a cell is a resource".to_owned(),
            many => format!("a cell is {many} resources, {} some are done", PARTLY.0),
        };
        let wide = longest.div_ceil(per_cell).max(scale.chars().count()).min(room);
        let line = |name: &str, cells: &str, blank: usize, [done, way, waits]: [&str; 3]| {
            let (name, blank, waits) = (fit(name, NAME), " ".repeat(blank), fit(waits, WAITS));
            format!("  {name:<NAME$} {cells}{blank}{done:>DONE$}{way:>WAY$} {waits}")
        };
        let row = |tier: &Tier| {
            let cells = cells(&tier.standings, per_cell);
            let name = if tier.name.is_empty() { "(empty)" } else { &tier.name };
            let done = format!("{}/{}", tier.count(Standing::Done), tier.managed());
            let way = tier.count(Standing::Moving).to_string();
            let blank = wide.saturating_sub(cells.len());
            line(name, &painted(&cells), blank, [&done, if way == "0" { "" } else { &way }, &tier.waits])
        };
        let scale = fit(&scale, wide);
        let head = line("TIER", &scale, wide.saturating_sub(scale.chars().count()), ["DONE", "WAY", "WAITS FOR"]);
        let head = format!("{DIM}{head}{DIM:#}");
        let legend = Standing::ALL.map(|standing| {
            let cell = painted(&[standing.glyph()]);
            format!("{cell} {} {}", self.count(standing), standing.name())
        });
        let rows = self.tiers.iter().map(row);
        [head].into_iter().chain(rows).chain([format!("  {:<NAME$} {}", "", legend.join("  "))]).collect()
    }

    /// What it waits for, in as many lines as there always are.
    pub fn waits(&self, width: usize) -> Vec<String> {
        let mut lines = wrapped(&self.waits, width.saturating_sub(3 + NAME));
        lines.resize(LINES, String::new());
        let line = |(number, line): (usize, &String)| match number {
            0 => format!("  {DIM}{:<NAME$}{DIM:#} {line}", "waits for"),
            _ => format!("  {:<NAME$} {line}", ""),
        };
        lines.iter().enumerate().map(line).collect()
    }
}

fn bar(done: usize, all: usize) -> String {
    const WIDTH: usize = 12;
    let full = (done * WIDTH).checked_div(all).unwrap_or(0);
    format!("{NEW}{}{NEW:#}{DIM}{}{DIM:#}", "█".repeat(full), "░".repeat(WIDTH - full))
}

/// Cells of one style one after the other are painted at once.
fn painted(cells: &[(char, Style)]) -> String {
    let run = |run: &[(char, Style)]| {
        let style = run.first().map(|(_, style)| *style).unwrap_or_default();
        let glyphs: String = run.iter().map(|(glyph, _)| *glyph).collect();
        format!("{style}{glyphs}{style:#}")
    };
    cells.chunk_by(|(_, one), (_, other)| one == other).map(run).collect()
}

/// The text, cut where it is too long.
fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The words in lines; what does not fit into the last one is cut.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len();
        let Some(line) = lines.last_mut() else { break };
        let fits = line.is_empty() || line.chars().count() + 1 + word.chars().count() <= width;
        if fits || last == LINES {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|line| fit(line, width)).collect()
}
