//! Whether the API server asks for the author's own rights before it takes a resource that acts for them (H41).
//!
//! A resource does not say who wrote it. The API server knows when it is written, and asks: `deploy/author-rights.yaml` has a policy for each
//! of our kinds that refuses it to whoever may not patch what it would change. Each is believed only while it is there and says no, and
//! looked for again while it is relied on.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::Api;
use tokio::time::Instant;
use windlass_plan::bug::{self, Bug};

use crate::{
    Context,
    error::{Class, Error},
    live::get,
};

/// How long what was found is relied on. Taking a policy away is an administrator's act, and they see its end within moments.
const RELIED_ON: Duration = Duration::from_secs(10);

/// Which resources the author's rights are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// ServiceImages: may their author patch the kind?
    ServiceImages,
    /// QuorumClusters: may their author patch the StatefulSet?
    QuorumClusters,
}

impl Policy {
    /// What the policy and its binding are called.
    fn name(self) -> &'static str {
        match self {
            Self::ServiceImages => "windlass-author-rights",
            Self::QuorumClusters => "windlass-quorum-author-rights",
        }
    }

    /// What must be asked about: what is recorded in a status is acted on as the spec is.
    fn resources(self) -> &'static [&'static str] {
        match self {
            Self::ServiceImages => &["serviceimages", "serviceimages/status"],
            Self::QuorumClusters => &["quorumclusters", "quorumclusters/status"],
        }
    }
}

/// What was found, and when.
#[derive(Default)]
pub struct Policies(Mutex<BTreeMap<Policy, (Instant, bool)>>);

impl Policies {
    fn known(&self, policy: Policy) -> Option<bool> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&policy).copied();
        let fresh = |at: Instant| at.elapsed() < RELIED_ON || bug::active(Bug::AuthorAskedOnce);
        known.filter(|(at, _)| fresh(*at)).map(|(_, in_force)| in_force)
    }

    fn keep(&self, policy: Policy, in_force: bool) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(policy, (Instant::now(), in_force));
        in_force
    }
}

/// Why the author's rights were not asked for; none if they were.
pub async fn unasked(context: &Context, policy: Policy) -> Result<Option<String>, Error> {
    let name = policy.name();
    let in_force = match context.policies.known(policy) {
        Some(known) => known,
        None => match read(context, policy).await {
            Ok(in_force) => context.policies.keep(policy, in_force),
            // What may not be seen can't be believed in.
            Err(error) if error.class() == Class::Refused => return Ok(Some(error.story())),
            Err(error) => return Err(error),
        },
    };
    let why = || {
        format!(
            "the ValidatingAdmissionPolicy {name} is missing, or does not ask for the author's rights as this release needs it"
        )
    };
    Ok((!in_force).then(why))
}

async fn read(context: &Context, policy: Policy) -> Result<bool, Error> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(context.client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(context.client.clone());
    let name = policy.name();
    let found = get(context, &format!("validatingadmissionpolicies/{name}"), &policies, name).await?;
    let binding = get(context, &format!("validatingadmissionpolicybindings/{name}"), &bindings, name).await?;
    Ok(is_in_force(policy, found.as_ref(), binding.as_ref()))
}

/// Both are there, for every write of the kind, and what is not right, or can't be told, is refused everywhere.
fn is_in_force(
    which: Policy,
    policy: Option<&ValidatingAdmissionPolicy>,
    binding: Option<&ValidatingAdmissionPolicyBinding>,
) -> bool {
    let policy = policy.and_then(|policy| policy.spec.as_ref());
    let binding = binding.and_then(|binding| binding.spec.as_ref());
    let asks = policy.is_some_and(|spec| {
        spec.match_constraints.as_ref().is_some_and(|matches| is_about_all(which, matches))
            && spec.failure_policy.as_deref().is_none_or(|policy| policy == "Fail")
            && spec.validations.iter().flatten().any(|one| one.expression.contains("authorizer"))
    });
    let denies = binding.is_some_and(|spec| {
        spec.policy_name.as_deref() == Some(which.name())
            && spec.match_resources.is_none()
            && spec.validation_actions.iter().flatten().any(|action| action == "Deny")
    });
    asks && denies
}

/// Every one of them, whoever makes or changes it, and wherever.
fn is_about_all(which: Policy, matches: &MatchResources) -> bool {
    let says = |list: &Option<Vec<String>>, word: &str| list.iter().flatten().any(|one| one == word || one == "*");
    // A star stands for all resources, and for no part of any.
    let names = |list: &Option<Vec<String>>, resource: &str| {
        let all = if resource.contains('/') { "*/*" } else { "*" };
        list.iter().flatten().any(|one| one == resource || one == all || one == "*/*")
    };
    let covers = |rule: &NamedRuleWithOperations| {
        rule.resource_names.is_none()
            && says(&rule.api_groups, "windlass.dev")
            && which.resources().iter().all(|resource| names(&rule.resources, resource))
            && says(&rule.operations, "CREATE")
            && says(&rule.operations, "UPDATE")
    };
    let everything = LabelSelector::default();
    matches.resource_rules.iter().flatten().any(covers)
        && matches.exclude_resource_rules.iter().flatten().next().is_none()
        && matches.namespace_selector.as_ref().is_none_or(|selector| *selector == everything)
        && matches.object_selector.as_ref().is_none_or(|selector| *selector == everything)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::{Policy, is_in_force};

    /// The policy and its binding, as they are shipped.
    fn shipped(which: Policy) -> [Value; 2] {
        let text = include_str!("../../../../deploy/author-rights.yaml");
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
        let ours = documents.into_iter().filter(|document| document["metadata"]["name"] == which.name());
        ours.collect::<Vec<_>>().try_into().unwrap()
    }

    fn judged(which: Policy, change: impl FnOnce(&mut Value, &mut Value)) -> bool {
        let [mut policy, mut binding] = shipped(which);
        change(&mut policy["spec"], &mut binding["spec"]);
        let policy = serde_json::from_value(policy).unwrap();
        let binding = serde_json::from_value(binding).unwrap();
        is_in_force(which, Some(&policy), Some(&binding))
    }

    #[rstest]
    fn h41_what_is_shipped_is_in_force_and_what_only_looks_like_it_is_not(
        #[values(Policy::ServiceImages, Policy::QuorumClusters)] which: Policy,
    ) {
        assert!(judged(which, |_, _| {}));
        assert!(!judged(which, |_, binding| binding["validationActions"] = json!(["Audit"])));
        assert!(!judged(which, |_, binding| binding["matchResources"] = json!({"namespaceSelector": {}})));
        assert!(!judged(which, |_, binding| binding["policyName"] = json!("another")));
        assert!(!judged(which, |policy, _| policy["failurePolicy"] = "Ignore".into()));
        assert!(!judged(which, |policy, _| policy["validations"][0]["expression"] = "true".into()));
        let constraints = |change: fn(&mut Value)| judged(which, |policy, _| change(&mut policy["matchConstraints"]));
        assert!(!constraints(|matches| matches["resourceRules"][0]["operations"] = json!(["CREATE"])));
        assert!(!constraints(|matches| matches["resourceRules"][0]["resources"] = json!(["pods"])));
        assert!(!constraints(|matches| matches["resourceRules"][0]["resourceNames"] = json!(["one"])));
        assert!(!constraints(|matches| matches["excludeResourceRules"] = matches["resourceRules"].clone()));
        assert!(!constraints(|matches| matches["namespaceSelector"] = json!({"matchLabels": {"a": "b"}})));
        assert!(!constraints(|matches| matches["objectSelector"] = json!({"matchLabels": {"a": "b"}})));
        let without_status = constraints(|matches| {
            let resources = matches["resourceRules"][0]["resources"].as_array_mut().unwrap();
            resources.retain(|one| !one.as_str().unwrap().ends_with("/status"));
        });
        assert!(!without_status, "what is recorded is acted on");
        let starred = |star: &str| {
            judged(which, |policy, _| policy["matchConstraints"]["resourceRules"][0]["resources"] = json!([star]))
        };
        assert!(starred("*/*"));
        assert!(!starred("*"));
        // What the API server fills in.
        assert!(constraints(|matches| matches["objectSelector"] = json!({})));
        assert!(!is_in_force(which, None, None));
    }
}
