//! Whether the system supports the way from one version to another, and nobody needs to allow it first (H15, H20).

use crate::{
    bug::{self, Bug},
    hold::Hold,
    path::Minors,
    reason::Reason,
    rolling::known::{record::Record, view::View},
    strategy::known::want::{Target, Want},
    version::Version,
};

/// Whether the system supports the way from what runs to the target, and nobody needs to allow it first (H15, H20).
pub(crate) fn passable(want: &Want, view: &View, to: &Target, from: &Version) -> Result<(), Hold> {
    if to.version < *from && !want.allow_downgrade && !bug::active(Bug::DowngradeUnnoticed) {
        return Err(Hold::new(Reason::DowngradeNotAllowed, format!("{from} runs, and {} is older", to.version)));
    }
    path(want, view, from, &to.version)
}

/// What has led counts, whatever runs by now: going below it is a downgrade of the data (H15).
pub(crate) fn not_below_led(want: &Want, record: &Record, to: &Version) -> Result<(), Hold> {
    match &record.highest_led {
        Some(led) if led > to && !want.allow_downgrade => {
            let message = format!(
                "a member of version {led} has led, or may have while nobody could look, so {to} is a downgrade"
            );
            Err(Hold::new(Reason::DowngradeNotAllowed, message))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether an upgrade that turned round may go on going back: since then somebody newer may have led, whoever brought that about (H15).
pub(crate) fn may_go_on(want: &Want, record: &Record) -> Result<(), Hold> {
    if !record.rolling_back || bug::active(Bug::LedOnTheWayBack) {
        return Ok(());
    }
    not_below_led(want, record, &record.target.version).map_err(|hold| {
        let way_out = "a new value in spec.requests.abort leaves all members as they are, and another version can be asked for then";
        Hold::new(hold.reason, format!("{}; {way_out}", hold.message))
    })
}

pub(crate) fn path(want: &Want, view: &View, from: &Version, to: &Version) -> Result<(), Hold> {
    if bug::active(Bug::PathNotChecked) {
        return Ok(());
    }
    want.path.check(from, to, view.quorum.downgrade.as_ref()).map_err(|why| Hold::new(Reason::UnsupportedPath, why))?;
    followed(want, view, from, to)
}

/// Whether the system as a whole has followed its members to what they run, before the first of them goes to the next minor release: that
/// one can't join a system that is two behind it, and while it is down the system can't follow (H20).
fn followed(want: &Want, view: &View, from: &Version, to: &Version) -> Result<(), Hold> {
    let next = want.path.minors == Minors::OneByOne && to.minor() > from.minor();
    if !next || bug::active(Bug::ClusterVersionIgnored) {
        return Ok(());
    }
    let system = want.path.system;
    match &view.quorum.agreed {
        Some(agreed) if agreed.minor() >= from.minor() => Ok(()),
        Some(agreed) => {
            let message = format!(
                "{from} runs, and the version of the whole {system} cluster is still {agreed}; {to} is entered when it has followed"
            );
            // A template of somebody else's may have brought it there already.
            let early = view.pods.iter().find(|pod| pod.is_down() && !view.is_outdated(pod));
            let early = early.map(|pod| format!(", which can't be while pod {} is not ready", pod.name));
            Err(Hold::new(Reason::ClusterVersionBehind, format!("{message}{}", early.unwrap_or_default())))
        }
        None => {
            let message = format!("the version of the whole {system} cluster, which {to} depends on, is not known");
            Err(Hold::new(Reason::MembersUnknown, message))
        }
    }
}
