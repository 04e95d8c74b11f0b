//! The API as a tower service, which a `kube::Client` takes for a connection.

use std::convert::Infallible;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use tower::{BoxError, Service};

use super::{Api, Reply};

/// The body of an answer: whole, or a watch's lines as they come.
pub type ReplyBody = UnsyncBoxBody<Bytes, BoxError>;

/// The embedded API as seen by one user, without a socket in between.
#[derive(Clone, Debug)]
pub struct InProcess {
    api: Api,
    user: String,
}

impl InProcess {
    pub(super) fn new(api: Api, user: &str) -> Self {
        Self { api, user: user.to_owned() }
    }

    /// Answers a request whose body is already here.
    pub fn answer(&self, request: Request<Bytes>) -> Response<ReplyBody> {
        self.api.handle(&self.user, request, None).into_response()
    }
}

impl Reply {
    /// The answer as a response with a body that can be streamed.
    pub fn into_response(self) -> Response<ReplyBody> {
        match self {
            Self::Done(response) => response.map(|bytes| Full::new(bytes).map_err(never).boxed_unsync()),
            Self::Watch(stream) => {
                let frames = stream.map(|line| Ok::<_, BoxError>(Frame::data(line)));
                let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
        }
    }
}

fn never(impossible: Infallible) -> BoxError {
    match impossible {}
}

impl Service<Request<kube::client::Body>> for InProcess {
    type Response = Response<ReplyBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            Ok(this.answer(Request::from_parts(parts, body)))
        })
    }
}
