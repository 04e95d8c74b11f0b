//! What happens to more than one application.

pub mod baseline;
pub mod broken_image;
pub mod deadline;
pub mod operator_killed;
pub mod rolling;
pub mod template;
