//! From the custom resource to the planner's types and back. What can't be read becomes a hold with the field's name in it.

use std::{collections::BTreeMap, str::FromStr, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use windlass_images::Reference;
use windlass_plan::{
    Hold, MemberName, Reason, Version, Want,
    capabilities::Capabilities,
    fence::{self, Identity, Recorded},
    gate::GateState,
    rolling::{
        gates::list::check_overrides,
        known::{
            contest, mark,
            record::{Record, Replacing},
            stage::{self, StageKind},
            template_trial::TemplateTrial,
            workload::Revision,
        },
    },
    strategy::known::{
        approval::{self, Approvals},
        request::{self, Requests},
        snapshot,
        want::{self, Target},
    },
    version::tag_for,
    window::{NotAWindow, Window},
};

use crate::{
    quorum_cluster::{Backup, Deadlines, Gates, MaintenanceWindow, Order, QuorumClusterSpec, Trigger},
    status::{
        Abandoned, ApprovalStatus, Contest, GateStatus, Mark, NextTarget, OperatorClaim, PendingHandover, PodDuration,
        PodSince, Question, QuorumClusterStatus, Snapshot, SnapshotAttempt, Stage, Upgrade,
    },
};

/// What the spec asks for, of a system that can do this, given the image that the StatefulSet names today.
pub fn want(spec: &QuorumClusterSpec, can: &Capabilities, todays_image: &str) -> Result<Want, Hold> {
    Ok(Want {
        target: match spec.trigger {
            Trigger::Version => target(spec, todays_image)?,
            Trigger::Template => templates_target(spec, todays_image)?,
        },
        trigger: spec.trigger.into(),
        on_deadline: spec.on_deadline.into(),
        path: can.path,
        order: spec.update_strategy.rolling_update.order.map(order),
        names_target: can.hand_over.names_target(),
        paused: spec.paused,
        allow_downgrade: spec.policy.allow_downgrade,
        accept_downtime: spec.policy.accept_downtime,
        accept_non_voters: spec.policy.accept_non_voters,
        accept_owners: spec.policy.accept_owners.iter().cloned().collect(),
        deadlines: deadlines(&spec.upgrade.deadlines)?,
        snapshot: snapshot(spec, can)?,
        pre_pull: pull_deadline(spec)?,
        max_lag: u64::try_from(spec.upgrade.max_lag_entries)
            .map_err(|error| invalid("spec.upgrade.maxLagEntries", &error))?,
        soak: duration("spec.upgrade.soak", &spec.upgrade.soak)?,
        windows: windows(&spec.gates.windows)?,
        approval: spec.gates.approval.mode.into(),
        overrides: overrides(&spec.gates)?,
    })
}

/// What the custom resource asks for.
fn target(spec: &QuorumClusterSpec, todays_image: &str) -> Result<Target, Hold> {
    let Some(version) = &spec.version else { return Err(invalid("spec.version", &"trigger Version needs one")) };
    let image = match &spec.image {
        Some(image) => image.parse::<Reference>().map_err(|error| invalid("spec.image", &error))?,
        None => image_for(version, todays_image)?,
    };
    let version = Version::from_str(version).map_err(|error| invalid("spec.version", &error))?;
    Ok(Target { version, image: image.to_string() })
}

/// What the StatefulSet's own template asks for: its tag says which version that is, or the custom resource does.
fn templates_target(spec: &QuorumClusterSpec, todays_image: &str) -> Result<Target, Hold> {
    let image = todays_image.parse::<Reference>().map_err(|error| invalid("the StatefulSet's image", &error))?;
    // A tag can't hold build metadata's plus sign; registries write an underscore for it.
    let tagged = image.tag().and_then(|tag| Version::from_str(&tag.replace('_', "+")).ok());
    let version = match (tagged, &spec.version) {
        (Some(version), _) => version,
        (None, Some(written)) => Version::from_str(written).map_err(|error| invalid("spec.version", &error))?,
        (None, None) => {
            let message = format!("the tag of {todays_image} is no version, so it has to be said here");
            return Err(invalid("spec.version", &message));
        }
    };
    Ok(Target { version, image: todays_image.to_owned() })
}

/// The requests that were not answered yet.
pub fn requests(spec: &QuorumClusterSpec, status: &QuorumClusterStatus) -> Requests {
    let (asked, handled) = (&spec.requests, &status.requests);
    let fresh = |asked: &Option<String>, handled: &Option<String>| asked.is_some() && asked != handled;
    Requests {
        retry: fresh(&asked.retry, &handled.retry),
        abort: fresh(&asked.abort, &handled.abort),
        rollback: fresh(&asked.rollback, &handled.rollback),
    }
}

/// What was given up. What can't be read is: nothing is begun again by a status that is not understood.
pub fn given_up(written: &Abandoned) -> Result<request::GivenUp, Hold> {
    let unreadable = |field: &str| Hold::new(Reason::InvalidSpec, format!("status.abandoned.{field} can't be read"));
    let version = Version::from_str(&written.version).map_err(|_| unreadable("version"))?;
    let outcome = written.outcome.parse().map_err(|_| unreadable("outcome"))?;
    let (image, because) = (written.image.clone(), written.message.clone());
    Ok(request::GivenUp { target: Target { version, image }, outcome, because })
}

/// What was given up, for the status.
pub fn written_given_up(given_up: &request::GivenUp) -> Abandoned {
    let outcome: &'static str = given_up.outcome.into();
    Abandoned {
        version: given_up.target.version.to_string(),
        image: given_up.target.image.clone(),
        outcome: outcome.to_owned(),
        message: given_up.because.clone(),
    }
}

/// Who goes first.
pub fn order(written: Order) -> windlass_plan::Order {
    match written {
        Order::ReverseOrdinal => windlass_plan::Order::ReverseOrdinal,
        Order::LeaderLast => windlass_plan::Order::LeaderLast,
    }
}

fn written_order(order: windlass_plan::Order) -> Order {
    match order {
        windlass_plan::Order::ReverseOrdinal => Order::ReverseOrdinal,
        windlass_plan::Order::LeaderLast => Order::LeaderLast,
    }
}

/// Today's repository with the version in its tag, whatever else is in the tag kept. Where that would be guessing, a person has to say.
fn image_for(version: &str, todays_image: &str) -> Result<Reference, Hold> {
    let today = todays_image.parse::<Reference>().map_err(|error| invalid("the StatefulSet's image", &error))?;
    let tag = tag_for(version, today.tag()).map_err(|error| {
        invalid(
            "spec.image",
            &format!("it is not set, and can't be derived: {error}; set it to the complete new image"),
        )
    })?;
    if today.tag() == Some(&tag) {
        // Already there, perhaps pinned by a digest: no reason to restart anybody.
        return Ok(today);
    }
    today.with_tag(&tag).map_err(|error| invalid("spec.version", &error))
}

fn deadlines(written: &Deadlines) -> Result<want::Deadlines, Hold> {
    let Deadlines { handover, ready, health, sync, pull: _ } = written;
    Ok(want::Deadlines {
        handover: duration("spec.upgrade.deadlines.handover", handover)?,
        ready: duration("spec.upgrade.deadlines.ready", ready)?,
        health: duration("spec.upgrade.deadlines.health", health)?,
        sync: duration("spec.upgrade.deadlines.sync", sync)?,
    })
}

/// How long a snapshot may take of this system, which may give none.
fn snapshot(spec: &QuorumClusterSpec, can: &Capabilities) -> Result<Option<Duration>, Hold> {
    if can.snapshot.is_none() && spec.backup.as_ref().is_some_and(|backup| backup.pre_upgrade_snapshot) {
        return Err(invalid("spec.backup.preUpgradeSnapshot", &format!("{} gives none", spec.system.type_.name())));
    }
    snapshot_deadline(spec)
}

/// How long a snapshot before an upgrade may take; none where nobody wants one.
pub fn snapshot_deadline(spec: &QuorumClusterSpec) -> Result<Option<Duration>, Hold> {
    let Some(backup) = spec.backup.as_ref().filter(|backup| backup.pre_upgrade_snapshot) else { return Ok(None) };
    let Backup { pre_upgrade_snapshot: _, destination, deadline, service_account_name: _ } = backup;
    if destination.volume.is_some() == destination.s3.is_some() {
        return Err(invalid("spec.backup.destination", &"set exactly one of volume and s3"));
    }
    let folder = destination.volume.as_ref().map_or("", |volume| &volume.path);
    if folder.split('/').any(|part| part == "..") {
        return Err(invalid("spec.backup.destination.volume.path", &"it must not lead out of the volume"));
    }
    let deadline = duration("spec.backup.deadline", deadline)?;
    // A Job's deadline is in whole seconds, and none at all is none.
    if deadline < Duration::from_secs(1) {
        return Err(invalid("spec.backup.deadline", &"it must be a second at least"));
    }
    Ok(Some(deadline))
}

/// How long a node may take to pull the new image before anybody stops; none where nobody wants it pulled ahead.
pub fn pull_deadline(spec: &QuorumClusterSpec) -> Result<Option<Duration>, Hold> {
    let deadline = duration("spec.upgrade.deadlines.pull", &spec.upgrade.deadlines.pull)?;
    Ok(spec.upgrade.pre_pull.then_some(deadline))
}

/// A duration as people write it, like `90s`; `field` is where.
pub fn duration(field: &str, text: &str) -> Result<Duration, Hold> {
    let signed = text.parse::<jiff::SignedDuration>().map_err(|error| invalid(field, &error))?;
    Duration::try_from(signed).map_err(|error| invalid(field, &error))
}

/// All of them.
pub(crate) fn windows(windows: &[MaintenanceWindow]) -> Result<Vec<Window>, Hold> {
    windows.iter().enumerate().map(window).collect()
}

fn window((number, written): (usize, &MaintenanceWindow)) -> Result<Window, Hold> {
    let MaintenanceWindow { schedule, duration: long, time_zone } = written;
    let field = |name: &str| format!("spec.gates.windows[{number}].{name}");
    let long = duration(&field("duration"), long)?;
    Window::parse(schedule, long, time_zone).map_err(|error| {
        let name = match &error {
            NotAWindow::Schedule(_) => "schedule",
            NotAWindow::Duration(_) => "duration",
            NotAWindow::Zone(_) => "timeZone",
        };
        invalid(&field(name), &error)
    })
}

/// The schema knows the names already; here they are held against the gates themselves.
fn overrides(gates: &Gates) -> Result<BTreeMap<String, Timestamp>, Hold> {
    let written = || gates.overrides.iter().map(|one| one.gate.as_str());
    check_overrides(written()).map_err(|hold| invalid("spec.gates.overrides", &hold.message))?;
    let described = |(kind, name): (&str, &str)| match kind {
        "Check" => gates.checks.iter().any(|check| check.name == name),
        "Analysis" => gates.analysis.iter().any(|analysis| analysis.name == name),
        _ => gates.hooks.iter().any(|hook| hook.name == name),
    };
    if let Some(strange) = written().find(|gate| gate.split_once('/').is_some_and(|named| !described(named))) {
        return Err(invalid("spec.gates.overrides", &format!("spec.gates has no {strange}")));
    }
    Ok(gates.overrides.iter().map(|one| (one.gate.clone(), one.until.0)).collect())
}

/// Where approvals stand. What can't be read was not approved, and is asked again.
pub fn approvals(spec: &QuorumClusterSpec, status: &QuorumClusterStatus) -> Approvals {
    let read = |written: &Question| {
        let version = Version::from_str(&written.target_version).ok()?;
        Some(approval::Question {
            target: Target { version, image: written.target_image.clone() },
            hand_over: written.hand_over.as_ref().map(MemberName::new),
        })
    };
    let written = status.approval.clone().unwrap_or_default();
    Approvals {
        fresh: spec.requests.approve.is_some() && spec.requests.approve != status.requests.approve,
        asked: written.asked.as_ref().and_then(read),
        granted: written.granted.iter().filter_map(read).collect(),
    }
}

/// Where approvals stand, for the status; none where there is nothing to say.
pub fn written_approvals(approvals: &Approvals) -> Option<ApprovalStatus> {
    let write = |question: &approval::Question| Question {
        target_version: question.target.version.to_string(),
        target_image: question.target.image.clone(),
        hand_over: question.hand_over.as_ref().map(ToString::to_string),
    };
    let status = ApprovalStatus {
        asked: approvals.asked.as_ref().map(write),
        granted: approvals.granted.iter().map(write).collect(),
    };
    (status != ApprovalStatus::default()).then_some(status)
}

/// Where a gate stands, for the status.
pub fn gate(gate: &GateState) -> GateStatus {
    GateStatus {
        name: gate.name.clone().into_owned(),
        state: gate.state.name().to_owned(),
        reason: gate.hold.as_ref().map(|hold| hold.reason.name().to_owned()),
        message: Some(crate::conditions::cut(&gate.message())).filter(|message| !message.is_empty()),
    }
}

pub(crate) fn invalid(field: &str, why: &dyn std::fmt::Display) -> Hold {
    Hold::new(Reason::InvalidSpec, format!("{field}: {why}"))
}

/// The upgrade that is under way, from the status.
pub fn record(upgrade: &Upgrade) -> Result<Record, Hold> {
    // Destructured whole: a field that is forgotten here would be lost at the next restart.
    let Upgrade {
        target_version,
        target_image,
        from_version,
        from_image,
        order: written_as,
        template_trial,
        rolling_back,
        revision,
        started_at,
        current_partition,
        previous_partitions,
        template_at,
        template_writes,
        contest,
        completed_pods,
        progress: _,
        highest_led_version,
        handover_count,
        pending_handover,
        abandoned_pods,
        next_target,
        snapshot,
        stage,
        replacing,
        durations,
        healthy_since,
        marks,
        next,
        intent: _,
    } = upgrade;
    let version = |field: &str, text: &str| {
        Version::from_str(text).map_err(|error| invalid(&format!("status.upgrade.{field}"), &error))
    };
    let number = |field: &str, value: i32| {
        u32::try_from(value).map_err(|error| invalid(&format!("status.upgrade.{field}"), &error))
    };
    Ok(Record {
        target: Target { version: version("targetVersion", target_version)?, image: target_image.clone() },
        from: Target { version: version("fromVersion", from_version)?, image: from_image.clone() },
        order: order(*written_as),
        template_trial: match template_trial {
            Some(trial) => {
                TemplateTrial::from_str(trial).map_err(|error| invalid("status.upgrade.templateTrial", &error))?
            }
            // Under a partition there is no trial.
            None if *written_as == Order::ReverseOrdinal => TemplateTrial::Running,
            None => return Err(half_gone("templateTrial")),
        },
        rolling_back: rolling_back.ok_or_else(|| half_gone("rollingBack"))?,
        revision: revision.as_ref().map(Revision::new),
        started_at: started_at.0,
        partition: number("currentPartition", *current_partition)?,
        previous_partitions: previous_partitions
            .iter()
            .map(|value| number("previousPartitions", *value))
            .collect::<Result<_, _>>()?,
        template_at: template_at.as_ref().map_or(started_at.0, |at| at.0),
        template_writes: number("templateWrites", *template_writes)?,
        contest: contest.as_ref().map(self::contest).transpose()?,
        completed: completed_pods.iter().map(MemberName::new).collect(),
        highest_led: highest_led_version.as_deref().map(|text| version("highestLedVersion", text)).transpose()?,
        hand_overs: number("handoverCount", *handover_count)?,
        hand_over: pending_handover.as_ref().map(read_hand_over).transpose()?,
        abandoned: abandoned_pods.iter().map(MemberName::new).collect(),
        next_target: next_target
            .as_ref()
            .map(|next| {
                Ok(Target { version: version("nextTarget.version", &next.version)?, image: next.image.clone() })
            })
            .transpose()?,
        snapshot: snapshot.as_ref().map(read_snapshot).transpose()?,
        stage: stage.as_ref().map(read_stage).transpose()?,
        replacing: replacing
            .as_ref()
            .map(|written| Replacing { pod: MemberName::new(&written.pod), since: written.since.0 }),
        durations: durations
            .iter()
            .map(|written| {
                let took = duration("status.upgrade.durations.took", &written.took)?;
                Ok((MemberName::new(&written.pod), took))
            })
            .collect::<Result<_, Hold>>()?,
        healthy_since: healthy_since.iter().map(|written| (MemberName::new(&written.pod), written.since.0)).collect(),
        marks: marks.iter().map(read_mark).collect::<Result<_, _>>()?,
        next: next.as_ref().map(MemberName::new),
    })
}

/// A record without a field that every record has: an operator wrote it under other names, and the API server dropped those.
fn half_gone(field: &str) -> Hold {
    let what = "missing: an older release wrote this record under other names. First set spec.version and spec.image to the version that you want to \
                end at. Then, with kubectl edit --subresource=status, write rollingBack: true if members were being brought back (targetVersion is \
                then the version that they came from), otherwise rollingBack: false; with order LeaderLast also templateTrial: Running. Do not go \
                back to the older definitions: they take a rollback for an upgrade";
    invalid(&format!("status.upgrade.{field}"), &what)
}

fn read_mark(written: &Mark) -> Result<(MemberName, mark::Mark), Hold> {
    let index = u64::try_from(written.index).map_err(|error| invalid("status.upgrade.marks.index", &error))?;
    let reached = written.reached.as_ref().map(|reached| reached.0);
    Ok((MemberName::new(&written.pod), mark::Mark { index, since: written.since.0, reached }))
}

fn read_snapshot(written: &Snapshot) -> Result<snapshot::Snapshot, Hold> {
    let bytes = u64::try_from(written.size).map_err(|error| invalid("status.upgrade.snapshot.size", &error))?;
    Ok(snapshot::Snapshot { bytes, sha256: written.checksum.clone(), location: written.location.clone() })
}

/// The last try to take a snapshot, from the status.
pub fn attempt(written: &SnapshotAttempt) -> Result<snapshot::Attempt, Hold> {
    let SnapshotAttempt { attempt, target_version, target_image, since, job: _, used } = written;
    let field = |name: &str, error: &dyn std::fmt::Display| invalid(&format!("status.snapshot.{name}"), error);
    let version = Version::from_str(target_version).map_err(|error| field("targetVersion", &error))?;
    Ok(snapshot::Attempt {
        number: u32::try_from(*attempt).map_err(|error| field("attempt", &error))?,
        target: Target { version, image: target_image.clone() },
        since: since.0,
        used: *used,
    })
}

/// The last try to take a snapshot, for the status.
pub fn written_attempt(attempt: &snapshot::Attempt, job: String) -> SnapshotAttempt {
    let snapshot::Attempt { number, target, since, used } = attempt;
    SnapshotAttempt {
        attempt: i32::try_from(*number).unwrap_or(i32::MAX),
        target_version: target.version.to_string(),
        target_image: target.image.clone(),
        since: MicroTime(*since),
        job,
        used: *used,
    }
}

fn read_stage(written: &Stage) -> Result<stage::Stage, Hold> {
    let kind = StageKind::from_str(&written.name).map_err(|error| invalid("status.upgrade.stage.name", &error))?;
    Ok(stage::Stage { kind, pod: MemberName::new(&written.pod), since: written.since.0 })
}

fn read_hand_over(written: &PendingHandover) -> Result<stage::HandOver, Hold> {
    let attempts =
        u32::try_from(written.attempts).map_err(|error| invalid("status.upgrade.pendingHandover.attempts", &error))?;
    let last_error = written.last_error.clone();
    Ok(stage::HandOver { pod: MemberName::new(&written.pod), since: written.since.0, attempts, last_error })
}

/// A strategy that somebody else set back, from the status.
pub fn contest(written: &Contest) -> Result<contest::Contest, Hold> {
    let holds = u32::try_from(written.holds).map_err(|error| invalid("status.upgrade.contest.holds", &error))?;
    Ok(contest::Contest { by: written.by.clone(), holds, held: written.held })
}

/// The same for the status.
pub fn written_contest(contest: &contest::Contest) -> Contest {
    let holds = i32::try_from(contest.holds).unwrap_or(i32::MAX);
    Contest { by: contest.by.clone(), holds, held: contest.held }
}

/// The upgrade that is under way, for the status.
pub fn upgrade(record: &Record, replicas: u32, intent: Option<String>) -> Upgrade {
    let Record {
        target,
        from,
        order,
        template_trial,
        rolling_back,
        revision,
        started_at,
        partition,
        previous_partitions,
        template_at,
        template_writes,
        contest,
        completed,
        highest_led,
        hand_overs,
        hand_over,
        abandoned,
        next_target,
        snapshot,
        stage,
        replacing,
        durations,
        healthy_since,
        marks,
        next,
    } = record;
    let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    Upgrade {
        target_version: target.version.to_string(),
        target_image: target.image.clone(),
        from_version: from.version.to_string(),
        from_image: from.image.clone(),
        order: written_order(*order),
        // Under a partition whoever is lost comes back on the held revision, and nothing has to be proven.
        template_trial: (*order == windlass_plan::Order::LeaderLast).then(|| <&str>::from(*template_trial).to_owned()),
        rolling_back: Some(*rolling_back),
        revision: revision.as_ref().map(ToString::to_string),
        started_at: MicroTime(*started_at),
        current_partition: number(*partition),
        previous_partitions: previous_partitions.iter().map(|value| number(*value)).collect(),
        template_at: Some(MicroTime(*template_at)),
        template_writes: number(*template_writes),
        contest: contest.as_ref().map(written_contest),
        completed_pods: completed.iter().map(ToString::to_string).collect(),
        progress: format!("{}/{replicas}", completed.len()),
        highest_led_version: highest_led.as_ref().map(ToString::to_string),
        handover_count: number(*hand_overs),
        pending_handover: hand_over.as_ref().map(|asked| PendingHandover {
            pod: asked.pod.to_string(),
            since: MicroTime(asked.since),
            attempts: number(asked.attempts),
            last_error: asked.last_error.clone(),
        }),
        abandoned_pods: abandoned.iter().map(ToString::to_string).collect(),
        next_target: next_target
            .as_ref()
            .map(|next| NextTarget { version: next.version.to_string(), image: next.image.clone() }),
        snapshot: snapshot.as_ref().map(|taken| Snapshot {
            size: i64::try_from(taken.bytes).unwrap_or(i64::MAX),
            checksum: taken.sha256.clone(),
            location: taken.location.clone(),
        }),
        stage: stage.as_ref().map(|stage| Stage {
            name: <&str>::from(stage.kind).to_owned(),
            pod: stage.pod.to_string(),
            since: MicroTime(stage.since),
        }),
        replacing: replacing
            .as_ref()
            .map(|replacing| PodSince { pod: replacing.pod.to_string(), since: MicroTime(replacing.since) }),
        durations: durations
            .iter()
            .map(|(pod, took)| PodDuration { pod: pod.to_string(), took: friendly(*took) })
            .collect(),
        healthy_since: healthy_since
            .iter()
            .map(|(pod, since)| PodSince { pod: pod.to_string(), since: MicroTime(*since) })
            .collect(),
        marks: marks
            .iter()
            .map(|(pod, mark)| Mark {
                pod: pod.to_string(),
                // Beyond that no log has come, and one that had would be waited for.
                index: i64::try_from(mark.index).unwrap_or(i64::MAX),
                since: MicroTime(mark.since),
                reached: mark.reached.map(MicroTime),
            })
            .collect(),
        next: next.as_ref().map(ToString::to_string),
        intent,
    }
}

/// For people, and to be read again: no finer than a millisecond, and rounded up, for it is what the next one is expected to take.
fn friendly(took: Duration) -> String {
    let millis = took.as_nanos().div_ceil(1_000_000);
    let took = jiff::SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX));
    format!("{took:#}")
}

/// Who acts, from the status.
pub fn operator(written: &OperatorClaim) -> Result<fence::Operator, Hold> {
    let term = u64::try_from(written.term).map_err(|error| invalid("status.operator.term", &error))?;
    Ok(fence::Operator {
        identity: Identity::new(&written.identity),
        term,
        since: written.since.0,
        predecessor_done: written.predecessor_done,
    })
}

/// Who acts on a resource whose status says this. Where it tells of acts, somebody has acted, whether or not the claim is still there.
pub fn recorded(written: Option<&OperatorClaim>, tells_of_acts: bool) -> Recorded {
    match written.map(operator).transpose() {
        Ok(Some(operator)) => Recorded::By(operator),
        Ok(None) if !tells_of_acts => Recorded::Nobody,
        Ok(None) | Err(_) => Recorded::Unreadable,
    }
}

/// Who acts, for the status.
pub fn written_operator(operator: &fence::Operator) -> OperatorClaim {
    OperatorClaim {
        identity: operator.identity.to_string(),
        term: i64::try_from(operator.term).unwrap_or(i64::MAX),
        since: MicroTime(operator.since),
        predecessor_done: operator.predecessor_done,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;
    use windlass_plan::{
        Hold, MemberName, Reason, Record, Snapshot, Want,
        approval::Mode,
        capabilities::{Capabilities, Credentials, HandOver},
        gate::{KINDS, overridable_names},
        path,
        rolling::known::{mark::Mark, record::Replacing, template_trial::TemplateTrial},
        strategy::known::{
            approval::{Approvals, Question},
            snapshot::Attempt,
            want::{Deadlines, Target},
        },
        window::Window,
    };

    use super::{upgrade, written_approvals};
    use crate::{
        quorum_cluster::{OVERRIDABLE, QuorumClusterSpec},
        status::QuorumClusterStatus,
    };

    /// What the least can.
    const CAN: Capabilities = Capabilities {
        path: path::PD,
        hand_over: HandOver::StepDown,
        lag: false,
        snapshot: None,
        non_voters: false,
        in_place: false,
        credentials: Credentials::Nobody,
    };

    fn want(spec: &QuorumClusterSpec, today: &str) -> Result<Want, Hold> {
        super::want(spec, &CAN, today)
    }

    fn spec(yaml: &str) -> QuorumClusterSpec {
        let base = "workload: { statefulSet: pd, container: pd }\nsystem: { type: Pd }\n";
        serde_saphyr::from_str(&format!("{base}{yaml}")).unwrap()
    }

    #[rstest]
    #[case::habit_of_v(
        "version: 8.5.1",
        "registry.example:5000/pingcap/pd:v8.1.0",
        "registry.example:5000/pingcap/pd:v8.5.1"
    )]
    #[case::habit_without_v("version: v8.5.1", "pingcap/pd:8.1.0", "pingcap/pd:8.5.1")]
    #[case::digest_is_dropped(
        "version: 8.5.1",
        "pd:v8.1.0@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "pd:v8.5.1"
    )]
    #[case::pinned_and_already_there(
        "version: 8.1.0",
        "pd:v8.1.0@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "pd:v8.1.0@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    )]
    #[case::decoration_is_kept("version: 3.6.6", "etcd:v3.6.5-debian-12-r1", "etcd:v3.6.6-debian-12-r1")]
    #[case::own_image_for_a_tag_without_a_version("version: 8.5.1\nimage: pd:v8.5.1", "pd:latest", "pd:v8.5.1")]
    #[case::own_image("version: 8.5.1\nimage: mirror.example/pd:custom", "pd:v8.1.0", "mirror.example/pd:custom")]
    fn the_image_is_todays_with_the_new_tag(#[case] yaml: &str, #[case] today: &str, #[case] expected: &str) {
        assert_eq!(want(&spec(yaml), today).unwrap().target.image, expected);
    }

    #[rstest]
    #[case::version("version: latest", "pd:v8.1.0", "spec.version")]
    #[case::image("version: 8.5.1\nimage: 'PD:8:5'", "pd:v8.1.0", "spec.image")]
    #[case::a_tag_without_a_version(
        "version: 8.5.1",
        "pd:latest",
        "spec.image: it is not set, and can't be derived: today's tag \"latest\" has no version"
    )]
    #[case::a_tag_with_two(
        "version: 8.5.1",
        "pd:v8.1.0-alpine3.20.1",
        "spec.image: it is not set, and can't be derived: today's tag"
    )]
    #[case::no_tag("version: 8.5.1", "pd", "spec.image: it is not set, and can't be derived: today's image has no tag")]
    #[case::todays_image("version: 8.5.1", "::", "the StatefulSet's image")]
    #[case::deadline(
        "version: 8.5.1\nupgrade: { deadlines: { ready: soon } }",
        "pd:v8.1.0",
        "spec.upgrade.deadlines.ready"
    )]
    #[case::soak("version: 8.5.1\nupgrade: { soak: long }", "pd:v8.1.0", "spec.upgrade.soak")]
    #[case::schedule(
        "version: 8.5.1\ngates: { windows: [{ schedule: 0 2 * * sat, duration: 1h }, { schedule: 0 2 30 feb *, duration: 1h }] }",
        "pd:v8.1.0",
        "spec.gates.windows[1].schedule: \"0 2 30 feb *\""
    )]
    #[case::length(
        "version: 8.5.1\ngates: { windows: [{ schedule: 0 2 * * sat, duration: 0s }] }",
        "pd:v8.1.0",
        "spec.gates.windows[0].duration"
    )]
    #[case::zone(
        "version: 8.5.1\ngates: { windows: [{ schedule: 0 2 * * sat, duration: 1h, timeZone: Mars/Olympus }] }",
        "pd:v8.1.0",
        "spec.gates.windows[0].timeZone: \"Mars/Olympus\""
    )]
    #[case::snapshot_of_what_gives_none(
        "version: 8.5.1\nbackup: { preUpgradeSnapshot: true, destination: { volume: { claimName: backups } } }",
        "pd:v8.1.0",
        "spec.backup.preUpgradeSnapshot"
    )]
    fn what_cannot_be_read_is_named(#[case] yaml: &str, #[case] today: &str, #[case] field: &str) {
        let hold = want(&spec(yaml), today).unwrap_err();
        assert_eq!(hold.reason, Reason::InvalidSpec);
        assert!(hold.message.starts_with(field), "{}", hold.message);
    }

    #[rstest]
    #[case::unset("version: 8.5.1", None)]
    #[case::by_partition(
        "version: 8.5.1\nupdateStrategy: { rollingUpdate: { order: ReverseOrdinal } }",
        Some(windlass_plan::Order::ReverseOrdinal)
    )]
    #[case::leader_last(
        "version: 8.5.1\nupdateStrategy: { rollingUpdate: { order: LeaderLast } }",
        Some(windlass_plan::Order::LeaderLast)
    )]
    fn the_order_is_what_is_asked_for(#[case] yaml: &str, #[case] expected: Option<windlass_plan::Order>) {
        assert_eq!(want(&spec(yaml), "pd:v8.1.0").unwrap().order, expected);
    }

    /// What is forgotten here would be lost at the next restart.
    #[rstest]
    fn an_upgrade_is_read_as_it_was_written(
        #[values(TemplateTrial::Running, TemplateTrial::Reverted, TemplateTrial::Passed)] template_trial: TemplateTrial,
    ) {
        let target = |version: &str| Target { version: version.parse().unwrap(), image: format!("pd:v{version}") };
        let order = windlass_plan::Order::LeaderLast;
        let at = |second| jiff::Timestamp::from_second(second).unwrap();
        let mut record = Record::begin(order, target("8.5.0"), target("8.5.1"), 0, 3, at(100));
        record.template_trial = template_trial;
        record.replacing = Some(Replacing { pod: MemberName::new("pd-1"), since: at(200) });
        record.durations = [(MemberName::new("pd-2"), Duration::from_millis(72_250))].into();
        record.healthy_since = [(MemberName::new("pd-2"), at(180))].into();
        record.marks = [(MemberName::new("pd-2"), Mark { index: 7, since: at(190), reached: Some(at(195)) })].into();
        record.next = Some(MemberName::new("pd-1"));
        record.next_target = Some(record.from.clone());
        record.snapshot = Some(Snapshot { bytes: 7, sha256: "5f".into(), location: "volume backups/1.db".into() });
        let written = upgrade(&record, 3, None);
        assert_eq!(written.durations[0].took, "1m 12s 250ms");
        assert_eq!(super::record(&written).unwrap(), record);
    }

    #[rstest]
    #[case::wanted(
        "{ preUpgradeSnapshot: true, destination: { volume: { claimName: a } }, deadline: 90s }",
        Ok(Some(90))
    )]
    #[case::by_default("{ preUpgradeSnapshot: true, destination: { volume: { claimName: a } } }", Ok(Some(600)))]
    #[case::not_wanted("{ destination: { volume: { claimName: a } } }", Ok(None))]
    #[case::nowhere("{ preUpgradeSnapshot: true, destination: {} }", Err("spec.backup.destination"))]
    #[case::at_once(
        "{ preUpgradeSnapshot: true, destination: { volume: { claimName: a } }, deadline: 0s }",
        Err("spec.backup.deadline")
    )]
    fn a_snapshot_has_a_place_and_a_time(#[case] backup: &str, #[case] expected: Result<Option<u64>, &str>) {
        let yaml = format!(
            "workload: {{ statefulSet: e, container: e }}\nsystem: {{ type: Etcd }}\nversion: 3.6.1\nbackup: {backup}"
        );
        let can = Capabilities { snapshot: Some("db"), ..CAN };
        let wanted = super::want(&serde_saphyr::from_str(&yaml).unwrap(), &can, "etcd:v3.6.0");
        match (wanted, expected) {
            (Ok(wanted), Ok(expected)) => assert_eq!(wanted.snapshot.map(|limit| limit.as_secs()), expected),
            (Err(hold), Err(field)) => assert!(hold.message.starts_with(field), "{}", hold.message),
            (wanted, expected) => panic!("{wanted:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn an_attempt_is_read_as_it_was_written() {
        let target = Target { version: "3.6.1".parse().unwrap(), image: "etcd:v3.6.1".into() };
        let attempt = Attempt { number: 3, target, since: jiff::Timestamp::UNIX_EPOCH, used: true };
        assert_eq!(super::attempt(&super::written_attempt(&attempt, "job".into())).unwrap(), attempt);
    }

    #[test]
    fn deadlines_have_the_documented_defaults() {
        let wanted = want(&spec("version: 8.5.1"), "pd:v8.1.0").unwrap();
        assert_eq!(wanted.deadlines, Deadlines::default());
        assert_eq!(wanted.max_lag, 100);
    }

    #[rstest]
    #[case::by_default("upgrade: { prePull: true }", Some(600))]
    #[case::in_time("upgrade: { prePull: true, deadlines: { pull: 1h } }", Some(3600))]
    #[case::not_wanted("upgrade: { deadlines: { pull: 1h } }", None)]
    fn an_image_is_pulled_ahead_where_that_is_asked_for(#[case] yaml: &str, #[case] expected: Option<u64>) {
        let wanted = want(&spec(&format!("version: 8.5.1\n{yaml}")), "pd:v8.1.0").unwrap();
        assert_eq!(wanted.pre_pull.map(|deadline| deadline.as_secs()), expected);
    }

    #[test]
    fn gates_are_read_as_they_are_written() {
        let yaml = "version: 8.5.1\nupgrade: { soak: 10m }\ngates: { windows: [{ schedule: 0 2 * * sat, duration: 4h, \
                    timeZone: Europe/Berlin }], approval: { mode: BeforeUpgrade }, overrides: [{ gate: NodeDrain, until: \
                    '2026-05-05T00:00:00Z' }] }";
        let wanted = want(&spec(yaml), "pd:v8.1.0").unwrap();
        let window = Window::parse("0 2 * * sat", Duration::from_hours(4), "Europe/Berlin").unwrap();
        assert_eq!(wanted.windows, [window]);
        assert_eq!((wanted.soak, wanted.approval), (Duration::from_mins(10), Mode::BeforeUpgrade));
        assert_eq!(wanted.overrides, [("NodeDrain".to_owned(), "2026-05-05T00:00:00Z".parse().unwrap())].into());
    }

    #[test]
    fn the_schema_names_every_gate_that_can_be_overridden() {
        let missing: Vec<&str> = overridable_names().filter(|name| !OVERRIDABLE.contains(name)).collect();
        assert_eq!(missing, Vec::<&str>::new());
        assert!(KINDS.iter().all(|kind| OVERRIDABLE.contains(kind)));
    }

    #[test]
    fn approvals_are_read_back_as_they_were_written() {
        let question = Question {
            target: Target { version: "8.5.1".parse().unwrap(), image: "pd:v8.5.1".into() },
            hand_over: Some(MemberName::new("pd-0")),
        };
        let approvals = Approvals { fresh: true, asked: Some(question.clone()), granted: vec![question] };
        let mut status = QuorumClusterStatus { approval: written_approvals(&approvals), ..Default::default() };
        let asked = spec("version: 8.5.1\nrequests: { approve: yes-please }");
        assert_eq!(super::approvals(&asked, &status), approvals);
        status.requests.approve = Some("yes-please".into());
        assert!(!super::approvals(&asked, &status).fresh, "handled");
        assert_eq!(written_approvals(&Approvals::default()), None);
    }
}
