//! Jobs.

use serde_json::{Map, Value, json};

use super::super::error::FieldError;
use super::super::object;
use super::super::selector::Labels;
use super::{label_selector, not_negative, pod_spec, pod_template};

/// The labels by which a Job's pods are known, under their old and their new names.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

pub(super) fn default(job: &mut Map<String, Value>) {
    let labels = job.get("spec").and_then(|spec| object::at(spec, &["template", "metadata", "labels"])).cloned();
    let meta = object::child(job, "metadata");
    if let Some(labels) = labels.filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty()))
        && meta.get("labels").and_then(Value::as_object).is_none_or(Map::is_empty)
    {
        meta.insert("labels".to_owned(), labels);
    }
    object::child(job, "status");
    let spec = object::child(job, "spec");
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".to_owned(), json!(1));
    }
    object::default(spec, "parallelism", json!(1));
    object::default(spec, "backoffLimit", json!(6));
    object::default(spec, "completionMode", json!("NonIndexed"));
    object::default(spec, "suspend", json!(false));
    object::default(spec, "podReplacementPolicy", json!("TerminatingOrFailed"));
    object::default(spec, "manualSelector", json!(false));
    pod_template::default_template(spec);
}

/// Gives the Job a selector of its own and its template the labels for it, unless its author does that.
pub(super) fn prepare_create(job: &mut Value) {
    job["status"] = json!({});
    let (name, uid) = (json!(object::name(job)), json!(object::meta_text(job, "uid")));
    let spec = object::child(object::as_map(job), "spec");
    if spec.get("manualSelector") == Some(&json!(true)) {
        return;
    }
    let labels = object::child(object::child(object::child(spec, "template"), "metadata"), "labels");
    for (keys, value) in [(NAME_LABELS, &name), (UID_LABELS, &uid)] {
        for key in keys {
            object::default(labels, key, value.clone());
        }
    }
    let [_, known_by] = UID_LABELS;
    object::default(object::child(object::child(spec, "selector"), "matchLabels"), known_by, uid);
}

pub(super) fn validate(job: &Value, before: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"] {
        errors.extend(not_negative(job, &["spec", key], &format!("spec.{key}")));
    }
    let selector = object::at(job, &["spec", "selector"]);
    let labels = object::at(job, &["spec", "template", "metadata", "labels"]);
    match selector.and_then(Labels::from_object) {
        None => errors.push(FieldError::required("spec.selector", "")),
        Some(parsed) if !parsed.matches(labels) => {
            let shown = labels.cloned().unwrap_or_default();
            let why = "`selector` does not match template `labels`";
            errors.push(FieldError::invalid("spec.template.metadata.labels", shown, why));
        }
        Some(_) => errors.extend(label_selector::validate(selector, "spec.selector")),
    }
    let template = object::at(job, &["spec", "template", "spec"]).unwrap_or(&Value::Null);
    errors.extend(pod_spec::validate(template, "spec.template.spec"));
    if object::text(template, &["restartPolicy"]) == "Always" {
        let why = "valid values: \"OnFailure\", \"Never\"";
        errors.push(FieldError::required("spec.template.spec.restartPolicy", why));
    }
    if let Some(before) = before {
        for key in ["completions", "selector", "template", "completionMode"] {
            let value = object::at(job, &["spec", key]);
            if value != object::at(before, &["spec", key]) {
                let shown = value.cloned().unwrap_or_default();
                errors.push(FieldError::invalid(format!("spec.{key}"), shown, "field is immutable"));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(spec: &Value) -> Value {
        let mut job = json!({"metadata": {"name": "a", "uid": "7"}, "spec": spec});
        default(job.as_object_mut().unwrap());
        prepare_create(&mut job);
        job
    }

    #[test]
    fn one_pod_that_succeeds_once_is_the_default() {
        let spec = job(&json!({}))["spec"].clone();
        assert_eq!((&spec["completions"], &spec["parallelism"]), (&json!(1), &json!(1)));
        let counted = job(&json!({"parallelism": 2}))["spec"].clone();
        assert_eq!((counted.get("completions"), &counted["parallelism"]), (None, &json!(2)));
    }

    #[test]
    fn its_pods_are_known_by_its_uid() {
        let made = job(&json!({"template": {"metadata": {"labels": {"app": "x"}}}}));
        assert_eq!(made["metadata"]["labels"], json!({"app": "x"}));
        assert_eq!(made["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "7"}}));
        let labels = &made["spec"]["template"]["metadata"]["labels"];
        assert_eq!((&labels["job-name"], &labels["controller-uid"]), (&json!("a"), &json!("7")));
        assert!(validate(&made, None).iter().all(|error| !format!("{error:?}").contains("selector")));
    }
}
