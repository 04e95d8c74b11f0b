//! The embedded API server: Kubernetes' API over an in-memory store, on the cluster's clock.
//!
//! ```text
//!   kube::Client ─▶ service ─┐
//!   kubectl ──HTTP─▶ serve ──┼─▶ handle ─▶ query ─┬─▶ read, watch ──────────▶ store ─▶ journal
//!   controllers ───▶ typed ──┴────────────────────┴─▶ write, delete, patch ─▶  ▲
//!                                                        ├ builtin, definition (schema) ┤
//!                                                        └ managed_fields (fields, types) ┘
//! ```
//!
//! Every request is answered at once under one lock, so requests have one order and one revision counter. Only watches
//! outlive their request; they wake through channels, never by polling. Nothing here is random: uids and generated names
//! come from a counter, and the time from the cluster's clock.
//!
//! Not here yet: conversion webhooks, admission plugins (no service account, tolerations or priority is injected into pods), policies
//! other than those that freeze fields ([`Api::freeze_fields`]), and access control.

mod admission;
mod builtin;
mod definition;
mod delete;
mod discovery;
mod error;
mod events;
mod eviction;
mod fields;
mod form;
mod handle;
mod key;
mod list_options;
mod managed_fields;
mod metadata;
mod newest;
mod object;
mod openapi;
mod patch;
mod process_log;
mod protobuf;
mod query;
mod read;
mod resource;
mod scale;
mod schema;
mod selector;
mod selector_text;
mod serve;
mod service;
mod store;
mod table;
mod typed;
mod types;
mod watch;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use serde_json::json;

pub use self::admission::Webhook;
pub use self::newest::{Ended, Revisions};
pub use self::resource::{BuiltInKind, built_in_kinds};
pub use self::selector::selects;
pub use self::service::{InProcess, ReplyBody};
pub use self::typed::Object;
pub use self::watch::WatchStream;

use self::store::Store;

/// How the values of built-in types are merged, as a table.
pub const BUILT_IN_TYPES: &str = types::BUILT_IN;
use crate::clock::Clock;
use crate::journal::Journal;

/// An answer.
#[derive(Debug)]
pub enum Reply {
    /// All of it.
    Done(Response<Bytes>),
    /// The events of a watch, as they come; the status is 200.
    Watch(WatchStream),
}

/// One embedded API server; clones are the same server.
#[derive(Clone, Debug)]
pub struct Api(Arc<Mutex<Store>>);

impl Api {
    /// A server that knows the built-in resources and the namespaces `default` and `kube-system`.
    pub fn new(clock: Clock, journal: Journal) -> Self {
        let api = Self(Arc::new(Mutex::new(Store::new(clock, journal))));
        for name in ["default", "kube-system"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            if let Err(status) = api.create_value("kube-apiserver", namespace) {
                tracing::error!(%name, %status, "a namespace that every cluster has could not be made");
            }
        }
        api
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client that talks to this server without sockets, as this user, with `default` for its namespace. Must be called
    /// inside a tokio runtime.
    pub fn client(&self, user: &str) -> kube::Client {
        kube::Client::new(self.service(user), "default")
    }

    /// The service under such a client, for layers in between.
    pub fn service(&self, user: &str) -> InProcess {
        InProcess::new(self.clone(), user)
    }

    /// Answers a request. With `at`, a GET or a list is served as of that older revision: a stale read.
    #[expect(clippy::needless_pass_by_value, reason = "a request is consumed by its answer")]
    pub fn handle(&self, user: &str, request: Request<Bytes>, at: Option<u64>) -> Reply {
        self.answer(user, &request, at)
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.lock().revision()
    }

    /// The newest revision, and every change of it.
    pub fn subscribe(&self) -> Revisions {
        self.lock().subscribe()
    }

    /// Forgets the history before this revision: older watches and continued lists are answered with 410 from now on.
    pub fn compact(&self, revision: u64) {
        self.lock().compact(revision);
    }

    /// From now on no write may change these fields of an object, given as JSON pointers; with none, everything may change again.
    /// `resource` is its plural and group.
    pub fn freeze_fields(&self, resource: &str, namespace: &str, name: &str, fields: &[String]) {
        self.lock().policies.set(resource, key::Key::new(namespace, name), fields.to_vec());
    }

    /// From now on a webhook that is asked about writes to this object goes wrong like this, where their bodies have these words in them;
    /// with none, it works again. `resource` is its plural and group. Whoever sends the write finds out ([`Self::webhook`]).
    pub fn set_webhook(&self, resource: &str, namespace: &str, name: &str, how: Option<Webhook>, about: &str) {
        self.lock().webhooks.set(resource, &key::Key::new(namespace, name), how, about);
    }

    /// How the webhook goes wrong that is asked about this write, if it does.
    pub fn webhook(&self, path: &str, body: &[u8]) -> Option<Webhook> {
        self.lock().webhooks.asked(path, body)
    }

    /// Everything is as it was at this revision, and counting goes on from there: etcd was restored from a snapshot.
    pub fn restore(&self, revision: u64) {
        self.lock().restore(revision);
    }

    /// Whether lists and watches of a resource fail from now on, as where the conversion webhook of its kind is away. `resource` is its
    /// plural and group.
    pub fn set_unlistable(&self, resource: &str, unlistable: bool) {
        self.lock().set_unlistable(resource, unlistable);
    }

    /// Open watches of users whose names begin so stand still: no event, no bookmark, no end.
    pub fn still_watches(&self, whose: &str) {
        self.lock().still_watches(whose);
    }

    /// Ends all open watches as a lost connection would, or those of one user.
    pub fn drop_watches(&self, user: Option<&str>) {
        self.lock().drop_watches(user);
    }
}
