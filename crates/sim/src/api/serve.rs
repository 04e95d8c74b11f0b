//! The API over HTTP, for `kubectl` and other programs.

use std::convert::Infallible;

use http::{Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::error;
use super::handle::json_response;
use super::service::ReplyBody;
use super::{Api, Reply};

impl Api {
    /// Serves HTTP/1.1 on this listener until the future is dropped. The user is the first word of the caller's User-Agent.
    pub async fn serve(self, listener: TcpListener) -> std::io::Result<()> {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let (stream, peer) = listener.accept().await?;
            // The set is only there to end the connections with the server.
            while connections.try_join_next().is_some() {}
            let api = self.clone();
            connections.spawn(async move {
                let service = service_fn(move |request| answer(api.clone(), request));
                let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                if let Err(why) = served.await {
                    tracing::debug!(%peer, %why, "a connection ended early");
                }
            });
        }
    }
}

async fn answer(api: Api, request: Request<Incoming>) -> Result<Response<ReplyBody>, Infallible> {
    let agent = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let user = agent.split(['/', ' ']).next().filter(|word| !word.is_empty()).unwrap_or("unknown").to_owned();
    let (parts, body) = request.into_parts();
    let reply = match body.collect().await {
        Ok(body) => api.handle(&user, Request::from_parts(parts, body.to_bytes()), None),
        Err(why) => {
            let status = error::bad_request(why.to_string());
            Reply::Done(json_response(http::StatusCode::BAD_REQUEST, &error::to_value(&status)))
        }
    };
    Ok(reply.into_response())
}
