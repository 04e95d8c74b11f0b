//! We never write a template that somebody else writes (X7).

use super::{
    Judge, Verdict,
    deed::{Deed, Step},
};

pub(super) struct Template;

impl Judge for Template {
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict) {
        if let Deed::Wrote(wrote) = step.deed
            && wrote.template
            && step.record.follows(&wrote.set)
        {
            verdict.object(step.at, "the template was written by us although somebody else writes it");
        }
    }
}
