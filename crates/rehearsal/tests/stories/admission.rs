//! What the API server refuses by the shipped definition, what it fills in, and what can't be changed: through kube's own client.

use crate::support::{FROM, TO, three};
use http::{Method, Request};
use serde_json::{Value, json};
use windlass_rehearsal::{pd, setting::HTTP};
use windlass_sim::{api::Api, clock::Clock, journal::Journal};

const COLLECTION: &str = "/apis/windlass.dev/v1alpha1/namespaces/tikv/quorumclusters";

/// A cluster with the shipped definition.
fn api() -> Api {
    let api = Api::new(Clock::start(), Journal::default());
    for object in three().into_iter().filter(|object| object["kind"] != "QuorumCluster") {
        api.create_value("user", object).expect("an object that the API takes");
    }
    api
}

/// What the client gets: the status code and the body.
async fn send(api: &Api, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request =
        Request::builder().method(method).uri(path).header("content-type", kind).body(body.to_string().into_bytes());
    let response = api.client("user").send(request.expect("a request").map(Into::into)).await.expect("an answer");
    let code = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.expect("a body");
    (code, serde_json::from_slice(&body).expect("JSON"))
}

async fn create(api: &Api, spec: Value) -> (u16, Value) {
    let mut resource = pd::quorum_cluster(pd::NAME, TO);
    merge(&mut resource["spec"], spec);
    send(api, Method::POST, COLLECTION, &resource).await
}

async fn change(api: &Api, spec: Value) -> (u16, Value) {
    send(api, Method::PATCH, &format!("{COLLECTION}/pd"), &json!({ "spec": spec })).await
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                if value.is_null() {
                    into.remove(&key);
                } else {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (into, from) => *into = from,
    }
}

/// The API server refuses this, and its message names the field.
#[track_caller]
fn is_refused(answer: &(u16, Value), field: &str) {
    let (code, status) = answer;
    assert_eq!((*code, &status["reason"]), (422, &json!("Invalid")), "{status}");
    let message = status["message"].as_str().expect("a message");
    assert!(message.contains(field), "{field} is not in {message:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_version_is_refused() {
    for wrong in ["latest", "", "8.5", "8.5.x", "8.5.3 ", "8,5,3", "V8.5.3", "8.5.3/../x"] {
        is_refused(&create(&api(), json!({"version": wrong})).await, "spec.version");
    }
    is_refused(&create(&api(), json!({"version": null})).await, "spec.version");
}

#[tokio::test(start_paused = true)]
async fn a_right_version_is_taken() {
    for right in ["8.5.3", "v8.5.3", "8.5.3-rc.1", "9.0.0-beta.2+build.7"] {
        assert_eq!(create(&api(), json!({"version": right})).await.0, 201, "{right}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_or_endless_image_is_refused() {
    is_refused(&create(&api(), json!({"image": ""})).await, "spec.image");
    is_refused(&create(&api(), json!({"image": "a".repeat(1025)})).await, "spec.image");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_system_is_refused() {
    is_refused(&create(&api(), json!({"system": {"type": "Oracle"}})).await, "spec.system.type");
    is_refused(&create(&api(), json!({"system": {"type": null}})).await, "spec.system.type");
}

#[tokio::test(start_paused = true)]
async fn a_system_is_described_where_nothing_is_known_of_it_and_only_there() {
    let described = HTTP.quorum_cluster(pd::NAME, TO)["spec"]["system"].clone();
    let with = |change: Value| {
        let mut system = described.clone();
        merge(&mut system, change);
        json!({ "system": system })
    };
    assert_eq!(create(&api(), with(json!({}))).await.0, 201);
    assert_eq!(create(&api(), with(json!({"auth": {"tokenSecret": "token", "allowPlaintext": true}}))).await.0, 201);
    is_refused(&create(&api(), with(json!({"http": null}))).await, "spec.system.http");
    is_refused(&create(&api(), with(json!({"type": "Etcd"}))).await, "spec.system.http");
    is_refused(&create(&api(), with(json!({"auth": {"kubernetes": {"role": "x"}}}))).await, "spec.system.auth");
    for (change, field) in [
        (json!({"health": null}), "spec.system.http.health"),
        (json!({"leader": {"cel": ""}}), "spec.system.http.leader.cel"),
        (json!({"version": {"cel": "1".repeat(1025)}}), "spec.system.http.version.cel"),
        (json!({"version": {"path": "version"}}), "spec.system.http.version.path"),
        (json!({"version": {"method": "DELETE"}}), "spec.system.http.version.method"),
        (json!({"handOver": {"pathCel": "target"}}), "set either path or pathCel"),
        (json!({"handOver": {"path": null}}), "set either path or pathCel"),
        (json!({"handOver": {"body": "x"}}), "set body or bodyCel, not both"),
    ] {
        is_refused(&create(&api(), with(json!({ "http": change }))).await, field);
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_is_for_etcd() {
    let user = json!({"passwordSecret": "etcd-user", "allowPlaintext": true});
    assert_eq!(create(&api(), json!({"system": {"type": "Etcd", "auth": user}})).await.0, 201);
    for system in ["Pd", "OpenBao", "Vault"] {
        is_refused(&create(&api(), json!({"system": {"type": system, "auth": user}})).await, "spec.system.auth");
    }
    let both = json!({"passwordSecret": "etcd-user", "tokenSecret": "token", "allowPlaintext": true});
    is_refused(&create(&api(), json!({"system": {"type": "Etcd", "auth": both}})).await, "exactly one of");
}

#[tokio::test(start_paused = true)]
async fn init_containers_can_be_named_later_and_follow_what_we_write() {
    let api = api();
    assert_eq!(create(&api, json!({})).await.0, 201);
    assert_eq!(change(&api, json!({"workload": {"initContainers": ["check"]}})).await.0, 200);
    is_refused(&change(&api, json!({"workload": {"container": "other"}})).await, "workload can't change");
    let template = json!({"trigger": "Template", "version": null});
    is_refused(&change(&api, template).await, "spec.workload.initContainers");
}

#[tokio::test(start_paused = true)]
async fn a_name_to_verify_is_one_name() {
    let with = |name: &str| json!({"system": {"tls": {"caSecret": "ca", "serverName": name}}});
    for right in ["{pod}.etcd.example", "etcd.example", "etcd-{pod}.example", "{pod}", "a.{pod}.example"] {
        assert_eq!(create(&api(), with(right)).await.0, 201, "{right}");
    }
    for wrong in
        ["", "*.etcd.example", "{ordinal}.etcd.example", "{pod", "pod}.x", ".x", "x.", "-x", "x-", "a b", "https://x"]
    {
        is_refused(&create(&api(), with(wrong)).await, "spec.system.tls.serverName");
    }
}

/// The operator logs in to OpenBao and Vault, and shows its token to nothing else (H41).
#[tokio::test(start_paused = true)]
async fn a_token_is_for_systems_that_take_one() {
    let login = json!({"role": "windlass"});
    let ways = [json!({"kubernetes": login}), json!({"jwt": login}), json!({"tokenSecret": "token"})];
    for way in ways {
        for (system, why) in [("Pd", "the type Pd takes none"), ("Etcd", "passwordSecret alone")] {
            let answer = create(&api(), json!({"system": {"type": system, "auth": way}})).await;
            is_refused(&answer, "spec.system.auth");
            is_refused(&answer, why);
        }
        for system in ["OpenBao", "Vault"] {
            let tls = json!({"type": system, "auth": way, "tls": {"caSecret": "ca"}});
            let (code, made) = create(&api(), json!({ "system": tls })).await;
            assert_eq!(code, 201, "{made}");
            // Whoever listens to the network has it.
            let mut plain = json!({"type": system, "auth": way});
            is_refused(&create(&api(), json!({ "system": plain })).await, "without tls");
            merge(&mut plain, json!({"auth": {"allowPlaintext": true}}));
            assert_eq!(create(&api(), json!({ "system": plain })).await.0, 201);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_none_is_refused() {
    for wrong in [0, -1, 65536] {
        is_refused(&create(&api(), json!({"system": {"port": wrong}})).await, "spec.system.port");
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_without_names_is_refused() {
    is_refused(&create(&api(), json!({"workload": {"statefulSet": ""}})).await, "spec.workload.statefulSet");
    is_refused(&create(&api(), json!({"workload": {"container": ""}})).await, "spec.workload.container");
    is_refused(&create(&api(), json!({"workload": {"container": null}})).await, "spec.workload.container");
}

/// A name becomes part of a request's path, and must not lead anywhere else (H41).
#[tokio::test(start_paused = true)]
async fn h41_a_name_that_is_none_is_refused() {
    let backup = |part: Value| {
        let mut backup = json!({"destination": {"volume": {"claimName": "backups"}}});
        merge(&mut backup, part);
        json!({"system": {"type": "Etcd"}, "backup": backup})
    };
    let s3 = |part: Value| {
        let mut s3 = json!({"endpoint": "https://s3.example", "bucket": "backups", "credentialsSecret": "s3"});
        merge(&mut s3, part);
        backup(json!({"destination": {"volume": null, "s3": s3}}))
    };
    let hook = |part: Value| json!({"gates": {"hooks": [{"name": "a", "when": "BeforeUpgrade", "job": part}]}});
    let webhook = |part: Value| {
        let mut service = json!({"name": "a", "port": 80});
        merge(&mut service, part);
        json!({"gates": {"hooks": [{"name": "a", "when": "BeforeUpgrade", "webhook": service}]}})
    };
    let check = |name: &str| {
        let objects = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name});
        json!({"gates": {"checks": [{"name": "a", "objects": objects, "cel": "true"}]}})
    };
    assert_eq!(create(&api(), backup(json!({}))).await.0, 201);
    assert_eq!(create(&api(), s3(json!({}))).await.0, 201);
    assert_eq!(create(&api(), webhook(json!({"namespace": "b"}))).await.0, 201);
    assert_eq!(create(&api(), check("system:node.1")).await.0, 201);
    for wrong in ["../secrets/x", "pd/status", "pd?x=y", "pd#x", "Pd", "pd_0", "-pd", "pd-", "pd..x", "pd%2fx", "p d"] {
        for (spec, field) in [
            (json!({"workload": {"statefulSet": wrong}}), "spec.workload.statefulSet"),
            (json!({"workload": {"container": wrong}}), "spec.workload.container"),
            (json!({"system": {"tls": {"caSecret": wrong}}}), "spec.system.tls.caSecret"),
            (json!({"system": {"tls": {"caConfigMap": wrong}}}), "spec.system.tls.caConfigMap"),
            (json!({"system": {"tls": {"caSecret": "a", "clientSecret": wrong}}}), "spec.system.tls.clientSecret"),
            (json!({"system": {"type": "Vault", "auth": {"tokenSecret": wrong}}}), "spec.system.auth.tokenSecret"),
            (backup(json!({"serviceAccountName": wrong})), "spec.backup.serviceAccountName"),
            (
                backup(json!({"destination": {"volume": {"claimName": wrong}}})),
                "spec.backup.destination.volume.claimName",
            ),
            (s3(json!({"credentialsSecret": wrong})), "spec.backup.destination.s3.credentialsSecret"),
            (s3(json!({"caSecret": wrong})), "spec.backup.destination.s3.caSecret"),
            (hook(json!({"cronJob": wrong})), "job.cronJob"),
            (webhook(json!({"name": wrong})), "webhook.name"),
            (webhook(json!({"namespace": wrong})), "webhook.namespace"),
        ] {
            is_refused(&create(&api(), spec).await, field);
        }
    }
    for wrong in ["../x", "a/b", "a?b", "a#b", "%2e", "..", "a b"] {
        is_refused(&create(&api(), check(wrong)).await, "objects.name");
    }
}

#[tokio::test(start_paused = true)]
async fn h41_an_image_that_is_no_reference_is_refused() {
    for wrong in ["-v", "a b", "a:b:c", "a@b", "/a", "a/", "A/B", "a:", "http://a/b", "a\nb", "a;b", "$(a)", "a//b"] {
        is_refused(&create(&api(), json!({"image": wrong})).await, "spec.image");
        is_refused(&create(&api(), json!({"upgrade": {"executorImage": wrong}})).await, "spec.upgrade.executorImage");
    }
    let digest = format!("pd@sha256:{}", "0".repeat(64));
    for right in
        ["pd", "team/pd:v1", "localhost:5000/pd", "[::1]:5000/a__b/c-d.e:v1_2", "REGISTRY.example/pd:V1", &digest]
    {
        let (code, made) = create(&api(), json!({"image": right})).await;
        assert_eq!(code, 201, "{made}");
        assert!(right.parse::<windlass_images::Reference>().is_ok(), "{right}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_is_no_duration_is_refused() {
    for field in ["handover", "ready", "health", "sync"] {
        for wrong in ["soon", "", "5", "-5m", "5 m", "1d"] {
            let answer = create(&api(), json!({"upgrade": {"deadlines": {field: wrong}}})).await;
            is_refused(&answer, &format!("spec.upgrade.deadlines.{field}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_negative_lag_is_refused() {
    is_refused(&create(&api(), json!({"upgrade": {"maxLagEntries": -1}})).await, "spec.upgrade.maxLagEntries");
    assert_eq!(create(&api(), json!({"upgrade": {"maxLagEntries": 0}})).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn unknown_words_are_refused() {
    is_refused(&create(&api(), json!({"updateStrategy": {"type": "Recreate"}})).await, "spec.updateStrategy.type");
    let order = json!({"updateStrategy": {"rollingUpdate": {"order": "Random"}}});
    is_refused(&create(&api(), order).await, "spec.updateStrategy.rollingUpdate.order");
    is_refused(&create(&api(), json!({"deletionPolicy": "Explode"})).await, "spec.deletionPolicy");
    is_refused(&create(&api(), json!({"paused": "yes"})).await, "spec.paused");
}

#[tokio::test(start_paused = true)]
async fn tls_needs_the_names_of_its_secrets() {
    let one = "set exactly one of caSecret and caConfigMap";
    is_refused(&create(&api(), json!({"system": {"tls": {}}})).await, one);
    is_refused(&create(&api(), json!({"system": {"tls": {"caSecret": "ca", "caConfigMap": "ca"}}})).await, one);
    let nameless = json!({"system": {"tls": {"caSecret": "ca", "clientSecret": ""}}});
    is_refused(&create(&api(), nameless).await, "spec.system.tls.clientSecret");
}

#[tokio::test(start_paused = true)]
async fn the_workload_cannot_change() {
    let api = api();
    assert_eq!(create(&api, json!({})).await.0, 201);
    for other in [json!({"statefulSet": "other"}), json!({"container": "other"})] {
        let answer = change(&api, json!({ "workload": other })).await;
        is_refused(&answer, "spec.workload");
        is_refused(&answer, "workload can't change: delete this QuorumCluster and create another");
    }
    assert_eq!(change(&api, json!({"version": FROM})).await.0, 200, "the version can");
}

/// There is one type, so the definition's rule is tried with a second one put into it.
#[tokio::test(start_paused = true)]
async fn the_system_cannot_change() {
    let api = api();
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/quorumclusters.windlass.dev";
    let (_, mut crd) = send(&api, Method::GET, definition, &Value::Null).await;
    let kind = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/system/properties/type";
    crd.pointer_mut(kind).expect("the type's schema")["enum"] = json!(["Pd", "Etcd"]);
    assert_eq!(send(&api, Method::PUT, definition, &crd).await.0, 200);

    assert_eq!(create(&api, json!({})).await.0, 201);
    let answer = change(&api, json!({"system": {"type": "Etcd"}})).await;
    is_refused(&answer, "spec.system.type");
    is_refused(&answer, "system.type can't change: delete this QuorumCluster and create another");
    assert_eq!(change(&api, json!({"system": {"port": 12379}})).await.0, 200, "the port can");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_said_is_filled_in() {
    let (code, made) = create(&api(), json!({"system": {"port": null}})).await;
    assert_eq!(code, 201, "{made}");
    let expected = json!({
        "workload": {"statefulSet": "pd", "container": "pd"},
        "system": {"type": "Pd", "port": 2379},
        "trigger": "Version",
        "version": TO,
        // The order is left to what the set itself is.
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {}},
        "upgrade": {
            "deadlines": {"handover": "30s", "ready": "5m", "health": "2m", "sync": "2m", "pull": "10m"},
            "maxLagEntries": 100, "soak": "0s", "prePull": false, "showLogs": false,
        },
        "gates": {"approval": {"mode": "None"}},
        "policy": {"allowDowngrade": false, "acceptDowntime": false, "acceptNonVoters": false},
        "onDeadline": "Hold",
        "requests": {},
        "deletionPolicy": "Restore",
        "paused": false,
    });
    assert_eq!(made["spec"], expected);
}

#[tokio::test(start_paused = true)]
async fn parts_of_blocks_are_filled_in_too() {
    let spec = json!({"upgrade": {"deadlines": {"ready": "1h30m"}}, "policy": {"acceptDowntime": true}});
    let (_, made) = create(&api(), spec).await;
    let deadlines = json!({"handover": "30s", "ready": "1h30m", "health": "2m", "sync": "2m", "pull": "10m"});
    let limits =
        json!({"deadlines": deadlines, "maxLagEntries": 100, "soak": "0s", "prePull": false, "showLogs": false});
    assert_eq!(made["spec"]["upgrade"], limits);
    assert_eq!(
        made["spec"]["policy"],
        json!({"allowDowngrade": false, "acceptDowntime": true, "acceptNonVoters": false})
    );
}

#[tokio::test(start_paused = true)]
async fn until_the_operator_has_looked_nobody_knows() {
    let (_, made) = create(&api(), json!({})).await;
    assert_eq!(made["status"]["observedGeneration"], -1);
    let conditions = made["status"]["conditions"].as_array().expect("conditions");
    assert_eq!(conditions.len(), 1);
    assert_eq!((&conditions[0]["type"], &conditions[0]["status"]), (&json!("Ready"), &json!("Unknown")));
    assert_eq!(conditions[0]["reason"], "NotSeen");
}

#[tokio::test(start_paused = true)]
async fn a_status_of_ones_own_is_not_taken() {
    let mut resource = pd::quorum_cluster(pd::NAME, TO);
    resource["status"] = json!({"observedGeneration": 7, "currentVersion": "9.9.9"});
    let (_, made) = send(&api(), Method::POST, COLLECTION, &resource).await;
    assert_eq!((&made["status"]["observedGeneration"], &made["status"]["currentVersion"]), (&json!(-1), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn gates_that_make_no_sense_are_refused() {
    let window = |window: Value| json!({"gates": {"windows": [window]}});
    for wrong in ["0 2 * *", "0 2 * * * *", "@daily", "0 2 ? * *", ""] {
        let answer = create(&api(), window(json!({"schedule": wrong, "duration": "1h"}))).await;
        is_refused(&answer, "spec.gates.windows[0].schedule");
    }
    for wrong in ["", "1d", "-1h", "0s", "0h0m"] {
        let answer = create(&api(), window(json!({"schedule": "0 2 * * *", "duration": wrong}))).await;
        is_refused(&answer, "spec.gates.windows[0].duration");
    }
    let zone = window(json!({"schedule": "0 2 * * *", "duration": "1h", "timeZone": "../../etc"}));
    is_refused(&create(&api(), zone).await, "spec.gates.windows[0].timeZone");
    let mode = json!({"gates": {"approval": {"mode": "Sometimes"}}});
    is_refused(&create(&api(), mode).await, "spec.gates.approval.mode");
    is_refused(&create(&api(), json!({"upgrade": {"soak": "a day"}})).await, "spec.upgrade.soak");
}

#[tokio::test(start_paused = true)]
async fn with_trigger_template_the_template_says_what_is_wanted() {
    let template = |more: Value| {
        let mut spec = json!({"trigger": "Template", "version": null});
        merge(&mut spec, more);
        spec
    };
    assert_eq!(create(&api(), json!({"trigger": "Template", "version": null})).await.0, 201);
    assert_eq!(create(&api(), json!({"trigger": "Template"})).await.0, 201, "a version that no tag tells");
    is_refused(&create(&api(), template(json!({"image": "pd:v8.5.3"}))).await, "spec.image");
    is_refused(&create(&api(), template(json!({"onDeadline": "RollBack"}))).await, "spec.onDeadline");
    let order = |order: &str| template(json!({"updateStrategy": {"rollingUpdate": {"order": order}}}));
    is_refused(&create(&api(), order("ReverseOrdinal")).await, "spec.updateStrategy.rollingUpdate.order");
    assert_eq!(create(&api(), order("LeaderLast")).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn what_guards_the_quorum_cannot_be_overridden() {
    for gate in ["QuorumSurvives", "LeaderKnown", "NotPaused", "VersionPath", "*", "soak"] {
        let overrides = json!({"gates": {"overrides": [{"gate": gate, "until": "2030-01-01T00:00:00Z"}]}});
        is_refused(&create(&api(), overrides).await, "spec.gates.overrides[0].gate");
    }
    let endless = json!({"gates": {"overrides": [{"gate": "Soak"}]}});
    is_refused(&create(&api(), endless).await, "spec.gates.overrides[0].until");
    let right = json!({"gates": {"overrides": [{"gate": "Soak", "until": "2030-01-01T00:00:00Z"}]}});
    assert_eq!(create(&api(), right).await.0, 201);
}
