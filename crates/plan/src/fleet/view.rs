//! Everything that a decision about a fleet is made from.

use std::collections::BTreeMap;

use super::{diagnosis::Diagnosis, index::Index, record::Record, want::TierName};
use crate::gate::ExternalGate;

/// What is seen of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The resources.
    pub index: &'a Index,
    /// How far it was.
    pub record: &'a Record,
    /// Gates that were evaluated elsewhere, for every tier.
    pub gates: &'a [ExternalGate],
    /// And those of one tier.
    pub tier_gates: &'a BTreeMap<TierName, Vec<ExternalGate>>,
    /// What is wrong with the pods behind a tier's resources.
    pub diagnoses: &'a BTreeMap<TierName, Diagnosis>,
    /// A person approved what is asked.
    pub approve: bool,
    /// A person asks to try again.
    pub retry: bool,
}
