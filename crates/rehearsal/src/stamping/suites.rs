//! Random walks of a fleet with operators that are killed and frozen between check and send, and strikes at every call of a reference.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use windlass_sim::{
    faults::Strike,
    harness::Program,
    journal::Event,
    rng::Rng,
    scenario::{Action, Moment, When},
};

use super::{
    Judgement,
    company::{Company, Unwritable, unwritable},
    dicom, image, judge, objects,
    oddities::{elsewhere, gone_and_back, times, unreadable, unseen},
    one, reference, service, service_image, service_without_deployed, subject, tier,
};
use crate::{
    operator, pool,
    trial::{self, Ending, Outcome, Scenario},
};

const TIERS: [&str; 3] = ["", "early", "late"];
const TAGS: [&str; 4] = ["v1", "v2", "v3", "v4-broken"];

/// So many walks come before the strikes when a bug is hunted.
const FEW: usize = 24;

/// What became of a walk.
pub struct Walked {
    /// Which.
    pub seed: u64,
    /// A number that two equal walks share.
    pub trace: u64,
    /// What was wrong with it.
    pub fault: Option<String>,
    /// What was written.
    pub judgement: Judgement,
}

/// Walks so many seeds from the first one on.
pub fn walks(first: u64, seeds: usize) -> Vec<Walked> {
    pool::run(seeds, |number| walk(first + number as u64), |_| false)
}

/// One walk.
pub fn walk(seed: u64) -> Walked {
    let scenario = scenario(seed);
    match run(&scenario) {
        Ok(outcome) => {
            let patience = Duration::from_secs(if scenario.faults { 120 } else { 10 });
            let patience = patience.max(unseen(&scenario).unwrap_or_default());
            let judgement = judge(&outcome.journal, SignedDuration::try_from(patience).unwrap_or(SignedDuration::MAX));
            let fault = judgement.violations.first().cloned().or_else(|| outcome.fault());
            Walked { seed, trace: outcome.trace(), fault, judgement }
        }
        Err(error) => Walked { seed, trace: 0, fault: Some(error.to_string()), judgement: Judgement::default() },
    }
}

/// What happens in a walk, without a judgement.
pub fn run(scenario: &Scenario) -> std::io::Result<Outcome> {
    let mut rng = Rng::new(scenario.seed).fork("strikes");
    // The first operator is struck where it writes to resources, early or late in its life; every seed has a freeze.
    let strikes: Vec<(u64, Strike)> = (0..=rng.below(2))
        .map(|number| {
            let strike = match rng.below(if number == 0 { 2 } else { 4 }) {
                0 => Strike::FreezeUntilTakenOver,
                1 => Strike::Freeze(Duration::from_secs(45)),
                2 => Strike::KillBefore,
                _ => Strike::KillAfter,
            };
            (5 + rng.below(60), strike)
        })
        .collect();
    let served: &Program = if says_no_deployed(scenario.seed) { &service_without_deployed } else { &service };
    trial::run_beside(scenario, &strikes, &operator, Some(served))
}

/// Some kinds never say that they have served.
fn says_no_deployed(seed: u64) -> bool {
    seed % 4 == 1
}

/// The ServiceImage of a walk: some have limits across tiers, and a word of their own for being ready.
fn wanted(rng: &mut Rng, tiers: Value, seed: u64) -> Value {
    let mut wanted = service_image(tiers);
    wanted["spec"]["target"]["labelSelector"] = json!("managed!=no");
    if rng.one_in(2) {
        wanted["spec"]["spread"] = json!({"label": "zone", "maxInFlight": 1 + rng.below(2)});
    }
    if seed % 4 == 2 {
        // Health alone, which says nothing of the image.
        let ready = "has(self.status) && has(self.status.conditions) && \
                     self.status.conditions.exists(one, one.type == 'UpToDate' && one.status == 'True')";
        wanted["spec"]["target"]["ready"] = json!(ready);
    }
    wanted
}

/// What a seed stands for.
pub fn scenario(seed: u64) -> Scenario {
    let mut rng = Rng::new(seed).fork("fleet");
    let mut dicoms = Vec::new();
    for number in 0..4 + rng.below(12) {
        dicoms.push(newcomer(&mut rng, &format!("d{number}")));
    }
    let tiers = tiers(&mut rng, &["v1", "v2", "v3"]);
    let mut wanted = wanted(&mut rng, tiers, seed);
    let company = Company::draw(&mut rng);
    company.make_room(&mut wanted);
    let theirs = self::tiers(&mut rng, &["v2", "v5"]);
    let mut timeline = company.comes(&mut rng, theirs);
    let unwritable = if rng.one_in(4) { unwritable(&mut rng, &dicoms) } else { Unwritable::default() };
    timeline.splice(..0, unwritable.broken);
    let mut mends = unwritable.answered.clone();
    mends.extend(company.goes());
    mends.extend(unwritable.mended);
    for number in 0..rng.below(14) {
        let action = happening(&mut rng, number, dicoms.len() as u64);
        timeline.push(Moment {
            when: When::After(rng.between(Duration::from_millis(20), Duration::from_secs(40))),
            action,
        });
        if rng.one_in(12) {
            // Another one of its name: nothing of the first one's is settled by that.
            timeline.extend(unwritable.answered.iter().cloned());
            timeline.push(Moment { when: When::After(Duration::from_secs(1)), action: Action::Delete(subject()) });
            let pause = rng.between(Duration::from_millis(20), Duration::from_secs(5));
            if rng.one_in(3) {
                // Somebody has no patience with finalizers.
                let patch = json!({"metadata": {"finalizers": null}});
                let action = Action::Patch { target: subject(), patch };
                timeline.push(Moment { when: When::After(Duration::from_millis(20)), action });
            }
            timeline.push(Moment { when: When::Gone(subject(), pause), action: Action::Create(wanted.clone()) });
        }
    }
    let mut oddities = Rng::new(seed).fork("oddities");
    let place = |rng: &mut Rng, timeline: &[Moment]| usize::try_from(rng.below(timeline.len() as u64 + 1)).unwrap_or(0);
    if let Some((odd, mend)) = unreadable(&mut oddities) {
        let when = When::After(oddities.between(Duration::from_millis(20), Duration::from_secs(40)));
        timeline.insert(place(&mut oddities, &timeline), Moment { when, action: odd });
        mends.extend(mend.map(|action| Moment { when: When::After(Duration::from_secs(1)), action }));
    }
    if oddities.one_in(8) {
        let when = When::After(oddities.between(Duration::from_millis(20), Duration::from_secs(40)));
        timeline.insert(place(&mut oddities, &timeline), Moment { when, action: elsewhere(true) });
        mends.push(Moment { when: When::After(Duration::from_secs(1)), action: elsewhere(false) });
    }
    let moved = gone_and_back(&mut oddities, &dicoms);
    let at = place(&mut oddities, &timeline);
    timeline.splice(at..at, moved);
    timeline.extend(mends);
    // In the end people mend everything, and ask for images that work.
    let mended = json!({"spec": {"tiers": self::tiers(&mut rng, &["v2", "v3"]), "requests": {"retry": "at-last"}}});
    timeline.push(Moment {
        when: When::After(Duration::from_secs(30)),
        action: Action::Patch { target: subject(), patch: mended },
    });
    Scenario {
        seed,
        objects: objects(dicoms, wanted),
        operators: 2,
        faults: rng.one_in(2),
        timeline,
        subject: subject(),
        ending: Ending::Ready,
        max_leader_moves: None,
        limit: Duration::from_hours(2),
    }
}

fn newcomer(rng: &mut Rng, name: &str) -> Value {
    let tag = if rng.one_in(4) { None } else { Some("v1") };
    let mut object = dicom(name, rng.pick(&TIERS).copied().unwrap_or(""), tag);
    object["spec"]["failureHaltsUpdate"] = json!(!rng.one_in(3));
    object["metadata"]["labels"]["zone"] = json!(if rng.one_in(2) { "a" } else { "b" });
    object
}

fn tiers(rng: &mut Rng, tags: &[&str]) -> Value {
    let tiers: Vec<Value> = TIERS
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let priority = if rng.one_in(2) { 0 } else { i64::try_from(number).unwrap_or(0) };
            let mut tier = tier(name, rng.pick(tags).copied().unwrap_or("v2"), priority);
            if rng.one_in(2) {
                tier["maxInFlight"] = json!(1 + rng.below(3));
            }
            if rng.one_in(3) {
                tier["canary"] = json!([{"percent": 30, "soak": "20s"}]);
            }
            if rng.one_in(2) {
                tier["maxFailures"] = json!("100%");
            }
            tier["progressDeadline"] = json!("5m");
            tier
        })
        .collect();
    json!(tiers)
}

fn happening(rng: &mut Rng, number: u64, dicoms: u64) -> Action {
    let name = format!("d{}", rng.below(dicoms));
    let change = |patch: Value| Action::Patch { target: one(&name), patch };
    match rng.below(20) {
        18 => Action::StillWatches,
        19 => times(rng, one(&name)),
        // Somebody replaces it by what has no image.
        14 => change(json!({"spec": {"image": null}})),
        // A tenant writes what we write.
        15 => {
            let tag = rng.pick(&TAGS).copied().unwrap_or("v2");
            let forged = json!({"image": image(tag), "at": "2099-01-01T00:00:00Z", "round": 9}).to_string();
            change(json!({"metadata": {"annotations": {"windlass.dev/stamped": forged}}}))
        }
        // It leaves the selector, or comes back.
        16 => change(json!({"metadata": {"labels": {"managed": "no"}}})),
        17 => change(json!({"metadata": {"labels": {"managed": null}}})),
        0 | 1 => Action::Create(newcomer(rng, &format!("n{number}"))),
        2 => Action::Delete(one(&name)),
        3 => change(json!({"metadata": {"labels": {"upgrade-tier": rng.pick(&TIERS).copied().unwrap_or("")}}})),
        // Somebody sets it back.
        4 => change(json!({"spec": {"image": image("v1")}})),
        5 => change(json!({"spec": {"manuallySpecifiedImage": rng.one_in(2)}})),
        6 | 7 => {
            let tiers = tiers(rng, &TAGS);
            Action::Patch { target: subject(), patch: json!({"spec": {"tiers": tiers}}) }
        }
        8 => Action::Patch { target: subject(), patch: json!({"spec": {"requests": {"retry": format!("r{number}")}}}) },
        9 => Action::DropWatches,
        10 => Action::Compact,
        11 => Action::KillOperator(usize::try_from(rng.below(2)).unwrap_or(0)),
        _ => Action::FreezeOperator(
            usize::try_from(rng.below(2)).unwrap_or(0),
            rng.between(Duration::from_secs(5), Duration::from_mins(1)),
        ),
    }
}

/// What strikes found.
#[derive(Debug, Default)]
pub struct Struck {
    /// How many runs.
    pub points: usize,
    /// Stamps of an operator that another one had taken over from.
    pub failures: Vec<String>,
}

/// How an undisturbed run of the reference ended, and what it called.
fn undisturbed() -> Option<(Scenario, Value, Vec<String>)> {
    let scenario = reference(1);
    let outcome = trial::run_beside(&scenario, &[], &operator, Some(&service)).ok()?;
    outcome.settled.then(|| (scenario, end(&outcome), outcome.calls.clone()))
}

/// Kills and freezes at every write and every `nth` read of the reference: it must end as it ended undisturbed.
pub fn strike_everywhere(nth: usize, most: Option<usize>) -> Struck {
    let Some((scenario, expected, calls)) = undisturbed() else {
        return Struck { points: 0, failures: vec!["the undisturbed reference does not end".to_owned()] };
    };
    let all = points(&calls, nth);
    let count = most.map_or(all.len(), |most| most.min(all.len()));
    let chosen: Vec<(u64, Strike)> =
        (0..count).filter_map(|number| all.get(number * all.len() / count).copied()).collect();
    let judged = pool::run(
        chosen.len(),
        |number| chosen.get(number).and_then(|point| strike(&scenario, &expected, &calls, *point)),
        |_| false,
    );
    Struck { points: chosen.len(), failures: judged.into_iter().flatten().collect() }
}

fn points(calls: &[String], nth: usize) -> Vec<(u64, Strike)> {
    let numbered = calls.iter().enumerate().map(|(number, what)| (number, !what.starts_with("GET")));
    let chosen = numbered.filter(|(number, writes)| *writes || number.is_multiple_of(nth));
    let strikes = |(number, writes): (usize, bool)| {
        let late = [Strike::FreezeUntilTakenOver, Strike::Freeze(Duration::from_secs(45))];
        let late = late.into_iter().filter(move |_| writes);
        [Strike::KillBefore, Strike::KillAfter].into_iter().chain(late).map(move |strike| (number as u64, strike))
    };
    chosen.flat_map(strikes).collect()
}

fn strike(scenario: &Scenario, expected: &Value, calls: &[String], point: (u64, Strike)) -> Option<String> {
    let what = usize::try_from(point.0).ok().and_then(|number| calls.get(number)).cloned().unwrap_or_default();
    let said = |why: String| Some(format!("fleet {:?} at call {} ({what}): {why}", point.1, point.0));
    let outcome = match trial::run_beside(scenario, &[point], &operator, Some(&service)) {
        Ok(outcome) => outcome,
        Err(error) => return said(error.to_string()),
    };
    let violation = judge(&outcome.journal, SignedDuration::from_secs(10)).violations.into_iter().next();
    if let Some(why) = violation.or_else(|| outcome.fault()) {
        return said(why);
    }
    let end = end(&outcome);
    if end == *expected { None } else { said(format!("ended as {end} instead of {expected}")) }
}

/// What must be the same however the operators were treated.
fn end(outcome: &Outcome) -> Value {
    let mut images = serde_json::Map::new();
    for entry in &outcome.journal {
        let Event::Write(change) = &entry.event else { continue };
        if let Some(object) = change.after.as_deref().filter(|_| change.resource == super::DICOMS) {
            images.insert(change.name.clone(), object["spec"]["image"].clone());
        }
    }
    let tiers = outcome.subject.pointer("/status/tierStatus").and_then(Value::as_array).cloned().unwrap_or_default();
    let tier = |tier: &Value| json!([tier["upgradeTier"], tier["newDeploymentImage"], tier["updated"]]);
    json!({"images": images, "tiers": tiers.iter().map(tier).collect::<Vec<_>>()})
}

/// Strikes, then walks, until something fails; each run through `around`, which may plant a bug. How many runs, and what failed.
pub fn hunt(
    seeds: usize,
    around: impl Fn(&dyn Fn() -> Option<String>) -> Option<String> + Sync,
) -> (usize, Option<String>) {
    let failed = |judged: &Option<String>| judged.is_some();
    // A few walks first: what is wrong with every one of them need not be looked for at every call.
    let walked = pool::run(seeds.min(FEW), |number| around(&|| walk(number as u64).fault), failed);
    if let Some(failure) = walked.iter().flatten().next() {
        return (walked.len(), Some(failure.clone()));
    }
    let Some((scenario, expected, calls)) = undisturbed() else { return (0, None) };
    let all: Vec<(u64, Strike)> =
        points(&calls, usize::MAX).into_iter().filter(|(_, strike)| !matches!(strike, Strike::KillBefore)).collect();
    let struck = pool::run(
        all.len(),
        |number| around(&|| all.get(number).and_then(|point| strike(&scenario, &expected, &calls, *point))),
        failed,
    );
    if let Some(failure) = struck.iter().flatten().next() {
        return (struck.len(), Some(failure.clone()));
    }
    let walked = pool::run(seeds, |number| around(&|| walk(number as u64).fault), failed);
    (struck.len() + walked.len(), walked.into_iter().flatten().next())
}
