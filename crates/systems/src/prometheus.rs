//! Prometheus and what speaks like it: one query, evaluated now.
//!
//! Called by the operator for an analysis. It must never take an empty answer for a good one: what was not measured is not told.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};

use crate::{
    call::{CallError, call},
    escape,
    transport::{Peer, Transport},
};

/// What one series is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its labels; none for a scalar.
    pub labels: Map<String, Value>,
    /// Its value; perhaps not a number.
    pub value: f64,
}

/// Sends a query. `prefix` is where the API is below the top, like `/prometheus`; empty at the top. At least one sample, or an error.
pub async fn query(
    transport: &dyn Transport,
    peer: &Peer,
    prefix: &str,
    query: &str,
    limit: Duration,
) -> Result<Vec<Sample>, CallError> {
    let uri = format!("{}/api/v1/query?query={}", prefix.trim_end_matches('/'), escape::segment(query));
    let mut request = Request::new(Bytes::new());
    // A prefix that is none has been refused before; what is left of it is asked at the top and answered with 404.
    *request.uri_mut() = uri.parse().unwrap_or_default();
    call(transport, peer, request, limit).await?.read(meaning)
}

#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", tag = "resultType", content = "result")]
enum Data {
    Scalar(Point),
    Vector(Vec<Series>),
    // No kind of number.
    String(IgnoredAny),
    // A range, which is no value now.
    Matrix(IgnoredAny),
}

/// When, and how much, as a text.
#[derive(Deserialize)]
struct Point(IgnoredAny, String);

#[derive(Deserialize)]
struct Series {
    #[serde(default)]
    metric: Map<String, Value>,
    /// Missing for a histogram.
    value: Option<Point>,
}

fn meaning(answer: Answer) -> Result<Vec<Sample>, String> {
    let number = |Point(_, text): Point| text.parse::<f64>().map_err(|_| format!("{text} is no number"));
    match answer.data {
        Data::Scalar(point) => Ok(vec![Sample { labels: Map::new(), value: number(point)? }]),
        Data::Vector(series) if series.is_empty() => Err("the query yields nothing".to_owned()),
        Data::Vector(series) => series
            .into_iter()
            .map(|Series { metric, value }| {
                let value = value.ok_or("the query yields histograms, and a number is needed")?;
                Ok(Sample { labels: metric, value: number(value)? })
            })
            .collect(),
        Data::String(_) => Err("the query yields a text, and a number is needed".to_owned()),
        Data::Matrix(_) => Err("the query yields ranges, and one value now is needed".to_owned()),
    }
}
