//! Container images: references.
//!
//! Reads what a person or a template wrote and changes the tag of it. It must never ask a registry, fill in a default
//! registry or tag, or reorder what was written: the text that goes back into a template is the text that came, except
//! for what was asked to change.

mod grammar;
mod reference;

pub use reference::{InvalidReference, Part, Problem, Reference};
