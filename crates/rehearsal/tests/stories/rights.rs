//! The roles that are shipped let the operator do all that it does (H41). Each request is judged as an API server with RBAC would, and
//! one that no rule allows is answered with 403 and told here.

use std::{
    collections::BTreeSet,
    ops::Range,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::client::Body;
use rstest::rstest;
use serde_json::{Value, json};
use windlass_operator::{Settings, members::account::Tokens};
use windlass_rehearsal::{
    context,
    setting::{ETCD, OPENBAO, PD},
    stamping,
    trial::{self, Ending, Outcome, Scenario, is_ours},
};
use windlass_sim::{
    clock::Clock,
    faults::Strike,
    harness::{Program, Seat},
    journal::Event,
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

const SHIPPED: &str = include_str!("../../../../deploy/rbac.yaml");

/// What `kubectl apply -f deploy/rbac.yaml` binds, and the roles of these names. The Lease is elsewhere in rehearsals.
fn shipped(names: &[&str]) -> Vec<Binding> {
    let mut bindings = vec![
        role(SHIPPED, "windlass-operator", None),
        role(SHIPPED, "windlass-lease", Some("kube-system")),
        role(SHIPPED, "windlass-login", Some("windlass-system")),
    ];
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

/// When an administrator has the policies of `deploy/author-rights.yaml` in force, by the cluster's time.
type InForce = fn(Duration) -> bool;

/// A client of an API server that has those policies; it does not ask anybody, and only shows them.
fn policed(client: kube::Client, clock: Clock, in_force: InForce) -> kube::Client {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(include_str!("../../../../deploy/author-rights.yaml")).expect("manifests");
    let documents = Arc::new(documents);
    let send = move |request: Request<Body>| {
        let path: Vec<&str> = request.uri().path().rsplit('/').take(2).collect();
        let shown = documents.iter().find(|document| {
            let plural = match document["kind"].as_str() {
                Some("ValidatingAdmissionPolicy") => "validatingadmissionpolicies",
                Some("ValidatingAdmissionPolicyBinding") => "validatingadmissionpolicybindings",
                Some(_) | None => return false,
            };
            path == [document["metadata"]["name"].as_str().unwrap_or_default(), plural] && in_force(clock.elapsed())
        });
        let shown = shown.map(|document| Response::new(Body::from(document.to_string().into_bytes())));
        let client = client.clone();
        async move {
            match shown {
                Some(response) => Ok(response),
                None => client.send(request).await,
            }
        }
    };
    kube::Client::new(tower::service_fn(send), "default")
}

/// Runs a scenario in which the first operator dies half way; what no rule allowed.
fn run(scenario: &Scenario, bindings: &[Binding], beside: Option<&Program>) -> (Outcome, BTreeSet<String>) {
    let shipped = |settings: &mut Settings| settings.quorums_by_author = true;
    run_with(scenario, bindings, beside, shipped)
}

/// The same with other settings.
fn run_with(
    scenario: &Scenario,
    bindings: &[Binding],
    beside: Option<&Program>,
    set: fn(&mut Settings),
) -> (Outcome, BTreeSet<String>) {
    let refused = Refused::default();
    let (kept, bindings) = (refused.clone(), bindings.to_vec());
    let program = move |seat: Seat| -> Pin<Box<dyn Future<Output = ()>>> {
        let (bindings, kept) = (bindings.clone(), kept.clone());
        Box::pin(async move {
            let clock = seat.clock;
            let mut context = context(seat);
            set(&mut context.settings);
            let client = policed(context.client.clone(), clock, |_| true);
            context.client = guarded(client, bindings, kept);
            windlass_operator::run(&context, std::future::pending()).await;
        })
    };
    let outcome = trial::run_beside(scenario, &[(12, Strike::KillAfter)], &program, beside).expect("a runtime");
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

/// An operator of one namespace asks for nothing that its role does not allow, save for the nodes, which are nobody's of a namespace.
#[rstest]
#[case::one_by_one(PD.reference(1))]
#[case::leader_last(ETCD.leader_last(1))]
#[case::with_a_token(OPENBAO.reference(1))]
fn h41_one_namespace_is_enough(#[case] scenario: Scenario) {
    let (role, set): (Binding, fn(&mut Settings)) = match scenario.subject.namespace.as_str() {
        "tikv" => (of_one_namespace("tikv"), |settings| only(settings, "tikv")),
        "registry" => (of_one_namespace("registry"), |settings| only(settings, "registry")),
        _ => (of_one_namespace("secrets"), |settings| only(settings, "secrets")),
    };
    let sees = self::role(include_str!("../../../../deploy/author-rights.yaml"), "windlass-policies", None);
    let (outcome, refused) = run_with(&scenario, &[role, sees], None, set);
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(outcome.fault(), None);
}

/// Whoever reads the resource learns of a right that is missing, and not what was so before (X4).
#[rstest]
#[case::to_read("pods", "list", "pods of pd")]
#[case::to_write("statefulsets", "patch", "statefulsets/pd")]
fn x4_a_right_that_is_missing_is_named(#[case] resource: &str, #[case] verb: &str, #[case] words: &str) {
    let mut bindings = shipped(&[]);
    for rule in bindings.iter_mut().flat_map(|binding| &mut binding.rules) {
        if rule.resources.iter().flatten().any(|one| one == resource) {
            rule.verbs.retain(|one| one != verb);
        }
    }
    let scenario = Scenario { ending: Ending::Held("ApiServerRefused".into()), ..PD.reference(1) };
    let (outcome, refused) = run(&scenario, &bindings, None);
    assert!(!refused.is_empty());
    let condition = |type_: &str| {
        let conditions = outcome.subject["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().find(|one| one["type"] == type_).cloned().unwrap_or_default()
    };
    assert_eq!(condition("Ready")["reason"], "ApiServerRefused", "{}", outcome.subject["status"]);
    let message = condition("Ready")["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains(words) && message.contains("is forbidden;"), "{message}");
    assert_eq!(condition("Stalled")["status"], "True");
}

fn of_one_namespace(namespace: &'static str) -> Binding {
    role(include_str!("../../../../deploy/rbac-namespace.yaml"), "windlass-operator", Some(namespace))
}

fn only(settings: &mut Settings, namespace: &str) {
    settings.namespace = Some(namespace.to_owned());
    settings.ignore_nodes = true;
    settings.quorums_by_author = true;
    namespace.clone_into(&mut settings.lease_namespace);
    settings.login_tokens = Tokens::Requested { namespace: namespace.to_owned(), account: "windlass".to_owned() };
}

/// Who may patch pods can run any image in anybody's: no role that is shipped says so.
#[test]
fn h41_no_role_lets_the_operator_change_pods() {
    let manifests = [SHIPPED, include_str!("../../../../deploy/rbac-namespace.yaml")];
    let documents = |text| serde_saphyr::from_multiple::<Value>(text).expect("manifests");
    for document in manifests.into_iter().flat_map(documents) {
        let rules: Vec<PolicyRule> = serde_json::from_value(document["rules"].clone()).unwrap_or_default();
        for rule in rules.iter().filter(|rule| rule.resources.iter().flatten().any(|resource| resource == "pods")) {
            let changing = |verb: &String| !matches!(verb.as_str(), "get" | "list" | "watch" | "delete");
            assert!(!rule.verbs.iter().any(changing), "{}: {:?}", document["metadata"]["name"], rule.verbs);
        }
    }
}

/// The policies are taken away half way, and come back.
const TAKEN_AWAY: Range<u64> = 35..600;

fn except_for_a_while(elapsed: Duration) -> bool {
    !TAKEN_AWAY.contains(&elapsed.as_secs())
}

/// An operator that relies on authors' rights alone, where they are asked for at these times.
fn by_author(in_force: InForce) -> impl Fn(Seat) -> Pin<Box<dyn Future<Output = ()>>> {
    move |seat: Seat| -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            let clock = seat.clock;
            let mut context = context(seat);
            context.settings.quorums_by_author = true;
            context.settings.targets_by_author = true;
            context.settings.allowed_targets.clear();
            context.client = policed(context.client.clone(), clock, in_force);
            windlass_operator::run(&context, std::future::pending()).await;
        })
    }
}

/// What was said, and what we wrote to what is not ours, between these seconds.
fn between(outcome: &Outcome, seconds: Range<u64>) -> (BTreeSet<String>, Vec<String>) {
    let begin = outcome.journal.first().expect("a journal").at;
    let (mut said, mut wrote) = (BTreeSet::new(), Vec::new());
    for entry in &outcome.journal {
        let second = u64::try_from(entry.at.duration_since(begin).as_secs()).unwrap_or_default();
        let Event::Write(change) = &entry.event else { continue };
        if !is_ours(&change.user) || !seconds.contains(&second) {
            continue;
        }
        if change.resource.ends_with("windlass.dev") && !change.resource.starts_with("dicoms") {
            let reasons = change.after.as_deref().and_then(|object| object.pointer("/status/conditions")).cloned();
            let reasons = reasons.as_ref().and_then(Value::as_array).into_iter().flatten();
            said.extend(reasons.filter_map(|condition| condition["reason"].as_str().map(str::to_owned)));
        } else if change.resource != "leases.coordination.k8s.io" && !change.resource.starts_with("events") {
            wrote.push(format!("{second}: {} {}", change.resource, change.name));
        }
    }
    (said, wrote)
}

/// An upgrade that is not over before they are gone.
fn slow_quorum() -> Scenario {
    let mut scenario = PD.reference(1);
    for object in scenario.objects.iter_mut().filter(|object| object["kind"] == "QuorumCluster") {
        object["spec"]["upgrade"]["soak"] = json!("1m");
    }
    scenario
}

/// What an operator does after the policies are gone: a moment later it says so, and nothing more.
fn after_the_policies_are_gone(
    scenario: &Scenario,
    beside: Option<&Program>,
) -> (Outcome, BTreeSet<String>, Vec<String>) {
    let program = by_author(except_for_a_while);
    let outcome = trial::run_beside(scenario, &[], &program, beside).expect("a runtime");
    let before = between(&outcome, 0..TAKEN_AWAY.start).1;
    assert!(!before.is_empty(), "it did not begin before they were taken away");
    // What was known is relied on for ten seconds, and what stands is taken back.
    let (said, wrote) = between(&outcome, TAKEN_AWAY.start + 20..TAKEN_AWAY.end);
    (outcome, said, wrote)
}

#[test]
fn h41_a_quorum_is_left_alone_where_nobody_asks_for_its_authors_rights() {
    let (outcome, _, wrote) = after_the_policies_are_gone(&slow_quorum(), None);
    let reason = between(&outcome, TAKEN_AWAY).0;
    assert!(reason.contains("AuthorNotAsked"), "{reason:?}");
    assert_eq!(wrote, Vec::<String>::new());
    assert_eq!(outcome.fault(), None, "it goes on when they are back");
}

#[test]
fn h41_a_fleet_is_left_alone_where_nobody_asks_for_its_authors_rights_any_longer() {
    let (outcome, _, wrote) = after_the_policies_are_gone(&stamping::reference(1), Some(&stamping::service));
    let reason = between(&outcome, TAKEN_AWAY).0;
    assert!(reason.contains("TargetNotAllowed"), "{reason:?}");
    assert_eq!(wrote, Vec::<String>::new());
    assert!(outcome.settled, "it goes on when they are back: {}", outcome.subject["status"]);
}

#[rstest]
#[case::a_quorum(slow_quorum(), None)]
#[case::a_fleet(stamping::reference(1), Some(&stamping::service as &Program))]
fn h41_permission_that_is_asked_for_once_is_caught(#[case] scenario: Scenario, #[case] beside: Option<&Program>) {
    use windlass_plan::bug::{Bug, plant};
    plant(Some(Bug::AuthorAskedOnce));
    let (_, said, wrote) = after_the_policies_are_gone(&scenario, beside);
    plant(None);
    assert!(!wrote.is_empty(), "{said:?}");
}

/// The field is part of what was allowed.
#[rstest]
#[case::the_kind("examples.windlass.dev/Dicom", true)]
#[case::the_field("examples.windlass.dev/Dicom:spec.image", true)]
#[case::another_field("examples.windlass.dev/Dicom:spec.sidecar.image", false)]
#[case::another_kind("examples.windlass.dev/Scan:spec.image", false)]
fn h41_a_fleet_is_stamped_in_the_field_that_was_allowed(#[case] allowed: &'static str, #[case] expected: bool) {
    let program = move |seat: Seat| -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            let mut context = context(seat);
            context.settings.allowed_targets = [allowed.to_owned()].into();
            windlass_operator::run(&context, std::future::pending()).await;
        })
    };
    let ending = if expected { Ending::Ready } else { Ending::Held("TargetNotAllowed".to_owned()) };
    let scenario = Scenario { ending, ..stamping::reference(1) };
    let outcome = trial::run_beside(&scenario, &[], &program, Some(&stamping::service)).expect("a runtime");
    assert!(outcome.settled, "{}", outcome.subject["status"]);
    assert_eq!(between(&outcome, 0..u64::MAX).1.is_empty(), !expected);
}

/// What executor Jobs run gets the members' credentials: only what the administrator allows.
#[rstest]
#[case::nothing_is_allowed(&[], false)]
#[case::another_is_allowed(&["registry.example/others/windlass"], false)]
#[case::it_is_allowed(&["registry.example/own/windlass"], true)]
fn h41_an_executor_runs_what_the_administrator_allows(#[case] allowed: &'static [&str], #[case] expected: bool) {
    let program = move |seat: Seat| -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            let mut context = context(seat);
            context.settings.allowed_executor_images = allowed.iter().map(|&image| image.to_owned()).collect();
            windlass_operator::run(&context, std::future::pending()).await;
        })
    };
    let mut scenario = ETCD.snapshot(1);
    for object in scenario.objects.iter_mut().filter(|object| object["kind"] == "QuorumCluster") {
        object["spec"]["upgrade"]["executorImage"] = json!("registry.example/own/windlass:1");
    }
    scenario.ending = if expected { Ending::Ready } else { Ending::Held("ExecutorImageNotAllowed".to_owned()) };
    let outcome = trial::run(&scenario, &[], &program).expect("a runtime");
    assert_eq!(outcome.fault(), None);
    let jobs = between(&outcome, 0..u64::MAX).1.iter().filter(|what| what.contains("jobs.batch")).count();
    assert_eq!(jobs, usize::from(expected));
}
