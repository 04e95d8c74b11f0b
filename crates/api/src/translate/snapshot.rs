//! The last try to take a snapshot.

use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use windlass_plan::{
    Hold, Version,
    strategy::known::{snapshot::Attempt, want::Target},
};

use super::invalid;
use crate::status::jobs::SnapshotAttempt;

/// The last try to take a snapshot, from the status.
pub fn attempt(written: &SnapshotAttempt) -> Result<Attempt, Hold> {
    let SnapshotAttempt { attempt, target_version, target_image, since, job: _, used } = written;
    let field = |name: &str, error: &dyn std::fmt::Display| invalid(&format!("status.snapshot.{name}"), error);
    let version = Version::from_str(target_version).map_err(|error| field("targetVersion", &error))?;
    Ok(Attempt {
        number: u32::try_from(*attempt).map_err(|error| field("attempt", &error))?,
        target: Target { version, image: target_image.clone() },
        since: since.0,
        used: *used,
    })
}

/// The last try to take a snapshot, for the status.
pub fn written_attempt(attempt: &Attempt, job: String) -> SnapshotAttempt {
    let Attempt { number, target, since, used } = attempt;
    SnapshotAttempt {
        attempt: i32::try_from(*number).unwrap_or(i32::MAX),
        target_version: target.version.to_string(),
        target_image: target.image.clone(),
        since: MicroTime(*since),
        job,
        used: *used,
    }
}

#[cfg(test)]
mod tests {
    use super::{Attempt, Target, written_attempt};

    #[test]
    fn an_attempt_is_read_as_it_was_written() {
        let target = Target { version: "3.6.1".parse().unwrap(), image: "etcd:v3.6.1".into() };
        let attempt = Attempt { number: 3, target, since: jiff::Timestamp::UNIX_EPOCH, used: true };
        assert_eq!(super::attempt(&written_attempt(&attempt, "job".into())).unwrap(), attempt);
    }
}
