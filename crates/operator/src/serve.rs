//! The small HTTP server: is it alive, is it ready, what does it count.

use std::sync::Arc;

use axum::{Router, http::header::CONTENT_TYPE, routing::get};
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// Serves `/healthz`, `/readyz` and `/metrics` for ever.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>) -> std::io::Result<()> {
    let router = Router::new()
        // Both answer while the runtime turns. A standby is ready, too: it must not be restarted for not leading.
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(async || "ok\n"))
        .route(
            "/metrics",
            get(async move || {
                ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], metrics.text())
            }),
        );
    axum::serve(listener, router).await
}
