//! What to say of a Dicom. Pure.

use k8s_openapi::{
    api::apps::v1::Deployment,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::ResourceExt;

use crate::{Dicom, DicomStatus};

/// What a Deployment has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    /// Everything runs what the spec says.
    Done,
    /// Not yet; in words.
    Going(String),
    /// Its controller gave up; in words.
    Stuck(String),
}

/// The status that a Dicom with this Deployment has, at this time.
pub fn status(dicom: &Dicom, deployment: Option<&Deployment>, now: Timestamp) -> DicomStatus {
    let before = dicom.status.clone().unwrap_or_default();
    let progress = progress(dicom, deployment);
    let (up_to_date, failed, reason, message) = match &progress {
        Progress::Done => ("True", "False", "Available", "all replicas run this image and are available"),
        Progress::Going(why) => ("False", "False", "Progressing", why.as_str()),
        Progress::Stuck(why) => ("False", "True", "Stuck", why.as_str()),
    };
    // Once is for ever.
    let has_served = before.conditions.iter().any(|one| one.type_ == "Deployed" && one.status == "True");
    let deployed = if has_served || progress == Progress::Done { "True" } else { "False" };
    let generation = dicom.metadata.generation.unwrap_or(0);
    let condition = |type_: &str, status: &str, reason: &str, message: &str| {
        let kept = before.conditions.iter().find(|one| one.type_ == type_ && one.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: Some(generation),
            last_transition_time: kept.map_or(Time(now), |one| one.last_transition_time.clone()),
        }
    };
    let selector: Vec<String> = dicom.pod_labels().iter().map(|(label, value)| format!("{label}={value}")).collect();
    DicomStatus {
        observed_generation: generation,
        selector: Some(selector.join(",")),
        conditions: vec![
            condition("UpToDate", up_to_date, reason, message),
            condition("Deployed", deployed, if deployed == "True" { "Served" } else { "NotYet" }, ""),
            condition("Failed", failed, reason, message),
        ],
    }
}

/// How far the Deployment is (E9): its controller has seen the newest spec, and all replicas that there shall be are there, updated and
/// available, and no others.
fn progress(dicom: &Dicom, deployment: Option<&Deployment>) -> Progress {
    let Some(image) = &dicom.spec.image else { return Progress::Going("no image yet".to_owned()) };
    let Some(deployment) = deployment else { return Progress::Going("no Deployment yet".to_owned()) };
    let spec = deployment.spec.as_ref();
    let runs = spec.and_then(|spec| spec.template.spec.as_ref()).and_then(|spec| spec.containers.first());
    if runs.and_then(|container| container.image.as_ref()) != Some(image) {
        return Progress::Going("the Deployment does not have this image yet".to_owned());
    }
    let status = deployment.status.clone().unwrap_or_default();
    if status.observed_generation < deployment.metadata.generation {
        return Progress::Going(format!("the Deployment {} was not looked at yet", deployment.name_any()));
    }
    let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let count = |field: Option<i32>| field.unwrap_or(0);
    let (there, updated, available) =
        (count(status.replicas), count(status.updated_replicas), count(status.available_replicas));
    if [there, updated, available] == [wanted; 3] {
        return Progress::Done;
    }
    let stuck =
        status.conditions.iter().flatten().find(|one| one.reason.as_deref() == Some("ProgressDeadlineExceeded"));
    match stuck {
        Some(one) => Progress::Stuck(one.message.clone().unwrap_or_default()),
        None => Progress::Going(format!(
            "{wanted} replicas are wanted; {there} are there, {updated} updated, {available} available"
        )),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{api::apps::v1::Deployment, jiff::Timestamp};
    use rstest::rstest;
    use serde_json::json;

    use super::status;
    use crate::Dicom;

    fn dicom() -> Dicom {
        serde_json::from_value(json!({
            "apiVersion": "examples.windlass.dev/v1", "kind": "Dicom",
            "metadata": {"name": "a", "namespace": "clinic", "generation": 4},
            "spec": {"image": "r/dicom:v2", "replicas": 2},
        }))
        .unwrap()
    }

    fn deployment(image: &str, generation: i64, counts: [i32; 3]) -> Deployment {
        let [replicas, updated, available] = counts;
        serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "clinic", "generation": 7},
            "spec": {"replicas": 2, "selector": {}, "template": {"spec": {"containers": [{"name": "dicom", "image": image}]}}},
            "status": {"observedGeneration": generation, "replicas": replicas, "updatedReplicas": updated, "availableReplicas": available},
        }))
        .unwrap()
    }

    #[rstest]
    #[case::done("r/dicom:v2", 7, [2, 2, 2], "True")]
    #[case::seen_later_than_it_was_written("r/dicom:v2", 8, [2, 2, 2], "True")]
    #[case::another_image("r/dicom:v1", 7, [2, 2, 2], "False")]
    #[case::not_looked_at("r/dicom:v2", 6, [2, 2, 2], "False")]
    #[case::an_old_one_still_there("r/dicom:v2", 7, [3, 2, 2], "False")]
    #[case::not_all_updated("r/dicom:v2", 7, [2, 1, 2], "False")]
    #[case::not_all_available("r/dicom:v2", 7, [2, 2, 1], "False")]
    fn e9_up_to_date_means_all_of_it(
        #[case] image: &str,
        #[case] generation: i64,
        #[case] counts: [i32; 3],
        #[case] expected: &str,
    ) {
        let said = status(&dicom(), Some(&deployment(image, generation, counts)), Timestamp::UNIX_EPOCH);
        assert_eq!((said.observed_generation, said.conditions[0].status.as_str()), (4, expected));
        assert_eq!(said.conditions[1].status, expected, "never deployed before");
    }

    #[test]
    fn e12_its_pods_can_be_found() {
        let said = status(&dicom(), None, Timestamp::UNIX_EPOCH);
        let expected = "app.kubernetes.io/instance=a,app.kubernetes.io/managed-by=dicom";
        assert_eq!(said.selector.as_deref(), Some(expected));
    }

    #[test]
    fn e9_deployed_stays_so() {
        let mut dicom = dicom();
        dicom.status = Some(status(&dicom, Some(&deployment("r/dicom:v2", 7, [2, 2, 2])), Timestamp::UNIX_EPOCH));
        let later = Timestamp::from_second(60).unwrap();
        let said = status(&dicom, Some(&deployment("r/dicom:v2", 7, [2, 2, 0])), later);
        assert_eq!((said.conditions[0].status.as_str(), said.conditions[1].status.as_str()), ("False", "True"));
        assert_eq!(said.conditions[0].last_transition_time.0, later);
        assert_eq!(said.conditions[1].last_transition_time.0, Timestamp::UNIX_EPOCH);
    }
}
