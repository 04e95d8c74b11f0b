//! The operator's manifest fits the operator: what it mounts is where the operator looks, and is what the operator takes (H41).
#![allow(clippy::unwrap_used, reason = "a test that can't be set up fails")]

use serde_json::Value;
use windlass_operator::{
    Settings,
    dial::{LOGIN_AUDIENCE, LOGIN_TOKEN},
};

fn pod() -> Value {
    let manifest: Value = serde_saphyr::from_str(include_str!("../../../deploy/operator.yaml")).unwrap();
    manifest["spec"]["template"]["spec"].clone()
}

#[test]
fn the_token_to_log_in_with_is_for_that_alone() {
    let pod = pod();
    let source = &pod["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"];
    assert_eq!(source["audience"], LOGIN_AUDIENCE);
    assert_eq!(Settings::default().login_audience, LOGIN_AUDIENCE);
    let mount = &pod["containers"][0]["volumeMounts"][0];
    assert_eq!(mount["name"], pod["volumes"][0]["name"]);
    let path = format!("{}/{}", mount["mountPath"].as_str().unwrap(), source["path"].as_str().unwrap());
    assert_eq!(path, LOGIN_TOKEN);
}
