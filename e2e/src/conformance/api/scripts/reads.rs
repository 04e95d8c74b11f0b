//! Reading: lists, pages, revisions, selectors, watches.

use serde_json::{Value, json};

use super::super::kind::Kind::{self, ConfigMap, Event, Lease, NewEvent, Pod, QuorumCluster, Secret, StatefulSet};
use super::super::step::{Script, Step, create, delete, get, list, merge, script, watch, watch_named};

pub fn scripts() -> Vec<Script> {
    vec![
        pages(),
        pages_while_writing(),
        revisions(),
        revisions_that_are_wrong(),
        label_selectors(),
        broken_label_selectors(),
        field_selectors(),
        broken_field_selectors(),
        numbers_that_are_wrong(),
        watch_from_revisions(),
        watch_selections(),
        watch_fields(),
        watch_one_object(),
        watch_with_initial_events(),
        watch_that_is_refused(),
        unknown_addresses(),
    ]
}

fn labelled(kind: Kind, name: &str, labels: Value) -> Step {
    let mut object = kind.minimal(name);
    object["metadata"]["labels"] = labels;
    create(kind, object)
}

fn five(kind: Kind) -> Vec<Step> {
    let labels =
        [json!({"a": "1"}), json!({"a": "2", "b": "x"}), json!({"a": "1", "b": "y"}), json!({}), json!({"n": "7"})];
    ["e", "b", "d", "a", "c"].into_iter().zip(labels).map(|(name, labels)| labelled(kind, name, labels)).collect()
}

fn pages() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, QuorumCluster] {
        steps.extend(five(kind));
        steps.extend([
            list(kind).query("limit", "2").save("p"),
            list(kind).query("limit", "2").query("continue", "$(p/metadata/continue)").save("p"),
            list(kind).query("limit", "2").query("continue", "$(p/metadata/continue)"),
            list(kind).query("limit", "5"),
            list(kind).query("limit", "0"),
            list(kind).query("limit", "1").query("labelSelector", "a=1").save("q"),
            list(kind).query("limit", "1").query("labelSelector", "a=1").query("continue", "$(q/metadata/continue)"),
            list(kind).query("limit", "2").query("resourceVersion", "0"),
            list(kind).query("continue", "nonsense"),
            list(kind).query("limit", "2").query("continue", "$(p/metadata/continue)").query("resourceVersion", "5"),
            list(kind).query("limit", "2").query("continue", "$(p/metadata/continue)").query("resourceVersion", "0"),
        ]);
    }
    script("list-in-pages", steps)
}

fn pages_while_writing() -> Script {
    let mut steps = five(ConfigMap);
    steps.extend([
        list(ConfigMap).query("limit", "2").save("p"),
        delete(ConfigMap, "c"),
        labelled(ConfigMap, "d2", json!({})),
        merge(ConfigMap, "e", json!({"data": {"k": "v"}})),
        list(ConfigMap).query("limit", "2").query("continue", "$(p/metadata/continue)").save("p"),
        list(ConfigMap).query("limit", "2").query("continue", "$(p/metadata/continue)"),
        list(ConfigMap),
    ]);
    script("list-in-pages-while-others-write", steps)
}

fn revisions() -> Script {
    let mut steps = five(ConfigMap);
    steps.extend([
        merge(ConfigMap, "a", json!({"data": {"k": "1"}})).save("one"),
        merge(ConfigMap, "a", json!({"data": {"k": "2"}})).save("two"),
        delete(ConfigMap, "b"),
    ]);
    for matching in ["", "NotOlderThan", "Exact"] {
        for revision in ["$(one/metadata/resourceVersion)", "$(two/metadata/resourceVersion)", "0", ""] {
            let mut step = list(ConfigMap).query("resourceVersion", revision);
            if !matching.is_empty() {
                step = step.query("resourceVersionMatch", matching);
            }
            steps.push(step);
        }
    }
    steps.extend([
        list(ConfigMap)
            .query("resourceVersion", "$(one/metadata/resourceVersion)")
            .query("resourceVersionMatch", "Exact")
            .query("limit", "2")
            .save("p"),
        list(ConfigMap).query("continue", "$(p/metadata/continue)").query("limit", "2"),
        list(ConfigMap).query("resourceVersion", "$(one/metadata/resourceVersion)").query("limit", "2"),
        get(ConfigMap, "a").query("resourceVersion", "0"),
        get(ConfigMap, "a").query("resourceVersion", "$(one/metadata/resourceVersion)"),
    ]);
    script("list-at-revisions", steps)
}

fn revisions_that_are_wrong() -> Script {
    script(
        "read-at-revisions-that-are-wrong",
        vec![
            create(ConfigMap, ConfigMap.minimal("a")),
            list(ConfigMap).query("resourceVersion", "x"),
            list(ConfigMap).query("resourceVersion", "-1"),
            list(ConfigMap).query("resourceVersionMatch", "Exact"),
            list(ConfigMap).query("resourceVersionMatch", "Sometimes").query("resourceVersion", "1"),
            list(ConfigMap).query("resourceVersionMatch", "Sometimes"),
            get(ConfigMap, "a").query("resourceVersion", "x"),
            list(ConfigMap).query("sendInitialEvents", "true"),
            list(QuorumCluster).query("resourceVersion", "x"),
        ],
    )
}

fn label_selectors() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, QuorumCluster] {
        steps.extend(five(kind));
        for selector in [
            "a=1",
            "a==1",
            "a!=1",
            "a",
            "!a",
            "a in (1,2)",
            "a notin (1)",
            "a=1,b=y",
            "a=1,!b",
            "b in (x),a",
            "n>6",
            "n<7",
            "n>7",
            "a in ()",
            "a=",
            " a = 1 , b = y ",
            "a in ( 1 , 2 )",
            "nothing",
            "a,",
            "",
        ] {
            steps.push(list(kind).query("labelSelector", selector));
        }
    }
    script("label-selectors", steps)
}

fn broken_label_selectors() -> Script {
    let mut steps = Vec::new();
    for selector in [
        "a b",
        "a in",
        "a in (",
        "a in (1",
        "a near (1)",
        "=1",
        ",",
        "a==",
        "!",
        "!!a",
        "a=1=2",
        "a(1)",
        "(a)",
        "a>x",
        "a<",
        "bad key!=1",
        "a=bad value",
        "/a=1",
        "a in (b c)",
        "A/b/c=1",
        "a!",
        "a notin 1",
        "x=,y",
        "a=!b",
    ] {
        steps.push(list(ConfigMap).query("labelSelector", selector));
    }
    script("label-selectors-that-are-none", steps)
}

fn field_selectors() -> Script {
    let mut steps = five(ConfigMap);
    for selector in [
        "metadata.name=a",
        "metadata.name==a",
        "metadata.name!=a",
        "metadata.namespace=$(ns)",
        "metadata.namespace=other",
        "metadata.name=a,metadata.namespace=$(ns)",
        "metadata.name=nothing",
        "",
    ] {
        steps.push(list(ConfigMap).query("fieldSelector", selector));
    }
    let mut pod = Pod.minimal("p1");
    pod["spec"]["nodeName"] = json!("n1");
    steps.extend([
        create(Pod, pod),
        create(Pod, Pod.minimal("p2")),
        merge(Pod, "p1", json!({"status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}))
            .part("status"),
    ]);
    for selector in [
        "spec.nodeName=n1",
        "spec.nodeName=",
        "spec.nodeName!=n1",
        "status.phase=Running",
        "status.phase!=Running",
        "spec.restartPolicy=Always",
        "spec.schedulerName=default-scheduler",
        "spec.serviceAccountName=",
        "spec.hostNetwork=false",
        "spec.hostNetwork=true",
        "status.podIP=10.0.0.1",
        "status.nominatedNodeName=",
        "spec.nodeName=n1,status.phase=Running",
    ] {
        steps.push(list(Pod).query("fieldSelector", selector));
    }
    steps.push(create(Secret, Secret.with("s", &json!({"type": "example.com/x"}))));
    steps.push(list(Secret).query("fieldSelector", "type=example.com/x"));
    steps.push(list(Secret).query("fieldSelector", "type=Opaque"));
    steps.push(create(Event, Event.with("e", &json!({
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "$(ns)", "uid": "u"}, "reason": "R", "type": "Normal",
    }))));
    for selector in [
        "involvedObject.name=p",
        "involvedObject.kind=Node",
        "involvedObject.uid=u",
        "reason=R",
        "type=Normal",
        "source=",
    ] {
        steps.push(list(Event).query("fieldSelector", selector));
    }
    steps.push(list(NewEvent).query("fieldSelector", "regarding.name=p"));
    steps.push(list(QuorumCluster).query("fieldSelector", "metadata.name=a"));
    script("field-selectors", steps)
}

fn broken_field_selectors() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, QuorumCluster, Pod, StatefulSet, Lease] {
        for selector in [
            "metadata.uid=x",
            "spec.replicas=1",
            "nonsense",
            "=x",
            "metadata.name",
            "a=b,c",
            "spec.nodeName==x,other=y",
        ] {
            steps.push(list(kind).query("fieldSelector", selector));
        }
    }
    script("field-selectors-that-are-none", steps)
}

fn numbers_that_are_wrong() -> Script {
    let mut steps = vec![create(ConfigMap, ConfigMap.minimal("a"))];
    for (key, value) in [
        ("limit", "x"),
        ("limit", "-1"),
        ("limit", "1.5"),
        ("timeoutSeconds", "x"),
        ("watch", "0"),
        ("allowWatchBookmarks", "maybe"),
        ("unknown", "x"),
        ("pretty", "true"),
        ("fieldValidation", "Maybe"),
    ] {
        steps.push(list(ConfigMap).query(key, value));
    }
    for value in ["Maybe", "Strict", "Ignore", "Warn"] {
        steps
            .push(merge(ConfigMap, "a", json!({"metadata": {"labels": {"x": value}}})).query("fieldValidation", value));
    }
    steps.push(create(ConfigMap, ConfigMap.minimal("b")).query("fieldManager", &"m".repeat(129)));
    script("parameters-that-are-wrong", steps)
}

fn changes(kind: Kind) -> Vec<Step> {
    vec![
        labelled(kind, "a", json!({"x": "1"})).save("a"),
        labelled(kind, "b", json!({"x": "2"})),
        merge(kind, "a", json!({"metadata": {"annotations": {"k": "1"}}})).save("a2"),
        merge(kind, "a", json!({"metadata": {"labels": {"x": "2"}}})).save("a3"),
        merge(kind, "a", json!({"metadata": {"annotations": {"k": "2"}}})),
        merge(kind, "a", json!({"metadata": {"annotations": {"k": "2"}}})),
        merge(kind, "b", json!({"metadata": {"labels": {"x": "1"}}})),
        merge(kind, "b", json!({"metadata": {"labels": {"x": null}}})),
        delete(kind, "a"),
        labelled(kind, "a", json!({"x": "1"})),
        delete(kind, "b"),
    ]
}

fn watch_from_revisions() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, QuorumCluster, StatefulSet] {
        steps.push(list(kind).save("start"));
        steps.push(watch(kind, json!({})).query("resourceVersion", "$(start/metadata/resourceVersion)"));
        steps.push(watch(kind, json!({})));
        steps.extend(changes(kind));
        for revision in [
            "$(start/metadata/resourceVersion)",
            "$(a/metadata/resourceVersion)",
            "$(a3/metadata/resourceVersion)",
            "0",
            "",
        ] {
            steps.push(watch(kind, json!({})).query("resourceVersion", revision));
        }
        steps.push(
            watch(kind, json!({}))
                .query("resourceVersion", "$(a2/metadata/resourceVersion)")
                .query("allowWatchBookmarks", "true"),
        );
    }
    script("watch-from-revisions", steps)
}

fn watch_selections() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, QuorumCluster, Pod] {
        steps.push(list(kind).save("start"));
        for (selector, labels) in [
            ("x=1", json!({"x": "1"})),
            ("x=2", json!({"x": "2"})),
            ("x!=1", json!({})),
            ("!x", json!({})),
            ("x in (1,2)", json!({"x": "2"})),
            ("x", json!({"x": "9"})),
        ] {
            steps.push(
                watch(kind, labels)
                    .query("resourceVersion", "$(start/metadata/resourceVersion)")
                    .query("labelSelector", selector),
            );
        }
        steps.extend(changes(kind));
        steps.push(watch(kind, json!({"x": "1"})).query("labelSelector", "x=1"));
    }
    script("watch-what-enters-and-leaves-a-selection", steps)
}

fn watch_fields() -> Script {
    let phase = |name: &str, phase: &str| merge(Pod, name, json!({"status": {"phase": phase}})).part("status");
    script(
        "watch-by-fields",
        vec![
            list(Pod).save("start"),
            watch(Pod, json!({}))
                .query("resourceVersion", "$(start/metadata/resourceVersion)")
                .query("fieldSelector", "status.phase=Pending"),
            watch(Pod, json!({}))
                .query("resourceVersion", "$(start/metadata/resourceVersion)")
                .query("fieldSelector", "status.phase!=Running"),
            create(Pod, Pod.minimal("a")),
            phase("a", "Running"),
            phase("a", "Pending"),
            phase("a", "Failed"),
            delete(Pod, "a"),
            create(Pod, Pod.minimal("b")),
            delete(Pod, "b"),
        ],
    )
}

fn watch_one_object() -> Script {
    let mut steps = vec![watch_named(ConfigMap, "a"), watch_named(QuorumCluster, "a")];
    steps.extend(changes(ConfigMap));
    steps.extend(changes(QuorumCluster));
    script("watch-one-object", steps)
}

fn watch_with_initial_events() -> Script {
    let mut steps = Vec::new();
    for kind in [ConfigMap, QuorumCluster] {
        steps.extend(five(kind));
        let initial = || {
            watch(kind, json!({}))
                .query("sendInitialEvents", "true")
                .query("resourceVersionMatch", "NotOlderThan")
                .query("allowWatchBookmarks", "true")
        };
        steps.extend([
            initial(),
            initial().query("resourceVersion", "0"),
            merge(kind, "a", json!({"metadata": {"annotations": {"k": "1"}}})).save("a"),
            initial().query("resourceVersion", "$(a/metadata/resourceVersion)"),
            merge(kind, "b", json!({"metadata": {"annotations": {"k": "1"}}})),
        ]);
    }
    script("watch-with-initial-events", steps)
}

fn watch_that_is_refused() -> Script {
    let with = |parameters: &[(&str, &str)]| {
        let mut step = watch(ConfigMap, json!({}));
        for (key, value) in parameters {
            step = step.query(key, value);
        }
        step
    };
    script(
        "watch-that-is-refused",
        vec![
            with(&[("resourceVersion", "x")]),
            with(&[("resourceVersionMatch", "NotOlderThan"), ("resourceVersion", "1")]),
            with(&[("sendInitialEvents", "true")]),
            with(&[("sendInitialEvents", "true"), ("resourceVersionMatch", "Exact"), ("resourceVersion", "1")]),
            with(&[("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]),
            with(&[("labelSelector", "a b")]),
            with(&[("fieldSelector", "nonsense=1")]),
            with(&[("timeoutSeconds", "x")]),
            with(&[("continue", "x")]),
        ],
    )
}

fn unknown_addresses() -> Script {
    let at = |path: &str| Step::new(http::Method::GET, path);
    script(
        "addresses-that-lead-nowhere",
        vec![
            at("/api/v1/namespaces/$(ns)/nothings"),
            at("/api/v1/nothings"),
            at("/api/v2/namespaces/$(ns)/pods"),
            at("/apis/apps/v2/namespaces/$(ns)/statefulsets"),
            at("/apis/nothing.example.com/v1/namespaces/$(ns)/things"),
            at("/apis/windlass.dev/v1alpha1/namespaces/$(ns)/nothings"),
            at("/apis/windlass.dev/v9/namespaces/$(ns)/quorumclusters"),
            at("/nothing"),
            at("/api/v1/namespaces/$(ns)/pods/missing"),
            at("/api/v1/namespaces/no-such-namespace/pods"),
            at("/api/v1/namespaces/no-such-namespace/pods/missing"),
            at("/apis/windlass.dev/v1alpha1/namespaces/no-such-namespace/quorumclusters"),
            at("/api/v1/pods/missing"),
            at("/api/v1/namespaces/$(ns)/nodes/missing"),
            Step::new(http::Method::POST, "/api/v1/namespaces/$(ns)/pods/a"),
            Step::new(http::Method::PUT, "/api/v1/namespaces/$(ns)/pods"),
            Step::new(http::Method::PATCH, "/api/v1/namespaces/$(ns)/pods"),
            Step::new(http::Method::PUT, "/apis/windlass.dev/v1alpha1/namespaces/$(ns)/quorumclusters"),
            Step::new(http::Method::DELETE, "/api/v1/pods"),
            Step::new(http::Method::POST, "/version"),
        ],
    )
}
