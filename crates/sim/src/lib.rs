//! An embedded Kubernetes cluster: the API, its controllers, kubelets and the applications in the pods, in one process,
//! on a virtual clock, with every random choice drawn from one seed.
//!
//! It knows the Kubernetes API and the applications' wire formats, and nothing of the operator under test: an operator is
//! whatever future the caller hands to the [`harness`], and who judges it comes with it.
//!
//! ```text
//!   operator ──kube::Client──▶ faults ──▶ api ◀── world (StatefulSet controller, kubelets, garbage collector)
//!        └────http request───▶ faults ──▶ world::dial ──▶ apps (PD, etcd, OpenBao)
//!                                   every write and every application state ──▶ journal ──▶ judges
//! ```

pub mod api;
pub mod apps;
pub mod clock;
pub mod faults;
pub mod harness;
pub mod journal;
pub mod objects;
pub mod rng;
pub mod scenario;
pub mod world;
