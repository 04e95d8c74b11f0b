//! Custom resources.

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_definition_is_established_at_once_and_its_resource_is_served() {
    let api = api_with_widgets();
    let definition = get(&api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com").body;
    assert_eq!(definition["status"]["conditions"][1]["type"], "Established");
    assert_eq!(definition["status"]["acceptedNames"]["singular"], "widget");
    assert_eq!(definition["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(post(&api, WIDGETS, &widget("a", &json!({"size": 1}))).code, 201);
    assert!(api.get_value("widgets.example.com", "default", "a").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_definition_must_be_sound() {
    let api = api();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut misnamed = widget_definition();
    misnamed["metadata"]["name"] = json!("gadgets.example.com");
    let answer = post(&api, path, &misnamed);
    assert_eq!(answer.code, 422);
    assert!(answer.message().contains("must be spec.names.plural+\".\"+spec.group"), "{}", answer.message());
    let mut broken = widget_definition();
    let schema = &mut broken["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-validations"][1]["rule"] = json!("self.size >");
    assert_eq!(post(&api, path, &broken).code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_new_object_is_defaulted_and_loses_its_status() {
    let api = api_with_widgets();
    let mut object = widget("a", &json!({"size": 1, "typo": true}));
    object["status"] = json!({"size": 5, "note": "mine"});
    let made = post(&api, WIDGETS, &object);
    assert_eq!(made.code, 201);
    assert_eq!(made.body["spec"], json!({"size": 1, "mode": "Safe"}));
    assert_eq!(made.body["status"], json!({"size": 0}), "what the schema defaults");
    assert_eq!(made.body["metadata"]["generation"], 1);
    assert_eq!(made.warnings, ["299 - \"unknown field \\\"spec.typo\\\"\""]);
    let strict = post(&api, &format!("{WIDGETS}?fieldValidation=Strict"), &widget("b", &json!({"size": 1, "typo": 1})));
    assert_eq!(strict.code, 400);
    assert_eq!(
        strict.message(),
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.typo\""
    );
}

#[tokio::test(start_paused = true)]
async fn spec_and_status_are_written_apart() {
    let api = api_with_widgets();
    post(&api, WIDGETS, &widget("a", &json!({"size": 1})));
    let path = format!("{WIDGETS}/a");
    let main = merge(&api, &path, &json!({"spec": {"size": 2}, "status": {"size": 9}})).body;
    assert_eq!((&main["status"]["size"], &main["metadata"]["generation"]), (&json!(0), &json!(2)));
    let status = merge(
        &api,
        &format!("{path}/status"),
        &json!({"spec": {"size": 3}, "status": {"size": 9}, "metadata": {"labels": {"a": "b"}}}),
    )
    .body;
    assert_eq!((&status["status"]["size"], &status["spec"]["size"]), (&json!(9), &json!(2)));
    assert_eq!(status["metadata"]["generation"], 2);
    assert!(status["metadata"].get("labels").is_none());
    let labels = merge(&api, &path, &json!({"metadata": {"labels": {"a": "b"}}})).body;
    assert_eq!(labels["metadata"]["generation"], 2);
}

#[rstest]
#[case(
    json!({}),
    "[spec.size: Required value, <nil>: Invalid value: null: some validation rules were not checked because the object was \
     invalid; correct the existing errors to complete validation]"
)]
#[case(json!({"size": 10}), "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9")]
#[case(
    json!({"size": 2, "mode": "Odd"}),
    "[spec.mode: Unsupported value: \"Odd\": supported values: \"Safe\", \"Fast\", <nil>: Invalid value: null: some validation \
     rules were not checked because the object was invalid; correct the existing errors to complete validation]"
)]
#[case(json!({"size": 3, "limit": 2}), "spec.size: Forbidden: size 3 is over the limit")]
#[case(
    json!({"size": 1, "mode": "Fast"}),
    "spec: Invalid value: \"object\": failed rule: self.mode != 'Fast' || self.size > 1"
)]
#[tokio::test(start_paused = true)]
async fn the_schema_and_its_rules_are_enforced(#[case] spec: Value, #[case] why: &str) {
    let api = api_with_widgets();
    let answer = post(&api, WIDGETS, &widget("a", &spec));
    assert_eq!((answer.code, answer.reason()), (422, "Invalid"));
    assert_eq!(answer.message(), format!("Widget.example.com \"a\" is invalid: {why}"));
}

#[tokio::test(start_paused = true)]
async fn transition_rules_compare_with_what_was() {
    let api = api_with_widgets();
    post(&api, WIDGETS, &widget("a", &json!({"size": 1, "name": "x"})));
    let path = format!("{WIDGETS}/a");
    let renamed = merge(&api, &path, &json!({"spec": {"name": "y"}}));
    assert_eq!(renamed.code, 422);
    assert_eq!(
        renamed.message(),
        "Widget.example.com \"a\" is invalid: spec.name: Invalid value: \"string\": name is immutable"
    );
    assert_eq!(merge(&api, &path, &json!({"spec": {"size": 2}})).code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_tightened_schema_lets_old_faults_stand_and_new_defaults_show() {
    let api = api_with_widgets();
    post(&api, WIDGETS, &widget("a", &json!({"size": 9})));
    let mut versions = widget_definition()["spec"]["versions"].clone();
    versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["maximum"] = json!(5);
    versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["extra"] =
        json!({"type": "string", "default": "new"});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    assert_eq!(merge(&api, path, &json!({"spec": {"versions": versions}})).code, 200);
    let path = format!("{WIDGETS}/a");
    assert_eq!(get(&api, &path).body["spec"]["extra"], "new");
    assert_eq!(merge(&api, &path, &json!({"spec": {"mode": "Fast"}})).code, 200, "the size did not change");
    assert_eq!(merge(&api, &path, &json!({"spec": {"size": 8}})).code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_put_needs_a_resource_version() {
    let api = api_with_widgets();
    post(&api, WIDGETS, &widget("a", &json!({"size": 1})));
    let answer = put(&api, &format!("{WIDGETS}/a"), &widget("a", &json!({"size": 2})));
    assert_eq!(answer.code, 422);
    assert_eq!(
        answer.message(),
        "widgets.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
    assert_eq!(put(&api, &format!("{WIDGETS}/none"), &widget("none", &json!({"size": 2}))).code, 404);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_definition_deletes_its_objects() {
    let api = api_with_widgets();
    post(&api, WIDGETS, &widget("a", &json!({"size": 1})));
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    assert_eq!(delete(&api, path, &Value::Null).code, 200);
    assert_eq!(get(&api, path).code, 404);
    assert_eq!(get(&api, WIDGETS).body, json!("404 page not found\n"));
    api.create_value("tester", widget_definition()).unwrap();
    assert_eq!(get(&api, WIDGETS).body["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_definition_waits_for_objects_that_have_finalizers() {
    let api = api_with_widgets();
    let mut object = widget("a", &json!({"size": 1}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    post(&api, WIDGETS, &object);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    delete(&api, path, &Value::Null);
    assert_eq!(post(&api, WIDGETS, &widget("b", &json!({"size": 1}))).code, 405);
    assert_eq!(get(&api, path).code, 200);
    merge(&api, &format!("{WIDGETS}/a"), &json!({"metadata": {"finalizers": null}}));
    assert_eq!(get(&api, path).code, 404);
}

#[tokio::test(start_paused = true)]
async fn replicas_can_be_scaled() {
    let api = api_with_widgets();
    post(&api, WIDGETS, &widget("a", &json!({"size": 1})));
    let scaled = merge(&api, &format!("{WIDGETS}/a/scale"), &json!({"spec": {"replicas": 4}}));
    assert_eq!((scaled.code, &scaled.body["spec"]["replicas"]), (200, &json!(4)));
    assert_eq!(get(&api, &format!("{WIDGETS}/a")).body["spec"]["size"], 4);
    post(&api, SETS, &stateful_set("web"));
    let scale = get(&api, &format!("{SETS}/web/scale")).body;
    assert_eq!(scale["status"]["selector"], "app=web");
}
