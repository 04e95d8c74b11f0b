//! Lets the cluster's clock run with the person's clock, so many times faster.
//!
//! The runtime's time is paused, and stands still as long as this task is either advancing it or sleeping for real: tokio moves paused
//! time by itself only when nothing else is under way, and work on a blocking thread counts as that.

use std::{
    cell::RefCell,
    rc::Rc,
    time::{Duration, Instant},
};

/// One step of the cluster's clock.
const STEP: Duration = Duration::from_millis(10);

/// Moves the clock, for ever. The speed may be changed while it runs.
pub async fn keep(speed: Rc<RefCell<f64>>) {
    // How far the cluster is ahead of the person, in the person's time.
    let mut ahead = Duration::ZERO;
    let mut last = Instant::now();
    loop {
        tokio::time::advance(STEP).await;
        ahead += STEP.div_f64(*speed.borrow());
        let passed = last.elapsed();
        last += passed;
        ahead = ahead.saturating_sub(passed);
        if ahead > Duration::from_millis(5) {
            // A failure to sleep would only make the demo faster.
            let _slept = tokio::task::spawn_blocking(move || std::thread::sleep(ahead)).await;
        }
    }
}
