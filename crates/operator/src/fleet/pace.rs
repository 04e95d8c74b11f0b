//! How many writes of a fleet are under way at once: more while the API server answers as fast as ever, fewer when it slows down or says
//! that it has too much to do. Pure.
//!
//! A fleet is the bulk of what we send; who else uses the API server shall not notice it.

use std::time::Duration;

/// How many at first.
const FIRST: usize = 8;
/// An answer that takes so many times as long as usual says that the server has enough to do.
const SLOW: u32 = 4;
/// Shorter than this is never slow, whatever is usual.
const QUICK: Duration = Duration::from_millis(50);

/// What an answer says of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It did what it was asked for, or refused it for a reason of its own.
    Given,
    /// It has too much to do, or did not answer.
    Overloaded,
}

/// The width, and what it rests on.
#[derive(Clone, Debug)]
pub struct Pace {
    width: usize,
    cap: usize,
    /// What an answer usually takes; none before the first one.
    usual: Option<Duration>,
    /// Good answers since the width last changed.
    good: usize,
    /// Answers that were asked for before the width was halved say nothing new.
    stale: usize,
}

impl Pace {
    /// At most `cap` at once.
    pub fn new(cap: usize) -> Self {
        let cap = cap.max(1);
        Self { width: FIRST.min(cap), cap, usual: None, good: 0, stale: 0 }
    }

    /// How many may be under way at once.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Takes an answer in, which took so long.
    pub fn answered(&mut self, answer: Answer, took: Duration) {
        let usual = self.usual.unwrap_or(took);
        let slow = took > QUICK && took > usual.saturating_mul(SLOW);
        self.usual = Some(if slow { usual } else { blend(usual, took) });
        let stale = self.stale > 0;
        self.stale = self.stale.saturating_sub(1);
        if answer == Answer::Overloaded || slow {
            if !stale {
                self.stale = self.width.saturating_sub(1);
                self.width = self.width.div_ceil(2).max(1);
                self.good = 0;
            }
            return;
        }
        self.good = self.good.saturating_add(1);
        if self.good >= self.width && self.width < self.cap {
            self.width = self.width.saturating_add(1);
            self.good = 0;
        }
    }
}

/// What is usual moves a little towards what was seen.
fn blend(usual: Duration, took: Duration) -> Duration {
    usual.saturating_mul(15).saturating_add(took).checked_div(16).unwrap_or(usual)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Answer, FIRST, Pace};

    const USUAL: Duration = Duration::from_millis(20);

    fn after(pace: &mut Pace, count: usize, answer: Answer, took: Duration) -> usize {
        for _ in 0..count {
            pace.answered(answer, took);
        }
        pace.width()
    }

    #[test]
    fn grows_to_its_cap_while_answers_are_quick() {
        let mut pace = Pace::new(12);
        assert_eq!(pace.width(), FIRST);
        assert_eq!(after(&mut pace, FIRST, Answer::Given, USUAL), FIRST + 1);
        assert_eq!(after(&mut pace, 1000, Answer::Given, USUAL), 12);
    }

    #[test]
    fn halves_once_for_all_answers_of_one_moment() {
        let mut pace = Pace::new(32);
        after(&mut pace, 1000, Answer::Given, USUAL);
        assert_eq!(after(&mut pace, 1, Answer::Overloaded, USUAL), 16);
        assert_eq!(after(&mut pace, 31, Answer::Overloaded, USUAL), 16, "they were under way with the first");
        assert_eq!(after(&mut pace, 1, Answer::Overloaded, USUAL), 8);
        assert_eq!(after(&mut pace, 1000, Answer::Overloaded, USUAL), 1, "one is always tried");
        assert_eq!(after(&mut pace, 10_000, Answer::Given, USUAL), 32, "and it recovers");
    }

    #[test]
    fn slows_down_with_the_server() {
        let mut pace = Pace::new(32);
        let wide = after(&mut pace, 1000, Answer::Given, USUAL);
        assert!(after(&mut pace, wide, Answer::Given, USUAL * 10) < wide);
    }

    #[test]
    fn what_is_usual_on_a_slow_network_is_not_slow() {
        let mut pace = Pace::new(16);
        assert_eq!(after(&mut pace, 1000, Answer::Given, Duration::from_millis(400)), 16);
    }

    #[test]
    fn never_more_than_it_may() {
        assert_eq!(Pace::new(3).width(), 3);
        assert_eq!(Pace::new(0).width(), 1);
    }
}
