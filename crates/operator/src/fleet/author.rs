//! Whether the author's own rights decide what a ServiceImage may change (H41).
//!
//! A resource does not say who wrote it. The API server knows when it is written, and asks: `deploy/author-rights.yaml` is the policy that
//! refuses a ServiceImage to whoever may not patch what it would change. It is believed only while it is there, and says no.

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::Api;

use crate::{error::Error, execute::Actor, observe::get};

/// What both are called.
const NAME: &str = "windlass-author-rights";

/// Why the author's rights were not asked for; none if they were.
pub async fn unasked(actor: Actor<'_>, said: &str, plural: &str) -> Result<Option<String>, Error> {
    if said != plural {
        return Ok(Some(format!(
            "its resources are called {plural}, and the author's rights were asked for {said}: say it in spec.target.resource"
        )));
    }
    let client = &actor.context.client;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let policy = get(actor.context, "validatingadmissionpolicies", &policies, NAME).await?;
    let binding = get(actor.context, "validatingadmissionpolicybindings", &bindings, NAME).await?;
    Ok((!is_in_force(policy.as_ref(), binding.as_ref()))
        .then(|| format!("the ValidatingAdmissionPolicy {NAME} is not in force, which asks for the author's rights")))
}

/// Both are there, and what is not right, or can't be told, is refused everywhere.
fn is_in_force(policy: Option<&ValidatingAdmissionPolicy>, binding: Option<&ValidatingAdmissionPolicyBinding>) -> bool {
    let policy = policy.and_then(|policy| policy.spec.as_ref());
    let binding = binding.and_then(|binding| binding.spec.as_ref());
    let asks = policy.is_some_and(|spec| {
        spec.failure_policy.as_deref().is_none_or(|policy| policy == "Fail")
            && spec.validations.iter().flatten().any(|one| one.expression.contains("authorizer"))
    });
    let denies = binding.is_some_and(|spec| {
        spec.policy_name.as_deref() == Some(NAME)
            && spec.match_resources.is_none()
            && spec.validation_actions.iter().flatten().any(|action| action == "Deny")
    });
    asks && denies
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::is_in_force;

    fn shipped() -> [Value; 2] {
        let text = include_str!("../../../../deploy/author-rights.yaml");
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
        documents.try_into().unwrap()
    }

    fn judged(change: impl FnOnce(&mut Value, &mut Value)) -> bool {
        let [mut policy, mut binding] = shipped();
        change(&mut policy, &mut binding);
        let policy = serde_json::from_value(policy).unwrap();
        let binding = serde_json::from_value(binding).unwrap();
        is_in_force(Some(&policy), Some(&binding))
    }

    #[test]
    fn h41_what_is_shipped_is_in_force_and_what_only_looks_like_it_is_not() {
        assert!(judged(|_, _| {}));
        assert!(!judged(|_, binding| binding["spec"]["validationActions"] = serde_json::json!(["Audit"])));
        assert!(!judged(|_, binding| binding["spec"]["matchResources"] = serde_json::json!({"namespaceSelector": {}})));
        assert!(!judged(|policy, _| policy["spec"]["failurePolicy"] = "Ignore".into()));
        assert!(!judged(|policy, _| policy["spec"]["validations"][0]["expression"] = "true".into()));
        assert!(!is_in_force(None, None));
    }
}
