//! What the spec asks for.

use std::{str::FromStr, time::Duration};

use windlass_images::Reference;
use windlass_plan::{
    Hold, Version, Want,
    capabilities::Capabilities,
    strategy::known::want::{self, Target, Trigger},
    version::tag_for,
};

use super::{duration, gates::overrides, invalid, windows};
use crate::{
    QuorumClusterSpec,
    quorum_cluster::{backup::Backup, upgrade::Deadlines},
};

/// What the spec asks for, of a system that can do this, given the image that the StatefulSet names today.
pub fn want(spec: &QuorumClusterSpec, can: &Capabilities, todays_image: &str) -> Result<Want, Hold> {
    Ok(Want {
        target: match spec.trigger {
            Trigger::Version => target(spec, todays_image)?,
            Trigger::Template => templates_target(spec, todays_image)?,
        },
        trigger: spec.trigger,
        on_deadline: spec.on_deadline,
        path: can.path,
        order: spec.update_strategy.rolling_update.order,
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
        approval: spec.gates.approval.mode,
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;
    use windlass_plan::{
        Hold, Order, Reason, Want,
        approval::Mode,
        capabilities::{Capabilities, Credentials, HandOver},
        path,
        strategy::known::want::Deadlines,
        window::Window,
    };

    use super::QuorumClusterSpec;

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
        Some(Order::ReverseOrdinal)
    )]
    #[case::leader_last(
        "version: 8.5.1\nupdateStrategy: { rollingUpdate: { order: LeaderLast } }",
        Some(Order::LeaderLast)
    )]
    fn the_order_is_what_is_asked_for(#[case] yaml: &str, #[case] expected: Option<Order>) {
        assert_eq!(want(&spec(yaml), "pd:v8.1.0").unwrap().order, expected);
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
}
