//! From a ServiceImage to what `windlass_plan::fleet` works with, and back.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::{
    apis::meta::v1::{Condition, MicroTime},
    util::intstr::IntOrString,
};
use windlass_images::Reference;
use windlass_plan::{
    Hold, Reason,
    fleet::{Amount, Plan, Record, Refused, Share, Stamping, Tier, TierName, TierRecord, Verdict, Want, split},
};

use crate::{
    conditions::{self, ConditionType, condition},
    service_image::{
        FleetGates, RefusedResource, Reserved, ServiceImage, ServiceImageSpec, ServiceImageStatus, TierSpec, TierStatus,
    },
    translate::{duration, gate, invalid, windows},
    word::Word,
};

/// How many resources are written between two looks at the ServiceImage: their names are kept in its status.
pub const BATCH: usize = 250;

/// What a ServiceImage wants.
pub fn want(resource: &ServiceImage) -> Result<Want, Hold> {
    let spec = &resource.spec;
    let tier = |tier: &TierSpec| {
        let field = |name: &str| format!("tier {:?}: {name}", tier.upgrade_tier);
        let image = tier.image.as_ref().or(spec.default_image.as_ref());
        let image = image.ok_or_else(|| invalid(&field("image"), &"set it, or spec.defaultImage"))?;
        image.parse::<Reference>().map_err(|error| invalid(&field("image"), &error))?;
        let canary = tier
            .canary
            .iter()
            .map(|step| Ok(Share { percent: step.percent, soak: duration(&field("canary.soak"), &step.soak)? }));
        Ok(Tier {
            name: TierName(tier.upgrade_tier.clone()),
            image: image.clone(),
            priority: tier.priority,
            canary: canary.collect::<Result<_, Hold>>()?,
            max_in_flight: match amount(&field("maxInFlight"), tier.max_in_flight.as_ref())? {
                Some(Amount::Count(0)) => {
                    return Err(invalid(&field("maxInFlight"), &"with none on its way nothing happens"));
                }
                limit => limit,
            },
            max_failures: amount(&field("maxFailures"), tier.max_failures.as_ref())?,
            progress_deadline: duration(&field("progressDeadline"), &tier.progress_deadline)?,
            approval: tier.approval,
        })
    };
    let tiers: Vec<Tier> = spec.tiers.iter().map(tier).collect::<Result<_, Hold>>()?;
    for (number, one) in tiers.iter().enumerate() {
        if tiers.iter().take(number).any(|other| other.name == one.name) {
            return Err(invalid("spec.tiers", &format!("{} is there twice", one.name)));
        }
    }
    ask_somewhere(spec)?;
    Ok(Want {
        tiers,
        paused: spec.paused,
        windows: windows(&spec.gates.windows)?,
        overrides: overrides(spec)?,
        lane_limit: spec.spread.as_ref().map(|spread| usize::try_from(spread.max_in_flight).unwrap_or(usize::MAX)),
        batch: BATCH,
    })
}

/// The schema refuses it, too; a resource may be older than that.
fn ask_somewhere(spec: &ServiceImageSpec) -> Result<(), Hold> {
    let FleetGates { namespace, checks, analysis, hooks, windows: _, overrides: _ } = &spec.gates;
    let asks = !(checks.is_empty() && analysis.is_empty() && hooks.is_empty())
        || spec.tiers.iter().any(|tier| !tier.analysis.is_empty());
    if asks && namespace.is_none() {
        return Err(invalid("spec.gates.namespace", &"checks, analysis and hooks ask somewhere: set it"));
    }
    Ok(())
}

/// Refuses overrides of what is not there: they would set nothing aside (X5).
fn overrides(spec: &ServiceImageSpec) -> Result<BTreeMap<String, Timestamp>, Hold> {
    let exists = |gate: &str| {
        let (plain, tier) = split(gate);
        let mut tiers = spec.tiers.iter().filter(|one| tier.is_none_or(|tier| one.upgrade_tier == tier));
        match plain.split_once('/') {
            None => plain == "MaintenanceWindow" && tier.is_none() || plain == "Approval" && tiers.next().is_some(),
            Some(("Check", name)) => tier.is_none() && spec.gates.checks.iter().any(|one| one.name == name),
            Some(("Hook", name)) => tier.is_none() && spec.gates.hooks.iter().any(|one| one.name == name),
            Some(("Analysis", name)) => {
                tier.is_none() && spec.gates.analysis.iter().any(|one| one.name == name)
                    || tiers.any(|tier| tier.analysis.iter().any(|one| one.name == name))
            }
            Some(_) => false,
        }
    };
    if let Some(strange) = spec.gates.overrides.iter().find(|one| !exists(&one.gate)) {
        return Err(invalid("spec.gates.overrides", &format!("there is no gate {}", strange.gate)));
    }
    Ok(spec.gates.overrides.iter().map(|one| (one.gate.clone(), one.until.0)).collect())
}

fn amount(field: &str, written: Option<&IntOrString>) -> Result<Option<Amount>, Hold> {
    match written {
        None => Ok(None),
        Some(IntOrString::Int(count)) => usize::try_from(*count)
            .map(|count| Some(Amount::Count(count)))
            .map_err(|_| invalid(field, &"it is negative")),
        Some(IntOrString::String(text)) => {
            let percent =
                text.strip_suffix('%').and_then(|digits| digits.parse().ok()).filter(|percent| *percent <= 100);
            let percent = percent.ok_or_else(|| invalid(field, &format!("{text:?} is no percentage")))?;
            Ok(Some(Amount::Percent(percent)))
        }
    }
}

/// How far it was.
pub fn record(status: &ServiceImageStatus) -> Record {
    let tier = |written: &TierStatus| {
        let kept = TierRecord {
            image: written.image.clone(),
            new_image: written.new_deployment_image.clone(),
            started_at: read(written.started_at.as_ref()),
            complete: conditions::holds(&written.conditions, ConditionType::Complete),
            shares_done: usize::try_from(written.canary_steps_done).unwrap_or(0),
            well_since: read(written.canary_healthy_since.as_ref()),
            asked: written.awaits_approval,
            approved: written.approved,
        };
        (TierName(written.upgrade_tier.clone()), kept)
    };
    Record {
        tiers: status.tier_status.iter().map(tier).collect(),
        current: status.current_priority.zip(read(status.current_priority_since.as_ref())),
        retried_at: read(status.retried_at.as_ref()),
        changed_at: read(status.changed_at.as_ref()),
        hooks_passed: status.hooks_passed,
        under_way: read(status.started_at.as_ref()),
    }
}

fn read(time: Option<&MicroTime>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What is about to be written, for a successor.
pub fn batch(stamps: &[Stamping]) -> Vec<Reserved> {
    let reserved = |stamp: &Stamping| Reserved {
        namespace: stamp.id.namespace().to_owned(),
        name: stamp.id.name().to_owned(),
        uid: stamp.fence.uid.clone(),
    };
    stamps.iter().map(reserved).collect()
}

/// The status that says what a plan says. The batch and who acts are left as they were.
pub fn planned(
    before: &ServiceImageStatus,
    resource: &ServiceImage,
    plan: &Plan,
    now: Timestamp,
) -> ServiceImageStatus {
    let generation = resource.metadata.generation.unwrap_or(0);
    let mut status = before.clone();
    let said = said(plan);
    status.tier_status = plan
        .tiers
        .iter()
        .filter_map(|report| {
            let kept = plan.record.tiers.get(&report.name)?;
            let old = before.tier_status.iter().find(|old| old.upgrade_tier == report.name.0);
            let old = old.map(|old| old.conditions.as_slice()).unwrap_or_default();
            let (word, message) = match (&report.hold, kept.complete) {
                (_, true) => (Word::UpToDate, "all of its resources are up to date".to_owned()),
                (Some(hold), false) => (hold.reason.into(), hold.to_string()),
                (None, false) if report.in_progress => (Word::Stamping, "its resources get their image".to_owned()),
                (None, false) => (Word::Waiting, "tiers of a higher priority go first".to_owned()),
            };
            let conditions =
                [(ConditionType::Complete, kept.complete), (ConditionType::InProgress, report.in_progress)];
            Some(TierStatus {
                upgrade_tier: report.name.0.clone(),
                image: kept.image.clone(),
                new_deployment_image: kept.new_image.clone(),
                resources: number(report.total),
                updated: number(report.done),
                in_flight: number(report.in_flight),
                failed: number(report.failed),
                ignored: number(report.ignored),
                manual: number(report.manual),
                taken: number(report.taken),
                new: number(report.new),
                started_at: kept.started_at.map(MicroTime),
                canary_steps_done: number(kept.shares_done),
                canary_healthy_since: kept.well_since.map(MicroTime),
                awaits_approval: kept.asked,
                approved: kept.approved,
                conditions: conditions
                    .map(|(type_, holds)| condition(old, type_, holds.into(), &word, &message, generation, now))
                    .to_vec(),
            })
        })
        .collect();
    status.current_priority = plan.record.current.map(|(priority, _)| priority);
    status.current_priority_since = plan.record.current.map(|(_, since)| MicroTime(since));
    status.changed_at = plan.record.changed_at.map(MicroTime);
    status.retried_at = plan.record.retried_at.map(MicroTime);
    status.hooks_passed = plan.record.hooks_passed;
    status.started_at = plan.record.under_way.map(MicroTime);
    let total = |of: fn(&windlass_plan::fleet::TierReport) -> usize| plan.tiers.iter().map(of).sum::<usize>();
    status.progress = Some(format!("{}/{}", total(|tier| tier.done), total(|tier| tier.total)));
    status.gates = plan.gates.iter().map(gate).collect();
    status.refused = plan.refused.iter().map(refused).collect();
    status.requests = resource.spec.requests.clone();
    conclude(&mut status, resource, &said, now);
    status
}

/// The most of what the API server says of one refusal that is kept: it may be as long as the object itself.
const SAID: usize = 256;

fn refused(refused: &Refused) -> RefusedResource {
    RefusedResource {
        namespace: refused.id.namespace().to_owned(),
        name: refused.id.name().to_owned(),
        image: refused.image.clone(),
        message: refused.why.chars().take(SAID).collect(),
    }
}

/// The status that says why nothing could be planned.
pub fn held(before: &ServiceImageStatus, resource: &ServiceImage, hold: &Hold, now: Timestamp) -> ServiceImageStatus {
    let mut status = before.clone();
    let stalled = hold.reason.needs_a_person();
    conclude(&mut status, resource, &Said::of(hold, !stalled, stalled), now);
    status
}

/// The same as `planned` with a batch that is about to be written. A refusal stays in the conditions until a stamp succeeds or something else
/// is wanted: it is tried again and again, and would come and go with every try.
pub fn reserving(before: &ServiceImageStatus, planned: ServiceImageStatus) -> ServiceImageStatus {
    let same = before.observed_generation == planned.observed_generation;
    let refused = conditions::mention(&before.conditions, Reason::StampRefused);
    if same && refused { ServiceImageStatus { conditions: before.conditions.clone(), ..planned } } else { planned }
}

struct Said {
    complete: bool,
    going: bool,
    stalled: bool,
    word: Word,
    message: String,
}

impl Said {
    fn of(hold: &Hold, going: bool, stalled: bool) -> Self {
        Self { complete: false, going, stalled, word: hold.reason.into(), message: hold.to_string() }
    }
}

fn said(plan: &Plan) -> Said {
    let (complete, word, message) = match &plan.verdict {
        Verdict::Done => (true, Word::UpToDate, "every tier is up to date"),
        Verdict::Going => (false, Word::Stamping, "resources get their image"),
        Verdict::Wait(hold) => return Said::of(hold, hold.reason != Reason::Paused, false),
        Verdict::Halt(hold) => return Said::of(hold, false, true),
    };
    Said { complete, going: !complete, stalled: false, word, message: message.to_owned() }
}

fn conclude(status: &mut ServiceImageStatus, resource: &ServiceImage, said: &Said, now: Timestamp) {
    let generation = resource.metadata.generation.unwrap_or(0);
    status.conditions = stated(&status.conditions, said, generation, now);
    status.observed_generation = Some(generation);
}

/// The conditions of a ServiceImage that can't be read.
pub fn unreadable(before: &[Condition], hold: &Hold, generation: i64, now: Timestamp) -> Vec<Condition> {
    stated(before, &Said::of(hold, false, true), generation, now)
}

fn stated(before: &[Condition], said: &Said, generation: i64, now: Timestamp) -> Vec<Condition> {
    let all = [
        (ConditionType::Complete, said.complete),
        (ConditionType::InProgress, !said.complete),
        (ConditionType::Ready, said.complete),
        (ConditionType::Reconciling, said.going),
        (ConditionType::Stalled, said.stalled),
    ];
    let written = |(type_, holds): (ConditionType, bool)| {
        condition(before, type_, holds.into(), &said.word, &said.message, generation, now)
    };
    all.into_iter().map(written).collect()
}

/// How long nothing but numbers may change before they are written.
pub const NUMBERS: Duration = Duration::from_secs(2);

/// The same apart from its numbers: nothing that anybody waits for has changed.
pub fn says_the_same(one: &ServiceImageStatus, other: &ServiceImageStatus) -> bool {
    let plain = |status: &ServiceImageStatus| {
        let mut status = status.clone();
        status.progress = None;
        for tier in &mut status.tier_status {
            (tier.resources, tier.updated, tier.in_flight) = (0, 0, 0);
            (tier.ignored, tier.manual, tier.new, tier.failed, tier.taken) = (0, 0, 0, 0, 0);
            for condition in &mut tier.conditions {
                condition.message.clear();
            }
        }
        for condition in &mut status.conditions {
            condition.message.clear();
        }
        for gate in &mut status.gates {
            gate.message = None;
        }
        status
    };
    plain(one) == plain(other)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rstest::rstest;
    use windlass_plan::fleet::{Plan, Record, Verdict};

    use super::{planned, record, want};
    use crate::service_image::{ServiceImage, ServiceImageSpec, ServiceImageStatus};

    const ERRORS: &str =
        "{ name: errors, prometheus: { name: prometheus, port: 9090 }, query: errors, cel: value < 1 }";

    fn resource(gates: &str) -> ServiceImage {
        let yaml = format!(
            "defaultImage: dicom:v2\ntarget: {{ group: examples.windlass.dev, version: v1, kind: Dicom }}\ntiers: [{{ \
             upgradeTier: early, analysis: [{ERRORS}] }}, {{ upgradeTier: '' }}]\ngates: {{ {gates} }}"
        );
        let spec: ServiceImageSpec = serde_saphyr::from_str(&yaml).unwrap();
        ServiceImage::new("dicom", spec)
    }

    #[rstest]
    #[case::window("MaintenanceWindow", true)]
    #[case::approval_of_all("Approval", true)]
    #[case::approval_of_one("Approval@early", true)]
    #[case::approval_of_the_empty_tier("Approval@", true)]
    #[case::approval_of_nobody("Approval@late", false)]
    #[case::a_tiers_analysis("Analysis/errors@early", true)]
    #[case::in_all_tiers("Analysis/errors", true)]
    #[case::another_tiers("Analysis/errors@", false)]
    #[case::no_such_analysis("Analysis/lag", false)]
    #[case::a_check("Check/free", true)]
    #[case::a_check_of_a_tier("Check/free@early", false)]
    #[case::no_such_hook("Hook/ask", false)]
    #[case::what_quorums_have("NodeDrain", false)]
    fn an_override_names_a_gate_that_is_there(#[case] gate: &str, #[case] taken: bool) {
        let check = "checks: [{ name: free, objects: { apiVersion: v1, kind: ConfigMap }, cel: 'true' }]";
        let aside = format!("overrides: [{{ gate: {gate:?}, until: '2026-05-05T00:00:00Z' }}]");
        let wanted = want(&resource(&format!("namespace: ops, {check}, {aside}")));
        match wanted {
            Ok(wanted) => assert!(taken && wanted.overrides.contains_key(gate), "{gate}"),
            Err(hold) => assert!(!taken && hold.message.contains(gate), "{hold}"),
        }
    }

    #[test]
    fn gates_that_ask_nowhere_are_refused_also_without_a_schema() {
        let hold = want(&resource("")).unwrap_err();
        assert!(hold.message.contains("spec.gates.namespace"), "{hold}");
    }

    #[rstest]
    fn h41_an_image_that_is_none_is_refused_also_without_a_schema(#[values("a b", "dicom:", "-dicom")] image: &str) {
        let mut wrong = resource("namespace: ops");
        wrong.spec.tiers[0].image = Some(image.to_owned());
        let hold = want(&wrong).unwrap_err();
        assert!(hold.message.contains("tier \"early\": image"), "{hold}");
    }

    #[test]
    fn what_hooks_have_let_begin_is_read_back_as_it_was_written() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let kept = Record { hooks_passed: true, under_way: Some(now), ..Record::default() };
        let plan = Plan {
            stamps: Vec::new(),
            verdict: Verdict::Going,
            record: kept.clone(),
            tiers: Vec::new(),
            gates: Vec::new(),
            start: None,
            refused: Vec::new(),
        };
        let status = planned(&ServiceImageStatus::default(), &resource("namespace: ops"), &plan, now);
        assert_eq!(record(&status), kept);
    }
}
