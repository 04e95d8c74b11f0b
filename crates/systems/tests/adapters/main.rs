//! The adapters against recorded answers, broken answers and no answers.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that lacks something has failed")]

mod etcd;
mod gates;
mod http;
mod network;
mod openbao;
mod pd;
mod scripted;
