//! A pool of threads: many runs on all cores, with their results in order.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// Runs `job` for every number below `count` and collects what it returns, in order. `stop` ends it early: what comes after the first
/// result for which it is true may be missing.
pub fn run<T: Send>(count: usize, job: impl Fn(usize) -> T + Sync, stop: impl Fn(&T) -> bool + Sync) -> Vec<T> {
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while !stopped.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let result = job(number);
                    if stop(&result) {
                        stopped.store(true, Ordering::Relaxed);
                    }
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}
