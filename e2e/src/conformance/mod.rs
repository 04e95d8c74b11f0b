//! The embedded cluster held to the real one: the same scripts on both, and the answers compared.
#![expect(clippy::print_stdout, reason = "progress and differences are what these programs are for")]

pub mod api;
pub mod application;
pub mod command;
pub mod schema;
pub mod statefulset;
