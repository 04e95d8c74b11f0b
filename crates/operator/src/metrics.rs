//! What is counted, for Prometheus. Nothing is labelled by resource: a fleet must not blow up the monitoring.

use std::{sync::atomic::AtomicU64, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use windlass_plan::{Reason, fleet, strategy::known::step::Step};

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

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByFleet {
    service_image: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByTier {
    service_image: String,
    tier: String,
    state: &'static str,
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
    fleet_upgrading: Family<ByFleet, Gauge>,
    fleet_changed: Family<ByFleet, Gauge>,
    fleet_priority: Family<ByFleet, Gauge>,
    fleet_priority_since: Family<ByFleet, Gauge>,
    fleet_resources: Family<ByTier, Gauge>,
    fleet_current: Family<ByTier, Gauge>,
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
            fleet_upgrading: Family::default(),
            fleet_changed: Family::default(),
            fleet_priority: Family::default(),
            fleet_priority_since: Family::default(),
            fleet_resources: Family::default(),
            fleet_current: Family::default(),
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
        let unix = "as seconds since 1970";
        registry.register("fleet_upgrading", "1 while a ServiceImage is not complete", metrics.fleet_upgrading.clone());
        registry.register(
            "fleet_changed_timestamp_seconds",
            format!("Since when a ServiceImage has been complete or not, {unix}"),
            metrics.fleet_changed.clone(),
        );
        registry.register(
            "fleet_current_priority",
            "The priority that is being worked on; absent when none is",
            metrics.fleet_priority.clone(),
        );
        registry.register(
            "fleet_current_priority_timestamp_seconds",
            format!("Since when that priority is being worked on, {unix}"),
            metrics.fleet_priority_since.clone(),
        );
        registry.register(
            "fleet_resources",
            "Resources by tier and state: latest, remaining, in-flight, failed, ignored-failure, unmanaged, new",
            metrics.fleet_resources.clone(),
        );
        registry.register(
            "fleet_current_priority_resources",
            "Resources of the tiers of the current priority, latest and remaining",
            metrics.fleet_current.clone(),
        );
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
    pub fn step(&self, step: &impl Step, failed: Option<Class>) {
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

    /// How far a fleet is (E10). Labelled by tier, never by resource.
    pub fn fleet(&self, name: &str, plan: &fleet::Plan, untaken: usize) {
        let by = || ByFleet { service_image: name.to_owned() };
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.fleet_upgrading.get_or_create(&by()).set(i64::from(plan.record.current.is_some()));
        let changed = plan.record.changed_at.map_or(0, jiff::Timestamp::as_second);
        self.fleet_changed.get_or_create(&by()).set(changed);
        if let Some((priority, since)) = plan.record.current {
            self.fleet_priority.get_or_create(&by()).set(priority);
            self.fleet_priority_since.get_or_create(&by()).set(since.as_second());
        } else {
            self.fleet_priority.remove(&by());
            self.fleet_priority_since.remove(&by());
        }
        let set = |family: &Family<ByTier, Gauge>, tier: &str, state, count| {
            let by = ByTier { service_image: name.to_owned(), tier: tier.to_owned(), state };
            family.get_or_create(&by).set(number(count));
        };
        for report in &plan.tiers {
            let states = [
                ("latest", report.done),
                ("remaining", report.remaining),
                ("in-flight", report.in_flight),
                ("failed", report.failed),
                ("ignored-failure", report.ignored),
                ("unmanaged", report.manual.saturating_add(report.taken)),
                ("new", report.new),
            ];
            for (state, count) in states {
                set(&self.fleet_resources, &report.name.0, state, count);
            }
            let current = plan.record.current.is_some_and(|(priority, _)| priority == report.priority);
            for (state, count) in [("latest", report.done), ("remaining", report.remaining)] {
                set(&self.fleet_current, &report.name.0, state, if current { count } else { 0 });
            }
        }
        // Those that no tier takes are nobody's to change, either.
        set(&self.fleet_resources, "", "untaken", untaken);
    }

    /// A ServiceImage is gone.
    pub fn forget_fleet(&self, name: &str) {
        let by = ByFleet { service_image: name.to_owned() };
        for family in [&self.fleet_upgrading, &self.fleet_changed, &self.fleet_priority, &self.fleet_priority_since] {
            family.remove(&by);
        }
        // Tiers are not known any more: what was said of them is dropped with everybody's, and said again at the next look.
        self.fleet_resources.clear();
        self.fleet_current.clear();
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
    use std::collections::BTreeMap;

    use windlass_plan::fleet::{Index, Record, Terms, Tier, TierName, View, Want, decide};

    use super::{Class, Metrics};

    #[test]
    fn e10_a_fleet_is_counted_by_tier_and_forgotten_with_its_service_image() {
        let tier = Tier {
            name: TierName("early".into()),
            image: "r/d:v2".into(),
            priority: 7,
            canary: Vec::new(),
            max_in_flight: None,
            max_failures: None,
            progress_deadline: std::time::Duration::from_mins(10),
            approval: true,
        };
        let want = Want {
            tiers: vec![tier],
            paused: false,
            windows: Vec::new(),
            overrides: BTreeMap::new(),
            lane_limit: None,
            batch: 10,
        };
        let now = jiff::Timestamp::from_second(1_000).unwrap();
        let (index, record) = (Index::new(Terms::default(), now), Record::default());
        let view = View {
            index: &index,
            record: &record,
            gates: &[],
            tier_gates: &BTreeMap::new(),
            diagnoses: &BTreeMap::new(),
            approve: false,
            retry: false,
        };
        // An index that knows nothing of the tier: it is not done, and its priority is the current one.
        let (metrics, plan) = (Metrics::default(), decide(&want, &view, now));
        metrics.fleet("dicom", &plan, 3);
        let text = metrics.text();
        for line in [
            r#"windlass_fleet_upgrading{service_image="dicom"} 1"#,
            r#"windlass_fleet_changed_timestamp_seconds{service_image="dicom"} 1000"#,
            r#"windlass_fleet_current_priority{service_image="dicom"} 7"#,
            r#"windlass_fleet_current_priority_timestamp_seconds{service_image="dicom"} 1000"#,
            r#"windlass_fleet_resources{service_image="dicom",tier="early",state="latest"} 0"#,
            r#"windlass_fleet_resources{service_image="dicom",tier="",state="untaken"} 3"#,
            r#"windlass_fleet_current_priority_resources{service_image="dicom",tier="early",state="remaining"} 0"#,
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        metrics.forget_fleet("dicom");
        assert!(!metrics.text().contains(r#"service_image="dicom""#), "{}", metrics.text());
    }

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
