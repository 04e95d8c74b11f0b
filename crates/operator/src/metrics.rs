//! What is counted, for Prometheus. Nothing is labelled by resource: a fleet must not blow up the monitoring.

use std::{sync::atomic::AtomicU64, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use windlass_plan::{Reason, Step};

use crate::error::Class;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByResult {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByStep {
    step: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByReason {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByVerb {
    verb: &'static str,
    result: &'static str,
}

/// All metrics of one operator.
pub struct Metrics {
    registry: Registry,
    leading: Gauge,
    passes: Family<ByResult, Counter>,
    steps: Family<ByStep, Counter>,
    holds: Family<ByReason, Counter>,
    writes: Family<ByVerb, Counter>,
    evidence: Histogram,
    take_overs: Counter<u64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("windlass");
        let metrics = Self {
            leading: Gauge::default(),
            passes: Family::default(),
            steps: Family::default(),
            holds: Family::default(),
            writes: Family::default(),
            evidence: Histogram::new([0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0]),
            take_overs: Counter::default(),
            registry: Registry::default(),
        };
        registry.register("leading", "1 while this process holds the lease", metrics.leading.clone());
        registry.register("passes", "Looks at a resource, by how they ended", metrics.passes.clone());
        registry.register("steps", "Acts, by kind and result", metrics.steps.clone());
        registry.register("holds", "Passes that ended in waiting, by reason", metrics.holds.clone());
        registry.register("writes", "Writes to the API server, by verb and result", metrics.writes.clone());
        registry.register_with_unit(
            "evidence_age",
            "Age of what a disruptive act rested on",
            Unit::Seconds,
            metrics.evidence.clone(),
        );
        registry.register("take_overs", "Resources taken over from another process", metrics.take_overs.clone());
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// In the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _never = encode(&mut text, &self.registry);
        text
    }

    /// Whether this process holds the lease.
    pub fn leading(&self, leading: bool) {
        self.leading.set(i64::from(leading));
    }

    /// A pass ended.
    pub fn pass(&self, failed: Option<Class>) {
        self.passes.get_or_create(&ByResult { result: result(failed) }).inc();
    }

    /// A step was carried out, or not.
    pub fn step(&self, step: &Step, failed: Option<Class>) {
        self.steps.get_or_create(&ByStep { step: step.name(), result: result(failed) }).inc();
    }

    /// A pass ended in waiting.
    pub fn hold(&self, reason: Reason) {
        self.holds.get_or_create(&ByReason { reason: reason.name() }).inc();
    }

    /// A write was answered, or not.
    pub fn write(&self, verb: &'static str, failed: Option<Class>) {
        self.writes.get_or_create(&ByVerb { verb, result: result(failed) }).inc();
    }

    /// How old the evidence of a disruptive act was.
    pub fn evidence(&self, age: Duration) {
        self.evidence.observe(age.as_secs_f64());
    }

    /// A resource was taken over.
    pub fn take_over(&self) {
        self.take_overs.inc();
    }
}

fn result(failed: Option<Class>) -> &'static str {
    failed.map_or("ok", Class::name)
}

#[cfg(test)]
mod tests {
    use super::{Class, Metrics};

    #[test]
    fn metrics_carry_units_and_results() {
        let metrics = Metrics::default();
        metrics.write("patch", Some(Class::Stale));
        metrics.evidence(std::time::Duration::from_millis(30));
        let text = metrics.text();
        assert!(text.contains(r#"windlass_writes_total{verb="patch",result="stale"} 1"#), "{text}");
        assert!(text.contains("windlass_evidence_age_seconds_bucket"), "{text}");
    }
}
