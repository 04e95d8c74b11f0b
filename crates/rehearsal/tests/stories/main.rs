//! The operator on the embedded cluster, one file for each thing that users see. One program: linking is what costs.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that lacks something has failed")]

mod admission;
mod adoption;
mod asked;
mod bad_input;
mod budgets;
mod clusters;
mod deadlines;
mod deletion;
mod etcd;
mod events;
mod evidence;
mod gates;
mod http;
mod leader_last;
mod logs;
mod mends;
mod mid_upgrade;
mod owners;
mod permits;
mod pods;
mod prepulls;
mod requests;
mod rights;
mod service_image;
mod service_image_company;
mod service_image_gates;
mod service_image_sight;
mod snapshots;
mod status;
mod support;
mod tls;
mod toy;
mod unreadable;
