//! The embedded cluster's world and its applications, against what real ones do.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that lacks something has failed")]

mod etcd;
mod openbao;
mod world_convergence;
mod world_deployment;
mod world_determinism;
mod world_garbage;
mod world_job;
mod world_kubelet;
mod world_openbao;
mod world_pd;
mod world_statefulset;
mod world_support;
