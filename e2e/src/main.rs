//! What `cargo xtask cluster`, `conformance` and `e2e` run.

fn main() {}
