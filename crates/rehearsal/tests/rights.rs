//! The roles that are shipped let the operator do all that it does (H41). Each request is judged as an API server with RBAC would, and
//! one that no rule allows is answered with 403 and told here.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that lacks something has failed")]

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use http::{Method, Request, Response, StatusCode};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::client::Body;
use rstest::rstest;
use serde_json::{Value, json};
use windlass_rehearsal::{
    context,
    setting::{ETCD, OPENBAO, PD},
    stamping,
};
use windlass_sim::{
    faults::Strike,
    harness::{self, Outcome, Program, Seat},
    scenario::Scenario,
};

/// What one request asks for, in RBAC's words.
#[derive(Debug)]
struct Asked {
    verb: &'static str,
    group: String,
    /// With its subresource: `pods/status`.
    resource: String,
    /// None for all namespaces, and for what is in none.
    namespace: Option<String>,
    name: Option<String>,
}

impl Asked {
    /// None for discovery, which is for everybody.
    fn of(request: &Request<Body>) -> Option<Self> {
        let path = request.uri().path().trim_matches('/').split('/').collect::<Vec<_>>();
        let (group, rest) = match path.as_slice() {
            ["api", _] | ["apis", _, _] => return None,
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            other => panic!("no API is at {other:?}"),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            rest => (None, rest),
        };
        let (resource, name) = match rest {
            [resource] => ((*resource).to_owned(), None),
            [resource, name] => ((*resource).to_owned(), Some((*name).to_owned())),
            [resource, name, part] => (format!("{resource}/{part}"), Some((*name).to_owned())),
            other => panic!("no resource is at {other:?}"),
        };
        let watches = request.uri().query().unwrap_or_default().split('&').any(|word| word == "watch=true");
        let verb = match (request.method(), &name) {
            (&Method::GET, Some(_)) => "get",
            (&Method::GET, None) if watches => "watch",
            (&Method::GET, None) => "list",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, Some(_)) => "delete",
            other => panic!("no verb is {other:?}"),
        };
        Some(Self { verb, group: group.to_owned(), resource, namespace, name })
    }

    fn is_allowed_by(&self, rule: &PolicyRule) -> bool {
        let lists = |list: &Option<Vec<String>>, value: &str| list.iter().flatten().any(|one| one == value);
        let named = rule
            .resource_names
            .as_ref()
            .is_none_or(|names| self.name.as_ref().is_some_and(|name| names.contains(name)));
        lists(&rule.api_groups, &self.group)
            && lists(&rule.resources, &self.resource)
            && rule.verbs.iter().any(|verb| verb == self.verb)
            && named
    }
}

/// Rules, and the one namespace that they are bound in; none for all.
#[derive(Clone)]
struct Binding {
    rules: Vec<PolicyRule>,
    namespace: Option<&'static str>,
}

impl Binding {
    fn allows(&self, asked: &Asked) -> bool {
        let covers = self.namespace.is_none_or(|own| asked.namespace.as_deref() == Some(own));
        covers && self.rules.iter().any(|rule| asked.is_allowed_by(rule))
    }
}

/// What a shipped role allows.
fn role(manifests: &str, name: &str, namespace: Option<&'static str>) -> Binding {
    let documents: Vec<Value> = serde_saphyr::from_multiple(manifests).expect("manifests");
    let is_it = |document: &&Value| {
        document["metadata"]["name"] == name && matches!(document["kind"].as_str(), Some("Role" | "ClusterRole"))
    };
    let rules = documents.iter().find(is_it).expect("a role of this name")["rules"].clone();
    Binding { rules: serde_json::from_value(rules).expect("rules"), namespace }
}

const SHIPPED: &str = include_str!("../../../deploy/rbac.yaml");

/// What `kubectl apply -f deploy/rbac.yaml` binds, and the roles of these names. The Lease is elsewhere in rehearsals.
fn shipped(names: &[&str]) -> Vec<Binding> {
    let mut bindings =
        vec![role(SHIPPED, "windlass-operator", None), role(SHIPPED, "windlass-lease", Some("kube-system"))];
    bindings.extend(names.iter().map(|name| role(SHIPPED, name, None)));
    bindings
}

/// A client that answers as the API server does where nobody bound more than this; what it refused is kept.
fn guarded(client: kube::Client, bindings: Vec<Binding>, refused: Refused) -> kube::Client {
    let send = move |request: Request<Body>| {
        let asked = Asked::of(&request).filter(|asked| !bindings.iter().any(|binding| binding.allows(asked)));
        let (client, refused) = (client.clone(), refused.clone());
        async move {
            let Some(asked) = asked else { return client.send(request).await };
            refused.lock().unwrap_or_else(PoisonError::into_inner).insert(format!("{asked:?}"));
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                "message": format!("{} is forbidden", asked.resource), "reason": "Forbidden"});
            let mut response = Response::new(Body::from(status.to_string().into_bytes()));
            *response.status_mut() = StatusCode::FORBIDDEN;
            Ok(response)
        }
    };
    kube::Client::new(tower::service_fn(send), "default")
}

type Refused = Arc<Mutex<BTreeSet<String>>>;

/// Runs a scenario in which the first operator dies half way; what no rule allowed.
fn run(scenario: &Scenario, bindings: &[Binding], beside: Option<&Program>) -> (Outcome, BTreeSet<String>) {
    let refused = Refused::default();
    let (kept, bindings) = (refused.clone(), bindings.to_vec());
    let program = move |seat: Seat| -> Pin<Box<dyn Future<Output = ()>>> {
        let (bindings, kept) = (bindings.clone(), kept.clone());
        Box::pin(async move {
            let mut context = context(seat);
            context.client = guarded(context.client.clone(), bindings, kept);
            windlass_operator::run(&context, std::future::pending()).await;
        })
    };
    let outcome = harness::run_beside(scenario, &[(12, Strike::KillAfter)], &program, beside).expect("a runtime");
    let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (outcome, refused)
}

#[rstest]
#[case::one_by_one(PD.reference(1), &[])]
#[case::leader_last(ETCD.leader_last(1), &[])]
#[case::a_template_of_others(PD.template(1), &[])]
#[case::a_mended_target(PD.mend(1), &[])]
#[case::with_a_token(OPENBAO.reference(1), &[])]
#[case::with_a_snapshot(ETCD.snapshot(1), &["windlass-jobs"])]
#[case::with_pulled_images(PD.pre_pull(1), &["windlass-jobs"])]
#[case::with_hooks(PD.hooks(1), &["windlass-jobs", "windlass-gates"])]
fn h41_a_quorum_is_upgraded_with_the_rights_that_are_shipped(#[case] scenario: Scenario, #[case] roles: &[&str]) {
    let (outcome, refused) = run(&scenario, &shipped(roles), None);
    assert_eq!(refused, BTreeSet::new());
    assert_eq!(outcome.fault(), None);
}

#[test]
fn h41_a_fleet_is_stamped_with_the_rights_that_are_shipped_and_those_for_its_kind() {
    let rule = json!([{"apiGroups": ["examples.windlass.dev"], "resources": ["dicoms"], "verbs": ["get", "list", "watch", "patch"]}]);
    let own = Binding { rules: serde_json::from_value(rule).expect("rules"), namespace: None };
    let mut bindings = shipped(&[]);
    bindings.push(own);
    let (outcome, refused) = run(&stamping::reference(1), &bindings, Some(&stamping::reference_service));
    assert_eq!(refused, BTreeSet::new());
    assert!(outcome.settled, "{}", outcome.subject["status"]);
}

/// Who may patch pods can run any image in anybody's: no role that is shipped says so.
#[test]
fn h41_no_role_lets_the_operator_change_pods() {
    let documents: Vec<Value> = serde_saphyr::from_multiple(SHIPPED).expect("manifests");
    for document in documents {
        let rules: Vec<PolicyRule> = serde_json::from_value(document["rules"].clone()).unwrap_or_default();
        for rule in rules.iter().filter(|rule| rule.resources.iter().flatten().any(|resource| resource == "pods")) {
            let changing = |verb: &String| !matches!(verb.as_str(), "get" | "list" | "watch" | "delete");
            assert!(!rule.verbs.iter().any(changing), "{}: {:?}", document["metadata"]["name"], rule.verbs);
        }
    }
}
