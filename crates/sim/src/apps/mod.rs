//! Simulated applications.
