//! Gates: what the spec says of them, and where they stand for the status.

use std::collections::BTreeMap;

use jiff::Timestamp;
use windlass_plan::{
    Hold,
    gate::GateState,
    rolling::gates::list::check_overrides,
    window::{NotAWindow, Window},
};

use super::{duration, invalid};
use crate::{
    conditions::cut, gates::MaintenanceWindow, quorum_cluster::gates::Gates, status::gates::GateStatus, word::Written,
};

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
pub(super) fn overrides(gates: &Gates) -> Result<BTreeMap<String, Timestamp>, Hold> {
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

/// Where a gate stands, for the status.
pub fn gate(gate: &GateState) -> GateStatus {
    GateStatus {
        name: gate.name.clone().into_owned(),
        state: Written::Known(gate.state),
        reason: gate.hold.as_ref().map(|hold| hold.reason.into()),
        message: Some(cut(&gate.message())).filter(|message| !message.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use windlass_plan::gate::{KINDS, overridable_names};

    use crate::quorum_cluster::gates::OVERRIDABLE;

    #[test]
    fn the_schema_names_every_gate_that_can_be_overridden() {
        let missing: Vec<&str> = overridable_names().filter(|name| !OVERRIDABLE.contains(name)).collect();
        assert_eq!(missing, Vec::<&str>::new());
        assert!(KINDS.iter().all(|kind| OVERRIDABLE.contains(kind)));
    }
}
