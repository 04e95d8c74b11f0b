//! What a Deployment's spec asks for.

use std::time::Duration;

use serde_json::Value;

use super::super::json::{Rounding, number, share, text};

/// A limit of this size means that there is none.
const UNLIMITED: i64 = i32::MAX as i64;

#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub replicas: i64,
    pub recreate: bool,
    pub paused: bool,
    /// How many pods there may be above the wanted number.
    pub surge: i64,
    /// How many of the wanted pods may be missing.
    pub unavailable: i64,
    pub min_ready: i64,
    /// How many old ReplicaSets are kept; all where there is no number.
    pub history: Option<i64>,
    /// How long nothing may move before the rollout counts as stuck.
    pub deadline: Option<Duration>,
}

impl Wanted {
    pub fn of(deployment: &Value) -> Self {
        let replicas = number(deployment, "/spec/replicas").unwrap_or(1);
        let recreate = text(deployment, "/spec/strategy/type") == "Recreate";
        let limit = |pointer: &str, rounding| {
            deployment.pointer(pointer).and_then(|value| share(value, replicas, rounding)).unwrap_or(0)
        };
        let surge = limit("/spec/strategy/rollingUpdate/maxSurge", Rounding::Up);
        let unavailable = match limit("/spec/strategy/rollingUpdate/maxUnavailable", Rounding::Down) {
            // Both may come to nothing by rounding, and then nothing would ever move.
            0 if surge == 0 => 1,
            limit => limit,
        };
        let seconds = number(deployment, "/spec/progressDeadlineSeconds").filter(|seconds| *seconds != UNLIMITED);
        Self {
            replicas,
            recreate,
            paused: deployment.pointer("/spec/paused") == Some(&Value::Bool(true)),
            surge: if recreate { 0 } else { surge },
            unavailable: if recreate { 0 } else { unavailable.min(replicas) },
            min_ready: number(deployment, "/spec/minReadySeconds").unwrap_or(0),
            history: number(deployment, "/spec/revisionHistoryLimit").filter(|limit| *limit != UNLIMITED),
            deadline: seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs),
        }
    }

    /// The most pods that there may be.
    pub fn most(&self) -> i64 {
        self.replicas + self.surge
    }

    /// The fewest pods that must be available.
    pub fn least(&self) -> i64 {
        self.replicas - self.unavailable
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(4, json!("25%"), json!("25%"), (1, 1))]
    #[case(3, json!("25%"), json!("25%"), (1, 0))]
    #[case(1, json!("0%"), json!("1%"), (0, 1))]
    #[case(2, json!(0), json!("10%"), (0, 1))]
    #[case(2, json!(0), json!(5), (0, 2))]
    #[case(10, json!("50%"), json!(0), (5, 0))]
    #[case(0, json!("25%"), json!("25%"), (0, 0))]
    fn the_surge_is_rounded_up_and_what_may_be_missing_down(
        #[case] replicas: i64,
        #[case] surge: Value,
        #[case] unavailable: Value,
        #[case] limits: (i64, i64),
    ) {
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        let wanted = Wanted::of(&json!({"spec": {"replicas": replicas, "strategy": strategy}}));
        assert_eq!((wanted.surge, wanted.unavailable), limits);
    }
}
