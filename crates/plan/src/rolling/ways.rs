//! Whether the system supports the way from one version to another, and nobody needs to allow it first (H15, H20).

use crate::{
    bug::{self, Bug},
    hold::Hold,
    reason::Reason,
    rolling::known::{
        record::Record,
        view::View,
        want::{Target, Want},
    },
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

pub(crate) fn path(want: &Want, view: &View, from: &Version, to: &Version) -> Result<(), Hold> {
    if bug::active(Bug::PathNotChecked) {
        return Ok(());
    }
    want.path.check(from, to, view.quorum.downgrade.as_ref()).map_err(|why| Hold::new(Reason::UnsupportedPath, why))
}
