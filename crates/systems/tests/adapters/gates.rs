//! What gates ask over HTTP: Prometheus and webhooks, answering well, badly and not at all.

use std::time::Duration;

use crate::scripted::{Answering, Scripted, peer};
use rstest::rstest;
use serde_json::json;
use windlass_systems::{
    prometheus,
    webhook::{self, Said},
};

const LIMIT: Duration = Duration::from_secs(3);

async fn query(status: u16, body: &str) -> Result<Vec<f64>, String> {
    let server = Scripted::new().on("/prom/api/v1/query", Answering::with(status, body));
    let samples = prometheus::query(&server, &peer("prometheus"), "/prom/", "rate(x[5m]) > 0 & \"é\"", LIMIT).await;
    samples.map(|samples| samples.into_iter().map(|sample| sample.value).collect()).map_err(|error| error.to_string())
}

#[rstest]
#[case::a_vector(r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"job":"a"},"value":[1.5,"0.25"]},{"metric":{},"value":[1.5,"3"]}]}}"#, &[0.25, 3.0])]
#[case::a_scalar(r#"{"status":"success","data":{"resultType":"scalar","result":[1435781451.781,"1"]}}"#, &[1.0])]
#[case::past_every_number(r#"{"status":"success","data":{"resultType":"scalar","result":[1,"+Inf"]}}"#, &[f64::INFINITY])]
#[tokio::test]
async fn values_are_read(#[case] body: &str, #[case] expected: &[f64]) {
    assert_eq!(query(200, body).await.unwrap(), expected);
}

#[rstest]
#[case::nothing(200, r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#, "yields nothing")]
#[case::a_range(200, r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#, "yields ranges")]
#[case::a_text(200, r#"{"status":"success","data":{"resultType":"string","result":[1,"a"]}}"#, "yields a text")]
#[case::histograms(
    200,
    r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{}]}]}}"#,
    "histograms"
)]
#[case::no_number(
    200,
    r#"{"status":"success","data":{"resultType":"scalar","result":[1,"much"]}}"#,
    "much is no number"
)]
#[case::a_bad_query(
    400,
    r#"{"status":"error","errorType":"bad_data","error":"parse error: unexpected end"}"#,
    "400 to GET /prom/api/v1/query: parse error: unexpected end"
)]
#[case::overloaded(503, "", "answered 503")]
#[case::a_web_page(200, "<html>", "unreadable")]
#[tokio::test]
async fn what_is_no_measurement_is_not_told(#[case] status: u16, #[case] body: &str, #[case] expected: &str) {
    let error = query(status, body).await.unwrap_err();
    assert!(error.contains(expected), "{error}");
    assert!(!error.contains("rate("), "the query may hold what others must not see: {error}");
}

#[rstest]
#[case::yes(200, "", Ok(Said::Yes))]
#[case::yes_without_a_word(204, "", Ok(Said::Yes))]
#[case::no(409, r#"{"message": "change freeze\nuntil Monday"}"#, Ok(Said::No("change freeze until Monday".into())))]
#[case::no_without_a_word(409, "", Ok(Said::No("it says no".into())))]
#[case::elsewhere(302, "", Err("answered 302"))]
#[case::not_there(404, "no such page", Err("404 to POST /ask: no such page"))]
#[case::broken(500, "", Err("answered 500"))]
#[tokio::test]
async fn a_webhook_says_yes_or_no_or_nothing(
    #[case] status: u16,
    #[case] body: &str,
    #[case] expected: Result<Said, &str>,
) {
    let server = Scripted::new().on("/ask", Answering::with(status, body));
    let said = webhook::ask(&server, &peer("hooks"), "/ask", &json!({"hook": "freeze"}), LIMIT).await;
    match (said, expected) {
        (Ok(said), Ok(expected)) => assert_eq!(said, expected),
        (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
        (said, expected) => panic!("{said:?} and not {expected:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_no_answer() {
    let server = Scripted::new().silence("hooks");
    let said = webhook::ask(&server, &peer("hooks"), "/ask", &json!({}), LIMIT).await;
    assert!(said.unwrap_err().to_string().contains("did not answer POST /ask in time"));
}
