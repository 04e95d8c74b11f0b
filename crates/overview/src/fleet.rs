//! One fleet as it stands, by what the operator wrote into its ServiceImage.

use std::cmp::Reverse;

use serde::Serialize;
use serde_json::Value;
use windlass_api::{
    ServiceImage, Word,
    conditions::{ConditionType, holds},
    reading,
    service_image::{TierSpec, TierStatus},
};

use crate::said::{Said, read};

/// How a fleet stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetOverview {
    /// The ServiceImage's name.
    pub name: String,
    /// The kind of its resources; empty where that can't be read.
    pub kind: String,
    /// Every tier is up to date with the newest spec.
    pub complete: bool,
    /// Up to date of all, like 120/200.
    pub progress: Option<String>,
    /// What the operator says, or waits for.
    pub said: Option<Said>,
    /// Highest priority first.
    pub tiers: Vec<Tier>,
}

/// A tier of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tier {
    /// The value of the label; the empty one has all that no other tier names.
    #[serde(rename = "upgradeTier")]
    pub name: String,
    /// The image that its resources shall have.
    pub image: String,
    /// Higher ones go first.
    pub priority: i64,
    /// How far it is.
    pub state: TierState,
    /// What the operator says of it in a word; none before it has said anything of this image.
    #[serde(rename = "reason")]
    pub word: Option<Word>,
    /// And in a sentence.
    pub message: String,
    /// Resources that have served and are the operator's to change.
    pub resources: i64,
    /// Those of them that are up to date.
    pub updated: i64,
    /// Those that are on their way.
    pub in_flight: i64,
    /// Those that failed.
    pub failed: i64,
    /// Resources whose image a person chose.
    pub manual: i64,
    /// Resources that another ServiceImage has.
    pub taken: i64,
    /// Resources that have never served.
    pub new: i64,
    /// How many of its shares that go first are done.
    pub shares_done: i64,
    /// Its image waits for `spec.requests.approve`.
    pub awaits_approval: bool,
}

/// How far a tier is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum TierState {
    /// Nobody has said anything of its image yet.
    NotSeen,
    /// Its turn has not come.
    Waiting,
    /// Its turn has come.
    InProgress,
    /// All of its resources are up to date.
    Complete,
}

impl FleetOverview {
    /// How a ServiceImage stands, read as leniently as the operator reads it: one that can't be read says so, and which field it is.
    pub fn read(raw: &Value) -> Self {
        match reading::service_image(raw) {
            Ok(resource) => Self::of(&resource),
            Err(hold) => Self {
                name: raw.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned(),
                kind: raw.pointer("/spec/target/kind").and_then(Value::as_str).unwrap_or_default().to_owned(),
                complete: false,
                progress: None,
                said: Some(Said::unreadable(&hold)),
                tiers: Vec::new(),
            },
        }
    }

    fn of(resource: &ServiceImage) -> Self {
        let status = resource.status.clone().unwrap_or_default();
        let generation = resource.metadata.generation;
        let mut tiers: Vec<Tier> = resource
            .spec
            .tiers
            .iter()
            .map(|spec| Tier::of(spec, resource.spec.default_image.as_deref(), &status.tier_status))
            .collect();
        tiers.sort_by_key(|tier| Reverse(tier.priority));
        Self {
            name: resource.metadata.name.clone().unwrap_or_default(),
            kind: resource.spec.target.kind.clone(),
            complete: holds(&status.conditions, ConditionType::Complete) && status.observed_generation == generation,
            progress: status.progress,
            said: Said::of(&status.conditions, generation),
            tiers,
        }
    }
}

impl Tier {
    fn of(spec: &TierSpec, default_image: Option<&str>, said: &[TierStatus]) -> Self {
        let image = spec.image.as_deref().or(default_image).unwrap_or_default();
        // What was said of the image before is no answer to this one.
        let said = said.iter().find(|said| said.upgrade_tier == spec.upgrade_tier && said.image == image);
        let TierStatus { conditions, resources, updated, in_flight, failed, manual, taken, new, .. } =
            said.cloned().unwrap_or_default();
        let state = match said {
            None => TierState::NotSeen,
            Some(_) if holds(&conditions, ConditionType::Complete) => TierState::Complete,
            Some(_) if holds(&conditions, ConditionType::InProgress) => TierState::InProgress,
            Some(_) => TierState::Waiting,
        };
        let (word, message) = conditions.first().map(read).map(|(word, message, _)| (word, message)).unzip();
        Self {
            name: spec.upgrade_tier.clone(),
            image: image.to_owned(),
            priority: spec.priority,
            state,
            word,
            message: message.unwrap_or_default(),
            resources,
            updated,
            in_flight,
            failed,
            manual,
            taken,
            new,
            shares_done: said.map_or(0, |said| said.canary_steps_done),
            awaits_approval: said.is_some_and(|said| said.awaits_approval),
        }
    }
}
