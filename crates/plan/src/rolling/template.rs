//! The write of the template: the image, with everything held.

use crate::{
    bug::{self, Bug},
    hold::Hold,
    reason::Reason,
    rolling::{
        known::{
            owners::Field,
            record::Record,
            step::{Decision, Step},
            view::View,
        },
        owners,
    },
};

pub(crate) fn template_changed(view: &View, record: &Record) -> Hold {
    let (image, revision) = (&view.workload.image, &view.workload.update_revision);
    let message = match &record.revision {
        Some(seen) if *image == record.target.image => {
            format!("somebody changed the pod template, not its image: it is revision {revision} and was {seen}")
        }
        Some(_) | None => {
            format!("somebody set the image to {image}; this upgrade had set it to {}", record.target.image)
        }
    };
    Hold::new(Reason::TemplateChanged, format!("{message}{}", owners::blame(view, &[Field::Image])))
}

pub(crate) fn begin(record: Record, replicas: u32, slot: &mut Option<Record>) -> Decision {
    let decision = write_template(&record, replicas);
    *slot = Some(record);
    decision
}

pub(crate) fn write_template(record: &Record, replicas: u32) -> Decision {
    let strategy = (!bug::active(Bug::TemplateWithoutPartition)).then_some(record.order.holding(replicas));
    Decision::Act(Step::WriteTemplate { image: record.target.image.clone(), strategy })
}
