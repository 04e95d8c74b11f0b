//! The record of an upgrade.

use std::{str::FromStr, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use windlass_plan::{
    Hold, MemberName, Order, Version,
    rolling::known::{
        contest, mark,
        record::{Record, Replacing},
        stage,
        template_trial::TemplateTrial,
        workload::Revision,
    },
    strategy::known::{snapshot, want::Target},
};

use super::{duration, invalid};
use crate::{
    status::{
        jobs::Snapshot,
        upgrade::{Contest, Mark, NextTarget, PendingHandover, PodDuration, PodSince, Stage, Upgrade},
    },
    word::Written,
};

/// The upgrade that is under way, from the status.
pub fn record(upgrade: &Upgrade) -> Result<Record, Hold> {
    // Destructured whole: a field that is forgotten here would be lost at the next restart.
    let Upgrade {
        target_version,
        target_image,
        from_version,
        from_image,
        order,
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
        raft_term,
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
    let target = |field: &str, text: &str, image: &String| {
        version(field, text).map(|version| Target { version, image: image.clone() })
    };
    let number = |field: &str, value: i32| {
        u32::try_from(value).map_err(|error| invalid(&format!("status.upgrade.{field}"), &error))
    };
    Ok(Record {
        target: target("targetVersion", target_version, target_image)?,
        from: target("fromVersion", from_version, from_image)?,
        order: *order,
        template_trial: match template_trial {
            Some(trial) => known("status.upgrade.templateTrial", trial)?,
            // Under a partition there is no trial.
            None if *order == Order::ReverseOrdinal => TemplateTrial::Running,
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
        term: raft_term
            .map(|term| u64::try_from(term).map_err(|error| invalid("status.upgrade.raftTerm", &error)))
            .transpose()?,
        hand_overs: number("handoverCount", *handover_count)?,
        hand_over: pending_handover.as_ref().map(read_hand_over).transpose()?,
        abandoned: abandoned_pods.iter().map(MemberName::new).collect(),
        next_target: next_target
            .as_ref()
            .map(|next| target("nextTarget.version", &next.version, &next.image))
            .transpose()?,
        snapshot: snapshot.as_ref().map(read_snapshot).transpose()?,
        stage: stage.as_ref().map(read_stage).transpose()?,
        replacing: replacing
            .as_ref()
            .map(|written| Replacing { pod: MemberName::new(&written.pod), since: written.since.0 }),
        durations: durations
            .iter()
            .map(|one| Ok((MemberName::new(&one.pod), duration("status.upgrade.durations.took", &one.took)?)))
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

fn known<T: Copy>(field: &str, written: &Written<T>) -> Result<T, Hold> {
    written.known().ok_or_else(|| invalid(field, &"this release does not know the word"))
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

fn read_stage(written: &Stage) -> Result<stage::Stage, Hold> {
    let kind = known("status.upgrade.stage.name", &written.name)?;
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
        term,
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
        order: *order,
        // Under a partition whoever is lost comes back on the held revision, and nothing has to be proven.
        template_trial: (*order == Order::LeaderLast).then_some(Written::Known(*template_trial)),
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
        raft_term: term.and_then(|term| i64::try_from(term).ok()),
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
            name: Written::Known(stage.kind),
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;
    use windlass_plan::{
        MemberName, Order, Record, Snapshot,
        rolling::known::{mark::Mark, record::Replacing, template_trial::TemplateTrial},
        strategy::known::want::Target,
    };

    use super::upgrade;

    /// What is forgotten here would be lost at the next restart.
    #[rstest]
    fn an_upgrade_is_read_as_it_was_written(
        #[values(TemplateTrial::Running, TemplateTrial::Reverted, TemplateTrial::Passed)] template_trial: TemplateTrial,
    ) {
        let target = |version: &str| Target { version: version.parse().unwrap(), image: format!("pd:v{version}") };
        let order = Order::LeaderLast;
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
}
