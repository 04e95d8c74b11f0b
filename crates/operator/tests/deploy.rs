//! The manifests fit the operator: it may have the tokens that it logs in with, and no others (H41).
#![allow(clippy::unwrap_used, reason = "a test that can't be set up fails")]

use serde_json::{Value, json};
use windlass_operator::members::account::Tokens;

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

#[test]
fn h41_the_operator_gets_tokens_of_its_own_account_alone() {
    let deployment: Value = serde_saphyr::from_str(include_str!("../../../deploy/operator.yaml")).unwrap();
    let account = &deployment["spec"]["template"]["spec"]["serviceAccountName"];
    let Tokens::Requested { namespace, account: asked } = Tokens::shipped() else { panic!("read from a file") };
    assert_eq!((&deployment["metadata"]["namespace"], account), (&json!(namespace), &json!(asked)));
    let rules: Vec<(Value, Value)> = documents(include_str!("../../../deploy/rbac.yaml"))
        .into_iter()
        .filter(|document| document["rules"].to_string().contains("serviceaccounts"))
        .map(|role| (role["metadata"]["namespace"].clone(), role["rules"].clone()))
        .collect();
    let expected = json!([{"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": [asked], "verbs": ["create"]}]);
    assert_eq!(rules, [(json!(namespace), expected)]);
}
