//! Whether the system supports the way from one version to another, and nobody needs to allow it first (H15, H20).

use crate::{
    bug::{self, Bug},
    hold::Hold,
    reason::Reason,
    rolling::known::{
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

pub(crate) fn path(want: &Want, view: &View, from: &Version, to: &Version) -> Result<(), Hold> {
    if bug::active(Bug::PathNotChecked) {
        return Ok(());
    }
    want.path.check(from, to, view.quorum.downgrade.as_ref()).map_err(|why| Hold::new(Reason::UnsupportedPath, why))
}
