//! From the custom resource to the planner's types and back. What can't be read becomes a hold with the field's name in it.

use std::{str::FromStr, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use windlass_images::Reference;
use windlass_plan::{
    Hold, MemberName, Reason, Version, Want,
    fence::{self, ElectionId},
    poison::Proof,
    record::Record,
    stage::{self, StageKind},
    want::{self, Target},
    workload::Revision,
};

use crate::{
    quorum_cluster::{Deadlines, Order, QuorumClusterSpec},
    status::{Election, HandOver, Stage, Upgrade},
};

/// What the spec asks for, given the image that the StatefulSet names today.
pub fn want(spec: &QuorumClusterSpec, todays_image: &str) -> Result<Want, Hold> {
    let version = Version::from_str(&spec.version).map_err(|error| invalid("spec.version", &error))?;
    let image = match &spec.image {
        Some(image) => image.parse::<Reference>().map_err(|error| invalid("spec.image", &error))?,
        None => image_for(&spec.version, todays_image)?,
    };
    Ok(Want {
        target: Target { version, image: image.to_string() },
        path: spec.system.type_.path(),
        order: spec.update_strategy.rolling_update.order.map(order),
        names_target: spec.system.names_target(),
        paused: spec.paused,
        allow_downgrade: spec.policy.allow_downgrade,
        accept_downtime: spec.policy.accept_downtime,
        deadlines: deadlines(&spec.upgrade.deadlines)?,
        max_lag: u64::try_from(spec.upgrade.max_lag_entries)
            .map_err(|error| invalid("spec.upgrade.maxLagEntries", &error))?,
    })
}

/// Who goes first.
fn order(written: Order) -> windlass_plan::Order {
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

/// Today's repository with the version as its tag, in the tag's own habit of a leading `v`.
fn image_for(version: &str, todays_image: &str) -> Result<Reference, Hold> {
    let today = todays_image.parse::<Reference>().map_err(|error| invalid("the StatefulSet's image", &error))?;
    let bare = version.strip_prefix('v').unwrap_or(version);
    let habit = if today.tag().is_some_and(|tag| tag.starts_with('v')) { "v" } else { "" };
    // A tag can't hold build metadata's plus sign; registries write an underscore for it.
    let tag = format!("{habit}{}", bare.replace('+', "_"));
    if today.tag() == Some(&tag) {
        // Already there, perhaps pinned by a digest: no reason to restart anybody.
        return Ok(today);
    }
    today.with_tag(&tag).map_err(|error| invalid("spec.version", &error))
}

fn deadlines(written: &Deadlines) -> Result<want::Deadlines, Hold> {
    let Deadlines { step_down, ready, health, sync } = written;
    Ok(want::Deadlines {
        step_down: duration("stepDown", step_down)?,
        ready: duration("ready", ready)?,
        health: duration("health", health)?,
        sync: duration("sync", sync)?,
    })
}

fn duration(field: &str, text: &str) -> Result<Duration, Hold> {
    let field = format!("spec.upgrade.deadlines.{field}");
    let signed = text.parse::<jiff::SignedDuration>().map_err(|error| invalid(&field, &error))?;
    Duration::try_from(signed).map_err(|error| invalid(&field, &error))
}

fn invalid(field: &str, why: &dyn std::fmt::Display) -> Hold {
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
        proof,
        reverting,
        revision,
        started_at,
        current_partition,
        previous_partitions,
        completed_pods,
        progress: _,
        highest_led_version,
        hand_overs,
        hand_over,
        abandoned_pods,
        stage,
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
        proof: match proof {
            Some(proof) => Proof::from_str(proof).map_err(|error| invalid("status.upgrade.proof", &error))?,
            None => Proof::Pending,
        },
        reverting: *reverting,
        revision: revision.as_ref().map(Revision::new),
        started_at: started_at.0,
        partition: number("currentPartition", *current_partition)?,
        previous_partitions: previous_partitions
            .iter()
            .map(|value| number("previousPartitions", *value))
            .collect::<Result<_, _>>()?,
        completed: completed_pods.iter().map(MemberName::new).collect(),
        highest_led: highest_led_version.as_deref().map(|text| version("highestLedVersion", text)).transpose()?,
        hand_overs: number("handOvers", *hand_overs)?,
        hand_over: hand_over.as_ref().map(read_hand_over).transpose()?,
        abandoned: abandoned_pods.iter().map(MemberName::new).collect(),
        stage: stage.as_ref().map(read_stage).transpose()?,
    })
}

fn read_stage(written: &Stage) -> Result<stage::Stage, Hold> {
    let kind = StageKind::from_str(&written.name).map_err(|error| invalid("status.upgrade.stage.name", &error))?;
    Ok(stage::Stage { kind, pod: MemberName::new(&written.pod), since: written.since.0 })
}

fn read_hand_over(written: &HandOver) -> Result<stage::HandOver, Hold> {
    let attempts =
        u32::try_from(written.attempts).map_err(|error| invalid("status.upgrade.handOver.attempts", &error))?;
    Ok(stage::HandOver { pod: MemberName::new(&written.pod), since: written.since.0, attempts })
}

/// The upgrade that is under way, for the status.
pub fn upgrade(record: &Record, replicas: u32, intent: Option<String>) -> Upgrade {
    let Record {
        target,
        from,
        order,
        proof,
        reverting,
        revision,
        started_at,
        partition,
        previous_partitions,
        completed,
        highest_led,
        hand_overs,
        hand_over,
        abandoned,
        stage,
    } = record;
    let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    Upgrade {
        target_version: target.version.to_string(),
        target_image: target.image.clone(),
        from_version: from.version.to_string(),
        from_image: from.image.clone(),
        order: written_order(*order),
        // Under a partition whoever is lost comes back on the held revision, and nothing has to be proven.
        proof: (*order == windlass_plan::Order::LeaderLast).then(|| <&str>::from(*proof).to_owned()),
        reverting: *reverting,
        revision: revision.as_ref().map(ToString::to_string),
        started_at: MicroTime(*started_at),
        current_partition: number(*partition),
        previous_partitions: previous_partitions.iter().map(|value| number(*value)).collect(),
        completed_pods: completed.iter().map(ToString::to_string).collect(),
        progress: format!("{}/{replicas}", completed.len()),
        highest_led_version: highest_led.as_ref().map(ToString::to_string),
        hand_overs: number(*hand_overs),
        hand_over: hand_over.as_ref().map(|asked| HandOver {
            pod: asked.pod.to_string(),
            since: MicroTime(asked.since),
            attempts: number(asked.attempts),
        }),
        abandoned_pods: abandoned.iter().map(ToString::to_string).collect(),
        stage: stage.as_ref().map(|stage| Stage {
            name: <&str>::from(stage.kind).to_owned(),
            pod: stage.pod.to_string(),
            since: MicroTime(stage.since),
        }),
        intent,
    }
}

/// Who acts, from the status.
pub fn election(written: &Election) -> Result<fence::Election, Hold> {
    let epoch = u64::try_from(written.epoch).map_err(|error| invalid("status.election.epoch", &error))?;
    Ok(fence::Election {
        id: ElectionId::new(&written.id),
        epoch,
        claimed_at: written.claimed_at.0,
        settled: written.settled,
    })
}

/// Who acts, for the status.
pub fn written_election(election: &fence::Election) -> Election {
    Election {
        id: election.id.to_string(),
        epoch: i64::try_from(election.epoch).unwrap_or(i64::MAX),
        claimed_at: MicroTime(election.claimed_at),
        settled: election.settled,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use windlass_plan::{Reason, Record, poison::Proof, want::Target};

    use super::want;
    use crate::quorum_cluster::QuorumClusterSpec;

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
    #[case::own_image("version: 8.5.1\nimage: mirror.example/pd:custom", "pd:v8.1.0", "mirror.example/pd:custom")]
    fn the_image_is_todays_with_the_new_tag(#[case] yaml: &str, #[case] today: &str, #[case] expected: &str) {
        assert_eq!(want(&spec(yaml), today).unwrap().target.image, expected);
    }

    #[rstest]
    #[case::version("version: latest", "pd:v8.1.0", "spec.version")]
    #[case::image("version: 8.5.1\nimage: 'PD:8:5'", "pd:v8.1.0", "spec.image")]
    #[case::todays_image("version: 8.5.1", "::", "the StatefulSet's image")]
    #[case::deadline(
        "version: 8.5.1\nupgrade: { deadlines: { ready: soon } }",
        "pd:v8.1.0",
        "spec.upgrade.deadlines.ready"
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
    fn an_upgrade_is_read_as_it_was_written(#[values(Proof::Pending, Proof::PutBack, Proof::Proven)] proof: Proof) {
        let target = |version: &str| Target { version: version.parse().unwrap(), image: format!("pd:v{version}") };
        let order = windlass_plan::Order::LeaderLast;
        let mut record = Record::begin(order, target("8.5.0"), target("8.5.1"), 0, 3, jiff::Timestamp::UNIX_EPOCH);
        record.proof = proof;
        assert_eq!(super::record(&super::upgrade(&record, 3, None)).unwrap(), record);
    }

    #[test]
    fn deadlines_have_the_documented_defaults() {
        let wanted = want(&spec("version: 8.5.1"), "pd:v8.1.0").unwrap();
        assert_eq!(wanted.deadlines, want::Deadlines::default());
        assert_eq!(wanted.max_lag, 100);
    }
}
