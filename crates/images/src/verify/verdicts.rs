//! Remembers what was verified, so that it is not fetched and verified in every pass.
//!
//! Only what can't become wrong is kept: this digest satisfied this policy. A refusal is not, because the missing signature may have been
//! pushed since; and what is unknown never is.

use std::collections::VecDeque;

use windlass_plan::bug::{self, Bug};

use super::{Layout, Policy, Signer, Verdict};
use crate::Digest;

/// More images than one operator rolls out at a time.
const LIMIT: usize = 1024;

/// What was verified, by image and policy. The oldest is forgotten when there are too many.
#[derive(Debug, Default)]
pub struct Verdicts(VecDeque<Entry>);

#[derive(Debug)]
struct Entry {
    image: Digest,
    policy: Digest,
    by: Signer,
    layout: Layout,
}

impl Verdicts {
    /// What is remembered of this image under exactly this policy.
    pub fn recall(&self, image: &Digest, policy: &Policy) -> Option<Verdict> {
        let policy = policy.fingerprint();
        let entry = self.0.iter().find(|entry| entry.is_of(image, &policy))?;
        Some(Verdict::Verified { by: entry.by.clone(), layout: entry.layout })
    }

    /// Remembers a verdict if it is one to remember.
    pub fn remember(&mut self, image: &Digest, policy: &Policy, verdict: &Verdict) {
        let Verdict::Verified { by, layout } = verdict else {
            return;
        };
        let policy = policy.fingerprint();
        if self.0.iter().any(|entry| entry.is_of(image, &policy)) {
            return;
        }
        if self.0.len() >= LIMIT {
            self.0.pop_front();
        }
        self.0.push_back(Entry { image: image.clone(), policy, by: by.clone(), layout: *layout });
    }
}

impl Entry {
    fn is_of(&self, image: &Digest, policy: &Digest) -> bool {
        self.image == *image && (self.policy == *policy || bug::active(Bug::CacheIgnoresPolicy))
    }
}
