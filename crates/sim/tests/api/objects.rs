//! Creating and changing objects.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api as Objects, Patch, PatchParams, PostParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_created_object_gets_its_identity_from_the_server() {
    let api = api();
    let made = post(&api, MAPS, &config_map("a", "1"));
    assert_eq!(made.code, 201);
    assert_eq!(made.body["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(made.body["metadata"]["namespace"], "default");
    assert_eq!(made.body["metadata"]["uid"].as_str().unwrap().len(), 36);
    assert_eq!(made.revision(), api.revision().to_string());
    let again = post(&api, MAPS, &config_map("a", "1"));
    assert_eq!((again.code, again.reason()), (409, "AlreadyExists"));
    assert_eq!(again.message(), "configmaps \"a\" already exists");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_not_found() {
    let api = api();
    let answer = get(&api, &format!("{SETS}/none"));
    assert_eq!((answer.code, answer.reason()), (404, "NotFound"));
    assert_eq!(answer.message(), "statefulsets.apps \"none\" not found");
    assert_eq!(answer.body["details"], json!({"name": "none", "group": "apps", "kind": "statefulsets"}));
    let nowhere = post(&api, "/api/v1/namespaces/nowhere/configmaps", &config_map("a", "1"));
    assert_eq!((nowhere.code, nowhere.message()), (404, "namespaces \"nowhere\" not found"));
    let path = get(&api, "/apis/none.example/v1/things");
    assert_eq!((path.code, path.body), (404, json!("404 page not found\n")));
}

#[tokio::test(start_paused = true)]
async fn generated_names_are_the_same_in_every_run() {
    let names = || {
        let api = api();
        let object = json!({"metadata": {"generateName": "job-"}});
        let made: Vec<Value> = (0..3).map(|_| post(&api, MAPS, &object).body["metadata"]["name"].clone()).collect();
        made
    };
    let first = names();
    assert_eq!(first, names());
    assert_ne!(first[0], first[1]);
    assert!(first[0].as_str().unwrap().starts_with("job-"));
}

#[tokio::test(start_paused = true)]
async fn an_outdated_resource_version_is_a_conflict() {
    let api = api();
    let mut object = post(&api, MAPS, &config_map("a", "1")).body;
    let path = format!("{MAPS}/a");
    object["data"]["k"] = json!("2");
    assert_eq!(put(&api, &path, &object).code, 200);
    object["data"]["k"] = json!("3");
    let stale = put(&api, &path, &object);
    assert_eq!((stale.code, stale.reason()), (409, "Conflict"));
    assert_eq!(
        stale.message(),
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; \
         please apply your changes to the latest version and try again"
    );
    let outdated = json!({"metadata": {"resourceVersion": "1"}, "data": {"k": "4"}});
    assert_eq!(merge(&api, &path, &outdated).code, 409);
    let unconditional = put(&api, &path, &config_map("a", "5"));
    assert_eq!((unconditional.code, &unconditional.body["data"]["k"]), (200, &json!("5")));
}

#[tokio::test(start_paused = true)]
async fn a_uid_in_a_write_must_be_the_objects() {
    let api = api();
    let uid = post(&api, MAPS, &config_map("a", "1")).body["metadata"]["uid"].clone();
    let path = format!("{MAPS}/a");
    let mut object = config_map("a", "2");
    object["metadata"]["uid"] = json!("other");
    let other = put(&api, &path, &object);
    assert_eq!((other.code, other.reason()), (409, "Conflict"));
    let tail =
        format!("Precondition failed: UID in precondition: other, UID in object meta: {}", uid.as_str().unwrap());
    assert!(other.message().ends_with(&tail), "{}", other.message());
    let patched = merge(&api, &path, &json!({"metadata": {"uid": "other"}, "data": {"k": "2"}}));
    assert_eq!(patched.code, 422, "in a patch it is a field that can't change");
    assert!(patched.message().ends_with("metadata.uid: Invalid value: \"other\": field is immutable"));
    assert_eq!(merge(&api, &path, &json!({"metadata": {"uid": uid}, "data": {"k": "2"}})).code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_makes_no_revision() {
    let api = api();
    post(&api, MAPS, &config_map("a", "1"));
    let before = api.revision();
    assert_eq!(merge(&api, &format!("{MAPS}/a"), &json!({"data": {"k": "1"}})).code, 200);
    assert_eq!(put(&api, &format!("{MAPS}/a"), &config_map("a", "1")).code, 200);
    assert_eq!(api.revision(), before);
}

#[tokio::test(start_paused = true)]
async fn leases_need_a_resource_version_but_a_put_can_make_one() {
    let api = api();
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/lead";
    let lease = json!({"metadata": {"name": "lead"}, "spec": {"holderIdentity": "a"}});
    assert_eq!(put(&api, path, &lease).code, 201);
    let blind = put(&api, path, &lease);
    assert_eq!((blind.code, blind.reason()), (422, "Invalid"));
    assert_eq!(
        blind.message(),
        "leases.coordination.k8s.io \"lead\" is invalid: metadata.resourceVersion: Invalid value: 0: \
         must be specified for an update"
    );
    let held: Lease = api.get("default", "lead").unwrap();
    assert_eq!(held.spec.unwrap().holder_identity.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_applies_whole_or_not_at_all() {
    let api = api();
    post(&api, MAPS, &config_map("a", "1"));
    let path = format!("{MAPS}/a");
    let failed = json_patch(
        &api,
        &path,
        &json!([{"op": "replace", "path": "/data/k", "value": "2"}, {"op": "test", "path": "/data/k", "value": "9"}]),
    );
    assert_eq!((failed.code, failed.reason()), (422, "Invalid"));
    assert_eq!(failed.message(), "the server rejected our request due to an error in our request");
    assert_eq!(get(&api, &path).body["data"]["k"], "1");
    let good = json!([{"op": "test", "path": "/data/k", "value": "1"}, {"op": "add", "path": "/data/l", "value": "2"}]);
    assert_eq!(json_patch(&api, &path, &good).body["data"], json!({"k": "1", "l": "2"}));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_validates_and_stores_nothing() {
    let api = api();
    let before = api.revision();
    let made = post(&api, &format!("{MAPS}?dryRun=All"), &config_map("a", "1"));
    assert_eq!((made.code, made.revision()), (201, ""));
    assert_eq!(post(&api, &format!("{MAPS}?dryRun=All"), &config_map("A", "1")).code, 422);
    assert_eq!(get(&api, &format!("{MAPS}/a")).code, 404);
    post(&api, MAPS, &config_map("a", "1"));
    let changed = merge(&api, &format!("{MAPS}/a?dryRun=All"), &json!({"data": {"k": "2"}}));
    assert_eq!(changed.body["data"]["k"], "2");
    assert_eq!(get(&api, &format!("{MAPS}/a")).body["data"]["k"], "1");
    assert_eq!(api.revision(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_is_defaulted_as_the_real_server_does() {
    let api = api();
    let made = post(&api, SETS, &stateful_set("web")).body;
    let spec = &made["spec"];
    assert_eq!(spec["podManagementPolicy"], "OrderedReady");
    assert_eq!(spec["updateStrategy"], json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}));
    assert_eq!(spec["revisionHistoryLimit"], 10);
    assert_eq!(spec["template"]["spec"]["terminationGracePeriodSeconds"], 30);
    assert_eq!(spec["template"]["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
    assert_eq!(made["status"], json!({"replicas": 0, "availableReplicas": 0}));
    assert_eq!(made["metadata"]["generation"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_stateful_sets_generation_counts_changes_of_its_spec_only() {
    let api = api();
    post(&api, SETS, &stateful_set("web"));
    let path = format!("{SETS}/web");
    let generation = |body: &Value| merge(&api, &path, body).body["metadata"]["generation"].clone();
    assert_eq!(generation(&json!({"metadata": {"labels": {"a": "b"}}})), 1);
    assert_eq!(generation(&json!({"status": {"replicas": 7}})), 1);
    assert_eq!(generation(&json!({"spec": {"replicas": 4}})), 2);
    assert_eq!(get(&api, &path).body["status"]["replicas"], 0);
    let status = merge(&api, &format!("{path}/status"), &json!({"status": {"replicas": 7}, "spec": {"replicas": 9}}));
    assert_eq!(status.body["status"]["replicas"], 7);
    assert_eq!(status.body["spec"]["replicas"], 4);
    assert_eq!(status.body["metadata"]["generation"], 2);
}

#[rstest]
#[case(
    json!({"spec": {"serviceName": "other"}}),
    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
     'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)]
#[case(
    json!({"spec": {"updateStrategy": {"type": "OnDelete"}}}),
    "spec.updateStrategy.rollingUpdate: Invalid value: {\"MaxUnavailable\":null,\"Partition\":0}: \
     only allowed for updateStrategy 'RollingUpdate'"
)]
#[case(
    json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": -1}}}}),
    "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0"
)]
#[case(
    json!({"spec": {"template": {"metadata": {"labels": {"app": "other"}}}}}),
    "spec.template.metadata.labels: Invalid value: {\"app\":\"other\"}: `selector` does not match template `labels`"
)]
#[case(json!({"spec": {"replicas": -1}}), "spec.replicas: Invalid value: -1: must be greater than or equal to 0")]
#[tokio::test(start_paused = true)]
async fn a_stateful_set_refuses_what_the_real_server_refuses(#[case] patch: Value, #[case] why: &str) {
    let api = api();
    post(&api, SETS, &stateful_set("web"));
    let answer = merge(&api, &format!("{SETS}/web"), &patch);
    assert_eq!((answer.code, answer.reason()), (422, "Invalid"));
    assert_eq!(answer.message(), format!("StatefulSet.apps \"web\" is invalid: {why}"));
}

#[tokio::test(start_paused = true)]
async fn a_strategy_can_change_to_on_delete_when_its_parameters_go() {
    let api = api();
    post(&api, SETS, &stateful_set("web"));
    let patch = json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}});
    let answer = merge(&api, &format!("{SETS}/web"), &patch);
    assert_eq!((answer.code, &answer.body["spec"]["updateStrategy"]), (200, &json!({"type": "OnDelete"})));
}

#[tokio::test(start_paused = true)]
async fn a_pods_spec_is_fixed_but_for_its_images() {
    let api = api();
    let made = post(&api, PODS, &pod("a", Some("n"))).body;
    assert_eq!(made["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    assert_eq!(made["spec"]["restartPolicy"], "Always");
    let path = format!("{PODS}/a");
    post(&api, PODS, &pod("b", None));
    let placed = merge(&api, &format!("{PODS}/b"), &json!({"spec": {"nodeName": "n"}}));
    assert_eq!(placed.code, 422, "only a binding places a pod");
    let image = json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "db:2"}]);
    assert_eq!(json_patch(&api, &path, &image).body["metadata"]["generation"], 2);
    let moved = merge(&api, &path, &json!({"spec": {"nodeName": "other"}}));
    assert_eq!(moved.code, 422);
    assert!(moved.message().contains("pod updates may not change fields other than"), "{}", moved.message());
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_of_built_in_kinds_are_dropped_warned_of_or_refused() {
    let api = api();
    let mut set = stateful_set("web");
    set["spec"]["replica"] = json!(3);
    let strict = post(&api, &format!("{SETS}?fieldValidation=Strict"), &set);
    assert_eq!((strict.code, strict.reason()), (400, "BadRequest"));
    assert_eq!(
        strict.message(),
        "StatefulSet in version \"v1\" cannot be handled as a StatefulSet: strict decoding error: \
         unknown field \"spec.replica\""
    );
    let warned = post(&api, SETS, &set);
    assert_eq!(warned.code, 201);
    assert_eq!(warned.warnings, ["299 - \"unknown field \\\"spec.replica\\\"\""]);
    assert!(warned.body["spec"].get("replica").is_none());
    set["metadata"]["name"] = json!("other");
    set["spec"]["template"]["metadata"]["labels"]["app"] = json!("web");
    assert_eq!(post(&api, &format!("{SETS}?fieldValidation=Ignore"), &set).warnings, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn bad_names_and_bodies_are_refused() {
    let api = api();
    let name = post(&api, MAPS, &config_map("Not_Good", "1"));
    assert_eq!((name.code, name.reason()), (422, "Invalid"));
    assert!(name.message().starts_with(
        "ConfigMap \"Not_Good\" is invalid: metadata.name: Invalid value: \"Not_Good\": a lowercase RFC 1123 subdomain"
    ));
    post(&api, MAPS, &config_map("a", "1"));
    let other = put(&api, &format!("{MAPS}/a"), &config_map("b", "1"));
    assert_eq!(
        (other.code, other.message()),
        (400, "the name of the object (b) does not match the name on the URL (a)")
    );
    let mut elsewhere = config_map("c", "1");
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    let elsewhere = post(&api, MAPS, &elsewhere);
    assert_eq!(
        (elsewhere.code, elsewhere.message()),
        (400, "the namespace of the provided object does not match the namespace sent on the request")
    );
    let typed = post(&api, MAPS, &json!({"metadata": {"name": "c"}, "data": 5}));
    assert_eq!((typed.code, typed.reason()), (400, "BadRequest"));
}

#[tokio::test(start_paused = true)]
async fn custom_resources_take_no_strategic_merge_patch() {
    let api = api_with_widgets();
    post(&api, WIDGETS, &widget("a", &json!({"size": 1})));
    let media = "application/strategic-merge-patch+json";
    let answer = send(&api, http::Method::PATCH, &format!("{WIDGETS}/a"), media, &json!({}));
    assert_eq!((answer.code, answer.reason()), (415, "UnsupportedMediaType"));
    assert_eq!(
        answer.message(),
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
}

#[tokio::test(start_paused = true)]
async fn the_real_client_creates_patches_and_replaces() {
    let api = api();
    let sets: Objects<StatefulSet> = Objects::default_namespaced(api.client("windlass-0"));
    let set: StatefulSet = serde_json::from_value(stateful_set("web")).unwrap();
    let made = sets.create(&PostParams::default(), &set).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 3}}}}));
    let patched = sets.patch("web", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.metadata.generation, Some(2));
    let stale = sets.replace("web", &PostParams::default(), &made).await.unwrap_err();
    assert!(matches!(stale, kube::Error::Api(status) if status.is_conflict()));
    let gone = sets.get("none").await.unwrap_err();
    assert!(matches!(gone, kube::Error::Api(status) if status.is_not_found()));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_in_deletion_takes_nothing_new_and_goes_when_it_is_finalized() {
    let api = api();
    api.create_value("tester", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})).unwrap();
    let marked = delete(&api, "/api/v1/namespaces/x", &Value::Null);
    assert_eq!((marked.code, &marked.body["status"]["phase"]), (200, &json!("Terminating")));
    let refused = post(&api, "/api/v1/namespaces/x/configmaps", &config_map("a", "1"));
    assert_eq!((refused.code, refused.reason()), (403, "Forbidden"));
    assert_eq!(
        refused.message(),
        "configmaps \"a\" is forbidden: unable to create new content in namespace x because it is being terminated"
    );
    assert_eq!(refused.body["details"]["causes"][0]["reason"], "NamespaceTerminating");
    assert!(api.get::<Namespace>("", "x").is_some());
    api.finalize_namespace("namespace-controller", "x").unwrap();
    assert!(api.get::<Namespace>("", "x").is_none());
}

#[tokio::test(start_paused = true)]
async fn in_process_calls_mean_the_same_as_requests() {
    let api = api();
    let map: ConfigMap = serde_json::from_value(config_map("a", "1")).unwrap();
    let mut map = map;
    map.metadata.namespace = Some("default".to_owned());
    let made = api.create("tester", &map).unwrap();
    assert_eq!(api.list::<ConfigMap>("").len(), 1);
    let merged: ConfigMap = api.merge("tester", "default", "a", &json!({"data": {"k": "2"}})).unwrap();
    assert_eq!(merged.data.unwrap()["k"], "2");
    assert_eq!(api.replace("tester", &made).unwrap_err().reason, "Conflict");
    api.delete::<ConfigMap>("tester", "default", "a", &kube::api::DeleteParams::default()).unwrap();
    assert!(api.get::<ConfigMap>("default", "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn annotations_have_a_size_that_all_of_them_share() {
    let api = api();
    // Keys count, too.
    let room = 256 * 1024 - "k".len() - "other".len();
    let mut object = config_map("a", "1");
    object["metadata"]["annotations"] = json!({"k": "x".repeat(room), "other": ""});
    assert_eq!(post(&api, MAPS, &object).code, 201);
    let path = format!("{MAPS}/a");
    let more = merge(&api, &path, &json!({"metadata": {"annotations": {"other": "y"}}}));
    assert_eq!((more.code, more.reason()), (422, "Invalid"));
    let expected = "ConfigMap \"a\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes";
    assert_eq!(more.message(), expected);
    assert_eq!(merge(&api, &path, &json!({"data": {"k": "2"}})).code, 200, "what is there already does no harm");
}

#[tokio::test(start_paused = true)]
async fn a_policy_lets_no_write_change_what_it_names() {
    let api = api();
    post(&api, MAPS, &config_map("a", "1"));
    post(&api, MAPS, &config_map("b", "1"));
    api.freeze_fields("configmaps", "default", "a", &["/data/k".to_owned()]);
    let path = format!("{MAPS}/a");
    let change = json!({"data": {"k": "2"}});
    let denied = merge(&api, &path, &change);
    assert_eq!((denied.code, denied.reason()), (422, "Invalid"));
    assert!(denied.message().contains("denied request: /data/k may not change"), "{}", denied.message());
    assert_eq!(merge(&api, &format!("{path}?dryRun=All"), &change).code, 422);
    assert_eq!(merge(&api, &path, &json!({"metadata": {"labels": {"l": "1"}}})).code, 200);
    assert_eq!(merge(&api, &format!("{MAPS}/b"), &change).code, 200, "another one is left alone");
    api.freeze_fields("configmaps", "default", "a", &[]);
    assert_eq!(merge(&api, &path, &change).code, 200);
}
