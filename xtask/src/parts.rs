//! The parts of `cargo xtask test`: what each runs, what it costs, and one closing line for each.

use std::{
    process::{Command, ExitCode},
    thread,
    time::Instant,
};

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use crate::{
    citations, dependencies, generate, purity,
    shell::{self, cargo, last_words, program, program_code, run_program},
    structure,
};

/// What a part came to.
enum Outcome {
    /// So many checks passed; the words say what they were.
    Passed(usize, String),
    /// It could not be run here, and why.
    Skipped(String),
}

/// A part of the test.
struct Part {
    name: &'static str,
    budget: Budget,
    run: fn() -> Result<Outcome>,
}

/// What a part may take on two cores, in minutes. 45 and 15 are aimed at in all without `--full`, and not reached: `--list` adds them up.
struct Budget {
    /// Nothing was ever built here.
    cold: u32,
    /// What earlier runs built is kept outside the clone.
    cached: u32,
}

const fn minutes(cold: u32, cached: u32) -> Budget {
    Budget { cold, cached }
}

/// Lanes that run side by side, each with parts that run one after another.
type Stage = &'static [&'static [Part]];

/// What runs after one another, in lanes that run side by side. On a real cluster much is waiting; only where timing is judged does
/// nothing run beside it.
const STAGES: &[Stage] = &[
    &[&[
        Part { name: "format", budget: minutes(1, 0), run: format },
        Part { name: "lints", budget: minutes(3, 1), run: lints },
        Part {
            name: "purity",
            budget: minutes(1, 0),
            run: || purity::check().map(|count| Outcome::Passed(count, "dependencies of plan".into())),
        },
        Part { name: "structure", budget: minutes(0, 0), run: structured },
        Part {
            name: "citations",
            budget: minutes(0, 0),
            run: || citations::check().map(|count| Outcome::Passed(count, "numbers cited".into())),
        },
        Part {
            name: "dependencies",
            budget: minutes(0, 0),
            run: || dependencies::check().map(|count| Outcome::Passed(count, "dependencies, each of them used".into())),
        },
        Part { name: "generated", budget: minutes(1, 0), run: generated },
        Part { name: "licences", budget: minutes(1, 0), run: licences },
        Part { name: "unit", budget: minutes(12, 5), run: unit },
        Part { name: "without-sim", budget: minutes(1, 0), run: without_sim },
        Part { name: "demo", budget: minutes(1, 1), run: demo },
    ]],
    &[
        &[
            Part {
                name: "crash",
                budget: minutes(2, 2),
                run: || rehearse("crash", &["--reads", "16", "--points", "1000"]),
            },
            Part { name: "walks", budget: minutes(3, 3), run: || rehearse("walks", &["--seeds", "500"]) },
            Part {
                name: "fleets",
                budget: minutes(3, 3),
                run: || rehearse("fleets", &["--seeds", "500", "--points", "120"]),
            },
            // Those that a whole cluster shows; the others are noticed by stories among the unit tests.
            Part { name: "bugs", budget: minutes(6, 6), run: || rehearse("bugs", &[]) },
        ],
        &[
            Part { name: "tools", budget: minutes(14, 0), run: || real("cluster", &["build"]) },
            Part { name: "kubectl", budget: minutes(1, 1), run: kubectl },
            Part { name: "conformance", budget: minutes(4, 4), run: || real("conformance", &["--ci"]) },
            Part { name: "deviations", budget: minutes(3, 3), run: || real("conformance", &["--deviations"]) },
        ],
    ],
    &[&[Part { name: "e2e", budget: minutes(8, 6), run: e2e }]],
];

/// What `--full` runs besides: too long for every change.
const FULL: &[Stage] = &[
    &[&[
        Part { name: "every-crash", budget: minutes(60, 60), run: || rehearse("crash", &["--reads", "4"]) },
        Part { name: "long-walks", budget: minutes(90, 90), run: || rehearse("walks", &["--seeds", "20000"]) },
        Part { name: "long-fleets", budget: minutes(20, 20), run: || rehearse("fleets", &["--seeds", "5000"]) },
    ]],
    &[&[
        Part { name: "whole-api", budget: minutes(25, 25), run: || real("conformance", &[]) },
        Part { name: "applications", budget: minutes(5, 5), run: || real("conformance", &["--applications"]) },
        // The same scenarios with the image that is shipped: static, and without the embedded cluster.
        Part { name: "shipped", budget: minutes(13, 7), run: || real("e2e", &["--down"]) },
        // All whose names begin so: also those that CI leaves out.
        Part { name: "etcd", budget: minutes(30, 30), run: || real("e2e", &["etcd", "--down"]) },
        Part { name: "openbao", budget: minutes(15, 15), run: || real("e2e", &["openbao", "--down"]) },
        Part { name: "pd", budget: minutes(15, 15), run: || real("e2e", &["pd", "--down"]) },
    ]],
];

fn parts(stages: &[Stage]) -> impl Iterator<Item = &'static Part> {
    stages.iter().copied().flatten().copied().flatten()
}

/// Runs the parts and closes with a line for each.
pub fn run(filter: Option<&str>, full: bool, list: bool) -> Result<ExitCode> {
    let stages = if full { [STAGES, FULL].concat() } else { STAGES.to_vec() };
    if list {
        println!("{:<12} {:>8} {:>8}", "minutes", "cold", "cached");
        for Part { name, budget, .. } in parts(&stages) {
            println!("{name:<12} {:>8} {:>8}", budget.cold, budget.cached);
        }
        let all = |column: fn(&Budget) -> u32| stages.iter().map(|stage| slowest(stage, column)).sum::<u32>();
        println!("{:<12} {:>8} {:>8}", "all", all(|budget| budget.cold), all(|budget| budget.cached));
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = |part: &Part| filter.is_none_or(|filter| part.name.contains(filter));
    if !parts(&stages).any(chosen) {
        bail!("no part is called that; cargo xtask test --full --list shows them");
    }
    let mut closing = Vec::new();
    for stage in &stages {
        let lanes: Vec<Vec<&Part>> =
            stage.iter().map(|lane| lane.iter().filter(|part| chosen(part)).collect()).collect();
        let labelled = lanes.iter().filter(|lane| !lane.is_empty()).count() > 1;
        closing.extend(thread::scope(|scope| {
            let lanes = lanes.iter().map(|lane| scope.spawn(move || run_lane(lane, labelled)));
            let lanes: Vec<_> = lanes.collect();
            lanes
                .into_iter()
                .flat_map(|lane| lane.join().unwrap_or_else(|_| vec![Ended::panicked()]))
                .collect::<Vec<_>>()
        }));
    }
    println!("\n== summary");
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for Ended { line, count } in &closing {
        println!("{line}");
        match count {
            Count::Passed(count) => passed += count,
            Count::Failed => failed += 1,
            Count::Skipped => skipped += 1,
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    if !full && filter.is_none() {
        let left: Vec<_> = parts(FULL).map(|part| part.name).collect();
        println!("not run: {}; cargo xtask test --full runs them, too", left.join(", "));
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The lane that takes longest.
fn slowest(stage: &[&[Part]], column: fn(&Budget) -> u32) -> u32 {
    stage.iter().map(|lane| lane.iter().map(|part| column(&part.budget)).sum()).max().unwrap_or(0)
}

/// How a part ended.
struct Ended {
    line: String,
    count: Count,
}

enum Count {
    Passed(usize),
    Failed,
    Skipped,
}

impl Ended {
    fn panicked() -> Self {
        Self { line: "a lane FAILED  it panicked".to_owned(), count: Count::Failed }
    }
}

fn run_lane(lane: &[&Part], labelled: bool) -> Vec<Ended> {
    lane.iter().map(|part| run_part(part, labelled)).collect()
}

fn run_part(part: &Part, labelled: bool) -> Ended {
    if labelled {
        shell::label(part.name);
    }
    println!("== {}", part.name);
    let start = Instant::now();
    let outcome = (part.run)();
    let seconds = start.elapsed().as_secs();
    let (line, count) = match outcome {
        Ok(Outcome::Passed(count, what)) => {
            (format!("{:<12} ok       {count} {what} ({seconds} s)", part.name), Count::Passed(count))
        }
        Ok(Outcome::Skipped(why)) => (format!("{:<12} SKIPPED  {why}", part.name), Count::Skipped),
        Err(error) => (format!("{:<12} FAILED   {error:#} ({seconds} s)", part.name), Count::Failed),
    };
    println!("{line}");
    Ended { line, count }
}

fn format() -> Result<Outcome> {
    cargo(&["fmt", "--all", "--check"])?;
    Ok(Outcome::Passed(1, "workspace formatted".into()))
}

fn lints() -> Result<Outcome> {
    cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    Ok(Outcome::Passed(1, "workspace without a warning".into()))
}

fn structured() -> Result<Outcome> {
    let structure::Checked { modules, rooms, sources } = structure::check()?;
    for (name, lines) in structure::lines()? {
        println!("{name:<12} {lines:>6} lines");
    }
    let what = "modules of plan and rooms of operator, no two of which use each other, and sources of sim, none of which names what is ours";
    Ok(Outcome::Passed(modules + rooms + sources, what.into()))
}

fn generated() -> Result<Outcome> {
    generate::run(true)?;
    Ok(Outcome::Passed(generate::files()?.len(), "files up to date".into()))
}

fn licences() -> Result<Outcome> {
    let mut deny = Command::new(shell::cargo_deny()?);
    deny.args(["--log-level", "error", "check", "bans", "licenses", "sources"]).current_dir(shell::root());
    let (code, text) = shell::run(&mut deny, "cargo-deny check")?;
    ensure!(code == 0, "cargo-deny objects{}", last_words(&text));
    Ok(Outcome::Passed(3, "checks of cargo-deny".into()))
}

fn unit() -> Result<Outcome> {
    let output = cargo(&["test", "--quiet", "--workspace"])?;
    let (mut passed, mut ignored) = (0, 0);
    for line in output.lines().filter_map(|line| line.strip_prefix("test result: ok. ")) {
        let count = |word: &str| {
            let field = line.split("; ").find(|field| field.ends_with(word));
            field.and_then(|field| field.split(' ').next()).and_then(|number| number.parse::<usize>().ok()).unwrap_or(0)
        };
        passed += count("passed");
        ignored += count("ignored");
    }
    ensure!(passed > 0, "no test ran");
    Ok(Outcome::Passed(passed, format!("tests, {ignored} ignored")))
}

fn without_sim() -> Result<Outcome> {
    cargo(&["check", "--quiet", "--package", "windlass", "--no-default-features"])?;
    let tree = cargo(&[
        "tree",
        "--quiet",
        "--package",
        "windlass",
        "--no-default-features",
        "--edges",
        "normal,features",
        "--prefix",
        "none",
    ])?;
    ensure!(tree.contains("windlass-plan"), "this is not the operator's build: {tree}");
    for (name, what) in
        [("windlass-sim", "the embedded cluster"), ("dicom", "the example"), ("seeded-bugs", "planted mistakes")]
    {
        ensure!(!tree.contains(name), "the operator's build depends on {what}");
    }
    Ok(Outcome::Passed(1, "build of the operator alone".into()))
}

fn demo() -> Result<Outcome> {
    let shown = run_program("windlass", &["demo", "--speed", "1000", "--no-tty"])?;
    let quorums = ["It can begin", "Leadership moves", "let Kubernetes replace pd-2", "delete pod openbao-2"];
    let fleet = ["tier earlyAccess soaks: 2 of 20 go first", "██ 80/80", "m 3 manual"];
    for words in quorums.iter().chain(&fleet) {
        ensure!(shown.contains(words), "the demo does not say {words:?}");
    }
    // How many are on their way at the moments that are shown depends on the machine.
    let moving = |line: &str| line.contains("on the way") && !line.contains("▒ 0 on the way");
    ensure!(shown.lines().any(moving), "the demo shows no resource on its way");
    let output = run_program("windlass", &["demo", "--speed", "1000", "-o", "json"])?;
    let summary: Value = serde_json::from_str(output.lines().last().unwrap_or_default())?;
    let upgrades = summary["upgrades"].as_array().map(Vec::as_slice).unwrap_or_default();
    let systems: Vec<&str> = upgrades.iter().filter_map(|upgrade| upgrade["system"].as_str()).collect();
    ensure!(systems == ["Pd", "OpenBao"], "not the systems that should be shown: {systems:?}");
    for upgrade in upgrades {
        ensure!(upgrade["result"] == "Done", "the upgrade did not end: {upgrade}");
        ensure!(upgrade["leaderRestarts"] == 0, "a leader was restarted: {upgrade}");
        let moves = upgrade["leadershipMoves"].as_u64();
        ensure!(moves.is_some_and(|moves| moves <= 2), "leadership moved too often: {upgrade}");
        ensure!(
            upgrade["foreseen"]["steps"].as_u64().is_some_and(|steps| steps > 0)
                && upgrade["foreseen"]["leadershipMoves"].as_u64() == moves,
            "the plan foresaw something else: {upgrade}"
        );
        ensure!(
            upgrade["minHealthy"].as_u64().is_some_and(|healthy| healthy >= 2),
            "too few members were healthy: {upgrade}"
        );
    }
    let fleets = summary["fleets"].as_array().map(Vec::as_slice).unwrap_or_default();
    ensure!(fleets.len() == 1, "not the fleet that should be shown: {summary}");
    for fleet in fleets {
        ensure!(fleet["result"] == "Done" && fleet["updated"] == 200, "the fleet did not end: {fleet}");
        ensure!(fleet["stamped"] == 200 && fleet["writesPerResource"] == 1, "one write for each is enough: {fleet}");
        ensure!(fleet["manual"] == 3, "those whose image a person chose are not left alone: {fleet}");
        ensure!(fleet["violations"] == 0, "it was out of order: {fleet}");
        ensure!(fleet["minServing"] == 203, "somebody did not serve for a while: {fleet}");
    }
    ensure!(
        summary["violations"] == 0 && summary["checked"].as_u64().is_some_and(|checked| checked > 0),
        "violations: {summary}"
    );
    Ok(Outcome::Passed(upgrades.len() + fleets.len(), "upgrades shown and judged".into()))
}

/// A command on a real cluster. Where the machine lacks what it needs, it says so on its last line.
fn real(command: &str, words: &[&str]) -> Result<Outcome> {
    let words: Vec<&str> = [command].iter().chain(words).copied().collect();
    let (code, output) = program_code("windlass-e2e", &words)?;
    let line = output.lines().last().unwrap_or_default();
    match code {
        0 => counted(command, line),
        3 => Ok(Outcome::Skipped(line.to_owned())),
        code => bail!("windlass-e2e {} failed with {code}{}", words.join(" "), last_words(&output)),
    }
}

/// The real kubectl on the demo that is built already.
fn kubectl() -> Result<Outcome> {
    let demo = program("windlass")?;
    real("kubectl", &["--program", &demo.to_string_lossy()])
}

/// CI's share of the scenarios, with the operator that is built already.
fn e2e() -> Result<Outcome> {
    let operator = program("windlass")?;
    real("e2e", &["--down", "--program", &operator.to_string_lossy()])
}

/// One suite of the rehearsal, as it is built already; its last line says what it tried.
fn rehearse(suite: &str, words: &[&str]) -> Result<Outcome> {
    let words: Vec<&str> = [suite].iter().chain(words).copied().collect();
    let output = run_program("rehearse", &words)?;
    counted(suite, output.lines().last().unwrap_or_default())
}

/// Reads a closing line: `name: 12 things that passed`.
fn counted(name: &str, line: &str) -> Result<Outcome> {
    let rest = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or_default();
    let (count, what) = rest.split_once(' ').unwrap_or_default();
    let count = count.parse::<usize>().unwrap_or(0);
    ensure!(count > 0, "{name} ran nothing: {line}");
    Ok(Outcome::Passed(count, what.to_owned()))
}
