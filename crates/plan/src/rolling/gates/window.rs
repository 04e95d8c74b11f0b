//! Members are taken down, and hand over, only while a window is open that is long enough.

use crate::{
    bug::{self, Bug},
    gate::Outcome,
    rolling::gates::{ask::Ask, pace},
    window::open_for,
};

/// A window is open, and open for long enough as far as can be told.
pub(crate) fn open(ask: &Ask<'_>) -> Outcome {
    if bug::active(Bug::WindowIgnored) && ask.view.quorum.leader.is(&ask.victim.name) {
        return Outcome::Pass;
    }
    let needed = ask.record.and_then(pace::expected).filter(|_| !bug::active(Bug::WindowEndIgnored));
    open_for(&ask.want.windows, needed, ask.now)
}
